//! What is kept of replies, and for how long: answers while their TTL lasts, negative ones as RFC 2308 section 5 says, failures
//! for seconds (RFC 9520 section 3.2). What has expired stays for when the upstreams fail (RFC 8767).
//!
//! A message is kept under the question that it answers, as it would be passed on, and is given for no other question: what a
//! reply says of other names never becomes data of those names.

use crate::answer::builder::{self as answer, Asker, Passed, RequestorEdns};
use crate::base::name_hash::HashKey;
use crate::base::slab::{Index, NONE};
use crate::base::time::{Instant, Span};
use crate::cache::entry::{self, Body, CacheKey, Entry, EntryKind, FAILURE, Facts, NEGATIVE, SILENT};
use crate::client::waiter::Recalled;
use crate::counters::Counter;
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::limits::{CHAIN, KEPT_RECORDS, MESSAGE};
use crate::message::cname_chain::Chain;
use crate::settings::Caching;
use crate::upstream::groups::Servers;
use crate::upstream::in_flight::{Question, Wishes};
use crate::upstream::receive::{Outcome, is_bogus};
use wire::header::{self, Flags};
use wire::{Class, Message, Rcode, Record, Section, Type, ede};

/// How long a failure is kept at first (RFC 9520 section 3.2: at least 1 s).
const FAILURE_SECS: u64 = 1;
/// Failures in a row double that, so many times at most: 32 s.
const FAILURE_DOUBLINGS: u8 = 5;
/// A failure after so long without one is the first again.
const FAILURE_MEMORY: Span = Span::from_secs(60);
/// After a failure of an upstream, expired data are given without another try for so long (RFC 8767 section 5).
const PUT_OFF_FAILED: Span = Span::from_secs(30);
/// The same after silence: the server is found dead by then, or is asked again.
const PUT_OFF_SILENT: Span = Span::from_secs(1);

/// The key under which the reply to a question, or what is made of it, is kept.
#[inline]
pub(crate) fn key_of<'a>(
    hash: HashKey,
    servers: &Servers,
    question: &Question<'a>,
    qtype: Type,
    kind: EntryKind,
) -> CacheKey<'a> {
    let group = servers.group_number(question.name);
    let wishes = question.wishes.kept();
    let rest = u64::from(qtype.0)
        | u64::from(question.class.0) << 16
        | u64::from(wishes) << 32
        | (kind as u64) << 40
        | u64::from(group) << 48;
    let all = hash.hash_number(u128::from(rest) << 64 | u128::from(question.hash));
    CacheKey {
        hash: all & !0xffff_ffff | question.hash & 0xffff_ffff,
        name: question.name,
        qtype,
        class: question.class,
        wishes,
        kind,
        group,
    }
}

impl Engine {
    /// Whether the cache has to do with a question: class IN, and the client lets us ask others. What somebody
    /// keeps already is what RD=0 asks for, and that is not what we keep. Answers for client subnets are not kept: each
    /// would be one client's (RFC 7871 section 7.3.1 tells what a cache for them would have to do).
    #[inline]
    pub(crate) fn is_cacheable(&self, question: &Question<'_>) -> bool {
        let Question { class, wishes, subnet, .. } = question;
        !self.cache.is_off()
            && *class == Class::IN
            && wishes.has(Wishes::RD)
            && !wishes.has(Wishes::PROBE)
            && subnet.is_none()
    }

    /// A flight is over: what it brought is kept, and its clients get it, or something older that is better.
    pub(crate) fn finish(
        &mut self,
        index: Index,
        reply: Option<&Message<'_>>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let flight = &self.flights.slab[index];
        // After a reload its name may belong to other upstreams, for whom the former ones do not speak.
        let is_private = flight.is_private && flight.wishes.has(Wishes::DO);
        if is_private
            || !self.is_cacheable(&flight.question())
            || flight.group != self.servers.group_number(flight.name())
        {
            return self.settle_with(index, reply, now, out);
        }
        let Some(message) = reply.filter(|message| !is_failure(message)) else {
            return self.finish_failed(index, reply, now, out);
        };
        if self.settings.cache.is_out_of_range(message) {
            return self.finish_clamped(index, message, now, out);
        }
        let chain = Chain::follow(message);
        self.remember(index, message, &chain, now);
        self.settle(index, &Outcome::Reply(message, &chain), now, out);
    }

