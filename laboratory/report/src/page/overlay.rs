//! All devices on the same axes: latency, loss and CPU time per query against the offered rate. The charts are part of the
//! page of several runs, and files of their own.

use super::searches::loss_axis;
use super::{Figure, downsampled, placeholder, scroll};
use crate::chart::{Axis, CURVE_COLOURS, CURVE_MARKS, Mark, Plot, Scale};
use crate::groups::{Group, groups, principal};
use crate::limits;
use crate::named::Named;
use crate::number;
use crate::table::Table;
use measure::outcome::Verdict;
use measure::run::{Cell, Summary, Trial};
use std::collections::BTreeMap;

/// A chart of all devices.
struct Overlay {
    /// Name of the file, and beginning of the IDs.
    name: &'static str,
    title: &'static str,
    explanation: &'static str,
    /// `None`: no trial has this quantity.
    plot: Option<Plot>,
    table: Table,
}

/// A device with its look and its measured rates, in ascending order.
struct Curve {
    name: String,
    mark: Mark,
    class: &'static str,
    points: Vec<Point>,
}

/// All trials of a device at one rate. Trials that the tester limited say nothing about the device and are left out.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    rate_qps: f64,
    trials: usize,
    /// Share of the queries of all these trials without a valid reply in time.
    loss: f64,
    /// Medians over the trials of the median and of the 99th percentile of the latency from the intended send time, in
    /// microseconds.
    latency_us: Option<(f64, f64)>,
    /// Median over the trials of the device's CPU time per valid reply, in microseconds.
    cpu_us: Option<f64>,
}

/// The figures of the page.
pub(super) fn figures(runs: &[Named]) -> String {
    overlays(runs).into_iter().map(figure).collect()
}

/// The charts as SVG files: name and text of each.
pub fn files(runs: &[Named]) -> Vec<(&'static str, String)> {
    let drawn = overlays(runs).into_iter().filter_map(|it| Some((it.name, it.plot?)));
    drawn.map(|(name, plot)| (name, plot.svg_file())).collect()
}

fn figure(overlay: Overlay) -> String {
    let Some(plot) = overlay.plot else {
        return placeholder(overlay.title, "No trial of these devices has this quantity.");
    };
    Figure {
        id: &format!("{}-by-rate", overlay.name),
        title: overlay.title,
        explanation: format!(
            "{} A point is all trials of a device at one rate, in the cell of its result and at the fastest value of its sweep. Both \
             the devices' rates and their number of trials differ, because each search looks for the limit of its device.",
            overlay.explanation
        ),
        picture: scroll(&plot.svg()),
        legend: String::new(),
        tables: vec![overlay.table],
    }
    .html()
}

fn overlays(runs: &[Named]) -> [Overlay; 3] {
    let curves: Vec<Curve> = runs.iter().enumerate().filter_map(|(at, named)| curve(at, named)).collect();
    [latency(&curves), loss(&curves), cpu(&curves)]
}

/// The curve of a run; `None` if it has no result yet.
fn curve(at: usize, named: &Named) -> Option<Curve> {
    let groups = groups(named.run);
    let group = principal(&groups)?;
    let is_named = !group.result.sweep.is_empty() || group.result.cell != Cell::default();
    let name = if is_named { format!("{}, {}", named.name, group.name) } else { named.name.clone() };
    // After the last mark the marks begin again with other colours.
    let round = at / CURVE_MARKS.len();
    Some(Curve {
        name,
        mark: CURVE_MARKS[at % CURVE_MARKS.len()],
        class: CURVE_COLOURS[(at + round) % CURVE_COLOURS.len()],
        points: points(group),
    })
}

fn points(group: &Group) -> Vec<Point> {
    let mut by_rate: BTreeMap<u64, Vec<&Trial>> = BTreeMap::new();
    let tells = |trial: &&&Trial| {
        matches!(trial.outcome.verdict, Verdict::Pass | Verdict::Fail)
            && trial.outcome.sent > 0
            && trial.rate_qps.is_finite()
            && trial.rate_qps > 0.0
    };
    for trial in group.trials.iter().filter(tells) {
        // Bits of positive numbers are in the order of the numbers.
        by_rate.entry(trial.rate_qps.to_bits()).or_default().push(trial);
    }
    let points: Vec<Point> = by_rate.into_values().map(|trials| point(&trials)).collect();
    downsampled(&points, limits::LINE_POINTS)
}

