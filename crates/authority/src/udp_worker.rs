//! UDP worker: answers the queries at the UDP sockets of one thread, and delays or drops those that a fault concerns.
//! [`Server`](crate::Server) polls one on each of its threads, [`PolledServer`](crate::PolledServer) on its owner's thread.

use crate::counters::{Kind, Ledger};
use crate::delay_queue::Delayed;
use crate::faults::Fate;
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
    delayed: Delayed,
    /// Time of the next check for dropped datagrams.
    tick: Instant,
}

impl UdpWorker {
    pub fn new(responder: Responder, service: Arc<Service>, index: usize) -> UdpWorker {
        let waiting = if service.faults.may_delay() { limits::DELAYED } else { 0 };
        UdpWorker { responder, service, index, delayed: Delayed::new(waiting), tick: Instant(0) }
    }

    /// Answers the waiting queries and the delayed queries that are due; returns their number. Never blocks.
    #[inline]
    pub fn turn(&mut self) -> usize {
        let now = datapath::now();
        let UdpWorker { responder, service, index, delayed, tick } = self;
        let service: &Service = service;
        let counters = &service.ledger.threads[*index];
        let handled = if service.faults.touch_time() {
            responder.turn(|client, message, frame| match service.faults.fate(message, true) {
                Fate::Now => service.answer_datagram(message, counters, frame),
                Fate::Later(span) => {
                    if delayed.push(now + span.into(), client, message) {
                        counters.count_delayed();
                    } else {
                        counters.count_alone(Kind::DelayOverflow, None);
                    }
                    0
                }
                Fate::Never(kind, qtype) => {
                    counters.count_alone(kind, Some(qtype));
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
    pub fn wait(&mut self, most: Duration) {
        let mut span = most.into();
        if let Some(due) = self.delayed.deadline() {
            span = (due - datapath::now()).min(span);
        }
        self.responder.wait(span);
    }

    /// The descriptors that are readable when [`UdpWorker::turn`] has work.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.responder.descriptors()
    }

    /// Due time of the next delayed answer.
    pub fn deadline(&self) -> Option<Instant> {
        self.delayed.deadline()
    }

    /// All counters of the server.
    pub fn counters(&self) -> &Ledger {
        &self.service.ledger
    }
}
