//! A spoofing attacker who sees every question, and so knows its port, letter case and ID, and who sends from the address of
//! the upstream. The right ID, which a real attacker cannot know, comes last. No forged UDP reply may reach a client.

use crate::client::{Udp, query};
use crate::daemon::Setup;
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;
use wire::{Message, Rcode, Type};

/// Questions that are attacked, and the number of them for which the attacker tries every ID.
const TRIES: u16 = 10_000;
const THOROUGH: u16 = 5;
/// Wrong IDs for the other questions. One ID of 256 was used over the same port before; a reply with it counts as late, not as
/// forged. All eight are such IDs with a probability of 2 to the power of -64.
const GUESSES: u16 = 8;
/// Queries of the client that wait at a time.
const CONCURRENT: u16 = 20;

const GOOD: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0x80);
const EVIL: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 0, 0, 0, 0, 0x66);

/// The upstream of the test: correct over TCP, forged over UDP. It ends with the test.
struct ForgedUpstream {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl ForgedUpstream {
    fn start() -> ForgedUpstream {
        let (udp, tcp) = (0..100)
            .find_map(|_| {
                let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
                let tcp = TcpListener::bind(udp.local_addr().unwrap()).ok()?;
                Some((udp, tcp))
            })
            .expect("a port that is free for both");
        udp.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        tcp.set_nonblocking(true).unwrap();
        let (address, stop) = (udp.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let [for_udp, for_tcp] = [Arc::clone(&stop), Arc::clone(&stop)];
        let threads = vec![spawn(move || forge(&udp, &for_udp)), spawn(move || answer(&tcp, &for_tcp))];
        ForgedUpstream { address, stop, threads }
    }
}

impl Drop for ForgedUpstream {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The reply to a question, with its ID and its letter case.
fn reply(query: &[u8], address: Ipv6Addr) -> Vec<u8> {
    let parsed = Message::parse(query).expect("the server asks well-formed questions");
    let mut reply = query[..wire::HEADER + parsed.question().len()].to_vec();
    reply[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0]);
    if parsed.qtype() == Type::AAAA {
        reply[7] = 1;
        reply.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16]);
        reply.extend(address.octets());
    }
    reply
}

fn forge(socket: &UdpSocket, stop: &AtomicBool) {
    let mut buffer = [0; 1024];
    let mut forged = 0;
    while !stop.load(Ordering::SeqCst) {
        let Ok((octets, server)) = socket.recv_from(&mut buffer) else { continue };
        let mut evil = reply(&buffer[..octets], EVIL);
        let id = wire::header::id(&evil);
        if evil[7] == 1 {
            let guesses = if forged < THOROUGH { u16::MAX } else { GUESSES };
            forged = forged.saturating_add(1);
            for distance in 1..=guesses {
                wire::header::set_id(&mut evil, id.wrapping_add(distance));
                let _ = socket.send_to(&evil, server);
            }
        }
        wire::header::set_id(&mut evil, id);
        let _ = socket.send_to(&evil, server);
    }
}

fn answer(listener: &TcpListener, stop: &AtomicBool) {
    let mut connections: Vec<(TcpStream, Vec<u8>)> = vec![];
    let mut buffer = [0; 65_536];
    while !stop.load(Ordering::SeqCst) {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true).unwrap();
            connections.push((stream, vec![]));
        }
        let mut is_idle = true;
        connections.retain_mut(|(stream, waiting)| {
            match stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(octets) => waiting.extend(&buffer[..octets]),
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
            is_idle = false;
            let mut replies = vec![];
            while let Some((length, rest)) = waiting.split_first_chunk::<2>()
                && let Some(query) = rest.get(..usize::from(u16::from_be_bytes(*length)))
            {
                let good = reply(query, GOOD);
                replies.extend((good.len() as u16).to_be_bytes());
                replies.extend(good);
                let used = 2 + query.len();
                waiting.drain(..used);
            }
            // Only a few questions wait at a time: the kernel takes all replies at once.
            stream.write_all(&replies).is_ok()
        });
        if is_idle {
            sleep(Duration::from_micros(100));
        }
    }
}

#[test]
fn a_forger_who_knows_the_port_wins_nothing_in_ten_thousand_tries() {
    let upstream = ForgedUpstream::start();
    let server = Setup::new(upstream.address).line("upstream.timeout = \"10s\"").start();
    let client = Udp::to(server.v6());
    let mut answers: HashMap<u16, Vec<Ipv6Addr>> = HashMap::new();
    for first in (0..TRIES).step_by(usize::from(CONCURRENT)) {
        for number in first..first + CONCURRENT {
            client.send(&query(number, &format!("n{number}.forged.test"), Type::AAAA));
        }
        for _ in 0..CONCURRENT {
            let answer = client.receive();
            assert_eq!(answer.rcode, Rcode::NOERROR);
            answers.insert(answer.id, answer.addresses);
        }
    }
    assert_eq!(answers.len(), usize::from(TRIES));
    let wrong = answers.values().filter(|addresses| addresses[..] != [GOOD]).count();
    assert_eq!(wrong, 0, "{wrong} forged answers were believed");
    assert!(server.stat("forgery_suspects_total{reason=\"id\"}") >= f64::from(TRIES));
    // The cache has only replies that were accepted.
    for number in (0..TRIES).step_by(97) {
        assert_eq!(client.ask(&format!("n{number}.forged.test"), Type::AAAA).addresses, [GOOD]);
    }
    server.process.stop();
}
