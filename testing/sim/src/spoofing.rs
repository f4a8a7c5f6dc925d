//! A spoofing simulation: forged replies by the hundred million. An off-path attacker makes the engine send queries (for names that were
//! never asked for, as in Kaminsky's attack), and replies in the upstream's place with every combination that he can guess. His
//! replies are marked, so a mark in an answer or in the cache is a success of the attacker. So is a forged reply that the
//! engine does not count as rejected.
//!
//! `docs/simulation.md` lists the knowledge of each attacker. The upstream works, and replies after the forged replies. Against two of the
//! attackers it has no TCP and changes what would prove its replies, so that the engine has to find its way back from suspicion.

use crate::config::server_address;
use crate::ground_truth::{A, AAAA, MILLI, NS, SECOND, SOA};
use crate::message::question_section;
use crate::message::{self, MARK4, MARK6, QUESTION_OFFSET};
use crate::outbox::{SentAnswer, SentQuery, SimOutbox, instant};
use crate::rng::Rng;
use engine::settings::{
    Caching, ClientNetworks, ClientSubnet, Dns64, Dnssec, FailurePolicy, Lookup, Network, Networks,
};
use engine::settings::{Select, UpstreamConfig};
use engine::{Capacity, Client, Counter, Engine, Link, Machine, Settings, Span, Transport, Unreachable};
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Knowledge of an attacker, besides the upstream's address and the question. He guesses the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// Nothing else: he sends to random ports.
    Address,
    /// The port of the socket as well. He sends every ID, with random letter case.
    Port,
    /// The letter case as well. He sends every ID.
    Letters,
    /// The ID as well: everything but the cookie that the upstream and the engine share.
    AllButCookie,
    /// The port. The upstream has no TCP and changes the letters of questions.
    ChangedLetters,
    /// The port and the letter case. The upstream has no TCP and returns a former client cookie.
    OldCookie,
}

impl Knowledge {
    /// All kinds of attackers.
    pub const ALL: [Knowledge; 6] = [
        Knowledge::Address,
        Knowledge::Port,
        Knowledge::Letters,
        Knowledge::AllButCookie,
        Knowledge::ChangedLetters,
        Knowledge::OldCookie,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Knowledge::Address => "address",
            Knowledge::Port => "port",
            Knowledge::Letters => "letters",
            Knowledge::AllButCookie => "all-but-cookie",
            Knowledge::ChangedLetters => "changed-letters",
            Knowledge::OldCookie => "old-cookie",
        }
    }

    /// True if the upstream has no TCP, so that a question that was forged over UDP has to go over UDP again.
    fn is_without_tcp(self) -> bool {
        matches!(self, Knowledge::ChangedLetters | Knowledge::OldCookie)
    }
}

/// Attack of a round on an upstream without TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attack {
    /// None: clients must be served.
    None,
    /// Replies that are right but for what the upstream changes, too, [`LUCKY`] for a question at most: clients must be served.
    Lucky,
    /// Guesses of IDs. Enough of them end UDP for a question, and there is nothing else.
    Guesses,
}

/// Result of a spoofing simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// Forged replies that were sent.
    pub sent: u64,
    /// Forged replies that reached an open socket, and so the engine.
    pub delivered: u64,
    /// Queries over UDP that were attacked.
    pub questions: u64,
    /// Successes: forged replies that the engine does not count as rejected, and marks that were found. One reply may count
    /// twice.
    pub accepted: u64,
    /// Client queries that were not answered, or not with the upstream's data.
    pub unserved: u64,
    /// Successes to be expected from luck alone, on average.
    pub expected_by_luck: f64,
}

impl Score {
    /// Adds another result.
    pub fn add(&mut self, other: &Score) {
        self.sent += other.sent;
        self.delivered += other.delivered;
        self.questions += other.questions;
        self.accepted += other.accepted;
        self.unserved += other.unserved;
        self.expected_by_luck += other.expected_by_luck;
    }

