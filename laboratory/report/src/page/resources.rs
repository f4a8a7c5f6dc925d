//! Resource use of the device during the measurement, and of the tester.

use super::{Figure, View, downsampled, placeholder, scroll};
use crate::chart::{Axis, Mark, Plot, Scale, legend};
use crate::groups::{Group, purpose_name, verdict_name};
use crate::limits;
use crate::number;
use crate::table::Table;
use measure::outcome::Verdict;
use measure::run::{DeviceUse, Trial};

/// The section.
pub(super) fn section(view: &View) -> String {
    let Some(group) = view.principal else {
        return "<p>There is no result yet: no search has ended.</p>".to_owned();
    };
    if view.groups.iter().all(|group| used(group).is_none()) {
        let why = "The device's resource use is unknown: this program did not start it, or cannot read its processes.";
        return placeholder("CPU, memory and context switches of the device", why) + &tester(view);
    }
    by_rate(group) + &by_result(view) + &by_thread(group) + &memory(view) + &tester(view)
}

/// Resource use of the device in the highest passed trial.
fn used<'a>(group: &Group<'a>) -> Option<(&'a Trial, &'a DeviceUse)> {
    let best = group.best()?;
    Some((best, best.device.as_ref()?))
}

/// CPU time per query over the rate.
fn by_rate(group: &Group) -> String {
    let title = format!("CPU per query by rate: {}", group.name);
    let measured = group.trials.iter().filter_map(|trial| Some((*trial, trial.device.as_ref()?)));
    let measured: Vec<(&Trial, &DeviceUse)> = measured
        .filter(|(_, used)| used.cpu_us_per_query > 0.0 && used.cpu_us_per_query.is_finite())
        .collect();
    if measured.is_empty() {
        return placeholder(&title, "No trial of this result has the CPU time of the device.");
    }
    let mut plot = Plot::new(
        "cpu-rate-plot",
        &title,
        "CPU time of the device per valid reply over the rate, a point for each trial.",
        (860.0, 300.0),
        Axis::new(
            Scale::from_zero(measured.iter().map(|(trial, _)| trial.rate_qps)),
            "queries/s",
            8,
            number::tick,
        ),
        Axis::new(
            Scale::from_zero(measured.iter().map(|(_, used)| used.cpu_us_per_query)),
            "CPU µs per valid reply",
            5,
            number::tick,
        ),
    );
    for (trial, used) in downsampled(&measured, limits::CHART_POINTS) {
        let (mark, class) = if trial.outcome.verdict == Verdict::Pass {
            (Mark::Dot, "c1 faint")
        } else {
            (Mark::Cross, "c2")
        };
        let tip = format!(
            "Trial {}: {} µs per valid reply at {} queries/s",
            trial.number,
            number::brief(used.cpu_us_per_query),
            number::rate(trial.rate_qps)
        );
        plot.mark(mark, (trial.rate_qps, used.cpu_us_per_query), class, &tip);
    }
    Figure {
        id: "cpu-rate",
        title: &title,
        explanation: "All CPU time of the device, user and kernel, divided by the number of valid replies. It decreases with the rate if the device works in batches.".to_owned(),
        picture: scroll(&plot.svg()),
        legend: legend(&[(Mark::Dot, "c1", "passed"), (Mark::Cross, "c2", "failed")]),
        tables: vec![cpu_rate_table(&measured)],
    }
    .html_of(&group.form)
}

fn cpu_rate_table(measured: &[(&Trial, &DeviceUse)]) -> Table {
    let mut table = Table::new(
        "CPU by rate",
        1,
        &["Verdict", "Rate (queries/s)", "User (s)", "System (s)", "µs per valid reply"],
    );
    for (trial, used) in measured {
        table.row([
            verdict_name(trial.outcome.verdict).to_owned(),
            number::rate(trial.rate_qps),
            number::fixed(used.user_s, 3),
            number::fixed(used.system_s, 3),
            number::brief(used.cpu_us_per_query),
        ]);
    }
    table
}

/// A row with user and system time.
struct Split {
    name: String,
    user: f64,
    system: f64,
    label: String,
}

