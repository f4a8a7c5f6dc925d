//! Fair load shedding at a listening socket. When more datagrams come than the worker can read, the kernel's receive queue is
//! full and drops by arrival: a network that sends ten times the worker's rate would cost every client nine queries in ten.
//! So a busy worker observes its receive queue. When the queue grows beyond [`QUEUE_TARGET`], the worker computes the largest
//! rate per network at which all fit (max-min fairness: a network that sends less keeps all of its datagrams). Of the
//! networks beyond that rate only a share passes. The kernel drops the rest before it is queued
//! ([`shedding_filter`](crate::listen::shedding_filter)).
//!
//! This file observes the queue and decides how much may pass, `heavy_networks.rs` divides that among the networks. Neither has a socket
//! or a clock. A network is an IPv6 /64 or an IPv4 address, as
//! everywhere else; of a link-local address all bits count, but not its interface, which the filter does not see. The networks
//! of a site (`client-prefix`) that send too little each to be shed are counted together, and are shed together if the site
//! sends much. So a flooder gains nothing by using all networks of its prefix, and the neighbours of a single flooding network
//! lose nothing. If those that send little are too many together, an equal share of each passes: the same part is lost as in a full
//! queue, but the others' answers are not late.
//!
//! A network that is alone ([`active_networks`](crate::listen::active_networks)) takes nothing from anybody. Its datagrams may
//! fill the queue, and none is shed while the queue can hold what a pause of the worker left. They are shed only when
//! the queue has overflowed, or *stands*: when it was longer than its target for [`STANDING_QUEUE_TIME`] without a break (the
//! reasoning of RFC 8289 section 3.1). Such a queue makes every answer late and saves none, and a newcomer would lose. The networks
//! that send little are treated alike: as long as the queue can hold a burst of all of them, it does.
//!
//! The filter does not reach what is in the queue already. Of that, the datagrams of shed networks that are too many are *stale*:
//! they are read and dropped without a look at them, the oldest first, so that the next ones are answered in time.

use crate::counters::Counter;
use crate::limits::{
    DATAGRAM_QUEUE_OCTETS, LATE_QUEUE, QUEUE_DRAIN_TIME, QUEUE_TARGET, SAMPLE_PARTS, SHED_NETWORKS,
    SHEDDING_DATAGRAMS, SHEDDING_IDLE_INTERVAL, SHEDDING_INTERVAL, SHEDDING_LONGEST_INTERVAL,
    SHEDDING_SAMPLE, STALE_COST, STANDING_QUEUE_TIME,
};
use crate::listen::active_networks::ActiveNetworks;
use crate::listen::heavy_networks::{HeavyNetworks, Sampled, ShedNetwork};
use crate::socket::syscalls::ReceiveQueue;
use engine::{ClientNetwork, Instant, Span};

/// The state of the receive queue and the count of datagrams at an update.
#[derive(Clone, Copy, Default)]
struct Observation {
    at: Instant,
    queue: ReceiveQueue,
    /// Datagrams read so far, and how many of them were stale.
    datagrams: u64,
    stale: u64,
}

impl Observation {
    /// Datagrams per second since an earlier observation: those that were read (stale ones as part of one), and those that were
    /// offered.
    fn rates_since(&self, earlier: &Observation) -> (f64, f64) {
        let seconds = seconds_of(self.at - earlier.at);
        let read = (self.datagrams - earlier.datagrams) as f64;
        let work = read - (self.stale - earlier.stale) as f64 * (1.0 - STALE_COST);
        let grown = (self.queue.waiting() - earlier.queue.waiting()).max(0.0);
        let dropped = f64::from(self.queue.drops.wrapping_sub(earlier.queue.drops));
        (work / seconds, (read + grown + dropped) / seconds)
    }
}

