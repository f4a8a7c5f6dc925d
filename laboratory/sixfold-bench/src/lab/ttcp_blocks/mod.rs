//! `ttcp-blocks`: connection blocks over time with TIME-WAIT of 60 s and of 8 retransmission timers (Figure 5 of the paper).
//!
//! The curves are of virtual time, with the state machine of the crate `ttcp`. Two cross-checks are real: TIME-WAIT of the
//! kernel (`kernel.rs`), and that of the laboratory's stack behind an interface (`interface.rs`).

mod interface;
mod kernel;

pub use kernel::kernel_program;

use super::context::{Context, figure};
use measure::experiment::{Chart, ChartAxis, ChartLine, Figure, Origin, Point};
use papers::connection_blocks::{Outcome, Plan, WhenFull, run as run_virtual};
use std::time::Duration;
use ttcp::Settings;

/// Connection blocks of the paper's host, about.
const BLOCKS: usize = 8000;

/// Queries that the paper's host answered in a second, about.
const RATE: u32 = 1900;

/// The paper's times in TIME-WAIT, seconds: 2 MSL with an MSL of 30 s, and 8 timers of 1 s.
const WAIT_S: [f64; 2] = [60.0, 8.0];

/// Names of the two, in the tables.
const NAMES: [&str; 2] = ["TCP, 2 MSL", "T/TCP, 8 RTO"];

const TABLE: &str = "Connection blocks of 10 clients with 1,000 queries each";
const PLACE: &str = "Figure 5";

/// Runs the experiment.
///
/// # Errors
///
/// As [`kernel::check`] and [`interface::check`].
pub fn run(context: &mut Context) -> Result<(), String> {
    let mut lines = curves(context)?;
    rates(context)?;
    memory(context);
    lines.extend(kernel::check(context)?);
    interface::check(context)?;
    let table = ChartLine {
        name: "blocks of the paper's host".to_owned(),
        origin: Origin::Paper,
        points: [0.0, 140.0].map(|x| Point { x, y: BLOCKS as f64, interval: None }).to_vec(),
    };
    lines.push(table);
    context.chart(Chart {
        id: "blocks".to_owned(),
        title: "Connection blocks in use".to_owned(),
        description: "Both tables fill at the same rate. With TIME-WAIT of 60 s the table stays full for a minute; with 8 \
                      retransmission timers it is free again after 8 seconds."
            .to_owned(),
        x: ChartAxis { label: "time (s)".to_owned(), logarithmic: false },
        y: ChartAxis { label: "connection blocks".to_owned(), logarithmic: false },
        lines,
    });
    Ok(())
}

/// The paper's experiment: a host with these settings.
fn plan(transactions: bool, when_full: WhenFull) -> Plan {
    Plan {
        settings: Settings { transactions, blocks: BLOCKS, ..Settings::default() },
        clients: 10,
        queries: 1000,
        service: Duration::from_secs(1) / RATE,
        when_full,
        every: Duration::from_millis(500),
        end: Duration::from_secs(1000),
    }
}

/// A client that finds no block asks again after this time.
const WAIT: WhenFull = WhenFull::Wait(Duration::from_millis(10));

/// Takes the two curves of the figure.
fn curves(context: &mut Context) -> Result<Vec<ChartLine>, String> {
    let mut lines = Vec::new();
    let mut drains = Vec::new();
    for (number, transactions) in [false, true].into_iter().enumerate() {
        context.progress(&format!("virtual time: {}", NAMES[number]))?;
        let outcome = run_virtual(&plan(transactions, WAIT), context.seed(number as u64));
        let failing = WhenFull::Fail(Duration::from_millis(1));
        let failed = run_virtual(&plan(transactions, failing), context.seed(number as u64)).failed;
        drains.push(figures(context, number, &outcome, failed)?);
        let points = outcome.samples.iter().map(|s| Point {
            x: s.at.as_secs_f64(),
            y: s.blocks as f64,
            interval: None,
        });
        lines.push(ChartLine {
            name: NAMES[number].to_owned(),
            origin: Origin::Virtual,
            points: points.collect(),
        });
    }
    let (ratio, paper) = (drains[1] / drains[0], WAIT_S[1] / WAIT_S[0]);
    context.figure(Figure {
        paper: Some(paper),
        place: PLACE.to_owned(),
        ..figure(TABLE, "T/TCP / TCP", "from the last answer to an empty table", ratio, "", Origin::Virtual)
    });
    context.claim(
        "From the last answer to the empty table T/TCP takes 2/15 of the time of TCP, within 20 %",
        "timers of T/TCP that grew with the round trips of a full table, or a TIME-WAIT that is not cut: a ratio up to 1",
        format!("{:.2} s / {:.2} s = {ratio:.4}; 2/15 = {paper:.4}", drains[1], drains[0]),
        (ratio / paper - 1.0).abs() <= 0.2,
    );
    Ok(lines)
}

