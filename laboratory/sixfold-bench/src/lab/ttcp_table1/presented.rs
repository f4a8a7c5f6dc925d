//! Figures and charts of the table.

use super::paper::{ADSL, ROUND_TRIPS, Row};
use super::virtual_time::QUERIES;
use super::{Cell, find};
use crate::lab::context::{Context, figure};
use measure::experiment::{
    Chart, ChartAxis, ChartLine, Figure, Origin, Point, mean_interval, median_interval,
};
use measure::statistics::{percentile, sorted};
use papers::sequential::Transport;
use std::time::Duration;

/// Enters all figures and charts.
pub fn enter(context: &mut Context, in_virtual_time: &[Cell], measured: &[Cell], answer_octets: usize) {
    for cell in in_virtual_time {
        let origin = origin(cell, Origin::Virtual);
        enter_total(context, "Time of 1,000 queries in a row, virtual time", cell, origin);
    }
    for cell in measured {
        enter_total(context, "Time of 1,000 queries in a row, measured", cell, Origin::Measured);
    }
    for (cells, kind, words) in
        [(in_virtual_time, Origin::Virtual, "virtual time"), (measured, Origin::Measured, "measured")]
    {
        for cell in cells.iter().filter(|cell| cell.round_trip == ADSL) {
            enter_query(context, cell, origin(cell, kind), words);
        }
    }
    if context.options.quick && !measured.is_empty() {
        let queries = measured[0].times.len();
        context.warning(format!(
            "The measured times of 1,000 queries are those of {queries} queries, multiplied by {}.",
            f64::from(QUERIES) / queries as f64
        ));
    }
    context.figure(figure(
        "Messages",
        "NS of the root",
        "question",
        super::paper::QUESTION.len() as f64,
        "octets",
        Origin::Measured,
    ));
    context.figure(figure(
        "Messages",
        "NS of the root",
        "answer",
        answer_octets as f64,
        "octets",
        Origin::Measured,
    ));
    context.chart(chart("table-1-virtual", "virtual time", in_virtual_time, Origin::Virtual));
    if !measured.is_empty() {
        context.chart(chart("table-1-measured", "measured", measured, Origin::Measured));
    }
}

fn origin(cell: &Cell, otherwise: Origin) -> Origin {
    match cell.row {
        Row::FastOpenWarm | Row::FastOpenCold if otherwise == Origin::Virtual => Origin::Arithmetic,
        _ => otherwise,
    }
}

/// Name of a round trip, in ms.
fn column(round_trip: Duration) -> String {
    format!("{} ms", round_trip.as_secs_f64() * 1e3)
}

fn enter_total(context: &mut Context, table: &str, cell: &Cell, origin: Origin) {
    let interval = match cell.totals.len() {
        // One measured row: the interval of the mean of its queries, without the first, which may make a handshake for all.
        1 if origin == Origin::Measured => mean_interval(&cell.times[1..], 1)
            .map(|(low, high)| (low * f64::from(QUERIES), high * f64::from(QUERIES))),
        _ => mean_interval(&cell.totals, 1),
    };
    let paper = cell.row.seconds(cell.round_trip);
    context.figure(Figure {
        interval,
        samples: if origin == Origin::Arithmetic { 0 } else { cell.times.len() as u64 },
        paper,
        place: paper.map(|_| "Table 1".to_owned()).unwrap_or_default(),
        ..figure(table, cell.row.name(), &column(cell.round_trip), cell.total(), "s", origin)
    });
}

/// Enters the figures of one query at the round trip of the ADSL line.
fn enter_query(context: &mut Context, cell: &Cell, origin: Origin, words: &str) {
    let table = "One query at a round trip of 65 ms";
    let ordered = sorted(&cell.times);
    let samples = if origin == Origin::Arithmetic { 0 } else { cell.times.len() as u64 };
    let new = |column: &str, value: f64, unit: &str| Figure {
        samples,
        ..figure(table, cell.row.name(), &format!("{column}, {words}"), value, unit, origin)
    };
    let interval = median_interval(&cell.times, 1).filter(|_| cell.times.len() <= 1000);
    context.figure(Figure {
        interval: interval.map(|(low, high)| (low * 1e3, high * 1e3)),
        ..new("median", cell.median() * 1e3, "ms")
    });
    // The 99th percentile needs a hundred values.
    if let Some(p99) = percentile(&ordered, 99.0).filter(|_| ordered.len() >= 100) {
        context.figure(new("99th percentile", p99 * 1e3, "ms"));
    }
    if cell.packets.is_finite() {
        let paper = cell.row.packets();
        context.figure(Figure {
            paper,
            place: paper.map(|_| "section 5.2".to_owned()).unwrap_or_default(),
            ..new("packets", cell.packets, "packets")
        });
    }
    if let Some(octets) = cell.octets {
        context.figure(new("IP octets", octets, "octets"));
    }
}

/// Time against round trip: ours and the paper's.
fn chart(id: &str, words: &str, cells: &[Cell], origin: Origin) -> Chart {
    let paper_rows = [Row::Of(Transport::Udp), Row::Of(Transport::Ttcp), Row::Of(Transport::Tcp)];
    let point = |round_trip: Duration, seconds: f64| Point {
        x: round_trip.as_secs_f64() * 1e3,
        y: seconds,
        interval: None,
    };
    let ours = paper_rows.into_iter().chain([Row::Of(Transport::TcpKept), Row::FastOpenWarm]).map(|row| {
        let points = ROUND_TRIPS
            .iter()
            .filter_map(|round_trip| Some(point(*round_trip, find(cells, row, *round_trip)?.total())));
        let of = match (row, origin) {
            (Row::FastOpenWarm, Origin::Virtual) => Origin::Arithmetic,
            _ => origin,
        };
        ChartLine { name: row.name().to_owned(), origin: of, points: points.collect() }
    });
    let theirs = paper_rows.into_iter().map(|row| {
        let points = ROUND_TRIPS
            .iter()
            .filter(|round_trip| find(cells, row, **round_trip).is_some())
            .filter_map(|round_trip| Some(point(*round_trip, row.seconds(*round_trip)?)));
        ChartLine { name: format!("{}, paper", row.name()), origin: Origin::Paper, points: points.collect() }
    });
    Chart {
        id: id.to_owned(),
        title: format!("Time of 1,000 queries in a row, {words}"),
        description: "UDP, T/TCP, Fast Open with cookie and one TCP connection take one round trip a query and lie \
                      together; TCP with a connection a query takes two. The paper's times at short round trips are computing \
                      time."
            .to_owned(),
        x: ChartAxis { label: "round trip (ms)".to_owned(), logarithmic: true },
        y: ChartAxis { label: "time of 1,000 queries (s)".to_owned(), logarithmic: true },
        lines: ours.chain(theirs).collect(),
    }
}
