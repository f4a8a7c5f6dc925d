//! Repeated names, each with its popularity, so that answers come from caches. The names of 65,536 turns are drawn at random before the
//! load begins, and their turns come again and again.

use crate::perf::names;
use measure::name_range::NameRange;
use splitmix::SplitMix64;
use std::sync::Arc;

/// Turns until they begin again.
const TURNS: usize = 1 << 16;

/// First of these names in the order of addresses: 101.0.0.0, far from names that are used once.
const FIRST: u64 = 100 << 24;

/// Names and their turns.
#[derive(Clone, Debug)]
pub struct Popularity {
    names: usize,
    /// The number of the name of each turn.
    turns: Arc<[u32]>,
}

impl Popularity {
    /// Returns this number of equally popular names.
    pub fn even(names: u16) -> Popularity {
        Popularity::weighted(&vec![1.0; usize::from(names.max(1))])
    }

    /// Returns this number of names, the k-th with a popularity in proportion to 1 / k.
    pub fn zipf(names: u16) -> Popularity {
        Popularity::weighted(&(1..=names.max(1)).map(|rank| 1.0 / f64::from(rank)).collect::<Vec<_>>())
    }

    fn weighted(weights: &[f64]) -> Popularity {
        let whole: f64 = weights.iter().sum();
        let mut turns: Vec<u32> = Vec::with_capacity(TURNS);
        let mut below = 0.0;
        for (number, weight) in weights.iter().enumerate() {
            below += weight;
            turns.resize(((below / whole * TURNS as f64).round() as usize).min(TURNS), number as u32);
        }
        // The turns that are left after rounding.
        turns.resize(TURNS, 0);
        // In the same order in every run: each place swaps with one before it or itself.
        let mut random = SplitMix64::new(1);
        for last in (1..TURNS).rev() {
            turns.swap(last, random.place(last + 1));
        }
        Popularity { names: weights.len(), turns: turns.into() }
    }

    /// Number of names.
    pub fn names(&self) -> usize {
        self.names
    }

    /// The names.
    pub fn range(&self) -> NameRange {
        names::range(FIRST, FIRST + self.names as u64)
    }

    /// The number of the name of each turn.
    pub fn turns(&self) -> Arc<[u32]> {
        Arc::clone(&self.turns)
    }

    /// Share of all queries that ask for the most popular name.
    pub fn largest_part(&self) -> f64 {
        let mut counts = vec![0u32; self.names];
        self.turns.iter().for_each(|name| counts[*name as usize] += 1);
        f64::from(counts.into_iter().max().unwrap_or(0)) / TURNS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_turns_as_often_as_they_are_popular() {
        assert_eq!(Popularity::even(1).largest_part(), 1.0);
        let even = Popularity::even(1000);
        assert_eq!((even.names(), even.range().to_string().as_str()), (1000, "101.0.0.0-101.0.3.231"));
        assert!((0.001..0.00103).contains(&even.largest_part()), "{}", even.largest_part());
        // The sum of 1 / k over 1,000 names is 7.485.
        let zipf = Popularity::zipf(1000).largest_part();
        assert!((zipf - 1.0 / 7.485).abs() < 0.0001, "{zipf}");
    }
}
