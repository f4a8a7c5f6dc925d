//! The end of `tracing`: each event of the level in force becomes a record in the queue.

use super::queue::Queue;
use super::record::Record;
use crate::config::Level;
use std::sync::Arc;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::{Registry, reload};

/// Handle by which the level changes.
pub type LevelHandle = reload::Handle<LevelFilter, Registry>;

/// Puts events into the queue.
pub struct QueueLayer(pub Arc<Queue>);

impl<S: Subscriber> Layer<S> for QueueLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.0.push(Record::of(event));
    }
}

/// The filter of a configured level.
pub fn level_filter(level: Level) -> LevelFilter {
    match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    }
}
