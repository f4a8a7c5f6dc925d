//! Fair load shedding at a listening socket. When more datagrams come than the worker can read, the kernel's receive queue is
//! full and drops by arrival: a network that sends ten times the worker's rate would cost every client nine queries in ten.
//! So a busy worker observes its receive queue. When the queue grows beyond [`QUEUE_TARGET`], the worker computes the largest
//! rate per network at which all fit (max-min fairness: a network that sends less keeps all of its datagrams). Of the
//! networks beyond that rate only a share passes. The kernel drops the rest before it is queued
//! ([`shedding_filter`](crate::listen::shedding_filter)).
//!
//! This file holds the decision alone: it has no socket and no clock. A network is an IPv6 /64 or an IPv4 address, as
//! everywhere else; of a link-local address all bits count, but not its interface, which the filter does not see. The networks
//! of a site (`client-prefix`) that send too little each to be shed are counted together, and are shed together if the site
//! sends much. So a flooder gains nothing by using all networks of its prefix, and the neighbours of a single flooding network
//! lose nothing. If no network and no site sends much, all look alike, and the kernel drops by arrival as before.
//!
//! A network that is alone ([`active_networks`](crate::listen::active_networks)) takes nothing from anybody. Its datagrams may
//! fill the queue, and none is shed while the queue can hold what a pause of the worker left. They are shed only when
//! the queue has overflowed, or *stands*: when it was longer than its target for [`STANDING_QUEUE_TIME`] without a break (the
//! reasoning of RFC 8289 section 3.1). Such a queue makes every answer late and saves none, and a newcomer would lose.

use crate::limits::{
    DATAGRAM_QUEUE_OCTETS, HEAVY_NETWORKS, QUEUE_DRAIN_TIME, QUEUE_TARGET, SHED_NETWORKS, SHEDDING_DATAGRAMS,
    SHEDDING_IDLE_INTERVAL, SHEDDING_INTERVAL, SHEDDING_LONGEST_INTERVAL, SHEDDING_SAMPLE,
    SHEDDING_SMALLEST_SHARE, SITE_PARTS, STANDING_QUEUE_TIME,
};
use crate::listen::active_networks::ActiveNetworks;
use crate::socket::syscalls::ReceiveQueue;
use engine::{ClientNetwork, Instant, Span};

/// A network of whose datagrams only a share passes, or a site without those of its networks that are shed themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ShedNetwork {
    pub(crate) network: ClientNetwork,
    /// Prefix length in bits of an IPv6 address (IPv4 as IPv4-mapped).
    pub(crate) length: u8,
    /// The share that passes, below 1.
    pub(crate) share: f64,
}

/// The state of the receive queue and the count of datagrams at an update.
#[derive(Clone, Copy, Default)]
struct Observation {
    at: Instant,
    queue: ReceiveQueue,
    /// Datagrams read so far.
    datagrams: u64,
}

impl Observation {
    /// Datagrams per second since an earlier observation: those that were read, and those that were offered.
    fn rates_since(&self, earlier: &Observation) -> (f64, f64) {
        let seconds = seconds_of(self.at - earlier.at);
        let read = (self.datagrams - earlier.datagrams) as f64;
        let grown = (self.queue.waiting() - earlier.queue.waiting()).max(0.0);
        let dropped = f64::from(self.queue.drops.wrapping_sub(earlier.queue.drops));
        (read / seconds, (read + grown + dropped) / seconds)
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
    /// True if one network was alone at the latest update.
    is_alone: bool,
    /// Datagrams per second that the worker reads, and that clients send. Smoothed while networks are shed.
    read_rate: f64,
    offered_rate: f64,
    /// Updates since the shedding started, up to 8: the read rate is smoothed over so many.
    updates: u32,
    /// Updates in a row that found an overload.
    overloads: u32,
    /// The networks that are shed now, as in the kernel's filter.
    shed: Vec<ShedNetwork>,
    next_shed: Vec<ShedNetwork>,
    /// Working memory of an update: the sorted sample, and the heavy networks with their shares of the offered datagrams.
    sorted_sample: Vec<ClientNetwork>,
    heavy: Vec<HeavyNetwork>,
}

/// A network or a site that sends much.
#[derive(Clone, Copy)]
struct HeavyNetwork {
    network: ClientNetwork,
    length: u8,
    /// Its share of the offered datagrams.
    share: f64,
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
            is_alone: true,
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

    /// Records that a datagram of a network was read.
    #[inline]
    pub(crate) fn record(&mut self, network: ClientNetwork) {
        self.recent[self.datagrams as usize % SHEDDING_SAMPLE] = network;
        self.datagrams += 1;
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

    /// True if networks are shed for the sake of others.
    pub(crate) fn protects_others(&self) -> bool {
        self.is_active() && !self.is_alone
    }

    /// The worker has emptied the queue: unless networks are shed, the measurement starts again.
    #[inline]
    pub(crate) fn on_queue_emptied(&mut self) {
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
                waited >= SHEDDING_INTERVAL && read >= SHEDDING_DATAGRAMS
                    || waited >= SHEDDING_LONGEST_INTERVAL
            }
            false => waited >= SHEDDING_IDLE_INTERVAL && read >= SHEDDING_DATAGRAMS,
        }
    }

