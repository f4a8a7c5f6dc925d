//! Transaction IDs of TOTD, in the paper's three ways.

use super::libc_random::{LibcRandom, MAX};
use super::limits::{PERMUTATION, USED};

/// Way of making IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// A counter. After 0 it takes a random value from the time in seconds (TOTD 1.5 and 1.5.1; paper, section 4). If that value
    /// is just below 0xffff, the IDs that follow were used a moment ago.
    Sequential,
    /// A counter that skips 0 (paper, section 4).
    SequentialFixed,
    /// Random permutations in two alternating ranges (TOTD 1.5.3; paper, section 5).
    Permuted,
}

/// All schemes, in the order of the paper's Tables I to III.
pub const SCHEMES: [Scheme; 3] = [Scheme::Sequential, Scheme::SequentialFixed, Scheme::Permuted];

impl Scheme {
    /// Name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Sequential => "sequential",
            Scheme::SequentialFixed => "fixed",
            Scheme::Permuted => "permuted",
        }
    }
}

/// Source of IDs.
#[derive(Clone, Debug)]
pub struct Ids {
    scheme: Scheme,
    counter: u16,
    /// Number of times that the counter was set to a random value after it had run over.
    restarts: u64,
    pools: Option<Pools>,
}

impl Ids {
    /// A source whose counter is at `counter`: the first ID is the next one. Permutations ignore the counter. With 0, a
    /// sequential source begins with a random value, as TOTD does.
    pub fn new(scheme: Scheme, counter: u16) -> Ids {
        Ids { scheme, counter, restarts: 0, pools: None }
    }

    /// The next ID. `second` is the time in seconds since 1970: the seed of TOTD's random numbers.
    pub fn next(&mut self, second: u32) -> u16 {
        match self.scheme {
            Scheme::Sequential => {
                if self.counter == 0 {
                    self.counter = landing(second);
                    self.restarts += 1;
                }
                self.counter = self.counter.wrapping_add(1);
                self.counter
            }
            Scheme::SequentialFixed => {
                self.counter = self.counter.wrapping_add(1).max(1);
                self.counter
            }
            Scheme::Permuted => self.pools.get_or_insert_with(|| Pools::new(second)).next(),
        }
    }

    /// Number of times that the counter was set to a random value.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }
}

/// Random value that a sequential counter takes in this second.
pub fn landing(second: u32) -> u16 {
    LibcRandom::new(second).number() as u16
}

/// IDs from permutations of the lower and the upper half of all IDs, in turn.
#[derive(Clone, Debug)]
pub struct Pools {
    random: LibcRandom,
    permutation: Vec<u16>,
    used: usize,
    upper: bool,
}

impl Pools {
    /// Pools that begin in this second, the seed.
    pub fn new(second: u32) -> Pools {
        let mut random = LibcRandom::new(second);
        let permutation = permutation(0, |last| bounded(&mut random, last));
        Pools { random, permutation, used: 0, upper: false }
    }

    /// The next ID. At the end of a pool the other range is shuffled.
    #[expect(
        clippy::should_implement_trait,
        reason = "the IDs never end, and an iterator's adaptors are not needed"
    )]
    pub fn next(&mut self) -> u16 {
        if self.used == USED {
            self.upper = !self.upper;
            let start = if self.upper { PERMUTATION as u16 } else { 0 };
            self.permutation = permutation(start, |last| bounded(&mut self.random, last));
            self.used = 0;
        }
        self.used += 1;
        self.permutation[self.used - 1]
    }

    /// The permutation from which IDs are taken now.
    pub fn permutation(&self) -> &[u16] {
        &self.permutation
    }
}

/// Random permutation of the IDs from `start` (inside-out algorithm of Fisher, Yates and Durstenfeld). `draw(i)` returns a
/// number from 0 to i.
pub fn permutation(start: u16, mut draw: impl FnMut(usize) -> usize) -> Vec<u16> {
    // One element more than needed, so that the paper's draw may be out of range without an abort.
    let mut ids = vec![start; PERMUTATION + 1];
    for i in 1..PERMUTATION {
        let j = draw(i);
        ids[i] = ids[j];
        ids[j] = start + i as u16;
    }
    ids.truncate(PERMUTATION);
    ids
}

/// Number from 0 to `last`. For every number but [`MAX`] it equals the paper's.
fn bounded(random: &mut LibcRandom, last: usize) -> usize {
    papers(random.number(), last).min(last)
}

/// The paper's number, meant to be 0 to `last`: `random() * (last + 1.0) / RAND_MAX`. It is `last + 1` if `random()` returns
/// its highest number.
pub fn papers(number: u32, last: usize) -> usize {
    (f64::from(number) * (last as f64 + 1.0) / f64::from(MAX)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_sequential_counter_returns_0_and_then_goes_on_from_a_value_of_the_second() {
        let mut ids = Ids::new(Scheme::Sequential, 0xfffd);
        let second = 1_400_000_000;
        let seen = [ids.next(second), ids.next(second), ids.next(second), ids.next(second), ids.next(second)];
        let landing = landing(second);
        assert_eq!(seen, [0xfffe, 0xffff, 0, landing + 1, landing + 2]);
        assert_eq!(ids.restarts(), 1);
    }

    #[test]
    fn a_fixed_counter_skips_0_and_repeats_after_65_535_ids() {
        let mut ids = Ids::new(Scheme::SequentialFixed, 0x8000);
        let cycle: Vec<u16> = (0..65_535).map(|_| ids.next(7)).collect();
        assert_eq!(cycle.iter().collect::<BTreeSet<_>>().len(), 65_535);
        assert!(!cycle.contains(&0));
        assert_eq!(ids.next(7), cycle[0]);
        assert_eq!(ids.restarts(), 0);
    }

    #[test]
    fn permuted_ids_repeat_after_16_385_at_the_earliest_and_change_their_range_every_16_384() {
        let mut ids = Ids::new(Scheme::Permuted, 0);
        let all: Vec<u16> = (0..6 * USED).map(|_| ids.next(1_400_000_000)).collect();
        for (pool, part) in all.chunks(USED).enumerate() {
            assert!(part.iter().all(|id| usize::from(*id >= 0x8000) == pool % 2));
        }
        // Between two pools of one range lies a pool of the other.
        for window in all.windows(USED + 1).step_by(97) {
            assert_eq!(window.iter().collect::<BTreeSet<_>>().len(), USED + 1);
        }
    }

    #[test]
    fn the_draw_of_the_paper_is_out_of_range_at_the_highest_number_only() {
        for last in [1, 2, 1000, PERMUTATION - 1] {
            assert_eq!(papers(MAX, last), last + 1);
            assert_eq!(papers(MAX - 1, last), last);
            assert_eq!(papers(0, last), 0);
        }
    }

    #[test]
    fn a_draw_out_of_range_loses_an_id_and_repeats_another() {
        let mut random = LibcRandom::new(5);
        // Draw 20,000 is the highest number.
        let ids = permutation(0, |last| papers(if last == 20_000 { MAX } else { random.number() }, last));
        let different = ids.iter().collect::<BTreeSet<_>>().len();
        assert_eq!(different, PERMUTATION - 1);
        // At the last draw the write is behind the array.
        let mut highest = 0;
        permutation(0, |last| {
            highest = papers(MAX, last);
            last
        });
        assert_eq!(highest, PERMUTATION);
    }
}
