//! An overload with a simulated queue, in steps of a millisecond: each network sends at its rate, and the tests check how
//! much of it is read.

use super::*;
use crate::limits::DATAGRAM_QUEUE_OCTETS;
use crate::overload::queue_age::{BatchTime, QueueAge};

/// A queue of the size that the kernel has for [`crate::limits::RECEIVE_BUFFER`].
const SIZE: u32 = 2 * crate::limits::RECEIVE_BUFFER as u32;

/// Milliseconds between two ticks of a worker.
const TICK_MS: u64 = 100;

struct Sender {
    network: ClientNetwork,
    /// Datagrams in each millisecond.
    per_ms: f64,
    owed: f64,
    /// Datagrams that it sends one after the other.
    burst: f64,
    sent: u64,
    read: u64,
}

struct World {
    shedding: Overload,
    queue_age: QueueAge,
    /// True while the kernel stamps datagrams.
    stamps: bool,
    senders: Vec<Sender>,
    /// Senders of the datagrams that wait, the milliseconds at which they came, and the kernel's stamps.
    queue: std::collections::VecDeque<(usize, u64, Option<u64>)>,
    /// Milliseconds that the datagrams waited which were read.
    waits: Vec<u64>,
    drops: u32,
    installed: Vec<ShedNetwork>,
    random: u64,
    milliseconds: u64,
    /// Datagrams that the worker reads in each millisecond, and the milliseconds in which it runs.
    reads: usize,
    /// Datagrams that the worker has read of those of the next millisecond.
    ahead: f64,
    /// Cost of an upstream's reply to a datagram, as a multiple of that of reading one. A turn of the worker reads datagrams and then replies.
    reply_cost: f64,
    /// Replies to read in this turn.
    replies: usize,
    runs: fn(u64) -> bool,
    changes: u32,
}

/// A network of a customer.
fn network(customer: usize, number: usize) -> ClientNetwork {
    let bits = 0x2001_0db8 << 96 | (customer as u128) << 72 | (number as u128) << 64;
    ClientNetwork::of(bits.into(), 0)
}

impl World {
    /// Makes a sender for each rate, in datagrams per millisecond. Each has a customer of its own.
    fn new(reads: usize, senders: &[f64]) -> World {
        let sender = |(number, &per_ms)| Sender {
            network: network(number, 0),
            per_ms,
            owed: 0.0,
            burst: 1.0,
            sent: 0,
            read: 0,
        };
        World {
            shedding: Overload::new(),
            queue_age: QueueAge::default(),
            stamps: false,
            senders: senders.iter().enumerate().map(sender).collect(),
            queue: Default::default(),
            waits: vec![],
            drops: 0,
            installed: vec![],
            random: 1,
            milliseconds: 0,
            reads,
            ahead: 0.0,
            reply_cost: 0.0,
            replies: 0,
            runs: |_| true,
            changes: 0,
        }
    }

    /// Lets the senders send one after the other, and not all at once.
    fn spread(&mut self) {
        let count = self.senders.len() as f64;
        let senders = self.senders.iter_mut().enumerate();
        senders.for_each(|(number, sender)| sender.owed = sender.burst * number as f64 / count);
    }

