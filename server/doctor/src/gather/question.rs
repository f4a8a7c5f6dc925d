//! Questions to a resolver, over UDP and TCP.

use crate::facts::Answer;
use crate::limits::{READS, TRIES};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};
use wire::{Class, Flags, Message, Type};

/// Largest message over UDP.
const UDP_SIZE: u16 = 1232;

/// A question, as a query message.
#[derive(Clone, Debug)]
pub struct Question {
    octets: Vec<u8>,
}

/// Bits of a query.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bits {
    /// DNSSEC OK (RFC 3225).
    pub dnssec_ok: bool,
    /// Checking Disabled (RFC 4035 section 3.2.2).
    pub cd: bool,
}

impl Question {
    /// A question for a name in wire form, with RD and EDNS.
    pub fn new(name: &[u8], qtype: Type, bits: Bits) -> Question {
        let flags = if bits.cd { Flags::RD.with(Flags::CD) } else { Flags::RD };
        let mut octets = vec![0, 0];
        octets.extend(flags.0.to_be_bytes());
        octets.extend([0, 1, 0, 0, 0, 0, 0, 1]);
        octets.extend(name);
        octets.extend(qtype.0.to_be_bytes());
        octets.extend(Class::IN.0.to_be_bytes());
        octets.extend([0, 0, 41]);
        octets.extend(UDP_SIZE.to_be_bytes());
        octets.extend([0, 0, u8::from(bits.dnssec_ok) << 7, 0, 0, 0]);
        Question { octets }
    }

    /// The query in a message of this many octets, by padding (RFC 7830).
    pub fn padded(mut self, size: usize) -> Question {
        let padding = size.saturating_sub(self.octets.len() + wire::OPTION_HEADER);
        let length = self.octets.len() - 2;
        self.octets[length..].copy_from_slice(&((padding + wire::OPTION_HEADER) as u16).to_be_bytes());
        self.octets.extend(wire::PADDING.to_be_bytes());
        self.octets.extend((padding as u16).to_be_bytes());
        self.octets.resize(self.octets.len() + padding, 0);
        self
    }

    /// The message with a random ID.
    pub fn message(&self) -> io::Result<Vec<u8>> {
        let mut octets = self.octets.clone();
        getrandom::fill(&mut octets[..2]).map_err(io::Error::other)?;
        Ok(octets)
    }

    /// The message with the ID 0, as DNS over QUIC wants it (RFC 9250 section 4.2.1).
    pub fn without_id(&self) -> &[u8] {
        &self.octets
    }

    /// Asks over UDP, and over TCP if the answer is truncated.
    pub fn ask(&self, server: SocketAddr, timeout: Duration) -> Result<Vec<u8>, Answer> {
        let reply = self.ask_udp(server, timeout)?;
        let is_truncated = Message::parse(&reply).is_ok_and(|reply| reply.flags().contains(Flags::TC));
        if is_truncated { self.ask_tcp(server, timeout) } else { Ok(reply) }
    }

    /// Asks over UDP, up to [`TRIES`] times.
    pub fn ask_udp(&self, server: SocketAddr, timeout: Duration) -> Result<Vec<u8>, Answer> {
        let asked = || -> io::Result<Result<Vec<u8>, Answer>> {
            let own: IpAddr =
                if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            let socket = UdpSocket::bind((own, 0))?;
            socket.connect(server)?;
            let message = self.message()?;
            let mut outcome = Err(Answer::Silent);
            for _ in 0..TRIES {
                socket.send(&message)?;
                outcome = receive(&socket, &message, timeout)?;
                if outcome.is_ok() {
                    break;
                }
            }
            Ok(outcome)
        };
        asked().unwrap_or_else(|error| Err(of_error(&error)))
    }

    /// Asks over TCP.
    pub fn ask_tcp(&self, server: SocketAddr, timeout: Duration) -> Result<Vec<u8>, Answer> {
        let asked = || -> io::Result<Vec<u8>> {
            let mut stream = TcpStream::connect_timeout(&server, timeout)?;
            stream.set_read_timeout(Some(timeout))?;
            stream.set_write_timeout(Some(timeout))?;
            self.exchange(&mut stream)
        };
        asked().map_err(|error| of_error(&error))
    }

    /// Asks over a stream: a connection, or a session within one.
    pub fn exchange(&self, stream: &mut (impl Read + Write)) -> io::Result<Vec<u8>> {
        let message = self.message()?;
        stream.write_all(&[&(message.len() as u16).to_be_bytes()[..], &message].concat())?;
        stream.flush()?;
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut reply = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut reply)?;
        if is_reply(&reply, &message) { Ok(reply) } else { Err(ErrorKind::InvalidData.into()) }
    }
}

