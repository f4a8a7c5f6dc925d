//! radvd.conf(5) of radvd 2.20.

use super::{PREFERRED_S, VALID_S};
use crate::PlannedFile;
use crate::agreed::{Agreed, Link};
use crate::input::Input;
use crate::part::Part;
use std::fmt::Write;

/// What radvd has no words for.
pub const NOT_SAID: &str = "radvd 2.20 cannot announce encrypted resolvers (RFC 9463): clients find them by \
                            `_dns.resolver.arpa` (RFC 9462).";

/// The file.
pub fn file(input: &Input, agreed: &Agreed) -> PlannedFile {
    let mut text =
        String::from("# radvd 2.20 or later: older ones do not know the NAT64 prefix (RFC 8781).\n");
    if input.server.is_encrypted() && input.network.dnr {
        let _ = writeln!(text, "# {NOT_SAID}");
    }
    for link in &agreed.links {
        interface(&mut text, input, agreed, link);
    }
    let explanation = "radvd sends router advertisements with the networks of the clients, the NAT64 prefix (RFC \
                       8781) and the resolver \
                       (RFC 8106). From them clients without IPv4 make their addresses and learn their way to IPv4 \
                       servers.";
    super::file(input, Part::Radvd, "etc/radvd.conf", &text, explanation)
}

fn interface(text: &mut String, input: &Input, agreed: &Agreed, link: &Link) {
    let network = &input.network;
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "interface {} {{\n    AdvSendAdvert on;\n    MinRtrAdvInterval {};\n    MaxRtrAdvInterval {};\n    \
         AdvDefaultLifetime {};\n    \
         AdvLinkMTU {};",
        link.name, agreed.least_interval_s, network.interval_s, network.router_lifetime_s, network.mtu
    );
    for prefix in &link.networks {
        let _ = writeln!(
            text,
            "    prefix {prefix} {{\n        AdvValidLifetime {VALID_S};\n        AdvPreferredLifetime \
             {PREFERRED_S};\n    }};"
        );
    }
    let rdnss = link.rdnss.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let _ =
        writeln!(text, "    RDNSS {rdnss} {{\n        AdvRDNSSLifetime {};\n    }};", agreed.dns_lifetime_s);
    if let Some(prefix) = agreed.prefix {
        let _ = writeln!(
            text,
            "    nat64prefix {}/{} {{\n        AdvValidLifetime {};\n    }};",
            prefix.address(),
            prefix.length(),
            agreed.pref64_lifetime_s
        );
    }
    text.push_str("};\n");
}