    /// True if the attacker had no success and every client was served.
    pub fn is_in_order(&self) -> bool {
        self.accepted == 0 && self.unserved == 0
    }
}

/// Number of message IDs, and of ports that a socket may have.
const QUERY_IDS: u64 = 1 << 16;
const PORTS: u64 = 65_536 - 1024;
/// Largest number of client queries at a time.
const CONCURRENT_QUERIES: u64 = 4;
/// The names under attack in wire form, and their true address.
const VICTIMS: [&[u8]; 2] = [b"\x03www\x06victim\x04test\x00", b"\x02ns\x06victim\x04test\x00"];
const TRUE_ADDRESS: [u8; 4] = [198, 51, 100, 7];
const ZONE: &[u8] = b"\x06victim\x04test\x00";
/// Replies to one question in which port and ID are right, at most. Each is a guess of 32 bits that came true; of three that agree the last
/// is believed.
const LUCKY: u8 = 2;
/// Guesses of IDs that are wrong by agreement: more than the engine takes before it gives UDP up for a question. A right one before that is
/// luck, and luck is not what is tested.
const WRONG_GUESSES: u64 = 16;
/// Time after which the engine has forgotten what an upstream changes.
const FORGETTING: u64 = 700 * SECOND;
/// The server cookie of the upstream.
const SERVER_COOKIE: &[u8; 8] = b"honestly";

/// Lets an attacker send this many forged replies.
pub fn spoof(knows: Knowledge, replies: u64, seed: u64) -> Score {
    let mut spoofing = Spoofing::new(knows, seed);
    // The attack begins after a first exchange between the engine and its upstream.
    spoofing.round(0);
    while spoofing.score.sent < replies {
        spoofing.round(replies);
    }
    spoofing.check_cache(VICTIMS.map(<[u8]>::to_vec).as_slice());
    spoofing.score
}

/// Divides a spoofing simulation among threads. Each part of a million replies has an engine of its own.
pub fn spoof_all(knows: Knowledge, replies: u64, seed: u64, threads: usize) -> Score {
    const PART: u64 = 1_000_000;
    let next = AtomicU64::new(0);
    let score = Mutex::new(Score::default());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let part = next.fetch_add(1, Ordering::Relaxed);
                    let left = replies.saturating_sub(part.saturating_mul(PART));
                    if left == 0 {
                        return;
                    }
                    let part = spoof(knows, left.min(PART), seed.wrapping_add(part));
                    if let Ok(mut score) = score.lock() {
                        score.add(&part);
                    }
                }
            });
        }
    });
    score.into_inner().unwrap_or_default()
}

/// A spoofing simulation of one engine by one attacker.
struct Spoofing {
    knows: Knowledge,
    engine: Engine,
    outbox: SimOutbox,
    now: u64,
    rng: Rng,
    client: u64,
    /// Attack of the round, if the upstream has no TCP.
    attack: Attack,
    /// Lucky replies to each question of the round, in lower case.
    lucky: HashMap<Vec<u8>, u8>,
    /// The open UDP sockets by port.
    sockets: Vec<Option<Link>>,
    score: Score,
}

impl Spoofing {
    fn new(knows: Knowledge, seed: u64) -> Spoofing {
        let mut rng = Rng::new(seed);
        let entropy = rng.entropy();
        let capacity = Capacity { pending: 256, cache: 1 << 20 };
        Spoofing {
            knows,
            engine: Engine::new(settings(), capacity, entropy),
            outbox: SimOutbox::default(),
            now: SECOND,
            rng,
            client: 0,
            attack: Attack::None,
            lucky: HashMap::new(),
            sockets: vec![None; 1 << 16],
            score: Score::default(),
        }
    }

