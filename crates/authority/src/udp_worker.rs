//! UDP worker: answers the queries at the UDP sockets of one thread, and delays or drops those that a fault concerns.
//! [`Server`](crate::Server) polls one on each of its threads, [`PolledServer`](crate::PolledServer) on its owner's thread.

use crate::counters::{Kind, ServerCounters};
use crate::delay_queue::DelayQueue;
use crate::faults::FaultAction;
use crate::limits;
use crate::service::Service;
use datapath::Responder;
use engine::Instant;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// The part of a server that one thread serves: its UDP sockets, and the queue of delayed queries.
pub(crate) struct UdpWorker {
    responder: Responder,
    service: Arc<Service>,
    /// Index of this part's counters.
    index: usize,
    delayed: DelayQueue,
    /// Time of the next check for dropped datagrams.
    tick: Instant,
}

impl UdpWorker {
    pub fn new(responder: Responder, service: Arc<Service>, index: usize) -> UdpWorker {
        let waiting = if service.faults.may_delay() { limits::DELAYED } else { 0 };
        UdpWorker { responder, service, index, delayed: DelayQueue::new(waiting), tick: Instant(0) }
    }

    /// Answers the waiting queries and the delayed queries that are due; returns their number. Never blocks.
    #[inline]
    pub fn poll(&mut self) -> usize {
        let now = datapath::now();
        let UdpWorker { responder, service, index, delayed, tick } = self;
        let service: &Service = service;
        let counters = &service.counters.threads[*index];
        let handled = if service.faults.affects_timing() {
            responder.turn(|client, message, frame| match service.faults.action(message, true) {
                FaultAction::Answer => service.answer_datagram(message, counters, frame),
                FaultAction::Delay(span) => {
                    if delayed.push(now + span.into(), client, message) {
                        counters.count_delayed();
                    } else {
                        counters.count_single_writer(Kind::DelayOverflow, None);
                    }
                    0
                }
                FaultAction::Drop(kind, qtype) => {
                    counters.count_single_writer(kind, Some(qtype));
                    0
                }
            })
        } else {
            responder.turn(|_, message, frame| service.answer_datagram(message, counters, frame))
        };
        let mut late = 0;
        while let Some(waiting) = delayed.take(now) {
            late += 1;
            responder
                .answer(&waiting.client, |frame| service.answer_datagram(waiting.query(), counters, frame));
        }
        if late > 0 {
            responder.flush();
        }
        if now >= *tick {
            *tick = now + datapath::TICK;
            responder.count_drops();
        }
        handled + late
    }

    /// Waits for the next query or delayed answer, at most for `timeout`.
    pub fn wait(&mut self, timeout: Duration) {
        let mut span = timeout.into();
        if let Some(due) = self.delayed.deadline() {
            span = (due - datapath::now()).min(span);
        }
        self.responder.wait(span);
    }

    /// The descriptors that are readable when [`UdpWorker::poll`] has work.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.responder.descriptors()
    }

    /// Due time of the next delayed answer.
    pub fn deadline(&self) -> Option<Instant> {
        self.delayed.deadline()
    }

    /// All counters of the server.
    pub fn counters(&self) -> &ServerCounters {
        &self.service.counters
    }
}
