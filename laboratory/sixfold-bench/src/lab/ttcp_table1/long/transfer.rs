//! The server of the zone transfer: it answers each question over TCP with the whole zone in one message (RFC 5936 section 2.2). The
//! authority of this project has no zone transfers.

use super::kernel::ANSWER_TIMEOUT;
use crate::background::Background;
use crate::exchange;
use papers::dns::frame;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;

/// AXFR of `zone.`, behind a header.
pub const QUESTION: [u8; 22] = *b"\0\0\0\0\0\x01\0\0\0\0\0\0\x04zone\0\0\xfc\0\x01";

/// Hosts of the zone: with 21 octets each the message has 12,700 octets, which the 10 segments of a new connection carry at once
/// (RFC 6928), so that no window decides the time.
const HOSTS: u32 = 600;

/// Longest wait for a connection, so that a thread sees its end soon.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Serves the zone at these addresses of the current thread's namespace, until what it returns is dropped.
///
/// # Errors
///
/// An address cannot be bound.
pub fn start(addresses: &[SocketAddr]) -> Result<Vec<Background<()>>, String> {
    let start = |address: &SocketAddr| {
        let listener = TcpListener::bind(address)
            .map_err(|error| format!("the server of the zone transfer: {address}: {error}"))?;
        Ok(Background::start(move |stop| {
            while !stop.load(Ordering::Relaxed) {
                let ready = poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&WAIT));
                if ready.is_ok_and(|count| count > 0) {
                    // A client that fails is its own loss.
                    let _ = serve(&listener);
                }
            }
        }))
    };
    addresses.iter().map(start).collect()
}

/// Answers one question on one connection.
fn serve(listener: &TcpListener) -> io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let question = exchange::read_message(&mut stream)?;
    stream.write_all(&frame(&message(&question)).ok_or(io::ErrorKind::InvalidInput)?)
}

/// The zone in one message: SOA, its hosts, SOA. Its ID is that of the question.
pub fn message(question: &[u8]) -> Vec<u8> {
    // The name of the question: `zone.` at offset 12.
    const ZONE: [u8; 2] = [0xc0, 12];
    let id = question.first_chunk::<2>().copied().unwrap_or_default();
    let count = (HOSTS + 2) as u16;
    let mut message = [&id[..], &[0x84, 0, 0, 1], &count.to_be_bytes(), &[0; 4]].concat();
    message.extend(&QUESTION[12..]);
    let record = |message: &mut Vec<u8>, name: &[u8], kind: u8, data: &[u8]| {
        message.extend(name);
        message.extend([0, kind, 0, 1, 0, 0, 0x0e, 0x10]);
        message.extend((data.len() as u16).to_be_bytes());
        message.extend(data);
    };
    // Primary server and mailbox: the zone itself; serial 1, and four times of an hour.
    let mut soa = [ZONE, ZONE].concat();
    soa.extend(1u32.to_be_bytes());
    (0..4).for_each(|_| soa.extend(3600u32.to_be_bytes()));
    record(&mut message, &ZONE, 6, &soa);
    for host in 0..HOSTS {
        let name = [&[4][..], format!("h{host:03}").as_bytes(), &ZONE].concat();
        let [.., high, low] = host.to_be_bytes();
        record(&mut message, &name, 1, &[198, 18, high, low]);
    }
    record(&mut message, &ZONE, 6, &soa);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_comes_whole_in_one_message() {
        let server = start(&["127.0.0.1:0".parse().unwrap()]);
        drop(server.unwrap());
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        assert!(start(&[address]).err().unwrap().contains(&address.to_string()));
        drop(taken);
        let server = start(&[address]).unwrap();
        let mut asked = QUESTION;
        asked[..2].copy_from_slice(&[7, 9]);
        let answer =
            exchange::ask_on(&mut exchange::connect(address, ANSWER_TIMEOUT).unwrap(), &asked).unwrap();
        drop(server);
        assert_eq!(answer, message(&asked));
        // Header and question 22; two SOA records of 2 + 10 + 24; hosts of 7 + 10 + 4.
        assert_eq!(answer.len(), 22 + 2 * 36 + 600 * 21);
        assert!(answer.len() + 2 <= 10 * 1460, "the first window of a connection carries it");
        let read = conform::message::Answer::read(&answer).unwrap();
        assert_eq!((read.answer.len(), read.rcode.to_string()), (602, "NOERROR".to_owned()));
    }
}
