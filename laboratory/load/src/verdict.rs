//! Verdict of a load. It is strict, as RFC 8219 section 9.2 demands: pass only if every query got a valid reply in
//! time. But if the tester was the bottleneck, the verdict says so and nothing about the server.

use crate::limits;
use measure::outcome::{Outcome, Verdict};
use measure::units::grouped;
use std::io;
use std::time::Duration;

/// Tester faults that an [`Outcome`] does not contain.
#[derive(Clone, Copy, Debug, Default)]
pub struct TesterFaults {
    /// Time of an early end of the load, and true if no names were left.
    pub ended_early: Option<(Duration, bool)>,
    /// Numbers of sent and scheduled queries in the worst second.
    pub worst_second: Option<(u64, u64)>,
    /// Timeout of the queries.
    pub timeout: Duration,
    /// Longest stall of a thread.
    pub stall: Duration,
    /// Longest time that replies waited for a thread that was reading without a pause.
    pub backlog: Duration,
    /// Time of the load over all threads, in seconds; 0 if they do not encrypt, or wait in a busy loop.
    pub encrypting_s: f64,
    /// First error with which the kernel refused a query, as an error number.
    pub send_error: Option<i32>,
}

/// The verdict, and its reason in words.
pub fn verdict(outcome: &Outcome, faults: &TesterFaults) -> (Verdict, String) {
    if let Some(reason) = limited(outcome, faults) {
        return (Verdict::TesterLimited, reason);
    }
    match missing(outcome) {
        Some(reason) => (Verdict::Fail, reason),
        None => (Verdict::Pass, String::new()),
    }
}

/// The remedy for a thread that did not get its core in time.
const CORES: &str = "end other programs on this host, or give the tester's threads cores that nothing else uses (--pin; in a plan `cores` of \
                     [tester])";
/// The remedy for threads that have too much to do.
const THREADS: &str =
    "use more threads and cores for the tester (--threads; in a plan `senders` of [tester]), or a lower rate";
/// The remedy for packets that an interface dropped.
const INTERFACE: &str =
    "give the interface a longer queue (ethtool -G, net.core.netdev_max_backlog), or use a lower rate";

/// Reasons why the tester was the bottleneck, and what to do about each.
#[derive(Default)]
struct Reasons {
    texts: Vec<String>,
    remedies: Vec<&'static str>,
}

impl Reasons {
    /// Adds a reason. Several may have one remedy; it is empty if the text has it.
    fn push(&mut self, text: String, remedy: &'static str) {
        self.texts.push(text);
        if !remedy.is_empty() && !self.remedies.contains(&remedy) {
            self.remedies.push(remedy);
        }
    }

