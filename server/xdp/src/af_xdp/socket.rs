//! AF_XDP sockets: one for each receive queue of an interface, with memory for frames of its own. A part of the frames belongs to the
//! receiver, the rest to the sender. So the two share only the socket and the memory, and each frame has one owner at a time: the
//! kernel, or one of them.
//!
//! ```text
//!   frames 0 .. XDP_RECEIVE_FRAMES              fill ring --> kernel --> receive ring
//!   frames XDP_RECEIVE_FRAMES .. all frames     send ring --> kernel --> completion ring
//! ```

use crate::af_xdp::limits::{XDP_FRAME, XDP_RECEIVE_FRAMES, XDP_SEND_BUFFER, XDP_SEND_FRAMES, XDP_WAKEUPS};
use crate::af_xdp::ring::{Entry, Mapping, Ring};
use kernel::syscalls::{check, set_option};
use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// Octets of the frames of the receiver.
const RECEIVE_OCTETS: usize = XDP_RECEIVE_FRAMES * XDP_FRAME;
/// Octets of all frames.
const ALL_OCTETS: usize = RECEIVE_OCTETS + XDP_SEND_FRAMES * XDP_FRAME;

/// A socket with the memory of its frames.
struct Shared {
    socket: OwnedFd,
    frames: Mapping,
}

/// A new socket for one queue: its two halves, and whether the card itself reads and writes the frames.
pub(super) struct Opened {
    pub(super) receiver: Receiver,
    pub(super) sender: Sender,
    pub(super) zero_copy: bool,
}

/// Opens a socket for a queue of an interface. `copy`: the kernel must copy frames, which generic mode demands; otherwise it does so
/// where the driver cannot do without.
///
/// # Errors
///
/// The step that failed, and the error of the system: EPERM without CAP_NET_RAW, ENOBUFS if the limit of locked memory is too low,
/// EBUSY if another socket has the queue.
pub(super) fn open(interface: u32, queue: u32, copy: bool) -> Result<Opened, (&'static str, io::Error)> {
    let at = |step| move |error| (step, error);
    // SAFETY: the call takes plain numbers.
    let socket = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    let socket = check(socket).map_err(at("socket"))?;
    // SAFETY: the descriptor was just made and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket as RawFd) };
    let raw = socket.as_raw_fd();
    // Frames on their way count towards the send buffer. A smaller one is no error: what does not fit is tried again.
    if set_option(raw, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, XDP_SEND_BUFFER).is_err() {
        let _ = set_option(raw, libc::SOL_SOCKET, libc::SO_SNDBUF, XDP_SEND_BUFFER);
    }
    let frames = Mapping::anonymous(ALL_OCTETS).map_err(at("mmap"))?;
    // SAFETY: the struct consists of integers, for which all zeros is a valid value.
    let mut region: libc::xdp_umem_reg = unsafe { zeroed() };
    region.addr = frames.at(0, ALL_OCTETS) as usize as u64;
    region.len = ALL_OCTETS as u64;
    region.chunk_size = XDP_FRAME as u32;
    set(raw, libc::XDP_UMEM_REG, &region).map_err(at("XDP_UMEM_REG"))?;
    let sizes = [
        (libc::XDP_UMEM_FILL_RING, XDP_RECEIVE_FRAMES, "XDP_UMEM_FILL_RING"),
        (libc::XDP_RX_RING, XDP_RECEIVE_FRAMES, "XDP_RX_RING"),
        (libc::XDP_UMEM_COMPLETION_RING, XDP_SEND_FRAMES, "XDP_UMEM_COMPLETION_RING"),
        (libc::XDP_TX_RING, XDP_SEND_FRAMES, "XDP_TX_RING"),
    ];
    for (option, entries, name) in sizes {
        set(raw, option, &(entries as u32)).map_err(at(name))?;
    }
    // SAFETY: the struct consists of integers, for which all zeros is a valid value.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { zeroed() };
    get(raw, libc::XDP_MMAP_OFFSETS, &mut offsets).map_err(at("XDP_MMAP_OFFSETS"))?;
    let shared = Arc::new(Shared { socket, frames });
    let receiver = Receiver::new(Arc::clone(&shared), &offsets).map_err(at("mmap"))?;
    let sender = Sender::new(Arc::clone(&shared), &offsets).map_err(at("mmap"))?;
    bind(raw, interface, queue, copy).map_err(at("bind"))?;
    let mut options = libc::xdp_options { flags: 0 };
    get(raw, libc::XDP_OPTIONS, &mut options).map_err(at("XDP_OPTIONS"))?;
    let zero_copy = options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0;
    Ok(Opened { receiver, sender: Sender { zero_copy, ..sender }, zero_copy })
}

