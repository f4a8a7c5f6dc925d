//! The memory that system calls read and write: arrays that stay at one address, and empty message headers. The kernel's
//! structures are made once and point at each other for life.

use std::mem::zeroed;
use std::ptr::NonNull;

/// Octets of a cache line. Each buffer starts at one.
pub const CACHE_LINE: usize = 64;

/// The size of a datagram buffer: an odd number of whole cache lines. So the beginnings of the buffers, the part that small
/// messages use, spread over all sets of the processor's caches.
pub fn stride(octets: usize) -> usize {
    let lines = octets.div_ceil(CACHE_LINE);
    (lines | 1) * CACHE_LINE
}

/// An array that stays at one address while it lives, so that the kernel's structures may point into it. All access goes
/// through one pointer, so that a reference to one element does not invalidate pointers to the others. The elements are integers, or
/// structures of the kernel whose pointers lead into memory of the same owner.
pub struct PinnedArray<T> {
    start: NonNull<T>,
    length: usize,
}

// SAFETY: a PinnedArray owns its elements as a Box<[T]> does; the elements that are used here (integers, and kernel structures
// whose pointers lead into other PinnedArrays of their owner) may move between threads together with their owner.
unsafe impl<T> Send for PinnedArray<T> {}

impl<T: Copy> PinnedArray<T> {
    /// An array of `length` copies of a value.
    pub fn new(value: T, length: usize) -> PinnedArray<T> {
        let boxed = vec![value; length].into_boxed_slice();
        let start = NonNull::from(Box::leak(boxed)).cast();
        PinnedArray { start, length }
    }

    /// The address of an element.
    #[inline]
    pub fn at(&self, index: usize) -> *mut T {
        assert!(index < self.length);
        // SAFETY: `index` is below the length, so the address lies in the array.
        unsafe { self.start.as_ptr().add(index) }
    }

    /// An element.
    #[inline]
    pub fn get(&self, index: usize) -> &T {
        // SAFETY: `at` checks the index; the element was initialized by `new`. The kernel writes to it only during
        // system calls that are made with `&mut self` of the owner.
        unsafe { &*self.at(index) }
    }

    /// An element.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> &mut T {
        // SAFETY: as for `get`; `&mut self` makes the access exclusive.
        unsafe { &mut *self.at(index) }
    }

    /// `length` elements from `start` on.
    #[inline]
    pub fn range(&self, start: usize, length: usize) -> &[T] {
        assert!(start <= self.length && length <= self.length - start);
        // SAFETY: the range was checked; else as for `get`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(start), length) }
    }

    /// `length` elements from `start` on.
    #[inline]
    pub fn range_mut(&mut self, start: usize, length: usize) -> &mut [T] {
        assert!(start <= self.length && length <= self.length - start);
        // SAFETY: the range was checked; else as for `get_mut`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(start), length) }
    }
}

impl<T> Drop for PinnedArray<T> {
    fn drop(&mut self) {
        let whole = std::ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.length);
        // SAFETY: `new` leaked a boxed slice of this address and length; it is freed here, once.
        drop(unsafe { Box::from_raw(whole) });
    }
}

/// An empty message header: no address, no control message, no buffer.
pub fn empty_header() -> libc::mmsghdr {
    // SAFETY: mmsghdr consists of integers and raw pointers; all zeros (null, nothing) is a valid value.
    unsafe { zeroed() }
}

/// An iovec without a buffer.
pub fn empty_iovec() -> libc::iovec {
    libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }
}
