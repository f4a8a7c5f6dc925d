//! Counters of the connections of one thread.

use crate::distribution::Distribution;
use crate::plan::Plan;
use crate::sockets::ConnectionInfo;
use measure::order::{Load, Transport};
use measure::outcome::{Connections, FastOpen, HandshakeSecond, TlsConnections, Traffic};
use std::collections::BTreeMap;
use std::io;

/// Why the connection of a query ended without a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server's host answered the SYN with a reset.
    Refused,
    /// The server closed the connection.
    Closed,
    /// The server reset the connection.
    Reset,
    /// The handshake was not completed.
    Handshake,
    /// The buffer of the connection was full.
    Blocked,
    /// Another error of the connection.
    Unreachable,
    /// An alert, or octets that are not TLS.
    Tls,
    /// The server reset the stream of the query, or ended it without a reply.
    Stream,
    /// An HTTP status other than 200.
    Status,
    /// A body that is no DNS message.
    ContentType,
}

impl Fault {
    const ALL: [Fault; 10] = [
        Fault::Refused,
        Fault::Closed,
        Fault::Reset,
        Fault::Handshake,
        Fault::Blocked,
        Fault::Unreachable,
        Fault::Tls,
        Fault::Stream,
        Fault::Status,
        Fault::ContentType,
    ];

    /// The fault of an error of the kernel.
    pub fn of(error: &io::Error) -> Fault {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Fault::Refused,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Fault::Reset,
            io::ErrorKind::TimedOut => Fault::Handshake,
            io::ErrorKind::InvalidData => Fault::Tls,
            _ => Fault::Unreachable,
        }
    }

    /// The fault of an error after the handshake. A time-out is that of the retransmissions then.
    pub fn of_open(error: &io::Error) -> Fault {
        match Fault::of(error) {
            Fault::Handshake => Fault::Unreachable,
            fault => fault,
        }
    }

    /// True for an error of the server's side at the moment of the opening; others are of the tester's host.
    pub fn is_of_server(error: &io::Error) -> bool {
        matches!(Fault::of(error), Fault::Refused | Fault::Reset | Fault::Handshake)
            || error.kind() == io::ErrorKind::HostUnreachable
    }

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Refused => "refused",
            Fault::Closed => "closed",
            Fault::Reset => "reset",
            Fault::Handshake => "handshake",
            Fault::Blocked => "blocked",
            Fault::Unreachable => "unreachable",
            Fault::Tls => "tls",
            Fault::Stream => "stream",
            Fault::Status => "status",
            Fault::ContentType => "content-type",
        }
    }
}

/// Counts of connections. The fields have the meaning of those of [`Connections`] and [`Traffic`].
#[derive(Clone, Debug)]
pub struct StreamStats {
    /// Connections begun.
    pub opened: u64,
    /// Handshakes completed.
    pub established: u64,
    /// Handshakes refused.
    pub refused: u64,
    /// Connections reset after the handshake.
    pub reset: u64,
    /// Handshakes given up.
    pub timed_out: u64,
    /// Connections that the server closed first.
    pub closed_by_server: u64,
    /// Established connections given up.
    pub aborted: u64,
    /// SYNs that asked for a cookie.
    pub cold: u64,
    /// SYNs with data.
    pub warm: u64,
    /// SYNs whose data was acknowledged.
    pub syn_data_acknowledged: u64,
    /// Time to the end of the handshake.
    pub handshake: Distribution,
    /// Time from the query to the reply.
    pub answer: Distribution,
    /// TLS handshakes with certificate and key exchange.
    pub full: u64,
    /// TLS handshakes that resumed a session.
    pub resumed: u64,
    /// Connections with early data.
    pub early_data_sent: u64,
    /// Connections whose early data was accepted.
    pub early_data_accepted: u64,
    /// TLS handshakes that failed, by reason. The texts of rustls are some dozens.
    pub tls_failed: BTreeMap<String, u64>,
    /// Time of the TLS handshake.
    pub tls_handshake: Distribution,
    /// Sessions that the server gave for later connections.
    pub tickets: u64,
    /// Lost queries of the measured time with an HTTP status other than 200, by status.
    pub http_statuses: BTreeMap<u16, u64>,
    /// Queries that waited for a free stream.
    pub waited_for_stream: u64,
    /// Handshakes by second of the measured time, up to the last second that has one.
    handshakes: Vec<HandshakeSecond>,
    lost: [u64; Fault::ALL.len()],
    traffic: Traffic,
}

