//! Questions in flight to upstream servers, and the table that joins equal questions.
//!
//! An upstream is asked once per question, however many clients wait. This also prevents the birthday attack (VU#457875).

use crate::base::slab::{Index, NONE, Record, Slab};
use crate::base::time::Instant;
use crate::base::timer_wheel::{Hook, Hooks};
use crate::counters::{Counter, Counters};
use crate::interface::{Link, Outbox, Transport};
use crate::limits::{ATTEMPTS, SUBNETS};
use crate::message::client_subnet::Subnet;
use crate::message::question::{ForwardKey, QueryFlags, Question};
use crate::trace::{Subject, TraceEvent};
use crate::upstream::Upstream;
use crate::upstream::dns0x20::mix_case;
use crate::upstream::links::Release;
#[cfg(debug_assertions)]
use crate::upstream::query_form::CookieUse;
use crate::upstream::query_form::QueryForm;
use crate::upstream::suspicion::Doubt;
use wire::{Class, Type};

/// Wait of a question for the end of its current attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Wait {
    /// For the reply to its query.
    #[default]
    Reply,
    /// For a reply to an earlier query, if at all: its own query could not be sent.
    Unsent,
    /// For the reply to its query, which is late.
    Extended,
    /// For another connection or a restart of the upstream: the link of its query is lost, or stalls.
    Reconnect,
}

/// One attempt: a query to one server.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// Link of the query.
    pub link: Link,
    /// Message ID of the query.
    pub id: u16,
    /// The server asked.
    pub server: u16,
    /// Time of sending.
    pub sent: Instant,
    /// The query could not be sent, or its reply reports a failure.
    pub failed: bool,
    /// Form in which the query was sent.
    pub form: QueryForm,
    /// The query has the outbound query's letter case, which the reply must repeat.
    pub with_case: bool,
    /// The query is a hedge: it repeats a query that may still be answered (`retry_budget.rs`).
    pub is_hedge: bool,
}

impl Attempt {
    /// Placeholder for an unused place.
    pub const NONE: Attempt = Attempt {
        link: Link::NOWHERE,
        id: 0,
        server: 0,
        sent: Instant(0),
        failed: false,
        form: QueryForm::PLAIN,
        with_case: false,
        is_hedge: false,
    };

    /// An attempt that no question has made, for freed records.
    #[cfg(debug_assertions)]
    const POISON: Attempt = Attempt {
        link: Link::NOWHERE,
        id: u16::MAX,
        server: u16::MAX,
        sent: Instant(u64::MAX),
        failed: true,
        form: QueryForm { transport: Transport::Tls, edns: true, cookie: CookieUse::Renewed, subnet: true },
        with_case: true,
        is_hedge: true,
    };
}

/// State of an outbound query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OutboundQueryState {
    /// The slot is free.
    #[default]
    Free,
    /// Queries were sent, and the question is not answered.
    Asked,
    /// Its reply is being validated (`held.rs`).
    Held,
    /// The question is over, and its outcome is parked for clients whose AAAA lookup is not decided.
    Completed,
}

