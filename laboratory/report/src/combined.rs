//! Several runs in one report: the results of all devices in one table, the conditions that differ, the method.

use crate::comparison::{figures as ratio_figures, rows};
use crate::escape;
use crate::groups::{cell_name, groups, principal};
use crate::method;
use crate::named::Named;
use crate::number;
use crate::put;
use crate::surroundings;
use crate::table::Table;
use crate::text_list::and;
use crate::verdict::{self, at_least};
use crate::warnings::gathered;
use measure::checklist::REPETITIONS;
use measure::compare::{Condition, compare, conditions};
use measure::run::{Cell, CellResult, Run, Summary};

/// Mark of a figure that is only indicative ([`verdict::indicative`]).
const INDICATIVE: &str = "indicative";

/// The report as Markdown.
pub fn markdown(runs: &[Named]) -> String {
    let mut out = String::new();
    for note in notes(runs) {
        put!(out, "- {}\n", escape::markdown(&note));
    }
    for table in tables(runs) {
        put!(out, "\n{}", table.markdown());
    }
    out.push('\n');
    out + &method::markdown(runs) + &surroundings::markdown(runs)
}

/// The report as LaTeX for the package `booktabs`; `label` ends the labels of the tables.
pub fn latex(runs: &[Named], label: &str) -> String {
    let mut out: String = notes(runs).iter().map(|note| escape::latex_comment(note)).collect();
    out.push_str(escape::LATEX_PACKAGES);
    for table in tables(runs) {
        put!(out, "\n{}", table.latex(&format!("tab:{}-{label}", table.id)));
    }
    out + &method::latex(runs) + &surroundings::latex(runs)
}

/// The tables: the devices in the required cell, the devices in all cells, each device against the first, the conditions that
/// differ.
pub fn tables(runs: &[Named]) -> Vec<Table> {
    let mut tables = vec![devices(runs)];
    tables.extend(cells(runs));
    tables.extend(against_first(runs));
    tables.extend(differing(runs));
    tables
}

/// Statements that a reader needs beside the figures: verdicts, differing conditions, objections.
fn notes(runs: &[Named]) -> Vec<String> {
    let mut notes: Vec<String> =
        runs.iter().map(|named| verdict::sentence_about(&named.name, named.run)).collect();
    notes.extend(warning(runs));
    notes.extend(objections(runs));
    notes
}

/// The objections against the runs and the warnings, each after the names of the runs that it concerns.
pub fn objections(runs: &[Named]) -> Vec<String> {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for named in runs {
        let objections = verdict::objections(named.run).into_iter();
        let objections = objections.map(|(heading, text)| format!("{heading}. {text}"));
        for objection in objections.chain(gathered(named.run)) {
            match found.iter_mut().find(|(other, _)| *other == objection) {
                Some((_, names)) => names.push(&named.name),
                None => found.push((objection, vec![&named.name])),
            }
        }
    }
    found.into_iter().map(|(objection, names)| format!("{}: {objection}", and(&names))).collect()
}

/// The warning that the runs differ in more than the device.
pub fn warning(runs: &[Named]) -> Option<String> {
    let names: Vec<String> = differences(runs).into_iter().map(|condition| condition.what).collect();
    (!names.is_empty()).then(|| {
        format!(
            "The runs differ in more than the device, so their figures may not be comparable: {}.",
            names.join("; ")
        )
    })
}

fn differences(runs: &[Named]) -> Vec<Condition> {
    conditions(&runs.iter().map(|named| named.run).collect::<Vec<_>>())
}