impl StreamStats {
    /// Empty counters.
    pub fn new() -> StreamStats {
        StreamStats {
            opened: 0,
            established: 0,
            refused: 0,
            reset: 0,
            timed_out: 0,
            closed_by_server: 0,
            aborted: 0,
            cold: 0,
            warm: 0,
            syn_data_acknowledged: 0,
            handshake: Distribution::new(),
            answer: Distribution::new(),
            full: 0,
            resumed: 0,
            early_data_sent: 0,
            early_data_accepted: 0,
            tls_failed: BTreeMap::new(),
            tls_handshake: Distribution::new(),
            tickets: 0,
            http_statuses: BTreeMap::new(),
            waited_for_stream: 0,
            handshakes: Vec::new(),
            lost: [0; Fault::ALL.len()],
            traffic: Traffic::default(),
        }
    }

    /// Counts a query of the measured time that is lost for this reason.
    pub fn count_lost(&mut self, fault: Fault) {
        self.lost[fault as usize] += 1;
    }

    /// Counts a handshake of TLS or QUIC of `time` nanoseconds that ended at `now`, in nanoseconds since the origin of the plan.
    pub fn count_handshake(&mut self, plan: &Plan, now: u64, is_resumed: bool, time: u64) {
        self.full += u64::from(!is_resumed);
        self.resumed += u64::from(is_resumed);
        if now < plan.measured {
            return;
        }
        // Later seconds share the last entry, as those of the queries do.
        let second = plan.second(now).min(plan.seconds() - 1);
        if second >= self.handshakes.len() {
            self.handshakes.resize(second + 1, HandshakeSecond::default());
        }
        self.handshakes[second].add(&HandshakeSecond {
            full: u64::from(!is_resumed),
            resumed: u64::from(is_resumed),
            sum_us: time / 1000,
        });
    }

    /// Adds the packets of a connection that has ended. `ip` is the length of an IP header, `syn_option` that of the Fast Open
    /// option in the SYN, `data_received` the data that was read.
    pub fn count_packets(&mut self, info: &ConnectionInfo, ip: u64, syn_option: u64, data_received: u64) {
        let octets = |packets: u64| packets * ip + info.header_octets(packets);
        let traffic = &mut self.traffic;
        traffic.packets_sent += info.packets_sent;
        traffic.packets_received += info.packets_received;
        traffic.octets_sent += octets(info.packets_sent) + syn_option + info.octets_sent;
        traffic.octets_received += octets(info.packets_received) + data_received;
        traffic.retransmitted += info.retransmitted;
        self.syn_data_acknowledged += u64::from(info.syn_data_acknowledged);
    }

