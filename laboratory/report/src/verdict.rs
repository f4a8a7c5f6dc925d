//! Verdict of a run in one sentence, and the objections against it.

use crate::groups::{groups, principal, sweep_parameter};
use crate::number;
use measure::checklist::{REPETITIONS, broken};
use measure::order::Transport;
use measure::outcome::Verdict;
use measure::run::{Bisection, CellResult, LossGoal, Run, Settings, Summary};
use measure::statistics::range_coverage;
use std::net::{IpAddr, SocketAddr};

/// Compliance of a run with RFC 8219.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compliance {
    /// Every applicable rule was kept.
    Yes,
    /// This many rules were not kept.
    No(usize),
    /// The run is not complete.
    Incomplete,
    /// There is no checklist.
    Unknown,
}

/// Checks the compliance of a run with RFC 8219.
pub fn compliance(run: &Run) -> Compliance {
    let broken = broken(&run.checklist).count();
    match () {
        () if run.checklist.is_empty() => Compliance::Unknown,
        () if broken > 0 => Compliance::No(broken),
        () if !run.complete => Compliance::Incomplete,
        () => Compliance::Yes,
    }
}

impl Compliance {
    /// The answer in words.
    pub fn words(self) -> String {
        match self {
            Compliance::Yes => "yes".to_owned(),
            Compliance::No(1) => "no (1 rule not kept)".to_owned(),
            Compliance::No(rules) => format!("no ({rules} rules not kept)"),
            Compliance::Incomplete => "no (the run is incomplete)".to_owned(),
            Compliance::Unknown => "not judged".to_owned(),
        }
    }
}

/// Marks a lower bound as such.
pub fn at_least(result: &CellResult, text: String) -> String {
    if result.censored { format!("≥ {text}") } else { text }
}

/// Reasons why a figure is only indicative: too few repetitions for RFC 8219, the quick profile. `None`: there are
/// none.
pub fn indicative(run: &Run, summary: &Summary) -> Option<String> {
    let mut reasons = Vec::new();
    if (summary.count as usize) < REPETITIONS {
        let plural = if summary.count == 1 { "" } else { "s" };
        reasons.push(format!("{} repetition{plural} instead of {REPETITIONS}", summary.count));
    }
    if run.profile == "quick" {
        reasons.push("profile quick".to_owned());
    }
    (!reasons.is_empty()).then(|| reasons.join(", "))
}

/// The interval of a figure. That of a lower bound has no upper end; the 99th percentile stands for it.
pub fn interval(run: &Run, result: &CellResult, summary: &Summary) -> (f64, f64) {
    summary.interval(if result.censored { 0.0 } else { run.settings.resolution(summary.p99) })
}

/// The interval in words: `24,100 to 24,743`.
pub fn interval_text(run: &Run, result: &CellResult, summary: &Summary) -> String {
    let (low, high) = interval(run, result, summary);
    if result.censored {
        format!("{} or more", number::rate(low))
    } else {
        format!("{} to {}", number::rate(low), number::rate(high))
    }
}

/// Explanation of the interval of a figure.
pub fn interval_note(run: &Run, summary: &Summary) -> String {
    format!(
        "The interval reaches from the 1st percentile of {} repetitions to their 99th, and beyond it by the precision of the search, {}. The range of so many repetitions contains the true median with a probability of at most {}.",
        summary.count,
        precision(&run.settings),
        number::measured_percent(range_coverage(summary.count))
    )
}

/// The precision of the search: a share of the rate, or a number of queries per second.
pub fn precision(settings: &Settings) -> String {
    match settings.bisection {
        None => number::percent(settings.precision),
        Some(Bisection { width, .. }) => format!("{} queries/s", number::tick(width)),
    }
}

/// The conditions of a result in words: `no AAAA, nothing cached`.
pub fn conditions(result: &CellResult) -> String {
    let aaaa = match result.cell.aaaa_share {
        0.0 => "no AAAA".to_owned(),
        share => format!("{} AAAA", number::percent(share)),
    };
    let cached = match result.cell.cached_share {
        0.0 => "nothing cached".to_owned(),
        share => format!("{} cached", number::percent(share)),
    };
    format!("{aaaa}, {cached}")
}

