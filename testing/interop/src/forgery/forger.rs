//! Forger: datagrams with the source address of another host. The forger writes the IP header itself.

use super::message::{self, HEADER, cookie_option};
use super::upstream::ObservedQuery;
use super::{Knowledge, SIXFOLD, UPSTREAM};
use kit::Random;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Address in the forged replies.
pub(super) const FORGED_ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 0, 0, 0, 0, 0x66);

/// Octets of an IPv4 header without options, and of both headers before the message.
const IPV4: usize = 20;
const HEADERS: usize = IPV4 + 8;

/// Forged replies to one query by a forger who knows all but the cookie. None of them may be accepted.
const COOKIES_TRIED: u64 = 10_000;

/// Time that the forger waits for the next query.
const NEXT_QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Counts of the forger.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ForgerCounts {
    pub(super) sent: u64,
    pub(super) questions: u64,
    /// Queries for which every ID, or every try, was sent before the honest reply was due.
    pub(super) in_time: u64,
}

/// Raw socket, and a datagram that is patched.
struct Forger {
    socket: Socket,
    to: SockAddr,
    packet: Vec<u8>,
    sent: u64,
}

impl Forger {
    fn new() -> io::Result<Forger> {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(libc_raw())))?;
        socket.set_header_included_v4(true)?;
        socket.set_send_buffer_size(1 << 20)?;
        let to = SockAddr::from(SocketAddrV4::new(SIXFOLD, 0));
        Ok(Forger { socket, to, packet: Vec::new(), sent: 0 })
    }

    /// Puts this message into the following datagrams, from the upstream's address and port.
    fn prepare(&mut self, message: &[u8]) {
        let octets = (HEADERS + message.len()) as u16;
        let [a, b] = octets.to_be_bytes();
        // Version 4 with five words, no fragment, 64 hops, UDP. The kernel fills in the checksum.
        self.packet = vec![0x45, 0, a, b, 0, 0, 0x40, 0, 64, 17, 0, 0];
        let addresses: [Ipv4Addr; 2] = [*UPSTREAM.ip(), SIXFOLD];
        addresses.iter().for_each(|address| self.packet.extend(address.octets()));
        self.packet.extend(UPSTREAM.port().to_be_bytes());
        let [a, b] = (octets - IPV4 as u16).to_be_bytes();
        // No checksum: IPv4 permits that (RFC 768).
        self.packet.extend([0, 0, a, b, 0, 0]);
        self.packet.extend(message);
    }

    fn set_port(&mut self, port: u16) {
        self.packet[IPV4 + 2..IPV4 + 4].copy_from_slice(&port.to_be_bytes());
    }

    fn set_id(&mut self, id: u16) {
        self.packet[HEADERS..HEADERS + 2].copy_from_slice(&id.to_be_bytes());
    }

    fn send(&mut self) -> io::Result<()> {
        self.socket.send_to(&self.packet, &self.to)?;
        self.sent += 1;
        Ok(())
    }
}

/// IPPROTO_RAW: the packet has its own header.
const fn libc_raw() -> i32 {
    255
}

/// Sends this number of forged replies to the queries from `seen`, the newest first. Ends early if no more come.
///
/// # Errors
///
/// The raw socket cannot be opened, which needs CAP_NET_RAW, or the error of sendto(2).
pub(super) fn forge(
    knowledge: Knowledge,
    replies: u64,
    delay: Duration,
    seen: &Receiver<ObservedQuery>,
) -> io::Result<ForgerCounts> {
    let mut forger = Forger::new()?;
    let mut rng = Random::new(0x9e37_79b9_7f4a_7c15);
    let mut done = ForgerCounts::default();
    while forger.sent < replies {
        let mut query = match seen.recv_timeout(NEXT_QUERY_TIMEOUT) {
            Ok(query) => query,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        };
        while let Ok(newer) = seen.try_recv() {
            query = newer;
        }
        let room = replies - forger.sent;
        forge_replies(&mut forger, knowledge, &query, room, &mut rng, delay)?;
        done.questions += 1;
        let is_due = query.seen + delay <= Instant::now();
        // A forger who guesses ports continues until then.
        done.in_time += u64::from(!is_due || knowledge == Knowledge::Letters);
    }
    done.sent = forger.sent;
    Ok(done)
}

/// Forges at most `room` replies to one query.
fn forge_replies(
    forger: &mut Forger,
    knowledge: Knowledge,
    query: &ObservedQuery,
    room: u64,
    rng: &mut Random,
    delay: Duration,
) -> io::Result<()> {
    let small;
    let question = match knowledge {
        Knowledge::PortOnly => {
            small = query.question.to_ascii_lowercase();
            &small
        }
        _ => &query.question,
    };
    let with_cookie = cookie_option(&[0x66; 24]);
    let options = match knowledge {
        Knowledge::AllButCookie => Some(&with_cookie[..]),
        _ => query.has_cookie.then_some(&[][..]),
    };
    forger.prepare(&message::reply(query.id, question, FORGED_ADDRESS, options));
    forger.set_port(query.port);
    send_guesses(forger, knowledge, query, room, rng, delay)
}

/// Sends the prepared reply with every value of the unknown fields, or with random values, at most `room` times.
fn send_guesses(
    forger: &mut Forger,
    knowledge: Knowledge,
    query: &ObservedQuery,
    room: u64,
    rng: &mut Random,
    delay: Duration,
) -> io::Result<()> {
    match knowledge {
        Knowledge::Port => {
            for distance in 1..=room.min(1 << 16) {
                forger.set_id(query.id.wrapping_add(distance as u16));
                forger.send()?;
            }
        }
        Knowledge::PortOnly => {
            let first = rng.bits() as u16;
            for distance in 0..room.min(1 << 16) {
                forger.set_id(first.wrapping_add(distance as u16));
                forger.send()?;
            }
        }
        Knowledge::Letters => {
            // Until the honest reply comes: another query gives no better chance.
            let mut left = room;
            while left > 0 && query.seen.elapsed() < delay {
                for _ in 0..left.min(256) {
                    let guess = rng.bits();
                    forger.set_port(1024 + (guess >> 32) as u16 % (u16::MAX - 1023));
                    forger.set_id(guess as u16);
                    forger.send()?;
                }
                left -= left.min(256);
            }
        }
        Knowledge::AllButCookie => {
            let cookie = forger.packet.len() - 24;
            debug_assert!(cookie > HEADERS + HEADER);
            for _ in 0..room.min(COOKIES_TRIED) {
                forger.packet[cookie..cookie + 8].copy_from_slice(&rng.bits().to_be_bytes());
                forger.send()?;
            }
        }
    }
    Ok(())
}
