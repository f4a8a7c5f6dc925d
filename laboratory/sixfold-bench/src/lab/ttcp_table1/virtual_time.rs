//! The table in virtual time.

use super::Cell;
use super::paper::{ADSL, QUESTION, ROUND_TRIPS, Row};
use crate::lab::context::Context;
use netem::{Delay, Impairments};
use papers::sequential::{Parameters, Transport, run as ask_in_a_row};
use std::time::Duration;

/// Queries of a repetition, as in the paper.
pub const QUERIES: u32 = 1000;

/// Half of the width of the delay of each direction of the ADSL line: round trips from 60 to 70 ms.
const ADSL_JITTER: Duration = Duration::from_micros(2500);

/// All rows at all round trips.
///
/// # Errors
///
/// A question fails, or the user stops the experiment.
pub fn run(context: &Context, answer: &[u8]) -> Result<Vec<Cell>, String> {
    let mut cells = Vec::new();
    for round_trip in ROUND_TRIPS {
        context.progress(&format!("virtual time, round trip {} ms", round_trip.as_secs_f64() * 1e3))?;
        for transport in Transport::ALL {
            cells.push(cell(context, transport, round_trip, answer)?);
        }
        for (row, round_trips) in [(Row::FastOpenWarm, 1), (Row::FastOpenCold, 2)] {
            cells.push(by_arithmetic(row, round_trip, round_trips));
        }
    }
    Ok(cells)
}

/// Link of a round trip, in each direction.
fn link(round_trip: Duration, jitter: Duration) -> Impairments {
    Impairments {
        delay: Delay { mean: round_trip / 2, jitter, ..Delay::default() },
        ..Impairments::default()
    }
}

fn cell(
    context: &Context,
    transport: Transport,
    round_trip: Duration,
    answer: &[u8],
) -> Result<Cell, String> {
    let row = Row::Of(transport);
    let ask = |jitter, seed| {
        let link = link(round_trip, jitter);
        let parameters = Parameters { transport, link, questions: QUERIES, seed, question: &QUESTION };
        let mut respond = |question: &[u8]| [&question[..2], &answer[2..]].concat();
        ask_in_a_row(&parameters, &mut respond).map_err(|error| format!("{}: {error}", row.name()))
    };
    // The link draws the delay of each packet, so packets overtake each other where it varies, which they do not on a line. So
    // packets are counted without variation.
    let exact = ask(Duration::ZERO, context.seed(0))?;
    let mut cell = Cell {
        row,
        round_trip,
        times: Vec::new(),
        totals: Vec::new(),
        packets: exact.packets as f64 / f64::from(QUERIES),
        octets: Some(exact.octets as f64 / f64::from(QUERIES)),
        cpu: None,
    };
    let mut sequences = vec![exact];
    if round_trip == ADSL {
        let repetitions = 1..=context.choose(5, 30);
        let varied = repetitions.map(|repetition| ask(ADSL_JITTER, context.seed(repetition)));
        sequences = varied.collect::<Result<_, _>>()?;
    }
    for sequence in sequences {
        cell.times.extend(sequence.times.iter().map(Duration::as_secs_f64));
        cell.totals.push(sequence.total.as_secs_f64());
    }
    Ok(cell)
}

fn by_arithmetic(row: Row, round_trip: Duration, round_trips: u32) -> Cell {
    let time = (round_trips * round_trip).as_secs_f64();
    Cell {
        row,
        round_trip,
        times: vec![time],
        totals: vec![time * f64::from(QUERIES)],
        packets: f64::NAN,
        octets: None,
        cpu: None,
    }
}