/// The verdict in one sentence: device, rate, conditions, and compliance.
pub fn sentence(run: &Run) -> String {
    let as_shipped = if run.settings.as_shipped { " as shipped" } else { "" };
    sentence_about(&format!("{}{as_shipped}", run.device.title()), run)
}

/// The verdict in one sentence, with this name for the device.
pub fn sentence_about(device: &str, run: &Run) -> String {
    let groups = groups(run);
    let Some(group) = principal(&groups) else {
        return format!("{device}: no result yet. RFC 8219 compliant: {}.", compliance(run).words());
    };
    let (result, summary) = (group.result, &group.result.summary);
    let best = match &*result.sweep {
        "" => String::new(),
        value => format!(", {} = {value} (the fastest of {})", sweep_parameter(run), sweep_values(run)),
    };
    format!(
        "{device}: {} queries/s{} (median of {}; p1 {}, p99 {}{}), {}{best}{}, {}{} trials, {} timeout. RFC 8219 compliant: {}.",
        at_least(result, number::rate(summary.median)),
        if indicative(run, summary).is_some() { ", indicative" } else { "" },
        summary.count,
        number::rate(summary.p1),
        number::rate(summary.p99),
        repeated(result).map_or(String::new(), |trials| format!("; {trials}")),
        conditions(result),
        loss_goals(result),
        grouping(run),
        number::milliseconds(run.settings.trial_ms),
        number::milliseconds(run.settings.timeout_ms),
        compliance(run).words()
    )
}

/// The results for the goals of the loss ratio: `, 25,100 with at most 0.1 % lost`.
fn loss_goals(result: &CellResult) -> String {
    let one = |goal: &LossGoal| {
        let bound = if goal.censored { "≥ " } else { "" };
        format!(", {bound}{} with {}", number::rate(goal.summary.median), goal_name(goal))
    };
    result.loss_goals.iter().map(one).collect()
}

/// Name of a goal of the loss ratio.
pub fn goal_name(goal: &LossGoal) -> String {
    format!("at most {} % lost", number::shortest(100.0 * goal.goal))
}

/// Trials of the searches of a result that say nothing about the device: `3 trials device starved, 1 tester-limited`. `None`:
/// there are none.
pub fn repeated(result: &CellResult) -> Option<String> {
    let counts =
        [(result.starved_trials, "device starved"), (result.tester_limited_trials, "tester-limited")];
    let mut parts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let first = counts.iter().find(|(count, _)| *count > 0)?;
    parts[0] = format!("{} trial{} {}", first.0, if first.0 == 1 { "" } else { "s" }, first.1);
    Some(parts.join(", "))
}

/// The form of the traffic if it is not single datagrams.
fn grouping(run: &Run) -> String {
    let transport = run.equipment.as_ref().map_or(Transport::Udp, |equipment| equipment.transport);
    if transport != Transport::Udp {
        return format!("over {}, ", transport.title());
    }
    match run.equipment.as_ref().map_or(1, |equipment| equipment.group) {
        0 | 1 => String::new(),
        group => format!("queries in groups of {group}, "),
    }
}

fn sweep_values(run: &Run) -> usize {
    let mut values: Vec<&str> = run.results.iter().map(|result| &*result.sweep).collect();
    values.sort_unstable();
    values.dedup();
    values.len()
}

