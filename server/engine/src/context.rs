//! The context of every step: the time, the driver's output, the counters.

use crate::base::time::Instant;
use crate::counters::Counters;

/// The time, the driver's output and the counters, for one step.
pub(crate) struct Context<'a, O> {
    /// Time of the step.
    pub(crate) now: Instant,
    /// Output side of the driver ([`Outbox`](crate::interface::Outbox)).
    pub(crate) out: &'a mut O,
    /// Counters of the engine.
    pub(crate) counters: &'a mut Counters,
}
