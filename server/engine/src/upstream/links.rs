//! Links to upstream servers: their sockets, random ports and message IDs (RFC 5452).
//!
//! A UDP link is one connected socket on one random port. It carries at most [`LINK_QUESTIONS`] queries, whose IDs never
//! repeat: no ID is used again while a reply to it may still come (the wrap-around bug of early servers). A UDP link is
//! replaced after some seconds, so a port that an attacker has found out is soon worthless.

use crate::base::random::Random;
use crate::base::slab::{Index, NONE};
use crate::base::time::{Instant, Span};
use crate::interface::{Link, Transport};
use crate::limits::{LINK_LIFE_SECS, LINK_QUESTIONS, LINKS};
use crate::message::cookie::CLIENT;

/// Use of a link so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Queries that it carried, each with an ID of its own.
    pub issued: usize,
    /// Queries that wait on it.
    pub outstanding: u32,
    /// Messages that came over it.
    pub answered: u32,
    /// Time of the latest message over it, or of its opening.
    pub last_activity: Instant,
    /// Time since which queries wait on it without a pause.
    pub waiting_since: Instant,
    /// Time between the latest two messages for which queries waited, or between the first query that waits and its reply.
    pub latest_gap: Span,
}

impl Usage {
    /// Use of a link that is opened now.
    pub fn new(now: Instant) -> Usage {
        Usage {
            issued: 0,
            outstanding: 0,
            answered: 0,
            last_activity: now,
            waiting_since: now,
            latest_gap: Span::ZERO,
        }
    }
}

/// State of one slot.
struct LinkState {
    generation: u16,
    server: u16,
    transport: Transport,
    open: bool,
    /// No new query takes the link; it closes with its last question.
    retired: bool,
    opened: Instant,
    usage: Usage,
    /// Client cookie of the queries over the link.
    cookie: [u8; CLIENT],
    /// Latest ID of a TCP or TLS link; IDs count upwards.
    next_id: u16,
    /// Bloom filter with one hash function, the low bits of an ID, over the IDs issued on a UDP link. Most draws need no search
    /// in `ids`.
    bloom_bits: [u64; BLOOM_SIZE / 64],
    /// IDs issued on a UDP link.
    ids: Box<[u16; LINK_QUESTIONS]>,
    /// Questions that the IDs were issued for.
    outbound_queries: Box<[Index; LINK_QUESTIONS]>,
    /// Queries over a TCP or TLS link, by ID and question: all that wait on it, and some that wait no more ([`Links::has_many_gone`]).
    /// Its memory ends with the link: 256 KiB of a busy one would stay in each slot.
    asked: Vec<(u16, Index)>,
}

/// Queries over a TCP or TLS link that wait no more and are known, beyond as many as wait. So to forget them costs each query two steps.
const GONE_QUERIES: usize = 64;

/// Bits of the Bloom filter: two cache lines. With 255 IDs issued, 22 % of the bits are set (1 - e^-0.25).
const BLOOM_SIZE: usize = 1024;

impl LinkState {
    /// Word and bit of an ID in `bloom_bits`.
    #[inline]
    fn bloom_place(id: u16) -> (usize, u64) {
        let place = usize::from(id) % BLOOM_SIZE;
        (place / 64, 1 << (place % 64))
    }

    /// True if an ID was issued on this UDP link.
    #[inline]
    fn has_issued(&self, id: u16) -> bool {
        let (word, bit) = LinkState::bloom_place(id);
        self.bloom_bits[word] & bit != 0 && self.ids[..self.usage.issued].contains(&id)
    }
}

/// All links, by slot.
pub struct Links {
    states: Vec<LinkState>,
    free_slots: Vec<u16>,
}

/// Effect on a link when a question leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The link stays open.
    Keep,
    /// The link is retired and has lost its last question: close it.
    Close,
}

impl Links {
    /// Creates the table without open links.
    pub fn new() -> Links {
        Links { states: Vec::with_capacity(LINKS), free_slots: Vec::with_capacity(LINKS) }
    }