/// Enters the figures of a curve. `failed`: queries that fail if clients do not wait for a block. Returns the time from the
/// last answer to the empty table, seconds.
fn figures(context: &mut Context, number: usize, outcome: &Outcome, failed: u64) -> Result<f64, String> {
    let drain =
        outcome.drain().ok_or("the table is not empty at the end; report this as a fault")?.as_secs_f64();
    let tenth = outcome.tenth.map_or(f64::NAN, |at| (at - outcome.last_answer).as_secs_f64());
    let name = NAMES[number];
    let rows = [
        ("most blocks in use (8,000 are the setting)", outcome.peak.0 as f64, "", None),
        ("time until the table is full", outcome.peak.1.as_secs_f64(), "s", None),
        ("answers until then (1,900/s are the setting)", outcome.fill_rate(), "1/s", None),
        ("last answer", outcome.last_answer.as_secs_f64(), "s", None),
        ("from the last answer to 10 % of the blocks", tenth, "s", None),
        ("from the last answer to an empty table", drain, "s", Some(WAIT_S[number])),
        ("calls that found no block", outcome.refused as f64, "", None),
        ("queries that fail if no client waits", failed as f64, "", None),
    ];
    for (column, value, unit, paper) in rows {
        let place = if paper.is_some() { PLACE } else { "" }.to_owned();
        context.figure(Figure { paper, place, ..figure(TABLE, name, column, value, unit, Origin::Virtual) });
    }
    context.claim(
        format!("{name}: every query is answered in the end, by clients that wait for a block"),
        "a query that fails, or a run that ends before its last answer",
        format!("{} answered, {} failed", outcome.answered, outcome.failed),
        outcome.answered == 10_000 && outcome.failed == 0,
    );
    Ok(drain)
}

/// The rate that the blocks allow for as long as one likes: blocks / time in TIME-WAIT, and the same in virtual time.
fn rates(context: &mut Context) -> Result<(), String> {
    const RATES: &str = "Rate that 8,000 blocks allow for ever";
    let mut rates = Vec::new();
    for (number, transactions) in [false, true].into_iter().enumerate() {
        context.progress(&format!("virtual time, the rate: {}", NAMES[number]))?;
        let bound = BLOCKS as f64 / WAIT_S[number];
        let (from, to) = (Duration::from_secs(200), Duration::from_secs(context.choose(400, 2000)));
        let queries = u64::MAX;
        let endless = Plan { queries, end: to, every: Duration::from_secs(1), ..plan(transactions, WAIT) };
        let outcome = run_virtual(&endless, context.seed(10 + number as u64));
        let rate = outcome.rate(from, to);
        let row = NAMES[number];
        context.figure(figure(RATES, row, "blocks / TIME-WAIT", bound, "1/s", Origin::Arithmetic));
        let samples = outcome.answered;
        context.figure(Figure {
            samples,
            ..figure(RATES, row, "10 clients without a pause", rate, "1/s", Origin::Virtual)
        });
        context.claim(
            format!("{row}: the table allows no more than blocks / TIME-WAIT (2 % for the ends of the count), and 85 % of it are reached"),
            "a block that is free before the end of its TIME-WAIT, or one that stays behind",
            format!("{rate:.1} of {bound:.1} 1/s"),
            rate <= bound * 1.02 && rate >= bound * 0.85,
        );
        rates.push(rate);
    }
    context.figure(figure(
        RATES,
        "T/TCP / TCP",
        "10 clients without a pause",
        rates[1] / rates[0],
        "",
        Origin::Virtual,
    ));
    Ok(())
}

/// The paper's memory of connection counts: 4 octets, 10 for each host, 12 for each connection.
fn memory(context: &mut Context) {
    let octets = 4.0 + 10_000.0 * 10.0 + 10_000.0 * 100.0 * 12.0;
    context.figure(Figure {
        paper: Some(12_100_004.0),
        place: "section 4.3".to_owned(),
        ..figure(
            "Memory of connection counts",
            "10,000 hosts with 100 connections each",
            "4 + 10 hosts + 12 connections",
            octets,
            "octets",
            Origin::Arithmetic,
        )
    });
}
