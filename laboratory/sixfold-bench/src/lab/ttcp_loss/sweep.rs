//! The points of the experiment: failures of each policy and transport at each loss rate and delay, in virtual time.

use crate::lab::context::Context;
use core::time::Duration;
use papers::loss::retry::{POLICIES, RetryPolicy};
use papers::loss::tcp::{self, VARIANTS};
use papers::loss::{failures, lossy, udp};

/// Loss rates in each direction, percent.
pub const LOSSES: [u32; 11] = [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50];

/// Queries that begin at the same time, as in the paper.
pub const BATCH: u32 = 1000;

/// A delay of the paper, or one of its two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddedDelay {
    /// Delay in each direction, ms, on top of that of the Ethernet.
    pub one_way_ms: u64,
    /// The delay in words, for titles.
    pub words: &'static str,
    /// The figure of the paper; empty for the other reading of its delay.
    pub place: &'static str,
}

/// No delay, 500 ms in each direction, and 500 ms of round trip.
pub const DELAYS: [AddedDelay; 3] = [
    AddedDelay { one_way_ms: 0, words: "no delay", place: "Fig. 6" },
    AddedDelay { one_way_ms: 500, words: "500 ms in each direction", place: "Fig. 7" },
    AddedDelay { one_way_ms: 250, words: "500 ms of round trip", place: "" },
];

/// Failures of one policy or transport at one loss rate and delay.
#[derive(Clone, Debug, Default)]
pub struct LossPoint {
    /// Name of the policy or transport.
    pub name: &'static str,
    /// True for UDP.
    pub is_udp: bool,
    /// Loss rate in each direction, percent.
    pub loss_percent: u32,
    /// Index in [`DELAYS`].
    pub delay: usize,
    /// Queries.
    pub queries: u64,
    /// Queries without an answer in time.
    pub failures: u64,
    /// Batches without a failure.
    pub batches_without_failure: u64,
    /// Probability of a failure by arithmetic; none where there is no formula.
    pub arithmetic: Option<f64>,
    /// SYNs that passed the TAO test, and SYNs that did not.
    pub tao: (u64, u64),
}

impl LossPoint {
    /// Share of the queries that failed.
    pub fn share(&self) -> f64 {
        self.failures as f64 / self.queries.max(1) as f64
    }

    /// Share of the SYNs that passed the TAO test; none without SYNs.
    pub fn tao_share(&self) -> Option<f64> {
        let (passed, failed) = self.tao;
        (passed + failed > 0).then(|| passed as f64 / (passed + failed) as f64)
    }
}

/// Runs all points: first UDP, then TCP, by policy, delay and loss.
///
/// # Errors
///
/// The user stops the experiment.
pub fn run(context: &Context) -> Result<Vec<LossPoint>, String> {
    let mut points = Vec::new();
    for (policy, number) in POLICIES.iter().zip(1..) {
        context.progress(&format!("UDP, {}", policy.name))?;
        for (delay, loss_percent) in grid() {
            let seed = context.seed(number * 1000 + points.len() as u64);
            points.push(udp_point(policy, delay, loss_percent, context.choose(20, 100), seed));
        }
    }
    for (variant, number) in VARIANTS.iter().zip(1..) {
        context.progress(variant.name)?;
        for (delay, loss_percent) in grid() {
            let seed = context.seed(number * 1_000_000 + points.len() as u64);
            points.push(tcp_point(variant, delay, loss_percent, context.choose(2, 50), seed));
        }
    }
    Ok(points)
}

/// Delays and loss rates, each with each.
fn grid() -> impl Iterator<Item = (usize, u32)> {
    (0..DELAYS.len()).flat_map(|delay| LOSSES.into_iter().map(move |loss| (delay, loss)))
}

/// A point of UDP.
fn udp_point(policy: &RetryPolicy, delay: usize, loss_percent: u32, batches: u64, seed: u64) -> LossPoint {
    let loss = f64::from(loss_percent) / 100.0;
    let impairments = lossy(loss, Duration::from_millis(DELAYS[delay].one_way_ms));
    let mut point = LossPoint {
        name: policy.name,
        is_udp: true,
        loss_percent,
        delay,
        arithmetic: Some(policy.failure(loss, 2 * impairments.delay.mean)),
        ..LossPoint::default()
    };
    for batch in 0..batches {
        let queries = udp::run(policy, impairments, BATCH, seed.wrapping_add(batch << 32));
        point.count(failures(&queries));
    }
    point
}

/// A point of TCP.
fn tcp_point(
    variant: &tcp::TcpVariant,
    delay: usize,
    loss_percent: u32,
    batches: u64,
    seed: u64,
) -> LossPoint {
    let loss = f64::from(loss_percent) / 100.0;
    let impairments = lossy(loss, Duration::from_millis(DELAYS[delay].one_way_ms));
    // The formula is for queries that pass the TAO test: those of T/TCP, one at a time.
    let arithmetic = (variant.transactions && !variant.concurrent)
        .then(|| tcp::transaction_failure(loss, impairments.delay.mean, variant.first_rto, variant.patience));
    let mut point = LossPoint { name: variant.name, loss_percent, delay, arithmetic, ..LossPoint::default() };
    for batch in 0..batches {
        let run = tcp::run(variant, impairments, BATCH, seed.wrapping_add(batch << 32));
        point.count(failures(&run.queries));
        point.tao = (point.tao.0 + run.transactions, point.tao.1 + run.handshakes);
    }
    point
}

impl LossPoint {
    /// Adds a batch.
    fn count(&mut self, failures: u64) {
        self.queries += u64::from(BATCH);
        self.failures += failures;
        self.batches_without_failure += u64::from(failures == 0);
    }
}
