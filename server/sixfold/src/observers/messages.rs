//! The dnstap end at a worker: messages of clients and upstreams with their addresses, as dnstap wants them.

use dnstap::{Exchange, Kind, Protocol, Tap};
use engine::{Client, ClientTransport, Moment, ObservedLink, Transport};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// The dnstap output of one worker.
pub struct MessageTap {
    tap: Tap,
    /// Listening addresses, by the number in [`Client::listener`].
    listen: Arc<[SocketAddr]>,
}

impl MessageTap {
    /// A tap of the worker; `listen`: the listening addresses.
    pub fn new(tap: Tap, listen: Arc<[SocketAddr]>) -> MessageTap {
        MessageTap { tap, listen }
    }

    pub fn query(&mut self, at: Moment, from: &Client, message: &[u8]) {
        let exchange = self.of_client(Kind::ClientQuery, at, from);
        self.tap.record(&exchange, message);
    }

    pub fn answer(&mut self, at: Moment, to: &Client, message: &[u8]) {
        let exchange = self.of_client(Kind::ClientResponse, at, to);
        self.tap.record(&exchange, message);
    }

    pub fn ask(&mut self, at: Moment, link: &ObservedLink, message: &[u8]) {
        self.tap.record(&of_link(Kind::ForwarderQuery, at, link), message);
    }

    pub fn reply(&mut self, at: Moment, link: &ObservedLink, message: &[u8]) {
        self.tap.record(&of_link(Kind::ForwarderResponse, at, link), message);
    }

    pub fn flush(&mut self) {
        self.tap.flush();
    }

    /// Behind a proxy, the client is the one that the proxy reports.
    fn of_client(&self, kind: Kind, at: Moment, client: &Client) -> Exchange {
        let listen = self.listen.get(usize::from(client.listener));
        let local = if client.local.is_unspecified() {
            listen.copied().filter(|listen| !listen.ip().is_unspecified())
        } else {
            listen.map(|listen| socket_address(client.local, listen.port()))
        };
        Exchange {
            kind,
            protocol: match client.transport {
                ClientTransport::Udp => Protocol::Udp,
                ClientTransport::Tcp => Protocol::Tcp,
                ClientTransport::Tls => Protocol::Tls,
                ClientTransport::Https => Protocol::Https,
                ClientTransport::Quic => Protocol::Quic,
            },
            initiator: Some(socket_address(client.address, client.port)),
            responder: local,
            unix_ns: at.unix.0,
        }
    }
}

fn of_link(kind: Kind, at: Moment, link: &ObservedLink) -> Exchange {
    Exchange {
        kind,
        protocol: match link.transport {
            Transport::Udp => Protocol::Udp,
            Transport::Tcp => Protocol::Tcp,
            Transport::Tls => Protocol::Tls,
        },
        initiator: link.local,
        responder: Some(link.upstream),
        unix_ns: at.unix.0,
    }
}

/// An address whose IPv4 form is IPv4-mapped.
fn socket_address(address: Ipv6Addr, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V6(address).to_canonical(), port)
}