fn bind(socket: RawFd, interface: u32, queue: u32, copy: bool) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_USE_NEED_WAKEUP | if copy { libc::XDP_COPY } else { 0 },
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    let length = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
    // SAFETY: the address lives through the call, and its size is given.
    check(unsafe { libc::bind(socket, (&raw const address).cast(), length) }).map(drop)
}

fn set<T>(socket: RawFd, name: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value lives through the call, and its size is given. Memory that it names is registered for as long as the socket
    // lives, and pinned by the kernel.
    check(unsafe { libc::setsockopt(socket, libc::SOL_XDP, name, (&raw const *value).cast(), length) })
        .map(drop)
}

fn get<T>(socket: RawFd, name: i32, value: &mut T) -> io::Result<()> {
    let mut length = size_of_val(value) as libc::socklen_t;
    // SAFETY: the callers' structs consist of integers; the kernel writes at most `length` octets.
    check(unsafe {
        libc::getsockopt(socket, libc::SOL_XDP, name, (&raw mut *value).cast(), &raw mut length)
    })?;
    // A kernel that knows a shorter struct (before Linux 5.4) has none of the wake-up flags.
    if length as usize == size_of::<T>() {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
    }
}

/// Maps a ring.
fn ring<T: Entry>(
    socket: RawFd,
    page: u64,
    offsets: libc::xdp_ring_offset,
    entries: usize,
) -> io::Result<Ring<T>> {
    let entries = entries as u32;
    Ok(Ring::new(Mapping::ring(socket, page, Ring::<T>::octets(&offsets, entries))?, offsets, entries))
}

/// The half of a socket that receives.
pub struct Receiver {
    shared: Arc<Shared>,
    fill: Ring<u64>,
    received: Ring<libc::xdp_desc>,
    /// Drops that the kernel has reported before.
    counted_drops: u64,
}

impl Receiver {
    fn new(shared: Arc<Shared>, offsets: &libc::xdp_mmap_offsets) -> io::Result<Receiver> {
        let raw = shared.socket.as_raw_fd();
        let mut fill = ring(raw, libc::XDP_UMEM_PGOFF_FILL_RING, offsets.fr, XDP_RECEIVE_FRAMES)?;
        for frame in 0..XDP_RECEIVE_FRAMES {
            fill.push((frame * XDP_FRAME) as u64);
        }
        fill.submit();
        let received = ring(raw, libc::XDP_PGOFF_RX_RING as u64, offsets.rx, XDP_RECEIVE_FRAMES)?;
        Ok(Receiver { shared, fill, received, counted_drops: 0 })
    }

    /// The socket, which is readable while frames wait.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.shared.socket.as_fd()
    }

    /// Number of frames that wait.
    pub fn waiting(&self) -> usize {
        self.received.available() as usize
    }

    /// One of the frames that wait.
    pub fn frame(&self, index: usize) -> &[u8] {
        let descriptor = self.received.peek(index as u32);
        let (start, length) = (descriptor.addr as usize, descriptor.len as usize);
        if start > RECEIVE_OCTETS || length > RECEIVE_OCTETS - start {
            return &[];
        }
        // SAFETY: the octets lie in the receiver's part of the frames (checked), which live as long as `self`. The kernel has filled the
        // frame and does not write to it before `release`, which needs `&mut self`; nothing in this process writes to that part.
        unsafe { std::slice::from_raw_parts(self.shared.frames.at(start, length), length) }
    }

    /// Gives the first `count` frames back to the kernel.
    pub fn release(&mut self, count: usize) {
        for index in 0..count {
            let address = self.received.peek(index as u32).addr;
            // The kernel leaves room at the beginning of a frame.
            self.fill.push(address / XDP_FRAME as u64 * XDP_FRAME as u64);
        }
        self.received.release(count as u32);
        self.fill.submit();
        if self.fill.needs_wakeup() {
            // SAFETY: no memory is given to the call. The card takes new frames; errors are those of a card that is busy with it.
            unsafe {
                let (nothing, none) = (std::ptr::null_mut(), std::ptr::null_mut());
                libc::recvfrom(
                    self.shared.socket.as_raw_fd(),
                    nothing,
                    0,
                    libc::MSG_DONTWAIT,
                    none,
                    none.cast(),
                );
            }
        }
    }

    /// Frames that the kernel has dropped since the last call because the worker was too slow.
    pub fn new_drops(&mut self) -> u64 {
        // SAFETY: the struct consists of integers, for which all zeros is a valid value.
        let mut statistics: libc::xdp_statistics = unsafe { zeroed() };
        if get(self.shared.socket.as_raw_fd(), libc::XDP_STATISTICS, &mut statistics).is_err() {
            return 0;
        }
        let drops = statistics.rx_dropped + statistics.rx_ring_full;
        drops - std::mem::replace(&mut self.counted_drops, drops).min(drops)
    }
}

