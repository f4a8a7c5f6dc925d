//! The outbox of a worker: it queues the answers and queries of the machine, and sends them at the end of the turn.

use crate::counters::{Counter, Counters};
use crate::listen::response_batch::ResponseBatch;
use crate::upstream::links::Links;
use crate::worker::mailbox::StreamSink;
#[cfg(feature = "xdp")]
use crate::worker::replies::Replies;
use crate::worker::signature_threads::SignatureThreads;
use engine::{Client, Instant, Link, Outbox, SignedData, Transport, VerificationId};
use std::net::SocketAddr;
use std::sync::Arc;
#[cfg(feature = "xdp")]
use xdp::Route;

/// The outbox with the sockets of one worker.
pub(super) struct SocketOutbox<M, S> {
    pub(super) response_batches: Vec<ResponseBatch>,
    pub(super) links: Links,
    /// Answers of this turn.
    pub(super) answers: u64,
    pub(super) sink: S,
    /// The frame in which the machine writes answers to streams.
    pub(super) stream_frame: Box<[u8]>,
    pub(super) counters: Arc<Counters>,
    /// The threads that verify signatures, and the number of the worker that gets the outcomes.
    pub(super) signature_threads: (Arc<SignatureThreads<M>>, usize),
    /// The queues through which answers to queries in frames leave.
    #[cfg(feature = "xdp")]
    pub(super) replies: Replies,
}

impl<M: Send + 'static, S: StreamSink> Outbox for SocketOutbox<M, S> {
    #[inline]
    fn answer_frame(&mut self, to: &Client, size: usize) -> Option<&mut [u8]> {
        self.answers += 1;
        if !to.transport.is_datagram() {
            return self.stream_frame.get_mut(..size);
        }
        let Some(response_batch) = self.response_batches.get_mut(usize::from(to.listener)) else {
            self.counters.add(Counter::SendFailed, 1);
            return None;
        };
        #[cfg(feature = "xdp")]
        if let Some(route) = Route::of(to) {
            return self.replies.frame(to, route, size, &self.counters, response_batch);
        }
        response_batch.frame(size, &self.counters)
    }

    #[inline]
    fn send_answer(&mut self, to: &Client, length: usize) -> bool {
        if !to.transport.is_datagram() {
            let taken = self.sink.deliver(to, &self.stream_frame[..length]);
            self.counters.add(if taken { Counter::StreamAnswersOut } else { Counter::StreamGone }, 1);
            return taken;
        }
        let response_batch = &mut self.response_batches[usize::from(to.listener)];
        #[cfg(feature = "xdp")]
        if Route::of(to).is_some() {
            return self.replies.push(to, length, &self.counters, response_batch);
        }
        response_batch.push(to, length);
        true
    }

    fn drop_query(&mut self, from: &Client) {
        if !from.transport.is_datagram() && !self.sink.deliver(from, &[]) {
            self.counters.add(Counter::StreamGone, 1);
        }
    }

    #[inline]
    fn query_frame(&mut self, via: Link) -> Option<&mut [u8]> {
        self.links.query_frame(via, &self.counters)
    }

    #[inline]
    fn send_query(&mut self, via: Link, length: usize) -> bool {
        self.links.send_query(via, length, &self.counters)
    }

    fn open(&mut self, link: Link, upstream: SocketAddr, transport: Transport, port: u16) -> bool {
        self.links.open(link, upstream, transport, port, &self.counters)
    }

    fn local(&self, link: Link) -> Option<SocketAddr> {
        self.links.local(link)
    }

    fn close(&mut self, link: Link) {
        self.links.close(link, &self.counters);
    }

    fn verify(&mut self, id: VerificationId, signed: &SignedData<'_>) -> bool {
        let (threads, worker) = &self.signature_threads;
        threads.put(*worker, id, signed)
    }
}

impl<M, S: StreamSink> SocketOutbox<M, S> {
    pub(super) fn flush(&mut self, now: Instant) {
        for response_batches in &mut self.response_batches {
            response_batches.flush(&self.counters);
        }
        #[cfg(feature = "xdp")]
        self.replies.flush(&self.counters);
        self.links.flush_turn(now, &self.counters);
        self.sink.wake();
    }
}