    /// Adds the datagrams of a QUIC connection, sent and received, as pairs of their number and their octets. `headers` is the
    /// length of the headers of IP and UDP.
    pub fn count_datagrams(&mut self, sent: (u64, u64), received: (u64, u64), headers: u64) {
        let traffic = &mut self.traffic;
        traffic.packets_sent += sent.0;
        traffic.packets_received += received.0;
        traffic.octets_sent += sent.0 * headers + sent.1;
        traffic.octets_received += received.0 * headers + received.1;
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &StreamStats) {
        self.opened += other.opened;
        self.established += other.established;
        self.refused += other.refused;
        self.reset += other.reset;
        self.timed_out += other.timed_out;
        self.closed_by_server += other.closed_by_server;
        self.aborted += other.aborted;
        self.cold += other.cold;
        self.warm += other.warm;
        self.syn_data_acknowledged += other.syn_data_acknowledged;
        self.handshake.add(&other.handshake);
        self.answer.add(&other.answer);
        self.full += other.full;
        self.resumed += other.resumed;
        self.early_data_sent += other.early_data_sent;
        self.early_data_accepted += other.early_data_accepted;
        for (reason, count) in &other.tls_failed {
            *self.tls_failed.entry(reason.clone()).or_default() += count;
        }
        self.tls_handshake.add(&other.tls_handshake);
        self.tickets += other.tickets;
        if self.handshakes.len() < other.handshakes.len() {
            self.handshakes.resize(other.handshakes.len(), HandshakeSecond::default());
        }
        self.handshakes.iter_mut().zip(&other.handshakes).for_each(|(own, other)| own.add(other));
        for (status, count) in &other.http_statuses {
            *self.http_statuses.entry(*status).or_default() += count;
        }
        self.waited_for_stream += other.waited_for_stream;
        self.lost.iter_mut().zip(other.lost).for_each(|(own, other)| *own += other);
        let (own, other) = (&mut self.traffic, &other.traffic);
        own.packets_sent += other.packets_sent;
        own.packets_received += other.packets_received;
        own.octets_sent += other.octets_sent;
        own.octets_received += other.octets_received;
        own.retransmitted += other.retransmitted;
    }

    /// The packets of `queries` queries.
    pub fn traffic(&self, queries: u64) -> Traffic {
        Traffic { queries, ..self.traffic }.with_ratios()
    }

    /// The connections of a load of `queries` queries.
    pub fn connections(&self, order: &Load, queries: u64) -> Connections {
        // Refused queries have a counter of their own, as over UDP.
        let lost = Fault::ALL.into_iter().zip(self.lost);
        let lost = lost.filter(|(fault, count)| *fault != Fault::Refused && *count > 0);
        let fast_open =
            FastOpen { cold: self.cold, warm: self.warm, syn_data_acknowledged: self.syn_data_acknowledged };
        Connections {
            opened: self.opened,
            established: self.established,
            per_query: if queries == 0 { 0.0 } else { self.opened as f64 / queries as f64 },
            refused: self.refused,
            reset: self.reset,
            timed_out: self.timed_out,
            closed_by_server: self.closed_by_server,
            aborted: self.aborted,
            lost: lost.map(|(fault, count)| (fault.name().to_owned(), count)).collect(),
            handshake_us: self.handshake.latency(),
            answer_us: self.answer.latency(),
            fast_open: (order.transport == Transport::Tfo).then_some(fast_open),
            tls: order.transport.is_encrypted().then(|| self.tls()),
            http_statuses: self
                .http_statuses
                .iter()
                .map(|(status, count)| (status.to_string(), *count))
                .collect(),
            waited_for_stream: self.waited_for_stream,
        }
    }

    /// The connections with TLS.
    fn tls(&self) -> TlsConnections {
        TlsConnections {
            full: self.full,
            resumed: self.resumed,
            early_data_sent: self.early_data_sent,
            early_data_accepted: self.early_data_accepted,
            failed: self.tls_failed.clone(),
            handshake_us: self.tls_handshake.latency(),
            tickets: self.tickets,
            per_second: self.handshakes.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_its_own_counter() {
        for (index, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, index);
        }
        let of = |kind: io::ErrorKind| Fault::of(&kind.into());
        assert_eq!(of(io::ErrorKind::ConnectionRefused), Fault::Refused);
        assert_eq!(of(io::ErrorKind::ConnectionReset), Fault::Reset);
        assert_eq!(of(io::ErrorKind::TimedOut), Fault::Handshake);
        assert_eq!(of(io::ErrorKind::HostUnreachable), Fault::Unreachable);
        assert_eq!(Fault::of_open(&io::ErrorKind::TimedOut.into()), Fault::Unreachable);
        // No free port is a fault of the tester.
        assert!(!Fault::is_of_server(&io::ErrorKind::AddrNotAvailable.into()));
    }
}
