//! Scorecard of conformance cases: requirements that hold, a table of cases by RFC section and level, the cases that failed,
//! the reasons why others did not apply, and how the result came about. As text for a terminal and as JSON; `page.rs` has the page.

use conform::score::{Levels, Standing, Standings, Tally};
use conform::{Case, Level, Outcome, Played, Requirements, Score};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Version of the JSON. Version 1 had no requirements, remarks and circumstances.
pub(super) const SCHEMA: u32 = 2;

/// Levels that RFCs have.
pub(super) const RFC_LEVELS: [Level; 3] = [Level::Must, Level::Should, Level::May];

/// Levels in the order of the table.
pub(super) const LEVELS: [Level; 4] = [Level::Must, Level::Should, Level::May, Level::Local];

/// How a result came about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circumstances {
    /// Time of the first case, in UTC (RFC 3339).
    pub date: String,
    /// The command line of this program.
    pub command: String,
    /// Facts of the host, by name.
    pub host: BTreeMap<String, String>,
    /// Configuration of the server for a case without demands: name and text of each file. `{dir}` stands for the folder,
    /// and the ports are examples.
    pub configuration: BTreeMap<String, String>,
}

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
    /// Lines of each case's configuration that [`Circumstances::configuration`] does not have, in the same order; may be
    /// empty.
    pub configured: Vec<Vec<String>>,
    /// How they came about.
    pub circumstances: Circumstances,
    /// Requirements, to count by.
    pub requirements: Requirements,
}

/// Lines of files that the files of `base` do not have.
pub fn further_lines(base: &BTreeMap<String, String>, files: &BTreeMap<String, String>) -> Vec<String> {
    let mut further = Vec::new();
    for (name, text) in files {
        let known: Vec<&str> = base.get(name).map_or_else(Vec::new, |text| text.lines().collect());
        let new = text.lines().filter(|line| !line.trim().is_empty() && !known.contains(line));
        further.extend(new.map(|line| line.trim().to_owned()));
    }
    further
}

impl Scorecard {
    /// The score.
    pub fn score(&self) -> Score {
        Score::of(&self.cases, &self.results, &self.requirements)
    }

    /// Text for a terminal: failed cases, the table, then the reasons why cases did not apply.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (case, played) in self.cases.iter().zip(&self.results) {
            let (word, differences) = match &played.outcome {
                Outcome::Failed { differences } => ("FAILED", differences),
                Outcome::Remarked { remarks } => ("passed, with a remark:", remarks),
                _ => continue,
            };
            let _ = writeln!(out, "{word} {} [{}, {}]", case.id, played.level, case.rfc);
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
        let _ = writeln!(
            out,
            "\n{:<21}{:>8}{:>8}{:>8}{:>12}",
            "requirements", "hold", "partly", "fail", "not played"
        );
        for level in RFC_LEVELS {
            let Standings { hold, partly, fail, not_played } = score.standings(level);
            let _ = writeln!(out, "{level:<21}{hold:>8}{partly:>8}{fail:>8}{not_played:>12}");
        }
        let broken: Vec<String> = self.broken_requirements(&score);
        if !broken.is_empty() {
            let _ = writeln!(out, "\nrequirements that do not hold in all cases:");
            for line in broken {
                let _ = writeln!(out, "  {line}");
            }
        }
        if !score.reasons.is_empty() {
            let _ = writeln!(out, "\nnot played:");
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
        let none = Vec::new();
        let configured = self.configured.iter().chain(std::iter::repeat(&none));
        let cases: Vec<Value> = self
            .cases
            .iter()
            .zip(&self.results)
            .zip(configured)
            .map(|((case, it), configured)| case_json(case, it, configured, &self.requirements))
            .collect();
        let standings: BTreeMap<String, Standings> =
            RFC_LEVELS.iter().map(|level| (level.to_string(), score.standings(*level))).collect();
        let requirements: Vec<Value> = score
            .requirements
            .iter()
            .map(|(requirement, levels)| {
                json!({ "requirement": requirement.to_string(), "text": self.requirements.text(requirement), "levels": levels })
            })
            .collect();
        let whole = json!({
            "schema": SCHEMA, "tool": self.tool, "device": self.device, "version": self.version, "suite": self.suite,
            "circumstances": self.circumstances,
            "holds": score.holds(), "all": score.all, "levels": score.levels, "sections": sections,
            "standings": standings, "requirements": requirements,
            "not_applicable": score.reasons, "cases": cases,
        });
        format!("{whole:#}\n")
    }