    /// The same for a flight that nobody answered, or whose answer is a failure.
    fn finish_failed(
        &mut self,
        index: Index,
        reply: Option<&Message<'_>>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        // An answer that was found bogus is an answer: older data would paper over it.
        if !reply.is_some_and(is_bogus) {
            let put_off = if reply.is_some() { PUT_OFF_FAILED } else { PUT_OFF_SILENT };
            if self.settle_stale(index, put_off, now, out) {
                return;
            }
        }
        self.remember_failure(index, reply, now);
        self.settle_with(index, reply, now, out);
    }

    fn settle_with(
        &mut self,
        index: Index,
        reply: Option<&Message<'_>>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        match reply {
            None => self.settle(index, &Outcome::Failed, now, out),
            Some(message) => {
                let chain = Chain::follow(message);
                self.settle(index, &Outcome::Reply(message, &chain), now, out);
            }
        }
    }

    /// The same with a reply whose TTLs are beyond what the configuration allows.
    fn finish_clamped(&mut self, index: Index, message: &Message<'_>, now: Instant, out: &mut impl Outbox) {
        let mut frame = self.frame();
        let bytes = &mut frame[..message.bytes().len()];
        bytes.copy_from_slice(message.bytes());
        self.settings.cache.clamp(message, bytes);
        if let Ok(clamped) = Message::parse(&frame[..message.bytes().len()]) {
            let chain = Chain::follow(&clamped);
            self.remember(index, &clamped, &chain, now);
            self.settle(index, &Outcome::Reply(&clamped, &chain), now, out);
        } else {
            // A name ran through a TTL. The wait goes on, as after any malformed reply.
            self.counters.count(Counter::DroppedMalformedReply);
        }
        self.frames.push(frame);
    }

    /// A frame of our own; it is given back with `frames.push`.
    #[inline]
    pub(crate) fn frame(&mut self) -> Box<[u8]> {
        self.frames.pop().unwrap_or_else(|| vec![0; MESSAGE].into())
    }

    /// Keeps an answer, if it may be kept.
    fn remember(&mut self, index: Index, message: &Message<'_>, chain: &Chain<'_>, now: Instant) {
        let lifetime = lifetime(message, chain, &self.settings.cache);
        let Some((lifetime_secs, is_negative)) = lifetime.filter(|_| !self.flights.is_outrun(index)) else {
            // RFC 8767 section 4: it has refreshed what was kept, though it is not kept itself.
            return self.outdate(index);
        };
        let facts = Facts {
            stored: now,
            expires: now + Span::from_secs(u64::from(lifetime_secs)),
            born: now,
            marks: if is_negative { NEGATIVE } else { 0 },
            approved: 0,
            approved64: 0,
            ede: answer::told(message),
            reason: 0,
            failures: 0,
        };
        self.keep(index, message, chain, &facts, now);
    }

    /// Keeps a reply as it would be passed on to somebody without bounds: without OPT, and without what is off the chain.
    /// AD is what the upstream said; whether it is believed is decided when it is used.
    fn keep(&mut self, index: Index, message: &Message<'_>, chain: &Chain<'_>, facts: &Facts, now: Instant) {
        let wishes = self.flights.slab[index].wishes;
        let asker = Asker { flags: Flags::AD, ..nobody(wishes, message.question()) };
        let passed = Passed { message, chain, trusted: true, exclude: None, before: &[] };
        if let Some(end) = answer::verbatim_end(&asker, &passed)
            && let Some(mut body) = Body::of(&message.bytes()[..end])
        {
            let secure = message.flags().contains(Flags::AD);
            header::set_flags(&mut body.header, asker.flags(message.rcode(), secure));
            let others = message.count(Section::Additional) - usize::from(message.opt_start().is_some());
            header::set_arcount(&mut body.header, others as u16);
            return self.keep_as(index, message, body, facts, now);
        }
        let mut frame = self.frame();
        let written = answer::pass(&mut frame, &asker, &passed);
        if !written.truncated
            && written.rcode == message.rcode()
            && let Ok(written) = Message::parse(&frame[..written.len])
            && let Some(body) = without_opt(&written)
        {
            self.keep_as(index, &written, body, facts, now);
        } else {
            self.outdate(index);
        }
        self.frames.push(frame);
    }

    /// What is kept of a flight's question is no longer so, and what was made of it neither.
    fn outdate(&mut self, index: Index) {
        let Engine { cache, flights, servers, key, .. } = self;
        let question = flights.slab[index].question();
        cache.remove(&key_of(*key, servers, &question, question.qtype, EntryKind::Reply));
        if matches!(question.qtype, Type::A | Type::AAAA) {
            cache.remove(&key_of(*key, servers, &question, Type::AAAA, EntryKind::Synthesis));
        }
    }

    /// Keeps a message whose records stand as in another one, but for OPT.
    fn keep_as(&mut self, index: Index, records: &Message<'_>, body: Body<'_>, facts: &Facts, now: Instant) {
        if records.points_behind_question() && !self.is_ageless(records) {
            return self.outdate(index);
        }
        let Engine { cache, flights, servers, key, .. } = self;
        let question = flights.slab[index].question();
        let leg = key_of(*key, servers, &question, question.qtype, EntryKind::Reply);
        put(cache, now, &leg, facts, records, body);
        // What was made of an older one, though that be gone, is not what would be made of this one.
        if facts.marks & FAILURE == 0 && matches!(question.qtype, Type::A | Type::AAAA) {
            cache.remove(&key_of(*key, servers, &question, Type::AAAA, EntryKind::Synthesis));
        }
    }

    /// Whether a message stays well formed when its TTLs count down. A pointer may lead anywhere before it, and whoever made
    /// the message may have had a name run through a TTL.
    fn is_ageless(&mut self, message: &Message<'_>) -> bool {
        let mut frame = self.frame();
        let copy = &mut frame[..message.end()];
        copy.copy_from_slice(&message.bytes()[..message.end()]);
        for section in [Section::Answer, Section::Authority, Section::Additional] {
            for record in message.records(section).filter(|record| record.rtype != Type::OPT) {
                // The length of no label, and no pointer.
                copy[record.ttl_start()..record.ttl_start() + 4].fill(0x80);
            }
        }
        let is_ageless = Message::parse(copy).is_ok();
        self.frames.push(frame);
        is_ageless
    }

    /// Keeps that a question failed, so that it is not asked again at once. What is known and has not expired stays.
    fn remember_failure(&mut self, index: Index, reply: Option<&Message<'_>>, now: Instant) {
        if self.flights.is_outrun(index) {
            return;
        }
        let Engine { cache, flights, servers, key, .. } = self;
        let question = flights.slab[index].question();
        let leg = key_of(*key, servers, &question, question.qtype, EntryKind::Reply);
        let mut failures = 0;
        if let Some(place) = cache.find(&leg) {
            let entry = cache.entry(place);
            if !entry.is(FAILURE) && entry.expires() > now {
                return;
            }
            if entry.is(FAILURE) && entry.expires() + FAILURE_MEMORY > now {
                failures = entry.failures();
            }
        }
        // Silence is the upstream's, not the name's: its return shall be noticed at once.
        let doublings = if reply.is_some() { failures.min(FAILURE_DOUBLINGS) } else { 0 };
        let facts = Facts {
            stored: now,
            expires: now + Span::from_secs(FAILURE_SECS << doublings),
            born: now,
            marks: NEGATIVE | FAILURE | if reply.is_some() { 0 } else { SILENT },
            approved: 0,
            approved64: 0,
            ede: reply.and_then(reason),
            reason: 0,
            failures: failures.saturating_add(1),
        };
        match reply {
            Some(message) if message.rcode().0 <= 15 => {
                self.keep(index, message, &Chain::follow(message), &facts, now);
            }
            // An extended RCODE says something of this one exchange.
            Some(_) => {}
            None => {
                let mut bytes = [0; wire::HEADER + crate::client::waiter::QUESTION];
                let end = wire::HEADER + question.name.len();
                bytes[wire::HEADER..end].copy_from_slice(question.name);
                bytes[end..end + 2].copy_from_slice(&question.qtype.0.to_be_bytes());
                bytes[end + 2..end + 4].copy_from_slice(&question.class.0.to_be_bytes());
                header::set_qdcount(&mut bytes, 1);
                if let Some(body) = Body::of(&bytes[..end + 4]) {
                    cache.put(now, &leg, &facts, &[], body);
                }
            }
        }
    }

    /// The failure of a client's AAAA leg was found to mean that the answer is bogus: whoever asks soon is told so.
    pub(crate) fn remember_bogus(&mut self, waiter: Index) {
        let Engine { cache, waiters, servers, key, .. } = self;
        let state = &waiters[waiter];
        if state.chain != NONE {
            return;
        }
        let question = state.as_question();
        let leg = key_of(*key, servers, &question, Type::AAAA, EntryKind::Reply);
        if let Some(place) = cache.find(&leg)
            && cache.entry(place).is(FAILURE)
        {
            entry::set_ede(cache.entry_mut(place), ede::DNSSEC_BOGUS);
        }
    }

    /// Ends a failed flight with data that have expired (RFC 8767). False: there are none.
    fn settle_stale(&mut self, index: Index, put_off: Span, now: Instant, out: &mut impl Outbox) -> bool {
        let Engine { cache, flights, servers, key, settings, waiters, .. } = self;
        let question = flights.slab[index].question();
        let leg = key_of(*key, servers, &question, question.qtype, EntryKind::Reply);
        let Some(place) = cache.find(&leg) else { return false };
        let entry = cache.entry(place);
        if entry.is(FAILURE) || entry.expires() + settings.cache.stale <= now {
            return false;
        }
        let is_fresh = entry.expires() > now;
        // That a refresh failed puts nothing off: it was one try, for nobody, and a client's question makes all of them.
        if !is_fresh {
            entry::put_off(cache.entry_mut(place), now + put_off);
        }
        let mut waiter = flights.slab[index].waiters;
        while waiter != NONE && !is_fresh {
            waiters[waiter].recalled = Recalled::Stale;
            waiter = waiters[waiter].next;
        }
        let mut frame = self.frame();
        let entry = self.cache.entry(place);
        let length = if is_fresh {
            // A refresh failed, and what it was to replace is still good.
            materialize(&entry, &mut frame, Age::of(&entry, now), entry.ede())
        } else {
            materialize(&entry, &mut frame, Age::Stale, Some(stale_reason(&entry)))
        };
        let parsed = Message::parse(&frame[..length]);
        if let Ok(message) = &parsed {
            self.settle_with(index, Some(message), now, out);
        }
        let settled = parsed.is_ok();
        self.frames.push(frame);
        settled
    }
}

