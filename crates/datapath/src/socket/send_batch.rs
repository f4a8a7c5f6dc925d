//! Messages on their way out through one socket: the arrays that sendmmsg works on.
//!
//! Messages that follow each other, go to the same place and have the same length (the last may be shorter) leave as one
//! large send which the kernel cuts up (UDP GSO, Linux 4.18). That saves most of their way through the stack,
//! for the questions to an upstream, and for the answers when they go to one client. `make bench` prints what the packets
//! of a resolution cost (the reflector).

use crate::counters::{Counter, Counters};
use crate::limits::{BULK, BULK_MESSAGE, SEGMENTS};
use crate::socket::address::{Controls, Name};
use crate::socket::pinned_array::{Fixed, empty_header, empty_vector};
use crate::socket::syscalls::set_option;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// Where a message goes, for sockets that are not connected.
pub(crate) struct Envelope {
    pub(crate) name: Name,
    pub(crate) name_length: libc::socklen_t,
    pub(crate) controls: Controls,
}

/// How sends are counted.
pub(crate) struct Ledger {
    pub(crate) packets: Counter,
    pub(crate) octets: Counter,
    /// Drop: the kernel had no room.
    pub(crate) full: Counter,
    /// Drop: any other error.
    pub(crate) failed: Counter,
}

/// The arrays for up to a fixed number of messages.
pub(crate) struct Outgoing {
    vectors: Fixed<libc::iovec>,
    headers: Fixed<libc::mmsghdr>,
    names: Fixed<Name>,
    controls: Fixed<Controls>,
    /// The message that each send begins with, and the end.
    firsts: Vec<u16>,
    bulk: bool,
}

/// How far a pass came.
enum Pass {
    Done,
    /// These messages could not leave in one send; what comes after them was not tried.
    NotInBulk(usize, usize),
}

impl Outgoing {
    pub(crate) fn new(capacity: usize, bulk: bool) -> Outgoing {
        let mut outgoing = Outgoing {
            vectors: Fixed::new(empty_vector(), capacity),
            headers: Fixed::new(empty_header(), capacity),
            names: Fixed::new(Name::empty(), capacity),
            controls: Fixed::new(Controls::empty(), capacity),
            firsts: vec![0; capacity + 1],
            bulk,
        };
        for send in 0..capacity {
            outgoing.headers.get_mut(send).msg_hdr.msg_control = outgoing.controls.at(send).cast();
        }
        outgoing
    }

    /// Whether messages may leave in bulk.
    pub(crate) fn is_bulk(&self) -> bool {
        self.bulk
    }

    /// Sets message `index`.
    pub(crate) fn set(&mut self, index: usize, octets: *mut u8, length: usize) {
        *self.vectors.get_mut(index) = libc::iovec { iov_base: octets.cast(), iov_len: length };
    }

    /// Sends the first `count` messages through a socket. `same` says whether two messages go to the same place,
    /// `envelope` where one goes (nothing: the socket is connected). What cannot be sent is dropped and counted, and
    /// does not keep the rest from leaving. The error is the last one that says that the way is blocked.
    ///
    /// # Safety
    ///
    /// What was given to [`Outgoing::set`] for these messages must be valid memory.
    pub(crate) unsafe fn send(
        &mut self,
        socket: RawFd,
        count: usize,
        same: impl Fn(usize, usize) -> bool,
        envelope: impl Fn(usize) -> Option<Envelope>,
        counters: &Counters,
        ledger: &Ledger,
    ) -> Result<(), i32> {
        let mut outcome = Ok(());
        let mut start = 0;
        while start < count {
            self.arrange(start, count, self.bulk, &same, &envelope);
            // SAFETY: `arrange` has set the headers; the caller vouches for the messages.
            let Pass::NotInBulk(first, end) =
                (unsafe { self.pass(socket, start, count, counters, ledger, &mut outcome) })
            else {
                break;
            };
            let before = counters.get(ledger.packets);
            self.arrange(first, end, false, &same, &envelope);
            // SAFETY: as above.
            unsafe { self.pass(socket, first, end, counters, ledger, &mut outcome) };
            // What passes one by one but not in bulk shows that the way out cannot cut up. What fails either way
            // (an answer to port 0) must not cost all others the bulk.
            self.bulk = counters.get(ledger.packets) == before;
            start = end;
        }
        outcome
    }

