//! Questions that are asked upstream. Equal questions meet here, so an upstream is asked once however many
//! clients wait (which also denies the birthday attack, VU#457875).

use crate::base::slab::{Index, NONE, Slab};
use crate::base::time::Instant;
use crate::base::timer_wheel::{Hook, Hooks};
use crate::counters::{Counter, Counters};
use crate::interface::{Link, Outbox, Transport};
use crate::limits::{ATTEMPTS, SUBNETS};
use crate::message::client_subnet::Subnet;
use crate::message::question::{QueryFlags, Question};
use crate::upstream::Upstream;
use crate::upstream::dns0x20::mix_case;
use crate::upstream::links::Release;
use wire::{Class, Type};

/// One try.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// The link that it went over.
    pub link: Link,
    /// Its message ID.
    pub id: u16,
    /// The server asked.
    pub server: u16,
    /// When.
    pub sent: Instant,
    /// The server replied that it failed.
    pub failed: bool,
    /// The flight's client subnet went with it.
    pub with_subnet: bool,
    /// A cookie went with it.
    pub with_cookie: bool,
    /// An OPT record went with it.
    pub with_opt: bool,
    /// It repeats one that may still be answered (`repeat.rs`).
    pub is_hedge: bool,
}

impl Attempt {
    /// None.
    pub const NONE: Attempt = Attempt {
        link: Link::NOWHERE,
        id: 0,
        server: 0,
        sent: Instant(0),
        failed: false,
        with_subnet: false,
        with_cookie: false,
        with_opt: false,
        is_hedge: false,
    };
}

/// Where a flight stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FlightState {
    /// The slot is free.
    #[default]
    Free,
    /// Asked, not answered.
    Asked,
    /// Over, and its outcome is kept for clients whose AAAA leg is not decided.
    Completed,
}

/// One question on its way.
pub struct Flight {
    pub state: FlightState,
    pub over_tcp: bool,
    /// The current try could not be sent.
    pub unsent: bool,
    /// An upstream did not want the client subnet: it is left out from now on.
    pub without_subnet: bool,
    /// The same of the cookie.
    pub without_cookie: bool,
    /// The same of the OPT record.
    pub without_edns: bool,
    /// Its next try repeats one that is only late (`repeat.rs`).
    pub next_is_hedge: bool,
    /// It had to wait with some try; its current try is late, and waits on.
    pub hedge_deferred: bool,
    pub extended_wait: bool,
    /// What came is not for others.
    pub is_private: bool,
    /// It was asked with a renewed cookie after BADCOOKIE.
    pub cookie_renewed: bool,
    /// A reply over UDP lacked the cookie.
    pub cookie_missing: bool,
    /// Tries so far.
    pub tries: u8,
    pub attempts_len: u8,
    pub query_flags: QueryFlags,
    pub subnet: Option<Subnet>,
    /// The scope of the last reply: for how many bits of the client subnet it counts.
    pub scope: u8,
    pub name_len: u8,
    pub qtype: Type,
    pub class: Class,
    pub hash: u64,
    next_in_bucket: Index,
    pub hook: Hook,
    /// When the current try is given up.
    pub deadline: Instant,
    /// When the A leg is asked as well (an AAAA question with `lookup = "stagger"`, or whose first try failed).
    pub stagger: Option<Instant>,
    /// When clients for whom there are expired data get these (RFC 8767 section 5).
    pub client_response_timer: Option<Instant>,
    /// First of the clients that wait.
    pub waiters: Index,
    /// Clients that wait for another flight and will want the outcome of this one.
    pub references: u32,
    /// The number of the group of upstreams that its name belonged to when it was asked first.
    pub group: u32,
    /// How often the cache had been made to forget something by then.
    pub flush_epoch: u32,
    /// Number of the kept reply; [`NONE`]: it failed, [`NOT_PARKED`](crate::upstream::parked_replies::LOST): there was no room.
    pub parked: Index,
    pub attempts: [Attempt; ATTEMPTS],
    /// The name as it was sent, letter by letter.
    pub name: [u8; 256],
}

