//! Networks that send much: who they are, and how much of what may pass each gets (max-min fairness: a network that sends less than an
//! equal share keeps all of its datagrams). One table of counts, which decay.

use crate::limits::{
    CUSTOMER_PARTS, HEAVY_HITTERS, HEAVY_LEAST, OVERLOAD_SAMPLE, SHED_NETWORKS, SMALLEST_SHARE,
};
use crate::overload::controller::Rates;
use engine::ClientNetwork;
use std::collections::HashMap;

/// A network of whose datagrams only a share passes, or a customer without those of its networks that are shed themselves, or all
/// networks without those.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ShedNetwork {
    pub(crate) network: ClientNetwork,
    /// Prefix length in bits of an IPv6 address (IPv4 as IPv4-mapped). 0: all networks.
    pub(crate) length: u8,
    /// The share of its datagrams that passes, from 0 to below 1.
    pub(crate) share: f64,
}

impl ShedNetwork {
    /// All networks together.
    pub(crate) fn all(share: f64) -> ShedNetwork {
        ShedNetwork { network: ClientNetwork::default(), length: 0, share }
    }

    /// True if the prefix contains a network.
    pub(crate) fn contains(&self, network: ClientNetwork) -> bool {
        let differing = self.network.bits() ^ network.bits();
        differing.leading_zeros() >= u32::from(self.length)
    }
}

/// A network or a customer that sends much, with the datagrams that it sent for each counted one of all.
#[derive(Clone, Copy)]
struct HeavyHitter {
    network: ClientNetwork,
    length: u8,
    weight: f64,
}

/// Datagrams by network. All of them have passed the same filter.
pub(crate) struct HeavyHitters {
    counts: HashMap<ClientNetwork, u32>,
    /// Datagrams of trusted proxies, which nobody sheds.
    proxied: u32,
    total: u32,
    /// Working memory of a division.
    networks: Vec<(ClientNetwork, u32)>,
    heavy: Vec<HeavyHitter>,
}

impl HeavyHitters {
    pub(crate) fn new() -> HeavyHitters {
        HeavyHitters {
            // Twice the room: a table that is no more than half full never grows.
            counts: HashMap::with_capacity(2 * OVERLOAD_SAMPLE as usize),
            proxied: 0,
            total: 0,
            networks: Vec::with_capacity(OVERLOAD_SAMPLE as usize),
            heavy: Vec::with_capacity(HEAVY_HITTERS + SHED_NETWORKS),
        }
    }

    /// Counts a datagram. Of more than [`OVERLOAD_SAMPLE`] the first ones are a fair sample.
    #[inline]
    pub(crate) fn count(&mut self, network: ClientNetwork) {
        if self.total < OVERLOAD_SAMPLE {
            self.total += 1;
            *self.counts.entry(network).or_insert(0) += 1;
        }
    }

