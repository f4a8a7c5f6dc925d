//! Client networks that were refused because they are not in the list of allowed networks, with a count for each, until the server
//! takes the table to log it. The table has a fixed size: no query allocates, and a flood of forged sources fills only the table.

use crate::base::name_hash::HashKey;
use crate::interface::ClientNetwork;
use crate::limits::REFUSED_NETWORKS;
use core::net::Ipv6Addr;

/// Places at which a network is looked for: a full table costs a query eight comparisons, not one for each place.
const PROBES: usize = 8;

/// Counts of refused queries by client network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedClients {
    /// Network (address bits as counted by the quotas) and its queries; no queries: the place is free.
    places: [(u128, u64); REFUSED_NETWORKS],
    /// Queries of networks for which there was no place.
    others: u64,
}

impl Default for RefusedClients {
    fn default() -> RefusedClients {
        RefusedClients { places: [(0, 0); REFUSED_NETWORKS], others: 0 }
    }
}

impl RefusedClients {
    /// Counts a refused query.
    #[inline]
    pub(crate) fn count(&mut self, address: Ipv6Addr, key: HashKey) {
        // The list of allowed networks knows no interfaces, so neither does this table.
        let network = ClientNetwork::of(address, 0).bits();
        let first = key.hash_number(network) as usize;
        for probe in 0..PROBES {
            let place = &mut self.places[first.wrapping_add(probe) % REFUSED_NETWORKS];
            if place.1 == 0 || place.0 == network {
                *place = (network, place.1 + 1);
                return;
            }
        }
        self.others += 1;
    }

    /// The networks, each as the address that it begins with (IPv4 as IPv4-mapped) and the number of its queries.
    pub fn networks(&self) -> impl Iterator<Item = (Ipv6Addr, u64)> {
        let used = self.places.iter().filter(|&&(_, queries)| queries > 0);
        used.map(|&(network, queries)| (Ipv6Addr::from(network), queries))
    }

    /// Number of queries of networks for which the table had no place.
    pub fn others(&self) -> u64 {
        self.others
    }

    /// True if no query was refused.
    pub fn is_empty(&self) -> bool {
        self.others == 0 && self.networks().next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const KEY: HashKey = HashKey([0x1234_5678_9abc_def1, 0x0fed_cba9_8765_4321]);

    #[test]
    fn the_queries_of_a_network_are_counted_together() {
        let mut refused = RefusedClients::default();
        assert!(refused.is_empty());
        let mapped = |last| core::net::Ipv4Addr::new(192, 0, 2, last).to_ipv6_mapped();
        let clients = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"].map(|text| text.parse().unwrap());
        for client in clients.into_iter().chain([mapped(1), mapped(2), mapped(1)]) {
            refused.count(client, KEY);
        }
        let expected: BTreeMap<Ipv6Addr, u64> = [
            ("2001:db8::".parse().unwrap(), 2),
            ("2001:db8:0:1::".parse().unwrap(), 1),
            (mapped(1), 2),
            (mapped(2), 1),
        ]
        .into();
        assert_eq!(refused.networks().collect::<BTreeMap<_, _>>(), expected);
        assert_eq!((refused.others(), refused.is_empty()), (0, false));
    }

    #[test]
    fn a_flood_of_networks_fills_only_the_table_and_every_query_is_counted() {
        let mut refused = RefusedClients::default();
        let network = |number: u32| Ipv6Addr::from(u128::from(number) << 64);
        for number in 0..10_000 {
            refused.count(network(number), KEY);
        }
        let counted: u64 = refused.networks().map(|(_, queries)| queries).sum();
        assert_eq!(counted + refused.others(), 10_000);
        assert_eq!(refused.networks().count(), REFUSED_NETWORKS);
    }
}
