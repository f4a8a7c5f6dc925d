//! A page of the documentation from one run: the missed goals first, then the sections with their charts.

use crate::report::{Goal, Section};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Frame of a page.
pub struct Frame<'a> {
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

fn text(stem: &str, frame: &Frame<'_>, sections: &[Section]) -> String {
    let mut page = format!(
        "# Performance\n\nThis page was written by one run of\n\n    {}\n\nMachine: {}\n\nDevices: {}.\n\n\
         Ratios of CPU time below 1 are to Sixfold's advantage. [Benchmarks](benchmarks.md) has the other experiments, with what was tried.\n",
        frame.command,
        frame.machine,
        frame.versions.join(", ")
    );
    for reason in frame.left_out {
        let _ = write!(page, "\nLeft out: {reason}\n");
    }
    page.push_str("\n## Missed goals\n\n");
    let count = |met| {
        sections.iter().flat_map(|section| &section.goals).filter(|goal| goal.met() == Some(met)).count()
    };
    let (met, missed) = (count(true), count(false));
    let _ = writeln!(page, "{missed} of the {} goals that were measured were missed.", met + missed);
    for section in sections {
        let missed: Vec<&Goal> = section.goals.iter().filter(|goal| goal.met() == Some(false)).collect();
        if !missed.is_empty() {
            let _ = write!(page, "\n{}:\n\n", section.title);
        }
        for goal in missed {
            let _ = writeln!(page, "{goal}");
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Chart;
    use crate::report::Bound;
    use crate::statistics::Summary;

    #[test]
    fn missed_goals_stand_first_and_charts_are_files_beside_the_page() {
        let goal = |ratio: &str, value| Goal {
            ratio: ratio.to_owned(),
            bound: Bound::AtMost(0.5),
            measured: Summary::of(&[value]),
        };
        let section = Section {
            key: "cost",
            title: "Cost",
            charts: vec![Chart { title: "closed".into(), bars: vec![("sixfold".into(), 1.0)] }],
            goals: vec![goal("good", 0.4), goal("bad", 0.6), Goal { measured: None, ..goal("none", 0.0) }],
            ..Section::default()
        };
        let frame = Frame { command: "x", machine: "m.", versions: &["unbound 1.2".into()], left_out: &[] };
        let folder = std::env::temp_dir().join(format!("sixfold-rivals-page-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        write(&folder.join("p.md"), &frame, &[section]).unwrap();
        let page = fs::read_to_string(folder.join("p.md")).unwrap();
        let svg = fs::read_to_string(folder.join("p-cost-1.svg")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let (head, rest) = page.split_once("## Cost").unwrap();
        assert!(head.contains("\nCost:\n\n- bad: "), "{page}");
        assert!(
            head.contains("1 of the 2 goals") && head.contains("- bad: ") && !head.contains("- good: "),
            "{page}"
        );
        assert!(rest.contains("- good: ") && rest.contains("![closed](p-cost-1.svg)"), "{page}");
        assert!(svg.starts_with("<svg "), "{svg}");
    }
}
