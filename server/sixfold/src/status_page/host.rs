//! Check of the Host header against DNS rebinding: a web site whose name suddenly leads to this machine could have the browser of
//! an operator read the page, as that is of the same origin then. A request by an IP address, or by a name that always leads to the
//! machine of the browser, cannot come from such a site (RFC 6761 section 6.3).

use std::net::{Ipv4Addr, Ipv6Addr};

/// Names of the machine itself, in lower case.
const LOOPBACK: [&str; 3] = ["localhost", "ip6-localhost", "ip6-loopback"];

/// True if a page of a stranger cannot have made a request for this host. `metrics.listen` is an IP address, and so is accepted.
pub fn is_trusted(authority: &str) -> bool {
    if let Some(rest) = authority.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        return address.parse::<Ipv6Addr>().is_ok()
            && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    let (host, port) = authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port)));
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_own = LOOPBACK.contains(&host.as_str()) || host.ends_with(".localhost");
    (is_own || host.parse::<Ipv4Addr>().is_ok()) && port.is_none_or(is_port)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|octet| octet.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_of_this_machine_are_trusted_and_other_names_are_not() {
        for own in [
            "127.0.0.1:9464",
            "127.0.0.1",
            "192.0.2.7:80",
            "[::1]:9464",
            "[2001:db8::1]",
            "localhost:9464",
            "LocalHost.",
            "ip6-localhost:1",
            "sixfold.localhost:9464",
        ] {
            assert!(is_trusted(own), "{own}");
        }
        for other in [
            "",
            "rebind.example:9464",
            "127.0.0.1.rebind.example",
            "localhost.rebind.example",
            "notlocalhost",
            "127.0.0.1:99999",
            "127.0.0.1:80:80",
            "127.0.0.1:+80",
            "user@127.0.0.1",
            "[::1",
            "[::1]x",
            "[rebind.example]:80",
            "0x7f000001",
            "127.1",
        ] {
            assert!(!is_trusted(other), "{other}");
        }
    }
}
