//! The scorecard as one self-contained HTML page.

use super::scorecard::{LEVELS, RFC_LEVELS, Scorecard, first_question, summary_sentence, tally};
use conform::score::{Levels, Standings};
use conform::{Case, Outcome, Played, Score};
use report::Frame;
use report::escape::{self, html};
use report::table::Table;

impl Scorecard {
    /// The scorecard as a page.
    pub fn page(&self) -> String {
        let score = self.score();
        let mut sections = vec![
            ("requirements", "Requirements", self.requirements_section(&score)),
            ("sections", "Cases", section_table(&score).html()),
            (
                "failed",
                "Failed cases",
                self.case_table(|outcome| match outcome {
                    Outcome::Failed { differences } => Some(differences),
                    _ => None,
                }),
            ),
        ];
        let remarked = self.case_table(|outcome| match outcome {
            Outcome::Remarked { remarks } => Some(remarks),
            _ => None,
        });
        if score.all.remarked > 0 {
            let explained = "<p>The client got what it should. The upstream got other queries, or the device made the other choice that \
                             an RFC leaves.</p>\n";
            sections.push(("remarked", "Cases that passed with a remark", format!("{explained}{remarked}")));
        }
        if !score.reasons.is_empty() {
            let mut reasons = Table::new("Why cases were not played", 1, &["reason", "cases"]);
            score
                .reasons
                .iter()
                .for_each(|(reason, number)| reasons.row([reason.clone(), number.to_string()]));
            sections.push(("not-played", "Cases that were not played", reasons.html()));
        }
        if !self.circumstances.configuration.is_empty() {
            sections.push(("configuration", "Configuration", self.configuration_section()));
        }
        let badge = match score.holds() {
            true => ("yes", "all MUST and SHOULD hold".to_owned()),
            false => ("no", "not all MUST and SHOULD hold".to_owned()),
        };
        let header = format!(
            "<h1>{}</h1>{}<p class=\"verdict\">{}</p>",
            html(&self.device),
            report::badges(&[badge]),
            html(&summary_sentence(&score))
        );
        let title = format!("{}: DNS64 conformance", self.device);
        let json = escape::script(&self.json());
        Frame { title, kind: "DNS64 conformance", header, sections, footer: self.facts(), json }.html()
    }

    fn requirements_section(&self, score: &Score) -> String {
        let mut table =
            Table::new("Requirements by level", 1, &["level", "hold", "partly", "fail", "not played"]);
        for level in RFC_LEVELS {
            let Standings { hold, partly, fail, not_played } = score.standings(level);
            let numbers = [hold, partly, fail, not_played].map(|number| number.to_string());
            table.row(std::iter::once(level.to_string()).chain(numbers));
        }
        let broken: String =
            self.broken_requirements(score).iter().map(|line| format!("<li>{}</li>\n", html(line))).collect();
        match broken.as_str() {
            "" => table.html(),
            broken => format!("{}<p>Not in all cases hold:</p>\n<ul>\n{broken}</ul>\n", table.html()),
        }
    }

    /// The cases of a kind of outcome, with its differences.
    fn case_table(&self, differences: impl Fn(&Outcome) -> Option<&Vec<String>>) -> String {
        let none = Vec::new();
        let configured = self.configured.iter().chain(std::iter::repeat(&none));
        let rows: String = self
            .cases
            .iter()
            .zip(&self.results)
            .zip(configured)
            .filter_map(|((case, played), configured)| {
                Some(case_row(case, played, differences(&played.outcome)?, configured))
            })
            .collect();
        if rows.is_empty() {
            return "<p>None.</p>\n".to_owned();
        }
        format!(
            "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">case</th><th scope=\"col\">level</th>\
             <th scope=\"col\">citation</th><th scope=\"col\">query; expected and actual</th></tr></thead><tbody>\n\
             {rows}</tbody></table></div>\n"
        )
    }

    fn configuration_section(&self) -> String {
        let mut out = "<p>For a case without demands. {dir} stands for the folder of a case; the ports are examples.</p>\n".to_owned();
        for (name, text) in &self.circumstances.configuration {
            out += &format!("<h3>{}</h3>\n<pre>{}</pre>\n", html(name), html(text));
        }
        out
    }

    /// Version, cases and circumstances, one after the other; those that are unknown are left out.
    fn facts(&self) -> String {
        let told = &self.circumstances;
        let host: Vec<String> = told.host.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let facts = [
            ("Version", &self.version),
            ("Cases", &self.suite),
            ("Made by", &self.tool),
            ("Date", &told.date),
            ("Command", &told.command),
            ("Host", &host.join("; ")),
        ];
        let known = facts.iter().filter(|(_, value)| !value.is_empty());
        known.map(|(name, value)| format!("{name}: {}", html(value))).collect::<Vec<_>>().join("</p><p>")
    }
}

/// Cases by RFC section and level.
fn section_table(score: &Score) -> Table {
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
    table
}

/// A failed case, or one with a remark. `configured`: lines that it adds to the configuration.
fn case_row(case: &Case, played: &Played, differences: &[String], configured: &[String]) -> String {
    let mut out = format!(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"wide\">{}</td><td class=\"wide\">",
        html(&case.id),
        played.level,
        html(&case.rfc)
    );
    if let Some(question) = first_question(case) {
        out += &format!("<code>{}</code><br>", html(&question));
    }
    for difference in differences {
        out += &format!("{}<br>", html(difference));
    }
    let configuration = configured.join(" | ");
    for (name, text) in [("Configuration", &configuration), ("Why", &case.notes), ("From", &case.source)] {
        if !text.is_empty() {
            out += &format!("<span class=\"say\">{name}: {}</span><br>", html(text));
        }
    }
    out + "</td></tr>\n"
}