    /// Requirements with a failed case of level MUST or SHOULD, one a line.
    pub(super) fn broken_requirements(&self, score: &Score) -> Vec<String> {
        let mut lines = Vec::new();
        for (requirement, levels) in &score.requirements {
            for level in [Level::Must, Level::Should] {
                let tally = tally(levels, level);
                if !matches!(tally.standing(), Standing::Partly | Standing::Fails) {
                    continue;
                }
                let text = self.requirements.text(requirement);
                let colon = if text.is_empty() { "" } else { ": " };
                let (failed, played) = (tally.failed, tally.played());
                lines
                    .push(format!("{requirement} [{level}, {failed} of {played} cases failed]{colon}{text}"));
            }
        }
        lines
    }

    fn heading(&self) -> String {
        let version = if self.version.is_empty() { String::new() } else { format!(" ({})", self.version) };
        format!("{}{version}, {}", self.device, self.suite)
    }
}

pub(super) fn tally(levels: &Levels, level: Level) -> Tally {
    levels.get(&level).copied().unwrap_or_default()
}

fn row_cells(levels: &Levels) -> String {
    let cell = |number: usize| if number == 0 { "-".to_owned() } else { number.to_string() };
    let line: String = LEVELS
        .iter()
        .map(|level| {
            let Tally { passed, failed, not_applicable, .. } = tally(levels, *level);
            format!("{:>8} {:>4} {:>4}", cell(passed), cell(failed), cell(not_applicable))
        })
        .collect();
    line
}

/// The result in a sentence.
pub(super) fn summary_sentence(score: &Score) -> String {
    let level = |level: Level| {
        let tally = score.level(level);
        (tally.played() > 0).then(|| format!("{} of {} {level}", tally.passed, tally.played()))
    };
    let levels: Vec<String> = LEVELS.into_iter().filter_map(level).collect();
    let requirements = |level: Level| {
        let standings = score.standings(level);
        (standings.played() > 0).then(|| format!("{} of {} {level}", standings.hold, standings.played()))
    };
    let requirements: Vec<String> = RFC_LEVELS.into_iter().filter_map(requirements).collect();
    let requirements = match requirements.as_slice() {
        [] => String::new(),
        some => format!("requirements that hold: {}; ", some.join(", ")),
    };
    let remarked = match score.all.remarked {
        0 => String::new(),
        number => format!(" ({number} with a remark)"),
    };
    let passed = if levels.is_empty() { "none applied".to_owned() } else { levels.join(", ") };
    format!(
        "{requirements}{} cases; passed: {passed}{remarked}; {} not played",
        score.all.total(),
        score.all.not_applicable
    )
}

/// The first question of a case.
pub(super) fn first_question(case: &Case) -> Option<String> {
    let step = case.steps().first()?;
    let further = match case.steps().len() {
        1 => String::new(),
        steps => format!(", the first of {steps} questions"),
    };
    Some(format!("{} {}{further}", step.query.name.fmt_with_dot(), step.query.rtype))
}

