//! Quotas of pending queries by client network (IPv6 /64, IPv4 /32) and, above the networks, by customer (`client-prefix`, the prefix
//! that one customer has). When no slot is free, the largest customer gives way, and in it the largest network: its oldest query if that is
//! late, and its newest one otherwise (`resolve/admission.rs`). So a flood from one network or from one customer does not evict the queries
//! of others, and a customer of many small networks counts as what it is.
//!
//! Queries with a proven source address (TCP, a valid cookie) have entries of their own, so forged queries take nothing from
//! them.

use crate::base::max_tree::MaxTree;
use crate::base::name_hash::HashKey;
use crate::base::slab::{Index, NONE, Record, Slab};
use crate::interface::ClientNetwork;
use crate::limits::NETWORKS_COMPARED;

/// Subject of a quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaKey {
    /// Network of the client.
    pub network: ClientNetwork,
    /// True if its source address is proven: TCP, or a valid cookie.
    pub proven: bool,
}

/// Count of one network or of one customer, with what else is stored about it.
#[derive(Default, Clone)]
struct Count<R> {
    key: QuotaKey,
    count: u32,
    next_in_bucket: Index,
    record: R,
}

impl<R: Default> Record for Count<R> {
    /// Leaves the entry: `Counts::insert` sets it as a whole, and walks over the table read that its count is 0.
    #[cfg(debug_assertions)]
    fn poison(&mut self) {}
}

/// Data of a network: its place among the networks of its customer, which form a ring.
#[derive(Default, Clone)]
struct NetworkRecord {
    /// Its newest pending query (the list goes on through the pending queries).
    newest: Index,
    /// Its oldest pending query: the other end of that list.
    oldest: Index,
    customer: Index,
    next: Index,
    previous: Index,
    /// True if its last query over the limit was sent to TCP.
    slipped: bool,
}

/// Data of a customer.
#[derive(Default, Clone)]
struct CustomerRecord {
    /// Its largest network, or nearly: a network that grows beyond it replaces it at once, one that shrinks below others is
    /// replaced when they are compared.
    largest: Index,
}

/// Hash table of counts.
struct Counts<R> {
    entries: Slab<Count<R>>,
    buckets: Box<[Index]>,
    hash_key: HashKey,
}

/// The customers of one kind, proven or not, by their counts.
struct Ranking {
    /// The counts of the customers by their entries; those of the other kind have 0. So neither the highest count nor a customer that has it needs
    /// a search through all of them, however clients shape the counts.
    counts: MaxTree,
    /// Entry at which the last search for the largest ended: it usually still is the largest.
    cursor: Index,
    total: usize,
}

/// Table of client networks and customers with pending queries.
pub struct ClientQuotas {
    networks: Counts<NetworkRecord>,
    customers: Counts<CustomerRecord>,
    /// Of queries without a proven source address, and of those with one.
    rankings: [Ranking; 2],
}

impl ClientQuotas {
    /// Creates a table for at most `capacity` queries.
    pub fn new(capacity: usize, key: HashKey) -> ClientQuotas {
        ClientQuotas {
            networks: Counts::new(capacity, key),
            customers: Counts::new(capacity, key),
            rankings: [Ranking::new(capacity), Ranking::new(capacity)],
        }
    }

    /// Finds the entry of a network; none if it has no pending query.
    #[inline]
    pub fn find(&self, key: QuotaKey) -> Option<Index> {
        self.networks.find(key)
    }

    /// Number of pending queries of an entry.
    #[inline]
    pub fn count(&self, entry: Index) -> u32 {
        self.networks.entries[entry].count
    }

    /// Newest query of an entry.
    #[inline]
    pub fn newest(&self, entry: Index) -> Index {
        self.networks.entries[entry].record.newest
    }

    /// Sets the newest query of an entry.
    #[inline]
    pub fn set_newest(&mut self, entry: Index, query: Index) {
        self.networks.entries[entry].record.newest = query;
    }

    /// Oldest query of an entry.
    #[inline]
    pub fn oldest(&self, entry: Index) -> Index {
        self.networks.entries[entry].record.oldest
    }

    /// Sets the oldest query of an entry.
    #[inline]
    pub fn set_oldest(&mut self, entry: Index, query: Index) {
        self.networks.entries[entry].record.oldest = query;
    }

