//! The part of a worker that serves its listening sockets: it takes batches of datagrams, begins and ends reading when another process
//! takes over, keeps the filters of fair shedding, and spreads popular names.

use crate::counters::Counter;
use crate::limits::{BATCH, LAST_BATCHES};
use crate::listen::fair_shedding::FairShedding;
use crate::listen::listener::start_reading;
use crate::listen::popular_names::ChangedList;
use crate::listen::proxy_protocol;
use crate::listen::shedding_filter;
use crate::listen::steering;
use crate::socket::syscalls::receive_queue;
use crate::worker::event_loop::EventLoop;
use crate::worker::mailbox::{LISTEN, RELEASE, StreamSink};
use engine::settings::Networks;
use engine::{ClientNetwork, Machine};
use kernel::syscalls::receive_drops;
use std::os::fd::AsRawFd;

impl<M: Machine + Send + 'static, S: StreamSink> EventLoop<M, S> {
    /// Takes one batch of queries from each readable listener.
    pub(super) fn serve_listeners(&mut self, turn: usize) {
        let count = self.worker.listeners.len();
        for step in 0..count {
            let listener = (turn + step) % count;
            if std::mem::take(&mut self.worker.readable[listener]) {
                self.serve_listener(listener);
            }
        }
    }

    /// Takes a batch of queries from a listener. Returns true if there may be more.
    fn serve_listener(&mut self, listener: usize) -> bool {
        let worker = &mut self.worker;
        let counters = &worker.counters;
        let socket = &worker.listeners[listener];
        let ipv6 = socket.address().is_ipv6();
        let Ok(count) = worker.batch.receive_from_clients(socket.socket().as_raw_fd()) else { return false };
        counters.add(Counter::ReceiveBatches, 1);
        let (mut stale, mut popular) = (0, None);
        let sampled = if count == BATCH { worker.name_sample.sampled() % BATCH } else { BATCH };
        let must_forward = worker.shared.must_forward();
        // Behind a PROXY header the messages are not where they seem to be, and other workers' messages need nothing here.
        if count > 1 && !must_forward && worker.shared.proxies().is_empty() {
            self.machine.prefetch_cache_lines((0..count).map(|slot| worker.batch.message(slot)));
        }
        let mut octets = 0;
        for slot in 0..count {
            let Some((mut client, mut message)) = worker.batch.client_message(slot, ipv6, listener as u16)
            else {
                counters.add(Counter::Truncated, 1);
                continue;
            };
            if worker.shared.proxies().includes(&client) {
                worker.shedding[listener].record_proxied();
                match proxy_protocol::strip_header(&client, message) {
                    Ok(opened) => (client, message) = opened,
                    Err(error) => {
                        counters.add(
                            match error {
                                proxy_protocol::Error::Missing => Counter::ProxyHeaderMissing,
                                _ => Counter::ProxyHeaderMalformed,
                            },
                            1,
                        );
                        continue;
                    }
                }
            } else if !worker.shedding[listener].record(ClientNetwork::of(client.address, 0)) {
                // The network is that without the interface, which the filter does not see.
                stale += 1;
                continue;
            }
            octets += message.len();
            if slot == sampled {
                let hash = steering::name_hash(message, worker.shared.seed());
                popular = hash.filter(|&hash| worker.name_sample.take(hash));
            }
            if must_forward
                && let Some(home_worker) = worker.shared.find_home_worker(message)
                && home_worker != worker.index
            {
                // The mailbox counts a refusal.
                let _ = worker.shared.mailbox(home_worker).post(&client, message);
                continue;
            }
            self.machine.query(self.now, &client, message, &mut self.out);
        }
        counters.add(Counter::ClientPacketsIn, count as u64 - stale);
        counters.add(Counter::ClientOctetsIn, octets as u64);
        if stale > 0 {
            counters.add(worker.shedding[listener].reason_of_drops(), stale);
        }
        if let Some(hash) = popular {
            self.spread(hash);
        }
        // While networks are shed, batches that are not full show that too much is shed.
        if count < BATCH {
            self.worker.shedding[listener].on_queue_emptied(self.now);
            self.worker.forward_deficit[listener].on_emptied();
        } else {
            let raw = self.worker.listeners[listener].socket().as_raw_fd();
            let (forward_deficit, queue) = (&mut self.worker.forward_deficit[listener], receive_queue(raw));
            forward_deficit.on_batch(count, queue);
            self.worker.shedding[listener].observe_queue(self.now, forward_deficit.complete(queue));
        }
        if count == BATCH || self.worker.shedding[listener].is_active() {
            self.update_shedding(listener);
        }
        self.worker.pause.note_receive(count == BATCH);
        count == BATCH
    }

    /// Lets all workers answer a popular name.
    #[cold]
    fn spread(&self, hash: u32) {
        let shared = &self.worker.shared;
        if shared.workers() > 1
            && let Some(changed) = shared.popular_names().add(hash, self.now)
        {
            self.worker.counters.add(Counter::PopularNames, 1);
            self.steer(&changed);
        }
    }

    /// Gives names that are no longer popular back to their home workers. Sockets that another process reads are its own affair.
    pub(super) fn expire_popular_names(&self) {
        let names = self.worker.shared.popular_names();
        if !names.is_empty()
            && !self.worker.released
            && let Some(changed) = names.expire(self.now)
        {
            self.steer(&changed);
        }
    }

    /// Tells the kernel the names that all workers answer. If it has no memory for that, the names stay with their owners.
    fn steer(&self, changed: &ChangedList<'_>) {
        let shared = &self.worker.shared;
        if shared.must_forward() {
            return;
        }
        let (popular, proxied) = (changed.hashes(), !shared.proxies().is_empty());
        for listener in &self.worker.listeners {
            let _ = steering::attach(listener.socket(), shared.workers(), shared.seed(), proxied, &popular);
        }
    }

    /// Updates the shares of the networks that send too much, and the kernel's filter.
    pub(super) fn update_shedding(&mut self, listener: usize) {
        let worker = &mut self.worker;
        let shedding = &mut worker.shedding[listener];
        if !shedding.note_batch_and_ask_for_update(self.now) {
            return;
        }
        let (socket, reason) = (&worker.listeners[listener], shedding.reason_of_drops());
        let raw = socket.socket().as_raw_fd();
        let queue = worker.forward_deficit[listener].complete(receive_queue(raw));
        // Drops are those of the filter, unless the queue is nevertheless more than half full.
        let reason = if queue.used > queue.size / 2 { Counter::ReceiveQueueOverflow } else { reason };
        let new =
            queue.drops.wrapping_sub(std::mem::replace(&mut worker.counted_drops[listener], queue.drops));
        worker.counters.add(reason, u64::from(new));
        if let Some(shed) = shedding.update(self.now, queue, worker.shared.client_prefix()) {
            // If the kernel has no memory for a filter, all networks still pass.
            let proxies = worker.shared.proxies().networks();
            let _ = shedding_filter::attach(raw, shed, socket.address().is_ipv6(), proxies);
        }
    }

    /// Begins to read the listening sockets, which another process has read until now. If the kernel has no memory for that, the
    /// request stays, and the next turn tries again.
    pub(super) fn listen(&mut self) {
        if self.worker.released {
            if start_reading(&self.worker.listeners, self.out.links.registry()).is_err() {
                return;
            }
            let drops = self.worker.listeners.iter().map(|one| receive_drops(one.socket().as_raw_fd()));
            self.worker.counted_drops = drops.collect();
            self.worker.released = false;
        }
        self.worker.mailbox.end_request(LISTEN);
    }

    /// Stops reading the listening sockets, which another process is going to read. They stay open, to answer what was read. The
    /// other process attaches filters of its own only once this request has ended.
    pub(super) fn release_listeners(&mut self) {
        self.drain_listeners();
        self.worker.released = true;
        for (listener, shedding) in self.worker.listeners.iter().zip(&mut self.worker.shedding) {
            if shedding.is_active() {
                // The other process does not know of this filter.
                let raw = listener.socket().as_raw_fd();
                let _ = shedding_filter::attach(raw, &[], false, &Networks::default());
                *shedding = FairShedding::new();
            }
        }
        self.worker.mailbox.end_request(RELEASE);
    }

    /// Takes the queries that already wait at the listeners of a worker that must stop, and none that come later.
    pub(super) fn drain_listeners(&mut self) {
        if self.worker.released {
            return;
        }
        for listener in 0..self.worker.listeners.len() {
            for _ in 0..LAST_BATCHES {
                if !self.serve_listener(listener) {
                    break;
                }
            }
            let socket = self.worker.listeners[listener].socket();
            // If this fails, the level-triggered poll only reports a socket that is no longer read.
            let _ = self.out.links.registry().remove(socket);
        }
    }

    /// Adds the drops of the queues of all sockets to the counters.
    pub(super) fn count_drops(&mut self) {
        let worker = &mut self.worker;
        let listeners = worker.listeners.iter().zip(&worker.shedding);
        for ((listener, shedding), counted) in listeners.zip(&mut worker.counted_drops) {
            // While networks are shed, `update_shedding` counts the drops. Those of released sockets are counted elsewhere.
            if !shedding.is_active() && !worker.released {
                let drops = receive_queue(listener.socket().as_raw_fd()).drops;
                let new = drops.wrapping_sub(std::mem::replace(counted, drops));
                worker.counters.add(Counter::ReceiveQueueOverflow, u64::from(new));
            }
        }
        self.out.links.count_drops(&worker.counters);
        #[cfg(feature = "xdp")]
        self.count_frame_drops();
    }
}