    /// One round: some client queries, forged replies, true replies, and the check of the answers. `most`: replies to send in
    /// all.
    fn round(&mut self, most: u64) {
        let mut names: Vec<Vec<u8>> =
            (0..1 + self.rng.below(CONCURRENT_QUERIES)).map(|_| self.fresh_name()).collect();
        // Now and then a name under attack is queried, to see whether its data are still true.
        if self.rng.permille(10) {
            names.push(self.rng.choose(&VICTIMS).to_vec());
        }
        if self.knows.is_without_tcp() {
            self.begin_without_tcp(most);
        }
        for name in &names {
            self.send_query(name);
        }
        let mut answered = 0;
        // Two lookups, over UDP and TCP; without TCP each takes up to eight queries after that.
        for _ in 0..if self.knows.is_without_tcp() { 20 } else { 6 } {
            let queries = core::mem::take(&mut self.outbox.queries);
            for query in queries.iter().filter(|query| query.over_udp) {
                self.attack(query, most);
            }
            self.advance(20 * MILLI);
            for query in &queries {
                self.send_true_reply(query);
            }
            self.advance(MILLI);
            answered += self.read_answers();
        }
        if self.attack != Attack::Guesses {
            self.score.unserved += (names.len() as u64).abs_diff(answered);
        }
        self.check_cache(&names);
    }

    /// Begins a round against an upstream without TCP.
    fn begin_without_tcp(&mut self, most: u64) {
        self.lucky.clear();
        if self.rng.permille(50) {
            self.advance(FORGETTING);
        }
        let attacks = [Attack::None, Attack::Lucky, Attack::Lucky, Attack::Guesses];
        self.attack = if most == 0 { Attack::None } else { *self.rng.choose(&attacks) };
    }

    /// A name that was never asked for, with enough letters for 0x20.
    fn fresh_name(&mut self) -> Vec<u8> {
        let mut name = vec![8];
        name.extend((0..8).map(|_| *self.rng.choose(b"abcdefghijklmnopqrstuvwxyz")));
        name.extend(ZONE);
        name
    }

    /// A new client sends a query for a name.
    fn send_query(&mut self, name: &[u8]) {
        self.client += 1;
        let mut bytes = vec![];
        message::write_header(&mut bytes, self.client as u16, 0x0100);
        bytes.extend(name);
        let rtype = if self.rng.permille(700) { AAAA } else { A };
        bytes.extend([0, rtype as u8, 0, 1]);
        let address = Ipv6Addr::new(0x2001, 0xdb8, 0xc, self.client as u16, 0, 0, 0, 1);
        let client = Client::udp(SocketAddr::new(address.into(), 4000));
        self.engine.query(instant(self.now), &client, &bytes, &mut self.outbox);
    }

    /// Moves the clock, and runs the engine's timers.
    fn advance(&mut self, time: u64) {
        self.now += time;
        self.outbox.now = self.now;
        let _ = self.engine.expire(instant(self.now), &mut self.outbox);
    }

    /// Sends forged replies to one query, at most until `most` replies have been sent in all.
    fn attack(&mut self, query: &SentQuery, most: u64) {
        if self.knows.is_without_tcp() {
            match self.attack {
                Attack::None => return,
                Attack::Lucky => return self.send_lucky_reply(query, most),
                Attack::Guesses => {}
            }
        }
        let burst = match self.knows {
            Knowledge::ChangedLetters | Knowledge::OldCookie if self.rng.permille(20) => QUERY_IDS,
            Knowledge::ChangedLetters | Knowledge::OldCookie => *self.rng.choose(&[1, 4, 20, 64]),
            Knowledge::AllButCookie => *self.rng.choose(&[1, 4, 64]),
            // With the letter case, the first guess hits in one of 65,536 queries, and no defence can prevent that.
            Knowledge::Letters => QUERY_IDS,
            _ => *self.rng.choose(&[QUERY_IDS, QUERY_IDS, 256, 16]),
        };
        let burst = burst.min(most.saturating_sub(self.score.sent));
        if burst == 0 {
            return;
        }
        self.score.questions += 1;
        let section = question_section(&query.bytes);
        let letters: Vec<usize> = (QUESTION_OFFSET..QUESTION_OFFSET + section.len() - 5)
            .filter(|&place| query.bytes[place].is_ascii_alphabetic())
            .collect();
        self.score.expected_by_luck += self.expected_hits(burst, letters.len());
        let mut forged = forged(section, &mut self.rng);
        if matches!(self.knows, Knowledge::AllButCookie | Knowledge::OldCookie) && self.rng.permille(500) {
            let client = self.rng.next_u64();
            add_cookie(&mut forged, &client.to_be_bytes());
        }
        self.send_bare_replies(query, burst);
        let (before, delivered) = (rejected_replies(&self.engine), self.score.delivered);
        self.send_burst(query, burst, forged, &letters);
        self.score.sent += burst;
        let rejected = rejected_replies(&self.engine) - before;
        self.score.accepted += (self.score.delivered - delivered).abs_diff(rejected);
    }

