//! Answers from the cache: a copy of the cached answer for a query, or a cached reply for a pending query.
//!
//! A query whose complete answer is cached gets a copy at once, and no pending query. Any other query becomes a pending query, and the cache gives
//! replies to its questions as an upstream does. Expired data are used when the upstreams fail (RFC 8767).

use crate::answer::builder::{Written, append_opt, write_unfit};
use crate::answer::fit::{Fit, fit, necessary_end};
use crate::answer::params::ResponseParams;
use crate::base::buffers::FramePool;
use crate::base::slab::{Index, NONE};
use crate::base::time::{Instant, Span};
use crate::cache::entry::{self, Entry, EntryKind, FAILURE, NEGATIVE, REFRESHED, SILENT};
use crate::cache::index::Place;
use crate::cache::store::MessageCache;
use crate::cache::ttl::{Age, is_due, stale_ede, write_cached_message, write_ttls};
use crate::client::Clients;
use crate::client::rate_limit::RateLimiter;
use crate::client::respond::{Responder, send};
use crate::context::Context;
use crate::counters::Counter;
use crate::dns64::config::Dns64;
use crate::dns64::decision::Stage;
use crate::dns64::embed::EmbeddingCounts;
use crate::dns64::gateways::Spread;
use crate::interface::{Client, Outbox};
use crate::message::question::{QueryFlags, Question};
use crate::needs::Needs;
use crate::reasons::CacheHit;
use crate::resolve::join;
use crate::resolve::progress::{Found, Progress};
use crate::resolve::steps::Origin;
use crate::resolve::write::{End, count_omitted, responder};
use crate::settings::Settings;
use crate::trace::{Subject, TraceEvent};
use crate::upstream::Upstream;
use crate::upstream::forward_zones::{ForwardZones, Unanswered};
use pref64::Pref64;
use wire::header::{self, Flags};
use wire::{Class, EdeCode, Rcode, Type};

/// Result of looking for the answer to a query in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheLookup {
    /// The client has its answer.
    Answered,
    /// The client has its answer, and the entry of this kind is to be refreshed.
    AnsweredAndDue(EntryKind),
    /// There is an entry, or there may be one, but it cannot be copied unchanged.
    Unfit,
    /// There is no entry for this question.
    Absent,
}

/// A query that no pending query waits for yet.
pub(crate) struct NewQuery<'q> {
    /// The client.
    pub(crate) from: &'q Client,
    /// How it is answered.
    pub(crate) params: &'q ResponseParams<'q>,
    /// Its question; the name may be the target of an alias of ours.
    pub(crate) question: Question<'q>,
    /// Its first stage.
    pub(crate) stage: Stage,
}

/// The parts that a query is answered from at once.
pub(crate) struct Copying<'e> {
    pub(crate) cache: &'e mut MessageCache,
    pub(crate) settings: &'e Settings,
    pub(crate) rate_limiter: &'e mut RateLimiter,
    pub(crate) servers: &'e ForwardZones,
    pub(crate) needs: Option<&'e mut Needs>,
}

