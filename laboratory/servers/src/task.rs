//! Task of a server, in terms that all servers have.

use crate::demands::Demands;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// PEM file of the certificate, in the folder of a server that is asked over an encrypted transport.
pub const CERTIFICATE_FILE: &str = "certificate.pem";

/// PEM file of its private key. It belongs to no record.
pub const KEY_FILE: &str = "key.pem";

/// Task of a server. In the foreground, without control sockets and without a log of queries it is done as the user who starts the server.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// Addresses to listen on, UDP and TCP, all with one port; at least one.
    pub listen: Vec<SocketAddr>,
    /// Encrypted transport that is spoken there instead. Certificate and key are in [`CERTIFICATE_FILE`] and [`KEY_FILE`].
    pub encrypted: Option<Encrypted>,
    /// Servers that are asked everything.
    pub forwarders: Vec<SocketAddr>,
    /// Zones with forwarders of their own.
    pub zones: Vec<(String, Vec<SocketAddr>)>,
    /// Names that are forwarded although the server has a zone for them (RFC 6761, RFC 6303). Servers whose rule for everything comes
    /// before their zones need no list.
    pub names: Vec<String>,
    /// Number of threads, or of processes if the server has no threads.
    pub workers: u16,
    /// Buffers and limits.
    pub limits: Limits,
    /// Validation of DNSSEC.
    pub validation: Validation,
    /// DNS64, local data and the like.
    pub demands: Demands,
    /// Further lines of the configuration, in the server's own syntax; they take the place of those of the recipe.
    pub options: Vec<String>,
}

/// Encrypted transport of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encrypted {
    /// DNS over TLS (RFC 7858).
    Tls,
    /// DNS over HTTPS (RFC 8484).
    Https,
    /// DNS over QUIC (RFC 9250).
    Quic,
}

/// Buffers and limits of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limits {
    /// The server's own.
    #[default]
    Shipped,
    /// Room for few outstanding queries, so that many servers fit a machine.
    Small,
    /// Room for many outstanding queries, and sockets with this receive buffer in octets, which the kernel doubles.
    Raised(i32),
}

/// Validation of DNSSEC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Validation {
    /// None.
    #[default]
    Off,
    /// None, but clients that want signatures get those of the upstream.
    Passes,
    /// By these anchors. CoreDNS and dnsproxy, who do not validate, leave them out.
    Anchors(Anchors),
}

impl Validation {
    /// The anchors, if the server validates.
    pub fn anchors(&self) -> Option<&Anchors> {
        if let Validation::Anchors(anchors) = self { Some(anchors) } else { None }
    }
}

/// Trust anchors of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anchors {
    /// Zones that are signed. A zone with several keys is there several times.
    pub positive: Vec<TrustAnchor>,
    /// Zones that count as unsigned (RFC 7646).
    pub negative: Vec<String>,
    /// True: proofs of one answer are not used for another question (RFC 8198), and clocks are as strict as RFC 4035 section 5.3.1 has
    /// them, where the server has a switch for that.
    pub is_strict: bool,
}

/// Trust anchor: a DS record (RFC 4034 section 5), whose zone is signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustAnchor {
    /// Name of the zone, with the final dot.
    pub zone: String,
    /// Key tag.
    pub key_tag: u16,
    /// Algorithm of the key.
    pub algorithm: u8,
    /// Type of the digest: 2 for SHA-256.
    pub digest_type: u8,
    /// Digest of the key, in hexadecimal digits.
    pub digest: String,
}

/// The record in presentation format.
impl fmt::Display for TrustAnchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} IN DS {} {}", self.zone, self.key(), self.digest)
    }
}

/// Reads the record in presentation format; a TTL is left out, and the digest may have spaces.
impl FromStr for TrustAnchor {
    type Err = ();

    fn from_str(line: &str) -> Result<TrustAnchor, ()> {
        let mut words = line.split_whitespace();
        let zone = words.next().ok_or(())?.to_owned();
        words.find(|word| *word == "DS").ok_or(())?;
        let mut number = || words.next().and_then(|word| word.parse::<u16>().ok()).ok_or(());
        let (key_tag, algorithm, digest_type) = (number()?, number()?, number()?);
        let narrow = |number: u16| u8::try_from(number).map_err(drop);
        let (algorithm, digest_type) = (narrow(algorithm)?, narrow(digest_type)?);
        Ok(TrustAnchor { zone, key_tag, algorithm, digest_type, digest: words.collect() })
    }
}

impl TrustAnchor {
    /// The record of a zone, its name with the final dot, with this RDATA: four octets and the digest (RFC 4034 section 5.1).
    pub fn of_rdata(zone: String, rdata: &[u8]) -> TrustAnchor {
        TrustAnchor {
            zone,
            key_tag: u16::from_be_bytes([rdata[0], rdata[1]]),
            algorithm: rdata[2],
            digest_type: rdata[3],
            digest: rdata[4..].iter().map(|octet| format!("{octet:02X}")).collect(),
        }
    }

    /// Key tag, algorithm and digest type, with spaces between them.
    pub(crate) fn key(&self) -> String {
        format!("{} {} {}", self.key_tag, self.algorithm, self.digest_type)
    }
}

impl Task {
    /// A task without DNS64: a server with one worker that listens at one address and asks one server everything.
    pub fn new(listen: SocketAddr, forwarder: SocketAddr) -> Task {
        Task { listen: vec![listen], forwarders: vec![forwarder], workers: 1, ..Task::default() }
    }

    /// The port of all its addresses.
    pub(crate) fn port(&self) -> u16 {
        self.listen.first().map_or(53, SocketAddr::port)
    }

    /// Its addresses, without the port.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = String> {
        self.listen.iter().map(|listen| listen.ip().to_string())
    }

    /// Zones and whom to ask for their names: those of the list, then `.` for all others.
    pub(crate) fn forwarded(&self) -> impl Iterator<Item = (&str, &[SocketAddr])> {
        let zones = self.zones.iter().map(|(zone, servers)| (zone.as_str(), servers.as_slice()));
        let rest = (!self.forwarders.is_empty()).then_some((".", self.forwarders.as_slice()));
        zones.chain(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 4034 section 5.4, with its digest in two parts.
    #[test]
    fn a_ds_record_is_read_as_it_is_written() {
        let text = "dskey.example.com. 86400 IN DS 60485 5 1 2BB183AF5F22588179A53B0A 98631FAD1A292118";
        let anchor: TrustAnchor = text.parse().unwrap();
        let whole = "dskey.example.com. IN DS 60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118";
        assert_eq!(anchor.to_string(), whole);
        assert_eq!(whole.parse(), Ok(anchor));
        for wrong in ["", "a. IN A 192.0.2.1", "a. DS 1 300 2 AB", "a. DS 1"] {
            assert_eq!(wrong.parse::<TrustAnchor>(), Err(()), "{wrong}");
        }
    }
}