/// Who takes everything that the bits of a question let through, in a message of any size.
pub(crate) fn nobody(wishes: Wishes, question: &[u8]) -> Asker<'_> {
    let edns = wishes.has(Wishes::DO).then_some(RequestorEdns { size: 0, dnssec_ok: true });
    Asker {
        id: 0,
        flags: Flags(0),
        question,
        edns,
        limit: MESSAGE,
        own_size: 0,
        subnet: None,
        scope: 0,
        cookie: None,
    }
}

/// A message that we wrote, without its OPT record, which is the last one.
pub(crate) fn without_opt<'a>(message: &Message<'a>) -> Option<Body<'a>> {
    let mut body = Body::of(&message.bytes()[..message.opt_start().unwrap_or(message.end())])?;
    if message.opt_start().is_some() {
        let others = header::arcount(&body.header);
        header::set_arcount(&mut body.header, others - 1);
    }
    Some(body)
}

/// Keeps a message with the places of its TTLs, which are those in `records`.
pub(crate) fn put(
    cache: &mut crate::cache::Cache,
    now: Instant,
    key: &CacheKey<'_>,
    facts: &Facts,
    records: &Message<'_>,
    body: Body<'_>,
) {
    let mut ttls = [0u16; KEPT_RECORDS];
    let mut count = 0;
    for section in [Section::Answer, Section::Authority, Section::Additional] {
        for record in records.records(section).filter(|record| record.rtype != Type::OPT) {
            let Some(place) = ttls.get_mut(count) else {
                cache.remove(key);
                return;
            };
            *place = record.ttl_start() as u16;
            count += 1;
        }
    }
    cache.put(now, key, facts, &ttls[..count], body);
}