    /// Sends a reply that is right but for what the upstream changes, too. All of them say the same. Once the engine has learned what the
    /// upstream changes, that proves nothing any more, and there are none.
    fn send_lucky_reply(&mut self, query: &SentQuery, most: u64) {
        let section = question_section(&query.bytes);
        let is_proof = match self.knows {
            Knowledge::OldCookie => message::client_cookie(&query.bytes).is_some(),
            _ => section.iter().any(u8::is_ascii_uppercase),
        };
        let lucky = self.lucky.entry(section.to_ascii_lowercase()).or_default();
        if !is_proof || *lucky == LUCKY || self.score.sent == most {
            return;
        }
        *lucky += 1;
        let mut forged = forged(section, &mut self.rng);
        forged[..2].copy_from_slice(&query.bytes[..2]);
        if self.knows == Knowledge::OldCookie {
            add_cookie(&mut forged, &self.rng.next_u64().to_be_bytes());
        } else {
            forged[QUESTION_OFFSET..QUESTION_OFFSET + section.len()].make_ascii_lowercase();
        }
        let before = rejected_replies(&self.engine);
        self.engine.reply(instant(self.now), query.link, &mut forged, &mut self.outbox);
        let rejected = rejected_replies(&self.engine) - before;
        self.score.questions += 1;
        self.score.sent += 1;
        self.score.delivered += 1;
        self.score.accepted += 1u64.abs_diff(rejected);
    }

    /// Now and then replies without a question come first, with the attacker's guesses of the ID. At best they bring a query without EDNS or
    /// over TCP, which is attacked like any other. They are not among the replies that are counted.
    fn send_bare_replies(&mut self, query: &SentQuery, burst: u64) {
        if self.knows == Knowledge::Address || !self.rng.permille(100) {
            return;
        }
        let right_id = u16::from_be_bytes([query.bytes[0], query.bytes[1]]);
        let kind = self.rng.next_u64();
        for number in 0..burst {
            let id = if self.knows == Knowledge::AllButCookie { right_id } else { number as u16 };
            let mut bytes = message::write_bare_reply(id, kind);
            self.engine.reply(instant(self.now), query.link, &mut bytes, &mut self.outbox);
        }
    }

    /// The number of hits that luck alone gives, on average, for a burst of replies to a name with this many letters.
    fn expected_hits(&self, burst: u64, letters: usize) -> f64 {
        let guess = 0.5f64.powi(letters as i32) / QUERY_IDS as f64;
        match self.knows {
            Knowledge::Address => burst as f64 * guess / PORTS as f64,
            // The first wrong ID makes the engine ask over TCP.
            Knowledge::Port => guess,
            Knowledge::Letters => 1.0 / QUERY_IDS as f64,
            Knowledge::AllButCookie | Knowledge::ChangedLetters | Knowledge::OldCookie => 0.0,
        }
    }

