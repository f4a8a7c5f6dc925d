//! Fairness in front of a listening socket. When more comes than the worker can read, the kernel's queue is full and
//! drops by arrival: a network that sends ten times what the worker can do would take nine questions in ten from everybody. So
//! the worker looks at its queue while it is busy, and when that grows beyond [`QUEUE_TARGET`] it works out what a network
//! may have at most for all to fit (max-min: who asks for less than that gets all of it), and lets only a part of what
//! the networks beyond it send into the queue. The kernel drops the rest before it is queued ([`filter`](crate::listen::shedding_filter)).
//!
//! This is the decision alone: no socket, no clock. A network is an IPv6 /64 or an IPv4 address, as everywhere else.
//! Where no network sends much, there is nobody to tell from the others, and the kernel drops by arrival as before.

use crate::limits::{
    GATE_BIG, GATE_CALM, GATE_DATAGRAMS, GATE_DRAIN, GATE_INTERVAL, GATE_OPEN_INTERVAL, GATE_SAMPLE,
    GATE_SMALLEST_PART, GATED, QUEUE_TARGET, QUEUED_OCTETS,
};
use crate::socket::syscalls::ReceiveQueue;
use engine::{Instant, Span};
use std::net::Ipv6Addr;

/// A network of which only a part passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gated {
    pub(crate) network: u64,
    /// The part that passes, below 1.
    pub(crate) part: f64,
}

/// What was known at a look.
#[derive(Clone, Copy, Default)]
struct Look {
    at: Instant,
    queue: ReceiveQueue,
    seen: u64,
}

impl Look {
    /// Datagrams a second that were read since an earlier look, and that came.
    fn rates_since(&self, earlier: &Look) -> (f64, f64) {
        let seconds = seconds_of(self.at - earlier.at);
        let read = (self.seen - earlier.seen) as f64;
        let grown = (self.queue.waiting() - earlier.queue.waiting()).max(0.0);
        let dropped = f64::from(self.queue.drops.wrapping_sub(earlier.queue.drops));
        (read / seconds, (read + grown + dropped) / seconds)
    }
}

/// The gate of one listening socket.
pub(crate) struct Gate {
    /// Networks of the latest datagrams, written round and round.
    latest: Box<[u64]>,
    /// Datagrams so far.
    seen: u64,
    last: Option<Look>,
    /// The first look since the worker has last kept up.
    busy_since: Look,
    /// Datagrams a second that the worker reads and that clients send, smoothed while the gate is closed.
    read_rate: f64,
    offered_rate: f64,
    /// Looks since the gate was closed, up to 8: what is read is smoothed over so many.
    looks: u32,
    /// Looks in a row that found an overload.
    alarms: u32,
    /// Who passes in part, as the kernel was told.
    gated: Vec<Gated>,
    next: Vec<Gated>,
    /// The sample in order, and the networks that send much with their parts of what is offered: room for the work of a look.
    sorted: Vec<u64>,
    big: Vec<(u64, f64)>,
}

/// The number of the network of an address (IPv4 as IPv4-mapped).
#[inline]
pub(crate) fn network_of(address: Ipv6Addr) -> u64 {
    let bits = u128::from(address);
    if bits >> 32 == 0xffff { bits as u32 as u64 } else { (bits >> 64) as u64 }
}

impl Gate {
    pub(crate) fn new() -> Gate {
        Gate {
            latest: vec![0; GATE_SAMPLE].into_boxed_slice(),
            seen: 0,
            last: None,
            busy_since: Look::default(),
            read_rate: 0.0,
            offered_rate: 0.0,
            looks: 0,
            alarms: 0,
            gated: Vec::with_capacity(GATED),
            next: Vec::with_capacity(GATED),
            sorted: Vec::with_capacity(GATE_SAMPLE),
            big: Vec::with_capacity(GATE_BIG + GATED),
        }
    }

    /// A datagram of a network was read.
    #[inline]
    pub(crate) fn saw(&mut self, network: u64) {
        self.latest[self.seen as usize % GATE_SAMPLE] = network;
        self.seen += 1;
    }

    /// Whether some networks are let through in part only.
    pub(crate) fn is_closed(&self) -> bool {
        !self.gated.is_empty()
    }

    /// The worker has read all that waited: what comes next is measured anew.
    #[inline]
    pub(crate) fn keeps_up(&mut self) {
        if !self.is_closed() {
            self.last = None;
        }
    }