    /// Makes headers for the messages `start..end`.
    fn arrange(
        &mut self,
        start: usize,
        end: usize,
        bulk: bool,
        same: impl Fn(usize, usize) -> bool,
        envelope: impl Fn(usize) -> Option<Envelope>,
    ) {
        let mut send = 0;
        let mut message = start;
        while message < end {
            let size = if bulk { self.together(message, end, &same) } else { 1 };
            self.firsts[send] = message as u16;
            let mut controls = Controls::empty();
            let header = &mut self.headers.get_mut(send).msg_hdr;
            header.msg_iov = self.vectors.at(message);
            header.msg_iovlen = size as _;
            if let Some(envelope) = envelope(message) {
                *self.names.get_mut(send) = envelope.name;
                header.msg_name = self.names.at(send).cast();
                header.msg_namelen = envelope.name_length;
                controls = envelope.controls;
            }
            if size > 1 {
                controls.cut_into(self.vectors.get(message).iov_len as u16);
            }
            header.msg_controllen = controls.length() as _;
            if controls.length() > 0 {
                *self.controls.get_mut(send) = controls;
            }
            send += 1;
            message += size;
        }
        self.firsts[send] = end as u16;
    }

    /// How many messages from `first` on can leave in one send.
    fn together(&self, first: usize, end: usize, same: impl Fn(usize, usize) -> bool) -> usize {
        let length = self.vectors.get(first).iov_len;
        if length > BULK_MESSAGE {
            return 1;
        }
        let limit = (end - first).min(SEGMENTS).min(BULK / length.max(1));
        let mut size = 1;
        while size < limit {
            let next = self.vectors.get(first + size).iov_len;
            if next > length || !same(first, first + size) {
                break;
            }
            size += 1;
            if next < length {
                break;
            }
        }
        size
    }

    /// Sends what `arrange` has put together of the messages `start..end`.
    ///
    /// # Safety
    ///
    /// As for [`Outgoing::send`].
    unsafe fn pass(
        &mut self,
        socket: RawFd,
        start: usize,
        end: usize,
        counters: &Counters,
        ledger: &Ledger,
        outcome: &mut Result<(), i32>,
    ) -> Pass {
        let mut send = 0;
        let mut first = start;
        let mut repeated = None;
        counters.add(Counter::SendBatches, 1);
        while first < end {
            let sends = self.firsts[send..].iter().take_while(|&&message| usize::from(message) < end).count();
            // SAFETY: these headers were set by `arrange` and point into arrays of this object; the caller vouches for
            // the messages.
            match unsafe { send_some(socket, self.headers.range_mut(send, sends)) } {
                Ok(sent) => {
                    send += sent;
                    let next = usize::from(self.firsts[send]);
                    let octets: usize =
                        self.vectors.range(first, next - first).iter().map(|vector| vector.iov_len).sum();
                    counters.add(ledger.packets, (next - first) as u64);
                    counters.add(ledger.octets, octets as u64);
                    first = next;
                }
                Err(libc::EAGAIN) => {
                    counters.add(ledger.full, (end - first) as u64);
                    break;
                }
                // "Fragmentation needed": whoever can forge ICMP has the kernel say so at the next send over a connected
                // socket, which it does not try then. If it is true, it will be said again.
                Err(libc::EMSGSIZE) if repeated.replace(send) != Some(send) => {}
                Err(error) => {
                    send += 1;
                    let next = usize::from(self.firsts[send]);
                    if next - first > 1
                        && matches!(error, libc::EINVAL | libc::EIO | libc::EMSGSIZE | libc::EOPNOTSUPP)
                    {
                        return Pass::NotInBulk(first, next);
                    }
                    let full = matches!(error, libc::ENOBUFS | libc::ENOMEM);
                    counters.add(if full { ledger.full } else { ledger.failed }, (next - first) as u64);
                    if !full && error != libc::EMSGSIZE {
                        *outcome = Err(error);
                    }
                    first = next;
                }
            }
        }
        Pass::Done
    }
}

/// Sends messages until one fails: returns how many left, or the error of the first.
///
/// # Safety
///
/// What the headers point at must be valid during the call.
unsafe fn send_some(socket: RawFd, headers: &mut [libc::mmsghdr]) -> Result<usize, i32> {
    loop {
        // SAFETY: `headers` is a slice of that length; the caller vouches for what they point at.
        let sent = unsafe {
            libc::sendmmsg(socket, headers.as_mut_ptr(), headers.len() as u32, libc::MSG_DONTWAIT as _)
        };
        if sent > 0 {
            return Ok(sent as usize);
        }
        match io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO) {
            libc::EINTR => {}
            error => return Err(error),
        }
    }
}

/// Whether the kernel knows how to cut up large sends. One that does not would send them whole.
pub(crate) fn kernel_cuts() -> bool {
    Socket::new(Domain::IPV6, Type::DGRAM, Some(Protocol::UDP))
        .or_else(|_| Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)))
        .is_ok_and(|socket| set_option(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok())
}
