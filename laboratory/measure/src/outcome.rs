//! Outcome of a load: counts, latencies, faults of the tester, and a verdict. `sixfold-bench load --json` writes it
//! as JSON.

use crate::order::Transport;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The outcome of one load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Transport of the queries.
    #[serde(default)]
    pub transport: Transport,
    /// Queries sent in the measured time.
    pub sent: u64,
    /// Replies to queries of the measured time: valid, invalid and late ones, without duplicates.
    pub received: u64,
    /// Valid replies in time.
    pub valid: u64,
    /// Invalid replies in time, by reason. Also messages with another ID or question (`header`, `question`,
    /// `question-count`, `stale-id`), whose queries kept waiting.
    pub invalid: BTreeMap<String, u64>,
    /// The first invalid reply of each reason. Text from the network is escaped.
    #[serde(default)]
    pub first_invalid: BTreeMap<String, InvalidReply>,
    /// Replies in time by the mnemonic of their RCODE, valid or not.
    #[serde(default)]
    pub rcodes: BTreeMap<String, u64>,
    /// Valid replies with the TC bit. Only a query from a file can have one.
    #[serde(default)]
    pub truncated: u64,
    /// Replies after the timeout, valid or not.
    pub late: u64,
    /// Queries without a reply until one timeout after the last query, other than refused ones.
    pub lost: u64,
    /// Queries that the server's host refused, because no process listens at the server's port (ICMP port unreachable; over
    /// TCP a reset in reply to the SYN).
    #[serde(default)]
    pub connection_refused: u64,
    /// Duplicate replies: replies to queries that already had one.
    pub duplicates: u64,
    /// Messages without a query of this load (an ID that is not outstanding, a question that was not sent from this
    /// port).
    pub unsolicited: u64,
    /// Messages from another address than the server's.
    pub wrong_source: u64,
    /// Queries for names that were queried before.
    pub asked_again: u64,
    /// Names that were queried for the first time, in the measured time and before: the name range advances by this
    /// number.
    pub names_used: u64,
    /// Ordered rate in queries per second; 0 in the closed loop.
    pub rate_asked: f64,
    /// Achieved sending rate in queries per second.
    pub rate_achieved: f64,
    /// Time from the first to the last intended query, in seconds.
    pub seconds: f64,
    /// Deviation of the sent numbers from the schedule, by length of interval.
    pub pacing_error: PacingError,
    /// The longest delay of a query after its due time, in microseconds.
    pub lag_max_us: f64,
    /// Latencies of the valid replies, including the late ones with valid contents.
    pub latency_us: Latencies,
    /// Progress over time, one entry a second.
    pub per_second: Vec<Second>,
    /// Packets and octets of the load.
    #[serde(default)]
    pub traffic: Traffic,
    /// Connections of a load over TCP or QUIC; `None` over UDP.
    #[serde(default)]
    pub connections: Option<Connections>,
    /// CPU time and drops of the tester.
    pub tester: Tester,
    /// Conclusion.
    pub verdict: Verdict,
    /// Reason in words; empty for `pass`.
    pub reason: String,
}

impl Outcome {
    /// Number of all invalid replies in time.
    pub fn invalid_total(&self) -> u64 {
        self.invalid.values().fold(0, |sum: u64, count| sum.saturating_add(*count))
    }

    /// Share of queries without a valid reply in time, 0 to 1.
    pub fn loss(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { (self.sent - self.valid.min(self.sent)) as f64 / self.sent as f64 }
    }

    /// Valid replies per second.
    pub fn goodput_qps(&self) -> f64 {
        if self.seconds > 0.0 { self.valid as f64 / self.seconds } else { 0.0 }
    }
}

/// IP packets and octets of a load, including its warm-up and the repeated segments, as the tester's host sees them: packets
/// that were lost on their way to the tester are not counted. Octets include the headers of IP and UDP or TCP, computed from
/// the number of packets. Over UDP a message counts as one packet, also if it has fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Queries that the packets carried, including those of the warm-up.
    pub queries: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Octets sent.
    pub octets_sent: u64,
    /// Octets received.
    pub octets_received: u64,
    /// TCP segments that the tester's host sent again.
    pub retransmitted: u64,
    /// All of these per query.
    pub per_query: PerQuery,
}

impl Traffic {
    /// Traffic with its figures per query.
    pub fn with_ratios(self) -> Traffic {
        let ratio = |count: u64| if self.queries == 0 { 0.0 } else { count as f64 / self.queries as f64 };
        let per_query = PerQuery {
            packets_sent: ratio(self.packets_sent),
            packets_received: ratio(self.packets_received),
            octets_sent: ratio(self.octets_sent),
            octets_received: ratio(self.octets_received),
        };
        Traffic { per_query, ..self }
    }
}

