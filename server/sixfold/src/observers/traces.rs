//! The trace end at a worker: which queries are recorded, and for which operators.
//!
//! A trace costs an allocation for each step, so the number per second is bounded, for all workers of a trace together
//! ([`TraceQueue::refill`]). Queries beyond it, and traces that find the queue of a slow operator full, are counted.

use crossbeam_queue::ArrayQueue;
use engine::explain::Policy;
use engine::explain::live::{Recorder, Trace};
use engine::settings::Networks;
use engine::trace::{Subject, TraceEvent};
use engine::{Client, Moment, ObservedLink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use wire::Message;

/// Traces that wait for one operator: those of a second.
const QUEUE: usize = 1_024;

/// Which queries a trace shows. All of an empty filter.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Names in this zone, in wire form and lower case.
    pub zone: Option<Box<[u8]>>,
    /// Clients in these networks.
    pub clients: Option<Networks>,
}

impl Filter {
    /// True if the filter lets a query pass. A message without a readable name is in no zone.
    fn passes(&self, client: &Client, message: &[u8]) -> bool {
        if self.clients.as_ref().is_some_and(|clients| !clients.contains(client.address)) {
            return false;
        }
        let Some(zone) = &self.zone else { return true };
        Message::parse(message).is_ok_and(|message| is_in_zone(message.qname(), zone))
    }
}

/// True if a name is the zone's, or below it. Both are in wire form, the zone in lower case.
fn is_in_zone(mut name: &[u8], zone: &[u8]) -> bool {
    while name.len() > zone.len() {
        let Some(rest) = name.get(1 + usize::from(name[0])..) else { return false };
        name = rest;
    }
    wire::eq_ignore_case(name, zone)
}

/// The queue between all workers and the connection of one operator.
pub struct TraceQueue {
    filter: Filter,
    /// Bit that marks the records of this trace.
    bit: u32,
    traces: ArrayQueue<Arc<Trace>>,
    /// Queries that may still be recorded in this period.
    budget: AtomicU32,
    omitted: AtomicU64,
    ended: AtomicBool,
}

