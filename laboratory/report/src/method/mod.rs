//! The paragraphs "Method" of a paper, made from records alone: hosts, links, device, load, search, valid replies,
//! certificate, deviations from RFC 8219, tuning. A fact that a record lacks is left out.
//!
//! Each topic is a text without the device's name. For several runs a text that all share appears once; otherwise it
//! appears for each group of runs, after their names.

mod topics;

use crate::escape;
use crate::named::{Named, grouped};
use crate::put;
use crate::text_list::and;
use topics::TOPICS;

/// A topic and its text.
pub type Paragraph = (&'static str, String);

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
    if runs.iter().all(|run| run.run.settings.procedure == "lencse2017") {
        first += " Search, valid replies, sending and restarts were those of Lencse and Bakai (2017), so that results with \
                  dns64perf++ are comparable.";
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named::named;
    use crate::sample::{self, Shape};
    use measure::order::Transport;
    use measure::run::{Equipment, Participant, Run};

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
        // RFC 8219 section 9.2.1; RFC 2330 section 11.3; 1st and 99th percentile; 2(1+d); the attempts; the bounds of starvation.
        let standard = ["8219", "9", "9.2.1", "2330", "11.3", "1", "99", "2", "3", "5", "90"];
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
            "The tester, the device and the authority ran on the host laboratory (processor An example of a processor, 3.0 GHz; cores 16; memory 64 GiB; kernel 6.12.0).",
            "Settings on the host of the tester, the device and the authority: governor schedutil.",
            "unbound -d -c /tmp/device/unbound.conf, with the configuration file unbound.conf",
            "at a constant rate for 3\u{a0}s, and the timeout of a query was 1\u{a0}s",
            "A short search from 1,017 queries/s",
            "at most 1\u{a0}% of its upper end",
            "Each search was done 3 times",
            "behind 5 CNAME records",
            "3 rules were not kept: section 9.2: A trial lasts at least 60 seconds (3 s)",
        ] {
            assert!(said.contains(part), "{part}\n{said}");
        }
    }

    #[test]
    fn the_procedure_of_the_papers_is_described_as_such() {
        let mut run = sample::run(&Shape::quick());
        let settings = &mut run.settings;
        settings.procedure = "lencse2017".to_owned();
        settings.bisection = Some(measure::run::Bisection { low: 0.0, high: 16_384.0, width: 1.0 });
        settings.validity = measure::order::Validity::Answered;
        let said = text(&[("a", &run)]);
        for part in [
            "were those of Lencse and Bakai (2017)",
            "bisected the interval from 0 to 16,384 queries/s",
            "at most 1 queries/s apart",
            "the rule of dns64perf++",
        ] {
            assert!(said.contains(part), "{part}\n{said}");
        }
        assert!(!said.contains("geometrically"), "{said}");
        let mixed = text(&[("a", &run), ("b", &sample::run(&Shape::quick()))]);
        assert!(!mixed.contains("were those of Lencse"), "{mixed}");
    }

    #[test]
    fn threads_ports_and_the_form_of_the_traffic_are_said() {
        let mut run = sample::run(&Shape::quick());
        assert!(!text(&[("a", &run)]).contains("Tester and authority."), "nothing is recorded");
        let equipment = Equipment {
            senders: 2,
            receivers: 1,
            ports: 16,
            sources: vec!["2001:2::1".to_owned(), "2001:2::2".to_owned()],
            group: 1,
            burst: 1,
            spin: false,
            random_ports: false,
            tester_cores: vec![4, 5, 6],
            authority_threads: Some(1),
            authority_cores: vec![7],
            ..Equipment::default()
        };
        run.equipment = Some(equipment.clone());
        let single = "Tester and authority. The tester had 2 sending threads and one receiving thread on the cores 4, 5 and 6, \
                      with 16 source ports for each sending thread and each of the source addresses 2001:2::1 and 2001:2::2. Each \
                      query was a datagram of its own, and the authority answered with single datagrams (no UDP GSO or GRO). The \
                      authority had one UDP thread on core 7.\n";
        let said = text(&[("a", &run)]);
        assert!(said.contains(single), "{said}");
        let encrypted =
            Equipment { transport: Transport::Tls, connections: 4, hosts: 3, ..equipment.clone() };
        run.equipment = Some(encrypted);
        let said = text(&[("a", &run)]);
        for part in [
            "on the cores 4, 5 and 6, with 4 open connections for each sending thread and each of",
            "The queries went to the device over TLS; the device asked its authority, and the self-test was made, over UDP. The \
             tester verified no certificate. 3 hosts sent equal parts of each load at the same time, each with these threads; their \
             counts were added, and their latencies are one distribution. The authority answered with single datagrams",
        ] {
            assert!(said.contains(part), "{part}\n{said}");
        }
        assert!(crate::verdict::sentence(&run).contains(", over TLS, "));
        run.equipment = Some(Equipment { group: 8, authority_threads: Some(0), receivers: 0, ..equipment });
        let said = text(&[("a", &run)]);
        for part in [
            "2 sending threads, which received too on the cores",
            "in groups of up to 8 from one port",
            "(UDP GSO)",
            "(UDP GRO)",
            "The thread of the tester served the authority.",
        ] {
            assert!(said.contains(part), "{part}\n{said}");
        }
        assert!(crate::verdict::sentence(&run).contains(", queries in groups of 8, "));
        let page = crate::html(&run);
        let charts = page.matches("<figure ").count();
        assert!(charts > 5 && page.matches("Queries left in groups of up to 8").count() >= charts);
        let sources = (0..16).map(|number| format!("2001:2::{number:x}")).collect();
        let equipment = run.equipment.clone().unwrap_or_default();
        run.equipment = Some(Equipment { sources, random_ports: true, ..equipment });
        let said = text(&[("a", &run)]);
        let many =
            "each of 16 source addresses from 2001:2::0 to 2001:2::f, in a pseudorandom order (RFC 4814";
        assert!(said.contains(many), "{said}");
    }

    #[test]
    fn the_real_buffers_and_the_cores_of_the_device_are_said() {
        let mut run = sample::run(&Shape::quick());
        run.equipment = Some(Equipment { group: 1, ..Equipment::default() });
        let mut add = |role: &str, sockets, receive_buffer, coalescing| {
            let found = Participant { sockets, receive_buffer, coalescing, ..Participant::default() };
            run.participants.insert(role.to_owned(), found);
        };
        add("tester", 16, (8_388_608, 8_388_608), Some(false));
        add("authority", 1, (12_582_912, 12_582_912), Some(false));
        add("device", 2, (212_992, 425_984), Some(false));
        let said = text(&[("a", &run)]);
        let buffers = "had 8,388,608 octets at the 16 sockets of the tester, 212,992 to 425,984 octets at the 2 sockets of the device, \
                       which received datagrams one by one (no UDP GRO) and 12,582,912 octets at the 1 socket of the authority.";
        assert!(said.contains(buffers), "{said}");
        assert!(!said.contains("raised the buffer") && !said.contains("as shipped"), "{said}");
        let device = run.participants.get_mut("device").unwrap();
        (device.raised, device.threads, device.cores) = (2, 3, "1,4".to_owned());
        run.settings.as_shipped = true;
        let said = text(&[("a", &run)]);
        for part in [
            "The run raised the buffer of the device from outside",
            "The device had 3 threads, on the cores 1 and 4.",
            "its own defaults (as shipped)",
        ] {
            assert!(said.contains(part), "{part}\n{said}");
        }
        assert!(crate::verdict::sentence(&run).starts_with("Unbound 1.22.0 as shipped: "));
    }

    #[test]
    fn the_rule_about_starved_trials_is_said_with_their_number() {
        let mut run = sample::run(&Shape::quick());
        assert!(!text(&[("a", &run)]).contains("other programs"), "the record does not tell their time");
        let watched = run.trials.iter_mut().find_map(|trial| trial.device.as_mut()).unwrap();
        watched.others_s = Some(0.5);
        (run.results[0].starved_trials, run.results[0].tester_limited_trials) = (7, 4);
        let said = text(&[("a", &run)]);
        for part in [
            "waited for a core for at least 5\u{a0}% of the time",
            "were busy for 90\u{a0}% of the time",
            "4 trials were limited by the tester, and 7 by such programs.",
        ] {
            assert!(said.contains(part), "{part}\n{said}");
        }
    }

    #[test]
    fn each_host_has_its_sentence_and_its_link() {
        let mut run = sample::run(&Shape::quick());
        run.device.address = "[2001:2::53]:53".to_owned();
        run.settings.authority = "[2001:2:0:1::54]:5300".to_owned();
        for (role, address) in [("tester", "2001:2::53"), ("device", "2001:2:0:1::54"), ("authority", "")] {
            let facts = &mut run.hosts.get_mut(role).unwrap().facts;
            facts.insert("hostname".to_owned(), format!("h-{role}"));
            if !address.is_empty() {
                let link = format!("eth-{role}, driver ixgbe, MTU 1500, 10000 Mbit/s");
                facts.insert(format!("interface to {address}"), link);
            }
        }
        let said = text(&[("a", &run)]);
        for part in [
            "The tester ran on the host h-tester (processor An example",
            " The device ran on the host h-device (",
            " The authority ran on the host h-authority (",
            "Links. The device had the address 2001:2::53, and the authority 2001:2:0:1::54. ",
            "From the host of the tester to 2001:2::53: eth-tester, driver ixgbe, MTU 1500, 10000 Mbit/s. ",
            "From the host of the device to 2001:2:0:1::54: eth-device, ",
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
        assert!(search.starts_with("Search. Unbound 1.22.0: A short search from"), "{search}");
        assert!(
            search.contains("BIND 9.18.49: A short search") && search.ends_with("was done 20 times."),
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
