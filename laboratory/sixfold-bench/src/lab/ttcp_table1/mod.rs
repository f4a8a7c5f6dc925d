//! Table 1 of the paper on T/TCP: the time of 1,000 queries in a row over UDP, T/TCP and TCP, at the round trips of a loopback,
//! an Ethernet and an ADSL line, and the transports that came later.
//!
//! The virtual part (`virtual_time.rs`) has no computing time; the measured part (`measured.rs`) sends the packets through
//! two kernels and a link; `encrypted` measures TLS, HTTPS and QUIC over that link; `long` answers above 512 octets, a zone transfer and
//! a lookup that goes on, the uses that the paper has for T/TCP. `paper.rs` holds the paper's numbers, `place.rs` links and hosts, `cost.rs` the cost of packets,
//! `judge.rs` the claims.

mod cost;
mod encrypted;
mod judge;
mod kernel;
mod long;
mod measured;
mod paper;
mod place;
mod presented;
mod virtual_time;

use super::context::Context;
use measured::Measured;
use paper::Row;
use std::time::Duration;

/// The numbers of one transport at one round trip.
#[derive(Clone, Debug)]
struct Cell {
    row: Row,
    round_trip: Duration,
    /// Times of all queries, s.
    times: Vec<f64>,
    /// Time of 1,000 queries in each repetition, s.
    totals: Vec<f64>,
    /// Packets of one query.
    packets: f64,
    /// Octets of one query; none where they were not counted.
    octets: Option<f64>,
    /// CPU time of one query in both hosts and on the link between them, s; none where it was not measured.
    cpu: Option<f64>,
}

impl Cell {
    /// Mean time of 1,000 queries, s.
    fn total(&self) -> f64 {
        self.totals.iter().sum::<f64>() / self.totals.len().max(1) as f64
    }

    /// Lower quartile of the time of a query, s. Other programs on the machine only ever add time, so of two measurements the
    /// quartiles differ less than the medians.
    fn lower_quartile(&self) -> f64 {
        let ordered = measure::statistics::sorted(&self.times);
        measure::statistics::percentile(&ordered, 25.0).unwrap_or(f64::NAN)
    }

    /// Median time of a query, s.
    fn median(&self) -> f64 {
        measure::statistics::median(&measure::statistics::sorted(&self.times)).unwrap_or(f64::NAN)
    }
}

/// The cell of a row at a round trip.
fn find(cells: &[Cell], row: Row, round_trip: Duration) -> Option<&Cell> {
    cells.iter().find(|cell| cell.row == row && cell.round_trip == round_trip)
}

/// Runs the experiment.
///
/// # Errors
///
/// A query fails in virtual time or in the measured part, or the user stops the experiment. Without root the measured part is left out,
/// with a warning.
pub fn run(context: &mut Context) -> Result<(), String> {
    let answer = paper::answer_of_authority()?;
    let in_virtual_time = virtual_time::run(context, &answer)?;
    let measured = match measured::run(context) {
        Ok(measured) => measured,
        Err(why) if why.contains("needs root") => {
            context.warning(format!("The measured part was left out: {why}."));
            Measured::default()
        }
        Err(why) => return Err(why),
    };
    presented::enter(context, &in_virtual_time, &measured.cells, answer.len());
    judge::enter_virtual(context, &in_virtual_time);
    if !measured.cells.is_empty() {
        judge::enter_measured(context, &in_virtual_time, &measured.cells, measured.fast_open);
        cost::enter(context, &measured.cells);
    }
    long::enter_virtual(context)?;
    if let Some(long) = &measured.long {
        long::enter(context, long);
    }
    if let Some(encrypted) = &measured.encrypted {
        encrypted::enter(context, encrypted);
    }
    paper::enter_difference(context, answer.len());
    Ok(())
}
