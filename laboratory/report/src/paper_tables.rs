//! Tables in the form of the papers: median, average, standard deviation, percentiles and extremes per value of the
//! sweep or cell, and the grid of RFC 8219 section 9.2, with method, hosts and configuration, as Markdown and LaTeX.

use crate::escape;
use crate::grid::grids_of;
use crate::groups::sweep_parameter;
use crate::method;
use crate::named::named;
use crate::number;
use crate::put;
use crate::surroundings;
use crate::table::Table;
use crate::verdict::{self, at_least};
use crate::warnings::gathered;
use measure::run::{CellResult, Run, Summary};

/// The tables as Markdown, after the verdict.
pub fn markdown(run: &Run) -> String {
    let mut out = format!("{}\n\n", escape::markdown(&verdict::sentence(run)));
    put!(out, "{}\n\n", escape::markdown(&conditions(run)));
    let notes = notes(run);
    for note in &notes {
        put!(out, "- {}\n", escape::markdown(note));
    }
    if !notes.is_empty() {
        out.push('\n');
    }
    for table in tables(run) {
        out.push_str(&table.markdown());
        out.push('\n');
    }
    let runs = named(&[("", run)]);
    out + &method::markdown(&runs) + &surroundings::markdown(&runs)
}

/// The tables as LaTeX for the package `booktabs`. Their labels end in `label`, so that the tables of several runs can
/// stand in one paper.
pub fn latex(run: &Run, label: &str) -> String {
    let mut out = escape::latex_comment(&verdict::sentence(run));
    out.push_str(&escape::latex_comment(&conditions(run)));
    for note in notes(run) {
        out.push_str(&escape::latex_comment(&note));
    }
    out.push_str(escape::LATEX_PACKAGES);
    for table in tables(run) {
        out.push('\n');
        out.push_str(&table.latex(&format!("tab:{}-{label}", table.id)));
    }
    let runs = named(&[("", run)]);
    out + &method::latex(&runs) + &surroundings::latex(&runs)
}

/// Objections against the figures, and warnings.
fn notes(run: &Run) -> Vec<String> {
    let objections = verdict::objections(run);
    let objections = objections.into_iter().map(|(heading, text)| format!("{heading}: {text}"));
    objections.chain(gathered(run).into_iter().map(|warning| format!("Warning: {warning}"))).collect()
}

/// Conditions of the measurement in one sentence.
fn conditions(run: &Run) -> String {
    let settings = &run.settings;
    format!(
        "Trials of {}, timeout {}, {} repetitions, search to {}, prefix {}, zone {}; {}.",
        number::milliseconds(settings.trial_ms),
        number::milliseconds(settings.timeout_ms),
        settings.repetitions,
        verdict::precision(settings),
        settings.prefix,
        settings.zone,
        run.tool
    )
}

/// All tables.
fn tables(run: &Run) -> Vec<Table> {
    let mut tables = vec![summaries(
        run,
        "results",
        &format!("{}: queries per second without loss, strictly by RFC 8219 section 9.2", run.device.title()),
        |result| &result.summary,
    )];
    if run.results.iter().any(|result| result.confirmed_summary.count > 0) {
        tables.push(summaries(
            run,
            "confirmed",
            &format!(
                "{}: queries per second without loss, failures confirmed by a second trial (beyond RFC 8219)",
                run.device.title()
            ),
            |result| &result.confirmed_summary,
        ));
    }
    for at in 0..run.settings.loss_goals.len() {
        tables.push(loss_goal(run, at));
    }
    tables.extend(computing_power(run));
    tables.extend(grids(run));
    tables.extend(crate::certificates::table(run));
    tables
}

