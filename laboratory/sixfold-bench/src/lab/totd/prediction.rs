//! The prediction of permuted IDs, and the odds of a blind forger.

use super::super::context::{Context, figure};
use measure::experiment::{Chart, ChartAxis, ChartLine, Figure, Origin, Point};
use papers::totd::ids::Pools;
use papers::totd::limits::USED;
use papers::totd::prediction::{candidates, continuation, forgery, left_in_pool, share_predicted};

/// A second of 2014: the start of the forwarder that is attacked.
const START: u32 = 1_400_000_000;

/// IDs that are predicted after those that were seen.
const PREDICTED: u32 = 1000;

/// Table of the odds.
const ODDS: &str = "A blind forger with n packets for one query";

/// Table of the prediction.
const TABLE: &str = "Seconds of the start that explain the IDs seen";

/// Enters figures, chart and claims.
pub(super) fn run(context: &mut Context) {
    predict(context);
    odds(context);
}

fn predict(context: &mut Context) {
    // 20 minutes in the short version, a day in the whole one; the start lies in the middle.
    let half = context.choose(600, 43_200);
    let mut real = Pools::new(START);
    (0..1000).for_each(|_| _ = real.next());
    let seen: Vec<u16> = (0..3).map(|_| real.next()).collect();
    let all = candidates(&seen, START - half..START + half);
    let mut found: Vec<u32> = Vec::new();
    for ids in 1..=seen.len() {
        found = all
            .iter()
            .filter(|candidate| candidate.explained >= ids)
            .map(|candidate| candidate.second)
            .collect();
        let (row, value) = (format!("{ids} consecutive IDs"), found.len() as f64);
        context.figure(Figure {
            samples: u64::from(2 * half),
            ..figure(TABLE, &row, &format!("of {} s", 2 * half), value, "", Origin::Virtual)
        });
    }
    let predicted = found.first().and_then(|second| continuation(&seen, *second));
    let share = predicted.map_or(0.0, |mut pools| share_predicted(&mut pools, &mut real, PREDICTED));
    context.figure(Figure {
        samples: u64::from(PREDICTED),
        ..figure(
            "Prediction after 3 IDs",
            "permuted IDs, next 1,000",
            "right",
            share * 100.0,
            "%",
            Origin::Virtual,
        )
    });
    context.claim(
        "Three consecutive permuted IDs reveal the second of the forwarder's start, and with it the next 1,000 IDs",
        "another second that explains the three IDs, or one wrong ID among the next 1,000",
        format!("seconds found: {found:?}; {:.1} % of the next {PREDICTED} IDs are right", share * 100.0),
        found == [START] && share == 1.0,
    );
}

/// Ports from which Sixfold sends: 1,024 to 65,535.
const PORTS: f64 = 64_512.0;

fn odds(context: &mut Context) {
    let (first, last) = (left_in_pool(0) as f64, left_in_pool(USED - 1) as f64);
    let cases = [
        ("TOTD, permuted, first ID of a pool", first, 1.0),
        ("TOTD, permuted, last ID of a pool", last, 1.0),
        ("random ID, fixed port", 65_536.0, 1.0),
        ("random ID and port (RFC 5452)", 65_536.0, PORTS),
    ];
    let packets = [1.0, 100.0, 1000.0, 10_000.0, 100_000.0];
    let mut lines = Vec::new();
    for (name, ids, ports) in cases {
        for n in packets {
            let value = 100.0 * forgery(n, ids, ports);
            context.figure(figure(ODDS, name, &format!("n = {n}"), value, "%", Origin::Arithmetic));
        }
        let point = |n: &f64| Point { x: *n, y: 100.0 * forgery(*n, ids, ports), interval: None };
        let points = packets.iter().map(point).collect();
        lines.push(ChartLine { name: name.to_owned(), origin: Origin::Arithmetic, points });
    }
    context.chart(Chart {
        id: "forgery".to_owned(),
        title: "Success of a blind forger".to_owned(),
        description: "With a fixed port a few thousand packets suffice; with a random port and a random ID 100,000 packets \
                      succeed in 2 of 100,000 cases."
            .to_owned(),
        x: ChartAxis { label: "forged replies for one query".to_owned(), logarithmic: true },
        y: ChartAxis { label: "probability (%)".to_owned(), logarithmic: true },
        lines,
    });
}
