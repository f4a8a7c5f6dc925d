//! Answers from the cache: a copy of the cached answer for a query, or a cached reply for a pending query.
//!
//! A query whose complete answer is cached gets a copy at once, and no pending query. Any other query becomes a pending query, and the cache gives
//! replies to its questions as an upstream does. Expired data are used when the upstreams fail (RFC 8767).

use crate::answer::builder::{Written, append_opt, write_unfit};
use crate::answer::fit::{Fit, fit, necessary_end};
use crate::answer::params::ResponseParams;
use crate::base::slab::{Index, NONE};
use crate::base::time::{Instant, Span};
use crate::cache::entry::{self, Entry, EntryKind, FAILURE, NEGATIVE, REFRESHED, SILENT};
use crate::cache::index::Place;
use crate::cache::ttl::{Age, is_due, stale_ede, write_cached_message, write_ttls};
use crate::client::Clients;
use crate::client::respond::{ResponseContext, send};
use crate::dns64::config::Dnssec;
use crate::dns64::decision::Stage;
use crate::dns64::embed::EmbeddingCounts;
use crate::engine::Engine;
use crate::interface::{Client, Outbox};
use crate::message::cname_chain::Chain;
use crate::message::question::{QueryFlags, Question};
use crate::message::reply::Outcome;
use crate::reasons::CacheHit;
use crate::settings::Settings;
use crate::trace::{Subject, TraceEvent};
use crate::upstream::forward_zones::Unanswered;
use wire::header::{self, Flags};
use wire::{Class, EdeCode, Message, Rcode, ede};

/// Result of looking for the answer to a query in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheLookup {
    /// The client has its answer.
    Answered,
    /// There is an entry, or there may be one, but it cannot be copied unchanged.
    Unfit,
    /// There is no entry for this question.
    Absent,
}

