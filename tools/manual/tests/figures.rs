//! Figures in documents are those of the file of constants, and these are those of the raw tables.

use sixfold_manual::figures::{self, FILE};

#[test]
fn the_constants_with_a_source_are_the_medians_of_the_raw_tables() {
    let root = book::workspace();
    let text = std::fs::read_to_string(root.join(FILE)).unwrap();
    let updated = figures::updated(&root).unwrap();
    for (is, should) in text.lines().zip(updated.lines()) {
        assert_eq!(is, should, "{FILE}: run cargo run -p sixfold-manual -- constants");
    }
    assert_eq!(text.lines().count(), updated.lines().count());
    assert!(updated.matches("source = ").count() >= 10, "{FILE} has few sources");
}

#[test]
fn computed_tables_and_charts_agree_with_the_constants() {
    let outdated = figures::outdated(&book::workspace()).unwrap();
    let names: Vec<_> = outdated.iter().map(|(path, _)| path.display().to_string()).collect();
    assert!(names.is_empty(), "run cargo run -p sixfold-manual; outdated: {names:?}");
}

#[test]
fn quoted_figures_agree_with_the_constants() {
    let faults = figures::faults(&book::workspace()).unwrap();
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// A device that the constants name and the tables lack would be left out silently.
#[test]
fn every_figure_belongs_to_a_device_and_every_run_is_described() {
    let constants = figures::constants(&book::workspace()).unwrap();
    let text = std::fs::read_to_string(book::workspace().join(FILE)).unwrap();
    let devices: Vec<&str> = constants.devices().into_iter().map(|(key, _)| key).collect();
    assert!(devices.len() >= 10, "{devices:?}");
    for line in text.lines().filter(|line| line.contains(" = [") && line.ends_with(']')) {
        let key = line.split(" = ").next().unwrap();
        assert!(key == "source" || devices.contains(&key), "{line}");
    }
    let runs = text.lines().filter_map(|line| line.strip_prefix("run = \"")?.strip_suffix('"'));
    for run in runs {
        for key in ["date", "commit", "machine", "conditions", "command"] {
            let path = format!("runs.{run}.{key}");
            assert!(constants.text(&path).is_some(), "{path}");
        }
    }
}
