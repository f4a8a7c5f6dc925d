//! Pool of message buffers (frames) for messages that the engine makes itself. It grows to the number of frames in use at one
//! time, and hands them out again.

/// Pool of frames of one size, in octets.
pub(crate) struct FramePool {
    free: Vec<Box<[u8]>>,
    size: usize,
}

impl FramePool {
    /// An empty pool for frames of `size` octets.
    pub fn new(size: usize) -> FramePool {
        FramePool { free: Vec::new(), size }
    }

    /// Takes a frame, with the octets that its last user left. Allocates one if all others are in use.
    #[inline]
    pub fn take(&mut self) -> Box<[u8]> {
        self.free.pop().unwrap_or_else(|| vec![0; self.size].into())
    }

    /// Gives a frame back.
    #[inline]
    pub fn give(&mut self, frame: Box<[u8]>) {
        self.free.push(frame);
    }
}
