//! One outcome from those of several testers, which sent their parts of a load at the same time.

use crate::distribution::Distribution;
use measure::outcome::{
    Connections, Deviation, FastOpen, HandshakeSecond, Latencies, Latency, Outcome, PacingError, Second,
    TlsConnections, Verdict,
};
use std::collections::BTreeMap;

/// Merges the outcomes of testers that each sent a part of one load. Counts and rates are sums, latencies one distribution; pacing
/// and delays are those of the worst tester. The load passed if every part did; a part that says nothing about the server
/// makes the whole say nothing.
pub fn merge(parts: &[Outcome]) -> Outcome {
    let Some((first, others)) = parts.split_first() else { return Outcome::default() };
    let mut all = first.clone();
    for part in others {
        add(&mut all, part);
    }
    all.traffic = all.traffic.with_ratios();
    if let Some(connections) = &mut all.connections {
        let queries = all.traffic.queries.max(1);
        connections.per_query = connections.opened as f64 / queries as f64;
    }
    let latency = |of: fn(&Outcome) -> &Latency| Distribution::merged(parts.iter().map(of));
    all.latency_us = Latencies {
        intended: latency(|it| &it.latency_us.intended),
        actual: latency(|it| &it.latency_us.actual),
    };
    merge_handshakes(&mut all, parts);
    let has = |verdict| parts.iter().any(|part| part.verdict == verdict);
    all.verdict = match () {
        () if has(Verdict::TesterLimited) => Verdict::TesterLimited,
        () if has(Verdict::Fail) => Verdict::Fail,
        () => Verdict::Pass,
    };
    let reasons = parts.iter().enumerate().filter(|(_, part)| !part.reason.is_empty());
    let reasons: Vec<String> =
        reasons.map(|(number, part)| format!("tester {}: {}", number + 1, part.reason)).collect();
    all.reason = reasons.join("; ");
    all
}

/// Adds the counts of a part.
fn add(all: &mut Outcome, part: &Outcome) {
    for (sum, count) in [
        (&mut all.sent, part.sent),
        (&mut all.received, part.received),
        (&mut all.valid, part.valid),
        (&mut all.truncated, part.truncated),
        (&mut all.late, part.late),
        (&mut all.lost, part.lost),
        (&mut all.connection_refused, part.connection_refused),
        (&mut all.duplicates, part.duplicates),
        (&mut all.unsolicited, part.unsolicited),
        (&mut all.wrong_source, part.wrong_source),
        (&mut all.asked_again, part.asked_again),
        (&mut all.names_used, part.names_used),
        (&mut all.traffic.queries, part.traffic.queries),
        (&mut all.traffic.packets_sent, part.traffic.packets_sent),
        (&mut all.traffic.packets_received, part.traffic.packets_received),
        (&mut all.traffic.octets_sent, part.traffic.octets_sent),
        (&mut all.traffic.octets_received, part.traffic.octets_received),
        (&mut all.traffic.retransmitted, part.traffic.retransmitted),
        (&mut all.tester.socket_drops, part.tester.socket_drops),
        (&mut all.tester.interface_drops, part.tester.interface_drops),
        (&mut all.tester.send_errors, part.tester.send_errors),
    ] {
        *sum = sum.saturating_add(count);
    }
    for (sum, value) in [
        (&mut all.rate_asked, part.rate_asked),
        (&mut all.rate_achieved, part.rate_achieved),
        (&mut all.tester.user_s, part.tester.user_s),
        (&mut all.tester.system_s, part.tester.system_s),
        (&mut all.tester.waited_s, part.tester.waited_s),
    ] {
        *sum += value;
    }
    all.seconds = all.seconds.max(part.seconds);
    all.lag_max_us = all.lag_max_us.max(part.lag_max_us);
    all.pacing_error = worse_pacing(&all.pacing_error, &part.pacing_error);
    add_map(&mut all.invalid, &part.invalid);
    add_map(&mut all.rcodes, &part.rcodes);
    for (reason, reply) in &part.first_invalid {
        all.first_invalid.entry(reason.clone()).or_insert_with(|| reply.clone());
    }
    let seconds = all.per_second.len().max(part.per_second.len());
    all.per_second.resize(seconds, Second::default());
    for (sum, second) in all.per_second.iter_mut().zip(&part.per_second) {
        sum.sent += second.sent;
        sum.valid += second.valid;
        sum.invalid += second.invalid;
        sum.late += second.late;
    }
    match (&mut all.connections, &part.connections) {
        (Some(sum), Some(part)) => add_connections(sum, part),
        (none, Some(part)) => *none = Some(part.clone()),
        (_, None) => {}
    }
}

