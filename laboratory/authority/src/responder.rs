//! A server without a machine: datagrams come in batches, a closure writes the answer to each, and the answers leave in
//! batches. It is for servers that keep no state between query and answer, such as an authority.
//!
//! With offload, datagrams that left their sender as one GSO send arrive as one buffer (UDP GRO). They have equal size, and the
//! last may be shorter. Answers of equal length to one client leave in GSO sends too. So a tester and this server on one machine
//! exchange 64 messages for little more than the cost of two. Without it, each message is a datagram of its own, as on a wire.
//!
//! The owner drives it: [`Responder::turn`] never blocks, and [`Responder::wait`] does. An answer may also come later, by
//! [`Responder::answer`]. There is no thread, clock or timer here.

use crate::limits::{RESPONDER_ANSWERS, RESPONDER_BUFFER, RESPONDER_RECEIVES, RESPONDER_SLOTS};
use datapath::counters::Counters;
use datapath::{Counter, ReceiveBatch, ResponseBatch, UdpListener, kernel_supports_gso};
use engine::{Client, Span};
use kernel::epoll::ReadableWait;
use kernel::syscalls::{receive_drops, set_option};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;

/// A set of listening sockets that one thread serves.
pub struct Responder {
    listeners: Vec<UdpListener>,
    /// The response queue of each listener.
    answers: Vec<ResponseBatch>,
    batch: ReceiveBatch,
    wait: ReadableWait,
    /// Drops of each listener that are already in the counters.
    counted_drops: Vec<u32>,
    counters: Arc<Counters>,
    /// Buffers received so far.
    buffers: u64,
    size: usize,
}

impl Responder {
    /// A responder for listeners. Each responder takes one listener of a group ([`UdpListener::bind_group`]). Answers have up to
    /// `size` octets. `offload`: datagrams of equal length come and leave together (UDP GRO and GSO).
    pub fn new(listeners: Vec<UdpListener>, size: usize, offload: bool) -> Responder {
        let gso = offload && kernel_supports_gso();
        for listener in listeners.iter().filter(|_| offload) {
            // A kernel without UDP GRO hands over datagrams one by one.
            let _ = set_option(listener.socket().as_raw_fd(), libc::SOL_UDP, libc::UDP_GRO, 1);
        }
        let raw = |listener: &UdpListener| listener.socket().as_raw_fd();
        let answers = |listener: &UdpListener| {
            ResponseBatch::with_capacity(
                raw(listener),
                listener.address().is_ipv6(),
                size,
                gso,
                RESPONDER_ANSWERS,
            )
        };
        Responder {
            answers: listeners.iter().map(answers).collect(),
            batch: ReceiveBatch::with_slots(RESPONDER_BUFFER, RESPONDER_SLOTS),
            wait: ReadableWait::new(listeners.iter().map(raw)),
            counted_drops: vec![0; listeners.len()],
            counters: Arc::default(),
            buffers: 0,
            listeners,
            size,
        }
    }

    /// The descriptors that are readable when a turn has work, for owners that wait for other events too.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.listeners.iter().map(UdpListener::socket)
    }

    /// The counters. [`Responder::count_drops`] adds the drops of the kernel.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Number of buffers received so far. A buffer holds a datagram, or several that the kernel hands over together (GRO).
    pub fn buffers(&self) -> u64 {
        self.buffers
    }

    /// Receives the waiting datagrams, at most 256 buffers per listener, calls `respond` to write an answer to each message into
    /// a frame, and sends the answers. A buffer holds a datagram, or several (GRO). Returns the number of messages that came.
    ///
    /// The frame has `size` octets. The closure returns the number of octets that it wrote: 0 if there is no answer, or if the
    /// answer comes later ([`Responder::answer`]).
    pub fn turn(&mut self, mut respond: impl FnMut(&Client, &[u8], &mut [u8]) -> usize) -> usize {
        let mut messages = 0;
        for number in 0..self.listeners.len() {
            for _ in 0..RESPONDER_RECEIVES {
                let (more, served) = self.serve(number, &mut respond);
                messages += served;
                if !more {
                    break;
                }
            }
        }
        self.flush();
        messages
    }

    /// Waits until datagrams come, for `span` at most. Datagrams that wait already end the wait at once.
    pub fn wait(&mut self, span: Span) {
        self.wait.wait(span.0);
    }

    /// Queues an answer that was not ready when its query came. It leaves with the next [`Responder::flush`] or turn.
    pub fn answer(&mut self, to: &Client, fill: impl FnOnce(&mut [u8]) -> usize) {
        let Some(answers) = self.answers.get_mut(usize::from(to.listener)) else {
            return self.counters.add(Counter::SendFailed, 1);
        };
        if let Some(frame) = answers.frame(self.size, &self.counters) {
            let length = fill(frame);
            answers.push(to, length);
        }
    }

    /// Sends the queued answers.
    pub fn flush(&mut self) {
        for answers in &mut self.answers {
            answers.flush(&self.counters);
        }
    }

    /// Counts the datagrams that the kernel dropped because a listener's queue was full. This costs a system call per listener,
    /// so do not call it in every turn.
    pub fn count_drops(&mut self) {
        for (listener, counted) in self.listeners.iter().zip(&mut self.counted_drops) {
            let drops = receive_drops(listener.socket().as_raw_fd());
            let new = drops.wrapping_sub(std::mem::replace(counted, drops));
            self.counters.add(Counter::ReceiveQueueOverflow, u64::from(new));
        }
    }

    /// Serves the datagrams of one receive from a listener. Returns true if there may be more, and the number of messages.
    fn serve(
        &mut self,
        number: usize,
        respond: &mut impl FnMut(&Client, &[u8], &mut [u8]) -> usize,
    ) -> (bool, usize) {
        let listener = &self.listeners[number];
        let ipv6 = listener.address().is_ipv6();
        let Ok(slots) = self.batch.receive_from_clients(listener.socket().as_raw_fd()) else {
            return (false, 0);
        };
        self.buffers += slots as u64;
        let (answers, counters) = (&mut self.answers[number], &*self.counters);
        let (mut messages, mut octets) = (0, 0);
        for slot in 0..slots {
            let Some((client, together, size)) = self.batch.client_messages(slot, ipv6, number as u16) else {
                counters.add(Counter::Truncated, 1);
                continue;
            };
            octets += together.len();
            let mut take = |message: &[u8]| {
                messages += 1;
                if let Some(frame) = answers.frame(self.size, counters) {
                    let length = respond(&client, message, frame);
                    answers.push(&client, length);
                }
            };
            if together.len() <= size {
                take(together);
            } else {
                together.chunks(size).for_each(take);
            }
        }
        counters.add(Counter::ReceiveBatches, 1);
        counters.add(Counter::ClientPacketsIn, messages as u64);
        counters.add(Counter::ClientOctetsIn, octets as u64);
        (slots == RESPONDER_SLOTS, messages)
    }
}

#[cfg(test)]
#[path = "responder_tests.rs"]
mod tests;
