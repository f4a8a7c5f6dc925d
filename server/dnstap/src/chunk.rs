//! Chunks and lanes: the way of frames from a worker to the thread that writes them.
//!
//! A chunk is a buffer of whole frames, one after the other: a piece of the stream, which is written with one call. Each worker has a
//! lane with two queues, full chunks to the thread and empty ones back. A worker takes an empty chunk, or makes a new one until
//! [`CHUNKS`] exist; so as many are in use as the thread is behind, and they stay in the processor's cache. If there is none, the
//! message is dropped and counted.

use crate::message::{Exchange, OVERHEAD, Origin};
use crossbeam_queue::ArrayQueue;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Octets after which a chunk is handed over. Larger ones would leave the processor's second cache before they are written.
const FULL: usize = 32 << 10;

/// Octets of a buffer: a chunk that is almost full takes one more message of the greatest length.
const CAPACITY: usize = FULL + 65_535 + OVERHEAD;

/// Chunks of a lane: 256 of 32 KiB are 8 MiB, the messages of 80 ms at 100 MB/s, so that a short wait of the thread loses none.
const CHUNKS: usize = 256;

/// Whole frames.
pub(crate) struct Chunk {
    pub octets: Vec<u8>,
    pub frames: u64,
}

/// Counters of frames.
#[derive(Debug, Default)]
pub struct Counts {
    /// Frames written to a socket.
    pub sent: AtomicU64,
    /// Frames that were dropped: the lane was full, or the connection failed.
    pub dropped: AtomicU64,
}

/// The queues of one worker.
pub(crate) struct Lane {
    full: ArrayQueue<Chunk>,
    empty: ArrayQueue<Chunk>,
}

impl Lane {
    pub fn new() -> Lane {
        Lane { full: ArrayQueue::new(CHUNKS), empty: ArrayQueue::new(CHUNKS) }
    }

    /// Takes a full chunk.
    pub fn take(&self) -> Option<Chunk> {
        self.full.pop()
    }

    /// Gives a chunk back to the worker.
    pub fn give_back(&self, mut chunk: Chunk) {
        chunk.octets.clear();
        chunk.frames = 0;
        // As many places as chunks: there is room.
        let _ = self.empty.push(chunk);
    }

    pub fn is_empty(&self) -> bool {
        self.full.is_empty()
    }
}

/// The end of a lane at a worker: it takes messages and never blocks.
pub struct Tap {
    lane: Arc<Lane>,
    origin: Origin,
    counts: Arc<Counts>,
    current: Option<Chunk>,
    /// Chunks that exist.
    made: usize,
}

impl Tap {
    pub(crate) fn new(lane: Arc<Lane>, origin: Origin, counts: Arc<Counts>) -> Tap {
        Tap { lane, origin, counts, current: None, made: 0 }
    }

    /// Records a message. Without room it is dropped and counted.
    #[inline]
    pub fn record(&mut self, exchange: &Exchange, message: &[u8]) {
        if self.current.is_none() {
            self.current = self.next_chunk();
        }
        let Some(chunk) = self.current.as_mut().filter(|_| message.len() <= 65_535) else {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        self.origin.write_frame(exchange, message, &mut chunk.octets);
        chunk.frames += 1;
        if chunk.octets.len() >= FULL {
            self.flush();
        }
    }

    /// Hands over the messages so far. The worker calls it from time to time, so that few messages do not wait for many.
    pub fn flush(&mut self) {
        if let Some(chunk) = self.current.take_if(|chunk| chunk.frames > 0) {
            // As many places as chunks: there is room.
            let _ = self.lane.full.push(chunk);
        }
    }

    fn next_chunk(&mut self) -> Option<Chunk> {
        let empty = self.lane.empty.pop();
        if empty.is_none() && self.made < CHUNKS {
            self.made += 1;
            return Some(Chunk { octets: Vec::with_capacity(CAPACITY), frames: 0 });
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

    fn tap() -> (Tap, Arc<Lane>, Arc<Counts>) {
        let (lane, counts) = (Arc::new(Lane::new()), Arc::new(Counts::default()));
        (Tap::new(Arc::clone(&lane), Origin::new("a", "b"), Arc::clone(&counts)), lane, counts)
    }

    #[test]
    fn a_lane_without_a_reader_is_bounded_and_counts_what_it_drops() {
        let (mut tap, lane, counts) = tap();
        let message = [7; 1_000];
        for _ in 0..20_000 {
            tap.record(&EXCHANGE, &message);
        }
        let dropped = counts.dropped.load(Ordering::Relaxed);
        let mut kept = 0;
        while let Some(chunk) = lane.take() {
            assert!((FULL..CAPACITY).contains(&chunk.octets.len()));
            kept += chunk.frames;
            lane.give_back(chunk);
        }
        assert_eq!((kept + dropped, tap.made), (20_000, CHUNKS));
        assert!(dropped > 0);
        tap.record(&EXCHANGE, &message);
        tap.flush();
        assert_eq!(lane.take().map(|chunk| chunk.frames), Some(1), "there is room again");
    }

    #[test]
    fn chunks_are_used_again_and_do_not_grow() {
        let (mut tap, lane, _) = tap();
        let long = vec![7; 65_535];
        for _ in 0..100 {
            tap.record(&EXCHANGE, &[1; 100]);
            tap.record(&EXCHANGE, &long);
            let chunk = lane.take().expect("a full chunk");
            assert_eq!((chunk.frames, chunk.octets.capacity()), (2, CAPACITY));
            lane.give_back(chunk);
        }
        assert_eq!(tap.made, 1);
    }

    #[test]
    fn a_tap_that_ends_hands_over_what_it_has() {
        let (mut tap, lane, _) = tap();
        tap.record(&EXCHANGE, b"question");
        assert!(lane.is_empty());
        drop(tap);
        assert_eq!(lane.take().map(|chunk| chunk.frames), Some(1));
    }
}
