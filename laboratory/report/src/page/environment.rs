//! Everything that is needed to repeat the measurement: settings, hosts, command lines, configuration files.

use super::View;
use crate::command_line::command_line;
use crate::escape::html;
use crate::number;
use crate::put;
use crate::table::Table;
use crate::verdict;
use std::collections::BTreeSet;

/// The section.
pub(super) fn section(view: &View) -> String {
    let mut out =
        format!("<details><summary>Settings of the run</summary>{}</details>", settings(view).html());
    if view.run.hosts.is_empty() {
        out.push_str("<p>The hosts are not recorded.</p>");
    } else {
        put!(out, "<details><summary>Hosts</summary>{}</details>", hosts(view).html());
    }
    out.push_str(&device(view));
    out
}

fn settings(view: &View) -> Table {
    let (run, settings) = (view.run, &view.run.settings);
    let mut table = Table::new("Settings", 2, &["Setting", "Value"]);
    for (name, value) in [
        ("Profile", run.profile.clone()),
        ("Begun", run.started.clone()),
        ("Ended", run.ended.clone()),
        ("Length of a trial", number::milliseconds(settings.trial_ms)),
        ("Timeout", number::milliseconds(settings.timeout_ms)),
        ("Pause after a trial", number::milliseconds(settings.pause_ms)),
        ("Repetitions", settings.repetitions.to_string()),
        ("Procedure", settings.procedure.clone()),
        (
            "Search",
            match settings.bisection {
                None => format!(
                    "doubling from {} queries/s, geometric bisection",
                    number::rate(settings.start_qps)
                ),
                Some(it) => {
                    format!("bisection from {} to {} queries/s", number::tick(it.low), number::tick(it.high))
                }
            },
        ),
        ("Precision of the search", verdict::precision(settings)),
        ("Highest rate", format!("{} queries/s", number::rate(settings.max_qps))),
        ("Margin δ of the self-test", number::tick(settings.delta)),
        ("Names", settings.names.clone()),
        ("Zone", settings.zone.clone()),
        ("Prefix", settings.prefix.clone()),
        ("TTL", format!("{}\u{a0}s", number::count(u64::from(settings.ttl)))),
        (
            "Failures confirmed",
            if settings.confirm { "yes, in addition to the strict result" } else { "no" }.to_owned(),
        ),
    ] {
        table.row([name.to_owned(), value]);
    }
    table
}

/// A row for each fact, a column for each role.
fn hosts(view: &View) -> Table {
    let hosts = &view.run.hosts;
    let facts: BTreeSet<&str> =
        hosts.values().flat_map(|host| host.facts.keys()).map(|name| &**name).collect();
    let mut head = vec!["Fact"];
    head.extend(hosts.keys().map(|role| &**role));
    let mut table = Table::new("Hosts by role", head.len(), &head);
    for fact in facts {
        let values = hosts
            .values()
            .map(|host| host.facts.get(fact).cloned().unwrap_or_else(|| number::NONE.to_owned()));
        table.row([fact.to_owned()].into_iter().chain(values));
    }
    table
}

fn device(view: &View) -> String {
    let device = &view.run.device;
    let mut out = String::from("<details><summary>The device</summary>");
    put!(out, "<p>{} at <code>{}</code>", html(&device.title()), html(&device.address));
    if !device.cores.is_empty() {
        put!(out, " on cores <code>{}</code>", html(&device.cores));
    }
    if !device.version.is_empty() {
        put!(out, "; it reports its version as <code>{}</code>", html(&device.version));
    }
    out.push_str("</p>");
    if device.command.is_empty() {
        out.push_str("<p>It was already running; this program did not start it.</p>");
    } else {
        put!(out, "<pre><code>{}</code></pre>", html(&command_line(&device.command)));
    }
    for (name, text) in &device.files {
        put!(out, "<h4><code>{}</code></h4><pre><code>{}</code></pre>", html(name), html(text));
    }
    out.push_str("</details>");
    out
}
