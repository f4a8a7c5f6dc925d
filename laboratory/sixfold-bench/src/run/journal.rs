//! Journal of a run: its plan, and every event, on disk before the next step begins. A run that was killed resumes from
//! these two files. One process at a time writes the journal: the file is locked.

use crate::bundle;
use crate::file_error::file_error;
use measure::plan::Plan;
use measure::procedure::{Event, Procedure};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// File of the events, one JSON object a line.
const EVENTS_FILE: &str = bundle::JOURNAL_FILE;

/// File of the plan and the start time of the run.
const PLAN_FILE: &str = "plan.json";

/// Tries for the lock of a journal, and the time between two: half a second in all.
const LOCK_TRIES: u32 = 25;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    started: String,
}

/// Content of the plan's file.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    /// Start time of the run, UTC, RFC 3339.
    started: String,
    /// Plan of the run.
    plan: Plan,
}

impl Journal {
    /// Begins a journal in a folder. Creates the folder if it does not exist. A run that failed before its first trial is started
    /// again.
    ///
    /// # Errors
    ///
    /// The folder has a run with a trial, another process has its journal, or a file cannot be written.
    pub fn begin(folder: &Path, plan: &Plan, started: String) -> Result<Journal, String> {
        fs::create_dir_all(folder).map_err(|error| file_error(folder, &error))?;
        let path = folder.join(EVENTS_FILE);
        let file = open_locked(&path)?;
        let plan_path = folder.join(PLAN_FILE);
        if holds_run(folder) {
            return Err(format!(
                "{}: this folder has a run already; resume it (--resume) or choose another folder (--out)",
                folder.display()
            ));
        }
        file.set_len(0).map_err(|error| file_error(&path, &error))?;
        let header = Header { started, plan: plan.clone() };
        let text = serde_json::to_string_pretty(&header).map_err(|error| format!("the plan: {error}"))?;
        // Written atomically: with half a plan the run could neither resume nor start again.
        bundle::write_atomically(&plan_path, &(text + "\n"), true)?;
        Ok(Journal { path, file, started: header.started })
    }

    /// Opens the journal of a folder and replays its events into a procedure.
    ///
    /// # Errors
    ///
    /// The folder has no run, another process has its journal, or a file cannot be read, or is of another version of the format.
    pub fn resume(folder: &Path) -> Result<(Journal, Procedure), String> {
        let (started, mut procedure) = read_plan(folder)?;
        let path = folder.join(EVENTS_FILE);
        let file = open_locked(&path)?;
        let complete_octets = replay(&path, &mut procedure)?;
        file.set_len(complete_octets).map_err(|error| file_error(&path, &error))?;
        Ok((Journal { path, file, started }, procedure))
    }

    /// Start time of the run.
    pub fn started(&self) -> &str {
        &self.started
    }

    /// Writes an event. It is on the disk when this returns.
    ///
    /// # Errors
    ///
    /// The event cannot be written to the disk, which may be full.
    pub fn write(&mut self, event: &Event) -> Result<(), String> {
        let line = serde_json::to_string(event).map_err(|error| format!("an event: {error}"))? + "\n";
        let done = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        done.map_err(|error| format!("{}: {error}; free some space, then use --resume", self.path.display()))
    }
}

/// A run that has not ended, as its journal has it.
#[derive(Debug)]
pub struct Unfinished {
    /// Start time of the run, UTC, RFC 3339.
    pub started: String,
    /// The procedure after the last complete event.
    pub procedure: Procedure,
}

/// The run of a folder if another process is working on it at this moment; `None` if no process is, or the file system
/// has no locks. Changes nothing.
///
/// # Errors
///
/// The run has only just begun, or a file cannot be read.
pub fn in_progress(folder: &Path) -> Result<Option<Unfinished>, String> {
    let path = folder.join(EVENTS_FILE);
    let Ok(file) = File::open(&path) else { return Ok(None) };
    // A shared lock is refused only while a writer holds the exclusive one. It is released at once.
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return Ok(None);
    }
    if !folder.join(PLAN_FILE).exists() {
        return Err(format!("{}: the run has only just begun; try again in a second", folder.display()));
    }
    let (started, mut procedure) = read_plan(folder)?;
    replay(&path, &mut procedure)?;
    Ok(Some(Unfinished { started, procedure }))
}

