//! dnsmasq(8) 2.91 as DHCPv4 server, without DNS.

use super::joined;
use crate::PlannedFile;
use crate::agreed::Agreed;
use crate::input::Input;
use crate::part::Part;
use std::fmt::Write;
use std::net::Ipv4Addr;

/// The file.
pub fn file(input: &Input, agreed: &Agreed) -> PlannedFile {
    // With port=0 dnsmasq answers no DNS: port 53 is Sixfold's.
    let mut text = String::from(
        "# DHCPv4 only: DNS (port 53) is served by Sixfold.\nport=0\nbind-dynamic\ndhcp-authoritative\n",
    );
    // Writing to a string cannot fail.
    if input.network.offers_v6_only() {
        text.push_str(
            "# Clients that can do without IPv4 ask for option 108, and take no address for so many seconds (RFC 8925), \
             which have 32 bits.\n",
        );
    }
    for link in &agreed.links {
        let Some(ipv4) = &link.ipv4 else { continue };
        let name = &link.name;
        let mask =
            Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - u32::from(ipv4.network.length)).unwrap_or(0));
        let _ = writeln!(
            text,
            "\ninterface={name}\ndhcp-range=set:{name},{},{},{mask},1h\ndhcp-option=tag:{name},option:router,{}",
            ipv4.range.0, ipv4.range.1, ipv4.router
        );
        if let Some(wait_s) = ipv4.v6_only_wait_s {
            let _ = writeln!(text, "dhcp-option=tag:{name},108,{wait_s}i");
        }
        if !ipv4.dns.is_empty() {
            let _ = writeln!(
                text,
                "dhcp-option=tag:{name},option:dns-server,{}",
                joined(&ipv4.dns).replace(' ', "")
            );
        }
        let _ = writeln!(text, "dhcp-option=tag:{name},option:mtu,{}", input.network.mtu.min(65_535));
    }
    let explanation = "dnsmasq gives IPv4 addresses to devices that need them, and tells those that do not to do \
                       without (option 108, RFC 8925). \
                       It answers no DNS, so that Sixfold has port 53.";
    super::file(input, Part::Dnsmasq, "etc/dnsmasq.d/sixfold.conf", &text, explanation)
}
