//! The networks that a listening socket hears, as far as fair shedding must know them: is the network that sends most alone, or
//! are there others that need protection, and how many of the datagrams are theirs?
//!
//! Another network is active if two of its datagrams were read within [`OTHERS_MEMORY`]. One datagram is not enough, because
//! anyone can send one in the name of any network. Two are easily forged as well. So others count as many only when a
//! part of all datagrams is theirs ([`OTHERS_PART`]): who forges that has to send as much as clients that are worth protecting.
//! Few others are protected too, but nobody is shed for them before they would lose something.
//!
//! The state is updated while the worker is busy, from the ring of the latest senders, so a worker that keeps up pays nothing for it.
//! This file has no socket and no clock.

use crate::limits::{OTHERS_LEAST, OTHERS_MEMORY, OTHERS_PART, OTHERS_RECHECK, SIGHTINGS};
use engine::{ClientNetwork, Instant};

/// The latest sighting of a network.
#[derive(Clone, Copy)]
struct Sighting {
    network: ClientNetwork,
    at: Instant,
}

/// The networks beside the one that sends most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contention {
    /// No network was active.
    None,
    /// At least one network was active.
    Few,
    /// A part of the datagrams came from active networks.
    Many,
}

/// The networks that one listening socket hears.
pub(crate) struct ActiveNetworks {
    /// The network that sent most of the latest datagrams.
    main: Option<ClientNetwork>,
    /// Sightings of other networks, each at the place of its hash. A newer one replaces an older one.
    sightings: Box<[Option<Sighting>]>,
    /// The time at which a network other than `main` was last found active.
    active_at: Option<Instant>,
    /// The time at which the others were last found to be many.
    many_at: Option<Instant>,
    /// Datagrams observed, and those of active networks, both halved every [`OTHERS_RECHECK`].
    observed: u64,
    of_active: u64,
    halved_at: Instant,
}

impl ActiveNetworks {
    pub(crate) fn new() -> ActiveNetworks {
        ActiveNetworks {
            main: None,
            sightings: vec![None; SIGHTINGS].into_boxed_slice(),
            active_at: None,
            many_at: None,
            observed: 0,
            of_active: 0,
            halved_at: Instant(0),
        }
    }

    /// Takes the networks of the datagrams that were read since the last call.
    pub(crate) fn observe(&mut self, now: Instant, networks: impl Iterator<Item = ClientNetwork> + Clone) {
        if self.many_at.is_some_and(|at| now - at < OTHERS_RECHECK) {
            return;
        }
        let Some(main) = majority_candidate(networks.clone()) else { return };
        self.halve(now);
        if let Some(old) = self.main.replace(main)
            && old != main
        {
            self.sight(now, old);
        }
        for network in networks {
            self.observed += 1;
            if network != main {
                self.sight(now, network);
            }
        }
        if self.of_active >= OTHERS_LEAST && self.of_active * OTHERS_PART >= self.observed {
            self.many_at = Some(now);
        }
    }

    /// Takes note that others are active, whose networks are not known.
    pub(crate) fn mark_others_active(&mut self, now: Instant) {
        (self.active_at, self.many_at) = (Some(now), Some(now));
    }

    /// The networks that were active in the time before `now`, without the one that sends most.
    pub(crate) fn contention(&self, now: Instant) -> Contention {
        let is_recent = |at: Option<Instant>| at.is_some_and(|at| now - at < OTHERS_MEMORY);
        match (is_recent(self.many_at), is_recent(self.active_at)) {
            (true, _) => Contention::Many,
            (false, true) => Contention::Few,
            (false, false) => Contention::None,
        }
    }

    /// Lets older datagrams count less than new ones.
    fn halve(&mut self, now: Instant) {
        let halvings = ((now - self.halved_at).0 / OTHERS_RECHECK.0).min(63);
        if halvings > 0 {
            (self.observed, self.of_active) = (self.observed >> halvings, self.of_active >> halvings);
            self.halved_at = now;
        }
    }

    fn sight(&mut self, now: Instant, network: ClientNetwork) {
        let place = place_of(network);
        let earlier = self.sightings[place].replace(Sighting { network, at: now });
        if earlier.is_some_and(|earlier| earlier.network == network && now - earlier.at < OTHERS_MEMORY) {
            self.active_at = Some(now);
            self.of_active += 1;
        }
    }
}