impl Copying<'_> {
    /// Answers a query with a copy of its cached answer, if there is one.
    #[inline]
    pub(crate) fn answer(mut self, query: &NewQuery<'_>, cx: &mut Context<'_, impl Outbox>) -> CacheLookup {
        let NewQuery { from, question, stage, .. } = query;
        let Settings { local_data, rpz, dns64, .. } = self.settings;
        if !self.cache.is_cacheable(question)
            || local_data.has_name(question.name)
            // A complete answer is one that no rule of a response policy zone is for (`to_cache.rs`). One for the client remains.
            || rpz.of_client(from.address).is_some()
        {
            return CacheLookup::Unfit;
        }
        let has_dns64 = *stage != Stage::Direct;
        // A rule may depend on the client.
        if has_dns64 && !has_no_rule(dns64, from, question.name) {
            return CacheLookup::Unfit;
        }
        if has_dns64 && dns64.gateways.is_some() {
            return self.answer_with_gateways(query, cx);
        }
        let kinds: &[EntryKind] =
            if has_dns64 { &[EntryKind::Synthesis, EntryKind::Reply] } else { &[EntryKind::Reply] };
        let mut found = CacheLookup::Absent;
        // A loop, so that the copy is inlined: a function of its own would read the question from memory, where it was written just
        // before in other pieces, and would have to wait for that.
        for &kind in kinds {
            found = self.copy::<false>(query, kind, cx);
            if matches!(found, CacheLookup::Answered | CacheLookup::AnsweredAndDue(_)) {
                break;
            }
        }
        found
    }

    /// Copies the synthesis with the prefixes that the client gets, or else the reply.
    #[inline(never)]
    fn answer_with_gateways(
        mut self,
        query: &NewQuery<'_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> CacheLookup {
        let mut found = CacheLookup::Absent;
        for kind in [EntryKind::Synthesis, EntryKind::Reply] {
            found = self.copy::<true>(query, kind, cx);
            if matches!(found, CacheLookup::Answered | CacheLookup::AnsweredAndDue(_)) {
                break;
            }
        }
        found
    }

    /// Copies the entry of a question to a client, or what of it fits, if it is the complete answer. `GATEWAYS`: gateways are known.
    #[inline(always)]
    fn copy<const GATEWAYS: bool>(
        &mut self,
        query: &NewQuery<'_>,
        kind: EntryKind,
        cx: &mut Context<'_, impl Outbox>,
    ) -> CacheLookup {
        let NewQuery { from, params, question, stage } = query;
        let (dns64, now) = (*stage != Stage::Direct, cx.now);
        let group = self.servers.group_number(question.forward_key());
        let key = self.cache.key(question, question.qtype, kind, group);
        let Some(place) = self.cache.entries.find(&key) else { return CacheLookup::Absent };
        let entry = self.cache.entries.entry(place);
        let octets = params.opt_octets(entry.ede());
        if !self.cache.is_valid(&entry, dns64, now) {
            return CacheLookup::Unfit;
        }
        let (mut prefixes, mut own_prefix) = (0, None);
        if GATEWAYS
            && kind == EntryKind::Synthesis
            && let Some(gateways) = &self.settings.dns64.gateways
        {
            prefixes = gateways.general(from.address);
            if prefixes == 0 {
                return CacheLookup::Unfit;
            }
            let place = prefixes.trailing_zeros() as usize;
            if gateways.table().spread == Spread::Client && place != entry.prefix() {
                let prefix = |place| self.settings.dns64.prefixes.get(place);
                let (Some(from), Some(to)) = (prefix(entry.prefix()), prefix(place)) else {
                    return CacheLookup::Unfit;
                };
                own_prefix = Some((from, to));
            }
        }
        let is_refreshed = self.settings.cache.prefetch && is_due(&entry, now);
        let trusted = self.settings.dns64.dnssec.trusts_ad();
        let reason = if dns64 { entry.reason() } else { None };
        let cache_hit = hit(&entry);
        cx.out.trace(Subject::Query, || TraceEvent::Cached(cache_hit));
        let responder = responder(self.settings, self.rate_limiter);
        let copied = CopiedEntry { entry: &entry, trusted, own_prefix, now };
        let message = entry.message();
        if message.len() + octets <= params.limit {
            let (end, additional) = (message.len(), header::arcount(message));
            send(responder, from, params, cx, |frame, params| {
                let written = copied.write(end, additional, frame, params);
                if GATEWAYS {
                    copied.write_own_prefix(end, frame);
                }
                written
            });
        } else {
            send_what_fits(&copied, responder, from, params, cx);
        }
        if GATEWAYS && prefixes != 0 {
            cx.counters.count_prefixes(prefixes, 1);
        }
        if let Some(reason) = reason {
            cx.counters.count(reason.counter());
            if reason.leaves_out() {
                self.count_omitted_again(place, cx);
            }
            if let Some(needs) = self.needs.as_deref_mut()
                && reason.is_synthesis()
            {
                needs.count(from, question.name, question.hash, now);
            }
        }
        cx.counters.count(cache_hit.counter());
        cx.counters.duration(Span::ZERO);
        entry::visit(self.cache.entries.entry_mut(place));
        if is_refreshed {
            entry::mark(self.cache.entries.entry_mut(place), REFRESHED);
            return CacheLookup::AnsweredAndDue(kind);
        }
        CacheLookup::Answered
    }

    /// Counts the addresses that a copy of a synthesis leaves out.
    #[cold]
    fn count_omitted_again(&self, place: Place, cx: &mut Context<'_, impl Outbox>) {
        let omitted = self.cache.entries.entry(place).omitted();
        count_omitted(cx.counters, &EmbeddingCounts::unpack_omitted(omitted));
    }
}

