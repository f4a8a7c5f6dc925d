//! The networks that a listening socket hears, as far as fair shedding must know them: is the network that sends most alone, or
//! are there others that need protection?
//!
//! Another network is active if two of its datagrams were read within [`OTHERS_MEMORY`]. One datagram is not enough, because
//! anyone can send one in the name of any network. The state is updated while the worker is busy, from the ring of
//! the latest senders, so a worker that keeps up pays nothing for it. This file has no socket and no clock.

use crate::limits::{OTHERS_MEMORY, OTHERS_RECHECK, SIGHTINGS};
use engine::{ClientNetwork, Instant};

/// The latest sighting of a network.
#[derive(Clone, Copy)]
struct Sighting {
    network: ClientNetwork,
    at: Instant,
}

/// The networks that one listening socket hears.
pub(crate) struct ActiveNetworks {
    /// The network that sent most of the latest datagrams.
    main: Option<ClientNetwork>,
    /// Sightings of other networks, each at the place of its hash. A newer one replaces an older one.
    sightings: Box<[Option<Sighting>]>,
    /// The time at which a network other than `main` was last found active.
    active_at: Option<Instant>,
}

impl ActiveNetworks {
    pub(crate) fn new() -> ActiveNetworks {
        ActiveNetworks { main: None, sightings: vec![None; SIGHTINGS].into_boxed_slice(), active_at: None }
    }

    /// Takes the networks of the datagrams that were read since the last call.
    pub(crate) fn observe(&mut self, now: Instant, networks: impl Iterator<Item = ClientNetwork> + Clone) {
        if self.active_at.is_some_and(|at| now - at < OTHERS_RECHECK) {
            return;
        }
        let Some(main) = majority_candidate(networks.clone()) else { return };
        if let Some(old) = self.main.replace(main)
            && old != main
        {
            self.sight(now, old);
        }
        for network in networks {
            if network != main {
                self.sight(now, network);
            }
        }
    }

    /// Takes note that others are active, whose networks are not known.
    pub(crate) fn mark_others_active(&mut self, now: Instant) {
        self.active_at = Some(now);
    }

    /// True if no network but the one that sends most was active in the time before `now`.
    pub(crate) fn is_alone(&self, now: Instant) -> bool {
        self.active_at.is_none_or(|at| now - at >= OTHERS_MEMORY)
    }

    fn sight(&mut self, now: Instant, network: ClientNetwork) {
        let place = place_of(network);
        let earlier = self.sightings[place].replace(Sighting { network, at: now });
        if earlier.is_some_and(|earlier| earlier.network == network && now - earlier.at < OTHERS_MEMORY) {
            self.active_at = Some(now);
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

    fn is_alone_after(networks: &[u128]) -> bool {
        let mut active = ActiveNetworks::new();
        active.observe(Instant(1), networks.iter().map(|&number| network(number)));
        active.is_alone(Instant(1))
    }

    #[test]
    fn a_network_is_active_from_its_second_datagram_on() {
        for networks in [&[][..], &[1; 9], &[1, 1, 2, 1, 1], &[1, 2, 1, 1, 3, 1, 1, 1]] {
            assert!(is_alone_after(networks), "{networks:?}");
        }
        assert!(!is_alone_after(&[1, 2, 1, 1, 2, 1]));
    }

    #[test]
    fn the_others_are_forgotten() {
        let mut active = ActiveNetworks::new();
        active.observe(Instant(0), [1, 1, 1, 2, 2].map(network).into_iter());
        let end = Instant(0) + OTHERS_MEMORY;
        assert!(!active.is_alone(Instant(end.0 - 1)));
        assert!(active.is_alone(end));
        // An old sighting does not make a new one the second.
        active.observe(end + Span(1), [1, 1, 2].map(network).into_iter());
        assert!(active.is_alone(end + Span(1)));
        active.observe(end + Span(2), [1, 1, 2].map(network).into_iter());
        assert!(!active.is_alone(end + Span(2)));
    }

    #[test]
    fn networks_that_send_in_turn_know_each_other() {
        let mut active = ActiveNetworks::new();
        for (turn, number) in [1, 2, 1, 2].into_iter().enumerate() {
            active.observe(Instant(turn as u64), [number; 100].map(network).into_iter());
        }
        assert!(!active.is_alone(Instant(4)));
    }
}
