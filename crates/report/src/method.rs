//! The paragraphs "Method" of a paper, made from records alone: hosts, links, device, load, search, valid replies,
//! certificate, deviations from RFC 8219, tuning. A fact that a record lacks is left out.
//!
//! Each topic is a text without the device's name. For several runs a text that all share appears once; otherwise it
//! appears for each group of runs, after their names.

use crate::command_line::command_line;
use crate::escape;
use crate::named::{Named, grouped};
use crate::number;
use crate::put;
use crate::surroundings;
use crate::text_list::{and, or_one};
use measure::run::{Kept, Run};
use measure::search::TESTER_TRIES;

/// A topic and its text.
pub type Paragraph = (&'static str, String);

/// A topic and the function that makes its text from a record.
type Topic = (&'static str, fn(&Run) -> String);

/// The topics in order.
const TOPICS: [Topic; 12] = [
    ("Time", time),
    ("Hosts", hosts),
    ("Links", links),
    ("Tuning", tuning),
    ("Device", device),
    ("Load", load),
    ("Valid replies", valid),
    ("Search", search),
    ("Results", results),
    ("Self-test", self_test),
    ("Correctness", correctness),
    ("Deviations from RFC 8219", deviations),
];

/// The paragraphs for these runs.
pub fn method(runs: &[Named]) -> Vec<Paragraph> {
    let names: Vec<&str> = runs.iter().map(|named| &*named.name).collect();
    let tools = grouped(runs, |run| run.tool.clone());
    let with = match tools.as_slice() {
        [(_, tool)] if !tool.is_empty() => format!(" with {tool}"),
        _ => String::new(),
    };
    let mut first = format!(
        "The DNS64 performance of {} was measured by the procedure of RFC 8219 section 9{with}.",
        and(&names)
    );
    if tools.len() > 1 {
        let of = |(names, tool): &(Vec<&str>, String)| format!(" {} with {tool}.", and(names));
        first.extend(tools.iter().filter(|(_, tool)| !tool.is_empty()).map(of));
    }
    let mut paragraphs = vec![("Procedure", first)];
    for (topic, text) in TOPICS {
        let groups = grouped(runs, text);
        let whole = match groups.as_slice() {
            [(_, text)] => text.clone(),
            several => {
                let known = several.iter().filter(|(_, text)| !text.is_empty());
                known.map(|(names, text)| format!("{}: {text}", and(names))).collect::<Vec<_>>().join(" ")
            }
        };
        if !whole.is_empty() {
            paragraphs.push((topic, whole));
        }
    }
    paragraphs
}

/// The paragraphs as Markdown.
pub fn markdown(runs: &[Named]) -> String {
    let mut out = String::from("### Method\n\n");
    for (topic, text) in method(runs) {
        put!(out, "**{topic}.** {}\n\n", escape::markdown(&text));
    }
    out
}

/// The paragraphs as LaTeX.
pub fn latex(runs: &[Named]) -> String {
    let mut out = String::from("\n\\subsection*{Method}\n");
    for (topic, text) in method(runs) {
        put!(out, "\\paragraph{{{topic}.}} {}\n", escape::latex(&text));
    }
    out
}

/// The paragraphs as HTML.
pub fn html(runs: &[Named]) -> String {
    let mut out = String::from(
        "<p class=\"say\">Every name and figure comes from the record. The text may be used in a paper.</p>",
    );
    for (topic, text) in method(runs) {
        put!(out, "<p class=\"method\"><strong>{topic}.</strong> {}</p>\n", escape::html(&text));
    }
    out
}

fn time(run: &Run) -> String {
    match (&*run.started, &*run.ended) {
        ("", _) => String::new(),
        (started, "") => format!("The run began at {started}."),
        (started, ended) if run.complete => format!("The run began at {started} and ended at {ended}."),
        (started, ended) => {
            format!("The run began at {started}; it was not complete when it was recorded, at {ended}.")
        }
    }
}

/// These facts of a host, as `name value`, those that are recorded.
fn facts(host: &surroundings::Host, wanted: &[&str]) -> Vec<String> {
    let known = wanted.iter().filter_map(|name| Some((name, host.facts.get(name)?)));
    known.filter(|(_, value)| !value.is_empty()).map(|(name, value)| format!("{name} {value}")).collect()
}

fn hosts(run: &Run) -> String {
    let wanted = ["processor", "cores", "memory", "virtualization", "distribution", "kernel"];
    let sentence = |host: &surroundings::Host| {
        let on = if host.name.is_empty() { "a host".to_owned() } else { format!("the host {}", host.name) };
        let facts = facts(host, &wanted);
        let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join("; ")) };
        capital(&format!("{} ran on {on}{facts}.", and(&host.roles)))
    };
    surroundings::hosts(run).iter().map(sentence).collect::<Vec<_>>().join(" ")
}

