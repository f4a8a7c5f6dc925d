//! Hits of response policy zones in the log, at the level `debug`.
//!
//! The workers write no log: each puts its hits into a bounded queue (`observers/policy_hits.rs`), which the control thread empties once a
//! second. At other levels, and without policy zones, the workers have no such tap.

use crate::config::{Config, Level};
use crate::escape::name;
use crate::observers::{Observers, PolicyHit, PolicyHits, WorkerEngine};
use datapath::Shared;
use std::sync::Arc;

/// Adds the tap to the workers, or removes it.
///
/// # Errors
///
/// The text for the operator: the mailbox of a worker is full. The other workers have the change.
pub fn configure(
    hits: &Arc<PolicyHits>,
    config: &Config,
    workers: &Shared<WorkerEngine>,
) -> Result<(), String> {
    let is_logged =
        matches!(config.log.level, Level::Debug | Level::Trace) && !config.filter.zones.is_empty();
    let mut is_everywhere = true;
    for worker in 0..workers.workers() {
        let hits = is_logged.then(|| Arc::clone(hits));
        let task = move |machine: &mut WorkerEngine, _| Observers::set_policy_hits(machine, hits);
        is_everywhere &= workers.mailbox(worker).submit(task).is_ok();
    }
    match is_everywhere {
        true => Ok(()),
        false => {
            Err("a worker cannot take the change of `log.level` for hits of policy zones now; reload again"
                .to_owned())
        }
    }
}

/// Writes the lines about the hits since the last call.
pub fn log(hits: &PolicyHits) {
    let (hits, left_out) = hits.take();
    hits.iter().for_each(write);
    if left_out > 0 {
        tracing::debug!(
            event = "policy_hits_omitted",
            count = left_out,
            "{left_out} more hits of policy zones in this second are left out"
        );
    }
}

fn write(hit: &PolicyHit) {
    let PolicyHit { client, name: asked, qtype, decision } = hit;
    let (client, asked) = (client.to_canonical(), name(asked));
    let source = decision.rule_source();
    tracing::debug!(
        event = "policy_hit",
        zone = source.map(|source| name(&source.zone)),
        file = source.map(|source| &*source.file).filter(|file| !file.is_empty()),
        line = source.and_then(|source| source.line),
        trigger = source.map(|source| &*source.trigger),
        trigger_kind = source.map(|source| source.kind),
        client = %client,
        name = asked,
        "type" = %qtype,
        action = decision.code(),
        "{asked} {qtype} from {client}: {decision}"
    );
}
