//! The outbox of a worker: it queues the answers and queries of the machine, and sends them at the end of the turn.

use crate::counters::{Counter, Counters};
use crate::listen::response_batch::ResponseBatch;
use crate::upstream::links::Links;
use crate::worker::mailbox::StreamSink;
#[cfg(feature = "xdp")]
use crate::worker::replies::Replies;
use engine::limits::MESSAGE;
use engine::{Client, Instant, Link, Outbox, Transport};
use std::net::SocketAddr;
use std::sync::Arc;
#[cfg(feature = "xdp")]
use xdp::Route;

/// The outbox with the sockets of one worker.
pub(super) struct SocketOutbox<S> {
    pub(super) response_batches: Vec<ResponseBatch>,
    pub(super) links: Links,
    /// Answers of this turn.
    pub(super) answers: u64,
    pub(super) sink: S,
    /// The frame in which the machine writes answers to streams.
    pub(super) stream_frame: Box<[u8]>,
    pub(super) counters: Arc<Counters>,
    /// The queues through which answers to queries in frames leave.
    #[cfg(feature = "xdp")]
    pub(super) replies: Replies,
}

impl<S: StreamSink> Outbox for SocketOutbox<S> {
    #[inline]
    fn answer(&mut self, to: &Client, size: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        self.answers += 1;
        if !to.transport.is_datagram() {
            let length = fill(&mut self.stream_frame).min(MESSAGE);
            let taken = self.sink.deliver(to, &self.stream_frame[..length]);
            self.counters.add(if taken { Counter::StreamAnswersOut } else { Counter::StreamGone }, 1);
            return taken;
        }
        #[cfg(feature = "xdp")]
        if let Some(route) = Route::of(to) {
            return self.replies.push(to, route, size, &self.counters, &mut self.response_batches, fill);
        }
        match self.response_batches.get_mut(usize::from(to.listener)) {
            Some(response_batches) => response_batches.push(to, size, &self.counters, fill),
            None => {
                self.counters.add(Counter::SendFailed, 1);
                false
            }
        }
    }

    fn drop_query(&mut self, from: &Client) {
        if !from.transport.is_datagram() && !self.sink.deliver(from, &[]) {
            self.counters.add(Counter::StreamGone, 1);
        }
    }

    #[inline]
    fn ask(&mut self, via: Link, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        self.links.ask(via, fill, &self.counters)
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
}

impl<S: StreamSink> SocketOutbox<S> {
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
