//! Figures and claims of the uses of T/TCP.

use super::transfer;
use super::{Long, LongCell};
use crate::lab::context::{Context, figure};
use crate::lab::ttcp_table1::paper::ADSL;
use measure::experiment::{Figure, Origin, median_interval};
use netem::{Delay, Impairments};
use papers::sequential::{Parameters, Transport, run as ask_in_a_row};
use std::ops::RangeInclusive;

/// Tables.
const ANSWERS: &str = "An answer above 512 octets";
const TRANSFERS: &str = "A zone transfer of 12,694 octets";
const LOOKUPS: &str = "A lookup that goes on to an upstream";

/// Times of the way in round trips: what it takes by arithmetic, and at most 0.3 more for each, 20 ms of 65, for the hosts, the relay and
/// the threads that wake. It stays below one round trip more.
fn round_trips(number: u32) -> RangeInclusive<f64> {
    f64::from(number) * 0.99..=f64::from(number) * 1.3
}

/// Enters the zone transfer in virtual time: both transports on one stack.
///
/// # Errors
///
/// A question fails in virtual time.
pub fn enter_virtual(context: &mut Context) -> Result<(), String> {
    let total = |transport: Transport| {
        let link =
            Impairments { delay: Delay { mean: ADSL / 2, ..Delay::default() }, ..Impairments::default() };
        let parameters =
            Parameters { transport, link, questions: 10, seed: 1, question: &transfer::QUESTION };
        let sequence = ask_in_a_row(&parameters, &mut transfer::message);
        sequence.map_err(|error| format!("zone transfer in virtual time, {transport:?}: {error}"))
    };
    let mut times = Vec::new();
    for (transport, name) in [(Transport::Ttcp, "AXFR over T/TCP"), (Transport::Tcp, "AXFR over TCP")] {
        let sequence = total(transport)?;
        let each = sequence.total.as_secs_f64() / sequence.times.len() as f64;
        let of_each = |count: u64| count as f64 / sequence.times.len() as f64;
        for (column, value, unit) in [
            ("time, virtual", each * 1e3, "ms"),
            ("packets, virtual", of_each(sequence.packets), "packets"),
            ("IP octets, virtual", of_each(sequence.octets), "octets"),
        ] {
            context.figure(Figure {
                samples: sequence.times.len() as u64,
                ..figure(TRANSFERS, name, column, value, unit, Origin::Virtual)
            });
        }
        times.push(each);
    }
    let saved = (times[1] - times[0]) / ADSL.as_secs_f64();
    context.claim(
"In virtual time a zone transfer over T/TCP takes one round trip less than over TCP, on one stack with one first window",
        "a difference of another number of round trips",
        format!("{saved:.4} round trips"),
        (saved - 1.0).abs() < 1e-6,
    );
    Ok(())
}

/// Enters the measured parts.
pub fn enter(context: &mut Context, long: &Long) {
    for (table, cells) in [(ANSWERS, &long.answers), (TRANSFERS, &long.transfers), (LOOKUPS, &long.lookups)] {
        for cell in cells {
            enter_cell(context, table, cell);
        }
    }
    claim_round_trips(context, "An answer above 512 octets", &long.answers);
    claim_round_trips(context, "A zone transfer of 12,694 octets", &long.transfers);
    claim_round_trips(context, "A lookup of a client beside its relay", &long.lookups);
    claim_packets(context, &long.answers);
    context.differences_of("ttcp-table1.long");
}

fn enter_cell(context: &mut Context, table: &str, cell: &LongCell) {
    let round_trip = format!("{} ms", cell.round_trip.as_secs_f64() * 1e3);
    let mut enter = |column: &str, value: f64, unit: &str, interval: Option<(f64, f64)>| {
        context.figure(Figure {
            interval,
            samples: cell.times.len() as u64,
            ..figure(table, cell.name, &format!("{column}, {round_trip}"), value, unit, Origin::Measured)
        });
    };
    let ordered = measure::statistics::sorted(&cell.times);
    let median = measure::statistics::median(&ordered).unwrap_or(f64::NAN);
    let interval = median_interval(&cell.times, 1).map(|(low, high)| (low * 1e3, high * 1e3));
    enter("median", median * 1e3, "ms", interval);
    enter("lower quartile", cell.lower_quartile() * 1e3, "ms", None);
    enter("packets", cell.packets, "packets", None);
    enter("IP octets", cell.octets, "octets", None);
}

/// The cells at the round trip of the ADSL line.
fn at_adsl(cells: &[LongCell]) -> impl Iterator<Item = &LongCell> {
    cells.iter().filter(|cell| cell.round_trip == ADSL)
}

/// Claim: the times are the round trips of the ways.
fn claim_round_trips(context: &mut Context, what: &str, cells: &[LongCell]) {
    let measured = |cell: &LongCell| cell.lower_quartile() / ADSL.as_secs_f64();
    let said: Vec<String> = at_adsl(cells)
        .map(|cell| format!("{} {:.3} of {}", cell.name, measured(cell), cell.round_trips))
        .collect();
    let ways: Vec<String> =
        at_adsl(cells).map(|cell| format!("{} {}", cell.round_trips, cell.name)).collect();
    context.claim(
        format!(
            "{what} at 65 ms takes, by the lower quartile, these round trips and at most 0.3 more for each: {}",
            ways.join("; ")
        ),
        "a way whose queries take a round trip more or less",
        said.join("; "),
        at_adsl(cells).all(|cell| round_trips(cell.round_trips).contains(&measured(cell))),
    );
}

/// Claim: T/TCP after a truncated answer takes fewer packets than TCP.
fn claim_packets(context: &mut Context, cells: &[LongCell]) {
    let packets =
        |name: &str| at_adsl(cells).find(|cell| cell.name == name).map_or(f64::NAN, |cell| cell.packets);
    let (ttcp, tcp) = (packets("UDP, TC, then T/TCP"), packets("UDP, TC, then TCP"));
    context.claim(
        "After a truncated answer T/TCP takes fewer packets than TCP",
        "as many or more packets over T/TCP",
        format!("{ttcp:.2} and {tcp:.2} packets with those over UDP"),
        ttcp < tcp,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_told_from_one_with_a_round_trip_more_or_less() {
        for number in 1..=3 {
            let range = round_trips(number);
            assert!(range.contains(&f64::from(number)) && range.contains(&(f64::from(number) + 0.1)));
            assert!(!range.contains(&f64::from(number + 1)) && !range.contains(&f64::from(number - 1)));
        }
    }

    #[test]
    fn the_title_has_the_octets_of_the_transfer() {
        let octets = transfer::message(&transfer::QUESTION).len() as u64;
        assert!(TRANSFERS.contains(&measure::units::grouped(octets)), "{octets}");
        assert_eq!(std::time::Duration::from_millis(65), ADSL);
    }
}
