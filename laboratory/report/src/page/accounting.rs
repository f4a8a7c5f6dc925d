//! Query accounting: reasons of invalid answers, and the queries that reached the authority.

use super::{Figure, View, placeholder, scroll};
use crate::chart::{Axis, Plot, Scale};
use crate::groups::Group;
use crate::number;
use crate::table::Table;
use measure::run::{ASKED_A, ASKED_AAAA, Run};
use std::collections::BTreeMap;

/// The section.
pub(super) fn section(view: &View) -> String {
    reasons(view) + &upstream(view)
}

/// Queries without a valid reply in time, by reason, over all trials except those of the self-test.
fn reasons(view: &View) -> String {
    let title = "Queries without a valid reply in time, by reason";
    let Counts { sent, mut counts, beside } = Counts::of(view.run);
    let beside: Vec<String> =
        beside.iter().map(|(name, many)| format!("{} {name}", number::count(*many))).collect();
    let say = format!(
        "Over all trials except the self-test, {} queries; most of these come from trials above the device's capacity. Messages counted separately: {}.",
        number::count(sent),
        beside.join(", ")
    );
    counts.retain(|_, many| *many > 0);
    // The queries of these messages kept waiting and are counted by their own result.
    let strays = ["header", "question", "question-count", "stale-id"];
    let say = if strays.iter().any(|stray| counts.contains_key(&format!("invalid: {stray}"))) {
        format!(
            "{say} A message with another ID or question than its query ({}) is counted in addition to the query, which may also be lost.",
            strays.join(", ")
        )
    } else {
        say
    };
    if counts.is_empty() {
        return placeholder(title, &format!("Every query got a valid reply in time. {say}"));
    }
    let mut rows: Vec<(String, u64)> = counts.into_iter().collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let names: Vec<String> = rows.iter().map(|(name, _)| name.clone()).collect();
    let mut plot = Plot::new(
        "reasons-plot",
        title,
        "A bar for each reason: the number of queries.",
        (860.0, 60.0 + rows.len() as f64 * 30.0),
        Axis::new(Scale::from_zero(rows.iter().map(|(_, many)| *many as f64)), "queries", 5, number::tick),
        Axis::rows(&names),
    )
    .space_at_right(110.0);
    let mut table = Table::new(title, 1, &["Reason", "Queries", "Of all"]);
    for (at, (name, many)) in rows.iter().enumerate() {
        let middle = Axis::row(at, rows.len());
        let text = number::count(*many);
        plot.bar((0.0, *many as f64), (middle - 0.32, middle + 0.32), "c2", &format!("{name}: {text}"));
        plot.text((*many as f64, middle), (6.0, 4.0), "start", &text);
        table.row([name.clone(), text, number::measured_percent(*many as f64 / sent.max(1) as f64)]);
    }
    Figure {
        id: "reasons",
        title,
        explanation: say,
        picture: scroll(&plot.svg()),
        legend: String::new(),
        tables: vec![table],
    }
    .html_of(&view.form())
}

/// Counts over all trials except those of the self-test.
struct Counts {
    sent: u64,
    /// Queries without a valid reply in time, by reason.
    counts: BTreeMap<String, u64>,
    /// Messages that are counted separately from the queries, by name.
    beside: BTreeMap<&'static str, u64>,
}

impl Counts {
    fn of(run: &Run) -> Counts {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let mut beside: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut sent = 0;
        for trial in run.trials.iter().filter(|trial| !trial.purpose.is_self_test()) {
            let outcome = &trial.outcome;
            sent += outcome.sent;
            *counts.entry("lost: no reply at all".to_owned()).or_default() += outcome.lost;
            if outcome.connection_refused > 0 {
                let reason = "connection refused: no process listens at the port".to_owned();
                *counts.entry(reason).or_default() += outcome.connection_refused;
            }
            *counts.entry("late: a reply after the timeout".to_owned()).or_default() += outcome.late;
            for (reason, many) in &outcome.invalid {
                *counts.entry(format!("invalid: {reason}")).or_default() += many;
            }
            for (name, many) in [
                ("duplicates", outcome.duplicates),
                ("unsolicited", outcome.unsolicited),
                ("from a wrong source", outcome.wrong_source),
            ] {
                *beside.entry(name).or_default() += many;
            }
        }
        Counts { sent, counts, beside }
    }
}

/// Queries that reached the authority in the passed trials, and the resulting shares.
fn upstream(view: &View) -> String {
    let title = "Queries to the authority";
    let head = [
        "Result",
        "Queries sent",
        "AAAA queries",
        "A queries",
        "Upstream/query",
        "expected",
        "AAAA share",
        "ordered",
        "Cached share",
        "ordered",
    ];
    let mut table =
        Table::new("Queries to the authority in the passed trials", 1, &head).id("upstream-table");
    for group in view.groups {
        let Some((sent, aaaa, a)) = questions(group) else { continue };
        let (result, cell) = (group.result, group.result.cell);
        table.row([
            group.name.clone(),
            number::count(sent),
            number::count(aaaa),
            number::count(a),
            number::fixed(result.upstream_per_query, 3),
            number::fixed((1.0 - cell.cached_share) * (2.0 - cell.aaaa_share), 3),
            // If only cached names were queried, no query reaches the authority, and the share is unknown.
            if aaaa == 0 {
                number::NONE.to_owned()
            } else {
                number::measured_percent(result.achieved_aaaa_share)
            },
            number::percent(cell.aaaa_share),
            number::measured_percent(result.achieved_cached_share),
            number::percent(cell.cached_share),
        ]);
    }
    if table.rows.is_empty() {
        return placeholder(
            title,
            "The authority's counters are missing, so the achieved shares are unknown.",
        );
    }
    format!(
        "<h3>{title}</h3><p class=\"say\">With an AAAA share p and a cached share c, a device without further optimizations sends (1−c)(2−p) queries to the authority per client query: one for AAAA, and one for A if there is no AAAA record. The achieved shares follow from the authority's counters at the highest passed rates; the ordered shares are beside them.</p>{}",
        table.html()
    )
}

/// Queries sent by the tester, and AAAA and A queries at the authority, in all passed trials of a result.
fn questions(group: &Group) -> Option<(u64, u64, u64)> {
    let known =
        group.trials.iter().filter(|trial| trial.passed() && trial.authority.contains_key(ASKED_AAAA));
    known.fold(None, |sum, trial| {
        let (sent, aaaa, a) = sum.unwrap_or_default();
        let of = |kind: &str| trial.authority.get(kind).copied().unwrap_or(0);
        Some((sent + trial.outcome.sent, aaaa + of(ASKED_AAAA), a + of(ASKED_A)))
    })
}

#[cfg(test)]
mod tests {
    use crate::sample::{self, Shape};

    #[test]
    fn messages_beside_their_query_are_told_apart_from_queries() {
        let mut run = sample::run(&Shape::quick());
        let told = |run: &measure::run::Run| crate::html(run).contains("is counted in addition to the query");
        assert!(!told(&run));
        run.trials.last_mut().unwrap().outcome.invalid.insert("stale-id".into(), 3);
        assert!(told(&run));
    }
}
