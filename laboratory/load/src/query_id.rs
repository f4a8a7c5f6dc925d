//! Ports and message IDs of queries, and the way back from port and ID to the query, without a table.
//!
//! The queries of a thread leave in groups: `group` of them from one port, then as many from the next. So query k of
//! the thread is query j of port p, and arithmetic converts both ways. The ID of query j of a port is a permutation,
//! drawn for that port, of the lower 16 bits of j: no ID repeats within 65,536 queries of a port, none can be guessed
//! from the one before, and the ID yields j modulo 65,536. The newest such j below the number of sent queries is the
//! query; if a port has more than 65,536 outstanding queries, earlier ones are tried, too: the question decides.

use crate::random::mix;

/// An invertible permutation of 16 bits.
#[derive(Clone, Copy, Debug)]
struct Permutation {
    factor: u16,
    inverse: u16,
    offset: u16,
    mask: u16,
}

impl Permutation {
    fn new(seed: u64) -> Permutation {
        let draw = mix(seed);
        let factor = draw as u16 | 1;
        // Newton's iteration: each step doubles the number of correct bits, and any odd number is correct in three
        // bits.
        let inverse = (0..4)
            .fold(factor, |inverse, _| inverse.wrapping_mul(2u16.wrapping_sub(factor.wrapping_mul(inverse))));
        Permutation { factor, inverse, offset: (draw >> 16) as u16, mask: (draw >> 32) as u16 }
    }

    #[inline]
    fn forward(&self, value: u16) -> u16 {
        let value = value.wrapping_mul(self.factor).wrapping_add(self.offset);
        // The upper half is mixed into the lower half, whose bits depend only on lower bits so far.
        (value ^ value >> 8).wrapping_mul(self.factor) ^ self.mask
    }

    #[inline]
    fn backward(&self, value: u16) -> u16 {
        let value = (value ^ self.mask).wrapping_mul(self.inverse);
        (value ^ value >> 8).wrapping_sub(self.offset).wrapping_mul(self.inverse)
    }
}

/// Entries of all rounds of a pseudorandom order of ports, in each direction: 256 KiB in all.
const ROUND_ENTRIES: usize = 1 << 16;

/// Most rounds before their orders repeat.
const ROUNDS: usize = 64;

/// Order of the ports in one round: the port at each place, and the place of each port.
#[derive(Clone, Debug)]
struct Round {
    port_at: Box<[u16]>,
    place_of: Box<[u16]>,
}

impl Round {
    /// A pseudorandom order of `ports` ports, at most 65,536: each is equally likely (Fisher and Yates).
    fn new(ports: usize, seed: u64) -> Round {
        let mut port_at: Box<[u16]> = (0..ports).map(|port| port as u16).collect();
        for place in (1..ports).rev() {
            // The remainder of 64 bits by at most 2^16 is uniform to 2^-48.
            let other = mix(seed.wrapping_add(place as u64)) % (place as u64 + 1);
            port_at.swap(place, other as usize);
        }
        let mut place_of: Box<[u16]> = vec![0; ports].into();
        port_at.iter().enumerate().for_each(|(place, port)| place_of[usize::from(*port)] = place as u16);
        Round { port_at, place_of }
    }
}

/// Ports and IDs of one thread's queries.
#[derive(Clone, Debug)]
pub struct QueryIds {
    group: u64,
    ports: Vec<Permutation>,
    /// Orders of the ports, round after round; empty: as they are numbered.
    rounds: Vec<Round>,
}

impl QueryIds {
    /// A numbering for `ports` ports.
    pub fn new(ports: usize, group: u16, seed: u64) -> QueryIds {
        let permutation = |port| Permutation::new(mix(seed).wrapping_add(port));
        QueryIds {
            group: u64::from(group.max(1)),
            ports: (0..ports.max(1) as u64).map(permutation).collect(),
            rounds: Vec::new(),
        }
    }

    /// Lets the ports take their turns in a pseudorandom order, each once in a round.
    pub fn in_random_order(self, seed: u64) -> QueryIds {
        let ports = self.ports.len();
        let rounds = (ROUND_ENTRIES / ports).clamp(1, ROUNDS) as u64;
        let round = |number| Round::new(ports, mix(seed ^ mix(number)));
        QueryIds { rounds: (0..rounds).map(round).collect(), ..self }
    }

    /// The port at a place of a round.
    #[inline]
    fn port_at(&self, round: u64, place: u64) -> usize {
        match self.rounds.len() as u64 {
            0 => place as usize,
            rounds => usize::from(self.rounds[(round % rounds) as usize].port_at[place as usize]),
        }
    }

    /// The place of a port in a round.
    #[inline]
    fn place_of(&self, round: u64, port: usize) -> u64 {
        match self.rounds.len() as u64 {
            0 => port as u64,
            rounds => u64::from(self.rounds[(round % rounds) as usize].place_of[port]),
        }
    }