fn add_map<K: Ord + Clone>(sum: &mut BTreeMap<K, u64>, part: &BTreeMap<K, u64>) {
    for (key, count) in part {
        *sum.entry(key.clone()).or_default() += count;
    }
}

fn worse_pacing(one: &PacingError, other: &PacingError) -> PacingError {
    let worse = |one: Deviation, other: Deviation| Deviation {
        max: one.max.max(other.max),
        mean: one.mean.max(other.mean),
        beyond_1_percent: one.beyond_1_percent.max(other.beyond_1_percent),
        intervals: one.intervals.max(other.intervals),
    };
    PacingError {
        ms1: worse(one.ms1, other.ms1),
        ms10: worse(one.ms10, other.ms10),
        ms100: worse(one.ms100, other.ms100),
        s1: worse(one.s1, other.s1),
    }
}

fn add_connections(sum: &mut Connections, part: &Connections) {
    for (sum, count) in [
        (&mut sum.opened, part.opened),
        (&mut sum.established, part.established),
        (&mut sum.refused, part.refused),
        (&mut sum.reset, part.reset),
        (&mut sum.timed_out, part.timed_out),
        (&mut sum.closed_by_server, part.closed_by_server),
        (&mut sum.aborted, part.aborted),
        (&mut sum.waited_for_stream, part.waited_for_stream),
    ] {
        *sum = sum.saturating_add(count);
    }
    add_map(&mut sum.lost, &part.lost);
    add_map(&mut sum.http_statuses, &part.http_statuses);
    match (&mut sum.fast_open, &part.fast_open) {
        (Some(FastOpen { cold, warm, syn_data_acknowledged }), Some(part)) => {
            *cold += part.cold;
            *warm += part.warm;
            *syn_data_acknowledged += part.syn_data_acknowledged;
        }
        (none, Some(part)) => *none = Some(*part),
        (_, None) => {}
    }
    match (&mut sum.tls, &part.tls) {
        (Some(sum), Some(part)) => add_tls(sum, part),
        (none, Some(part)) => *none = Some(part.clone()),
        (_, None) => {}
    }
}

fn add_tls(sum: &mut TlsConnections, part: &TlsConnections) {
    for (sum, count) in [
        (&mut sum.full, part.full),
        (&mut sum.resumed, part.resumed),
        (&mut sum.early_data_sent, part.early_data_sent),
        (&mut sum.early_data_accepted, part.early_data_accepted),
        (&mut sum.tickets, part.tickets),
    ] {
        *sum = sum.saturating_add(count);
    }
    add_map(&mut sum.failed, &part.failed);
    let seconds = sum.per_second.len().max(part.per_second.len());
    sum.per_second.resize(seconds, HandshakeSecond::default());
    for (sum, second) in sum.per_second.iter_mut().zip(&part.per_second) {
        sum.add(second);
    }
}

