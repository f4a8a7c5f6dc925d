//! Sample record of an experiment that was never carried out.

use measure::experiment::{
    Chart, ChartAxis, ChartLine, Claim, Experiment, Figure, Note, Origin, PaperReference, Point, Program,
    SCHEMA, TTCP,
};
use measure::run::Environment;

/// A record with every kind of content: figures of each origin, some without a value, charts with both kinds of axes.
pub fn experiment() -> Experiment {
    Experiment {
        schema: SCHEMA,
        tool: "sixfold-bench 0.1.0 (sample)".to_owned(),
        name: "sample".to_owned(),
        title: "Time of queries over a slow link, by transport".to_owned(),
        paper: PaperReference { citation: TTCP.citation.to_owned(), part: "Table 1, Figure 4".to_owned() },
        quick: true,
        seed: 1,
        command: ["sixfold-bench", "lab", "sample", "--quick", "--out", "/tmp/a b"].map(str::to_owned).into(),
        started: "2026-03-01T08:00:00Z".to_owned(),
        ended: "2026-03-01T08:00:21Z".to_owned(),
        host: host(),
        programs: programs(),
        figures: figures(),
        charts: vec![few_points(), many_points()],
        listings: vec![Note {
            subject: "A query over T/TCP".to_owned(),
            text: "> SYN FIN 0 len 5 CC 2\n< SYN FIN 0 ack 7 len 9 CC 8 ECHO 2\n> 7 ack 11".to_owned(),
        }],
        claims: claims(),
        differences: vec![Note {
            subject: "Link".to_owned(),
            text: "The paper used two hosts and dummynet; the sample has a formula.".to_owned(),
        }],
        warnings: vec!["This record is a sample: nothing was measured.".to_owned()],
    }
}

fn host() -> Environment {
    let facts = [("kernel", "6.12.0"), ("processor", "An example of a processor, 3.0 GHz"), ("cores", "2")];
    Environment {
        facts: facts.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        warnings: vec!["the load was 1.8 when the experiment began".to_owned()],
    }
}

fn programs() -> Vec<Program> {
    vec![
        Program {
            name: "unbound".to_owned(),
            version: "Unbound 1.22.0".to_owned(),
            command: ["unbound", "-d", "-c", "unbound.conf"].map(str::to_owned).into(),
            files: vec![("unbound.conf".to_owned(), "server:\n  port: 5301\n".to_owned())],
        },
        Program { name: "load".to_owned(), version: "0.1.0".to_owned(), ..Program::default() },
    ]
}

fn claims() -> Vec<Claim> {
    [
        (
            "T/TCP takes at most 1.15 times as long as UDP at 65 ms",
            "a handshake before the query: 2 times",
            "1.04 times",
            true,
        ),
        (
            "TCP takes at least 1.8 times as long as UDP at 65 ms",
            "a query with the SYN: 1 time",
            "1.71 times (1.69 to 1.73)",
            false,
        ),
    ]
    .map(|(sentence, refuted_by, observed, holds)| Claim {
        sentence: sentence.to_owned(),
        refuted_by: refuted_by.to_owned(),
        observed: observed.to_owned(),
        holds,
    })
    .into()
}

fn figures() -> Vec<Figure> {
    let times = [("UDP", 65.4, Some(66.1)), ("T/TCP", 68.2, Some(67.3)), ("TCP", 131.9, Some(133.0))];
    let mut figures = Vec::new();
    for (row, value, paper) in times {
        for (column, origin, shift) in [("link", Origin::Measured, 0.0), ("model", Origin::Virtual, -0.3)] {
            figures.push(Figure {
                table: "Time of a query at a delay of 65 ms".to_owned(),
                row: row.to_owned(),
                column: column.to_owned(),
                value: Some(value + shift),
                unit: "ms".to_owned(),
                interval: Some((value + shift - 0.21, value + shift + 0.24)),
                samples: 1000,
                origin,
                paper: paper.filter(|_| origin == Origin::Measured),
                place: "Table 1".to_owned(),
            });
        }
    }
    for (row, value, unit) in [("TCP", Some(10.0), "packets"), ("QUIC", None, "packets")] {
        figures.push(Figure {
            table: "Packets of a query".to_owned(),
            row: row.to_owned(),
            column: "packets".to_owned(),
            value,
            unit: unit.to_owned(),
            samples: 1,
            origin: Origin::Arithmetic,
            ..Figure::default()
        });
    }
    figures
}

fn axis(label: &str, logarithmic: bool) -> ChartAxis {
    ChartAxis { label: label.to_owned(), logarithmic }
}

/// A chart with bars and the paper's crosses, both axes logarithmic.
fn few_points() -> Chart {
    let line = |name: &str, origin: Origin, factor: f64| ChartLine {
        name: name.to_owned(),
        origin,
        points: [10.0, 30.0, 65.0, 130.0, 300.0, 600.0]
            .map(|delay: f64| {
                let y = factor * delay + 0.4;
                let interval = (origin != Origin::Paper).then_some((y * 0.94, y * 1.06));
                Point { x: delay, y, interval }
            })
            .into(),
    };
    Chart {
        id: "delay".to_owned(),
        title: "Time of a query by delay".to_owned(),
        description: "The time grows with the delay of the link: once for UDP and T/TCP, twice for TCP."
            .to_owned(),
        x: axis("delay (ms)", true),
        y: axis("time (ms)", true),
        lines: vec![
            line("UDP", Origin::Measured, 1.0),
            line("T/TCP", Origin::Virtual, 1.03),
            line("TCP", Origin::Measured, 2.0),
            line("UDP (paper)", Origin::Paper, 0.97),
            line("TCP (paper)", Origin::Paper, 2.1),
        ],
    }
}

/// A chart with bands and eight curves.
fn many_points() -> Chart {
    let line = |at: usize| ChartLine {
        name: format!("{} clients", at + 1),
        origin: Origin::Virtual,
        points: (0..=100)
            .map(|x| {
                let x = f64::from(x) / 10.0;
                let y = 100.0 * (1.0 - (-x / (1.0 + at as f64)).exp());
                Point { x, y, interval: Some((y - 1.5, y + 1.5)) }
            })
            .collect(),
    };
    Chart {
        id: "share".to_owned(),
        title: "Share of queries that are answered".to_owned(),
        description: "The share of answered queries rises with the time, more slowly with more clients."
            .to_owned(),
        x: axis("time (s)", false),
        y: axis("answered (%)", false),
        lines: (0..8).map(line).collect(),
    }
}