/// Horizontal bars of user and system time.
fn split_plot(id: &str, title: &str, unit: &str, rows: &[Split]) -> String {
    let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    let mut plot = Plot::new(
        id,
        title,
        "A bar for each row: time in user mode, then time in the kernel.",
        (860.0, 60.0 + rows.len() as f64 * 30.0),
        Axis::new(Scale::from_zero(rows.iter().map(|row| row.user + row.system)), unit, 6, number::tick),
        Axis::rows(&names),
    )
    .space_at_right(110.0);
    for (at, row) in rows.iter().enumerate() {
        let middle = Axis::row(at, rows.len());
        let (low, high) = (middle - 0.32, middle + 0.32);
        let total = row.user + row.system;
        plot.bar(
            (0.0, row.user),
            (low, high),
            "c1",
            &format!("{}: user {}", row.name, number::brief(row.user)),
        );
        plot.bar(
            (row.user, total),
            (low, high),
            "c6",
            &format!("{}: system {}", row.name, number::brief(row.system)),
        );
        plot.text((total, middle), (6.0, 4.0), "start", &row.label);
    }
    plot.svg()
}

fn split_legend() -> String {
    legend(&[(Mark::Square, "c1", "user"), (Mark::Square, "c6", "system")])
}

/// CPU time per query of each result.
fn by_result(view: &View) -> String {
    let mut rows = Vec::new();
    let mut table = Table::new(
        "CPU of the highest passed trials",
        1,
        &["Result", "Rate (queries/s)", "User µs/query", "System µs/query", "Cores used"],
    );
    for group in view.groups {
        let Some((trial, used)) = used(group) else { continue };
        let (valid, seconds) = (trial.outcome.valid.max(1) as f64, trial.outcome.seconds.max(1e-9));
        let (user, system) = (used.user_s * 1e6 / valid, used.system_s * 1e6 / valid);
        let cores = (used.user_s + used.system_s) / seconds;
        table.row([
            group.name.clone(),
            number::rate(trial.rate_qps),
            number::brief(user),
            number::brief(system),
            number::fixed(cores, 2),
        ]);
        let label = format!("{} µs", number::brief(user + system));
        rows.push(Split { name: group.name.clone(), user, system, label });
    }
    let title = "CPU per query by result";
    Figure {
        id: "cpu-result",
        title,
        explanation: "At the highest passed rate in each cell and for each value of the sweep.".to_owned(),
        picture: scroll(&split_plot("cpu-result-plot", title, "CPU µs per valid reply", &rows)),
        legend: split_legend(),
        tables: vec![table],
    }
    .html_of(&view.form())
}

/// CPU time by thread in the highest passed trial.
fn by_thread(group: &Group) -> String {
    let title = format!("CPU by thread: {}", group.name);
    let Some((trial, used)) = used(group).filter(|(_, used)| !used.threads.is_empty()) else {
        return placeholder(&title, "The threads of the device are unknown.");
    };
    let seconds = trial.outcome.seconds.max(1e-9);
    let mut threads = used.threads.clone();
    threads.sort_by(|a, b| (b.1 + b.2).total_cmp(&(a.1 + a.2)));
    let mut table = Table::new("CPU by thread", 1, &["Thread", "User (s)", "System (s)", "Share of a core"]);
    for (name, user, system) in &threads {
        table.row([
            name.clone(),
            number::fixed(*user, 3),
            number::fixed(*system, 3),
            number::measured_percent((user + system) / seconds),
        ]);
    }
    // Of a server with hundreds of threads, the busiest are shown.
    let rows: Vec<Split> = threads
        .iter()
        .take(24)
        .map(|(name, user, system)| Split {
            name: name.clone(),
            user: user / seconds * 100.0,
            system: system / seconds * 100.0,
            label: number::measured_percent((user + system) / seconds),
        })
        .collect();
    Figure {
        id: "cpu-thread",
        title: &title,
        explanation: format!(
            "In the highest passed trial, {} queries/s{}. A thread at 100 % limits the device.",
            number::rate(trial.rate_qps),
            if threads.len() > rows.len() { ", the busiest threads" } else { "" }
        ),
        picture: scroll(&split_plot("cpu-thread-plot", &title, "share of a core (%)", &rows)),
        legend: split_legend(),
        tables: vec![table],
    }
    .html_of(&group.form)
}