    /// Observes the queue. Returns the networks to shed if they have changed: none when the shedding ends. `client_prefix`: the
    /// prefix length of a site.
    pub(crate) fn update(
        &mut self,
        now: Instant,
        queue: ReceiveQueue,
        client_prefix: u8,
    ) -> Option<&[ShedNetwork]> {
        let current = Observation { at: now, queue, datagrams: self.datagrams };
        self.observe_networks(now);
        let Some(previous) = self.previous.replace(current) else {
            // The measurement starts here.
            (self.busy_since, self.standing_since, self.overloads) = (current, current, 0);
            return None;
        };
        if now == previous.at {
            return None;
        }
        let (read_rate, offered_rate) = current.rates_since(&previous);
        if self.is_active() {
            // Smoothed, because the rate of a worker that is held up and then catches up is the mean of both. The rates that
            // started the shedding were seen for a moment only, so the first update replaces the read rate.
            self.updates = (self.updates + 1).min(8);
            self.read_rate += (read_rate - self.read_rate) / f64::from(self.updates);
            self.offered_rate += (offered_rate - self.offered_rate) / 2.0;
        } else {
            (self.read_rate, self.offered_rate) = self.find_overload(&previous, &current)?;
            self.updates = 0;
        }
        let read = self.datagrams - previous.datagrams;
        self.find_heavy_networks(read, client_prefix);
        let changed = self.compute_shares(queue);
        changed.then_some(&self.shed[..])
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
        if queue.waiting() <= wanted_length(since_busy.0, queue) {
            self.standing_since = *current;
        }
        if queue.drops != previous.queue.drops {
            // Datagrams were lost: use the rates since the worker last emptied the queue.
            return Some(since_busy);
        }
        // One overload may mean that the worker was held up for a moment: it catches up.
        if self.overloads >= 2 && !self.is_alone {
            return Some((read_rate, offered_rate));
        }
        let stands = current.at - self.standing_since.at >= STANDING_QUEUE_TIME;
        stands.then(|| current.rates_since(&self.standing_since))
    }

    /// Fills `heavy` with the networks and sites that send much and their shares of the offered datagrams, largest first.
    fn find_heavy_networks(&mut self, read: u64, client_prefix: u8) {
        let sampled = (read as usize).min(SHEDDING_SAMPLE);
        self.sorted_sample.clear();
        self.sorted_sample.extend(
            (0..sampled).map(|back| self.recent[(self.datagrams as usize - 1 - back) % SHEDDING_SAMPLE]),
        );
        self.sorted_sample.sort_unstable();
        self.heavy.clear();
        // A datagram of a network that is shed stands for several.
        let shed_share = |network, length| {
            let shed = self.shed.iter().find(|shed| shed.network == network && shed.length == length);
            shed.map(|shed| shed.share)
        };
        let mut whole = 0.0;
        let is_site =
            |one: &ClientNetwork, other: &ClientNetwork| one.site(client_prefix) == other.site(client_prefix);
        // A site is a prefix, so its networks stand together.
        for networks in self.sorted_sample.chunk_by(is_site) {
            let (site, length) = (networks[0].site(client_prefix), networks[0].site_length(client_prefix));
            let site_share = shed_share(site, length);
            let weigh = |run: &[ClientNetwork]| {
                let share = shed_share(run[0], run[0].length());
                (share.is_some(), run.len() as f64 / share.or(site_share).unwrap_or(1.0))
            };
            let runs = || networks.chunk_by(|one, other| one == other);
            let of_site: f64 = runs().map(|run| weigh(run).1).sum();
            whole += of_site;
            let (mut rest, mut rest_weight) = (0, 0.0);
            for run in runs() {
                let (network, length) = (run[0], run[0].length());
                let (is_shed, weight) = weigh(run);
                let is_heavy = is_shed || run.len() * HEAVY_NETWORKS >= sampled;
                // Half of it is enough to stay, so that a network near the bound does not come and go.
                let least = if is_shed { of_site / 2.0 } else { of_site } / SITE_PARTS;
                if is_heavy && weight >= least {
                    self.heavy.push(HeavyNetwork { network, length, share: weight });
                } else {
                    (rest, rest_weight) = (rest + run.len(), rest_weight + weight);
                }
            }
            if rest > 0 && (site_share.is_some() || rest * HEAVY_NETWORKS >= sampled) {
                self.heavy.push(HeavyNetwork { network: site, length, share: rest_weight });
            }
        }
        self.heavy.iter_mut().for_each(|heavy| heavy.share /= whole);
        self.heavy.sort_unstable_by(|one, other| other.share.total_cmp(&one.share));
    }

    /// Divides the worker's rate among the networks. Returns true if the networks to shed have changed.
    fn compute_shares(&mut self, queue: ReceiveQueue) -> bool {
        // The rate at which the queue reaches its target within QUEUE_DRAIN_TIME: never empty, and with room for bursts.
        let rate = self.read_rate.max(1.0);
        let off = (wanted_length(rate, queue) - queue.waiting()) / (rate * seconds_of(QUEUE_DRAIN_TIME));
        let target = rate * (1.0 + off).max(0.25);
        let offered = self.offered_rate;
        let all_heavy: f64 = self.heavy.iter().map(|heavy| heavy.share).sum();
        let mut room = target - (1.0 - all_heavy) * offered;
        let mut level = f64::INFINITY;
        // From the lightest on: a network that offers less than an equal share of the rest keeps all of it.
        for (place, HeavyNetwork { share, .. }) in self.heavy.iter().enumerate().rev() {
            let equal = room / (place + 1) as f64;
            if share * offered > equal {
                level = equal;
                break;
            }
            room -= share * offered;
        }
        self.next_shed.clear();
        for &HeavyNetwork { network, length, share } in self.heavy.iter().take(SHED_NETWORKS) {
            let share = (level / (share * offered)).max(SHEDDING_SMALLEST_SHARE);
            if share >= 1.0 {
                break;
            }
            self.next_shed.push(ShedNetwork { network, length, share });
        }
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
