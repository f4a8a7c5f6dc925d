//! The answers that wait to leave through one listening socket. They leave sorted by client and length, so that the answers
//! for one client (a resolver that forwards to us, a load generator) can leave in GSO sends. UDP keeps no order anyway.

use crate::counters::{Counter, Counters};
use crate::limits::BATCH;
use crate::socket::address::Sockaddr;
use crate::socket::send_batch::{Destination, SendBatch, SendCounters};
use engine::Client;
use kernel::control_messages::ControlMessages;
use kernel::pinned_array::{CACHE_LINE, PinnedArray, stride};
use std::os::fd::RawFd;

const SEND_COUNTERS: SendCounters = SendCounters {
    packets: Counter::ClientPacketsOut,
    octets: Counter::ClientOctetsOut,
    no_room: Counter::SendBufferFull,
    failed: Counter::SendFailed,
};

/// A queue of answers.
pub struct ResponseBatch {
    socket: RawFd,
    ipv6: bool,
    stride: usize,
    /// The messages, one after the other, so that short messages touch little memory.
    octets: PinnedArray<u8>,
    /// Offset of the next message.
    next: usize,
    clients: Vec<Client>,
    starts: Vec<u32>,
    lengths: Vec<u16>,
    /// Sort keys of the queued answers. The lowest octet is the slot.
    sort_keys: Vec<u64>,
    batch: SendBatch,
}

impl ResponseBatch {
    /// A queue of [`BATCH`] answers of up to `size` octets, which leave through `socket`. `gso`: the kernel supports GSO.
    pub(crate) fn new(socket: RawFd, ipv6: bool, size: usize, gso: bool) -> ResponseBatch {
        ResponseBatch::with_capacity(socket, ipv6, size, gso, BATCH)
    }

    /// A queue as `ResponseBatch::new` makes it, but for up to `capacity` answers. At most 256: a slot has eight bits in the
    /// sort keys.
    pub fn with_capacity(
        socket: RawFd,
        ipv6: bool,
        size: usize,
        gso: bool,
        capacity: usize,
    ) -> ResponseBatch {
        let stride = stride(size);
        let capacity = capacity.clamp(1, 256);
        let unspecified = Client::udp((std::net::Ipv6Addr::UNSPECIFIED, 0).into());
        ResponseBatch {
            socket,
            ipv6,
            stride,
            octets: PinnedArray::new(0u8, stride * BATCH),
            next: 0,
            clients: vec![unspecified; capacity],
            starts: vec![0; capacity],
            lengths: vec![0; capacity],
            sort_keys: Vec::with_capacity(capacity),
            batch: SendBatch::new(capacity, gso),
        }
    }

    /// Returns the frame for the next answer, of at most `size` octets; none if the answers of this listener are shorter. Sends a full queue
    /// first.
    #[inline]
    pub fn frame(&mut self, size: usize, counters: &Counters) -> Option<&mut [u8]> {
        if size > self.stride {
            counters.add(Counter::AnswerOversize, 1);
            return None;
        }
        // `octets` has room for BATCH messages of the greatest length. Short messages are sent when their octets are used up.
        if self.sort_keys.len() == self.clients.len() || self.next > (BATCH - 1) * self.stride {
            self.flush(counters);
        }
        Some(self.octets.range_mut(self.next, self.stride))
    }

    /// Queues the answer in the first `length` octets of the frame; none if they are 0.
    #[inline]
    pub fn push(&mut self, to: &Client, length: usize) {
        if length > 0 {
            let (slot, length) = (self.sort_keys.len(), length.min(self.stride));
            self.clients[slot] = *to;
            self.starts[slot] = self.next as u32;
            self.lengths[slot] = length as u16;
            self.sort_keys.push(sort_key(to, length, slot));
            // Rounded up to cache lines, so that writing one message does not disturb another.
            self.next += length.next_multiple_of(CACHE_LINE);
        }
    }

    /// Sends the queued answers. Those for which the kernel has no room, or that cannot be sent, are dropped and counted.
    pub fn flush(&mut self, counters: &Counters) {
        if self.sort_keys.is_empty() {
            return;
        }
        if self.batch.uses_gso() {
            self.sort_keys.sort_unstable();
        }
        for (index, sort_key) in self.sort_keys.iter().enumerate() {
            let slot = usize::from(*sort_key as u8);
            let start = self.starts[slot] as usize;
            self.batch.set(index, self.octets.at(start), usize::from(self.lengths[slot]));
        }
        let (sort_keys, clients, ipv6) = (&self.sort_keys, &self.clients, self.ipv6);
        let client = |index: usize| &clients[usize::from(sort_keys[index] as u8)];
        // SAFETY: each message lies in `octets`, which live as long as this object: `frame` borrows a range of the stride at the
        // message's offset, and a length is at most the stride.
        let _ = unsafe {
            self.batch.send(
                self.socket,
                sort_keys.len(),
                |one, other| same_destination(client(one), client(other)),
                |index| Some(destination(client(index), ipv6)),
                counters,
                &SEND_COUNTERS,
            )
        };
        self.sort_keys.clear();
        self.next = 0;
    }
}

