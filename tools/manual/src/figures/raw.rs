//! The page of raw tables: sections, each with tables of devices and a list of goals, as `sixfold-bench perf --page` writes them.

/// Median, smallest and largest value of a device, as they are written: `10.97 [9.39-11.69]`. The source is the heading of the section,
/// that of the table, and the column; or the heading of the section, `goals`, and the load of the ratio.
pub fn summary<'p>(page: &'p str, source: &[&str], device: &str) -> Option<[&'p str; 3]> {
    let [section, table, column] = source else { return None };
    let section = below(page, "## ", section)?;
    let cell = match *table {
        "goals" => ratio(section, device, column)?,
        table => cell(below(section, "### ", table)?, column, device)?,
    };
    let (median, range) = cell.split_once(" [")?;
    let (least, most) = range.strip_suffix(']')?.split_once('-')?;
    Some([median, least, most])
}

/// Date or commit of the run. `None`: the page does not tell it, as those of older programs.
pub fn of_run<'p>(page: &'p str, key: &str) -> Option<&'p str> {
    let line = |start: &str| page.lines().find_map(|line| line.strip_prefix(start));
    match key {
        "date" => line("- Date: ")?.strip_suffix(" (UTC)"),
        "commit" => Some(line("- Devices: ")?.split_once("(commit ")?.1.split_once(')')?.0),
        _ => None,
    }
}

/// Text below a heading, up to the next one of its level.
fn below<'p>(page: &'p str, level: &str, heading: &str) -> Option<&'p str> {
    let line = format!("{level}{heading}\n");
    let start = match page.starts_with(&line) {
        true => line.len(),
        false => page.find(&format!("\n{line}"))? + 1 + line.len(),
    };
    let end = page[start..].find(&format!("\n{level}")).map_or(page.len(), |length| start + length);
    Some(&page[start..end])
}

/// Cell of a device in a column of the first table.
fn cell<'p>(text: &'p str, column: &str, device: &str) -> Option<&'p str> {
    let mut rows = text.lines().filter(|line| line.starts_with('|')).map(cells);
    let place = rows.next()?.iter().position(|cell| *cell == column)?;
    rows.find(|row| row.first() == Some(&device))?.get(place).copied()
}

/// Cells of a row of a table.
fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

/// Ratio of Sixfold to a device in the list of goals.
fn ratio<'p>(text: &'p str, device: &str, load: &str) -> Option<&'p str> {
    let load = if load.is_empty() { String::new() } else { format!(", {load}") };
    let start = format!("- sixfold / {device}{load}: ");
    text.lines()
        .find_map(|line| line.strip_prefix(start.as_str())?.split_once(", goal"))
        .map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n\n- sixfold / unbound 1.2, closed loop: 9.000 [9.000-9.000], goal at most 0.500: MISSED\n\n## Cost\n\n### low\n\n\
        | device | us |\n| --- | ---: |\n| unbound 1.2 | 60.00 [50.00-70.00] |\n\n### closed loop\n\n| device | us | rate |\n\
        | --- | ---: | ---: |\n| sixfold | 3.74 [3.73-4.32] | 265 [228-266] |\n| unbound 1.2 | 5.01 [4.93-5.25] | 198 [189-202] |\n\n\
        - sixfold / unbound 1.2, closed loop: 0.747 [0.739-0.822], goal at most 0.500: MISSED\n\n## Rate\n\n\
        - sixfold / unbound 1.2: 11.545 [8.357-14.733], goal at least 10.000: met\n";

    #[test]
    fn a_page_tells_its_date_and_commit_or_does_not() {
        let page = "- Date: 2026-01-02 (UTC)\n- Machine: m.\n- Devices: sixfold 0.1.0 (commit 0123abc), unbound 1.2\n";
        assert_eq!(
            ["date", "commit", "machine"].map(|key| of_run(page, key)),
            [Some("2026-01-02"), Some("0123abc"), None]
        );
        assert_eq!(["date", "commit"].map(|key| of_run(PAGE, key)), [None; 2]);
    }

    #[test]
    fn a_source_names_one_cell_or_one_ratio() {
        let of = |source: [&str; 3], device| summary(PAGE, &source, device);
        assert_eq!(of(["Cost", "closed loop", "rate"], "unbound 1.2"), Some(["198", "189", "202"]));
        assert_eq!(of(["Cost", "low", "us"], "unbound 1.2"), Some(["60.00", "50.00", "70.00"]));
        assert_eq!(of(["Cost", "goals", "closed loop"], "unbound 1.2"), Some(["0.747", "0.739", "0.822"]));
        assert_eq!(of(["Rate", "goals", ""], "unbound 1.2"), Some(["11.545", "8.357", "14.733"]));
        let absent =
            [["Cost", "low", "rate"], ["Cost", "high", "us"], ["Cost", "goals", ""], ["Costs", "low", "us"]];
        assert_eq!(absent.map(|source| of(source, "unbound 1.2")), [None; 4]);
        assert_eq!(of(["Cost", "low", "us"], "sixfold"), None);
    }
}