fn links(run: &Run) -> String {
    let mut sentences: Vec<String> = Vec::new();
    for host in surroundings::hosts(run) {
        for (name, value) in &host.facts {
            if let Some(address) = name.strip_prefix("interface to ") {
                sentences.push(format!("From the host of {} to {address}: {value}.", and(&host.roles)));
            }
        }
    }
    sentences.join(" ")
}

fn tuning(run: &Run) -> String {
    let wanted = [
        "governor",
        "turbo",
        "smt",
        "isolated cores",
        "boot parameters",
        "mitigations",
        "clock source",
        "connection tracking",
        "net.core.rmem_max",
        "net.core.wmem_max",
        "net.core.netdev_max_backlog",
    ];
    let mut sentences: Vec<String> = Vec::new();
    for host in surroundings::hosts(run) {
        let facts = facts(&host, &wanted);
        if !facts.is_empty() {
            sentences.push(format!("Settings on the host of {}: {}.", and(&host.roles), facts.join("; ")));
        }
    }
    if !run.device.cores.is_empty() {
        sentences.push(format!("The device ran on the cores {}.", run.device.cores));
    }
    sentences.join(" ")
}

fn device(run: &Run) -> String {
    let device = &run.device;
    let mut text = match device.command.as_slice() {
        [] => "The device was already running, and its configuration is not recorded.".to_owned(),
        command => {
            let names: Vec<&str> = device.files.keys().map(String::as_str).collect();
            let with = match names.as_slice() {
                [] => String::new(),
                [name] => format!(", with the configuration file {name}, whose text is in the record"),
                names => {
                    format!(", with the configuration files {}, whose texts are in the record", and(names))
                }
            };
            format!("The device was started as: {}{with}.", command_line(command))
        }
    };
    if !device.version.is_empty() {
        text += &format!(" It reports its version as: {}.", device.version.trim_end_matches('.'));
    }
    if let Some((parameter, values)) = &device.sweep {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        text += &format!(" The parameter {parameter} had the value {}.", or_one(&values));
    }
    text
}

fn load(run: &Run) -> String {
    let settings = &run.settings;
    if settings.trial_ms == 0 {
        return String::new();
    }
    let mut text = format!(
        "In each trial the tester sent queries for AAAA records at a constant rate for {}, and the timeout of a query was {}.",
        number::milliseconds(settings.trial_ms),
        number::milliseconds(settings.timeout_ms)
    );
    if settings.warm_up_ms > 0 {
        text += &format!(
            " Before that it sent the load for {} without measuring it.",
            number::milliseconds(settings.warm_up_ms)
        );
    }
    text += &format!(
        " Trials were {} apart. The names stood for the IPv4 addresses of {} in the zone {}.",
        number::milliseconds(settings.pause_ms),
        settings.names,
        settings.zone
    );
    let chain = match settings.cname_depth {
        0 => String::new(),
        1 => " behind one CNAME record".to_owned(),
        depth => format!(" behind {depth} CNAME records"),
    };
    text += &format!(
        " Each name had {} record{} of its kind (A, or AAAA where it had AAAA records){chain}, with a TTL of {}\u{a0}s. The DNS64 prefix was {}.",
        settings.addresses,
        if settings.addresses == 1 { "" } else { "s" },
        number::count(u64::from(settings.ttl)),
        settings.prefix
    );
    text + &cells(run)
}

