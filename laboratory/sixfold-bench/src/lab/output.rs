//! Results on disk: `result.json` and `report.html`. Each is written under a temporary name and then renamed.

use measure::experiment::Experiment;
use std::fs;
use std::path::Path;

/// File of the record.
pub const RECORD_FILE: &str = "result.json";

/// File of the page.
pub const REPORT_FILE: &str = "report.html";

/// Writes record and page into a folder that exists.
///
/// # Errors
///
/// A file cannot be written, with its path.
pub fn write(folder: &Path, experiment: &Experiment) -> Result<(), String> {
    let json = serde_json::to_string_pretty(experiment).map_err(|error| format!("{RECORD_FILE}: {error}"))?;
    replace(&folder.join(RECORD_FILE), &(json + "\n"))?;
    replace(&folder.join(REPORT_FILE), &report::experiment_html(experiment))
}

fn replace(path: &Path, text: &str) -> Result<(), String> {
    let new = path.with_extension("new");
    fs::write(&new, text).and_then(|()| fs::rename(&new, path)).map_err(|error| {
        format!("{}: {error}; is the folder writable and the disk not full?", path.display())
    })
}