/// One question in flight.
///
/// The fields lie in the order in which they are written here: a question over UDP that the first server answers touches those before
/// `subnet`, the beginning of the name, and the first attempt. Type and class do not lie side by side, as in a [`Question`]. An outbound query does not
/// begin with a cache line: that would cost 4 MiB for two outbound queries of each of 65,536 pending queries.
#[repr(C)]
#[cfg_attr(test, derive(Debug))]
pub struct OutboundQuery {
    /// Hash of the name.
    pub hash: u64,
    /// Next outbound query in the same hash bucket.
    next_in_bucket: Index,
    /// QTYPE.
    pub qtype: Type,
    /// State of the outbound query.
    pub state: OutboundQueryState,
    /// Flags of the question.
    pub query_flags: QueryFlags,
    /// QCLASS.
    pub class: Class,
    /// Length of the name in octets.
    pub name_len: u8,
    /// Form of the next query. What an upstream refused is not sent again.
    pub form: QueryForm,
    /// Wait for the end of the current attempt.
    pub wait: Wait,
    /// A stalled connection has cost half an attempt; the next one costs the other half.
    pub half_attempt: bool,
    /// The next attempt is a hedge: it repeats a query whose reply is only late (`retry_budget.rs`).
    pub next_is_hedge: bool,
    /// A hedge was deferred for lack of a token.
    pub hedge_deferred: bool,
    /// The reply came to a query without EDNS, so it has no signatures: never cache it under a DO query.
    pub lacks_dnssec_records: bool,
    /// A reply over UDP lacked the cookie.
    pub cookie_missing: bool,
    /// Number of attempts so far.
    pub tries: u8,
    /// Number of used places in `attempts`.
    pub attempts_len: u8,
    /// Scope of the last reply: the number of bits of the client subnet for which it is valid.
    pub scope: u8,
    /// Connections that have brought replies, and that the question lost.
    pub lost_connections: u8,
    /// First pending query: a client query that waits for the reply.
    pub pending_queries: Index,
    /// Number of client queries that wait for another outbound query and will read the outcome of this one.
    pub early_a_users: u32,
    /// Number of the server group that the name belonged to when the outbound query began.
    pub group: u32,
    /// Flush epoch of the cache when the outbound query began.
    pub flush_epoch: u32,
    /// Index of the parked reply. [`NONE`]: the question failed. While a question is asked again, its first reply, if that may be used.
    /// [`NOT_PARKED`](crate::upstream::parked_replies::NOT_PARKED): there was no room for the reply.
    pub parked: Index,
    /// Deadline of the current attempt.
    pub deadline: Instant,
    /// Hook of the timer wheel.
    pub hook: Hook,
    /// Time at which the A lookup is asked as well (for an AAAA question with `lookup = "stagger"`, or whose first attempt failed).
    pub stagger: Option<Instant>,
    /// Time at which the query is repeated during the wait for the reply to the last attempt.
    pub repeat_at: Option<Instant>,
    /// Client response timer: the time at which clients get expired data if there is any (RFC 8767 section 5).
    pub client_response_timer: Option<Instant>,
    /// Time at which the question lost a connection for the first time.
    pub lost_at: Option<Instant>,
    /// Doubt about the replies over UDP (`suspicion.rs`).
    pub doubt: Doubt,
    /// Client subnet of the question (RFC 7871).
    pub subnet: Option<Subnet>,
    /// The name in wire form, in the letter case of the queries over UDP (0x20).
    pub name: [u8; 256],
    /// The attempts, `attempts_len` of them.
    pub attempts: [Attempt; ATTEMPTS],
}

impl Default for OutboundQuery {
    fn default() -> OutboundQuery {
        OutboundQuery {
            state: OutboundQueryState::Free,
            form: QueryForm::PLAIN,
            wait: Wait::Reply,
            next_is_hedge: false,
            hedge_deferred: false,
            half_attempt: false,
            lost_at: None,
            lost_connections: 0,
            doubt: Doubt::default(),
            lacks_dnssec_records: false,
            cookie_missing: false,
            tries: 0,
            attempts_len: 0,
            query_flags: QueryFlags::default(),
            subnet: None,
            scope: 0,
            name_len: 0,
            qtype: Type(0),
            class: Class(0),
            hash: 0,
            next_in_bucket: NONE,
            hook: Hook::default(),
            deadline: Instant(0),
            stagger: None,
            repeat_at: None,
            client_response_timer: None,
            pending_queries: NONE,
            early_a_users: 0,
            group: 0,
            flush_epoch: 0,
            parked: NONE,
            attempts: [Attempt::NONE; ATTEMPTS],
            name: [0; 256],
        }
    }
}

