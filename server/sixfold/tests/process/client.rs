//! A DNS client: it sends queries over UDP and TCP, and reads the parts of the answers that tests check.

use crate::daemon::TIMEOUT;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;
use wire::{Message, Rcode, Section, Type};

/// A query with RD set.
pub fn query(id: u16, name: &str, qtype: Type) -> Vec<u8> {
    let mut message = id.to_be_bytes().to_vec();
    message.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.').filter(|label| !label.is_empty()) {
        message.push(label.len() as u8);
        message.extend(label.bytes());
    }
    message.push(0);
    message.extend(qtype.0.to_be_bytes());
    message.extend([0, 1]);
    message
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
        let unspecified =
            SocketAddr::from((if server.is_ipv4() { [0; 4].into() } else { IpAddr::from([0u16; 8]) }, 0));
        Udp::from(unspecified.ip(), server)
    }

    /// A client with an address of its own, like 127.0.0.2.
    pub fn from(own: IpAddr, server: SocketAddr) -> Udp {
        let socket = UdpSocket::bind((own, 0)).unwrap();
        socket.connect(server).unwrap();
        Udp(socket)
    }

    pub fn send(&self, message: &[u8]) {
        self.0.send(message).unwrap();
    }

    pub fn receive(&self) -> Answer {
        self.receive_within(TIMEOUT).expect("an answer")
    }

    /// Waits for an answer; none if nothing arrives in time.
    pub fn receive_within(&self, time: Duration) -> Option<Answer> {
        self.0.set_read_timeout(Some(time)).unwrap();
        let mut buffer = [0; 4096];
        match self.take(&mut buffer) {
            Ok(length) => Some(Answer::read(&buffer[..length])),
            // The server has ended: the kernel reports that to a sender.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => {
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn take(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.0.recv(buffer) {
                // The process was stopped for a while (signal(7)).
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Waits for an answer that may have no question; its ID and RCODE.
    pub fn receive_header(&self) -> (u16, Rcode) {
        self.0.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut buffer = [0; 4096];
        let length = self.take(&mut buffer).unwrap();
        assert!(length >= wire::HEADER);
        (wire::header::id(&buffer), wire::header::flags(&buffer).rcode())
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
        let stream = TcpStream::connect_timeout(&server, TIMEOUT).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Tcp(stream)
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
        let framed = [&(message.len() as u16).to_be_bytes(), message].concat();
        self.send_part(&framed);
    }

    /// Sends octets as they are.
    pub fn send_part(&mut self, octets: &[u8]) {
        self.0.write_all(octets).unwrap();
    }

    pub fn receive(&mut self) -> Answer {
        let mut length = [0; 2];
        self.0.read_exact(&mut length).unwrap();
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        self.0.read_exact(&mut message).unwrap();
        Answer::read(&message)
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