    fn chance(&mut self) -> f64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 11) as f64 / (1u64 << 53) as f64
    }

    fn run(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds {
            self.arrive();
            if (self.runs)(self.milliseconds) {
                self.work();
            }
            self.milliseconds += 1;
        }
    }

    fn arrive(&mut self) {
        // The bursts of all senders in random order.
        self.senders.iter_mut().for_each(|sender| sender.owed += sender.per_ms);
        let mut arriving: Vec<usize> = vec![];
        for (number, sender) in self.senders.iter_mut().enumerate() {
            while sender.owed >= sender.burst {
                sender.owed -= sender.burst;
                sender.sent += sender.burst as u64;
                arriving.push(number);
            }
        }
        for last in (1..arriving.len()).rev() {
            let other = (self.chance() * (last + 1) as f64) as usize;
            arriving.swap(last, other);
        }
        let bursts: Vec<(usize, usize)> =
            arriving.into_iter().map(|number| (number, self.senders[number].burst as usize)).collect();
        for number in bursts.into_iter().flat_map(|(number, burst)| std::iter::repeat_n(number, burst)) {
            let network = self.senders[number].network;
            // As the filter does: the network itself comes before its customer.
            let shed = |network: ClientNetwork, length: u8| {
                let found =
                    self.installed.iter().find(|shed| (shed.network, shed.length) == (network, length));
                found.map(|shed| shed.share)
            };
            let share =
                shed(network, 64).or(shed(network.customer(56), 56)).or(shed(ClientNetwork::default(), 0));
            let share = share.unwrap_or(1.0);
            let is_full = self.queue.len() as f64 * DATAGRAM_QUEUE_OCTETS > f64::from(SIZE);
            if is_full || self.chance() >= share {
                self.drops += 1;
            } else {
                let stamp = self.stamps.then_some(self.milliseconds * 1_000_000);
                self.queue.push_back((number, self.milliseconds, stamp));
            }
        }
    }

    fn work(&mut self) {
        // A batch is read whole, though it take more than the rest of the millisecond.
        let mut left = self.reads as f64 - self.ahead;
        while left > 0.0 && !self.queue.is_empty() {
            let batch = crate::limits::BATCH.min(self.queue.len());
            let now = self.moment(left);
            let time = BatchTime { now, wall_ns: now.0 };
            for (number, came, stamp) in self.queue.drain(..batch) {
                // The kernel stamps a datagram that has no stamp when it is read.
                let stamp = self.stamps.then_some(stamp.unwrap_or(now.0));
                let arrival = self.queue_age.arrival(time, stamp);
                let is_served = self.shedding.record(now, arrival, self.senders[number].network);
                self.senders[number].read += u64::from(is_served);
                if is_served {
                    self.waits.push(self.milliseconds - came);
                }
                // A stale datagram costs a tenth of one that is served.
                left -= if is_served { 1.0 } else { 0.1 };
                self.replies += usize::from(is_served);
            }
            if self.replies >= crate::limits::MESSAGES_PER_TURN || self.queue.is_empty() {
                left -= std::mem::take(&mut self.replies) as f64 * self.reply_cost;
            }
            let is_full = batch == crate::limits::BATCH;
            if let Some(stamps) = self.queue_age.switch(now, is_full) {
                self.stamps = stamps;
            }
            self.on_batch(now, !is_full);
        }
        self.ahead = (-left).max(0.0);
        // The tick of a worker, which comes without datagrams, too.
        if self.milliseconds.is_multiple_of(TICK_MS) && self.shedding.is_active() {
            self.on_batch(self.moment(self.reads as f64), self.queue.is_empty());
        }
    }

    /// The time at which the worker has so much of this millisecond left.
    fn moment(&self, left: f64) -> Instant {
        let done = (self.reads as f64 - left) / self.reads as f64;
        Instant(self.milliseconds * 1_000_000 + (done * 1_000_000.0) as u64)
    }

    fn on_batch(&mut self, now: Instant, is_emptied: bool) {
        let queue = self.observed_queue();
        if let Some(shed) = self.shedding.on_batch(now, is_emptied, self.queue_age.is_known(), queue, 56) {
            self.installed = shed.to_vec();
            self.changes += 1;
        }
    }

    fn observed_queue(&self) -> ReceiveQueue {
        let used = (self.queue.len() as f64 * DATAGRAM_QUEUE_OCTETS) as u32;
        ReceiveQueue { used, size: SIZE, drops: self.drops }
    }

    /// The 99th percentile of the waits, in milliseconds.
    fn p99_wait(&mut self) -> u64 {
        self.waits.sort_unstable();
        self.waits[self.waits.len() * 99 / 100]
    }

    /// Resets the counts.
    fn count_anew(&mut self) {
        self.waits.clear();
        self.senders.iter_mut().for_each(|sender| (sender.sent, sender.read) = (0, 0));
    }

    /// The share of a sender's datagrams that was read.
    fn kept(&self, number: usize) -> f64 {
        self.senders[number].read as f64 / self.senders[number].sent as f64
    }

    /// Datagrams of the first twenty senders: sent, and read at the end.
    fn of_the_others(&mut self) -> (u64, u64) {
        self.senders.iter_mut().for_each(|sender| sender.per_ms = 0.0);
        self.run(200);
        let others = &self.senders[..20];
        (others.iter().map(|sender| sender.sent).sum(), others.iter().map(|sender| sender.read).sum())
    }

    fn read(&self) -> u64 {
        self.senders.iter().map(|sender| sender.read).sum()
    }
}