/// Opens the events for appending, with a lock for this process. A child of a process that has just ended or closed the file may hold
/// the lock between fork and exec, so it is tried for a moment.
fn open_locked(path: &Path) -> Result<File, String> {
    let file =
        OpenOptions::new().create(true).append(true).open(path).map_err(|error| file_error(path, &error))?;
    let mut locked = file.try_lock();
    for _ in 1..LOCK_TRIES {
        if !matches!(locked, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(LOCK_PAUSE);
        locked = file.try_lock();
    }
    match locked {
        // A file system without locks gives no protection; everything else works.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(format!(
            "{}: another sixfold-bench is working on this run; wait for it, or end it",
            path.display()
        )),
    }
}

/// Reads the start time of a run, and its procedure before the first event.
fn read_plan(folder: &Path) -> Result<(String, Procedure), String> {
    let path = folder.join(PLAN_FILE);
    let text = fs::read_to_string(&path).map_err(|error| {
        format!("{}: {error}; there is no run to resume: begin one without --resume", path.display())
    })?;
    let Header { started, plan } = serde_json::from_str(&text).map_err(|error| {
        format!(
            "{}: {error}; it is damaged, or another release wrote it: resume with that release, or begin a new run in another folder",
            path.display()
        )
    })?;
    plan.check().map_err(|error| format!("{}: {error}", path.display()))?;
    Ok((started, Procedure::new(plan)))
}

/// Records the events of a journal in a procedure, and returns the number of octets read. A last line without a line
/// end was being written when the run was killed: its trial is repeated.
fn replay(path: &Path, procedure: &mut Procedure) -> Result<u64, String> {
    let text = fs::read(path).map_err(|error| file_error(path, &error))?;
    let mut complete_octets = 0;
    for (number, line) in text.split_inclusive(|octet| *octet == b'\n').enumerate() {
        let Some(line) = line.strip_suffix(b"\n") else { break };
        let refuse = |why: String| format!("{}: line {}: {why}", path.display(), number + 1);
        let event: Event = serde_json::from_slice(line).map_err(|error| {
            refuse(format!(
                "{error}; the file is damaged: without this line and those after it (`sed -i \'{},$d\'`) --resume continues from the lines \
                 before it",
                number + 1
            ))
        })?;
        procedure.record(event).map_err(|error| refuse(error.to_string()))?;
        complete_octets += line.len() as u64 + 1;
    }
    Ok(complete_octets)
}

/// Returns true if a folder holds a run that is not to be overwritten.
pub fn holds_run(folder: &Path) -> bool {
    folder.join(PLAN_FILE).exists() && !has_no_trials(folder)
}