    /// Subject of an entry.
    pub fn key(&self, entry: Index) -> QuotaKey {
        self.networks.entries[entry].key
    }

    /// True for every second query over the limit of an entry, beginning with the first.
    pub fn slips(&mut self, entry: Index) -> bool {
        let slipped = &mut self.networks.entries[entry].record.slipped;
        *slipped = !*slipped;
        *slipped
    }

    /// Counts one more query of a network. Returns the entry. `entry`: the result of [`ClientQuotas::find`]; `prefix_length`: that
    /// of a customer. The caller has made sure that fewer than `capacity` queries are counted.
    #[inline]
    pub fn add(&mut self, key: QuotaKey, entry: Option<Index>, prefix_length: u8) -> Index {
        let entry = entry.unwrap_or_else(|| self.enter(key, prefix_length));
        let network = &mut self.networks.entries[entry];
        network.count += 1;
        let (count, customer_entry) = (network.count, network.record.customer);
        let customer = &mut self.customers.entries[customer_entry];
        customer.count += 1;
        let ranking = &mut self.rankings[usize::from(key.proven)];
        ranking.total += 1;
        ranking.counts.set(customer_entry, customer.count);
        if count > self.networks.entries[customer.record.largest].count {
            customer.record.largest = entry;
        }
        entry
    }

    /// Counts one query less.
    #[inline]
    pub fn remove(&mut self, entry: Index) {
        let network = &mut self.networks.entries[entry];
        network.count -= 1;
        let (left, customer, proven) = (network.count, network.record.customer, network.key.proven);
        let customer_count = &mut self.customers.entries[customer].count;
        *customer_count -= 1;
        let ranking = &mut self.rankings[usize::from(proven)];
        ranking.total -= 1;
        ranking.counts.set(customer, *customer_count);
        if left == 0 {
            self.leave(entry);
        }
    }

    /// Number of pending queries of a network and of its whole customer; `customer`: the customer of the network.
    pub fn counts(&self, key: QuotaKey, customer: ClientNetwork) -> (u32, u32) {
        let network = self.find(key).map_or(0, |entry| self.count(entry));
        let customer = self.customers.find(QuotaKey { network: customer, ..key });
        (network, customer.map_or(0, |customer| self.customers.entries[customer].count))
    }

    /// Number of pending queries, proven or not.
    pub fn total(&self, proven: bool) -> usize {
        self.rankings[usize::from(proven)].total
    }

    /// Highest count of any customer, of proven queries or of the others.
    pub fn highest(&self, proven: bool) -> u32 {
        self.rankings[usize::from(proven)].counts.max()
    }

    /// Entry of the largest network of a customer; none if the customer has no pending query.
    pub fn largest_in(&mut self, customer: QuotaKey) -> Option<Index> {
        let customer = self.customers.find(customer)?;
        Some(self.largest_of(customer))
    }

    /// Entry of the largest network of a customer with the highest count, of proven queries or of the others. The search for the customer
    /// goes on from the last result, so all customers with that count have their turn.
    pub fn largest(&mut self, proven: bool) -> Option<Index> {
        let ranking = &mut self.rankings[usize::from(proven)];
        if ranking.counts.max() == 0 {
            return None;
        }
        ranking.cursor = ranking.counts.find_max(ranking.cursor);
        let customer = ranking.cursor;
        Some(self.largest_of(customer))
    }

    /// Entry of the largest network of the next customer with the highest count, if one lies among the next `places` customers behind the last
    /// result.
    pub fn next_largest(&mut self, proven: bool, places: usize) -> Option<Index> {
        let touched = self.customers.entries.touched();
        let ranking = &mut self.rankings[usize::from(proven)];
        let highest = ranking.counts.max();
        for _ in 0..places.min(touched as usize) {
            ranking.cursor = if ranking.cursor + 1 < touched { ranking.cursor + 1 } else { 0 };
            let customer = &self.customers.entries[ranking.cursor];
            if customer.count > 0 && customer.count == highest && customer.key.proven == proven {
                let customer = ranking.cursor;
                return Some(self.largest_of(customer));
            }
        }
        None
    }