#[test]
fn one_network_floods_and_the_others_lose_nothing() {
    for times in [2.0, 5.0, 10.0, 50.0] {
        // 100 a millisecond are possible; twenty others send one together.
        let mut world = World::new(100, &[vec![0.05; 20], vec![0.0]].concat());
        world.run(100);
        world.senders[20].per_ms = times * 100.0;
        world.run(5_000);
        assert!(world.queue.len() < 100 * 60, "the queue is short: {}", world.queue.len());
        // The worker is busy all the time.
        assert!(world.read() >= 5_000 * 97, "{times}: {}", world.read());
        let (sent, read) = world.of_the_others();
        assert!(read as f64 >= 0.999 * sent as f64, "{times}: {read} of {sent}");
    }
}

#[test]
fn a_customer_floods_from_all_its_networks_and_the_others_lose_nothing() {
    for networks in [33, 256] {
        // 100 a millisecond are possible; twenty others send one together, and the customer a thousand.
        let mut world =
            World::new(100, &[vec![0.05; 20], vec![1_000.0 / networks as f64; networks]].concat());
        let flooders = world.senders[20..].iter_mut();
        flooders.enumerate().for_each(|(number, sender)| sender.network = network(20, number));
        world.run(5_000);
        assert!(world.installed.iter().any(|shed| (shed.network, shed.length) == (network(20, 0), 56)));
        assert!(world.read() >= 5_000 * 97, "{networks}: {}", world.read());
        let (sent, read) = world.of_the_others();
        assert!(read as f64 >= 0.995 * sent as f64, "{networks}: {read} of {sent}");
    }
}

#[test]
fn the_neighbours_of_a_flooding_network_lose_nothing() {
    // All are of one customer.
    let mut world = World::new(100, &[vec![0.05; 20], vec![1_000.0]].concat());
    world.senders.iter_mut().enumerate().for_each(|(number, sender)| sender.network = network(7, number));
    world.run(5_000);
    assert!(world.installed.iter().all(|shed| (shed.network, shed.length) == (network(7, 20), 64)));
    let (sent, read) = world.of_the_others();
    assert!(read as f64 >= 0.995 * sent as f64, "{read} of {sent}");
}

#[test]
fn a_worker_so_fast_that_its_queue_is_short_is_as_fair() {
    // A queue of 5,461 datagrams lasts 11 ms.
    let mut world = World::new(500, &[vec![0.25; 20], vec![5_000.0]].concat());
    world.run(2_000);
    assert!(world.read() >= 2_000 * 475, "{}", world.read());
    let (sent, read) = world.of_the_others();
    assert!(read as f64 >= 0.995 * sent as f64, "{read} of {sent}");
}

#[test]
fn a_worker_that_runs_a_fifth_of_the_time_is_as_fair() {
    for (able, times) in [(27, 10.0), (44, 2.0), (44, 5.0), (44, 10.0)] {
        let per_ms = f64::from(able);
        let flood = [vec![per_ms * 0.05 / 20.0; 20], vec![0.0]].concat();
        let mut world = World::new(5 * able as usize, &flood);
        world.runs = |millisecond| millisecond % 5 == 0;
        world.run(100);
        world.senders[20].per_ms = times * per_ms;
        world.run(5_000);
        assert!(world.read() as f64 >= 5_000.0 * per_ms * 0.95, "{able}, {times}: {}", world.read());
        let (sent, read) = world.of_the_others();
        assert!(read as f64 >= 0.999 * sent as f64, "{able}, {times}: {read} of {sent}");
    }
}