fn point(trials: &[&Trial]) -> Point {
    let median = |values: Vec<f64>| (!values.is_empty()).then(|| Summary::of(&values).median);
    let timed = || trials.iter().map(|trial| &trial.outcome.latency_us.intended).filter(|it| it.count > 0);
    let (p50, p99) = (median(timed().map(|it| it.p50).collect()), median(timed().map(|it| it.p99).collect()));
    let costs = trials.iter().filter_map(|trial| trial.device.as_ref()).map(|used| used.cpu_us_per_query);
    let costs: Vec<f64> = costs.filter(|cost| cost.is_finite() && *cost > 0.0).collect();
    let sent: f64 = trials.iter().map(|trial| trial.outcome.sent as f64).sum();
    let missed: f64 = trials.iter().map(|trial| trial.outcome.loss() * trial.outcome.sent as f64).sum();
    Point {
        rate_qps: trials.first().map_or(0.0, |trial| trial.rate_qps),
        trials: trials.len(),
        loss: missed / sent,
        latency_us: p50.zip(p99),
        cpu_us: median(costs),
    }
}

/// An empty plot over the rates, whose differences between devices are ratios.
fn plot(name: &str, title: &str, description: &str, curves: &[Curve], y: Axis) -> Plot {
    let rates = curves.iter().flat_map(|curve| &curve.points).map(|point| point.rate_qps);
    let x = Axis::new(Scale::near(rates), "queries/s offered", 8, number::tick);
    Plot::new(&format!("{name}-by-rate-plot"), title, description, (860.0, 380.0), x, y)
}

/// Draws a line with marks for each device, and its row of the key. `of`: the vertical value of a point and its text.
fn draw(plot: &mut Plot, curves: &[Curve], of: impl Fn(&Point) -> Option<(f64, String)>) {
    for curve in curves {
        let shown: Vec<(&Point, (f64, String))> =
            curve.points.iter().filter_map(|point| Some((point, of(point)?))).collect();
        let line: Vec<(f64, f64)> =
            shown.iter().map(|(point, (value, _))| (point.rate_qps, *value)).collect();
        plot.line(&line, curve.class);
        for (point, (value, text)) in &shown {
            let tip = format!(
                "{}: {text} at {} queries/s ({})",
                curve.name,
                number::rate(point.rate_qps),
                trials(point.trials)
            );
            plot.mark(curve.mark, (point.rate_qps, *value), curve.class, &tip);
        }
        if !shown.is_empty() {
            plot.key(Some(curve.mark), curve.class, false, &curve.name);
        }
    }
}

fn trials(count: usize) -> String {
    if count == 1 { "1 trial".to_owned() } else { format!("{count} trials") }
}

/// A table with a row for each device and rate. `of`: the last columns of a row; `None`: no row.
fn table(curves: &[Curve], what: &str, head: &[&str], of: impl Fn(&Point) -> Option<Vec<String>>) -> Table {
    let head: Vec<&str> = ["Device", "Rate (queries/s)", "Trials"].iter().chain(head).copied().collect();
    let mut table = Table::new(format!("{what} by device and rate"), 1, &head);
    for curve in curves {
        for point in &curve.points {
            let Some(rest) = of(point) else { continue };
            let first = [curve.name.clone(), number::rate(point.rate_qps), point.trials.to_string()];
            table.row(first.into_iter().chain(rest));
        }
    }
    table
}