/// Memory and context switches of each result.
fn memory(view: &View) -> String {
    let head = [
        "Result",
        "Resident",
        "Highest resident",
        "Voluntary switches/s",
        "Involuntary switches/s",
        "Switches/query",
        "Waited for a core",
    ];
    let mut table = Table::new("In the highest passed trials", 1, &head);
    for group in view.groups {
        let Some((trial, used)) = used(group) else { continue };
        let seconds = trial.outcome.seconds.max(1e-9);
        let switches = (used.voluntary_switches + used.involuntary_switches) as f64;
        table.row([
            group.name.clone(),
            number::octets(used.resident),
            number::octets(used.resident_peak),
            number::rate(used.voluntary_switches as f64 / seconds),
            number::rate(used.involuntary_switches as f64 / seconds),
            number::brief(switches / trial.outcome.valid.max(1) as f64),
            format!("{} %", number::brief(100.0 * used.waited_s / seconds)),
        ]);
    }
    format!("<h3>Memory and context switches</h3>{}", table.html())
}

/// Pacing error of the tester, and its own resource use.
fn tester(view: &View) -> String {
    let (mut pacing, mut own) = (pacing_table(), own_use_table());
    let self_test =
        view.run.trials.iter().filter(|trial| purpose_name(trial.purpose) == "self-test" && trial.passed());
    let self_test = self_test
        .max_by(|a, b| a.rate_qps.total_cmp(&b.rate_qps))
        .map(|trial| ("self-test".to_owned(), trial));
    let of_groups = view.groups.iter().flat_map(|group| {
        let trials = [group.best(), group.overload()].into_iter().flatten();
        trials.map(|trial| (group.name.clone(), trial))
    });
    for (name, trial) in self_test.into_iter().chain(of_groups) {
        let (outcome, tester) = (&trial.outcome, &trial.outcome.tester);
        let load = format!("{} queries/s, {}", number::rate(trial.rate_qps), verdict_name(outcome.verdict));
        let error = &outcome.pacing_error;
        pacing.row([
            load.clone(),
            name.clone(),
            match error.ms1.intervals {
                0 => "not counted".to_owned(),
                _ => number::measured_percent(error.ms1.mean),
            },
            number::measured_percent(error.ms10.max),
            number::measured_percent(error.ms10.mean),
            number::measured_percent(error.ms10.beyond_1_percent),
            number::measured_percent(error.ms100.max),
            number::measured_percent(error.s1.max),
            number::microseconds(outcome.lag_max_us),
        ]);
        own.row([
            load,
            name,
            number::fixed(tester.cpu_s() / outcome.seconds.max(1e-9), 2),
            number::brief(tester.cpu_s() * 1e6 / outcome.sent.max(1) as f64),
            number::microseconds(tester.waited_s * 1e6),
            number::count(tester.socket_drops),
            number::count(tester.interface_drops),
            number::count(tester.send_errors),
        ]);
    }
    if pacing.rows.is_empty() {
        return placeholder("The tester itself", "No trial is recorded.");
    }
    format!(
        "<h3>The tester itself</h3><p class=\"say\">For each result the highest passed trial and one in overload. “Largest lag” is the longest delay of a query after its due time.</p>{}{}",
        pacing.html(),
        own.html()
    )
}

fn pacing_table() -> Table {
    Table::new(
        "Pacing: deviation of queries sent from queries due",
        2,
        &[
            "Load",
            "Result",
            "1 ms: mean",
            "10 ms: largest",
            "mean",
            "beyond 1 %",
            "100 ms: largest",
            "1 s: largest",
            "Largest lag",
        ],
    )
}

fn own_use_table() -> Table {
    Table::new(
        "The tester's own resource use and drops",
        2,
        &[
            "Load",
            "Result",
            "Cores used",
            "CPU µs/query",
            "Waited for a core",
            "Socket drops",
            "Interface drops",
            "Send errors",
        ],
    )
}
