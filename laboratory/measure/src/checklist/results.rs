//! RFC 8219 section 9.2: trials, repetitions, names, cells and reported values.

use super::{Assessment, counted, passed, required, shown};
use crate::name_range::NameRange;
use crate::order::Validity;
use crate::outcome::{Deviation, PacingError};
use crate::run::{Bisection, CellResult, Rule, Run, Trial};

/// RFC 8219 section 9.2.
const TRIAL_MS: u64 = 60_000;
const TIMEOUT_MS: u64 = 1_000;
/// Fewest repetitions of a search.
pub const REPETITIONS: usize = 20;

/// Tolerance of the rate. The RFC gives none; the scripts of the papers accepted runs that lasted up to 1 % too long.
const RATE_TOLERANCE: f64 = 0.01;

/// Level of a rule that the RFC does not have, and the scripts of its authors' papers do.
const PAPERS: &str = "papers";

/// Tolerance of the achieved shares, absolute. The optional tests are 0.2 apart.
const SHARE_TOLERANCE: f64 = 0.05;

/// Section 9.2, "Benchmarking DNS Resolution Performance".
pub(super) fn section_9_2(run: &Run) -> Vec<Rule> {
    vec![
        rate(run).rule("9.2", "described", "Queries are sent at a specific rate"),
        sending_time(run).rule(
            "9.2",
            PAPERS,
            "Sending takes at most 1 % longer than ordered: the script around dns64perf++ ends otherwise",
        ),
        all_valid(run).rule(
            "9.2",
            "described",
            "A rate passes when valid replies in time are as many as queries",
        ),
        fastest(run).rule("9.2", "described", "The result is the fastest rate without loss"),
        trial_length(run).rule("9.2", "SHOULD", "A trial lasts at least 60 s"),
        timeout(run).rule("9.2", "SHOULD", "The timeout is at most 1 s"),
        repetitions(run).rule("9.2", "SHOULD", "At least 20 repetitions"),
        percentiles(run).rule("9.2", "SHOULD", "Median, 1st and 99th percentile are calculated"),
        required_cell(run).rule("9.2", "REQUIRED", "0 % cached and 0 % with AAAA records is tested"),
        different_names(run).rule("9.2 (1)", "MUST", "First, all names are different"),
        cached(run).rule("9.2 (1)", "MAY", "Then 20, 40, 60, 80 and 100 % of the names are cached"),
        late_and_early(run).rule(
            "9.2 (1)",
            "described",
            "Names that shall be cached come again late enough and early enough",
        ),
        no_aaaa(run).rule(
            "9.2 (2)",
            "MUST",
            "First, no name has an AAAA record, and each has exactly one A record",
        ),
        with_aaaa(run).rule("9.2 (2)", "MAY", "Then 20, 40, 60, 80 and 100 % of the names have AAAA records"),
        shares(run).rule(
            "9.2 (2)",
            "described",
            "The share of names with AAAA records is what it was meant to be",
        ),
        primary(run).rule(
            "9.2",
            "SHOULD",
            "The median of the required test is complemented with the percentiles",
        ),
        fixed(run).rule("9.2", "MUST", "Excerpts of the grid state the share that is fixed"),
    ]
}

fn rate(run: &Run) -> Assessment {
    let error = |trial: &Trial| (trial.outcome.rate_achieved / trial.rate_qps - 1.0).abs();
    match passed(run).map(error).max_by(f64::total_cmp) {
        None => Assessment::not_kept("no trial passed"),
        Some(worst) => Assessment::when(
            worst <= RATE_TOLERANCE,
            format!(
                "the rates of the passed trials are at most {:.3} % from the ordered ones",
                100.0 * worst
            ),
        ),
    }
}