impl Record for OutboundQuery {
    #[cfg(debug_assertions)]
    fn poison(&mut self) {
        // Walks over the table read the state, and the timer wheel its hook.
        let OutboundQuery { state, hook, .. } = *self;
        *self = OutboundQuery {
            state,
            hook,
            hash: u64::MAX,
            next_in_bucket: NONE - 1,
            qtype: Type(u16::MAX),
            query_flags: QueryFlags::PROBE,
            class: Class(u16::MAX),
            name_len: u8::MAX,
            form: QueryForm::PLAIN,
            wait: Wait::Reconnect,
            half_attempt: true,
            next_is_hedge: true,
            hedge_deferred: true,
            lacks_dnssec_records: true,
            cookie_missing: true,
            tries: u8::MAX,
            attempts_len: u8::MAX,
            scope: u8::MAX,
            lost_connections: u8::MAX,
            pending_queries: NONE - 1,
            early_a_users: u32::MAX / 2,
            group: u32::MAX,
            flush_epoch: u32::MAX,
            parked: 0,
            deadline: Instant(u64::MAX),
            stagger: Some(Instant(0)),
            repeat_at: Some(Instant(0)),
            client_response_timer: Some(Instant(0)),
            lost_at: Some(Instant(0)),
            doubt: Doubt::POISON,
            subnet: Some(Subnet::POISON),
            name: [0xff; 256],
            attempts: [Attempt::POISON; ATTEMPTS],
        };
    }
}

impl OutboundQuery {
    /// Makes a used slot a new question, whose letters get their case from `letters`. Every field is named, so the compiler tells of a
    /// new one that nothing sets: what a question leaves in its slot must not reach the next one.
    #[inline(always)]
    fn reset(
        &mut self,
        question: &Question<'_>,
        letters: u64,
        transport: Transport,
        group_number: u32,
        epoch: u32,
    ) {
        let OutboundQuery {
            name,
            name_len,
            state,
            form,
            wait,
            tries,
            attempts_len,
            query_flags,
            subnet,
            scope,
            half_attempt,
            next_is_hedge,
            hedge_deferred,
            lost_at,
            lost_connections,
            doubt,
            lacks_dnssec_records,
            cookie_missing,
            qtype,
            class,
            hash,
            stagger,
            repeat_at,
            client_response_timer,
            group,
            flush_epoch,
            pending_queries,
            early_a_users,
            parked,
            // Set by `OutboundQueries::insert`, `set_deadline` and the timer wheel.
            next_in_bucket: _,
            deadline: _,
            hook: _,
            // None of them counts, since `attempts_len` is 0.
            attempts: _,
        } = self;
        // First of all: the query copies the name in larger pieces than it is written here, and has to wait until these stores have left
        // the processor's store buffer.
        mix_case(question.name, letters, name);
        *name_len = question.name.len() as u8;
        *state = OutboundQueryState::Asked;
        *form = QueryForm::first(transport);
        *wait = Wait::Reply;
        *tries = 0;
        *attempts_len = 0;
        *query_flags = question.query_flags;
        *subnet = question.subnet.copied();
        *scope = 0;
        *half_attempt = false;
        *next_is_hedge = false;
        *hedge_deferred = false;
        *lost_at = None;
        *lost_connections = 0;
        *doubt = Doubt::default();
        *lacks_dnssec_records = false;
        *cookie_missing = false;
        *qtype = question.qtype;
        *class = question.class;
        *hash = question.hash;
        *stagger = None;
        *repeat_at = None;
        *client_response_timer = None;
        *group = group_number;
        *flush_epoch = epoch;
        *pending_queries = NONE;
        *early_a_users = 0;
        *parked = NONE;
    }

    /// The name in wire form, in the letter case of the queries over UDP.
    #[inline]
    pub fn name(&self) -> &[u8] {
        &self.name[..self.name_len as usize]
    }

    /// True if a reply that fits shows that its server keeps the letters: the name has capitals, and the reply was not believed in spite
    /// of its letters.
    pub(super) fn shows_letters(&self, server: u16) -> bool {
        !self.doubt.is_settled_for(server) && self.name().iter().any(u8::is_ascii_uppercase)
    }