fn cells(run: &Run) -> String {
    let shares = |of: fn(&measure::run::CellResult) -> f64| {
        let mut shares: Vec<f64> = run.results.iter().map(of).collect();
        shares.sort_by(f64::total_cmp);
        shares.dedup();
        shares.into_iter().map(number::percent).collect::<Vec<_>>()
    };
    let (aaaa, cached) = (shares(|result| result.cell.aaaa_share), shares(|result| result.cell.cached_share));
    match (aaaa.as_slice(), cached.as_slice()) {
        ([], _) | (_, []) => String::new(),
        ([aaaa], [cached]) => {
            format!(" The share of names with AAAA records was {aaaa}, and that of cached names {cached}.")
        }
        (aaaa, cached) => {
            let list = |shares: &[String]| and(&shares.iter().map(String::as_str).collect::<Vec<_>>());
            format!(
                " The shares of names with AAAA records were {}, and those of cached names {}.",
                list(aaaa),
                list(cached)
            )
        }
    }
}

fn valid(_: &Run) -> String {
    "A rate passed if every query got a valid reply in time. A reply was valid only if its flags, response code, question and \
     every record were as expected: number of records, owner names, type, class, TTL, prefix, and embedded address."
        .to_owned()
}

fn search(run: &Run) -> String {
    let settings = &run.settings;
    if settings.repetitions == 0 {
        return String::new();
    }
    format!(
        "The first search began at {} queries/s and each further one at the result of the one before. A search moved in growing \
         steps until one rate had passed and one had failed, then bisected the interval geometrically until it was at most {} of \
         its upper end. No rate above {} queries/s was tried. Each search was done {} times.",
        number::rate(settings.start_qps),
        number::percent(settings.precision),
        number::rate(settings.max_qps),
        settings.repetitions
    )
}

fn results(run: &Run) -> String {
    let mut text = "The results are the median and the 1st and 99th percentile of the repetitions, by RFC 2330 section 11.3. In a \
                    strict result, one failed trial excludes a rate, as RFC 8219 has it."
        .to_owned();
    if run.settings.confirm {
        text += " In a confirmed result, which is an addition to the RFC, a rate is excluded only if a second trial at it fails too.";
    }
    text += &format!(
        " A trial in which the tester itself was the bottleneck was repeated, and counted as failed after {TESTER_TRIES} attempts."
    );
    text
}

fn self_test(run: &Run) -> String {
    let Some(test) = &run.self_test else {
        return "There was no self-test of the tester.".to_owned();
    };
    format!(
        "Without the device, tester and authority exchanged {} queries/s with every reply valid within {}, so devices may be \
         measured at up to {} queries/s: the rate divided by 2(1+d) with d = {}. (RFC 8219 section 9.2.1 prints 2*(r+delta), which \
         adds a number to a rate.)",
        number::rate(test.certified_qps),
        number::milliseconds(test.timeout_ms),
        number::rate(test.device_qps),
        number::tick(test.delta)
    )
}

fn correctness(run: &Run) -> String {
    let Some(check) = &run.correctness else { return String::new() };
    format!(
        "Before all timing, {} of {} names got a valid reply.",
        number::count(check.valid),
        number::count(check.names)
    )
}