/// Objections against the verdict, most serious first, each with a heading and an explanation.
pub fn objections(run: &Run) -> Vec<(&'static str, String)> {
    let mut objections = Vec::new();
    if !run.complete {
        let done = format!(
            "{} trials were done; the missing ones may change every figure.",
            number::count(run.trials.len() as u64)
        );
        objections.push(("Incomplete", format!("The run has not ended: {done}")));
    }
    if let Some(test) = run.self_test.as_ref().filter(|test| !test.sufficient) {
        objections.push((
            "The tester is not certified for these rates",
            format!(
                "It passed the self-test at {} queries/s, so a device may be measured up to {} queries/s, and a result is higher.",
                number::rate(test.certified_qps),
                number::rate(test.device_qps)
            ),
        ));
    }
    let certificates = || run.results.iter().filter_map(|result| result.certificate.as_ref());
    if let Some(failed) = certificates().find(|certificate| !certificate.sufficient) {
        objections.push((
            "The authority is not certified for the device's traffic",
            format!(
                "With queries like those of the device it is certified for {} queries/s, and 2(1+d) times the rate of a result \
                 are {} queries/s: the authority may have used more than half of the timeout. Give it more cores or a host of its own.",
                number::rate(failed.certified_qps),
                number::rate(failed.required_qps)
            ),
        ));
    }
    if run.self_test.is_none() {
        objections.push((
            "No self-test",
            "There is no evidence that the tester and its authority are faster than the device.".to_owned(),
        ));
    }
    objections.extend(inconclusive(run, Verdict::DeviceStarved, "The device was starved"));
    objections.extend(inconclusive(run, Verdict::TesterLimited, "Tester-limited"));
    if let Some(check) = run.correctness.as_ref().filter(|check| check.valid < check.names) {
        objections.push((
            "Wrong answers before any load",
            format!("{} of {} names got a wrong answer.", check.names - check.valid, check.names),
        ));
    }
    if single_machine(run) {
        objections.push((
            "A single machine",
            "Tester, authority and device share its cores, memory and kernel: the figures are only indicative, and comparable only with other figures of this machine.".to_owned(),
        ));
    }
    objections
}

/// Trials that say nothing about the device: the tester was the bottleneck, or other programs had the cores of the device.
fn inconclusive(run: &Run, verdict: Verdict, heading: &'static str) -> Option<(&'static str, String)> {
    let counting = run.trials.iter().filter(|trial| !trial.purpose.is_self_test());
    let mut those = counting.filter(|trial| trial.outcome.verdict == verdict).peekable();
    let first = those.peek()?.number;
    let reason = those.peek()?.outcome.reason.clone();
    let many = those.count();
    let trials = match many {
        1 => "1 trial says".to_owned(),
        _ => format!("{} trials say", number::count(many as u64)),
    };
    Some((heading, format!("{trials} nothing about the device; the first, trial {first}: {reason}.")))
}

