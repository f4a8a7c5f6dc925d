//! Probes: queries for the NS records of the root that check whether a server is alive (see `circuit_breaker.rs`).

use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::context::Context;
use crate::interface::Outbox;
use crate::limits::TRIES;
use crate::message::question::{QueryFlags, Question};
use crate::upstream::Upstream;
use crate::upstream::circuit_breaker::Cause;
use crate::upstream::in_flight::Wait;
use crate::upstream::retry::NextAttempt;
use wire::{Class, Type};

impl Upstream {
    /// Sends a probe to a server.
    pub(super) fn probe(&mut self, server: u16, cx: &mut Context<'_, impl Outbox>) {
        let root = [0u8];
        let question = Question {
            name: &root,
            hash: self.key.hash(&root),
            qtype: Type::NS,
            class: Class::IN,
            query_flags: QueryFlags::RD.with(QueryFlags::PROBE, true),
            subnet: None,
        };
        match self.prepare(&question) {
            Some(index) => self.send_to(index, server, cx),
            None => self.on_probe_failed(server, cx.now),
        }
    }

    /// Repeats a query of a probe that was not answered, until the ceiling is over, so that late replies count.
    pub(super) fn continue_probe(&mut self, index: Index, cx: &mut Context<'_, impl Outbox>) -> NextAttempt {
        let outbound = &self.outbound_queries[index];
        let Some(&first) = outbound.attempts().first() else { return NextAttempt::Failed };
        let is_over = cx.now - first.sent >= self.parameters.timeout;
        let server = &self.servers.list[usize::from(first.server)];
        if !is_over && outbound.wait != Wait::Unsent && outbound.attempts().len() < TRIES && server.configured
        {
            self.send_to(index, first.server, cx);
            return NextAttempt::Wait;
        }
        self.on_probe_failed(first.server, cx.now);
        NextAttempt::Failed
    }

    /// Records a failed probe.
    fn on_probe_failed(&mut self, server: u16, now: Instant) {
        let (urgent, jitter) = (self.servers.is_urgent(server), self.random.bits());
        self.servers.list[usize::from(server)].breaker.on_probe_failed(now, urgent, jitter);
    }

    /// Records a reply to a probe. `failure`: its cause, if the reply is a failure all the same.
    pub(super) fn on_probe_reply(&mut self, server: u16, failure: Option<Cause>, now: Instant) {
        let jitter = self.random.bits();
        let breaker = &mut self.servers.list[usize::from(server)].breaker;
        if let Some(cause) = failure {
            breaker.on_error(cause, now);
        }
        breaker.on_probe_reply(now, failure.is_some(), jitter);
    }
}
