//! Fairness in front of a listening socket. When more comes than the worker can read, the kernel's queue is full and
//! drops by arrival: a network that sends ten times what the worker can do would take nine questions in ten from everybody. So
//! the worker looks at its queue while it is busy, and when that grows beyond [`QUEUE_TARGET`] it works out what a network
//! may have at most for all to fit (max-min: who asks for less than that gets all of it), and lets only a part of what
//! the networks beyond it send into the queue. The kernel drops the rest before it is queued ([`filter`](crate::listen::shedding_filter)).
//!
//! This is the decision alone: no socket, no clock. A network is an IPv6 /64 or an IPv4 address, as everywhere else.
//! Where no network sends much, there is nobody to tell from the others, and the kernel drops by arrival as before.

use crate::limits::{
    DATAGRAM_QUEUE_OCTETS, HEAVY_NETWORKS, QUEUE_DRAIN_TIME, QUEUE_TARGET, SHED_NETWORKS, SHEDDING_DATAGRAMS,
    SHEDDING_IDLE_INTERVAL, SHEDDING_INTERVAL, SHEDDING_LONGEST_INTERVAL, SHEDDING_SAMPLE,
    SHEDDING_SMALLEST_SHARE,
};
use crate::socket::syscalls::ReceiveQueue;
use engine::{Instant, Span};
use std::net::Ipv6Addr;

/// A network of which only a part passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ShedNetwork {
    pub(crate) network: u64,
    /// The part that passes, below 1.
    pub(crate) share: f64,
}

/// What was known at a look.
#[derive(Clone, Copy, Default)]
struct Observation {
    at: Instant,
    queue: ReceiveQueue,
    datagrams: u64,
}

impl Observation {
    /// Datagrams a second that were read since an earlier look, and that came.
    fn rates_since(&self, earlier: &Observation) -> (f64, f64) {
        let seconds = seconds_of(self.at - earlier.at);
        let read = (self.datagrams - earlier.datagrams) as f64;
        let grown = (self.queue.waiting() - earlier.queue.waiting()).max(0.0);
        let dropped = f64::from(self.queue.drops.wrapping_sub(earlier.queue.drops));
        (read / seconds, (read + grown + dropped) / seconds)
    }
}

/// The gate of one listening socket.
pub(crate) struct FairShedding {
    /// Networks of the latest datagrams, written round and round.
    recent: Box<[u64]>,
    /// Datagrams so far.
    datagrams: u64,
    previous: Option<Observation>,
    /// The first look since the worker has last kept up.
    busy_since: Observation,
    /// Datagrams a second that the worker reads and that clients send, smoothed while the gate is closed.
    read_rate: f64,
    offered_rate: f64,
    /// Looks since the gate was closed, up to 8: what is read is smoothed over so many.
    updates: u32,
    /// Looks in a row that found an overload.
    overloads: u32,
    /// Who passes in part, as the kernel was told.
    shed: Vec<ShedNetwork>,
    next_shed: Vec<ShedNetwork>,
    /// The sample in order, and the networks that send much with their parts of what is offered: room for the work of a look.
    sorted_sample: Vec<u64>,
    heavy: Vec<(u64, f64)>,
}

/// The number of the network of an address (IPv4 as IPv4-mapped).
#[inline]
pub(crate) fn client_network(address: Ipv6Addr) -> u64 {
    let bits = u128::from(address);
    if bits >> 32 == 0xffff { bits as u32 as u64 } else { (bits >> 64) as u64 }
}

impl FairShedding {
    pub(crate) fn new() -> FairShedding {
        FairShedding {
            recent: vec![0; SHEDDING_SAMPLE].into_boxed_slice(),
            datagrams: 0,
            previous: None,
            busy_since: Observation::default(),
            read_rate: 0.0,
            offered_rate: 0.0,
            updates: 0,
            overloads: 0,
            shed: Vec::with_capacity(SHED_NETWORKS),
            next_shed: Vec::with_capacity(SHED_NETWORKS),
            sorted_sample: Vec::with_capacity(SHEDDING_SAMPLE),
            heavy: Vec::with_capacity(HEAVY_NETWORKS + SHED_NETWORKS),
        }
    }

    /// A datagram of a network was read.
    #[inline]
    pub(crate) fn record(&mut self, network: u64) {
        self.recent[self.datagrams as usize % SHEDDING_SAMPLE] = network;
        self.datagrams += 1;
    }

    /// Whether some networks are let through in part only.
    pub(crate) fn is_active(&self) -> bool {
        !self.shed.is_empty()
    }

    /// The worker has read all that waited: what comes next is measured anew.
    #[inline]
    pub(crate) fn on_queue_emptied(&mut self) {
        if !self.is_active() {
            self.previous = None;
        }
    }

