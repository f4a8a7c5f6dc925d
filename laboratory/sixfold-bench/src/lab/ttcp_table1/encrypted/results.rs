//! Figures and claims of the encrypted rows.

use super::rows::{EncryptedRow, NOT_OFFERED, Session, UDP};
use super::{Encrypted, EncryptedCell};
use crate::lab::context::{Context, figure};
use measure::experiment::{Figure, Origin, median_interval};
use measure::order::Transport;
use measure::statistics::{median, percentile, sorted};

const TABLE: &str = "One query over encrypted transports at a round trip of 65 ms";

/// Range of the time of a row around its round trips, in times of UDP: 0.15 as for T/TCP and TCP. A handshake adds the computing
/// time of both sides, which is that of a tenth of a round trip where the machine is busy and the programs are not optimized. Half
/// of a round trip would no longer tell the rows apart.
const MARGINS: [f64; 2] = [0.15, 0.25];

/// Largest difference between the packets that the tester counts and those of the link. A connection's last packets come after
/// the tester has read its counters.
const LINK_DIFFERENCE: f64 = 0.15;

impl EncryptedCell {
    /// Lower quartile of the times, s, as for the other rows.
    fn lower_quartile(&self) -> f64 {
        percentile(&sorted(&self.times), 25.0).unwrap_or(f64::NAN)
    }

    /// Median of the times, s.
    fn median(&self) -> f64 {
        median(&sorted(&self.times)).unwrap_or(f64::NAN)
    }

    /// Packets of a query in both directions.
    fn packets_per_query(&self) -> f64 {
        self.traffic.packets_sent + self.traffic.packets_received
    }
}

/// Enters figures and claims.
pub fn enter(context: &mut Context, encrypted: &Encrypted) {
    let cells = &encrypted.cells;
    let Some(udp) = cells.iter().find(|cell| cell.row == UDP) else { return };
    for cell in cells {
        enter_arithmetic(context, cell.row);
        enter_cell(context, cell, udp);
    }
    NOT_OFFERED.into_iter().for_each(|row| enter_arithmetic(context, row));
    claim_round_trips(context, cells, udp);
    claim_sessions(context, cells);
    claim_packets(context, cells);
    context.differences_of("ttcp-table1.encrypted");
    let counted: u64 = cells.iter().map(|cell| cell.packets).sum();
    let difference = (encrypted.link_packets as f64 / counted as f64 - 1.0).abs();
    context.claim(
        "The packets of the encrypted rows that crossed the link differ by at most 15 % from those that the tester counted",
        "a larger difference: packets that the tester does not see, or sees twice",
        format!("{} on the link, {counted} counted", encrypted.link_packets),
        difference <= LINK_DIFFERENCE,
    );
}

/// Enters the round trips of a row.
fn enter_arithmetic(context: &mut Context, row: EncryptedRow) {
    context.figure(Figure {
        samples: 0,
        ..figure(TABLE, row.name, "round trips", f64::from(row.round_trips), "", Origin::Arithmetic)
    });
}

/// Enters the figures of a measured row.
fn enter_cell(context: &mut Context, cell: &EncryptedCell, udp: &EncryptedCell) {
    let samples = cell.times.len() as u64;
    let mut add = |column: &str, value: f64, unit: &str, interval: Option<(f64, f64)>| {
        context.figure(Figure {
            interval,
            samples,
            ..figure(TABLE, cell.row.name, column, value, unit, Origin::Measured)
        });
    };
    let interval = median_interval(&cell.times, 1).map(|(low, high)| (low * 1e3, high * 1e3));
    add("median time", cell.median() * 1e3, "ms", interval);
    add("times UDP (lower quartiles)", cell.lower_quartile() / udp.lower_quartile(), "", None);
    add("packets", cell.packets_per_query(), "packets", None);
    add("IP octets to the server", cell.traffic.octets_sent, "octets", None);
    add("IP octets to the client", cell.traffic.octets_received, "octets", None);
}