    /// Name and type, by which its servers are chosen.
    #[inline]
    pub fn forward_key(&self) -> ForwardKey<'_> {
        let is_own = self.query_flags.is_for_all_names(self.qtype);
        ForwardKey { name: self.name(), qtype: self.qtype, is_own }
    }

    /// The question of the outbound query.
    #[inline]
    pub fn question(&self) -> Question<'_> {
        Question {
            name: self.name(),
            hash: self.hash,
            qtype: self.qtype,
            class: self.class,
            query_flags: self.query_flags,
            subnet: self.subnet.as_ref(),
        }
    }

    /// True if a client query waits for the outcome, or will read it, or the server itself waits.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.pending_queries != NONE || self.early_a_users > 0 || self.query_flags.has(QueryFlags::OWN)
    }

    /// True if an attempt that may still be answered went over a link with this ID.
    pub fn has_asked(&self, link: Link, id: u16) -> bool {
        self.state == OutboundQueryState::Asked
            && self.attempts().iter().any(|attempt| attempt.link == link && attempt.id == id)
    }

    /// True if the current attempt went over a link, with this ID.
    pub fn is_current(&self, link: Link, id: u16) -> bool {
        self.state == OutboundQueryState::Asked
            && self.attempts().last().is_some_and(|attempt| attempt.link == link && attempt.id == id)
    }

    /// True if the query of the current attempt was sent, and its link was not lost.
    pub fn awaits_reply(&self) -> bool {
        matches!(self.wait, Wait::Reply | Wait::Extended)
    }

    /// The attempts that may still be answered.
    #[inline]
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts[..self.attempts_len as usize]
    }
}

/// All questions in flight, and the hash table that joins equal questions.
pub struct OutboundQueries {
    /// The outbound queries.
    pub slab: Slab<OutboundQuery>,
    /// First outbound query of each hash bucket.
    buckets: Box<[Index]>,
    /// Flush epoch of the cache: the number of flushes so far.
    pub flush_epoch: u32,
    /// Number of low bits of the hash product that do not choose the bucket.
    shift: u32,
}

impl Hooks for Slab<OutboundQuery> {
    #[inline]
    fn hook(&mut self, index: Index) -> &mut Hook {
        &mut self[index].hook
    }
}

impl OutboundQueries {
    /// Creates a table with room for `capacity` outbound queries.
    pub fn new(capacity: usize) -> OutboundQueries {
        // A power of two, and at most one bucket for each outbound query: every question reads and writes a bucket somewhere in this table,
        // so a small table, which stays in the processor's cache, is worth more than short lists in a full one.
        let buckets = 1usize << capacity.max(2).ilog2();
        OutboundQueries {
            slab: Slab::new(capacity),
            buckets: vec![NONE; buckets].into(),
            flush_epoch: 0,
            shift: u64::BITS - buckets.ilog2(),
        }
    }

    /// True if the cache was flushed after an outbound query began: its reply may hold the data that was flushed.
    #[inline]
    pub fn predates_flush(&self, index: Index) -> bool {
        self.slab[index].flush_epoch != self.flush_epoch
    }

    /// Bucket of a question. Clients may ask for one name with all types and classes, so these choose the bucket, too. They
    /// are multiplied with the hash of the name, which is keyed and therefore secret, so they spread evenly (multiply-shift
    /// hashing, whose best bits are the highest).
    #[inline]
    fn bucket(&self, hash: u64, qtype: Type, class: Class) -> usize {
        let which = u64::from(class.0) << 17 | u64::from(qtype.0) << 1 | 1;
        ((hash | 1).wrapping_mul(which) >> self.shift) as usize
    }

    /// Loads the bucket of a question of class IN. Returns something made of it.
    #[inline]
    pub fn touch(&self, hash: u64, qtype: Type) -> Index {
        self.buckets[self.bucket(hash, qtype, Class::IN)]
    }