/// Returns true if the run in a folder ended before its first trial. A journal that cannot be read counts as a run with
/// trials, so that it is never overwritten.
fn has_no_trials(folder: &Path) -> bool {
    read_plan(folder).is_ok_and(|(_, mut procedure)| {
        replay(&folder.join(EVENTS_FILE), &mut procedure).is_ok() && procedure.trials().is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kit::Folder;
    use measure::plan::Draft;
    use measure::procedure::Action;
    use measure::run::{Correctness, Trial};

    fn plan() -> Plan {
        Draft::parse("profile = \"quick\"\n[device]\ntemplate = \"sixfold\"\n").unwrap().finish().unwrap()
    }

    /// The event that completes the next action.
    fn done(procedure: &Procedure) -> Event {
        let Action::Trial(task) = procedure.next() else {
            let found = Correctness { names: 9, valid: 9, ..Correctness::default() };
            return Event::Check { found, names_used: 9 };
        };
        Event::Trial(Trial {
            purpose: task.purpose,
            cell: task.cell,
            rate_qps: task.rate_qps,
            first_name: task.first_name,
            ..Trial::default()
        })
    }

    fn begin(folder: &Folder) -> Result<Journal, String> {
        Journal::begin(folder, &plan(), "2030-01-01T00:00:00Z".into())
    }

    /// Writes a journal of three events. Returns the procedure that they lead to.
    fn three_events(folder: &Folder) -> Procedure {
        let mut journal = begin(folder).unwrap();
        let mut procedure = Procedure::new(plan());
        for _ in 0..3 {
            let event = done(&procedure);
            journal.write(&event).unwrap();
            procedure.record(event).unwrap();
        }
        procedure
    }

    #[test]
    fn a_journal_brings_a_procedure_to_where_it_was() {
        let folder = Folder::new();
        let procedure = three_events(&folder);
        let (mut journal, resumed) = Journal::resume(&folder).unwrap();
        assert_eq!(resumed.trials(), procedure.trials());
        assert_eq!(journal.started(), "2030-01-01T00:00:00Z");
        assert_eq!(resumed.next(), procedure.next());
        // And once more after the run has resumed.
        let event = done(&resumed);
        journal.write(&event).unwrap();
        drop(journal);
        assert_eq!(Journal::resume(&folder).unwrap().1.trials().len(), 3);
    }

    #[test]
    fn a_line_that_was_cut_off_also_within_a_character_is_forgotten_and_overwritten() {
        for cut in [&b"{\"event\":\"trial\",\"numb"[..], b"{\"event\":\"trial\",\"sweep\":\"gr\xc3"] {
            let folder = Folder::new();
            let mut journal = begin(&folder).unwrap();
            journal.write(&done(&Procedure::new(plan()))).unwrap();
            journal.file.write_all(cut).unwrap();
            drop(journal);
            let (mut journal, resumed) = Journal::resume(&folder).unwrap();
            assert!(resumed.correctness().is_some() && resumed.trials().is_empty());
            journal.write(&done(&resumed)).unwrap();
            drop(journal);
            assert_eq!(Journal::resume(&folder).unwrap().1.trials().len(), 1);
        }
    }

    #[test]
    fn killed_at_any_octet_a_run_goes_on_or_begins_anew() {
        let folder = Folder::new();
        three_events(&folder);
        let events = fs::read(folder.join(EVENTS_FILE)).unwrap();
        for length in 0..=events.len() {
            fs::write(folder.join(EVENTS_FILE), &events[..length]).unwrap();
            let complete_lines = events[..length].iter().filter(|octet| **octet == b'\n').count();
            let (journal, resumed) = Journal::resume(&folder).unwrap();
            assert_eq!(resumed.trials().len(), complete_lines.saturating_sub(1), "{length}");
            drop(journal);
        }
        // Before the events there is only an empty file, or the plan alone.
        fs::remove_file(folder.join(EVENTS_FILE)).unwrap();
        assert!(Journal::resume(&folder).unwrap().1.trials().is_empty());
        fs::remove_file(folder.join(PLAN_FILE)).unwrap();
        begin(&folder).unwrap();
    }

    #[test]
    fn two_programs_do_not_write_one_journal() {
        let folder = Folder::new();
        let journal = begin(&folder).unwrap();
        assert!(Journal::resume(&folder).unwrap_err().contains("another sixfold-bench"));
        let error = begin(&folder).unwrap_err();
        assert!(error.contains("another sixfold-bench"), "{error}");
        drop(journal);
        Journal::resume(&folder).unwrap();
    }

    #[test]
    fn a_plan_that_is_damaged_or_makes_no_sense_is_refused() {
        let folder = Folder::new();
        begin(&folder).unwrap();
        let text = fs::read_to_string(folder.join(PLAN_FILE)).unwrap();
        let mut empty: serde_json::Value = serde_json::from_str(&text).unwrap();
        empty["plan"]["cells"] = serde_json::json!([]);
        for (text, word) in [(&text[..text.len() / 2], "damaged"), (&empty.to_string(), "no cell")] {
            fs::write(folder.join(PLAN_FILE), text).unwrap();
            let error = Journal::resume(&folder).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_folder_with_a_run_is_not_overwritten_and_one_without_cannot_go_on() {
        let folder = Folder::new();
        assert!(Journal::resume(&folder).unwrap_err().contains("without --resume"));
        // A run that failed before the first trial may be started again.
        for _ in 0..2 {
            let mut journal = begin(&folder).unwrap();
            journal.write(&done(&Procedure::new(plan()))).unwrap();
        }
        let (mut journal, resumed) = Journal::resume(&folder).unwrap();
        journal.write(&done(&resumed)).unwrap();
        drop(journal);
        assert!(begin(&folder).unwrap_err().contains("--resume"));
    }

    #[test]
    fn a_journal_that_was_tampered_with_is_refused_with_the_line() {
        let folder = Folder::new();
        let mut journal = begin(&folder).unwrap();
        journal.write(&done(&Procedure::new(plan()))).unwrap();
        journal.file.write_all(b"nonsense\n").unwrap();
        drop(journal);
        assert!(Journal::resume(&folder).unwrap_err().contains("line 2"));
    }
}
