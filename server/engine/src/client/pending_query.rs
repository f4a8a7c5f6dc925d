//! Pending queries: client queries that wait for an upstream.

use crate::answer::params::{ResponseParams, ResponseParamsEdns, answer_limit};
use crate::base::slab::{Index, NONE, Record};
use crate::base::time::Instant;
use crate::dns64::decision::{Cause, Stage};
use crate::interface::{Client, ClientTransport, IdleTimeout};
use crate::message::client_subnet::Subnet;
use crate::message::cookie::Cookie;
use crate::message::question::{QUESTION, QueryFlags, Question};
#[cfg(debug_assertions)]
use crate::message::stream_options::StreamOptions;
use crate::reasons::CacheHit;
use crate::rpz::mark::PolicyMark;
use crate::rpz::table::NO_RULE_YET;
use core::net::Ipv6Addr;
use wire::header::Flags;
use wire::{Class, Type};

/// One pending client query.
#[derive(Clone)]
#[cfg_attr(test, derive(Debug))]
pub struct PendingQuery {
    /// Client that sent the query.
    pub client: Client,
    /// Arrival of the query.
    pub arrived: Instant,
    /// Deadline for an answer over UDP.
    pub useful_until: Instant,
    /// Outbound query that it waits for.
    pub outbound: Index,
    /// Next pending query of that outbound query.
    pub next: Index,
    /// Previous pending query of that outbound query.
    pub previous: Index,
    /// An outbound query that it refers to while the AAAA lookup is not decided.
    pub a_outbound_query: Index,
    /// Entry of its network in the quotas.
    pub quota: Index,
    /// Next older pending query of that network.
    pub older: Index,
    /// Next newer pending query of that network.
    pub newer: Index,
    /// CNAME chase that goes on behind the end of one reply.
    pub chase: Index,
    /// Message ID of the query.
    pub id: u16,
    /// Header flags of the query.
    pub flags: Flags,
    /// EDNS parameters of the query.
    pub edns: Option<ResponseParamsEdns>,
    /// Flags with which an upstream is asked.
    pub query_flags: QueryFlags,
    /// Client subnet with which an upstream is asked.
    pub subnet: Option<Subnet>,
    /// Scope prefix length of the answer: the longest scope of all replies that it is made of. An answer made of two lookups is
    /// valid only where both lookups are, and RFC 7871 section 7.2.1 also takes the longest of several RRsets.
    pub scope: u8,
    /// Cookie for its answer.
    pub cookie: Option<Cookie>,
    /// Step of the resolution.
    pub stage: Stage,
    /// Reason for asking the A lookup.
    pub cause: Cause,
    /// Number of the rule of a response policy zone that applies.
    pub rpz_rule: u32,
    /// Number of replies that led to the first name that was compared with response policy zones ([`NO_HOP_YET`]: none yet). The
    /// client's address is compared together with this name.
    pub rpz_hop: u8,
    /// Marks of its answer by the rule that has decided it.
    pub(crate) policy_mark: Option<PolicyMark>,
    /// True if a reply had private addresses, which were taken away.
    pub has_lost_addresses: bool,
    /// Negative TTL of the AAAA lookup, in seconds; none if it had no SOA record.
    pub negative_ttl: Option<u32>,
    /// True if the answer of the AAAA lookup was secure.
    pub aaaa_secure: bool,
    /// True if the AAAA lookup failed, but was answered with CD set: if it fails once more, it is bogus.
    pub bogus_recheck: bool,
    /// Kind of cache hit so far.
    pub cache_hit: Option<CacheHit>,
    /// True if it had to wait for an upstream.
    pub cache_missed: bool,
    /// True if the cache has expired data for the question that it waits for.
    pub has_stale: bool,
    /// True if the client response timer has expired (RFC 8767 section 5).
    pub client_timer_expired: bool,
    /// Keyed hash of the name in the query.
    pub hash: u64,
    /// Octets of the question section.
    pub question_len: u16,
    /// Question section, in the client's letter case.
    pub question: [u8; QUESTION],
}

impl Default for PendingQuery {
    fn default() -> PendingQuery {
        PendingQuery {
            client: Client {
                address: Ipv6Addr::UNSPECIFIED,
                local: Ipv6Addr::UNSPECIFIED,
                port: 0,
                listener: 0,
                scope: 0,
                stream: 0,
                transport: ClientTransport::Udp,
                idle_timeout: IdleTimeout::CLOSE,
                proxy: None,
            },
            arrived: Instant(0),
            useful_until: Instant(0),
            outbound: NONE,
            next: NONE,
            previous: NONE,
            a_outbound_query: NONE,
            quota: NONE,
            older: NONE,
            newer: NONE,
            chase: NONE,
            id: 0,
            flags: Flags(0),
            edns: None,
            query_flags: QueryFlags::default(),
            subnet: None,
            scope: 0,
            cookie: None,
            stage: Stage::Direct,
            cause: Cause::NoData,
            rpz_rule: NO_RULE_YET,
            rpz_hop: NO_HOP_YET,
            policy_mark: None,
            has_lost_addresses: false,
            negative_ttl: None,
            aaaa_secure: false,
            bogus_recheck: false,
            cache_hit: None,
            cache_missed: false,
            has_stale: false,
            client_timer_expired: false,
            hash: 0,
            question_len: 0,
            question: [0; QUESTION],
        }
    }
}