/// Results for a goal of the loss ratio.
fn loss_goal(run: &Run, at: usize) -> Table {
    let goals = || run.results.iter().filter_map(|result| Some((result, result.loss_goals.get(at)?)));
    let name = goals().next().map_or(String::new(), |(_, goal)| verdict::goal_name(goal));
    let caption = format!("{}: queries per second with {name} (beyond RFC 8219)", run.device.title());
    let head = [
        sweep_parameter(run),
        "AAAA",
        "cached",
        "repetitions",
        "median",
        "1st percentile",
        "99th percentile",
    ];
    let mut table = Table::new(caption, 3, &head).id(&format!("loss-goal-{at}"));
    for (result, goal) in goals() {
        let summary = &goal.summary;
        let bound = if goal.censored { "≥ " } else { "" };
        table.row([
            result.sweep.clone(),
            number::percent(result.cell.aaaa_share),
            number::percent(result.cell.cached_share),
            summary.count.to_string(),
            format!("{bound}{}", number::rate(summary.median)),
            number::rate(summary.p1),
            number::rate(summary.p99),
        ]);
    }
    table
}

/// Computing-power-relative performance; `None` if no CPU time is known.
fn computing_power(run: &Run) -> Option<Table> {
    let caption = format!(
        "{}: computing-power-relative performance, in queries per second of CPU time at the highest rate without loss",
        run.device.title()
    );
    let head = [sweep_parameter(run), "AAAA", "cached", "CPU µs/query", "queries per CPU second"];
    let mut table = Table::new(caption, 3, &head).id("computing-power");
    for result in &run.results {
        if let (Some(cost), Some(power)) = (result.cpu_us_per_query, result.replies_per_cpu_second()) {
            table.row([
                result.sweep.clone(),
                number::percent(result.cell.aaaa_share),
                number::percent(result.cell.cached_share),
                number::brief(cost),
                number::rate(power),
            ]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

fn summaries(run: &Run, id: &str, caption: &str, of: fn(&CellResult) -> &Summary) -> Table {
    let head = [
        sweep_parameter(run),
        "AAAA",
        "cached",
        "repetitions",
        "median",
        "average",
        "standard deviation",
        "1st percentile",
        "99th percentile",
        "minimum",
        "maximum",
    ];
    let mut table = Table::new(caption, 3, &head).id(id);
    for result in &run.results {
        let summary = of(result);
        let mut row = vec![
            result.sweep.clone(),
            number::percent(result.cell.aaaa_share),
            number::percent(result.cell.cached_share),
            summary.count.to_string(),
            at_least(result, number::rate(summary.median)),
            number::rate(summary.mean),
            number::fixed(summary.deviation, 1),
        ];
        row.extend([summary.p1, summary.p99, summary.min, summary.max].map(number::rate));
        table.row(row);
    }
    let same = |column: usize| table.rows.windows(2).all(|pair| pair[0][column] == pair[1][column]);
    // If all rows have the same cell, its columns are left out and the caption names it.
    let unwanted: Vec<usize> = (0..3).filter(|column| same(*column) && table.rows.len() > 1).collect();
    let unwanted = if run.device.sweep.is_none() && !unwanted.contains(&0) {
        [vec![0], unwanted].concat()
    } else {
        unwanted
    };
    if let (Some(first), true) = (table.rows.first(), unwanted.contains(&1) && unwanted.contains(&2)) {
        table.caption = format!("{}; {} AAAA, {} cached", table.caption, first[1], first[2]);
    }
    // The caption stays beside the figures wherever the table is pasted.
    let indicative = run.results.iter().find_map(|result| verdict::indicative(run, of(result)));
    if let Some(why) = indicative {
        table.caption += &format!("; indicative: {why}");
    }
    table.without_columns(&unwanted)
}

/// A grid for each value of the sweep if there is more than one cell.
fn grids(run: &Run) -> Vec<Table> {
    let grids = grids_of(run);
    let mut tables = Vec::new();
    for (at, grid) in grids.iter().enumerate() {
        let mut head = vec!["AAAA".to_owned()];
        head.extend(grid.cached.iter().map(|share| format!("{} cached", number::percent(*share))));
        let of = match grid.sweep {
            "" => String::new(),
            value => format!(", {} = {value}", sweep_parameter(run)),
        };
        let mut table = Table::new(
            format!(
                "{}: median (1st to 99th percentile) of queries per second by shares of AAAA and cached names{of}",
                run.device.title()
            ),
            1,
            &[],
        )
        .id(&format!("grid-{at}"));
        table.head = head;
        for (share, results) in &grid.rows {
            let mut row = vec![number::percent(*share)];
            row.extend(results.iter().map(|result| match result {
                Some(result) => {
                    let summary = &result.summary;
                    let median = at_least(result, number::rate(summary.median));
                    format!("{median} ({}–{})", number::rate(summary.p1), number::rate(summary.p99))
                }
                None => number::NONE.to_owned(),
            }));
            table.row(row);
        }
        tables.push(table);
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, Shape};

    fn swept() -> Run {
        sample::run(&Shape { cells: vec![(0.0, 0.0)], repetitions: 3, seconds: 2, ..Shape::full() })
    }

    #[test]
    fn a_sweep_gives_a_row_for_each_value_as_the_papers_have_it() {
        let run = swept();
        let text = markdown(&run);
        assert!(text.contains("| threads | repetitions | median | average |"), "{text}");
        for result in &run.results {
            let start = format!(
                "| {} | 3 | {} | {} |",
                result.sweep,
                number::rate(result.summary.median),
                number::rate(result.summary.mean)
            );
            assert!(text.contains(&start), "{start}");
        }
        assert!(text.contains("; 0\u{a0}% AAAA, 0\u{a0}% cached"), "the cell is said");
        assert!(!text.contains("by shares of AAAA"), "there is no grid");
    }

    #[test]
    fn labels_and_captions_name_the_device_so_that_two_runs_stand_in_one_paper() {
        let grid = |name: &str, version: &str| {
            let mut run = sample::run(&Shape { sweep: vec![], repetitions: 3, seconds: 2, ..Shape::full() });
            (run.device.name, run.device.version) = (name.to_owned(), version.to_owned());
            latex(&run, &run.device.slug())
        };
        let paper = grid("unbound", "Version 1.17.1") + &grid("bind", "BIND 9.18.49 (x) <id:>");
        let mut labels: Vec<&str> =
            paper.lines().filter_map(|line| line.trim().strip_prefix("\\label{")).collect();
        assert!(labels.contains(&"tab:results-unbound}") && labels.contains(&"tab:confirmed-bind}"));
        let all = labels.len();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), all, "no label is defined twice");
        let captions: Vec<&str> =
            paper.lines().filter_map(|line| line.trim().strip_prefix("\\caption{")).collect();
        let named =
            |caption: &&str| caption.starts_with("Unbound 1.17.1: ") || caption.starts_with("BIND 9.18.49: ");
        assert!(captions.len() == all && captions.iter().all(named), "{captions:?}");
    }

    #[test]
    fn the_grid_has_the_percentages_as_headings() {
        let run = sample::run(&Shape { sweep: vec![], repetitions: 3, seconds: 2, ..Shape::full() });
        let text = latex(&run, "unbound");
        assert!(text.contains("AAAA & 0\\,\\% cached & 40\\,\\% cached & 100\\,\\% cached \\\\"), "{text}");
        assert!(text.contains("20\\,\\% & "), "{text}");
        assert_eq!(text.matches("\\begin{tabular}").count(), text.matches("\\end{tabular}").count());
    }

    #[test]
    fn latex_keeps_hostile_texts_as_text_and_comments_on_their_line() {
        let mut run = swept();
        run.device.sweep = Some(("a_b}%\\input{x}".to_owned(), vec![]));
        run.warnings = vec!["line\n\\input{/etc/passwd}".to_owned()];
        let text = latex(&run, "unbound");
        assert!(text.contains("a\\_b\\}\\%\\textbackslash{}input\\{x\\} & repetitions"), "{text}");
        assert!(text.lines().all(|line| line.starts_with('%') || !line.contains("\\input")), "{text}");
    }

    #[test]
    fn objections_against_the_figures_stand_beside_them() {
        let mut run = swept();
        (run.complete, run.self_test) = (false, None);
        run.warnings = vec!["the governor is powersave".to_owned()];
        for text in [markdown(&run), latex(&run, "unbound")] {
            for part in ["Incomplete: ", "No self-test: ", "Warning: the governor is powersave"] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }

    #[test]
    fn a_result_at_the_highest_rate_allowed_is_a_lower_bound() {
        let mut run = swept();
        run.results[0].censored = true;
        assert!(markdown(&run).contains("≥ "));
        assert!(latex(&run, "unbound").contains("$\\geq$ "));
    }
}
