//! Sending times of the queries of the measured time, counted in intervals of 10 ms and compared with the schedule
//! afterwards.

use crate::plan::{Plan, Timing};
use crate::query_times::Words;
use measure::outcome::{Deviation, PacingError};

/// The shortest interval, in nanoseconds.
const BIN: u64 = 10_000_000;

/// Queries that one thread sent in the measured time.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Queries sent in each interval of 10 ms; the last interval has all later ones.
    bins: Vec<u32>,
    /// Queries sent, by the second of their intended time.
    pub seconds: Vec<u64>,
    /// Queries that the kernel accepted.
    pub sent: u64,
    /// Octets of all messages that the kernel accepted, including those before the measured time.
    pub octets: u64,
    /// Queries of these for names that were queried before.
    pub asked_again: u64,
    /// Queries that the kernel did not accept.
    pub send_errors: u64,
    /// The first such error, as an error number of the kernel.
    pub send_error: Option<i32>,
    /// Largest lag of a query behind its schedule, in nanoseconds.
    pub lag_max: u64,
    /// Sending time of the last query, in nanoseconds of the measured time.
    pub last: u64,
    /// Names that the thread queried for the first time, including before the measured time.
    pub fresh: u64,
    /// Sending times of the measured queries, on request.
    pub times: Words,
    /// True if the thread ended because no names were left.
    pub names_used_up: bool,
}

impl Timeline {
    /// An empty timeline for a load.
    pub fn new(plan: &Plan) -> Timeline {
        // A schedule ends with its duration; queries that are late by more than two seconds share the last interval.
        let bins = (plan.order.duration_ms / 10) as usize + 200;
        Timeline { bins: vec![0; bins], seconds: vec![0; plan.seconds()], ..Timeline::default() }
    }

    /// Records the sending times of the queries in these words.
    pub fn with_times(self, times: Words) -> Timeline {
        Timeline { times, ..self }
    }

    /// Records the lag of the first query of a send.
    #[inline]
    pub fn lag(&mut self, late: u64) {
        self.lag_max = self.lag_max.max(late);
    }

    /// Records that `sent` of `count` queries left at an instant of the measured time.
    #[inline]
    pub fn left(&mut self, instant: u64, sent: usize, count: usize) {
        let last = self.bins.len() - 1;
        self.bins[((instant / BIN) as usize).min(last)] += sent as u32;
        self.sent += sent as u64;
        self.send_errors += (count - sent) as u64;
        self.last = instant;
    }

    /// Records one sent query with the second of its intended time.
    #[inline]
    pub fn query(&mut self, second: usize, again: bool) {
        let last = self.seconds.len() - 1;
        self.seconds[second.min(last)] += 1;
        self.asked_again += u64::from(again);
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Timeline) {
        self.bins.resize(self.bins.len().max(other.bins.len()), 0);
        self.bins.iter_mut().zip(&other.bins).for_each(|(own, other)| *own += other);
        self.seconds.resize(self.seconds.len().max(other.seconds.len()), 0);
        self.seconds.iter_mut().zip(&other.seconds).for_each(|(own, other)| *own += other);
        self.sent += other.sent;
        self.octets += other.octets;
        self.asked_again += other.asked_again;
        self.send_errors += other.send_errors;
        self.send_error = self.send_error.or(other.send_error);
        self.lag_max = self.lag_max.max(other.lag_max);
        self.last = self.last.max(other.last);
        self.names_used_up |= other.names_used_up;
    }

    /// Compares the sent queries with the schedule, up to an instant of the measured time.
    pub fn pacing(&self, plan: &Plan, until: u64) -> Pacing {
        let Timing::Open { schedule, warm, .. } = plan.timing else { return Pacing::default() };
        let bins = ((until / BIN) as usize).min(self.bins.len() - 1);
        let offset = plan.measured - plan.start;
        let asked = |bin: usize| schedule.due_before(offset + bin as u64 * BIN).saturating_sub(warm);
        let of = |length| deviation(&self.bins[..bins], asked, length);
        let (s1, worst) = of(100);
        let error = PacingError { ms10: of(1).0, ms100: of(10).0, s1 };
        Pacing { error, worst_second: worst }
    }
}