    /// Finds the outbound query of an equal question.
    #[inline]
    pub fn find(&self, question: &Question<'_>) -> Option<Index> {
        let mut index = self.buckets[self.bucket(question.hash, question.qtype, question.class)];
        while index != NONE {
            let outbound = &self.slab[index];
            if outbound.hash == question.hash
                && outbound.qtype == question.qtype
                && outbound.class == question.class
                && outbound.query_flags == question.query_flags
                && outbound.subnet.as_ref() == question.subnet
                && wire::eq_ignore_case(outbound.name(), question.name)
            {
                return Some(index);
            }
            index = outbound.next_in_bucket;
        }
        None
    }

    /// Iterates over the candidates for a reply: all outbound queries with this hash, type and class, and perhaps others with this hash.
    #[inline]
    pub fn candidates(&self, hash: u64, qtype: Type, class: Class) -> Candidates<'_> {
        Candidates { outbound_queries: self, hash, next: self.buckets[self.bucket(hash, qtype, class)] }
    }

    #[inline]
    fn bucket_of(&self, index: Index) -> usize {
        let OutboundQuery { hash, qtype, class, .. } = self.slab[index];
        self.bucket(hash, qtype, class)
    }

    /// Inserts an outbound query into the table. There is always room; an outbound query must not be inserted twice.
    #[inline]
    pub fn insert(&mut self, index: Index) {
        let bucket = self.bucket_of(index);
        self.slab[index].next_in_bucket = self.buckets[bucket];
        self.buckets[bucket] = index;
    }

    /// Removes an outbound query from the table: no question joins it and no reply finds it any more.
    #[inline]
    pub fn remove(&mut self, index: Index) {
        let bucket = self.bucket_of(index);
        let after = self.slab[index].next_in_bucket;
        let mut place = self.buckets[bucket];
        if place == index {
            self.buckets[bucket] = after;
            return;
        }
        while self.slab[place].next_in_bucket != index {
            place = self.slab[place].next_in_bucket;
        }
        self.slab[place].next_in_bucket = after;
    }
}

/// Iterator of [`OutboundQueries::candidates`].
pub struct Candidates<'a> {
    outbound_queries: &'a OutboundQueries,
    hash: u64,
    next: Index,
}

impl Iterator for Candidates<'_> {
    type Item = Index;
    #[inline]
    fn next(&mut self) -> Option<Index> {
        while self.next != NONE {
            let index = self.next;
            self.next = self.outbound_queries.slab[index].next_in_bucket;
            if self.outbound_queries.slab[index].hash == self.hash {
                return Some(index);
            }
        }
        None
    }
}

impl OutboundQueries {
    /// True if a question with a client subnet would exceed the limit of questions in flight that differ only in the subnet.
    #[cold]
    fn too_many_subnets(&self, question: &Question<'_>) -> bool {
        let mut others = 0;
        for index in self.candidates(question.hash, question.qtype, question.class) {
            let outbound = &self.slab[index];
            if outbound.subnet.is_some()
                && question.qtype == outbound.qtype
                && outbound.class == question.class
                && wire::eq_ignore_case(outbound.name(), question.name)
            {
                // The question joins an equal one, so it adds no outbound query.
                if outbound.subnet.as_ref() == question.subnet && question.query_flags == outbound.query_flags
                {
                    return false;
                }
                others += 1;
            }
        }
        others >= SUBNETS
    }
}

impl core::ops::Index<Index> for OutboundQueries {
    type Output = OutboundQuery;
    #[inline]
    fn index(&self, index: Index) -> &OutboundQuery {
        &self.slab[index]
    }
}

impl core::ops::IndexMut<Index> for OutboundQueries {
    #[inline]
    fn index_mut(&mut self, index: Index) -> &mut OutboundQuery {
        &mut self.slab[index]
    }
}