/// The extended error to keep: that the answer is bogus before anything else, as this decides what is made of it.
fn reason(message: &Message<'_>) -> Option<u16> {
    let opt = message.opt()?;
    let bogus = opt.ede().map(|(code, _)| code).find(|&code| ede::is_bogus(code));
    bogus.or_else(|| opt.ede().next().map(|(code, _)| code))
}

/// Whether a reply says that something failed. Every RCODE but 0 and 3 does.
fn is_failure(message: &&Message<'_>) -> bool {
    !matches!(message.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN)
}

/// How long an answer may be kept, in seconds, and whether it says that there is nothing. None: not at all.
fn lifetime(message: &Message<'_>, chain: &Chain<'_>, caching: &Caching) -> Option<(u32, bool)> {
    let (mut ttl, mut is_answered) = (u32::MAX, false);
    for record in message.records(Section::Answer).filter(|record| chain.keeps(record)) {
        ttl = ttl.min(record.ttl);
        is_answered |= message.qtype() == Type::ANY || chain.ends_in(&record, message.qtype());
    }
    if !is_answered || message.rcode() != Rcode::NOERROR {
        ttl = match negative_ttl(message, chain) {
            // RFC 2308 section 5: the smaller of the SOA's TTL and its MINIMUM.
            Some(negative) => ttl.min(negative).min(caching.max_negative_ttl_secs),
            // An alias that the upstream did not follow.
            None if chain.is_alias() && message.rcode() == Rcode::NOERROR => ttl,
            // RFC 2308 section 5: without SOA it is not kept.
            None => return None,
        };
    }
    let ttl = ttl.clamp(caching.min_ttl_secs, caching.max_ttl_secs.max(caching.min_ttl_secs));
    (ttl > 0).then_some((ttl, !is_answered))
}

