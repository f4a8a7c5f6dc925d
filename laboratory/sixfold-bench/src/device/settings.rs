//! Settings of a device under test.

use super::RECEIVE_BUFFER;
use measure::order::Transport;
use serde::{Deserialize, Serialize};
use servers::{Anchors, Demands, Encrypted, Limits, Task, TrustAnchor, Validation};
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

    /// The task of a template.
    pub fn task(&self) -> Task {
        let encrypted = match self.transport {
            Transport::Tls => Some(Encrypted::Tls),
            Transport::Https => Some(Encrypted::Https),
            Transport::Quic => Some(Encrypted::Quic),
            Transport::Udp | Transport::Tcp | Transport::TcpReuse | Transport::Tfo => None,
        };
        let anchors = |anchor: &TrustAnchor| Anchors { positive: vec![anchor.clone()], ..Anchors::default() };
        let validation =
            self.trust_anchor.as_ref().map_or(Validation::Off, |it| Validation::Anchors(anchors(it)));
        Task {
            encrypted,
            names: vec!["test".to_owned(), self.zone.clone()],
            workers: self.workers,
            limits: if self.as_shipped { Limits::Shipped } else { Limits::Raised(RECEIVE_BUFFER) },
            validation,
            demands: Demands { prefixes: vec![self.prefix], ..Demands::default() },
            options: self.options.clone(),
            ..Task::new(self.listen, self.upstream)
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
