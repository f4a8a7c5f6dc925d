//! `sixfold-bench run`: carries out the actions of the [procedure](measure::procedure), writes every event to the
//! journal as it happens, and ends with a bundle and a report. It decides nothing about rates or verdicts: the
//! procedure does.
//!
//! First file to read: `testbed.rs`, which controls the hosts.

mod conformance;
mod cores;
mod journal;
mod progress;
mod record;
mod recorded;
mod testbed;
pub mod turns;

pub use journal::Journal;
pub use progress::thousands;
pub use recorded::{Recorded, read};

use crate::bundle;
use crate::clock;
use measure::outcome::Verdict;
use measure::plan::Plan;
use measure::procedure::{Action, Event, Procedure};
use measure::run::Run;
use measure::units;
use progress::RunDisplay;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use testbed::{LogEntry, Testbed};

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// All planned trials are done.
    Complete(Box<Run>),
    /// A signal stopped the run. It can be resumed with `--resume`.
    Interrupted,
    /// The procedure stopped the run, for this reason.
    Stopped(String),
}

/// Begins a run.
///
/// # Errors
///
/// The folder has a run or cannot be written, a host cannot be reached, or the run fails. An interruption is no error.
pub fn begin(plan: &Plan, out: &Path, quiet: bool, stop: &AtomicBool) -> Result<Ended, String> {
    if turns::is_folder_of_turns(out) {
        return Err(format!(
            "{}: this folder has a run of several devices; choose another folder (--out)",
            out.display()
        ));
    }
    let journal = Journal::begin(out, plan, clock::now_utc())?;
    let procedure = Procedure::new(plan.clone());
    Session { journal, procedure, out, resumed_by: out, quiet, stop }.run_to_end()
}

/// Resumes a run that was interrupted or killed.
///
/// # Errors
///
/// The folder has no run that can be resumed, a host cannot be reached, or the run fails. An interruption is no error.
pub fn resume(out: &Path, quiet: bool, stop: &AtomicBool) -> Result<Ended, String> {
    Session::resume(out, out, quiet, stop)?.run_to_end()
}

/// Returns true if the procedure has no further action.
fn is_finished(procedure: &Procedure) -> bool {
    matches!(procedure.next(), Action::Done | Action::Stop(_))
}

/// The part of a run that this process carries out.
struct Session<'a> {
    journal: Journal,
    procedure: Procedure,
    out: &'a Path,
    /// The folder with which `--resume` resumes it: its own, or that of all devices that take turns.
    resumed_by: &'a Path,
    quiet: bool,
    stop: &'a AtomicBool,
}