/// Waits for the reply to a message.
fn receive(socket: &UdpSocket, message: &[u8], timeout: Duration) -> io::Result<Result<Vec<u8>, Answer>> {
    let end = Instant::now() + timeout;
    let (mut buffer, mut outcome) = (vec![0; 65_536], Answer::Silent);
    for _ in 0..READS {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        socket.set_read_timeout(Some(left))?;
        match socket.recv(&mut buffer) {
            Ok(length) if is_reply(&buffer[..length], message) => return Ok(Ok(buffer[..length].to_vec())),
            Ok(_) => outcome = Answer::Garbage,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(Err(outcome))
}

/// True if it answers this question. A server that refuses may leave the question out.
pub fn is_reply(reply: &[u8], message: &[u8]) -> bool {
    reply.len() >= wire::HEADER
        && reply[..2] == message[..2]
        && wire::header::flags(reply).contains(Flags::QR)
        && match (Message::parse(reply), Message::parse(message)) {
            (Ok(reply), Ok(asked)) => wire::eq_ignore_case(reply.question(), asked.question()),
            _ => wire::header::qdcount(reply) == 0,
        }
}

/// The meaning of an error of the system.
pub fn of_error(error: &io::Error) -> Answer {
    match error.kind() {
        ErrorKind::ConnectionRefused => Answer::Closed,
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Answer::Silent,
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => Answer::Garbage,
        _ => Answer::Unreachable,
    }
}

/// RCODE of a reply.
pub fn rcode(reply: &[u8]) -> u16 {
    wire::header::flags(reply).rcode().0
}

#[cfg(test)]
mod tests {
    use super::*;
    use kit::message::{QUESTION, record, reply};

    const NAME: &[u8] = b"\x08ipv4only\x04arpa\x00";
    const TIMEOUT: Duration = Duration::from_secs(5);

    #[test]
    fn a_query_has_the_bits_and_the_size_that_are_asked_for() {
        let plain = Question::new(NAME, Type::AAAA, Bits::default()).message().unwrap();
        assert_eq!(plain[2..4], [1, 0]);
        let message = Question::new(NAME, Type::AAAA, Bits { dnssec_ok: true, cd: true })
            .padded(1600)
            .message()
            .unwrap();
        let parsed = Message::parse(&message).unwrap();
        assert!(message.len() == 1600 && parsed.flags().contains(Flags::CD));
        assert!(parsed.opt().unwrap().dnssec_ok());
    }

    #[test]
    fn answers_come_over_both_transports_and_truncation_leads_from_one_to_the_other() {
        let server = kit::Upstream::start(|asked, replies| {
            let flags = if asked.is_tcp { 0x0180 } else { 0x0380 };
            replies.now(reply(asked.message, flags, &[record(QUESTION, 28, 60, &[1; 16])]));
        });
        let question = Question::new(NAME, Type::AAAA, Bits::default());
        for answer in [
            question.ask(server.address, TIMEOUT),
            question.ask_udp(server.address, TIMEOUT),
            question.ask_tcp(server.address, TIMEOUT),
        ] {
            assert_eq!(rcode(&answer.unwrap()), 0);
        }
        assert_eq!(server.asked("ipv4only.arpa", 28), 4);
    }

    #[test]
    fn a_closed_port_and_a_wrong_reply_are_told_apart_from_silence() {
        let closed = SocketAddr::from(([127, 0, 0, 1], kit::free_port()));
        let question = Question::new(NAME, Type::AAAA, Bits::default());
        assert_eq!(question.ask_udp(closed, TIMEOUT), Err(Answer::Closed));
        assert_eq!(question.ask_tcp(closed, TIMEOUT), Err(Answer::Closed));
        let short = Duration::from_millis(50);
        let silent = kit::Upstream::start(|_, _| {});
        assert_eq!(question.ask_udp(silent.address, short), Err(Answer::Silent));
        assert_eq!(question.ask_tcp(silent.address, short), Err(Answer::Silent));
        let strange = kit::Upstream::start(|asked, replies| {
            let other = kit::message::query(
                u16::from_be_bytes([asked.message[0], asked.message[1]]),
                "other.test",
                28,
            );
            replies.now(reply(&other, 0x0180, &[]));
        });
        assert_eq!(question.ask_udp(strange.address, short), Err(Answer::Garbage));
        assert_eq!(question.ask_tcp(strange.address, TIMEOUT), Err(Answer::Garbage));
    }
}