    /// Compares the network that seems to be the largest of a customer with the next ones of the ring.
    fn largest_of(&mut self, customer: Index) -> Index {
        let networks = &self.networks.entries;
        let start = self.customers.entries[customer].record.largest;
        let (mut largest, mut at) = (start, start);
        for _ in 0..NETWORKS_COMPARED {
            at = networks[at].record.next;
            if at == start {
                break;
            }
            if networks[at].count > networks[largest].count {
                largest = at;
            }
        }
        self.customers.entries[customer].record.largest = largest;
        largest
    }

    /// Makes an entry for a network that has no pending query yet, in the ring of its customer.
    fn enter(&mut self, key: QuotaKey, prefix_length: u8) -> Index {
        let customer_key = QuotaKey { network: key.network.customer(prefix_length), ..key };
        let known = self.customers.find(customer_key);
        let customer = known.unwrap_or_else(|| self.customers.insert(customer_key));
        let entry = self.networks.insert(key);
        let networks = &mut self.networks.entries;
        let (previous, next) = match known {
            Some(_) => {
                let previous = self.customers.entries[customer].record.largest;
                (previous, networks[previous].record.next)
            }
            None => {
                self.customers.entries[customer].record.largest = entry;
                (entry, entry)
            }
        };
        networks[entry].record =
            NetworkRecord { newest: NONE, oldest: NONE, customer, next, previous, slipped: false };
        networks[previous].record.next = entry;
        networks[next].record.previous = entry;
        entry
    }

    /// Removes the entry of a network that has no pending query any more, and that of its customer if this was the last network.
    fn leave(&mut self, entry: Index) {
        let networks = &mut self.networks.entries;
        let NetworkRecord { customer, next, previous, .. } = networks[entry].record;
        networks[previous].record.next = next;
        networks[next].record.previous = previous;
        self.networks.remove(entry);
        if self.customers.entries[customer].count == 0 {
            self.customers.remove(customer);
        } else if self.customers.entries[customer].record.largest == entry {
            self.customers.entries[customer].record.largest = next;
        }
    }
}

impl Ranking {
    fn new(capacity: usize) -> Ranking {
        Ranking { counts: MaxTree::new(capacity), cursor: 0, total: 0 }
    }
}

impl<R: Default> Counts<R> {
    fn new(capacity: usize, hash_key: HashKey) -> Counts<R> {
        Counts {
            entries: Slab::new(capacity),
            buckets: vec![NONE; (2 * capacity).next_power_of_two()].into(),
            hash_key,
        }
    }

    #[inline]
    fn find(&self, key: QuotaKey) -> Option<Index> {
        let mut index = self.buckets[self.bucket(key)];
        while index != NONE {
            if self.entries[index].key == key {
                return Some(index);
            }
            index = self.entries[index].next_in_bucket;
        }
        None
    }

    /// Takes an entry with the count 0.
    fn insert(&mut self, key: QuotaKey) -> Index {
        // `Clients::admit` and `CnameChases::take` take a slot of a table with as many slots before they call this.
        let entry = self.entries.take().expect("there are at most as many entries as queries");
        let bucket = self.bucket(key);
        self.entries[entry] =
            Count { key, count: 0, next_in_bucket: self.buckets[bucket], record: R::default() };
        self.buckets[bucket] = entry;
        entry
    }

    /// Frees an entry, and removes it from the list of its bucket.
    fn remove(&mut self, entry: Index) {
        let (key, next_in_bucket) = (self.entries[entry].key, self.entries[entry].next_in_bucket);
        let bucket = self.bucket(key);
        let mut index = self.buckets[bucket];
        if index == entry {
            self.buckets[bucket] = next_in_bucket;
        } else {
            while self.entries[index].next_in_bucket != entry {
                index = self.entries[index].next_in_bucket;
            }
            self.entries[index].next_in_bucket = next_in_bucket;
        }
        self.entries.give(entry);
    }

