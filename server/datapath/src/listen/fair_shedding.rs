//! Fair load shedding at a listening socket. When more datagrams come than the worker can read, the kernel's receive queue is
//! full and drops by arrival: a network that sends ten times the worker's rate would cost every client nine queries in ten.
//! So a busy worker observes its receive queue. When the queue grows beyond [`QUEUE_TARGET`], the worker computes the largest
//! rate per network at which all fit (max-min fairness: a network that sends less keeps all of its datagrams). Of the
//! networks beyond that rate only a share passes. The kernel drops the rest before it is queued
//! ([`shedding_filter`](crate::listen::shedding_filter)).
//!
//! This file observes the queue and decides how much may pass, `heavy_hitters.rs` divides that among the networks. Neither has a socket
//! or a clock. A network is an IPv6 /64 or an IPv4 address, as
//! everywhere else; of a link-local address all bits count, but not its interface, which the filter does not see. The networks
//! of a customer (`client-prefix`) that send too little each to be shed are counted together, and are shed together if the customer
//! sends much. So a flooder gains nothing by using all networks of its prefix, and the neighbours of a single flooding network
//! lose nothing. If those that send little are too many together, an equal share of each passes: the same part is lost as in a full
//! queue, but the others' answers are not late.
//!
//! Where the others send hardly anything ([`active_networks`](crate::listen::active_networks)), nobody is shed for them before the queue
//! would overflow soon, because a few datagrams in the name of others are easily forged. A network that is alone takes nothing from anybody. Its datagrams may
//! fill the queue, and none is shed while the queue can hold what a pause of the worker left. They are shed only when
//! the queue has overflowed, or *stands*: when it was longer than its target for [`STANDING_QUEUE_TIME`] without a break, or for
//! [`GROWING_QUEUE_TIME`] if it grows (the reasoning of RFC 8289 section 3.1). Such a queue makes every answer late and saves none,
//! and a newcomer would lose. The networks that send little are treated alike: as long as the queue can hold a burst of all of them,
//! it does.
//!
//! A worker that has a CPU quota, or shares its core, pauses. All that came in a pause waits when it runs again, even if it empties its
//! queue each time. So the shortest queue since the last update counts, and a worker that emptied its queue gets more than it has read.
//! The shedding ends when nothing comes any more: a silence says nothing about how much the worker can read.
//!
//! The filter does not reach what is in the queue already. Of that, the datagrams of shed networks are *stale* that are older than
//! [`STALE_AGE`] ([`arrivals`](crate::listen::sojourn)), or of which more wait than can be read by then. They are read and dropped
//! without a look at them, the oldest first, so that the next ones are answered in time, also where the share that passes was too large.

use crate::counters::Counter;
use crate::limits::{
    GROWING_QUEUE_RATIO, GROWING_QUEUE_TIME, LATE_QUEUE, QUEUE_DRAIN_TIME, QUEUE_TARGET, READ_RATE_TIME,
    RISING_RATE_TIME, SAMPLE_PARTS, SHED_NETWORKS, SHEDDING_DATAGRAMS, SHEDDING_IDLE_INTERVAL,
    SHEDDING_INTERVAL, SHEDDING_LONGEST_INTERVAL, SHEDDING_SAMPLE, STALE_AGE, STALE_COST,
    STANDING_QUEUE_TIME,
};
use crate::listen::active_networks::{ActiveNetworks, Contention};
use crate::listen::filter_history::FilterHistory;
use crate::listen::heavy_hitters::{HeavyHitters, Sampled, ShedNetwork};
use crate::listen::sojourn::SojournEstimator;
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
        let grown = self.queue.waiting() - earlier.queue.waiting();
        let dropped = f64::from(self.queue.drops.wrapping_sub(earlier.queue.drops));
        (work / seconds, (read + grown + dropped).max(0.0) / seconds)
    }

    /// True if no datagram was read or dropped since an earlier observation.
    fn is_silent_since(&self, earlier: &Observation) -> bool {
        (self.datagrams, self.queue.drops) == (earlier.datagrams, earlier.queue.drops)
    }
}

