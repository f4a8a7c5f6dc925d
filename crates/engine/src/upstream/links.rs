//! Links to upstreams: which one a question takes, and what may not come twice. A UDP link is one connected socket
//! on one random port; it carries at most [`LINK_QUESTIONS`] questions with IDs that
//! never repeat, so no ID is used again while it may still be answered (the wrap-around bug of early servers), and
//! is replaced after some seconds, so a port that was spied out is soon worthless.

use crate::base::random::Random;
use crate::base::slab::{Index, NONE};
use crate::base::time::{Instant, Span};
use crate::interface::{Link, Transport};
use crate::limits::{LINK_LIFE_SECS, LINK_QUESTIONS, LINKS, STREAM_QUESTIONS};
use crate::message::cookie::CLIENT;

/// LinkState of one slot.
struct LinkState {
    generation: u16,
    server: u16,
    transport: Transport,
    open: bool,
    /// No new question takes it; it closes with its last one.
    retired: bool,
    opened: Instant,
    /// When something came over it last.
    heard: Instant,
    /// The client cookie of the questions that go over it.
    cookie: [u8; CLIENT],
    issued: usize,
    outstanding: u32,
    /// The next ID of a TCP link.
    next_id: u16,
    /// A bit for each value of the low bits of the IDs issued on a UDP link: most draws need no look through `ids`.
    sieve: [u64; SIEVE / 64],
    /// IDs issued on a UDP link, and the questions that they went to.
    ids: Box<[u16; LINK_QUESTIONS]>,
    flights: Box<[Index; LINK_QUESTIONS]>,
}

/// Bits of a sieve, two cache lines. With 255 IDs issued, 22 % of them are set (1 - e^-0.25).
const SIEVE: usize = 1024;

impl LinkState {
    /// The word and the bit of an ID in the sieve.
    #[inline]
    fn sieved(id: u16) -> (usize, u64) {
        let place = usize::from(id) % SIEVE;
        (place / 64, 1 << (place % 64))
    }

    /// Whether an ID was issued on this UDP link.
    #[inline]
    fn has_issued(&self, id: u16) -> bool {
        let (word, bit) = LinkState::sieved(id);
        self.sieve[word] & bit != 0 && self.ids[..self.issued].contains(&id)
    }
}

/// All links.
pub struct Links {
    states: Vec<LinkState>,
    free: Vec<u16>,
}

/// What became of a link when a question left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// It stays open.
    Keep,
    /// Its last question is gone and it is retired: close it.
    Close,
}

impl Links {
    /// No link is open.
    pub fn new() -> Links {
        Links { states: Vec::with_capacity(LINKS), free: Vec::with_capacity(LINKS) }
    }

