//! Datagrams that were read, but that the kernel still counts as waiting. Linux moves all that waits at a UDP socket to a second queue,
//! from which the process reads, and releases the octets of what it has read only when that queue is empty, or when they are a quarter of
//! the receive buffer (`udp_rmem_release` in net/ipv4/udp.c). So the count of a queue that never gets empty is too large, by as much as a
//! quarter of the buffer: 3,900 small datagrams in one of 12 MiB, where a queue of some hundreds is too long.
//!
//! The count falls only by a release. Read after each batch, it tells how much was read since the last one.

use crate::limits::DATAGRAM_QUEUE_OCTETS;
use crate::socket::syscalls::ReceiveQueue;

/// A quarter of the receive buffer at most is not released.
const UNRELEASED_SHARE: u32 = 4;

/// The octets of one socket that are not released yet.
#[derive(Default)]
pub(crate) struct ForwardDeficit {
    octets: u32,
    /// The kernel's count after the latest batch.
    used: u32,
}

impl ForwardDeficit {
    /// A batch of `datagrams` was read, and others may wait. `queue`: its state after that.
    pub(crate) fn on_batch(&mut self, datagrams: usize, queue: ReceiveQueue) {
        let read = (datagrams as f64 * DATAGRAM_QUEUE_OCTETS) as u32;
        let is_released = queue.used < std::mem::replace(&mut self.used, queue.used);
        self.octets = if is_released { 0 } else { (self.octets + read).min(queue.size / UNRELEASED_SHARE) };
    }

    /// The process has emptied the queue, so all is released.
    pub(crate) fn on_emptied(&mut self) {
        *self = ForwardDeficit::default();
    }

    /// The state of the queue with the octets that are not released yet.
    pub(crate) fn complete(&self, queue: ReceiveQueue) -> ReceiveQueue {
        ReceiveQueue { forward_deficit: self.octets.min(queue.used), ..queue }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::BATCH;
    use crate::socket::syscalls::receive_queue;
    use kernel::syscalls::set_receive_buffer;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    /// Octets of each datagram, and how many there are in a socket that can hold many more.
    const LENGTH: usize = 48;
    const SENT: usize = 1_500;

    #[test]
    fn the_length_of_a_queue_is_known_while_it_is_read() {
        let server = UdpSocket::bind("[::1]:0").expect("a port of the loopback interface");
        server.set_nonblocking(true).expect("a socket can be nonblocking");
        let raw = server.as_raw_fd();
        set_receive_buffer(raw, 2 << 20, true);
        let client = UdpSocket::bind("[::1]:0").expect("a port of the loopback interface");
        let address = server.local_addr().expect("a bound socket has an address");
        let capacity = (f64::from(receive_queue(raw).size) / 1_000.0) as usize;
        let sent = SENT.min(capacity);
        let send = |count: usize| (0..count).for_each(|_| drop(client.send_to(&[0; LENGTH], address)));
        send(sent);
        let full = receive_queue(raw);
        let each = f64::from(full.used) / sent as f64;
        let mut forward_deficit = ForwardDeficit::default();
        let (mut waiting, mut buffer) = (sent, [0; LENGTH]);
        // Some come while others are read, until none comes any more.
        for turn in 0.. {
            let read = (0..BATCH).take_while(|_| server.recv(&mut buffer).is_ok()).count();
            waiting -= read;
            if read < BATCH {
                assert_eq!(waiting, 0);
                forward_deficit.on_emptied();
                assert_eq!(forward_deficit.complete(receive_queue(raw)).waiting(), 0.0);
                break;
            }
            let coming = if turn < 10 { 20 } else { 0 };
            send(coming);
            waiting += coming;
            forward_deficit.on_batch(read, receive_queue(raw));
            let queue = forward_deficit.complete(receive_queue(raw));
            let found = f64::from(queue.used - queue.forward_deficit) / each;
            // A release may come within a batch, and each datagram takes a little more than it counts for here.
            let off = (found - waiting as f64).abs();
            assert!(off <= 1.2 * BATCH as f64 + 0.1 * sent as f64, "{turn}: {found}, not {waiting}");
        }
    }

    #[test]
    fn a_kernel_that_releases_at_once_is_believed() {
        let mut forward_deficit = ForwardDeficit::default();
        for used in [40_000, 30_000, 20_000, 10_000] {
            let queue = ReceiveQueue { used, size: 100_000, ..ReceiveQueue::default() };
            forward_deficit.on_batch(10, queue);
            if used < 40_000 {
                assert_eq!(forward_deficit.complete(queue), queue);
            }
        }
    }

    #[test]
    fn never_more_than_the_kernel_keeps_is_unreleased() {
        let mut forward_deficit = ForwardDeficit::default();
        let queue = ReceiveQueue { used: 80_000, size: 100_000, ..ReceiveQueue::default() };
        (0..100).for_each(|_| forward_deficit.on_batch(BATCH, queue));
        assert_eq!(forward_deficit.complete(queue).forward_deficit, 25_000);
        let shorter = ReceiveQueue { used: 100, ..queue };
        assert_eq!(forward_deficit.complete(shorter).waiting(), 0.0);
    }
}