impl Default for Flight {
    fn default() -> Flight {
        Flight {
            state: FlightState::Free,
            over_tcp: false,
            unsent: false,
            without_subnet: false,
            without_cookie: false,
            without_edns: false,
            next_is_hedge: false,
            hedge_deferred: false,
            extended_wait: false,
            is_private: false,
            cookie_renewed: false,
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
            client_response_timer: None,
            waiters: NONE,
            references: 0,
            group: 0,
            flush_epoch: 0,
            parked: NONE,
            attempts: [Attempt::NONE; ATTEMPTS],
            name: [0; 256],
        }
    }
}

impl Flight {
    /// The name as it was sent.
    #[inline]
    pub fn name(&self) -> &[u8] {
        &self.name[..self.name_len as usize]
    }

    /// What it asks.
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

    /// True if somebody waits for the answer, or will.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.waiters != NONE || self.references > 0
    }

    /// The tries that may still be answered.
    #[inline]
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts[..self.attempts_len as usize]
    }
}

/// All flights, and the table in which equal questions meet.
pub struct Flights {
    pub slab: Slab<Flight>,
    buckets: Box<[Index]>,
    /// How often the cache was made to forget something.
    pub flush_epoch: u32,
    /// How many bits of a product do not choose the bucket.
    shift: u32,
}

impl Hooks for Slab<Flight> {
    #[inline]
    fn hook(&mut self, index: Index) -> &mut Hook {
        &mut self[index].hook
    }
}

impl Flights {
    /// Room for `capacity` flights.
    pub fn new(capacity: usize) -> Flights {
        let buckets = capacity.next_power_of_two().max(2);
        Flights {
            slab: Slab::new(capacity),
            buckets: vec![NONE; buckets].into(),
            flush_epoch: 0,
            shift: u64::BITS - buckets.ilog2(),
        }
    }

    /// Whether the cache was made to forget something since a flight was asked first: its reply may be what was meant.
    #[inline]
    pub fn predates_flush(&self, index: Index) -> bool {
        self.slab[index].flush_epoch != self.flush_epoch
    }

    /// One name may be asked for with all types and classes that there are, so these choose the bucket, too. Multiplied with
    /// what nobody knows, the hash of the name, they spread (multiply-shift hashing, whose best bits are the highest).
    #[inline]
    fn bucket(&self, hash: u64, qtype: Type, class: Class) -> usize {
        let which = u64::from(class.0) << 17 | u64::from(qtype.0) << 1 | 1;
        ((hash | 1).wrapping_mul(which) >> self.shift) as usize
    }

    /// The flight that asks this very question.
    #[inline]
    pub fn find(&self, question: &Question<'_>) -> Option<Index> {
        let mut index = self.buckets[self.bucket(question.hash, question.qtype, question.class)];
        while index != NONE {
            let flight = &self.slab[index];
            if flight.hash == question.hash
                && flight.qtype == question.qtype
                && flight.class == question.class
                && flight.query_flags == question.query_flags
                && flight.subnet.as_ref() == question.subnet
                && wire::eq_ignore_case(flight.name(), question.name)
            {
                return Some(index);
            }
            index = flight.next_in_bucket;
        }
        None
    }

    /// All flights with this hash, type and class, and perhaps others with this hash: candidates for a reply.
    #[inline]
    pub fn candidates(&self, hash: u64, qtype: Type, class: Class) -> Candidates<'_> {
        Candidates { flights: self, hash, next: self.buckets[self.bucket(hash, qtype, class)] }
    }

    #[inline]
    fn bucket_of(&self, index: Index) -> usize {
        let Flight { hash, qtype, class, .. } = self.slab[index];
        self.bucket(hash, qtype, class)
    }

    /// Enters a flight into the table.
    #[inline]
    pub fn enter(&mut self, index: Index) {
        let bucket = self.bucket_of(index);
        self.slab[index].next_in_bucket = self.buckets[bucket];
        self.buckets[bucket] = index;
    }

    /// Takes a flight out of the table: no question joins it, no reply finds it any more.
    #[inline]
    pub fn leave(&mut self, index: Index) {
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

/// Walks over [`Flights::candidates`].
pub struct Candidates<'a> {
    flights: &'a Flights,
    hash: u64,
    next: Index,
}