fn case_json(case: &Case, played: &Played, configured: &[String], requirements: &Requirements) -> Value {
    let mut object = json!({
        "id": case.id, "category": case.category, "level": played.level, "rfc": case.rfc, "source": case.source,
        "elapsed_ms": played.elapsed_ms,
    });
    if let Some(requirement) = requirements.of(case) {
        object["requirement"] = json!(requirement.to_string());
    }
    if !configured.is_empty() {
        object["configuration"] = json!(configured);
    }
    let (outcome, detail) = match &played.outcome {
        Outcome::Passed => ("passed", None),
        Outcome::Remarked { remarks } => ("passed-with-remarks", Some(("remarks", json!(remarks)))),
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
            case("four", "MUST", "RFC 6147 5.1.3"),
        ];
        let outcomes = [
            Outcome::Passed,
            Outcome::Failed { differences: vec!["RCODE: SERVFAIL, expected <NOERROR>".to_owned()] },
            Outcome::Skipped { reason: "no option for x".to_owned() },
            Outcome::Remarked { remarks: vec!["the upstream saw more".to_owned()] },
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
            configured: vec![Vec::new(), vec!["prefix <p>".to_owned()]],
            circumstances: Circumstances {
                date: "2026-01-02T03:04:05Z".to_owned(),
                command: "sixfold-bench conform --device it".to_owned(),
                host: [("kernel".to_owned(), "6.1".to_owned())].into(),
                configuration: [("it.conf".to_owned(), "listen 5301\n".to_owned())].into(),
            },
            requirements: Requirements::default(),
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
        assert_eq!(row("all"), ["2", "-", "-", "-", "1", "-", "-", "-", "1", "-", "-", "-"]);
        assert!(text.contains("    1  no option for x\n"), "{text}");
        assert!(text.contains("passed, with a remark: four [MUST, RFC 6147 5.1.3]"), "{text}");
        assert_eq!(row("SHOULD"), ["0", "0", "1", "0"]);
        assert!(text.contains("  RFC 6147, 5.1.2 [SHOULD, 1 of 1 cases failed]\n"), "{text}");
        let sentence = "requirements that hold: 2 of 2 MUST, 0 of 1 SHOULD; 4 cases; passed: 2 of 2 MUST, 0 of 1 SHOULD \
                        (1 with a remark); 1 not played\n";
        assert!(text.ends_with(sentence), "{text}");
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
        assert_eq!(json["cases"][3]["outcome"], "passed-with-remarks");
        assert_eq!(json["cases"][3]["requirement"], "RFC 6147, 5.1.3");
        assert_eq!(json["standings"]["MUST"]["hold"], 2);
    }

    #[test]
    fn json_and_page_say_when_where_and_with_which_configuration() {
        let json: Value = serde_json::from_str(&scorecard().json()).unwrap();
        let told = &json["circumstances"];
        assert_eq!(told["date"], "2026-01-02T03:04:05Z");
        assert_eq!(told["command"], "sixfold-bench conform --device it");
        assert_eq!(told["host"]["kernel"], "6.1");
        assert_eq!(told["configuration"]["it.conf"], "listen 5301\n");
        assert_eq!(json["cases"][1]["configuration"][0], "prefix <p>");
        let page = scorecard().page();
        for words in ["2026-01-02T03:04:05Z", "--device it", "kernel 6.1", "listen 5301", "prefix &lt;p&gt;"]
        {
            assert!(page.contains(words), "no {words} in {page}");
        }
    }

    #[test]
    fn only_lines_that_a_case_adds_are_its_configuration() {
        let files = |text: &str| BTreeMap::from([("a.conf".to_owned(), text.to_owned())]);
        let mut case = files("one\n  three\n\n");
        case.insert("b.zone".to_owned(), "four\n".to_owned());
        assert_eq!(further_lines(&files("one\ntwo\n"), &case), ["three", "four"]);
    }

    #[test]
    fn the_page_has_the_same_and_escapes_everything() {
        let page = scorecard().page();
        assert!(page.contains("&lt;it&gt;") && page.contains("expected &lt;NOERROR&gt;"), "{page}");
        assert!(!page.contains("<it>") && !page.contains("<s>"), "{page}");
        assert!(page.contains("RFC 6147 5.1.2") && page.contains("no option for x"));
        assert!(page.contains("Cases: built-in cases"), "{page}");
        let unknown = Scorecard { suite: String::new(), ..scorecard() }.page();
        assert!(!unknown.contains("Cases: "), "{unknown}");
    }
}
