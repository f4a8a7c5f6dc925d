//! Interface between the engine and its driver, which is a datapath (sockets, AF_XDP) or a simulator. The driver calls a
//! [`Machine`](crate::Machine) with messages and the time, and the machine sends messages through the driver's [`Outbox`].

use crate::base::network::is_ipv4;
use crate::trace::{Subject, TraceEvent};
use core::fmt;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use core::time::Duration;

/// Transport of a client's query, and of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum ClientTransport {
    /// UDP: the client's EDNS size limits the answer.
    #[default]
    Udp,
    /// TCP: answers of up to 65,535 octets.
    Tcp,
    /// DNS over TLS (RFC 7858).
    Tls,
    /// DNS over HTTPS (RFC 8484).
    Https,
    /// DNS over QUIC (RFC 9250).
    Quic,
}

impl ClientTransport {
    /// True for UDP: sizes are limited, answers may be truncated, and the source address may be forged. The other transports are
    /// streams, whose handshake proves the address.
    #[inline]
    pub fn is_datagram(self) -> bool {
        matches!(self, ClientTransport::Udp)
    }
}

/// Idle timeout of a client's connection, in units of 100 ms: the TIMEOUT of the option edns-tcp-keepalive (RFC 7828 section 3.1). At
/// most 6,553.5 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct IdleTimeout(pub u16);

impl IdleTimeout {
    /// Asks the client to close its connection (RFC 7828 section 3.3.2).
    pub const CLOSE: IdleTimeout = IdleTimeout(0);

    /// The largest timeout that is not longer than `time`, so that the client closes before the server does. At least 100 ms, as 0
    /// means [`IdleTimeout::CLOSE`].
    pub fn of(time: Duration) -> IdleTimeout {
        IdleTimeout(u16::try_from(time.as_millis() / 100).unwrap_or(u16::MAX).max(1))
    }
}

/// Proxy that forwarded a query and takes the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Its address; IPv4 as IPv4-mapped IPv6.
    pub address: Ipv6Addr,
    /// Its port.
    pub port: u16,
}

/// Network under which all limits count a client: the /64 of an IPv6 address, an IPv4 address, or a link-local address with its
/// interface. All hosts of a link have addresses in one /64 (fe80::/64, RFC 4291 section 2.5.6), so for these the /64 says
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientNetwork(u128);

impl ClientNetwork {
    /// Network of an address, IPv4 as IPv4-mapped. `scope`: interface index, which counts only for link-local addresses.
    #[inline]
    pub fn of(address: Ipv6Addr, scope: u32) -> ClientNetwork {
        let bits = u128::from(address);
        ClientNetwork(if bits >> 32 == 0xffff {
            bits
        } else if address.is_unicast_link_local() {
            // The 54 bits before the interface identifier are 0 (RFC 4291 section 2.5.6), so the scope has room there.
            bits ^ u128::from(scope) << 64
        } else {
            bits >> 64 << 64
        })
    }

    /// Customer of the network, the second level of all limits: the first `prefix_length` bits, which are delegated to one customer
    /// (an end site, RFC 6177); for a link-local address its link. An IPv4 address is its own customer, and with a prefix length of
    /// 64 every network is.
    #[inline]
    pub fn customer(self, prefix_length: u8) -> ClientNetwork {
        let unused = 128 - u32::from(self.customer_length(prefix_length));
        ClientNetwork(self.0 >> unused << unused)
    }

    /// Prefix length of the network's customer, in bits of an IPv6 address (IPv4 as IPv4-mapped).
    #[inline]
    pub fn customer_length(self, prefix_length: u8) -> u8 {
        if self.is_customer(prefix_length) {
            self.length()
        } else if self.is_link_local() {
            64
        } else {
            prefix_length.max(1)
        }
    }

    /// Prefix length of the network, in bits of an IPv6 address (IPv4 as IPv4-mapped): 64, or 128 where it is a single address.
    #[inline]
    pub fn length(self) -> u8 {
        if self.0 >> 32 == 0xffff || self.is_link_local() { 128 } else { 64 }
    }

    #[inline]
    fn is_link_local(self) -> bool {
        Ipv6Addr::from(self.0).is_unicast_link_local()
    }

    /// True if the network has no second level: an IPv4 address, and every network with a prefix length of 64.
    #[inline]
    pub fn is_customer(self, prefix_length: u8) -> bool {
        prefix_length >= 64 || self.0 >> 32 == 0xffff
    }

    /// The network as a number. Without scope, these are the bits of the address.
    #[inline]
    pub fn bits(self) -> u128 {
        self.0
    }
}

