//! The checklist of RFC 8219's rules, the tester's certificate, and the correctness check.

use super::View;
use crate::escape::html;
use crate::groups::{cell_name, verdict_name};
use crate::number;
use crate::put;
use crate::table::Table;
use measure::run::{Kept, Purpose};

/// The checklist.
pub(super) fn checklist(view: &View) -> String {
    let rules = &view.run.checklist;
    if rules.is_empty() {
        return "<p>The run has no checklist.</p>".to_owned();
    }
    let many = |state| rules.iter().filter(|rule| rule.state == state).count();
    let mut out = format!(
        "<p>{} kept, {} not kept, {} not applicable, {} not checked.</p><div class=\"scroll\"><table id=\"checklist\"><caption>Rules of RFC 8219</caption><thead><tr><th scope=\"col\">Section</th><th scope=\"col\">Rule</th><th scope=\"col\">Level</th><th scope=\"col\">State</th><th scope=\"col\">Reason</th></tr></thead><tbody>",
        many(Kept::Kept),
        many(Kept::NotKept),
        many(Kept::NotApplicable),
        many(Kept::NotChecked)
    );
    for rule in rules {
        // A sign and words, because colour alone is not accessible.
        let (class, state) = match rule.state {
            Kept::Kept => ("yes", "✔ kept"),
            Kept::NotKept => ("no", "✘ not kept"),
            Kept::NotApplicable => ("muted", "– not applicable"),
            Kept::NotChecked => ("muted", "? not checked"),
        };
        put!(
            out,
            "<tr><td>{}</td><td class=\"wide\">{}</td><td>{}</td><td class=\"state {class}\">{state}</td><td class=\"wide\">{}</td></tr>",
            html(&rule.section),
            html(&rule.rule),
            html(&rule.level),
            html(&rule.because)
        );
    }
    out.push_str("</tbody></table></div>");
    out
}

/// The self-test and the correctness check before all timing.
pub(super) fn certificate(view: &View) -> String {
    let mut out = String::from("<h3>The tester's certificate</h3>");
    match &view.run.self_test {
        Some(test) => {
            put!(
                out,
                "<p>Without a device between them, tester and authority exchanged <strong>{} queries/s</strong>, with every reply valid and within {}, a quarter of the timeout. With a margin δ of {} this certifies measurements of devices up to <strong>{} queries/s</strong>; every rate that counts in a result {}.</p>",
                number::rate(test.certified_qps),
                number::milliseconds(test.timeout_ms),
                number::tick(test.delta),
                number::rate(test.device_qps),
                if test.sufficient {
                    "is at or below that"
                } else {
                    "is <strong>not</strong> at or below that"
                }
            );
            out.push_str(
                "<p class=\"say\">RFC 8219 section 9.2.1 prints the rate of the self-test as “2*(r+delta)”. It means 2(1+δ)r, because δ is a share of the rate r: a device sends up to two queries to the authority for each client query, and half of the timeout is reserved for the device. This program tests at 2(1+δ)r.</p>",
            );
            out.push_str(&self_test_table(view));
            if let Some(table) = crate::certificates::table(view.run) {
                put!(
                    out,
                    "<h3>Certificate of each result</h3><p>{}</p><p class=\"say\">“At a time” is the number of queries that the authority received with one call, behind the device and in the self-test. “Cores full at” is the rate at which the authority would be busy all the time at that cost for a query; at a low rate a query costs more, because the authority is woken up for each.</p>{}",
                    html(&crate::certificates::sentence(view.run)),
                    table.html()
                );
            }
        }
        None => {
            out.push_str("<p>There was no self-test: the measured limits may be those of the tester.</p>")
        }
    }
    out.push_str(&correctness(view));
    out
}

fn self_test_table(view: &View) -> String {
    let head = ["Verdict", "Of", "Rate (queries/s)", "Sent", "Valid", "99th percentile", "Longest", "Reason"];
    let mut table = Table::new("Trials of the self-test", 2, &head);
    for trial in view.run.trials.iter().filter(|trial| trial.purpose.is_self_test()) {
        let outcome = &trial.outcome;
        table.row([
            verdict_name(outcome.verdict).to_owned(),
            match trial.purpose {
                Purpose::CellSelfTest => cell_name(trial.cell),
                _ => "the tester".to_owned(),
            },
            number::rate(trial.rate_qps),
            number::count(outcome.sent),
            number::count(outcome.valid),
            number::microseconds(outcome.latency_us.intended.p99),
            number::microseconds(outcome.latency_us.intended.max),
            outcome.reason.clone(),
        ]);
    }
    if table.rows.is_empty() {
        return String::new();
    }
    format!(
        "<details class=\"data\"><summary>The trials of the self-test</summary><p class=\"say\">Trials that the tester limited are no fault: the self-test raises the rate until one does not pass, and so finds the tester's limit.</p>{}</details>",
        table.html()
    )
}

fn correctness(view: &View) -> String {
    let mut out = String::from("<h3>Correctness before all timing</h3>");
    let Some(check) = &view.run.correctness else {
        out.push_str("<p>There was no correctness check.</p>");
        return out;
    };
    put!(
        out,
        "<p>{} of {} names got a right answer: response code, flags, question, prefix, embedded address, number of records and TTL.</p>",
        number::count(check.valid),
        number::count(check.names)
    );
    if !check.invalid.is_empty() {
        let mut table = Table::new("Wrong answers", 1, &["Reason", "Answers"]);
        for (reason, many) in &check.invalid {
            table.row([reason.clone(), number::count(*many)]);
        }
        out.push_str(&table.html());
    }
    if let Some((passed, failed, skipped)) = check.conformance {
        put!(out, "<p>Conformance cases: {passed} passed, {failed} failed, {skipped} skipped.");
        if !check.failed_cases.is_empty() {
            let cases: Vec<String> =
                check.failed_cases.iter().map(|case| format!("<code>{}</code>", html(case))).collect();
            put!(out, " Failed: {}.", cases.join(", "));
        }
        out.push_str("</p>");
    }
    out
}