impl<'a> Session<'a> {
    /// Replays the journal of a run that was interrupted or killed.
    fn resume(
        out: &'a Path,
        resumed_by: &'a Path,
        quiet: bool,
        stop: &'a AtomicBool,
    ) -> Result<Session<'a>, String> {
        let (journal, procedure) = Journal::resume(out)?;
        let mut session = Session { journal, procedure, out, resumed_by, quiet, stop };
        if !is_finished(&session.procedure) {
            session.record(Event::Resumed)?;
        }
        Ok(session)
    }

    /// The display of its progress.
    fn display(&self) -> Result<RunDisplay, String> {
        RunDisplay::new(self.quiet, self.procedure.trials().len() as u32, self.out)
    }

    /// Runs to the end, and writes the bundle in every case.
    fn run_to_end(mut self) -> Result<Ended, String> {
        let display = self.display()?;
        let ended = match self.procedure.next() {
            // The run was killed between the last trial and the bundle. No host is needed for the bundle.
            Action::Done | Action::Stop(_) => Ok(()),
            _ => self.measure(&display),
        };
        self.finish(ended, &display)
    }

    /// Writes the bundle. `measured`: the reason why the measurement ended early.
    fn finish(self, measured: Result<(), String>, display: &RunDisplay) -> Result<Ended, String> {
        let is_stopped = || self.stop.load(Ordering::Relaxed);
        // Clear the status line.
        display.status("");
        let ended = match (measured, self.procedure.next()) {
            (Ok(()), Action::Done) => Ok(Ended::Complete(Box::default())),
            (Ok(()), Action::Stop(why)) => Ok(Ended::Stopped(match last_reason(&self.procedure) {
                Some(reason) => format!("{why} (the last trial: {reason})"),
                None => why,
            })),
            // An interrupt from the keyboard also interrupts ssh, so the agents behind it end first.
            (Ok(()), _) | (Err(_), _) if is_stopped() => Ok(Ended::Interrupted),
            (Ok(()), _) => Err("the run ended before the procedure was finished".to_owned()),
            (Err(why), _) if self.procedure.trials().is_empty() => return Err(why),
            (Err(why), _) => Err(format!(
                "{why}; the results so far are in {out}; resume with: sixfold-bench run --resume --out {out}",
                out = self.resumed_by.display()
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
            // The reason why the run stopped comes first.
            return Err(ended.err().map_or(why.clone(), |first| format!("{first}; {why}")));
        }
        ended.map(|ended| if complete { Ended::Complete(Box::new(run)) } else { ended })
    }

    /// Carries out the actions of the procedure, until it is finished or a signal comes.
    fn measure(&mut self, display: &RunDisplay) -> Result<(), String> {
        let plan = self.procedure.plan().clone();
        display.print_line(&profile_line(&plan));
        display.print_line(&format!(
            "about {} trials, {}; may end earlier or later, depending on the device; interrupt at any time, resume with --resume --out {}",
            self.procedure.trials_left(),
            units::show(display.time_left(&self.procedure)),
            self.out.display()
        ));
        let mut testbed = self.testbed(&plan)?;
        testbed.read_environments()?;
        self.work(&plan, testbed, display, |_| true)
    }

    /// Connects to the hosts of the plan.
    fn testbed<'b>(&self, plan: &'b Plan) -> Result<Testbed<'b>, String>
    where
        'a: 'b,
    {
        Testbed::open(plan, self.procedure.surroundings().clone(), self.stop)
    }

    /// Carries out the next actions while they are wanted, then ends the device.
    fn work(
        &mut self,
        plan: &Plan,
        mut testbed: Testbed<'_>,
        display: &RunDisplay,
        is_wanted: impl Fn(&Action) -> bool,
    ) -> Result<(), String> {
        while !is_finished(&self.procedure) && is_wanted(&self.procedure.next()) {
            let done = self.step(plan, &mut testbed, display);
            show(testbed.notes(), display);
            // Includes what a failed step has found out.
            self.record_surroundings(&testbed)?;
            if !done? || self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        show(testbed.close(), display);
        Ok(())
    }

    /// Records what the testbed has found out about the participants, if it is new.
    fn record_surroundings(&mut self, testbed: &Testbed<'_>) -> Result<(), String> {
        if testbed.surroundings() == self.procedure.surroundings() {
            return Ok(());
        }
        self.record(Event::Surroundings(testbed.surroundings().clone()))
    }

    /// Carries out one action. Returns false if a signal interrupted it.
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
                // The log entries so far come before the trial.
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
                display.print_line(&format!("{} of {} answers are valid", found.valid, found.names));
                self.record(Event::Check { found, names_used })?;
            }
            Action::Done | Action::Stop(_) => {}
        }
        Ok(true)
    }

    /// Writes an event to the journal and records it in the procedure.
    fn record(&mut self, event: Event) -> Result<(), String> {
        self.journal.write(&event)?;
        self.procedure.record(event).map_err(|error| error.to_string())
    }
}

/// The profile of a plan, and the rules that its settings break.
fn profile_line(plan: &Plan) -> String {
    let profile = &plan.profile;
    match plan.departures().as_slice() {
        [] => format!("profile {profile}"),
        because => format!("profile {profile}: NOT compliant with RFC 8219 ({})", because.join(", ")),
    }
}

/// Shows or logs entries.
fn show(notes: Vec<LogEntry>, display: &RunDisplay) {
    for note in notes {
        match note {
            LogEntry::Shown(text) => display.print_line(&text),
            LogEntry::LogOnly(text) => display.log(&text),
        }
    }
}

/// The reason why the last trial did not pass.
fn last_reason(procedure: &Procedure) -> Option<&str> {
    let trial = procedure.trials().last().filter(|trial| trial.outcome.verdict != Verdict::Pass)?;
    Some(trial.outcome.reason.as_str()).filter(|reason| !reason.is_empty())
}