#[test]
fn bursts_of_networks_that_are_alike_are_no_floods() {
    for (customers, times) in [(4, 2.0), (4, 10.0), (1_000, 2.0), (1_000, 10.0)] {
        let per_ms = times * 100.0 / 1_000.0;
        let mut world = World::new(100, &vec![per_ms; 1_000]);
        world.senders.iter_mut().for_each(|sender| sender.burst = 16.0);
        world.spread();
        let senders = world.senders.iter_mut().enumerate();
        senders.for_each(|(number, sender)| sender.network = network(number % customers, number / customers));
        world.run(500);
        world.count_anew();
        world.run(4_000);
        let (case, read) = (format!("{times} x from {customers} customers"), world.read());
        assert!(read >= 4_000 * 97, "{case}: {read}");
        let wait = world.p99_wait();
        assert!(wait <= 45, "{case}: {wait} ms");
    }
}

#[test]
fn a_network_that_asks_for_less_than_an_equal_share_gets_it_all() {
    // 100 are possible: the networks with 1 and 20 get all, and the two that want more get 39.5 each.
    let mut world = World::new(100, &[1.0, 20.0, 60.0, 400.0]);
    world.run(1_000);
    world.count_anew();
    world.run(5_000);
    assert!(world.kept(0) > 0.995 && world.kept(1) > 0.995, "{} {}", world.kept(0), world.kept(1));
    for number in [2, 3] {
        let rate = world.senders[number].read as f64 / 5_000.0;
        assert!((34.0..45.0).contains(&rate), "{rate}");
    }
}

#[test]
fn the_shedding_ends_when_the_flood_ends() {
    let mut world = World::new(100, &[10.0, 1_000.0]);
    world.run(1_000);
    assert!(world.shedding.is_active() && world.installed.iter().all(|shed| shed.network == network(1, 0)));
    // The network goes on at the rate of the others.
    world.senders[1].per_ms = 10.0;
    world.run(400);
    assert!(!world.shedding.is_active() && world.installed.is_empty());
    world.count_anew();
    world.run(1_000);
    assert!(world.kept(1) > 0.99, "{}", world.kept(1));
}

#[test]
fn a_worker_that_was_held_up_shuts_nobody_out() {
    let mut world = World::new(100, &[5.0, 50.0]);
    world.runs = |millisecond| millisecond % 1_000 >= 40;
    world.run(5_000);
    assert_eq!(world.changes, 0);
    assert!(world.kept(1) > 0.99);
}

/// Stops the worker for 60 ms four times a second, and gives it a quarter of the core for the next 20 ms: while it catches up,
/// more comes than it reads.
const STOPPED_OFTEN: fn(u64) -> bool =
    |millisecond| millisecond % 250 >= 80 || millisecond % 250 >= 60 && millisecond % 4 == 0;

#[test]
fn a_network_that_is_alone_loses_nothing_that_the_queue_can_hold() {
    // The worker can read 70 a millisecond in the mean. At 50 a millisecond, 60 x 50 + 20 x (50 - 25) = 3,500 wait of the 5,461
    // that the queue holds.
    for per_ms in [2.0, 20.0, 40.0, 50.0] {
        let mut world = World::new(100, &[per_ms]);
        world.runs = STOPPED_OFTEN;
        world.run(10_000);
        assert_eq!((world.changes, world.drops), (0, 0), "{per_ms}");
    }
}

#[test]
fn single_datagrams_in_the_name_of_others_do_not_harm_a_network() {
    // A thousand networks send one datagram each, ten in 100 ms.
    let mut world = World::new(100, &[vec![50.0], vec![0.0001; 1_000]].concat());
    for number in 1..=1_000 {
        world.senders[number].owed = 1.0 - number as f64 / 1_000.0;
    }
    world.runs = STOPPED_OFTEN;
    world.run(9_900);
    assert!(world.senders[1..].iter().all(|sender| sender.sent <= 1));
    assert!(world.senders[1..].iter().map(|sender| sender.sent).sum::<u64>() > 900);
    assert_eq!((world.changes, world.drops), (0, 0));
}

