//! Bundle of a run: a folder with `run.json`, which holds everything, and the files that are derived from it for people
//! and other programs.
//!
//! | file | content |
//! | --- | --- |
//! | `run.json` | the record of the run |
//! | `report.html` | the page |
//! | `trials.csv` | one row per trial |
//! | `certificates.csv` | one row per result: the self-test with the traffic of the device |
//! | `hist/trial-00042.hgrm` | latencies of a trial from the intended send time, as HdrHistogram's plotters read them |
//! | `environment.json` | settings, device and hosts alone |
//! | `configs/` | the device's configuration files |
//!
//! Every file is written under a temporary name and then renamed, so that a reader sees the old file or the new one,
//! never a part.

use crate::file_error::file_error;
use measure::run::{Device, Environment, Run, SCHEMA, Settings};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// File of the record of a run.
pub const RECORD_FILE: &str = "run.json";

/// File of the journal of a run: every event as it happened.
pub(crate) const JOURNAL_FILE: &str = "events.jsonl";

/// File of the report page.
pub const REPORT_FILE: &str = "report.html";

/// Page of several runs.
pub const DEVICES_FILE: &str = "devices.html";

/// Reads the record of a run from its folder.
///
/// # Errors
///
/// The folder has no record, or it cannot be read, or is of another version of the format. The error names the file, the place in it,
/// the cause and the remedy.
pub fn read(folder: &Path) -> Result<Run, String> {
    /// The fields that every version of the record has.
    #[derive(Deserialize)]
    struct Head {
        schema: u32,
        #[serde(default)]
        tool: String,
    }
    let path = folder.join(RECORD_FILE);
    let text = File::open(&path).and_then(textfile::read_to_string).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound if folder.join(JOURNAL_FILE).exists() => {
                let folder = folder.display();
                format!(
                    "; the run in this folder was killed: `sixfold-bench run --resume --out {folder}` resumes it"
                )
            }
            io::ErrorKind::NotFound => {
                "; give a folder that `sixfold-bench run --out` has written".to_owned()
            }
            _ => String::new(),
        };
        format!("{}: {error}{remedy}", path.display())
    })?;
    let malformed = |error: serde_json::Error| {
        // The JSON error names line and column itself.
        let remedy = if folder.join(JOURNAL_FILE).exists() {
            let folder = folder.display();
            format!("; `sixfold-bench run --resume --out {folder}` writes it again")
        } else {
            String::new()
        };
        format!("{}: {error}; this is not the record of a run, or it is damaged{remedy}", path.display())
    };
    let head: Head = serde_json::from_str(&text).map_err(malformed)?;
    if head.schema > SCHEMA {
        let tool = if head.tool.is_empty() { "a newer program" } else { &head.tool };
        return Err(format!(
            "{}: its schema is {}, and this program supports up to {SCHEMA}; use the program that wrote it ({tool}), or a newer one",
            path.display(),
            head.schema
        ));
    }
    serde_json::from_str(&text).map_err(malformed)
}

/// Writes the whole bundle. Creates the folder if it does not exist.
///
/// # Errors
///
/// A file or the folder cannot be written, with its path.
pub fn write(folder: &Path, run: &Run) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| file_error(folder, &error))?;
    let path = folder.join(RECORD_FILE);
    let text = record_json(run).map_err(|error| format!("{}: {error}", path.display()))?;
    write_atomically(&path, &text, true)?;
    write_derived(folder, run)
}

