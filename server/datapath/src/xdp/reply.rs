//! The way of an answer to a client whose query came in a frame: through a queue of the same interface that the answering worker owns,
//! to the Ethernet address that brought the query. An answer for which that is not possible leaves through the listening socket: the
//! worker owns no queue of the interface, no frame is free, or the answer is longer than a packet that passes everywhere.
//!
//! The route (interface and Ethernet address) travels in [`Client::stream`], which the engine and the mailbox keep for the datapath and
//! which datagrams do not use otherwise.

use crate::counters::{Counter, Counters};
use crate::limits::XDP_MESSAGE;
use crate::listen::response_queue::ResponseQueue;
use crate::xdp::frame::{Addresses, EthernetAddress, LONGEST_HEADERS, write_headers};
use crate::xdp::socket::Sender;
use engine::Client;
use std::sync::Arc;

/// Marks a route, so that none is zero.
const IS_ROUTE: u64 = 1 << 63;
/// Bits of an Ethernet address. The number of the interface lies above them.
const ETHERNET_BITS: u32 = 48;

/// The way back to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Number of the interface, in the order of the configuration.
    pub(crate) interface: u8,
    /// Ethernet address of the client or of a router.
    pub(crate) neighbour: EthernetAddress,
}

impl Route {
    /// The route as a number.
    pub(crate) fn to_token(self) -> u64 {
        let neighbour = self.neighbour.iter().fold(0, |bits, &octet| bits << 8 | u64::from(octet));
        IS_ROUTE | u64::from(self.interface) << ETHERNET_BITS | neighbour
    }

    /// The route to a client; none if its query came through a socket.
    pub(crate) fn of(client: &Client) -> Option<Route> {
        let token = client.stream;
        if token & IS_ROUTE == 0 || !client.transport.is_datagram() {
            return None;
        }
        let [_, _, neighbour @ ..] = token.to_be_bytes();
        Some(Route { interface: (token >> ETHERNET_BITS) as u8, neighbour })
    }
}

/// Facts about the interfaces and listening addresses that answers need; all workers share them.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// Ethernet address and number of each interface, in the order of the configuration.
    pub(crate) interfaces: Vec<(EthernetAddress, u32)>,
    /// Longest IP packet of each interface, in octets.
    pub(crate) mtus: Vec<usize>,
    /// Port of each listening socket.
    pub(crate) ports: Vec<u16>,
}

/// The queues through which a worker sends answers.
#[derive(Default)]
pub(crate) struct Replies {
    /// Number of the interface, and the sending half of the socket.
    pub(crate) senders: Vec<(u8, Sender)>,
    pub(crate) origins: Arc<Origins>,
    /// State of the generator of IPv4 identifications. A seed from the system makes the first ones hard to guess.
    pub(crate) generator: u64,
}

impl Replies {
    /// Writes an answer and queues it. `size` is its greatest length. Returns false if the answer cannot be sent.
    #[inline]
    pub(crate) fn push(
        &mut self,
        to: &Client,
        route: Route,
        size: usize,
        counters: &Counters,
        otherwise: &mut [ResponseQueue],
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> bool {
        let listener = usize::from(to.listener);
        let Some(queue) = otherwise.get_mut(listener) else {
            counters.add(Counter::SendFailed, 1);
            return false;
        };
        let (Some(addresses), Some(&mtu)) =
            (self.addresses(to, route, listener), self.origins.mtus.get(usize::from(route.interface)))
        else {
            return queue.push(to, size, counters, fill);
        };
        let identification = self.identification();
        let sender = self.senders.iter_mut().find(|(interface, _)| *interface == route.interface);
        let Some((_, sender)) = sender else { return queue.push(to, size, counters, fill) };
        let Some(place) = sender.take() else { return queue.push(to, size, counters, fill) };
        let frame = sender.octets(&place);
        let headers = addresses.headers();
        if size > frame.len() - LONGEST_HEADERS {
            sender.give_back(place);
            return queue.push(to, size, counters, fill);
        }
        let message = &mut frame[headers..];
        let length = fill(message).min(message.len());
        let longest = XDP_MESSAGE.min(mtu.saturating_sub(LONGEST_HEADERS));
        if length == 0 || length > longest {
            // The socket sends longer answers in fragments.
            let message = &frame[headers..headers + length];
            let copy = |to: &mut [u8]| {
                to[..length].copy_from_slice(message);
                length
            };
            let is_sent = length == 0 || queue.push(to, length, counters, copy);
            sender.give_back(place);
            return is_sent;
        }
        write_headers(&mut frame[..headers + length], &addresses, identification);
        sender.queue(place, headers + length);
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
    fn a_route_survives_the_way_through_the_engine() {
        for interface in [0, 1, 7, 255] {
            for neighbour in [[0; 6], [2, 0, 0, 0, 0, 9], [0xfe; 6]] {
                let route = Route { interface, neighbour };
                let mut client = Client::udp("192.0.2.9:5353".parse().unwrap());
                assert_eq!(Route::of(&client), None);
                client.stream = route.to_token();
                assert_eq!(Route::of(&client), Some(route));
            }
        }
    }

    #[test]
    fn the_token_of_a_connection_is_no_route() {
        let mut client = Client::udp("192.0.2.9:5353".parse().unwrap());
        client.stream = Route { interface: 0, neighbour: [0; 6] }.to_token();
        client.transport = engine::ClientTransport::Tcp;
        assert_eq!(Route::of(&client), None);
    }

    #[test]
    fn an_answer_of_a_worker_without_a_queue_leaves_through_the_socket() {
        let listener = crate::UdpListener::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        let socket = std::os::fd::AsRawFd::as_raw_fd(&listener.socket());
        let mut queues = [ResponseQueue::new(socket, false, 1232, true)];
        let origins = Origins { interfaces: vec![([2; 6], 1)], mtus: vec![1500], ports: vec![53] };
        let mut replies = Replies { origins: Arc::new(origins), ..Replies::default() };
        let mut to = Client::udp(client.local_addr().unwrap());
        to.local = "::ffff:127.0.0.1".parse().unwrap();
        let counters = Counters::default();
        for interface in [0, 9] {
            let route = Route { interface, neighbour: [2; 6] };
            let fill = |frame: &mut [u8]| {
                frame[..3].copy_from_slice(b"yes");
                3
            };
            assert!(replies.push(&to, route, 100, &counters, &mut queues, fill));
            queues[0].flush(&counters);
            let mut buffer = [0; 16];
            assert_eq!(client.recv(&mut buffer).unwrap(), 3);
        }
    }
}
