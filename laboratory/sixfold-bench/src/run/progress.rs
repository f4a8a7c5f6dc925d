//! Progress of a run: one line per trial with the time that is left, and on a terminal the current second of the trial.
//! A file keeps the lines, each with its time.

use crate::clock;
use crate::file_error::file_error;
use measure::outcome::{Outcome, Verdict};
use measure::procedure::{Procedure, Task};
use measure::run::{Purpose, Trial};
use measure::units;
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Display of the progress.
pub struct RunDisplay {
    quiet: bool,
    terminal: bool,
    /// Beginning of every shown line: `unbound: ` if the device takes turns with others; the log has none.
    prefix: String,
    /// Start of the current turn; `None` while another device has its turn.
    began: Option<Instant>,
    /// Time of the turns before the current one.
    spent: Duration,
    /// Estimated time that the other devices need.
    others_left: Duration,
    /// Number of trials of the earlier run that this one resumes.
    earlier_trials: u32,
    log: File,
}

/// File of the log in the folder of a run.
const LOG_FILE: &str = "log.txt";

impl RunDisplay {
    /// Returns a display on standard error, with a log in the folder of the run. `earlier_trials`: trials of the run
    /// before it was resumed.
    ///
    /// # Errors
    ///
    /// The file of the log cannot be opened.
    pub fn new(quiet: bool, earlier_trials: u32, folder: &Path) -> Result<RunDisplay, String> {
        let path = folder.join(LOG_FILE);
        let log = OpenOptions::new().create(true).append(true).open(&path);
        let log = log.map_err(|error| file_error(&path, &error))?;
        Ok(RunDisplay {
            quiet,
            terminal: std::io::stderr().is_terminal(),
            prefix: String::new(),
            began: Some(Instant::now()),
            spent: Duration::ZERO,
            others_left: Duration::ZERO,
            earlier_trials,
            log,
        })
    }

    /// The display of a device that takes turns with others. It begins without a turn.
    pub fn in_turns(self, device: &str) -> RunDisplay {
        RunDisplay { prefix: format!("{device}: "), began: None, ..self }
    }

    /// Begins a turn; the other devices need about `others_left` more.
    pub fn begin_turn(&mut self, others_left: Duration) {
        self.others_left = others_left;
        self.began = Some(Instant::now());
    }

    /// Ends the turn: the time of the other devices' turns does not count.
    pub fn end_turn(&mut self) {
        self.spent += self.began.take().map_or(Duration::ZERO, |began| began.elapsed());
    }

    /// Prints and logs a line.
    pub fn print_line(&self, text: &str) {
        self.log(text);
        if !self.quiet {
            // The run continues if the reader of the pipe or the terminal has gone.
            let _ = writeln!(std::io::stderr(), "{}{}{text}", self.clear(), self.prefix);
        }
    }

    /// Writes lines to the log alone, the first with the time.
    pub fn log(&self, text: &str) {
        // The journal has the results, so a log that cannot be written does not stop the run.
        let _ = writeln!(&self.log, "{} {}", clock::now_utc(), text.replace('\n', "\n    "));
    }

    /// Shows the current status on a terminal. The next text overwrites it.
    pub fn status(&self, text: &str) {
        if !self.quiet && self.terminal {
            let mut out = std::io::stderr().lock();
            // A status that cannot be shown does not stop the run.
            let prefix = if text.is_empty() { "" } else { &self.prefix };
            let _ = write!(out, "{}{prefix}{text}", self.clear()).and_then(|()| out.flush());
        }
    }

    /// Prints the line of a trial that has ended.
    pub fn trial(&self, procedure: &Procedure, task: &Task, outcome: &Outcome) {
        let done = procedure.trials().len() as u32;
        self.print_line(&format!(
            "{done:>4} of about {}, {} left{}: {}{}",
            done + procedure.trials_left(),
            units::show(self.time_left(procedure) + self.others_left),
            if self.prefix.is_empty() { "" } else { " for all" },
            trial_line(task, outcome),
            if is_first_limit(procedure.trials()) { LIMIT_NOTE } else { "" }
        ));
    }