    #[inline]
    fn bucket(&self, key: QuotaKey) -> usize {
        let hash = self.hash_key.hash_number(key.network.bits()) as usize;
        hash.wrapping_add(usize::from(key.proven)) & (self.buckets.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn key(number: u32, proven: bool) -> QuotaKey {
        let address = core::net::Ipv6Addr::from(0x2001_0db8 << 96 | u128::from(number) << 64);
        QuotaKey { network: ClientNetwork::of(address, 0), proven }
    }

    fn add(quotas: &mut ClientQuotas, key: QuotaKey) -> Index {
        quotas.add(key, quotas.find(key), 56)
    }

    #[test]
    fn the_largest_entry_is_always_in_a_customer_with_the_highest_count() {
        let mut quotas = ClientQuotas::new(500, HashKey([3, 5]));
        let mut model: HashMap<(u32, bool), u32> = HashMap::new();
        let mut random = crate::base::random::Random::new([1; 32]);
        for _ in 0..20_000 {
            // Eight customers of up to 16 networks.
            let number = (random.below(8) << 8 | random.below(16)) as u32;
            let subject = (number, random.below(3) == 0);
            let total: u32 = model.values().sum();
            if random.below(2) == 0 && total < 500 {
                add(&mut quotas, key(subject.0, subject.1));
                *model.entry(subject).or_default() += 1;
            } else if let Some(entry) = quotas.find(key(subject.0, subject.1)) {
                quotas.remove(entry);
                *model.get_mut(&subject).unwrap() -= 1;
            }
            for proven in [false, true] {
                let of_customer = |customer: u32| {
                    let counts =
                        model.iter().filter(|((of, kind), _)| of >> 8 == customer && *kind == proven);
                    counts.map(|(_, count)| *count).sum::<u32>()
                };
                let highest = (0..8).map(of_customer).max().unwrap_or(0);
                assert_eq!(quotas.highest(proven), highest);
                assert_eq!(quotas.total(proven) as u32, (0..8).map(of_customer).sum::<u32>());
                match quotas.largest(proven) {
                    Some(entry) => {
                        let found = quotas.key(entry);
                        let (count, customer) = quotas.counts(found, found.network.customer(56));
                        // A customer has 16 networks at most, and all are compared.
                        let number = (found.network.bits() >> 64) as u32;
                        let largest =
                            (0..16).filter_map(|low| model.get(&(number >> 8 << 8 | low, proven))).max();
                        assert_eq!((Some(&count), customer, found.proven), (largest, highest, proven));
                    }
                    None => assert_eq!(highest, 0),
                }
            }
        }
    }

    /// Two customers far apart have the highest count in turns, and all others one less.
    #[test]
    fn counts_that_a_client_shapes_cost_an_eviction_no_search_through_all_customers() {
        const CUSTOMERS: u32 = 65_536;
        let mut quotas = ClientQuotas::new(2 * CUSTOMERS as usize, HashKey([3, 5]));
        let customer = |number: u32| key(number << 8, false);
        (0..CUSTOMERS).for_each(|number| _ = add(&mut quotas, customer(number)));
        for turn in 0..100 {
            let largest = customer([CUSTOMERS - 1, 0, CUSTOMERS / 2][turn % 3]);
            let entry = add(&mut quotas, largest);
            quotas.rankings[0].counts.steps.set(0);
            assert_eq!(quotas.largest(false), Some(entry));
            quotas.remove(entry);
            // Five levels, up twice and down once; and up once for the change.
            assert!(quotas.rankings[0].counts.steps.get() <= 16 * 5 * 4);
        }
    }

    #[test]
    fn customers_with_the_same_count_give_way_in_turns() {
        let mut quotas = ClientQuotas::new(500, HashKey([3, 5]));
        let customers: Vec<_> = (0..100).map(|number| key(number << 8, false)).collect();
        for _ in 0..2 {
            customers.iter().for_each(|&customer| _ = add(&mut quotas, customer));
        }
        let victims: Vec<_> = std::iter::from_fn(|| {
            let entry = quotas.largest(false)?;
            let victim = quotas.key(entry);
            quotas.remove(entry);
            Some(victim)
        })
        .collect();
        // The search goes on from the last result, which has the highest count again when all have one less.
        assert_eq!(victims, [&customers[..], &customers[99..], &customers[..99]].concat());
    }

    #[test]
    fn a_network_that_grows_is_the_largest_of_its_customer_however_many_there_are() {
        let mut quotas = ClientQuotas::new(2_000, HashKey([3, 5]));
        for number in 0..256 {
            add(&mut quotas, key(number, false));
        }
        for number in [77, 3, 200] {
            let entry = (0..10).map(|_| add(&mut quotas, key(number, false))).last();
            assert_eq!(quotas.largest(false), entry);
            (0..10).for_each(|_| quotas.remove(entry.unwrap()));
        }
    }
}
