//! Buffers and queues: the way of frames from a worker to the thread that writes them.
//!
//! A buffer holds whole frames, one after the other: a piece of the stream, which is written with one call. Each worker has
//! two queues, full buffers to the thread and empty ones back. A worker takes an empty buffer, or makes a new one until
//! [`BUFFERS`] exist; so as many are in use as the thread is behind, and they stay in the processor's cache. If there is none, the
//! message is dropped and counted.

use crate::message::{Exchange, OVERHEAD, Origin};
use crossbeam_queue::ArrayQueue;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Octets after which a buffer is handed over. Larger ones would leave the processor's second cache before they are written.
const FULL: usize = 32 << 10;

/// Octets of a buffer: a buffer that is almost full takes one more message of the greatest length.
const CAPACITY: usize = FULL + 65_535 + OVERHEAD;

/// Buffers of a worker: 256 of 32 KiB are 8 MiB, the messages of 80 ms at 100 MB/s, so that a short wait of the thread loses none.
const BUFFERS: usize = 256;

/// Whole frames.
pub(crate) struct Buffer {
    pub octets: Vec<u8>,
    pub frames: u64,
}

/// Counters of frames.
#[derive(Debug, Default)]
pub struct Counts {
    /// Frames written to a socket.
    pub sent: AtomicU64,
    /// Frames that were dropped: the queue was full, or the connection failed.
    pub dropped: AtomicU64,
}

/// The queues of one worker.
pub(crate) struct WorkerQueues {
    full: ArrayQueue<Buffer>,
    empty: ArrayQueue<Buffer>,
}

impl WorkerQueues {
    pub fn new() -> WorkerQueues {
        WorkerQueues { full: ArrayQueue::new(BUFFERS), empty: ArrayQueue::new(BUFFERS) }
    }

    /// Takes a full buffer.
    pub fn take(&self) -> Option<Buffer> {
        self.full.pop()
    }

    /// Gives a buffer back to the worker.
    pub fn give_back(&self, mut buffer: Buffer) {
        buffer.octets.clear();
        buffer.frames = 0;
        // As many places as buffers: there is room.
        let _ = self.empty.push(buffer);
    }

    pub fn is_empty(&self) -> bool {
        self.full.is_empty()
    }
}

/// The end of two queues at a worker: it takes messages and never blocks.
pub struct Tap {
    queues: Arc<WorkerQueues>,
    origin: Origin,
    counts: Arc<Counts>,
    current: Option<Buffer>,
    /// Buffers that exist.
    made: usize,
}

impl Tap {
    pub(crate) fn new(queues: Arc<WorkerQueues>, origin: Origin, counts: Arc<Counts>) -> Tap {
        Tap { queues, origin, counts, current: None, made: 0 }
    }

    /// Records a message. Without room it is dropped and counted.
    #[inline]
    pub fn record(&mut self, exchange: &Exchange, message: &[u8]) {
        if self.current.is_none() {
            self.current = self.next_buffer();
        }
        let Some(buffer) = self.current.as_mut().filter(|_| message.len() <= 65_535) else {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        self.origin.write_frame(exchange, message, &mut buffer.octets);
        buffer.frames += 1;
        if buffer.octets.len() >= FULL {
            self.flush();
        }
    }

    /// Hands over the messages so far. The worker calls it from time to time, so that few messages do not wait for many.
    pub fn flush(&mut self) {
        if let Some(buffer) = self.current.take_if(|buffer| buffer.frames > 0) {
            // As many places as buffers: there is room.
            let _ = self.queues.full.push(buffer);
        }
    }

    fn next_buffer(&mut self) -> Option<Buffer> {
        let empty = self.queues.empty.pop();
        if empty.is_none() && self.made < BUFFERS {
            self.made += 1;
            return Some(Buffer { octets: Vec::with_capacity(CAPACITY), frames: 0 });
        }
        empty
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Kind, Protocol};

    const EXCHANGE: Exchange = Exchange {
        kind: Kind::ClientQuery,
        protocol: Protocol::Udp,
        initiator: None,
        responder: None,
        unix_ns: 0,
    };

    fn tap() -> (Tap, Arc<WorkerQueues>, Arc<Counts>) {
        let (queues, counts) = (Arc::new(WorkerQueues::new()), Arc::new(Counts::default()));
        (Tap::new(Arc::clone(&queues), Origin::new("a", "b"), Arc::clone(&counts)), queues, counts)
    }

    #[test]
    fn a_queues_without_a_reader_is_bounded_and_counts_what_it_drops() {
        let (mut tap, queues, counts) = tap();
        let message = [7; 1_000];
        for _ in 0..20_000 {
            tap.record(&EXCHANGE, &message);
        }
        let dropped = counts.dropped.load(Ordering::Relaxed);
        let mut kept = 0;
        while let Some(buffer) = queues.take() {
            assert!((FULL..CAPACITY).contains(&buffer.octets.len()));
            kept += buffer.frames;
            queues.give_back(buffer);
        }
        assert_eq!((kept + dropped, tap.made), (20_000, BUFFERS));
        assert!(dropped > 0);
        tap.record(&EXCHANGE, &message);
        tap.flush();
        assert_eq!(queues.take().map(|buffer| buffer.frames), Some(1), "there is room again");
    }

    #[test]
    fn buffers_are_used_again_and_do_not_grow() {
        let (mut tap, queues, _) = tap();
        let long = vec![7; 65_535];
        for _ in 0..100 {
            tap.record(&EXCHANGE, &[1; 100]);
            tap.record(&EXCHANGE, &long);
            let buffer = queues.take().expect("a full buffer");
            assert_eq!((buffer.frames, buffer.octets.capacity()), (2, CAPACITY));
            queues.give_back(buffer);
        }
        assert_eq!(tap.made, 1);
    }

    #[test]
    fn a_tap_that_ends_hands_over_what_it_has() {
        let (mut tap, queues, _) = tap();
        tap.record(&EXCHANGE, b"question");
        assert!(queues.is_empty());
        drop(tap);
        assert_eq!(queues.take().map(|buffer| buffer.frames), Some(1));
    }
}
