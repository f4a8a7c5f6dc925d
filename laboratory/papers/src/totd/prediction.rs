//! Prediction of TOTD's permuted IDs, and the odds of a blind forger.
//!
//! The permutations follow from a seed of 32 bits, the time of TOTD's start in seconds. An attacker that has seen a few IDs
//! tries all seconds of a day and then knows every later ID. Even ideal permutations have at most 15 bits, and the port is fixed.

use super::ids::Pools;
use super::limits::{PERMUTATION, USED};
use std::ops::Range;

/// A seed whose first pool has the first of the seen IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The seed: the second of the start.
    pub second: u32,
    /// Number of the seen IDs, from the first one on, that follow each other in the first pool.
    pub explained: usize,
}

/// Seeds within `seconds` that explain at least the first of the consecutive IDs `seen`.
pub fn candidates(seen: &[u16], seconds: Range<u32>) -> Vec<Candidate> {
    let explain = |second| {
        let pools = Pools::new(second);
        let at = position(seen, &pools)?;
        let pairs = pools.permutation()[at..USED].iter().zip(seen);
        Some(Candidate { second, explained: pairs.take_while(|(id, seen)| id == seen).count() })
    };
    seconds.filter_map(explain).collect()
}

/// Source of the IDs that follow `seen`, if the forwarder was started in this second.
pub fn continuation(seen: &[u16], second: u32) -> Option<Pools> {
    let mut pools = Pools::new(second);
    let at = position(seen, &pools)?;
    (0..at + seen.len()).for_each(|_| _ = pools.next());
    Some(pools)
}

fn position(seen: &[u16], pools: &Pools) -> Option<usize> {
    let first = seen.first()?;
    pools.permutation()[..USED].iter().position(|id| id == first)
}

/// Share of the next `count` IDs that a prediction gets right. Both sources advance.
pub fn share_predicted(predicted: &mut Pools, real: &mut Pools, count: u32) -> f64 {
    let right = (0..count).filter(|_| predicted.next() == real.next()).count();
    right as f64 / f64::from(count)
}

/// Number of IDs among which the next one lies after `used` IDs of a pool, for somebody who has seen all of them.
pub fn left_in_pool(used: usize) -> usize {
    PERMUTATION - used
}

/// Probability that one of `packets` forged replies has ID and port of a query, when `ids` IDs and `ports` ports are equally
/// likely, and no pair is tried twice.
pub fn forgery(packets: f64, ids: f64, ports: f64) -> f64 {
    (packets / (ids * ports)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_ids_reveal_the_second_of_the_start_and_all_later_ids() {
        let start = 1_400_000_123;
        let mut real = Pools::new(start);
        (0..5000).for_each(|_| _ = real.next());
        let seen: Vec<u16> = (0..3).map(|_| real.next()).collect();
        let found = candidates(&seen, start - 100..start + 100);
        // One ID is in half of all first pools; two in a row are in the right one alone, but for 1 of 32,768 others.
        assert!((60..=140).contains(&found.len()), "{}", found.len());
        let whole: Vec<&Candidate> = found.iter().filter(|candidate| candidate.explained == 3).collect();
        assert_eq!(whole, [&Candidate { second: start, explained: 3 }]);
        // The next 20,000 IDs lie in two pools.
        let mut predicted = continuation(&seen, start).unwrap();
        assert_eq!(share_predicted(&mut predicted, &mut real, 20_000), 1.0);
    }

    #[test]
    fn a_wrong_seed_predicts_nothing() {
        let share = share_predicted(&mut Pools::new(1), &mut Pools::new(2), 10_000);
        assert!(share < 0.01, "{share}");
    }

    #[test]
    fn the_odds_of_a_forger_are_its_packets_by_the_pairs() {
        assert_eq!((left_in_pool(0), left_in_pool(USED - 1)), (32_768, 16_385));
        assert_eq!(forgery(100.0, 16_384.0, 1.0), 100.0 / 16_384.0);
        assert_eq!(forgery(1e9, 16_384.0, 1.0), 1.0);
        assert_eq!(forgery(65_536.0, 65_536.0, 1000.0), 0.001);
    }
}
