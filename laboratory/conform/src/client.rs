//! Client: sends one query from the address that the case names, and takes the first message that comes back.

use crate::message::{Flag, Transport};
use crate::query::{Edns, Query};
use domain::base::iana::OptionCode;
use domain::base::message_builder::PushError;
use domain::base::{MessageBuilder, opt};
use socket2::{Domain, Protocol, Socket, Type};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// A query that was sent, and its result.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Octets of the query.
    pub sent: Vec<u8>,
    /// First message that came back; `None` if none came in time.
    pub answer: Option<Vec<u8>>,
    /// Time until the answer came, or the length of the wait.
    pub elapsed: Duration,
}

/// Asks the server at `port` of the loopback address of the client's family.
///
/// # Errors
///
/// As [`ask_from`].
pub fn ask(port: u16, query: &Query, timeout: Duration) -> io::Result<Exchange> {
    let server = match query.client {
        IpAddr::V4(_) => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        IpAddr::V6(_) => SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
    };
    ask_from(query.client, server, query, timeout)
}

/// Asks the server at any address. Routing chooses the source address.
///
/// # Errors
///
/// As [`ask_from`].
pub fn ask_at(server: SocketAddr, query: &Query, timeout: Duration) -> io::Result<Exchange> {
    let anywhere: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    ask_from(anywhere, server, query, timeout)
}

/// Asks the server at any address, from this source address.
///
/// # Errors
///
/// The error of a socket: the source address cannot be used, or the process may have no more open files. A server that does not answer,
/// refuses or closes the connection is no error.
pub fn ask_from(
    client: IpAddr,
    server: SocketAddr,
    query: &Query,
    timeout: Duration,
) -> io::Result<Exchange> {
    let sent = match &query.raw {
        Some(octets) => octets.clone(),
        None => question(query),
    };
    let begin = Instant::now();
    let answer = match query.transport {
        Transport::Udp => over_udp(client, server, &sent, timeout),
        Transport::Tcp => over_tcp(client, server, &sent, begin + timeout),
    };
    let answer = match answer {
        Err(error) if is_no_answer(&error) => None,
        other => Some(other?),
    };
    Ok(Exchange { sent, answer, elapsed: begin.elapsed() })
}

/// Builds the query as octets.
fn question(query: &Query) -> Vec<u8> {
    build(query).expect("a question fits a message")
}

fn build(query: &Query) -> Result<Vec<u8>, PushError> {
    let mut builder = MessageBuilder::new_vec();
    let header = builder.header_mut();
    // The state of a new hasher is random. The ID only has to be hard to confuse with that of another exchange.
    let [high, low, ..] = RandomState::new().hash_one(query.qdcount).to_be_bytes();
    header.set_id(u16::from_be_bytes([high, low]));
    header.set_opcode(query.opcode);
    let has = |flag| query.flags.contains(&flag);
    header.set_qr(has(Flag::Qr));
    header.set_aa(has(Flag::Aa));
    header.set_tc(has(Flag::Tc));
    header.set_rd(has(Flag::Rd));
    header.set_ra(has(Flag::Ra));
    header.set_ad(has(Flag::Ad));
    header.set_cd(has(Flag::Cd));
    let mut builder = builder.question();
    for _ in 0..query.qdcount {
        builder.push((&query.name, query.rtype, query.class))?;
    }
    let mut builder = builder.additional();
    if let Some(edns) = &query.edns {
        push_opt(&mut builder, edns)?;
    }
    Ok(builder.finish())
}

fn push_opt(
    builder: &mut domain::base::message_builder::AdditionalBuilder<Vec<u8>>,
    edns: &Edns,
) -> Result<(), PushError> {
    builder.opt(|record| {
        record.set_udp_payload_size(edns.udp);
        record.set_version(edns.version);
        record.set_dnssec_ok(edns.dnssec_ok);
        if let Some(subnet) = edns.ecs {
            record.push(&opt::ClientSubnet::new(subnet.length, 0, subnet.address))?;
        }
        for (code, octets) in &edns.options {
            let length = u16::try_from(octets.0.len()).expect("an option has at most 65535 octets");
            record.push_raw_option(OptionCode::from_int(*code), length, |target| {
                target.extend(&octets.0);
                Ok(())
            })?;
        }
        Ok(())
    })
}

fn over_udp(client: IpAddr, server: SocketAddr, octets: &[u8], timeout: Duration) -> io::Result<Vec<u8>> {
    let socket = UdpSocket::bind((client, 0))?;
    socket.set_read_timeout(Some(timeout))?;
    socket.connect(server)?;
    socket.send(octets)?;
    first_reply(&socket)
}

/// The first message from the server. Until connect(2) the socket took datagrams from anyone, which still wait in it.
fn first_reply(socket: &UdpSocket) -> io::Result<Vec<u8>> {
    let server = socket.peer_addr()?;
    let mut buffer = vec![0; 65_536];
    loop {
        let (length, from) = socket.recv_from(&mut buffer)?;
        if from == server {
            buffer.truncate(length);
            return Ok(buffer);
        }
    }
}

fn over_tcp(client: IpAddr, server: SocketAddr, octets: &[u8], end: Instant) -> io::Result<Vec<u8>> {
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SocketAddr::from((client, 0)).into())?;
    socket.connect_timeout(&server.into(), left(end)?)?;
    let length = u16::try_from(octets.len()).expect("a message has at most 65535 octets");
    (&socket).write_all(&[&length.to_be_bytes(), octets].concat())?;
    let mut received = Vec::new();
    let mut buffer = vec![0; 65_536];
    loop {
        if let Some((length, rest)) = received.split_first_chunk::<2>() {
            let length = usize::from(u16::from_be_bytes(*length));
            if rest.len() >= length {
                return Ok(rest[..length].to_vec());
            }
        }
        socket.set_read_timeout(Some(left(end)?))?;
        match (&socket).read(&mut buffer)? {
            0 => return Err(ErrorKind::ConnectionReset.into()),
            length => received.extend(&buffer[..length]),
        }
    }
}

fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// True if the error means that the server did not answer. Other errors are the runner's own.
fn is_no_answer(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, Interrupted, TimedOut, WouldBlock};
    matches!(
        error.kind(),
        WouldBlock | TimedOut | ConnectionRefused | ConnectionReset | BrokenPipe | Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_from_before_the_connection_is_no_reply() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let [client, server, stranger] = [0; 3].map(|_| UdpSocket::bind(address).unwrap());
            client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            stranger.send_to(b"forged", client.local_addr().unwrap()).unwrap();
            client.connect(server.local_addr().unwrap()).unwrap();
            server.send_to(b"genuine", client.local_addr().unwrap()).unwrap();
            assert_eq!(first_reply(&client).unwrap(), b"genuine");
        }
    }
}
