//! The first questions of a person, answered in a few lines each: does it work, for whom, how fast, what fails and why. They are at
//! the top of the page, so that nobody has to scroll or to read a table for them.

use super::format::{count, latency, listed, rate};
use super::reasons::Reason;
use crate::config::{Allowed, Config};
use crate::history::Event;
use crate::status::{Certificate, SERVING, UpstreamStatus};
use crate::traffic::{Latency, Window};
use engine::Counter;
use std::net::SocketAddr;

/// Share of SERVFAIL that is marked.
pub const SERVFAIL_SHARE: f64 = 0.05;

/// Upstreams that are down, and reasons, that are named. The tables below have all of them.
const NAMED: usize = 2;

/// Characters of an error that are shown.
const ERROR_CHARACTERS: usize = 120;

/// Failures of upstreams, as the extended errors of answers tell them, in words.
const CAUSES: [(Counter, &str); 3] = [
    (Counter::ExtendedNetworkError, "no upstream replied"),
    (Counter::ExtendedNoReachableAuthority, "no upstream could or would answer"),
    (Counter::ExtendedDnssec, "an upstream's validation failed"),
];

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// `good`, `bad` or nothing. The words say the same.
    pub tone: &'static str,
    /// One line or several.
    pub text: String,
}

impl Answer {
    fn new(tone: &'static str, text: impl Into<String>) -> Answer {
        Answer { tone, text: text.into() }
    }
}

/// Does it work? `state` is that of the server in words.
pub fn works(state: &str, upstreams: &[UpstreamStatus]) -> Answer {
    let (all, up) = (upstreams.len(), upstreams.iter().filter(|upstream| upstream.up).count());
    let is_asked = upstreams.iter().any(|upstream| upstream.questions > 0);
    if state != SERVING {
        let why = state.strip_prefix("not serving: ").unwrap_or(state);
        return Answer::new("bad", format!("No: {why}."));
    }
    match all {
        0 => Answer::new("good", "Yes."),
        _ if up == 0 => Answer::new("bad", "Hardly: it serves, but no upstream answers as it should."),
        _ if up < all => Answer::new("", format!("Yes, but only {up} of {all} upstreams answer.")),
        _ if !is_asked => Answer::new("good", "Yes. No upstream was asked yet."),
        1 => Answer::new("good", "Yes, and its upstream answers."),
        2 => Answer::new("good", "Yes, and both upstreams answer."),
        _ => Answer::new("good", format!("Yes, and all {all} upstreams answer.")),
    }
}

/// For whom? The clients, the addresses at which they ask, and the prefixes that they get.
pub fn whom(config: &Config, listen: &[SocketAddr]) -> Answer {
    let allowed = config.server.allow.entries.iter().map(|entry| match entry {
        Allowed::Local => "local networks".to_owned(),
        network @ Allowed::Network(_) => network.to_string(),
    });
    let allowed: Vec<String> = allowed.collect();
    if allowed.is_empty() {
        return Answer::new("bad", "Nobody: server.allow is empty.");
    }
    let listen: Vec<String> = listen.iter().map(ToString::to_string).collect();
    let prefixes: Vec<String> = config.dns64.prefixes.iter().map(ToString::to_string).collect();
    // A client that is excluded, or in no network, gets real records only.
    let clients = &config.dns64.clients;
    let all = |ipv4: bool| {
        clients.iter().any(|(network, _)| network.length == 0 && network.address.is_ipv4() == ipv4)
    };
    let has_others = clients.iter().any(|(_, is_excluded)| *is_excluded) || !all(false) || !all(true);
    Answer::new(
        "",
        format!(
            "Clients in {}\nAsked at {}\nSynthesized under {}{}",
            listed(&allowed),
            listed(&listen),
            listed(&prefixes),
            if has_others { ", for the networks of dns64.clients" } else { "" }
        ),
    )
}