/// The network as people write it: an IPv4 address, a prefix, or a link-local address with the index of its interface.
impl fmt::Display for ClientNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = Ipv6Addr::from(self.0);
        match address.to_ipv4_mapped() {
            Some(address) => address.fmt(f),
            None if self.is_link_local() => {
                // See `of`: the scope stands in the lower half of the first 64 bits.
                let scope = (self.0 >> 64) as u32;
                write!(f, "{}%{scope}", Ipv6Addr::from(self.0 & !(u128::from(u32::MAX) << 64)))
            }
            None => write!(f, "{address}/64"),
        }
    }
}

/// Source of a query, and destination of the answer. Plain data of fixed size, stored while a query waits.
/// The engine reads `address`, `scope`, `transport` and `idle_timeout`; the other fields belong to the datapath.
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
    /// For TCP and TLS, the idle timeout of the connection, which a response tells to a client that asks. Otherwise unused.
    pub idle_timeout: IdleTimeout,
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
            idle_timeout: IdleTimeout::CLOSE,
            proxy: None,
        }
    }

    /// Network under which the limits count the client.
    #[inline]
    pub fn network(&self) -> ClientNetwork {
        ClientNetwork::of(self.address, self.scope)
    }

    /// Address and port to which the answer is sent.
    #[inline]
    pub fn answer_to(&self) -> (Ipv6Addr, u16) {
        self.proxy.map_or((self.address, self.port), |proxy| (proxy.address, proxy.port))
    }

    /// True if the client's address is IPv4.
    #[inline]
    pub fn is_ipv4(&self) -> bool {
        is_ipv4(self.address)
    }
}

/// Link to an upstream: one connected UDP socket with its own random port, or one TCP or TLS connection. The engine numbers links;
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

/// Output side of a driver, which a [`Machine`](crate::Machine) calls. It hands out a frame, the machine writes a message into it, and says
/// how long the message is. Frames hold octets of older messages. The next call gives or sends the same frame: there is one at a time.
pub trait Outbox {
    /// A frame of at least `size` octets for an answer to a client. None: the datapath has none (the caller counts a drop).
    fn answer_frame(&mut self, to: &Client, size: usize) -> Option<&mut [u8]>;

    /// Sends the first `length` octets of the frame that was handed out for an answer to this client. With 0 octets the frame goes back, and
    /// nothing is sent. Returns false if the datapath could not take the answer (the caller counts a drop).
    fn send_answer(&mut self, to: &Client, length: usize) -> bool;

    /// Sends a copy of an answer to a client. Returns false if the datapath could not take it.
    fn answer(&mut self, to: &Client, message: &[u8]) -> bool {
        let Some(frame) = self.answer_frame(to, message.len()) else { return false };
        frame[..message.len()].copy_from_slice(message);
        self.send_answer(to, message.len())
    }

    /// Ends the query of a client on a stream without an answer: its place in the connection is free again. A datagram leaves nothing that
    /// would have to end.
    fn drop_query(&mut self, _from: &Client) {}

    /// A frame of at least 512 octets for a query over an open link. None: the datapath cannot take a query for it now, which then counts as
    /// lost.
    fn query_frame(&mut self, via: Link) -> Option<&mut [u8]>;

    /// Sends the first `length` octets of the frame that was handed out for a query over this link. On a TCP or TLS link, the datapath adds
    /// the two octets of length. Returns false if the datapath could not take the query, which then counts as lost.
    fn send_query(&mut self, via: Link, length: usize) -> bool;

    /// Sends a copy of a query of at most 512 octets over an open link. Returns false if the datapath could not take it.
    fn ask(&mut self, via: Link, message: &[u8]) -> bool {
        let Some(frame) = self.query_frame(via) else { return false };
        frame[..message.len()].copy_from_slice(message);
        self.send_query(via, message.len())
    }

    /// Opens a link: a UDP socket bound to `port` (to another random port if this one is in use) and connected to `upstream`,
    /// or a TCP connection, which may not be established yet on return (until then, queries wait in the link's buffer). Returns
    /// false if it could not be opened (no descriptor, no route).
    fn open(&mut self, link: Link, upstream: SocketAddr, transport: Transport, port: u16) -> bool;

    /// Local address and port of an open link; none if they are not known. Client cookies for upstreams depend on the address, so
    /// that they do not allow tracking from network to network.
    fn local(&self, _link: Link) -> Option<SocketAddr> {
        None
    }

    /// Closes a link. No message arrives over it any more.
    fn close(&mut self, link: Link);

    /// Verifies a signature on another thread, and gives the outcome to [`Machine::verified`](crate::Machine::verified). Returns false if the
    /// datapath cannot take it.
    fn verify(&mut self, _id: VerificationId, _signed: &SignedData<'_>) -> bool {
        false
    }

    /// Receives an event of the engine, and the query or question that it belongs to. Only `explain/` and an observed engine
    /// listen; for other implementations the event is not even built.
    #[inline]
    fn trace<'n>(&mut self, _subject: Subject, _event: impl FnOnce() -> TraceEvent<'n>) {}
}

