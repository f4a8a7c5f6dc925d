//! Probes of gateways: `"tcp 192.0.2.10:443"`, `"icmp 192.0.2.11"`.

use super::form::List;
use super::report::{Fault, quoted};
use gateways::Probe;
use gateways::limits::PROBES as MOST;
use std::net::{Ipv4Addr, SocketAddrV4};

/// The probes of a gateway.
pub const PROBES: List<Probe> = List {
    most: Some((MOST, "probes", "name fewer addresses: one that replies is enough")),
    twice: Some(("probe", "name each address once")),
    ..List::of("probes", "a probe like \"tcp 192.0.2.10:443\"", probe, shown)
};

/// Parses a probe.
///
/// # Errors
///
/// The text is neither `tcp ADDRESS:PORT` nor `icmp ADDRESS` with an IPv4 address that hosts can have, or the port is 0.
fn probe(text: &str) -> Result<Probe, Fault> {
    let read = text.split_once(' ').and_then(|(protocol, target)| match protocol {
        "tcp" => target.parse::<SocketAddrV4>().ok().map(|to| Probe::Tcp(to.ip().octets(), to.port())),
        "icmp" => target.parse::<Ipv4Addr>().ok().map(|address| Probe::Icmp(address.octets())),
        _ => None,
    });
    let is_possible = |probe: &Probe| {
        let (Probe::Tcp(octets, _) | Probe::Icmp(octets)) = *probe;
        let address = Ipv4Addr::from(octets);
        let is_host = !(address.is_unspecified() || address.is_multicast() || address.is_broadcast());
        is_host && !matches!(probe, Probe::Tcp(_, 0))
    };
    read.filter(is_possible).ok_or_else(|| {
        let help = "write \"tcp ADDRESS:PORT\" or \"icmp ADDRESS\" with an IPv4 address behind the gateway, like \
                    \"tcp 192.0.2.10:443\"; the prefix is put in front of it";
        Fault::new(format!("{} is not a probe", quoted(text)), help)
    })
}

/// Writes a probe.
pub fn shown(probe: &Probe) -> String {
    match *probe {
        Probe::Tcp(address, port) => format!("tcp {}:{port}", Ipv4Addr::from(address)),
        Probe::Icmp(address) => format!("icmp {}", Ipv4Addr::from(address)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_written_as_it_was_read() {
        for text in ["tcp 192.0.2.10:443", "icmp 10.0.0.1", "tcp 127.0.0.1:1"] {
            assert_eq!(shown(&probe(text).unwrap()), text);
        }
    }

    #[test]
    fn what_is_no_probe_is_refused() {
        for text in [
            "",
            "tcp",
            "tcp 192.0.2.10",
            "tcp 192.0.2.10:0",
            "tcp  192.0.2.10:443",
            "icmp 192.0.2.10:443",
            "icmp 0.0.0.0",
            "icmp 224.0.0.1",
            "icmp 2001:db8::1",
            "tcp [2001:db8::1]:443",
            "udp 192.0.2.10:53",
            "http://192.0.2.10/",
        ] {
            let fault = probe(text).expect_err(text);
            assert!(fault.what.ends_with("is not a probe") && fault.help.contains("tcp 192.0.2.10:443"));
        }
    }
}
