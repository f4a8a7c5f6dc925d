//! UDP worker: answers the queries at the UDP sockets of one thread, and delays or drops those that a fault concerns.
//! [`Server`](crate::Server) polls one on each of its threads, [`PolledServer`](crate::PolledServer) on its owner's thread.

use crate::counters::{Kind, ServerCounters, ThreadCounters};
use crate::delay_queue::DelayQueue;
use crate::faults::FaultAction;
use crate::limits;
use crate::responder::Responder;
use crate::service::Service;
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
    /// Source ports of the queries since the last tick.
    ports: PortSet,
    /// Time of the next check for dropped datagrams.
    tick: Instant,
}

/// Set of ports: a bit for each, 8 KiB.
struct PortSet {
    bits: Box<[u64; PortSet::WORDS]>,
    is_empty: bool,
}

impl PortSet {
    const WORDS: usize = (u16::MAX as usize + 1) / 64;

    fn new() -> PortSet {
        PortSet { bits: Box::new([0; PortSet::WORDS]), is_empty: true }
    }

    /// Adds a port, and counts it if it is new.
    #[inline]
    fn count(&mut self, port: u16, counters: &ThreadCounters) {
        let (word, bit) = (&mut self.bits[usize::from(port) / 64], 1 << (port % 64));
        if *word & bit == 0 {
            *word |= bit;
            counters.count_port(std::mem::take(&mut self.is_empty));
        }
    }

    fn clear(&mut self) {
        if !self.is_empty {
            self.bits.fill(0);
            self.is_empty = true;
        }
    }
}

impl UdpWorker {
    pub fn new(responder: Responder, service: Arc<Service>, index: usize) -> UdpWorker {
        let waiting = if service.faults.may_delay() { limits::DELAYED } else { 0 };
        let delayed = DelayQueue::new(waiting);
        UdpWorker { responder, service, index, delayed, ports: PortSet::new(), tick: Instant(0) }
    }

    /// Makes the calling thread the one whose CPU time is that of this part.
    pub fn count_cpu_of_this_thread(&self) {
        self.service.counters.threads[self.index].count_cpu_of_this_thread();
    }

    /// Answers the waiting queries and the delayed queries that are due; returns their number. Never blocks.
    #[inline]
    pub fn poll(&mut self) -> usize {
        let now = datapath::now();
        let UdpWorker { responder, service, index, delayed, ports, tick } = self;
        let service: &Service = service;
        let counters = &service.counters.threads[*index];
        let handled = if service.faults.affects_timing() {
            responder.turn(|client, message, frame| {
                ports.count(client.port, counters);
                match service.faults.action(message, true) {
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
                }
            })
        } else {
            responder.turn(|client, message, frame| {
                ports.count(client.port, counters);
                service.answer_datagram(message, counters, frame)
            })
        };
        counters.set_buffers(responder.buffers());
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
            ports.clear();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_counts_once_in_an_interval() {
        let counters = ServerCounters::new(1, Vec::new());
        let mut ports = PortSet::new();
        for interval in [&[1u16, 2, 1, 65_535, 0][..], &[], &[2, 2]] {
            interval.iter().for_each(|port| ports.count(*port, &counters.threads[0]));
            ports.clear();
        }
        let totals: std::collections::BTreeMap<_, _> = counters.totals().collect();
        // Four ports in the first interval, none in the second, one in the third.
        assert_eq!((totals["source_ports"], totals["port_intervals"]), (4 + 1, 2));
    }
}
