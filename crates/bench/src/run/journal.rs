//! The journal of a run: its plan, and every event as it happened, on disk before the next begins. Of these two a run that
//! was killed goes on.

use measure::plan::Plan;
use measure::procedure::{Event, Procedure};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The events, one JSON object a line.
const EVENTS: &str = "events.jsonl";

/// The plan, and when the run began.
const PLAN: &str = "plan.json";

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    started: String,
}

/// What is known from the beginning.
#[derive(Debug, Serialize, Deserialize)]
struct Beginning {
    /// When the run began, UTC, RFC 3339.
    started: String,
    /// What it is to do.
    plan: Plan,
}

impl Journal {
    /// Begins a journal in a folder, which is made if it is not there. A folder that has one already is refused.
    pub fn begin(folder: &Path, plan: &Plan, started: String) -> Result<Journal, String> {
        let tell = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(folder).map_err(|error| tell(folder, error))?;
        let plan_path = folder.join(PLAN);
        if plan_path.exists() {
            return Err(format!(
                "{}: a run is there already; go on with it (--resume) or name another folder (--out)",
                folder.display()
            ));
        }
        let events = folder.join(EVENTS);
        let file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .open(&events)
            .map_err(|error| tell(&events, error))?;
        let beginning = Beginning { started, plan: plan.clone() };
        let text = serde_json::to_string_pretty(&beginning).map_err(|error| format!("the plan: {error}"))?;
        fs::write(&plan_path, text + "\n").map_err(|error| tell(&plan_path, error))?;
        Ok(Journal { path: events, file, started: beginning.started })
    }

    /// Takes up the journal of a folder and tells the procedure what happened so far.
    pub fn resume(folder: &Path) -> Result<(Journal, Procedure), String> {
        let plan_path = folder.join(PLAN);
        let text = fs::read_to_string(&plan_path).map_err(|error| {
            format!(
                "{}: {error}; there is no run to go on with: begin one without --resume",
                plan_path.display()
            )
        })?;
        let Beginning { started, plan } =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", plan_path.display()))?;
        let mut procedure = Procedure::new(plan);
        let path = folder.join(EVENTS);
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut good = 0;
        for (number, line) in text.split_inclusive('\n').enumerate() {
            // A line without its end was being written when the run was killed: that trial is done again.
            let Some(line) = line.strip_suffix('\n') else { break };
            let refuse = |why: String| format!("{}: line {}: {why}", path.display(), number + 1);
            let event: Event = serde_json::from_str(line).map_err(|error| refuse(error.to_string()))?;
            procedure.record(event).map_err(|error| refuse(error.to_string()))?;
            good += line.len() as u64 + 1;
        }
        let file = OpenOptions::new()
            .append(true)
            .open(&path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        file.set_len(good).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok((Journal { path, file, started }, procedure))
    }

    /// When the run began.
    pub fn started(&self) -> &str {
        &self.started
    }

    /// Writes an event down. When this returns it is on the disk.
    pub fn write(&mut self, event: &Event) -> Result<(), String> {
        let line = serde_json::to_string(event).map_err(|error| format!("an event: {error}"))? + "\n";
        let done = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        done.map_err(|error| format!("{}: {error}; free some space, then --resume", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::plan::Draft;
    use measure::procedure::Action;
    use measure::run::{Correctness, Trial};

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            Folder(std::env::temp_dir().join(format!("sixfold-bench-journal-{}-{name}", std::process::id())))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn plan() -> Plan {
        Draft::parse("profile = \"quick\"\n[device]\ntemplate = \"sixfold\"\n").unwrap().finish().unwrap()
    }

    /// What comes next, done.
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

    #[test]
    fn a_journal_brings_a_procedure_to_where_it_was() {
        let folder = Folder::new("resume");
        let mut journal = Journal::begin(&folder.0, &plan(), "2030-01-01T00:00:00Z".into()).unwrap();
        let mut procedure = Procedure::new(plan());
        for _ in 0..3 {
            let event = done(&procedure);
            journal.write(&event).unwrap();
            procedure.record(event).unwrap();
        }
        drop(journal);
        let (mut journal, resumed) = Journal::resume(&folder.0).unwrap();
        assert_eq!(resumed.trials(), procedure.trials());
        assert_eq!(journal.started(), "2030-01-01T00:00:00Z");
        assert_eq!(resumed.next(), procedure.next());
        // And once more after going on.
        let event = done(&resumed);
        journal.write(&event).unwrap();
        assert_eq!(Journal::resume(&folder.0).unwrap().1.trials().len(), 3);
    }

    #[test]
    fn a_line_that_was_cut_off_is_forgotten_and_overwritten() {
        let folder = Folder::new("cut");
        let mut journal = Journal::begin(&folder.0, &plan(), "2030-01-01T00:00:00Z".into()).unwrap();
        let event = done(&Procedure::new(plan()));
        journal.write(&event).unwrap();
        journal.file.write_all(b"{\"event\":\"trial\",\"numb").unwrap();
        let (mut journal, resumed) = Journal::resume(&folder.0).unwrap();
        assert!(resumed.correctness().is_some() && resumed.trials().is_empty());
        journal.write(&done(&resumed)).unwrap();
        assert_eq!(Journal::resume(&folder.0).unwrap().1.trials().len(), 1);
    }

    #[test]
    fn a_folder_with_a_run_is_not_overwritten_and_one_without_cannot_go_on() {
        let folder = Folder::new("twice");
        assert!(Journal::resume(&folder.0).unwrap_err().contains("without --resume"));
        Journal::begin(&folder.0, &plan(), "2030-01-01T00:00:00Z".into()).unwrap();
        assert!(
            Journal::begin(&folder.0, &plan(), "2030-01-01T00:00:00Z".into())
                .unwrap_err()
                .contains("--resume")
        );
    }

    #[test]
    fn a_journal_that_was_tampered_with_is_refused_with_the_line() {
        let folder = Folder::new("strange");
        let mut journal = Journal::begin(&folder.0, &plan(), "2030-01-01T00:00:00Z".into()).unwrap();
        journal.write(&done(&Procedure::new(plan()))).unwrap();
        journal.file.write_all(b"nonsense\n").unwrap();
        assert!(Journal::resume(&folder.0).unwrap_err().contains("line 2"));
    }
}