/// True if the answers of two clients have one destination and one source address.
fn same_destination(one: &Client, other: &Client) -> bool {
    one.answer_to() == other.answer_to() && one.local == other.local && one.scope == other.scope
}

fn destination(client: &Client, ipv6: bool) -> Destination {
    let (address, address_length) = Sockaddr::to_client(client, ipv6);
    let mut controls = ControlMessages::empty();
    if !client.local.is_unspecified() {
        controls.set_source(client.local, client.scope, ipv6);
    }
    Destination { address, address_length, controls }
}

/// The sort key that brings the answers of one client together, the longest first: 24 bits folded from the address, the port,
/// the inverted length, the slot. Clients with equal bits are mixed, which costs only some GSO.
fn sort_key(client: &Client, length: usize, slot: usize) -> u64 {
    let (address, port) = client.answer_to();
    let address = u128::from(address);
    let halves = address as u64 ^ (address >> 64) as u64;
    let folded = halves ^ halves >> 24 ^ halves >> 48;
    (folded & 0xff_ffff) << 40 | u64::from(port) << 24 | u64::from(!(length as u16)) << 8 | slot as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen::listener::UdpListener;
    use std::net::{SocketAddr, UdpSocket};
    use std::os::fd::AsRawFd;
    use std::time::Duration;

    fn listener(address: &str) -> UdpListener {
        UdpListener::bind(address.parse().unwrap(), false).unwrap()
    }

    fn client(address: &str) -> UdpSocket {
        let socket = UdpSocket::bind(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket
    }

    fn push_answer(queue: &mut ResponseBatch, to: SocketAddr, message: &[u8]) -> bool {
        let Some(frame) = queue.frame(message.len(), &Counters::default()) else { return false };
        frame[..message.len()].copy_from_slice(message);
        queue.push(&Client::udp(to), message.len());
        true
    }

    #[test]
    fn one_unreachable_client_does_not_keep_the_others_from_their_answers() {
        let listener = listener("127.0.0.1:0");
        let client = client("127.0.0.1:0");
        let here = client.local_addr().unwrap();
        let mut queue = ResponseBatch::new(listener.socket().as_raw_fd(), false, 1232, true);
        let counters = Counters::default();
        // Nothing may be sent to a broadcast address without SO_BROADCAST, nor to port 0, and not in a GSO send either.
        let nowhere: [SocketAddr; 2] =
            ["255.255.255.255:53".parse().unwrap(), "127.0.0.1:0".parse().unwrap()];
        let to = [nowhere[0], here, nowhere[1], here, nowhere[0], nowhere[1]];
        for (number, to) in to.into_iter().enumerate() {
            assert!(push_answer(&mut queue, to, &[number as u8; 30]));
        }
        queue.flush(&counters);
        let mut buffer = [0; 64];
        for number in [1, 3] {
            let length = client.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..length], [number; 30]);
        }
        assert_eq!(counters.get(Counter::SendFailed), 4);
        assert_eq!(counters.get(Counter::ClientPacketsOut), 2);
        assert_eq!(counters.get(Counter::ClientOctetsOut), 60);
        assert!(queue.batch.uses_gso(), "answers that fail either way do not turn GSO off");
    }

    #[test]
    fn more_answers_than_a_batch_all_arrive_at_their_clients() {
        for (address, gso) in [("127.0.0.1:0", true), ("[::1]:0", true), ("[::1]:0", false)] {
            let listener = listener(address);
            let clients = [client(address), client(address), client(address)];
            let mut queue =
                ResponseBatch::new(listener.socket().as_raw_fd(), address.starts_with('['), 4096, gso);
            let mut expected = [const { Vec::new() }; 3];
            for number in 0..3 * BATCH + 5 {
                let length = [50, 62, 62, 1232, 62, 4000, 1][number * 5 % 7];
                let message = vec![number as u8; length];
                assert!(push_answer(&mut queue, clients[number % 3].local_addr().unwrap(), &message));
                expected[number % 3].push(message);
            }
            let counters = Counters::default();
            queue.flush(&counters);
            let mut buffer = [0; 8192];
            for (client, expected) in clients.iter().zip(&mut expected) {
                let mut arrived: Vec<_> = (0..expected.len())
                    .map(|_| {
                        let length = client.recv(&mut buffer).unwrap();
                        buffer[..length].to_vec()
                    })
                    .collect();
                arrived.sort();
                expected.sort();
                assert_eq!(&arrived, expected);
            }
            assert_eq!(queue.batch.uses_gso(), gso);
        }
    }

    #[test]
    fn an_answer_beyond_the_configured_size_is_refused_and_counted() {
        let counters = Counters::default();
        let mut queue = ResponseBatch::new(-1, false, 512, true);
        assert!(queue.frame(4096, &counters).is_none());
        assert_eq!(counters.get(Counter::AnswerOversize), 1);
    }
}
