//! What the cache gives out. An upstream sends one reply of any structure: pointers to any place, aliases in any order, many owners, TTLs
//! that look like pointers. The question is asked with each combination of DO and CD, then again and again while the upstream is silent:
//! at once, after 1 s and 1,000 s, and when only expired data are left. What is then answered without the upstream parses, and has the
//! records of the first answer, but for TTLs and the case of letters.

use crate::engine::outbox::FuzzOutbox;
use crate::engine::settings::settings;
use crate::input::InputReader;
use crate::model::{self, OURS};
use crate::view::{Item, View};
use engine::settings::{Network, Networks};
use engine::{Capacity, Client, ClientTransport, Counter, Engine, Instant, Machine, Span};
use std::net::{Ipv6Addr, SocketAddr};

/// Octets of the cache.
const CACHE: usize = 1 << 20;

/// Configurations (`engine/settings.rs`) without rate limits, and with and without response policy.
const SETTINGS: [u8; 10] = [0, 1, 2, 3, 5, 0x80, 0x81, 0x82, 0x83, 0x85];

/// Names that are asked. The labels of some hold octets that are pointers, one of them with a letter as its second octet.
const NAMES: [&[u8]; 4] = [
    b"\x01a\x07example\0",
    b"\x03www\x01a\x07example\0",
    b"\x03\xc0Az\x07example\0",
    b"\x05q\xc0\x0cbz\x03y\xc0a\x01b\0",
];

const TYPES: [u16; 6] = [28, 1, 16, 65, 5, 255];

/// Types of the records. 65280 is one that nobody knows.
const RECORD_TYPES: [u16; 10] = [1, 28, 5, 16, 65, 46, 2, 6, 65_280, 39];

const TTLS: [u32; 8] = [60, 0, 1, 300, 86_400, 0xc00c_c00c, 0x0161_c00c, 0x0101_6100];

/// Records of a reply at most.
const RECORDS: usize = 40;

/// Seconds that pass before the question is asked again. After the last ones everything has expired.
const AGES: [u64; 4] = [0, 1, 1_000, 200_000];

/// The TTL of expired data (RFC 8767 section 4).
const STALE_SECS: u32 = 30;

/// Tries and timeouts until a client has its answer.
const ROUNDS: usize = 200;

const HEADER: usize = 12;

/// Tests one input.
pub fn run(input: &[u8]) {
    let mut reader = InputReader::new(input);
    let mut settings = settings(*reader.choose(&SETTINGS));
    settings.allow = Networks(vec![Network::new(Ipv6Addr::UNSPECIFIED, 0)]);
    let (name, qtype) = (*reader.choose(&NAMES), *reader.choose(&TYPES));
    let engine = Engine::new(settings, Capacity { pending: 64, cache: CACHE }, [7; 32]);
    let now = Instant(1_000_000_000);
    let mut world = World { engine, outbox: FuzzOutbox::default(), now, asked: 0, recipe: reader };
    let flags = [(false, false), (true, false), (false, true), (true, true)];
    let firsts = flags.map(|flags| {
        let (answer, _) = world.ask(name, qtype, flags, true);
        (world.now, answer)
    });
    for age_secs in AGES {
        world.now += Span::from_secs(age_secs);
        for (flags, (at, first)) in flags.iter().zip(&firsts) {
            let asked = world.now;
            let (answer, at_once) = world.ask(&name.to_ascii_uppercase(), qtype, *flags, false);
            if let (Some(first), Some(answer), true) = (first, answer, at_once) {
                compare(first, &answer, (asked - *at).0 / 1_000_000_000);
            }
        }
    }
}

struct World<'i> {
    engine: Engine,
    outbox: FuzzOutbox,
    now: Instant,
    asked: u16,
    /// What the upstream replies with.
    recipe: InputReader<'i>,
}

