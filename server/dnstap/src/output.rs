//! The output: the queues of all workers, and the thread that connects to the reader and writes.
//!
//! The thread looks for buffers from time to time, so that workers need no system call to wake it. While there is no reader, or one
//! that does not read, buffers stay in their queues, and workers drop messages when these are full.

use crate::buffer::{Buffer, Tap, WorkerQueues};
use crate::control::ControlError;
use crate::message::Origin;
use crate::socket::{Connection, Destination};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, park_timeout};
use std::time::{Duration, Instant};

pub use crate::buffer::Counts;

/// Shortest and longest sleep of the thread: it doubles while there is nothing to write. Two queues hold the messages of 80 ms at
/// 100 MB/s, and a wake-up costs as much as some ten messages.
const SLEEP: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(80)];

/// First and longest wait between two attempts to connect.
const RETRY: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// Time for the last messages after the request to stop.
const STOP: Duration = Duration::from_secs(1);

/// Change in the connection to the reader.
#[derive(Debug)]
pub enum Report {
    /// The reader is connected.
    Connected,
    /// There is no connection, for this reason; the thread tries again and again.
    Failed(String),
}

/// Function that is told of the changes.
pub type Listener = Box<dyn Fn(Report) + Send>;

/// The output to one reader.
pub struct Output {
    queues: Vec<Arc<WorkerQueues>>,
    origin: Origin,
    counts: Arc<Counts>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Output {
    /// Starts the thread for this number of workers. `counts` may be those of an earlier output.
    ///
    /// # Errors
    ///
    /// The system starts no more threads. A reader that is not there is no error: the thread tries again.
    pub fn start(
        to: Destination,
        origin: Origin,
        workers: usize,
        counts: Arc<Counts>,
        listener: Listener,
    ) -> io::Result<Output> {
        let queues: Vec<_> = (0..workers).map(|_| Arc::new(WorkerQueues::new())).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let writer = Writer {
            to,
            queues: queues.clone(),
            counts: Arc::clone(&counts),
            stop: Arc::clone(&stop),
            stop_by: None,
            listener,
            is_failing: false,
        };
        let thread = std::thread::Builder::new().name("dnstap".into()).spawn(move || writer.run())?;
        Ok(Output { queues, origin, counts, stop, thread })
    }

    /// The tap of one worker; none beyond the number of workers. Each worker has one tap at a time.
    pub fn tap(&self, worker: usize) -> Option<Tap> {
        let queues = Arc::clone(self.queues.get(worker)?);
        Some(Tap::new(queues, self.origin.clone(), Arc::clone(&self.counts)))
    }

    /// Asks the thread to end, which it does when all taps have ended and their messages are written, or after a second. The
    /// handle is for a caller that waits.
    pub fn stop(self) -> JoinHandle<()> {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.thread().unpark();
        self.thread
    }
}

/// The thread.
struct Writer {
    to: Destination,
    queues: Vec<Arc<WorkerQueues>>,
    counts: Arc<Counts>,
    stop: Arc<AtomicBool>,
    /// Time by which it ends, once it must stop.
    stop_by: Option<Instant>,
    listener: Listener,
    /// True if the last report was a failure.
    is_failing: bool,
}

impl Writer {
    fn run(mut self) {
        let mut wait = RETRY[0];
        while !self.is_over() {
            let stop = Arc::clone(&self.stop);
            let reason = match Connection::open(&self.to, || stop.load(Ordering::Relaxed)) {
                Ok(connection) => {
                    wait = RETRY[0];
                    self.is_failing = false;
                    (self.listener)(Report::Connected);
                    self.serve(connection).map_err(ControlError::from)
                }
                Err(error) => Err(error),
            };
            let Err(error) = reason else { break };
            if !std::mem::replace(&mut self.is_failing, true) {
                (self.listener)(Report::Failed(error.to_string()));
            }
            park_timeout(wait);
            wait = (wait * 2).min(RETRY[1]);
            if self.stop.load(Ordering::SeqCst) {
                // No reader, or a failing one: the last messages have nowhere to go.
                break;
            }
        }
        for queues in &self.queues {
            while let Some(buffer) = queues.take() {
                self.counts.dropped.fetch_add(buffer.frames, Ordering::Relaxed);
            }
        }
    }

    /// True if the thread must end now.
    fn is_over(&mut self) -> bool {
        if !self.stop.load(Ordering::SeqCst) {
            return false;
        }
        let stop_by = *self.stop_by.get_or_insert_with(|| Instant::now() + STOP);
        let is_used = |queues: &Arc<WorkerQueues>| Arc::strong_count(queues) > 1 || !queues.is_empty();
        Instant::now() >= stop_by || !self.queues.iter().any(is_used)
    }

    /// Writes buffers until the end, or until the connection fails.
    fn serve(&mut self, mut connection: Connection) -> io::Result<()> {
        let mut sleep = SLEEP[0];
        loop {
            let mut is_idle = true;
            for queues in self.queues.clone() {
                if let Some(buffer) = queues.take() {
                    is_idle = false;
                    let written = self.write(&mut connection, &buffer);
                    queues.give_back(buffer);
                    if !written? {
                        return Ok(());
                    }
                }
            }
            if !is_idle {
                sleep = SLEEP[0];
                continue;
            }
            if self.is_over() {
                let stop_by = self.stop_by.unwrap_or_else(Instant::now);
                connection.finish(stop_by);
                return Ok(());
            }
            if sleep == SLEEP[1] {
                connection.check()?;
            }
            park_timeout(sleep);
            sleep = (sleep * 2).min(SLEEP[1]);
        }
    }

    /// Writes a buffer. Returns false if the time to stop comes first. Frames that did not leave are counted as dropped.
    fn write(&mut self, connection: &mut Connection, buffer: &Buffer) -> io::Result<bool> {
        let mut written = 0;
        let result = loop {
            if written == buffer.octets.len() {
                break Ok(true);
            }
            match connection.write(&buffer.octets[written..]) {
                Ok(0) if self.is_past_stop() => break Ok(false),
                Ok(count) => written += count,
                Err(error) => break Err(error),
            }
        };
        let sent = whole_frames(&buffer.octets, written);
        self.counts.sent.fetch_add(sent, Ordering::Relaxed);
        self.counts.dropped.fetch_add(buffer.frames - sent, Ordering::Relaxed);
        result
    }

    /// True if a reader that takes nothing must be waited for no longer.
    fn is_past_stop(&mut self) -> bool {
        self.is_over() && self.stop_by.is_some_and(|stop_by| Instant::now() >= stop_by)
    }
}

/// Number of whole frames in the first `written` octets of a buffer.
fn whole_frames(octets: &[u8], written: usize) -> u64 {
    let (mut place, mut frames) = (0, 0);
    while let Some(length) = octets.get(place..).and_then(|rest| rest.first_chunk::<4>()) {
        place += 4 + u32::from_be_bytes(*length) as usize;
        if place > written {
            break;
        }
        frames += 1;
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_frames_count_as_sent() {
        let octets = b"\0\0\0\x03abc\0\0\0\x01x";
        let counted: Vec<u64> = (0..=octets.len()).map(|written| whole_frames(octets, written)).collect();
        assert_eq!(counted, [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2]);
    }
}
