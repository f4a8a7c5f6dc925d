//! Scorecard of conformance cases: a table by RFC section and level, the cases that failed, and the reasons why others
//! did not apply. As text for a terminal, as JSON, and as the content of a page.

use conform::score::{Levels, Tally};
use conform::{Case, Level, Outcome, Played, Score};
use report::conformance::{FailedCase, Page};
use report::table::Table;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Version of the JSON.
const SCHEMA: u32 = 1;

/// Levels in the order of the table.
const LEVELS: [Level; 4] = [Level::Must, Level::Should, Level::May, Level::Local];

/// The result of one server.
#[derive(Clone, Debug)]
pub struct Scorecard {
    /// Target of the test: the name of a template, a command line or an address.
    pub device: String,
    /// Version that it reports; may be empty.
    pub version: String,
    /// Source of the cases.
    pub suite: String,
    /// The program that played them.
    pub tool: String,
    /// The cases.
    pub cases: Vec<Case>,
    /// Their results, in the same order.
    pub results: Vec<Played>,
}

impl Scorecard {
    /// The score.
    pub fn score(&self) -> Score {
        Score::of(&self.cases, &self.results)
    }

    /// Text for a terminal: failed cases, the table, then the reasons why cases did not apply.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (case, played) in self.cases.iter().zip(&self.results) {
            let Outcome::Failed { differences } = &played.outcome else { continue };
            let _ = writeln!(out, "FAILED {} [{}, {}]", case.id, case.level, case.rfc);
            if let Some(question) = first_question(case) {
                let _ = writeln!(out, "    asked: {question}");
            }
            for difference in differences {
                let _ = writeln!(out, "    {difference}");
            }
        }
        if !out.is_empty() {
            out.push('\n');
        }
        let score = self.score();
        let _ = writeln!(out, "{}\n", self.heading());
        let _ = writeln!(out, "{:<21}{:>18}{:>18}{:>18}{:>18}", "", "MUST", "SHOULD", "MAY", "local");
        let _ = writeln!(out, "{:<21}{}", "section", "   pass fail  n/a ".repeat(LEVELS.len()).trim_end());
        for (citation, levels) in &score.sections {
            let _ = writeln!(out, "{citation:<21}{}", row_cells(levels));
        }
        let _ = writeln!(out, "{:<21}{}", "all", row_cells(&score.levels));
        if !score.reasons.is_empty() {
            let _ = writeln!(out, "\nnot applicable:");
            for (reason, number) in &score.reasons {
                let _ = writeln!(out, "{number:>5}  {reason}");
            }
        }
        let _ = writeln!(out, "\n{}", summary_sentence(&score));
        out
    }

    /// The scorecard as JSON.
    pub fn json(&self) -> String {
        let score = self.score();
        let sections: Vec<Value> = score
            .sections
            .iter()
            .map(|(citation, levels)| json!({ "section": citation.to_string(), "levels": levels }))
            .collect();
        let cases: Vec<Value> =
            self.cases.iter().zip(&self.results).map(|(case, it)| case_json(case, it)).collect();
        let whole = json!({
            "schema": SCHEMA, "tool": self.tool, "device": self.device, "version": self.version, "suite": self.suite,
            "holds": score.holds(), "all": score.all, "levels": score.levels, "sections": sections,
            "not_applicable": score.reasons, "cases": cases,
        });
        format!("{whole:#}\n")
    }

    /// The scorecard as a page.
    pub fn page(&self) -> String {
        let score = self.score();
        let mut head = vec!["section".to_owned()];
        for level in LEVELS {
            head.extend(["passed", "failed", "n/a"].map(|what| format!("{level} {what}")));
        }
        let mut table = Table { head, names: 1, ..Table::new("Cases by RFC section and level", 1, &[]) };
        let row = |name: String, levels: &Levels| {
            let numbers = LEVELS.map(|level| tally(levels, level));
            let numbers = numbers.into_iter().flat_map(|it| [it.passed, it.failed, it.not_applicable]);
            let numbers = numbers.map(|number| if number == 0 { "·".to_owned() } else { number.to_string() });
            std::iter::once(name).chain(numbers).collect::<Vec<_>>()
        };
        table.rows.extend(score.sections.iter().map(|(citation, levels)| row(citation.to_string(), levels)));
        table.rows.push(row("all".to_owned(), &score.levels));
        let mut reasons = Table::new("Why cases do not apply", 1, &["reason", "cases"]);
        for (reason, number) in &score.reasons {
            reasons.row([reason.clone(), number.to_string()]);
        }
        let failed =
            self.cases.iter().zip(&self.results).filter_map(|(case, played)| match &played.outcome {
                Outcome::Failed { differences } => Some(FailedCase {
                    id: case.id.clone(),
                    level: case.level.to_string(),
                    citation: case.rfc.clone(),
                    source: case.source.clone(),
                    question: first_question(case).unwrap_or_default(),
                    differences: differences.clone(),
                    notes: case.notes.clone(),
                }),
                _ => None,
            });
        report::conformance::html(&Page {
            device: self.device.clone(),
            facts: [("Version", &self.version), ("Cases", &self.suite), ("Made by", &self.tool)]
                .map(|(name, value)| (name.to_owned(), value.clone()))
                .to_vec(),
            verdict: summary_sentence(&score),
            holds: score.holds(),
            score: table,
            reasons,
            failed: failed.collect(),
        })
    }

    fn heading(&self) -> String {
        let version = if self.version.is_empty() { String::new() } else { format!(" ({})", self.version) };
        format!("{}{version}, {}", self.device, self.suite)
    }
}

