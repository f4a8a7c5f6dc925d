//! Figures and charts of the measurements.

use super::fit::Line;
use super::limits::{PAPER_NAMES, QUICK_RATE_QPS};
use super::paper::{self, PaperNumber};
use super::rate::is_bounded;
use super::results::{COMMON_RATE_QPS, RateResults, Results, Start};
use crate::lab::context::{self, Context};
use measure::experiment::{Chart, ChartAxis, ChartLine, Figure, Origin, Point, median_interval};
use measure::run::Summary;
use measure::statistics::{median, sorted};

/// Title of the table of receive buffers.
const BUFFERS: &str = "Receive buffers of the server's sockets";
/// Title of the table of zones.
const ZONES: &str = "Zone: load time and memory";
/// Title of the table of growth.
const GROWTH: &str = "Growth with the zone, and 2^27 names";

fn set_paper(figure: &mut Figure, number: Option<PaperNumber>) {
    if let Some(number) = number {
        (figure.paper, figure.place) = (Some(number.value), number.place.to_owned());
    }
}

/// Enters all figures and charts of the servers without fault.
pub fn enter(context: &mut Context, results: &[Results]) {
    let faultless: Vec<&Results> = results.iter().filter(|results| results.fault.is_none()).collect();
    for results in &faultless {
        enter_buffers(context, results);
        enter_zones(context, results);
        enter_growth(context, results);
        for rates in &results.rates {
            enter_losses(context, results, rates);
            if !rates.rates.is_empty() {
                enter_rates(context, results, rates);
            }
        }
    }
    let memory = |start: &Start| start.memory_octets / 1e6;
    context.chart(zone_chart("memory", "Memory after loading", "memory (MB)", &faultless, memory, |name| {
        paper::memory_gb(name).map(|number| number.value * 1e3)
    }));
    context.chart(zone_chart(
        "load-time",
        "Load time",
        "time (s)",
        &faultless,
        |start| start.load_s,
        |name| paper::load_s(name).map(|number| number.value),
    ));
    if faultless.iter().any(|results| results.rates.len() > 1) {
        context.chart(rate_chart(&faultless));
    }
    let searched = |results: &&&Results| results.rates.iter().any(|rates| !rates.rates.is_empty());
    let of_paper: Vec<&Results> = faultless.iter().filter(searched).copied().collect();
    if of_paper.iter().any(|results| !paper::rates_by_cores(results.server.recipe.name).is_empty()) {
        context.chart(p1_chart(&of_paper));
    }
}

/// Receive buffers of the sockets at the server's port: as the server makes them, and as they were measured.
fn enter_buffers(context: &mut Context, results: &Results) {
    let Some(buffers) = &results.buffers else { return };
    let row = results.server.recipe.title;
    let mut enter = |column: &str, value: Option<f64>, unit: &str| {
        let figure = context::figure(BUFFERS, row, column, value.unwrap_or_default(), unit, Origin::Measured);
        context.figure(Figure { value, ..figure });
    };
    let smallest = |sizes: &[u32]| sizes.iter().min().map(|size| f64::from(*size));
    enter("sockets", Some(buffers.measured.len() as f64), "");
    enter("as shipped", smallest(&buffers.as_shipped), "octets");
    enter("in the measurement", smallest(&buffers.measured), "octets");
}

/// Lost queries, and those of them that full receive buffers of the server dropped.
fn enter_losses(context: &mut Context, results: &Results, rates: &RateResults) {
    let row = results.server.recipe.title;
    let mut enter = |table: &str, column: &str, value: f64, unit: &str| {
        context.figure(context::figure(table, row, column, value, unit, Origin::Measured));
    };
    let dropped = "dropped by the server's sockets";
    if rates.rates.is_empty() {
        let table = format!("One trial at {QUICK_RATE_QPS:.0} queries per second, {}", rates.cores);
        // A trial that the tester limited has no value, which is shown.
        let answered = rates.answered.map_or(f64::NAN, |answered| 100.0 * answered);
        enter(&table, "answered in time", answered, "%");
        enter(&table, dropped, rates.drops as f64, "");
        return;
    }
    let table = format!("Queries of all trials of the searches, {}", rates.cores);
    let sum =
        |count: fn(&(u64, u64)) -> u64| rates.rates.iter().map(|rates| count(&rates.asked)).sum::<u64>();
    enter(&table, "asked", sum(|asked| asked.0) as f64, "");
    enter(&table, "without an answer in time", sum(|asked| asked.1) as f64, "");
    enter(&table, dropped, rates.drops as f64, "");
}

