//! The stall of TOTD itself, each version that the user gave, with one forwarder, with two, and with one that is listed twice.
//!
//! The first query sets TOTD's counter to [`landing`] of the current second, so the experiment begins with a second that lands near the end:
//! four clients use up what is left within it, and the counter lands there again. Such a second is rare, so all variants are loaded in the
//! same one. The lifetime of TOTD's table is 60 s and cannot be set.

use super::super::context::{Context, figure};
use super::super::device::RunningDevice;
use super::hosts::{self, HostOutcome};
use super::servers::{self, Bench, Candidate, Forwarders};
use super::stall::{NEAR, STALL_S, WHOLE, four_clients};
use crate::clock;
use load::sockets::device_sockets;
use measure::experiment::{Figure, Origin};
use papers::totd::ids::landing;
use std::thread;
use std::time::Duration;

/// Time from the start of TOTD to its first query: it reads its configuration and becomes a daemon.
const SETTLED: Duration = Duration::from_secs(2);

/// Time after which time(2) has the new second, too: it reads a clock that moves with the timer of the kernel, at least 100 times a second.
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// Longest wait for a second whose landing is near the end of the counter: 7 seconds in 655 have one.
const LUCK: Duration = Duration::from_secs(1800);

/// Longest experiment of "a few seconds", which the paper has with two forwarders.
const FEW_SECONDS: f64 = 15.0;

/// Table of the stalls.
const TABLE: &str = "TOTD itself, whose counter begins near its end, 4 clients";

/// Expected behaviour of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// An experiment of more than [`STALL_S`].
    Stall,
    /// No experiment of [`FEW_SECONDS`] or more.
    FewSeconds,
    /// No experiment of [`STALL_S`] or more.
    NoStall,
    /// Nothing: the version is unknown.
    Unknown,
}

/// A version of TOTD with its forwarders.
struct Variant {
    bench: Bench,
    running: RunningDevice,
    name: String,
    forwarders: Forwarders,
    expected: Expected,
}

/// Variants of a version, and what its source lets expect.
fn variants(name: &str) -> &'static [(Forwarders, Expected)] {
    match name {
        "totd-1.5.2" => &[
            (Forwarders::One, Expected::Stall),
            (Forwarders::Two, Expected::FewSeconds),
            // Unlike the paper, which has a few seconds: the table knows a source by its address.
            (Forwarders::SameTwice, Expected::Stall),
        ],
        "totd-1.5.2-fixed" | "totd-1.5.3" => &[(Forwarders::One, Expected::NoStall)],
        _ => &[(Forwarders::One, Expected::Unknown)],
    }
}

/// Loads all variants of the given versions.
///
/// # Errors
///
/// A given version cannot be started or binds no socket, no near second sets its counter, or the user stops the experiment.
pub(super) fn run(context: &mut Context) -> Result<(), String> {
    let candidates = servers::programs(context)?;
    if candidates.is_empty() {
        return Ok(());
    }
    let mut all = Vec::new();
    for candidate in &candidates {
        for (forwarders, expected) in variants(&candidate.name) {
            all.push(start(context, candidate, *forwarders, *expected)?);
        }
    }
    let second = next_near(clock::unix_now() + SETTLED);
    let wait = second.saturating_sub(clock::unix_now());
    context.progress(&format!("TOTD: waits {} s for a second that sets its counter", wait.as_secs()))?;
    if wait > LUCK {
        return Err(format!("no second of the next {} s has a landing near the end", LUCK.as_secs()));
    }
    while clock::unix_now() < second + CLOCK_TICK {
        context.check_stop()?;
        thread::sleep(Duration::from_millis(1));
    }
    context.progress("TOTD: the load, up to 2 minutes")?;
    let (lifetime, _, host) = WHOLE;
    let stop = &context.stop;
    let outcomes: Vec<_> = thread::scope(|scope| {
        let load = |variant: &Variant| {
            let load = four_clients(&variant.bench, variant.running.address, lifetime, host);
            scope.spawn(move || hosts::run(&load, stop))
        };
        let loads: Vec<_> = all.iter().map(load).collect();
        loads.into_iter().map(|load| load.join()).collect()
    });
    for (variant, outcome) in all.into_iter().zip(outcomes) {
        let outcome = outcome.map_err(|_| "a thread of the clients has failed".to_owned())?;
        enter(context, &variant, &outcome);
        let Variant { mut bench, running, .. } = variant;
        bench.stop(running);
    }
    Ok(())
}

/// Starts a variant. Nobody asks it anything: a question would set its counter.
fn start(
    context: &mut Context,
    candidate: &Candidate,
    forwarders: Forwarders,
    expected: Expected,
) -> Result<Variant, String> {
    let mut bench = Bench::with(forwarders)?;
    let candidate = candidate.clone().with_forwarders(forwarders);
    let running = bench.launch(context, &candidate, |server, _| device_sockets::is_bound(server.port()))?;
    Ok(Variant { bench, running, name: candidate.name, forwarders, expected })
}

/// The next second after `from` whose landing is [`NEAR`] the end of the counter, as time since 1970.
fn next_near(from: Duration) -> Duration {
    let seconds = from.as_secs() as u32 + 1..u32::MAX;
    let near = seconds.into_iter().find(|second| NEAR.contains(&0u16.wrapping_sub(landing(*second))));
    Duration::from_secs(near.unwrap_or(u32::MAX).into())
}

fn enter(context: &mut Context, variant: &Variant, outcome: &HostOutcome) {
    let longest = outcome.longest_s();
    let row = format!("{}, {}", variant.name, variant.forwarders.words());
    let samples = outcome.experiments_s.len() as u64;
    for (column, value, unit) in [
        ("longest experiment", longest, "s"),
        ("longest gap", outcome.gap_s, "s"),
        ("names answered", outcome.answered as f64, ""),
        ("names without an answer", outcome.failed as f64, ""),
    ] {
        context.figure(Figure { samples, ..figure(TABLE, &row, column, value, unit, Origin::Measured) });
    }
    let observed =
        format!("{longest:.1} s; {} names answered, {} without an answer", outcome.answered, outcome.failed);
    let has_answered = outcome.answered > 0;
    match variant.expected {
        Expected::Stall => context.claim(
            format!("{row}: an experiment takes more than {STALL_S:.0} s"),
            "no such experiment: the table of duplicates does not ignore the replies",
            observed,
            longest > STALL_S,
        ),
        Expected::FewSeconds => context.claim(
            format!("{row}: the stall takes a few seconds, less than {FEW_SECONDS:.0} s (paper, section 4)"),
            "a longer experiment, or a server that answers nothing",
            observed,
            has_answered && longest < FEW_SECONDS,
        ),
        Expected::NoStall => context.claim(
            format!("{row}: no experiment takes {STALL_S:.0} s"),
            "an experiment of this length, or a server that answers nothing",
            observed,
            has_answered && longest < STALL_S,
        ),
        Expected::Unknown => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_second_is_one_that_lands_near_the_end() {
        let second = next_near(Duration::from_secs(1_400_000_000)).as_secs() as u32;
        assert!(second > 1_400_000_000);
        assert!((65_536 - 999..=65_536 - 300).contains(&u32::from(landing(second))));
    }

    #[test]
    fn the_version_with_the_bug_has_all_forwarders_and_the_others_one() {
        assert_eq!(variants("totd-1.5.2").len(), 3);
        assert_eq!(variants("totd-1.5.3"), [(Forwarders::One, Expected::NoStall)]);
        assert_eq!(variants("totd"), [(Forwarders::One, Expected::Unknown)]);
    }
}