#[test]
fn the_queue_of_a_network_that_is_alone_does_not_stand() {
    for times in [1.2, 2.0, 5.0, 10.0] {
        let mut world = World::new(100, &[times * 100.0]);
        world.run(2_000);
        assert_eq!(world.shedding.reason_of_drops(), Counter::ReceiveQueueOverflow);
        assert!(world.queue.len() < 100 * 60, "{times}: the queue is short: {}", world.queue.len());
        assert!(world.read() >= 2_000 * 97, "{times}: {}", world.read());
        // Normal again within a second.
        world.senders[0].per_ms = 50.0;
        world.run(1_000);
        assert!(world.installed.is_empty(), "{times}");
        world.count_anew();
        let drops = world.drops;
        world.run(1_000);
        assert_eq!(world.drops, drops, "{times}");
    }
}

/// Senders that are alike: one, twenty, and a thousand, with this many datagrams per millisecond together.
fn alike(per_ms: f64) -> [Vec<f64>; 3] {
    [1, 20, 1_000].map(|count| vec![per_ms / f64::from(count); count as usize])
}

#[test]
fn where_all_are_alike_answers_are_in_time_and_the_worker_is_busy() {
    for times in [1.2, 2.0, 5.0, 10.0] {
        for senders in alike(times * 100.0) {
            let mut world = World::new(100, &senders);
            world.run(500);
            world.count_anew();
            world.run(2_000);
            let (case, read) = (format!("{times} x from {}", senders.len()), world.read());
            assert!(read >= 2_000 * 98, "{case}: {read}");
            let wait = world.p99_wait();
            assert!(wait <= 40, "{case}: {wait} ms");
            // A thousand send too little each for a comparison.
            if let [first, .., last] = &world.senders[..20.min(senders.len())] {
                let ratio = first.read as f64 / last.read as f64;
                assert!((0.7..1.4).contains(&ratio), "{case}: {ratio}");
            }
        }
    }
}

/// The first three seconds, of a worker with a core and of one with a CPU quota; the overload begins at different moments of its periods.
#[test]
fn an_overload_that_begins_is_answered_in_time_by_a_worker_that_is_busy() {
    const ALWAYS: fn(u64) -> bool = |_| true;
    const QUOTA: fn(u64) -> bool = |millisecond| millisecond % 20 < 4;
    for (runs, reads, able) in [(ALWAYS, 100, 100.0), (QUOTA, 100, 20.0), (QUOTA, 175, 35.0)] {
        for (times, begin) in
            [2.0, 5.0, 10.0].into_iter().flat_map(|times| [0, 3, 10, 18].map(|begin| (times, begin)))
        {
            for senders in alike(times * able) {
                let mut world = World::new(reads, &senders);
                (world.runs, world.milliseconds) = (runs, begin);
                world.spread();
                world.run(3_000);
                let case = format!("{times} x {able} from {}, begin at {begin} ms", senders.len());
                let (read, wait) = (world.read() as f64 / (3_000.0 * able), world.p99_wait());
                assert!(read >= 0.95, "{case}: {read}");
                assert!(wait <= 50, "{case}: {wait} ms");
            }
        }
    }
}

/// The first second of an overload after a load that the worker can bear, with a CPU quota: twice its period is enough to find out, unless
/// the queue overflows before.
#[test]
fn the_first_second_of_an_overload_is_answered_in_time() {
    const PERIOD: u64 = 20;
    for (able, times, most) in [20.0, 35.0].into_iter().flat_map(|able| {
        [(2.0, 2 * PERIOD), (5.0, 2 * PERIOD), (10.0, 50)].map(|(times, most)| (able, times, most))
    }) {
        for begin in (0..PERIOD).step_by(3) {
            for senders in alike(times * able) {
                let calm: Vec<f64> = senders.iter().map(|per_ms| per_ms * 0.5 / times).collect();
                let mut world = World::new(5 * able as usize, &calm);
                world.runs = |millisecond| millisecond % PERIOD < PERIOD / 5;
                world.spread();
                world.run(400 + begin);
                world.count_anew();
                world.senders.iter_mut().zip(&senders).for_each(|(sender, per_ms)| sender.per_ms = *per_ms);
                world.run(1_000);
                let case = format!("{times} x {able} from {}, begin at {begin} ms", senders.len());
                let (read, wait) = (world.read() as f64 / (1_000.0 * able), world.p99_wait());
                assert!(read >= 0.9, "{case}: {read}");
                assert!(wait <= most, "{case}: {wait} ms");
            }
        }
    }
}