fn sizes(results: &Results) -> Vec<u32> {
    let mut sizes: Vec<u32> = results.starts.iter().map(|start| start.bits).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn values(results: &Results, bits: u32, value: impl Fn(&Start) -> f64) -> Vec<f64> {
    results.starts.iter().filter(|start| start.bits == bits).map(value).collect()
}

fn enter_zones(context: &mut Context, results: &Results) {
    let row = results.server.recipe.title;
    for bits in sizes(results) {
        let times = values(results, bits, |start| start.load_s);
        context.figure(context::median_figure(
            ZONES,
            row,
            &format!("load time, 2^{bits} names"),
            &times,
            "s",
            1,
        ));
        let cpu = values(results, bits, |start| start.cpu_s);
        context.figure(context::median_figure(
            ZONES,
            row,
            &format!("CPU time, 2^{bits} names"),
            &cpu,
            "s",
            1,
        ));
        let memory = values(results, bits, |start| start.memory_octets / 1e6);
        context.figure(context::median_figure(
            ZONES,
            row,
            &format!("memory, 2^{bits} names"),
            &memory,
            "MB",
            1,
        ));
    }
    if let Some(rates) = results.rates.iter().find(|rates| rates.count == 1) {
        let memory = [rates.memory_octets / 1e6];
        context.figure(context::median_figure(ZONES, row, "memory after the load", &memory, "MB", 1));
    }
}

/// The line through all starts. None for fewer than three sizes, which do not show if growth is linear.
fn line(results: &Results, value: impl Fn(&Start) -> f64) -> Option<Line> {
    if sizes(results).len() < 3 {
        return None;
    }
    let point = |start: &Start| Point { x: (1u64 << start.bits) as f64, y: value(start), interval: None };
    Line::through(&results.starts.iter().map(point).collect::<Vec<_>>())
}

fn enter_growth(context: &mut Context, results: &Results) {
    let recipe = results.server.recipe;
    let mut enter = |column: &str, unit: &str, (value, interval), samples, number| {
        let figure = context::figure(GROWTH, recipe.title, column, value, unit, Origin::Measured);
        let mut figure = Figure { interval: Some(interval), samples, ..figure };
        set_paper(&mut figure, number);
        context.figure(figure);
    };
    if let Some(memory) = line(results, |start| start.memory_octets) {
        enter("memory for each name", "octets", (memory.slope, memory.slope_interval()), memory.points, None);
        let (value, (low, high)) = memory.at(PAPER_NAMES);
        let total = (value / 1e9, (low / 1e9, high / 1e9));
        enter("memory, 2^27 names (extrapolated)", "GB", total, memory.points, paper::memory_gb(recipe.name));
    }
    for (title, number, time) in [
        ("load time", paper::load_s(recipe.name), line(results, |start| start.load_s)),
        ("CPU time of loading", None, line(results, |start| start.cpu_s)),
    ] {
        let Some(time) = time else { continue };
        let (low, high) = time.slope_interval();
        let million = (time.slope * 1e6, (low * 1e6, high * 1e6));
        enter(&format!("{title}, a million names"), "s", million, time.points, None);
        let whole = time.at(PAPER_NAMES);
        enter(&format!("{title}, 2^27 names (extrapolated)"), "s", whole, time.points, number);
    }
}

fn enter_rates(context: &mut Context, results: &Results, rates: &RateResults) {
    let recipe = results.server.recipe;
    let table = format!("Highest rate without loss, {}", rates.cores);
    let strict: Vec<f64> = rates.rates.iter().map(|rates| rates.strict.rate_qps).collect();
    let confirmed: Vec<f64> = rates.rates.iter().map(|rates| rates.confirmed.rate_qps).collect();
    let mut middle = context::median_figure(&table, recipe.title, "median", &strict, "1/s", 1);
    if rates.count == 1 {
        set_paper(&mut middle, paper::rate_qps(recipe.name));
    }
    context.figure(middle);
    let summary = Summary::of(&strict);
    for (column, value) in [("1st percentile", summary.p1), ("99th percentile", summary.p99)] {
        let figure = context::figure(&table, recipe.title, column, value, "1/s", Origin::Measured);
        context.figure(Figure { samples: strict.len() as u64, ..figure });
    }
    context.figure(context::median_figure(
        &table,
        recipe.title,
        "median, failures repeated",
        &confirmed,
        "1/s",
        1,
    ));
    let table = format!("CPU time of an answered query, {}", rates.cores);
    let common = format!("at {COMMON_RATE_QPS:.0} queries per second");
    for (column, values) in
        [("at half of the highest rate", &rates.cpu_half_us), (common.as_str(), &rates.cpu_common_us)]
    {
        if !values.is_empty() {
            context.figure(context::median_figure(&table, recipe.title, column, values, "us", 1));
        }
    }
    let bounded = rates.rates.iter().filter(|rates| is_bounded(&rates.confirmed)).count();
    if bounded > 0 {
        context.warning(format!(
            "{}, {}: {bounded} of {} searches ended at the tester's limit, at the end of the zone's names, or where other programs \
             had the server's cores, so the server may be faster",
            recipe.title,
            rates.cores,
            rates.rates.len()
        ));
    }
}

/// Chart of a value over the number of names, with the paper's points at 2^27 names. Computed answers have no zone.
fn zone_chart(
    id: &str,
    title: &str,
    label: &str,
    results: &[&Results],
    value: impl Fn(&Start) -> f64 + Copy,
    paper: impl Fn(&str) -> Option<f64>,
) -> Chart {
    let readers = results.iter().filter(|results| results.server.recipe.reads_zone);
    let line = |results: &&Results| {
        let point = |bits: u32| {
            let values = values(results, bits, value);
            let y = median(&sorted(&values)).unwrap_or_default();
            Point { x: (1u64 << bits) as f64, y, interval: median_interval(&values, 1) }
        };
        let points = sizes(results).into_iter().map(point).collect();
        ChartLine { name: results.server.recipe.title.to_owned(), origin: Origin::Measured, points }
    };
    let of_paper = |results: &&Results| {
        let y = paper(results.server.recipe.name)?;
        let point = Point { x: PAPER_NAMES, y, interval: None };
        let name = format!("{}, paper", results.server.recipe.title);
        Some(ChartLine { name, origin: Origin::Paper, points: vec![point] })
    };
    Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        description: format!(
            "{title} of each server that reads a master file, over the number of names. The points of the paper are at 2^27 \
             names."
        ),
        x: ChartAxis { label: "names".to_owned(), logarithmic: true },
        y: ChartAxis { label: label.to_owned(), logarithmic: true },
        lines: readers.clone().map(line).chain(readers.clone().filter_map(of_paper)).collect(),
    }
}