/// The results in the required cell, one row for each device and value of its sweep. A run without that cell has its
/// principal result, and its note names the cell.
pub fn devices(runs: &[Named]) -> Table {
    let head = [
        "Device",
        "Sweep",
        "",
        "Repetitions",
        "Median",
        "1st pct.",
        "99th pct.",
        "Confirmed median",
        "1st pct.",
        "99th pct.",
        "CPU µs/query",
    ];
    let caption =
        format!("Queries per second without loss by RFC 8219 section 9.2, {}", cell_name(Cell::default()));
    let mut table = Table::new(caption, 3, &head).id("devices");
    for named in runs {
        let shown = shown(named.run);
        for result in &shown {
            table.row(device_row(named, result));
        }
        if shown.is_empty() {
            let empty = [named.name.clone(), String::new(), "no result yet".to_owned()];
            table.row(empty.into_iter().chain([(); 8].map(|()| number::NONE.to_owned())));
        }
    }
    if table.rows.iter().any(|row| row[2].contains(INDICATIVE)) {
        table.caption += &format!("; indicative: fewer than {REPETITIONS} repetitions, or profile quick");
    }
    if runs.iter().flat_map(|named| shown(named.run)).any(|result| result.censored) {
        table.caption += "; ≥: a search ended at the highest permitted rate";
    }
    if !differences(runs).is_empty() {
        table.caption += "; conditions besides the device differ, see the table of conditions";
    }
    let is_empty = |column: usize| table.rows.iter().all(|row| row[column].is_empty());
    let is_unknown = |column: usize| table.rows.iter().all(|row| row[column] == number::NONE);
    let mut unwanted: Vec<usize> = (1..3).filter(|column| is_empty(*column)).collect();
    unwanted.extend((7..11).filter(|column| is_unknown(*column)));
    table.without_columns(&unwanted)
}

/// The results of a run in the table of devices.
pub fn shown(run: &Run) -> Vec<&CellResult> {
    let required: Vec<&CellResult> =
        run.results.iter().filter(|result| result.cell == Cell::default()).collect();
    if required.is_empty() {
        principal(&groups(run)).map(|group| group.result).into_iter().collect()
    } else {
        required
    }
}

fn device_row(named: &Named, result: &CellResult) -> Vec<String> {
    let run = named.run;
    let mut notes = Vec::new();
    if result.cell != Cell::default() {
        notes.push(cell_name(result.cell));
    }
    notes.extend(verdict::indicative(run, &result.summary).map(|_| INDICATIVE.to_owned()));
    let sweep = match (&run.device.sweep, &*result.sweep) {
        (_, "") => String::new(),
        (Some((parameter, _)), value) => format!("{parameter} = {value}"),
        (None, value) => value.to_owned(),
    };
    let mut row = vec![named.name.clone(), sweep, notes.join("; "), result.summary.count.to_string()];
    row.extend(figures(result, &result.summary));
    row.extend(figures(result, &result.confirmed_summary));
    row.push(result.cpu_us_per_query.map_or(number::NONE.to_owned(), number::brief));
    row
}

fn figures(result: &CellResult, summary: &Summary) -> [String; 3] {
    if summary.count == 0 {
        return [(); 3].map(|()| number::NONE.to_owned());
    }
    [at_least(result, number::rate(summary.median)), number::rate(summary.p1), number::rate(summary.p99)]
}

