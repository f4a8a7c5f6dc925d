//! Discovery of designated resolvers (RFC 9462): the records of `_dns.resolver.arpa` by which a client of plain DNS finds the encrypted
//! listeners of this server. They are local records, so all that holds for those holds for them; own records of the operator for that
//! name take their place.

use super::Name;
use super::keys::Tls;
use engine::local::LocalRecord;
use std::net::{IpAddr, SocketAddr};
use wire::Type;

/// The name with the records (RFC 9462 section 4).
pub const NAME: &[u8] = b"\x04_dns\x08resolver\x04arpa\x00";

/// Type SVCB (RFC 9460 section 14.1).
const SVCB: Type = Type(64);

/// TTL of the records in seconds: clients learn of changed listeners within minutes.
const TTL: u32 = 300;

/// Keys of parameters (RFC 9460 section 14.3.2, RFC 9461 section 5).
const ALPN: u16 = 1;
const PORT: u16 = 3;
const IPV4_HINT: u16 = 4;
const IPV6_HINT: u16 = 6;
const DOH_PATH: u16 = 7;

/// A kind of listener: its protocol in ALPN, and the port that clients take without a parameter.
struct Kind<'c> {
    alpn: &'static str,
    default_port: u16,
    listen: &'c [SocketAddr],
    has_path: bool,
}

/// The records for the listeners of a server with this name, one for each transport and port. The order of preference follows the cost
/// for both sides: DNS over TLS, then over HTTPS, then over QUIC.
pub fn records(name: &Name, tls: &Tls) -> Vec<LocalRecord> {
    let kinds = [
        Kind { alpn: "dot", default_port: 853, listen: &tls.listen_dot, has_path: false },
        Kind { alpn: "h2", default_port: 443, listen: &tls.listen_doh, has_path: true },
        Kind { alpn: "doq", default_port: 853, listen: &tls.listen_doq, has_path: false },
    ];
    let mut records = Vec::new();
    for kind in kinds {
        let mut ports: Vec<u16> = kind.listen.iter().map(SocketAddr::port).collect();
        ports.sort_unstable();
        ports.dedup();
        for port in ports {
            let priority = records.len() as u16 + 1;
            let rdata = rdata(priority, name, &kind, port, &tls.doh_path);
            records.push(LocalRecord { owner: NAME.into(), rtype: SVCB, ttl: TTL, rdata: rdata.into() });
        }
    }
    records
}

/// Priority, target and parameters in the order of their keys (RFC 9460 section 2.2).
fn rdata(priority: u16, name: &Name, kind: &Kind<'_>, port: u16, path: &str) -> Vec<u8> {
    let mut rdata = priority.to_be_bytes().to_vec();
    rdata.extend(name.wire());
    let mut parameter = |key: u16, value: &[u8]| {
        if !value.is_empty() {
            rdata.extend(key.to_be_bytes());
            rdata.extend((value.len() as u16).to_be_bytes());
            rdata.extend(value);
        }
    };
    let alpn = [&[kind.alpn.len() as u8], kind.alpn.as_bytes()].concat();
    parameter(ALPN, &alpn);
    if port != kind.default_port {
        parameter(PORT, &port.to_be_bytes());
    }
    // An address that only this host has, or that stands for all, is of no use to a client.
    let here = kind.listen.iter().filter(|address| address.port() == port).map(SocketAddr::ip);
    let (mut four, mut six) = (Vec::new(), Vec::new());
    for address in here.filter(|address| !address.is_loopback() && !address.is_unspecified()) {
        match address {
            IpAddr::V4(v4) => four.extend(v4.octets()),
            IpAddr::V6(v6) if !v6.is_unicast_link_local() => six.extend(v6.octets()),
            IpAddr::V6(_) => {}
        }
    }
    parameter(IPV4_HINT, &four);
    parameter(IPV6_HINT, &six);
    if kind.has_path {
        parameter(DOH_PATH, format!("{path}{{?dns}}").as_bytes());
    }
    rdata
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_transport_and_port_has_a_record_with_its_parameters_in_order() {
        let at = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let tls = Tls {
            listen_dot: at(&["[::]:853", "0.0.0.0:853"]),
            listen_doh: at(&["192.0.2.1:8443", "[2001:db8::1]:8443", "[::1]:8443"]),
            listen_doq: at(&["127.0.0.1:8853"]),
            ..Tls::default()
        };
        let name = Name::parse("dns.example").unwrap();
        let records = records(&name, &tls);
        assert!(records.iter().all(LocalRecord::is_sound));
        let target = b"\x03dns\x07example\x00";
        let expected: [&[&[u8]]; 3] = [
            &[&[0, 1], target, &[0, 1, 0, 4, 3], b"dot"],
            &[
                &[0, 2],
                target,
                &[0, 1, 0, 3, 2],
                b"h2",
                &[0, 3, 0, 2, 0x20, 0xfb],
                &[0, 4, 0, 4, 192, 0, 2, 1],
                &[0, 6, 0, 16, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
                &[0, 7, 0, 16],
                b"/dns-query{?dns}",
            ],
            &[&[0, 3], target, &[0, 1, 0, 4, 3], b"doq", &[0, 3, 0, 2, 0x22, 0x95]],
        ];
        for (record, expected) in records.iter().zip(expected) {
            assert_eq!(record.rdata[..], expected.concat());
        }
        assert_eq!(records.len(), 3);
    }
}
