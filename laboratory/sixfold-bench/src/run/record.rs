//! Record of a run, made from its procedure.

use crate::clock;
use crate::sockets;
use measure::checklist::checklist;
use measure::procedure::Procedure;
use measure::run::{Run, SCHEMA, Settings};

/// Builds the record of a run that began at `started`.
pub fn build(procedure: &Procedure, started: &str, complete: bool) -> Run {
    let plan = procedure.plan();
    let known = procedure.surroundings();
    let mut warnings = known.warnings.clone();
    for (role, host) in &known.hosts {
        warnings.extend(host.warnings.iter().map(|warning| format!("{role}: {warning}")));
    }
    if procedure.rounds() > 0 {
        let what = if plan.device.is_started_by_us() {
            "the device was restarted each time, so it had none of them in its cache"
        } else {
            "the checklist says if the device could still have them in its cache"
        };
        warnings.push(format!(
            "all names of {} were used up {} times, and were used again; {what}",
            plan.names.window,
            procedure.rounds()
        ));
    }
    let mut run = Run {
        schema: SCHEMA,
        tool: format!("sixfold-bench {} (commit {})", env!("CARGO_PKG_VERSION"), env!("SIXFOLD_COMMIT")),
        profile: plan.profile.clone(),
        started: started.to_owned(),
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
            procedure: plan.procedure.clone(),
            bisection: plan.search.bisection,
            validity: plan.trial.validity,
            loss_goals: plan.search.loss_goals.clone(),
            turns: plan.turns.clone(),
            as_shipped: plan.device.as_shipped,
            receive_buffer: if plan.device.as_shipped || !plan.device.is_started_by_us() {
                0
            } else {
                u64::from(sockets::WANTED)
            },
        },
        equipment: known.equipment.clone(),
        participants: known.participants.clone(),
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