/// Medians and percentiles of all cells, a column for each device; `None` if there is only one cell. With a sweep the
/// fastest value counts in each cell.
fn cells(runs: &[Named]) -> Option<Table> {
    let results = runs.iter().flat_map(|named| &named.run.results);
    let mut cells: Vec<Cell> = Vec::new();
    for cell in results.map(|result| result.cell) {
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    if cells.len() < 2 {
        return None;
    }
    let key = |cell: &Cell| (cell.cached_share, cell.aaaa_share);
    cells.sort_by(|one, other| key(one).partial_cmp(&key(other)).unwrap_or(std::cmp::Ordering::Equal));
    let mut head = vec!["AAAA", "cached"];
    head.extend(runs.iter().map(|named| &*named.name));
    let caption = "Median (1st to 99th percentile) of queries per second without loss by shares of AAAA and cached names, of a sweep the fastest value";
    let mut table = Table::new(caption, 2, &head).id("cells");
    for cell in cells {
        let mut row = vec![number::percent(cell.aaaa_share), number::percent(cell.cached_share)];
        for named in runs {
            let here = named.run.results.iter().filter(|result| result.cell == cell);
            let best = here.max_by(|one, other| one.summary.median.total_cmp(&other.summary.median));
            row.push(best.map_or(number::NONE.to_owned(), |result| {
                let [median, low, high] = figures(result, &result.summary);
                format!("{median} ({low}–{high})")
            }));
        }
        table.row(row);
    }
    Some(table)
}

/// Every device against the first in the required cell, as [`compare`] has it; `None` if no other has that cell.
fn against_first(runs: &[Named]) -> Option<Table> {
    let (first, others) = runs.split_first()?;
    let caption = format!(
        "Each device against {}, {}: ratios to it with bootstrap intervals of 95 % and p-values of a permutation test of the rank sums",
        first.name,
        cell_name(Cell::default())
    );
    let head = ["Device", "Sweep", "", "First", "This", "Ratio", "95 % interval", "p", "This is"];
    let mut table = Table::new(caption, 3, &head).id("against");
    for named in others {
        let comparison = compare(first.run, named.run);
        for cell in comparison.cells.iter().filter(|cell| cell.cell == Cell::default()) {
            for (what, ratio, verdict) in rows(cell) {
                let place = [named.name.clone(), cell.sweep.clone(), what.to_owned()];
                table.row(place.into_iter().chain(ratio_figures(ratio)).chain([verdict]));
            }
        }
    }
    let has_no_sweep = table.rows.iter().all(|row| row[1].is_empty());
    let unwanted: &[usize] = if has_no_sweep { &[1] } else { &[] };
    (!table.rows.is_empty()).then(|| table.without_columns(unwanted))
}

/// The conditions besides the device that differ, a column for each run; `None` if there are none.
fn differing(runs: &[Named]) -> Option<Table> {
    let differences = differences(runs);
    let mut head = vec!["Condition"];
    head.extend(runs.iter().map(|named| &*named.name));
    let mut table =
        Table::new("Conditions besides the device that differ between the runs", head.len(), &head)
            .id("conditions");
    for Condition { what, values } in differences {
        table.row([what].into_iter().chain(values));
    }
    (!table.rows.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named::named;
    use crate::sample::{self, Shape};

    /// Two runs of one cell with known figures: Unbound 3 times, BIND 20 times.
    fn two() -> (Run, Run) {
        let mut one = sample::run(&Shape::quick());
        let set = |summary: &mut Summary, count, median, p1, p99| {
            (summary.count, summary.median, summary.p1, summary.p99) = (count, median, p1, p99);
        };
        set(&mut one.results[0].summary, 3, 24_300.0, 24_100.0, 24_500.0);
        set(&mut one.results[0].confirmed_summary, 3, 24_400.0, 24_200.0, 24_600.0);
        one.results[0].cpu_us_per_query = Some(38.04);
        let mut other = one.clone();
        (other.device.name, other.device.version) = ("bind".to_owned(), "BIND 9.18.49 <id:>".to_owned());
        other.profile = "rfc8219".to_owned();
        set(&mut other.results[0].summary, 20, 9_100.0, 9_000.0, 9_200.0);
        (one, other)
    }

    #[test]
    fn one_table_has_all_devices_and_a_warning_says_how_the_runs_differ() {
        let (one, other) = two();
        let text = markdown(&named(&[("u", &one), ("b", &other)]));
        for part in [
            "0\u{a0}% cached; indicative: fewer than 20 repetitions, or profile quick; conditions besides",
            "| Unbound 1.22.0 | indicative | 3 | 24,300 | 24,100 | 24,500 | 24,400 | 24,200 | 24,600 | 38.0 |",
            "| BIND 9.18.49 |  | 20 | 9,100 | 9,000 | 9,200 | 24,400 |",
            "The runs differ in more than the device, so their figures may not be comparable: profile.",
            "| profile | quick | rfc8219 |",
            "The DNS64 performance of Unbound 1.22.0 and BIND 9.18.49 was measured",
            "- Unbound 1.22.0 and BIND 9.18.49: A single machine. ",
            "- Unbound 1.22.0 and BIND 9.18.49: tester: the processor's frequency is not fixed (governor schedutil)",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let text = latex(&named(&[("u", &one), ("b", &other)]), "dns64");
        assert!(
            text.contains("\\label{tab:devices-dns64}") && text.contains("\\label{tab:conditions-dns64}")
        );
        assert!(!text.contains("tab:cells"), "there is one cell");
        let equal = markdown(&named(&[("a", &one), ("b", &one)]));
        assert!(!equal.contains("differ in more") && equal.contains("| Unbound 1.22.0 \\[a\\] |"), "{equal}");
    }

    /// Checks that braces and environments of LaTeX text are closed. Verbatim text is left out.
    fn balanced(text: &str) {
        let mut outside = String::new();
        for (at, part) in text.split("\\begin{verbatim}").enumerate() {
            outside.push_str(if at == 0 { part } else { part.split_once("\\end{verbatim}").unwrap().1 });
        }
        let code = outside.lines().filter(|line| !line.starts_with('%')).collect::<Vec<_>>().join("\n");
        let bare = code.replace("\\{", "").replace("\\}", "");
        assert_eq!(bare.matches('{').count(), bare.matches('}').count(), "{code}");
        assert_eq!(bare.matches("\\begin{").count(), bare.matches("\\end{").count(), "{code}");
        assert!(code.is_ascii(), "{:?}", code.chars().find(|c| !c.is_ascii()));
    }

    #[test]
    fn the_latex_of_one_run_and_of_several_is_balanced() {
        let (one, mut other) = two();
        let hostile = "}\\end{verbatim}{%$&_#^~\\";
        other.tool = hostile.to_owned();
        other.device.command = vec![hostile.to_owned()];
        other.device.files = [(hostile.to_owned(), hostile.to_owned())].into();
        other.hosts.get_mut("device").unwrap().facts.insert(hostile.to_owned(), hostile.to_owned());
        other.checklist[2].because = hostile.to_owned();
        balanced(&latex(&named(&[("a", &one), ("b", &other)]), "x"));
        balanced(&crate::latex(&other, "x"));
        let grid = sample::run(&Shape { repetitions: 3, seconds: 2, ..Shape::full() });
        balanced(&latex(&named(&[("a", &grid), ("b", &one)]), "x"));
    }

    #[test]
    fn grids_have_a_row_for_each_cell_and_sweeps_a_row_for_each_value() {
        let grid = sample::run(&Shape { repetitions: 3, seconds: 2, ..Shape::full() });
        let quick = sample::run(&Shape::quick());
        let runs = named(&[("grid", &grid), ("quick", &quick)]);
        let tables = tables(&runs);
        let names: Vec<&str> = tables[0].rows.iter().map(|row| &*row[1]).collect();
        assert_eq!(names, ["threads = 1", "threads = 2", "threads = 4", "threads = 8", ""]);
        let cells = &tables[1];
        assert_eq!((cells.id.as_str(), cells.rows.len()), ("cells", 6));
        let best = grid.results.iter().find(|it| it.cell == Cell::default() && it.sweep == "8").unwrap();
        assert!(cells.rows[0][2].starts_with(&number::rate(best.summary.median)), "{:?}", cells.rows[0]);
        assert_eq!(cells.rows[1][3], number::NONE);
    }

    #[test]
    fn each_device_is_compared_with_the_first() {
        let (mut one, mut other) = two();
        one.results[0].strict = vec![100.0, 104.0, 108.0, 106.0];
        other.results[0].strict = vec![50.0, 52.0, 54.0, 53.0];
        (one.results[0].censored, other.results[0].censored) = (false, false);
        let runs = named(&[("u", &one), ("b", &other), ("same", &one)]);
        let table = against_first(&runs).unwrap();
        let rates: Vec<&Vec<String>> = table.rows.iter().filter(|row| row[1] == "queries/s").collect();
        // The medians 105 and 52.5. All of one side below all of the other: p is 2 of the 70 ways to choose 4 of 8.
        assert_eq!(rates[0][2..5], ["105", "52.5", "0.500"]);
        assert_eq!((&*rates[0][0], &*rates[0][7]), ("BIND 9.18.49", "slower"));
        assert_eq!(
            (&*rates[1][0], &*rates[1][4], &*rates[1][7]),
            ("Unbound 1.22.0 [same]", "1.000", "no difference shown")
        );
        assert!(against_first(&runs[..1]).is_none());
    }

    #[test]
    fn a_run_without_a_result_has_a_row_too() {
        let (one, _) = two();
        let empty = Run::default();
        let text = markdown(&named(&[("a", &one), ("b", &empty)]));
        assert!(text.contains("| The device | no result yet | – |"), "{text}");
    }
}
