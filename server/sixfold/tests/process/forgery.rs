//! A spoofing attacker who sees every question, and so knows its port, letter case and ID, and who sends from the address of
//! the upstream. The right ID, which a real attacker cannot know, comes last. No forged UDP reply may reach a client.

use crate::client::{Udp, query};
use crate::daemon::Setup;
use kit::{Upstream, message};
use std::collections::HashMap;
use std::net::Ipv6Addr;
use wire::{Rcode, Type};

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

/// The reply to a question, with its ID and its letter case.
fn reply(query: &[u8], address: Ipv6Addr) -> Vec<u8> {
    let aaaa = message::record(message::QUESTION, Type::AAAA.0, 60, &address.octets());
    let is_aaaa = message::question(query).expect("a question").1 == Type::AAAA.0;
    message::reply(query, 0x0180, if is_aaaa { std::slice::from_ref(&aaaa) } else { &[] })
}

/// The upstream of the test: correct over TCP, forged over UDP.
fn forging_upstream() -> Upstream {
    let mut forged = 0;
    Upstream::start(move |asked, replies| {
        if asked.is_tcp {
            return replies.now(reply(asked.message, GOOD));
        }
        let mut evil = reply(asked.message, EVIL);
        let id = wire::header::id(&evil);
        if evil[7] == 1 {
            let guesses = if forged < THOROUGH { u16::MAX } else { GUESSES };
            forged = forged.saturating_add(1);
            for distance in 1..=guesses {
                wire::header::set_id(&mut evil, id.wrapping_add(distance));
                replies.now(evil.clone());
            }
        }
        wire::header::set_id(&mut evil, id);
        replies.now(evil);
    })
}

#[test]
fn a_forger_who_knows_the_port_wins_nothing_in_ten_thousand_tries() {
    let upstream = forging_upstream();
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
}