/// A time in which the worker read nothing: it did other work, or did not run.
#[derive(Clone, Copy, Default)]
struct Pause {
    begin: Instant,
    length: Span,
    /// Datagrams read before it.
    datagrams: u64,
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
    /// The longest pause since then.
    standing_pause: Span,
    sojourn: SojournEstimator,
    active_networks: ActiveNetworks,
    /// Datagrams that `active_networks` knows.
    known_datagrams: u64,
    /// True if datagrams of trusted proxies came since the latest update.
    has_proxied: bool,
    /// True if the worker has emptied the queue since the latest update.
    has_emptied: bool,
    /// The longest time between two batches since the latest update.
    pause: Pause,
    /// Time of the latest batch, and datagrams read until then.
    latest_batch: (Instant, u64),
    /// The networks beside the one that sent most, at the latest update.
    contention: Contention,
    /// Datagrams per second that the worker reads, and that clients send. Smoothed while networks are shed.
    read_rate: f64,
    offered_rate: f64,
    /// Time over which the read rate is a mean, at most [`READ_RATE_TIME`].
    measured: Span,
    /// Updates in a row that found an overload.
    overloads: u32,
    /// True if the queue has overflowed or stands, so that networks may be shed that harm nobody in particular.
    sheds_everybody: bool,
    /// Number of datagrams at the front of the queue that are old: those of shed networks among them are stale.
    stale: u64,
    /// Stale datagrams read so far.
    stale_read: u64,
    /// The networks that are shed now, as in the kernel's filter.
    shed: Vec<ShedNetwork>,
    filters: FilterHistory,
    /// Working memory of an update.
    next_shed: Vec<ShedNetwork>,
    sample: Vec<Sampled>,
    heavy: HeavyHitters,
}

impl FairShedding {
    pub(crate) fn new() -> FairShedding {
        FairShedding {
            recent: vec![ClientNetwork::default(); SHEDDING_SAMPLE].into_boxed_slice(),
            datagrams: 0,
            previous: None,
            busy_since: Observation::default(),
            standing_since: Observation::default(),
            standing_pause: Span::ZERO,
            sojourn: SojournEstimator::new(),
            active_networks: ActiveNetworks::new(),
            known_datagrams: 0,
            has_proxied: false,
            has_emptied: false,
            pause: Pause::default(),
            latest_batch: (Instant(0), 0),
            contention: Contention::None,
            read_rate: 0.0,
            offered_rate: 0.0,
            measured: Span(0),
            overloads: 0,
            sheds_everybody: false,
            stale: 0,
            stale_read: 0,
            shed: Vec::with_capacity(SHED_NETWORKS + 1),
            filters: FilterHistory::new(),
            next_shed: Vec::with_capacity(SHED_NETWORKS + 1),
            sample: Vec::with_capacity(SHEDDING_SAMPLE),
            heavy: HeavyHitters::new(),
        }
    }

    /// Records that a datagram of a network was read. Returns false if it is stale: it must be dropped.
    #[inline]
    #[must_use]
    pub(crate) fn record(&mut self, network: ClientNetwork) -> bool {
        self.recent[self.datagrams as usize % SHEDDING_SAMPLE] = network;
        self.datagrams += 1;
        self.stale == 0 || !self.take_stale(network)
    }

    #[cold]
    fn take_stale(&mut self, network: ClientNetwork) -> bool {
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
        match self.is_active() && self.contention != Contention::None && spares_others {
            true => Counter::FloodingNetwork,
            false => Counter::ReceiveQueueOverflow,
        }
    }

    /// A batch was read, and others may wait.
    pub(crate) fn observe_queue(&mut self, now: Instant, queue: ReceiveQueue) {
        self.sojourn.observe(now, self.datagrams + queue.waiting() as u64);
        self.stale = if self.is_active() { self.stale.max(self.count_stale(now)) } else { 0 };
    }

    /// Datagrams at the front of the queue that are older than [`STALE_AGE`].
    fn count_stale(&self, now: Instant) -> u64 {
        let begin = Instant(now.0.saturating_sub(STALE_AGE.0));
        self.sojourn.arrived_by(begin).saturating_sub(self.datagrams)
    }