/// The fair shedding of one listening socket.
pub(crate) struct FairShedding {
    /// Networks of the latest datagrams, as a ring.
    recent: Box<[ClientNetwork]>,
    /// Datagrams read so far.
    datagrams: u64,
    previous: Option<Observation>,
    /// The first observation since the worker last emptied the queue.
    busy_since: Observation,
    /// The first observation since the queue was last no longer than its target.
    standing_since: Observation,
    active_networks: ActiveNetworks,
    /// Datagrams that `active_networks` knows.
    known_datagrams: u64,
    /// True if datagrams of trusted proxies came since the latest update.
    has_proxied: bool,
    /// True if the worker has emptied the queue since the latest update.
    has_emptied: bool,
    /// True if one network was alone at the latest update.
    is_alone: bool,
    /// Datagrams per second that the worker reads, and that clients send. Smoothed while networks are shed.
    read_rate: f64,
    offered_rate: f64,
    /// Updates since the shedding started, up to 8: the read rate is smoothed over so many.
    updates: u32,
    /// Updates in a row that found an overload.
    overloads: u32,
    /// True if the queue has overflowed or stands, so that networks may be shed that harm nobody in particular.
    may_shed_all: bool,
    /// Datagrams at the front of the queue that are stale, if they are of shed networks.
    stale: u64,
    /// Stale datagrams read so far.
    stale_read: u64,
    /// The networks that are shed now, as in the kernel's filter.
    shed: Vec<ShedNetwork>,
    /// Count of datagrams read from which on they came through this filter. Those before say nothing about its shares.
    filtered_from: u64,
    /// Working memory of an update.
    next_shed: Vec<ShedNetwork>,
    sample: Vec<Sampled>,
    heavy: HeavyNetworks,
}

impl FairShedding {
    pub(crate) fn new() -> FairShedding {
        FairShedding {
            recent: vec![ClientNetwork::default(); SHEDDING_SAMPLE].into_boxed_slice(),
            datagrams: 0,
            previous: None,
            busy_since: Observation::default(),
            standing_since: Observation::default(),
            active_networks: ActiveNetworks::new(),
            known_datagrams: 0,
            has_proxied: false,
            has_emptied: false,
            is_alone: true,
            read_rate: 0.0,
            offered_rate: 0.0,
            updates: 0,
            overloads: 0,
            may_shed_all: false,
            stale: 0,
            stale_read: 0,
            shed: Vec::with_capacity(SHED_NETWORKS + 1),
            filtered_from: 0,
            next_shed: Vec::with_capacity(SHED_NETWORKS + 1),
            sample: Vec::with_capacity(SHEDDING_SAMPLE),
            heavy: HeavyNetworks::new(),
        }
    }

    /// Records that a datagram of a network was read. Returns false if it is stale: it must be dropped.
    #[inline]
    #[must_use]
    pub(crate) fn record(&mut self, network: ClientNetwork) -> bool {
        self.recent[self.datagrams as usize % SHEDDING_SAMPLE] = network;
        self.datagrams += 1;
        self.stale == 0 || !self.is_stale(network)
    }

    #[cold]
    fn is_stale(&mut self, network: ClientNetwork) -> bool {
        self.stale -= 1;
        let is_stale = self.shed.iter().any(|shed| shed.contains(network));
        self.stale_read += u64::from(is_stale);
        is_stale
    }

    /// Records that a datagram of a trusted proxy was read. It comes from somebody else than the networks that may be shed.
    #[inline]
    pub(crate) fn record_proxied(&mut self) {
        self.has_proxied = true;
    }

    /// True if some networks are shed.
    pub(crate) fn is_active(&self) -> bool {
        !self.shed.is_empty()
    }

    /// The reason of drops by the filter, and of stale datagrams. Only networks that are shed for the sake of others flood.
    pub(crate) fn reason_of_drops(&self) -> Counter {
        let spares_others = self.shed.iter().all(|shed| shed.length > 0);
        match self.is_active() && !self.is_alone && spares_others {
            true => Counter::FloodingNetwork,
            false => Counter::ReceiveQueueOverflow,
        }
    }

