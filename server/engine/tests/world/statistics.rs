//! Statistical tests for random numbers that must be unpredictable (message IDs, ports). The generators of early servers
//! fail them: counters, linear congruences, shift registers, `random()`. A generator that passes is not thereby
//! cryptographic: that depends on the algorithm. This file does not use the engine, so the unit tests of the engine use it too.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

/// Length of a sequence for the linear complexity, and its allowed distance below the mean: random sequences exceed it once
/// in 2^48. A value that the engine skipped because it was in use makes a sequence worthless, so several are tested.
const LINEAR: (usize, usize) = (256, 24);
const SEQUENCES: usize = 16;
/// Largest lag at which `lagged_sums` looks for sums of earlier values.
const LAGS: usize = 64;
/// Number of values that `lagged_sums` tests.
const SUMS: usize = 2000;
/// Largest lag of the serial correlation.
const SERIAL: usize = 16;

/// Pearson's chi-square statistic for counts that should be equal.
pub fn chi_square(counts: &[u64]) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum()
}

/// Bound that chi-square exceeds once in a million times with `freedom` degrees of freedom (Wilson and Hilferty).
pub fn bound(freedom: f64) -> f64 {
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + 4.75 * part.sqrt()).powi(3)
}

/// Counts how often each value below `bins` occurs.
pub fn tally(bins: usize, values: impl Iterator<Item = usize>) -> Vec<u64> {
    let mut counts = vec![0; bins];
    values.for_each(|value| counts[value] += 1);
    counts
}

/// The correlation of each value with the value `lag` places later.
pub fn serial_correlation(values: &[f64], lag: usize) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let pairs = values.iter().zip(&values[lag..]);
    pairs.map(|(one, other)| (one - mean) * (other - mean)).sum::<f64>() / variance
}

/// The length of the shortest linear feedback shift register that generates these bits (Berlekamp and Massey): half of the
/// number of bits if they are random, the length of the register if a register has generated them.
fn linear_complexity(bits: &[bool]) -> usize {
    let (mut current, mut before) = (vec![false; bits.len() + 1], vec![false; bits.len() + 1]);
    (current[0], before[0]) = (true, true);
    let (mut length, mut since) = (0, 1);
    for at in 0..bits.len() {
        let is_discrepant = (0..=length).filter(|&tap| current[tap] && bits[at - tap]).count() % 2 == 1;
        if !is_discrepant {
            since += 1;
            continue;
        }
        let previous = current.clone();
        for place in since..current.len() {
            current[place] ^= before[place - since];
        }
        if 2 * length <= at {
            (length, before, since) = (at + 1 - length, previous, 1);
        } else {
            since += 1;
        }
    }
    length
}

/// Tests values between `lowest` and `lowest + span`; returns the first test that finds them predictable. At least 2,000
/// values are needed; the lowest ten bits of `span` must be 0.
pub fn examine(values: &[u16], lowest: u16, span: u32) -> Result<(), String> {
    let fail = |what: &str, value: f64| Err(format!("{what}: {value}"));
    let offsets: Vec<u32> = values.iter().map(|&value| u32::from(value - lowest)).collect();
    let bins = (span / 1024) as usize;
    let freedom = bins as f64 - 1.0;
    let differences = offsets.windows(2).map(|pair| (pair[1] + span - pair[0]) % span);
    for (what, counts) in [
        ("high bits", tally(bins, offsets.iter().map(|offset| (offset / 1024) as usize))),
        ("differences", tally(bins, differences.map(|difference| (difference / 1024) as usize))),
    ] {
        if chi_square(&counts) > bound(freedom) {
            return fail(what, chi_square(&counts));
        }
    }
    let low = tally(1024, offsets.iter().map(|offset| (offset % 1024) as usize));
    // A chi-square test needs about eight values per bin.
    if offsets.len() >= 8 * 1024 && chi_square(&low) > bound(1023.0) {
        return fail("low bits", chi_square(&low));
    }
    let sixteenth = |offset: u32| (offset * 16 / span) as usize;
    let pairs = tally(256, offsets.windows(2).map(|pair| sixteenth(pair[0]) * 16 + sixteenth(pair[1])));
    if chi_square(&pairs) > bound(255.0) {
        return fail("pairs", chi_square(&pairs));
    }
    let floats: Vec<f64> = offsets.iter().map(|&offset| f64::from(offset)).collect();
    for lag in 1..=SERIAL {
        let correlation = serial_correlation(&floats, lag);
        // Five standard deviations.
        if correlation.abs() > 5.0 / (floats.len() as f64).sqrt() {
            return fail(&format!("correlation at lag {lag}"), correlation);
        }
    }
    for row in offsets.chunks_exact(LINEAR.0).take(SEQUENCES) {
        for bit in 0..10 {
            let bits: Vec<bool> = row.iter().map(|offset| offset >> bit & 1 == 1).collect();
            let complexity = linear_complexity(&bits);
            if complexity < LINEAR.0 / 2 - LINEAR.1 {
                return fail(&format!("linear complexity of bit {bit}"), complexity as f64);
            }
        }
    }
    lagged_sums(&values[..values.len().min(SUMS)])
}

