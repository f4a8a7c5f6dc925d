//! `sixfold-bench run`: carries out what the [procedure](measure::procedure) asks for, writes everything down as it happens,
//! and ends with a bundle and a report.

mod conformance;
mod cores;
mod journal;
mod laboratory;
mod progress;
mod record;

pub use journal::Journal;
pub use progress::thousands;

use crate::bundle;
use crate::clock;
use laboratory::Laboratory;
use measure::amount;
use measure::outcome::Verdict;
use measure::plan::Plan;
use measure::procedure::{Action, Event, Procedure};
use measure::run::Run;
use progress::Display;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// All that was planned is done.
    Complete(Box<Run>),
    /// It was told to stop; it can go on with `--resume`.
    Interrupted,
    /// It makes no sense to go on; why.
    Stopped(String),
}

/// Begins a run.
pub fn begin(plan: &Plan, out: &Path, quiet: bool, stop: &AtomicBool) -> Result<Ended, String> {
    let journal = Journal::begin(out, plan, clock::now_utc())?;
    go_on(journal, Procedure::new(plan.clone()), out, quiet, stop)
}

/// Goes on with a run that was interrupted or killed.
pub fn resume(out: &Path, quiet: bool, stop: &AtomicBool) -> Result<Ended, String> {
    let (journal, procedure) = Journal::resume(out)?;
    go_on(journal, procedure, out, quiet, stop)
}

fn go_on(
    mut journal: Journal,
    mut procedure: Procedure,
    out: &Path,
    quiet: bool,
    stop: &AtomicBool,
) -> Result<Ended, String> {
    let plan = procedure.plan().clone();
    let display = Display::new(quiet, procedure.trials().len() as u32);
    if plan.profile != "rfc8219" {
        display.say(&format!("profile {}: NOT compliant with RFC 8219", plan.profile));
    }
    display.say(&format!(
        "about {} trials, {}; ends earlier or later as the device decides; interrupt at any time, go on with --resume --out {}",
        procedure.trials_left(),
        amount::show(display.time_left(&procedure)),
        out.display()
    ));
    let mut laboratory = Laboratory::open(&plan, stop)?;
    let mut known = record::Known::of(&journal, &mut laboratory)?;
    let ended = loop {
        match procedure.next() {
            Action::Trial(task) => {
                display.now(&format!("{} q/s ...", thousands(task.rate_qps)));
                let trial = laboratory.trial(&task, |now| {
                    display.now(&format!(
                        "{} q/s: {:.0} s, {} sent, {} valid in the last second",
                        thousands(task.rate_qps),
                        now.elapsed_s,
                        now.counted.sent,
                        now.counted.valid
                    ));
                })?;
                let Some(mut trial) = trial else { break Ended::Interrupted };
                trial.number = procedure.trials().len() as u32;
                let outcome = trial.outcome.clone();
                let event = Event::Trial(trial);
                journal.write(&event)?;
                procedure.record(event).map_err(|error| error.to_string())?;
                display.trial(&procedure, &task, &outcome);
            }
            Action::Check(setup, first_name) => {
                display.now("checking the answers ...");
                let checked = laboratory.check(&setup, first_name)?;
                let Some((mut found, names_used)) = checked else { break Ended::Interrupted };
                conformance::play(&plan, laboratory.device(), &mut found, &display)?;
                display.say(&format!("{} of {} answers are right", found.valid, found.names));
                let event = Event::Check { found, names_used };
                journal.write(&event)?;
                procedure.record(event).map_err(|error| error.to_string())?;
            }
            Action::Done => break Ended::Complete(Box::default()),
            Action::Stop(why) => break Ended::Stopped(why),
        }
        if stop.load(Ordering::Relaxed) && !matches!(procedure.next(), Action::Done) {
            break Ended::Interrupted;
        }
    };
    known.device = laboratory.device().clone();
    known.authority = laboratory.authority().map(|address| address.to_string()).unwrap_or_default();
    laboratory.close();
    let complete = matches!(ended, Ended::Complete(_));
    let run = record::run(&procedure, &known, complete);
    bundle::write(out, &run)?;
    Ok(match ended {
        Ended::Complete(_) => Ended::Complete(Box::new(run)),
        Ended::Interrupted => Ended::Interrupted,
        Ended::Stopped(why) => Ended::Stopped(match last_reason(&procedure) {
            Some(reason) => format!("{why} (the last trial: {reason})"),
            None => why,
        }),
    })
}

/// Why the last trial did not pass, if it did not.
fn last_reason(procedure: &Procedure) -> Option<&str> {
    let trial = procedure.trials().last().filter(|trial| trial.outcome.verdict != Verdict::Pass)?;
    Some(trial.outcome.reason.as_str()).filter(|reason| !reason.is_empty())
}
