//! Client questions that wait for an upstream.

use crate::answer::requestor::{Requestor, RequestorEdns, answer_limit};
use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::dns64::decision::{Cause, Stage};
use crate::interface::{Client, ClientTransport};
use crate::message::client_subnet::Subnet;
use crate::message::cookie::Cookie;
use crate::message::question::{QUESTION, QueryFlags, Question};
use crate::rpz::table::NO_RULE_YET;
use core::net::Ipv6Addr;
use wire::header::Flags;
use wire::{Class, Type};

/// What a client got out of the cache so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CacheHit {
    /// Nothing.
    #[default]
    Nothing,
    /// Data.
    Positive,
    /// That there is nothing.
    Negative,
    /// Addresses, out of which others were made.
    Synthesized,
    /// That a question failed.
    Failure,
    /// Data that have expired.
    Stale,
}

/// One client question.
#[derive(Clone)]
pub struct Waiter {
    pub client: Client,
    pub arrived: Instant,
    /// Until when it is worth an answer over UDP.
    pub useful_until: Instant,
    /// The flight that it waits for, and its neighbours there.
    pub flight: Index,
    pub next: Index,
    pub previous: Index,
    /// The A flight that it holds while the AAAA leg is not decided.
    pub a_flight: Index,
    /// Its network's entry in the ledger, and its neighbours there: older and newer.
    pub quota: Index,
    pub older: Index,
    pub newer: Index,
    /// The chain that it follows beyond what one reply told.
    pub chase: Index,
    pub id: u16,
    pub flags: Flags,
    pub edns: Option<RequestorEdns>,
    pub query_flags: QueryFlags,
    /// The client subnet that goes with what is asked for it.
    pub subnet: Option<Subnet>,
    /// For how many bits of the client subnet the answer counts: the most that any reply said that it rests on. What is
    /// made of two legs counts only where both do, and RFC 7871 section 7.2.1 has the longest of several RRsets too.
    pub scope: u8,
    /// The cookie for its answer.
    pub cookie: Option<Cookie>,
    pub stage: Stage,
    pub cause: Cause,
    /// The rule of a response policy zone that decides.
    pub rpz_rule: u32,
    /// From the AAAA leg: the negative TTL (none: there was no SOA), and whether the answer was secure.
    pub negative_ttl: Option<u32>,
    pub aaaa_secure: bool,
    /// The AAAA leg failed, and was answered when nobody validated: failing once more, it is bogus.
    pub bogus_recheck: bool,
    /// What it got out of the cache, and whether it had to wait for an upstream.
    pub cache_hit: CacheHit,
    pub cache_missed: bool,
    /// There are expired data of what it waits for.
    pub has_stale: bool,
    /// It has waited long enough.
    pub client_timer_expired: bool,
    /// Keyed hash of the name asked.
    pub hash: u64,
    pub question_len: u16,
    pub question: [u8; QUESTION],
}

impl Default for Waiter {
    fn default() -> Waiter {
        Waiter {
            client: Client {
                address: Ipv6Addr::UNSPECIFIED,
                local: Ipv6Addr::UNSPECIFIED,
                port: 0,
                listener: 0,
                scope: 0,
                stream: 0,
                transport: ClientTransport::Udp,
                proxy: None,
            },
            arrived: Instant(0),
            useful_until: Instant(0),
            flight: NONE,
            next: NONE,
            previous: NONE,
            a_flight: NONE,
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
            negative_ttl: None,
            aaaa_secure: false,
            bogus_recheck: false,
            cache_hit: CacheHit::Nothing,
            cache_missed: false,
            has_stale: false,
            client_timer_expired: false,
            hash: 0,
            question_len: 0,
            question: [0; QUESTION],
        }
    }
}

impl Waiter {
    /// Prepares a slot for a query that was admitted. The query itself is filled in by the caller.
    pub fn reset(&mut self, from: &Client, now: Instant, useful_until: Instant, quota: Index, older: Index) {
        self.client = *from;
        self.arrived = now;
        self.useful_until = useful_until;
        self.quota = quota;
        self.older = older;
        self.newer = NONE;
        self.a_flight = NONE;
        self.chase = NONE;
        self.cause = Cause::NoData;
        self.rpz_rule = NO_RULE_YET;
        self.aaaa_secure = false;
        self.bogus_recheck = false;
        self.cache_hit = CacheHit::Nothing;
        self.cache_missed = false;
        self.has_stale = false;
        self.client_timer_expired = false;
    }

    /// The name asked, as the client wrote it.
    #[inline]
    pub fn name(&self) -> &[u8] {
        &self.question[..self.question_len as usize - 4]
    }

    /// The question section, as the client wrote it.
    #[inline]
    pub fn question(&self) -> &[u8] {
        &self.question[..self.question_len as usize]
    }

    /// The type and the class that the client asks for.
    pub fn qtype_and_class(&self) -> (Type, Class) {
        let asked = self.question();
        let [t0, t1, c0, c1] = [4, 3, 2, 1].map(|back| asked[asked.len() - back]);
        (Type(u16::from_be_bytes([t0, t1])), Class(u16::from_be_bytes([c0, c1])))
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

    /// The bits with which an upstream is asked for a type.
    #[inline]
    pub fn query_flags_for(&self, qtype: Type) -> QueryFlags {
        let unchecked = self.stage == Stage::AaaaWithCd && qtype == Type::AAAA;
        self.query_flags.with(QueryFlags::CD, unchecked)
    }

    /// Whether everything that it got so far came out of the cache.
    #[inline]
    pub fn is_all_from_cache(&self) -> bool {
        self.cache_hit != CacheHit::Nothing && !self.cache_missed
    }

    /// What an answer needs to know of the question.
    #[inline]
    pub fn requestor(&self, own_size: u16) -> Requestor<'_> {
        Requestor {
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