    /// Sends a burst of replies, each with its own guess. `letters`: offsets of the letters of the name.
    fn send_burst(&mut self, query: &SentQuery, burst: u64, mut forged: Vec<u8>, letters: &[usize]) {
        let right_id = u16::from_be_bytes([query.bytes[0], query.bytes[1]]);
        // Every ID once, in an order of its own.
        let (start, step) = (self.rng.next_u64() as u16, self.rng.next_u64() as u16 | 1);
        if self.knows == Knowledge::Address {
            self.find_sockets();
        }
        for number in 0..burst {
            let id = match self.knows {
                Knowledge::AllButCookie => right_id,
                _ => start.wrapping_add(step.wrapping_mul(number as u16)),
            };
            let via = match self.knows {
                Knowledge::Address => match self.sockets[1024 + self.rng.below(PORTS) as usize] {
                    Some(link) => link,
                    // No socket has this port.
                    None => continue,
                },
                _ => query.link,
            };
            forged[..2].copy_from_slice(&id.to_be_bytes());
            if matches!(self.knows, Knowledge::Address | Knowledge::Port | Knowledge::ChangedLetters) {
                let case = self.rng.next_u64();
                for (bit, &place) in letters.iter().enumerate() {
                    forged[place] = forged[place] & !0x20 | ((case >> (bit % 64)) as u8 & 1) << 5;
                }
            }
            if self.knows.is_without_tcp() && number < WRONG_GUESSES {
                let is_hit = |forged: &[u8]| {
                    self.outbox.links.get(&via).is_some_and(|link| link.matches_query(forged))
                };
                while is_hit(&forged) {
                    forged[0] ^= 1 << (number % 8);
                    forged[1] = forged[1].wrapping_add(1);
                }
            }
            self.score.delivered += 1;
            self.engine.reply(instant(self.now), via, &mut forged, &mut self.outbox);
        }
    }

    /// Lists the open UDP sockets by port.
    fn find_sockets(&mut self) {
        self.sockets.fill(None);
        for (&link, opened) in &self.outbox.links {
            if opened.transport == Transport::Udp {
                self.sockets[usize::from(opened.port)] = Some(link);
            }
        }
    }

    /// Sends the true reply.
    fn send_true_reply(&mut self, asked: &SentQuery) {
        if self.knows.is_without_tcp() && !asked.over_udp {
            self.outbox.links.remove(&asked.link);
            let refused = Unreachable::PortRefused;
            return self.engine.on_link_failure(instant(self.now), asked.link, refused, &mut self.outbox);
        }
        let section = question_section(&asked.bytes);
        let (id, rtype) = (u16::from_be_bytes([asked.bytes[0], asked.bytes[1]]), section[section.len() - 3]);
        let mut bytes = vec![];
        message::write_header(&mut bytes, id, 0x8180);
        bytes.extend(section);
        if self.knows == Knowledge::ChangedLetters {
            bytes[QUESTION_OFFSET..].make_ascii_lowercase();
        }
        if u16::from(rtype) == A {
            bytes[7] = 1;
            record(&mut bytes, &[0xc0, QUESTION_OFFSET as u8], A, 60, &TRUE_ADDRESS);
        } else {
            bytes[9] = 1;
            let mut data = b"\x02ns\x00\x04host\x00".to_vec();
            data.extend([1, 2, 3, 4, 60].map(u32::to_be_bytes).as_flattened());
            record(&mut bytes, ZONE, SOA, 60, &data);
        }
        message::write_opt(&mut bytes, 1232, false, None);
        match (self.knows, message::client_cookie(&asked.bytes)) {
            (Knowledge::AllButCookie, Some(client)) => add_cookie(&mut bytes, &client),
            (Knowledge::OldCookie, Some(client)) => add_cookie(&mut bytes, &message::former_cookie(client)),
            _ => {}
        }
        self.engine.reply(instant(self.now), asked.link, &mut bytes, &mut self.outbox);
    }

    /// Reads the answers. Returns the number of right ones.
    fn read_answers(&mut self) -> u64 {
        let mut right = 0;
        for SentAnswer { bytes, .. } in core::mem::take(&mut self.outbox.answers) {
            if is_marked(&bytes) {
                self.score.accepted += 1;
            }
            right += u64::from(bytes.windows(4).any(|four| four == TRUE_ADDRESS));
        }
        right
    }

