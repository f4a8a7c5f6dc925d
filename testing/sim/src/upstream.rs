//! Upstream servers: the reply of a server in its present mood, and what the network makes of the reply.

use crate::ground_truth::{A, AAAA, Bits, GroundTruth, MILLI, Said, TXT};
use crate::message::{self, ExtraRecords, question_section};
use crate::network_faults::{LATE, Mood, NetworkFaults};
use crate::outbox::SentQuery;
use crate::rng::Rng;
use crate::timeline::Key;
use core::time::Duration;
use netem::Direction;
use std::rc::Rc;

/// A message or a failure that arrives at the engine's end of a link.
#[derive(Debug)]
pub enum Arrival {
    /// A message.
    Message {
        /// Octets.
        bytes: Vec<u8>,
        /// Question and content, if it is a reply that the engine has to accept.
        said: Option<(Key, Rc<Said>)>,
        /// The query had no OPT record, so it does not show whether the client wanted signatures.
        to_query_without_opt: bool,
    },
    /// An ICMP error, or the end of a connection.
    Failure,
}

/// Everything that arrives in return for one query.
#[derive(Debug, Default)]
pub struct Delivery {
    /// The arrivals, each with its delay in nanoseconds.
    pub arrivals: Vec<(u64, Arrival)>,
    /// True unless the query is answered in time and without an error.
    pub is_trouble: bool,
    /// True if the question comes back in another letter case.
    pub changes_letters: bool,
    /// Word for the trace.
    pub mood: &'static str,
}

/// The question of an upstream query, with its flags; none: a probe.
pub fn question_key(ground_truth: &GroundTruth, query: &[u8]) -> Option<Key> {
    let question = question_section(query);
    let (name, rest) = question.split_at(question.len() - 4);
    let name = ground_truth.find(&name.to_ascii_lowercase())?;
    let flags = u16::from_be_bytes([query[2], query[3]]);
    let opt = message::QUESTION_OFFSET + question.len();
    // The OPT record is the last one: root, type, size, extended RCODE, version, flags.
    let dnssec_ok = query.get(opt + 7).is_some_and(|flags| flags & 0x80 != 0);
    Some(Key {
        name,
        rtype: u16::from_be_bytes([rest[0], rest[1]]),
        bits: Bits { rd: flags & 0x0100 != 0, cd: flags & 0x0010 != 0, ad: flags & 0x0020 != 0, dnssec_ok },
    })
}

/// True if a query has no OPT record.
pub fn has_no_opt(query: &[u8]) -> bool {
    query[11] == 0
}

/// The network between an upstream and the engine, as far as it carries messages.
pub struct Path<'a> {
    /// State of the network, and moods of the upstreams.
    pub network_faults: &'a NetworkFaults,
    /// Line from the upstream, for messages over UDP. It carries one message at a time, so none is under way.
    pub line: &'a mut Direction,
    /// Number of the upstream.
    pub server: usize,
    /// Message IDs of the queries that repeat each other, octet for octet but for the ID.
    pub ids: &'a [u16],
}

impl Path<'_> {
    /// Times from a query to the arrivals of its reply, nanoseconds: none, one or two.
    fn carry(&mut self, reply: &[u8], over_udp: bool, slow: u64, now: u64, rng: &mut Rng) -> Vec<u64> {
        let late = slow + self.network_faults.late_by(rng);
        if !over_udp {
            return vec![late + self.network_faults.delay_over_tcp(rng)];
        }
        let mut arrivals = Vec::with_capacity(2);
        self.line.offer(Duration::from_nanos(now), reply);
        while let Some(due) = self.line.next_due() {
            self.line.take_due(due, |_, _| arrivals.push(late + (due.as_nanos() as u64).saturating_sub(now)));
        }
        arrivals
    }
}