impl World<'_> {
    /// Asks a question. Returns the answer, and whether it came at once; none if the response policy drops the query.
    fn ask(
        &mut self,
        name: &[u8],
        qtype: u16,
        flags: (bool, bool),
        is_replied: bool,
    ) -> (Option<View>, bool) {
        self.asked += 1;
        let message = query(self.asked, name, qtype, flags);
        let address = Ipv6Addr::new(0x2001, 0xdb8, 0xc, 0, 0, 0, 0, 9);
        let mut client = Client::udp(SocketAddr::new(address.into(), self.asked));
        (client.transport, client.stream) = (ClientTransport::Tcp, u64::from(self.asked));
        self.outbox.queries.clear();
        let dropped = self.engine.counters().get(Counter::FilteredDrop);
        self.engine.query(self.now, &client, &message, &mut self.outbox);
        for round in 0..ROUNDS {
            if let Some((_, answer)) = self.outbox.answers.pop() {
                return (Some(read(&answer)), round == 0);
            }
            if self.engine.counters().get(Counter::FilteredDrop) > dropped {
                return (None, round == 0);
            }
            let deadline = self.engine.expire(self.now, &mut self.outbox);
            let queries = std::mem::take(&mut self.outbox.queries);
            if queries.is_empty() || !is_replied {
                self.now = self.now.max(deadline.unwrap_or(self.now));
                continue;
            }
            for (link, query) in queries {
                if self.outbox.links.contains_key(&link) {
                    let mut bytes = reply(&query, self.recipe);
                    self.engine.reply(self.now, link, &mut bytes, &mut self.outbox);
                }
            }
        }
        panic!("the client waits for ever");
    }
}

/// Compares an answer out of the cache with the first one.
fn compare(first: &View, later: &View, age_secs: u64) {
    let rcode = |view: &View| (view.flags & 15, view.edns.as_ref().map(|edns| edns.extended_rcode));
    const SERVFAIL: u16 = 2;
    // A failure is remembered too, and expired data may be refused.
    if rcode(later).0 == SERVFAIL {
        return;
    }
    assert_eq!(rcode(first), rcode(later), "{first:?} {later:?}");
    let (first, later) = (first.clone().folded(model::has_names), later.clone().folded(model::has_names));
    for (before, after) in first.sections.iter().zip(&later.sections) {
        assert_eq!(before.len(), after.len(), "{first:?} {later:?}");
        for (before, after) in before.iter().zip(after) {
            let same = |item: &Item| Item { ttl: 0, ..item.clone() };
            assert_eq!(same(before), same(after), "{first:?} {later:?}");
            let is_older = u64::from(after.ttl) + age_secs <= u64::from(before.ttl);
            assert!(is_older || after.ttl <= STALE_SECS, "{age_secs} s: {before:?} {after:?}");
        }
    }
}

fn read(bytes: &[u8]) -> View {
    model::read(bytes, &OURS).unwrap_or_else(|| panic!("we wrote what cannot be read: {bytes:02x?}"))
}

/// A query with DO and CD as in `flags`.
fn query(id: u16, name: &[u8], qtype: u16, (dnssec_ok, checking_disabled): (bool, bool)) -> Vec<u8> {
    let mut message = id.to_be_bytes().to_vec();
    message.extend([1, u8::from(checking_disabled) << 4, 0, 1, 0, 0, 0, 0, 0, 1]);
    message.extend_from_slice(name);
    message.extend(qtype.to_be_bytes());
    message.extend([0, 1, 0, 0, 41, 4, 0xd0, 0, 0, u8::from(dnssec_ok) << 7, 0, 0, 0]);
    message
}

/// A reply under construction.
struct Reply {
    bytes: Vec<u8>,
    /// Offsets at which labels begin.
    labels: Vec<usize>,
}

