//! The rings between a worker and the kernel (AF_XDP, Documentation/networking/af_xdp.rst): arrays in shared memory with the positions of
//! a producer and of a consumer, one of which is the worker. Positions count entries and wrap around at 2^32.

use kernel::syscalls::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Memory that the kernel shares with this process, or that belongs to it alone; unmapped when it is dropped.
pub(super) struct Mapping {
    start: NonNull<u8>,
    octets: usize,
}

// SAFETY: a mapping is plain memory that any thread may reach; the types that hold one say which thread does.
unsafe impl Send for Mapping {}
// SAFETY: as above; a shared reference only gives the address.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps memory of its own, filled with zeros.
    ///
    /// # Errors
    ///
    /// The error of mmap(2): ENOMEM.
    pub(super) fn anonymous(octets: usize) -> io::Result<Mapping> {
        Mapping::map(octets, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    /// Maps a ring of a socket. `page` is the offset that stands for the ring (XDP_PGOFF_RX_RING and others).
    ///
    /// # Errors
    ///
    /// The error of mmap(2): EINVAL before the socket has such a ring, ENOMEM.
    pub(super) fn ring(socket: RawFd, page: u64, octets: usize) -> io::Result<Mapping> {
        Mapping::map(octets, libc::MAP_SHARED, socket, page)
    }

    /// Maps a map of bpf(2) that is an array (BPF_F_MMAPABLE).
    ///
    /// # Errors
    ///
    /// The error of mmap(2): EINVAL if the array was not made for it, ENOMEM.
    pub(super) fn array(map: BorrowedFd<'_>, octets: usize) -> io::Result<Mapping> {
        Mapping::map(octets, libc::MAP_SHARED, map.as_raw_fd(), 0)
    }

    fn map(octets: usize, flags: i32, file: RawFd, offset: u64) -> io::Result<Mapping> {
        // SAFETY: the kernel chooses the place, so nothing that exists is replaced.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                octets,
                libc::PROT_READ | libc::PROT_WRITE,
                flags | libc::MAP_POPULATE,
                file,
                offset as libc::off_t,
            )
        };
        if start == libc::MAP_FAILED {
            check(-1)?;
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Mapping { start, octets })
    }

    /// The address of `octets` octets at `offset`.
    ///
    /// # Panics
    ///
    /// If they do not lie in the mapping.
    pub(super) fn at(&self, offset: usize, octets: usize) -> *mut u8 {
        assert!(offset <= self.octets && octets <= self.octets - offset);
        // SAFETY: the range was checked, so the address lies in the mapping.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: address and length are those of `map`, and nothing that points into the mapping outlives this owner.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.octets) };
    }
}

/// A ring whose entries are of type `T`: an address in the memory for frames, or a frame with its length.
pub(super) struct Ring<T> {
    mapping: Mapping,
    offsets: libc::xdp_ring_offset,
    mask: u32,
    /// The position of this side: the producer's for rings that the worker fills, else the consumer's. It runs ahead of the position
    /// in shared memory until [`Ring::submit`] or [`Ring::release`].
    position: u32,
    _entries: std::marker::PhantomData<T>,
}

/// Types of ring entries.
///
/// # Safety
///
/// The type consists of integers, so that every bit pattern is valid.
pub(super) unsafe trait Entry: Copy {}
// SAFETY: an integer.
unsafe impl Entry for u64 {}
// SAFETY: three integers.
unsafe impl Entry for libc::xdp_desc {}

impl<T: Entry> Ring<T> {
    /// The ring of `entries` entries (a power of two) in a mapping of the kernel, whose parts are at `offsets`.
    pub(super) fn new(mapping: Mapping, offsets: libc::xdp_ring_offset, entries: u32) -> Ring<T> {
        assert!(entries.is_power_of_two());
        mapping.at(offsets.desc as usize, entries as usize * size_of::<T>());
        let aligned = |offset: u64, to: usize| (offset as usize).is_multiple_of(to);
        for word in [offsets.producer, offsets.consumer, offsets.flags] {
            mapping.at(word as usize, size_of::<u32>());
            assert!(aligned(word, align_of::<AtomicU32>()));
        }
        assert!(aligned(offsets.desc, align_of::<T>()));
        Ring { mapping, offsets, mask: entries - 1, position: 0, _entries: std::marker::PhantomData }
    }

