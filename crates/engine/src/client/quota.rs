//! Quotas of pending queries by client network (IPv6 /64, IPv4 /32), and the network with the most of them. When no slot is
//! free, the newest query of that network gives way, so a flood from one network does not evict the queries of others.

use crate::base::name_hash::HashKey;
use crate::base::slab::{Index, NONE, Slab};
use core::net::Ipv6Addr;

/// Count of one client network with pending queries.
#[derive(Default, Clone)]
struct QuotaEntry {
    network: u128,
    count: u32,
    /// Its newest pending query (the list goes on through the waiters).
    newest: Index,
    next_in_bucket: Index,
}

/// Table of client networks with pending queries.
pub struct ClientQuotas {
    entries: Slab<QuotaEntry>,
    buckets: Box<[Index]>,
    key: HashKey,
    /// By count, the number of networks that have exactly this count: so the highest count needs no search.
    networks_with: Vec<u32>,
    highest: u32,
    /// Entry at which the last search for the largest ended: it usually still is the largest.
    cursor: Index,
}

/// Network under which an address (IPv4 as IPv4-mapped) is counted.
#[inline]
pub fn client_network(address: Ipv6Addr) -> u128 {
    let bits = u128::from(address);
    if bits >> 32 == 0xffff { bits } else { bits >> 64 << 64 }
}

impl ClientQuotas {
    /// Creates a table for at most `capacity` queries.
    pub fn new(capacity: usize, key: HashKey) -> ClientQuotas {
        ClientQuotas {
            entries: Slab::new(capacity),
            buckets: vec![NONE; (2 * capacity).next_power_of_two()].into(),
            key,
            networks_with: vec![0; capacity + 1],
            highest: 0,
            cursor: 0,
        }
    }

    /// Finds the entry of a network; none if it has no pending query.
    #[inline]
    pub fn find(&self, network: u128) -> Option<Index> {
        let mut index = self.buckets[self.bucket(network)];
        while index != NONE {
            if self.entries[index].network == network {
                return Some(index);
            }
            index = self.entries[index].next_in_bucket;
        }
        None
    }

    /// Number of pending queries of an entry.
    #[inline]
    pub fn count(&self, entry: Index) -> u32 {
        self.entries[entry].count
    }

    /// Newest query of an entry.
    #[inline]
    pub fn newest(&self, entry: Index) -> Index {
        self.entries[entry].newest
    }

    /// Sets the newest query of an entry.
    #[inline]
    pub fn set_newest(&mut self, entry: Index, query: Index) {
        self.entries[entry].newest = query;
    }

    /// Counts one more query of a network. Returns the entry. The caller has made sure that fewer than `capacity` queries are
    /// counted.
    #[inline]
    pub fn add(&mut self, network: u128) -> Index {
        let entry = match self.find(network) {
            Some(entry) => entry,
            None => {
                // `Clients::admit` and `CnameChases::take` take a slot of a table with as many slots before they call this.
                let entry = self.entries.take().expect("there are at most as many networks as queries");
                let bucket = self.bucket(network);
                self.entries[entry] =
                    QuotaEntry { network, count: 0, newest: NONE, next_in_bucket: self.buckets[bucket] };
                self.buckets[bucket] = entry;
                entry
            }
        };
        let count = self.entries[entry].count;
        if count > 0 {
            self.networks_with[count as usize] -= 1;
        }
        self.entries[entry].count = count + 1;
        self.networks_with[count as usize + 1] += 1;
        self.highest = self.highest.max(count + 1);
        entry
    }

    /// Counts one query less.
    #[inline]
    pub fn remove(&mut self, entry: Index) {
        let count = self.entries[entry].count;
        self.networks_with[count as usize] -= 1;
        self.entries[entry].count = count - 1;
        if count > 1 {
            self.networks_with[count as usize - 1] += 1;
        } else {
            self.unlink(entry);
            self.entries.give(entry);
        }
        // One network changed by one, so the highest count falls by at most one.
        if count == self.highest && self.networks_with[count as usize] == 0 {
            self.highest = count - 1;
        }
    }

    /// Highest count of any network.
    pub fn highest(&self) -> u32 {
        self.highest
    }

    /// Finds an entry with the highest count. The search goes on from the last result, so one search through all networks is
    /// enough for as many evictions as there are networks with that count.
    pub fn largest(&mut self) -> Option<Index> {
        let touched = self.entries.touched();
        if self.highest == 0 {
            return None;
        }
        for _ in 0..touched {
            if self.cursor >= touched {
                self.cursor = 0;
            }
            // A freed entry keeps the count 0.
            if self.entries[self.cursor].count == self.highest {
                return Some(self.cursor);
            }
            self.cursor += 1;
        }
        None
    }

    /// Removes an entry from the list of its bucket.
    fn unlink(&mut self, entry: Index) {
        let QuotaEntry { network, next_in_bucket, .. } = self.entries[entry];
        let bucket = self.bucket(network);
        let mut index = self.buckets[bucket];
        if index == entry {
            self.buckets[bucket] = next_in_bucket;
            return;
        }
        while self.entries[index].next_in_bucket != entry {
            index = self.entries[index].next_in_bucket;
        }
        self.entries[index].next_in_bucket = next_in_bucket;
    }

    #[inline]
    fn bucket(&self, network: u128) -> usize {
        self.key.hash_number(network) as usize & (self.buckets.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn the_largest_entry_always_has_the_highest_count() {
        let mut quotas = ClientQuotas::new(500, HashKey([3, 5]));
        let mut model: HashMap<u128, u32> = HashMap::new();
        let mut random = crate::base::random::Random::new([1; 32]);
        for _ in 0..20_000 {
            let network = u128::from(random.below(40)) << 64;
            let total: u32 = model.values().sum();
            if random.below(2) == 0 && total < 500 {
                quotas.add(network);
                *model.entry(network).or_default() += 1;
            } else if let Some(entry) = quotas.find(network) {
                quotas.remove(entry);
                *model.get_mut(&network).unwrap() -= 1;
            }
            let highest = model.values().copied().max().unwrap_or(0);
            assert_eq!(quotas.highest(), highest);
            match quotas.largest() {
                Some(entry) => assert_eq!(quotas.count(entry), highest),
                None => assert_eq!(highest, 0),
            }
        }
    }

    #[test]
    fn neighbours_in_a_64_share_an_entry_and_ipv4_hosts_do_not() {
        let network = |text: &str| client_network(text.parse().unwrap());
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff"));
        assert_ne!(network("2001:db8:0:1::1"), network("2001:db8::1"));
        assert_ne!(network("::ffff:192.0.2.1"), network("::ffff:192.0.2.2"));
    }
}
