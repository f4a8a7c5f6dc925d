//! Listeners at the live workers: the traces of operators (`ctl trace`), dnstap, and hits of policy zones for the log. A worker's machine is an engine that may be
//! observed ([`WorkerEngine`]); its observer, [`Observers`], exists only while somebody listens.
//!
//! Everything here runs on the worker, so it neither blocks nor makes system calls: what it hears goes into bounded queues, and what
//! finds no room is counted. `trace/`, `dnstap_output.rs` and `policy_hits.rs` are the other ends.

mod messages;
mod policy_hits;
mod running_traces;
mod traces;

pub use messages::MessageTap;
pub use policy_hits::{PolicyHit, PolicyHits};
pub use running_traces::RunningTraces;
pub use traces::{Filter, TraceQueue};

use engine::explain::Policy;
use engine::trace::{Subject, TraceEvent};
use engine::{Client, Moment, ObservedEngine, ObservedLink, Observer};
use std::sync::Arc;
use traces::Traces;

/// The engine of a worker, which may be observed.
pub type WorkerEngine = ObservedEngine<Observers>;

/// The listeners at one worker.
#[derive(Default)]
pub struct Observers {
    dnstap: Option<MessageTap>,
    traces: Option<Traces>,
    policy_hits: Option<Arc<PolicyHits>>,
}

impl Observers {
    /// Changes the dnstap output of a machine. The former one hands over what it has.
    pub fn set_dnstap(machine: &mut WorkerEngine, tap: Option<MessageTap>) {
        Observers::change(machine, |observers| observers.dnstap = tap);
    }

    /// Adds a trace to a machine.
    pub fn add_trace(machine: &mut WorkerEngine, queue: Arc<TraceQueue>) {
        Observers::change(machine, |observers| observers.traces.get_or_insert_default().add(queue));
    }

    /// Changes the queue for the hits of policy zones at a machine.
    pub fn set_policy_hits(machine: &mut WorkerEngine, hits: Option<Arc<PolicyHits>>) {
        Observers::change(machine, |observers| observers.policy_hits = hits);
    }

    /// Hands over messages that wait for others, and drops traces that have ended. A worker calls it several times a second.
    pub fn tick(machine: &mut WorkerEngine) {
        let Some(observers) = machine.observer() else { return };
        if let Some(dnstap) = &mut observers.dnstap {
            dnstap.flush();
        }
        if observers.traces.as_mut().is_some_and(Traces::drop_ended) {
            Observers::change(machine, |observers| observers.traces = None);
        }
    }

    /// Changes the listeners of a machine, which has none at all if there is nothing left to listen.
    fn change(machine: &mut WorkerEngine, change: impl FnOnce(&mut Observers)) {
        if machine.observer().is_none() {
            machine.observe(Some(Observers::default()));
        }
        let Some(observers) = machine.observer() else { return };
        change(observers);
        if observers.dnstap.is_none() && observers.traces.is_none() && observers.policy_hits.is_none() {
            machine.observe(None);
        }
    }
}

impl Observer for Observers {
    fn query(&mut self, at: Moment, from: &Client, message: &[u8], policy: impl FnOnce() -> Arc<Policy>) {
        if let Some(dnstap) = &mut self.dnstap {
            dnstap.query(at, from, message);
        }
        if let Some(traces) = &mut self.traces {
            traces.query(at, from, message, policy);
        }
    }

    fn end_query(&mut self, _: Moment) {
        if let Some(traces) = &mut self.traces {
            traces.end_query();
        }
    }

    fn answer(&mut self, at: Moment, to: &Client, message: &[u8]) {
        if let Some(dnstap) = &mut self.dnstap {
            dnstap.answer(at, to, message);
        }
        if let Some(traces) = &mut self.traces {
            traces.answer(at, message);
        }
    }

    fn ask(&mut self, at: Moment, link: &ObservedLink, message: &[u8]) {
        if let Some(dnstap) = &mut self.dnstap {
            dnstap.ask(at, link, message);
        }
        if let Some(traces) = &mut self.traces {
            traces.ask(at, link);
        }
    }

    fn reply(&mut self, at: Moment, link: &ObservedLink, message: &[u8]) {
        if let Some(dnstap) = &mut self.dnstap {
            dnstap.reply(at, link, message);
        }
    }

    #[inline]
    fn event<'n>(&mut self, at: Moment, subject: Subject, event: impl FnOnce() -> TraceEvent<'n>) {
        if self.traces.is_none() && self.policy_hits.is_none() {
            return;
        }
        let event = event();
        if let Some(hits) = &self.policy_hits {
            hits.note(&event);
        }
        if let Some(traces) = &mut self.traces {
            traces.event(at, subject, &event);
        }
    }
}
