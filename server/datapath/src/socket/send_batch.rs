//! A batch of messages that leave through one socket: the arrays that sendmmsg works on.
//!
//! Consecutive messages with one destination and one length (the last may be shorter) leave as one large send that the
//! kernel cuts up: UDP GSO, Linux 4.18. That saves most of their way through the network stack, for the queries to an
//! upstream, and for the answers if they go to one client. `make bench` prints the cost of the packets of a resolution (the
//! reflector).

use crate::counters::{Counter, Counters};
use crate::limits::{GSO_MESSAGE_OCTETS, GSO_OCTETS, GSO_SEGMENTS};
use crate::socket::address::Sockaddr;
use kernel::control_messages::ControlMessages;
use kernel::pinned_array::{PinnedArray, empty_header, empty_iovec};
use kernel::syscalls::{send_messages, set_option};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// The destination of a message, for sockets that are not connected.
pub(crate) struct Destination {
    pub(crate) address: Sockaddr,
    pub(crate) address_length: libc::socklen_t,
    pub(crate) controls: ControlMessages,
}

/// The counters of a kind of send.
pub(crate) struct SendCounters {
    pub(crate) packets: Counter,
    pub(crate) octets: Counter,
    /// Drop: the kernel had no room.
    pub(crate) no_room: Counter,
    /// Drop: any other error.
    pub(crate) failed: Counter,
}

/// The arrays for up to a fixed number of messages.
pub(crate) struct SendBatch {
    iovecs: PinnedArray<libc::iovec>,
    headers: PinnedArray<libc::mmsghdr>,
    addresses: PinnedArray<Sockaddr>,
    controls: PinnedArray<ControlMessages>,
    /// The first message of each send, and the end of the last send.
    send_starts: Vec<u16>,
    gso: bool,
}

/// The result of sending the prepared headers.
enum SendResult {
    Done,
    /// These messages could not leave in one GSO send. The messages after them were not tried.
    GsoRejected(usize, usize),
}

impl SendBatch {
    pub(crate) fn new(capacity: usize, gso: bool) -> SendBatch {
        let mut batch = SendBatch {
            iovecs: PinnedArray::new(empty_iovec(), capacity),
            headers: PinnedArray::new(empty_header(), capacity),
            addresses: PinnedArray::new(Sockaddr::empty(), capacity),
            controls: PinnedArray::new(ControlMessages::empty(), capacity),
            send_starts: vec![0; capacity + 1],
            gso,
        };
        for send in 0..capacity {
            batch.headers.get_mut(send).msg_hdr.msg_control = batch.controls.at(send).cast();
        }
        batch
    }

    /// True if messages may leave in GSO sends.
    pub(crate) fn uses_gso(&self) -> bool {
        self.gso
    }

    /// Sets message `index`.
    pub(crate) fn set(&mut self, index: usize, octets: *mut u8, length: usize) {
        *self.iovecs.get_mut(index) = libc::iovec { iov_base: octets.cast(), iov_len: length };
    }

    /// Sends the first `count` messages through a socket. `same_destination` is true if two messages have one destination.
    /// `destination` returns the destination of a message, or `None` if the socket is connected. A message that cannot be sent is
    /// dropped and counted, and the rest leave.
    ///
    /// # Errors
    ///
    /// The last error number (errno) that means that a destination cannot be reached. The other messages have left all the same.
    ///
    /// # Safety
    ///
    /// The octets given to [`SendBatch::set`] for these messages must be valid memory.
    pub(crate) unsafe fn send(
        &mut self,
        socket: RawFd,
        count: usize,
        same_destination: impl Fn(usize, usize) -> bool,
        destination: impl Fn(usize) -> Option<Destination>,
        counters: &Counters,
        send_counters: &SendCounters,
    ) -> Result<(), i32> {
        let mut outcome = Ok(());
        let mut start = 0;
        while start < count {
            self.prepare_sends(start, count, self.gso, &same_destination, &destination);
            // SAFETY: `prepare_sends` has set the headers; the caller vouches for the messages.
            let SendResult::GsoRejected(first, end) =
                (unsafe { self.send_prepared(socket, start, count, counters, send_counters, &mut outcome) })
            else {
                break;
            };
            let before = counters.get(send_counters.packets);
            self.prepare_sends(first, end, false, &same_destination, &destination);
            // SAFETY: as above.
            unsafe { self.send_prepared(socket, first, end, counters, send_counters, &mut outcome) };
            // If the messages leave one by one but not as one, the way out does not support GSO. If they fail either way (an
            // answer to port 0), all other messages must keep GSO.
            self.gso = counters.get(send_counters.packets) == before;
            start = end;
        }
        outcome
    }

