//! Sizes, repetitions and cores of the experiment on one machine.

use super::limits;
use super::running::Place;
use crate::lab::context::Context;
use crate::usage;
use std::time::Duration;

/// Sizes and repetitions.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Zone sizes as powers of two, in ascending order. Rates are measured with the last one.
    pub bits: Vec<u32>,
    /// Starts with each size, besides those for rates.
    pub starts: u32,
    /// Length of a trial.
    pub trial: Duration,
    /// Searches on one core, and on more cores.
    pub searches: (u32, u32),
    /// Precision of a search, as a share.
    pub precision: f64,
    /// Most trials of a search.
    pub search_trials: u32,
    /// Trials for the CPU time: at half of the highest rate, and at the common rate.
    pub cpu_trials: (u32, u32),
}

impl Schedule {
    /// Schedule of a context's options.
    ///
    /// # Errors
    ///
    /// A zone of the size that `--zone-bits` asks for needs more than half of the free memory.
    pub fn of(context: &Context) -> Result<Schedule, String> {
        let available = available_octets();
        let wanted = context.options.zone_bits;
        if let Some(bits) = wanted.filter(|bits| (limits::OCTETS_PER_NAME << bits) > available / 2) {
            return Err(format!(
                "--zone-bits {bits}: a zone of 2^{bits} names may need {:.0} GB in a server, and half of the free memory is {:.0} GB; \
                 give a smaller number",
                (limits::OCTETS_PER_NAME << bits) as f64 / 1e9,
                available as f64 / 2e9
            ));
        }
        if context.options.quick {
            return Ok(Schedule {
                bits: vec![wanted.unwrap_or(limits::QUICK_ZONE_BITS)],
                starts: 0,
                trial: context.options.duration.unwrap_or(limits::QUICK_TRIAL),
                // A search of a few trials of 0.3 s gives no order of servers, so it is left out.
                searches: (0, 0),
                precision: 0.05,
                search_trials: 0,
                cpu_trials: (0, 0),
            });
        }
        let trial = context.options.duration.unwrap_or(limits::TRIAL);
        let largest = wanted.unwrap_or_else(|| largest_bits(trial, available));
        Ok(Schedule {
            bits: limits::ZONE_STEPS_BITS.iter().map(|step| largest - step).collect(),
            starts: 3,
            trial,
            searches: (10, 5),
            precision: 0.02,
            search_trials: limits::SEARCH_TRIALS,
            cpu_trials: (5, 5),
        })
    }

    /// True if it searches rates.
    pub fn has_searches(&self) -> bool {
        self.searches.0 > 0
    }

    /// Size with which rates are measured.
    pub fn rate_bits(&self) -> u32 {
        self.bits.last().copied().unwrap_or(limits::ZONE_BITS_MIN)
    }
}

/// Size of the largest zone: its names last for a trial at [`limits::CEILING_QPS`], and it fits half of the memory.
fn largest_bits(trial: Duration, available_octets: u64) -> u32 {
    let names = (trial.as_secs_f64() * limits::CEILING_QPS).ceil().max(1.0) as u64;
    let wanted = names.next_power_of_two().trailing_zeros();
    let fitting = (available_octets / 2 / limits::OCTETS_PER_NAME).max(1).ilog2();
    wanted.min(fitting).clamp(limits::ZONE_BITS_MIN, limits::ZONE_BITS_MAX)
}

/// Memory that the kernel gives to a new program without swapping, in octets.
fn available_octets() -> u64 {
    usage::numbers("/proc/meminfo").get("MemAvailable").map_or(0, |kib| kib * 1024)
}

/// Cores of one comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreSplit {
    /// Cores of the server.
    pub server: Place,
    /// Cores of the tester.
    pub tester: Vec<u16>,
    /// True if the tester has no core of its own.
    pub is_shared: bool,
}

impl CoreSplit {
    /// Name in tables, such as `1 core`.
    pub fn title(&self) -> String {
        let plural = if self.server.threads == 1 { "" } else { "s" };
        let shared = if self.is_shared { ", shared with the tester" } else { "" };
        format!("{} core{plural}{shared}", self.server.threads)
    }
}

/// Splits of the allowed cores: 1, 2, 4, ... for the server, and the others for the tester. If none is left, it runs on the last
/// one of the server.
pub fn core_splits(allowed: &[u16]) -> Vec<CoreSplit> {
    let allowed = if allowed.is_empty() { &[0] } else { allowed };
    let counts = (0..usize::BITS).map(|power| 1usize << power).take_while(|count| *count <= allowed.len());
    let split = |count: usize| {
        let (server, rest) = allowed.split_at(count);
        let cores: Vec<String> = server.iter().map(u16::to_string).collect();
        let is_shared = rest.is_empty();
        let tester = if is_shared { vec![server[count - 1]] } else { rest.to_vec() };
        CoreSplit { server: Place { cores: cores.join(","), threads: count }, tester, is_shared }
    };
    counts.map(split).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_grows_with_the_trial_and_stays_within_the_memory() {
        let second = Duration::from_secs(1);
        // 10^6 names are below 2^20; 6 x 10^7 below 2^26, which exceeds the largest zone.
        assert_eq!(largest_bits(second, 1 << 40), 20);
        assert_eq!(largest_bits(60 * second, 1 << 40), limits::ZONE_BITS_MAX);
        // Half of 8 GiB holds 3.07 million names of 1,400 octets: 2^21.
        assert_eq!(largest_bits(60 * second, 8 << 30), 21);
        assert_eq!(largest_bits(second, 0), limits::ZONE_BITS_MIN);
    }

    #[test]
    fn the_tester_has_cores_of_its_own_while_there_are_any() {
        let titles = |cores: &[u16]| core_splits(cores).iter().map(CoreSplit::title).collect::<Vec<_>>();
        assert_eq!(titles(&[3]), ["1 core, shared with the tester"]);
        assert_eq!(titles(&[0, 1]), ["1 core", "2 cores, shared with the tester"]);
        let splits = core_splits(&[0, 1, 4, 5, 6]);
        assert_eq!(splits.len(), 3);
        assert_eq!(splits[1].server, Place { cores: "0,1".into(), threads: 2 });
        assert_eq!((&splits[1].tester[..], &splits[2].tester[..]), (&[4, 5, 6][..], &[6][..]));
    }
}
