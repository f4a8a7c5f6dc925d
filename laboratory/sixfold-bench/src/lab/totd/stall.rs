//! The stall of a minute: its cause and its frequency in virtual time, and once with sockets.

use super::super::context::{Context, figure, share};
use super::hosts::{self, HostLoad, HostOutcome};
use super::paper::{self, Rates, TABLE_1, TABLE_2};
use super::servers::{Bench, Candidate};
use measure::experiment::{Figure, Origin, median_interval};
use measure::statistics::{median, sorted};
use papers::totd::ids::{SCHEMES, Scheme, landing};
use papers::totd::load::{Outcome, Parameters, Upstreams, run};
use splitmix::SplitMix64;
use std::net::SocketAddr;
use std::time::Duration;

/// An experiment this long is part of a stall: half the lifetime of the table of duplicates, and 10 times the longest
/// experiment without a stall.
pub(super) const STALL_S: f64 = 30.0;

/// Distances of a landing below 0 whose IDs are all in the table, less those that pass within half a minute.
pub(super) const NEAR: std::ops::Range<u16> = 300..1000;

/// Value of the counter at the start: 2,000 IDs, a second, before it runs over.
const COUNTER: u16 = 63_536;

/// Table of the variants.
const TABLE: &str = "Longest experiment after a landing 300 to 999 IDs below the end, 4 clients";

/// A variant of the forwarder.
struct Variant {
    name: &'static str,
    scheme: Scheme,
    upstreams: Upstreams,
    duplicates: bool,
}

/// The variants: the three schemes, and the bug without the table of duplicates and with a second upstream.
const VARIANTS: [Variant; 6] = [
    Variant { name: "sequential", scheme: Scheme::Sequential, upstreams: Upstreams::One, duplicates: true },
    Variant { name: "fixed", scheme: Scheme::SequentialFixed, upstreams: Upstreams::One, duplicates: true },
    Variant { name: "permuted", scheme: Scheme::Permuted, upstreams: Upstreams::One, duplicates: true },
    Variant {
        name: "sequential, without the table of duplicates",
        scheme: Scheme::Sequential,
        upstreams: Upstreams::One,
        duplicates: false,
    },
    Variant {
        name: "sequential, two upstreams",
        scheme: Scheme::Sequential,
        upstreams: Upstreams::Two,
        duplicates: true,
    },
    Variant {
        name: "sequential, one upstream listed twice",
        scheme: Scheme::Sequential,
        upstreams: Upstreams::SameTwice,
        duplicates: true,
    },
];

/// Simulates all variants after unlucky landings, and the schemes after random ones.
///
/// # Errors
///
/// The user stops the experiment.
pub(super) fn simulate(context: &mut Context) -> Result<(), String> {
    let runs: usize = context.choose(20, 1000);
    let clocks = unlucky_clocks(1_400_000_000 + context.seed(1) as u32 % 10_000_000, runs);
    for variant in &VARIANTS {
        context.progress(&format!("{runs} runs, {}", variant.name))?;
        let outcomes: Vec<Outcome> =
            (0..).zip(&clocks).map(|(seed, clock_ns)| run(&parameters(variant, *clock_ns, seed))).collect();
        enter(context, variant.name, &outcomes);
    }
    frequency(context)
}

fn parameters(variant: &Variant, clock_ns: u64, seed: u64) -> Parameters {
    Parameters {
        clients: 4,
        experiments: 8,
        scheme: variant.scheme,
        counter: COUNTER,
        clock_ns,
        upstreams: variant.upstreams,
        duplicates: variant.duplicates,
        seed,
    }
}

/// Times at the start, in nanoseconds since 1970, after which the counter lands [`NEAR`] its end. The counter runs over a second
/// after the start, in the middle of the second that decides.
fn unlucky_clocks(from: u32, count: usize) -> Vec<u64> {
    let is_near = |second: &u32| NEAR.contains(&0u16.wrapping_sub(landing(*second)));
    let start = |second: u32| u64::from(second - 1) * 1_000_000_000 + 500_000_000;
    (from..).filter(is_near).map(start).take(count).collect()
}

