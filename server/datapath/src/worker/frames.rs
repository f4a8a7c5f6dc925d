//! The part of a worker that serves AF_XDP sockets (the feature `xdp`): it takes queries out of frames as the event loop takes them out
//! of datagrams, and gives the outbox the queues through which answers go back.
//!
//! The kernel spreads frames over queues by addresses and ports, so a query may arrive at another worker than the one that owns its name:
//! it then crosses by the mailbox, as with `steer = "flow"`, and the owner answers through a queue of its own or a socket
//! (`replies.rs`). Overload control, which is a filter on sockets, does not work here: what does not fit into the ring is dropped.

use crate::counters::Counter;
use crate::limits::{BATCH, LAST_BATCHES};
use crate::listen::proxy_protocol;
use crate::worker::event_loop::{EventLoop, Worker};
use crate::worker::frame_queue::FrameQueue;
use crate::worker::mailbox::StreamSink;
use crate::worker::shared::Shared;
use engine::{Client, ClientTransport, IdleTimeout, Machine};
use std::net::{IpAddr, SocketAddr};
use xdp::{AttachError, Attached, Datagram, FrameError, Origins, Route, Traffic, open, parse};

/// Attaches the XDP program to interfaces, and gives the workers the AF_XDP sockets of their queues. Call it before the workers start, and
/// before the process gives up its privileges. The program is gone when the last worker has ended, or the process.
///
/// No other process may inherit the descriptors: with a fork that goes on, the program would stay after the end of this process.
///
/// # Errors
///
/// An interface cannot be used; the text says which one, why, and what to do. Nothing stays attached.
pub fn attach<M: Machine + Send + 'static>(
    workers: &mut [Worker<M>],
    shared: &Shared<M>,
    interfaces: &[String],
) -> Result<Vec<Attached>, AttachError> {
    let (queues, report) = open(interfaces, shared.addresses(), workers.len())?;
    for (worker, queues) in workers.iter_mut().zip(queues) {
        worker.give_queues(queues).map_err(AttachError::of_poll)?;
    }
    Ok(report)
}

/// The client that sent a datagram over an interface, and the listening socket that stands for the address it was sent to. None if there
/// is no such socket.
fn client(datagram: &Datagram<'_>, number: u8, origins: &Origins, listen: &[SocketAddr]) -> Option<Client> {
    let &(_, index) = origins.interfaces.get(usize::from(number))?;
    let local = datagram.destination.to_canonical();
    let fits =
        |address: &SocketAddr, ip: IpAddr| address.port() == datagram.destination_port && address.ip() == ip;
    let any: IpAddr = if local.is_ipv4() { [0; 4].into() } else { [0u16; 8].into() };
    let exact = listen.iter().position(|address| fits(address, local));
    let listener = exact.or_else(|| listen.iter().position(|address| fits(address, any)))?;
    let is_link_local =
        datagram.source.is_unicast_link_local() || datagram.destination.is_unicast_link_local();
    Some(Client {
        address: datagram.source,
        local: datagram.destination,
        port: datagram.source_port,
        listener: listener as u16,
        scope: if is_link_local { index } else { 0 },
        stream: Route { interface: number, neighbour: datagram.neighbour }.to_token(),
        transport: ClientTransport::Udp,
        idle_timeout: IdleTimeout::CLOSE,
        proxy: None,
    })
}

