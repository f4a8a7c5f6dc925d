//! Sending times of the queries of the measured time, counted in intervals of 1 ms (10 ms in a long load) and compared with the
//! schedule afterwards.

use crate::limits;
use crate::plan::{Plan, Timing};
use crate::query_times::Words;
use measure::outcome::{Deviation, PacingError};

/// The shortest interval of a load, in milliseconds.
fn bin_ms(plan: &Plan) -> u64 {
    if plan.order.duration_ms <= limits::FINE_PACING.as_millis() as u64 { 1 } else { 10 }
}

/// Queries that one thread sent in the measured time.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Queries sent in each interval of [`Timeline::bin`]; the last interval has all later ones.
    bins: Vec<u32>,
    /// Length of these intervals, in nanoseconds.
    bin: u64,
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
        let bins = ((plan.order.duration_ms + 2000) / bin_ms(plan)) as usize;
        Timeline {
            bins: vec![0; bins],
            bin: bin_ms(plan) * 1_000_000,
            seconds: vec![0; plan.seconds()],
            ..Timeline::default()
        }
    }

    /// Records the sending times of the queries in these words.
    pub fn with_times(self, times: Words) -> Timeline {
        Timeline { times, ..self }
    }

    /// Records the lag of the first query of a send, in nanoseconds.
    #[inline]
    pub fn lag(&mut self, late: u64) {
        self.lag_max = self.lag_max.max(late);
    }

    /// Records that `sent` of `count` queries left at an instant, in nanoseconds of the measured time.
    #[inline]
    pub fn left(&mut self, instant: u64, sent: usize, count: usize) {
        let last = self.bins.len() - 1;
        self.bins[((instant / self.bin) as usize).min(last)] += sent as u32;
        self.sent += sent as u64;
        self.send_errors += (count - sent) as u64;
        self.last = instant;
    }

    /// Records one sent query with the second of its intended time. `again`: its name was queried before.
    #[inline]
    pub fn query(&mut self, second: usize, again: bool) {
        let last = self.seconds.len() - 1;
        self.seconds[second.min(last)] += 1;
        self.asked_again += u64::from(again);
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Timeline) {
        // All timelines of a load have one length of interval; an empty one takes that of the other.
        self.bin = self.bin.max(other.bin);
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

    /// Compares the sent queries with the schedule, up to an instant in nanoseconds of the measured time.
    pub fn pacing(&self, plan: &Plan, until: u64) -> Pacing {
        let Timing::Open { schedule, warm, .. } = plan.timing else { return Pacing::default() };
        let bin = bin_ms(plan) * 1_000_000;
        let bins = ((until / bin) as usize).min(self.bins.len().saturating_sub(1));
        let offset = plan.measured - plan.start;
        let asked = |number: usize| schedule.due_before(offset + number as u64 * bin).saturating_sub(warm);
        let of = |ms: u64| deviation(&self.bins[..bins], asked, (ms * 1_000_000 / bin) as usize);
        let (s1, worst) = of(1000);
        let ms1 = if bin == 1_000_000 { of(1).0 } else { Deviation::default() };
        let error = PacingError { ms1, ms10: of(10).0, ms100: of(100).0, s1 };
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
    let mut before = asked(0);
    let intervals = sent.chunks_exact(bins).enumerate().map(|(number, sent)| {
        let after = asked((number + 1) * bins);
        let asked = after - std::mem::replace(&mut before, after);
        (sent.iter().map(|count| u64::from(*count)).sum::<u64>(), asked)
    });
    let intervals: Vec<(u64, u64)> = intervals.collect();
    let relative = |(sent, asked): (u64, u64)| sent.abs_diff(asked) as f64 / asked as f64;
    let off = intervals.iter().copied().filter(|(sent, asked)| *asked > 0 && sent.abs_diff(*asked) > 1);
    let worst = off.max_by(|one, other| relative(*one).total_cmp(&relative(*other)));
    (Deviation::of(intervals), worst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::order;

    const TEN_MS: u64 = 10_000_000;

    fn timeline(move_from_bin: Option<usize>) -> (Plan, Timeline) {
        let plan = Plan::new(&order(1000.0, 2000), false).unwrap();
        let mut timeline = Timeline::new(&plan);
        for number in 0..2000u64 {
            let due = number * 1_000_000;
            let moved = move_from_bin.is_some_and(|bin| due / TEN_MS == bin as u64);
            timeline.left(if moved { due + TEN_MS } else { due }, 1, 1);
        }
        (plan, timeline)
    }

    #[test]
    fn a_schedule_that_is_kept_deviates_nowhere() {
        let (plan, timeline) = timeline(None);
        let pacing = timeline.pacing(&plan, 2_000_000_000);
        assert_eq!(pacing.error.ms1, Deviation { intervals: 2000, ..Deviation::default() });
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
        // Ten intervals of 1 ms have none of their one query, and ten have two.
        assert_eq!((error.ms1.max, error.ms1.mean), (1.0, 20.0 / 2000.0));
    }

    #[test]
    fn a_load_beyond_the_limit_is_compared_in_intervals_of_10_ms_and_longer() {
        let plan = Plan::new(&order(1000.0, limits::FINE_PACING.as_millis() as u64 + 1), false).unwrap();
        let mut timeline = Timeline::new(&plan);
        (0..1000u64).for_each(|number| timeline.left(number * 1_000_000, 1, 1));
        let mut sum = Timeline::default();
        sum.add(&timeline);
        let error = sum.pacing(&plan, 1_000_000_000).error;
        assert_eq!(error.ms1, Deviation::default());
        assert_eq!((error.ms10.intervals, error.ms10.max, error.s1.intervals), (100, 0.0, 1));
    }

    #[test]
    fn a_second_without_queries_is_the_worst() {
        let plan = Plan::new(&order(1000.0, 2000), false).unwrap();
        let mut timeline = Timeline::new(&plan);
        timeline.left(0, 1000, 1000);
        assert_eq!(timeline.pacing(&plan, 2_000_000_000).worst_second, Some((0, 1000)));
    }
}
