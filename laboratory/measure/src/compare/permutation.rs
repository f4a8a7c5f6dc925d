//! Permutation test of the rank sums of two sets of values (Mann and Whitney, 1947), two-sided: the share of all
//! divisions of the values into two such sets whose rank sums are at least as far from the mean as the real ones. Equal
//! values share the mean of their ranks.
//!
//! For small sets the share is exact; it is counted by the sum of the ranks, not division by division. For large sets
//! it is estimated from random divisions.

use splitmix::SplitMix64;

/// Most values on both sides together for which all divisions are counted. C(60, 30) is 1.2e17, which a u64 holds.
/// The doubled ranks of 60 values sum up to 60 * 59 = 3,540, so the table has at most 60 rows of 3,541 sums (1.7 MB),
/// and 60 passes over what is reached of it are some 5 million additions.
const EXACT_VALUES: usize = 60;

/// Number of random divisions of an estimate. The standard deviation of an estimate near 0.05 is then 0.002.
const DRAWS: u32 = 10_000;

/// The p-value of two sets, neither empty.
pub(super) fn p_value(one: &[f64], other: &[f64], rng: &mut SplitMix64) -> f64 {
    let ranks = doubled_ranks(one, other);
    if ranks.len() <= EXACT_VALUES { exact(&ranks, one.len()) } else { estimated(ranks, one.len(), rng) }
}

/// The smallest p-value that sets of these sizes can have: two of all divisions, the most distant one in each
/// direction.
pub(super) fn least_p_value(one: usize, other: usize) -> f64 {
    // C(n + m, n) as a product of small factors, which is exact enough far beyond any p-value of interest.
    let divisions = (1..=one).fold(1.0, |product, k| product * (other + k) as f64 / k as f64);
    (2.0 / divisions).min(1.0)
}

/// The ranks of all values, those of the first set first. They count from 0 and are doubled, so that the mean of two
/// neighbouring ranks is a whole number.
fn doubled_ranks(one: &[f64], other: &[f64]) -> Vec<u64> {
    let rank = |value: &f64| -> u64 {
        let below = one.iter().chain(other).filter(|it| *it < value).count();
        let equal = one.iter().chain(other).filter(|it| *it == value).count();
        (2 * below + equal) as u64 - 1
    };
    one.iter().chain(other).map(rank).collect()
}

/// Distance of the rank sum of `size` of the values from its mean, times the number of values, so that it is a whole
/// number.
fn distance(sum: u64, ranks: &[u64], size: usize) -> u64 {
    (sum * ranks.len() as u64).abs_diff(ranks.iter().sum::<u64>() * size as u64)
}

/// Counts all divisions.
fn exact(ranks: &[u64], size: usize) -> f64 {
    let total = ranks.iter().sum::<u64>() as usize;
    // Number of sets of so many values with such a sum, of the values seen so far.
    let mut sets = vec![vec![0u64; total + 1]; size + 1];
    sets[0][0] = 1;
    let mut largest_sum = 0;
    for (before, rank) in ranks.iter().map(|rank| *rank as usize).enumerate() {
        largest_sum += rank;
        for many in (1..=size.min(before + 1)).rev() {
            let (smaller, larger) = sets.split_at_mut(many);
            let without = &smaller[many - 1][..=largest_sum - rank];
            for (with, without) in larger[0][rank..=largest_sum].iter_mut().zip(without) {
                *with += without;
            }
        }
    }
    let real = distance(ranks[..size].iter().sum(), ranks, size);
    let (mut as_far, mut all) = (0u64, 0u64);
    for (sum, number) in sets[size].iter().enumerate() {
        all += number;
        as_far += if distance(sum as u64, ranks, size) >= real { *number } else { 0 };
    }
    as_far as f64 / all as f64
}