fn latency(curves: &[Curve]) -> Overlay {
    let title = "Latency against rate, all devices";
    let latencies = || curves.iter().flat_map(|curve| &curve.points).filter_map(|point| point.latency_us);
    let axis = || {
        let scale = Scale::near(latencies().flat_map(|(median, p99)| [median, p99]));
        Axis::new(scale, "latency", 8, number::tick_microseconds)
    };
    let drawn = || {
        let mut plot = plot(
            "latency",
            title,
            "Median and 99th percentile of the latency over the offered rate, both axes logarithmic, two lines for each device.",
            curves,
            axis(),
        );
        for curve in curves {
            let p99 = curve.points.iter().filter_map(|point| Some((point.rate_qps, point.latency_us?.1)));
            plot.line(&p99.collect::<Vec<_>>(), &format!("{} dashed", curve.class));
        }
        draw(&mut plot, curves, |point| {
            let (median, p99) = point.latency_us?;
            let text = format!(
                "median {}, 99th percentile {}",
                number::microseconds(median),
                number::microseconds(p99)
            );
            Some((median, text))
        });
        plot.key(None, "muted", false, "solid line: median");
        plot.key(None, "muted", true, "dashed line: 99th percentile");
        plot
    };
    Overlay {
        name: "latency",
        title,
        explanation: "Latency counts from the due time of a query; queries without a valid reply have none.",
        plot: latencies().next().map(|_| drawn()),
        table: table(curves, "Latency", &["Median", "99th percentile"], |point| {
            point.latency_us.map(|(median, p99)| [median, p99].map(number::microseconds).to_vec())
        }),
    }
}

fn loss(curves: &[Curve]) -> Overlay {
    let title = "Loss against rate, all devices";
    let losses = || curves.iter().flat_map(|curve| &curve.points).map(|point| point.loss);
    let drawn = || {
        let (axis, floor) = loss_axis(losses());
        let mut plot = plot(
            "loss",
            title,
            "The share of queries without a valid reply in time over the offered rate, both axes logarithmic; rates without loss at the bottom.",
            curves,
            axis,
        );
        draw(&mut plot, curves, |point| {
            let text = format!("{} without a valid reply in time", number::measured_percent(point.loss));
            Some((if point.loss > 0.0 { point.loss } else { floor }, text))
        });
        plot
    };
    Overlay {
        name: "loss",
        title,
        explanation: "The share of all queries sent at a rate. A line that leaves the bottom early and stays low shows single losses; the steep rise is the device's capacity.",
        plot: losses().next().map(|_| drawn()),
        table: table(curves, "Loss", &["Loss"], |point| Some(vec![number::measured_percent(point.loss)])),
    }
}