    /// Estimates the time that is left for this device: by the plan, and after some trials scaled by the time that they took.
    pub fn time_left(&self, procedure: &Procedure) -> Duration {
        let left = procedure.time_left();
        let mine = procedure.time_planned(self.earlier_trials as usize);
        let is_known = procedure.trials().len() >= self.earlier_trials as usize + 3 && !mine.is_zero();
        let spent = self.spent + self.began.map_or(Duration::ZERO, |began| began.elapsed());
        let pace = if is_known { spent.as_secs_f64() / mine.as_secs_f64() } else { 1.0 };
        Duration::from_secs((left.as_secs_f64() * pace) as u64)
    }

    fn clear(&self) -> &'static str {
        // Carriage return, and erase to the end of the line.
        if self.terminal { "\r\x1b[K" } else { "" }
    }
}

/// Note on the first trial of the self-test in which the tester was the limit.
const LIMIT_NOTE: &str = " (no fault: this is how the self-test finds the limit of the tester; a rate counts as failed after 3 such trials)";

/// True if the last trial is the first one of the self-test in which the tester was the limit.
fn is_first_limit(trials: &[Trial]) -> bool {
    let is_limit =
        |trial: &&Trial| trial.purpose.is_self_test() && trial.outcome.verdict == Verdict::TesterLimited;
    trials.last().as_ref().is_some_and(is_limit) && trials.iter().filter(is_limit).count() == 1
}

/// A trial in one line.
fn trial_line(task: &Task, outcome: &Outcome) -> String {
    let what = match task.purpose {
        Purpose::SelfTest => "self-test".to_owned(),
        Purpose::CellSelfTest => "self-test with the device's traffic".to_owned(),
        Purpose::Scout => "first rate".to_owned(),
        Purpose::LossGoal => format!("search {}, loss goals", task.repetition + 1),
        Purpose::Curve => "curve".to_owned(),
        Purpose::Search => format!("search {}", task.repetition + 1),
        Purpose::Confirm => format!("search {}, again", task.repetition + 1),
    };
    let sweep = match task.setup.device.as_deref() {
        None | Some("") => String::new(),
        Some(value) => format!(" [{value}]"),
    };
    let cell = match task.purpose {
        Purpose::SelfTest => String::new(),
        _ => format!(
            ", AAAA {} %, cached {} %",
            percent(task.cell.aaaa_share),
            percent(task.cell.cached_share)
        ),
    };
    let verdict = match outcome.verdict {
        Verdict::Pass => format!("pass, p99 {:.1} ms", outcome.latency_us.actual.p99 / 1000.0),
        Verdict::Fail => format!("fail: {}", outcome.reason),
        Verdict::TesterLimited => format!("tester limited: {}", outcome.reason),
        Verdict::DeviceStarved => format!("device starved: {}", outcome.reason),
    };
    format!("{what}{sweep}{cell}, {} q/s: {verdict}", thousands(task.rate_qps))
}

fn percent(share: f64) -> f64 {
    (share * 1000.0).round() / 10.0
}

/// Formats a number as an integer with its digits in groups of three.
pub fn thousands(number: f64) -> String {
    units::grouped(number.max(0.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::procedure::Setup;
    use measure::run::Cell;

    #[test]
    fn the_limit_of_the_tester_is_explained_once() {
        let trial = |purpose, verdict| Trial {
            purpose,
            outcome: Outcome { verdict, ..Outcome::default() },
            ..Trial::default()
        };
        let (test, search, limited) = (Purpose::SelfTest, Purpose::Search, Verdict::TesterLimited);
        let trials =
            [(search, limited), (test, Verdict::Pass), (test, limited), (test, limited), (search, limited)]
                .map(|(purpose, verdict)| trial(purpose, verdict));
        let noted: Vec<bool> = (0..=trials.len()).map(|end| is_first_limit(&trials[..end])).collect();
        assert_eq!(noted, [false, false, false, true, false, false]);
    }

    #[test]
    fn a_trial_says_what_it_was_and_how_it_ended() {
        let task = Task {
            purpose: Purpose::Confirm,
            setup: Setup { device: Some("4".into()), fresh: false, aaaa_share: 0.2 },
            cell: Cell { aaaa_share: 0.2, cached_share: 0.0 },
            repetition: 1,
            rate_qps: 17_400.0,
            first_name: 0,
            form: None,
            sweep: 0,
        };
        let outcome = Outcome { reason: "2 lost".into(), ..Outcome::default() };
        assert_eq!(
            trial_line(&task, &outcome),
            "search 2, again [4], AAAA 20 %, cached 0 %, 17,400 q/s: fail: 2 lost"
        );
    }
}
