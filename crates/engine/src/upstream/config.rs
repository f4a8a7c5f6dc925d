//! `[upstream]`: the configuration of forwarders.

use crate::base::time::Span;
use crate::interface::Transport;
use core::net::SocketAddr;

/// Which upstream of a group is asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Select {
    /// The first in the list that is alive.
    #[default]
    Ordered,
    /// One at random per question.
    Random,
    /// The one with the shortest measured round trip.
    Fastest,
}

/// Forwarders of a zone.
#[derive(Clone, Debug)]
pub struct ForwardZone {
    /// The zone's name in wire form, lower case; the root (`[0]`) matches everything.
    pub name: Box<[u8]>,
    /// Its forwarders, in order.
    pub forwarders: Vec<SocketAddr>,
}

/// `[upstream]`.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// Forwarders for everything that no zone claims, in order.
    pub forwarders: Vec<SocketAddr>,
    /// Zones that go elsewhere; the longest match wins.
    pub zones: Vec<ForwardZone>,
    /// Which of a group is asked first.
    pub select: Select,
    /// Ceiling for the wait of one try.
    pub timeout: Span,
    /// Tries in all, over all forwarders: 1 to [`crate::limits::TRIES`].
    pub tries: u8,
    /// How questions travel.
    pub transport: Transport,
}

impl UpstreamConfig {
    /// How long all tries of one question take at most.
    pub fn longest(&self) -> Span {
        Span(self.timeout.0.saturating_mul(u64::from(self.tries)))
    }
}

/// The values of the configuration that every query needs, copied at each reload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters {
    /// Tries in all for one question.
    pub tries: u8,
    /// Ceiling for the wait of one try.
    pub timeout: Span,
    /// Transport of queries.
    pub transport: Transport,
    /// Selection within a group.
    pub select: Select,
    /// Queries carry cookies.
    pub sends_cookies: bool,
    /// UDP size announced to upstreams, in octets.
    pub udp_size: u16,
}
