//! Summary of a load as text.

use load::LoadOptions;
use measure::order::{Load, Pace, Transport};
use measure::outcome::{FastOpen, Latency, Outcome, PerQuery, Tester, TlsConnections, Verdict};
use measure::units::grouped;
use std::cmp::Reverse;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Share of the replies from which on one cause is behind all of them.
const MOST: f64 = 0.9;

/// 64:ff9b::/96 (RFC 6052 section 2.1).
const WELL_KNOWN_PREFIX: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0);

/// The summary at the end of a load.
pub fn text(order: &Load, options: &LoadOptions, outcome: &Outcome) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut text, order, options, outcome);
    text
}

fn write(out: &mut String, order: &Load, options: &LoadOptions, outcome: &Outcome) -> std::fmt::Result {
    write_counts(out, order, outcome)?;
    if options.queries.is_some() {
        write_rcodes(out, outcome)?;
    } else if let Some(remedy) = remedy(order, outcome) {
        writeln!(out, "  remedy      {remedy}")?;
    }
    write_timing(out, outcome)?;
    write_traffic(out, outcome)?;
    if let Some(remark) = resumption_remark(options, outcome) {
        writeln!(out, "  sessions    {remark}")?;
    }
    write_tester(out, &outcome.tester)?;
    match outcome.verdict {
        Verdict::Pass => writeln!(out, "PASS: every query got a valid reply in time"),
        Verdict::Fail => writeln!(out, "FAIL: {}", outcome.reason),
        Verdict::TesterLimited => writeln!(out, "TESTER-LIMITED: {}", outcome.reason),
        Verdict::DeviceStarved => writeln!(out, "DEVICE STARVED: {}", outcome.reason),
    }
}

/// Writes the load and the number of queries and replies of each kind.
fn write_counts(out: &mut String, order: &Load, outcome: &Outcome) -> std::fmt::Result {
    let asked = match order.pace {
        Pace::Open { rate_qps, burst: 1 } => format!("{} queries/s asked for", format_rate(rate_qps)),
        Pace::Open { rate_qps, burst } => {
            format!("{} queries/s asked for, {burst} at a time", format_rate(rate_qps))
        }
        Pace::Closed { outstanding } => format!("{} outstanding", grouped(outstanding.into())),
    };
    let over = match order.transport {
        Transport::Udp => String::new(),
        transport => format!(" over {}", transport.name()),
    };
    writeln!(out, "{}{over}: {asked}, {:.1} s", order.server, outcome.seconds)?;
    for (name, count, rate) in
        [("sent", outcome.sent, outcome.rate_achieved), ("valid", outcome.valid, outcome.goodput_qps())]
    {
        writeln!(out, "  {name:<11} {:>14}   {} a second", grouped(count), format_rate(rate))?;
    }
    for (name, count) in &outcome.invalid {
        writeln!(out, "  invalid     {:>14}   {name}", grouped(*count))?;
        if let Some(first) = outcome.first_invalid.get(name) {
            writeln!(
                out,
                "    the first: expected {}, got {} for {}",
                first.expected, first.got, first.name
            )?;
        }
    }
    let limited = if outcome.lost > 0 {
        "; hosts limit these messages, so lost queries may be refused ones"
    } else {
        ""
    };
    let refused = format!("connection refused by {}: no process listens there{limited}", order.server);
    for (name, count, why) in [
        ("late", outcome.late, "after the timeout"),
        ("lost", outcome.lost, "no reply"),
        ("refused", outcome.connection_refused, refused.as_str()),
        ("duplicates", outcome.duplicates, "further replies"),
        ("unsolicited", outcome.unsolicited, "replies to no outstanding query"),
        ("source", outcome.wrong_source, "replies from another address"),
        ("asked again", outcome.asked_again, "names that were answered before"),
    ] {
        if count > 0 || matches!(name, "late" | "lost") {
            writeln!(out, "  {name:<11} {:>14}   {why}", grouped(count))?;
        }
    }
    Ok(())
}

/// Writes the replies in time by RCODE, the most frequent one first.
fn write_rcodes(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let mut rcodes: Vec<_> = outcome.rcodes.iter().collect();
    rcodes.sort_by_key(|(name, count)| (Reverse(**count), *name));
    let all: u64 = outcome.rcodes.values().sum();
    for (name, count) in rcodes {
        let share = *count as f64 * 100.0 / all as f64;
        writeln!(out, "  rcode       {:>14}   {name} ({share:.1} %)", grouped(*count))?;
    }
    if outcome.truncated > 0 {
        writeln!(out, "  truncated   {:>14}   valid replies with TC", grouped(outcome.truncated))?;
    }
    Ok(())
}

/// True for the private addresses (RFC 1918) and the shared ones (RFC 6598), which measurements use most.
fn is_private(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    address.is_private() || (first == 100 && second & 0xc0 == 64)
}

