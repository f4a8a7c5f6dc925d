//! bird.conf of BIRD 2.17: the protocol `radv`, with options as octets where BIRD has no words.

use super::{PREFERRED_S, VALID_S};
use crate::PlannedFile;
use crate::agreed::{Agreed, Link};
use crate::input::Input;
use crate::options::{ENCRYPTED_DNS, PREF64, hex, pref64};
use crate::part::Part;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

/// A router needs a number of 32 bits, which means nothing here: the IPv4 dummy address (RFC 7600 section 4.8) of a router without IPv4.
const DUMMY: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);

/// The file.
pub fn file(input: &Input, agreed: &Agreed) -> PlannedFile {
    let addresses = input.network.interfaces.iter().flat_map(|interface| interface.ipv4());
    let ipv4 = addresses.map(|(_, entry)| entry.address).find_map(|address| match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    });
    let mut text = format!(
        "# BIRD 2.13 or later. If it routes, too, put the protocol `radv` into the file that is there.\n\
         # Options {PREF64} (NAT64 prefix, RFC 8781) and {ENCRYPTED_DNS} (encrypted resolvers, RFC 9463) stand as \
         octets: BIRD has no words for \
         them.\nrouter id {};\nprotocol device {{ }}\nprotocol radv {{\n",
        ipv4.unwrap_or(DUMMY)
    );
    for link in &agreed.links {
        interface(&mut text, input, agreed, link);
    }
    text.push_str("}\n");
    let explanation = "BIRD sends router advertisements with the networks of the clients, the NAT64 prefix (RFC \
                       8781), the resolver (RFC 8106) \
                       and encrypted resolvers (RFC 9463), if there are any. From them clients without IPv4 make \
                       their addresses and learn \
                       their way to IPv4 servers.";
    super::file(input, Part::Bird, "etc/bird/bird.conf", &text, explanation)
}

fn interface(text: &mut String, input: &Input, agreed: &Agreed, link: &Link) {
    let network = &input.network;
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "    interface \"{}\" {{\n        min ra interval {};\n        max ra interval {};\n        default lifetime \
         {};\n        \
         link mtu {};",
        link.name, agreed.least_interval_s, network.interval_s, network.router_lifetime_s, network.mtu
    );
    for prefix in &link.networks {
        let _ = writeln!(
            text,
            "        prefix {prefix} {{\n            valid lifetime {VALID_S};\n            preferred lifetime \
             {PREFERRED_S};\n        }};"
        );
    }
    text.push_str("        rdnss {\n");
    for address in &link.rdnss {
        let _ = writeln!(text, "            ns {address};");
    }
    let _ = writeln!(text, "            lifetime {};\n        }};", agreed.dns_lifetime_s);
    if let Some(prefix) = &agreed.prefix {
        let octets = hex(&pref64(prefix, agreed.pref64_lifetime_s));
        let _ = writeln!(
            text,
            "        # {}/{} for {} s\n        custom option type {PREF64} value hex:{octets};",
            prefix.address(),
            prefix.length(),
            agreed.pref64_lifetime_s
        );
    }
    for resolver in &link.encrypted {
        let octets = hex(&resolver.bytes(agreed.dns_lifetime_s));
        let addresses = super::joined(&resolver.addresses);
        let _ = writeln!(
            text,
            "        # {} at {addresses}: {}\n        custom option type {ENCRYPTED_DNS} value hex:{octets};",
            resolver.name,
            resolver.words()
        );
    }
    text.push_str("    };\n");
}