    /// Takes a slot for a new link to `server`. None: all slots are in use.
    pub fn take(
        &mut self,
        server: u16,
        transport: Transport,
        now: Instant,
        random: &mut Random,
    ) -> Option<Link> {
        let slot = match self.free_slots.pop() {
            Some(slot) => slot,
            None if self.states.len() < LINKS => {
                self.states.push(LinkState {
                    generation: 0,
                    server: 0,
                    transport,
                    open: false,
                    retired: false,
                    opened: now,
                    usage: Usage::new(now),
                    cookie: [0; CLIENT],
                    next_id: 0,
                    bloom_bits: [0; BLOOM_SIZE / 64],
                    ids: Box::new([0; LINK_QUESTIONS]),
                    outbound_queries: Box::new([NONE; LINK_QUESTIONS]),
                    asked: Vec::new(),
                });
                self.states.len() as u16 - 1
            }
            None => return None,
        };
        let state = &mut self.states[slot as usize];
        state.generation = state.generation.wrapping_add(1);
        state.server = server;
        state.transport = transport;
        state.open = true;
        state.retired = false;
        state.opened = now;
        state.usage = Usage::new(now);
        state.bloom_bits = [0; BLOOM_SIZE / 64];
        state.next_id = random.id();
        Some(Link { slot, generation: state.generation })
    }

    /// Returns the link of a slot, if it is open.
    pub fn link(&self, slot: u16) -> Option<Link> {
        let state = self.states.get(slot as usize)?;
        state.open.then_some(Link { slot, generation: state.generation })
    }

    /// True if a link is open; false if its slot is free or holds a newer link.
    #[inline]
    pub fn is_open(&self, link: Link) -> bool {
        self.states
            .get(link.slot as usize)
            .is_some_and(|state| state.open && state.generation == link.generation)
    }

    /// Number of the server that a link leads to.
    #[inline]
    pub fn server(&self, link: Link) -> u16 {
        self.states[link.slot as usize].server
    }

    /// Transport of a link.
    #[inline]
    pub fn transport(&self, link: Link) -> Transport {
        self.states[link.slot as usize].transport
    }

    /// Sets the client cookie of a new link.
    pub fn set_cookie(&mut self, link: Link, cookie: [u8; CLIENT]) {
        self.states[link.slot as usize].cookie = cookie;
    }

    /// Client cookie of a link.
    #[inline]
    pub fn cookie(&self, link: Link) -> &[u8; CLIENT] {
        &self.states[link.slot as usize].cookie
    }

    /// True if a UDP link may take one more query.
    #[inline]
    pub fn has_room(&self, link: Link, now: Instant) -> bool {
        let state = &self.states[link.slot as usize];
        state.usage.issued < LINK_QUESTIONS && now - state.opened < Span::from_secs(LINK_LIFE_SECS)
    }

    /// Use of a link so far.
    #[inline]
    pub fn usage(&self, link: Link) -> &Usage {
        &self.states[link.slot as usize].usage
    }

    /// True if an ID was issued on a UDP link before. A reply with such an ID counts as late, not as forged: an attacker who
    /// guesses gains nothing from a reply that is ignored, and only 256 of 65,536 IDs at most are treated so.
    pub fn was_issued(&self, link: Link, id: u16) -> bool {
        let state = &self.states[link.slot as usize];
        state.transport == Transport::Udp && state.has_issued(id)
    }

    /// Records that a message came over an open link.
    #[inline]
    pub fn note_activity(&mut self, link: Link, now: Instant) {
        let usage = &mut self.states[link.slot as usize].usage;
        usage.latest_gap = now - usage.last_activity.max(usage.waiting_since);
        usage.last_activity = now;
        usage.answered = usage.answered.saturating_add(1);
    }

    /// Time since which an open TCP or TLS link that has brought replies owes one; none if no question waits on it.
    pub fn silent_since(&self, link: Link) -> Option<Instant> {
        let usage = self.usage(link);
        (usage.outstanding > 0 && self.was_active(link)).then(|| usage.last_activity.max(usage.waiting_since))
    }

    /// True if a message came over an open link: the connection was established, and its upstream has answered.
    pub fn was_active(&self, link: Link) -> bool {
        let state = &self.states[link.slot as usize];
        state.usage.last_activity > state.opened
    }

    /// True if no message at all came over an open TCP or TLS link since `sent`, the time of a query over it.
    pub fn is_hung(&self, link: Link, sent: Instant) -> bool {
        let state = &self.states[link.slot as usize];
        self.is_open(link) && state.transport.is_stream() && state.usage.last_activity <= sent
    }

    /// Retires a link: no new query takes it. Returns [`Release::Close`] if no question waits on it.
    pub fn retire(&mut self, link: Link) -> Release {
        let state = &mut self.states[link.slot as usize];
        state.retired = true;
        if state.usage.outstanding == 0 { Release::Close } else { Release::Keep }
    }

