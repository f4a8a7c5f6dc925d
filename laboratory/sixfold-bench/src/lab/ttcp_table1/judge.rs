//! Claims of the table.

use super::paper::{ADSL, Row};
use super::{Cell, find};
use crate::lab::context::Context;
use papers::sequential::Transport;
use std::ops::RangeInclusive;

const UDP: Row = Row::Of(Transport::Udp);
const TTCP: Row = Row::Of(Transport::Ttcp);
const TCP: Row = Row::Of(Transport::Tcp);

/// Times of T/TCP, in those of UDP. The paper's: 1.10.
const TTCP_RATIO: RangeInclusive<f64> = 0.0..=1.15;

/// Times of TCP, in those of UDP. The paper's: 2.05.
const TCP_RATIO: RangeInclusive<f64> = 1.85..=2.15;

/// Largest difference of a measured quartile from the median in virtual time: 6.5 ms of 65, for the interfaces, the two kernels
/// and the threads that wake.
const AGREEMENT: f64 = 0.10;

/// Enters the claims on virtual time.
pub fn enter_virtual(context: &mut Context, cells: &[Cell]) {
    let total = |row| find(cells, row, ADSL).map_or(f64::NAN, Cell::total);
    enter_ratio(context, TTCP, TTCP_RATIO, "in virtual time", total(TTCP) / total(UDP));
    enter_ratio(context, TCP, TCP_RATIO, "in virtual time", total(TCP) / total(UDP));
    let packets = |transport| find(cells, Row::Of(transport), ADSL).map_or(f64::NAN, |cell| cell.packets);
    let [udp, ttcp, late, tcp, early] =
        [Transport::Udp, Transport::Ttcp, Transport::TtcpLateFin, Transport::Tcp, Transport::TcpEarlyFin]
            .map(packets);
    context.claim(
        "In virtual time a query takes 2 packets over UDP, 3 over T/TCP, the paper's 5 if the server closes after its answer, \
         and at least the paper's 6 over TCP",
        "another number of packets of the stack",
        format!("{udp:.2}; {ttcp:.2}; {late:.2}; {early:.2} with early FINs, {tcp:.2} by the calls of a socket"),
        udp == 2.0 && ttcp == 3.0 && late == 5.0 && early >= 6.0 && tcp >= 6.0,
    );
}

/// Enters the claims on the measured part. `fast_open`: connections on which the kernel sent data with the SYN.
pub fn enter_measured(context: &mut Context, in_virtual_time: &[Cell], measured: &[Cell], fast_open: u64) {
    let quartile = |row| find(measured, row, ADSL).map_or(f64::NAN, Cell::lower_quartile);
    let ratio = |row| quartile(row) / quartile(UDP);
    let words = "measured by the lower quartile";
    enter_ratio(context, TTCP, TTCP_RATIO, words, ratio(TTCP));
    enter_ratio(context, TCP, TCP_RATIO, words, ratio(TCP));
    enter_ratio(context, Row::FastOpenWarm, TTCP_RATIO, words, ratio(Row::FastOpenWarm));
    enter_ratio(context, Row::FastOpenCold, TCP_RATIO, words, ratio(Row::FastOpenCold));
    let compared = [UDP, TTCP, TCP].map(|row| {
        let ideal = find(in_virtual_time, row, ADSL).map_or(f64::NAN, Cell::median);
        (row.name(), quartile(row), ideal)
    });
    let text = compared
        .map(|(name, real, ideal)| format!("{name} {:.1} ms and {:.1} ms", real * 1e3, ideal * 1e3))
        .join("; ");
    context.claim(
        "At 65 ms the lower quartile of the measured times of a query differs by at most 10 % from the median in virtual time, \
         over UDP, T/TCP and TCP",
        "a quartile that differs by more: the stack behind an interface waits where the model does not",
        text,
        compared.iter().all(|(_, real, ideal)| (real / ideal - 1.0).abs() <= AGREEMENT),
    );
    let packets = |row| find(measured, row, ADSL).map_or(f64::NAN, |cell| cell.packets);
    context.claim(
        "Measured, a query takes 2 packets over UDP (at most one in five more), 3 to 5 over T/TCP and at least 6 over TCP",
        "another number of packets of the interface",
        format!("{:.2}; {:.2}; {:.2}", packets(UDP), packets(TTCP), packets(TCP)),
        // A repeated datagram or an ARP of the kernel may add a few.
        (2.0..2.2).contains(&packets(UDP)) && (3.0..=5.0).contains(&packets(TTCP)) && packets(TCP) >= 6.0,
    );
    let warm: usize =
        measured.iter().filter(|cell| cell.row == Row::FastOpenWarm).map(|cell| cell.times.len()).sum();
    context.claim(
        "The kernel sends the question with the SYN on nearly all connections with Fast Open whose cookie it has",
        "more than 1 of 10 connections that make a handshake first",
        format!("{fast_open} of {warm} connections"),
        fast_open as f64 >= 0.9 * warm as f64,
    );
}

/// Enters the claim on a ratio of times: the time of the row in those of UDP.
fn enter_ratio(context: &mut Context, row: Row, range: RangeInclusive<f64>, words: &str, ratio: f64) {
    let times = match *range.start() {
        0.0 => format!("at most {} times", range.end()),
        low => format!("{low} to {} times", range.end()),
    };
    context.claim(
        format!("At a round trip of 65 ms, {words}, {} takes {times} as long as UDP", row.name()),
        "a ratio outside: one round trip more or fewer moves it by 1",
        format!("{ratio:.3} times"),
        range.contains(&ratio),
    );
}
