//! The comparison of two runs as Markdown and LaTeX.

use crate::escape;
use crate::number;
use crate::put;
use crate::table::Table;
use measure::compare::{CellComparison, Comparison, Ratio, conclusion, p_text};

/// The comparison as Markdown: the conclusion, the table, the differences and notes.
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = format!("{}\n\n", escape::markdown(&conclusion(comparison)));
    out.push_str(&ratios(comparison).markdown());
    if !comparison.differences.is_empty() {
        put!(out, "\n{}", differences(comparison).markdown());
    }
    let notes = notes(comparison);
    for (at, note) in notes.iter().enumerate() {
        put!(out, "{}- {}\n", if at == 0 { "\n" } else { "" }, escape::markdown(note));
    }
    out
}

/// The comparison as LaTeX tables for the package `booktabs`; `label` ends their labels.
pub fn latex(comparison: &Comparison, label: &str) -> String {
    let mut out = escape::latex_comment(&conclusion(comparison));
    for note in notes(comparison) {
        out.push_str(&escape::latex_comment(&note));
    }
    out.push_str(escape::LATEX_PACKAGES);
    put!(out, "\n{}", ratios(comparison).latex(&format!("tab:compare-{label}")));
    if !comparison.differences.is_empty() {
        put!(out, "\n{}", differences(comparison).latex(&format!("tab:differences-{label}")));
    }
    out
}

fn ratios(comparison: &Comparison) -> Table {
    let caption = format!(
        "Ratios of the second run ({}) to the first ({}), with bootstrap intervals of 95 % and p-values of a permutation test of the rank sums",
        comparison.second, comparison.first
    );
    let head = ["sweep", "AAAA", "cached", "", "first", "second", "ratio", "95 % interval", "p", "second is"];
    let mut table = Table::new(caption, 4, &head);
    for cell in &comparison.cells {
        let place = [
            cell.sweep.clone(),
            number::percent(cell.cell.aaaa_share),
            number::percent(cell.cell.cached_share),
        ];
        for (name, ratio, verdict) in rows(cell) {
            table.row(place.iter().cloned().chain([name.to_owned()]).chain(figures(ratio)).chain([verdict]));
        }
    }
    if comparison.cells.iter().all(|cell| cell.sweep.is_empty()) {
        table.without_columns(&[0])
    } else {
        table
    }
}

/// The rows of a cell: name, ratio, verdict.
pub(crate) fn rows(cell: &CellComparison) -> Vec<(&'static str, Option<&Ratio>, String)> {
    let mut rows = vec![("queries/s", cell.strict.as_ref(), cell.verdict.to_string())];
    for (name, ratio) in [("confirmed", &cell.confirmed), ("CPU µs/query", &cell.cpu)] {
        rows.extend(ratio.as_ref().map(|ratio| (name, Some(ratio), String::new())));
    }
    rows
}

/// Both values, their ratio, its interval and p.
pub(crate) fn figures(ratio: Option<&Ratio>) -> [String; 5] {
    let Some(ratio) = ratio else { return [(); 5].map(|()| number::NONE.to_owned()) };
    [
        number::rate(ratio.first),
        number::rate(ratio.second),
        number::fixed(ratio.ratio, 3),
        format!("{} to {}", number::fixed(ratio.low, 3), number::fixed(ratio.high, 3)),
        p_text(ratio.p),
    ]
}

fn differences(comparison: &Comparison) -> Table {
    let mut table =
        Table::new("Differences between the runs besides the device", 3, &["condition", "first", "second"]);
    for it in &comparison.differences {
        table.row([&it.what, &it.first, &it.second].map(String::clone));
    }
    table
}

fn notes(comparison: &Comparison) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for cell in comparison.cells.iter().filter(|cell| !cell.note.is_empty()) {
        if !notes.contains(&cell.note) {
            notes.push(cell.note.clone());
        }
    }
    notes.extend(comparison.warnings.iter().cloned());
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, Shape};
    use measure::compare::compare;

    fn three_against_three() -> Comparison {
        let mut first = sample::run(&Shape::quick());
        first.results[0].strict = vec![100.0, 104.0, 108.0];
        first.results[0].censored = false;
        let mut second = first.clone();
        second.results[0].strict = vec![50.0, 52.0, 54.0];
        second.device.version = "Unbound 1.23.0_a".to_owned();
        second.settings.trial_ms = 60_000;
        compare(&first, &second)
    }

    #[test]
    fn the_tables_have_ratio_interval_p_and_the_differences() {
        let comparison = three_against_three();
        let text = markdown(&comparison);
        for part in [
            "The second is not comparable with the first; the notes give the reasons and remedies.",
            "| AAAA | cached |  | first | second | ratio | 95 % interval | p | second is |",
            // 52 / 104.
            "| 0\u{a0}% | 0\u{a0}% | queries/s | 104 | 52.0 | 0.500 | ",
            " | 0.10 | incomparable |",
            "| setting trial\\_ms | 3000 | 60000 |",
            "- 3 and 3 repetitions can show at best p = 0.10, and a verdict needs p \\< 0.05",
        ] {
            assert!(text.contains(part) || text.contains(&escape::markdown(part)), "{part}\n{text}");
        }
        let text = latex(&comparison, "unbound-unbound");
        for part in
            ["\\label{tab:compare-unbound-unbound}", "\\label{tab:differences-unbound-unbound}", "1.23.0\\_a"]
        {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert_eq!(text.matches("\\begin{").count(), text.matches("\\end{").count());
    }
}