    /// Whether [`FairShedding::update`] would learn something new.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let Some(previous) = &self.previous else { return true };
        let (waited, read) = (now - previous.at, self.datagrams - previous.datagrams);
        match self.is_active() {
            true => {
                waited >= SHEDDING_INTERVAL && read >= SHEDDING_DATAGRAMS
                    || waited >= SHEDDING_LONGEST_INTERVAL
            }
            false => waited >= SHEDDING_IDLE_INTERVAL && read >= SHEDDING_DATAGRAMS,
        }
    }

    /// Looks at the queue. Returns whom the kernel is to let through in part, if that has changed: nobody when the gate opens.
    pub(crate) fn update(&mut self, now: Instant, queue: ReceiveQueue) -> Option<&[ShedNetwork]> {
        let current = Observation { at: now, queue, datagrams: self.datagrams };
        let Some(previous) = self.previous.replace(current) else {
            // From here on it is measured.
            (self.busy_since, self.overloads) = (current, 0);
            return None;
        };
        if now == previous.at {
            return None;
        }
        let (read_rate, offered_rate) = current.rates_since(&previous);
        if self.is_active() {
            // Slowly, as a worker that is held up and then catches up is as fast as both together; but what closed the gate was
            // seen for a moment only and counts for nothing.
            self.updates = (self.updates + 1).min(8);
            self.read_rate += (read_rate - self.read_rate) / f64::from(self.updates);
            self.offered_rate += (offered_rate - self.offered_rate) / 2.0;
        } else {
            let is_long =
                queue.waiting() > 2.0 * read_rate * seconds_of(QUEUE_TARGET) || queue.used > queue.size / 4;
            self.overloads = if is_long && offered_rate > read_rate { self.overloads + 1 } else { 0 };
            (self.read_rate, self.offered_rate) = (read_rate, offered_rate);
            if queue.drops != previous.queue.drops {
                // Somebody has lost something: what counts is all that came since the worker has last kept up.
                (self.read_rate, self.offered_rate) = current.rates_since(&self.busy_since);
            } else if self.overloads < 2 {
                // Once may be a worker that was held up for a moment: it catches up.
                return None;
            }
            self.updates = 0;
        }
        let read = self.datagrams - previous.datagrams;
        self.find_heavy_networks(read);
        let changed = self.compute_shares(queue);
        changed.then_some(&self.shed[..])
    }

    /// Finds the networks that send much, and how much: `heavy` holds the parts of what is offered, largest first.
    fn find_heavy_networks(&mut self, read: u64) {
        let sampled = (read as usize).min(SHEDDING_SAMPLE);
        self.sorted_sample.clear();
        self.sorted_sample.extend(
            (0..sampled).map(|back| self.recent[(self.datagrams as usize - 1 - back) % SHEDDING_SAMPLE]),
        );
        self.sorted_sample.sort_unstable();
        self.heavy.clear();
        // What passed in part stands for more.
        let share = |network| self.shed.iter().find(|shed| shed.network == network).map(|shed| shed.share);
        let mut whole = 0.0;
        for run in self.sorted_sample.chunk_by(|one, other| one == other) {
            let share = share(run[0]);
            let weight = run.len() as f64 / share.unwrap_or(1.0);
            whole += weight;
            if share.is_some() || run.len() * HEAVY_NETWORKS >= sampled {
                self.heavy.push((run[0], weight));
            }
        }
        self.heavy.iter_mut().for_each(|(_, weight)| *weight /= whole);
        self.heavy.sort_unstable_by(|one, other| other.1.total_cmp(&one.1));
    }

    /// Divides what the worker can do. Says whether anything has changed.
    fn compute_shares(&mut self, queue: ReceiveQueue) -> bool {
        // What may come in, so that the queue reaches its target within GATE_DRAIN: never empty, and with room for bursts.
        let rate = self.read_rate.max(1.0);
        let wanted =
            (rate * seconds_of(QUEUE_TARGET)).min(f64::from(queue.size) / DATAGRAM_QUEUE_OCTETS / 3.0);
        let off = (wanted - queue.waiting()) / (rate * seconds_of(QUEUE_DRAIN_TIME));
        let target = rate * (1.0 + off).max(0.25);
        let offered = self.offered_rate;
        let all_heavy: f64 = self.heavy.iter().map(|(_, share)| share).sum();
        let mut room = target - (1.0 - all_heavy) * offered;
        let mut level = f64::INFINITY;
        // From the smallest on: who wants less than an equal share of what is left gets it all.
        for (place, (_, share)) in self.heavy.iter().enumerate().rev() {
            let equal = room / (place + 1) as f64;
            if share * offered > equal {
                level = equal;
                break;
            }
            room -= share * offered;
        }
        self.next_shed.clear();
        for &(network, share) in self.heavy.iter().take(SHED_NETWORKS) {
            let share = (level / (share * offered)).max(SHEDDING_SMALLEST_SHARE);
            if share >= 1.0 {
                break;
            }
            self.next_shed.push(ShedNetwork { network, share });
        }
        // Each change costs some microseconds in the kernel; small ones are not worth it.
        let is_same = self.next_shed.len() == self.shed.len()
            && self.next_shed.iter().all(|next_shed| {
                let now = self.shed.iter().find(|shed| shed.network == next_shed.network);
                now.is_some_and(|now| (next_shed.share - now.share).abs() <= now.share / 8.0)
            });
        if !is_same {
            std::mem::swap(&mut self.shed, &mut self.next_shed);
        }
        if self.shed.is_empty() {
            self.overloads = 0;
        }
        !is_same
    }
}

fn seconds_of(span: Span) -> f64 {
    span.0 as f64 / 1e9
}

#[cfg(test)]
#[path = "fair_shedding_tests.rs"]
mod tests;
