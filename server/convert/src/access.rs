//! Access lists: lists of networks with exceptions, as the networks that they select. Sixfold's `server.allow` has no exceptions,
//! so a hole in a network is left by naming the networks around it.

use crate::model::Allowed;
use crate::network::{Network, selected};

/// Entry that decides if several contain an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The first one of the list.
    First,
    /// The longest network; among equal ones the last.
    Longest,
}

/// List of networks, each allowed or not.
#[derive(Clone, Debug)]
pub(crate) struct AccessList {
    pub(crate) order: Order,
    pub(crate) entries: Vec<(Network, bool)>,
    /// Decision for addresses in none of the networks.
    pub(crate) otherwise: bool,
}

impl AccessList {
    /// An empty list.
    pub(crate) fn new(order: Order, otherwise: bool) -> AccessList {
        AccessList { order, entries: Vec::new(), otherwise }
    }

    /// Networks that are allowed, IPv6 after IPv4. `None` if they are too many for a list.
    pub(crate) fn allowed(&self) -> Option<Vec<Allowed>> {
        let parts: Vec<Network> = self.entries.iter().map(|(network, _)| *network).collect();
        let decide = |part: &Network| self.decide(part);
        let mut networks = selected(Network::ALL4, &parts, &decide)?;
        networks.extend(selected(Network::ALL6, &parts, &decide)?);
        Some(networks.into_iter().map(Allowed::Network).collect())
    }

    fn decide(&self, part: &Network) -> bool {
        let mut matching = self.entries.iter().filter(|(network, _)| network.contains(part));
        let decisive = match self.order {
            Order::First => matching.next(),
            Order::Longest => matching.max_by_key(|(network, _)| network.length()),
        };
        decisive.map_or(self.otherwise, |(_, allowed)| *allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(order: Order, entries: &[(&str, bool)], otherwise: bool) -> Vec<String> {
        let mut list = AccessList::new(order, otherwise);
        list.entries =
            entries.iter().map(|(text, allowed)| (Network::parse(text).unwrap(), *allowed)).collect();
        list.allowed().unwrap().iter().map(Allowed::to_string).collect()
    }

    #[test]
    fn the_first_or_the_longest_entry_decides() {
        let entries = [("10.0.0.0/8", true), ("10.0.0.0/9", false)];
        assert_eq!(shown(Order::First, &entries, false), ["10.0.0.0/8"]);
        assert_eq!(shown(Order::Longest, &entries, false), ["10.128.0.0/9"]);
    }

    #[test]
    fn a_default_that_allows_fills_the_rest() {
        let entries = [("128.0.0.0/1", false)];
        assert_eq!(shown(Order::First, &entries, true), ["0.0.0.0/1", "::/0"]);
        assert_eq!(shown(Order::Longest, &[], true), ["0.0.0.0/0", "::/0"]);
    }

    #[test]
    fn among_equal_networks_the_last_one_decides() {
        let entries = [("10.0.0.0/8", true), ("10.0.0.0/8", false)];
        assert!(shown(Order::Longest, &entries, false).is_empty());
    }
}