/// The remedy for a load on computed names if nearly all replies say that the server does not know the zone, or that it does
/// not embed the addresses.
fn remedy(order: &Load, outcome: &Outcome) -> Option<String> {
    let count = |name| outcome.rcodes.get(name).copied().unwrap_or(0);
    let unknown = ["REFUSED", "NXDOMAIN", "SERVFAIL"].map(count).iter().sum::<u64>();
    let all: u64 = outcome.rcodes.values().sum();
    let is_most = |count: u64| all > 0 && count as f64 >= MOST * all as f64;
    let empty = outcome.invalid.get("no-records").copied().unwrap_or(0);
    let first = Ipv4Addr::from(order.names.address(order.first_name));
    if is_most(empty) && order.expect.prefixes.contains(&(WELL_KNOWN_PREFIX, 96)) && is_private(first) {
        return Some(format!(
            "{} of {} replies have no records: {first} is not a global address, and servers leave such addresses out with the \
             well-known prefix (RFC 6052 section 3.1); use other names (--names 1.0.0.0/8)",
            grouped(empty),
            grouped(all)
        ));
    }
    if !is_most(unknown) {
        return None;
    }
    let zone = &order.expect.zone;
    let wanted = if order.expect.prefixes.is_empty() {
        format!("without a prefix the server must be \"sixfold-bench authority --zone-name {zone}\"")
    } else {
        format!("the server must forward {zone} to \"sixfold-bench authority\"")
    };
    Some(format!(
        "{} of {} replies are REFUSED, NXDOMAIN or SERVFAIL: {wanted}, or ask names that it knows (--queries FILE)",
        grouped(unknown),
        grouped(all)
    ))
}

/// Writes the latencies and the pacing error, where the load has them.
fn write_timing(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    if outcome.latency_us.actual.count > 0 {
        writeln!(
            out,
            "  latency, us {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "mean", "deviation", "min", "median", "90 %", "99 %", "99.9 %", "max"
        )?;
        latency_row(out, "from due", &outcome.latency_us.intended)?;
        latency_row(out, "from sent", &outcome.latency_us.actual)?;
        if let Some(connections) = &outcome.connections {
            for (name, latency) in
                [("handshake", &connections.handshake_us), ("answer", &connections.answer_us)]
                    .into_iter()
                    .chain(connections.tls.as_ref().map(|tls| ("TLS alone", &tls.handshake_us)))
            {
                if latency.count > 0 {
                    latency_row(out, name, latency)?;
                }
            }
        }
    }
    if outcome.rate_asked > 0.0 {
        let error = &outcome.pacing_error;
        let finest = match error.ms1.intervals {
            0 => String::new(),
            _ => format!("; on average {:.2} % in 1 ms", error.ms1.mean * 100.0),
        };
        writeln!(
            out,
            "  pacing      at most {:.2} % off in any 10 ms, {:.2} % in 100 ms, {:.2} % in 1 s{finest}; latest query {:.0} us late",
            error.ms10.max * 100.0,
            error.ms100.max * 100.0,
            error.s1.max * 100.0,
            outcome.lag_max_us
        )?;
    }
    Ok(())
}

/// Writes the packets and octets per query, and the connections of a load over TCP.
fn write_traffic(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let PerQuery { packets_sent, packets_received, octets_sent, octets_received } = outcome.traffic.per_query;
    if outcome.traffic.queries > 0 {
        writeln!(
            out,
            "  per query   {packets_sent:.2} packets of {octets_sent:.0} octets sent, {packets_received:.2} of \
             {octets_received:.0} received"
        )?;
    }
    let Some(connections) = &outcome.connections else { return Ok(()) };
    writeln!(
        out,
        "  connections {:>14}   {:.4} per query, {} established",
        grouped(connections.opened),
        connections.per_query,
        grouped(connections.established)
    )?;
    for (count, what) in [
        (connections.refused, "refused by the server's host"),
        (connections.timed_out, "not established in time"),
        (connections.reset, "reset by the server"),
        (connections.closed_by_server, "closed by the server first"),
        (connections.aborted, "given up by the tester"),
        (outcome.traffic.retransmitted, "segments sent again"),
    ] {
        if count > 0 {
            writeln!(out, "              {:>14}   {what}", grouped(count))?;
        }
    }
    if let Some(FastOpen { cold, warm, syn_data_acknowledged }) = &connections.fast_open {
        writeln!(
            out,
            "  fast open   {:>14}   SYNs with the query, {} acknowledged; {} without a cookie",
            grouped(*warm),
            grouped(*syn_data_acknowledged),
            grouped(*cold)
        )?;
    }
    if let Some(tls) = &connections.tls {
        write_tls(out, tls)?;
    }
    for (status, count) in &connections.http_statuses {
        writeln!(out, "  status      {:>14}   {status}", grouped(*count))?;
    }
    match connections.waited_for_stream {
        0 => Ok(()),
        count => writeln!(
            out,
            "  streams     {:>14}   queries waited, as the server allows no more streams at a time (--connections)",
            grouped(count)
        ),
    }
}

