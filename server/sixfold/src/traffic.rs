//! Rates, shares and latencies over the last seconds and minutes, for people. Prometheus computes its own from the counters; the
//! status page has nobody who remembers the counters for it.
//!
//! The counters are sampled every [`PERIOD`], which costs a worker as much as a scrape. Nothing here knows a running server.

use datapath::Snapshot;
use engine::counters::DURATION_BOUNDS_US;
use engine::{Counter, Counters};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two samples.
pub const PERIOD: Duration = Duration::from_secs(5);

/// Samples that are kept: ten minutes. A sample has about 1,500 octets, so all have 180 KiB.
const SAMPLES: usize = 120;

/// Counters at one time.
#[derive(Clone)]
pub struct Sample {
    /// Time of the sample.
    pub at: Instant,
    /// Counters of all engines.
    pub engine: Counters,
    /// Counters of the datapath.
    pub datapath: Snapshot,
}

impl Sample {
    /// The sample of the start, with all counters at zero.
    pub fn at_start(started: Instant) -> Sample {
        Sample { at: started, engine: Counters::default(), datapath: Snapshot::default() }
    }
}

/// The samples of the last minutes, the oldest first.
#[derive(Default)]
pub struct Traffic(Mutex<VecDeque<Sample>>);

impl Traffic {
    /// Adds a sample.
    pub fn add(&self, sample: Sample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == SAMPLES {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// The samples, the oldest first.
    pub fn samples(&self) -> Vec<Sample> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// The newest sample that is at least `age` old, else `start`.
pub fn sample_before<'s>(
    samples: &'s [Sample],
    start: &'s Sample,
    now: Instant,
    age: Duration,
) -> &'s Sample {
    let is_old = |sample: &&Sample| now.saturating_duration_since(sample.at) >= age;
    samples.iter().rev().find(is_old).unwrap_or(start)
}

/// The difference between two samples.
pub struct Window<'s> {
    first: &'s Sample,
    last: &'s Sample,
}

impl<'s> Window<'s> {
    /// The time between two samples.
    pub fn new(first: &'s Sample, last: &'s Sample) -> Window<'s> {
        Window { first, last }
    }

    /// Increase of a counter.
    pub fn count(&self, counter: Counter) -> u64 {
        self.last.engine.get(counter).saturating_sub(self.first.engine.get(counter))
    }

    /// Increase of a counter of the datapath.
    pub fn datapath(&self, counter: datapath::Counter) -> u64 {
        self.last.datapath.get(counter).saturating_sub(self.first.datapath.get(counter))
    }

    /// Increase of all counters of a metric, by its name without `sixfold_`.
    pub fn family(&self, name: &str) -> u64 {
        let counters = Counter::ALL.iter().filter(|counter| counter.describe().0 == name);
        counters.map(|&counter| self.count(counter)).sum()
    }

    /// Increase of a metric per second; none if the two samples are of one moment.
    pub fn rate(&self, family: &str) -> Option<f64> {
        let seconds = self.last.at.saturating_duration_since(self.first.at).as_secs_f64();
        (seconds > 0.0).then(|| self.family(family) as f64 / seconds)
    }

    /// Latency that a share of the answers did not exceed.
    pub fn latency(&self, share: f64) -> Latency {
        let before = &self.first.engine.durations;
        let now = &self.last.engine.durations;
        let counts: Vec<u64> = now.iter().zip(before).map(|(now, old)| now.saturating_sub(*old)).collect();
        quantile(&counts, share)
    }
}

/// A latency from a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Latency {
    /// There were no answers.
    Unknown,
    /// At most this, the bound of the first bucket: answers from the cache, or local ones.
    Below(Duration),
    /// About this: within its bucket the answers count as evenly spread.
    About(Duration),
    /// More than this, the bound of the last bucket.
    Above(Duration),
}

/// The quantile of a histogram with the bounds of [`DURATION_BOUNDS_US`].
fn quantile(counts: &[u64], share: f64) -> Latency {
    let bound = |bucket: usize| DURATION_BOUNDS_US[bucket] as f64;
    let micros = |us: f64| Duration::from_secs_f64(us / 1e6);
    let rank = counts.iter().sum::<u64>() as f64 * share;
    let mut below = 0.0;
    for (bucket, &count) in counts.iter().enumerate() {
        let upto = below + count as f64;
        if count > 0 && upto >= rank {
            return match bucket {
                0 => Latency::Below(micros(bound(0))),
                _ if bucket == DURATION_BOUNDS_US.len() => Latency::Above(micros(bound(bucket - 1))),
                _ => {
                    let part = (rank - below) / count as f64;
                    Latency::About(micros(bound(bucket - 1) + part * (bound(bucket) - bound(bucket - 1))))
                }
            };
        }
        below = upto;
    }
    Latency::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample `seconds` after `start`, with so many queries over UDP and IPv6.
    fn sample(start: Instant, seconds: u64, queries: u64) -> Sample {
        let mut engine = Counters::default();
        engine.add(Counter::QueriesUdp6, queries);
        Sample { at: start + Duration::from_secs(seconds), engine, datapath: Snapshot::default() }
    }

    #[test]
    fn a_rate_is_that_of_the_window_and_not_since_the_start() {
        let start = Instant::now();
        let samples = [sample(start, 5, 100), sample(start, 10, 200), sample(start, 15, 1_200)];
        let zero = Sample::at_start(start);
        let now = &samples[2];
        for (age, rate) in [(3, 200.0), (5, 200.0), (6, 110.0), (100, 80.0)] {
            let first = sample_before(&samples, &zero, now.at, Duration::from_secs(age));
            assert_eq!(Window::new(first, now).rate("queries_total"), Some(rate), "{age}");
        }
        assert_eq!(Window::new(now, now).rate("queries_total"), None);
    }

    #[test]
    fn the_oldest_samples_make_room() {
        let (start, traffic) = (Instant::now(), Traffic::default());
        (0..SAMPLES as u64 + 3).for_each(|number| traffic.add(sample(start, number, number)));
        let samples = traffic.samples();
        assert_eq!(samples.len(), SAMPLES);
        assert_eq!(samples[0].engine.get(Counter::QueriesUdp6), 3);
    }

    #[test]
    fn a_quantile_lies_in_the_bucket_of_its_rank() {
        let mut counts = [0; DURATION_BOUNDS_US.len() + 1];
        assert_eq!(quantile(&counts, 0.5), Latency::Unknown);
        // 90 answers from the cache, 10 between 1 and 2.5 ms.
        (counts[0], counts[5]) = (90, 10);
        assert_eq!(quantile(&counts, 0.5), Latency::Below(Duration::from_micros(50)));
        assert_eq!(quantile(&counts, 0.95), Latency::About(Duration::from_micros(1_750)));
        counts[DURATION_BOUNDS_US.len()] = 100;
        assert_eq!(quantile(&counts, 0.99), Latency::Above(Duration::from_secs(5)));
    }
}