/// Pacing of a load against its schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pacing {
    /// Deviations by length of the interval.
    pub error: PacingError,
    /// Numbers of sent and scheduled queries in the second with the worst deviation; `None` if no second deviates by
    /// more than one query.
    pub worst_second: Option<(u64, u64)>,
}

/// The relative deviation over whole intervals of `bins` bins, and the worst interval that is off by more than one
/// query. `asked` gives the number of queries due before a bin.
fn deviation(sent: &[u32], asked: impl Fn(usize) -> u64, bins: usize) -> (Deviation, Option<(u64, u64)>) {
    let mut deviation = Deviation::default();
    let (mut sum, mut beyond, mut worst) = (0.0, 0u64, None);
    let mut before = asked(0);
    for (number, sent) in sent.chunks_exact(bins).enumerate() {
        let sent = sent.iter().map(|count| u64::from(*count)).sum::<u64>();
        let after = asked((number + 1) * bins);
        let asked = after - std::mem::replace(&mut before, after);
        // An interval without scheduled queries has no relative deviation.
        if asked == 0 {
            continue;
        }
        let relative = sent.abs_diff(asked) as f64 / asked as f64;
        deviation.intervals += 1;
        sum += relative;
        beyond += u64::from(relative > 0.01);
        deviation.max = deviation.max.max(relative);
        let is_worse = |(other, of): (u64, u64)| relative > other.abs_diff(of) as f64 / of as f64;
        if sent.abs_diff(asked) > 1 && worst.is_none_or(is_worse) {
            worst = Some((sent, asked));
        }
    }
    if deviation.intervals > 0 {
        deviation.mean = sum / deviation.intervals as f64;
        deviation.beyond_1_percent = beyond as f64 / deviation.intervals as f64;
    }
    (deviation, worst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::order;

    fn timeline(move_from_bin: Option<usize>) -> (Plan, Timeline) {
        let plan = Plan::new(&order(1000.0, 2000), false).unwrap();
        let mut timeline = Timeline::new(&plan);
        for number in 0..2000u64 {
            let due = number * 1_000_000;
            let moved = move_from_bin.is_some_and(|bin| due / BIN == bin as u64);
            timeline.left(if moved { due + BIN } else { due }, 1, 1);
        }
        (plan, timeline)
    }

    #[test]
    fn a_schedule_that_is_kept_deviates_nowhere() {
        let (plan, timeline) = timeline(None);
        let pacing = timeline.pacing(&plan, 2_000_000_000);
        assert_eq!(pacing.error.ms10, Deviation { intervals: 200, ..Deviation::default() });
        assert_eq!((pacing.error.ms100.intervals, pacing.error.s1.intervals), (20, 2));
        assert_eq!((pacing.error.s1.max, pacing.worst_second), (0.0, None));
    }

    #[test]
    fn a_pause_of_10_ms_shows_in_short_intervals_alone() {
        let (plan, timeline) = timeline(Some(33));
        let error = timeline.pacing(&plan, 2_000_000_000).error;
        assert_eq!(error.ms10.max, 1.0);
        assert!((error.ms10.mean - 2.0 / 200.0).abs() < 1e-12);
        assert!((error.ms10.beyond_1_percent - 0.01).abs() < 1e-12);
        assert_eq!((error.ms100.max, error.s1.max), (0.0, 0.0));
    }

    #[test]
    fn a_second_without_queries_is_the_worst() {
        let plan = Plan::new(&order(1000.0, 2000), false).unwrap();
        let mut timeline = Timeline::new(&plan);
        timeline.left(0, 1000, 1000);
        assert_eq!(timeline.pacing(&plan, 2_000_000_000).worst_second, Some((0, 1000)));
    }
}
