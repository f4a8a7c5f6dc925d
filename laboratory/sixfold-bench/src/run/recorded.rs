//! A run as it stands in its folder: the record of a run that has ended, or the events so far of a run that another
//! process is working on.

use super::journal::{self, Unfinished};
use super::record;
use crate::bundle;
use measure::run::Run;
use measure::units;
use std::path::Path;
use std::time::Duration;

/// A run that was read from its folder.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The record. For a run in progress it is made from the journal, and `complete` is false.
    pub run: Run,
    /// Progress in words, if another process is working on the run: `7 trials done, about 40 to go (about 2m)`.
    pub progress: Option<String>,
}

/// Reads the run of a folder. The journal's lock tells a run in progress from a killed one.
///
/// # Errors
///
/// As [`bundle::read`], and as `journal::in_progress` for a run in progress.
pub fn read(folder: &Path) -> Result<Recorded, String> {
    // The lock comes first: a resumed run has an older record of its interruption.
    let Some(Unfinished { started, procedure }) = journal::in_progress(folder)? else {
        return Ok(Recorded { run: bundle::read(folder)?, progress: None });
    };
    let done = procedure.trials().len();
    let progress = format!(
        "{done} trial{} done, about {} to go (about {})",
        if done == 1 { "" } else { "s" },
        procedure.trials_left(),
        units::show(Duration::from_secs(procedure.time_left().as_secs().max(1)))
    );
    let mut run = record::build(&procedure, &started, false);
    run.warnings.insert(0, format!("the run was in progress when this was written: {progress}"));
    Ok(Recorded { run, progress: Some(progress) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Journal;
    use kit::Folder;
    use measure::plan::Draft;
    use measure::procedure::{Action, Event, Procedure};
    use measure::run::{Correctness, Trial};

    #[test]
    fn a_run_in_progress_is_told_from_one_that_was_killed() {
        let folder = Folder::new();
        let text = "profile = \"quick\"\n[device]\ntemplate = \"sixfold\"\n";
        let plan = Draft::parse(text).unwrap().finish().unwrap();
        // A plan begins with a check of the answers.
        let found = Correctness { names: 9, valid: 9, ..Correctness::default() };
        let check = Event::Check { found, names_used: 9 };
        let mut procedure = Procedure::new(plan.clone());
        procedure.record(check.clone()).unwrap();
        let Action::Trial(task) = procedure.next() else { panic!("a trial follows the check") };
        let trial = Trial {
            purpose: task.purpose,
            cell: task.cell,
            rate_qps: task.rate_qps,
            first_name: task.first_name,
            ..Trial::default()
        };
        let mut journal = Journal::begin(&folder, &plan, "2030-01-01T00:00:00Z".into()).unwrap();
        // The journal's lock belongs to an open file, so this process counts as another one.
        assert_eq!(read(&folder).unwrap().run.trials, []);
        journal.write(&check).unwrap();
        journal.write(&Event::Trial(trial.clone())).unwrap();
        let found = read(&folder).unwrap();
        assert!(found.progress.unwrap().starts_with("1 trial done, about "), "{:?}", found.run.warnings);
        assert_eq!(found.run.trials, [trial]);
        assert_eq!(found.run.started, "2030-01-01T00:00:00Z");
        assert!(!found.run.complete && found.run.warnings[0].contains("in progress"));
        // The record of an earlier interruption does not hide the run that goes on.
        let earlier = Run { tool: "earlier".into(), schema: measure::run::SCHEMA, ..Run::default() };
        bundle::write(&folder, &earlier).unwrap();
        assert_eq!(read(&folder).unwrap().run.trials.len(), 1);
        drop(journal);
        let found = read(&folder).unwrap();
        assert_eq!((found.progress, &*found.run.tool), (None, "earlier"));
        std::fs::remove_file(folder.join(bundle::RECORD_FILE)).unwrap();
        let error = read(&folder).unwrap_err();
        assert!(error.contains("was killed") && error.contains("--resume"), "{error}");
    }
}