/// Value of [`PendingQuery::rpz_hop`]: no name has been compared yet.
pub(crate) const NO_HOP_YET: u8 = u8::MAX;

impl Record for PendingQuery {
    #[cfg(debug_assertions)]
    fn poison(&mut self) {
        const SLOT: Index = NONE - 1;
        *self = PendingQuery {
            client: Client {
                address: Ipv6Addr::LOCALHOST,
                local: Ipv6Addr::LOCALHOST,
                port: u16::MAX,
                listener: u16::MAX,
                scope: u32::MAX,
                stream: u64::MAX,
                transport: ClientTransport::Quic,
                idle_timeout: IdleTimeout(u16::MAX),
                proxy: None,
            },
            arrived: Instant(u64::MAX),
            useful_until: Instant(u64::MAX),
            outbound: SLOT,
            next: SLOT,
            previous: SLOT,
            a_outbound_query: SLOT,
            quota: SLOT,
            older: SLOT,
            newer: SLOT,
            chase: SLOT,
            id: u16::MAX,
            flags: Flags(u16::MAX),
            edns: Some(ResponseParamsEdns {
                size: 1,
                dnssec_ok: true,
                stream_options: StreamOptions::PADDING,
            }),
            query_flags: QueryFlags::PROBE,
            subnet: Some(Subnet::POISON),
            scope: u8::MAX,
            cookie: Some(Cookie::POISON),
            stage: Stage::NegativeAaaa,
            cause: Cause::Timeout,
            rpz_rule: 0,
            rpz_hop: 0,
            policy_mark: Some(PolicyMark::poison()),
            has_lost_addresses: true,
            negative_ttl: Some(1),
            aaaa_secure: true,
            bogus_recheck: true,
            cache_hit: Some(CacheHit::Stale),
            cache_missed: true,
            has_stale: true,
            client_timer_expired: true,
            hash: u64::MAX,
            question_len: u16::MAX,
            question: [0xff; QUESTION],
        };
    }
}

impl PendingQuery {
    /// Prepares a slot for a query that was admitted. The caller fills in the query itself. Every field is named, so the compiler
    /// tells of a new one that nothing sets.
    pub fn reset(
        &mut self,
        from: &Client,
        now: Instant,
        deadline: Instant,
        quota_entry: Index,
        newest: Index,
    ) {
        let PendingQuery {
            client,
            arrived,
            useful_until,
            quota,
            older,
            newer,
            a_outbound_query,
            chase,
            cause,
            rpz_rule,
            rpz_hop,
            policy_mark,
            has_lost_addresses,
            aaaa_secure,
            bogus_recheck,
            cache_hit,
            cache_missed,
            has_stale,
            client_timer_expired,
            // Set by `fill`.
            id: _,
            flags: _,
            edns: _,
            query_flags: _,
            subnet: _,
            scope: _,
            cookie: _,
            stage: _,
            hash: _,
            question_len: _,
            question: _,
            // Set when the pending query is attached to an outbound query.
            outbound: _,
            next: _,
            previous: _,
            // Set with the outcome of the AAAA lookup, before the A lookup reads it.
            negative_ttl: _,
        } = self;
        *client = *from;
        *arrived = now;
        *useful_until = deadline;
        *quota = quota_entry;
        *older = newest;
        (*newer, *a_outbound_query, *chase) = (NONE, NONE, NONE);
        *cause = Cause::NoData;
        *rpz_rule = NO_RULE_YET;
        *rpz_hop = NO_HOP_YET;
        *policy_mark = None;
        *has_lost_addresses = false;
        *aaaa_secure = false;
        *bogus_recheck = false;
        *cache_hit = None;
        *cache_missed = false;
        *has_stale = false;
        *client_timer_expired = false;
    }

    /// Fills in the query of a pending query. `question`: with the name that is asked for, perhaps the target of an alias of ours; `scope`:
    /// that of the subnet that was left out.
    #[inline]
    pub fn fill(&mut self, params: &ResponseParams<'_>, stage: Stage, question: &Question<'_>, scope: u8) {
        self.id = params.id;
        self.flags = params.flags;
        self.edns = params.edns;
        self.query_flags = question.query_flags;
        self.subnet = params.subnet.copied();
        self.scope = scope;
        self.cookie = params.cookie.copied();
        self.stage = stage;
        self.hash = question.hash;
        self.question_len = params.question.len() as u16;
        self.question[..params.question.len()].copy_from_slice(params.question);
    }

    /// The name asked, as the client wrote it.
    #[inline]
    pub fn name(&self) -> &[u8] {
        &self.question[..self.question_len as usize - 4]
    }

    /// Question section, in the client's letter case.
    #[inline]
    pub fn question(&self) -> &[u8] {
        &self.question[..self.question_len as usize]
    }