/// Packets and octets per query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PerQuery {
    /// Packets sent.
    pub packets_sent: f64,
    /// Packets received.
    pub packets_received: f64,
    /// Octets sent.
    pub octets_sent: f64,
    /// Octets received.
    pub octets_received: f64,
}

/// Connections of a load over TCP or QUIC, including those of its warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connections {
    /// Connections that the tester began to open.
    pub opened: u64,
    /// Connections whose handshake was completed.
    pub established: u64,
    /// Opened connections per query.
    pub per_query: f64,
    /// Handshakes that the server's host refused.
    pub refused: u64,
    /// Connections that the server reset after the handshake.
    pub reset: u64,
    /// Handshakes that were not over when the tester gave them up.
    pub timed_out: u64,
    /// Connections that the server closed first.
    pub closed_by_server: u64,
    /// Established connections that the tester gave up (RST), because no reply came, or the server did not close its side.
    pub aborted: u64,
    /// Lost queries of the measured time whose connection is the reason: `closed` (by the server before the reply), `reset`,
    /// `handshake` (not completed), `blocked` (the server did not read, and the connection's buffer was full), `unreachable`
    /// (any other error of the connection), `tls` (an alert or a record that is not TLS), `stream` (the server reset the stream of
    /// the query, or ended it without a reply), `status` (an HTTP status other than 200), `content-type` (a body that is no DNS
    /// message). The other lost queries had a connection and no reply.
    pub lost: BTreeMap<String, u64>,
    /// Time from the first packet to the end of the handshake, over TLS and HTTPS of the TLS handshake.
    pub handshake_us: Latency,
    /// Time from the first query on a connection, handed to the kernel, to its reply; only of connections with one query.
    pub answer_us: Latency,
    /// Fast Open; `None` for the other transports.
    pub fast_open: Option<FastOpen>,
    /// TLS, also that of HTTPS and QUIC; `None` for the other transports.
    #[serde(default)]
    pub tls: Option<TlsConnections>,
    /// Lost queries of the measured time that got an HTTP status other than 200, by status.
    #[serde(default)]
    pub http_statuses: BTreeMap<String, u64>,
    /// Queries over HTTPS and QUIC that waited for a stream, as the connection had as many as the server allows.
    #[serde(default)]
    pub waited_for_stream: u64,
}

/// Connections with TLS (RFC 8446, RFC 5246).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TlsConnections {
    /// Handshakes with certificate and key exchange.
    pub full: u64,
    /// Handshakes that resumed an earlier session.
    pub resumed: u64,
    /// Connections whose first query left as early data (0-RTT, RFC 8446 section 2.3).
    pub early_data_sent: u64,
    /// Connections whose server accepted that data. Otherwise the query was sent again after the handshake.
    pub early_data_accepted: u64,
    /// Handshakes that failed, by reason: the alert or the error in the words of the TLS library.
    pub failed: BTreeMap<String, u64>,
    /// Time from the end of the TCP handshake to the end of the TLS handshake. Over QUIC the two are one
    /// ([`Connections::handshake_us`]), and this is empty.
    pub handshake_us: Latency,
    /// Sessions that the server gave for later connections: tickets of TLS 1.3, sessions of TLS 1.2. Counted if the load resumes
    /// sessions.
    #[serde(default)]
    pub tickets: u64,
    /// Handshakes of each second of the measured time, by the time of their end.
    #[serde(default)]
    pub per_second: Vec<HandshakeSecond>,
}

/// Handshakes of TLS or QUIC that ended in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandshakeSecond {
    /// Handshakes with certificate and key exchange.
    pub full: u64,
    /// Handshakes that resumed an earlier session.
    pub resumed: u64,
    /// Sum of their times as in [`Connections::handshake_us`], in microseconds.
    pub sum_us: u64,
}

impl HandshakeSecond {
    /// Mean time of a handshake in microseconds; `None` without handshakes.
    pub fn mean_us(&self) -> Option<u64> {
        self.sum_us.checked_div(self.full + self.resumed)
    }

    /// Adds the handshakes of another thread.
    pub fn add(&mut self, other: &HandshakeSecond) {
        self.full += other.full;
        self.resumed += other.resumed;
        self.sum_us += other.sum_us;
    }
}

/// Connections with TCP Fast Open (RFC 7413).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FastOpen {
    /// Connections whose SYN asked for a cookie and carried no data, as the kernel knew none.
    pub cold: u64,
    /// Connections whose SYN carried the query and a cookie.
    pub warm: u64,
    /// Connections whose server acknowledged the data of the SYN.
    pub syn_data_acknowledged: u64,
}

