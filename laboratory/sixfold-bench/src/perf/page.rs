//! A page of raw tables from one run: date, programs and conditions, the count of goals that were met, then the sections with their
//! charts. The page for users is written by hand, with the figures of `docs/constants.toml`, which come from this page.

use crate::perf::section::{Goal, Section};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Frame of a page.
pub struct Frame<'a> {
    /// Day on which the run ended, in UTC.
    pub date: &'a str,
    /// Command that made it.
    pub command: &'a str,
    /// Machine of the run.
    pub machine: &'a str,
    /// Versions of the devices.
    pub versions: &'a [String],
    /// Reasons why parts were left out.
    pub left_out: &'a [String],
}

/// Writes a page and, beside it, its charts as `<name of the page>-<section>-<number>.svg`.
///
/// # Errors
///
/// The file that cannot be written, and why.
pub fn write(path: &Path, frame: &Frame<'_>, sections: &[Section]) -> Result<(), String> {
    let failed = |path: &Path, error| format!("{}: {error}", path.display());
    let stem = path.file_stem().and_then(|name| name.to_str()).unwrap_or("page");
    fs::write(path, text(stem, frame, sections)).map_err(|error| failed(path, error))?;
    for section in sections {
        for (number, chart) in section.charts.iter().enumerate() {
            let place = path.with_file_name(chart_name(stem, section, number));
            fs::write(&place, chart.svg()).map_err(|error| failed(&place, error))?;
        }
    }
    Ok(())
}

fn chart_name(stem: &str, section: &Section, number: usize) -> String {
    format!("{stem}-{}-{}.svg", section.key, number + 1)
}

/// Conditions of all experiments that a reader must know before the figures.
const CONDITIONS: &str = "\
    - Everything runs on one machine, over loopback: no network card, no driver, no wire.\n\
    - A device has one worker on core 0; load and authority share core 1.\n\
    - Each query is a datagram of its own, except where groups are named: loopback hands a group over whole, and no wire does.\n\
    - Each device has the same receive buffer, 6 MiB.\n\
    - Limits on pending queries are raised for all devices, because the load is one client. Nothing is validated outside \"What validation costs\", and no query is logged.\n";

fn text(stem: &str, frame: &Frame<'_>, sections: &[Section]) -> String {
    let mut page = format!(
        "# Sixfold beside other servers: raw tables\n\n`sixfold-bench perf` writes this page. [Performance](../../performance.md) explains the \
         figures that matter to users.\n\n    {}\n\n\
         - Date: {} (UTC)\n- Machine: {}\n- Devices: {}\n{CONDITIONS}\n\
         Ratios of CPU time below 1 are to Sixfold's advantage.\n",
        frame.command,
        frame.date,
        frame.machine,
        frame.versions.join(", ")
    );
    for reason in frame.left_out {
        let _ = write!(page, "\nLeft out: {reason}\n");
    }
    page.push_str(&verdicts(sections));
    for section in sections {
        let _ = write!(page, "\n{section}");
        if !section.charts.is_empty() {
            page.push('\n');
        }
        for (number, chart) in section.charts.iter().enumerate() {
            let _ = writeln!(page, "![{}]({})", chart.title, chart_name(stem, section, number));
        }
    }
    page
}

/// Number of goals that each section met and missed. The goals themselves are below the tables of their section.
fn verdicts(sections: &[Section]) -> String {
    let mut text =
        "\n## Goals\n\n| section | met | missed | not measured |\n| --- | ---: | ---: | ---: |\n".to_owned();
    let count = |goals: &[Goal], verdict| goals.iter().filter(|goal| goal.met() == verdict).count();
    for Section { title, goals, .. } in sections.iter().filter(|section| !section.goals.is_empty()) {
        let (met, missed, absent) = (count(goals, Some(true)), count(goals, Some(false)), count(goals, None));
        let _ = writeln!(text, "| {title} | {met} | {missed} | {absent} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::section::{Bound, summary};
    use report::BarChart;

    #[test]
    fn verdicts_are_counted_first_and_charts_are_files_beside_the_page() {
        let goal = |ratio: &str, value| Goal {
            ratio: ratio.to_owned(),
            bound: Bound::AtMost(0.5),
            measured: summary(&[value]),
        };
        let section = Section {
            key: "cost",
            title: "Cost",
            charts: vec![BarChart { title: "closed".into(), bars: vec![("sixfold".into(), 1.0)] }],
            goals: vec![goal("good", 0.4), goal("bad", 0.6), Goal { measured: None, ..goal("none", 0.0) }],
            ..Section::default()
        };
        let versions = ["sixfold 0.1.0 (commit 0123abc)".into(), "unbound 1.2".into()];
        let frame =
            Frame { date: "2026-01-02", command: "x", machine: "m.", versions: &versions, left_out: &[] };
        let folder = std::env::temp_dir().join(format!("sixfold-perf-page-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        write(&folder.join("p.md"), &frame, &[section]).unwrap();
        let page = fs::read_to_string(folder.join("p.md")).unwrap();
        let svg = fs::read_to_string(folder.join("p-cost-1.svg")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let (head, rest) = page.split_once("## Cost").unwrap();
        assert!(head.contains("| Cost | 1 | 1 | 1 |"), "{page}");
        assert!(
            head.contains("2026-01-02 (UTC)") && head.contains("(commit 0123abc), unbound 1.2"),
            "{page}"
        );
        assert!(!head.contains("- bad: ") && rest.contains("- bad: "), "{page}");
        assert!(rest.contains("- good: ") && rest.contains("![closed](p-cost-1.svg)"), "{page}");
        assert!(svg.starts_with("<svg "), "{svg}");
    }
}