    /// Whether [`Gate::look`] would learn something new.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let Some(last) = &self.last else { return true };
        let (waited, read) = (now - last.at, self.seen - last.seen);
        match self.is_closed() {
            true => waited >= GATE_INTERVAL && read >= GATE_DATAGRAMS || waited >= GATE_CALM,
            false => waited >= GATE_OPEN_INTERVAL && read >= GATE_DATAGRAMS,
        }
    }

    /// Looks at the queue. Returns whom the kernel is to let through in part, if that has changed: nobody when the gate opens.
    pub(crate) fn look(&mut self, now: Instant, queue: ReceiveQueue) -> Option<&[Gated]> {
        let here = Look { at: now, queue, seen: self.seen };
        let Some(last) = self.last.replace(here) else {
            // From here on it is measured.
            (self.busy_since, self.alarms) = (here, 0);
            return None;
        };
        if now == last.at {
            return None;
        }
        let (read_rate, offered_rate) = here.rates_since(&last);
        if self.is_closed() {
            // Slowly, as a worker that is held up and then catches up is as fast as both together; but what closed the gate was
            // seen for a moment only and counts for nothing.
            self.looks = (self.looks + 1).min(8);
            self.read_rate += (read_rate - self.read_rate) / f64::from(self.looks);
            self.offered_rate += (offered_rate - self.offered_rate) / 2.0;
        } else {
            let is_long =
                queue.waiting() > 2.0 * read_rate * seconds_of(QUEUE_TARGET) || queue.used > queue.size / 4;
            self.alarms = if is_long && offered_rate > read_rate { self.alarms + 1 } else { 0 };
            (self.read_rate, self.offered_rate) = (read_rate, offered_rate);
            if queue.drops != last.queue.drops {
                // Somebody has lost something: what counts is all that came since the worker has last kept up.
                (self.read_rate, self.offered_rate) = here.rates_since(&self.busy_since);
            } else if self.alarms < 2 {
                // Once may be a worker that was held up for a moment: it catches up.
                return None;
            }
            self.looks = 0;
        }
        let read = self.seen - last.seen;
        self.count(read);
        let changed = self.share(queue);
        changed.then_some(&self.gated[..])
    }

    /// Finds the networks that send much, and how much: `big` holds the parts of what is offered, largest first.
    fn count(&mut self, read: u64) {
        let sampled = (read as usize).min(GATE_SAMPLE);
        self.sorted.clear();
        self.sorted
            .extend((0..sampled).map(|back| self.latest[(self.seen as usize - 1 - back) % GATE_SAMPLE]));
        self.sorted.sort_unstable();
        self.big.clear();
        // What passed in part stands for more.
        let part = |network| self.gated.iter().find(|gated| gated.network == network).map(|gated| gated.part);
        let mut whole = 0.0;
        for run in self.sorted.chunk_by(|one, other| one == other) {
            let part = part(run[0]);
            let weight = run.len() as f64 / part.unwrap_or(1.0);
            whole += weight;
            if part.is_some() || run.len() * GATE_BIG >= sampled {
                self.big.push((run[0], weight));
            }
        }
        self.big.iter_mut().for_each(|(_, weight)| *weight /= whole);
        self.big.sort_unstable_by(|one, other| other.1.total_cmp(&one.1));
    }

    /// Divides what the worker can do. Says whether anything has changed.
    fn share(&mut self, queue: ReceiveQueue) -> bool {
        // What may come in, so that the queue reaches its target within GATE_DRAIN: never empty, and with room for bursts.
        let rate = self.read_rate.max(1.0);
        let wanted = (rate * seconds_of(QUEUE_TARGET)).min(f64::from(queue.size) / QUEUED_OCTETS / 3.0);
        let off = (wanted - queue.waiting()) / (rate * seconds_of(GATE_DRAIN));
        let target = rate * (1.0 + off).max(0.25);
        let offered = self.offered_rate;
        let all_big: f64 = self.big.iter().map(|(_, part)| part).sum();
        let mut room = target - (1.0 - all_big) * offered;
        let mut level = f64::INFINITY;
        // From the smallest on: who wants less than an equal share of what is left gets it all.
        for (place, (_, part)) in self.big.iter().enumerate().rev() {
            let equal = room / (place + 1) as f64;
            if part * offered > equal {
                level = equal;
                break;
            }
            room -= part * offered;
        }
        self.next.clear();
        for &(network, part) in self.big.iter().take(GATED) {
            let part = (level / (part * offered)).max(GATE_SMALLEST_PART);
            if part >= 1.0 {
                break;
            }
            self.next.push(Gated { network, part });
        }
        // Each change costs some microseconds in the kernel; small ones are not worth it.
        let is_same = self.next.len() == self.gated.len()
            && self.next.iter().all(|next| {
                let now = self.gated.iter().find(|gated| gated.network == next.network);
                now.is_some_and(|now| (next.part - now.part).abs() <= now.part / 8.0)
            });
        if !is_same {
            std::mem::swap(&mut self.gated, &mut self.next);
        }
        if self.gated.is_empty() {
            self.alarms = 0;
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
