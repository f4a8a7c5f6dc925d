//! Sentences that the experiment tests on its points.

use super::presentation::at;
use super::sweep::{BATCH, DELAYS, LOSSES, LossPoint};
use crate::lab::context::Context;
use core::fmt;
use measure::experiment::binomial_range;
use papers::loss::retry::{DJBDNS, TCP_TIMER, TCP_TIMER_1122};
use papers::loss::tcp::{TTCP, TTCP_10S, TTCP_20S, TTCP_ALONE, TTCP_FREEBSD};

/// Loss rates from which the paper's sentence about twice as many failures holds, percent.
const HIGH_LOSS: u32 = 30;

/// Probability that a right program fails a claim about all points by chance, whatever the seed: a claim that does not hold
/// fails the experiment.
const FALSE_ALARM: f64 = 0.001;

/// Adds all claims.
pub fn add(context: &mut Context, points: &[LossPoint]) {
    every_point_agrees(context, points);
    no_failures_at_low_loss(context, points);
    udp_fails_more_often(context, points);
    the_schedule_matters_more(context, points);
    the_client_gives_up(context, points);
    concurrent_queries_fail_the_tao_test(context, points);
}

/// The points of UDP, and of T/TCP one query at a time, against their arithmetic. Those of UDP are drawn by this arithmetic, so they test
/// the draws; those of T/TCP come from its state machine.
fn every_point_agrees(context: &mut Context, points: &[LossPoint]) {
    let udp = Agreement::of(points.iter().filter(|point| point.is_udp));
    context.claim(
        format!(
            "Check of the random numbers and of the link's code, not of a program: each of the {} points of UDP lies in the interval of \
             the formula that it is drawn by, (1 - (1 - p)^2)^k; the intervals hold together with 99.9 % (Bonferroni)",
            udp.points
        ),
        "a point outside its interval: losses that are not independent, or of another rate",
        udp.to_string(),
        udp.outside_together == 0,
    );
    let is_alone = |point: &&LossPoint| point.name == TTCP_ALONE.name && point.loss_percent >= HIGH_LOSS;
    let alone = Agreement::of(points.iter().filter(is_alone));
    context.claim(
        "At 30 % loss or more, each point of T/TCP with one query at a time lies in the interval of its arithmetic, in which \
         client and server each repeat what is lost (together 99.9 %)",
        "a point outside its interval: the stack repeats at other times than its timers say, or not at all",
        alone.to_string(),
        alone.outside_together == 0,
    );
}

/// Agreement of points with their arithmetic.
struct Agreement {
    /// Points with a formula.
    points: usize,
    /// Points whose failures are up to chance: a probability of 0 leaves no room for it.
    uncertain: usize,
    /// Points outside the intervals that hold together with 99.9 %.
    outside_together: usize,
    /// Points outside the intervals that hold together with 95 %.
    outside_together_95: usize,
    /// Points outside their own 95 % interval.
    outside_single: usize,
}

impl Agreement {
    /// Compares points with their arithmetic.
    fn of<'a>(points: impl Iterator<Item = &'a LossPoint>) -> Agreement {
        let points: Vec<(&LossPoint, f64)> =
            points.filter_map(|point| Some((point, point.arithmetic?))).collect();
        let uncertain = points.iter().filter(|(_, probability)| *probability > 0.0).count();
        let outside = |rare: f64| {
            let is_outside = |(point, probability): &&(&LossPoint, f64)| {
                let (low, high) = binomial_range(point.queries, *probability, rare);
                !(low..=high).contains(&point.failures)
            };
            points.iter().filter(is_outside).count()
        };
        Agreement {
            points: points.len(),
            uncertain,
            outside_together: outside(FALSE_ALARM / uncertain.max(1) as f64),
            outside_together_95: outside(0.05 / uncertain.max(1) as f64),
            outside_single: outside(0.05),
        }
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} points outside, {} outside the intervals that hold together with 95 %; {} outside their single 95 % \
             interval, where chance puts at most {:.1}",
            self.outside_together,
            self.points,
            self.outside_together_95,
            self.outside_single,
            0.05 * self.uncertain as f64
        )
    }
}

/// The paper's "no failures up to 5 %".
fn no_failures_at_low_loss(context: &mut Context, points: &[LossPoint]) {
    let low =
        |name: &'static str| points.iter().filter(move |point| point.name == name && point.loss_percent == 5);
    let probability = DJBDNS.failure(0.05, core::time::Duration::ZERO);
    let (queries, failed, batches, clean) = low(DJBDNS.name).fold((0, 0, 0, 0), |sum, point| {
        let batches = point.queries / u64::from(BATCH);
        (
            sum.0 + point.queries,
            sum.1 + point.failures,
            sum.2 + batches,
            sum.3 + point.batches_without_failure,
        )
    });
    let clean_probability = (1.0 - probability).powi(BATCH as i32);
    let in_range = |hits, trials, probability| {
        let (low, high) = binomial_range(trials, probability, FALSE_ALARM);
        (low..=high).contains(&hits)
    };
    context.claim(
        format!(
            "At 5 % loss, {:.2} of 1,000 queries of djbdns fail, so a run of 1,000 queries as in the paper sees no failure \
             with a probability of {:.0} % (both within their 99.9 % intervals)",
            1000.0 * probability,
            100.0 * clean_probability
        ),
        "so many or so few failures, or batches without one, that chance has them in 1 of 1,000 runs",
        format!("{failed} of {queries} queries failed; {clean} of {batches} batches of 1,000 had no failure"),
        in_range(failed, queries, probability) && in_range(clean, batches, clean_probability),
    );
    let failed = |name| {
        let low = points.iter().filter(|point| point.name == name && point.loss_percent <= 5);
        low.map(|point| (point.failures, point.queries)).fold((0, 0), add_pairs)
    };
    let [(freebsd, queries), (modern, _)] = [TTCP_FREEBSD.name, TTCP.name].map(failed);
    context.claim(
        "Up to 5 % loss, at most 1 of 10,000 queries over T/TCP fails within 60 s, with a first timer of 3 s and of 1 s",
        "two failures in 10,000 queries: the stack gives up segments that it should repeat",
        format!("at 0 and 5 % loss {freebsd} of {queries} (3 s) and {modern} of {queries} (1 s) failed"),
        10_000 * freebsd.max(modern) <= queries && queries > 0,
    );
}

