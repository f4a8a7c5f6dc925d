//! The response policy zones in force: `sixfold ctl rpz`, and the rows of the status page.

use crate::config::{Config, PolicyFile};
use crate::date;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

/// The text of `sixfold ctl rpz`: a line for each zone, in the order of their precedence, with files and names in columns.
pub fn text(config: &Config) -> String {
    let rows: Vec<[String; 3]> = config.filter.zones.iter().map(row).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let (file, name) = (width(0), width(1));
    let line = |row: &[String; 3]| format!("{:<file$} {:<name$} {}\n", row[0], row[1], row[2]);
    rows.iter().map(line).collect()
}

/// The objects of `sixfold ctl rpz --json`.
pub fn json(config: &Config) -> Vec<Value> {
    let object = |zone: &PolicyFile| {
        json!({
            "name": zone.zone.to_string(),
            "file": zone.file.display().to_string(),
            "serial": zone.serial,
            "records": zone.records,
            "skipped": zone.skipped,
            "modified": zone.modified.map(date::utc),
            "age_seconds": age(zone).map(|age| age.as_secs()),
        })
    };
    config.filter.zones.iter().map(object).collect()
}

/// Time since the file was changed that is in force; none if the file system does not say.
pub fn age(zone: &PolicyFile) -> Option<Duration> {
    SystemTime::now().duration_since(zone.modified?).ok()
}

/// The age in words, to the largest unit that is whole: a person compares it with the interval of the updates.
pub fn shown_age(zone: &PolicyFile) -> String {
    let Some(age) = age(zone) else { return "of unknown age".to_owned() };
    let seconds = age.as_secs();
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let (size, unit) = units.into_iter().find(|(size, _)| seconds >= *size).unwrap_or((1, "second"));
    let count = seconds / size;
    format!("{count} {unit}{} old", if count == 1 { "" } else { "s" })
}

/// Logs the zones that are new, or whose file was read with other contents.
pub fn log_changes(before: &[PolicyFile], after: &[PolicyFile]) {
    for zone in after.iter().filter(|zone| !before.contains(zone)) {
        let PolicyFile { file, zone: name, serial, records, skipped, .. } = zone;
        tracing::info!(
            event = "policy_zone_loaded",
            zone = %name,
            file = %file.display(),
            serial,
            records,
            skipped,
            "policy zone {name} of {} is in force: serial {serial}, {records} records, {skipped} skipped",
            file.display()
        );
    }
}

/// File, name and the rest of a line.
fn row(zone: &PolicyFile) -> [String; 3] {
    let PolicyFile { file, zone: name, serial, records, skipped, .. } = zone;
    let rest = format!("serial {serial}, {records} records, {skipped} skipped, {}", shown_age(zone));
    [file.display().to_string(), name.to_string(), rest]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Name;

    fn zone(seconds_ago: u64) -> PolicyFile {
        PolicyFile {
            file: "/etc/sixfold/policy.rpz".into(),
            zone: Name::parse("rpz.example").unwrap_or_else(|_| panic!("a name")),
            serial: 2_026_112_601,
            records: 100_003,
            skipped: 2,
            modified: Some(SystemTime::now() - Duration::from_secs(seconds_ago)),
        }
    }

    #[test]
    fn the_age_has_the_largest_unit_that_is_whole() {
        for (seconds, shown) in
            [(0, "0 seconds old"), (61, "1 minute old"), (7_300, "2 hours old"), (200_000, "2 days old")]
        {
            assert_eq!(shown_age(&zone(seconds)), shown);
        }
        assert_eq!(shown_age(&PolicyFile { modified: None, ..zone(0) }), "of unknown age");
    }

    #[test]
    fn a_line_names_file_zone_serial_records_skipped_and_age() {
        assert_eq!(
            row(&zone(90_000)).join(" "),
            "/etc/sixfold/policy.rpz rpz.example. serial 2026112601, 100003 records, 2 skipped, 1 day old"
        );
    }
}
