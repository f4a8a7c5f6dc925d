//! `ttcp-completion`: the time that successful queries take over UDP and T/TCP on a link that loses packets (the paper on T/TCP
//! for DNS, figures 8 and 9), with 500 ms of delay in each direction.

use super::context::{Context, figure, share};
use core::time::Duration;
use measure::experiment::{Chart, ChartAxis, ChartLine, Figure, Origin, Point, binomial_range};
use papers::loss::retry::{
    DJBDNS, GLIBC, POLICIES, SIXFOLD, SYSTEMD, TCP_TIMER, UNBOUND, share_within_retries,
};
use papers::loss::tcp::{self, TTCP, TTCP_FREEBSD, VARIANTS};
use papers::loss::{Completed, lossy, udp};

/// Loss rates in each direction, percent.
const LOSSES: [u32; 11] = [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50];

/// Loss rates of the charts by loss, percent.
const CHART_LOSSES: [u32; 6] = [0, 10, 20, 30, 40, 50];

/// Loss rate of the chart that compares policies and transports, percent.
const COMPARED_LOSS: u32 = 30;

/// Delay in each direction.
const DELAY: Duration = Duration::from_millis(500);

/// Queries that begin at the same time, as in the paper.
const BATCH: u32 = 100;

/// Smallest step of a curve, percentage points: smaller ones are drawn together, so a curve has at most 400 points.
const SMALLEST_STEP: f64 = 0.5;

/// Probability that a right program fails a claim about all points by chance, whatever the seed: a claim that does not hold
/// fails the experiment.
const FALSE_ALARM: f64 = 0.001;

/// Queries of one policy or transport at one loss rate.
struct Series {
    name: &'static str,
    loss_percent: u32,
    /// Number of queries.
    queries: u64,
    /// Successful queries, the fastest first.
    completed: Vec<Completed>,
}

impl Series {
    /// Share of the successful queries with at most this number of retransmissions: hits and trials.
    fn within_retries(&self, retries: u32) -> (u64, u64) {
        let hits = self.completed.iter().filter(|query| query.retries <= retries).count();
        (hits as u64, self.completed.len() as u64)
    }

    /// The time within which this share of the successful queries completed, s.
    fn quantile_s(&self, share: f64) -> Option<f64> {
        let rank = (share * self.completed.len() as f64).ceil() as usize;
        self.completed.get(rank.max(1) - 1).map(|query| query.time.as_secs_f64())
    }
}

/// Runs the experiment.
///
/// # Errors
///
/// The user stops the experiment.
pub fn run(context: &mut Context) -> Result<(), String> {
    let series = sweep(context)?;
    add_retry_classes(context, &series);
    add_quantiles(context, &series);
    add_charts(context, &series);
    add_claims(context, &series);
    Ok(())
}

/// Runs all queries.
fn sweep(context: &Context) -> Result<Vec<Series>, String> {
    let mut all = Vec::new();
    let (udp_batches, tcp_batches) = context.choose((200, 20), (1000, 500));
    for policy in &POLICIES {
        context.progress(&format!("UDP, {}", policy.name))?;
        for loss in LOSSES {
            let seed = context.seed(all.len() as u64);
            all.push(series(policy.name, loss, udp_batches, seed, |impairments, seed| {
                udp::run(policy, impairments, BATCH, seed)
            }));
        }
    }
    for variant in &VARIANTS {
        context.progress(variant.name)?;
        for loss in LOSSES {
            let seed = context.seed(all.len() as u64);
            all.push(series(variant.name, loss, tcp_batches, seed, |impairments, seed| {
                tcp::run(variant, impairments, BATCH, seed).queries
            }));
        }
    }
    Ok(all)
}

/// Runs the batches of one series.
fn series(
    name: &'static str,
    loss_percent: u32,
    batches: u64,
    seed: u64,
    run: impl Fn(netem::Impairments, u64) -> Vec<Option<Completed>>,
) -> Series {
    let impairments = lossy(f64::from(loss_percent) / 100.0, DELAY);
    let mut completed: Vec<Completed> =
        (0..batches).flat_map(|batch| run(impairments, seed.wrapping_add(batch << 32))).flatten().collect();
    completed.sort_by_key(|query| query.time);
    Series { name, loss_percent, queries: batches * u64::from(BATCH), completed }
}