/// Draws everything that arrives in return for a query to an upstream.
pub fn deliver(
    ground_truth: &GroundTruth,
    path: &mut Path<'_>,
    query: &SentQuery,
    now: u64,
    rng: &mut Rng,
) -> Delivery {
    let mut delivery = Delivery::default();
    let mood = draw_mood(path.network_faults.moods[path.server], rng);
    let slow = if mood == Mood::Slow { rng.exponential(300 * MILLI) } else { 0 };
    let lost = || Delivery { is_trouble: true, mood: "lost", ..Delivery::default() };
    if path.network_faults.cut[path.server] || mood == Mood::Blackhole {
        return lost();
    }
    let has_no_tcp = matches!(mood, Mood::Closes | Mood::LowercaseWithoutTcp | Mood::OldCookieWithoutTcp);
    if mood == Mood::Unreachable || has_no_tcp && !query.over_udp {
        let delay = slow + path.network_faults.delay_over_tcp(rng);
        delivery.arrivals.push((delay, Arrival::Failure));
        return Delivery { is_trouble: true, mood: "link fails", ..delivery };
    }
    let key = question_key(ground_truth, &query.bytes);
    let mut reply = Reply::new(ground_truth, query, key, now, rng);
    reply.apply_mood(ground_truth, query, key, mood, rng);
    let mut bytes = reply.write(ground_truth, query, rng);
    if mood == Mood::Garbage {
        (reply.is_fit, reply.is_doubtful) = (false, false);
        truncate_to_garbage(&mut bytes, query.over_udp, rng);
    }
    if query.over_udp && rng.permille(path.network_faults.damage) {
        let (intact, was_fit) = (bytes.clone(), (reply.is_fit, reply.is_doubtful));
        damage(&mut bytes, reply.section.len(), rng);
        // Another letter case is no fault to an engine that does not compare it: it has learned that this upstream changes letters.
        let is_other_case = bytes.get(..12) == intact.get(..12) && bytes.eq_ignore_ascii_case(&intact);
        (reply.is_fit, reply.is_doubtful) = (false, is_other_case && (was_fit.0 || was_fit.1));
        // By chance a damaged ID is that of another attempt.
        let is_id_of_try = |octets: &[u8]| path.ids.iter().any(|id| octets.starts_with(&id.to_be_bytes()));
        if bytes.get(2..) == intact.get(2..) && is_id_of_try(&bytes) {
            bytes = intact;
            (reply.is_fit, reply.is_doubtful) = was_fit;
        }
    }
    let Reply { said, is_fit, is_doubtful, has_opt, .. } = reply;
    let question = question_section(&query.bytes);
    delivery.changes_letters = bytes.get(12..12 + question.len()).is_some_and(|section| section != question);
    let delays = path.carry(&bytes, query.over_udp, slow, now, rng);
    let Some(&delay) = delays.iter().min() else { return lost() };
    // A truncated reply over UDP is asked for again over TCP. A truncated reply over TCP is a failure.
    let is_truncated = said.cut && query.over_udp;
    let is_fine = mood == Mood::Good || mood == Mood::Liar || is_truncated;
    delivery.is_trouble =
        !is_fit || delay > LATE || said.is_failure() || !is_fine || said.cut && !query.over_udp;
    delivery.mood = if is_truncated { "truncated" } else { "answered" };
    let to_query_without_opt = has_no_opt(&query.bytes);
    let mut effective = said.effective(query.over_udp, query_flags(query) & 0x0100 != 0);
    if !has_opt {
        // Extended errors are options.
        effective.ede = None;
    }
    let said = key.filter(|_| (is_fit || is_doubtful) && !is_truncated).map(|key| (key, Rc::new(effective)));
    let message =
        |delay| (delay, Arrival::Message { bytes: bytes.clone(), said: said.clone(), to_query_without_opt });
    delivery.arrivals.extend(delays.into_iter().map(message));
    delivery
}

/// The mood for one query: an upstream of mixed mood draws a new one for each.
fn draw_mood(mood: Mood, rng: &mut Rng) -> Mood {
    if mood != Mood::Mad {
        return mood;
    }
    *rng.choose(&[
        Mood::Good,
        Mood::Slow,
        Mood::Error(2),
        Mood::Lame,
        Mood::Garbage,
        Mood::Liar,
        Mood::Closes,
        Mood::TruncationLoop,
    ])
}

fn query_flags(query: &SentQuery) -> u16 {
    u16::from_be_bytes([query.bytes[2], query.bytes[3]])
}

/// A reply before it is written.
struct Reply {
    said: Said,
    /// Question section of the reply.
    section: Vec<u8>,
    extra: ExtraRecords,
    has_opt: bool,
    /// Client cookie that it returns.
    cookie: Option<[u8; 8]>,
    /// The reply fits its query, so the engine has to accept it.
    is_fit: bool,
    /// It fits but for the letter case or the cookie: the engine may believe it if others say the same.
    is_doubtful: bool,
}

impl Reply {
    /// The true reply to a query.
    fn new(
        ground_truth: &GroundTruth,
        query: &SentQuery,
        key: Option<Key>,
        now: u64,
        rng: &mut Rng,
    ) -> Reply {
        let said = match key {
            Some(key) => ground_truth.reply_to(key.name, key.rtype, now, key.bits),
            None => Said::default(),
        };
        let extra =
            ExtraRecords { off_chain: false, additional: rng.permille(50), reversed: rng.permille(100) };
        let section = question_section(&query.bytes).to_vec();
        Reply { said, section, extra, has_opt: true, cookie: None, is_fit: true, is_doubtful: false }
    }

