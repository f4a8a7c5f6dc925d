//! A queue of frames, as a worker knows it (the feature `xdp`).

use xdp::Receiver;

pub(crate) struct FrameQueue {
    /// The number of its interface.
    pub(super) interface: u8,
    /// The receiving half of its AF_XDP socket.
    pub(super) receiver: Receiver,
    /// True if the latest wait found it readable.
    pub(super) is_readable: bool,
}

impl FrameQueue {
    pub(super) fn new((interface, receiver): (u8, Receiver)) -> FrameQueue {
        FrameQueue { interface, receiver, is_readable: false }
    }
}
