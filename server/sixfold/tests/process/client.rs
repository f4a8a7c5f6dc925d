//! A DNS client: it sends queries over UDP and TCP, and reads the parts of the answers that tests check.

use crate::daemon::TIMEOUT;
use kit::client;
use kit::message::{framed, read_frame};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;
use wire::{Message, Rcode, Section, Type};

/// A query with RD set.
pub fn query(id: u16, name: &str, qtype: Type) -> Vec<u8> {
    kit::query(id, name, qtype.0)
}

/// A name in the zone `v4.test`; the name spells its IPv4 address.
pub fn name_of(number: u32) -> String {
    let [_, b, c, d] = number.to_be_bytes();
    format!("9-{b}-{c}-{d}.v4.test")
}

/// The address of [`name_of`] embedded in a prefix of 96 bits.
pub fn embedded(prefix: &str, number: u32) -> Ipv6Addr {
    let prefix: Ipv6Addr = prefix.split('/').next().unwrap().parse().unwrap();
    Ipv6Addr::from(u128::from(prefix) | u128::from(9 << 24 | number & 0xff_ffff))
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub id: u16,
    pub rcode: Rcode,
    /// True if TC is set.
    pub truncated: bool,
    pub addresses: Vec<Ipv6Addr>,
}

impl Answer {
    pub fn read(message: &[u8]) -> Answer {
        let parsed = Message::parse(message).expect("a well-formed answer");
        assert!(parsed.is_response());
        let addresses = parsed.records(Section::Answer).filter_map(|record| record.address6());
        Answer {
            id: parsed.id(),
            rcode: parsed.rcode(),
            truncated: parsed.flags().contains(wire::Flags::TC),
            addresses: addresses.map(Ipv6Addr::from).collect(),
        }
    }
}

/// A socket that is connected to the server.
pub struct Udp(UdpSocket);

impl Udp {
    pub fn to(server: SocketAddr) -> Udp {
        Udp::from(client::unspecified(server), server)
    }

    /// A client with an address of its own, like 127.0.0.2.
    pub fn from(own: IpAddr, server: SocketAddr) -> Udp {
        Udp(client::udp(own, server))
    }

    pub fn send(&self, message: &[u8]) {
        self.0.send(message).unwrap();
    }

    pub fn receive(&self) -> Answer {
        self.receive_within(TIMEOUT).expect("an answer")
    }

    /// Waits for an answer; none if nothing arrives in time.
    pub fn receive_within(&self, time: Duration) -> Option<Answer> {
        client::receive(&self.0, time).map(|message| Answer::read(&message))
    }

    /// Waits for an answer that may have no question; its ID and RCODE.
    pub fn receive_header(&self) -> (u16, Rcode) {
        let message = client::receive(&self.0, TIMEOUT).expect("an answer");
        assert!(message.len() >= wire::HEADER);
        (wire::header::id(&message), wire::header::flags(&message).rcode())
    }

    pub fn ask(&self, name: &str, qtype: Type) -> Answer {
        self.send(&query(7, name, qtype));
        self.receive()
    }
}

/// A connection to the server.
pub struct Tcp(TcpStream);

impl Tcp {
    pub fn to(server: SocketAddr) -> Tcp {
        Tcp(client::tcp(server))
    }

    /// A client with an address of its own, like 127.0.0.2.
    pub fn from(own: [u8; 4], server: SocketAddr) -> Tcp {
        Tcp::try_from(own, server).unwrap()
    }

    fn try_from(own: [u8; 4], server: SocketAddr) -> std::io::Result<Tcp> {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        socket.bind(&SocketAddr::from((own, 0)).into())?;
        socket.connect_timeout(&server.into(), TIMEOUT)?;
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Tcp(stream))
    }

    /// Connects as a client that the server must reject. The server resets the connection, perhaps before `connect` returns.
    pub fn expect_rejection(own: [u8; 4], server: SocketAddr) {
        match Tcp::try_from(own, server) {
            Ok(mut connection) => connection.wait_for_close(),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }

    pub fn send(&mut self, message: &[u8]) {
        self.send_part(&framed(message));
    }

    /// Sends octets as they are.
    pub fn send_part(&mut self, octets: &[u8]) {
        self.0.write_all(octets).unwrap();
    }

    pub fn receive(&mut self) -> Answer {
        Answer::read(&read_frame(&mut self.0).unwrap())
    }

    pub fn ask(&mut self, name: &str, qtype: Type) -> Answer {
        self.send(&query(8, name, qtype));
        self.receive()
    }

    /// Waits until the server closes or resets the connection, without sending anything more.
    pub fn wait_for_close(&mut self) {
        let mut octets = [0; 512];
        match self.0.read(&mut octets) {
            Ok(0) => {}
            // The process was stopped for a while (signal(7)).
            Err(error) if error.kind() == ErrorKind::Interrupted => self.wait_for_close(),
            Ok(count) => panic!("instead of a close came {:?}", &octets[..count]),
            // A reset after a close is reported as a broken pipe.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {}
            Err(error) => panic!("instead of a close: {error:?}"),
        }
    }
}