impl Iterator for Candidates<'_> {
    type Item = Index;
    #[inline]
    fn next(&mut self) -> Option<Index> {
        while self.next != NONE {
            let index = self.next;
            self.next = self.flights.slab[index].next_in_bucket;
            if self.flights.slab[index].hash == self.hash {
                return Some(index);
            }
        }
        None
    }
}

impl Flights {
    /// Whether a question with a subnet would be one too many of those that differ in nothing else.
    #[cold]
    fn too_many_subnets(&self, question: &Question<'_>) -> bool {
        let mut others = 0;
        for index in self.candidates(question.hash, question.qtype, question.class) {
            let flight = &self.slab[index];
            if flight.subnet.is_some()
                && question.qtype == flight.qtype
                && flight.class == question.class
                && wire::eq_ignore_case(flight.name(), question.name)
            {
                // It is no further one when it joins.
                if flight.subnet.as_ref() == question.subnet && question.query_flags == flight.query_flags {
                    return false;
                }
                others += 1;
            }
        }
        others >= SUBNETS
    }
}

impl core::ops::Index<Index> for Flights {
    type Output = Flight;
    #[inline]
    fn index(&self, index: Index) -> &Flight {
        &self.slab[index]
    }
}

impl core::ops::IndexMut<Index> for Flights {
    #[inline]
    fn index_mut(&mut self, index: Index) -> &mut Flight {
        &mut self.slab[index]
    }
}

impl Upstream {
    /// Makes a question in flight, entered into the table and not asked yet. None: there is no room.
    pub(super) fn prepare(&mut self, question: &Question<'_>) -> Option<Index> {
        let Upstream { flights, random, parameters, servers, .. } = self;
        let index = flights.slab.take()?;
        let flush_epoch = flights.flush_epoch;
        let flight = &mut flights.slab[index];
        flight.state = FlightState::Asked;
        flight.unsent = false;
        flight.over_tcp = parameters.transport == Transport::Tcp;
        flight.tries = 0;
        flight.attempts_len = 0;
        flight.query_flags = question.query_flags;
        flight.subnet = question.subnet.copied();
        flight.scope = 0;
        flight.without_subnet = false;
        flight.without_cookie = false;
        flight.without_edns = false;
        flight.next_is_hedge = false;
        flight.hedge_deferred = false;
        flight.extended_wait = false;
        flight.is_private = false;
        flight.cookie_renewed = false;
        flight.cookie_missing = false;
        flight.qtype = question.qtype;
        flight.class = question.class;
        flight.hash = question.hash;
        flight.stagger = None;
        flight.client_response_timer = None;
        flight.group = servers.group_number(question.name);
        flight.flush_epoch = flush_epoch;
        flight.waiters = NONE;
        flight.references = 0;
        flight.parked = NONE;
        flight.name_len = question.name.len() as u8;
        mix_case(question.name, random.bits(), &mut flight.name);
        flights.enter(index);
        Some(index)
    }

    /// Sets when the current try of a question is over.
    pub fn set_deadline(&mut self, index: Index, deadline: Instant) {
        let flight = &mut self.flights[index];
        flight.deadline = deadline;
        let others = [flight.stagger, flight.client_response_timer].into_iter().flatten();
        let due = others.fold(deadline, Instant::min);
        self.wheel.set(&mut self.flights.slab, index, due);
    }

    /// Sets when the A leg of an AAAA question is asked as well.
    pub fn set_stagger(&mut self, index: Index, at: Instant) {
        self.flights[index].stagger = Some(at);
        let deadline = self.flights[index].deadline;
        self.set_deadline(index, deadline);
    }