/// A share that was right until now is too large once the worker becomes slower.
#[test]
fn a_worker_that_becomes_slower_answers_nothing_that_is_too_old() {
    let [one, _, thousand] = alike(500.0);
    for senders in [one, thousand] {
        let mut world = World::new(100, &senders);
        world.run(1_000);
        world.count_anew();
        world.reads = 20;
        world.run(1_000);
        let (case, oldest) = (senders.len(), world.waits.iter().max().copied());
        // The batch before, and the one itself, take 3.2 ms each.
        assert!(oldest <= Some(LATE_AGE.0 / 1_000_000 + 7), "{case}: {oldest:?} ms");
        // Until the rate is known, four of five that come are stale, and each costs a tenth of an answer.
        assert!(world.read() >= 800 * 20, "{case}: {}", world.read());
    }
}

#[test]
fn an_overload_leaves_no_trace() {
    for times in [2.0, 10.0] {
        for senders in alike(times * 100.0) {
            let mut world = World::new(100, &senders);
            world.run(1_000);
            // Hardly less than the worker can read.
            world.senders.iter_mut().for_each(|sender| sender.per_ms *= 0.95 / times);
            world.run(1_000);
            assert!(world.installed.is_empty(), "{times} x from {}", senders.len());
            let (changes, drops) = (world.changes, world.drops);
            world.run(3_000);
            assert_eq!((world.changes, world.drops), (changes, drops), "{times} x from {}", senders.len());
        }
    }
}

#[test]
fn many_networks_that_are_alike_lose_nothing_that_the_queue_can_hold() {
    let mut world = World::new(100, &[0.05; 1_000]);
    world.spread();
    world.runs = STOPPED_OFTEN;
    world.run(10_000);
    assert_eq!((world.changes, world.drops), (0, 0));
}

#[test]
fn a_network_that_sends_much_gets_no_more_than_the_average_of_too_many_others() {
    // A thousand send twice as much as can be read, and one of them five times as much as all others together.
    let mut world = World::new(100, &[vec![0.2; 1_000], vec![1_000.0]].concat());
    world.spread();
    world.run(1_000);
    world.count_anew();
    world.run(2_000);
    assert!(world.read() >= 2_000 * 97, "{}", world.read());
    let of_the_others: u64 = world.senders[..1_000].iter().map(|sender| sender.read).sum();
    let kept = of_the_others as f64 / (2_000.0 * 200.0);
    assert!(kept > 0.4, "{kept}");
}

#[test]
fn as_many_networks_as_the_filter_holds_are_shed_at_a_time() {
    let mut world = World::new(100, &[[1.0].as_slice(), &[60.0; 25]].concat());
    world.run(2_000);
    assert!(world.installed.len() <= SHED_NETWORKS && !world.installed.is_empty());
}

/// The milliseconds in which the worker runs, their share of the time, and the share of datagrams that the others keep at
/// least.
type Pattern = (fn(u64) -> bool, f64, f64);

