//! The alert rules and the dashboard in `packaging/monitoring` name only metrics, labels and label values that the server has, and
//! sections of the manual that exist.

use crate::daemon::{Daemon, Folder, PREFIX, Setup, in_source, source_text, wait_until};
use crate::scrape::Scrape;
use crate::upstream::{Behavior, Upstream};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// Labels that Prometheus adds to metrics and alerts.
const FOREIGN: [&str; 3] = ["instance", "job", "alertname"];

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Every metric in a text, with what stands in the braces behind it.
fn selectors(text: &str) -> Vec<(&str, &str)> {
    let starts = ["sixfold_", "process_"].into_iter().flat_map(|start| text.match_indices(start));
    let starts = starts.filter(|(at, _)| !text[..*at].ends_with(is_word));
    let selector = |(at, _): (usize, &str)| {
        let rest = &text[at..];
        let (name, rest) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
        (name, rest.strip_prefix('{').and_then(|rest| rest.split('}').next()).unwrap_or_default())
    };
    starts.map(selector).collect()
}

/// Checks an expression against the metrics. Returns the metrics that it names.
fn check<'t>(scrape: &Scrape, text: &'t str) -> BTreeSet<&'t str> {
    let mut labels = BTreeSet::from(FOREIGN);
    let mut names = BTreeSet::new();
    for (name, matchers) in selectors(text) {
        let family = name.trim_end_matches("_bucket").trim_end_matches("_sum").trim_end_matches("_count");
        let family = scrape
            .0
            .get(name)
            .or_else(|| scrape.0.get(family))
            .unwrap_or_else(|| panic!("no {name}: {text}"));
        let has = |label: &str, value: Option<&str>| {
            let mut all = family.samples.iter().flat_map(|(_, labels, _)| labels);
            all.any(|(l, v)| l == label && value.is_none_or(|value| v == value))
        };
        for matcher in matchers.split(',').map(str::trim).filter(|matcher| !matcher.is_empty()) {
            let (label, value) = matcher.split_once('=').unwrap();
            let values = value.trim_start_matches('~').trim_matches('"');
            if !FOREIGN.contains(&label) {
                // The addresses of upstreams, the prefixes and the files of zones are those of each configuration.
                let is_configured = ["upstream", "prefix", "file"].contains(&label);
                let has_value = |value| has(label, (!is_configured).then_some(value));
                values.split('|').for_each(|value| assert!(has_value(value), "{name}: {label}={value}"));
            }
        }
        labels
            .extend(family.samples.iter().flat_map(|(_, labels, _)| labels).map(|(label, _)| label.as_str()));
        names.insert(name);
    }
    for list in ["by (", "ignoring("].into_iter().flat_map(|word| text.split(word).skip(1)) {
        for label in list.split(')').next().unwrap().split(',').map(str::trim) {
            assert!(labels.contains(label), "no label {label}: {text}");
        }
    }
    names
}

/// A server with every feature that adds metrics.
pub fn with_all_metrics() -> (Upstream, Folder, Daemon) {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let directory = Folder::for_everybody();
    let made = rcgen::generate_simple_self_signed(["dns.example".to_owned()]).unwrap();
    let certificate = directory.write("chain.pem", made.cert.pem());
    let key = directory.write_with_mode("key.pem", made.signing_key.serialize_pem(), 0o600);
    let policy = "@ SOA localhost. root.localhost. 1 3600 600 86400 60\nads.example CNAME .\n";
    let zone = directory.write("policy.rpz", policy);
    // A gateway on this host: see `gateways.rs`.
    let prefix = "::ffff:0.0.0.0/96";
    let gateway = kit::Listening::start(drop);
    let target = gateway.address;
    let server = Setup::new(upstream.address)
        .line(&format!("dns64.prefixes = [\"{prefix}\", \"{PREFIX}\"]"))
        .line(&format!("dns64.gateway = [{{ prefix = \"{prefix}\", probe = [\"tcp {target}\"] }}]"))
        .line(&format!("tls.certificate = {certificate:?}"))
        .line(&format!("tls.key = {key:?}"))
        .line(&format!("filter.rpz = [{zone:?}]"))
        .line("dns64.dnssec = \"validate\"")
        .line("dnssec.state-file = \"\"")
        .metrics()
        .start();
    let duration = "sixfold_prefix_probe_duration_seconds";
    wait_until("a probe was answered", || Scrape::of(server.metrics).0.contains_key(duration));
    (upstream, directory, server)
}

/// All metrics of such a server.
fn scrape() -> Scrape {
    let (_upstream, _directory, server) = with_all_metrics();
    Scrape::of(server.metrics)
}

