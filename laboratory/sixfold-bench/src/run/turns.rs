//! Several devices in turns: repetition 1 of the first, repetition 1 of the second, repetition 2 of the first, and so on, so
//! that a drift of the machine meets all of them alike.
//!
//! Each device has a [procedure](measure::procedure) and a folder of its own, which is that of a run of this device alone. A turn
//! is one search, the curve, or all that precedes a search (check, self-test, scout). The next turn belongs to the device
//! that is least far, so it follows from the journals, and a resumed run goes on in the same order.
//!
//! One device runs at a time. A stopped process (SIGSTOP) would keep its cache, and a waiting one would wake up for its
//! timers, so a device ends with its turn, and tester and authority with it.

use super::{Ended, Session, is_finished, profile_line};
use crate::bundle;
use crate::clock;
use crate::file_error::file_error;
use crate::run::journal::{self, Journal};
use crate::run::progress::RunDisplay;
use measure::plan::Plan;
use measure::procedure::{Action, Procedure};
use measure::run::{Purpose, Run};
use measure::units;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// File with the names of the devices, in the folder of all.
const TURNS_FILE: &str = "turns.json";

/// Content of [`TURNS_FILE`].
#[derive(Debug, Serialize, Deserialize)]
struct Turns {
    /// Names of the devices in order: their folders.
    devices: Vec<String>,
}

/// A device that took turns, and how its run ended.
#[derive(Debug)]
pub struct Device {
    /// Its name, and that of its folder.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The end of its run. The error has cause and remedy.
    pub ended: Result<Ended, String>,
}

/// Returns true if a folder has a run of devices in turns.
pub fn is_folder_of_turns(out: &Path) -> bool {
    out.join(TURNS_FILE).exists()
}

/// The folders of the devices that took turns in a folder, in order.
fn folders(out: &Path) -> Result<Vec<PathBuf>, String> {
    Ok(names(out)?.iter().map(|name| out.join(name)).collect())
}

/// Those of the folders whose device has a trial.
///
/// # Errors
///
/// The list of the devices' names in `out` cannot be read.
pub fn folders_with_trials(out: &Path) -> Result<Vec<PathBuf>, String> {
    Ok(folders(out)?.into_iter().filter(|folder| journal::holds_run(folder)).collect())
}

/// Begins a run of several devices in turns. Each has a name, which is that of its folder in `out`, and a plan.
///
/// # Errors
///
/// A folder has a run, as [`Journal::begin`] says, or a file cannot be written. A device that fails later is told in the result.
pub fn begin(
    plans: &[(String, Plan)],
    out: &Path,
    quiet: bool,
    stop: &AtomicBool,
) -> Result<Vec<Device>, String> {
    let names: Vec<String> = plans.iter().map(|(name, _)| name.clone()).collect();
    if journal::holds_run(out) {
        return Err(format!(
            "{}: this folder has a run of one device; choose another folder (--out)",
            out.display()
        ));
    }
    if is_folder_of_turns(out) && folders(out)?.iter().any(|folder| journal::holds_run(folder)) {
        return Err(format!(
            "{}: this folder has a run already; resume it (--resume) or choose another folder (--out)",
            out.display()
        ));
    }
    let folders: Vec<PathBuf> = names.iter().map(|name| out.join(name)).collect();
    let mut members = Vec::new();
    // All journals before the first trial: a folder that is refused must not end a run of hours.
    for ((name, plan), folder) in plans.iter().zip(&folders) {
        let plan = plan.clone().in_turns(&names);
        let journal = Journal::begin(folder, &plan, clock::now_utc())?;
        let procedure = Procedure::new(plan);
        let session = Session { journal, procedure, out: folder, resumed_by: out, quiet, stop };
        members.push(Member::new(name, session)?);
    }
    let text = serde_json::to_string_pretty(&Turns { devices: names.clone() });
    let text = text.map_err(|error| format!("the names of the devices: {error}"))?;
    bundle::write_atomically(&out.join(TURNS_FILE), &(text + "\n"), true)?;
    run_to_end(members, out, quiet, stop)
}

/// Resumes a run of devices in turns that was interrupted or killed. A device that failed is tried again.
///
/// # Errors
///
/// The list of the devices' names cannot be read, or as [`Journal::resume`]. A device that fails later is told in the result.
pub fn resume(out: &Path, quiet: bool, stop: &AtomicBool) -> Result<Vec<Device>, String> {
    let names = names(out)?;
    let folders = folders(out)?;
    let mut members = Vec::new();
    for (name, folder) in names.iter().zip(&folders) {
        members.push(Member::new(name, Session::resume(folder, out, quiet, stop)?)?);
    }
    run_to_end(members, out, quiet, stop)
}