/// Verification of a signature that is under way. The number of a slot is used again; `serial` distinguishes the uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VerificationId {
    /// Slot number.
    pub slot: u32,
    /// Counts the uses of the slot.
    pub serial: u32,
}

/// Signature to be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedData<'a> {
    /// Number of the algorithm (RFC 4034 appendix A.1).
    pub algorithm: u8,
    /// Public key in the form of the algorithm.
    pub key: &'a [u8],
    /// Signature.
    pub signature: &'a [u8],
    /// Octets that are signed.
    pub data: &'a [u8],
}

/// Octets before key, signature and data: the algorithm, and the lengths of key and signature.
const SIGNED_HEAD: usize = 5;

impl<'a> SignedData<'a> {
    /// Writes the signature as octets that can be kept, in place of what the buffer has.
    pub fn write(&self, out: &mut Vec<u8>) {
        let SignedData { algorithm, key, signature, data } = *self;
        let ([k0, k1], [s0, s1]) = ((key.len() as u16).to_be_bytes(), (signature.len() as u16).to_be_bytes());
        out.clear();
        out.extend([algorithm, k0, k1, s0, s1]);
        [key, signature, data].into_iter().for_each(|octets| out.extend(octets));
    }

    /// Reads what [`SignedData::write`] wrote. None: it is something else.
    pub fn read(octets: &'a [u8]) -> Option<SignedData<'a>> {
        let (&[algorithm, k0, k1, s0, s1], rest) = octets.split_first_chunk::<SIGNED_HEAD>()?;
        let (key, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([k0, k1])))?;
        let (signature, data) = rest.split_at_checked(usize::from(u16::from_be_bytes([s0, s1])))?;
        Some(SignedData { algorithm, key, signature, data })
    }
}

/// Transport to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Transport {
    /// UDP; TCP on truncation or after a forgery attempt.
    #[default]
    Udp,
    /// Always TCP, pipelined.
    Tcp,
    /// Always TLS over TCP, pipelined (RFC 7858). The datapath verifies the name of the upstream.
    Tls,
}

impl Transport {
    /// True for transports over a connection. Nobody on the path can forge a reply without being seen, and a broken connection
    /// loses the questions on it.
    #[inline]
    pub fn is_stream(self) -> bool {
        !matches!(self, Transport::Udp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(address: &str, scope: u32) -> ClientNetwork {
        ClientNetwork::of(address.parse().unwrap(), scope)
    }

    #[test]
    fn a_signature_that_was_kept_is_read_back() {
        let signed = SignedData { algorithm: 13, key: b"key", signature: b"signature", data: b"data" };
        let mut octets = vec![7];
        signed.write(&mut octets);
        assert_eq!(SignedData::read(&octets), Some(signed));
        for end in 0..SIGNED_HEAD + 3 + 9 {
            assert_eq!(SignedData::read(&octets[..end]), None, "{end}");
        }
    }

    #[test]
    fn neighbours_in_a_64_are_one_network_and_ipv4_hosts_are_not() {
        assert_eq!(network("2001:db8::1", 0), network("2001:db8::ffff", 0));
        assert_ne!(network("2001:db8:0:1::1", 0), network("2001:db8::1", 0));
        assert_ne!(network("::ffff:192.0.2.1", 0), network("::ffff:192.0.2.2", 0));
        // A global client has a scope if it sent to a link-local address.
        assert_eq!(network("2001:db8::1", 7), network("2001:db8::1", 0));
    }

    #[test]
    fn link_local_clients_are_told_apart_by_address_and_interface() {
        let [one, other, elsewhere] =
            [("fe80::1", 2), ("fe80::2", 2), ("fe80::1", 3)].map(|(text, scope)| network(text, scope));
        assert!(one != other && one != elsewhere);
        // Their second level is the link.
        assert_eq!(one.customer(56), other.customer(56));
        assert_ne!(one.customer(56), elsewhere.customer(56));
    }

    #[test]
    fn a_network_is_shown_as_people_write_it() {
        for (address, scope, shown) in [
            ("2001:db8:1:2:3::4", 0, "2001:db8:1:2::/64"),
            ("::ffff:192.0.2.1", 0, "192.0.2.1"),
            ("fe80::1", 3, "fe80::1%3"),
        ] {
            assert_eq!(network(address, scope).to_string(), shown);
        }
    }

    #[test]
    fn a_customer_is_the_delegated_prefix() {
        let [one, neighbour, other] =
            ["2001:db8:0:1::1", "2001:db8:0:ff::1", "2001:db8:0:100::1"].map(|text| network(text, 0));
        assert_eq!(one.customer(56), neighbour.customer(56));
        assert_ne!(one.customer(56), other.customer(56));
        assert_eq!(one.customer(48), other.customer(48));
        assert_eq!(one.customer(64), one);
        let ipv4 = network("::ffff:192.0.2.1", 0);
        assert_eq!(ipv4.customer(48), ipv4);
    }
}
