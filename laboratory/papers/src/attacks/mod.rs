//! Attacks on servers that take data with a SYN: T/TCP, whose connection count is public order (RFC 6247, RFC 7413 section 8.1),
//! beside TCP Fast Open, whose cookie is a secret of the server.
//!
//! The attacker forges the client's address and sees none of the server's packets, unless a function says otherwise.

mod duplicates;
mod flood;
mod guesses;
mod reflection;

pub use duplicates::{Replay, crash_before_the_answer, replay};
pub use flood::{Flood, Forger, flood};
pub use guesses::{Hits, guess, guess_in_pairs, lockout, lockout_after_restart};
pub use reflection::{Reflection, VictimReply, reflect};

use crate::network::{CLIENT, Network, PORT, server};
use core::time::Duration;
use netem::{Delay, Impairments};
use std::net::SocketAddr;
use ttcp::{
    ConnectionCount, Cookie, Event, FastOpen, FastOpenOption, Listen, Options, Segment, Serial, Settings,
};

/// Way of a packet between the hosts: half of a round trip of 20 ms.
const WAY: Duration = Duration::from_millis(10);

/// Octets of a query `NS .` over TCP, after which the server answers: 2 of length, 12 of header, 5 of question.
pub const QUERY_OCTETS: usize = 19;

/// The way of data with a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// TCP without data on a SYN, as a control.
    Tcp,
    /// T/TCP.
    Transactions,
    /// TCP Fast Open.
    FastOpen,
}

/// All mechanisms.
pub const MECHANISMS: [Mechanism; 3] = [Mechanism::Tcp, Mechanism::Transactions, Mechanism::FastOpen];

/// A server, its true client, and the settings of both.
pub struct Site {
    network: Network,
    mechanism: Mechanism,
    /// Octets of each answer.
    answer: usize,
    /// Requests that the server has executed.
    executed: u64,
}

/// Settings of a site.
#[derive(Clone, Copy, Debug)]
pub struct SiteSettings {
    /// Mechanism of both hosts.
    pub mechanism: Mechanism,
    /// Connection blocks of the server.
    pub blocks: usize,
    /// Limit of pending connections of Fast Open.
    pub pending: usize,
    /// Octets of each answer.
    pub answer: usize,
}

impl SiteSettings {
    /// 8,000 blocks, 256 pending connections, answers of 230 octets, about those of the 13 name servers of the root.
    pub fn new(mechanism: Mechanism) -> SiteSettings {
        SiteSettings { mechanism, blocks: 8000, pending: 256, answer: 230 }
    }
}

impl Site {
    /// A site that has just started. `count`: connection count of the client before the first one; `key`: of the cookies.
    pub fn new(settings: SiteSettings, count: u32, key: u64, seed: u64) -> Site {
        let mut secret = [0; 16];
        secret[..8].copy_from_slice(&key.to_le_bytes());
        let fast_open = FastOpen { key: secret, previous_key: None, pending: settings.pending };
        let host = Settings {
            transactions: settings.mechanism == Mechanism::Transactions,
            fast_open: (settings.mechanism == Mechanism::FastOpen).then_some(fast_open),
            blocks: settings.blocks,
            ..Settings::default()
        };
        let link = Impairments { delay: Delay { mean: WAY, ..Delay::default() }, ..Impairments::default() };
        let client = Settings { last_count: count, ..host.clone() };
        let mut network = Network::new(client, host, link, seed);
        network.server.listen(PORT, Listen::default()).expect("a free port");
        Site { network, mechanism: settings.mechanism, answer: settings.answer, executed: 0 }
    }

    /// A query of the true client. Returns the time until its answer; none if there was none for 10 s.
    pub fn query(&mut self) -> Option<Duration> {
        let start = self.network.now;
        self.network.client.transact(start, server(), &[b'q'; QUERY_OCTETS]).ok()?;
        let mut answered = None;
        self.run(start + Duration::from_secs(10), |network, event| {
            if matches!(event, Event::Received(..)) {
                answered.get_or_insert(network.now - start);
            }
        });
        answered
    }

