//! Conditions that RFC 8219 does not name, but without which a result is not the capacity of the device, or cannot be compared
//! with that of another one.

use super::{Assessment, BEYOND, counted};
use crate::outcome::Verdict;
use crate::run::{Rule, Run, Trial};
use crate::search::TESTER_TRIES;

/// The rules of this program.
pub(super) fn beyond(run: &Run) -> Vec<Rule> {
    vec![
        cores(run).rule(
            "",
            BEYOND,
            "No result rests on trials in which other programs had the cores of the device",
        ),
        buffers(run).rule("", BEYOND, "The receive buffer of the device is that of the other servers"),
    ]
}

fn cores(run: &Run) -> Assessment {
    let trials: Vec<&Trial> = counted(run).collect();
    let is_watched = |trial: &&Trial| trial.device.as_ref().is_some_and(|used| used.others_s.is_some());
    if !trials.iter().any(is_watched) {
        return Assessment::not_checked(
            "the kernel of the device's host does not tell, or the device was not watched",
        );
    }
    let starved = trials.iter().filter(|trial| trial.outcome.verdict == Verdict::DeviceStarved).count();
    let same_rate = |a: &&Trial, b: &&Trial| {
        (a.rate_qps, a.repetition) == (b.rate_qps, b.repetition) && (a.cell, &a.sweep) == (b.cell, &b.sweep)
    };
    let gave_up = trials.chunk_by(same_rate).any(|chunk| {
        let inconclusive = chunk.iter().filter(|trial| trial.outcome.verdict.is_inconclusive()).count();
        inconclusive >= TESTER_TRIES as usize
            && chunk.iter().any(|trial| trial.outcome.verdict == Verdict::DeviceStarved)
    });
    match starved {
        0 => Assessment::kept("in no trial"),
        _ if gave_up => Assessment::not_kept(format!(
            "in {starved} trials, {TESTER_TRIES} or more of them at one rate, which ended a search: the true value may be higher; give the \
             device cores of its own"
        )),
        _ => Assessment::kept(format!("in {starved} trials, which were repeated")),
    }
}

fn buffers(run: &Run) -> Assessment {
    let wanted = run.settings.receive_buffer;
    let Some(device) = run.participants.get("device").filter(|device| device.receive_buffer.0 > 0) else {
        return Assessment::not_checked("the sockets of the device are not known");
    };
    let (low, high) = device.receive_buffer;
    let size = if low == high { low.to_string() } else { format!("{low} to {high}") };
    if wanted == 0 {
        return Assessment::not_applicable(format!("the device has its own: {size} octets"));
    }
    let raised = if device.raised > 0 { "; the run raised it from outside" } else { "" };
    Assessment::when(
        (low, high) == (wanted, wanted),
        if (low, high) == (wanted, wanted) {
            format!("{size} octets as the kernel counts them{raised}")
        } else {
            format!(
                "{size} octets, and not {wanted}: losses may come from a short queue, or be hidden by a long one"
            )
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use crate::run::{DeviceUse, Kept, Participant};

    /// The states of the two rules.
    fn states(run: &Run) -> [Kept; 2] {
        let rules = beyond(run);
        [rules[0].state, rules[1].state]
    }

    fn trials(verdicts: &[(f64, Verdict)]) -> Run {
        let trial = |(rate_qps, verdict): &(f64, Verdict)| Trial {
            rate_qps: *rate_qps,
            outcome: Outcome { verdict: *verdict, ..Outcome::default() },
            device: Some(DeviceUse { others_s: Some(0.0), ..DeviceUse::default() }),
            ..Trial::default()
        };
        Run { trials: verdicts.iter().map(trial).collect(), ..Run::default() }
    }

    #[test]
    fn a_rate_that_was_given_up_for_want_of_cores_is_told() {
        let (pass, fail) = (Verdict::Pass, Verdict::Fail);
        let (starved, limited) = (Verdict::DeviceStarved, Verdict::TesterLimited);
        let state = |run: &Run| states(run)[0];
        assert_eq!(state(&Run::default()), Kept::NotChecked);
        assert_eq!(state(&trials(&[(1.0, pass), (2.0, fail)])), Kept::Kept);
        assert_eq!(state(&trials(&[(2.0, starved), (2.0, starved), (2.0, fail)])), Kept::Kept);
        assert_eq!(state(&trials(&[(2.0, starved), (2.0, starved), (3.0, starved)])), Kept::Kept);
        assert_eq!(state(&trials(&[(2.0, starved), (2.0, limited), (2.0, starved)])), Kept::NotKept);
        assert_eq!(state(&trials(&[(2.0, limited), (2.0, limited), (2.0, limited)])), Kept::Kept);
        let mut unwatched = trials(&[(2.0, fail)]);
        unwatched.trials[0].device = None;
        assert_eq!(state(&unwatched), Kept::NotChecked);
    }

    #[test]
    fn a_receive_buffer_of_another_size_is_told_and_does_not_decide_on_the_rfc() {
        let run = |wanted, receive_buffer| {
            let mut run = Run::default();
            run.settings.receive_buffer = wanted;
            let device = Participant { sockets: 2, receive_buffer, ..Participant::default() };
            run.participants.insert("device".to_owned(), device);
            run
        };
        for (wanted, found, state) in [
            (100, (100, 100), Kept::Kept),
            (100, (100, 101), Kept::NotKept),
            (100, (99, 100), Kept::NotKept),
            (100, (0, 0), Kept::NotChecked),
            (0, (99, 100), Kept::NotApplicable),
        ] {
            assert_eq!(states(&run(wanted, found))[1], state, "{wanted} {found:?}");
        }
        let rules = beyond(&run(100, (99, 100)));
        assert!(super::super::is_beyond(&rules[1]) && super::super::broken(&rules).next().is_none());
    }
}
