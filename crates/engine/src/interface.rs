//! The engine's face: what goes in, what comes out. A datapath (sockets, later AF_XDP) or a simulator stands on
//! the other side. [`Machine`] is what a datapath drives, [`Outbox`] is what it offers in return; the engine
//! implements the first, so does the bare reflector that the benchmarks compare it with.

use crate::base::time::Instant;
use crate::event::TraceEvent;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

/// How a client's question arrived, and so how its answer leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum ClientTransport {
    /// A UDP datagram: the answer is bounded by the client's EDNS size.
    #[default]
    Udp,
    /// A TCP connection: answers of up to 65,535 octets.
    Tcp,
}

/// A proxy that brought a question and takes the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Its address; IPv4 as IPv4-mapped IPv6.
    pub address: Ipv6Addr,
    /// Its port.
    pub port: u16,
}

/// Who asked, and how the answer finds the way back. Plain data of fixed size, kept while a question waits.
/// The engine looks at `address` and `transport`; the other fields belong to the datapath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The client's address; IPv4 as IPv4-mapped IPv6. Behind a proxy, the one that the proxy tells: it is what counts in
    /// every limit and rule.
    pub address: Ipv6Addr,
    /// The address that the client asked, IPv4 as IPv4-mapped: the answer leaves from it. Unspecified when the
    /// listening socket is bound to one address and the kernel chooses by itself.
    pub local: Ipv6Addr,
    /// The client's port.
    pub port: u16,
    /// Index of the listening socket.
    pub listener: u16,
    /// Interface index (a scope) for link-local addresses, 0 otherwise. Behind a proxy, that of the proxy's address.
    pub scope: u32,
    /// For streams: a token that names the connection, unique while the process lives.
    pub stream: u64,
    /// How the question came.
    pub transport: ClientTransport,
    /// The proxy that asks for the client, if there is one.
    pub proxy: Option<Proxy>,
}

impl Client {
    /// A UDP client, as tests and simulators make one.
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

    /// Address and port that the answer goes to.
    #[inline]
    pub fn answer_to(&self) -> (Ipv6Addr, u16) {
        self.proxy.map_or((self.address, self.port), |proxy| (proxy.address, proxy.port))
    }

    /// Whether the client came over IPv4.
    pub fn is_ipv4(&self) -> bool {
        matches!(self.address.octets(), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ..])
    }
}

/// A way to an upstream: one connected UDP socket with its own random port, or one TCP connection. The engine
/// numbers links; the datapath owns the sockets behind them. A number is used again only after
/// [`Outbox::close`]; `generation` tells an old socket's late datagrams from those of its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// Slot number, below [`crate::limits::LINKS`].
    pub slot: u16,
    /// Counts the uses of the slot.
    pub generation: u16,
}

impl Link {
    /// No link: stands where a question could not be sent.
    pub const NOWHERE: Link = Link { slot: u16::MAX, generation: 0 };
}

/// What a datapath or a simulator offers to a [`Machine`] while it works. Frames are filled by a closure, which
/// gets a buffer and returns how many octets it wrote.
pub trait Outbox {
    /// Sends an answer to a client. The frame has at least `size` octets; when `fill` returns 0, nothing is sent after all.
    /// False: the datapath could not take it (the caller counts a drop).
    fn answer(&mut self, to: &Client, size: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> bool;

    /// Sends a question to an upstream over an open link. The frame has at least 512 octets. The datapath adds
    /// the two octets of length on a TCP link. False: not taken; the question counts as lost.
    fn ask(&mut self, via: Link, fill: impl FnOnce(&mut [u8]) -> usize) -> bool;

    /// Opens a link: a UDP socket bound to `port` (another random port when it is taken) and connected to
    /// `upstream`, or a TCP connection that may still be under way when this returns (what is asked meanwhile
    /// waits in the link's buffer). False: it could not be opened (no descriptor, no route).
    fn open(&mut self, link: Link, upstream: SocketAddr, transport: Transport, port: u16) -> bool;

    /// The address of this host that an open link goes out from; None when it is not known. Cookies towards upstreams change
    /// with it, so that nobody is followed by them from network to network.
    fn local(&self, _link: Link) -> Option<IpAddr> {
        None
    }

    /// Closes a link. Nothing arrives over it any more.
    fn close(&mut self, link: Link);

    /// Hears of a decision. Who explains answers listens; for others the note is not even made.
    #[inline]
    fn trace<'n>(&mut self, _event: impl FnOnce() -> TraceEvent<'n>) {}
}

/// What a datapath drives: the DNS64 engine, or a reflector.
pub trait Machine {
    /// A message from a client.
    fn query(&mut self, now: Instant, from: &Client, message: &[u8], out: &mut impl Outbox);

    /// A message from an upstream.
    fn reply(&mut self, now: Instant, via: Link, message: &[u8], out: &mut impl Outbox);

    /// A link failed: an ICMP error came (UDP), or the connection was refused, reset or closed (TCP; the
    /// datapath has closed it and forgets it).
    fn unreachable(&mut self, now: Instant, via: Link, out: &mut impl Outbox);

    /// Whether nothing is pending: no client waits for an answer. A draining datapath stops then.
    fn idle(&self) -> bool;

    /// Time has passed. Returns the next deadline, if there is one.
    fn expire(&mut self, now: Instant, out: &mut impl Outbox) -> Option<Instant>;
}

/// How questions travel to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Transport {
    /// UDP; TCP on truncation or after a forgery attempt.
    #[default]
    Udp,
    /// Always TCP, pipelined.
    Tcp,
}
