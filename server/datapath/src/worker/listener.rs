//! One listening socket of a worker: the datagrams that it brings, and its overload.

use crate::counters::{Counter, Counters};
use crate::limits::BATCH;
use crate::listen::listener::UdpListener;
use crate::listen::proxy_protocol::{self, TrustedProxies};
use crate::overload::queue_age::{BatchTime, QueueAge};
use crate::overload::{Overload, socket_filter};
use crate::socket::receive_batch::ReceiveBatch;
use crate::socket::syscalls::{now, receive_queue, wall_clock_ns};
use engine::settings::Networks;
use engine::{Client, ClientNetwork, Instant};
use kernel::syscalls::receive_drops;
use std::os::fd::{AsRawFd, RawFd};

/// A listening socket, and what a worker knows of it.
pub(crate) struct Listener {
    pub(super) udp: UdpListener,
    /// The number of the socket, which its clients carry.
    number: u16,
    /// True if the latest wait found the socket readable.
    pub(super) is_readable: bool,
    /// Drops of the socket that are already in the counters.
    counted_drops: u32,
    queue_age: QueueAge,
    overload: Overload,
    /// Datagrams of the present batch that have waited for too long, and whose networks send more than their share.
    stale: u64,
}

impl Listener {
    pub(super) fn new(udp: UdpListener, number: u16) -> Listener {
        Listener {
            // A socket that another process used before has counted drops already.
            counted_drops: receive_drops(udp.socket().as_raw_fd()),
            udp,
            number,
            is_readable: false,
            queue_age: QueueAge::default(),
            overload: Overload::new(),
            stale: 0,
        }
    }

    /// Receives a batch: its length, and the time. None: nothing waits.
    pub(super) fn receive(&self, batch: &mut ReceiveBatch, turn: Instant) -> Option<(usize, BatchTime)> {
        let time = match self.queue_age.is_on() {
            true => BatchTime { now: now(), wall_ns: wall_clock_ns() },
            false => BatchTime { now: turn, wall_ns: 0 },
        };
        batch.receive_from_clients(self.raw()).ok().map(|count| (count, time))
    }

    /// The client and the message of a datagram, without the header of a trusted proxy. None: it must be dropped, and was counted.
    pub(super) fn open<'d>(
        &mut self,
        batch: &'d ReceiveBatch,
        slot: usize,
        time: BatchTime,
        proxies: &TrustedProxies,
        counters: &Counters,
    ) -> Option<(Client, &'d [u8])> {
        let ipv6 = self.udp.address().is_ipv6();
        let Some((client, message, stamp_ns)) = batch.client_message(slot, ipv6, self.number) else {
            counters.add(Counter::Truncated, 1);
            return None;
        };
        let arrival = self.queue_age.arrival(time, stamp_ns);
        if proxies.includes(&client) {
            self.overload.record_proxied(arrival);
            return strip_proxy_header(&client, message, counters);
        }
        // The network is that without the interface, which the filter does not see.
        let is_served = self.overload.record(time.now, arrival, ClientNetwork::of(client.address, 0));
        self.stale += u64::from(!is_served);
        is_served.then_some((client, message))
    }

    /// A batch of `count` datagrams was read.
    pub(super) fn end_batch(&mut self, now: Instant, count: usize, limits: &OverloadLimits<'_>) {
        let stale = std::mem::take(&mut self.stale);
        limits.counters.add(Counter::ClientPacketsIn, count as u64 - stale);
        if stale > 0 {
            limits.counters.add(self.overload.reason_of_drops(), stale);
        }
        self.switch_stamps(now, count == BATCH);
        if count == BATCH || self.overload.is_alarmed() {
            self.check_overload(now, count < BATCH, limits);
        }
    }

    fn switch_stamps(&mut self, now: Instant, is_full: bool) {
        if let Some(is_on) = self.queue_age.switch(now, is_full) {
            self.udp.set_stamps(is_on);
        }
    }

    /// Does the regular work: a flood may have ended in silence.
    pub(super) fn tick(&mut self, now: Instant, limits: &OverloadLimits<'_>) {
        self.switch_stamps(now, false);
        if self.overload.is_active() {
            self.check_overload(now, false, limits);
        }
    }

    /// Counts the drops, and attaches the filter that the overload asks for. `is_empty`: nothing waits.
    fn check_overload(&mut self, now: Instant, is_empty: bool, limits: &OverloadLimits<'_>) {
        let queue = receive_queue(self.raw());
        // Drops are those of the filter, unless the queue is nevertheless more than half full.
        let reason = match queue.is_half_full() {
            true => Counter::ReceiveQueueOverflow,
            false => self.overload.reason_of_drops(),
        };
        self.count_new_drops(queue.drops, reason, limits.counters);
        let (is_empty, knows_age) = (is_empty || queue.used == 0, self.queue_age.is_known());
        if let Some(shed) = self.overload.on_batch(now, is_empty, knows_age, queue, limits.client_prefix) {
            // If the kernel has no memory for a filter, all networks still pass.
            let ipv6 = self.udp.address().is_ipv6();
            let _ = socket_filter::attach(self.udp.socket().as_raw_fd(), shed, ipv6, limits.proxies);
        }
    }

    /// Adds the drops of the queue to the counters. While networks are shed, `check_overload` does so.
    pub(super) fn count_drops(&mut self, counters: &Counters) {
        if !self.overload.is_active() {
            self.count_new_drops(receive_drops(self.raw()), Counter::ReceiveQueueOverflow, counters);
        }
    }

    fn count_new_drops(&mut self, drops: u32, reason: Counter, counters: &Counters) {
        let new = drops.wrapping_sub(std::mem::replace(&mut self.counted_drops, drops));
        counters.add(reason, u64::from(new));
    }

    /// Another process has read the socket until now: its drops are counted there.
    pub(super) fn take_over(&mut self) {
        self.counted_drops = receive_drops(self.raw());
    }

    /// Another process is going to read the socket. It does not know of a filter.
    pub(super) fn release(&mut self) {
        if self.overload.is_active() {
            let _ = socket_filter::attach(self.raw(), &[], false, &Networks::default());
            self.overload = Overload::new();
        }
    }

    fn raw(&self) -> RawFd {
        self.udp.socket().as_raw_fd()
    }
}

/// The client of a trusted proxy, and its message.
fn strip_proxy_header<'d>(
    proxy: &Client,
    datagram: &'d [u8],
    counters: &Counters,
) -> Option<(Client, &'d [u8])> {
    let reason = match proxy_protocol::strip_header(proxy, datagram) {
        Ok(opened) => return Some(opened),
        Err(proxy_protocol::Error::Missing) => Counter::ProxyHeaderMissing,
        Err(_) => Counter::ProxyHeaderMalformed,
    };
    counters.add(reason, 1);
    None
}

/// Parts of the worker that the handling of an overload needs.
pub(super) struct OverloadLimits<'w> {
    pub(super) counters: &'w Counters,
    pub(super) client_prefix: u8,
    pub(super) proxies: &'w Networks,
}
