//! The report as one self-contained HTML page: style, script, charts and the run itself are inside, and a content
//! security policy forbids the browser to fetch anything. The page is complete without JavaScript.

mod accounting;
mod combined;
mod environment;
mod experiment;
mod frame;
mod latency;
mod overlay;
mod resources;
mod results;
mod rules;
mod searches;
mod spread;
mod top;

use crate::escape;
use crate::groups::{Group, form, groups, principal};
use crate::limits;
use crate::method;
use crate::named::named;
use crate::put;
use crate::table::Table;
use measure::run::Run;

pub use combined::html as combined_html;
pub use experiment::html as experiment_html;
pub use frame::{Frame, badges};
pub use overlay::files as combined_svg;

/// Kind of the pages of runs.
const KIND: &str = "DNS64 benchmark by RFC 8219 section 9";

/// The whole page.
pub fn html(run: &Run) -> String {
    let groups = groups(run);
    let view = View { run, principal: principal(&groups), groups: &groups };
    let sections = vec![
        ("results", "Results", results::section(&view)),
        ("searches", "Searches", searches::section(&view)),
        ("latency", "Latency and throughput over time", latency::section(&view)),
        ("resources", "Resource use", resources::section(&view)),
        ("accounting", "Query accounting", accounting::section(&view)),
        ("method", "Method", method::html(&named(&[("", run)]))),
        ("certificate", "Tester certificate and correctness check", rules::certificate(&view)),
        ("rules", "The rules of RFC 8219", rules::checklist(&view)),
        ("environment", "Environment, command lines, configuration", environment::section(&view)),
    ];
    let (json, left_out) = embedded(run);
    let footer = format!(
        "Made by {}. Schema {} of <code>run.json</code>, from which this page can be made again. {}",
        escape::html(&run.tool),
        run.schema,
        embedded_note(left_out)
    );
    let title = format!("{}: DNS64 benchmark by RFC 8219", run.device.title());
    Frame { title, kind: KIND, header: top::header(&view), sections, footer, json }.html()
}

/// Data of the sections.
struct View<'a> {
    run: &'a Run,
    groups: &'a [Group<'a>],
    principal: Option<&'a Group<'a>>,
}

impl<'a> View<'a> {
    /// The results other than the principal one, each with an index that is unique in the page.
    fn others(&self) -> impl Iterator<Item = (usize, &'a Group<'a>)> {
        let principal = self.principal.map(|group| std::ptr::from_ref(group.result));
        self.groups.iter().enumerate().filter(move |(_, it)| Some(std::ptr::from_ref(it.result)) != principal)
    }

    /// The form of the traffic, as in [`form`].
    fn form(&self) -> String {
        form(self.run)
    }
}

/// The run as JSON for a script element, and the name of the parts that were left out.
fn embedded(run: &Run) -> (String, &'static str) {
    let json = |run: &Run| escape::script(&serde_json::to_string(run).unwrap_or_default());
    let whole = json(run);
    if whole.len() <= limits::EMBEDDED_OCTETS {
        return (whole, "");
    }
    let mut smaller = run.clone();
    for trial in &mut smaller.trials {
        trial.outcome.latency_us.intended.histogram.clear();
        trial.outcome.latency_us.actual.histogram.clear();
        trial.outcome.per_second.clear();
    }
    let without_histograms = json(&smaller);
    if without_histograms.len() <= limits::EMBEDDED_OCTETS {
        return (without_histograms, "histograms and seconds of the trials");
    }
    smaller.trials.clear();
    (json(&smaller), "trials")
}

fn embedded_note(left_out: &str) -> String {
    match left_out {
        "" => "The whole run is embedded in this page as JSON, in the element <code>#run</code>.".to_owned(),
        left_out => format!(
            "The run is embedded in this page as JSON, in the element <code>#run</code>, without the {left_out}, which would make the page too large."
        ),
    }
}

/// A chart with its explanation, its legend, and the tables of its data.
struct Figure<'a> {
    id: &'a str,
    title: &'a str,
    /// Explanation of the chart.
    explanation: String,
    /// SVG or other HTML.
    picture: String,
    /// HTML.
    legend: String,
    tables: Vec<Table>,
}

impl Figure<'_> {
    /// The figure with a sentence on the form of the traffic before its explanation; empty: the usual form.
    fn html_of(self, form: &str) -> String {
        let explanation =
            if form.is_empty() { self.explanation } else { format!("{form} {}", self.explanation) };
        Figure { explanation, ..self }.html()
    }

    fn html(self) -> String {
        let id = escape::html(self.id);
        let mut out = format!(
            "<figure id=\"{id}\" aria-labelledby=\"{id}-h\"><h3 id=\"{id}-h\">{}</h3><p class=\"say\">{}</p>{}{}",
            escape::html(self.title),
            escape::html(&self.explanation),
            self.picture,
            self.legend
        );
        let rows: usize = self.tables.iter().map(|table| table.rows.len()).sum();
        if rows > 0 {
            out.push_str("<details class=\"data\"><summary>The figures as a table</summary>");
            for mut table in self.tables {
                let all = table.rows.len();
                table.rows.truncate(limits::TABLE_ROWS);
                out.push_str(&table.html());
                if table.rows.len() < all {
                    put!(
                        out,
                        "<p>The first {} of {all} rows; the record has all rows.</p>",
                        table.rows.len()
                    );
                }
            }
            out.push_str("</details>");
        }
        out.push_str("</figure>\n");
        out
    }
}

/// A picture that scrolls sideways on a narrow screen instead of becoming too small to read.
fn scroll(svg: &str) -> String {
    format!("<div class=\"scroll\" tabindex=\"0\">{svg}</div>")
}

/// A heading without a chart, and the reason.
fn placeholder(title: &str, why: &str) -> String {
    format!("<div class=\"absent\"><h3>{}</h3><p>{}</p></div>\n", escape::html(title), escape::html(why))
}

/// At most `most` of the values, evenly chosen, including the last.
fn downsampled<T: Copy>(all: &[T], most: usize) -> Vec<T> {
    let every = all.len().div_ceil(most.max(1)).max(1);
    let mut kept: Vec<T> = all.iter().step_by(every).copied().collect();
    if let Some(last) = all.last().filter(|_| !(all.len() - 1).is_multiple_of(every)) {
        kept.push(*last);
    }
    kept
}

#[cfg(test)]
mod tests;
