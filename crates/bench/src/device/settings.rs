//! Settings of a device under test.

use serde::{Deserialize, Serialize};
use std::net::{Ipv6Addr, SocketAddr};

/// What a device is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Where it is to listen, UDP and TCP; port 0: one that is free on its host.
    pub listen: SocketAddr,
    /// The authority, to which it forwards everything.
    pub upstream: SocketAddr,
    /// The DNS64 prefix and its length.
    pub prefix: (Ipv6Addr, u8),
    /// The zone that the names are in.
    pub zone: String,
    /// Threads, or processes where it has no threads.
    pub workers: u16,
    /// The value of the parameter that is swept; empty: none is.
    pub value: String,
    /// Further lines of its configuration, in its own syntax; placeholders are filled.
    pub options: Vec<String>,
}

impl Settings {
    /// Settings for tests and examples.
    pub fn example() -> Settings {
        Settings {
            listen: SocketAddr::from((Ipv6Addr::LOCALHOST, 5301)),
            upstream: SocketAddr::from((Ipv6Addr::LOCALHOST, 5302)),
            prefix: (Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, 0, 0), 96),
            zone: "dns64perf.test".to_owned(),
            workers: 1,
            value: String::new(),
            options: Vec::new(),
        }
    }
}