    /// Issues a message ID for a query on a link that has room.
    //= RFC 9250 section 4.2.1: requirement 97
    #[inline(always)]
    pub fn issue(&mut self, link: Link, outbound: Index, now: Instant, random: &mut Random) -> u16 {
        let state = &mut self.states[link.slot as usize];
        let id = match state.transport {
            Transport::Udp => {
                let mut id = random.id();
                // At most 255 of 65,536 IDs are taken: a second draw is rare, and a fourth practically never happens.
                while state.has_issued(id) && !random.is_forgetful() {
                    id = random.id();
                }
                let (word, bit) = LinkState::bloom_place(id);
                state.bloom_bits[word] |= bit;
                state.ids[state.usage.issued] = id;
                state.outbound_queries[state.usage.issued] = outbound;
                id
            }
            Transport::Tcp | Transport::Tls => {
                if state.usage.outstanding == 0 {
                    state.usage.waiting_since = now;
                }
                state.next_id = state.next_id.wrapping_add(1);
                state.asked.push((state.next_id, outbound));
                state.next_id
            }
        };
        state.usage.issued += 1;
        state.usage.outstanding += 1;
        id
    }

    /// Records that a query no longer waits on a link.
    #[inline]
    pub fn release(&mut self, link: Link) -> Release {
        if !self.is_open(link) {
            return Release::Keep;
        }
        let state = &mut self.states[link.slot as usize];
        state.usage.outstanding -= 1;
        if state.retired && state.usage.outstanding == 0 { Release::Close } else { Release::Keep }
    }

    /// Frees the slot of a closed link.
    pub fn free(&mut self, link: Link) {
        debug_assert!(self.is_open(link));
        let state = &mut self.states[link.slot as usize];
        state.open = false;
        state.asked = Vec::new();
        self.free_slots.push(link.slot);
    }

    /// Number of queries that wait on a link.
    pub fn outstanding(&self, link: Link) -> u32 {
        self.states[link.slot as usize].usage.outstanding
    }

    /// Returns the `place`-th ID of a link and the question that it was issued for. That question may be over already.
    pub fn issued_at(&self, link: Link, place: usize) -> Option<(u16, Index)> {
        let state = &self.states[link.slot as usize];
        match state.transport {
            Transport::Udp => {
                (place < state.usage.issued).then(|| (state.ids[place], state.outbound_queries[place]))
            }
            Transport::Tcp | Transport::Tls => state.asked.get(place).copied(),
        }
    }

    /// True if of the queries over a TCP or TLS link that are known more than half wait no more.
    #[inline]
    pub fn has_many_gone(&self, link: Link) -> bool {
        let state = &self.states[link.slot as usize];
        state.asked.len() >= GONE_QUERIES + 2 * state.usage.outstanding as usize
    }

    /// Forgets the queries over a TCP or TLS link that wait no more.
    #[cold]
    pub fn forget_gone(&mut self, link: Link, waits: impl Fn(u16, Index) -> bool) {
        self.states[link.slot as usize].asked.retain(|&(id, outbound)| waits(id, outbound));
    }

    /// Takes the queries over a TCP or TLS link that are known.
    pub fn take_asked(&mut self, link: Link) -> Vec<(u16, Index)> {
        core::mem::take(&mut self.states[link.slot as usize].asked)
    }

    /// True if an open link leads to the server.
    pub fn leads_to(&self, server: u16) -> bool {
        self.states.iter().any(|state| state.open && state.server == server)
    }

    /// The open links.
    pub fn open(&self) -> impl Iterator<Item = Link> {
        (0..self.states.len() as u16).filter_map(|slot| self.link(slot))
    }

