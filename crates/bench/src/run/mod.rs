//! `sixfold-bench run`: carries out what the [procedure](measure::procedure) asks for, writes everything down as it happens,
//! and ends with a bundle and a report.

mod conformance;
mod cores;
mod journal;
mod progress;
mod record;
mod testbed;

pub use journal::Journal;
pub use progress::thousands;

use crate::bundle;
use crate::clock;
use measure::amount;
use measure::outcome::Verdict;
use measure::plan::Plan;
use measure::procedure::{Action, Event, Procedure};
use measure::run::Run;
use progress::RunDisplay;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use testbed::{LogEntry, Testbed};

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
    Session { journal, procedure: Procedure::new(plan.clone()), out, quiet, stop }.run_to_end()
}

/// Goes on with a run that was interrupted or killed.
pub fn resume(out: &Path, quiet: bool, stop: &AtomicBool) -> Result<Ended, String> {
    let (mut journal, mut procedure) = Journal::resume(out)?;
    if !is_finished(&procedure) {
        journal.write(&Event::Resumed)?;
        procedure.record(Event::Resumed).map_err(|error| error.to_string())?;
    }
    Session { journal, procedure, out, quiet, stop }.run_to_end()
}

/// Whether there is nothing more to do.
fn is_finished(procedure: &Procedure) -> bool {
    matches!(procedure.next(), Action::Done | Action::Stop(_))
}

/// This program's part of a run.
struct Session<'a> {
    journal: Journal,
    procedure: Procedure,
    out: &'a Path,
    quiet: bool,
    stop: &'a AtomicBool,
}

impl Session<'_> {
    /// Goes on to the end, and writes the bundle however that is.
    fn run_to_end(mut self) -> Result<Ended, String> {
        let display = RunDisplay::new(self.quiet, self.procedure.trials().len() as u32, self.out)?;
        let is_stopped = || self.stop.load(Ordering::Relaxed);
        let ended = match self.procedure.next() {
            // Killed between the last trial and the bundle: no host is needed for that.
            Action::Done | Action::Stop(_) => Ok(()),
            _ => self.measure(&display),
        };
        // What comes next is no status.
        display.status("");
        let ended = match (ended, self.procedure.next()) {
            (Ok(()), Action::Done) => Ok(Ended::Complete(Box::default())),
            (Ok(()), Action::Stop(why)) => Ok(Ended::Stopped(match last_reason(&self.procedure) {
                Some(reason) => format!("{why} (the last trial: {reason})"),
                None => why,
            })),
            // Whoever interrupts from the keyboard interrupts ssh too, and the hosts behind it are gone first.
            (Ok(()), _) | (Err(_), _) if is_stopped() => Ok(Ended::Interrupted),
            (Ok(()), _) => Err("the run ended before its end".to_owned()),
            (Err(why), _) if self.procedure.trials().is_empty() => return Err(why),
            (Err(why), _) => Err(format!(
                "{why}; what was measured so far is in {out}; go on with: sixfold-bench run --resume --out {out}",
                out = self.out.display()
            )),
        };
        let complete = matches!(ended, Ok(Ended::Complete(_)));
        let run = record::build(&self.procedure, self.journal.started(), complete);
        match &ended {
            Ok(Ended::Complete(_)) => display.log("complete"),
            Ok(Ended::Interrupted) => display.log("interrupted"),
            Ok(Ended::Stopped(why)) | Err(why) => display.log(&format!("stopped: {why}")),
        }
        if let Err(why) = bundle::write(self.out, &run) {
            // Why it stopped comes first.
            return Err(ended.err().map_or(why.clone(), |first| format!("{first}; {why}")));
        }
        ended.map(|ended| if complete { Ended::Complete(Box::new(run)) } else { ended })
    }

    /// Does what the procedure wants, until it is over or somebody interrupts.
    fn measure(&mut self, display: &RunDisplay) -> Result<(), String> {
        let plan = self.procedure.plan().clone();
        let profile = &plan.profile;
        match plan.departures().as_slice() {
            [] => display.print_line(&format!("profile {profile}")),
            because => display.print_line(&format!(
                "profile {profile}: NOT compliant with RFC 8219 ({})",
                because.join(", ")
            )),
        }
        display.print_line(&format!(
            "about {} trials, {}; ends earlier or later as the device decides; interrupt at any time, go on with --resume --out {}",
            self.procedure.trials_left(),
            amount::show(display.time_left(&self.procedure)),
            self.out.display()
        ));
        let known = self.procedure.surroundings().clone();
        let mut testbed = Testbed::open(&plan, known, self.stop)?;
        testbed.read_environments()?;
        while !is_finished(&self.procedure) {
            let done = self.step(&plan, &mut testbed, display);
            show(testbed.notes(), display);
            // Also what a step that failed has found out.
            if testbed.surroundings() != self.procedure.surroundings() {
                self.record(Event::Surroundings(testbed.surroundings().clone()))?;
            }
            if !done? || self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        show(testbed.close(), display);
        Ok(())
    }

    /// Does one thing; false when it was interrupted.
    fn step(&mut self, plan: &Plan, testbed: &mut Testbed<'_>, display: &RunDisplay) -> Result<bool, String> {
        match self.procedure.next() {
            Action::Trial(task) => {
                display.status(&format!("{} q/s ...", thousands(task.rate_qps)));
                let trial = testbed.trial(&task, |now| {
                    display.status(&format!(
                        "{} q/s: {:.0} s, {} sent, {} valid in the last second",
                        thousands(task.rate_qps),
                        now.elapsed_s,
                        now.counted.sent,
                        now.counted.valid
                    ));
                })?;
                // What was noted came before the trial.
                show(testbed.notes(), display);
                let Some(mut trial) = trial else { return Ok(false) };
                trial.number = self.procedure.trials().len() as u32;
                let outcome = trial.outcome.clone();
                self.record(Event::Trial(trial))?;
                display.trial(&self.procedure, &task, &outcome);
            }
            Action::Check(setup, first_name) => {
                display.status("checking the answers ...");
                let checked = testbed.check(&setup, first_name)?;
                let Some((mut found, names_used)) = checked else { return Ok(false) };
                conformance::play_cases(plan, &testbed.surroundings().device, &mut found, display)?;
                display.print_line(&format!("{} of {} answers are right", found.valid, found.names));
                self.record(Event::Check { found, names_used })?;
            }
            Action::Done | Action::Stop(_) => {}
        }
        Ok(true)
    }

    /// Writes down what happened, and tells the procedure.
    fn record(&mut self, event: Event) -> Result<(), String> {
        self.journal.write(&event)?;
        self.procedure.record(event).map_err(|error| error.to_string())
    }
}

/// Says and logs what was noted.
fn show(notes: Vec<LogEntry>, display: &RunDisplay) {
    for note in notes {
        match note {
            LogEntry::Shown(text) => display.print_line(&text),
            LogEntry::LogOnly(text) => display.log(&text),
        }
    }
}

/// Why the last trial did not pass, if it did not.
fn last_reason(procedure: &Procedure) -> Option<&str> {
    let trial = procedure.trials().last().filter(|trial| trial.outcome.verdict != Verdict::Pass)?;
    Some(trial.outcome.reason.as_str()).filter(|reason| !reason.is_empty())
}
