//! Server that its owner polls. It has no UDP thread, so a load generator can share one thread, and so one core, with
//! it. [`Server`](crate::Server) polls one part on each of its threads.

use crate::counters::{Kind, Ledger};
use crate::delay_queue::Delayed;
use crate::faults::Fate;
use crate::limits;
use crate::listen::{Bound, Settings, Streams};
use crate::service::Service;
use datapath::Responder;
use engine::Instant;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// The part of a server that one thread serves: its UDP sockets, and the queue of delayed queries.
pub(crate) struct Part {
    responder: Responder,
    service: Arc<Service>,
    /// Index of this part's counters.
    index: usize,
    delayed: Delayed,
    /// Time of the next check for dropped datagrams.
    tick: Instant,
}

impl Part {
    pub fn new(responder: Responder, service: Arc<Service>, index: usize) -> Part {
        let waiting = if service.faults.may_delay() { limits::DELAYED } else { 0 };
        Part { responder, service, index, delayed: Delayed::new(waiting), tick: Instant(0) }
    }

    /// Answers the waiting queries and the delayed queries that are due; returns their number. Never blocks.
    #[inline]
    pub fn turn(&mut self) -> usize {
        let now = datapath::now();
        let Part { responder, service, index, delayed, tick } = self;
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
}

/// A server that answers UDP queries when its owner polls it. TCP has its own threads, which end when this is
/// dropped.
pub struct Turns {
    part: Part,
    addresses: Vec<SocketAddr>,
    _streams: Streams,
}

impl Turns {
    /// Listens on UDP and TCP of every address. Port 0 means any port that is free for both. The number of threads
    /// and their cores in `settings` are ignored.
    pub fn new(listen: &[SocketAddr], settings: &Settings) -> io::Result<Turns> {
        let Bound { addresses, mut parts, streams, .. } = Bound::new(listen, &settings.clone().threads(1))?;
        let part = parts.pop().ok_or_else(|| io::Error::other("no thread to serve"))?;
        Ok(Turns { part, addresses, _streams: streams })
    }

    /// Answers the waiting queries and the delayed queries that are due; returns their number. Never blocks.
    #[inline]
    pub fn turn(&mut self) -> usize {
        self.part.turn()
    }

    /// Waits until [`PolledServer::poll`] has work, at most for `timeout`. For owners without other work.
    pub fn wait(&mut self, most: Duration) {
        self.part.wait(most);
    }

    /// The descriptors that are readable when [`PolledServer::poll`] has work.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.part.responder.descriptors()
    }

    /// Due time of the next delayed answer, on the clock of [`datapath::now`].
    pub fn deadline(&self) -> Option<Instant> {
        self.part.delayed.deadline()
    }

    /// The addresses served, in the order of `listen`, with the chosen ports.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// All counters of the server.
    pub fn counters(&self) -> &Ledger {
        &self.part.service.ledger
    }
}