impl Engine {
    /// Answers a query with a copy of its cached answer, if there is one.
    #[inline]
    pub(crate) fn answer_query_from_cache(
        &mut self,
        question: &Question<'_>,
        stage: Stage,
        from: &Client,
        params: &ResponseParams<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> CacheLookup {
        let Settings { local_data, rpz, .. } = &self.settings;
        if !self.cache.is_cacheable(question)
            || local_data.has_name(question.name)
            // A complete answer is one that no rule of a response policy zone is for (`to_cache.rs`). One for the client remains.
            || rpz.of_client(from.address).is_some()
        {
            return CacheLookup::Unfit;
        }
        let dns64 = stage != Stage::Direct;
        // A rule may depend on the client.
        if dns64 && !self.has_no_rule(from, question.name) {
            return CacheLookup::Unfit;
        }
        let kinds: &[EntryKind] =
            if dns64 { &[EntryKind::Synthesis, EntryKind::Reply] } else { &[EntryKind::Reply] };
        let mut found = CacheLookup::Absent;
        // A loop, so that the copy is inlined: a function of its own would read the question from memory, where it was written just
        // before in other pieces, and would have to wait for that.
        for &kind in kinds {
            found = self.copy_from_cache(question, kind, dns64, from, params, now, out);
            if found == CacheLookup::Answered {
                break;
            }
        }
        found
    }

    /// True if no rule applies to a client and a name.
    #[inline]
    pub(crate) fn has_no_rule(&self, from: &Client, name: &[u8]) -> bool {
        let rules = &self.settings.dns64.rules;
        rules.is_empty() || rules.of(from.address, name).is_empty()
    }

    /// Copies the entry of a question to a client, or what of it fits, if it is the complete answer.
    #[expect(clippy::too_many_arguments, reason = "the question, the client, and how it is answered")]
    #[inline(always)]
    fn copy_from_cache(
        &mut self,
        question: &Question<'_>,
        kind: EntryKind,
        dns64: bool,
        from: &Client,
        params: &ResponseParams<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> CacheLookup {
        let group = self.upstream.servers.group_number(question.forward_key());
        let key = self.cache.key(question, question.qtype, kind, group);
        let Some(place) = self.cache.entries.find(&key) else { return CacheLookup::Absent };
        let entry = self.cache.entries.entry(place);
        let octets = params.opt_octets(entry.ede());
        if !self.cache.is_valid(&entry, dns64, now) {
            return CacheLookup::Unfit;
        }
        let is_refreshed = self.settings.cache.prefetch && is_due(&entry, now);
        let trusted = self.settings.dns64.dnssec == Dnssec::Trust;
        let reason = if dns64 { entry.reason() } else { None };
        let cache_hit = hit(&entry);
        out.trace(Subject::Query, || TraceEvent::Cached(cache_hit));
        let context = ResponseContext {
            counters: &mut self.counters,
            rate_limiter: Some(&mut self.clients.rate_limiter),
            now,
            identity: &self.settings.server_names.identity,
        };
        let message = entry.message();
        if message.len() + octets <= params.limit {
            let (end, additional) = (message.len(), header::arcount(message));
            send(context, from, params, out, |frame, params| {
                copy(&entry, end, additional, frame, params, trusted, now)
            });
        } else {
            send_what_fits(&entry, context, from, params, trusted, out);
        }
        if let Some(reason) = reason {
            self.counters.count(reason.counter());
            if reason.leaves_out() {
                self.count_omitted_again(place);
            }
        }
        self.counters.count(cache_hit.counter());
        self.counters.duration(Span::ZERO);
        entry::visit(self.cache.entries.entry_mut(place));
        if is_refreshed {
            entry::mark(self.cache.entries.entry_mut(place), REFRESHED);
            self.refresh(question, kind, now, out);
        }
        CacheLookup::Answered
    }

    /// Counts the addresses that a copy of a synthesis leaves out.
    #[cold]
    fn count_omitted_again(&mut self, place: Place) {
        let omitted = self.cache.entries.entry(place).omitted();
        self.count_omitted(&EmbeddingCounts::unpack_omitted(omitted));
    }

    /// Continues a pending query with the cached reply to its current question. Returns false if there is none that may be used.
    pub(crate) fn answer_from_cache(&mut self, pending: Index, now: Instant, out: &mut impl Outbox) -> bool {
        let Some((place, is_stale)) = self.find_usable(pending, now) else { return false };
        let entry = self.cache.entries.entry(place);
        let is_fresh = !is_stale;
        let mut frame = self.frames.take();
        let length = if is_fresh {
            let ede = if entry.is(FAILURE) { entry.ede().or(Some(ede::CACHED_ERROR)) } else { entry.ede() };
            write_cached_message(&entry, &mut frame, Age::of(&entry, now), ede)
        } else {
            write_cached_message(&entry, &mut frame, Age::Stale, Some(stale_ede(&entry)))
        };
        let is_silent = entry.is(SILENT);
        let unfit = if is_stale { self.stale_unfit(pending, &entry) } else { None };
        if is_stale && self.clients.pending_queries[pending].cache_hit != Some(CacheHit::Stale) {
            let question = self.clients.current_question(pending);
            let one = Unanswered { expired: 1, ..Unanswered::default() };
            self.upstream.servers.count_unanswered(question.forward_key(), one);
        }
        let state = &mut self.clients.pending_queries[pending];
        // The client response timer has expired: answer with stale data now, and refresh in the background.
        let is_asked = is_stale && state.client_timer_expired;
        let is_refreshed = is_asked || is_fresh && self.settings.cache.prefetch && is_due(&entry, now);
        let qtype = state.current_type();
        let reply_hit = match () {
            () if is_stale => CacheHit::Stale,
            () if entry.is(FAILURE) => CacheHit::Failure,
            () if entry.is(NEGATIVE) => CacheHit::Negative,
            () => CacheHit::Positive,
        };
        if state.cache_hit != Some(CacheHit::Stale) {
            state.cache_hit = Some(reply_hit);
        }
        out.trace(Subject::PendingQuery(pending), || TraceEvent::Cached(reply_hit));
        entry::visit(self.cache.entries.entry_mut(place));
        if is_refreshed {
            if is_fresh {
                entry::mark(self.cache.entries.entry_mut(place), REFRESHED);
            }
            self.refresh_for(pending, qtype, is_fresh, now, out);
        }
        if is_silent {
            self.on_outcome(pending, &Outcome::Failed, &mut None, now, out);
        } else if let Some((rcode, ede)) = unfit {
            self.respond_with(pending, now, out, |frame, params| write_unfit(frame, params, rcode, ede));
        } else if let Ok(message) = Message::parse(&frame[..length]) {
            let chain = Chain::follow(&message);
            self.on_outcome(pending, &Outcome::Reply(&message, &chain), &mut None, now, out);
        } else {
            // It was parsed before it was stored.
            debug_assert!(false, "a cached message does not parse");
            self.cache.entries.remove_at(place);
            self.frames.give(frame);
            return false;
        }
        self.frames.give(frame);
        true
    }

    /// RCODE and extended DNS error of the truncated answer with an expired entry, if the entry was the complete answer to the pending query's
    /// question and does not fit.
    #[cold]
    fn stale_unfit(&self, pending: Index, entry: &Entry<'_>) -> Option<(Rcode, Option<EdeCode>)> {
        let state = &self.clients.pending_queries[pending];
        let is_answer = state.stage == Stage::Direct
            && state.chase == NONE
            && self.settings.rpz.of_client(state.client.address).is_none()
            && entry.valid_for() == self.cache.generation;
        let ede = Some(stale_ede(entry));
        let params = state.params(self.settings.udp_size);
        let is_unfit = || {
            entry.message().len() + params.opt_octets(ede) > params.limit
                && what_fits(entry, &params, ede) == Fit::Truncated
        };
        (is_answer && is_unfit()).then(|| (header::flags(entry.message()).rcode(), ede))
    }

    /// Finds the cached reply to a pending query's current question: a fresh one, or expired data (true) if they may be used now. Sets
    /// `has_stale` of the pending query.
    #[inline(always)]
    fn find_usable(&mut self, pending: Index, now: Instant) -> Option<(Place, bool)> {
        if self.cache.is_off() {
            return None;
        }
        let Engine { cache, clients, upstream, settings, key, .. } = self;
        let Clients { pending_queries, chases, .. } = clients;
        let state = &mut pending_queries[pending];
        let (qtype, class) = (state.current_type(), state.qtype_and_class().1);
        if class != Class::IN || !state.query_flags.has(QueryFlags::RD) || state.subnet.is_some() {
            return None;
        }
        let (name, hash) = match state.chase {
            NONE => (state.name(), state.hash),
            chase => (&chases[chase].name[..], key.hash(&chases[chase].name)),
        };
        let question =
            Question { name, hash, qtype, class, query_flags: state.query_flags_for(qtype), subnet: None };
        let found = cache.find_reply(&question, qtype, upstream.servers.group_number(question.forward_key()));
        let Some(place) = found else {
            state.has_stale = false;
            return None;
        };
        let entry = cache.entries.entry(place);
        let is_fresh = entry.expires() > now;
        let has_stale = !is_fresh && !entry.is(FAILURE) && entry.expires() + settings.cache.stale > now;
        // Expired data are used at once when an attempt has just failed, when the servers are dead or in slow start, or when the
        // client response timer has expired.
        let is_stale = has_stale
            && (entry.failure_recheck() > now
                || state.client_timer_expired
                || upstream.servers.is_dead(question.forward_key())
                || upstream.in_slow_start(question.forward_key(), now));
        state.has_stale = has_stale;
        (is_fresh || is_stale).then_some((place, is_stale))
    }
}

/// The kind of a complete answer, which is no failure.
fn hit(entry: &Entry<'_>) -> CacheHit {
    match entry.kind() {
        EntryKind::Synthesis => CacheHit::Synthesized,
        EntryKind::Reply if entry.is(NEGATIVE) => CacheHit::Negative,
        EntryKind::Reply => CacheHit::Positive,
    }
}

/// Sends what fits of an entry that is longer than the requestor takes. The cost does not depend on the records of the answer and
/// authority sections.
#[cold]
#[inline(never)]
fn send_what_fits(
    entry: &Entry<'_>,
    context: ResponseContext<'_>,
    from: &Client,
    params: &ResponseParams<'_>,
    trusted: bool,
    out: &mut impl Outbox,
) {
    let now = context.now;
    send(context, from, params, out, |frame, params| match what_fits(entry, params, entry.ede()) {
        Fit::UpTo { end, additional } => copy(entry, end, additional, frame, params, trusted, now),
        Fit::Truncated => write_unfit(frame, params, header::flags(entry.message()).rcode(), entry.ede()),
    });
}

/// What fits of an entry that is longer than the requestor takes. `ede`: extended DNS error of the answer.
fn what_fits(entry: &Entry<'_>, params: &ResponseParams<'_>, ede: Option<EdeCode>) -> Fit {
    let room = params.limit.saturating_sub(params.opt_octets(ede));
    fit(entry.message(), necessary_end(entry.message(), entry.ttls()), room)
}

/// Writes a cached answer up to `end` after the requestor's question, with a new header, OPT record and TTLs. `additional`: its records
/// in the additional section, without OPT.
#[inline(always)]
fn copy(
    entry: &Entry<'_>,
    end: usize,
    additional: u16,
    frame: &mut [u8],
    params: &ResponseParams<'_>,
    trusted: bool,
    now: Instant,
) -> Written {
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
    Written { len, rcode, truncated: false, ede: params.edns.and(entry.ede()) }
}