impl<M: Machine + Send + 'static, S: StreamSink> EventLoop<M, S> {
    /// Takes one batch of queries from each readable queue.
    pub(super) fn serve_frames(&mut self) {
        for queue in 0..self.worker.frame_queues.len() {
            if std::mem::take(&mut self.worker.frame_queues[queue].is_readable) {
                self.serve_queue(queue);
            }
        }
    }

    /// Takes the queries that already wait in the queues of a worker that must stop.
    pub(super) fn drain_frames(&mut self) {
        if let Some(packet_cache) = &mut self.worker.packet_cache {
            let traffic = packet_cache.stop(self.now, &mut self.machine);
            self.count_traffic(traffic);
        }
        for queue in 0..self.worker.frame_queues.len() {
            for _ in 0..LAST_BATCHES {
                if !self.serve_queue(queue) {
                    break;
                }
            }
            // If this fails, the level-triggered poll only reports a queue that is no longer read.
            let _ = self.out.links.registry().remove(self.worker.frame_queues[queue].receiver.socket());
        }
    }

    /// Takes a batch of queries from a queue. Returns true if there may be more.
    fn serve_queue(&mut self, queue: usize) -> bool {
        let worker = &mut self.worker;
        let FrameQueue { interface, receiver, .. } = &worker.frame_queues[queue];
        let (counters, count) = (&worker.counters, receiver.waiting().min(BATCH));
        if count == 0 {
            return false;
        }
        counters.add(Counter::ReceiveBatches, 1);
        counters.add(Counter::ClientPacketsIn, count as u64);
        let mut octets = 0;
        for slot in 0..count {
            let datagram = match parse(receiver.frame(slot)) {
                Ok(datagram) => datagram,
                Err(FrameError::Checksum) => {
                    counters.add(Counter::BadChecksum, 1);
                    continue;
                }
                Err(FrameError::Unsuitable) => {
                    counters.add(Counter::Truncated, 1);
                    continue;
                }
            };
            let addresses = worker.shared.addresses();
            let Some(mut client) = client(&datagram, *interface, &self.out.replies.origins, addresses) else {
                continue;
            };
            let mut message = datagram.message;
            if message.len() > worker.batch.longest() {
                counters.add(Counter::Truncated, 1);
                continue;
            }
            if worker.shared.proxies().includes(&client) {
                match proxy_protocol::strip_header(&client, message) {
                    Ok(opened) => (client, message) = opened,
                    Err(proxy_protocol::Error::Missing) => {
                        counters.add(Counter::ProxyHeaderMissing, 1);
                        continue;
                    }
                    Err(_) => {
                        counters.add(Counter::ProxyHeaderMalformed, 1);
                        continue;
                    }
                }
            }
            octets += message.len();
            match worker.shared.find_home_worker(message) {
                // The mailbox counts a refusal.
                Some(home_worker) if home_worker != worker.index => {
                    let _ = worker.shared.mailbox(home_worker).post(&client, message);
                }
                _ => {
                    self.machine.query(self.now, &client, message, &mut self.out);
                    if let Some(packet_cache) = &mut worker.packet_cache {
                        packet_cache.on_query(self.now, message, &mut self.machine);
                    }
                }
            }
        }
        counters.add(Counter::ClientOctetsIn, octets as u64);
        worker.frame_queues[queue].receiver.release(count);
        worker.pause.note_receive(count == BATCH);
        count == BATCH
    }

    /// Does the regular work for the packet cache in the kernel.
    pub(super) fn maintain_packet_cache(&mut self) {
        if let Some(packet_cache) = &mut self.worker.packet_cache {
            let traffic = packet_cache.maintain(self.now, &mut self.machine);
            self.count_traffic(traffic);
        }
    }

    /// Counts what the program has answered.
    fn count_traffic(&self, traffic: Traffic) {
        let counters = &self.worker.counters;
        counters.add(Counter::ClientPacketsIn, traffic.queries);
        counters.add(Counter::ClientOctetsIn, traffic.octets_in);
        counters.add(Counter::ClientPacketsOut, traffic.queries);
        counters.add(Counter::ClientOctetsOut, traffic.octets_out);
    }

    /// Counts the frames that the kernel has dropped because the worker was too slow.
    pub(super) fn count_frame_drops(&mut self) {
        for queue in &mut self.worker.frame_queues {
            let drops = queue.receiver.new_drops();
            self.worker.counters.add(Counter::ReceiveQueueOverflow, drops);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    fn datagram(destination: &str, port: u16) -> Datagram<'static> {
        let source = if destination.starts_with("::ffff") { "::ffff:192.0.2.9" } else { "2001:db8::9" };
        Datagram {
            neighbour: [2, 0, 0, 0, 0, 9],
            source: source.parse().unwrap(),
            source_port: 5353,
            destination: destination.parse().unwrap(),
            destination_port: port,
            message: &[0; 12],
        }
    }

    fn origins() -> Origins {
        Origins { interfaces: vec![([2; 6], 7), ([4; 6], 8)], mtus: vec![1500; 2], ports: vec![53; 3] }
    }

    #[test]
    fn a_query_belongs_to_the_socket_of_its_address_before_that_of_all_addresses() {
        let listen: Vec<SocketAddr> =
            ["[::]:53", "0.0.0.0:53", "192.0.2.53:53"].map(|address| address.parse().unwrap()).to_vec();
        let listener = |destination: &str, port| {
            client(&datagram(destination, port), 1, &origins(), &listen).map(|client| client.listener)
        };
        assert_eq!(listener("2001:db8::53", 53), Some(0));
        assert_eq!(listener("::ffff:192.0.2.54", 53), Some(1));
        assert_eq!(listener("::ffff:192.0.2.53", 53), Some(2));
        assert_eq!(listener("2001:db8::53", 54), None);
        assert!(client(&datagram("2001:db8::53", 53), 2, &origins(), &listen).is_none(), "no such interface");
    }

    #[test]
    fn only_link_local_addresses_have_the_scope_of_their_interface() {
        let listen = ["[::]:53".parse().unwrap()];
        let scope = |source: &str, destination: &str| {
            let mut datagram = datagram(destination, 53);
            datagram.source = source.parse::<Ipv6Addr>().unwrap();
            client(&datagram, 1, &origins(), &listen).unwrap().scope
        };
        assert_eq!(scope("2001:db8::9", "2001:db8::53"), 0);
        assert_eq!(scope("fe80::9", "2001:db8::53"), 8);
        assert_eq!(scope("2001:db8::9", "fe80::53"), 8);
    }
}