/// How fast? The windows: the last seconds, the last minutes, since the start.
pub fn speed(windows: &[Window<'_>; 3]) -> Answer {
    let [now, _, start] = windows;
    let times = |window: &Window<'_>| {
        format!(
            "Half of the answers: {}\n99 %: {}",
            latency(window.latency(0.5)),
            latency(window.latency(0.99))
        )
    };
    let is_idle = |window: &Window<'_>| window.latency(0.5) == Latency::Unknown;
    Answer::new(
        "",
        match (is_idle(now), is_idle(start)) {
            (false, _) => {
                format!("{} in the last 10 seconds\n{}", rate(now.rate("queries_total")), times(now))
            }
            (true, false) => format!("No answer in the last 10 seconds; since the start:\n{}", times(start)),
            (true, true) => "Nobody has asked yet.".to_owned(),
        },
    )
}

/// Failures and their reasons. `recent` has the last minutes.
pub fn fails(
    upstreams: &[UpstreamStatus],
    recent: &Window<'_>,
    reasons: &[Reason],
    last_reload: Option<&Event>,
    certificate: Option<&Certificate>,
) -> Answer {
    let mut lines = down(upstreams);
    let (failed, all) = (recent.count(Counter::ResponsesServFail), recent.family("responses_total"));
    let mut is_bad = !lines.is_empty() || failed as f64 > SERVFAIL_SHARE * all as f64;
    if failed > 0 {
        lines.push(format!("SERVFAIL: {} of {} answers{}", count(failed), count(all), cause(recent)));
    }
    if let Some(reload) = last_reload.filter(|reload| !reload.succeeded) {
        is_bad = true;
        lines.push(format!("The last reload failed: {}", shortened(&reload.message)));
    }
    if certificate.is_some_and(Certificate::has_expired) {
        is_bad = true;
        lines.push("The certificate has expired".to_owned());
    }
    // The second window of the reasons has the last minutes.
    let line = |reason: &Reason| match reason.counts[1] {
        0 => None,
        times => Some(format!("Queries {}: {} ({})", reason.fate, count(times), reason.why)),
    };
    let without_answer = reasons.iter().filter(|reason| reason.leaves_clients_without_answer());
    lines.extend(without_answer.filter_map(line).take(NAMED));
    match (lines.is_empty(), is_bad) {
        (true, _) => Answer::new("good", "Nothing."),
        (false, true) => Answer::new("bad", lines.join("\n")),
        (false, false) => Answer::new("", lines.join("\n")),
    }
}

/// A line for each upstream that is down; one for the others if there are many.
fn down(upstreams: &[UpstreamStatus]) -> Vec<String> {
    let down: Vec<&UpstreamStatus> = upstreams.iter().filter(|upstream| !upstream.up).collect();
    let line = |upstream: &&UpstreamStatus| match &upstream.trouble {
        Some(trouble) => format!("Upstream {} is down {trouble}", upstream.address),
        None => format!("Upstream {} is down", upstream.address),
    };
    let mut lines: Vec<String> = down.iter().take(NAMED).map(line).collect();
    if down.len() > NAMED {
        lines.push(format!("{} more upstreams are down", down.len() - NAMED));
    }
    lines
}

/// The most frequent cause of SERVFAIL; nothing if no answer told one.
fn cause(recent: &Window<'_>) -> String {
    let counted = CAUSES.iter().map(|(counter, words)| (recent.count(*counter), words));
    let most = counted.max_by_key(|(times, _)| *times).filter(|(times, _)| *times > 0);
    most.map_or_else(String::new, |(_, words)| format!(", mostly because {words}"))
}