/// True if no rule applies to a client and a name.
#[inline]
pub(crate) fn has_no_rule(dns64: &Dns64, from: &Client, name: &[u8]) -> bool {
    let rules = &dns64.rules;
    rules.is_empty() || rules.of(from.address, name).is_empty()
}

/// The cache, and the parts that say what may be read from it and stored in it.
pub(crate) struct CacheParts<'e> {
    pub(crate) settings: &'e Settings,
    pub(crate) clients: &'e mut Clients,
    pub(crate) upstream: &'e mut Upstream,
    pub(crate) cache: &'e mut MessageCache,
    pub(crate) frames: &'e mut FramePool,
}

impl CacheParts<'_> {
    /// Finds the reply to a pending query's current question, if it may be used.
    pub(crate) fn look_up(self, pending: Index, cx: &mut Context<'_, impl Outbox>) -> Option<Progress> {
        let CacheParts { settings, clients, upstream, cache, frames } = self;
        let usable = find_usable(cache, clients, upstream, pending, cx.now)?;
        let Usable { place, is_stale } = usable;
        let entry = cache.entries.entry(place);
        let mut unfit = None;
        if is_stale {
            unfit = stale_unfit(cache, clients, settings, pending, place);
            if clients.pending_queries[pending].cache_hit != Some(CacheHit::Stale) {
                let one = Unanswered { expired: 1, ..Unanswered::default() };
                upstream.servers.count_unanswered(clients.current_question(pending).forward_key(), one);
            }
        }
        let state = &mut clients.pending_queries[pending];
        // The client response timer has expired: answer with stale data now, and refresh in the background.
        let is_asked = is_stale && state.client_timer_expired;
        let is_due = !is_stale && settings.cache.prefetch && is_due(&entry, cx.now);
        let hit = reply_hit(&entry, is_stale);
        if state.cache_hit != Some(CacheHit::Stale) {
            state.cache_hit = Some(hit);
        }
        cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::Cached(hit));
        let progress = match unfit {
            _ if entry.is(SILENT) => Progress::FoundSilence,
            Some((rcode, ede)) => Progress::Ends(End::Unfit(rcode, ede)),
            None => {
                let mut frame = frames.take();
                let length = write_usable(cache, usable, &mut frame, cx.now);
                Progress::Found(Found { frame, length, origin: Origin::Upstream })
            }
        };
        entry::visit(cache.entries.entry_mut(place));
        if is_due {
            entry::mark(cache.entries.entry_mut(place), REFRESHED);
        }
        let state = &clients.pending_queries[pending];
        let qtype = state.current_type();
        let is_refreshed = (is_due || is_asked)
            && state.chase == NONE
            && !settings.local_data.has_name(state.name())
            && upstream.outbound_queries.find(&clients.upstream_question(pending, qtype)).is_none();
        // No pending query is attached: the reply goes to the cache.
        if is_refreshed && join::ask(clients, upstream, pending, qtype, cx).is_some() && is_due {
            cx.counters.count(Counter::Refreshed);
        }
        Some(progress)
    }

    /// Refreshes a cached answer that was copied to a client: the reply itself, or both lookups of a synthesis.
    #[cold]
    pub(crate) fn refresh(self, question: &Question<'_>, kind: EntryKind, cx: &mut Context<'_, impl Outbox>) {
        let CacheParts { upstream, cache, .. } = self;
        let types: &[Type] =
            if kind == EntryKind::Synthesis { &[Type::AAAA, Type::A] } else { &[question.qtype] };
        let group = upstream.servers.group_number(question.forward_key());
        for &qtype in types {
            let question = Question { qtype, ..*question };
            let is_wanted = kind == EntryKind::Reply || cache.claim_refresh(&question, group, cx.now);
            if is_wanted && upstream.outbound_queries.find(&question).is_none() {
                cx.counters.count(Counter::Refreshed);
                let _ = upstream.launch(&question, cx);
            }
        }
    }
}

