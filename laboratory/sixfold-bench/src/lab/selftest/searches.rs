//! Searches for a rate under transient failures, in virtual time: the plain binary search of the papers, and the search of
//! this laboratory.

use super::minima::TABLE_2;
use super::{FAILURES, LIMIT_QPS, REPETITIONS, percent_text};
use crate::lab::context::{Context, figure, percent, share};
use measure::experiment::{Chart, ChartAxis, ChartLine, Figure, Origin, Point};
use measure::run::Summary;
use papers::bisection::{
    HIGH_QPS, Server, one_failure_share, plain, repetitions, search_limits, steps_below,
};

/// A kind of search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The plain binary search of the papers.
    Plain,
    /// Repetitions of runs of this laboratory, every failure counted.
    Strict,
    /// Repetitions of runs, failures confirmed.
    Confirmed,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Plain => "plain binary search",
            Kind::Strict => "searches of a run, strict",
            Kind::Confirmed => "searches of a run, confirmed",
        }
    }
}

/// Many searches of one kind.
struct Sample {
    kind: Kind,
    failure: f64,
    /// Results in queries per second.
    results: Vec<f64>,
    /// Trials of all searches.
    trials: u64,
    /// Searches with exactly one transient failure, and those of them that ended one below its rate.
    single: (u64, u64),
}

/// All parts.
///
/// # Errors
///
/// The user stops the experiment.
pub(super) fn run(context: &mut Context) -> Result<(), String> {
    let searches = context.choose(4_000, 40_000);
    let mut samples = Vec::new();
    for (part, failure) in FAILURES.into_iter().enumerate() {
        context.progress(&format!("searches with {} of transient failures", percent_text(failure)))?;
        samples.push(plain_sample(failure, searches, context.seed(part as u64)));
        samples.extend(run_samples(failure, searches, context.seed(part as u64)));
    }
    table_of_results(context, &samples);
    table_of_steps(context, &samples);
    claims(context, &samples);
    context.chart(distribution(&samples));
    Ok(())
}

/// Plain searches.
fn plain_sample(failure: f64, searches: usize, seed: u64) -> Sample {
    let mut sample = Sample::new(Kind::Plain, failure);
    let mut server = Server::new(LIMIT_QPS, failure, seed);
    for _ in 0..searches {
        server.transient.clear();
        let found = plain(HIGH_QPS, |rate| server.trial(rate));
        sample.add(found.passed_qps as f64, found.trials);
        if let [failed] = server.transient[..] {
            sample.single.0 += 1;
            sample.single.1 += u64::from(found.passed_qps as f64 == failed - 1.0);
        }
    }
    sample
}

/// Searches of this laboratory, in runs of 20 repetitions.
fn run_samples(failure: f64, searches: usize, seed: u64) -> [Sample; 2] {
    let [mut strict, mut confirmed] = [Kind::Strict, Kind::Confirmed].map(|kind| Sample::new(kind, failure));
    let mut server = Server::new(LIMIT_QPS, failure, seed);
    for _ in 0..searches / REPETITIONS {
        for found in repetitions(search_limits(), REPETITIONS, &mut server) {
            strict.add(found.strict.rate_qps, found.strict.trials);
            confirmed.add(found.confirmed.rate_qps, found.confirmed.trials);
        }
    }
    [strict, confirmed]
}

impl Sample {
    fn new(kind: Kind, failure: f64) -> Sample {
        Sample { kind, failure, results: Vec::new(), trials: 0, single: (0, 0) }
    }

    /// Adds a search.
    fn add(&mut self, rate_qps: f64, trials: u32) {
        self.results.push(rate_qps);
        self.trials += u64::from(trials);
    }
}

/// Medians, percentiles, minima and the share of results near the limit.
fn table_of_results(context: &mut Context, samples: &[Sample]) {
    let table = "Results of a search on a server with a limit of 8,500/s";
    for sample in samples {
        let row = format!("{} of trials fail: {}", percent_text(sample.failure), sample.kind.name());
        let (summary, count) = (Summary::of(&sample.results), sample.results.len() as u64);
        let near = sample.results.iter().filter(|it| **it >= 0.99 * LIMIT_QPS).count() as u64;
        let (near, interval) = percent((near, count));
        for (column, value, unit, interval) in [
            ("median", summary.median, "1/s", None),
            ("1st percentile", summary.p1, "1/s", None),
            ("minimum", summary.min, "1/s", None),
            ("standard deviation", summary.deviation, "1/s", None),
            ("at most 1 % below the limit", near, "%", interval),
            ("trials of a search", sample.trials as f64 / count as f64, "", None),
        ] {
            context.figure(Figure {
                samples: count,
                interval,
                ..figure(table, &row, column, value, unit, Origin::Virtual)
            });
        }
    }
}