/// The record as JSON with one line for each trial, result and rule. With one line for each number of a histogram the
/// file would be six times as large.
fn record_json(run: &Run) -> serde_json::Result<String> {
    // A full pattern, so that the compiler refuses a new field of the record that is missing here.
    let Run {
        schema,
        tool,
        profile,
        started,
        ended,
        complete,
        settings,
        equipment,
        participants,
        device,
        hosts,
        correctness,
        self_test,
        results,
        checklist,
        warnings,
        trials,
    } = run;
    let mut out = String::new();
    for (name, value) in [
        ("schema", serde_json::to_string(schema)?),
        ("tool", serde_json::to_string(tool)?),
        ("profile", serde_json::to_string(profile)?),
        ("started", serde_json::to_string(started)?),
        ("ended", serde_json::to_string(ended)?),
        ("complete", serde_json::to_string(complete)?),
        ("settings", serde_json::to_string(settings)?),
        ("equipment", serde_json::to_string(equipment)?),
        ("participants", serde_json::to_string(participants)?),
        ("device", serde_json::to_string(device)?),
        ("hosts", serde_json::to_string(hosts)?),
        ("correctness", serde_json::to_string(correctness)?),
        ("self_test", serde_json::to_string(self_test)?),
        ("results", json_lines(results)?),
        ("checklist", json_lines(checklist)?),
        ("warnings", json_lines(warnings)?),
        ("trials", json_lines(trials)?),
    ] {
        out.push_str(if out.is_empty() { "{\n" } else { ",\n" });
        out.push_str(&format!("\"{name}\": {value}"));
    }
    out.push_str("\n}\n");
    Ok(out)
}

/// A list as JSON with one line for each element.
fn json_lines<T: Serialize>(list: &[T]) -> serde_json::Result<String> {
    let lines: Vec<String> = list.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    Ok(if lines.is_empty() { "[]".to_owned() } else { format!("[\n{}\n]", lines.join(",\n")) })
}

/// Writes the files that are derived from the record: all but `run.json`.
///
/// # Errors
///
/// A file cannot be written, with its path.
pub fn write_derived(folder: &Path, run: &Run) -> Result<(), String> {
    write_atomically(&folder.join("trials.csv"), &report::trials_csv(run), false)?;
    let certificates = report::certificates_csv(run);
    if !certificates.is_empty() {
        write_atomically(&folder.join("certificates.csv"), &certificates, false)?;
    }
    write_histograms(&folder.join("hist"), run)?;
    let environment = EnvironmentFile { settings: &run.settings, device: &run.device, hosts: &run.hosts };
    let path = folder.join("environment.json");
    let text =
        serde_json::to_string_pretty(&environment).map_err(|error| format!("{}: {error}", path.display()))?;
    write_atomically(&path, &(text + "\n"), false)?;
    write_configurations(&folder.join("configs"), &run.device.files)?;
    write_atomically(&folder.join(REPORT_FILE), &report::html(run), false)
}

/// Writes the page of several runs, each given with the name of its folder, and its charts as SVG files beside it:
/// `devices-latency.svg` for the page `devices.html`.
///
/// # Errors
///
/// A file cannot be written, with its path.
pub fn write_devices(page: &Path, runs: &[(&str, &Run)]) -> Result<(), String> {
    let named = report::named(runs);
    write_atomically(page, &report::combined_html(&named), false)?;
    let stem = page.file_stem().unwrap_or_default().to_string_lossy();
    for (name, svg) in report::combined_svg(&named) {
        write_atomically(&page.with_file_name(format!("{stem}-{name}.svg")), &svg, false)?;
    }
    Ok(())
}

/// Writes a page or tables to a file of the user's choice.
///
/// # Errors
///
/// The file cannot be written, with its path.
pub fn write_text(path: &Path, text: &str) -> Result<(), String> {
    write_atomically(path, text, false)
}

/// Content of `environment.json`.
#[derive(Serialize)]
struct EnvironmentFile<'a> {
    settings: &'a Settings,
    device: &'a Device,
    hosts: &'a BTreeMap<String, Environment>,
}

/// Writes one file for each trial that has latencies. Replaces files of an earlier record with the same numbers.
fn write_histograms(folder: &Path, run: &Run) -> Result<(), String> {
    let measured =
        || run.trials.iter().filter(|trial| !trial.outcome.latency_us.intended.histogram.is_empty());
    if measured().next().is_none() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|error| file_error(folder, &error))?;
    for trial in measured() {
        let path = folder.join(format!("trial-{:05}.hgrm", trial.number));
        write_atomically(&path, &report::histogram_text(&trial.outcome.latency_us.intended), false)?;
    }
    Ok(())
}

fn write_configurations(folder: &Path, files: &BTreeMap<String, String>) -> Result<(), String> {
    if files.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|error| file_error(folder, &error))?;
    let mut taken = BTreeSet::new();
    for (name, text) in files {
        let mut safe = safe_file_name(name);
        while !taken.insert(safe.clone()) {
            safe.push('_');
        }
        write_atomically(&folder.join(safe), text, false)?;
    }
    Ok(())
}

