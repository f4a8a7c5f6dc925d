//! Memory that validation takes: Sixfold with a small cache, which is full in each run, with validation and without.

use crate::perf::section::{Bound, Goal, cell, summary, table_of};
use crate::perf::series::{self, Timing};
use crate::perf::tester::{Answers, Names, Pace, Tester};
use crate::perf::validation::contender::Contender;
use crate::perf::validation::question::check_validation;
use report::table::Table;
use serde_json::{Value, json};
use servers::TrustAnchor;
use std::io;

/// Size of the cache in MiB.
const CACHE_MIB: u32 = 4;

/// Unanswered queries of the load: with fewer, records of pending validations are never touched.
const OUTSTANDING: u64 = 4096;

/// Most memory that validation takes for a worker, in MiB.
const GOAL_MIB: f64 = 8.0;

/// Memory in MiB, round by round: when the device is ready, and at most under the load.
#[derive(Debug, Default)]
pub struct Footprint {
    ready: Vec<f64>,
    peak: Vec<f64>,
}

impl Footprint {
    /// Measures a round of a device with one worker.
    ///
    /// # Errors
    ///
    /// The device cannot be started, does not validate, or a socket fails.
    pub fn measure(
        &mut self,
        contender: &Contender<'_>,
        (tester, anchor): (&mut Tester, &TrustAnchor),
        timing: Timing,
    ) -> io::Result<()> {
        tester.start_over();
        let mut setup = contender.setup(anchor);
        setup.options.push(format!("cache.size = \"{CACHE_MIB}MiB\""));
        let running = series::start(tester, contender.device, setup)?;
        if contender.validates {
            check_validation(tester, running.address)?;
        }
        self.ready.push(running.memory_mib().0);
        let load = timing.load(Pace::Closed(OUTSTANDING), Names::Fresh(Answers::Synthesized));
        tester.run(running.address, &load, || running.usage())?;
        self.peak.push(running.memory_mib().1);
        Ok(())
    }
}

/// Table of Sixfold without validation and with it.
pub fn table(trusting: &Footprint, validating: &Footprint) -> Table {
    let row = |name: &str, one: &Footprint| vec![name.to_owned(), cell(&one.ready, 1), cell(&one.peak, 1)];
    table_of(
        format!(
            "resident memory, one worker, a full cache of {CACHE_MIB} MiB, {OUTSTANDING} queries outstanding"
        ),
        &["", "ready, MiB", "most, MiB"],
        vec![row("sixfold, trust", trusting), row("sixfold, validate", validating)],
    )
}

/// Goal for the difference.
pub fn goal(trusting: &Footprint, validating: &Footprint) -> Goal {
    let more: Vec<f64> =
        validating.peak.iter().zip(&trusting.peak).map(|(with, without)| with - without).collect();
    Goal {
        ratio: "MiB more with validation, one worker".to_owned(),
        bound: Bound::AtMost(GOAL_MIB),
        measured: summary(&more),
    }
}

/// All measurements.
pub fn json(trusting: &Footprint, validating: &Footprint) -> Value {
    let one = |one: &Footprint| json!({"ready_mib": one.ready, "peak_mib": one.peak});
    json!({"trust": one(trusting), "validate": one(validating)})
}