/// Shares of plain searches that end just below each step, beside the computed ones.
fn table_of_steps(context: &mut Context, samples: &[Sample]) {
    let table = "Plain binary search: share of searches that end one below a rate that they tried";
    for sample in samples.iter().filter(|it| it.kind == Kind::Plain && it.failure >= 0.01) {
        let count = sample.results.len() as u64;
        for (at, step) in steps_below(LIMIT_QPS, HIGH_QPS).into_iter().enumerate() {
            let ended = sample.results.iter().filter(|it| **it == (step - 1) as f64).count() as u64;
            let row = format!("{} = {step} - 1", step - 1);
            let column = format!("{} of trials fail", percent_text(sample.failure));
            context.figure(share(table, &row, &column, (ended, count), Origin::Virtual));
            let computed = 100.0 * one_failure_share(LIMIT_QPS, HIGH_QPS, sample.failure, at);
            let column = format!("{column}, computed");
            context.figure(figure(table, &row, &column, computed, "%", Origin::Arithmetic));
        }
    }
}

fn claims(context: &mut Context, samples: &[Sample]) {
    let of = |kind: Kind, failure: f64| {
        samples.iter().find(|sample| sample.kind == kind && sample.failure == failure)
    };
    let p1 = |kind, failure| of(kind, failure).map_or(0.0, |sample| Summary::of(&sample.results).p1);
    let single = samples.iter().filter(|it| it.kind == Kind::Plain).map(|it| it.single);
    let (one, exact) = single.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    context.claim(
        "A plain search with exactly one transient failure, at the rate F, ends at F - 1",
        "a search with one transient failure that ends at another rate",
        format!("{exact} of {one} searches"),
        one > 0 && exact == one,
    );
    let plain = p1(Kind::Plain, 0.02);
    context.claim(
        "With 2 % of transient failures the 1st percentile of the plain search is 8,191/s or less: 3.6 % below the limit",
        "a 1st percentile above 8,191/s: the plain search forgives early failures",
        format!("{plain}/s"),
        plain <= 8191.0,
    );
    let confirmed = p1(Kind::Confirmed, 0.01);
    context.claim(
        "With 1 % of transient failures the 1st percentile of the confirmed search is at most 1 % below the limit",
        "a 1st percentile below 8,415/s: a confirmed search loses results to single failures, too",
        format!("{confirmed}/s, {:.2} % below", 100.0 * (1.0 - confirmed / LIMIT_QPS)),
        confirmed >= 0.99 * LIMIT_QPS,
    );
}

/// Cumulative distribution of the results.
fn distribution(samples: &[Sample]) -> Chart {
    let shown = |it: &&Sample| {
        it.kind == Kind::Plain && it.failure > 0.0 || it.kind == Kind::Confirmed && it.failure == 0.05
    };
    let mut lines: Vec<ChartLine> = samples.iter().filter(shown).map(cumulative).collect();
    let mut minima: Vec<u64> = TABLE_2[6..].iter().map(|(_, minimum, _)| *minimum).collect();
    minima.sort_unstable();
    lines.push(ChartLine {
        name: "the paper's minima of 20 results, 7 to 12 threads".to_owned(),
        origin: Origin::Paper,
        points: minima
            .into_iter()
            .map(|it| Point { x: it as f64, y: 100.0 / REPETITIONS as f64, interval: None })
            .collect(),
    });
    Chart {
        id: "distribution".to_owned(),
        title: "Share of searches that end at a rate or below it".to_owned(),
        description: "The results of the plain binary search jump at 8191, 8447 and 8479, one below the rates that it tries. The \
                      confirmed search stays at the limit of 8,500 queries/s. The minimum of 20 results is drawn at 5 %."
            .to_owned(),
        x: ChartAxis { label: "result (queries/s)".to_owned(), logarithmic: false },
        y: ChartAxis { label: "searches at or below (%)".to_owned(), logarithmic: true },
        lines,
    }
}

/// The steps of a distribution: two points for each jump. Shares below 0.1 % are left out: they are single searches.
fn cumulative(sample: &Sample) -> ChartLine {
    let results = measure::statistics::sorted(&sample.results);
    let count = results.len() as f64;
    let mut points: Vec<Point> = Vec::new();
    let mut below = 0.0;
    for group in results.chunk_by(|a, b| a == b) {
        let share = below + 100.0 * group.len() as f64 / count;
        if share >= 0.1 {
            let floor = if below >= 0.1 { below } else { 0.1 };
            points.push(Point { x: group[0], y: floor, interval: None });
            points.push(Point { x: group[0], y: share, interval: None });
        }
        below = share;
    }
    ChartLine {
        name: format!("{}, {} fail", sample.kind.name(), percent_text(sample.failure)),
        origin: Origin::Virtual,
        points,
    }
}