#[test]
fn a_worker_that_is_held_up_again_and_again_is_still_put_to_use() {
    let patterns: [Pattern; 3] = [
        (|millisecond| millisecond % 100 >= 30, 0.7, 0.999),
        (|millisecond| millisecond % 5 == 0, 0.2, 0.999),
        // Other processes have the core most of the time, at random; the shedding stops and starts again.
        (|millisecond| (millisecond / 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 == 0, 0.25, 0.97),
    ];
    for (number, (runs, run_share, kept)) in patterns.into_iter().enumerate() {
        for times in [1.5, 2.0, 5.0, 10.0] {
            let mut world = World::new(100, &[vec![0.01; 20], vec![times * 100.0 * run_share]].concat());
            world.runs = runs;
            world.run(10_000);
            let able = (0..10_000).filter(|&millisecond| runs(millisecond)).count() as f64 * 100.0;
            let used = world.read() as f64 / able;
            let (sent, read) = world.of_the_others();
            assert!(used > 0.92, "pattern {number}, {times} times: {used}");
            assert!(read as f64 >= kept * sent as f64, "pattern {number}, {times} times: {read} of {sent}");
        }
    }
}

#[test]
fn a_flood_that_begins_while_the_worker_does_not_run_costs_the_others_nothing() {
    // A CPU quota of a fifth of a core. The kernel looks at it every few milliseconds only, so a busy worker runs for longer,
    // and then has to pause for longer. At 180 a millisecond, a pause of 16 ms fills half of the queue.
    let patterns: [fn(u64) -> bool; 3] = [
        |millisecond| millisecond % 10 < 2,
        |millisecond| millisecond % 20 < 4,
        |millisecond| millisecond % 30 < 6,
    ];
    for (pattern, able, times, reply_cost) in [
        (0, 18.0, 10.0, 0.0),
        (1, 5.0, 10.0, 0.0),
        (1, 18.0, 5.0, 0.0),
        (1, 18.0, 10.0, 0.0),
        (2, 5.0, 10.0, 0.0),
        (1, 16.0, 5.0, 1.5),
        (1, 16.0, 10.0, 1.5),
    ] {
        let case = format!("pattern {pattern}, {times} times {able}, replies {reply_cost}");
        for seed in 1..=10 {
            let reads = (5.0 * able * (1.0 + reply_cost)) as usize;
            let mut world = World::new(reads, &[vec![able * 0.05 / 20.0; 20], vec![0.0]].concat());
            (world.random, world.runs, world.reply_cost) = (seed, patterns[pattern], reply_cost);
            world.spread();
            world.senders[20].burst = 16.0;
            world.run(500 + 3 * seed);
            world.senders[20].per_ms = times * able;
            world.count_anew();
            world.run(3_000);
            let busy = world.read() as f64 / 3_000.0 / able;
            assert!(busy > 0.85, "{case}: {busy}");
            let (sent, read) = world.of_the_others();
            assert!(read as f64 >= 0.999 * sent as f64, "{case}: {read} of {sent}");
        }
    }
}

#[test]
fn neighbours_that_ask_once_a_second_lose_nothing_beside_floods() {
    for times in [2.0, 5.0, 10.0] {
        let mut world = World::new(100, &[vec![0.001; 20], vec![0.0]].concat());
        world.senders[20].burst = 16.0;
        world.spread();
        // A second of 50 a millisecond, a second of flood.
        for second in 0..50 {
            world.senders[20].per_ms = if second % 2 == 0 { 50.0 } else { times * 100.0 };
            world.run(1_000);
        }
        let (sent, read) = world.of_the_others();
        assert!(sent >= 980 && read == sent, "{times} times: {read} of {sent}");
    }
}

#[test]
fn a_few_forged_datagrams_do_not_harm_a_network() {
    // Two datagrams of each of ten networks every ten seconds, at once: the first pair lets others count as active.
    let mut world = World::new(100, &[vec![50.0], vec![0.0002; 10]].concat());
    for number in 1..=10 {
        (world.senders[number].burst, world.senders[number].owed) = (2.0, 2.0 - number as f64 / 10.0);
    }
    world.runs = STOPPED_OFTEN;
    world.run(20_000);
    assert_eq!((world.changes, world.drops), (0, 0));
}

/// A CPU quota of a fifth of a core: when the worker runs again, all that came in a pause waits, even if it empties its queue each time.
#[test]
fn where_all_are_alike_a_worker_with_a_quota_is_busy_and_forgets_an_overload() {
    const ABLE: f64 = 40.0;
    for times in [0.95, 1.05, 1.2, 2.0, 5.0, 10.0] {
        for senders in alike(times * ABLE) {
            let mut world = World::new(5 * ABLE as usize, &senders);
            world.runs = |millisecond| millisecond % 20 < 4;
            world.spread();
            world.run(1_000);
            world.count_anew();
            world.run(3_000);
            let (case, read) = (format!("{times} x from {}", senders.len()), world.read() as f64 / 3_000.0);
            assert!(read >= 0.95 * ABLE.min(times * ABLE), "{case}: {read} of {ABLE}");
            let wait = world.p99_wait();
            assert!(wait <= 50, "{case}: {wait} ms");
            // With a silence, and without one.
            for silence in [0, 30, 600] {
                world.senders.iter_mut().for_each(|sender| sender.per_ms = 0.0);
                world.run(silence);
                world.senders.iter_mut().zip(&senders).for_each(|(sender, per_ms)| sender.per_ms = *per_ms);
                world.run(600);
                let less = |(sender, per_ms): (&mut Sender, &f64)| sender.per_ms = per_ms * 0.8 / times;
                world.senders.iter_mut().zip(&senders).for_each(less);
                world.run(1_000);
                assert!(world.installed.is_empty(), "{case}, {silence} ms of silence");
                let drops = world.drops;
                world.run(1_000);
                assert_eq!(world.drops, drops, "{case}, {silence} ms of silence");
            }
        }
    }
}

#[test]
fn an_overload_before_a_silence_costs_nothing_after_it() {
    for silence in [20, 100, 300, 2_000] {
        for senders in alike(500.0) {
            let mut world = World::new(500, &senders);
            // A fifth of a core, and the flood is five times as much as that.
            world.runs = |millisecond| millisecond % 20 < 4;
            world.spread();
            world.run(1_000);
            assert!(world.shedding.is_active());
            world.senders.iter_mut().for_each(|sender| sender.per_ms = 0.0);
            world.run(silence);
            let drops = world.drops;
            world.senders.iter_mut().zip(&senders).for_each(|(sender, per_ms)| sender.per_ms = per_ms * 0.16);
            world.run(1_000);
            let lost = f64::from(world.drops - drops) / 80_000.0;
            let most = if silence < 200 { 0.2 } else { 0.0 };
            assert!(lost <= most, "{silence} ms, {} senders: {lost}", senders.len());
        }
    }
}

/// A bearable load after an overload, with and without a CPU quota: it is served whole once the overload is forgotten.
#[test]
fn for_a_minute_after_an_overload_a_bearable_load_loses_nothing() {
    const ALWAYS: fn(u64) -> bool = |_| true;
    const QUOTA: fn(u64) -> bool = |millisecond| millisecond % 20 < 4;
    const ABLE: f64 = 20.0;
    for (runs, reads, times) in [(ALWAYS, 20, 10.0), (QUOTA, 100, 2.0), (QUOTA, 100, 10.0)] {
        for senders in alike(times * ABLE) {
            let mut world = World::new(reads, &senders);
            world.runs = runs;
            world.spread();
            world.run(2_000);
            assert!(world.drops > 0);
            world.senders.iter_mut().for_each(|sender| sender.per_ms *= 0.8 / times);
            world.run(1_000);
            let (changes, drops) = (world.changes, world.drops);
            world.count_anew();
            world.run(60_000);
            let case = format!("{times} x from {}", senders.len());
            assert_eq!((world.changes, world.drops), (changes, drops), "{case}");
            let sent: u64 = world.senders.iter().map(|sender| sender.sent).sum();
            let waiting = world.queue.len() as u64;
            assert!(world.read() + waiting >= sent, "{case}: {} of {sent}", world.read());
        }
    }
}

/// Neighbours that need half of the worker, each a fortieth of it, and a flood that begins.
#[test]
fn neighbours_that_send_much_lose_next_to_nothing_when_a_flood_begins() {
    const ALWAYS: fn(u64) -> bool = |_| true;
    const QUOTA: fn(u64) -> bool = |millisecond| millisecond % 20 < 4;
    for (runs, reads) in [(ALWAYS, 100), (QUOTA, 500)] {
        for times in [2.0, 10.0] {
            let mut world = World::new(reads, &[vec![2.5; 20], vec![0.0]].concat());
            world.runs = runs;
            world.spread();
            world.run(500);
            world.senders[20].per_ms = times * 100.0;
            world.run(2_000);
            let (sent, read) = world.of_the_others();
            // What they send in ten milliseconds.
            assert!(read + 500 >= sent, "{times} times, {reads}: {read} of {sent}");
        }
    }
}
