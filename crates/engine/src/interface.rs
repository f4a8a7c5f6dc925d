//! Interface between the engine and its driver, which is a datapath (sockets, later AF_XDP) or a simulator. The driver calls a
//! [`Machine`] with messages and the time, and the machine sends messages through the driver's [`Outbox`]. The engine implements
//! [`Machine`], and so does the reflector with which the benchmarks compare it.

use crate::base::time::Instant;
use crate::trace::TraceEvent;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Transport of a client's query, and of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum ClientTransport {
    /// UDP: the client's EDNS size limits the answer.
    #[default]
    Udp,
    /// TCP: answers of up to 65,535 octets.
    Tcp,
}

/// Proxy that forwarded a query and takes the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Its address; IPv4 as IPv4-mapped IPv6.
    pub address: Ipv6Addr,
    /// Its port.
    pub port: u16,
}

/// Source of a query, and destination of the answer. Plain data of fixed size, stored while a query waits.
/// The engine reads `address` and `transport`; the other fields belong to the datapath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The client's address; IPv4 as IPv4-mapped IPv6. Behind a proxy, the address that the proxy reports. All limits and rules
    /// apply to this address.
    pub address: Ipv6Addr,
    /// Local address that the client sent to, IPv4 as IPv4-mapped: the source of the answer. Unspecified if the listening socket
    /// is bound to one address, and the kernel chooses.
    pub local: Ipv6Addr,
    /// The client's port.
    pub port: u16,
    /// Index of the listening socket.
    pub listener: u16,
    /// Interface index (scope ID) for link-local addresses, 0 otherwise. Behind a proxy, that of the proxy's address.
    pub scope: u32,
    /// For streams, a token of the connection, unique while the process lives.
    pub stream: u64,
    /// Transport of the query.
    pub transport: ClientTransport,
    /// Proxy between client and server, if there is one.
    pub proxy: Option<Proxy>,
}

impl Client {
    /// A UDP client, for tests and simulators.
    pub fn udp(address: SocketAddr) -> Client {
        Client {
            address: match address.ip() {
                IpAddr::V4(v4) => v4.to_ipv6_mapped(),
                IpAddr::V6(v6) => v6,
            },
            local: Ipv6Addr::UNSPECIFIED,
            port: address.port(),
            listener: 0,
            scope: 0,
            stream: 0,
            transport: ClientTransport::Udp,
            proxy: None,
        }
    }

    /// Address and port to which the answer is sent.
    #[inline]
    pub fn answer_to(&self) -> (Ipv6Addr, u16) {
        self.proxy.map_or((self.address, self.port), |proxy| (proxy.address, proxy.port))
    }

    /// True if the client's address is IPv4.
    pub fn is_ipv4(&self) -> bool {
        matches!(self.address.octets(), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ..])
    }
}

/// Link to an upstream: one connected UDP socket with its own random port, or one TCP connection. The engine numbers links;
/// the datapath owns the sockets behind them. A number is used again only after [`Outbox::close`]; `generation` distinguishes
/// late datagrams of an old socket from those of its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// Slot number, below [`crate::limits::LINKS`].
    pub slot: u16,
    /// Counts the uses of the slot.
    pub generation: u16,
}

impl Link {
    /// Placeholder for a link, where a question could not be sent.
    pub const NOWHERE: Link = Link { slot: u16::MAX, generation: 0 };
}

/// Output side of a driver, which a [`Machine`] calls. A closure fills each frame: it gets a buffer, and returns the number of
/// octets that it wrote.
pub trait Outbox {
    /// Sends an answer to a client. The frame has at least `size` octets. If `fill` returns 0, nothing is sent. Returns false
    /// if the datapath could not take the answer (the caller counts a drop).
    fn answer(&mut self, to: &Client, size: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> bool;

    /// Sends a query to an upstream over an open link. The frame has at least 512 octets. On a TCP link, the datapath adds the two
    /// octets of length. Returns false if the datapath could not take the query, which then counts as lost.
    fn ask(&mut self, via: Link, fill: impl FnOnce(&mut [u8]) -> usize) -> bool;

    /// Opens a link: a UDP socket bound to `port` (to another random port if this one is in use) and connected to `upstream`,
    /// or a TCP connection, which may not be established yet on return (until then, queries wait in the link's buffer). Returns
    /// false if it could not be opened (no descriptor, no route).
    fn open(&mut self, link: Link, upstream: SocketAddr, transport: Transport, port: u16) -> bool;

    /// Local address of an open link; none if it is not known. Client cookies for upstreams depend on it, so that they do not
    /// allow tracking from network to network.
    fn local(&self, _link: Link) -> Option<IpAddr> {
        None
    }

    /// Closes a link. No message arrives over it any more.
    fn close(&mut self, link: Link);

    /// Receives a decision of the engine. Only `explain/` listens; for other implementations the event is not even built.
    #[inline]
    fn trace<'n>(&mut self, _event: impl FnOnce() -> TraceEvent<'n>) {}
}

/// State machine that a driver calls: the DNS64 engine, or a reflector.
pub trait Machine {
    /// Handles a message from a client.
    fn query(&mut self, now: Instant, from: &Client, message: &[u8], out: &mut impl Outbox);

    /// Handles a message from an upstream. It may change the letter case of names in it.
    fn reply(&mut self, now: Instant, via: Link, message: &mut [u8], out: &mut impl Outbox);

    /// Handles the failure of a link: an ICMP error (UDP), or a connection that was refused, reset or closed (TCP; the datapath
    /// has already released it).
    fn unreachable(&mut self, now: Instant, via: Link, out: &mut impl Outbox);

    /// True if no client waits for an answer. A draining datapath stops then.
    fn idle(&self) -> bool;

    /// Handles all deadlines up to `now`. Returns the next deadline, if there is one.
    fn expire(&mut self, now: Instant, out: &mut impl Outbox) -> Option<Instant>;
}

/// Transport to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Transport {
    /// UDP; TCP on truncation or after a forgery attempt.
    #[default]
    Udp,
    /// Always TCP, pipelined.
    Tcp,
}
