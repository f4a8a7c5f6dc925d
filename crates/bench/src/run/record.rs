//! From a procedure to the record of a run.

use super::journal::Journal;
use super::laboratory::Laboratory;
use crate::clock;
use measure::checklist::checklist;
use measure::procedure::Procedure;
use measure::run::{Device, Environment, Run, SCHEMA, Settings};
use std::collections::BTreeMap;

/// What the procedure does not know.
pub struct Known {
    started: String,
    hosts: BTreeMap<String, Environment>,
    /// The device as it was last started.
    pub device: Device,
    /// Where the authority listens.
    pub authority: String,
    warnings: Vec<String>,
}

impl Known {
    /// Asks the hosts.
    pub fn of(journal: &Journal, laboratory: &mut Laboratory<'_>) -> Result<Known, String> {
        Ok(Known {
            started: journal.started().to_owned(),
            hosts: laboratory.environments()?,
            device: laboratory.device().clone(),
            authority: String::new(),
            warnings: laboratory.warnings().to_vec(),
        })
    }
}

/// The record.
pub fn run(procedure: &Procedure, known: &Known, complete: bool) -> Run {
    let plan = procedure.plan();
    let mut warnings = known.warnings.clone();
    for (role, host) in &known.hosts {
        warnings.extend(host.warnings.iter().map(|warning| format!("{role}: {warning}")));
    }
    if procedure.rounds() > 0 {
        warnings.push(format!(
            "all names of {} were used up {} times, and names came again; the checklist says whether a device could still know \
             them",
            plan.names.window,
            procedure.rounds()
        ));
    }
    let mut run = Run {
        schema: SCHEMA,
        tool: format!("sixfold-bench {} (commit {})", env!("CARGO_PKG_VERSION"), env!("SIXFOLD_COMMIT")),
        profile: plan.profile.clone(),
        started: known.started.clone(),
        ended: clock::now_utc(),
        complete,
        settings: Settings {
            trial_ms: plan.trial.duration.ms(),
            timeout_ms: plan.trial.timeout.ms(),
            pause_ms: plan.trial.pause.ms(),
            repetitions: plan.search.repetitions,
            precision: plan.search.precision,
            start_qps: plan.search.start,
            max_qps: plan.search.max,
            delta: plan.search.delta,
            names: plan.names.window.to_string(),
            zone: plan.names.zone.clone(),
            prefix: plan.names.prefix.to_string(),
            ttl: plan.names.ttl,
            addresses: plan.names.addresses,
            cname_depth: plan.names.cname_depth,
            warm_up_ms: plan.trial.warm_up.ms(),
            authority: known.authority.clone(),
            confirm: plan.search.confirm,
        },
        device: known.device.clone(),
        hosts: known.hosts.clone(),
        correctness: procedure.correctness().cloned(),
        self_test: procedure.self_test().cloned(),
        trials: procedure.trials().to_vec(),
        results: procedure.results(),
        checklist: Vec::new(),
        warnings,
    };
    run.checklist = checklist(&run);
    run
}