    /// Octets of the mapping of a ring.
    pub(super) fn octets(offsets: &libc::xdp_ring_offset, entries: u32) -> usize {
        offsets.desc as usize + entries as usize * size_of::<T>()
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        let word = self.mapping.at(offset as usize, size_of::<u32>()).cast::<AtomicU32>();
        // SAFETY: the word lies in the mapping (checked by `at`) and is aligned (checked by `new`); the kernel and this process only
        // use it as an atomic.
        unsafe { &*word }
    }

    fn entry(&self, position: u32) -> *mut T {
        let index = (position & self.mask) as usize;
        self.mapping.at(self.offsets.desc as usize + index * size_of::<T>(), size_of::<T>()).cast()
    }

    /// True if the kernel waits for a system call.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.word(self.offsets.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    // For rings that the worker fills.

    /// Entries that the worker has put in and the kernel has not taken, those included that are not submitted.
    pub(super) fn outstanding(&self) -> u32 {
        self.position.wrapping_sub(self.word(self.offsets.consumer).load(Ordering::Acquire))
    }

    /// Puts an entry in; false if there is no room. The kernel sees it after [`Ring::submit`].
    pub(super) fn push(&mut self, entry: T) -> bool {
        if self.outstanding() > self.mask {
            return false;
        }
        // SAFETY: the entry lies in the mapping, is aligned (checked by `new`), and belongs to the producer, this side, because there is
        // room (checked above).
        unsafe { self.entry(self.position).write(entry) };
        self.position = self.position.wrapping_add(1);
        true
    }

    /// Shows the kernel the entries that were put in.
    pub(super) fn submit(&mut self) {
        self.word(self.offsets.producer).store(self.position, Ordering::Release);
    }

    // For rings that the kernel fills.

    /// Entries that the worker has not taken.
    pub(super) fn available(&self) -> u32 {
        let available = self.word(self.offsets.producer).load(Ordering::Acquire).wrapping_sub(self.position);
        // A larger number would be an error of the kernel.
        available.min(self.mask + 1)
    }

    /// An entry, counted from the next one. It must be below [`Ring::available`].
    pub(super) fn peek(&self, index: u32) -> T {
        // SAFETY: the entry lies in the mapping and is aligned (checked by `new`); every bit pattern is valid, and the kernel does not
        // write entries before they are released.
        unsafe { self.entry(self.position.wrapping_add(index)).read() }
    }

    /// Gives the first `count` entries back to the kernel.
    pub(super) fn release(&mut self, count: u32) {
        self.position = self.position.wrapping_add(count);
        self.word(self.offsets.consumer).store(self.position, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both sides of a ring in memory of this process.
    fn pair() -> (Ring<u64>, Ring<u64>) {
        const ENTRIES: u32 = 4;
        // SAFETY: the struct consists of integers, for which all zeros is a valid value.
        let mut offsets: libc::xdp_ring_offset = unsafe { std::mem::zeroed() };
        (offsets.producer, offsets.consumer, offsets.flags, offsets.desc) = (0, 64, 128, 192);
        let octets = Ring::<u64>::octets(&offsets, ENTRIES);
        let filled = Mapping::anonymous(octets).unwrap();
        // The other side has the same memory, and does not unmap it.
        let taken = Mapping { start: filled.start, octets };
        (Ring::new(filled, offsets, ENTRIES), Ring::new(taken, offsets, ENTRIES))
    }

    #[test]
    fn entries_come_out_in_order_and_a_full_ring_takes_none() {
        let (mut producer, consumer) = pair();
        let mut consumer = std::mem::ManuallyDrop::new(consumer);
        let mut next = 0;
        for round in 0..9u64 {
            while producer.push(next) {
                next += 1;
            }
            assert_eq!(consumer.available(), if round == 0 { 0 } else { 1 });
            producer.submit();
            assert_eq!((producer.outstanding(), consumer.available()), (4, 4));
            assert_eq!(consumer.peek(0) + 3, consumer.peek(3));
            assert_eq!(consumer.peek(3) + 1, next);
            consumer.release(3);
            assert_eq!(producer.outstanding(), 1);
        }
    }

    #[test]
    fn positions_wrap_around() {
        let (mut producer, consumer) = pair();
        let mut consumer = std::mem::ManuallyDrop::new(consumer);
        (producer.position, consumer.position) = (u32::MAX, u32::MAX);
        consumer.release(0);
        for entry in 0..8 {
            assert!(producer.push(entry));
            producer.submit();
            assert_eq!((consumer.available(), consumer.peek(0)), (1, entry));
            consumer.release(1);
        }
    }
}
