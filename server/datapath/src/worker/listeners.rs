//! The part of a worker that serves its listening sockets: it takes batches of datagrams, begins and ends reading when another process
//! takes over, and spreads popular names.

use crate::counters::{Counter, Counters};
use crate::limits::{BATCH, LAST_BATCHES};
use crate::listen::listener::start_reading;
use crate::listen::popular_names::ChangedList;
use crate::listen::steering;
use crate::overload::queue_age::BatchTime;
use crate::worker::event_loop::{EventLoop, Worker};
use crate::worker::listener::{Listener, OverloadLimits};
use crate::worker::mailbox::{LISTEN, RELEASE, StreamSink};
use crate::worker::shared::Shared;
use engine::{Client, Instant, Machine};

impl<M: Machine + Send + 'static, S: StreamSink> EventLoop<M, S> {
    /// Takes one batch of queries from each readable listener.
    pub(super) fn serve_listeners(&mut self, turn: usize) {
        let count = self.worker.listeners.len();
        for step in 0..count {
            let listener = (turn + step) % count;
            if std::mem::take(&mut self.worker.listeners[listener].is_readable) {
                self.serve_listener(listener);
            }
        }
    }

    /// Takes a batch of queries from a listener. Returns true if there may be more.
    fn serve_listener(&mut self, number: usize) -> bool {
        let Worker { listeners, batch, counters, .. } = &mut self.worker;
        let Some((count, time)) = listeners[number].receive(batch, self.now) else { return false };
        counters.add(Counter::ReceiveBatches, 1);
        self.prefetch_batch(count);
        self.serve_batch(number, count, time);
        self.worker.end_batch(number, count, time);
        count == BATCH
    }

    /// Lets the machine load what the queries of a batch need.
    fn prefetch_batch(&mut self, count: usize) {
        let (batch, shared) = (&self.worker.batch, &self.worker.shared);
        // Behind a PROXY header the messages are not where they seem to be, and other workers' messages need nothing here.
        if count > 1 && !shared.must_forward() && shared.proxies().is_empty() {
            self.machine.prefetch_cache_lines((0..count).map(|slot| batch.message(slot)));
        }
    }

    /// Gives the queries of a batch to the machine, and counts them.
    fn serve_batch(&mut self, number: usize, count: usize, time: BatchTime) {
        let worker = &mut self.worker;
        let sampled = if count == BATCH { worker.name_sample.sampled() % BATCH } else { BATCH };
        let (mut octets, mut popular) = (0, None);
        for slot in 0..count {
            let (listener, proxies) = (&mut worker.listeners[number], worker.shared.proxies());
            let opened = listener.open(&worker.batch, slot, time, proxies, &worker.counters);
            let Some((client, message)) = opened else { continue };
            octets += message.len();
            if slot == sampled {
                let hash = steering::name_hash(message, worker.shared.seed());
                popular = hash.filter(|&hash| worker.name_sample.take(hash));
            }
            if !worker.shared.must_forward() || !forward(worker.index, &worker.shared, &client, message) {
                self.machine.query(self.now, &client, message, &mut self.out);
            }
        }
        worker.counters.add(Counter::ClientOctetsIn, octets as u64);
        if let Some(hash) = popular {
            self.spread(hash);
        }
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
        for listener in self.worker.listeners() {
            let _ = steering::attach(listener.socket(), shared.workers(), shared.seed(), proxied, &popular);
        }
    }

    /// Begins to read the listening sockets, which another process has read until now. If the kernel has no memory for that, the
    /// request stays, and the next turn tries again.
    pub(super) fn listen(&mut self) {
        if self.worker.released {
            if start_reading(self.worker.listeners(), self.out.links.registry()).is_err() {
                return;
            }
            self.worker.listeners.iter_mut().for_each(Listener::take_over);
            self.worker.released = false;
        }
        self.worker.mailbox.end_request(LISTEN);
    }

    /// Stops reading the listening sockets, which another process is going to read. They stay open, to answer what was read. The
    /// other process attaches filters of its own only once this request has ended.
    pub(super) fn release_listeners(&mut self) {
        self.drain_listeners();
        self.worker.released = true;
        self.worker.listeners.iter_mut().for_each(Listener::release);
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
            let socket = self.worker.listeners[listener].udp.socket();
            // If this fails, the level-triggered poll only reports a socket that is no longer read.
            let _ = self.out.links.registry().remove(socket);
        }
    }

    /// Adds the drops of the queues of all sockets to the counters. Those of released sockets are counted elsewhere.
    pub(super) fn count_drops(&mut self) {
        let Worker { listeners, counters, released, .. } = &mut self.worker;
        if !*released {
            listeners.iter_mut().for_each(|listener| listener.count_drops(counters));
        }
        self.out.links.count_drops(counters);
        #[cfg(feature = "xdp")]
        self.count_frame_drops();
    }
}

impl<M: Machine + Send + 'static> Worker<M> {
    /// Takes note of the end of a batch.
    fn end_batch(&mut self, number: usize, count: usize, time: BatchTime) {
        self.pause.note_receive(count == BATCH);
        let Worker { listeners, counters, shared, .. } = self;
        listeners[number].end_batch(time.now, count, &overload_limits(counters, shared));
    }

    /// Does the regular work of the listening sockets.
    pub(super) fn tick_listeners(&mut self, now: Instant) {
        let Worker { listeners, counters, shared, .. } = self;
        let limits = overload_limits(counters, shared);
        listeners.iter_mut().for_each(|listener| listener.tick(now, &limits));
    }
}

/// Sends a message to the worker that is responsible for its name. False: that is this one, `index`.
fn forward<M>(index: usize, shared: &Shared<M>, client: &Client, message: &[u8]) -> bool {
    match shared.find_home_worker(message) {
        Some(home_worker) if home_worker != index => {
            // The mailbox counts a refusal.
            let _ = shared.mailbox(home_worker).post(client, message);
            true
        }
        _ => false,
    }
}

fn overload_limits<'w, M>(counters: &'w Counters, shared: &'w Shared<M>) -> OverloadLimits<'w> {
    OverloadLimits { counters, client_prefix: shared.client_prefix(), proxies: shared.proxies().networks() }
}
