//! The rows, with their round trips by arithmetic.

use super::super::paper::ADSL;
use measure::order::{Lanes, Pace, Transport};
use std::time::Duration;

/// State of the client before a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Session {
    /// Nothing is known of the server: a new connection with a full handshake.
    Full,
    /// A ticket of an earlier connection: a new connection that resumes its session (RFC 8446 section 2.2).
    Resumed,
    /// A ticket, and the query leaves as early data (RFC 8446 section 2.3).
    EarlyData,
    /// An open connection; or none is needed.
    Open,
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncryptedRow {
    /// Name in tables.
    pub name: &'static str,
    /// Transport.
    pub transport: Transport,
    /// State of the client.
    pub session: Session,
    /// Round trips of a query.
    pub round_trips: u32,
}

const fn row(name: &'static str, transport: Transport, session: Session, round_trips: u32) -> EncryptedRow {
    EncryptedRow { name, transport, session, round_trips }
}

/// UDP to the same server: the unit of the other rows.
pub const UDP: EncryptedRow = row("UDP", Transport::Udp, Session::Open, 1);

/// The measured rows. TLS and HTTPS take a round trip for TCP and one for TLS 1.3 (RFC 8446 section 2), also if it resumes a
/// session; HTTP/2 adds none, as the client sends its preface and the request together (RFC 9113 section 3.4). QUIC takes one for
/// both (RFC 9001 section 4.1). The query and its answer take one more, except as early data, which leaves with the first packet.
pub const MEASURED: [EncryptedRow; 11] = [
    UDP,
    row("TLS, full handshake", Transport::Tls, Session::Full, 3),
    row("TLS, resumed", Transport::Tls, Session::Resumed, 3),
    row("TLS, one connection", Transport::Tls, Session::Open, 1),
    row("HTTPS, full handshake", Transport::Https, Session::Full, 3),
    row("HTTPS, resumed", Transport::Https, Session::Resumed, 3),
    row("HTTPS, one connection", Transport::Https, Session::Open, 1),
    row("QUIC, full handshake", Transport::Quic, Session::Full, 2),
    row("QUIC, resumed", Transport::Quic, Session::Resumed, 2),
    row("QUIC, resumed, early data", Transport::Quic, Session::EarlyData, 1),
    row("QUIC, one connection", Transport::Quic, Session::Open, 1),
];

/// Rows that the server does not offer, for their arithmetic alone: its TLS takes no early data, which can be replayed.
pub const NOT_OFFERED: [EncryptedRow; 2] = [
    row("TLS, resumed, early data (not offered)", Transport::Tls, Session::EarlyData, 2),
    row("HTTPS, resumed, early data (not offered)", Transport::Https, Session::EarlyData, 2),
];

impl EncryptedRow {
    /// The measured row of a full handshake over this transport.
    pub fn full(self) -> Option<EncryptedRow> {
        MEASURED.into_iter().find(|row| row.transport == self.transport && row.session == Session::Full)
    }

    /// True if the first query of its load is the row's own; else it has the full handshake that the others build on.
    pub fn begins_at_once(self) -> bool {
        self.transport == Transport::Udp || self.session == Session::Full
    }

    /// True if its connections resume sessions.
    pub fn resumes(self) -> bool {
        matches!(self.session, Session::Resumed | Session::EarlyData)
    }

    /// True if its client sends early data where the server takes it. The resumed row of TLS does, to see that it is not taken.
    pub fn tries_early_data(self) -> bool {
        self.session == Session::EarlyData
            || (self.session == Session::Resumed && self.transport == Transport::Tls)
    }

    /// Pace and duration of a load of about `queries` queries after the first one, without waits but those of the link. Each query
    /// leaves after the last answer. Only with early data it leaves in a slower rhythm: tickets come one round trip after the
    /// answer, so a query that follows at once may find none.
    pub fn pace(self, queries: u32) -> (Pace, Duration) {
        if self.session == Session::EarlyData {
            let gap = 3 * ADSL;
            return (Pace::Open { rate_qps: 1.0 / gap.as_secs_f64(), burst: 1 }, (queries + 1) * gap);
        }
        let first = self.full().map_or(1, |full| full.round_trips);
        // The last query begins in the middle of its time, whatever the machine has added to the others.
        let duration = ADSL * first + ADSL * self.round_trips * queries - ADSL * self.round_trips / 2;
        (Pace::Closed { outstanding: 1 }, duration)
    }

    /// Connections of the load.
    pub fn lanes(self) -> Lanes {
        let connection_per_query = self.session != Session::Open;
        Lanes { ports: 1, connections: 1, connection_per_query, ..Lanes::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_but_udp_has_a_row_with_the_full_handshake_of_its_transport() {
        for row in MEASURED {
            let full = row.full().map(|full| full.round_trips);
            let expected = match row.transport {
                Transport::Udp => None,
                Transport::Quic => Some(2),
                _ => Some(3),
            };
            assert_eq!(full, expected, "{}", row.name);
        }
    }

    #[test]
    fn a_load_of_four_queries_ends_in_the_middle_of_the_fourth_after_the_first() {
        // TLS: 3 round trips for the first query, then 3 x 3, and half of 3.
        let (pace, duration) = MEASURED[2].pace(4);
        assert_eq!(pace, Pace::Closed { outstanding: 1 });
        assert_eq!(duration, Duration::from_micros(877_500));
    }
}