/// The TTL that a negative answer gives to what is made in its place: the smaller of the SOA's TTL and its MINIMUM (RFC 2308
/// section 5). None: there is no SOA.
//= RFC 6147 section 5.1.7: requirement 13
pub(crate) fn negative_ttl(message: &Message<'_>, chain: &Chain<'_>) -> Option<u32> {
    soa_of(message, chain).map(|(ttl, minimum)| minimum.min(ttl))
}

/// TTL and MINIMUM of the SOA that a negative answer has: that of a zone which can hold a name of the chain. Of another zone
/// it says nothing about them (RFC 6147 section 5.1.7: "the SOA RR for the queried domain").
#[inline]
pub(crate) fn soa_of(message: &Message<'_>, chain: &Chain<'_>) -> Option<(u32, u32)> {
    message
        .records(Section::Authority)
        .filter(|record| record.rtype == Type::SOA)
        // There is one, and perhaps one for each alias on the way: no more are worth the work.
        .take(CHAIN)
        .filter(|record| chain.is_below(&record.owner))
        .find_map(|record| record.soa_minimum().map(|minimum| (record.ttl, minimum)))
}

/// How the TTLs of a kept message are given.
#[derive(Clone, Copy)]
pub(crate) enum Age {
    /// Less by the seconds that have passed; that of a SOA record no more than so many seconds.
    Seconds(u32, u32),
    /// The message has expired.
    Stale,
}

