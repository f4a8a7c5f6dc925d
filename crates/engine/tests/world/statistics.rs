//! What tells numbers that can be foreseen from those that cannot, as far as statistics can tell: generators of early
//! servers fail here (counters, linear congruences, shift registers, `random()`). A generator that passes is not yet a
//! cryptographic one: that is a matter of which one it is. No use is made of the engine, so its own unit tests use this too.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

/// Values in a row that a linear complexity is computed of, and how far below its mean it may be: once in 2^48 sequences. A
/// value that was left out, as it was in use, makes a sequence worthless, so several are looked at.
const LINEAR: (usize, usize) = (256, 24);
const SEQUENCES: usize = 16;
/// Lags that sums of earlier values are looked for at.
const LAGS: usize = 64;
/// Values that are looked at for that.
const SUMS: usize = 2000;
/// Serial correlations are looked at up to this lag.
const SERIAL: usize = 16;

/// Pearson's chi-square of counts that should be equal.
pub fn chi_square(counts: &[u64]) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum()
}

/// What chi-square exceeds once in a million times with so many degrees of freedom (Wilson and Hilferty).
pub fn bound(freedom: f64) -> f64 {
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + 4.75 * part.sqrt()).powi(3)
}

/// How often each value below `bins` comes.
pub fn tally(bins: usize, values: impl Iterator<Item = usize>) -> Vec<u64> {
    let mut counts = vec![0; bins];
    values.for_each(|value| counts[value] += 1);
    counts
}

/// The correlation of each value with the one `lag` places on.
pub fn serial_correlation(values: &[f64], lag: usize) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let pairs = values.iter().zip(&values[lag..]);
    pairs.map(|(one, other)| (one - mean) * (other - mean)).sum::<f64>() / variance
}

/// The length of the shortest linear feedback shift register that gives these bits (Berlekamp and Massey): half of their
/// number if nobody can foresee them, that of the register if one gave them.
fn linear_complexity(bits: &[bool]) -> usize {
    let (mut current, mut before) = (vec![false; bits.len() + 1], vec![false; bits.len() + 1]);
    (current[0], before[0]) = (true, true);
    let (mut length, mut since) = (0, 1);
    for at in 0..bits.len() {
        let is_off = (0..=length).filter(|&tap| current[tap] && bits[at - tap]).count() % 2 == 1;
        if !is_off {
            since += 1;
            continue;
        }
        let kept = current.clone();
        for place in since..current.len() {
            current[place] ^= before[place - since];
        }
        if 2 * length <= at {
            (length, before, since) = (at + 1 - length, kept, 1);
        } else {
            since += 1;
        }
    }
    length
}

/// Whether values between `lowest` and `lowest + span` could be foreseen, and by what. At least 2,000 of them are needed; the
/// lowest ten bits of `span` must be 0.
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
    // Eight values a bin are what a chi-square needs.
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

/// Whether each value is the sum of two earlier ones, with or without a carry, as `random()` makes them. Of values that
/// nobody can foresee, one in 32,768 is.
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

/// Whether one sequence says something of another one.
pub fn independent(one: &[u16], other: &[u16]) -> Result<(), String> {
    let cells = tally(
        256,
        one.iter().zip(other).map(|(one, other)| usize::from(one >> 12) * 16 + usize::from(other >> 12)),
    );
    // The margins need not be even (ports begin at 1024): what is expected is their product.
    let sum = |of: &mut dyn Iterator<Item = usize>| of.map(|cell| cells[cell]).sum::<u64>();
    let rows: Vec<u64> = (0..16).map(|row| sum(&mut (row * 16..row * 16 + 16))).collect();
    let columns: Vec<u64> = (0..16).map(|column| sum(&mut (column..256).step_by(16))).collect();
    let total = rows.iter().sum::<u64>() as f64;
    let mut chi_square = 0.0;
    for (cell, &count) in cells.iter().enumerate() {
        let expected = rows[cell / 16] as f64 * columns[cell % 16] as f64 / total;
        chi_square += (count as f64 - expected).powi(2) / expected;
    }
    if chi_square > bound(225.0) { Err(format!("they depend on each other: {chi_square}")) } else { Ok(()) }
}

/// Whether as many of `span` values come as should of so many drawn from the whole range: a share of it gives fewer.
pub fn covers(values: &[u16], span: u32) -> Result<(), String> {
    let different = values.iter().collect::<HashSet<_>>().len() as f64;
    let (span, draws) = (f64::from(span), values.len() as f64);
    let missing = (-draws / span).exp();
    // The variance of the number of empty boxes (Johnson and Kotz), six standard deviations.
    let deviation = (span * missing * (1.0 - (1.0 + draws / span) * missing)).sqrt();
    let expected = span * (1.0 - missing);
    if (different - expected).abs() > 6.0 * deviation {
        return Err(format!("{different} different values instead of {expected:.0} +- {deviation:.0}"));
    }
    Ok(())
}

/// Whether something comes twice that may not: an ID on a link.
pub fn never_twice<T: Copy + Debug + Eq + Hash>(issued: impl Iterator<Item = T>) -> Result<(), String> {
    let mut used = HashSet::new();
    let mut issued = issued;
    match issued.find(|one| !used.insert(*one)) {
        Some(one) => Err(format!("{one:?} came twice")),
        None => Ok(()),
    }
}