/// Draws random divisions. The real one counts as one of them, so the estimate is never 0.
fn estimated(mut ranks: Vec<u64>, size: usize, rng: &mut SplitMix64) -> f64 {
    let real = distance(ranks[..size].iter().sum(), &ranks, size);
    let mut as_far = 0u32;
    for _ in 0..DRAWS {
        // The first places of a shuffle are a random set (Fisher and Yates).
        for place in 0..size {
            let from = place + rng.place(ranks.len() - place);
            ranks.swap(place, from);
        }
        as_far += u32::from(distance(ranks[..size].iter().sum(), &ranks, size) >= real);
    }
    f64::from(as_far + 1) / f64::from(DRAWS + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(one: &[f64], other: &[f64]) -> f64 {
        p_value(one, other, &mut SplitMix64::new(1))
    }

    /// The definition: every division, one by one, with ranks counted in halves.
    fn by_enumeration(one: &[f64], other: &[f64]) -> f64 {
        let all: Vec<f64> = one.iter().chain(other).copied().collect();
        let rank = |value: f64| {
            all.iter()
                .map(|it| {
                    if *it < value {
                        1.0
                    } else if *it == value {
                        0.5
                    } else {
                        0.0
                    }
                })
                .sum::<f64>()
        };
        let mean = all.len() as f64 / 2.0 * one.len() as f64;
        let far = |set: u32| {
            let members = (0..all.len()).filter(|at| set >> at & 1 == 1);
            (members.map(|at| rank(all[at])).sum::<f64>() - mean).abs()
        };
        let real = far((1 << one.len()) - 1);
        let sets = (0..1u32 << all.len()).filter(|set| set.count_ones() as usize == one.len());
        let distances: Vec<f64> = sets.map(far).collect();
        distances.iter().filter(|it| **it >= real - 1e-9).count() as f64 / distances.len() as f64
    }

    #[test]
    fn disjoint_sets_have_the_least_p_value_of_their_sizes() {
        // Two of C(6, 3) = 20, C(8, 4) = 70, C(8, 3) = 56, C(7, 3) = 35 and C(2, 1) = 2 divisions.
        for (one, other, expected) in
            [(3, 3, 0.1), (4, 4, 2.0 / 70.0), (3, 5, 2.0 / 56.0), (4, 3, 2.0 / 35.0), (1, 1, 1.0)]
        {
            let low: Vec<f64> = (0..one).map(f64::from).collect();
            let high: Vec<f64> = (0..other).map(|it| f64::from(it) + 100.0).collect();
            assert!((p(&low, &high) - expected).abs() < 1e-12, "{one} {other}: {}", p(&low, &high));
            let least = least_p_value(one as usize, other as usize);
            assert!((least - expected).abs() < 1e-12, "{one} {other}: {least}");
        }
        assert!(least_p_value(20, 20) < 1e-10);
    }

    #[test]
    fn the_count_by_sums_agrees_with_every_division_one_by_one() {
        let mut rng = SplitMix64::new(8219);
        for round in 0..60 {
            let (one, other) = (1 + round % 6, 1 + rng.place(7));
            // Few different values, so that many are equal.
            let mut draw = |many: usize| (0..many).map(|_| rng.place(5) as f64).collect::<Vec<f64>>();
            let (one, other) = (draw(one), draw(other));
            let (counted, expected) = (p(&one, &other), by_enumeration(&one, &other));
            assert!((counted - expected).abs() < 1e-12, "{one:?} {other:?}: {counted} {expected}");
        }
    }

    #[test]
    fn many_values_are_estimated_near_the_exact_share() {
        let one: Vec<f64> = (0..30).map(|it| f64::from(it) * 1.3).collect();
        let other: Vec<f64> = (0..30).map(f64::from).collect();
        let ranks = doubled_ranks(&one, &other);
        let (exact, near) = (exact(&ranks, 30), estimated(ranks.clone(), 30, &mut SplitMix64::new(3)));
        // The standard deviation of 10,000 draws is at most 0.005.
        assert!((exact - near).abs() < 0.02, "{exact} {near}");
        assert!((0.01..0.5).contains(&exact), "{exact}");
    }

    #[test]
    fn equal_values_do_not_differ() {
        assert_eq!(p(&[5.0; 20], &[5.0; 20]), 1.0);
        assert_eq!(p(&[5.0; 40], &[5.0; 40]), 1.0);
    }
}
