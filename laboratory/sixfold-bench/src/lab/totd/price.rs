//! The price of an ID, on the generators themselves (paper, section 6: "invisible"): time for one ID of each scheme, and the shuffle of
//! 32,768 steps, during which the server answers nobody.

use super::super::context::{Context, figure, median_figure};
use super::paper::TABLE_2;
use measure::experiment::Origin;
use measure::run::Summary;
use papers::totd::ids::{Ids, Pools, Scheme};
use papers::totd::limits::{PERMUTATION, USED};
use std::hint::black_box;
use std::time::Instant;

/// Table of the prices.
const TABLE: &str = "Price of an ID, on the generator itself";

/// A second of 2014, the seed.
const START: u32 = 1_400_000_000;

/// IDs of a resolution: one for the AAAA query and one for the A query.
const IDS_OF_A_NAME: f64 = 2.0;

/// Largest share of the processor that the claim calls invisible, at the paper's rate. The paper's rates differ by 2 % from table to table.
const INVISIBLE: f64 = 0.01;

/// Times of one kind, each of one repetition, in nanoseconds.
struct Times(Vec<f64>);

impl Times {
    fn median(&self) -> f64 {
        Summary::of(&self.0).median
    }
}

/// Measures the generators, and enters figures and claim.
pub(super) fn run(context: &mut Context) {
    let repetitions = context.choose(20, 400);
    for scheme in [Scheme::Sequential, Scheme::SequentialFixed] {
        // A counter that begins at 1 does not run over within these IDs.
        let times = Times((0..repetitions).map(|_| per_id(&mut Ids::new(scheme, 1))).collect());
        enter(context, &format!("{} IDs", scheme.name()), "one ID", &times, 1.0, "ns");
    }
    let (plain, shuffles) = permuted(repetitions);
    enter(context, "permuted IDs", "one ID, from a pool that is there", &plain, 1.0, "ns");
    enter(context, "permuted IDs", "one shuffle of 32,768 steps", &shuffles, 1e-3, "us");
    let shared = plain.median() + shuffles.median() / USED as f64;
    context.figure(figure(
        TABLE,
        "permuted IDs",
        "one ID with its share of the shuffle",
        shared,
        "ns",
        Origin::Measured,
    ));
    // Table II with 10 clients: 1,010 requests/s.
    let ids_per_s = IDS_OF_A_NAME * TABLE_2.rates[9];
    let share = ids_per_s * shared / 1e9;
    context.figure(figure(
        TABLE,
        "permuted IDs",
        "processor at the paper's 1,010 requests/s",
        100.0 * share,
        "%",
        Origin::Measured,
    ));
    context.claim(
        "Permuted IDs cost less than 1 % of a processor of this machine at the paper's rate with 10 clients, shuffles included",
        "a share of 1 % or more, which a table of rates would begin to show",
        format!(
            "{:.4} %; {shared:.1} ns for an ID, {:.0} us for a shuffle every {USED} IDs",
            100.0 * share,
            shuffles.median() / 1e3
        ),
        share < INVISIBLE,
    );
    context.difference(
        "The price of permuted IDs",
        format!(
            "The paper compares the rates of its tables, which cannot show less than their 2 % of noise. Here the generators are timed \
             alone. A shuffle has {PERMUTATION} steps and is made when a pool of {USED} IDs is used up, by the one thread of the server, \
             which answers nobody until its end: the mean price is small, and one query of {} waits for all of it.",
            USED / 2
        ),
    );
}

/// Time for an ID of a counter, in nanoseconds: the mean of [`USED`].
fn per_id(ids: &mut Ids) -> f64 {
    let began = Instant::now();
    for _ in 0..USED {
        black_box(ids.next(START));
    }
    began.elapsed().as_nanos() as f64 / USED as f64
}

/// Times of permuted IDs in nanoseconds: for one from a pool that is there, and for the call that shuffles.
fn permuted(repetitions: usize) -> (Times, Times) {
    let mut pools = Pools::new(START);
    pools.next();
    let (mut plain, mut shuffles) = (Vec::new(), Vec::new());
    for _ in 0..repetitions {
        // One ID of the pool is used; the call after the last one shuffles.
        let began = Instant::now();
        for _ in 1..USED {
            black_box(pools.next());
        }
        plain.push(began.elapsed().as_nanos() as f64 / (USED - 1) as f64);
        let began = Instant::now();
        black_box(pools.next());
        shuffles.push(began.elapsed().as_nanos() as f64);
    }
    (Times(plain), Times(shuffles))
}

fn enter(context: &mut Context, row: &str, column: &str, times: &Times, factor: f64, unit: &str) {
    let values: Vec<f64> = times.0.iter().map(|time| time * factor).collect();
    context.figure(median_figure(TABLE, row, column, &values, unit, 1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_that_is_timed_as_a_shuffle_is_the_one_that_shuffles() {
        let mut pools = Pools::new(START);
        pools.next();
        for _ in 0..3 {
            let before = pools.permutation().to_vec();
            (1..USED).for_each(|_| _ = pools.next());
            assert_eq!(pools.permutation(), before, "no ID of this part shuffles");
            pools.next();
            assert_ne!(pools.permutation(), before, "the next one does");
        }
    }
}