/// Enters the longest experiments of a variant, and what they must show.
fn enter(context: &mut Context, name: &str, outcomes: &[Outcome]) {
    let longest: Vec<f64> = outcomes.iter().map(Outcome::longest_s).collect();
    let longest = sorted(&longest);
    let (low, high) = (longest[0], longest[longest.len() - 1]);
    let samples = longest.len() as u64;
    let stalled = longest.iter().filter(|seconds| **seconds > STALL_S).count() as u64;
    let base = |column: &str, value, unit| Figure {
        samples,
        ..figure(TABLE, name, column, value, unit, Origin::Virtual)
    };
    let paper = match name {
        "sequential" => (Some(paper::LONGEST_S[0]), "Table I, 4 clients"),
        "fixed" => (Some(paper::LONGEST_S[1]), "Table II"),
        "permuted" => (Some(paper::LONGEST_S[2]), "Table III, 9 clients"),
        _ => (None, ""),
    };
    let middle = median(&longest).unwrap_or(f64::NAN);
    context.figure(Figure { interval: median_interval(&longest, 1), ..base("median", middle, "s") });
    context.figure(Figure { paper: paper.0, place: paper.1.to_owned(), ..base("longest", high, "s") });
    context.figure(share(TABLE, name, "runs with a stall", (stalled, samples), Origin::Virtual));
    let observed =
        format!("{stalled} of {samples} runs; the longest experiments take {low:.1} to {high:.1} s");
    match name {
        "sequential" => context.claim(
            "Virtual time: every run stalls for more than 30 s when the counter with the bug lands 300 to 999 IDs below its end",
            "a run whose longest experiment takes 30 s or less",
            observed,
            stalled == samples,
        ),
        "sequential, one upstream listed twice" => context.difference(
            "One forwarder listed twice",
            format!(
                "In the paper, listing one forwarder twice shortens the stall like a second one. In the model it does not \
                 ({middle:.0} s, median), because the table of duplicates knows a source by its address."
            ),
        ),
        "sequential, two upstreams" => context.claim(
            "Virtual time: with a second upstream the stall takes a few seconds (paper, section 4)",
            "a run with an experiment of 15 s or more",
            observed,
            high < 15.0,
        ),
        _ => context.claim(
            format!("Virtual time: no run stalls: {name}"),
            "one run with an experiment of more than 30 s",
            observed,
            stalled == 0,
        ),
    }
}

/// Share of random landings that stall the server, and the paper's by arithmetic.
fn frequency(context: &mut Context) -> Result<(), String> {
    let runs: u64 = context.choose(300, 20_000);
    context.progress(&format!("{runs} random landings"))?;
    let mut random = SplitMix64::new(context.seed(2));
    let table = "Stalls of more than 30 s for each time that the counter runs over, 4 clients";
    let mut stalled = 0;
    for seed in 0..runs {
        // A random instant of three years.
        let clock_ns =
            (1_350_000_000 + random.bits() % 94_608_000) * 1_000_000_000 + random.bits() % 1_000_000_000;
        let outcome = run(&Parameters { experiments: 2, ..parameters(&VARIANTS[0], clock_ns, seed) });
        stalled += u64::from(outcome.longest_s() > STALL_S);
    }
    context.figure(share(table, "model", "share", (stalled, runs), Origin::Virtual));
    let lost_s = lost_seconds(&TABLE_1.rates, &TABLE_2.rates);
    // Ten runs with 1 to 10 clients have 55 x 65,536 names of two IDs; a random landing leaves 32,768 IDs on average.
    let overflows = 55.0 * 65_536.0 * 2.0 / 32_768.0;
    let share = 100.0 * lost_s / 60.0 / overflows;
    context.figure(figure(table, "Tables I and II", "time lost by the bug", lost_s, "s", Origin::Arithmetic));
    context.figure(figure(
        table,
        "Tables I and II",
        "share, if a stall takes 60 s",
        share,
        "%",
        Origin::Arithmetic,
    ));
    Ok(())
}

/// Time that the ten runs of one table take longer than those of another, in seconds.
fn lost_seconds(slow: &Rates, fast: &Rates) -> f64 {
    let names = (1..=10).map(|clients| f64::from(clients) * 65_536.0);
    names.zip(slow.iter().zip(fast)).map(|(names, (slow, fast))| names / slow - names / fast).sum()
}