/// Sum of two pairs.
fn add_pairs(sum: (u64, u64), pair: (u64, u64)) -> (u64, u64) {
    (sum.0 + pair.0, sum.1 + pair.1)
}

/// Ratios of the shares of two names at high loss, for the two delays of the paper, as numbers and as text.
fn ratios(points: &[LossPoint], more: &str, fewer: &str) -> (Vec<f64>, String) {
    let mut ratios = Vec::new();
    let mut texts = Vec::new();
    for (number, delay) in DELAYS.iter().enumerate().filter(|(_, delay)| !delay.place.is_empty()) {
        let mut words = Vec::new();
        for loss in LOSSES.into_iter().filter(|&loss| loss >= HIGH_LOSS) {
            let share = |name| at(points, name, number, loss).map_or(f64::NAN, LossPoint::share);
            let ratio = share(more) / share(fewer);
            words.push(format!("{ratio:.1} at {loss} %"));
            ratios.push(ratio);
        }
        texts.push(format!("{}: {}", delay.words, words.join(", ")));
    }
    (ratios, texts.join("; "))
}

/// The paper's "about twice", for a client that waits for 60 s.
fn udp_fails_more_often(context: &mut Context, points: &[LossPoint]) {
    let (values, text) = ratios(points, DJBDNS.name, TTCP_FREEBSD.name);
    context.claim(
        "At 30 % loss or more, djbdns over UDP fails at least twice as often as T/TCP with a first timer of 3 s within 60 s",
        "a ratio below 2 at one loss rate",
        text,
        values.iter().all(|&ratio| ratio >= 2.0),
    );
}

/// The control: the timer of TCP over UDP.
fn the_schedule_matters_more(context: &mut Context, points: &[LossPoint]) {
    let (values, text) = ratios(points, DJBDNS.name, TCP_TIMER.name);
    context.claim(
        "UDP with the timer of TCP (1 s, doubled) fails less than half as often as djbdns at 30 % loss or more, so the retry \
         schedule alone makes more than the paper's factor of two",
        "a ratio of 2 or less at one loss rate: the transport is needed for the paper's factor",
        text,
        values.iter().all(|&ratio| ratio > 2.0),
    );
    let (values, text) = ratios(points, TCP_TIMER_1122.name, TTCP_FREEBSD.name);
    context.claim(
        "T/TCP fails less often than UDP with the same timer (3 s), because client and server repeat query and answer each \
         on their own: over UDP a lost answer costs another query",
        "a ratio of 1 or less at one loss rate",
        text,
        values.iter().all(|&ratio| ratio > 1.0),
    );
}

/// The patience of the client.
fn the_client_gives_up(context: &mut Context, points: &[LossPoint]) {
    let (values, text) = ratios(points, DJBDNS.name, TTCP_10S.name);
    context.claim(
        "If the client gives up after 10 s, as djbdns does with a connection, T/TCP with a timer of 3 s is no better than UDP: \
         at 30 % loss or more djbdns over UDP fails less than 1.3 times as often",
        "a ratio of 1.3 or more at one loss rate: T/TCP helps a client with little patience, too",
        text,
        values.iter().all(|&ratio| ratio < 1.3),
    );
    let (values, text) = ratios(points, DJBDNS.name, TTCP_20S.name);
    context.claim(
        "If the client gives up after 20 s, djbdns over UDP fails 1.1 to 2.5 times as often as T/TCP at 30 % loss or more: the \
         size of the paper's \"about twice\"",
        "a ratio outside 1.1 to 2.5 at one loss rate",
        text,
        values.iter().all(|&ratio| (1.1..2.5).contains(&ratio)),
    );
}

/// The TAO test of concurrent queries.
fn concurrent_queries_fail_the_tao_test(context: &mut Context, points: &[LossPoint]) {
    let share = |name| at(points, name, 0, HIGH_LOSS).and_then(LossPoint::tao_share).unwrap_or(f64::NAN);
    let (concurrent, alone) = (share(TTCP_FREEBSD.name), share(TTCP_ALONE.name));
    context.claim(
        "At 30 % loss, about 30 % of the SYNs of 1,000 concurrent queries fail the TAO test, since later queries with greater \
         connection counts have passed it; of queries one at a time fewer than 1 % fail it",
        "a share that passes outside 65 to 75 %, or more than 1 % of failures one at a time",
        format!("{:.1} % of concurrent queries passed, {:.1} % one at a time", 100.0 * concurrent, 100.0 * alone),
        (0.65..0.75).contains(&concurrent) && alone > 0.99,
    );
}