/// The rule of the papers' script, with the pace of the passed trials in shorter intervals, for which neither it nor the RFC has a
/// bound.
fn sending_time(run: &Run) -> Assessment {
    let excess = |trial: &Trial| trial.rate_qps / trial.outcome.rate_achieved - 1.0;
    let worst = passed(run).max_by(|one, other| excess(one).total_cmp(&excess(other)));
    let Some(worst) = worst else { return Assessment::not_kept("no trial passed") };
    let paces = ["1 s", "100 ms", "10 ms", "1 ms"];
    let deviations =
        |PacingError { s1, ms100, ms10, ms1 }: PacingError| -> [Deviation; 4] { [s1, ms100, ms10, ms1] };
    let shorter = paces.into_iter().enumerate().filter_map(|(at, length)| {
        let of_trials = passed(run).map(|trial| deviations(trial.outcome.pacing_error)[at]);
        let largest = of_trials.filter(|it| it.intervals > 0).map(|it| it.max).max_by(f64::total_cmp)?;
        Some(format!("{:.3} % in {length}", 100.0 * largest))
    });
    let shorter: Vec<String> = shorter.collect();
    let lag_us = passed(run).map(|trial| trial.outcome.lag_max_us).fold(0.0, f64::max);
    let mut said = format!(
        "of the passed trials, trial {} took longest: {:.3} % longer than ordered; no query left more than {:.3} ms after it was due",
        worst.number,
        100.0 * excess(worst).max(0.0),
        lag_us / 1e3
    );
    if !shorter.is_empty() {
        said += &format!("; largest deviations from the schedule: {}", shorter.join(", "));
    }
    Assessment::when(excess(worst) <= RATE_TOLERANCE, said)
}

fn all_valid(run: &Run) -> Assessment {
    let wrong = passed(run).find(|trial| trial.outcome.sent == 0 || trial.outcome.valid < trial.outcome.sent);
    match wrong {
        Some(trial) => Assessment::not_kept(format!(
            "trial {} passed with {} valid replies to {} queries",
            trial.number, trial.outcome.valid, trial.outcome.sent
        )),
        None if passed(run).next().is_none() => Assessment::not_kept("no trial passed"),
        None if run.settings.validity == Validity::Answered => Assessment::not_kept(
            "a reply was valid if its RCODE was 0 and it had an answer record of any kind, the rule of dns64perf++; the RFC \
             demands an AAAA record",
        ),
        None => Assessment::kept(
            "each query of a passed trial has a reply in time with exactly the expected records, which is more than the RFC \
             demands (\"contain a AAAA record\")",
        ),
    }
}

fn fastest(run: &Run) -> Assessment {
    if run.results.is_empty() {
        return Assessment::not_kept("there are no results");
    }
    for result in &run.results {
        let shown_by = |rate: f64| {
            passed(run).any(|trial| is_of(trial, result) && (trial.rate_qps - rate).abs() <= 1e-9 * rate)
        };
        if let Some(rate) = result.strict.iter().find(|rate| **rate > 0.0 && !shown_by(**rate)) {
            return Assessment::not_kept(format!(
                "no trial at {rate} queries/s passed, although it is a result"
            ));
        }
        if result.censored {
            return Assessment::not_kept(
                "a search ended at the highest rate that was allowed, or that the tester could send: the true value may be higher",
            );
        }
    }
    Assessment::kept(match run.settings.bisection {
        None => {
            format!(
                "each result passed, and a rate at most {} % higher did not",
                100.0 * run.settings.precision
            )
        }
        Some(Bisection { width, .. }) => {
            format!("each result passed, and a rate at most {width} queries/s higher did not")
        }
    })
}

fn trial_length(run: &Run) -> Assessment {
    let planned = run.settings.trial_ms;
    // The first query is sent at 0, so the last is due one interval before the end.
    let short = passed(run).find(|trial| {
        (trial.outcome.seconds + 1.0 / trial.rate_qps) * 1e3 < 0.99 * planned.min(TRIAL_MS) as f64
    });
    match short {
        Some(trial) => {
            Assessment::not_kept(format!("trial {} lasted only {:.1} s", trial.number, trial.outcome.seconds))
        }
        None => Assessment::when(planned >= TRIAL_MS, format!("trials of {}", shown(planned))),
    }
}