fn deviations(run: &Run) -> String {
    let rules = |state: Kept| -> Vec<String> {
        let rules = run.checklist.iter().filter(|rule| rule.state == state);
        rules.map(|rule| format!("section {}: {} ({})", rule.section, rule.rule, rule.because)).collect()
    };
    let broken = rules(Kept::NotKept);
    let mut text = match broken.as_slice() {
        [] if run.checklist.is_empty() => return "Compliance with RFC 8219 was not judged.".to_owned(),
        [] => "All rules that could be checked and that apply were kept.".to_owned(),
        [one] => format!("One rule was not kept: {one}."),
        several => format!("{} rules were not kept: {}.", several.len(), several.join("; ")),
    };
    let unchecked = rules(Kept::NotChecked);
    if !unchecked.is_empty() {
        text += &format!(" Not checked: {}.", unchecked.join("; "));
    }
    text
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    first + characters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named::named;
    use crate::sample::{self, Shape};

    fn text(runs: &[(&str, &Run)]) -> String {
        let paragraphs = method(&named(runs));
        paragraphs.iter().map(|(topic, text)| format!("{topic}. {text}\n")).collect()
    }

    /// Numbers of a text: digits with their separators.
    fn numbers(text: &str) -> Vec<String> {
        let parts = text.split(|c: char| !(c.is_ascii_digit() || c == ',' || c == '.'));
        let parts = parts.map(|part| part.trim_matches(['.', ',']).replace(',', ""));
        parts.filter(|part| part.contains(|c: char| c.is_ascii_digit())).collect()
    }

    #[test]
    fn every_number_is_one_of_the_record_or_of_a_standard() {
        let mut run = sample::run(&Shape::quick());
        (run.settings.start_qps, run.settings.max_qps) = (1017.0, 400_019.0);
        (run.settings.warm_up_ms, run.settings.cname_depth, run.settings.addresses) = (7_000, 5, 4);
        let record = serde_json::to_value(Run { trials: vec![], ..run.clone() }).unwrap().to_string();
        let record: Vec<String> = numbers(&record);
        let said = text(&[("a", &run)]);
        // RFC 8219 section 9.2.1; RFC 2330 section 11.3; 1st and 99th percentile; 2(1+d); the attempts.
        let standard = ["8219", "9", "9.2.1", "2330", "11.3", "1", "99", "2", "3"];
        for number in numbers(&said) {
            let value: Option<f64> = number.parse().ok();
            // Milliseconds are written as seconds, shares as percentages, and rates without decimals.
            let is_recorded = record.iter().any(|it| match (value, it.parse::<f64>().ok()) {
                (Some(value), Some(known)) => [known, known / 1e3, known * 100.0, known.round()]
                    .iter()
                    .any(|it| (it - value).abs() < 1e-9),
                _ => *it == number,
            });
            let is_standard = standard.contains(&&*number);
            assert!(is_recorded || is_standard, "{number} is invented:\n{said}");
        }
        for part in [
            "The DNS64 performance of Unbound 1.22.0 was measured",
            "Tester, device and authority ran on the host laboratory (processor An example of a processor, 3.0 GHz; cores 16; memory 64 GiB; kernel 6.12.0).",
            "Settings on the host of tester, device and authority: governor schedutil.",
            "unbound -d -c /tmp/device/unbound.conf, with the configuration file unbound.conf",
            "at a constant rate for 3\u{a0}s, and the timeout of a query was 1\u{a0}s",
            "began at 1,017 queries/s",
            "at most 1\u{a0}% of its upper end",
            "Each search was done 3 times",
            "behind 5 CNAME records",
            "3 rules were not kept: section 9.2: A trial lasts at least 60 seconds (3 s)",
        ] {
            assert!(said.contains(part), "{part}\n{said}");
        }
    }

    #[test]
    fn texts_that_runs_share_appear_once_and_others_with_their_names() {
        let one = sample::run(&Shape::quick());
        let mut other = one.clone();
        (other.device.name, other.device.version) = ("bind".to_owned(), "BIND 9.18.49".to_owned());
        other.settings.repetitions = 20;
        let said = text(&[("a", &one), ("b", &other)]);
        assert!(
            said.contains("The DNS64 performance of Unbound 1.22.0 and BIND 9.18.49 was measured"),
            "{said}"
        );
        assert_eq!(said.matches("ran on the host laboratory").count(), 1, "{said}");
        let search = said.lines().find(|line| line.starts_with("Search. ")).unwrap();
        assert!(search.starts_with("Search. Unbound 1.22.0: The first search began"), "{search}");
        assert!(
            search.contains("BIND 9.18.49: The first") && search.ends_with("was done 20 times."),
            "{search}"
        );
    }

    #[test]
    fn a_record_without_facts_claims_nothing() {
        let said = text(&[("a", &Run::default())]);
        for claim in ["host", "began", "cores", "names were", " 0 "] {
            assert!(!said.contains(claim), "{claim}\n{said}");
        }
        assert!(said.contains("There was no self-test") && said.contains("not judged"), "{said}");
    }
}
