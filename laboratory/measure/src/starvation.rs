//! Starvation of a device: a failed trial in which the device waited for a core while other programs had its cores says
//! nothing about the capacity of the device.
//!
//! A saturated device waits, too, when it has more threads than cores: then its own threads compete, and the losses are
//! its own. So three figures decide together, as shares of the time of the load:
//!
//! 1. The waiting: the smaller of the time that its threads were ready to run without a core, and of the time that other
//!    programs ran on its cores. A device that only competes with itself has cores without other programs, and a device
//!    that other programs do not disturb does not wait for them.
//! 2. Its busiest thread: a thread that ran nearly all the time has reached its limit.
//! 3. Its cores: a device that used nearly all the time of all cores that it may use has reached its limit.

use crate::outcome::{Outcome, Verdict};
use crate::plan::core_list;
use crate::run::DeviceUse;

/// Least waiting of a starved device, as a share of the time of the load. With a queue of 15,000 datagrams a shorter wait
/// causes no loss below the device's own limit, unless all of it comes at once.
pub const WAITED_SHARE: f64 = 0.05;

/// A thread or a set of cores that was busy for this share of the time has reached its limit.
pub const BUSY_SHARE: f64 = 0.9;

/// Evidence of a starved device, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Starvation {
    /// Time of all threads without a core, while other programs ran on its cores.
    pub waited_s: f64,
    /// CPU time of the busiest thread.
    pub busiest_thread_s: f64,
    /// Time of the load, with the time that the device worked on its queue.
    pub active_s: f64,
}

/// Returns the evidence that a device was starved in a load of `load_s` seconds, its warm-up included. `None`: it was
/// not, or the kernel does not report enough.
pub fn starvation(used: &DeviceUse, load_s: f64) -> Option<Starvation> {
    let others_s = used.others_s?;
    let cores = core_list(&used.allowed_cores).ok()?.len() as f64;
    let waits_s = used.thread_waits_s.iter().copied().chain(std::iter::repeat(0.0));
    let runs_s = used.threads.iter().map(|(_, user_s, system_s)| user_s + system_s);
    let busiest_s = runs_s.clone().fold(0.0, f64::max);
    // A device with a queue works on when the load has ended.
    let active_s = runs_s.zip(waits_s).map(|(run_s, wait_s)| run_s + wait_s).fold(load_s, f64::max);
    if active_s <= 0.0 {
        return None;
    }
    let waited_s = used.waited_s.min(others_s);
    let is_busy =
        busiest_s >= BUSY_SHARE * active_s || used.user_s + used.system_s >= BUSY_SHARE * cores * active_s;
    let is_starved = waited_s >= WAITED_SHARE * active_s && !is_busy;
    is_starved.then_some(Starvation { waited_s, busiest_thread_s: busiest_s, active_s })
}