/// Names of the devices of a folder. They come from a file, so they are checked: each is one part of a path.
fn names(out: &Path) -> Result<Vec<String>, String> {
    let path = out.join(TURNS_FILE);
    let text = fs::read_to_string(&path).map_err(|error| file_error(&path, &error))?;
    let Turns { devices } =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}; it is damaged", path.display()))?;
    match devices.iter().find(|name| bundle::safe_file_name(name) != **name) {
        Some(name) => Err(format!("{}: \"{name}\" is no name of a device's folder", path.display())),
        None => Ok(devices),
    }
}

/// A device with its part of the run.
struct Member<'a> {
    name: &'a str,
    session: Session<'a>,
    display: RunDisplay,
    /// The reason why it takes no further turn, if there is one.
    failed: Option<String>,
}

impl<'a> Member<'a> {
    fn new(name: &'a str, session: Session<'a>) -> Result<Member<'a>, String> {
        let display = session.display()?.in_turns(name);
        Ok(Member { name, session, display, failed: None })
    }

    /// The next turn; `None` if there is none.
    fn next_turn(&self) -> Option<Turn> {
        let procedure = &self.session.procedure;
        if self.failed.is_some() { None } else { Turn::of(procedure.plan(), &procedure.next()) }
    }

    fn time_left(&self) -> Duration {
        if self.next_turn().is_none() {
            Duration::ZERO
        } else {
            self.display.time_left(&self.session.procedure)
        }
    }

    /// Reads the facts of the hosts before any device loads them.
    fn read_environments(&mut self) -> Result<(), String> {
        let plan = self.session.procedure.plan().clone();
        let mut testbed = self.session.testbed(&plan)?;
        testbed.read_environments()?;
        self.session.record_surroundings(&testbed)
    }

    /// Notes how a part of the run ended. A failure ends the turns of this device alone.
    fn note(&mut self, done: Result<(), String>, stop: &AtomicBool) {
        let why = match (&done, self.session.procedure.next()) {
            (Err(why), _) => why.clone(),
            (Ok(()), Action::Stop(why)) => why,
            (Ok(()), _) => return,
        };
        self.failed = done.err();
        if !stop.load(Ordering::Relaxed) {
            self.display.print_line(&format!("no further turn, the others go on: {why}"));
        }
    }

    /// Carries out a turn: starts tester, authority and device, works until the turn is over, and ends them.
    fn take_turn(&mut self, turn: Turn, others_left: Duration) -> Result<(), String> {
        let plan = self.session.procedure.plan().clone();
        let testbed = self.session.testbed(&plan)?;
        self.display.begin_turn(others_left);
        let is_mine = |action: &Action| Turn::of(&plan, action).is_some_and(|next| next.continues(turn));
        let done = self.session.work(&plan, testbed, &self.display, is_mine);
        self.display.end_turn();
        done
    }
}

