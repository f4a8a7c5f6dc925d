//! Results of conformance cases as one self-contained HTML page: the score by RFC section and level, every failed
//! case with its citation, and the reasons why other cases did not apply.

use crate::escape;
use crate::put;
use crate::table::Table;

/// Contents of the page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The tested device.
    pub device: String,
    /// Names and values; facts without a value are left out.
    pub facts: Vec<(String, String)>,
    /// The result in one sentence.
    pub verdict: String,
    /// True if no case of level MUST or SHOULD failed.
    pub holds: bool,
    /// The score.
    pub score: Table,
    /// Numbers of requirements.
    pub requirements: Table,
    /// Requirements that do not hold in all cases, one a line.
    pub broken: Vec<String>,
    /// Reasons why cases did not apply.
    pub reasons: Table,
    /// The failed cases.
    pub failed: Vec<FailedCase>,
    /// The cases that passed with a remark.
    pub remarked: Vec<FailedCase>,
    /// Configuration of the device for a case without demands: name and text of each file.
    pub configuration: Vec<(String, String)>,
}

/// A failed case, or one with a remark.
#[derive(Clone, Debug, Default)]
pub struct FailedCase {
    /// Its name.
    pub id: String,
    /// Its level.
    pub level: String,
    /// The source of the expectation.
    pub citation: String,
    /// The origin of the case.
    pub source: String,
    /// The query.
    pub question: String,
    /// The expected and the actual values.
    pub differences: Vec<String>,
    /// Lines that the case adds to the configuration.
    pub configuration: Vec<String>,
    /// Explanation; may be empty.
    pub notes: String,
}

/// The page as HTML.
pub fn html(page: &Page) -> String {
    let title = escape::html(&format!("{}: DNS64 conformance", page.device));
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n<header><p class=\"kind\">DNS64 conformance</p>\
         <h1>{}</h1>\n<ul class=\"badges\">",
        include_str!("page/style.css"),
        escape::html(&page.device)
    );
    let (class, badge) =
        if page.holds { ("yes", "all MUST and SHOULD hold") } else { ("no", "not all MUST and SHOULD hold") };
    put!(out, "<li class=\"{class}\">{badge}</li></ul>\n");
    put!(out, "<p class=\"verdict\">{}</p></header>\n<main id=\"main\">\n", escape::html(&page.verdict));
    put!(out, "<section><h2>Requirements</h2>\n{}", page.requirements.html());
    if !page.broken.is_empty() {
        out.push_str("<p>Not in all cases hold:</p>\n<ul>\n");
        for line in &page.broken {
            put!(out, "<li>{}</li>\n", escape::html(line));
        }
        out.push_str("</ul>\n");
    }
    put!(out, "</section>\n<section><h2>Cases</h2>\n{}</section>\n", page.score.html());
    put!(out, "<section><h2>Failed cases</h2>\n{}</section>\n", case_table(&page.failed));
    if !page.remarked.is_empty() {
        put!(
            out,
            "<section><h2>Cases that passed with a remark</h2>\n<p>The client got what it should. The upstream got other \
             queries, or the device made the other choice that an RFC leaves.</p>\n{}</section>\n",
            case_table(&page.remarked)
        );
    }
    if !page.reasons.rows.is_empty() {
        put!(out, "<section><h2>Cases that were not played</h2>\n{}</section>\n", page.reasons.html());
    }
    if !page.configuration.is_empty() {
        out.push_str(
            "<section><h2>Configuration</h2>\n<p>For a case without demands. {dir} stands for the folder of a case; the \
             ports are examples.</p>\n",
        );
        for (name, text) in &page.configuration {
            put!(out, "<h3>{}</h3>\n<pre>{}</pre>\n", escape::html(name), escape::html(text));
        }
        out.push_str("</section>\n");
    }
    out.push_str("</main>\n<footer>");
    for (name, value) in page.facts.iter().filter(|(_, value)| !value.is_empty()) {
        put!(out, "<p>{}: {}</p>", escape::html(name), escape::html(value));
    }
    out.push_str("</footer>\n</body>\n</html>\n");
    out
}

fn case_table(cases: &[FailedCase]) -> String {
    if cases.is_empty() {
        return "<p>None.</p>\n".to_owned();
    }
    let mut out = String::from(
        "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">case</th><th scope=\"col\">level</th>\
         <th scope=\"col\">citation</th><th scope=\"col\">query; expected and actual</th></tr></thead><tbody>\n",
    );
    for case in cases {
        put!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"wide\">{}</td><td class=\"wide\">",
            escape::html(&case.id),
            escape::html(&case.level),
            escape::html(&case.citation)
        );
        if !case.question.is_empty() {
            put!(out, "<code>{}</code><br>", escape::html(&case.question));
        }
        for difference in &case.differences {
            put!(out, "{}<br>", escape::html(difference));
        }
        let configuration = case.configuration.join(" | ");
        for (name, text) in [("Configuration", &configuration), ("Why", &case.notes), ("From", &case.source)]
        {
            if !text.is_empty() {
                put!(out, "<span class=\"say\">{name}: {}</span><br>", escape::html(text));
            }
        }
        out.push_str("</td></tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "</td><script>alert(1)</script>&\"'";

    fn page() -> Page {
        let mut reasons = Table::new("reasons", 1, &["reason", "cases"]);
        reasons.row([HOSTILE, "1"]);
        let text = || HOSTILE.to_owned();
        Page {
            device: text(),
            facts: vec![(text(), text()), ("Version".to_owned(), String::new())],
            verdict: text(),
            holds: false,
            score: reasons.clone(),
            requirements: reasons.clone(),
            broken: vec![text()],
            reasons,
            remarked: Vec::new(),
            configuration: vec![(text(), text())],
            failed: vec![FailedCase {
                id: text(),
                level: text(),
                citation: text(),
                source: text(),
                question: text(),
                differences: vec![text()],
                configuration: vec![text()],
                notes: text(),
            }],
        }
    }

    #[test]
    fn nothing_that_a_device_or_a_file_says_leaves_its_place() {
        let html = html(&page());
        assert!(!html.contains("<script"), "{html}");
        // Title, heading, verdict, three tables, a requirement, eight fields of the case, name and text of the
        // configuration, two of a fact.
        assert_eq!(html.matches("&lt;script&gt;").count(), 19);
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let html = html(&page());
        assert!(!html.contains("http://") && !html.contains("https://") && !html.contains("src="), "{html}");
        assert!(html.contains("default-src 'none'"));
    }

    #[test]
    fn facts_without_a_value_are_left_out_and_no_failure_is_said() {
        let page = Page { failed: Vec::new(), holds: true, ..page() };
        let html = html(&page);
        assert!(!html.contains("Version:") && html.contains("None.") && html.contains("class=\"yes\""));
    }
}