    /// Counts the names with marked data in the cache.
    fn check_cache(&mut self, names: &[Vec<u8>]) {
        for name in names {
            let kept = self.engine.cached_entries(name, None, instant(self.now));
            let is_won = kept.iter().filter_map(|kept| kept.message.as_ref()).any(|bytes| is_marked(bytes));
            self.score.accepted += u64::from(is_won);
        }
    }
}

/// Number of replies that an engine has counted as rejected.
pub fn rejected_replies(engine: &Engine) -> u64 {
    const REJECTED: [Counter; 11] = [
        Counter::DroppedMalformedReply,
        Counter::DroppedLate,
        Counter::DroppedStaleLink,
        Counter::SuspectUnknown,
        Counter::SuspectId,
        Counter::SuspectCase,
        Counter::SuspectSocket,
        Counter::SuspectAbandoned,
        Counter::SuspectSubnet,
        Counter::SuspectCookie,
        Counter::SuspectNotResponse,
    ];
    REJECTED.iter().map(|&counter| engine.counters().get(counter)).sum()
}

/// True if a message contains a mark.
fn is_marked(bytes: &[u8]) -> bool {
    let has = |mark: &[u8]| bytes.windows(mark.len()).any(|part| part == mark);
    has(&MARK4) || has(&MARK6)
}

/// A marked reply to the question, with marked addresses of the names under attack in the additional section.
fn forged(section: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = message::write_forged_reply(section, 0, rng);
    // Removes the OPT record that may be at the end.
    if bytes[11] == 1 {
        bytes.truncate(bytes.len() - 11);
        bytes[11] = 0;
    }
    bytes[9] = 1;
    record(&mut bytes, ZONE, NS, 86_400, VICTIMS[1]);
    for victim in VICTIMS {
        bytes[11] += 1;
        record(&mut bytes, victim, A, 86_400, &[MARK4[0], MARK4[1], MARK4[2], 6]);
    }
    message::write_opt(&mut bytes, 1232, false, None);
    bytes
}

fn record(bytes: &mut Vec<u8>, owner: &[u8], rtype: u16, ttl: u32, data: &[u8]) {
    bytes.extend(owner);
    bytes.extend(rtype.to_be_bytes());
    bytes.extend([0, 1]);
    bytes.extend(ttl.to_be_bytes());
    bytes.extend((data.len() as u16).to_be_bytes());
    bytes.extend(data);
}

/// Adds a cookie to the OPT record at the end of a message. The record has no options yet.
fn add_cookie(bytes: &mut Vec<u8>, client: &[u8; 8]) {
    let opt = bytes.len() - 11;
    message::add_cookie(bytes, opt, client, SERVER_COOKIE);
}

fn settings() -> Settings {
    let everywhere = vec![Network::new(Ipv6Addr::UNSPECIFIED, 0), Network::v4(Ipv4Addr::UNSPECIFIED, 0)];
    Settings {
        allow: Networks(everywhere.clone()),
        upstream: UpstreamConfig {
            forwarders: vec![server_address(0)],
            zones: vec![],
            select: Select::Ordered,
            timeout: Span::from_millis(500),
            tries: 3,
            transport: Transport::Udp,
            mix_case: true,
            tls: Vec::new(),
        },
        local_data: Arc::default(),
        server_names: Default::default(),
        rpz: Arc::default(),
        cache: Caching::default(),
        dns64: Dns64 {
            prefixes: vec!["2001:db8:64::/96".parse().unwrap_or(pref64::WELL_KNOWN)],
            clients: ClientNetworks::new(everywhere, vec![]),
            exclude_aaaa: vec![],
            embed_non_global: false,
            never_embed: vec![],
            lookup: Lookup::Sequential,
            on_failure: FailurePolicy::default(),
            dnssec: Dnssec::Trust,
            break_dnssec: false,
            recursive_only: false,
            max_records: 64,
            arpa: Default::default(),
            rules: Arc::default(),
        },
        udp_size: 1232,
        client_subnet: ClientSubnet::Off,
        cookies: Default::default(),
        pending_per_client: 1000,
        client_prefix: 56,
        queries_per_client: 0,
        responses_per_client: 0,
    }
}