    /// The port of query `k`, its number at that port, and the number of queries left in the group, including itself.
    #[inline]
    pub fn locate(&self, k: u64) -> (usize, u64, u64) {
        let (turn, within) = (k / self.group, k % self.group);
        let ports = self.ports.len() as u64;
        let (round, place) = (turn / ports, turn % ports);
        (self.port_at(round, place), round * self.group + within, self.group - within)
    }

    /// The ID of query `j` of a port.
    #[inline]
    pub fn id(&self, port: usize, j: u64) -> u16 {
        self.ports[port].forward(j as u16)
    }

    /// The queries of the thread that may have used an ID on a port, newest first, when `sent` queries were sent.
    #[inline]
    pub fn candidates(&self, port: usize, id: u16, sent: u64) -> impl Iterator<Item = u64> + '_ {
        let low = u64::from(self.ports[port].backward(id));
        let count = self.count(port, sent);
        // The greatest j below `count` with these lower bits.
        let newest = count.checked_sub(low + 1).map(|above| low + (above & !0xffff));
        std::iter::successors(newest, |j| j.checked_sub(1 << 16)).map(move |j| self.number(port, j))
    }

    /// Number of queries of a port among the first `sent` of the thread.
    #[inline]
    fn count(&self, port: usize, sent: u64) -> u64 {
        let round = self.group * self.ports.len() as u64;
        let (full, rest) = (sent / round, sent % round);
        full * self.group + rest.saturating_sub(self.place_of(full, port) * self.group).min(self.group)
    }

    /// The number within the thread of query `j` of a port.
    #[inline]
    fn number(&self, port: usize, j: u64) -> u64 {
        let round = j / self.group;
        (round * self.ports.len() as u64 + self.place_of(round, port)) * self.group + j % self.group
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_hits_every_id_once_and_can_be_undone() {
        for seed in 0..20 {
            let permutation = Permutation::new(seed);
            let mut seen = vec![false; 1 << 16];
            for value in 0..=u16::MAX {
                let id = permutation.forward(value);
                assert!(!std::mem::replace(&mut seen[usize::from(id)], true));
                assert_eq!(permutation.backward(id), value);
            }
        }
    }

    #[test]
    fn groups_go_from_port_to_port() {
        let query_ids = QueryIds::new(3, 2, 1);
        let ports: Vec<usize> = (0..8).map(|k| query_ids.locate(k).0).collect();
        assert_eq!(ports, [0, 0, 1, 1, 2, 2, 0, 0]);
        assert_eq!(query_ids.locate(7), (0, 3, 1));
    }

    #[test]
    fn in_random_order_each_port_has_its_turn_once_in_a_round_and_no_round_is_like_the_next() {
        let query_ids = QueryIds::new(16, 2, 1).in_random_order(5);
        let round = |number: u64| -> Vec<usize> {
            (0..16).map(|turn| query_ids.locate(2 * (16 * number + turn)).0).collect()
        };
        for number in 0..200 {
            let mut ports = round(number);
            assert_ne!(ports, round(number + 1));
            ports.sort_unstable();
            assert_eq!(ports, (0..16).collect::<Vec<_>>());
        }
        assert_ne!(round(0), (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn port_and_id_lead_back_to_the_query() {
        let forms = [(1, 1), (3, 2), (16, 16), (5, 7), (1, 64)];
        for (ports, group, is_random) in forms.iter().flat_map(|(a, b)| [(*a, *b, false), (*a, *b, true)]) {
            let query_ids = QueryIds::new(ports, group, 7);
            let query_ids = if is_random { query_ids.in_random_order(9) } else { query_ids };
            for sent in [1, 2, 33, 1000, 65_536, 200_000, 3_000_000] {
                for k in [0, sent / 3, sent / 2, sent - 1] {
                    let (port, j, _) = query_ids.locate(k);
                    let id = query_ids.id(port, j);
                    let candidates: Vec<u64> = query_ids.candidates(port, id, sent).collect();
                    assert!(candidates.contains(&k), "{ports} {group} {sent} {k}: {candidates:?}");
                    assert!(candidates.iter().all(|candidate| *candidate < sent));
                    assert!(candidates.is_sorted_by(|newer, older| newer > older));
                    if sent - k < 65_536 * ports as u64 - u64::from(group) * ports as u64 {
                        assert_eq!(candidates[0], k, "the newest");
                    }
                }
            }
        }
    }

    #[test]
    fn an_id_that_was_never_sent_has_no_candidate() {
        let query_ids = QueryIds::new(2, 1, 3);
        let (port, j, _) = query_ids.locate(10);
        assert_eq!(query_ids.candidates(port, query_ids.id(port, j), 10).count(), 0);
        assert_eq!(query_ids.candidates(port, query_ids.id(port, j), 11).collect::<Vec<_>>(), [10]);
    }

    #[test]
    fn other_seeds_give_other_ids() {
        let ids = |seed| (0..64).map(|j| QueryIds::new(1, 1, seed).id(0, j)).collect::<Vec<_>>();
        assert_ne!(ids(1), ids(2));
    }
}
