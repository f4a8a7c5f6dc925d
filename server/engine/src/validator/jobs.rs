//! Verifications on their way to the driver's threads: at most [`JOBS`] are outside at a time, and those that wait are taken fairly by
//! customer, and within a customer by client network, as queries are.
//!
//! Customers share the threads by deficit round robin (Shreedhar and Varghese, 1995) in microseconds of priced work, and so do the networks of
//! a customer share its turns. A keyed hash assigns customers to [`CUSTOMERS`] places, and networks to [`NETWORKS`] flows of each. So a network
//! that asks for names in zones with costly signatures waits for itself, and a customer that asks from many networks has one share.
//!
//! All flows share one store of jobs, reserved at start: a queue for each would keep the room of the worst moment of each.

use crate::base::slab::{Index, NONE};
use crate::limits::{CUSTOMERS, JOBS, NETWORKS, VALIDATIONS};
use std::collections::VecDeque;

/// Microseconds of work that a flow may do each time that its turn comes: a signature of any algorithm but P-384 in one or two turns.
const QUANTUM_US: i64 = 100;

/// Whose share of the threads a verification takes: keyed hashes of a customer, and of one of its networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Hash of the customer.
    pub customer: u64,
    /// Hash of the network.
    pub network: u64,
}

/// Verification that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitingJob {
    /// Validation that needs it.
    pub task: Index,
    /// Parked octets of key, signature and data.
    pub octets: Index,
    /// Price in microseconds.
    pub price_us: u32,
}

/// Jobs of all flows, each flow a list.
struct Store {
    jobs: Vec<(WaitingJob, Index)>,
    /// First free place.
    free: Index,
}

impl Store {
    /// Stores a job as the last one of its list. Returns its place.
    fn put(&mut self, job: WaitingJob) -> Index {
        if self.free == NONE {
            self.jobs.push((job, NONE));
            return self.jobs.len() as Index - 1;
        }
        let place = self.free;
        let slot = &mut self.jobs[place as usize];
        self.free = slot.1;
        *slot = (job, NONE);
        place
    }

    /// Takes a job. Returns it, and the next one of its list.
    fn take(&mut self, place: Index) -> (WaitingJob, Index) {
        let slot = &mut self.jobs[place as usize];
        let taken = *slot;
        slot.1 = self.free;
        self.free = place;
        taken
    }
}

struct Flow {
    first: Index,
    last: Index,
    credit_us: i64,
}

struct Customer {
    flows: [Flow; NETWORKS],
    /// Flows with jobs that wait, in the order of their turns.
    turns: VecDeque<u8>,
    credit_us: i64,
}

impl Customer {
    fn new() -> Customer {
        let flows = core::array::from_fn(|_| Flow { first: NONE, last: NONE, credit_us: 0 });
        Customer { flows, turns: VecDeque::with_capacity(NETWORKS), credit_us: 0 }
    }

    /// Price of the job whose turn it is, which is that of the first flow then. None: no job waits.
    fn price_us(&mut self, store: &Store) -> Option<i64> {
        loop {
            let Flow { first, credit_us, .. } = &mut self.flows[usize::from(*self.turns.front()?)];
            let price = store.jobs.get(*first as usize).map_or(0, |(job, _)| i64::from(job.price_us));
            if *credit_us >= price {
                return Some(price);
            }
            *credit_us += QUANTUM_US;
            self.turns.rotate_left(1);
        }
    }

    /// Takes that job.
    fn take(&mut self, store: &mut Store, price: i64) -> Option<WaitingJob> {
        self.credit_us -= price;
        let Flow { first, credit_us, .. } = &mut self.flows[usize::from(*self.turns.front()?)];
        *credit_us -= price;
        let (job, next) = store.take(*first);
        *first = next;
        if next == NONE {
            self.turns.pop_front();
        }
        Some(job)
    }
}

/// Verifications that wait or are outside.
pub(crate) struct Jobs {
    customers: Box<[Customer]>,
    /// Customers with jobs that wait, in the order of their turns.
    turns: VecDeque<usize>,
    store: Store,
    waiting: usize,
    outside: usize,
}

impl Jobs {
    /// No jobs.
    pub fn new() -> Jobs {
        Jobs {
            customers: (0..CUSTOMERS).map(|_| Customer::new()).collect(),
            turns: VecDeque::with_capacity(CUSTOMERS),
            store: Store { jobs: Vec::with_capacity(VALIDATIONS), free: NONE },
            waiting: 0,
            outside: 0,
        }
    }

    /// Number of verifications that wait or are outside.
    pub fn len(&self) -> usize {
        self.outside + self.waiting
    }

    /// True if a verification may leave at once.
    pub fn has_room(&self) -> bool {
        self.outside < JOBS
    }

    /// Notes that a verification has left.
    pub fn leave(&mut self) {
        self.outside += 1;
    }

    /// Notes that the outcome of a verification has come. `price_us`: what it cost beyond its price, as wrong signatures cost double.
    pub fn come_back(&mut self, share: Share, price_us: u32) {
        self.outside = self.outside.saturating_sub(1);
        let customer = &mut self.customers[place(share)];
        customer.credit_us -= i64::from(price_us);
        customer.flows[flow(share)].credit_us -= i64::from(price_us);
    }

    /// Puts a verification behind the others of its network.
    pub fn wait(&mut self, share: Share, job: WaitingJob) {
        let Customer { flows, turns, credit_us } = &mut self.customers[place(share)];
        if turns.is_empty() {
            *credit_us = (*credit_us).min(0);
            self.turns.push_back(place(share));
        }
        let stored = self.store.put(job);
        let Flow { first, last, credit_us } = &mut flows[flow(share)];
        if *first == NONE {
            *credit_us = (*credit_us).min(0);
            turns.push_back(flow(share) as u8);
            *first = stored;
        } else {
            self.store.jobs[*last as usize].1 = stored;
        }
        *last = stored;
        self.waiting += 1;
    }

