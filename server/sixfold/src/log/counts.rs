//! Counters of the log's lines.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of the lines of the log by their fate, for metrics.
#[derive(Default)]
pub struct Counts {
    /// Given to the target.
    pub written: AtomicU64,
    /// Held back as repetitions.
    pub held_back: AtomicU64,
    /// Lost: the queue was full, or the target refused the line.
    pub dropped: AtomicU64,
}

impl Counts {
    /// Result and number, in a fixed order.
    pub fn by_result(&self) -> [(&'static str, u64); 3] {
        [("written", &self.written), ("held_back", &self.held_back), ("dropped", &self.dropped)]
            .map(|(result, count)| (result, count.load(Ordering::Relaxed)))
    }
}