/// The half of a socket that sends.
pub struct Sender {
    shared: Arc<Shared>,
    send: Ring<libc::xdp_desc>,
    completed: Ring<u64>,
    /// Places of the frames that nobody uses.
    free: Vec<u32>,
    zero_copy: bool,
}

/// A frame that the worker fills. It goes to [`Sender::queue`] or [`Sender::give_back`].
pub struct Place(u32);

impl Sender {
    fn new(shared: Arc<Shared>, offsets: &libc::xdp_mmap_offsets) -> io::Result<Sender> {
        let raw = shared.socket.as_raw_fd();
        let completed = ring(raw, libc::XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, XDP_SEND_FRAMES)?;
        let send = ring(raw, libc::XDP_PGOFF_TX_RING as u64, offsets.tx, XDP_SEND_FRAMES)?;
        let free = (0..XDP_SEND_FRAMES).map(|frame| (RECEIVE_OCTETS + frame * XDP_FRAME) as u32).collect();
        Ok(Sender { shared, send, completed, free, zero_copy: false })
    }

    /// A frame that nobody uses, if there is one.
    pub fn take(&mut self) -> Option<Place> {
        if self.free.is_empty() {
            self.reclaim();
        }
        self.free.pop().map(Place)
    }

    /// The octets of a frame.
    pub fn octets(&mut self, place: &Place) -> &mut [u8] {
        let start = self.shared.frames.at(place.0 as usize, XDP_FRAME);
        // SAFETY: the octets lie in the sender's part of the frames, which live as long as `self`. The frame was taken from `free`, so
        // the kernel does not use it; `place` is the only one of its kind, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(start, XDP_FRAME) }
    }

    /// Queues a frame of `length` octets.
    pub fn queue(&mut self, place: Place, length: usize) {
        let descriptor = libc::xdp_desc { addr: u64::from(place.0), len: length as u32, options: 0 };
        // The ring has an entry for each frame, so there is room.
        if !self.send.push(descriptor) {
            self.free.push(place.0);
        }
    }

    /// Gives a frame back that is not sent.
    pub fn give_back(&mut self, place: Place) {
        self.free.push(place.0);
    }

    /// Sends the queued frames, and those for which there was no room before. Returns the number of system calls.
    pub fn flush(&mut self) -> u64 {
        if self.send.outstanding() == 0 {
            return 0;
        }
        self.send.submit();
        let mut calls = 0;
        while calls < XDP_WAKEUPS && self.send.outstanding() > 0 && self.send.needs_wakeup() {
            calls += 1;
            let before = self.send.outstanding();
            // SAFETY: no memory is given to the call.
            let sent = unsafe {
                libc::sendto(
                    self.shared.socket.as_raw_fd(),
                    std::ptr::null(),
                    0,
                    libc::MSG_DONTWAIT,
                    std::ptr::null(),
                    0,
                )
            };
            // The kernel needs room for what it has sent.
            self.reclaim();
            // A card that reads the frames itself takes them later. Else a call takes some frames, and the error is EAGAIN while there
            // are more. Other errors are those of a full queue or of an interface that is down: the next turn tries again.
            let has_moved = self.send.outstanding() < before;
            if self.zero_copy || sent >= 0 || !has_moved {
                break;
            }
        }
        calls
    }

    /// Takes back the frames that were sent.
    fn reclaim(&mut self) {
        let count = self.completed.available();
        for index in 0..count {
            let address = self.completed.peek(index) as usize / XDP_FRAME * XDP_FRAME;
            if (RECEIVE_OCTETS..ALL_OCTETS).contains(&address) && self.free.len() < XDP_SEND_FRAMES {
                self.free.push(address as u32);
            }
        }
        if count > 0 {
            self.completed.release(count);
        }
    }
}