    /// Counts a datagram of a trusted proxy.
    pub(crate) fn count_proxied(&mut self) {
        if self.total < OVERLOAD_SAMPLE {
            self.total += 1;
            self.proxied += 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// True if more than one network sends, so that there is somebody to protect.
    pub(crate) fn has_several(&self) -> bool {
        self.proxied > 0 || self.counts.len() > 1
    }

    /// Forgets all: what comes now has passed another filter, or none.
    pub(crate) fn clear(&mut self) {
        self.counts.clear();
        (self.proxied, self.total) = (0, 0);
    }

    /// Lets what was counted until now count half.
    pub(crate) fn decay(&mut self) {
        self.counts.retain(|_, count| {
            *count /= 2;
            *count > 0
        });
        self.proxied /= 2;
        self.total = self.proxied + self.counts.values().sum::<u32>();
    }

    /// Divides `rates` among the networks that were counted behind a filter that sheds `shed`, and lists those that must be shed
    /// in `next`. `client_prefix`: the prefix length of a customer.
    pub(crate) fn divide(
        &mut self,
        rates: Rates,
        client_prefix: u8,
        shed: &[ShedNetwork],
        next: &mut Vec<ShedNetwork>,
    ) {
        next.clear();
        let whole = self.find(client_prefix, shed);
        if whole == 0.0 {
            return;
        }
        // From now on a weight is a rate. What comes from proxies passes in any case.
        let scale = rates.offered / whole;
        let proxied = f64::from(self.proxied) * scale;
        let passing = (rates.passing - proxied).max(0.0);
        self.heavy.iter_mut().for_each(|heavy| heavy.weight *= scale);
        let all_heavy: f64 = self.heavy.iter().map(|heavy| heavy.weight).sum();
        let light = (rates.offered - proxied - all_heavy).max(0.0);
        let light_networks = self.networks.len().saturating_sub(self.heavy.len()).max(1) as f64;
        let mut level = self.level(passing - light);
        if light > passing || level < light / light_networks {
            // Without this, a heavy network would get less than those that send little have on average.
            level = passing / (light_networks + self.heavy.len() as f64);
            next.push(ShedNetwork::all((level * light_networks / light).max(SMALLEST_SHARE)));
        }
        next.extend(self.heavy.iter().map(|&HeavyHitter { network, length, weight }| ShedNetwork {
            network,
            length,
            share: (level / weight).max(SMALLEST_SHARE),
        }));
        next.retain(|shed| shed.share < 1.0);
    }

    /// Finds the networks and customers that send much. Returns the weight of all networks together.
    fn find(&mut self, client_prefix: u8, shed: &[ShedNetwork]) -> f64 {
        let HeavyHitters { counts, proxied, total, networks, heavy } = self;
        networks.clear();
        networks.extend(counts.iter().map(|(&network, &count)| (network, count)));
        networks.sort_unstable();
        heavy.clear();
        let share_of = |network, length| {
            let found = shed.iter().find(|shed| shed.network == network && shed.length == length);
            found.map(|shed| shed.share)
        };
        let of_all = share_of(ClientNetwork::default(), 0);
        let is_much = |count: u32| count >= HEAVY_LEAST && count as usize * HEAVY_HITTERS >= *total as usize;
        let mut whole = f64::from(*proxied);
        // A customer is a prefix, so its networks stand together.
        for members in
            networks.chunk_by(|one, other| one.0.customer(client_prefix) == other.0.customer(client_prefix))
        {
            let first = members[0].0;
            let (customer, length) = (first.customer(client_prefix), first.customer_length(client_prefix));
            let of_customer = share_of(customer, length);
            // A datagram of a network that is shed stands for several.
            let weigh = |&(network, count): &(ClientNetwork, u32)| {
                let own = share_of(network, network.length());
                (own.is_some(), f64::from(count) / own.or(of_customer).or(of_all).unwrap_or(1.0))
            };
            let customer_weight: f64 = members.iter().map(|member| weigh(member).1).sum();
            whole += customer_weight;
            let (mut rest, mut rest_weight) = (0, 0.0);
            for member in members {
                let (is_shed, weight) = weigh(member);
                // Half of it is enough to stay, so that a network near the bound does not come and go.
                let least = if is_shed { customer_weight / 2.0 } else { customer_weight } / CUSTOMER_PARTS;
                if (is_shed || is_much(member.1)) && weight >= least {
                    heavy.push(HeavyHitter { network: member.0, length: member.0.length(), weight });
                } else {
                    (rest, rest_weight) = (rest + member.1, rest_weight + weight);
                }
            }
            if rest > 0 && (of_customer.is_some() || is_much(rest)) {
                heavy.push(HeavyHitter { network: customer, length, weight: rest_weight });
            }
        }
        heavy.sort_unstable_by(|one, other| other.weight.total_cmp(&one.weight));
        // More do not fit into the filter.
        heavy.truncate(SHED_NETWORKS);
        whole
    }

    /// The most that a heavy network may send, when `room` is what all of them may send.
    fn level(&self, mut room: f64) -> f64 {
        // From the lightest on: a network that offers less than an equal share of the rest keeps all of it.
        for (place, heavy) in self.heavy.iter().enumerate().rev() {
            let equal = room / (place + 1) as f64;
            if heavy.weight > equal {
                return equal;
            }
            room -= heavy.weight;
        }
        f64::INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(number: u128) -> ClientNetwork {
        ClientNetwork::of((0x2001_0db8 << 96 | number << 64).into(), 0)
    }

    /// What is shed of networks that have sent so many datagrams behind a filter, of which `proxied` came from proxies.
    fn divide(sent: &[(u128, u32)], proxied: u32, rates: Rates, shed: &[ShedNetwork]) -> Vec<(u128, f64)> {
        let mut heavy_hitters = HeavyHitters::new();
        for &(number, count) in sent {
            (0..count).for_each(|_| heavy_hitters.count(network(number)));
        }
        (0..proxied).for_each(|_| heavy_hitters.count_proxied());
        let mut next = vec![];
        heavy_hitters.divide(rates, 64, shed, &mut next);
        next.iter()
            .map(|shed| (shed.network.bits() >> 64 & 0xffff, (shed.share * 1e3).round() / 1e3))
            .collect()
    }

    #[test]
    fn a_network_that_sends_less_than_an_equal_share_keeps_all() {
        let rates = Rates { passing: 200.0, offered: 400.0 };
        assert_eq!(divide(&[(1, 50), (2, 350)], 0, rates, &[]), [(2, 0.429)]);
        let rates = Rates { passing: 200.0, offered: 4_000.0 };
        assert_eq!(divide(&[(1, 200), (2, 200)], 0, rates, &[]), [(1, 0.05), (2, 0.05)]);
        assert_eq!(divide(&[(1, 200), (2, 200)], 0, Rates { passing: 4_000.0, ..rates }, &[]), []);
    }

    #[test]
    fn a_datagram_of_a_network_that_is_shed_stands_for_several() {
        let shed = [ShedNetwork { network: network(2), length: 64, share: 0.1 }];
        let rates = Rates { passing: 200.0, offered: 1_100.0 };
        assert_eq!(divide(&[(1, 100), (2, 100)], 0, rates, &shed), [(2, 0.1)]);
    }

    #[test]
    fn datagrams_of_proxies_take_room_and_are_not_shed() {
        let rates = Rates { passing: 350.0, offered: 400.0 };
        assert_eq!(divide(&[(2, 100)], 300, rates, &[]), [(2, 0.5)]);
    }

    #[test]
    fn the_table_never_grows() {
        let mut heavy_hitters = HeavyHitters::new();
        let capacity = heavy_hitters.counts.capacity();
        for number in 0..100_000 {
            heavy_hitters.count(network(number));
            heavy_hitters.count(network(number / 2));
            if number % 700 == 0 {
                heavy_hitters.decay();
            }
        }
        // Removed entries count as taken until the table is cleaned, so the capacity may be below that of the start.
        assert!(heavy_hitters.counts.capacity() <= capacity);
        heavy_hitters.clear();
        assert!(heavy_hitters.is_empty() && !heavy_hitters.has_several());
    }
}