/// The times of the connections of all parts.
fn merge_handshakes(all: &mut Outcome, parts: &[Outcome]) {
    let Some(connections) = &mut all.connections else { return };
    let merged = |of: fn(&Connections) -> &Latency| {
        Distribution::merged(parts.iter().filter_map(|part| part.connections.as_ref()).map(of))
    };
    connections.handshake_us = merged(|it| &it.handshake_us);
    connections.answer_us = merged(|it| &it.answer_us);
    if let Some(tls) = &mut connections.tls {
        let of_tls = parts.iter().filter_map(|part| part.connections.as_ref()?.tls.as_ref());
        tls.handshake_us = Distribution::merged(of_tls.map(|tls| &tls.handshake_us));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::Distribution;

    fn part(latencies: impl IntoIterator<Item = u64>, sent: u64, verdict: Verdict) -> Outcome {
        let mut distribution = Distribution::new();
        latencies.into_iter().for_each(|ns| distribution.record(ns));
        let latency = distribution.latency();
        Outcome {
            sent,
            valid: latency.count,
            lost: sent - latency.count,
            rate_asked: 100.0,
            seconds: 2.0,
            latency_us: Latencies { intended: latency.clone(), actual: latency },
            per_second: vec![Second { sent, ..Second::default() }],
            invalid: [("ttl".to_owned(), 1)].into(),
            verdict,
            reason: if verdict == Verdict::Pass { String::new() } else { "lost".to_owned() },
            ..Outcome::default()
        }
    }

    #[test]
    fn two_parts_are_one_load_whose_latencies_are_one_distribution() {
        let one = part((1..=400).map(|it| it * 1000), 400, Verdict::Pass);
        let mut other = part((401..=1000).map(|it| it * 1000), 600, Verdict::Pass);
        other.per_second.push(Second { sent: 7, ..Second::default() });
        other.pacing_error.s1.max = 0.5;
        let all = merge(&[one, other]);
        assert_eq!((all.sent, all.valid, all.rate_asked, all.seconds), (1000, 1000, 200.0, 2.0));
        assert_eq!(all.per_second.iter().map(|second| second.sent).collect::<Vec<_>>(), [1000, 7]);
        assert_eq!((all.invalid["ttl"], all.pacing_error.s1.max), (2, 0.5));
        assert_eq!((all.verdict, all.reason.as_str()), (Verdict::Pass, ""));
        let whole = part((1..=1000).map(|it| it * 1000), 1000, Verdict::Pass).latency_us.intended;
        let merged = all.latency_us.intended;
        assert_eq!((merged.count, &merged.histogram), (1000, &whole.histogram));
        assert_eq!((merged.p50, merged.p99, merged.max), (whole.p50, whole.p99, whole.max));
        // The mean of 1 to 1000 us, and the deviation of a sample of 1 to n: sqrt(n (n + 1) / 12).
        assert!((merged.mean - 500.5).abs() < 1e-9, "{}", merged.mean);
        assert!((merged.standard_deviation - (1000.0f64 * 1001.0 / 12.0).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn one_part_that_failed_fails_the_load_and_one_that_says_nothing_makes_it_say_nothing() {
        let [pass, fail, limited] =
            [Verdict::Pass, Verdict::Fail, Verdict::TesterLimited].map(|verdict| part([5], 1, verdict));
        let failed = merge(&[pass.clone(), fail.clone()]);
        assert_eq!((failed.verdict, failed.reason.as_str()), (Verdict::Fail, "tester 2: lost"));
        assert_eq!(merge(&[fail, limited, pass]).verdict, Verdict::TesterLimited);
        assert_eq!(merge(&[]), Outcome::default());
    }

    #[test]
    fn connections_are_added_and_their_ratio_is_that_of_the_whole() {
        let with = |opened, queries| {
            let mut outcome = part([5], 1, Verdict::Pass);
            outcome.traffic.queries = queries;
            outcome.connections = Some(Connections { opened, per_query: 9.0, ..Connections::default() });
            outcome
        };
        let connections = merge(&[with(2, 10), with(4, 20)]).connections.unwrap();
        assert_eq!((connections.opened, connections.per_query), (6, 0.2));
    }
}
