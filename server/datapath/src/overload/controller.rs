//! When a worker is overloaded, and how much may pass. Input: the receive queue after each batch. Output: a rate. Neither networks nor
//! sockets are known here, and no clock is read.
//!
//! - *When*, by CoDel (RFC 8289 section 3): the queue *stands* if even its youngest datagrams were too old for an interval without a
//!   break. After a pause of the worker the queue is long too, but short again before. Two signs come earlier: the age rises for a while
//!   although the worker runs, or the queue is half full or has overflowed.
//! - *How much*, by PIE (RFC 8033): the rate at which the worker reads (section 5.2), more or less in proportion to the distance of
//!   the age from its target (section 4.2). PIE's third part, the change of the age, is left out: datagrams that wait tell of filters
//!   before the latest one, so its sum runs away.

use crate::limits::{
    CORRECTION_TIME, DATAGRAM_QUEUE_OCTETS, IDLE_GAIN, LATE_AGE, OFFERED_TIME, OVERLOAD_DATAGRAMS,
    OVERLOAD_INTERVAL, QUEUE_TARGET, RISING_TIME, STALE_COST, UPDATE_INTERVAL,
};
use crate::socket::syscalls::ReceiveQueue;
use engine::{Instant, Span};

/// Datagrams read so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Datagrams {
    pub(crate) read: u64,
    /// Those of them that were too old, and dropped.
    pub(crate) stale: u64,
    /// Those of them that have passed the latest filter.
    pub(crate) passed: u64,
}

/// The receive queue after a batch was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation {
    pub(crate) at: Instant,
    /// True if nothing waits.
    pub(crate) is_empty: bool,
    /// The time at which the youngest datagram came that was read; of an empty queue `at`. `None` if it is not known.
    pub(crate) arrival: Option<Instant>,
    pub(crate) datagrams: Datagrams,
    /// The time at which the latest filter was attached, or detached.
    pub(crate) filtered_since: Instant,
    pub(crate) queue: ReceiveQueue,
}

impl Observation {
    /// Age of the youngest datagram, or zero if it is not known.
    fn age(&self) -> Span {
        self.arrival.map_or(Span::ZERO, |arrival| self.at - arrival)
    }

    /// True if the queue is longer than it should be, or has overflowed since it had so many drops.
    fn is_long(&self, drops: u32) -> bool {
        !self.is_empty
            && (self.age() > QUEUE_TARGET || self.queue.is_half_full() || self.queue.drops != drops)
    }

    /// True if the queue may soon be long: a flood of fifty times what the worker reads fills the rest of it in three batches.
    fn is_filling(&self) -> bool {
        !self.is_empty && self.queue.used > self.queue.size / 4
    }

    /// True if a queue that is long since an earlier observation is more than the backlog of a pause.
    fn is_overload_since(&self, earlier: &Observation) -> bool {
        let (time, age, age_then) = (self.at - earlier.at, self.age(), earlier.age());
        let stands = time >= OVERLOAD_INTERVAL;
        // By a fifth of the time at least: a worker that catches up may be slow for a moment.
        let rises = time >= RISING_TIME && age > LATE_AGE && age.0 > age_then.0 + time.0 / 5;
        // What a pause has left shrinks.
        let fills = self.queue.is_half_full() && age >= age_then;
        let has_overflowed = self.queue.drops != earlier.queue.drops;
        let read = self.datagrams.read - earlier.datagrams.read;
        let is_proven = read >= OVERLOAD_DATAGRAMS && time > Span::ZERO;
        is_proven && (stands || rises || fills || has_overflowed)
    }

    /// Datagrams read since an earlier observation, stale ones as part of one.
    fn read_since(&self, earlier: &Observation) -> Mean {
        let seconds = seconds_of(self.at - earlier.at);
        let read = (self.datagrams.read - earlier.datagrams.read) as f64;
        let stale = (self.datagrams.stale - earlier.datagrams.stale) as f64;
        Mean { rate: (read - stale * (1.0 - STALE_COST)) / seconds, seconds }
    }

    /// Datagrams that clients sent since an earlier observation: those dropped, and those that got into the queue.
    fn offered_since(&self, earlier: &Observation) -> Mean {
        let time = seconds_of(self.at - earlier.at);
        let dropped = f64::from(self.queue.drops.wrapping_sub(earlier.queue.drops)) / time;
        let first = earlier.arrival.map(|first| first.max(self.filtered_since));
        let (accepted, seconds) = match (first, self.arrival) {
            // What was read and has passed the latest filter came between these times.
            (Some(first), Some(last)) if last > first => {
                ((self.datagrams.passed - earlier.datagrams.passed) as f64, seconds_of(last - first))
            }
            _ => {
                let read = (self.datagrams.read - earlier.datagrams.read) as f64;
                let grown = f64::from(self.queue.used) - f64::from(earlier.queue.used);
                ((read + grown / DATAGRAM_QUEUE_OCTETS).max(0.0), time)
            }
        };
        Mean { rate: dropped + accepted / seconds, seconds }
    }
}

/// Datagrams per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    /// That may pass.
    pub(crate) passing: f64,
    /// That clients send.
    pub(crate) offered: f64,
}

/// A rate in datagrams per second, as a mean over time.
#[derive(Clone, Copy, Debug)]
struct Mean {
    rate: f64,
    /// The seconds of which this is the mean.
    seconds: f64,
}

