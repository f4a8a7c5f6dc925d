//! The end of `tracing`: each event of the level in force becomes a record in the queue.

use super::queue::Queue;
use super::record::Record;
use crate::config::Level;
use std::sync::Arc;
use tracing::subscriber::Interest;
use tracing::{Event, Level as EventLevel, Metadata, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::{Registry, reload};

/// Handle by which the level changes.
pub type LevelHandle = reload::Handle<LevelFilter, Registry>;

/// Puts events into the queue.
pub struct QueueLayer(pub Arc<Queue>);

impl<S: Subscriber> Layer<S> for QueueLayer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_logged(metadata.target(), *metadata.level()) { Interest::always() } else { Interest::never() }
    }

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

/// Start of the module paths of this project.
const OWN: &str = "sixfold";

/// True if events of a module with this level may be logged. Libraries log warnings and errors only: below that, the one for HTTP/2
/// writes several lines for each request of a client.
fn is_logged(module: &str, level: EventLevel) -> bool {
    module.starts_with(OWN) || level <= EventLevel::WARN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::counts::Counts;
    use crate::log::queue::{Item, Taken};
    use std::time::Duration;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn libraries_log_warnings_and_errors_only() {
        let queue = Arc::new(Queue::new(Arc::new(Counts::default())));
        let subscriber = tracing_subscriber::registry().with(QueueLayer(Arc::clone(&queue)));
        tracing::subscriber::with_default(subscriber, || {
            tracing::debug!("our detail");
            tracing::debug!(target: "h2::codec::framed_read", "a frame");
            tracing::warn!(target: "h2::server", "their warning");
            tracing::info!(target: "hyper::proto", "their information");
        });
        let mut texts = Vec::new();
        while let Taken::Item(Item::Record(record), _) = queue.take(Duration::ZERO, false) {
            texts.push(record.message);
        }
        assert_eq!(texts, ["our detail", "their warning"]);
    }
}
