//! Cost of a packet: the column of the Ethernet in the paper's Table 1, where the round trip is shorter than the computing time, and UDP won
//! by its two packets.

use super::paper::{ROUND_TRIPS, Row};
use super::{Cell, find};
use crate::lab::context::{Context, figure};
use measure::experiment::{Figure, Origin};
use papers::sequential::Transport;
use std::time::Duration;

/// The round trip of the paper's Ethernet.
const ETHERNET: Duration = ROUND_TRIPS[1];

/// Round trips of a query of a row.
fn round_trips(row: Row) -> u32 {
    match row {
        Row::Of(Transport::Tcp) | Row::FastOpenCold => 2,
        _ => 1,
    }
}

/// Time of a query in the paper beyond its round trips, in microseconds.
fn paper_us(row: Row) -> Option<f64> {
    let round_trips_ms = f64::from(round_trips(row)) * ETHERNET.as_secs_f64() * 1e3;
    // 1,000 queries in seconds are one query in milliseconds.
    row.seconds(ETHERNET).map(|ms| (ms - round_trips_ms) * 1e3)
}

/// Enters the cost of each measured row, and the claims on it.
pub fn enter(context: &mut Context, measured: &[Cell]) {
    let table = "Cost of a query at a round trip of 0.4 ms";
    for cell in measured.iter().filter(|cell| cell.round_trip == ETHERNET) {
        let mut enter = |column: &str, value: f64, unit: &str, paper: Option<f64>, place: &str| {
            context.figure(Figure {
                samples: cell.times.len() as u64,
                paper,
                place: paper.map(|_| place.to_owned()).unwrap_or_default(),
                ..figure(table, cell.row.name(), column, value, unit, Origin::Measured)
            });
        };
        let beyond = cell.lower_quartile() - f64::from(round_trips(cell.row)) * cell.round_trip.as_secs_f64();
        let place = "Table 1 less the round trips";
        enter("time beyond the round trips, lower quartile", beyond * 1e6, "us", paper_us(cell.row), place);
        enter("packets", cell.packets, "packets", cell.row.packets(), "section 5.2");
        if let (Some(octets), Some(cpu)) = (cell.octets, cell.cpu) {
            enter("IP octets", octets, "octets", None, "");
            enter("CPU time of both hosts and the link", cpu * 1e6, "us", None, "");
            enter("CPU time for each packet", cpu * 1e6 / cell.packets, "us", None, "");
        }
    }
    let cell = |transport| find(measured, Row::Of(transport), ETHERNET);
    if let (Some(udp), Some(tcp)) = (cell(Transport::Udp), cell(Transport::Tcp)) {
        let cpu_us = |cell: &Cell| cell.cpu.unwrap_or(f64::NAN) * 1e6;
        context.claim(
"At 0.4 ms a query over TCP takes more packets than one over UDP, and more CPU time in the kernels of both hosts: the \
             paper's reason why UDP wins on the Ethernet",
            "a query over TCP that takes as few packets or as little CPU time as one over UDP",
            format!(
                "UDP {:.2} packets and {:.0} us, TCP {:.2} packets and {:.0} us",
                udp.packets,
                cpu_us(udp),
                tcp.packets,
                cpu_us(tcp)
            ),
            tcp.packets > udp.packets && cpu_us(tcp) > cpu_us(udp),
        );
    }
    context.differences_of("ttcp-table1.cost");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_computing_time_is_its_time_less_the_round_trips() {
        let us = |transport| paper_us(Row::Of(transport)).unwrap();
        assert!((us(Transport::Udp) - 2_000.0).abs() < 1e-6);
        assert!((us(Transport::Ttcp) - 8_300.0).abs() < 1e-6);
        assert!((us(Transport::Tcp) - 8_120.0).abs() < 1e-6);
        assert_eq!(paper_us(Row::FastOpenWarm), None);
    }
}