/// The anchor that a heading gets on a web page.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches(['#', ' ']).to_lowercase();
    kept.chars()
        .filter(|c| c.is_alphanumeric() || " -".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn every_alert_is_of_metrics_that_exist_and_says_what_to_do() {
    let (scrape, text) = (scrape(), source_text("packaging/monitoring/alerts.yml"));
    let tested = source_text("packaging/monitoring/alerts_test.yml");
    check(&scrape, &tested);
    let mut alerts = text.split("- alert: ").skip(1);
    let mut count = 0;
    for alert in &mut alerts {
        let name = alert.lines().next().unwrap();
        let expression = alert.split("expr:").nth(1).unwrap().split("labels:").next().unwrap();
        assert!(!check(&scrape, expression).is_empty() || name == "SixfoldDown", "{name} is of no metric");
        for part in ["summary: \"", "description: \"", "severity: "] {
            assert_eq!(alert.matches(part).count(), 1, "{name}: {part}");
        }
        let runbook = alert.split("runbook: ").nth(1).unwrap_or_else(|| panic!("{name}: no runbook"));
        let place = runbook.split("See ").nth(1).and_then(|rest| rest.split(".\"").next());
        let place = place.unwrap_or_else(|| panic!("{name}: no page"));
        let (page, section) = place.split_once('#').unwrap_or((place, ""));
        let text = source_text(page);
        let mut sections = text.lines().filter(|line| line.starts_with("##")).map(anchor);
        assert!(section.is_empty() || sections.any(|one| one == section), "{name}: no {section} in {page}");
        count += 1;
    }
    assert!(count >= 15, "{count}");
}

#[test]
fn promtool_accepts_the_alert_rules_and_their_unit_tests_pass() {
    for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]] {
        let run =
            Command::new("promtool").args(arguments).current_dir(in_source("packaging/monitoring")).output();
        let Ok(output) = run else { return kit::missing("promtool", "apt-get install prometheus") };
        let told = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&told));
    }
}

/// The panels of a dashboard that show something, and their expressions.
fn panels(dashboard: &Value) -> Vec<(&Value, Vec<&str>)> {
    let panels = dashboard["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] != "row");
    panels
        .map(|panel| {
            let targets = panel["targets"].as_array().unwrap();
            (panel, targets.iter().map(|target| target["expr"].as_str().unwrap()).collect())
        })
        .collect()
}

#[test]
fn the_dashboard_has_what_grafana_needs_and_shows_metrics_that_exist() {
    let (scrape, text) = (scrape(), source_text("packaging/monitoring/dashboard.json"));
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 36 && dashboard["title"] == "Sixfold DNS64");
    // With an ID, Grafana would replace a dashboard of the importing organisation.
    assert!(dashboard.get("id").is_none() && dashboard["uid"].is_string());
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    assert_eq!((&variables[0]["name"], &variables[0]["type"]), (&"datasource".into(), &"datasource".into()));
    check(&scrape, variables[1]["definition"].as_str().unwrap());
    check(&scrape, dashboard["annotations"]["list"][0]["expr"].as_str().unwrap());

    let all = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = all.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), all.len(), "every panel has an ID of its own");
    let mut shown = BTreeSet::new();
    for (panel, expressions) in panels(&dashboard) {
        let title = panel["title"].as_str().unwrap();
        assert!(panel["description"].as_str().unwrap().ends_with('.'), "{title}");
        assert!(
            panel["fieldConfig"]["defaults"]["unit"].is_string() && panel["gridPos"]["w"].is_u64(),
            "{title}"
        );
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        assert!(!expressions.is_empty(), "{title}");
        for expression in expressions {
            let names = check(&scrape, expression);
            assert!(
                !names.is_empty() && expression.matches('(').count() == expression.matches(')').count(),
                "{expression}"
            );
            assert_eq!(
                expression.matches("instance=~\"$instance\"").count(),
                selectors(expression).len(),
                "{expression}"
            );
            shown.extend(names);
        }
    }
    assert!(shown.len() >= 25, "{shown:?}");
}

#[test]
fn promtool_accepts_every_expression_of_the_dashboard() {
    let dashboard: Value = serde_json::from_str(&source_text("packaging/monitoring/dashboard.json")).unwrap();
    let expressions = panels(&dashboard).into_iter().flat_map(|(_, expressions)| expressions);
    let rules: Vec<Value> = expressions
        .enumerate()
        .map(|(number, expression)| {
            let expression = expression.replace("$__rate_interval", "5m").replace("$instance", ".*");
            serde_json::json!({"record": format!("panel:{number}"), "expr": expression})
        })
        .collect();
    assert!(rules.len() > 30, "{}", rules.len());
    let directory = crate::daemon::Folder::for_everybody();
    // JSON is YAML.
    let file = directory.file("dashboard.yml");
    let groups = serde_json::json!({"groups": [{"name": "dashboard", "rules": rules}]});
    std::fs::write(&file, groups.to_string()).unwrap();
    let Ok(output) = Command::new("promtool").args(["check", "rules"]).arg(&file).output() else {
        return kit::missing("promtool", "apt-get install prometheus");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
