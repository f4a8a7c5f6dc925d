//! Questions of a run, asked of one server.

use super::Given;
use super::resolver::Question;
use conform::client;
use conform::message::Transport;
use conform::query::Query;
use signed_zones::name::text;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use wire::{Flags, Message, Section};

/// Zones about which a server is asked at a time.
const CLIENTS: usize = 4;

/// Time that a server has for an answer: longer than any tries before it gives up (BIND, PowerDNS: 10 s).
const TIMEOUT: Duration = Duration::from_secs(20);

/// Asks all questions about all zones, those about one zone in turn; the answers have the order of the questions.
pub fn ask_all(port: u16, zones: &[Vec<Question>]) -> Vec<Vec<Given>> {
    let answers: Vec<Mutex<Vec<Given>>> = zones.iter().map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(zone) = zones.get(place) else { break };
                    // The first question comes last: by then the zone is known, which is what makes a signature of the zone above a
                    // wrong one.
                    let mut given: Vec<Given> =
                        zone[1..].iter().map(|question| ask(port, question)).collect();
                    given.insert(0, ask(port, &zone[0]));
                    *answers[place].lock().expect("nothing panics while it is held") = given;
                }
            });
        }
    });
    answers.into_iter().map(|answer| answer.into_inner().expect("no panic")).collect()
}

/// Query with these octets to 127.0.0.1.
pub fn query(octets: Vec<u8>, transport: Transport) -> Query {
    Query { raw: Some(octets), client: Ipv4Addr::LOCALHOST.into(), transport, ..Query::probe() }
}

/// Asks as a client that wants signatures and has them validated, over UDP, and over TCP if the answer is truncated.
fn ask(port: u16, (name, rtype): &Question) -> Given {
    let octets = kit::Query::new(&text(name), *rtype).opt(4096, 0, true, &[]).octets();
    let once = |transport| {
        let query = query(octets.clone(), transport);
        client::ask(port, &query, TIMEOUT).expect("a socket of the client").answer
    };
    let is_cut = |octets: &Vec<u8>| octets.get(2).is_some_and(|flags| flags & 0x02 != 0);
    match once(Transport::Udp) {
        Some(octets) if !is_cut(&octets) => given(Some(&octets)),
        Some(_) => given(once(Transport::Tcp).as_deref()),
        None => given(None),
    }
}

fn given(octets: Option<&[u8]>) -> Given {
    let nothing = Given { rcode: None, is_authentic: false, addresses: BTreeSet::new() };
    let Some(Ok(message)) = octets.map(Message::parse) else { return nothing };
    let addresses = message.records(Section::Answer).filter_map(|record| {
        let short = record.address4().map(IpAddr::from);
        short.or_else(|| record.address6().map(IpAddr::from))
    });
    Given {
        rcode: Some(message.rcode().0 as u8),
        is_authentic: message.flags().contains(Flags::AD),
        addresses: addresses.collect(),
    }
}
