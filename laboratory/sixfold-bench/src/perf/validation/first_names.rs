//! Time and upstream questions for the first name of a signed zone that the device does not know yet, and for the second name, with an
//! authority that answers after 20 ms. Questions come one by one, so nothing waits for a core.

use crate::perf::limits;
use crate::perf::section::{Bound, Goal, cell, summary, table_of};
use crate::perf::series;
use crate::perf::tester::Tester;
use crate::perf::validation::contender::Contender;
use crate::perf::validation::question::{Asker, check_validation};
use crate::perf::validation::zones::{Zones, address, name_in};
use authority::{Faults, Settings, Source};
use report::table::Table;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use wire::Type;

/// Time after which the authority answers.
const DELAY: Duration = Duration::from_millis(20);

/// Goals: two round trips and a millisecond, three questions more than without validation, and none for later names.
const GOAL_MS: f64 = 41.0;
const GOAL_QUESTIONS: f64 = 3.0;

/// Measurements of a device: milliseconds and upstream questions of each first name, and of each second name.
#[derive(Debug, Default)]
struct Measured {
    ms: [Vec<f64>; 2],
    questions: [Vec<f64>; 2],
}

/// Result of all devices.
pub struct FirstNames(Vec<(String, Measured)>);

/// Measures the devices in turn, in rounds, each with a fresh authority whose zones it has not seen.
///
/// # Errors
///
/// A device cannot be started, does not validate, or answers wrongly.
pub fn measure(contenders: &[Contender<'_>], rounds: usize) -> io::Result<FirstNames> {
    let zones = Zones::new(None, 0, limits::VALIDATION_ZONES + 1)?;
    let anchor = zones.trust_anchor();
    let faults = Faults::default().delay(DELAY, Duration::ZERO);
    let settings = Settings::new(Arc::new(zones) as Arc<dyn Source>).faults(faults);
    let mut tester = Tester::serving(&settings, crate::perf::names::NAMES)?;
    let mut all: Vec<_> = contenders.iter().map(|one| (one.name(), Measured::default())).collect();
    for round in 1..=rounds {
        for (contender, (name, measured)) in contenders.iter().zip(&mut all) {
            eprintln!("validation: first names, round {round} of {rounds}, {name}");
            let running = series::start(&mut tester, contender.device, contender.setup(&anchor))?;
            if contender.validates {
                check_validation(&mut tester, running.address)?;
            }
            let mut asker = Asker::new(running.address)?;
            for zone in 1..=limits::VALIDATION_ZONES {
                for (place, label) in ["a", "b"].into_iter().enumerate() {
                    let before = tester.asked();
                    let reply = asker.ask(&mut tester, (&name_in(zone, label), Type::AAAA), false)?;
                    if !reply.is_synthesized(address(zone)) {
                        let wrong = format!("{name} answers wrongly: {:02x?}", reply.message);
                        return Err(io::Error::other(wrong));
                    }
                    measured.ms[place].push(reply.after.as_secs_f64() * 1e3);
                    measured.questions[place].push((tester.asked() - before) as f64);
                }
            }
        }
    }
    Ok(FirstNames(all))
}

impl FirstNames {
    /// Table of all devices.
    pub fn table(&self) -> Table {
        let row = |(name, measured): &(String, Measured)| {
            let Measured { ms: [first, second], questions: [asked_first, asked_second] } = measured;
            let cells = [cell(first, 1), cell(asked_first, 0), cell(second, 1), cell(asked_second, 0)];
            [&[name.clone()][..], &cells].concat()
        };
        table_of(
            format!("names of signed zones that are new, authority at {} ms", DELAY.as_millis()),
            &["device", "first name, ms", "questions", "second name, ms", "questions"],
            self.0.iter().map(row).collect(),
        )
    }

    /// Goals of Sixfold: places of it in the list, with validation and without.
    pub fn goals(&self, validating: Option<usize>, trusting: Option<usize>) -> Vec<Goal> {
        let of = |place: Option<usize>| place.map(|place| &self.0[place].1);
        let more = |which: usize| {
            let median = |place| of(place).and_then(|one| summary(&one.questions[which]));
            let (with, without) = (median(validating)?, median(trusting)?);
            summary(&[with.median - without.median])
        };
        let goal = |ratio: &str, bound, measured| Goal {
            ratio: format!("{ratio} of a signed zone that is new"),
            bound: Bound::AtMost(bound),
            measured,
        };
        vec![
            goal("ms, first name", GOAL_MS, of(validating).and_then(|one| summary(&one.ms[0]))),
            goal("upstream questions more than without validation, first name", GOAL_QUESTIONS, more(0)),
            goal("upstream questions more than without validation, second name", 0.0, more(1)),
        ]
    }

    /// All measurements.
    pub fn json(&self) -> Value {
        let one = |measured: &Measured| {
            json!({"first_ms": measured.ms[0], "first_questions": measured.questions[0],
                   "second_ms": measured.ms[1], "second_questions": measured.questions[1]})
        };
        self.0.iter().map(|(name, measured)| (name.clone(), one(measured))).collect()
    }
}