impl TraceQueue {
    /// The queue of the trace with this number. The numbers of 32 traces, one after the other, have different bits.
    pub fn new(filter: Filter, number: u32) -> TraceQueue {
        TraceQueue {
            filter,
            bit: 1 << (number % u32::BITS),
            traces: ArrayQueue::new(QUEUE),
            budget: AtomicU32::new(0),
            omitted: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// Takes a trace.
    pub fn take(&self) -> Option<Arc<Trace>> {
        self.traces.pop()
    }

    /// Lets this number of queries be recorded until the next call, with what is left of before, but not more than `most`.
    pub fn refill(&self, queries: u32, most: u32) {
        let left = self.budget.load(Ordering::Relaxed);
        // A query that takes one meanwhile is given back; the bound need not be exact.
        self.budget.store(left.saturating_add(queries).min(most), Ordering::Relaxed);
    }

    /// Matching queries so far that have no trace.
    pub fn omitted(&self) -> u64 {
        self.omitted.load(Ordering::Relaxed)
    }

    /// Ends the trace: the workers forget it within a tick.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// True if the trace has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// True if a query is to be recorded for this trace.
    fn wants(&self, client: &Client, message: &[u8], has_room: bool) -> bool {
        if self.has_ended() || !self.filter.passes(client, message) {
            return false;
        }
        let take_one = |budget: u32| budget.checked_sub(1);
        let is_granted =
            has_room && self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_one).is_ok();
        if !is_granted {
            self.omitted.fetch_add(1, Ordering::Relaxed);
        }
        is_granted
    }

    fn put(&self, trace: &Arc<Trace>) {
        if self.traces.push(Arc::clone(trace)).is_err() {
            self.omitted.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The traces at one worker.
#[derive(Default)]
pub struct Traces {
    recorder: Recorder,
    queues: Vec<Arc<TraceQueue>>,
}

impl Traces {
    pub fn add(&mut self, queue: Arc<TraceQueue>) {
        self.queues.push(queue);
    }

    /// Drops the traces that have ended. Returns true if none is left.
    pub fn drop_ended(&mut self) -> bool {
        self.queues.retain(|queue| !queue.has_ended());
        self.queues.is_empty()
    }

    pub fn query(&mut self, at: Moment, from: &Client, message: &[u8], policy: impl FnOnce() -> Arc<Policy>) {
        let has_room = self.recorder.has_room();
        let wanting = self.queues.iter().filter(|queue| queue.wants(from, message, has_room));
        let tag = wanting.fold(0, |tag, queue| tag | queue.bit);
        if tag != 0 {
            self.recorder.begin(at.now, at.unix, from, message, policy(), tag);
        }
    }

    pub fn end_query(&mut self) {
        let ended = self.recorder.end_query();
        self.deliver(ended);
    }

    pub fn answer(&mut self, at: Moment, message: &[u8]) {
        self.recorder.answer(at.now, message);
    }

    pub fn ask(&mut self, at: Moment, link: &ObservedLink) {
        self.recorder.ask(at.now, link.upstream, link.transport);
    }

    pub fn event(&mut self, at: Moment, subject: Subject, event: &TraceEvent<'_>) {
        let ended = self.recorder.event(at.now, subject, event);
        self.deliver(ended);
    }

    #[inline]
    fn deliver(&self, ended: Option<(Trace, u32)>) {
        let Some((trace, tag)) = ended else { return };
        let trace = Arc::new(trace);
        for queue in self.queues.iter().filter(|queue| tag & queue.bit != 0) {
            queue.put(&trace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::settings::Network;

    const QUERY: &[u8] = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x03WWW\x07Example\0\0\x1c\0\x01";

    fn client(address: &str) -> Client {
        Client::udp(std::net::SocketAddr::new(address.parse().unwrap(), 4000))
    }

    fn in_zone(zone: &[u8]) -> Filter {
        Filter { zone: Some(zone.into()), clients: None }
    }

    #[test]
    fn a_zone_has_its_own_name_and_all_below_it_by_whole_labels() {
        let client = client("192.0.2.1");
        for (zone, passes) in [
            (&b"\0"[..], true),
            (b"\x07example\0", true),
            (b"\x03www\x07example\0", true),
            (b"\x01a\x03www\x07example\0", false),
            (b"\x05ample\0", false),
            (b"\x07example\x04test\0", false),
        ] {
            assert_eq!(in_zone(zone).passes(&client, QUERY), passes, "{zone:?}");
        }
        assert!(!in_zone(b"\0").passes(&client, b"\0\x07"), "no readable name");
        assert!(Filter::default().passes(&client, b"\0\x07"));
    }

    #[test]
    fn a_network_has_its_clients() {
        let network = Network::v4([192, 0, 2, 0].into(), 24);
        let filter = Filter { zone: None, clients: Some(Networks(vec![network])) };
        assert!(filter.passes(&client("192.0.2.1"), QUERY));
        assert!(!filter.passes(&client("198.51.100.1"), QUERY));
        assert!(!filter.passes(&client("2001:db8::1"), QUERY));
    }

    #[test]
    fn queries_beyond_the_budget_are_counted() {
        let (queue, client) = (TraceQueue::new(in_zone(b"\x07example\0"), 33), client("192.0.2.1"));
        queue.refill(2, 3);
        let other = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x04test\0\0\x1c\0\x01";
        assert!(!queue.wants(&client, other, true), "it does not match, and costs nothing");
        let wanted: Vec<bool> = (0..3).map(|_| queue.wants(&client, QUERY, true)).collect();
        assert_eq!((wanted, queue.omitted()), (vec![true, true, false], 1));
        queue.refill(9, 3);
        assert!(!queue.wants(&client, QUERY, false), "the recorder is full");
        let granted = (0..5).filter(|_| queue.wants(&client, QUERY, true)).count();
        assert_eq!((granted, queue.omitted()), (3, 4));
        queue.end();
        assert!(!queue.wants(&client, QUERY, true));
        assert_eq!(queue.omitted(), 4);
    }
}
