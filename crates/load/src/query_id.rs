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

/// Ports and IDs of one thread's queries.
#[derive(Clone, Debug)]
pub struct QueryIds {
    group: u64,
    ports: Vec<Permutation>,
}

impl QueryIds {
    /// A numbering for `ports` ports.
    pub fn new(ports: usize, group: u16, seed: u64) -> QueryIds {
        let permutation = |port| Permutation::new(mix(seed).wrapping_add(port));
        QueryIds {
            group: u64::from(group.max(1)),
            ports: (0..ports.max(1) as u64).map(permutation).collect(),
        }
    }

    /// The port of query `k`, its number at that port, and the number of queries left in the group, including itself.
    #[inline]
    pub fn locate(&self, k: u64) -> (usize, u64, u64) {
        let (turn, within) = (k / self.group, k % self.group);
        let ports = self.ports.len() as u64;
        ((turn % ports) as usize, turn / ports * self.group + within, self.group - within)
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
        full * self.group + rest.saturating_sub(port as u64 * self.group).min(self.group)
    }

    /// The number within the thread of query `j` of a port.
    #[inline]
    fn number(&self, port: usize, j: u64) -> u64 {
        (j / self.group * self.ports.len() as u64 + port as u64) * self.group + j % self.group
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
    fn port_and_id_lead_back_to_the_query() {
        for (ports, group) in [(1, 1), (3, 2), (16, 16), (5, 7), (1, 64)] {
            let query_ids = QueryIds::new(ports, group, 7);
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