fn timeout(run: &Run) -> Assessment {
    let timeout = run.settings.timeout_ms;
    Assessment::when((1..=TIMEOUT_MS).contains(&timeout), format!("timeout {}", shown(timeout)))
}

fn repetitions(run: &Run) -> Assessment {
    match run.results.iter().map(|result| result.strict.len()).min() {
        Some(1) => Assessment::not_kept("1 repetition"),
        Some(fewest) => Assessment::when(fewest >= REPETITIONS, format!("{fewest} repetitions")),
        None => Assessment::not_kept("there are no results"),
    }
}

fn percentiles(run: &Run) -> Assessment {
    let missing = run.results.iter().any(|result| result.summary.count as usize != result.strict.len());
    Assessment::when(
        !missing && !run.results.is_empty(),
        if missing { "a result has none" } else { "all results have them" },
    )
}

fn required_cell(run: &Run) -> Assessment {
    match required(run).count() {
        0 => Assessment::not_kept("it has no result"),
        1 => Assessment::kept("it has a result"),
        many => Assessment::kept(format!("it has a result for each of {many} values of the sweep")),
    }
}

/// Names of one trial as ranges of numbers in the name range, which wraps around at its end.
fn names(trial: &Trial, window: u64) -> [(u64, u64); 2] {
    let first = trial.first_name % window.max(1);
    let end = first.saturating_add(trial.outcome.names_used);
    [(first, end.min(window)), (0, end.saturating_sub(window).min(window))]
}

fn overlap(one: [(u64, u64); 2], other: [(u64, u64); 2]) -> bool {
    one.iter().any(|a| other.iter().any(|b| a.0.max(b.0) < a.1.min(b.1)))
}

/// A name that repeats after its TTL is in no cache any more, so it counts as different.
fn different_names(run: &Run) -> Assessment {
    let window = run.settings.names.parse::<NameRange>().map_or(u64::MAX, |window| window.names());
    // All trials fill the device's cache, including those of other cells and of the curve; only the self-test does
    // not.
    let at_device: Vec<&Trial> = run.trials.iter().filter(|trial| !trial.purpose.is_self_test()).collect();
    let ranges: Vec<_> = at_device.iter().map(|trial| names(trial, window)).collect();
    let (mut uncached, mut since) = (0u64, 0);
    for (place, trial) in at_device.iter().enumerate() {
        // A restarted device has forgotten all names before the restart.
        since = if trial.fresh { place } else { since };
        if trial.cell.cached_share > 0.0 {
            continue;
        }
        uncached += 1;
        if trial.outcome.asked_again > 0 || trial.outcome.names_used > window {
            return Assessment::not_kept(format!("trial {} repeated names", trial.number));
        }
        if let Some(before) = (since..place).rev().find(|before| overlap(ranges[*before], ranges[place])) {
            // From the end of the one trial to the beginning of the other.
            let apart = (place - before) as u64;
            let elapsed_ms = (apart - 1) * run.settings.trial_ms + apart * run.settings.pause_ms;
            if elapsed_ms <= 1_000 * u64::from(run.settings.ttl) {
                return Assessment::not_kept(format!(
                    "trial {} repeated names of trial {} within their TTL of {} s; use a larger range of names",
                    trial.number, at_device[before].number, run.settings.ttl
                ));
            }
        }
    }
    match uncached {
        0 => Assessment::not_kept("every trial has repeated names"),
        trials => Assessment::kept(format!(
            "{trials} trials with names from {} that could not be cached",
            run.settings.names
        )),
    }
}

fn cached(run: &Run) -> Assessment {
    optional(run.results.iter().map(|result| result.cell.cached_share))
}

fn with_aaaa(run: &Run) -> Assessment {
    optional(run.results.iter().map(|result| result.cell.aaaa_share))
}