    fn joined(self) -> Option<String> {
        let parts: Vec<String> =
            self.texts.into_iter().chain(self.remedies.into_iter().map(str::to_owned)).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// The reasons why the tester was the bottleneck, with their remedies. None: it was not.
fn limited(outcome: &Outcome, faults: &TesterFaults) -> Option<String> {
    let mut reasons = Reasons::default();
    let lag = Duration::from_nanos((outcome.lag_max_us * 1e3) as u64);
    if let Some((after, no_names)) = faults.ended_early {
        let why = if no_names { "no names were left (a larger --names)" } else { "it was stopped" };
        reasons.push(format!("the load ended after {:.1} s: {why}", after.as_secs_f64()), "");
    }
    if outcome.tester.send_errors > 0 {
        let why = faults.send_error.map(|number| format!(": {}", io::Error::from_raw_os_error(number)));
        let text = format!(
            "the kernel refused {} queries{}{}",
            grouped(outcome.tester.send_errors),
            why.unwrap_or_default(),
            remedy(faults.send_error)
        );
        reasons.push(text, "");
    }
    if let Some((sent, asked)) = faults.worst_second
        && sent.abs_diff(asked) as f64 > limits::MAX_DEVIATION * asked as f64
    {
        let text = format!(
            "in one second the tester sent {} queries instead of {} (more than {:.0} % off)",
            grouped(sent),
            grouped(asked),
            limits::MAX_DEVIATION * 100.0
        );
        reasons.push(text, CORES);
    }
    if lag > limits::MAX_LAG {
        reasons.push(format!("a query left {} after it was due", milliseconds(lag)), CORES);
    }
    let missing = outcome.sent.saturating_sub(outcome.valid);
    // A reply that the tester read late may seem late because of that.
    let bearable = limits::MAX_LAG.min(faults.timeout / limits::STALL_TIMEOUT_PART);
    if faults.stall > limits::MAX_LAG || faults.stall > bearable && missing > 0 {
        reasons.push(format!("a tester thread was stalled for {}", milliseconds(faults.stall)), CORES);
    }
    if faults.backlog > bearable && missing > 0 {
        let text =
            format!("replies waited {} for a tester thread that was too slow", milliseconds(faults.backlog));
        reasons.push(text, THREADS);
    }
    // In a closed loop a busy tester shows as a low rate. Encryption costs the tester as much as the server.
    let busy = if faults.encrypting_s > 0.0 { outcome.tester.cpu_s() / faults.encrypting_s } else { 0.0 };
    if outcome.rate_asked == 0.0 && busy > limits::MAX_BUSY {
        let text = format!("the tester's threads were busy {:.0} % of the time", busy.min(1.0) * 100.0);
        reasons.push(text, THREADS);
    }
    // Drops matter only if replies are missing, and only if the drops can explain all of them. Otherwise the server
    // failed in any case.
    let tester = &outcome.tester;
    let dropped = (tester.socket_drops + tester.interface_drops).saturating_mul(limits::PACKET_MESSAGES);
    if (1..=dropped).contains(&missing) {
        if tester.socket_drops > 0 {
            let text = format!(
                "the tester's sockets dropped {} replies because their queues were full",
                grouped(tester.socket_drops)
            );
            reasons.push(text, THREADS);
        }
        if tester.interface_drops > 0 {
            let text = format!(
                "the tester's network interfaces or their queues dropped {} packets",
                grouped(tester.interface_drops)
            );
            reasons.push(text, INTERFACE);
        }
    }
    reasons.joined()
}

/// Remedy for an error with which the kernel refused a connection.
fn remedy(send_error: Option<i32>) -> &'static str {
    match send_error {
        Some(limits::NO_FREE_PORT) => {
            "; no local port is free: use more source addresses (--sources) or a larger net.ipv4.ip_local_port_range"
        }
        Some(limits::TOO_MANY_FILES) => {
            "; too many connections are open: raise the limit of open files (ulimit -n) or use a shorter timeout (--timeout)"
        }
        Some(limits::REFUSED_BY_POLICY) => {
            "; a firewall of this host refuses them: look at `nft list ruleset`"
        }
        Some(limits::QUEUE_FULL) => {
            "; the queue of the interface is full: use a lower rate, or a longer queue (ip link set txqueuelen)"
        }
        Some(limits::NO_ROUTE | limits::NO_NETWORK) => {
            "; there is no route to the server: look at `ip route get`"
        }
        _ => "; look at the address and the port of --server, and at `ip route get` for it",
    }
}

/// Reasons of lost queries whose connection ended, in brackets.
fn by_connection(outcome: &Outcome) -> String {
    let lost = outcome.connections.iter().flat_map(|connections| &connections.lost);
    let named: Vec<_> = lost.map(|(name, count)| format!("{name} {}", grouped(*count))).collect();
    if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
}

/// Replies that the server did not give.
fn missing(outcome: &Outcome) -> Option<String> {
    if outcome.sent == 0 {
        return Some("no query was sent".to_owned());
    }
    let missing = outcome.sent - outcome.valid.min(outcome.sent);
    if missing == 0 {
        return None;
    }
    let mut parts = Vec::new();
    if outcome.lost > 0 {
        parts.push(format!("{} lost{}", grouped(outcome.lost), by_connection(outcome)));
    }
    if outcome.connection_refused > 0 {
        parts.push(format!("{} connection refused", grouped(outcome.connection_refused)));
    }
    if outcome.late > 0 {
        parts.push(format!("{} late", grouped(outcome.late)));
    }
    if outcome.invalid_total() > 0 {
        let mut reasons: Vec<_> = outcome.invalid.iter().collect();
        reasons.sort_by(|one, other| other.1.cmp(one.1).then(one.0.cmp(other.0)));
        let named: Vec<String> = match reasons[..] {
            [(name, _)] => vec![name.clone()],
            _ => reasons.iter().map(|(name, count)| format!("{name} {}", grouped(**count))).collect(),
        };
        parts.push(format!("{} invalid ({})", grouped(outcome.invalid_total()), named.join(", ")));
    }
    Some(format!(
        "{} of {} queries got no valid reply in time: {}{}",
        grouped(missing),
        grouped(outcome.sent),
        parts.join(", "),
        sent_again(outcome)
    ))
}

/// The repeated segments of a load over TCP with queries that were late or lost: the usual cause is a server whose queue of
/// new connections (listen(2)) is full, so that its host drops SYNs.
fn sent_again(outcome: &Outcome) -> String {
    match outcome.traffic.retransmitted {
        count if count > 0 && outcome.late + outcome.lost > 0 => {
            format!(
                "; {} TCP segments were sent again, as the path or the server's host dropped them",
                grouped(count)
            )
        }
        _ => String::new(),
    }
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.0} ms", duration.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(valid: u64, lost: u64) -> Outcome {
        Outcome { sent: 10_000, valid, lost, received: 10_000 - lost, ..Outcome::default() }
    }

    #[test]
    fn only_a_load_without_any_loss_passes() {
        assert_eq!(verdict(&outcome(10_000, 0), &TesterFaults::default()), (Verdict::Pass, String::new()));
        let mut failed = outcome(9_997, 2);
        failed.invalid.insert("address".into(), 1);
        let (verdict, reason) = verdict(&failed, &TesterFaults::default());
        assert_eq!(verdict, Verdict::Fail);
        assert_eq!(reason, "3 of 10,000 queries got no valid reply in time: 2 lost, 1 invalid (address)");
    }

    #[test]
    fn repeated_segments_are_named_with_the_queries_that_they_delayed() {
        let mut failed = outcome(9_997, 3);
        failed.traffic.retransmitted = 1_200;
        let (_, reason) = verdict(&failed, &TesterFaults::default());
        assert!(reason.ends_with(
            "3 lost; 1,200 TCP segments were sent again, as the path or the server's host dropped them"
        ));
        failed.lost = 0;
        failed.invalid.insert("address".into(), 3);
        assert!(verdict(&failed, &TesterFaults::default()).1.ends_with("3 invalid (address)"));
    }

    #[test]
    fn several_reasons_are_counted_apart() {
        let mut failed = outcome(9_990, 0);
        failed.late = 3;
        failed.invalid.extend([("address".into(), 2), ("servfail".into(), 5)]);
        let (_, reason) = verdict(&failed, &TesterFaults::default());
        let expected =
            "10 of 10,000 queries got no valid reply in time: 3 late, 7 invalid (servfail 5, address 2)";
        assert_eq!(reason, expected);
    }

    #[test]
    fn a_tester_that_did_not_do_its_part_says_nothing_of_the_server() {
        let limited = |change: &dyn Fn(&mut Outcome, &mut TesterFaults), part: &str| {
            let (mut outcome, mut faults) = (outcome(9_999, 1), TesterFaults::default());
            change(&mut outcome, &mut faults);
            let (verdict, reason) = verdict(&outcome, &faults);
            assert_eq!(verdict, Verdict::TesterLimited);
            assert!(reason.contains(part), "{reason}");
        };
        limited(&|outcome, _| outcome.tester.send_errors = 1, "refused 1 queries");
        limited(&|outcome, _| outcome.tester.socket_drops = 1, "sockets dropped 1");
        let busy = |outcome: &mut Outcome, faults: &mut TesterFaults| {
            (outcome.tester.user_s, outcome.tester.system_s, faults.encrypting_s) = (8.0, 1.8, 10.0);
        };
        limited(&busy, "busy 98 % of the time");
        let (mut open, mut faults) = (outcome(10_000, 0), TesterFaults::default());
        busy(&mut open, &mut faults);
        open.rate_asked = 10_000.0;
        assert_eq!(super::verdict(&open, &faults).0, Verdict::Pass);
        limited(
            &|outcome, _| outcome.tester.interface_drops = 1,
            "network interfaces or their queues dropped 1",
        );
        limited(&|outcome, _| outcome.lag_max_us = 100_001.0, "a query left 100 ms after");
        // One cause, one remedy: both faults come from a thread that had no core.
        let stalled = |outcome: &mut Outcome, faults: &mut TesterFaults| {
            (outcome.lag_max_us, faults.stall) = (300_000.0, Duration::from_millis(300));
        };
        limited(&stalled, "was stalled for 300 ms; end other programs on this host, or");
        limited(&|outcome, _| outcome.tester.socket_drops = 1, "were full; use more threads and cores");
        limited(&|_, faults| faults.stall = Duration::from_millis(230), "stalled for 230 ms");
        limited(&|_, faults| faults.backlog = Duration::from_millis(120), "replies waited 120 ms");
        limited(&|_, faults| faults.worst_second = Some((940, 1000)), "sent 940 queries instead of 1,000");
        limited(&|_, faults| faults.ended_early = Some((Duration::from_secs(3), true)), "after 3.0 s");
    }

    #[test]
    fn a_refusal_of_the_kernel_has_the_remedy_for_its_cause() {
        // Numbers of Linux: EPERM 1, EMFILE 24, EADDRNOTAVAIL 99, ENETUNREACH 101.
        for (number, part) in
            [(1, "nft list ruleset"), (24, "ulimit -n"), (99, "--sources"), (101, "ip route get")]
        {
            assert!(remedy(Some(number)).contains(part), "{number}");
        }
        assert!(remedy(None).contains("--server"));
    }

    #[test]
    fn a_server_that_failed_whatever_the_tester_dropped_has_failed() {
        // A dropped packet holds at most 64 messages.
        for (lost, expected) in [(128, Verdict::TesterLimited), (129, Verdict::Fail)] {
            let mut outcome = outcome(10_000 - lost, lost);
            (outcome.tester.socket_drops, outcome.tester.interface_drops) = (1, 1);
            assert_eq!(verdict(&outcome, &TesterFaults::default()).0, expected, "{lost}");
        }
    }

    #[test]
    fn small_deviations_and_drops_without_loss_do_not_matter() {
        let mut outcome = outcome(10_000, 0);
        outcome.tester.socket_drops = 5;
        outcome.lag_max_us = 99_000.0;
        let backlog = Duration::from_millis(120);
        let faults = TesterFaults { worst_second: Some((951, 1000)), backlog, ..TesterFaults::default() };
        assert_eq!(verdict(&outcome, &faults).0, Verdict::Pass);
    }

    #[test]
    fn a_short_timeout_bears_only_a_short_pause_of_the_tester() {
        let of = |valid, stall_ms, behind_ms| {
            let ms = Duration::from_millis;
            let (timeout, stall, backlog) = (ms(80), ms(stall_ms), ms(behind_ms));
            verdict(
                &outcome(valid, 10_000 - valid),
                &TesterFaults { timeout, stall, backlog, ..TesterFaults::default() },
            )
            .0
        };
        assert_eq!(
            [of(9_999, 20, 20), of(9_999, 21, 0), of(9_999, 0, 21)],
            [Verdict::Fail, Verdict::TesterLimited, Verdict::TesterLimited]
        );
        // Without missing replies it did no harm.
        assert_eq!([of(10_000, 99, 99), of(10_000, 101, 0)], [Verdict::Pass, Verdict::TesterLimited]);
    }
}