/// Remark on a load that should resume sessions and resumed none, although it had more than one connection.
fn resumption_remark(options: &LoadOptions, outcome: &Outcome) -> Option<String> {
    let tls = outcome.connections.as_ref()?.tls.as_ref()?;
    if !(options.tls.resume || options.tls.early_data) || tls.resumed > 0 || tls.full < 2 {
        return None;
    }
    Some(match tls.tickets {
        0 => "none was resumed: the server gives no sessions to resume".to_owned(),
        // Connections that stay open begin together, before the first session has come.
        tickets => format!(
            "none was resumed, of {} that the server gave: it accepts none, or every connection began before the first of them came \
             (--connection-per-query)",
            grouped(tickets)
        ),
    })
}

/// Writes the handshakes of TLS.
fn write_tls(out: &mut String, tls: &TlsConnections) -> std::fmt::Result {
    writeln!(out, "  handshakes  {:>14}   full, {} resumed", grouped(tls.full), grouped(tls.resumed))?;
    if tls.early_data_sent > 0 {
        let (sent, accepted) = (grouped(tls.early_data_sent), grouped(tls.early_data_accepted));
        writeln!(out, "              {sent:>14}   with early data, {accepted} accepted")?;
    }
    for (reason, count) in &tls.failed {
        writeln!(out, "              {:>14}   failed: {reason}", grouped(*count))?;
    }
    Ok(())
}

/// Writes the CPU time and the drops of the tester itself.
fn write_tester(out: &mut String, tester: &Tester) -> std::fmt::Result {
    writeln!(
        out,
        "  tester      {:.2} s of CPU ({:.2} user, {:.2} system), {:.2} s without a core",
        tester.cpu_s(),
        tester.user_s,
        tester.system_s,
        tester.waited_s
    )?;
    for (count, what) in [
        (tester.socket_drops, "replies dropped by full sockets"),
        (tester.interface_drops, "packets dropped by network interfaces"),
        (tester.send_errors, "queries that the kernel did not accept"),
    ] {
        if count > 0 {
            writeln!(out, "  tester      {} {what}", grouped(count))?;
        }
    }
    Ok(())
}

fn latency_row(out: &mut String, name: &str, latency: &Latency) -> std::fmt::Result {
    write!(out, "    {name:<10}")?;
    let spread = [latency.mean, latency.standard_deviation, latency.min];
    for value in spread.into_iter().chain([latency.p50, latency.p90, latency.p99, latency.p999, latency.max])
    {
        let decimals = if value < 100.0 { 1 } else { 0 };
        write!(out, " {value:>10.decimals$}")?;
    }
    writeln!(out)
}