fn cpu(curves: &[Curve]) -> Overlay {
    let title = "CPU time per query against rate, all devices";
    let costs = || curves.iter().flat_map(|curve| &curve.points).filter_map(|point| point.cpu_us);
    let drawn = || {
        let axis = Axis::new(Scale::from_zero(costs()), "CPU µs per valid reply", 5, number::tick);
        let description =
            "CPU time of the device per valid reply over the offered rate, which is on a logarithmic axis.";
        let mut plot = plot("cpu", title, description, curves, axis);
        draw(&mut plot, curves, |point| {
            point.cpu_us.map(|cost| (cost, format!("{} µs per valid reply", number::brief(cost))))
        });
        plot
    };
    Overlay {
        name: "cpu",
        title,
        explanation: "All CPU time of the device, user and kernel, divided by the number of valid replies; the median of the trials.",
        plot: costs().next().map(|_| drawn()),
        table: table(curves, "CPU time", &["CPU µs per valid reply"], |point| {
            point.cpu_us.map(|cost| vec![number::brief(cost)])
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named::named;
    use crate::sample::{self, Shape};
    use measure::outcome::Outcome;
    use measure::run::{CellResult, DeviceUse, Run};

    /// A trial with this rate, with these numbers of queries and of losses, with a median latency, and with CPU time per
    /// query.
    fn trial(rate_qps: f64, (sent, lost): (u64, u64), median_us: f64, cpu_us_per_query: f64) -> Trial {
        let verdict = if lost == 0 { Verdict::Pass } else { Verdict::Fail };
        let mut outcome = Outcome { verdict, sent, valid: sent - lost, lost, ..Outcome::default() };
        let latency = &mut outcome.latency_us.intended;
        (latency.count, latency.p50, latency.p99) = (sent - lost, median_us, 10.0 * median_us);
        let device = Some(DeviceUse { cpu_us_per_query, ..DeviceUse::default() });
        Trial { rate_qps, outcome, device, ..Trial::default() }
    }

    fn run(trials: Vec<Trial>) -> Run {
        Run { results: vec![CellResult::default()], trials, ..Run::default() }
    }

    #[test]
    fn a_point_has_all_trials_at_a_rate_but_those_that_the_tester_limited() {
        let mut limited = trial(1_000.0, (1_000, 900), 5.0, 5.0);
        limited.outcome.verdict = Verdict::TesterLimited;
        let run = run(vec![
            trial(2_000.0, (2_000, 500), 900.0, 30.0),
            trial(1_000.0, (1_000, 0), 100.0, 20.0),
            trial(1_000.0, (1_000, 100), 300.0, 40.0),
            limited,
        ]);
        let groups = groups(&run);
        // 100 of 2,000 are 5 %, 500 of 2,000 a quarter; the median of two is their mean.
        let expected = [
            Point {
                rate_qps: 1_000.0,
                trials: 2,
                loss: 0.05,
                latency_us: Some((200.0, 2_000.0)),
                cpu_us: Some(30.0),
            },
            Point {
                rate_qps: 2_000.0,
                trials: 1,
                loss: 0.25,
                latency_us: Some((900.0, 9_000.0)),
                cpu_us: Some(30.0),
            },
        ];
        assert_eq!(points(&groups[0]), expected);
    }

    #[test]
    fn every_device_has_a_line_and_a_row_of_the_key_in_every_chart() {
        let one = run(vec![trial(1_000.0, (1_000, 0), 100.0, 20.0), trial(2_000.0, (2_000, 9), 200.0, 20.0)]);
        let other = run(vec![trial(4_000.0, (4_000, 0), 50.0, 7.0), trial(8_000.0, (8_000, 8), 60.0, 7.0)]);
        let files = files(&named(&[("a", &one), ("b", &other)]));
        assert_eq!(files.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["latency", "loss", "cpu"]);
        for (name, svg) in files {
            for (device, class) in [("[a]", "c1"), ("[b]", "c2")] {
                assert_eq!(svg.matches(&format!("class=\"line {class}\"")).count(), 1, "{name}: {device}");
                assert_eq!(
                    svg.matches(&format!("<g class=\"mark {class}\">")).count(),
                    2,
                    "{name}: {device}"
                );
                assert_eq!(svg.matches(&format!("{device}</text>")).count(), 1, "{name}: {device}");
            }
            let dashed = svg.matches("class=\"line c1 dashed\"").count();
            assert_eq!(dashed, usize::from(name == "latency"), "{name}");
        }
    }

    #[test]
    fn a_quantity_that_no_trial_has_is_named_and_has_no_file() {
        let mut bare = trial(1_000.0, (1_000, 0), 0.0, 0.0);
        (bare.device, bare.outcome.latency_us) = (None, Default::default());
        let (bare, empty) = (run(vec![bare]), Run::default());
        let runs = [("a", &bare), ("b", &empty)];
        assert_eq!(files(&named(&runs)).iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["loss"]);
        assert_eq!(figures(&named(&runs)).matches("has this quantity").count(), 2);
    }

    #[test]
    fn the_value_of_a_sweep_is_in_the_name_and_sixteen_devices_look_different() {
        let grid = sample::run(&Shape { repetitions: 3, seconds: 2, ..Shape::full() });
        let runs: Vec<(&str, &Run)> = (0..16).map(|_| ("x", &grid)).collect();
        let curves: Vec<Curve> =
            named(&runs).iter().enumerate().filter_map(|(at, it)| curve(at, it)).collect();
        assert!(curves[0].name.contains("threads = 8"), "{}", curves[0].name);
        let mut looks: Vec<(String, &str)> =
            curves.iter().map(|curve| (format!("{:?}", curve.mark), curve.class)).collect();
        looks.sort_unstable();
        looks.dedup();
        assert_eq!(looks.len(), 16);
    }
}