/// True if device and tester are the same host, or a warning says so.
fn single_machine(run: &Run) -> bool {
    let hostname = |role: &str| {
        let facts = &run.hosts.get(role)?.facts;
        facts.get("hostname").or_else(|| facts.get("host"))
    };
    let address = run.device.address.trim();
    let address = address.parse::<SocketAddr>().map(|it| it.ip()).or_else(|_| address.parse::<IpAddr>());
    let same = matches!((hostname("device"), hostname("tester")), (Some(a), Some(b)) if a == b)
        || address.is_ok_and(|address| address.to_canonical().is_loopback());
    let of_hosts = run.hosts.values().flat_map(|host| &host.warnings);
    same || run.warnings.iter().chain(of_hosts).any(|text| {
        let text = text.to_lowercase();
        text.contains("single machine") || text.contains("one machine")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, Shape};
    use measure::run::Kept;

    fn quick() -> Run {
        let mut run = sample::run(&Shape::quick());
        let result = &mut run.results[0];
        result.summary.median = 24_300.0;
        result.summary.p1 = 24_100.0;
        result.summary.p99 = 24_500.0;
        run
    }

    #[test]
    fn the_sentence_says_the_result_and_its_conditions() {
        assert_eq!(
            sentence(&quick()),
            "Unbound 1.22.0: 24,300 queries/s, indicative (median of 3; p1 24,100, p99 24,500), no AAAA, nothing cached, 3\u{a0}s trials, 1\u{a0}s timeout. RFC 8219 compliant: no (3 rules not kept)."
        );
    }

    #[test]
    fn a_result_that_ended_at_the_limit_is_at_least_that() {
        let mut run = quick();
        run.results[0].censored = true;
        assert!(sentence(&run).contains("≥ 24,300 queries/s"));
    }

    #[test]
    fn few_repetitions_or_the_quick_profile_make_a_figure_indicative() {
        let mut run = quick();
        let of = |run: &Run, count: u32| indicative(run, &Summary { count, ..run.results[0].summary });
        assert_eq!(of(&run, 3).unwrap(), "3 repetitions instead of 20, profile quick");
        assert_eq!(of(&run, 20).unwrap(), "profile quick");
        run.profile = "rfc8219".to_owned();
        assert_eq!(of(&run, 1).unwrap(), "1 repetition instead of 20");
        assert_eq!(of(&run, 20), None);
    }

    #[test]
    fn the_interval_of_a_figure_has_the_precision_of_the_search_in_it() {
        let mut run = quick();
        run.settings.precision = 0.05;
        let summary = Summary { count: 3, p1: 6_440.0, p99: 6_650.0, ..Summary::default() };
        // 6,650 / 0.95.
        assert_eq!(interval_text(&run, &run.results[0], &summary), "6,440 to 7,000");
        assert!(
            interval_note(&run, &summary).contains("at most 75.0\u{a0}%"),
            "{}",
            interval_note(&run, &summary)
        );
        run.settings.bisection = Some(Bisection { low: 0.0, high: 16_384.0, width: 10.0 });
        assert_eq!(interval_text(&run, &run.results[0], &summary), "6,440 to 6,660");
        assert!(
            interval_note(&run, &summary).contains("of the search, 10 queries/s."),
            "{}",
            interval_note(&run, &summary)
        );
        run.results[0].censored = true;
        assert_eq!(interval_text(&run, &run.results[0], &summary), "6,440 or more");
    }

    #[test]
    fn trials_that_say_nothing_about_the_device_are_counted_in_the_sentence() {
        let mut run = quick();
        run.results[0].starved_trials = 1;
        assert!(
            sentence(&run).contains("p99 24,500; 1 trial device starved), no AAAA"),
            "{}",
            sentence(&run)
        );
        run.results[0].tester_limited_trials = 2;
        assert!(sentence(&run).contains("; 1 trial device starved, 2 tester-limited)"));
        run.results[0].starved_trials = 0;
        assert!(sentence(&run).contains("; 2 trials tester-limited)"));
    }

    #[test]
    fn a_run_without_results_has_a_sentence_too() {
        assert_eq!(sentence(&Run::default()), "The device: no result yet. RFC 8219 compliant: not judged.");
    }

    #[test]
    fn each_objection_is_raised_by_its_cause_alone() {
        let mut run = quick();
        run.warnings.clear();
        run.hosts.clear();
        run.device.address = "[2001:2::53]:53".to_owned();
        run.trials.retain(|trial| trial.outcome.verdict != Verdict::TesterLimited);
        assert_eq!(objections(&run), []);
        let raised = |change: fn(&mut Run)| {
            let mut run = run.clone();
            change(&mut run);
            objections(&run).into_iter().map(|(heading, _)| heading).collect::<Vec<_>>()
        };
        assert_eq!(raised(|run| run.complete = false), ["Incomplete"]);
        assert_eq!(raised(|run| run.self_test = None), ["No self-test"]);
        assert_eq!(raised(|run| run.warnings.push("All on ONE machine".into())), ["A single machine"]);
        assert_eq!(raised(|run| run.device.address = "[::1]:5301".into()), ["A single machine"]);
        assert_eq!(
            raised(|run| run.trials.last_mut().unwrap().outcome.verdict = Verdict::TesterLimited),
            ["Tester-limited"]
        );
        assert_eq!(
            raised(|run| run.trials.last_mut().unwrap().outcome.verdict = Verdict::DeviceStarved),
            ["The device was starved"]
        );
        assert_eq!(
            raised(|run| run.self_test.as_mut().unwrap().sufficient = false),
            ["The tester is not certified for these rates"]
        );
        assert_eq!(
            raised(|run| {
                let failed = measure::run::Certificate { required_qps: 9.0, ..Default::default() };
                run.results[0].certificate = Some(failed);
            }),
            ["The authority is not certified for the device's traffic"]
        );
        assert_eq!(
            raised(|run| run.correctness.as_mut().unwrap().valid = 299),
            ["Wrong answers before any load"]
        );
    }

    #[test]
    fn compliance_needs_every_rule_and_the_end_of_the_run() {
        let mut run = quick();
        assert_eq!(compliance(&run), Compliance::No(3));
        run.checklist.retain(|rule| rule.state != Kept::NotKept);
        assert_eq!(compliance(&run), Compliance::Yes);
        run.complete = false;
        assert_eq!(compliance(&run), Compliance::Incomplete);
    }
}