    /// The worker has emptied the queue: unless networks are shed, the measurement starts again.
    #[inline]
    pub(crate) fn on_queue_emptied(&mut self) {
        (self.stale, self.has_emptied) = (0, true);
        self.filtered_from = self.filtered_from.min(self.datagrams);
        if !self.is_active() {
            self.previous = None;
        }
    }

    /// True if enough time has passed and enough datagrams came for [`FairShedding::update`].
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let Some(previous) = &self.previous else { return true };
        let (waited, read) = (now - previous.at, self.datagrams - previous.datagrams);
        match self.is_active() {
            true => {
                waited >= SHEDDING_INTERVAL && read.min(self.filtered()) >= SHEDDING_DATAGRAMS
                    || waited >= SHEDDING_LONGEST_INTERVAL
            }
            false => waited >= SHEDDING_IDLE_INTERVAL && read >= SHEDDING_DATAGRAMS,
        }
    }

    /// Datagrams read that came through the filter as it is.
    fn filtered(&self) -> u64 {
        self.datagrams.saturating_sub(self.filtered_from)
    }

    /// Observes the queue. Returns the networks to shed if they have changed: none when the shedding ends. `client_prefix`: the
    /// prefix length of a site.
    pub(crate) fn update(
        &mut self,
        now: Instant,
        queue: ReceiveQueue,
        client_prefix: u8,
    ) -> Option<&[ShedNetwork]> {
        let current = Observation { at: now, queue, datagrams: self.datagrams, stale: self.stale_read };
        self.observe_networks(now);
        let has_emptied = std::mem::take(&mut self.has_emptied);
        let Some(previous) = self.previous.replace(current) else {
            // The measurement starts here.
            (self.busy_since, self.standing_since, self.overloads) = (current, current, 0);
            self.may_shed_all = false;
            return None;
        };
        if now == previous.at {
            return None;
        }
        let (read_rate, offered_rate) = current.rates_since(&previous);
        if self.is_active() {
            // Smoothed, because the rate of a worker that is held up and then catches up is the mean of both.
            // A worker that emptied the queue could have read more.
            if !has_emptied || read_rate > self.read_rate {
                self.updates = (self.updates + 1).min(8);
                self.read_rate += (read_rate - self.read_rate) / f64::from(self.updates);
            }
            self.offered_rate += (offered_rate - self.offered_rate) / 2.0;
            // The drops are those of the filter.
            self.may_shed_all |= self.stands(&current, self.read_rate) || queue.used > queue.size / 2;
        } else {
            (self.read_rate, self.offered_rate) = self.find_overload(&previous, &current)?;
            // After a moment only they say little, and the first update replaces the read rate.
            self.updates = if self.may_shed_all { 3 } else { 0 };
        }
        let (read, filtered) = (self.datagrams - previous.datagrams, self.filtered());
        let is_sample = filtered >= SHEDDING_DATAGRAMS / 4;
        self.take_sample(if is_sample { read.min(filtered) } else { read });
        self.heavy.find(&mut self.sample, &self.shed, client_prefix);
        // The rate at which the queue reaches its target within QUEUE_DRAIN_TIME: never empty, and with room for bursts.
        let rate = self.read_rate.max(1.0);
        let (waiting, wanted) = (queue.waiting(), wanted_length(rate, queue));
        let is_late = waiting > wanted * LATE_QUEUE;
        self.stale = if is_late { (waiting - wanted) as u64 } else { 0 };
        let off = (wanted - (waiting - self.stale as f64)) / (rate * seconds_of(QUEUE_DRAIN_TIME));
        let changed = self.compute_shares(rate * (1.0 + off).max(0.25));
        if changed {
            self.filtered_from = self.datagrams + waiting as u64;
        }
        if !self.is_active() {
            self.stale = 0;
            if changed {
                // The measurement starts again.
                self.previous = None;
            }
        }
        changed.then_some(&self.shed[..])
    }

    /// True if the queue was longer than its target for [`STANDING_QUEUE_TIME`]. `read_rate`: datagrams per second.
    fn stands(&mut self, current: &Observation, read_rate: f64) -> bool {
        if current.queue.waiting() <= wanted_length(read_rate, current.queue) {
            self.standing_since = *current;
        }
        current.at - self.standing_since.at >= STANDING_QUEUE_TIME
    }

    /// Takes note of the networks whose datagrams were read since the last update, as far as the ring still has them.
    fn observe_networks(&mut self, now: Instant) {
        let oldest = self.known_datagrams.max(self.datagrams.saturating_sub(SHEDDING_SAMPLE as u64));
        let recent = &self.recent;
        let new = (oldest..self.datagrams).map(|number| recent[number as usize % SHEDDING_SAMPLE]);
        self.active_networks.observe(now, new);
        if std::mem::take(&mut self.has_proxied) {
            self.active_networks.mark_others_active(now);
        }
        self.known_datagrams = self.datagrams;
        self.is_alone = self.active_networks.is_alone(now);
    }

    /// The rates at which datagrams are read and offered, if networks must be shed now.
    fn find_overload(&mut self, previous: &Observation, current: &Observation) -> Option<(f64, f64)> {
        let queue = current.queue;
        let (read_rate, offered_rate) = current.rates_since(previous);
        let is_long =
            queue.waiting() > 2.0 * read_rate * seconds_of(QUEUE_TARGET) || queue.used > queue.size / 4;
        self.overloads = if is_long && offered_rate > read_rate { self.overloads + 1 } else { 0 };
        let since_busy = current.rates_since(&self.busy_since);
        let stands = self.stands(current, since_busy.0);
        if queue.drops != previous.queue.drops {
            // Datagrams were lost: use the rates since the worker last emptied the queue.
            self.may_shed_all = true;
            return Some(since_busy);
        }
        if stands {
            self.may_shed_all = true;
            return Some(current.rates_since(&self.standing_since));
        }
        // One overload may mean that the worker was held up for a moment: it catches up.
        (self.overloads >= 2 && !self.is_alone).then_some((read_rate, offered_rate))
    }

    /// Copies the networks of the latest `read` datagrams, as far as the ring has them.
    fn take_sample(&mut self, read: u64) {
        let FairShedding { recent, datagrams, sample, .. } = self;
        let number = *datagrams as usize;
        sample.clear();
        let sampled = (read as usize).min(SHEDDING_SAMPLE);
        sample.extend((0..sampled).map(|back| Sampled {
            network: recent[(number - 1 - back) % SHEDDING_SAMPLE],
            part: (back * SAMPLE_PARTS / sampled) as u8,
        }));
    }

    /// Divides `target`, the datagrams per second that may pass, among the networks. Returns true if the networks to shed have changed.
    fn compute_shares(&mut self, target: f64) -> bool {
        self.next_shed.clear();
        self.next_shed.extend(self.heavy.divide(target, self.offered_rate, self.may_shed_all));
        // Each change costs some microseconds in the kernel, so small changes are left out.
        let is_same = self.next_shed.len() == self.shed.len()
            && self.next_shed.iter().all(|next_shed| {
                let is_same = |shed: &&ShedNetwork| {
                    (shed.network, shed.length) == (next_shed.network, next_shed.length)
                };
                let now = self.shed.iter().find(is_same);
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

/// Datagrams that should wait at most when so many are read per second: those of [`QUEUE_TARGET`], or a third of the queue.
fn wanted_length(read_rate: f64, queue: ReceiveQueue) -> f64 {
    (read_rate * seconds_of(QUEUE_TARGET)).min(f64::from(queue.size) / DATAGRAM_QUEUE_OCTETS / 3.0)
}

fn seconds_of(span: Span) -> f64 {
    span.0 as f64 / 1e9
}

#[cfg(test)]
#[path = "fair_shedding_tests.rs"]
mod tests;
