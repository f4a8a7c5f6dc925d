//! The minima of 20 searches, as in the paper's Table 2, and the arithmetic of the paper's own minima.

use super::{FAILURES, LIMIT_QPS, REPETITIONS, percent_text};
use crate::lab::context::{Context, figure, percent, share};
use measure::experiment::{Chart, ChartAxis, ChartLine, Figure, Origin, Point, median_interval};
use measure::run::Summary;
use papers::bisection::{HIGH_QPS, Server, chance_of_powers, plain, power_of_two};

/// Medians, minima and maxima of the paper's Table 2, by threads from 1, in queries per second.
pub(super) const TABLE_2: [(f64, u64, u64); 12] = [
    (3132.0, 2431, 3141),
    (4747.0, 4095, 4773),
    (5885.0, 5563, 5963),
    (6849.0, 6141, 7273),
    (7490.0, 7391, 7937),
    (7940.0, 7167, 8453),
    (8249.0, 8017, 8833),
    (8542.0, 8191, 9089),
    (8446.0, 8189, 9217),
    (8470.0, 7871, 8833),
    (8496.0, 7663, 8737),
    (8433.0, 6975, 8711),
];

/// Minima of 20 plain searches, on servers with a limit of 8,500/s and with those of the paper's medians.
///
/// # Errors
///
/// The user stops the experiment.
pub(super) fn run(context: &mut Context) -> Result<(), String> {
    context.progress("minima of 20 searches")?;
    let tables = context.choose(200, 2_000);
    let mut lines = Vec::new();
    for (part, failure) in FAILURES.into_iter().enumerate().skip(1) {
        let mut seed = context.seed(100 + part as u64);
        let mut minimum = |limit_qps: f64| {
            seed = seed.wrapping_add(1);
            let mut server = Server::new(limit_qps, failure, seed);
            let results = (0..REPETITIONS).map(|_| plain(HIGH_QPS, |rate| server.trial(rate)).last_qps);
            results.min().unwrap_or(0)
        };
        let ours: Vec<f64> = (0..10 * tables).map(|_| minimum(LIMIT_QPS) as f64).collect();
        let all: Vec<u64> =
            (0..tables).flat_map(|_| TABLE_2).map(|(limit_qps, _, _)| minimum(limit_qps)).collect();
        figures(context, failure, &ours);
        if failure >= 0.01 {
            lines.push(powers(format!("{} of trials fail", percent_text(failure)), Origin::Virtual, &all));
        }
    }
    lines.push(ChartLine {
        name: "by chance".to_owned(),
        origin: Origin::Arithmetic,
        points: (1..=13)
            .map(|m| Point { x: f64::from(m), y: 100.0 * 0.5f64.powi(m), interval: None })
            .collect(),
    });
    let paper: Vec<u64> = TABLE_2.iter().map(|(_, minimum, _)| *minimum).collect();
    lines.push(powers("the paper's 12 minima".to_owned(), Origin::Paper, &paper));
    context.chart(chart(lines));
    extremes_of_the_paper(context);
    Ok(())
}

/// Figures about the minima on the server with a limit of 8,500/s.
fn figures(context: &mut Context, failure: f64, minima: &[f64]) {
    let table = "Minimum of 20 plain searches on a server with a limit of 8,500/s";
    let (row, samples) = (format!("{} of trials fail", percent_text(failure)), minima.len() as u64);
    context.figure(Figure {
        interval: median_interval(minima, context.seed(200)),
        samples,
        paper: Some(8191.0),
        place: "Table 2, 8 threads".to_owned(),
        ..figure(table, &row, "median of the minima", Summary::of(minima).median, "1/s", Origin::Virtual)
    });
    let low = minima.iter().filter(|it| **it <= 8191.0).count() as u64;
    context.figure(share(table, &row, "minima of 8,191/s or less", (low, samples), Origin::Virtual));
}

/// Histogram of the powers of two.
fn chart(lines: Vec<ChartLine>) -> Chart {
    Chart {
        id: "powers".to_owned(),
        title: "Minima of 20 plain searches by the power of two in minimum + 1".to_owned(),
        description: "A minimum k * 2^m - 1 with a large m is the trace of a transient failure in an early step. By chance half \
                      of the odd numbers have m = 1, a quarter m = 2. The limits of the model are the paper's 12 medians."
            .to_owned(),
        x: ChartAxis { label: "largest m for which 2^m divides the minimum + 1".to_owned(), logarithmic: false },
        y: ChartAxis { label: "share of the minima (%)".to_owned(), logarithmic: false },
        lines,
    }
}

/// Shares of the powers of two in some minima, each plus 1.
fn powers(name: String, origin: Origin, minima: &[u64]) -> ChartLine {
    let share = |m: u32| {
        let count = minima.iter().filter(|it| power_of_two(**it) == m).count() as u64;
        let (y, interval) = percent((count, minima.len() as u64));
        Point { x: f64::from(m), y, interval: interval.filter(|_| origin == Origin::Virtual) }
    };
    ChartLine { name, origin, points: (1..=13).map(share).collect() }
}

/// Arithmetic on the extremes that the paper prints.
fn extremes_of_the_paper(context: &mut Context) {
    let table = "Minima of the paper's Table 2: largest m with minimum = k * 2^m - 1";
    for (at, (_, minimum, _)) in TABLE_2.iter().enumerate() {
        let row = format!("{minimum}, with {} {}", at + 1, if at == 0 { "thread" } else { "threads" });
        let power = f64::from(power_of_two(*minimum));
        context.figure(figure(table, &row, "m", power, "", Origin::Arithmetic));
    }
    let sum: u32 = TABLE_2.iter().map(|(_, minimum, _)| power_of_two(*minimum)).sum();
    let chance = chance_of_powers(TABLE_2.len() as u32, sum);
    context.figure(figure(table, "sum (by chance: 24)", "m", f64::from(sum), "", Origin::Arithmetic));
    context.claim(
        "The minima of the paper's Table 2 are bisection points minus 1 far more often than by chance (less than 1 in a million)",
        "printed minima whose powers of two add up to a sum that chance reaches in 1 of a million tables or more",
        format!("the powers of two add up to {sum}, 24 by chance; probability {chance:.1e}"),
        chance < 1e-6,
    );
    let odd = TABLE_2.iter().flat_map(|(_, low, high)| [low, high]).filter(|it| **it % 2 == 1).count();
    context.claim(
        "All 24 extremes of the paper's Table 2 are odd, so they are the last rates that a search with the ends 0 and 2^14 \
         tried, not the highest that passed (by chance: 1 in 2^24)",
        "one even minimum or maximum in the printed table",
        format!("{odd} of {} are odd", 2 * TABLE_2.len()),
        odd == 2 * TABLE_2.len(),
    );
}
