//! Sections of /etc/config/dhcp for odhcpd, as its README describes them.

use crate::PlannedFile;
use crate::agreed::{Agreed, Link};
use crate::input::Input;
use crate::part::Part;
use std::fmt::Write;

/// What odhcpd has no words for.
pub const NOT_SAID: &str = "odhcpd has no words for the networks, which it takes from the interface, and for the \
                            lifetimes of resolver and \
                            NAT64 prefix, which it computes from `ra_lifetime` and `ra_maxinterval`.";

/// The file.
pub fn file(input: &Input, agreed: &Agreed) -> PlannedFile {
    let mut text = format!(
        "# odhcpd of OpenWrt 24.10 or later: put these lines into the sections of the same interfaces in /etc/config/dhcp. \
         Keep those for DHCPv4\n\
         # (interface, start, limit, leasetime), which dnsmasq reads in the same sections.\n# {NOT_SAID}\n"
    );
    for link in &agreed.links {
        section(&mut text, input, agreed, link);
    }
    let explanation = "odhcpd of an OpenWrt router sends router advertisements with the NAT64 prefix (RFC 8781), the \
                       resolver (RFC 8106) and encrypted resolvers (RFC 9463), if there are any. Its lines belong into \
                       the sections of the same interfaces in /etc/config/dhcp.";
    super::file(input, Part::Odhcpd, "openwrt/dhcp", &text, explanation)
}

fn section(text: &mut String, input: &Input, agreed: &Agreed, link: &Link) {
    let network = &input.network;
    // odhcpd takes the device from the interface of /etc/config/network, whatever `ifname` says. OpenWrt names the bridge of `lan` `br-lan`.
    // A section's name has letters, digits and underscores only.
    let interface = link.name.strip_prefix("br-").unwrap_or(&link.name);
    let name: String =
        interface.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\n# {} is the device of this interface, if the name is right: see /etc/config/network.\nconfig dhcp \
         '{name}'\n\toption interface '{name}'\n\toption ra 'server'\n\toption dhcpv6 'disabled'\n\tlist ra_flags \
         'none'",
        link.name
    );
    let _ = writeln!(
        text,
        "\toption ra_mininterval '{}'\n\toption ra_maxinterval '{}'\n\toption ra_lifetime '{}'\n\toption ra_mtu '{}'",
        agreed.least_interval_s, network.interval_s, network.router_lifetime_s, network.mtu
    );
    for address in &link.rdnss {
        let _ = writeln!(text, "\tlist dns '{address}'");
    }
    if let Some(prefix) = agreed.prefix {
        let _ = writeln!(text, "\toption ra_pref64 '{}/{}'", prefix.address(), prefix.length());
    }
    for resolver in &link.encrypted {
        let addresses = resolver.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let _ = writeln!(
            text,
            "\tlist dnr '{} {} {addresses} {}'",
            resolver.priority,
            resolver.name,
            // A quotation mark in the path of DNS over HTTPS, as in a shell.
            resolver.words().replace('\'', "'\\''")
        );
    }
}
