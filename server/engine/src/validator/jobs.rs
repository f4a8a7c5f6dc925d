//! Verifications on their way to the driver's threads: at most [`JOBS`] are outside at a time, and those that wait are taken fairly by
//! customer, and within a customer by client network, as queries are.
//!
//! Customers share the threads by deficit round robin (Shreedhar and Varghese, 1995) in microseconds of priced work, and so do the networks of
//! a customer share its turns. A keyed hash assigns customers to [`CUSTOMERS`] places, and networks to [`NETWORKS`] flows of each. So a network
//! that asks for names in zones with costly signatures waits for itself, and a customer that asks from many networks has one share.

use crate::base::slab::Index;
use crate::limits::{CUSTOMERS, JOBS, NETWORKS};
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

#[derive(Default)]
struct Flow {
    jobs: VecDeque<WaitingJob>,
    credit_us: i64,
}

#[derive(Default)]
struct Customer {
    flows: [Flow; NETWORKS],
    /// Flows with jobs that wait, in the order of their turns.
    turns: VecDeque<usize>,
    credit_us: i64,
}

impl Customer {
    /// Price of the job whose turn it is, which is that of the first flow then. None: no job waits.
    fn price_us(&mut self) -> Option<i64> {
        loop {
            let Flow { jobs, credit_us } = &mut self.flows[*self.turns.front()?];
            let price = i64::from(jobs.front().map_or(0, |job| job.price_us));
            if *credit_us >= price {
                return Some(price);
            }
            *credit_us += QUANTUM_US;
            self.turns.rotate_left(1);
        }
    }

    /// Takes that job.
    fn take(&mut self, price: i64) -> Option<WaitingJob> {
        self.credit_us -= price;
        let Flow { jobs, credit_us } = &mut self.flows[*self.turns.front()?];
        *credit_us -= price;
        let job = jobs.pop_front();
        if jobs.is_empty() {
            self.turns.pop_front();
        }
        job
    }
}

/// Verifications that wait or are outside.
pub(crate) struct Jobs {
    customers: Box<[Customer]>,
    /// Customers with jobs that wait, in the order of their turns.
    turns: VecDeque<usize>,
    outside: usize,
}

impl Jobs {
    /// No jobs.
    pub fn new() -> Jobs {
        let customers = (0..CUSTOMERS).map(|_| Customer::default()).collect();
        Jobs { customers, turns: VecDeque::new(), outside: 0 }
    }

    /// Number of verifications that wait or are outside.
    pub fn len(&self) -> usize {
        let flows = self.turns.iter().flat_map(|&place| &self.customers[place].flows);
        self.outside + flows.map(|flow| flow.jobs.len()).sum::<usize>()
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
        let Flow { jobs, credit_us } = &mut flows[flow(share)];
        if jobs.is_empty() {
            *credit_us = (*credit_us).min(0);
            turns.push_back(flow(share));
        }
        jobs.push_back(job);
    }

    /// Takes the verification whose turn it is, if there is room outside.
    pub fn next(&mut self) -> Option<WaitingJob> {
        if !self.has_room() {
            return None;
        }
        loop {
            let customer = &mut self.customers[*self.turns.front()?];
            let price = customer.price_us()?;
            if customer.credit_us < price {
                customer.credit_us += QUANTUM_US;
                self.turns.rotate_left(1);
                continue;
            }
            let job = customer.take(price);
            if customer.turns.is_empty() {
                self.turns.pop_front();
            }
            return job;
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
