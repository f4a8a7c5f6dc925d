//! A pool of frames for messages that the engine makes itself: as many as are needed at a time, used again and again.

/// Frames of one size, in octets.
pub(crate) struct FramePool {
    free: Vec<Box<[u8]>>,
    size: usize,
}

impl FramePool {
    /// An empty pool for frames of `size` octets.
    pub fn new(size: usize) -> FramePool {
        FramePool { free: Vec::new(), size }
    }

    /// A frame with whatever its last user left. It is allocated if all others are in use.
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