/// Changes the verdict "fail" to "device starved" if the device was starved, and if lack of a core can be the cause: it
/// explains lost and late replies and SERVFAIL, but no other wrong answers and no closed port.
pub fn apply(outcome: &mut Outcome, used: &DeviceUse, load_s: f64) {
    let servfail = outcome.rcodes.get("SERVFAIL").copied().unwrap_or(0);
    let is_explicable = outcome.connection_refused == 0 && outcome.invalid_total() <= servfail;
    if outcome.verdict != Verdict::Fail || !is_explicable {
        return;
    }
    if let Some(found) = starvation(used, load_s) {
        outcome.verdict = Verdict::DeviceStarved;
        outcome.reason = format!(
            "the threads of the device waited {:.1} s in total for cores that other programs had, and the busiest one ran for only \
             {:.1} of {:.1} s; end those programs, or give the device cores of its own (`cores` of [device]); {}",
            found.waited_s, found.busiest_thread_s, found.active_s, outcome.reason
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device whose threads ran and waited for these seconds.
    fn device(cores: &str, threads: &[(f64, f64)], others_s: Option<f64>) -> DeviceUse {
        let run_s: f64 = threads.iter().map(|(run_s, _)| run_s).sum();
        DeviceUse {
            user_s: run_s / 4.0,
            system_s: run_s * 3.0 / 4.0,
            waited_s: threads.iter().map(|(_, wait_s)| wait_s).sum(),
            threads: threads
                .iter()
                .map(|(run_s, _)| ("w".to_owned(), run_s / 4.0, run_s * 3.0 / 4.0))
                .collect(),
            thread_waits_s: threads.iter().map(|(_, wait_s)| *wait_s).collect(),
            allowed_cores: cores.to_owned(),
            others_s,
            ..DeviceUse::default()
        }
    }

    #[test]
    fn a_device_is_starved_if_other_programs_had_its_cores_while_it_waited() {
        let four = |run_s, wait_s| vec![(run_s, wait_s); 4];
        for (what, load_s, cores, threads, others_s, waited) in [
            ("another program has half of the core", 10.0, "1", vec![(5.0, 4.0)], Some(5.0), Some(0.4)),
            ("the others ran in part while it slept", 10.0, "1", vec![(2.0, 3.0)], Some(1.0), Some(0.1)),
            (
                "four threads, two cores, half of them taken",
                10.0,
                "0-1",
                four(2.0, 2.0),
                Some(10.0),
                Some(0.8),
            ),
            ("it works on its queue after the load", 1.5, "1", vec![(1.5, 1.0)], Some(1.0), Some(0.4)),
            ("a saturated thread", 10.0, "1", vec![(9.5, 0.5)], Some(0.5), None),
            ("a saturated thread beside idle cores", 10.0, "0-7", vec![(9.5, 0.5)], Some(30.0), None),
            ("its own threads compete for one core", 10.0, "1", four(2.5, 7.5), Some(0.0), None),
            ("its own threads fill two cores", 10.0, "0,1", four(4.6, 5.4), Some(1.6), None),
            ("its own bursts compete", 10.0, "1", four(1.5, 1.0), Some(0.2), None),
            ("others ran, but it never waited", 10.0, "1", vec![(3.0, 0.1)], Some(6.0), None),
            ("it was idle and lost queries", 10.0, "1", vec![(3.0, 0.0)], Some(0.0), None),
            ("the time of other programs is unknown", 10.0, "1", vec![(5.0, 4.0)], None, None),
            ("its cores are unknown", 10.0, "", vec![(5.0, 4.0)], Some(5.0), None),
            ("nothing ran", 0.0, "1", vec![], Some(5.0), None),
        ] {
            let found = starvation(&device(cores, &threads, others_s), load_s);
            let rounded = found.map(|it| (it.waited_s / it.active_s * 1e9).round() / 1e9);
            assert_eq!(rounded, waited, "{what}: {found:?}");
        }
    }

    #[test]
    fn only_a_failure_that_lack_of_a_core_explains_is_changed() {
        let used = device("1", &[(5.0, 4.0)], Some(5.0));
        let failed = Outcome { reason: "3 lost".into(), sent: 100, valid: 97, lost: 3, ..Outcome::default() };
        let verdict = |outcome: Outcome| {
            let mut outcome = outcome;
            apply(&mut outcome, &used, 10.0);
            outcome.verdict
        };
        assert_eq!(verdict(failed.clone()), Verdict::DeviceStarved);
        for other in [Verdict::Pass, Verdict::TesterLimited] {
            assert_eq!(verdict(Outcome { verdict: other, ..failed.clone() }), other);
        }
        let refused = Outcome { connection_refused: 1, ..failed.clone() };
        assert_eq!(verdict(refused), Verdict::Fail);
        let invalid = Outcome { invalid: [("prefix".to_owned(), 2)].into(), ..failed.clone() };
        assert_eq!(verdict(invalid.clone()), Verdict::Fail);
        let servfail = |count| [("SERVFAIL".to_owned(), count)].into();
        assert_eq!(verdict(Outcome { rcodes: servfail(2), ..invalid.clone() }), Verdict::DeviceStarved);
        assert_eq!(verdict(Outcome { rcodes: servfail(1), ..invalid }), Verdict::Fail);
        let mut outcome = failed;
        apply(&mut outcome, &used, 10.0);
        let reason = "the threads of the device waited 4.0 s in total for cores that other programs had, and the busiest one ran \
                      for only 5.0 of 10.0 s; end those programs, or give the device cores of its own (`cores` of [device]); 3 lost";
        assert_eq!(outcome.reason, reason);
    }
}
