//! The way of an answer to a client whose query came in a frame: through a queue of the same interface that the answering worker owns,
//! to the Ethernet address that brought the query. An answer for which that is not possible leaves through the listening socket: the
//! worker owns no queue of the interface, no frame is free, or the answer is longer than a packet that passes everywhere.

use crate::counters::{Counter, Counters};
use crate::listen::response_batch::ResponseBatch;
use engine::Client;
use std::sync::Arc;
use xdp::limits::XDP_MESSAGE;
use xdp::{Addresses, LONGEST_HEADERS, Origins, Place, Queues, Route, Sender, write_headers};

/// The queues through which a worker sends answers.
#[derive(Default)]
pub(crate) struct Replies {
    /// Number of the interface, and the sending half of the socket.
    senders: Vec<(u8, Sender)>,
    /// Facts about interfaces and listening addresses.
    pub(crate) origins: Arc<Origins>,
    /// State of the generator of IPv4 identifications. A seed from the system makes the first ones hard to guess.
    generator: u64,
    /// The frame of the answer that is being written.
    held: Option<Held>,
}

/// A frame of a queue, and where its answer goes.
struct Held {
    /// Index of the queue.
    sender: usize,
    place: Place,
    addresses: Addresses,
}

impl Replies {
    /// Takes the sending halves out of a worker's queues.
    pub(crate) fn of(queues: &mut Queues) -> Replies {
        Replies {
            senders: std::mem::take(&mut queues.senders),
            origins: Arc::clone(&queues.origins),
            generator: getrandom::u64().unwrap_or_default(),
            held: None,
        }
    }

    /// Returns a frame for an answer of at most `size` octets; none if there is none. `socket`: the queue of the listening socket.
    #[inline]
    pub(crate) fn frame<'f>(
        &'f mut self,
        to: &Client,
        route: Route,
        size: usize,
        counters: &Counters,
        socket: &'f mut ResponseBatch,
    ) -> Option<&'f mut [u8]> {
        if let Some(Held { sender, place, .. }) = self.held.take() {
            self.senders[sender].1.give_back(place);
        }
        self.held = self.hold(to, route, size);
        let Some(Held { sender, place, addresses }) = &self.held else { return socket.frame(size, counters) };
        Some(&mut self.senders[*sender].1.octets(place)[addresses.headers()..])
    }

    /// Takes a frame of the queue that leads to a client; none if the answer has to leave through the socket.
    fn hold(&mut self, to: &Client, route: Route, size: usize) -> Option<Held> {
        let addresses = self.addresses(to, route, usize::from(to.listener))?;
        let sender = self.senders.iter().position(|(interface, _)| *interface == route.interface)?;
        let senders = &mut self.senders[sender].1;
        let place = senders.take()?;
        if size > senders.octets(&place).len() - LONGEST_HEADERS {
            senders.give_back(place);
            return None;
        }
        Some(Held { sender, place, addresses })
    }

    /// Queues the answer in the first `length` octets of the frame. Returns false if it cannot be sent.
    #[inline]
    pub(crate) fn push(
        &mut self,
        to: &Client,
        length: usize,
        counters: &Counters,
        socket: &mut ResponseBatch,
    ) -> bool {
        let Some(Held { sender, place, addresses }) = self.held.take() else {
            socket.push(to, length);
            return true;
        };
        let identification = self.identification();
        let (interface, sender) = &mut self.senders[sender];
        let end = addresses.headers() + length;
        let frame = &mut sender.octets(&place)[..end];
        let mtu = self.origins.mtus.get(usize::from(*interface)).copied().unwrap_or(0);
        if length == 0 || length > XDP_MESSAGE.min(mtu.saturating_sub(LONGEST_HEADERS)) {
            // The socket sends longer answers in fragments.
            let copy = if length == 0 { None } else { socket.frame(length, counters) };
            let is_sent = length == 0 || copy.is_some();
            if let Some(copy) = copy {
                copy[..length].copy_from_slice(&frame[addresses.headers()..]);
                socket.push(to, length);
            }
            sender.give_back(place);
            return is_sent;
        }
        write_headers(frame, &addresses, identification);
        sender.queue(place, end);
        counters.add(Counter::ClientPacketsOut, 1);
        counters.add(Counter::ClientOctetsOut, length as u64);
        true
    }

    /// Sends what is queued.
    pub(crate) fn flush(&mut self, counters: &Counters) {
        for (_, sender) in &mut self.senders {
            counters.add(Counter::SendBatches, sender.flush());
        }
    }

    /// The addresses of an answer.
    fn addresses(&self, to: &Client, route: Route, listener: usize) -> Option<Addresses> {
        let (ethernet, _) = *self.origins.interfaces.get(usize::from(route.interface))?;
        let port = *self.origins.ports.get(listener)?;
        Some(Addresses {
            ethernet,
            neighbour: route.neighbour,
            source: (to.local, port),
            destination: to.answer_to(),
        })
    }

    /// The next IPv4 identification (splitmix64, of which the upper bits are used).
    fn identification(&mut self) -> u16 {
        self.generator = self.generator.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.generator ^ self.generator >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 48) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_a_worker_without_a_queue_leaves_through_the_socket() {
        let listener = crate::UdpListener::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        let socket = std::os::fd::AsRawFd::as_raw_fd(&listener.socket());
        let mut queue = ResponseBatch::new(socket, false, 1232, true);
        let origins = Origins { interfaces: vec![([2; 6], 1)], mtus: vec![1500], ports: vec![53] };
        let mut replies = Replies { origins: Arc::new(origins), ..Replies::default() };
        let mut to = Client::udp(client.local_addr().unwrap());
        to.local = "::ffff:127.0.0.1".parse().unwrap();
        let counters = Counters::default();
        for interface in [0, 9] {
            let route = Route { interface, neighbour: [2; 6] };
            let frame = replies.frame(&to, route, 100, &counters, &mut queue).unwrap();
            frame[..3].copy_from_slice(b"yes");
            assert!(replies.push(&to, 3, &counters, &mut queue));
            queue.flush(&counters);
            let mut buffer = [0; 16];
            assert_eq!(client.recv(&mut buffer).unwrap(), 3);
        }
    }
}