/// The series of a policy or transport at a loss rate.
fn find<'a>(all: &'a [Series], name: &str, loss: u32) -> Option<&'a Series> {
    all.iter().find(|series| series.name == name && series.loss_percent == loss)
}

/// Figure 8 as tables: the share of each retry class of djbdns, and its time.
fn add_retry_classes(context: &mut Context, all: &[Series]) {
    for series in all.iter().filter(|series| series.name == DJBDNS.name) {
        let row = format!("{} %", series.loss_percent);
        let loss = f64::from(series.loss_percent) / 100.0;
        let table = "Successful queries of djbdns by retransmissions";
        for retries in 0..3 {
            let of_class: Vec<&Completed> =
                series.completed.iter().filter(|query| query.retries == retries).collect();
            let (hits, trials) = (of_class.len() as u64, series.completed.len() as u64);
            context.figure(share(
                table,
                &row,
                &format!("{retries} retries"),
                (hits, trials),
                Origin::Virtual,
            ));
            if let Some(query) = of_class.get(of_class.len() / 2) {
                context.figure(Figure {
                    samples: hits,
                    ..figure(
                        "Median time of the queries of djbdns by retransmissions",
                        &row,
                        &format!("{retries} retries"),
                        query.time.as_secs_f64(),
                        "s",
                        Origin::Virtual,
                    )
                });
            }
        }
        let (hits, trials) = series.within_retries(1);
        context.figure(share(table, &row, "at most 1 retry", (hits, trials), Origin::Virtual));
        let arithmetic = 100.0 * share_within_retries(loss, 3, 1);
        context.figure(figure(table, &row, "at most 1, arithmetic", arithmetic, "%", Origin::Arithmetic));
    }
}

/// Quantiles of the time of all policies and transports.
fn add_quantiles(context: &mut Context, all: &[Series]) {
    for (share, words) in [(0.5, "Median"), (0.9, "90th percentile"), (0.99, "99th percentile")] {
        let table = format!("{words} of the time of successful queries");
        for series in all {
            let Some(value) = series.quantile_s(share) else { continue };
            let row = format!("{} %", series.loss_percent);
            let samples = series.completed.len() as u64;
            let interval = quantile_interval(series, share);
            context.figure(Figure {
                samples,
                interval,
                ..figure(&table, &row, series.name, value, "s", Origin::Virtual)
            });
        }
    }
}

/// 95 % interval of a quantile: the order statistics at the ends of the binomial range.
fn quantile_interval(series: &Series, share: f64) -> Option<(f64, f64)> {
    let trials = series.completed.len() as u64;
    let (low, high) = binomial_range(trials, share, 0.05);
    let at = |rank: u64| series.completed.get(rank as usize).map(|query| query.time.as_secs_f64());
    Some((at(low.saturating_sub(1))?, at(high.min(trials.saturating_sub(1)))?))
}

/// Charts: figures 8 and 9, and all policies at one loss rate.
fn add_charts(context: &mut Context, all: &[Series]) {
    for (id, name, figure, words) in [
        (
            "udp",
            DJBDNS.name,
            "Fig. 8",
            "djbdns over UDP: each step is a send, answered one round trip of 1 s later: after 1, 4 and 15 s",
        ),
        (
            "ttcp",
            TTCP_FREEBSD.name,
            "Fig. 9",
            "T/TCP with a first timer of 3 s: both ends repeat what is lost, so there are more and smaller steps",
        ),
    ] {
        let lines = CHART_LOSSES
            .into_iter()
            .filter_map(|loss| find(all, name, loss))
            .map(|series| curve(series, &format!("{} %", series.loss_percent), series.completed.len()))
            .collect();
        context.chart(Chart {
            id: format!("completion-{id}"),
            title: format!("Successful queries by time, {name} ({figure})"),
            description: format!(
                "Share of the successful queries that completed within a time, by loss. {words}."
            ),
            x: time_axis(),
            y: ChartAxis { label: "successful queries (%)".to_owned(), logarithmic: false },
            lines,
        });
    }
    let names = [DJBDNS, GLIBC, SYSTEMD, UNBOUND, SIXFOLD, TCP_TIMER].map(|policy| policy.name);
    let lines = names
        .into_iter()
        .chain([TTCP_FREEBSD.name, TTCP.name])
        .filter_map(|name| find(all, name, COMPARED_LOSS))
        .map(|series| curve(series, series.name, series.queries as usize))
        .collect();
    context.chart(Chart {
        id: "completion-policies".to_owned(),
        title: format!("All queries by time, {COMPARED_LOSS} % loss in each direction"),
        description: "Share of all queries that completed within a time. A curve that ends below 100 % leaves failed queries. \
                      Sixfold gives up after 1.75 s and glibc after 10 s; systemd-resolved and T/TCP reach almost all queries."
            .to_owned(),
        x: time_axis(),
        y: ChartAxis { label: "queries (%)".to_owned(), logarithmic: false },
        lines,
    });
}

