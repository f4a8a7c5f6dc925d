//! Summary of a load as text.

use load::grouped;
use measure::order::{Load, Pace};
use measure::outcome::{Latency, Outcome, Tester, Verdict};
use std::fmt::Write as _;

/// The summary at the end of a load.
pub fn text(order: &Load, outcome: &Outcome) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut text, order, outcome);
    text
}

fn write(out: &mut String, order: &Load, outcome: &Outcome) -> std::fmt::Result {
    write_counts(out, order, outcome)?;
    write_timing(out, outcome)?;
    write_tester(out, &outcome.tester)?;
    match outcome.verdict {
        Verdict::Pass => writeln!(out, "PASS: every query got a valid reply in time"),
        Verdict::Fail => writeln!(out, "FAIL: {}", outcome.reason),
        Verdict::TesterLimited => writeln!(out, "TESTER-LIMITED: {}", outcome.reason),
    }
}

/// Writes the load and the number of queries and replies of each kind.
fn write_counts(out: &mut String, order: &Load, outcome: &Outcome) -> std::fmt::Result {
    let asked = match order.pace {
        Pace::Open { rate_qps, burst: 1 } => format!("{} queries/s asked for", format_rate(rate_qps)),
        Pace::Open { rate_qps, burst } => {
            format!("{} queries/s asked for, {burst} at a time", format_rate(rate_qps))
        }
        Pace::Closed { outstanding } => format!("{} outstanding", grouped(outstanding.into())),
    };
    writeln!(out, "{}: {asked}, {:.1} s", order.server, outcome.seconds)?;
    for (name, count, rate) in
        [("sent", outcome.sent, outcome.rate_achieved), ("valid", outcome.valid, outcome.goodput_qps())]
    {
        writeln!(out, "  {name:<11} {:>14}   {} a second", grouped(count), format_rate(rate))?;
    }
    for (name, count) in &outcome.invalid {
        writeln!(out, "  invalid     {:>14}   {name}", grouped(*count))?;
    }
    for (name, count, why) in [
        ("late", outcome.late, "after the timeout"),
        ("lost", outcome.lost, "no reply"),
        ("duplicates", outcome.duplicates, "further replies"),
        ("unsolicited", outcome.unsolicited, "replies to no outstanding query"),
        ("source", outcome.wrong_source, "replies from another address"),
        ("asked again", outcome.asked_again, "names that were answered before"),
    ] {
        if count > 0 || matches!(name, "late" | "lost") {
            writeln!(out, "  {name:<11} {:>14}   {why}", grouped(count))?;
        }
    }
    Ok(())
}

/// Writes the latencies and the pacing error, where the load has them.
fn write_timing(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    if outcome.latency_us.actual.count > 0 {
        writeln!(
            out,
            "  latency, us {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "min", "median", "90 %", "99 %", "99.9 %", "max"
        )?;
        latency_row(out, "from due", &outcome.latency_us.intended)?;
        latency_row(out, "from sent", &outcome.latency_us.actual)?;
    }
    if outcome.rate_asked > 0.0 {
        let error = &outcome.pacing_error;
        writeln!(
            out,
            "  pacing      at most {:.2} % off in any 10 ms, {:.2} % in 100 ms, {:.2} % in 1 s; latest query {:.0} us late",
            error.ms10.max * 100.0,
            error.ms100.max * 100.0,
            error.s1.max * 100.0,
            outcome.lag_max_us
        )?;
    }
    Ok(())
}

/// Writes the CPU time and the drops of the tester itself.
fn write_tester(out: &mut String, tester: &Tester) -> std::fmt::Result {
    writeln!(
        out,
        "  tester      {:.2} s of CPU ({:.2} user, {:.2} system), {:.2} s without a core",
        tester.cpu_s(),
        tester.user_s,
        tester.system_s,
        tester.waited_s
    )?;
    for (count, what) in [
        (tester.socket_drops, "replies dropped by full sockets"),
        (tester.interface_drops, "packets dropped by network interfaces"),
        (tester.send_errors, "queries that the kernel did not accept"),
    ] {
        if count > 0 {
            writeln!(out, "  tester      {} {what}", grouped(count))?;
        }
    }
    Ok(())
}

fn latency_row(out: &mut String, name: &str, latency: &Latency) -> std::fmt::Result {
    write!(out, "    {name:<10}")?;
    for value in [latency.min, latency.p50, latency.p90, latency.p99, latency.p999, latency.max] {
        let decimals = if value < 100.0 { 1 } else { 0 };
        write!(out, " {value:>10.decimals$}")?;
    }
    writeln!(out)
}

fn format_rate(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { grouped(value.round() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::order::{Expectation, Lanes};

    #[test]
    fn a_summary_says_what_was_sent_what_was_wrong_and_the_verdict() {
        let order = Load {
            server: "192.0.2.1:53".parse().unwrap(),
            pace: Pace::Open { rate_qps: 50_000.0, burst: 1 },
            duration_ms: 60_000,
            warm_up_ms: 0,
            timeout_ms: 1000,
            names: "10.0.0.0/8".parse().unwrap(),
            first_name: 0,
            expect: Expectation {
                zone: "dns64perf.test".into(),
                prefixes: Vec::new(),
                addresses: 1,
                cname_depth: 0,
                aaaa_share: 0.0,
                aaaa_seed: 0,
                ttl: (0, 60),
            },
            cached_share: 0.0,
            lanes: Lanes::default(),
            seed: 0,
        };
        let mut outcome = Outcome { sent: 3_000_000, valid: 2_999_998, seconds: 60.0, ..Outcome::default() };
        outcome.invalid.insert("prefix".into(), 2);
        outcome.reason = "2 of 3,000,000 queries".into();
        let text = text(&order, &outcome);
        for part in ["50,000 queries/s", "3,000,000", "50,000 a second", "prefix", "FAIL: 2 of 3,000,000"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