    /// Takes the verification whose turn it is, if there is room outside.
    pub fn next(&mut self) -> Option<WaitingJob> {
        if !self.has_room() {
            return None;
        }
        loop {
            let customer = &mut self.customers[*self.turns.front()?];
            let price = customer.price_us(&self.store)?;
            if customer.credit_us < price {
                customer.credit_us += QUANTUM_US;
                self.turns.rotate_left(1);
                continue;
            }
            let job = customer.take(&mut self.store, price)?;
            if customer.turns.is_empty() {
                self.turns.pop_front();
            }
            self.waiting -= 1;
            return Some(job);
        }
    }
}

fn place(share: Share) -> usize {
    share.customer as usize % CUSTOMERS
}

fn flow(share: Share) -> usize {
    share.network as usize % NETWORKS
}

/// Price of a verification in microseconds, of AWS-LC on a processor of 2.1 GHz. That of RSA grows with the square of the modulus.
pub(crate) fn price_us(algorithm: u8, signature: &[u8]) -> u32 {
    match algorithm {
        13 => 75,
        14 => 250,
        15 => 48,
        _ => (signature.len() * signature.len() / 3300) as u32 + 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(task: Index, price_us: u32) -> WaitingJob {
        WaitingJob { task, octets: 0, price_us }
    }

    /// A customer with one network.
    fn of(customer: u64) -> Share {
        Share { customer, network: 0 }
    }

    #[test]
    fn a_network_with_many_costly_jobs_gets_no_more_than_its_share() {
        let mut jobs = Jobs::new();
        (0..100).for_each(|number| jobs.wait(of(1), job(number, 250)));
        (100..140).for_each(|number| jobs.wait(of(2), job(number, 50)));
        let (mut costly, mut cheap) = (0, 0);
        while cheap < 40 * 50 {
            match jobs.next().expect("a job") {
                WaitingJob { task: 100.., price_us, .. } => cheap += price_us,
                WaitingJob { price_us, .. } => costly += price_us,
            }
        }
        assert!(costly <= cheap + 250, "{costly} of {cheap}");
    }

    #[test]
    fn a_customer_with_many_networks_has_one_share_and_its_networks_have_parts_of_it() {
        let mut jobs = Jobs::new();
        // Ten networks of one customer have ten jobs each, one of which has ten more; another customer has twenty.
        for network in 0..10 {
            (0..10).for_each(|_| jobs.wait(Share { customer: 1, network }, job(network as Index, 100)));
        }
        (0..10).for_each(|_| jobs.wait(Share { customer: 1, network: 0 }, job(0, 100)));
        (0..20).for_each(|_| jobs.wait(of(2), job(99, 100)));
        let first: Vec<Index> = core::iter::from_fn(|| jobs.next()).take(40).map(|job| job.task).collect();
        let count = |task| first.iter().filter(|&&other| other == task).count();
        assert_eq!(count(99), 20);
        for network in 0..10 {
            assert_eq!(count(network), 2, "{first:?}");
        }
    }

    // Each validation has one verification that waits.
    #[test]
    fn as_many_jobs_as_validations_wait_in_any_flows_without_more_memory() {
        let mut jobs = Jobs::new();
        let room = |jobs: &Jobs| {
            let turns = jobs.customers.iter().map(|customer| customer.turns.capacity()).sum::<usize>();
            (jobs.store.jobs.capacity(), jobs.turns.capacity(), turns)
        };
        let at_start = room(&jobs);
        for network in 0..8 {
            let shares = |task: u64| Share { customer: task % (1 + 40 * network), network };
            (0..VALIDATIONS as u64).for_each(|task| jobs.wait(shares(task), job(task as Index, 75)));
            assert_eq!(jobs.len(), VALIDATIONS);
            let mut tasks: Vec<_> = core::iter::from_fn(|| jobs.next()).map(|job| job.task).collect();
            tasks.sort_unstable();
            assert!(tasks.into_iter().eq(0..VALIDATIONS as Index));
        }
        assert_eq!((jobs.len(), room(&jobs)), (0, at_start));
    }

    #[test]
    fn no_more_jobs_are_outside_than_the_limit_allows() {
        let mut jobs = Jobs::new();
        (0..200).for_each(|number| jobs.wait(of(u64::from(number)), job(number, 75)));
        let mut taken = 0;
        while jobs.next().is_some() {
            jobs.leave();
            taken += 1;
        }
        assert_eq!(taken, JOBS);
        jobs.come_back(of(0), 0);
        assert!(jobs.next().is_some());
    }

    #[test]
    fn what_a_wrong_signature_cost_more_is_paid_before_the_next() {
        let mut jobs = Jobs::new();
        jobs.come_back(of(1), 1_000);
        jobs.wait(of(1), job(0, 75));
        jobs.wait(of(2), job(1, 75));
        jobs.wait(of(2), job(2, 75));
        let order: Vec<Index> = core::iter::from_fn(|| jobs.next()).map(|job| job.task).collect();
        assert_eq!(order, [1, 2, 0]);
    }

    // Measured: 7.5, 20.5 and 80 microseconds for moduli of 1,024, 2,048 and 4,096 bits.
    #[test]
    fn prices_of_rsa_follow_from_the_size() {
        let price = |octets: usize| price_us(8, &vec![0; octets]);
        assert_eq!([price(128), price(256), price(512)], [6, 21, 81]);
    }
}