    /// Type and class in the query.
    pub fn qtype_and_class(&self) -> (Type, Class) {
        let asked = self.question();
        let [t0, t1, c0, c1] = [4, 3, 2, 1].map(|back| asked[asked.len() - back]);
        (Type(u16::from_be_bytes([t0, t1])), Class(u16::from_be_bytes([c0, c1])))
    }

    /// The type that it waits for at the moment.
    #[inline]
    pub fn current_type(&self) -> Type {
        self.stage.qtype().unwrap_or_else(|| self.qtype_and_class().0)
    }

    /// The question as it came, whatever is asked for it now.
    #[inline]
    pub fn own_question(&self) -> Question<'_> {
        let (qtype, class) = self.qtype_and_class();
        Question {
            name: self.name(),
            hash: self.hash,
            qtype,
            class,
            query_flags: self.query_flags,
            subnet: self.subnet.as_ref(),
        }
    }

    /// Flags with which an upstream is asked for a type.
    #[inline]
    pub fn query_flags_for(&self, qtype: Type) -> QueryFlags {
        let unchecked = self.stage == Stage::AaaaWithCd && qtype == Type::AAAA;
        self.query_flags.with(QueryFlags::CD, unchecked)
    }

    /// True if all data so far came from the cache.
    #[inline]
    pub fn is_all_from_cache(&self) -> bool {
        self.cache_hit.is_some() && !self.cache_missed
    }

    /// True if no rule of a response policy zone has applied so far, and no address was taken away.
    #[inline]
    pub fn has_met_no_rule(&self) -> bool {
        self.rpz_rule == NO_RULE_YET && !self.has_lost_addresses
    }

    /// Requestor of the answer; `own_size`: largest UDP message of this server.
    #[inline]
    pub fn params(&self, own_size: u16) -> ResponseParams<'_> {
        ResponseParams {
            id: self.id,
            flags: self.flags,
            question: self.question(),
            edns: self.edns,
            subnet: self.subnet.as_ref(),
            scope: self.scope,
            cookie: self.cookie.as_ref(),
            limit: answer_limit(self.client.transport, self.edns, own_size),
            own_size,
        }
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use crate::answer::params::unlimited_params;
    use crate::base::slab::Slab;

    /// Has a query take a slot, as `Resolver::begin` does.
    fn admit(pending_queries: &mut Slab<PendingQuery>) -> Index {
        let index = pending_queries.take().unwrap();
        let client = Client::udp("[2001:db8::1]:53".parse().unwrap());
        pending_queries[index].reset(&client, Instant(1), Instant(2), 3, 4);
        let question = b"\x03www\x07example\0\0\x1c\0\x01";
        let params = ResponseParams { id: 5, ..unlimited_params(QueryFlags::RD, question) };
        let (name, query_flags) = (&question[..question.len() - 4], QueryFlags::RD);
        let asked =
            Question { name, hash: 6, subnet: None, qtype: Type::AAAA, query_flags, class: Class::IN };
        pending_queries[index].fill(&params, Stage::Aaaa, &asked, 0);
        index
    }

    #[test]
    fn a_query_finds_nothing_of_the_one_that_had_its_slot() {
        let mut pending_queries = Slab::new(1);
        let first = admit(&mut pending_queries);
        let fresh = format!("{:?}", as_attached(&pending_queries[first]));
        pending_queries.give(first);
        let reused = admit(&mut pending_queries);
        assert_eq!(format!("{:?}", as_attached(&pending_queries[reused])), fresh);
    }

    /// The pending query with what its outbound query and the AAAA lookup set before it is read, and without octets behind its question.
    fn as_attached(pending: &PendingQuery) -> PendingQuery {
        let mut pending =
            PendingQuery { outbound: 0, next: 0, previous: 0, negative_ttl: None, ..pending.clone() };
        pending.question[usize::from(pending.question_len)..].fill(0);
        pending
    }

    #[test]
    fn a_freed_slot_has_in_every_field_what_no_query_begins_with() {
        let mut pending_queries = Slab::<PendingQuery>::new(1);
        let index = admit(&mut pending_queries);
        let used = pending_queries[index].clone();
        pending_queries.give(index);
        let freed = &pending_queries[index];
        macro_rules! assert_poisoned {
            ($($field:ident),*) => {
                // Without `..`, so that no field is forgotten.
                let PendingQuery { $($field: _),* } = freed;
                $(assert_ne!(format!("{:?}", freed.$field), format!("{:?}", used.$field), stringify!($field));)*
            };
        }
        assert_poisoned!(
            client,
            arrived,
            useful_until,
            outbound,
            next,
            previous,
            a_outbound_query,
            quota,
            older,
            newer,
            chase,
            id,
            flags,
            edns,
            query_flags,
            subnet,
            scope,
            cookie,
            stage,
            cause,
            rpz_rule,
            rpz_hop,
            policy_mark,
            has_lost_addresses,
            negative_ttl,
            aaaa_secure,
            bogus_recheck,
            cache_hit,
            cache_missed,
            has_stale,
            client_timer_expired,
            hash,
            question_len,
            question
        );
    }
}