/// The first line of an error, or the begin of it.
fn shortened(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    match line.char_indices().nth(ERROR_CHARACTERS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Sample;
    use crate::upstream_trouble::Trouble;
    use engine::upstream::Cause;
    use std::time::{Duration, Instant, UNIX_EPOCH};

    fn upstream(number: u8, up: bool) -> UpstreamStatus {
        let since = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        UpstreamStatus {
            address: SocketAddr::from(([192, 0, 2, number], 53)),
            transport: "udp",
            in_lower_case: false,
            up,
            strips: false,
            details: None,
            trouble: (!up).then_some(Trouble { since, tries: 12, cause: Cause::Silent }),
            round_trip: None,
            questions: u64::from(number),
            failures: 0,
            tls_failure: None,
        }
    }

    #[test]
    fn the_server_works_as_far_as_its_upstreams_do() {
        let answer = |state, upstreams: &[(u8, bool)]| {
            let upstreams: Vec<_> = upstreams.iter().map(|&(number, up)| upstream(number, up)).collect();
            let Answer { tone, text } = works(state, &upstreams);
            (tone, text)
        };
        for (state, upstreams, tone, text) in [
            ("serving", &[(0, true)][..], "good", "Yes. No upstream was asked yet."),
            ("serving", &[(1, true)], "good", "Yes, and its upstream answers."),
            ("serving", &[(1, true), (2, true)], "good", "Yes, and both upstreams answer."),
            ("serving", &[(1, false), (2, true)], "", "Yes, but only 1 of 2 upstreams answer."),
            ("serving", &[(1, false)], "bad", "Hardly: it serves, but no upstream answers as it should."),
            ("not serving: no upstream answers", &[(1, false)], "bad", "No: no upstream answers."),
            ("draining", &[(1, true)], "bad", "No: draining."),
        ] {
            assert_eq!(answer(state, upstreams), (tone, text.to_owned()), "{state} {upstreams:?}");
        }
    }

    /// The counters after a number of answers, of which some failed without a reply from an upstream.
    fn sample(start: Instant, answers: u64, failed: u64) -> Sample {
        let mut sample = Sample { at: start + Duration::from_secs(60), ..Sample::at_start(start) };
        sample.engine.add(Counter::QueriesUdp6, answers + failed);
        sample.engine.add(Counter::ResponsesNoError, answers);
        sample.engine.add(Counter::ResponsesServFail, failed);
        sample.engine.add(Counter::ExtendedNetworkError, failed);
        sample
    }

    #[test]
    fn failures_are_named_with_their_reasons_and_a_few_of_many_are_not_alarming() {
        let start = Instant::now();
        let zero = Sample::at_start(start);
        let answer = |upstreams: &[UpstreamStatus], last: &Sample, reload: Option<&Event>| {
            fails(upstreams, &Window::new(&zero, last), &[], reload, None)
        };
        assert_eq!(answer(&[upstream(1, true)], &sample(start, 9, 0), None), Answer::new("good", "Nothing."));
        let few = Answer::new("", "SERVFAIL: 1 of 1,000 answers, mostly because no upstream replied");
        assert_eq!(answer(&[], &sample(start, 999, 1), None), few);
        let many = answer(&[], &sample(start, 9, 1), None);
        assert_eq!((many.tone, many.text.lines().count()), ("bad", 1));

        let down: Vec<_> = (1..=4).map(|number| upstream(number, false)).collect();
        let message = format!("a.toml:1: wrong{}\nmore", " and long".repeat(100));
        let reload = Event { at: UNIX_EPOCH, succeeded: false, message };
        let all = answer(&down, &sample(start, 9, 0), Some(&reload));
        let lines: Vec<&str> = all.text.lines().collect();
        assert_eq!(all.tone, "bad");
        assert_eq!(
            lines[0],
            "Upstream 192.0.2.1:53 is down since 2023-11-14T22:13:20Z: no reply (12 failed attempts)"
        );
        assert_eq!((lines.len(), lines[2]), (4, "2 more upstreams are down"));
        assert!(lines[3].starts_with("The last reload failed: a.toml:1: wrong and long"), "{lines:?}");
        assert!(lines[3].ends_with("...") && lines[3].len() < 150, "{lines:?}");
    }

    /// The windows from `first`, and since the start.
    fn windows<'s>(start: &'s Sample, first: &'s Sample, last: &'s Sample) -> [Window<'s>; 3] {
        [Window::new(first, last), Window::new(start, last), Window::new(start, last)]
    }

    #[test]
    fn the_time_to_the_answer_is_that_of_now_or_since_the_start() {
        let start = Instant::now();
        let (zero, mut busy) = (Sample::at_start(start), sample(start, 120, 0));
        assert_eq!(speed(&windows(&zero, &zero, &zero)).text, "Nobody has asked yet.");
        // All in the first bucket, which ends at 50 µs.
        busy.engine.durations[0] = 120;
        let times = "Half of the answers: 0.05 ms or less\n99 %: 0.05 ms or less";
        assert_eq!(
            speed(&windows(&zero, &zero, &busy)).text,
            format!("2.0/s in the last 10 seconds\n{times}")
        );
        let idle = speed(&windows(&zero, &busy, &busy)).text;
        assert_eq!(idle, format!("No answer in the last 10 seconds; since the start:\n{times}"));
    }
}
