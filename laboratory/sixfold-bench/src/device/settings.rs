//! Settings of a device under test.

use measure::order::Transport;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};

/// Settings that the configuration of a device is made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Address to listen on, UDP and TCP; port 0: a free port of its host.
    pub listen: SocketAddr,
    /// Address of the authority, to which it forwards everything.
    pub upstream: SocketAddr,
    /// The DNS64 prefix and its length.
    pub prefix: (Ipv6Addr, u8),
    /// Zone of the names.
    pub zone: String,
    /// Number of threads, or of processes if the server has no threads.
    pub workers: u16,
    /// Value of the parameter that is swept; empty without a sweep.
    pub value: String,
    /// The user's lines for its configuration, in its own syntax; placeholders are filled.
    pub options: Vec<String>,
    /// Transport that it is asked over at `listen`.
    #[serde(default)]
    pub transport: Transport,
    /// True if a template leaves the server's own defaults for buffers and limits.
    pub as_shipped: bool,
    /// Trust anchor of a device that validates; `None`: it does not validate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_anchor: Option<TrustAnchor>,
}

/// Trust anchor: a DS record (RFC 4034 section 5), whose zone is signed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrustAnchor {
    /// Name of the zone, with the final dot.
    pub zone: String,
    /// Key tag.
    pub key_tag: u16,
    /// Algorithm of the key.
    pub algorithm: u8,
    /// SHA-256 digest of the key (digest type 2), in hexadecimal digits.
    pub digest: String,
}

/// The record in presentation format.
impl fmt::Display for TrustAnchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TrustAnchor { zone, key_tag, algorithm, digest } = self;
        write!(f, "{zone} IN DS {key_tag} {algorithm} 2 {digest}")
    }
}

impl Settings {
    /// Settings of a device with one worker, asked over UDP, with raised limits and without further lines.
    pub fn new(listen: SocketAddr, upstream: SocketAddr, prefix: (Ipv6Addr, u8), zone: &str) -> Settings {
        Settings {
            listen,
            upstream,
            prefix,
            zone: zone.to_owned(),
            workers: 1,
            value: String::new(),
            options: Vec::new(),
            transport: Transport::Udp,
            as_shipped: false,
            trust_anchor: None,
        }
    }

    /// Returns settings for tests and examples.
    pub fn example() -> Settings {
        let [listen, upstream] = [5301, 5302].map(|port| SocketAddr::from((Ipv6Addr::LOCALHOST, port)));
        Settings::new(
            listen,
            upstream,
            (Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, 0, 0), 96),
            "dns64perf.test",
        )
    }
}
