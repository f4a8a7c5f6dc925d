//! Listeners at the live workers: the traces of operators (`ctl trace`), dnstap, and hits of policy zones for the log. A worker's machine is an engine that may be
//! observed ([`Machine`]); its observer, [`Taps`], exists only while somebody listens.
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

/// The machine of a worker.
pub type Machine = ObservedEngine<Taps>;

/// The listeners at one worker.
#[derive(Default)]
pub struct Taps {
    dnstap: Option<MessageTap>,
    traces: Option<Traces>,
    policy_hits: Option<Arc<PolicyHits>>,
}

impl Taps {
    /// Changes the dnstap output of a machine. The former one hands over what it has.
    pub fn set_dnstap(machine: &mut Machine, tap: Option<MessageTap>) {
        Taps::change(machine, |taps| taps.dnstap = tap);
    }

    /// Adds a trace to a machine.
    pub fn add_trace(machine: &mut Machine, queue: Arc<TraceQueue>) {
        Taps::change(machine, |taps| taps.traces.get_or_insert_default().add(queue));
    }

    /// Changes the queue for the hits of policy zones at a machine.
    pub fn set_policy_hits(machine: &mut Machine, hits: Option<Arc<PolicyHits>>) {
        Taps::change(machine, |taps| taps.policy_hits = hits);
    }

    /// Hands over messages that wait for others, and drops traces that have ended. A worker calls it several times a second.
    pub fn tick(machine: &mut Machine) {
        let Some(taps) = machine.observer() else { return };
        if let Some(dnstap) = &mut taps.dnstap {
            dnstap.flush();
        }
        if taps.traces.as_mut().is_some_and(Traces::drop_ended) {
            Taps::change(machine, |taps| taps.traces = None);
        }
    }

    /// Changes the listeners of a machine, which has none at all if there is nothing left to listen.
    fn change(machine: &mut Machine, change: impl FnOnce(&mut Taps)) {
        if machine.observer().is_none() {
            machine.observe(Some(Taps::default()));
        }
        let Some(taps) = machine.observer() else { return };
        change(taps);
        if taps.dnstap.is_none() && taps.traces.is_none() && taps.policy_hits.is_none() {
            machine.observe(None);
        }
    }
}

impl Observer for Taps {
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