    /// Sets when clients that have expired data get them (RFC 8767 section 5), unless that is set to an earlier time.
    pub fn set_client_response_timer(&mut self, index: Index, at: Instant) {
        let flight = &mut self.flights[index];
        if flight.client_response_timer.is_none_or(|timer| at < timer) {
            flight.client_response_timer = Some(at);
            let deadline = flight.deadline;
            self.set_deadline(index, deadline);
        }
    }

    /// Leaves out the subnet of a question when as many questions with others are in flight as are allowed. Returns the scope
    /// of the answer to the question without it.
    ///
    /// That scope is the full source prefix length, so that a client's cache does not reuse the answer for other subnets:
    /// answers made under a crowd, perhaps a malicious one, must not keep others from asking for their own.
    #[inline]
    pub fn drop_subnet_if_crowded(&self, question: &mut Question<'_>, counters: &mut Counters) -> u8 {
        match question.subnet {
            Some(subnet) if self.flights.too_many_subnets(question) => {
                counters.count(Counter::SubnetCrowded);
                question.subnet = None;
                subnet.source
            }
            _ => 0,
        }
    }

    /// Ends a question: no reply and no other question finds it any more, and its links may close. Returns the first of those
    /// who wait for it.
    pub fn complete(&mut self, index: Index, out: &mut impl Outbox) -> Index {
        self.wheel.cancel(&mut self.flights.slab, index);
        self.flights.leave(index);
        for place in 0..self.flights[index].attempts_len as usize {
            let link = self.flights[index].attempts[place].link;
            if self.links.release(link) == Release::Close {
                self.close(link, out);
            }
        }
        let flight = &mut self.flights[index];
        flight.attempts_len = 0;
        flight.state = FlightState::Completed;
        core::mem::replace(&mut flight.waiters, NONE)
    }

    /// Frees a completed question, or parks its reply for those who refer to it.
    pub fn park_or_free(&mut self, index: Index, reply: Option<&[u8]>) {
        if self.flights[index].references == 0 {
            return self.free_flight(index);
        }
        if let Some(reply) = reply {
            self.flights[index].parked = self.parked.keep(reply);
        }
    }

    /// Somebody who referred to a question needs it no more. A question that was asked stays in flight until its reply, which
    /// would otherwise look like a forgery.
    pub fn release_flight(&mut self, index: Index) {
        let flight = &mut self.flights[index];
        flight.references -= 1;
        if flight.references == 0 && flight.state == FlightState::Completed {
            self.free_flight(index);
        }
    }

    /// Frees a question that has left the table.
    fn free_flight(&mut self, index: Index) {
        let parked = core::mem::replace(&mut self.flights[index].parked, NONE);
        if parked != NONE {
            self.parked.forget(parked);
        }
        self.flights[index].state = FlightState::Free;
        self.flights.slab.give(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name_hash::HashKey;

    #[test]
    fn questions_for_many_types_of_one_name_lie_in_many_buckets() {
        let mut flights = Flights::new(1024);
        let hash = HashKey([0x1234_5678_9abc_def0, 0x0fed_cba9_8765_4321]).hash(b"\x04evil\x04test\0");
        let kinds = (0..512)
            .map(|number| (Type(number), Class::IN))
            .chain((1..513).map(|number| (Type::A, Class(number))));
        for (qtype, class) in kinds.clone() {
            let index = flights.slab.take().unwrap();
            let flight = &mut flights.slab[index];
            (flight.hash, flight.qtype, flight.class) = (hash, qtype, class);
            flights.enter(index);
        }
        // 1,024 in 1,024 buckets: of random ones hardly any would hold eight.
        for (qtype, class) in kinds {
            assert!(flights.candidates(hash, qtype, class).count() < 8, "{qtype} {class}");
        }
        for index in 0..flights.slab.touched() {
            flights.leave(index);
        }
        assert!(flights.buckets.iter().all(|&first| first == NONE));
    }
}