/// The cumulative share over the time, of this number of queries, as steps.
fn curve(series: &Series, name: &str, of: usize) -> ChartLine {
    let mut points = Vec::new();
    let (mut count, mut drawn) = (0, 0.0);
    for group in series.completed.chunk_by(|one, other| one.time == other.time) {
        count += group.len();
        let y = 100.0 * count as f64 / of.max(1) as f64;
        if y - drawn >= SMALLEST_STEP || count == series.completed.len() {
            let x = group[0].time.as_secs_f64();
            points.extend([drawn, y].map(|y| Point { x, y, interval: None }));
            drawn = y;
        }
    }
    ChartLine { name: name.to_owned(), origin: Origin::Virtual, points }
}

/// The horizontal axis.
fn time_axis() -> ChartAxis {
    ChartAxis { label: "time (s)".to_owned(), logarithmic: true }
}

/// Adds all claims.
fn add_claims(context: &mut Context, all: &[Series]) {
    let djbdns: Vec<&Series> = all.iter().filter(|series| series.name == DJBDNS.name).collect();
    let (mut outside, mut outside_95) = (0, 0);
    let mut shares = Vec::new();
    for series in &djbdns {
        let (hits, trials) = series.within_retries(1);
        let expected = share_within_retries(f64::from(series.loss_percent) / 100.0, 3, 1);
        let is_outside = |rare: f64| {
            let (low, high) = binomial_range(trials, expected, rare / djbdns.len() as f64);
            u32::from(hits < low || hits > high)
        };
        outside += is_outside(FALSE_ALARM);
        outside_95 += is_outside(0.05);
        shares.push((series.loss_percent, hits as f64 / trials.max(1) as f64));
    }
    let text = |from: u32, to: u32| {
        let words: Vec<String> = shares
            .iter()
            .filter(|(loss, _)| (from..=to).contains(loss))
            .map(|(loss, share)| format!("{:.1} % at {loss} %", 100.0 * share))
            .collect();
        words.join(", ")
    };
    context.claim(
        "Check of the random numbers and of the link's code, which draw from the same formula: at every loss rate, the share of \
         djbdns' successful queries with at most 1 retransmission lies in the interval of its arithmetic, (1 - q^2) / (1 - q^3); \
         the intervals hold together with 99.9 % (Bonferroni)",
        "a share outside its interval: losses that are not independent, or of another rate",
        format!(
            "{outside} of {} outside, {outside_95} outside the intervals that hold together with 95 %",
            djbdns.len()
        ),
        outside == 0,
    );
    context.claim(
        "More than 90 % of djbdns' successful queries complete with at most 1 retransmission up to 20 % loss, as in the paper",
        "a share of 90 % or less at 20 % loss or below",
        text(0, 20),
        shares.iter().all(|&(loss, share)| loss > 20 || share > 0.9),
    );
    context.claim(
        "From 25 % loss in each direction on it is less than 90 %: the arithmetic reaches 90 % at 22 % loss",
        "a share of 90 % or more at 25 % loss or above, as the paper's sentence has it",
        text(25, 50),
        shares.iter().all(|&(loss, share)| loss <= 20 || share < 0.9),
    );
    add_time_claims(context, all);
}

/// Claims about the time.
fn add_time_claims(context: &mut Context, all: &[Series]) {
    let quantile = |name, loss, share| {
        find(all, name, loss).and_then(|series: &Series| series.quantile_s(share)).unwrap_or(f64::NAN)
    };
    let (udp, ttcp) = (quantile(DJBDNS.name, 20, 0.5), quantile(TTCP_FREEBSD.name, 20, 0.5));
    context.claim(
        "At 20 % loss, the median query over UDP and over T/TCP takes one round trip",
        "a median that holds a retransmission or a handshake: 2 s or more",
        format!("{udp:.4} s and {ttcp:.4} s"),
        [udp, ttcp].iter().all(|&time| (1.0..1.01).contains(&time)),
    );
}
