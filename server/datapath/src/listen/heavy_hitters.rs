//! Networks that send much: who they are in a sample of the latest datagrams, and how much of the worker's time each gets (max-min
//! fairness). The part of fair shedding that knows networks and no queue.

use crate::limits::{CUSTOMER_PARTS, HEAVY_HITTERS, SHED_NETWORKS, SHEDDING_SMALLEST_SHARE, STEADY_PARTS};
use engine::ClientNetwork;

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

/// A network or a customer that sends much.
#[derive(Clone, Copy)]
struct HeavyNetwork {
    network: ClientNetwork,
    length: u8,
    /// Its share of the offered datagrams.
    share: f64,
}

/// A datagram of the sample. Sorts by network, then by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sampled {
    pub(crate) network: ClientNetwork,
    /// The part of the sample's time in which it came, below [`SAMPLE_PARTS`](crate::limits::SAMPLE_PARTS).
    pub(crate) part: u8,
}

/// Networks and customers that send much.
pub(crate) struct HeavyHitters {
    /// Largest share first.
    heavy: Vec<HeavyNetwork>,
    /// Number of all networks in the sample.
    networks: usize,
}

impl HeavyHitters {
    pub(crate) fn new() -> HeavyHitters {
        HeavyHitters { heavy: Vec::with_capacity(HEAVY_HITTERS + SHED_NETWORKS), networks: 0 }
    }

    /// Finds the networks and customers that send much. `sample`: the networks of the latest datagrams, which came through a filter that
    /// sheds `shed`; it is sorted. `client_prefix`: the prefix length of a customer.
    pub(crate) fn find(&mut self, sample: &mut [Sampled], shed: &[ShedNetwork], client_prefix: u8) {
        let sampled = sample.len();
        sample.sort_unstable();
        self.heavy.clear();
        // A datagram of a network that is shed stands for several.
        let shed_share = |network, length| {
            let shed = shed.iter().find(|shed| shed.network == network && shed.length == length);
            shed.map(|shed| shed.share)
        };
        let of_all = shed_share(ClientNetwork::default(), 0);
        let mut whole = 0.0;
        self.networks = 0;
        let is_customer = |one: &Sampled, other: &Sampled| {
            one.network.customer(client_prefix) == other.network.customer(client_prefix)
        };
        // A customer is a prefix, so its networks stand together.
        for networks in sample.chunk_by(is_customer) {
            let first = networks[0].network;
            let (customer, length) = (first.customer(client_prefix), first.customer_length(client_prefix));
            let customer_share = shed_share(customer, length);
            let weigh = |run: &[Sampled]| {
                let share = shed_share(run[0].network, run[0].network.length());
                (share.is_some(), run.len() as f64 / share.or(customer_share).or(of_all).unwrap_or(1.0))
            };
            let runs = || networks.chunk_by(|one, other| one.network == other.network);
            let of_customer: f64 = runs().map(|run| weigh(run).1).sum();
            whole += of_customer;
            let (mut rest, mut rest_weight, mut rest_parts) = (0, 0.0, 0);
            for run in runs() {
                self.networks += 1;
                let (network, length) = (run[0].network, run[0].network.length());
                let (is_shed, weight) = weigh(run);
                let parts = parts(run);
                let is_heavy = is_shed || run.len() * HEAVY_HITTERS >= sampled && is_steady(parts);
                // Half of it is enough to stay, so that a network near the bound does not come and go.
                let least = if is_shed { of_customer / 2.0 } else { of_customer } / CUSTOMER_PARTS;
                if is_heavy && weight >= least {
                    self.heavy.push(HeavyNetwork { network, length, share: weight });
                } else {
                    (rest, rest_weight) = (rest + run.len(), rest_weight + weight);
                    rest_parts |= parts;
                }
            }
            let is_heavy = rest * HEAVY_HITTERS >= sampled && is_steady(rest_parts);
            if rest > 0 && (customer_share.is_some() || is_heavy) {
                self.heavy.push(HeavyNetwork { network: customer, length, share: rest_weight });
            }
        }
        self.heavy.iter_mut().for_each(|heavy| heavy.share /= whole);
        self.heavy.sort_unstable_by(|one, other| other.share.total_cmp(&one.share));
        // More do not fit into the filter.
        self.heavy.truncate(SHED_NETWORKS);
    }

    /// Networks to shed, so that of `offered` datagrams per second `target` pass. `sheds_everybody`: those that send little may be shed, too.
    pub(crate) fn divide(
        &self,
        target: f64,
        offered: f64,
        sheds_everybody: bool,
    ) -> impl Iterator<Item = ShedNetwork> + '_ {
        let all_heavy: f64 = self.heavy.iter().map(|heavy| heavy.share).sum();
        let light = (1.0 - all_heavy).max(0.0) * offered;
        let light_networks = self.networks.saturating_sub(self.heavy.len()).max(1) as f64;
        let mut level = self.level(target - light, offered);
        let mut all = None;
        if sheds_everybody && (light > target || level < light / light_networks) {
            // Without this, a heavy network would get less than those that send little have on average.
            level = target / (light_networks + self.heavy.len() as f64);
            all = Some(ShedNetwork::all((level * light_networks / light).max(SHEDDING_SMALLEST_SHARE)));
        }
        let shed = self.heavy.iter().map(move |&HeavyNetwork { network, length, share }| {
            let share = (level / (share * offered)).max(SHEDDING_SMALLEST_SHARE);
            ShedNetwork { network, length, share }
        });
        all.into_iter().chain(shed).filter(|shed| shed.share < 1.0)
    }

    /// The most datagrams per second of a heavy network that pass, when so many of all heavy networks do.
    fn level(&self, mut room: f64, offered: f64) -> f64 {
        // From the lightest on: a network that offers less than an equal share of the rest keeps all of it.
        for (place, HeavyNetwork { share, .. }) in self.heavy.iter().enumerate().rev() {
            let equal = room / (place + 1) as f64;
            if share * offered > equal {
                return equal;
            }
            room -= share * offered;
        }
        f64::INFINITY
    }
}

/// The parts of the sample in which the datagrams of a network came, as bits.
fn parts(run: &[Sampled]) -> u8 {
    run.iter().fold(0, |parts, sampled| parts | 1 << sampled.part)
}

/// True for a network that sends all the time. A burst is not much, even if it is a large part of a short sample.
fn is_steady(parts: u8) -> bool {
    parts.count_ones() >= STEADY_PARTS
}