/// Takes turns until no device has any left, then writes all bundles and the report of all devices.
fn run_to_end(
    mut members: Vec<Member<'_>>,
    out: &Path,
    quiet: bool,
    stop: &AtomicBool,
) -> Result<Vec<Device>, String> {
    let say = |text: &str| {
        if !quiet {
            // The run continues if the reader of the pipe or the terminal has gone.
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    };
    announce(&members, out, say);
    let is_stopped = || stop.load(Ordering::Relaxed);
    for member in members.iter_mut().filter(|member| !is_finished(&member.session.procedure)) {
        if is_stopped() {
            break;
        }
        let done = member.read_environments();
        member.note(done, stop);
    }
    while let Some((at, turn)) = next(&members).filter(|_| !is_stopped()) {
        let others = members.iter().enumerate().filter(|(other, _)| *other != at);
        let others_left = others.map(|(_, member)| member.time_left()).sum();
        let member = &mut members[at];
        let done = member.take_turn(turn, others_left);
        member.note(done, stop);
    }
    let mut devices = Vec::new();
    for Member { name, session, display, failed } in members {
        let folder = session.out.to_owned();
        let ended = session.finish(failed.map_or(Ok(()), Err), &display);
        devices.push(Device { name: name.to_owned(), folder, ended });
    }
    write_report(&devices, out)?;
    Ok(devices)
}

/// The device with the next turn, and the turn: the least far device, of several the first.
fn next(members: &[Member<'_>]) -> Option<(usize, Turn)> {
    let turns = members.iter().enumerate().filter_map(|(at, member)| Some((at, member.next_turn()?)));
    turns.min_by_key(|(_, turn)| *turn)
}

/// Tells what is about to be done, and how long it takes.
fn announce(members: &[Member<'_>], out: &Path, say: impl Fn(&str)) {
    let Some(first) = members.first() else { return };
    let line = profile_line(first.session.procedure.plan());
    say(&line);
    let names: Vec<&str> = members.iter().map(|member| member.name).collect();
    for member in members {
        member.display.log(&line);
        member.display.log(&format!("in turns: {}", names.join(", ")));
    }
    let trials: u32 = members.iter().map(|member| member.session.procedure.trials_left()).sum();
    let left: Duration = members.iter().map(Member::time_left).sum();
    say(&format!(
        "in turns: {}; each is stopped while another has its turn\nabout {trials} trials, {}; may end earlier or later, depending on the \
         devices; interrupt at any time, resume with --resume --out {}",
        names.join(", "),
        units::show(left),
        out.display()
    ));
}

/// Writes the report of all devices that have a record.
fn write_report(devices: &[Device], out: &Path) -> Result<(), String> {
    let mut runs: Vec<(&str, Run)> = Vec::new();
    for device in devices.iter().filter(|device| device.folder.join(bundle::RECORD_FILE).exists()) {
        runs.push((&*device.name, bundle::read(&device.folder)?));
    }
    let runs: Vec<(&str, &Run)> = runs.iter().map(|(name, run)| (*name, run)).collect();
    if runs.is_empty() { Ok(()) } else { bundle::write_devices(&out.join(bundle::DEVICES_FILE), &runs) }
}

/// Stage of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Check, self-test and scout: all that precedes a search.
    Preparation,
    /// One search.
    Search,
    /// The self-test of a cell, which certifies its result.
    Certificate,
    /// The curve of loss against rate.
    Curve,
}

/// A turn of a device: in their order a run takes its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    sweep: usize,
    cell: usize,
    stage: Stage,
    repetition: u32,
}

impl Turn {
    /// The turn that an action belongs to; `None` if nothing is left to do.
    fn of(plan: &Plan, action: &Action) -> Option<Turn> {
        let sweep_of = |value: Option<&str>| {
            let values = plan.sweep.as_ref().map(|sweep| sweep.values.as_slice()).unwrap_or_default();
            values.iter().position(|other| Some(other.as_str()) == value).unwrap_or(0)
        };
        let preparation = |sweep, cell| Turn { sweep, cell, stage: Stage::Preparation, repetition: 0 };
        match action {
            Action::Trial(task) => {
                let sweep = task.sweep;
                // The cell of a self-test may be none of the plan's.
                let cell = plan.cells.iter().position(|cell| *cell == task.cell).unwrap_or(0);
                Some(match task.purpose {
                    Purpose::Search | Purpose::Confirm => {
                        Turn { sweep, cell, stage: Stage::Search, repetition: task.repetition }
                    }
                    Purpose::CellSelfTest => Turn { sweep, cell, stage: Stage::Certificate, repetition: 0 },
                    Purpose::Curve => Turn { sweep, cell, stage: Stage::Curve, repetition: 0 },
                    _ => preparation(sweep, cell),
                })
            }
            Action::Check(setup, _) => Some(preparation(sweep_of(setup.device.as_deref()), 0)),
            Action::Done | Action::Stop(_) => None,
        }
    }

    /// True if an action of this turn belongs to the turn that began as `first`: the steps of a preparation have various
    /// cells.
    fn continues(self, first: Turn) -> bool {
        self == first || (self.stage, first.stage) == (Stage::Preparation, Stage::Preparation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::outcome::{Outcome, Verdict};
    use measure::plan::Draft;
    use measure::procedure::Event;
    use measure::run::{Correctness, Trial};

    fn plan(text: &str) -> Plan {
        let text = format!("profile = \"quick\"\n[device]\ntemplate = \"sixfold\"\n{text}");
        Draft::parse(&text).unwrap().finish().unwrap()
    }

    /// Records what follows the next action of a device that answers up to this rate, and returns the action's turn.
    fn step(procedure: &mut Procedure, capacity_qps: f64) -> Option<Turn> {
        let action = procedure.next();
        let turn = Turn::of(procedure.plan(), &action)?;
        let event = match action {
            Action::Check(..) => {
                let found = Correctness { names: 9, valid: 9, ..Correctness::default() };
                Event::Check { found, names_used: 9 }
            }
            Action::Trial(task) => {
                let passes = task.purpose.is_self_test() || task.rate_qps <= capacity_qps;
                let verdict = if passes { Verdict::Pass } else { Verdict::Fail };
                Event::Trial(Trial {
                    purpose: task.purpose,
                    sweep: task.setup.device.unwrap_or_default(),
                    cell: task.cell,
                    repetition: task.repetition,
                    rate_qps: task.rate_qps,
                    first_name: task.first_name,
                    outcome: Outcome { verdict, names_used: 1, ..Outcome::default() },
                    ..Trial::default()
                })
            }
            Action::Done | Action::Stop(_) => return None,
        };
        procedure.record(event).unwrap();
        Some(turn)
    }

    /// All turns of the devices in the order in which they would be taken, each with the number of its device.
    fn order(procedures: &mut [(Procedure, f64)]) -> Vec<(usize, Turn)> {
        let mut taken = Vec::new();
        loop {
            let of = |procedure: &Procedure| Turn::of(procedure.plan(), &procedure.next());
            let next = procedures.iter().enumerate().filter_map(|(at, (it, _))| Some((at, of(it)?)));
            let Some((at, turn)) = next.min_by_key(|(_, turn)| *turn) else { return taken };
            taken.push((at, turn));
            let (procedure, capacity_qps) = &mut procedures[at];
            while of(procedure).is_some_and(|next| next.continues(turn)) {
                step(procedure, *capacity_qps);
            }
        }
    }

    #[test]
    fn the_searches_of_all_devices_alternate_whatever_their_speed() {
        let plan = plan("[search]\nrepetitions = 3\ncurve = [0.5]\n[grid]\naaaa = [0.0, 1.0]\n");
        let mut procedures = [
            (Procedure::new(plan.clone()), 3_000.0),
            (Procedure::new(plan.clone()), 70_000.0),
            (Procedure::new(plan), 20_000.0),
        ];
        let taken = order(&mut procedures);
        let first = |stage, repetition| Turn { sweep: 0, cell: 0, stage, repetition };
        let second = |stage, repetition| Turn { cell: 1, ..first(stage, repetition) };
        let turns = [
            first(Stage::Preparation, 0),
            first(Stage::Search, 0),
            first(Stage::Search, 1),
            first(Stage::Search, 2),
            first(Stage::Certificate, 0),
            first(Stage::Curve, 0),
            second(Stage::Preparation, 0),
            second(Stage::Search, 0),
            second(Stage::Search, 1),
            second(Stage::Search, 2),
            second(Stage::Certificate, 0),
        ];
        let expected: Vec<(usize, Turn)> =
            turns.iter().flat_map(|turn| (0..3).map(move |device| (device, *turn))).collect();
        assert_eq!(taken, expected);
    }

    #[test]
    fn a_device_that_is_behind_has_the_next_turn_and_the_order_needs_no_memory() {
        let plan = plan("[sweep]\nparameter = \"workers\"\nvalues = [\"1\", \"2\"]\n");
        let mut procedures = [(Procedure::new(plan.clone()), 9_000.0), (Procedure::new(plan), 9_000.0)];
        let whole = order(&mut procedures.clone());
        // Interrupted in the middle of the fourth turn, the first search of the second device.
        for (at, turn) in &whole[..3] {
            while Turn::of(procedures[*at].0.plan(), &procedures[*at].0.next())
                .is_some_and(|next| next.continues(*turn))
            {
                step(&mut procedures[*at].0, 9_000.0);
            }
        }
        assert_eq!(whole[3].0, 1);
        step(&mut procedures[1].0, 9_000.0);
        assert_eq!(order(&mut procedures), whole[3..]);
        assert_eq!(whole.iter().filter(|(_, turn)| turn.sweep == 1).count(), whole.len() / 2);
    }

    #[test]
    fn names_of_folders_come_from_a_file_and_lead_nowhere_else() {
        let folder = kit::Folder::new();
        folder.write(TURNS_FILE, "{\"devices\": [\"a\", \"../b\"]}");
        let error = folders(&folder).unwrap_err();
        assert!(error.contains("../b"), "{error}");
    }
}
