//! The traces that run, so that there are few, and one command ends them all.

use crate::observers::{Filter, TraceQueue};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Traces at a time. Each costs the workers an allocation per step, and the control thread the text.
const TRACES: usize = 4;

/// The traces that operators follow.
#[derive(Default)]
pub struct RunningTraces {
    queues: Mutex<Vec<Arc<TraceQueue>>>,
    number: AtomicU32,
}

impl RunningTraces {
    /// Begins a trace.
    ///
    /// # Errors
    ///
    /// The text for the operator: as many traces run as may ([`TRACES`]).
    pub fn begin(&self, filter: Filter) -> Result<Arc<TraceQueue>, String> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|queue| !queue.has_ended());
        if queues.len() == TRACES {
            return Err(format!(
                "trace: {TRACES} traces are running already; end one, or all of them with `sixfold ctl trace off`\n"
            ));
        }
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let queue = Arc::new(TraceQueue::new(filter, number));
        queues.push(Arc::clone(&queue));
        Ok(queue)
    }

    /// Ends all traces (`trace off`). Returns their number.
    pub fn end_all(&self) -> usize {
        let queues = std::mem::take(&mut *self.queues.lock().unwrap_or_else(PoisonError::into_inner));
        let running = queues.iter().filter(|queue| !queue.has_ended()).count();
        queues.iter().for_each(|queue| queue.end());
        running
    }
}