    /// Sends a query, and says if the server has executed it without a handshake.
    pub fn query_is_fast(&mut self) -> bool {
        let before = self.network.server.counts();
        self.query();
        let after = self.network.server.counts();
        after.transactions + after.fast_opens > before.transactions + before.fast_opens
    }

    /// Runs the network until `end`, with the server's application. `client`: the client's events.
    fn run(&mut self, end: Duration, mut client: impl FnMut(&mut Network, Event)) {
        let (answer, mechanism) = (vec![b'a'; self.answer], self.mechanism);
        let executed = &mut self.executed;
        self.network.run(end, |network, at_server, event| match (at_server, event) {
            (false, event) => client(network, event),
            (true, event) => serve(network, mechanism, &event, &answer, executed),
        });
    }

    /// Gives the server a packet of the attacker. Returns the number of requests that the server has executed at once; it
    /// answers them.
    fn attack(&mut self, packet: &[u8]) -> u64 {
        let before = self.executed;
        self.network.server.on_packet(self.network.now, packet);
        let answer = vec![b'a'; self.answer];
        while let Some(event) = self.network.server.next_event() {
            serve(&mut self.network, self.mechanism, &event, &answer, &mut self.executed);
        }
        self.executed - before
    }
}

/// The server's application: it executes a request when it has come, answers it and finishes.
fn serve(network: &mut Network, mechanism: Mechanism, event: &Event, answer: &[u8], executed: &mut u64) {
    let now = network.now;
    // A client that is gone takes no answer.
    match (event, mechanism) {
        (Event::Received(..), Mechanism::Transactions) => *executed += 1,
        (Event::Finished(connection), Mechanism::Transactions) => {
            let _ = network.server.send_and_finish(now, *connection, answer);
        }
        // The FIN comes after the data here, so the answer does not wait for it.
        (Event::Received(connection, _), _) => {
            *executed += 1;
            let _ = network.server.send(now, *connection, answer);
        }
        (Event::Finished(connection), _) => {
            let _ = network.server.finish(now, *connection);
        }
        _ => {}
    }
}

/// A port of the true client's address, which the attacker forges.
fn forged_source(port: u16) -> SocketAddr {
    SocketAddr::from((CLIENT, port))
}

/// SYN with data: with a connection count and FIN, or with a cookie.
fn forged_syn(source: SocketAddr, proof: Proof, octets: usize) -> Vec<u8> {
    let payload = vec![b'f'; octets];
    let options = Options { mss: Some(1460), ..Options::default() };
    let options = match proof {
        Proof::None => options,
        Proof::Count(count) => Options { count: Some(ConnectionCount::Cc(Serial(count))), ..options },
        Proof::NewCount(count) => Options { count: Some(ConnectionCount::New(Serial(count))), ..options },
        Proof::Cookie(cookie) => Options { fast_open: Some(FastOpenOption::Cookie(cookie)), ..options },
    };
    Segment {
        seq: Serial(12_345),
        syn: true,
        // Fast Open sends no FIN with the SYN.
        fin: matches!(proof, Proof::Count(_) | Proof::NewCount(_)),
        psh: octets > 0,
        window: 65_535,
        options,
        payload: &payload,
        ..Segment::between(source, server())
    }
    .write()
}

/// The proof with which a forged SYN comes.
#[derive(Clone, Copy, Debug)]
enum Proof {
    /// No option.
    None,
    /// CC.
    Count(u32),
    /// CC.NEW.
    NewCount(u32),
    /// A cookie.
    Cookie(Cookie),
}

impl Proof {
    /// A guess from 64 random bits.
    fn guess(mechanism: Mechanism, random: u64) -> Proof {
        match mechanism {
            Mechanism::Tcp => Proof::None,
            Mechanism::Transactions => Proof::Count(random as u32),
            Mechanism::FastOpen => {
                Proof::Cookie(Cookie::new(&random.to_le_bytes()).expect("a cookie has 8 octets"))
            }
        }
    }
}