/// A name without folders, and without characters that some file system or shell treats specially. A record may come
/// from elsewhere, and must not choose where files are written.
pub(crate) fn safe_file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    // File systems hold names of 255 octets. The rest is for the suffixes that make names distinct and for the
    // temporary name.
    let name: String = name.chars().take(200).map(plain).collect();
    match name.trim_start_matches(['.', '-']) {
        "" => "unnamed".to_owned(),
        name => name.to_owned(),
    }
}

/// Writes a file under a temporary name in the same folder and renames it. With `durable` the text is on the disk
/// before the rename.
///
/// # Errors
///
/// The file cannot be written or renamed, with its path. A file of the name stays as it was.
pub(crate) fn write_atomically(path: &Path, text: &str, durable: bool) -> Result<(), String> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let temporary: PathBuf = path.with_file_name(name);
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        if durable { file.sync_all() } else { Ok(()) }
    });
    let renamed = written.and_then(|()| {
        fs::rename(&temporary, path)?;
        // The new name is on the disk when the folder is.
        match path.parent().filter(|_| durable) {
            Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
            _ => Ok(()),
        }
    });
    renamed.map_err(|error| {
        // The temporary file is of no use. If it does not exist, that is no second error.
        let _ = fs::remove_file(&temporary);
        file_error(path, &error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kit::Folder;
    use report::sample::{self, Shape};

    #[test]
    fn a_record_is_read_as_it_was_written_to_the_last_digit() {
        let folder = Folder::new();
        let run = sample::run(&Shape::quick());
        write(&folder, &run).unwrap();
        assert!(read(&folder).unwrap() == run);
        for file in
            ["report.html", "trials.csv", "environment.json", "configs/unbound.conf", "hist/trial-00000.hgrm"]
        {
            assert!(folder.join(file).is_file(), "{file}");
        }
        let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(
            names.into_iter().all(|name| !name.to_string_lossy().ends_with(".new")),
            "nothing is left over"
        );
    }

    #[test]
    fn a_newer_schema_is_refused_by_name() {
        let folder = Folder::new();
        fs::write(folder.join(RECORD_FILE), "{\"schema\": 99, \"tool\": \"tool 7\", \"other\": []}").unwrap();
        let error = read(&folder).unwrap_err();
        assert!(error.contains("schema is 99") && error.contains("tool 7"), "{error}");
    }

    #[test]
    fn a_damaged_record_is_refused_with_its_place() {
        let folder = Folder::new();
        fs::write(folder.join(RECORD_FILE), "{\n  \"schema\": 1,\n  \"tool\": }").unwrap();
        let error = read(&folder).unwrap_err();
        assert!(error.contains("run.json") && error.contains("line 3 column"), "{error}");
        fs::write(folder.join(JOURNAL_FILE), "").unwrap();
        assert!(read(&folder).unwrap_err().contains("writes it again"));
        fs::remove_file(folder.join(RECORD_FILE)).unwrap();
        assert!(read(&folder).unwrap_err().contains("killed"));
        let error = read(&folder.join("absent")).unwrap_err();
        assert!(error.contains("sixfold-bench run --out"), "{error}");
    }

    #[test]
    fn a_record_does_not_choose_where_files_are_written() {
        for (name, safe) in [
            ("unbound.conf", "unbound.conf"),
            ("../../etc/passwd", "_.._etc_passwd"),
            ("/etc/x", "_etc_x"),
            ("..", "unnamed"),
            ("", "unnamed"),
            (".ssh", "ssh"),
        ] {
            assert_eq!(safe_file_name(name), safe);
        }
        let folder = Folder::new();
        let mut run = sample::run(&Shape::quick());
        run.device.files =
            [("a/b", "1"), ("a_b", "2"), ("../c", "3")].map(|(a, b)| (a.to_owned(), b.to_owned())).into();
        write(&folder, &run).unwrap();
        let many = fs::read_dir(folder.join("configs")).unwrap().count();
        assert_eq!(many, 3, "and none takes the place of another");
    }
}