/// Enters the claims on times: each row takes its round trips.
fn claim_round_trips(context: &mut Context, cells: &[EncryptedCell], udp: &EncryptedCell) {
    for transport in [Transport::Tls, Transport::Https, Transport::Quic] {
        let rows: Vec<_> = cells.iter().filter(|cell| cell.row.transport == transport).collect();
        let ratio = |cell: &EncryptedCell| cell.lower_quartile() / udp.lower_quartile();
        let observed: Vec<String> =
            rows.iter().map(|cell| format!("{} {:.3} times", cell.row.name, ratio(cell))).collect();
        let expected: Vec<String> =
            rows.iter().map(|cell| format!("{} {}", cell.row.name, cell.row.round_trips)).collect();
        context.claim(
            format!(
                "At a round trip of 65 ms, measured by the lower quartile, a query takes as many times as long as UDP as it has \
                 round trips ({}), at most 0.15 less or 0.25 more",
                expected.join("; ")
            ),
            "a row whose time is a round trip longer or shorter",
            observed.join("; "),
            rows.iter().all(|cell| {
                let excess = ratio(cell) - f64::from(cell.row.round_trips);
                (-MARGINS[0]..=MARGINS[1]).contains(&excess)
            }),
        );
    }
}

/// Enters the claims on sessions: the handshakes are those that the rows name.
fn claim_sessions(context: &mut Context, cells: &[EncryptedCell]) {
    let mut observed = Vec::new();
    let mut holds = true;
    for cell in cells {
        let Some(tls) = &cell.tls else { continue };
        observed.push(format!("{}: {} full, {} resumed", cell.row.name, tls.full, tls.resumed));
        holds &= match cell.row.session {
            Session::Full => (tls.full, tls.resumed) == (cell.queries, 0),
            Session::Open => (tls.full, tls.resumed) == (1, 0),
            Session::Resumed | Session::EarlyData => (tls.full, tls.resumed) == (1, cell.queries - 1),
        };
    }
    context.claim(
        "Each row has the handshakes that it names: every connection but the first one resumes a session where the client may, and \
         none does where it may not",
        "a full handshake where a session could be resumed, or a resumed one in a row of full handshakes",
        observed.join("; "),
        holds,
    );
    let early = |transport, session| {
        let cell = cells.iter().find(|cell| (cell.row.transport, cell.row.session) == (transport, session));
        let tls = cell.and_then(|cell| cell.tls.as_ref());
        tls.map(|tls| (tls.resumed, tls.early_data_sent, tls.early_data_accepted)).unwrap_or_default()
    };
    let quic = early(Transport::Quic, Session::EarlyData);
    let tls = early(Transport::Tls, Session::Resumed);
    context.claim(
        "The server takes early data on each resumed connection over QUIC, and offers none over TLS",
        "early data that is refused over QUIC, or sent over TLS",
        format!("QUIC: {} of {}; TLS: {} sent on {} connections", quic.2, quic.0, tls.1, tls.0),
        quic.0 > 0 && quic.1 == quic.0 && quic.2 == quic.0 && tls.0 > 0 && tls.1 == 0,
    );
}

/// Enters the claim on packets.
fn claim_packets(context: &mut Context, cells: &[EncryptedCell]) {
    let packets = |transport, session| {
        let cell = cells.iter().find(|cell| (cell.row.transport, cell.row.session) == (transport, session));
        cell.map_or(f64::NAN, EncryptedCell::packets_per_query)
    };
    let open = [Transport::Tls, Transport::Https, Transport::Quic].map(|of| packets(of, Session::Open));
    let full = [Transport::Tls, Transport::Https, Transport::Quic].map(|of| packets(of, Session::Full));
    let list = |values: [f64; 3]| values.map(|value| format!("{value:.1}")).join(", ");
    context.claim(
        "On an open connection a query takes 2 to 6 packets over TLS, HTTPS and QUIC; a full handshake with its query takes at \
         least 10 over TLS and HTTPS, and at least 6 over QUIC",
        "packets outside these ranges: acknowledgments or handshakes of their own",
        format!("{} on an open connection; {} with a full handshake", list(open), list(full)),
        open.iter().all(|packets| (1.9..=6.0).contains(packets))
            && full[0] >= 10.0
            && full[1] >= 10.0
            && full[2] >= 6.0,
    );
}