/// Checks that values are not the sums of two earlier values, with or without a carry, as those of `random()` are. Of random
/// values, one in 32,768 is such a sum.
fn lagged_sums(values: &[u16]) -> Result<(), String> {
    for far in 1..=LAGS {
        for near in 1..=far {
            let sums = (far..values.len())
                .filter(|&at| values[at].wrapping_sub(values[at - near]).wrapping_sub(values[at - far]) <= 1);
            let count = sums.count();
            if count > values.len() / 100 {
                return Err(format!("{count} sums of the values {near} and {far} places before"));
            }
        }
    }
    Ok(())
}

/// Checks that two sequences are statistically independent.
pub fn independent(one: &[u16], other: &[u16]) -> Result<(), String> {
    let cells = tally(
        256,
        one.iter().zip(other).map(|(one, other)| usize::from(one >> 12) * 16 + usize::from(other >> 12)),
    );
    // The margins need not be uniform (ports begin at 1024): the expected counts are products of the margins.
    let sum = |of: &mut dyn Iterator<Item = usize>| of.map(|cell| cells[cell]).sum::<u64>();
    let rows: Vec<u64> = (0..16).map(|row| sum(&mut (row * 16..row * 16 + 16))).collect();
    let columns: Vec<u64> = (0..16).map(|column| sum(&mut (column..256).step_by(16))).collect();
    let total = rows.iter().sum::<u64>() as f64;
    let mut chi_square = 0.0;
    for (cell, &count) in cells.iter().enumerate() {
        let expected = rows[cell / 16] as f64 * columns[cell % 16] as f64 / total;
        chi_square += (count as f64 - expected).powi(2) / expected;
    }
    if chi_square > bound(225.0) {
        Err(format!("the sequences depend on each other: {chi_square}"))
    } else {
        Ok(())
    }
}

/// Checks that the values come from the whole range of `span` values: draws from a part of it give fewer different values.
pub fn covers(values: &[u16], span: u32) -> Result<(), String> {
    let different = values.iter().collect::<HashSet<_>>().len() as f64;
    let (span, draws) = (f64::from(span), values.len() as f64);
    let missing = (-draws / span).exp();
    // The variance of the number of empty urns (Johnson and Kotz); six standard deviations are allowed.
    let deviation = (span * missing * (1.0 - (1.0 + draws / span) * missing)).sqrt();
    let expected = span * (1.0 - missing);
    if (different - expected).abs() > 6.0 * deviation {
        return Err(format!("{different} different values instead of {expected:.0} +- {deviation:.0}"));
    }
    Ok(())
}

/// Checks that no value occurs twice, for example a message ID on a link.
pub fn never_twice<T: Copy + Debug + Eq + Hash>(issued: impl Iterator<Item = T>) -> Result<(), String> {
    let mut used = HashSet::new();
    let mut issued = issued;
    match issued.find(|one| !used.insert(*one)) {
        Some(one) => Err(format!("{one:?} occurs twice")),
        None => Ok(()),
    }
}