/// An invalid reply, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvalidReply {
    /// The queried name, of queries from a file with its type.
    pub name: String,
    /// The contents of a valid reply, as far as the reason concerns them.
    pub expected: String,
    /// The contents of this reply.
    pub got: String,
}

/// Result of a load. It is strict, as RFC 8219 section 9.2 demands: as many valid replies in time as queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every query got a valid reply in time.
    Pass,
    /// Some queries got no valid reply in time.
    #[default]
    Fail,
    /// The tester was the bottleneck, so the load says nothing about the server.
    TesterLimited,
    /// Other programs had the cores of the server ([`crate::starvation`]), so the load says nothing about its capacity.
    DeviceStarved,
}

impl Verdict {
    /// True if the load says nothing about the server, and is repeated.
    pub fn is_inconclusive(self) -> bool {
        matches!(self, Verdict::TesterLimited | Verdict::DeviceStarved)
    }
}

/// Relative deviation of the sent numbers from the scheduled ones (0.01 is one per cent).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacingError {
    /// Over intervals of 1 ms; without intervals in a load of more than 10 minutes, and in older records.
    #[serde(default)]
    pub ms1: Deviation,
    /// Over intervals of 10 ms.
    pub ms10: Deviation,
    /// Over intervals of 100 ms.
    pub ms100: Deviation,
    /// Over intervals of 1 s.
    pub s1: Deviation,
}

/// Relative deviation over the intervals of one length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Deviation {
    /// The largest deviation in either direction.
    pub max: f64,
    /// The mean of the absolute values.
    pub mean: f64,
    /// Share of the intervals that deviate by more than 1 %.
    pub beyond_1_percent: f64,
    /// Number of intervals.
    pub intervals: u64,
}

impl Deviation {
    /// The deviation of intervals with these numbers of queries sent and scheduled. An interval without scheduled queries has no
    /// relative deviation, so it does not count.
    pub fn of(intervals: impl IntoIterator<Item = (u64, u64)>) -> Deviation {
        let mut deviation = Deviation::default();
        let (mut sum, mut beyond) = (0.0, 0u64);
        for (sent, asked) in intervals.into_iter().filter(|(_, asked)| *asked > 0) {
            let relative = sent.abs_diff(asked) as f64 / asked as f64;
            deviation.intervals += 1;
            sum += relative;
            beyond += u64::from(relative > 0.01);
            deviation.max = deviation.max.max(relative);
        }
        if deviation.intervals > 0 {
            deviation.mean = sum / deviation.intervals as f64;
            deviation.beyond_1_percent = beyond as f64 / deviation.intervals as f64;
        }
        deviation
    }
}

/// Latencies from the two possible starting points.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// From the due time of the query: the time that a user waits, even if the tester was delayed.
    pub intended: Latency,
    /// From the actual sending time.
    pub actual: Latency,
}

/// A distribution of latencies, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Number of measured latencies.
    pub count: u64,
    /// The shortest latency.
    pub min: f64,
    /// The mean latency.
    pub mean: f64,
    /// The standard deviation of the sample (divisor n - 1).
    #[serde(default)]
    pub standard_deviation: f64,
    /// The median.
    pub p50: f64,
    /// 90 of 100 latencies are at most this.
    pub p90: f64,
    /// 99 of 100 latencies are at most this.
    pub p99: f64,
    /// 999 of 1,000 latencies are at most this.
    pub p999: f64,
    /// The longest latency.
    pub max: f64,
    /// The histogram: upper end of a bucket in nanoseconds, and the number of latencies in it; empty buckets are left
    /// out.
    pub histogram: Vec<(u64, u64)>,
}

/// One second of a load, by the intended time of the queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// Queries sent.
    pub sent: u64,
    /// Valid replies in time to these queries.
    pub valid: u64,
    /// Invalid replies in time to these queries.
    pub invalid: u64,
    /// Late replies to these queries.
    pub late: u64,
}

/// CPU time and drops of the tester, including an authority that the load's own thread serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tester {
    /// CPU time of the load's threads in user mode, in seconds.
    pub user_s: f64,
    /// CPU time of the load's threads in the kernel, in seconds.
    pub system_s: f64,
    /// Time that the threads were ready to run but had no core, in seconds.
    pub waited_s: f64,
    /// Replies that were dropped because a socket's queue was full.
    pub socket_drops: u64,
    /// Packets that this host's network interfaces on the path to the server, or their queueing disciplines, dropped.
    pub interface_drops: u64,
    /// Queries that the kernel refused.
    pub send_errors: u64,
    /// Receive buffer of the smallest source port over UDP, in octets as the kernel counts them (twice the size that a program
    /// asks for); 0: unknown.
    #[serde(default)]
    pub receive_buffer: u64,
}

impl Tester {
    /// CPU time in total, in seconds.
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}