fn format_rate(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { grouped(value.round() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::TlsOptions;
    use measure::order::Expectation;
    use measure::outcome::{Connections, InvalidReply, Latencies};

    fn order() -> Load {
        let pace = Pace::Open { rate_qps: 50_000.0, burst: 1 };
        let expect = Expectation { aaaa_share: 0.0, ..Expectation::native("dns64perf.test") };
        let (server, names) = ("192.0.2.1:53".parse().unwrap(), "10.0.0.0/8".parse().unwrap());
        Load::of_new_names(server, pace, std::time::Duration::from_secs(60), names, expect)
    }

    fn text(outcome: &Outcome) -> String {
        super::text(&order(), &LoadOptions::default(), outcome)
    }

    #[test]
    fn a_load_on_a_server_that_does_not_know_the_zone_has_a_remedy() {
        let mut outcome = Outcome { sent: 1000, ..Outcome::default() };
        outcome.rcodes = [("REFUSED".into(), 500), ("SERVFAIL".into(), 401), ("NOERROR".into(), 99)].into();
        let mut order = order();
        order.expect.prefixes.push(("64:ff9b::".parse().unwrap(), 96));
        let said = super::text(&order, &LoadOptions::default(), &outcome);
        assert!(said.contains(
            "901 of 1,000 replies are REFUSED, NXDOMAIN or SERVFAIL: the server must forward dns64perf.test"
        ));
        assert!(said.contains("\"sixfold-bench authority\"") && said.contains("--queries FILE"), "{said}");
        assert!(
            text(&outcome)
                .contains("the server must be \"sixfold-bench authority --zone-name dns64perf.test\"")
        );
        let mut empty = Outcome { rcodes: [("NOERROR".into(), 1000)].into(), ..Outcome::default() };
        empty.invalid.insert("no-records".into(), 950);
        let said = super::text(&order, &LoadOptions::default(), &empty);
        let text_of = "950 of 1,000 replies have no records: 10.0.0.0 is not a global address";
        assert!(said.contains(text_of) && said.contains("--names 1.0.0.0/8"), "{said}");
        order.first_name = 1 << 24;
        order.names = "9.0.0.0-11.255.255.255".parse().unwrap();
        assert!(super::text(&order, &LoadOptions::default(), &empty).contains("10.0.0.0 is not"));
        order.first_name = 0;
        assert!(!super::text(&order, &LoadOptions::default(), &empty).contains("remedy"));
        outcome.rcodes.insert("NOERROR".into(), 101);
        assert!(!text(&outcome).contains("remedy"));
        assert!(!text(&Outcome::default()).contains("remedy"));
    }

    #[test]
    fn queries_of_a_file_have_their_rcodes_in_the_summary() {
        let list = load::QueryList::read(&b"a A\n"[..], "names".as_ref()).unwrap();
        let options = LoadOptions { queries: Some(list.into()), ..LoadOptions::default() };
        let mut outcome = Outcome { sent: 1000, truncated: 7, ..Outcome::default() };
        outcome.rcodes = [("NOERROR".into(), 100), ("NXDOMAIN".into(), 900)].into();
        let said = super::text(&order(), &options, &outcome);
        let lines: Vec<_> =
            said.lines().filter(|line| line.contains("rcode") || line.contains("TC")).collect();
        assert_eq!(lines.len(), 3, "{said}");
        assert!(
            lines[0].ends_with("900   NXDOMAIN (90.0 %)") && lines[1].ends_with("100   NOERROR (10.0 %)"),
            "{said}"
        );
        assert!(lines[2].contains("7   valid replies with TC") && !said.contains("remedy"), "{said}");
    }

    #[test]
    fn a_refused_connection_names_the_server_and_what_it_means_for_lost_queries() {
        let mut outcome = Outcome { sent: 10, connection_refused: 10, ..Outcome::default() };
        assert!(
            text(&outcome).contains("10   connection refused by 192.0.2.1:53: no process listens there\n")
        );
        (outcome.connection_refused, outcome.lost) = (6, 4);
        assert!(
            text(&outcome)
                .contains("listens there; hosts limit these messages, so lost queries may be refused ones\n")
        );
        assert!(!text(&Outcome::default()).contains("refused"));
    }

    #[test]
    fn a_load_whose_sessions_are_never_resumed_says_so_and_why() {
        let said = |resume: bool, full: u64, resumed: u64, tickets: u64| {
            let tls = TlsConnections { full, resumed, tickets, ..TlsConnections::default() };
            let connections = Some(Connections { tls: Some(tls), ..Connections::default() });
            let options =
                LoadOptions { tls: TlsOptions { resume, ..TlsOptions::default() }, ..LoadOptions::default() };
            super::text(&order(), &options, &Outcome { connections, ..Outcome::default() })
        };
        assert!(said(true, 50, 0, 0).contains("none was resumed: the server gives no sessions to resume"));
        let refused = said(true, 50, 0, 1200);
        assert!(
            refused.contains("none was resumed, of 1,200 that the server gave: it accepts none"),
            "{refused}"
        );
        // Not asked for, one connection alone, or resumed.
        for quiet in [said(false, 50, 0, 0), said(true, 1, 0, 0), said(true, 49, 1, 2)] {
            assert!(!quiet.contains("was resumed"), "{quiet}");
        }
    }

    #[test]
    fn latencies_have_their_mean_and_deviation() {
        let actual = Latency { count: 2, mean: 120.25, standard_deviation: 31.5, ..Latency::default() };
        let latency_us = Latencies { intended: actual.clone(), actual };
        let said = text(&Outcome { latency_us, ..Outcome::default() });
        assert!(said.contains("      mean  deviation        min     median"), "{said}");
        assert!(said.contains("    from due          120       31.5        0.0"), "{said}");
    }

    #[test]
    fn a_summary_says_what_was_sent_what_was_wrong_and_the_verdict() {
        let mut outcome = Outcome { sent: 3_000_000, valid: 2_999_998, seconds: 60.0, ..Outcome::default() };
        outcome.invalid.insert("prefix".into(), 2);
        let first = InvalidReply {
            name: "010-002-000-001.dns64perf.test".into(),
            expected: "2001:db8::a02:1".into(),
            got: "64:ff9b::a02:1".into(),
        };
        outcome.first_invalid.insert("prefix".into(), first);
        outcome.reason = "2 of 3,000,000 queries".into();
        let text = text(&outcome);
        assert!(text.contains(
            "the first: expected 2001:db8::a02:1, got 64:ff9b::a02:1 for 010-002-000-001.dns64perf.test"
        ));
        for part in ["50,000 queries/s", "3,000,000", "50,000 a second", "prefix", "FAIL: 2 of 3,000,000"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
