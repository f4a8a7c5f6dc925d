//! systemd.network(5) of systemd 257: a file for each link.

use super::{PREFERRED_S, VALID_S};
use crate::PlannedFile;
use crate::agreed::{Agreed, Link};
use crate::input::Input;
use crate::part::Part;
use std::fmt::Write;

/// What systemd-networkd has no words for.
pub const NOT_SAID: &str = "systemd-networkd 257 has no words for encrypted resolvers (RFC 9463), for the interval of \
                            the advertisements \
                            and for the MTU in them.";

/// The MTU of Ethernet, which needs no word.
const ETHERNET_MTU: u32 = 1500;

/// The files.
pub fn files(input: &Input, agreed: &Agreed) -> Vec<PlannedFile> {
    agreed.links.iter().map(|link| file(input, agreed, link)).collect()
}

fn file(input: &Input, agreed: &Agreed, link: &Link) -> PlannedFile {
    let mut text = format!(
        "# systemd 255 or later. This file takes the place of any other one for this interface.\n# \
         {NOT_SAID}\n[Match]\nName={}\n",
        link.name
    );
    // Writing to a string cannot fail.
    if input.network.mtu != ETHERNET_MTU {
        let _ = write!(text, "\n[Link]\nMTUBytes={}\n", input.network.mtu);
    }
    text.push_str("\n[Network]\n");
    for address in &link.addresses {
        let _ = writeln!(text, "Address={address}");
    }
    text.push_str("IPv6AcceptRA=no\nIPv6SendRA=yes\n");
    let rdnss = link.rdnss.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let _ = write!(
        text,
        "\n[IPv6SendRA]\nRouterLifetimeSec={}\nEmitDNS=yes\nDNS={rdnss}\nDNSLifetimeSec={}\nEmitDomains=no\n",
        input.network.router_lifetime_s, agreed.dns_lifetime_s
    );
    for prefix in &link.networks {
        let _ = write!(
            text,
            "\n[IPv6Prefix]\nPrefix={prefix}\nPreferredLifetimeSec={PREFERRED_S}\nValidLifetimeSec={VALID_S}\n"
        );
    }
    if let Some(prefix) = agreed.prefix {
        let _ = write!(
            text,
            "\n[IPv6PREF64Prefix]\nPrefix={}/{}\nLifetimeSec={}\n",
            prefix.address(),
            prefix.length(),
            agreed.pref64_lifetime_s
        );
    }
    let explanation = "systemd-networkd gives this machine its addresses on the link and sends router advertisements \
                       with the networks of the \
                       clients, the NAT64 prefix (RFC 8781) and the resolver (RFC 8106). Other files for the same \
                       interface do not count then.";
    let path = format!("etc/systemd/network/10-sixfold-{}.network", link.name);
    super::file(input, Part::Networkd, &path, &text, explanation)
}