    /// Changes the true reply into that of an upstream in this mood.
    fn apply_mood(
        &mut self,
        ground_truth: &GroundTruth,
        query: &SentQuery,
        key: Option<Key>,
        mood: Mood,
        rng: &mut Rng,
    ) {
        let is_aaaa = key.is_some_and(|key| key.rtype == AAAA);
        let error = |rcode: u8, ede: Option<u16>| Said { rcode, ede, ..Said::default() };
        match mood {
            Mood::Error(rcode) => self.said = error(rcode, *rng.choose(&[None, None, Some(22)])),
            Mood::AaaaError(rcode) if is_aaaa => self.said = error(rcode, None),
            Mood::NoEdns => {
                self.has_opt = false;
                // It understands queries without an OPT record.
                if !has_no_opt(&query.bytes) {
                    self.said = error(1, None);
                }
            }
            Mood::Lame => self.said = Said { lame: true, ..Said::default() },
            Mood::TruncationLoop => self.said = Said { cut: true, ..Said::default() },
            Mood::Truncates if query.over_udp => self.said.cut = true,
            Mood::WrongQuestion => self.change_question(ground_truth, query, rng),
            Mood::Liar => {
                self.extra.off_chain = matches!(key, Some(key) if key.rtype == A || key.rtype == AAAA);
            }
            Mood::Lowercase | Mood::LowercaseWithoutTcp => {
                self.section.make_ascii_lowercase();
                // By chance the query may be in lower case.
                self.is_fit = !query.over_udp || self.section == question_section(&query.bytes);
                self.is_doubtful = !self.is_fit;
            }
            Mood::OldCookieWithoutTcp => {
                self.cookie = message::client_cookie(&query.bytes).map(message::former_cookie);
                // RFC 7873 section 5.3: a reply with another client cookie is discarded.
                (self.is_fit, self.is_doubtful) = (self.cookie.is_none(), self.cookie.is_some());
            }
            _ => {}
        }
    }

    /// Answers another question than the one of the query, with a marked address.
    fn change_question(&mut self, ground_truth: &GroundTruth, query: &SentQuery, rng: &mut Rng) {
        self.is_fit = false;
        let section = &mut self.section;
        if rng.permille(500) {
            let at = section.len() - 3;
            section[at] = if section[at] == A as u8 { AAAA as u8 } else { A as u8 };
        } else {
            *section = ground_truth.names[rng.below(ground_truth.names.len() as u64) as usize].wire.clone();
            section.extend([0, AAAA as u8, 0, 1]);
        }
        if section.eq_ignore_ascii_case(question_section(&query.bytes)) {
            // By chance it is the question of the query.
            let at = section.len() - 3;
            section[at] = TXT as u8;
        }
        self.said.v6 = vec![];
        self.said.v4 = vec![[message::MARK4[0], message::MARK4[1], message::MARK4[2], 9]];
        self.said.ttl = 60;
    }

    /// Writes the reply. Over UDP it is truncated to the size that the query allows.
    fn write(&mut self, ground_truth: &GroundTruth, query: &SentQuery, rng: &mut Rng) -> Vec<u8> {
        let id = u16::from_be_bytes([query.bytes[0], query.bytes[1]]);
        let flags = query_flags(query);
        let bytes = self.write_all(ground_truth, id, flags, self.extra, rng);
        let opt = message::QUESTION_OFFSET + question_section(&query.bytes).len();
        let size = query
            .bytes
            .get(opt + 3..opt + 5)
            .map_or(512, |two| usize::from(u16::from_be_bytes([two[0], two[1]])));
        if !query.over_udp || bytes.len() <= size {
            return bytes;
        }
        self.said = Said { cut: true, ..Said::default() };
        self.write_all(ground_truth, id, flags, ExtraRecords::default(), rng)
    }

    /// Writes the reply, however long it is.
    fn write_all(
        &self,
        ground_truth: &GroundTruth,
        id: u16,
        flags: u16,
        extra: ExtraRecords,
        rng: &mut Rng,
    ) -> Vec<u8> {
        let mut bytes = message::write_reply(
            ground_truth,
            &self.section,
            id,
            flags,
            &self.said,
            extra,
            self.has_opt,
            rng,
        );
        if let Some(client) = self.cookie.filter(|_| self.has_opt) {
            // An extended error has six octets.
            let opt = bytes.len() - if self.said.ede.is_some() { 17 } else { 11 };
            message::add_cookie(&mut bytes, opt, &client, b"formerly");
        }
        bytes
    }
}

/// Turns a message into garbage: truncates it behind the flags, so the ID may stay right.
fn truncate_to_garbage(bytes: &mut Vec<u8>, over_udp: bool, rng: &mut Rng) {
    for _ in 0..1 + rng.below(4) {
        let at = 4 + rng.below(bytes.len() as u64 - 4) as usize;
        bytes.truncate(at + 1);
        if bytes.len() <= 13 {
            break;
        }
    }
    if !over_udp {
        // Over TCP the octets are no message at all.
        *bytes = vec![0xff; bytes.len().max(1)];
    }
    // Truncated exactly where a message may end, the octets could be a valid message.
    bytes.pop();
}

/// Damages a message. A checksum protects the records, so only the parts that the engine must check are damaged.
fn damage(bytes: &mut Vec<u8>, question_len: usize, rng: &mut Rng) {
    match rng.below(4) {
        0 => bytes[rng.below(2) as usize] ^= 1 << rng.below(8),
        1 if !bytes.is_empty() => {
            let length = rng.below(bytes.len() as u64) as usize;
            bytes.truncate(length);
        }
        2 if bytes.len() > 12 + question_len => {
            let at = 12 + rng.below(question_len as u64 - 2) as usize;
            bytes[at] ^= 1 << rng.below(8);
        }
        _ if bytes.len() > 3 => bytes[2] &= 0x7f,
        _ => {}
    }
}
