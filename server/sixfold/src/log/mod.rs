//! The log: from an event of `tracing` to a line on standard error, in the journal or at the syslog daemon.
//!
//! No thread ever waits for a target. A thread that logs puts a record into a bounded queue (`queue.rs`); one thread takes the
//! records out, holds back what is repeated (`repeats.rs`), and writes to the target (`stderr.rs`, `journald.rs`, `syslog.rs`),
//! which may hang or be full. Records that the queue has no room for are dropped and counted, and the log says so as soon as it can
//! be written again.
//!
//! Read [`Log`] first. `record.rs` is a record and its text, `writer.rs` the thread.

mod counts;
mod journald;
mod layer;
mod limits;
mod queue;
mod record;
mod repeats;
mod stderr;
mod syslog;
mod writer;

use crate::config;
use counts::Counts;
use datapath::remedy::with_remedy;
use layer::{LevelHandle, QueueLayer, level_filter};
use queue::Queue;
use record::Record;
use std::sync::Arc;
use tracing_subscriber::layer::SubscriberExt;
use writer::Writer;

pub use stderr::error as error_line;

/// Access to the running log, for the parts of the server that change it or count its lines.
#[derive(Clone)]
pub struct Handle {
    queue: Arc<Queue>,
    counts: Arc<Counts>,
    level: LevelHandle,
}

impl Handle {
    /// Uses another level, format or target from the next line on.
    pub fn configure(&self, config: &config::Log) {
        // The subscriber is gone only at the end of the process.
        let _ = self.level.modify(|level| *level = level_filter(config.level));
        self.queue.configure(config.format, config.to);
    }

    /// Prints a message on standard error, after the lines of the log before it, whatever the target of the log is. With
    /// `log.format = "json"` it is an object like all other lines.
    pub fn print(&self, event: &str, message: String) {
        self.queue.push_plain(Record::new(tracing::Level::INFO, event, message));
    }

    /// Counts of the lines so far by their fate.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

/// The log of the process. At its end, what is queued is written, within `limits::END`.
pub struct Log {
    handle: Handle,
    /// The writer, until its thread starts.
    writer: Option<Writer>,
}

impl Log {
    /// Starts to collect events. They are written once [`Log::start_writer`] is called, or at the end of the log: so the thread
    /// starts after privileges are dropped, and does not keep them.
    pub fn new(config: &config::Log) -> Log {
        let counts = Arc::new(Counts::default());
        let queue = Arc::new(Queue::new(Arc::clone(&counts)));
        let (filter, level) = tracing_subscriber::reload::Layer::new(level_filter(config.level));
        let layer = QueueLayer(Arc::clone(&queue));
        // A log that a test has set already stays.
        let _ =
            tracing::subscriber::set_global_default(tracing_subscriber::registry().with(filter).with(layer));
        let writer = Writer::new(Arc::clone(&queue), Arc::clone(&counts), config);
        Log { handle: Handle { queue, counts, level }, writer: Some(writer) }
    }

    /// Starts the thread that writes.
    ///
    /// # Errors
    ///
    /// The text for the operator: the system starts no more threads.
    pub fn start_writer(&mut self) -> Result<(), String> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let thread = std::thread::Builder::new().name("log".into()).spawn(|| writer.run());
        thread
            .map(drop)
            .map_err(|error| format!("cannot start the thread that writes the log: {}", with_remedy(&error)))
    }

    /// Access for other parts of the server.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.handle.queue.close();
        match self.writer.take() {
            // The process ends before it had its threads, with an error that follows on the same standard error.
            Some(writer) => writer.run(),
            None => self.handle.queue.wait_for_end(limits::END),
        }
    }
}