/// Shortened times of the short version: a 20th of TOTD's and `host`'s.
const QUICK: (Duration, Duration, Duration) =
    (Duration::from_secs(3), Duration::from_millis(100), Duration::from_millis(250));

/// TOTD's lifetime and timeout, and the timeout of `host`.
pub(super) const WHOLE: (Duration, Duration, Duration) =
    (Duration::from_secs(60), Duration::from_secs(2), Duration::from_secs(5));

/// Runs the forwarder with sockets and a counter that is about to land near its end, with each scheme.
///
/// # Errors
///
/// The forwarder cannot be started, or the user stops the experiment.
pub(super) fn measure(context: &mut Context) -> Result<(), String> {
    let (lifetime, timeout, host) = context.choose(QUICK, WHOLE);
    let second = (1_400_000_000u32..).find(|second| landing(*second) == 0u16.wrapping_sub(900));
    let second = second.ok_or("no second has this landing")?.to_string();
    let (lifetime_text, timeout_text) =
        (format!("{}ms", lifetime.as_millis()), format!("{}ms", timeout.as_millis()));
    let counter = COUNTER.to_string();
    let options = [
        ["--counter", &counter],
        ["--second", &second],
        ["--lifetime", &lifetime_text],
        ["--timeout", &timeout_text],
    ]
    .concat();
    let table = format!("Longest experiment with sockets, a table that lives for {} s", lifetime.as_secs());
    for scheme in SCHEMES {
        context.progress(&format!("{} IDs", scheme.name()))?;
        let mut bench = Bench::new()?;
        let running = bench.start(context, &Candidate::forwarder(scheme, &options)?)?;
        let outcome = hosts::run(&four_clients(&bench, running.address, lifetime, host), &context.stop);
        let counters = bench.stop(running);
        enter_measured(context, scheme, &table, lifetime.as_secs_f64(), &outcome, &counters);
    }
    Ok(())
}

/// A load of four clients. `lifetime`: that of the server's table of duplicates; `host`: timeout of a client.
pub(super) fn four_clients(
    bench: &Bench,
    server: SocketAddr,
    lifetime: Duration,
    host: Duration,
) -> HostLoad {
    HostLoad {
        server,
        clients: 4,
        experiments: 16,
        first: 0,
        limit: lifetime * 2,
        timeout: host,
        zone: bench.zone.clone(),
    }
}

fn enter_measured(
    context: &mut Context,
    scheme: Scheme,
    table: &str,
    lifetime_s: f64,
    outcome: &HostOutcome,
    counters: &str,
) {
    let longest = outcome.longest_s();
    let samples = outcome.experiments_s.len() as u64;
    context.figure(Figure {
        samples,
        ..figure(table, scheme.name(), "longest", longest, "s", Origin::Measured)
    });
    let failed = outcome.failed as f64;
    context.figure(figure(table, scheme.name(), "names without an answer", failed, "", Origin::Measured));
    let observed = format!("{longest:.2} s; counters of the forwarder: {counters}");
    if scheme == Scheme::Sequential {
        // The model's shortest stall is half a lifetime; a third leaves room for the machine.
        context.claim(
            "With sockets: the counter with the bug makes an experiment take a third of the table's lifetime or more",
            "a longest experiment of a third of the lifetime or less",
            observed,
            longest > lifetime_s / 3.0,
        );
    } else {
        context.claim(
            format!("With sockets: no experiment takes half of the lifetime with {} IDs", scheme.name()),
            "one experiment of half of the lifetime or more",
            observed,
            longest < lifetime_s / 2.0,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_lost_is_the_difference_of_names_by_rate() {
        let (mut slow, fast) = ([1000.0; 10], [1000.0; 10]);
        assert_eq!(lost_seconds(&slow, &fast), 0.0);
        slow[3] = 500.0;
        // 4 x 65,536 names at 500/s take 524.288 s, at 1,000/s 262.144 s.
        assert!((lost_seconds(&slow, &fast) - 262.144).abs() < 1e-9);
    }

    #[test]
    fn an_unlucky_clock_lands_near_the_end() {
        let clocks = unlucky_clocks(1_400_000_000, 5);
        assert_eq!(clocks.len(), 5);
        for clock in clocks {
            let second = (clock / 1_000_000_000) as u32 + 1;
            assert!(landing(second) > 0xffff - 1000);
        }
    }
}