    /// Makes the headers of the sends for the messages `start..end`.
    fn prepare_sends(
        &mut self,
        start: usize,
        end: usize,
        gso: bool,
        same_destination: impl Fn(usize, usize) -> bool,
        destination: impl Fn(usize) -> Option<Destination>,
    ) {
        let mut send = 0;
        let mut message = start;
        while message < end {
            let size = if gso { self.count_segments(message, end, &same_destination) } else { 1 };
            self.send_starts[send] = message as u16;
            let mut controls = ControlMessages::empty();
            let header = &mut self.headers.get_mut(send).msg_hdr;
            header.msg_iov = self.iovecs.at(message);
            header.msg_iovlen = size as _;
            if let Some(destination) = destination(message) {
                *self.addresses.get_mut(send) = destination.address;
                header.msg_name = self.addresses.at(send).cast();
                header.msg_namelen = destination.address_length;
                controls = destination.controls;
            }
            if size > 1 {
                controls.set_segment_size(self.iovecs.get(message).iov_len as u16);
            }
            header.msg_controllen = controls.length() as _;
            if controls.length() > 0 {
                *self.controls.get_mut(send) = controls;
            }
            send += 1;
            message += size;
        }
        self.send_starts[send] = end as u16;
    }

    /// Counts the messages from `first` on that can leave in one send.
    fn count_segments(
        &self,
        first: usize,
        end: usize,
        same_destination: impl Fn(usize, usize) -> bool,
    ) -> usize {
        let length = self.iovecs.get(first).iov_len;
        if length > GSO_MESSAGE_OCTETS {
            return 1;
        }
        let limit = (end - first).min(GSO_SEGMENTS).min(GSO_OCTETS / length.max(1));
        let mut size = 1;
        while size < limit {
            let next = self.iovecs.get(first + size).iov_len;
            if next > length || !same_destination(first, first + size) {
                break;
            }
            size += 1;
            if next < length {
                break;
            }
        }
        size
    }

    /// Sends the messages `start..end` with the headers that `prepare_sends` made.
    ///
    /// # Safety
    ///
    /// As for [`SendBatch::send`].
    unsafe fn send_prepared(
        &mut self,
        socket: RawFd,
        start: usize,
        end: usize,
        counters: &Counters,
        send_counters: &SendCounters,
        outcome: &mut Result<(), i32>,
    ) -> SendResult {
        let mut send = 0;
        let mut first = start;
        let mut repeated = None;
        counters.add(Counter::SendBatches, 1);
        while first < end {
            let sends =
                self.send_starts[send..].iter().take_while(|&&message| usize::from(message) < end).count();
            // SAFETY: these headers were set by `prepare_sends` and point into arrays of this object; the caller vouches for
            // the messages.
            match unsafe { sendmmsg(socket, self.headers.range_mut(send, sends)) } {
                Ok(sent) => {
                    send += sent;
                    let next = usize::from(self.send_starts[send]);
                    let octets: usize =
                        self.iovecs.range(first, next - first).iter().map(|iovec| iovec.iov_len).sum();
                    counters.add(send_counters.packets, (next - first) as u64);
                    counters.add(send_counters.octets, octets as u64);
                    first = next;
                }
                Err(libc::EAGAIN) => {
                    counters.add(send_counters.no_room, (end - first) as u64);
                    break;
                }
                // "Fragmentation needed": a forged ICMP message makes the kernel return this error at the next send over a
                // connected socket, without trying that send. If the error is real, it comes again.
                Err(libc::EMSGSIZE) if repeated.replace(send) != Some(send) => {}
                Err(error) => {
                    send += 1;
                    let next = usize::from(self.send_starts[send]);
                    if next - first > 1
                        && matches!(error, libc::EINVAL | libc::EIO | libc::EMSGSIZE | libc::EOPNOTSUPP)
                    {
                        return SendResult::GsoRejected(first, next);
                    }
                    let no_room = matches!(error, libc::ENOBUFS | libc::ENOMEM);
                    counters.add(
                        if no_room { send_counters.no_room } else { send_counters.failed },
                        (next - first) as u64,
                    );
                    if !no_room && error != libc::EMSGSIZE {
                        *outcome = Err(error);
                    }
                    first = next;
                }
            }
        }
        SendResult::Done
    }
}

/// Sends messages until one fails. Returns the number that left, or the error of the first message.
///
/// # Safety
///
/// The memory that the headers point at must be valid during the call.
unsafe fn sendmmsg(socket: RawFd, headers: &mut [libc::mmsghdr]) -> Result<usize, i32> {
    loop {
        // SAFETY: all headers began as `empty_header`; the caller vouches for what they point at.
        let sent = unsafe { send_messages(socket, headers) };
        if sent > 0 {
            return Ok(sent as usize);
        }
        match io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO) {
            libc::EINTR => {}
            error => return Err(error),
        }
    }
}

/// True if the kernel supports UDP GSO. A kernel without it would send a large send as one datagram.
pub fn kernel_supports_gso() -> bool {
    Socket::new(Domain::IPV6, Type::DGRAM, Some(Protocol::UDP))
        .or_else(|_| Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)))
        .is_ok_and(|socket| set_option(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok())
}
