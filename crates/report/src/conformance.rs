//! The result of conformance cases as one HTML page that needs nothing from elsewhere: the score by RFC section and level,
//! every case that failed with its citation, and why others did not apply.

use crate::escape;
use crate::put;
use crate::table::Table;

/// What the page shows.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// What was tested.
    pub device: String,
    /// Names and values; those without a value are left out.
    pub facts: Vec<(String, String)>,
    /// The result in a sentence.
    pub verdict: String,
    /// Whether no case of level MUST or SHOULD failed.
    pub holds: bool,
    /// The score.
    pub score: Table,
    /// Why cases did not apply.
    pub reasons: Table,
    /// The cases that failed.
    pub failed: Vec<FailedCase>,
}

/// A case that failed.
#[derive(Clone, Debug, Default)]
pub struct FailedCase {
    /// Its name.
    pub id: String,
    /// How much it weighs.
    pub level: String,
    /// What the expectation rests on.
    pub citation: String,
    /// Where the case comes from.
    pub source: String,
    /// What was asked.
    pub question: String,
    /// What was expected and what came.
    pub differences: Vec<String>,
    /// Why; may be empty.
    pub notes: String,
}

/// The page.
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
    put!(out, "<section><h2>The score</h2>\n{}</section>\n", page.score.html());
    put!(out, "<section><h2>Cases that failed</h2>\n{}</section>\n", failed(&page.failed));
    if !page.reasons.rows.is_empty() {
        put!(out, "<section><h2>Cases that do not apply</h2>\n{}</section>\n", page.reasons.html());
    }
    out.push_str("</main>\n<footer>");
    for (name, value) in page.facts.iter().filter(|(_, value)| !value.is_empty()) {
        put!(out, "<p>{}: {}</p>", escape::html(name), escape::html(value));
    }
    out.push_str("</footer>\n</body>\n</html>\n");
    out
}

fn failed(cases: &[FailedCase]) -> String {
    if cases.is_empty() {
        return "<p>None.</p>\n".to_owned();
    }
    let mut out = String::from(
        "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">case</th><th scope=\"col\">level</th>\
         <th scope=\"col\">rests on</th><th scope=\"col\">asked; expected and came</th></tr></thead><tbody>\n",
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
        for (name, text) in [("Why", &case.notes), ("From", &case.source)] {
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
            reasons,
            failed: vec![FailedCase {
                id: text(),
                level: text(),
                citation: text(),
                source: text(),
                question: text(),
                differences: vec![text()],
                notes: text(),
            }],
        }
    }

    #[test]
    fn nothing_that_a_device_or_a_file_says_leaves_its_place() {
        let html = html(&page());
        assert!(!html.contains("<script"), "{html}");
        // Title, heading, verdict, two tables, seven fields of the case, two of a fact.
        assert_eq!(html.matches("&lt;script&gt;").count(), 14);
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