fn tally(levels: &Levels, level: Level) -> Tally {
    levels.get(&level).copied().unwrap_or_default()
}

fn row_cells(levels: &Levels) -> String {
    let cell = |number: usize| if number == 0 { "-".to_owned() } else { number.to_string() };
    let line: String = LEVELS
        .iter()
        .map(|level| {
            let Tally { passed, failed, not_applicable } = tally(levels, *level);
            format!("{:>8} {:>4} {:>4}", cell(passed), cell(failed), cell(not_applicable))
        })
        .collect();
    line
}

/// The result in a sentence.
fn summary_sentence(score: &Score) -> String {
    let level = |level: Level| {
        let tally = score.level(level);
        (tally.played() > 0).then(|| format!("{} of {} {level}", tally.passed, tally.played()))
    };
    let levels: Vec<String> = LEVELS.into_iter().filter_map(level).collect();
    let passed = if levels.is_empty() { "none applied".to_owned() } else { levels.join(", ") };
    format!("{} cases; passed: {passed}; {} not applicable", score.all.total(), score.all.not_applicable)
}

/// The first question of a case.
fn first_question(case: &Case) -> Option<String> {
    let step = case.steps().first()?;
    let further = match case.steps().len() {
        1 => String::new(),
        steps => format!(", the first of {steps} questions"),
    };
    Some(format!("{} {}{further}", step.query.name.fmt_with_dot(), step.query.rtype))
}

fn case_json(case: &Case, played: &Played) -> Value {
    let mut object = json!({
        "id": case.id, "category": case.category, "level": case.level, "rfc": case.rfc, "source": case.source,
        "elapsed_ms": played.elapsed_ms,
    });
    let (outcome, detail) = match &played.outcome {
        Outcome::Passed => ("passed", None),
        Outcome::Failed { differences } => ("failed", Some(("differences", json!(differences)))),
        Outcome::Skipped { reason } => ("not-applicable", Some(("reason", json!(reason)))),
    };
    object["outcome"] = json!(outcome);
    if let Some((key, value)) = detail {
        object[key] = value;
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scorecard() -> Scorecard {
        let case = |id: &str, level: &str, rfc: &str| {
            Case::read(&format!(
                r#"{{"id": "{id}", "category": "c", "rfc": "{rfc}", "source": "<s>", "level": "{level}", "config": {{}},
                    "query": {{"name": "a.", "type": "AAAA"}}, "expect": {{}}}}"#
            ))
            .unwrap()
        };
        let cases = vec![
            case("one", "MUST", "RFC 6147 5.1.2"),
            case("two", "SHOULD", "RFC 6147 5.1.2"),
            case("three", "MAY", "-"),
        ];
        let outcomes = [
            Outcome::Passed,
            Outcome::Failed { differences: vec!["RCODE: SERVFAIL, expected <NOERROR>".to_owned()] },
            Outcome::Skipped { reason: "no option for x".to_owned() },
        ];
        let results = cases.iter().zip(outcomes).map(|(case, outcome)| Played {
            id: case.id.clone(),
            category: case.category.clone(),
            level: case.level,
            outcome,
            elapsed_ms: 1,
        });
        Scorecard {
            device: "<it>".to_owned(),
            version: "1.0".to_owned(),
            suite: "built-in cases".to_owned(),
            tool: "this".to_owned(),
            results: results.collect(),
            cases,
        }
    }

    #[test]
    fn the_text_has_what_failed_the_table_and_the_reasons() {
        let text = scorecard().text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "FAILED two [SHOULD, RFC 6147 5.1.2]");
        assert_eq!(lines[1], "    asked: a. AAAA");
        assert_eq!(lines[2], "    RCODE: SERVFAIL, expected <NOERROR>");
        let row = |name: &str| -> Vec<&str> {
            let line = lines.iter().find(|line| line.starts_with(name)).unwrap();
            line[21..].split_whitespace().collect()
        };
        assert_eq!(row("RFC 6147, 5.1.2"), ["1", "-", "-", "-", "1", "-", "-", "-", "-", "-", "-", "-"]);
        assert_eq!(row("all"), ["1", "-", "-", "-", "1", "-", "-", "-", "1", "-", "-", "-"]);
        assert!(text.contains("    1  no option for x\n"), "{text}");
        assert!(text.ends_with("3 cases; passed: 1 of 1 MUST, 0 of 1 SHOULD; 1 not applicable\n"), "{text}");
    }

    #[test]
    fn the_json_has_the_tallies_and_every_case() {
        let json: Value = serde_json::from_str(&scorecard().json()).unwrap();
        assert_eq!(json["holds"], false);
        assert_eq!(json["levels"]["SHOULD"]["failed"], 1);
        assert_eq!(json["sections"][0]["section"], "RFC 6147, 5.1.2");
        assert_eq!(json["cases"][1]["differences"][0], "RCODE: SERVFAIL, expected <NOERROR>");
        assert_eq!(json["cases"][2]["outcome"], "not-applicable");
        assert_eq!(json["not_applicable"]["no option for x"], 1);
    }

    #[test]
    fn the_page_has_the_same_and_escapes_everything() {
        let page = scorecard().page();
        assert!(page.contains("&lt;it&gt;") && page.contains("expected &lt;NOERROR&gt;"), "{page}");
        assert!(!page.contains("<it>") && !page.contains("<s>"), "{page}");
        assert!(page.contains("RFC 6147 5.1.2") && page.contains("no option for x"));
    }
}