    /// Number of open links.
    pub fn open_count(&self) -> usize {
        self.states.len() - self.free_slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::STREAM_QUESTIONS;

    #[test]
    fn no_id_comes_twice_on_a_udp_link_and_its_room_ends() {
        let mut links = Links::new();
        let mut random = Random::new([3; 32]);
        let link = links.take(0, Transport::Udp, Instant(0), &mut random).unwrap();
        let mut seen = std::collections::HashSet::new();
        while links.has_room(link, Instant(0)) {
            assert!(seen.insert(links.issue(link, 0, Instant(0), &mut random)));
        }
        assert_eq!(seen.len(), LINK_QUESTIONS);
    }

    #[test]
    fn an_id_with_the_same_bloom_bit_was_not_issued_and_a_new_link_has_issued_none() {
        let mut links = Links::new();
        let mut random = Random::new([4; 32]);
        let link = links.take(0, Transport::Udp, Instant(0), &mut random).unwrap();
        let id = links.issue(link, 0, Instant(0), &mut random);
        assert!(links.was_issued(link, id));
        for place in [10, 15] {
            assert!(!links.was_issued(link, id ^ 1 << place));
        }
        links.free(link);
        let link = links.take(0, Transport::Udp, Instant(0), &mut random).unwrap();
        let state = &links.states[link.slot as usize];
        assert_eq!((state.usage.issued, state.bloom_bits), (0, [0; BLOOM_SIZE / 64]));
        assert!(!links.was_issued(link, id));
    }

    #[test]
    fn a_udp_link_takes_no_queries_after_its_lifetime() {
        let mut links = Links::new();
        let mut random = Random::new([3; 32]);
        let link = links.take(0, Transport::Udp, Instant(0), &mut random).unwrap();
        assert!(links.has_room(link, Instant(0) + Span::from_millis(9_999)));
        assert!(!links.has_room(link, Instant(0) + Span::from_secs(10)));
    }

    #[test]
    fn a_retired_link_closes_with_its_last_question_and_the_next_link_of_its_slot_is_another_one() {
        let mut links = Links::new();
        let mut random = Random::new([3; 32]);
        let link = links.take(0, Transport::Udp, Instant(0), &mut random).unwrap();
        links.issue(link, 0, Instant(0), &mut random);
        links.issue(link, 1, Instant(0), &mut random);
        assert_eq!(links.retire(link), Release::Keep);
        assert_eq!(links.release(link), Release::Keep);
        assert_eq!(links.release(link), Release::Close);
        links.free(link);
        let next = links.take(1, Transport::Udp, Instant(0), &mut random).unwrap();
        assert_eq!(next.slot, link.slot);
        assert!(!links.is_open(link) && links.is_open(next));
    }

    #[test]
    fn ids_of_a_tcp_link_do_not_repeat_before_it_is_replaced() {
        let mut links = Links::new();
        let mut random = Random::new([3; 32]);
        let link = links.take(0, Transport::Tcp, Instant(0), &mut random).unwrap();
        let mut seen = vec![false; 65_536];
        for _ in 0..STREAM_QUESTIONS {
            let id = links.issue(link, 0, Instant(0), &mut random);
            assert!(!core::mem::replace(&mut seen[id as usize], true));
        }
    }

    #[test]
    fn the_queries_known_of_a_tcp_link_are_those_that_wait_and_few_others() {
        let mut links = Links::new();
        let mut random = Random::new([3; 32]);
        let link = links.take(0, Transport::Tcp, Instant(0), &mut random).unwrap();
        let mut waiting = std::collections::VecDeque::new();
        let steps = std::cell::Cell::new(0);
        for outbound in 0..10_000 {
            if links.has_many_gone(link) {
                links.forget_gone(link, |id, outbound| {
                    steps.set(steps.get() + 1);
                    waiting.contains(&(id, outbound))
                });
            }
            waiting.push_back((links.issue(link, outbound, Instant(0), &mut random), outbound));
            if waiting.len() > 10 {
                waiting.pop_front();
                links.release(link);
            }
            let known: Vec<_> = (0..).map_while(|place| links.issued_at(link, place)).collect();
            assert!(waiting.iter().all(|query| known.contains(query)));
            assert!(known.len() <= GONE_QUERIES + 2 * waiting.len() + 1);
        }
        assert!(steps.get() <= 2 * 10_000);
    }

    #[test]
    fn a_slot_keeps_no_queries_and_no_memory_of_the_tcp_link_that_had_it() {
        let mut links = Links::new();
        let mut random = Random::new([3; 32]);
        let link = links.take(0, Transport::Tcp, Instant(0), &mut random).unwrap();
        for outbound in 0..10_000 {
            links.issue(link, outbound, Instant(0), &mut random);
        }
        links.free(link);
        assert_eq!(links.states[link.slot as usize].asked.capacity(), 0);
        let next = links.take(0, Transport::Tcp, Instant(0), &mut random).unwrap();
        assert_eq!((next.slot, links.issued_at(next, 0)), (link.slot, None));
    }

    #[test]
    fn slots_are_bounded() {
        let mut links = Links::new();
        let mut random = Random::new([3; 32]);
        for _ in 0..LINKS {
            links.take(0, Transport::Udp, Instant(0), &mut random).unwrap();
        }
        assert!(links.take(0, Transport::Udp, Instant(0), &mut random).is_none());
    }
}