impl Mean {
    /// Adds a rate that was measured for some seconds. The mean is one over `longest` at most.
    fn add(&mut self, measured: Mean, longest: Span) {
        self.seconds = (self.seconds + measured.seconds).min(seconds_of(longest));
        self.rate += (measured.rate - self.rate) * (measured.seconds / self.seconds).min(1.0);
    }
}

/// The controller of one receive queue.
pub(crate) struct Controller(Phase);

enum Phase {
    /// The queue is short. `drops`: those of the latest observation.
    Calm { drops: u32 },
    /// The queue is long, or may soon be, since an observation. A pause of the worker may be the reason.
    Long { since: Observation },
    /// The queue is kept at its target.
    Shedding(Shedding),
}

impl Controller {
    pub(crate) fn new() -> Controller {
        Controller(Phase::Calm { drops: 0 })
    }

    /// True if the queue is long, or kept short. It should be known who sends.
    #[inline]
    pub(crate) fn is_alarmed(&self) -> bool {
        !matches!(self.0, Phase::Calm { .. })
    }

    /// True if nothing that came before an observation matters.
    pub(crate) fn starts_at(&self, now: &Observation) -> bool {
        match &self.0 {
            Phase::Calm { .. } => true,
            Phase::Long { since } => since.at == now.at,
            Phase::Shedding(_) => false,
        }
    }

    /// Ends the shedding: all that is offered may pass.
    pub(crate) fn end(&mut self, now: &Observation) {
        self.0 = Phase::Calm { drops: now.queue.drops };
    }

    /// Takes note of the queue after a batch. Returns the rates when an overload begins, and then at each update.
    pub(crate) fn observe(&mut self, now: Observation) -> Option<Rates> {
        match &mut self.0 {
            Phase::Calm { drops } if now.is_long(*drops) || now.is_filling() => {
                self.0 = Phase::Long { since: now };
            }
            Phase::Long { since } if now.is_long(since.queue.drops) => {
                if now.is_overload_since(since) {
                    let shedding = Shedding::begin(since, now);
                    let rates = shedding.rates(now.age());
                    self.0 = Phase::Shedding(shedding);
                    return Some(rates);
                }
            }
            Phase::Long { since } if now.is_filling() => *since = now,
            Phase::Calm { .. } | Phase::Long { .. } => self.end(&now),
            Phase::Shedding(shedding) => return shedding.observe(now),
        }
        None
    }
}

/// State while networks are shed.
struct Shedding {
    /// Rate that the worker can read.
    capacity: Mean,
    offered: Mean,
    /// The observation at the latest update, and the one after the latest batch.
    updated: Observation,
    latest: Observation,
    /// Since the latest update: true if the worker has emptied the queue, and the lowest age of what has passed the latest filter.
    has_emptied: bool,
    lowest: Option<Span>,
}

impl Shedding {
    /// An overload was found `now`, in a queue that is long `since` then.
    fn begin(since: &Observation, now: Observation) -> Shedding {
        Shedding {
            capacity: now.read_since(since),
            offered: now.offered_since(since),
            updated: now,
            latest: now,
            has_emptied: false,
            lowest: None,
        }
    }

    fn observe(&mut self, now: Observation) -> Option<Rates> {
        let before = std::mem::replace(&mut self.latest, now);
        self.has_emptied |= now.is_empty;
        if now.is_empty || now.datagrams.passed > before.datagrams.passed {
            self.lowest = Some(self.lowest.map_or(now.age(), |lowest| lowest.min(now.age())));
        }
        self.is_due(&now).then(|| self.update(now))
    }

    /// True if enough time has passed since the latest update. The effect of a filter is known once some of what has passed it was
    /// read; a queue that may overflow does not wait for that.
    fn is_due(&self, now: &Observation) -> bool {
        let time = now.at - self.updated.at;
        let passed = now.datagrams.passed - self.updated.datagrams.passed;
        let is_known = passed >= OVERLOAD_DATAGRAMS || now.queue.is_half_full();
        time >= UPDATE_INTERVAL && is_known || time >= CORRECTION_TIME
    }

    fn update(&mut self, now: Observation) -> Rates {
        let updated = std::mem::replace(&mut self.updated, now);
        let age = self.lowest.take().unwrap_or(now.age());
        let age = if now.queue.is_half_full() { age.max(LATE_AGE) } else { age };
        let read = now.read_since(&updated);
        if std::mem::take(&mut self.has_emptied) {
            // It could have read more.
            self.capacity.rate = self.capacity.rate.max(read.rate * IDLE_GAIN);
        } else {
            self.capacity.add(read, OVERLOAD_INTERVAL);
        }
        self.offered.add(now.offered_since(&updated), OFFERED_TIME);
        self.rates(age)
    }

    /// Rates at an age of the queue. Older datagrams do not count, as they are dropped.
    fn rates(&self, age: Span) -> Rates {
        let distance = seconds_of(QUEUE_TARGET) - seconds_of(age.min(LATE_AGE));
        let passing = self.capacity.rate * (1.0 + distance / seconds_of(CORRECTION_TIME));
        Rates { passing, offered: self.offered.rate }
    }
}

fn seconds_of(span: Span) -> f64 {
    span.0 as f64 / 1e9
}