/// A cached reply that may be used for a pending query's current question.
#[derive(Clone, Copy)]
pub(crate) struct Usable {
    pub(crate) place: Place,
    /// True if it has expired.
    pub(crate) is_stale: bool,
}

/// Finds the cached reply to a pending query's current question: a fresh one, or expired data if they may be used now. Sets
/// `has_stale` of the pending query.
#[inline(always)]
fn find_usable(
    cache: &MessageCache,
    clients: &mut Clients,
    upstream: &mut Upstream,
    pending: Index,
    now: Instant,
) -> Option<Usable> {
    if cache.is_off() {
        return None;
    }
    let state = &clients.pending_queries[pending];
    let (qtype, class) = (state.current_type(), state.qtype_and_class().1);
    if class != Class::IN || !state.query_flags.has(QueryFlags::RD) || state.subnet.is_some() {
        return None;
    }
    let question = clients.upstream_question(pending, qtype);
    let found = cache.find_reply(&question, qtype, upstream.servers.group_number(question.forward_key()));
    let Some(place) = found else {
        clients.pending_queries[pending].has_stale = false;
        return None;
    };
    let entry = cache.entries.entry(place);
    let is_fresh = entry.expires() > now;
    let has_stale = !is_fresh && !entry.is(FAILURE) && entry.expires() + cache.stale() > now;
    // Expired data are used at once when an attempt has just failed, when the servers are dead or in slow start, or when the
    // client response timer has expired.
    let is_stale = has_stale
        && (entry.failure_recheck() > now
            || state.client_timer_expired
            || upstream.servers.is_dead(question.forward_key())
            || upstream.in_slow_start(question.forward_key(), now));
    clients.pending_queries[pending].has_stale = has_stale;
    (is_fresh || is_stale).then_some(Usable { place, is_stale })
}

/// Writes the message of a cached reply into a frame. Returns its octets.
pub(crate) fn write_usable(cache: &MessageCache, usable: Usable, frame: &mut [u8], now: Instant) -> usize {
    let entry = cache.entries.entry(usable.place);
    if usable.is_stale {
        return write_cached_message(&entry, frame, Age::Stale, Some(stale_ede(&entry)));
    }
    let ede = if entry.is(FAILURE) { Some(cache.failure_ede(&entry)) } else { entry.ede() };
    write_cached_message(&entry, frame, Age::of(&entry, now), ede)
}

/// The kind of a cached reply.
fn reply_hit(entry: &Entry<'_>, is_stale: bool) -> CacheHit {
    match () {
        () if is_stale => CacheHit::Stale,
        () if entry.is(FAILURE) => CacheHit::Failure,
        () if entry.is(NEGATIVE) => CacheHit::Negative,
        () => CacheHit::Positive,
    }
}

/// RCODE and extended DNS error of the truncated answer with an expired entry, if the entry was the complete answer to the pending query's
/// question and does not fit.
#[cold]
fn stale_unfit(
    cache: &MessageCache,
    clients: &Clients,
    settings: &Settings,
    pending: Index,
    place: Place,
) -> Option<(Rcode, Option<EdeCode>)> {
    let (state, entry) = (&clients.pending_queries[pending], cache.entries.entry(place));
    let is_answer = state.stage == Stage::Direct
        && state.chase == NONE
        && settings.rpz.of_client(state.client.address).is_none()
        && entry.valid_for() == cache.generation;
    let ede = Some(stale_ede(&entry));
    let params = state.params(settings.udp_size);
    let is_unfit = || {
        entry.message().len() + params.opt_octets(ede) > params.limit
            && what_fits(&entry, &params, ede) == Fit::Truncated
    };
    (is_answer && is_unfit()).then(|| (header::flags(entry.message()).rcode(), ede))
}