/// The optional shares that were tested.
fn optional(tested: impl Iterator<Item = f64>) -> Assessment {
    let mut percent: Vec<u32> =
        tested.filter(|share| *share > 0.0).map(|share| (100.0 * share).round() as u32).collect();
    percent.sort_unstable();
    percent.dedup();
    if percent.is_empty() {
        return Assessment::not_applicable("optional, and not tested");
    }
    let list: Vec<String> = percent.iter().map(|it| it.to_string()).collect();
    Assessment::kept(format!("tested: {} %", list.join(", ")))
}

fn late_and_early(run: &Run) -> Assessment {
    assess_share(run, |result| (result.cell.cached_share, result.achieved_cached_share))
}

fn shares(run: &Run) -> Assessment {
    // If nearly all names are cached, hardly any query reaches the authority, and its counters do not show the share.
    assess_share(run, |result| {
        let tested = if result.cell.cached_share < 0.99 { result.cell.aaaa_share } else { 0.0 };
        (tested, result.achieved_aaaa_share)
    })
}

/// Compares the shares according to the authority's counters with the ordered ones.
fn assess_share(run: &Run, shares: impl Fn(&CellResult) -> (f64, f64)) -> Assessment {
    let mut tested = run.results.iter().filter(|result| shares(result).0 > 0.0).peekable();
    if tested.peek().is_none() {
        return Assessment::not_applicable("optional, and not tested");
    }
    // Without counters, both the queries and the shares are zero.
    let known = |result: &&CellResult| result.upstream_per_query > 0.0 || shares(result).1 > 0.0;
    let worst = tested.filter(known).map(&shares).max_by(|one, other| {
        let distance = |it: &(f64, f64)| (it.0 - it.1).abs();
        distance(one).total_cmp(&distance(other))
    });
    match worst {
        None => Assessment::not_checked("unknown, because the authority's counters are missing"),
        Some((asked, achieved)) => Assessment::when(
            (asked - achieved).abs() <= SHARE_TOLERANCE,
            format!(
                "by the authority's counters the largest deviation is {:.1} % where {:.0} % were ordered",
                100.0 * achieved,
                100.0 * asked
            ),
        ),
    }
}

fn no_aaaa(run: &Run) -> Assessment {
    let with = required(run).map(|result| result.achieved_aaaa_share).fold(0.0, f64::max);
    if required(run).next().is_none() {
        return Assessment::not_kept("the required cell has no result");
    }
    if with > SHARE_TOLERANCE {
        return Assessment::not_kept(format!("{:.1} % of the names had AAAA records", 100.0 * with));
    }
    let (addresses, cnames) = (run.settings.addresses, run.settings.cname_depth);
    if addresses > 1 || cnames > 0 {
        return Assessment::not_kept(format!(
            "each name has {addresses} A records after {cnames} CNAME records"
        ));
    }
    Assessment::kept(
        "in this cell the names have no AAAA records; a reply with more or fewer records than expected would be invalid",
    )
}

fn primary(run: &Run) -> Assessment {
    let mut shown = required(run).map(|result| result.summary).filter(|summary| summary.count > 0).peekable();
    let Some(first) = shown.peek() else { return Assessment::not_kept("the required test has no result") };
    Assessment::kept(format!(
        "median {:.0}, percentiles {:.0} and {:.0} queries/s",
        first.median, first.p1, first.p99
    ))
}

fn fixed(run: &Run) -> Assessment {
    match run.results.iter().any(|result| result.cell != Default::default()) {
        true => Assessment::kept("each result states both shares"),
        false => Assessment::not_applicable("only the required test was done"),
    }
}

fn is_of(trial: &Trial, result: &CellResult) -> bool {
    trial.sweep == result.sweep && trial.cell == result.cell
}

/// The highest rate at which the device was tested for a result.
pub(super) fn highest_rate(run: &Run) -> f64 {
    counted(run).map(|trial| trial.rate_qps).fold(0.0, f64::max)
}