    /// The worker has emptied the queue: unless networks are shed, the measurement starts again.
    #[inline]
    pub(crate) fn on_queue_emptied(&mut self, now: Instant) {
        (self.stale, self.has_emptied) = (0, true);
        self.sojourn.observe(now, self.datagrams);
        match self.is_active() {
            true => self.filters.on_queue_emptied(self.datagrams),
            false => self.previous = None,
        }
    }

    /// Records the time of a batch, or of a tick. Returns true if enough time has passed and enough datagrams came for
    /// [`FairShedding::update`].
    #[inline]
    pub(crate) fn note_batch_and_ask_for_update(&mut self, now: Instant) -> bool {
        let (begin, datagrams) = std::mem::replace(&mut self.latest_batch, (now, self.datagrams));
        if now - begin > self.pause.length {
            self.pause = Pause { begin, length: now - begin, datagrams };
        }
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

    /// True while hardly a datagram of those that came through the latest filter was read, so its effect is not known yet. A queue
    /// that may overflow does not wait: the share was wrong.
    fn waits_for_filter(&self, now: Instant, queue: ReceiveQueue) -> bool {
        let is_new = self.filters.passed_latest(self.datagrams) < SHEDDING_DATAGRAMS;
        let waited = |previous: &Observation| now - previous.at < SHEDDING_LONGEST_INTERVAL;
        self.is_active()
            && is_new
            && self.previous.as_ref().is_some_and(waited)
            && queue.used <= queue.size / 2
    }

    /// Observes the queue. Returns the networks to shed if they have changed: none when the shedding ends. `client_prefix`: the
    /// prefix length of a customer.
    pub(crate) fn update(
        &mut self,
        now: Instant,
        queue: ReceiveQueue,
        client_prefix: u8,
    ) -> Option<&[ShedNetwork]> {
        if self.waits_for_filter(now, queue) {
            return None;
        }
        let current = Observation { at: now, queue, datagrams: self.datagrams, stale: self.stale_read };
        self.observe_networks(now);
        // A queue that is empty now may stay so for a while.
        let is_empty = queue.used == 0;
        if is_empty && !self.is_active() {
            self.previous = None;
            return None;
        }
        let has_emptied = std::mem::replace(&mut self.has_emptied, is_empty) || is_empty;
        let Some(previous) = self.previous.replace(current) else {
            // The measurement starts here.
            (self.busy_since, self.standing_since, self.overloads) = (current, current, 0);
            (self.sheds_everybody, self.pause, self.standing_pause) = (false, Pause::default(), Span::ZERO);
            return None;
        };
        if now == previous.at {
            return None;
        }
        let pause = std::mem::take(&mut self.pause);
        self.standing_pause = self.standing_pause.max(pause.length);
        if self.is_active() && is_empty && current.is_silent_since(&previous) {
            return self.end();
        }
        self.measure(&previous, &current, pause, has_emptied)?;
        let rate = self.read_rate.max(1.0);
        self.take_sample(self.datagrams - previous.datagrams);
        let (shed, _) = self.filters.of_latest(self.datagrams);
        self.heavy.find(&mut self.sample, shed, client_prefix);
        // The rate at which the queue reaches its target within QUEUE_DRAIN_TIME: never empty, and with room for bursts.
        let (waiting, wanted) = (queue.waiting(), wanted_length(rate, queue, pause.length));
        let standing = if has_emptied { 0.0 } else { self.shortest_queue(&previous, &current, pause) };
        // When the shedding begins, the queue is brought to its target at once. Later only those give way that would be too old.
        let longest = if self.is_active() { rate * seconds_of(STALE_AGE) } else { wanted };
        let stale = self.count_stale(now).max((standing - longest).max(0.0) as u64);
        let off = (wanted - (standing - stale as f64).max(0.0)) / (rate * seconds_of(QUEUE_DRAIN_TIME));
        let changed = self.compute_shares(rate * (1.0 + off).max(0.25));
        if changed {
            self.filters.push(self.datagrams + waiting as u64, &self.shed);
        }
        self.stale = if self.is_active() { stale } else { 0 };
        if changed && !self.is_active() {
            // The measurement starts again.
            self.previous = None;
        }
        changed.then_some(&self.shed[..])
    }

    /// Measures the rates at which datagrams are read and offered. None if all networks pass and may go on to do so. `pause`: the longest
    /// one since the observation before; `has_emptied`: true if the worker has emptied the queue since then.
    fn measure(
        &mut self,
        previous: &Observation,
        current: &Observation,
        pause: Pause,
        has_emptied: bool,
    ) -> Option<()> {
        if !self.is_active() {
            let (since, (read_rate, offered_rate)) = self.find_overload(previous, current)?;
            // Right after a pause the worker has read next to nothing for a while: the rate of an earlier overload is better, unless
            // it is more than the worker reads while it runs.
            let time = seconds_of(current.at - since);
            let running = time / (time - seconds_of(pause.length)).max(time / 1e3);
            self.read_rate = self.read_rate.clamp(read_rate, read_rate * running);
            self.offered_rate = offered_rate;
            self.measured = (current.at - since).min(READ_RATE_TIME);
            return Some(());
        }
        let (read_rate, offered_rate) = current.rates_since(previous);
        // A mean over time, because a worker that shares its core reads nothing for a while and then much. A worker that emptied the
        // queue could have read more, so the mean only rises then, and faster.
        if !has_emptied || read_rate > self.read_rate {
            let time = current.at - previous.at;
            self.measured = Span(self.measured.0 + time.0).min(READ_RATE_TIME);
            let mean_of = if has_emptied { RISING_RATE_TIME.min(self.measured) } else { self.measured };
            let weight = (seconds_of(time) / seconds_of(mean_of)).min(1.0);
            self.read_rate += (read_rate - self.read_rate) * weight;
        }
        self.offered_rate += (offered_rate - self.offered_rate) / 2.0;
        // The drops are those of the filter.
        let queue = current.queue;
        self.sheds_everybody |= self.stands(current, self.read_rate) || queue.used > queue.size / 2;
        Some(())
    }

    /// The shortest queue between two observations, which is the one that stands (RFC 8289 section 3.1). All that came while the worker
    /// paused waits when it runs again, and is no sign of an overload, unless it fills half of the queue.
    fn shortest_queue(&self, previous: &Observation, current: &Observation, pause: Pause) -> f64 {
        let waiting = current.queue.waiting();
        if current.queue.used > current.queue.size / 2 {
            return waiting;
        }
        let read = (current.datagrams - previous.datagrams) as f64;
        let accepted = (read + waiting - previous.queue.waiting()) / seconds_of(current.at - previous.at);
        let since_pause = (current.datagrams - pause.datagrams) as f64;
        let before_pause = waiting + since_pause - accepted * seconds_of(current.at - pause.begin);
        waiting.min(before_pause.max(0.0))
    }

    /// Ends the shedding: nothing came, nothing waits, and nothing was dropped.
    fn end(&mut self) -> Option<&[ShedNetwork]> {
        self.stale = 0;
        self.shed.clear();
        self.filters.push(self.datagrams, &self.shed);
        self.previous = None;
        Some(&self.shed)
    }

    /// True if the queue was longer than its target for [`STANDING_QUEUE_TIME`], or for [`GROWING_QUEUE_TIME`] if it is late and grows.
    /// `read_rate`: datagrams per second.
    fn stands(&mut self, current: &Observation, read_rate: f64) -> bool {
        if current.queue.waiting() <= wanted_length(read_rate, current.queue, Span::ZERO) {
            (self.standing_since, self.standing_pause) = (*current, Span::ZERO);
        }
        let time = current.at - self.standing_since.at;
        time >= STANDING_QUEUE_TIME || time >= GROWING_QUEUE_TIME && self.is_late_and_grows(current)
    }

    /// True if more datagrams wait than [`LATE_QUEUE`], and more have come since the queue was last no longer than its target than the
    /// worker would have read without its longest pause. A worker that was held up once catches up, and loses nothing here.
    fn is_late_and_grows(&self, current: &Observation) -> bool {
        let (read_rate, offered_rate) = current.rates_since(&self.standing_since);
        let late = wanted_length(read_rate, current.queue, Span::ZERO) * LATE_QUEUE;
        let time = current.at - self.standing_since.at;
        let running = seconds_of(Span(time.0.saturating_sub(self.standing_pause.0))) / seconds_of(time);
        current.queue.waiting() > late && offered_rate * running > read_rate * GROWING_QUEUE_RATIO
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
        self.contention = self.active_networks.contention(now);
    }

    /// The rates at which datagrams are read and offered, and the time since which, if networks must be shed now.
    fn find_overload(
        &mut self,
        previous: &Observation,
        current: &Observation,
    ) -> Option<(Instant, (f64, f64))> {
        let queue = current.queue;
        let (read_rate, offered_rate) = current.rates_since(previous);
        let is_long =
            queue.waiting() > (2.0 * read_rate * seconds_of(QUEUE_TARGET)).min(queue.capacity() / 4.0);
        self.overloads = if is_long && offered_rate > read_rate { self.overloads + 1 } else { 0 };
        let since_busy = current.rates_since(&self.busy_since);
        let stands = self.stands(current, since_busy.0);
        if queue.drops != previous.queue.drops {
            // Datagrams were lost: use the rates since the worker last emptied the queue.
            self.sheds_everybody = true;
            return Some((self.busy_since.at, since_busy));
        }
        if stands {
            self.sheds_everybody = true;
            return Some((self.standing_since.at, current.rates_since(&self.standing_since)));
        }
        // One overload may mean that the worker was held up for a moment: it catches up. Two may not come, because a worker that reads
        // several batches before it looks at replies is faster than any flood for a moment: so the time since it was last idle counts too.
        let grows = since_busy.1 - since_busy.0;
        let overflows = queue.waiting() + grows * 2.0 * seconds_of(QUEUE_TARGET) > queue.capacity();
        let is_half_full = grows > 0.0 && queue.used > queue.size / 2;
        match self.contention {
            Contention::Many if self.overloads >= 2 => Some((previous.at, (read_rate, offered_rate))),
            Contention::Many if overflows || is_half_full => Some((self.busy_since.at, since_busy)),
            Contention::Few if overflows => Some((self.busy_since.at, since_busy)),
            _ => None,
        }
    }

    /// Copies the networks of the latest `read` datagrams, as far as the ring has them and they came through one filter.
    fn take_sample(&mut self, read: u64) {
        let FairShedding { recent, datagrams, sample, .. } = self;
        let number = *datagrams as usize;
        sample.clear();
        let (_, filtered) = self.filters.of_latest(*datagrams);
        let sampled = (read.min(filtered) as usize).min(SHEDDING_SAMPLE);
        sample.extend((0..sampled).map(|back| Sampled {
            network: recent[(number - 1 - back) % SHEDDING_SAMPLE],
            part: (back * SAMPLE_PARTS / sampled) as u8,
        }));
    }

    /// Divides `target`, the datagrams per second that may pass, among the networks. Returns true if the networks to shed have changed.
    fn compute_shares(&mut self, target: f64) -> bool {
        self.next_shed.clear();
        self.next_shed.extend(self.heavy.divide(target, self.offered_rate, self.sheds_everybody));
        // Each change costs some microseconds in the kernel, so changes are left out that are smaller than any that the queue asks for.
        let is_same = self.next_shed.len() == self.shed.len()
            && self.next_shed.iter().all(|next_shed| {
                let is_same = |shed: &&ShedNetwork| {
                    (shed.network, shed.length) == (next_shed.network, next_shed.length)
                };
                let now = self.shed.iter().find(is_same);
                now.is_some_and(|now| (next_shed.share - now.share).abs() <= now.share / 16.0)
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

/// Datagrams that should wait at most when so many are read per second, beside those that came in a pause: those of [`QUEUE_TARGET`]
/// without the pause, or a third of the queue. A third of the target is left in any case, so that the worker finds something.
fn wanted_length(read_rate: f64, queue: ReceiveQueue, pause: Span) -> f64 {
    let target = Span(QUEUE_TARGET.0.saturating_sub(pause.0).max(QUEUE_TARGET.0 / 3));
    (read_rate * seconds_of(target)).min(queue.capacity() / 3.0)
}

fn seconds_of(span: Span) -> f64 {
    span.0 as f64 / 1e9
}

#[cfg(test)]
#[path = "fair_shedding_tests.rs"]
mod tests;