/// 1st percentiles by number of cores, and the paper's beside them, for the servers that the paper has figures of.
fn p1_chart(results: &[&Results]) -> Chart {
    let has_paper = |results: &&&Results| !paper::rates_by_cores(results.server.recipe.name).is_empty();
    let ours = results.iter().filter(has_paper).map(|results| {
        let point = |rates: &RateResults| {
            let strict: Vec<f64> = rates.rates.iter().map(|rates| rates.strict.rate_qps).collect();
            Point { x: rates.count as f64, y: Summary::of(&strict).p1, interval: None }
        };
        // A search in which no trial passed ends at 0, which a logarithmic axis does not have.
        let searched = results.rates.iter().filter(|rates| !rates.rates.is_empty());
        let points = searched.map(point).filter(|point| point.y > 0.0).collect();
        ChartLine { name: results.server.recipe.title.to_owned(), origin: Origin::Measured, points }
    });
    let theirs = results.iter().filter(has_paper).map(|results| {
        let points = paper::rates_by_cores(results.server.recipe.name).iter();
        ChartLine {
            name: format!("{}, paper", results.server.recipe.title),
            origin: Origin::Paper,
            points: points
                .map(|(cores, qps)| Point { x: f64::from(*cores), y: *qps, interval: None })
                .collect(),
        }
    });
    Chart {
        id: "p1-by-cores".to_owned(),
        title: "1st percentile of the highest rate without loss, beside the paper's".to_owned(),
        description: "1st percentile of the searches of each server, over the number of its cores, with the figures that the paper's \
                      text has: on one core, and that of Knot DNS on 32. The paper's machine has other cores and a network, so the \
                      order and the growth are compared, not the rates."
            .to_owned(),
        x: ChartAxis { label: "cores of the server".to_owned(), logarithmic: true },
        y: ChartAxis { label: "queries per second".to_owned(), logarithmic: true },
        lines: ours.chain(theirs).collect(),
    }
}

fn rate_chart(results: &[&Results]) -> Chart {
    let line = |results: &&Results| {
        let point = |rates: &RateResults| {
            let strict: Vec<f64> = rates.rates.iter().map(|rates| rates.strict.rate_qps).collect();
            let summary = Summary::of(&strict);
            Point { x: rates.count as f64, y: summary.median, interval: Some((summary.p1, summary.p99)) }
        };
        let points = results.rates.iter().map(point).collect();
        ChartLine { name: results.server.recipe.title.to_owned(), origin: Origin::Measured, points }
    };
    Chart {
        id: "rates".to_owned(),
        title: "Highest rate without loss".to_owned(),
        description: "Median of the highest rates of each server, over the number of its cores; the bars go from the 1st to the \
                      99th percentile of the searches."
            .to_owned(),
        x: ChartAxis { label: "cores of the server".to_owned(), logarithmic: false },
        y: ChartAxis { label: "queries per second".to_owned(), logarithmic: true },
        lines: results.iter().map(line).collect(),
    }
}