impl Age {
    /// That of an entry that has not expired. The SOA record of a negative answer says how long this may be kept, so its
    /// TTL ends with it (RFC 2308 sections 5 and 6), though it was longer than MINIMUM or than is allowed here.
    #[inline]
    pub fn of(entry: &Entry<'_>, now: Instant) -> Age {
        let age = seconds(now - entry.stored());
        let rest = || seconds(entry.expires() - entry.stored()).saturating_sub(age);
        Age::Seconds(age, if entry.is(NEGATIVE) { rest() } else { u32::MAX })
    }
}

#[inline]
fn seconds(span: Span) -> u32 {
    (span.0 / 1_000_000_000).min(u64::from(u32::MAX)) as u32
}

/// The TTL of expired data (RFC 8767 section 4).
const STALE_TTL: u32 = 30;

/// Writes the TTLs of a kept message that was copied to a frame.
#[inline]
pub(crate) fn write_ttls(entry: &Entry<'_>, frame: &mut [u8], age: Age) {
    for at in entry.ttls() {
        // The TTL stands behind type and class.
        let record = at.checked_sub(4).and_then(|at| frame.get_mut(at..));
        if let Some([high, low, _, _, ttl @ ..]) = record.and_then(|rest| rest.first_chunk_mut::<8>()) {
            let rtype = Type(u16::from_be_bytes([*high, *low]));
            let given = match age {
                Age::Seconds(age, most) => {
                    let left = u32::from_be_bytes(*ttl).saturating_sub(age);
                    if rtype == Type::SOA { left.min(most) } else { left }
                }
                Age::Stale => STALE_TTL,
            };
            *ttl = given.to_be_bytes();
        }
    }
}

/// What a client is told of expired data (RFC 8914 sections 4.4 and 4.20).
pub(crate) fn stale_reason(entry: &Entry<'_>) -> u16 {
    let is_nxdomain = header::flags(entry.message()).rcode() == Rcode::NXDOMAIN;
    if is_nxdomain { ede::STALE_NXDOMAIN } else { ede::STALE }
}

/// Writes a kept message as an upstream would send it now. Returns its octets.
pub(crate) fn materialize(entry: &Entry<'_>, frame: &mut [u8], age: Age, reason: Option<u16>) -> usize {
    let message = entry.message();
    let length = message.len();
    frame[..length].copy_from_slice(message);
    write_ttls(entry, frame, age);
    if reason.is_none() {
        return length;
    }
    match wire::write_opt(&mut frame[length..], 512, 0, 0, false, reason) {
        Some(octets) => {
            let others = header::arcount(frame);
            header::set_arcount(frame, others + 1);
            length + octets
        }
        None => length,
    }
}

impl Caching {
    fn range(&self) -> core::ops::RangeInclusive<u32> {
        self.min_ttl_secs..=self.max_ttl_secs.max(self.min_ttl_secs)
    }

    /// Whether some TTL is smaller or larger than allowed, or stands for 0 with its highest bit set (RFC 2181 section 8):
    /// such a one would count down to years.
    fn is_out_of_range(&self, message: &Message<'_>) -> bool {
        let range = self.range();
        let is_negative = |record: &Record<'_>| message.bytes()[record.ttl_start()] & 0x80 != 0;
        let sections = [Section::Answer, Section::Authority, Section::Additional];
        sections.into_iter().any(|section| {
            let mut records = message.records(section).filter(|record| record.rtype != Type::OPT);
            records.any(|record| !range.contains(&record.ttl) || is_negative(&record))
        })
    }

    /// Brings all TTLs into the range, in a copy of the message.
    fn clamp(&self, message: &Message<'_>, copy: &mut [u8]) {
        let range = self.range();
        for section in [Section::Answer, Section::Authority, Section::Additional] {
            for record in message.records(section).filter(|record| record.rtype != Type::OPT) {
                let ttl = record.ttl.clamp(*range.start(), *range.end());
                copy[record.ttl_start()..record.ttl_start() + 4].copy_from_slice(&ttl.to_be_bytes());
            }
        }
    }
}