/// The kind of a complete answer, which is no failure.
fn hit(entry: &Entry<'_>) -> CacheHit {
    match entry.kind() {
        EntryKind::Synthesis => CacheHit::Synthesized,
        EntryKind::Reply if entry.is(NEGATIVE) => CacheHit::Negative,
        EntryKind::Reply => CacheHit::Positive,
    }
}

/// An entry that is copied to a client.
struct CopiedEntry<'e> {
    entry: &'e Entry<'e>,
    /// True if AD of the upstream counts.
    trusted: bool,
    /// The prefix of a synthesis, and that which the client gets, if they differ.
    own_prefix: Option<(&'e Pref64, &'e Pref64)>,
    now: Instant,
}

impl CopiedEntry<'_> {
    /// Writes the cached answer up to `end` after the requestor's question, with a new header, OPT record and TTLs. `additional`: its
    /// records in the additional section, without OPT.
    #[inline(always)]
    fn write(&self, end: usize, additional: u16, frame: &mut [u8], params: &ResponseParams<'_>) -> Written {
        let CopiedEntry { entry, trusted, now, .. } = *self;
        let message = entry.message();
        let question_end = wire::HEADER + params.question.len();
        let kept = header::flags(message);
        let rcode = kept.rcode();
        frame[wire::HEADER..question_end].copy_from_slice(params.question);
        frame[question_end..end].copy_from_slice(&message[question_end..end]);
        let secure = trusted && kept.contains(Flags::AD) && params.wants_ad();
        header::set_id(frame, params.id);
        header::set_flags(frame, params.flags(rcode, secure));
        frame[4..wire::HEADER].copy_from_slice(&message[4..wire::HEADER]);
        header::set_arcount(frame, additional + u16::from(params.edns.is_some()));
        // The TTLs behind the end, if there are any, are written over, or lie behind the answer.
        write_ttls(entry, frame, Age::of(entry, now));
        let mut len = end;
        if params.edns.is_some() {
            len += append_opt(&mut frame[end..], params, rcode, entry.ede());
        }
        Written { len, rcode, truncated: false, ede: params.edns.and(entry.ede()), ede_text: 0 }
    }

    /// Moves the addresses of a synthesis under the prefix of the client, in the answer section up to `end`.
    fn write_own_prefix(&self, end: usize, frame: &mut [u8]) {
        let Some((from, to)) = self.own_prefix else { return };
        let answers = usize::from(header::ancount(self.entry.message()));
        for at in self.entry.ttls().take(answers).filter(|at| at + AAAA_BEHIND_TTL <= end) {
            // Type and class stand before the TTL, the length and the address behind it.
            let record = at.checked_sub(4).and_then(|at| frame.get_mut(at..));
            if let Some([0, 28, _, _, _, _, _, _, 0, 16, address @ ..]) =
                record.and_then(|rest| rest.first_chunk_mut::<26>())
                && let Some(ipv4) = from.extract(*address)
            {
                *address = to.embed(ipv4);
            }
        }
    }
}

/// Octets of an AAAA record from its TTL on: the TTL, the length, the address.
const AAAA_BEHIND_TTL: usize = 4 + 2 + 16;

/// Sends what fits of an entry that is longer than the requestor takes. The cost does not depend on the records of the answer and
/// authority sections.
#[cold]
#[inline(never)]
fn send_what_fits(
    copied: &CopiedEntry<'_>,
    responder: Responder<'_>,
    from: &Client,
    params: &ResponseParams<'_>,
    cx: &mut Context<'_, impl Outbox>,
) {
    let entry = copied.entry;
    send(responder, from, params, cx, |frame, params| match what_fits(entry, params, entry.ede()) {
        Fit::UpTo { end, additional } => {
            let written = copied.write(end, additional, frame, params);
            copied.write_own_prefix(end, frame);
            written
        }
        Fit::Truncated => write_unfit(frame, params, header::flags(entry.message()).rcode(), entry.ede()),
    });
}

/// What fits of an entry that is longer than the requestor takes. `ede`: extended DNS error of the answer.
fn what_fits(entry: &Entry<'_>, params: &ResponseParams<'_>, ede: Option<EdeCode>) -> Fit {
    let room = params.limit.saturating_sub(params.opt_octets(ede));
    fit(entry.message(), necessary_end(entry.message(), entry.ttls()), room)
}