impl Upstream {
    /// Creates an outbound query in the table, without sending a query. None: there is no room.
    pub(super) fn prepare(&mut self, question: &Question<'_>) -> Option<Index> {
        let Upstream { outbound_queries, random, parameters, servers, .. } = self;
        let index = outbound_queries.slab.take()?;
        let flush_epoch = outbound_queries.flush_epoch;
        let outbound = &mut outbound_queries.slab[index];
        let group = servers.group_number(question.forward_key());
        outbound.reset(question, random.bits(), parameters.transport, group, flush_epoch);
        outbound_queries.insert(index);
        Some(index)
    }

    /// Sets the deadline of the current attempt of a question.
    pub fn set_deadline(&mut self, index: Index, deadline: Instant) {
        let outbound = &mut self.outbound_queries[index];
        outbound.deadline = deadline;
        let mut due = deadline;
        for timer in
            [outbound.stagger, outbound.repeat_at, outbound.client_response_timer].into_iter().flatten()
        {
            due = due.min(timer);
        }
        self.wheel.set(&mut self.outbound_queries.slab, index, due);
    }

    /// Sets the time at which the A lookup of an AAAA question is asked as well.
    pub fn set_stagger(&mut self, index: Index, at: Instant) {
        self.outbound_queries[index].stagger = Some(at);
        let deadline = self.outbound_queries[index].deadline;
        self.set_deadline(index, deadline);
    }

    /// Sets the client response timer of a question whose deadline has changed.
    pub(super) fn set_client_response_timer_again(&mut self, index: Index, at: Instant) {
        self.outbound_queries[index].client_response_timer = None;
        self.set_client_response_timer(index, at);
    }

    /// Sets the client response timer (RFC 8767 section 5), unless it is set to an earlier time already.
    pub fn set_client_response_timer(&mut self, index: Index, at: Instant) {
        let outbound = &mut self.outbound_queries[index];
        if outbound.client_response_timer.is_none_or(|timer| at < timer) {
            outbound.client_response_timer = Some(at);
            let deadline = outbound.deadline;
            self.set_deadline(index, deadline);
        }
    }

    /// Drops the subnet of a question if the limit of equal questions in flight with other subnets is reached. Returns the
    /// scope of the answer to the question without the subnet.
    ///
    /// That scope is the full source prefix length, so that a client's cache does not reuse the answer for other subnets:
    /// a crowd of queries, perhaps a malicious one, must not stop other clients from getting the answer for their own subnet.
    #[inline]
    pub fn drop_subnet_if_crowded(&self, question: &mut Question<'_>, counters: &mut Counters) -> u8 {
        match question.subnet {
            Some(subnet) if self.outbound_queries.too_many_subnets(question) => {
                counters.count(Counter::SubnetLimit);
                question.subnet = None;
                subnet.source
            }
            _ => 0,
        }
    }

    /// Ends a question: no reply and no other question finds it any more, and its links may close. Returns its first pending query.
    pub fn complete(&mut self, index: Index, out: &mut impl Outbox) -> Index {
        out.trace(Subject::OutboundQuery(index), || TraceEvent::Completed);
        self.wheel.cancel(&mut self.outbound_queries.slab, index);
        self.outbound_queries.remove(index);
        for place in 0..self.outbound_queries[index].attempts_len as usize {
            let link = self.outbound_queries[index].attempts[place].link;
            if self.links.release(link) == Release::Close {
                self.close(link, out);
            }
        }
        let outbound = &mut self.outbound_queries[index];
        outbound.attempts_len = 0;
        outbound.state = OutboundQueryState::Completed;
        core::mem::replace(&mut outbound.pending_queries, NONE)
    }

    /// Frees a completed question, or parks its reply for the client queries that refer to it.
    #[inline(always)]
    pub fn park_or_free(&mut self, index: Index, reply: Option<&[u8]>) {
        if self.outbound_queries[index].early_a_users == 0 {
            return self.free_outbound_query(index);
        }
        let parked = reply.map_or(NONE, |reply| self.parked.park(reply));
        let kept = core::mem::replace(&mut self.outbound_queries[index].parked, parked);
        self.parked.free(kept);
    }

