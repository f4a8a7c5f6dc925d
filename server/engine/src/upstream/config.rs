//! Configuration of upstream servers: `[upstream]`.

use crate::base::time::Span;
use crate::interface::Transport;
use core::net::SocketAddr;

/// Selection: the upstream of a group that is asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Select {
    /// The first upstream of the list that is alive.
    #[default]
    Ordered,
    /// A random upstream for each question.
    Random,
    /// The upstream with the shortest measured round trip.
    Fastest,
}

/// A forward zone and its forwarders.
#[derive(Clone, Debug)]
pub struct ForwardZone {
    /// The zone's name in wire form, lower case; the root (`[0]`) matches everything.
    pub name: Box<[u8]>,
    /// Forwarders of the zone, in order.
    pub forwarders: Vec<SocketAddr>,
}

/// A forwarder that is asked over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsForwarder {
    /// Its address and port. Nothing else is spoken there.
    pub address: SocketAddr,
    /// A number for the name and the trust anchors that the datapath verifies it by. A forwarder with another number is another
    /// server: it takes over no connection.
    pub identity: u64,
}

/// The section `[upstream]`.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// Forwarders for all names outside of the forward zones, in order.
    pub forwarders: Vec<SocketAddr>,
    /// Forward zones; the longest match wins.
    pub zones: Vec<ForwardZone>,
    /// Selection within a group.
    pub select: Select,
    /// Ceiling for the timeout of one attempt.
    pub timeout: Span,
    /// Number of attempts of one question, over all forwarders: 1 to [`crate::limits::TRIES`].
    pub tries: u8,
    /// Transport of queries to forwarders that are not in `tls`: UDP or TCP.
    pub transport: Transport,
    /// Queries over UDP have random letter case, which replies must repeat (`dns0x20.rs`).
    pub mix_case: bool,
    /// Forwarders that are asked over TLS, and never in another way, by their addresses.
    pub tls: Vec<TlsForwarder>,
}

impl UpstreamConfig {
    /// Longest time that all attempts of one question take.
    pub fn longest(&self) -> Span {
        Span(self.timeout.0.saturating_mul(u64::from(self.tries)))
    }
}

/// The values of the configuration that every query needs, copied at each reload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters {
    /// Number of attempts of one question.
    pub tries: u8,
    /// Ceiling for the timeout of one attempt.
    pub timeout: Span,
    /// Transport of queries.
    pub transport: Transport,
    /// Queries over UDP have random letter case.
    pub mix_case: bool,
    /// Selection within a group.
    pub select: Select,
    /// Queries carry cookies.
    pub sends_cookies: bool,
    /// UDP size announced to upstreams, in octets.
    pub udp_size: u16,
    /// Replies are validated here: queries ask for signatures (DO), and have the upstream not validate (CD), whatever clients sent (RFC
    /// 6840 section 5.9).
    pub validates: bool,
}