/// The network that sent more than half of the datagrams, if there is one; otherwise any of the networks (the vote of Boyer and
/// Moore).
fn majority_candidate(networks: impl Iterator<Item = ClientNetwork>) -> Option<ClientNetwork> {
    let (mut candidate, mut votes) = (None, 0u32);
    for network in networks {
        if candidate == Some(network) {
            votes += 1;
        } else if votes == 0 {
            (candidate, votes) = (Some(network), 1);
        } else {
            votes -= 1;
        }
    }
    candidate
}

/// The place of a network in the table of sightings (Fibonacci hashing). A network that collides with others on purpose delays
/// only the moment at which they count as active.
fn place_of(network: ClientNetwork) -> usize {
    let bits = network.bits();
    let folded = (bits >> 64) as u64 ^ (bits as u64).rotate_left(32);
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SIGHTINGS
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Span;

    fn network(number: u128) -> ClientNetwork {
        ClientNetwork::of((0x2001_0db8 << 96 | number << 64).into(), 0)
    }

    fn others_after(networks: &[u128]) -> Contention {
        let mut active = ActiveNetworks::new();
        active.observe(Instant(1), networks.iter().map(|&number| network(number)));
        active.contention(Instant(1))
    }

    #[test]
    fn a_network_is_active_from_its_second_datagram_on() {
        for networks in [&[][..], &[1; 9], &[1, 1, 2, 1, 1], &[1, 2, 1, 1, 3, 1, 1, 1]] {
            assert_eq!(others_after(networks), Contention::None, "{networks:?}");
        }
        assert_eq!(others_after(&[1, 2, 1, 1, 2, 1]), Contention::Few);
    }

    #[test]
    fn the_others_are_forgotten() {
        let mut active = ActiveNetworks::new();
        active.observe(Instant(0), [1, 1, 1, 2, 2].map(network).into_iter());
        let end = Instant(0) + OTHERS_MEMORY;
        assert_eq!(active.contention(Instant(end.0 - 1)), Contention::Few);
        assert_eq!(active.contention(end), Contention::None);
        // An old sighting does not make a new one the second.
        active.observe(end + Span(1), [1, 1, 2].map(network).into_iter());
        assert_eq!(active.contention(end + Span(1)), Contention::None);
        active.observe(end + Span(2), [1, 1, 2].map(network).into_iter());
        assert_eq!(active.contention(end + Span(2)), Contention::Few);
    }

    #[test]
    fn networks_that_send_in_turn_know_each_other() {
        let mut active = ActiveNetworks::new();
        for (turn, number) in [1, 2, 1, 2].into_iter().enumerate() {
            active.observe(Instant(turn as u64), [number; 100].map(network).into_iter());
        }
        assert_eq!(active.contention(Instant(4)), Contention::Few);
    }

    #[test]
    fn the_others_are_many_when_a_part_of_the_datagrams_is_theirs() {
        let datagrams = |others: usize| {
            let main = std::iter::repeat_n(1, 4_000 - others);
            let others = (0..others).map(|number| 2 + number as u128 % 5);
            main.chain(others).collect::<Vec<_>>()
        };
        // One in 256 of 4,000, and the first one of each of the five does not count.
        assert_eq!(others_after(&datagrams(20)), Contention::Few);
        assert_eq!(others_after(&datagrams(21)), Contention::Many);
        // A handful is not many, though it be a part of few.
        assert_eq!(others_after(&[1, 1, 1, 2, 2, 2, 3, 3]), Contention::Few);
    }

    #[test]
    fn a_few_datagrams_over_a_long_time_do_not_add_up() {
        let mut active = ActiveNetworks::new();
        for second in 1..=60 {
            let networks = std::iter::repeat_n(1, 998).chain([2, 2]).map(network);
            active.observe(Instant(0) + Span(second * OTHERS_RECHECK.0), networks);
            assert_eq!(active.contention(Instant(0) + Span(second * OTHERS_RECHECK.0)), Contention::Few);
        }
    }
}
