//! The pace of a load as a receiver sees it, from the times of its kernel and the ordered rate alone.
//!
//! Query k is due k / rate after the first. The receiver does not know when the schedule began, so the beginning is the latest one
//! with which no query came before it was due: the query that came soonest after its due time has the delay 0.

use measure::outcome::Deviation;
use measure::statistics::{percentile, sorted};
use std::time::Duration;

/// Lengths of the intervals, in milliseconds.
pub const INTERVALS_MS: [u64; 4] = [1, 10, 100, 1000];

/// One millisecond, in nanoseconds.
const MS: u64 = 1_000_000;

/// The pace of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outside {
    /// Numbers of queries against the schedule, by [`INTERVALS_MS`].
    pub deviations: [Deviation; 4],
    /// Delay of a query after its due time.
    pub delay: Delays,
    /// Time from the tester's own time stamp of a query to the kernel's, less the shortest one.
    pub way: Delays,
    /// Time from the first query to the last one, over the ordered time, less 1: 0.01 is one per cent too long.
    pub longer: f64,
}

/// Distribution of times, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delays {
    /// Mean.
    pub mean_us: f64,
    /// 99 of 100 are at most this.
    pub p99_us: f64,
    /// Largest.
    pub max_us: f64,
}

impl Delays {
    /// The distribution of times in nanoseconds, less the shortest of them.
    fn above_the_shortest(times_ns: &[i128]) -> Delays {
        let Some(shortest) = times_ns.iter().min() else { return Delays::default() };
        let times: Vec<f64> = times_ns.iter().map(|time| (time - shortest) as f64 / 1e3).collect();
        let ordered = sorted(&times);
        Delays {
            mean_us: times.iter().sum::<f64>() / times.len() as f64,
            p99_us: percentile(&ordered, 99.0).unwrap_or_default(),
            max_us: ordered.last().copied().unwrap_or_default(),
        }
    }
}

impl Outside {
    /// The pace by the kernel's times `stamps` (nanoseconds; 0: the query never came) and the tester's own sending times `sent`
    /// (nanoseconds of any clock), both by number of query. None if no query came.
    pub fn of(stamps: &[u64], sent: &[Option<u64>], rate_qps: f64, duration: Duration) -> Option<Outside> {
        let came = || stamps.iter().enumerate().filter(|(_, stamp)| **stamp > 0);
        let delays: Vec<i128> =
            came().map(|(k, stamp)| i128::from(*stamp) - i128::from(due_ns(k, rate_qps))).collect();
        let begin = *delays.iter().min()?;
        let bins = (duration.as_millis() as usize).max(1);
        let (mut arrived, mut due) = (vec![0u64; bins], vec![0u64; bins]);
        // Later ones belong to no interval of the load.
        let enter = |bins: &mut [u64], at_ns: u64| {
            if let Some(bin) = bins.get_mut((at_ns / MS) as usize) {
                *bin += 1;
            }
        };
        came().for_each(|(_, stamp)| enter(&mut arrived, (i128::from(*stamp) - begin) as u64));
        (0..stamps.len()).for_each(|k| enter(&mut due, due_ns(k, rate_qps)));
        let over = |bins: &[u64], length: u64| -> Vec<u64> {
            bins.chunks_exact(length as usize).map(|interval| interval.iter().sum()).collect()
        };
        let deviations = INTERVALS_MS
            .map(|length| Deviation::of(over(&arrived, length).into_iter().zip(over(&due, length))));
        let way: Vec<i128> = came()
            .filter_map(|(k, stamp)| Some(i128::from(*stamp) - i128::from(sent.get(k).copied()??)))
            .collect();
        let times = || came().map(|(_, stamp)| *stamp);
        let taken = times().max()? - times().min()?;
        let ordered = due_ns(stamps.len().saturating_sub(1), rate_qps);
        Some(Outside {
            deviations,
            delay: Delays::above_the_shortest(&delays),
            way: Delays::above_the_shortest(&way),
            longer: if ordered > 0 { taken as f64 / ordered as f64 - 1.0 } else { 0.0 },
        })
    }
}

/// Due time of a query after the first one, in nanoseconds.
fn due_ns(k: usize, rate_qps: f64) -> u64 {
    (k as f64 * 1e9 / rate_qps) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time of the first query of these tests, in nanoseconds.
    const BEGIN: u64 = 1_700_000_000_000_000_000;

    /// 2,000 queries at 1,000 a second, each moved by `moved` nanoseconds.
    fn seen(moved: impl Fn(u64) -> u64) -> Outside {
        let stamps: Vec<u64> = (0..2000).map(|k| BEGIN + k * MS + moved(k)).collect();
        let sent: Vec<Option<u64>> = (0..2000).map(|k| Some(k * MS)).collect();
        Outside::of(&stamps, &sent, 1000.0, Duration::from_secs(2)).unwrap()
    }

    #[test]
    fn a_schedule_that_is_kept_deviates_nowhere_however_long_the_way_is() {
        for way in [0, 777_777] {
            let outside = seen(|_| way);
            assert_eq!(outside.deviations.map(|it| it.intervals), [2000, 200, 20, 2]);
            assert_eq!(outside.deviations.map(|it| it.max), [0.0; 4]);
            assert_eq!((outside.delay, outside.way, outside.longer), Default::default());
        }
    }

    #[test]
    fn a_pause_shows_in_the_intervals_that_are_shorter_than_it_and_in_the_delay() {
        // The queries 500 to 549 leave together, when the last of them is due: 49 ms after the first of them.
        let outside = seen(|k| if (500..550).contains(&k) { (549 - k) * MS } else { 0 });
        let [ms1, ms10, ms100, s1] = outside.deviations;
        // 49 intervals are empty, and one has 50 queries instead of one.
        assert_eq!((ms1.max, ms1.mean), (49.0, (49.0 + 49.0) / 2000.0));
        // Four intervals are empty, and one has 50 instead of 10.
        assert_eq!((ms10.max, ms10.mean), (4.0, (4.0 + 4.0) / 200.0));
        assert_eq!((ms100.max, s1.max), (0.0, 0.0));
        assert_eq!((outside.delay.max_us, outside.way.max_us), (49_000.0, 49_000.0));
        // The first 1,980 of 2,000 delays in order are 0 to 29 ms: fifty are not 0, one for each millisecond from 0 to 49.
        assert_eq!(outside.delay.p99_us, 29_000.0);
    }

    #[test]
    fn a_load_that_takes_too_long_is_told_in_per_cent() {
        // The last query is due after 1,999 ms and comes 40 ms later.
        let outside = seen(|k| if k == 1999 { 40 * MS } else { 0 });
        assert!((outside.longer - 40.0 / 1999.0).abs() < 1e-12, "{}", outside.longer);
        // Its interval of 1 s has 999 of 1,000.
        assert_eq!(outside.deviations[3].max, 0.001);
    }

    #[test]
    fn queries_that_never_came_are_missing_in_their_interval() {
        let stamps: Vec<u64> = (0..1000).map(|k| if k < 10 { 0 } else { BEGIN + k * MS }).collect();
        let outside = Outside::of(&stamps, &[], 1000.0, Duration::from_secs(1)).unwrap();
        assert_eq!(outside.deviations[3].max, 0.01);
        assert_eq!(outside.way, Delays::default(), "the tester's own times are unknown");
        assert_eq!(Outside::of(&[0, 0], &[], 1000.0, Duration::from_secs(1)), None);
    }
}