/// The reply to a query, by the recipe.
fn reply(query: &[u8], mut recipe: InputReader<'_>) -> Vec<u8> {
    let name = wire::name_len(&query[HEADER..]).expect("our questions are well-formed");
    let (flags, rcode) = (recipe.octet() & 0x04, [0, 0, 0, 3][recipe.below(4)]);
    let mut bytes = query[..2].to_vec();
    bytes.extend([0x81 | flags, 0x80 | rcode | query[3] & 0x10, 0, 1, 0, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(&query[HEADER..HEADER + name + 4]);
    let mut reply = Reply { bytes, labels: Vec::new() };
    let mut at = HEADER;
    while reply.bytes[at] != 0 {
        reply.labels.push(at);
        at += 1 + usize::from(reply.bytes[at]);
    }
    let mut section = 0;
    for _ in 0..RECORDS {
        if recipe.is_empty() {
            break;
        }
        // Sections are written in order.
        section = section.max(usize::from(recipe.octet() >> 5).saturating_sub(5));
        reply.bytes[7 + 2 * section] += 1;
        reply.record(&mut recipe);
    }
    if query[11] == 1 {
        reply.bytes[11] += 1;
        // An extended DNS error (RFC 8914) in some.
        let is_error = rcode == 3;
        reply.bytes.extend([0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, if is_error { 6 } else { 0 }]);
        reply.bytes.extend(is_error.then_some([0, 15, 0, 2, 0, 29]).into_iter().flatten());
    }
    reply.bytes
}

impl Reply {
    fn record(&mut self, recipe: &mut InputReader<'_>) {
        self.name(recipe);
        let (rtype, class) = (*recipe.choose(&RECORD_TYPES), recipe.octet());
        self.bytes.extend(rtype.to_be_bytes());
        self.bytes.extend(if class >= 0xfe { [class, class] } else { [0, 1] });
        let ttl = *recipe.choose(&TTLS);
        self.bytes.extend(ttl.to_be_bytes());
        let start = self.bytes.len();
        self.bytes.extend([0, 0]);
        match rtype {
            1 => self.bytes.extend([192, 0, 2, recipe.octet()]),
            28 => self.bytes.extend([&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[recipe.octet()]].concat()),
            2 | 5 | 39 => self.name(recipe),
            6 => {
                self.name(recipe);
                self.name(recipe);
                self.bytes.extend([0, 0, 1, 0x2c].repeat(5));
            }
            16 => {
                let text = recipe.length_prefixed();
                self.bytes.push(text.len() as u8);
                self.bytes.extend_from_slice(text);
            }
            46 => {
                self.bytes.extend([&[0, 1, 13, 2][..], &[0; 14]].concat());
                self.name(recipe);
                self.bytes.extend_from_slice(recipe.length_prefixed());
            }
            65 => {
                self.bytes.extend([0, 1]);
                self.name(recipe);
                self.bytes.extend([0, 3, 0, 2, 1, 0xbb]);
            }
            _ => self.bytes.extend_from_slice(recipe.length_prefixed()),
        }
        let octets = (self.bytes.len() - start - 2) as u16;
        self.bytes[start..start + 2].copy_from_slice(&octets.to_be_bytes());
    }

    /// Writes a name: a pointer to the question, to another label or to any octet; or labels, with or without such a pointer.
    fn name(&mut self, recipe: &mut InputReader<'_>) {
        match recipe.octet() % 8 {
            0..3 => self.pointer(HEADER),
            3 => self.pointer_to_label(recipe),
            4 => {
                self.label(recipe);
                self.bytes.push(0);
            }
            5 => {
                self.label(recipe);
                self.pointer_to_label(recipe);
            }
            6 => {
                let any = usize::from(recipe.next_u16()) % self.bytes.len();
                self.pointer(any);
            }
            _ => {
                for _ in 0..60 {
                    self.bytes.extend([1, b'x']);
                }
                self.label(recipe);
                self.pointer_to_label(recipe);
            }
        }
    }

    fn label(&mut self, recipe: &mut InputReader<'_>) {
        let octets = recipe.octet();
        let label = recipe.take(1 + usize::from(octets % 8));
        if !label.is_empty() {
            self.labels.push(self.bytes.len());
            self.bytes.push(label.len() as u8);
            self.bytes.extend_from_slice(label);
        }
    }

    fn pointer_to_label(&mut self, recipe: &mut InputReader<'_>) {
        let number = usize::from(recipe.octet()) % self.labels.len().max(1);
        // The root alone has no label.
        self.pointer(self.labels.get(number).copied().unwrap_or(HEADER));
    }

    /// Writes a pointer. Later offsets than 16,383 have none.
    fn pointer(&mut self, to: usize) {
        let to = if to < 0x4000 { to } else { HEADER } as u16;
        self.bytes.extend((0xc000 | to).to_be_bytes());
    }
}
