//! Where a resolution stands after a step.

use crate::resolve::steps::Origin;
use crate::resolve::write::End;

/// Where a resolution stands after a step.
pub(crate) enum Progress {
    /// The current question has a reply without an upstream.
    Found(Found),
    /// The current question has failed, as is known without an upstream.
    FoundSilence,
    /// The pending query waits for an upstream.
    Waits,
    /// The client gets this.
    Ends(End<'static, 'static>),
    /// The client has its response, or gets none, and the pending query is free.
    Ended,
}

/// A reply that was found here.
pub(crate) struct Found {
    /// A frame of the engine's, which goes back when the reply has been read.
    pub(crate) frame: Box<[u8]>,
    /// Octets of the reply.
    pub(crate) length: usize,
    pub(crate) origin: Origin,
}