    /// True if no upstream has replied to a question in its usual time.
    pub fn is_late(&self, index: Index, now: Instant) -> bool {
        let outbound = &self.outbound_queries[index];
        let is_late = |attempt: &Attempt| {
            let usual = self.servers.list[usize::from(attempt.server)].wait(0, self.parameters.timeout);
            now - attempt.sent >= usual
        };
        outbound.tries > 1 || outbound.attempts().last().is_none_or(is_late)
    }

    /// Ends a question that nobody wants any more if more than half of the room for questions in flight is taken. A reply to it counts as
    /// unknown then.
    pub fn end_if_crowded(&mut self, index: Index, out: &mut impl Outbox) {
        let outbound = &self.outbound_queries[index];
        if outbound.state == OutboundQueryState::Asked
            && !outbound.is_wanted()
            && self.outbound_queries.slab.is_crowded()
        {
            self.complete(index, out);
            self.free_outbound_query(index);
        }
    }

    /// Drops one reference to a question. A question that was asked stays in flight until its reply comes, because that reply
    /// would otherwise look like a forgery.
    pub fn release_outbound_query(&mut self, index: Index) {
        let outbound = &mut self.outbound_queries[index];
        outbound.early_a_users -= 1;
        if outbound.early_a_users == 0 && outbound.state == OutboundQueryState::Completed {
            self.free_outbound_query(index);
        }
    }

    /// Frees a question that was removed from the table.
    #[inline(always)]
    fn free_outbound_query(&mut self, index: Index) {
        let parked = core::mem::replace(&mut self.outbound_queries[index].parked, NONE);
        if parked != NONE {
            self.parked.free(parked);
        }
        self.outbound_queries[index].state = OutboundQueryState::Free;
        self.outbound_queries.slab.give(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name_hash::HashKey;

    #[test]
    fn questions_for_many_types_of_one_name_lie_in_many_buckets() {
        let mut outbound_queries = OutboundQueries::new(1024);
        let hash = HashKey([0x1234_5678_9abc_def0, 0x0fed_cba9_8765_4321]).hash(b"\x04evil\x04test\0");
        let kinds = (0..512)
            .map(|number| (Type(number), Class::IN))
            .chain((1..513).map(|number| (Type::A, Class(number))));
        for (qtype, class) in kinds.clone() {
            let index = outbound_queries.slab.take().unwrap();
            let outbound = &mut outbound_queries.slab[index];
            (outbound.hash, outbound.qtype, outbound.class) = (hash, qtype, class);
            outbound_queries.insert(index);
        }
        // 1,024 outbound queries in 1,024 buckets: with random places, hardly any bucket would hold eight.
        for (qtype, class) in kinds {
            assert!(outbound_queries.candidates(hash, qtype, class).count() < 8, "{qtype} {class}");
        }
        for index in 0..outbound_queries.slab.touched() {
            outbound_queries.remove(index);
        }
        assert!(outbound_queries.buckets.iter().all(|&first| first == NONE));
    }

    #[cfg(debug_assertions)]
    #[test]
    fn a_question_finds_nothing_of_the_one_that_had_its_slot() {
        let name = b"\x03www\x07example\0";
        let question = Question {
            name,
            hash: 7,
            subnet: None,
            qtype: Type::A,
            query_flags: QueryFlags::default(),
            class: Class::IN,
        };
        let after_reset = |mut outbound: OutboundQuery| {
            outbound.reset(&question, 0, Transport::Udp, 3, 9);
            outbound.name[name.len()..].fill(0);
            // The table and the wheel set these before they are read, and no attempt is known yet.
            let (next_in_bucket, deadline, attempts) = (NONE, Instant(0), [Attempt::NONE; ATTEMPTS]);
            format!("{:?}", OutboundQuery { next_in_bucket, deadline, attempts, ..outbound })
        };
        // A freed slot has in every field what no question sets first.
        let mut used = OutboundQuery::default();
        used.poison();
        assert_eq!(after_reset(used), after_reset(OutboundQuery::default()));
    }
}