    /// Takes a slot for a new link to `server`; none when all are in use.
    pub fn take(
        &mut self,
        server: u16,
        transport: Transport,
        now: Instant,
        random: &mut Random,
    ) -> Option<Link> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.states.len() < LINKS => {
                self.states.push(LinkState {
                    generation: 0,
                    server: 0,
                    transport,
                    open: false,
                    retired: false,
                    opened: now,
                    heard: now,
                    cookie: [0; CLIENT],
                    issued: 0,
                    outstanding: 0,
                    next_id: 0,
                    sieve: [0; SIEVE / 64],
                    ids: Box::new([0; LINK_QUESTIONS]),
                    flights: Box::new([NONE; LINK_QUESTIONS]),
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
        state.heard = now;
        state.issued = 0;
        state.sieve = [0; SIEVE / 64];
        state.outstanding = 0;
        state.next_id = random.id();
        Some(Link { slot, generation: state.generation })
    }

    /// The link of a slot, if it is open.
    pub fn link(&self, slot: u16) -> Option<Link> {
        let state = self.states.get(slot as usize)?;
        state.open.then_some(Link { slot, generation: state.generation })
    }

    /// Whether a link is still the one that its slot holds.
    #[inline]
    pub fn is_open(&self, link: Link) -> bool {
        self.states
            .get(link.slot as usize)
            .is_some_and(|state| state.open && state.generation == link.generation)
    }

    /// The server that a link leads to.
    #[inline]
    pub fn server(&self, link: Link) -> u16 {
        self.states[link.slot as usize].server
    }

    /// The transport of a link.
    #[inline]
    pub fn transport(&self, link: Link) -> Transport {
        self.states[link.slot as usize].transport
    }

    /// Gives a new link its client cookie.
    pub fn set_cookie(&mut self, link: Link, cookie: [u8; CLIENT]) {
        self.states[link.slot as usize].cookie = cookie;
    }

    /// The client cookie of a link.
    #[inline]
    pub fn cookie(&self, link: Link) -> &[u8; CLIENT] {
        &self.states[link.slot as usize].cookie
    }

    /// Whether a link may take one more question.
    #[inline]
    pub fn has_room(&self, link: Link, now: Instant) -> bool {
        let state = &self.states[link.slot as usize];
        match state.transport {
            Transport::Udp => {
                state.issued < LINK_QUESTIONS && now - state.opened < Span::from_secs(LINK_LIFE_SECS)
            }
            Transport::Tcp => state.issued < STREAM_QUESTIONS,
        }
    }

    /// Whether an ID was issued on a UDP link before. A reply with such an ID is late, not forged: an attacker who
    /// guesses gains nothing from being ignored, and meets one of at most 256 of 65,536.
    pub fn was_issued(&self, link: Link, id: u16) -> bool {
        let state = &self.states[link.slot as usize];
        state.transport == Transport::Udp && state.has_issued(id)
    }

    /// Something came over an open link.
    #[inline]
    pub fn hear(&mut self, link: Link, now: Instant) {
        self.states[link.slot as usize].heard = now;
    }

    /// Whether nothing at all came over an open TCP link since `sent`, when something was asked over it.
    pub fn is_hung(&self, link: Link, sent: Instant) -> bool {
        let state = &self.states[link.slot as usize];
        self.is_open(link) && state.transport == Transport::Tcp && state.heard <= sent
    }

    /// No new question takes the link. Close: it has none in flight.
    pub fn retire(&mut self, link: Link) -> Release {
        let state = &mut self.states[link.slot as usize];
        state.retired = true;
        if state.outstanding == 0 { Release::Close } else { Release::Keep }
    }

    /// Issues an ID for a question on a link that has room.
    #[inline]
    pub fn issue(&mut self, link: Link, flight: Index, random: &mut Random) -> u16 {
        let state = &mut self.states[link.slot as usize];
        let id = match state.transport {
            Transport::Udp => {
                let mut id = random.id();
                // At most 255 of 65,536 are taken: a second draw is rare, a fourth practically never.
                while state.has_issued(id) && !random.is_forgetful() {
                    id = random.id();
                }
                let (word, bit) = LinkState::sieved(id);
                state.sieve[word] |= bit;
                state.ids[state.issued] = id;
                state.flights[state.issued] = flight;
                id
            }
            Transport::Tcp => {
                state.next_id = state.next_id.wrapping_add(1);
                state.next_id
            }
        };
        state.issued += 1;
        state.outstanding += 1;
        id
    }

    /// A question no longer waits on this link.
    #[inline]
    pub fn release(&mut self, link: Link) -> Release {
        if !self.is_open(link) {
            return Release::Keep;
        }
        let state = &mut self.states[link.slot as usize];
        state.outstanding -= 1;
        if state.retired && state.outstanding == 0 { Release::Close } else { Release::Keep }
    }

    /// Frees the slot of a closed link.
    pub fn free(&mut self, link: Link) {
        debug_assert!(self.is_open(link));
        self.states[link.slot as usize].open = false;
        self.free.push(link.slot);
    }

    /// How many questions wait on a link.
    pub fn outstanding(&self, link: Link) -> u32 {
        self.states[link.slot as usize].outstanding
    }

    /// The question that the `place`-th ID of a UDP link went to, while it may be in flight.
    pub fn asked(&self, link: Link, place: usize) -> Option<(u16, Index)> {
        let state = &self.states[link.slot as usize];
        (state.transport == Transport::Udp && place < state.issued)
            .then(|| (state.ids[place], state.flights[place]))
    }

    /// Whether any open link leads to a server.
    pub fn leads_to(&self, server: u16) -> bool {
        self.states.iter().any(|state| state.open && state.server == server)
    }

    /// How many links are open.
    pub fn open(&self) -> usize {
        self.states.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_comes_twice_on_a_udp_link_and_its_room_ends() {
        let mut links = Links::new();
        let mut random = Random::new([3; 32]);
        let link = links.take(0, Transport::Udp, Instant(0), &mut random).unwrap();
        let mut seen = std::collections::HashSet::new();
        while links.has_room(link, Instant(0)) {
            assert!(seen.insert(links.issue(link, 0, &mut random)));
        }
        assert_eq!(seen.len(), LINK_QUESTIONS);
    }

    #[test]
    fn an_id_that_falls_on_the_same_bit_was_not_issued_and_a_new_link_knows_none() {
        let mut links = Links::new();
        let mut random = Random::new([4; 32]);
        let link = links.take(0, Transport::Udp, Instant(0), &mut random).unwrap();
        let id = links.issue(link, 0, &mut random);
        assert!(links.was_issued(link, id));
        for place in [10, 15] {
            assert!(!links.was_issued(link, id ^ 1 << place));
        }
        links.free(link);
        let link = links.take(0, Transport::Udp, Instant(0), &mut random).unwrap();
        let state = &links.states[link.slot as usize];
        assert_eq!((state.issued, state.sieve), (0, [0; SIEVE / 64]));
        assert!(!links.was_issued(link, id));
    }

    #[test]
    fn a_link_grows_old() {
        let mut links = Links::new();
        let mut random = Random::new([3; 32]);
        let link = links.take(0, Transport::Udp, Instant(0), &mut random).unwrap();
        assert!(links.has_room(link, Instant(0) + Span::from_millis(9_999)));
        assert!(!links.has_room(link, Instant(0) + Span::from_secs(10)));
    }

    #[test]
    fn a_retired_link_closes_with_its_last_question_and_its_successor_is_another() {
        let mut links = Links::new();
        let mut random = Random::new([3; 32]);
        let link = links.take(0, Transport::Udp, Instant(0), &mut random).unwrap();
        links.issue(link, 0, &mut random);
        links.issue(link, 1, &mut random);
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
        while links.has_room(link, Instant(0)) {
            let id = links.issue(link, 0, &mut random);
            assert!(!core::mem::replace(&mut seen[id as usize], true));
        }
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
