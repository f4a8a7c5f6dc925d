//! The section `[dns64]` with the prefixes that were discovered.

use super::address::Network;
use super::keys::{Dns64, Gateway};
use super::limits;
use super::prefix_entry::{PrefixEntry, is_same, prefixes};
use gateways::Source;
use pref64::Pref64;
use std::net::IpAddr;

/// Prefixes that each source has told of.
pub type Found = Vec<(Source, Vec<Pref64>)>;

impl Dns64 {
    /// The sources of prefixes, in their order.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.prefixes.iter().filter_map(|entry| match entry {
            PrefixEntry::Source(source) => Some(source),
            PrefixEntry::Prefix(_) | PrefixEntry::Discovered => None,
        })
    }

    /// All prefixes in use: the general ones, those of gateways, those of rules.
    pub fn all_prefixes(&self) -> impl Iterator<Item = &Pref64> {
        let own = self.gateways.iter().filter_map(|gateway| gateway.prefix.as_ref()?.prefix());
        let rules = self.rules.iter().flat_map(|rule| prefixes(&rule.prefixes));
        prefixes(&self.prefixes).chain(own).chain(rules)
    }

    /// The section with the prefixes that were found: they stand where their sources, or `discovered`, stand here. An entry for which nothing
    /// was found stays.
    pub fn expanded(&self, found: &Found) -> Dns64 {
        let mut expanded = self.clone();
        let with_suffix = |prefix: &Pref64| prefix.with_suffix(self.suffix).unwrap_or(*prefix);
        let all: Vec<Pref64> = found.iter().flat_map(|(_, prefixes)| prefixes).map(with_suffix).collect();
        if all.is_empty() {
            return expanded;
        }
        let of = |entry: &PrefixEntry| match entry {
            PrefixEntry::Prefix(_) => Vec::new(),
            PrefixEntry::Discovered => all.clone(),
            PrefixEntry::Source(source) => {
                let told =
                    found.iter().filter(|(other, _)| other == source).flat_map(|(_, prefixes)| prefixes);
                told.map(with_suffix).collect()
            }
        };
        let expand = |list: &[PrefixEntry]| -> Vec<PrefixEntry> {
            let mut result: Vec<PrefixEntry> = Vec::new();
            for entry in list {
                let own = of(entry);
                if own.is_empty() {
                    result.push(entry.clone());
                }
                for prefix in own {
                    let is_there =
                        prefixes(list).chain(prefixes(&result)).any(|other| is_same(other, &prefix));
                    if !is_there && prefixes(&result).count() < limits::PREFIXES {
                        result.push(PrefixEntry::Prefix(prefix));
                    }
                }
            }
            result
        };
        expanded.prefixes = expand(&self.prefixes);
        for rule in &mut expanded.rules {
            rule.prefixes = expand(&rule.prefixes);
        }
        self.expand_gateways(&all, &mut expanded.gateways);
        // A real AAAA record under one of our prefixes comes from another DNS64; ours decides by the A record.
        for prefix in &all {
            let network = Network { address: IpAddr::V6(prefix.address()), length: prefix.length() };
            if !expanded.exclude_aaaa.contains(&network) {
                expanded.exclude_aaaa.push(network);
            }
        }
        expanded
    }

    /// Adds a gateway for each prefix that was found, if one stands for all of them.
    fn expand_gateways(&self, all: &[Pref64], gateways: &mut Vec<Gateway>) {
        let is_for_all = |gateway: &&Gateway| gateway.prefix == Some(PrefixEntry::Discovered);
        let Some(gateway) = self.gateways.iter().find(is_for_all) else { return };
        for prefix in all {
            let has_prefix = |other: &Gateway| {
                other.prefix.as_ref().and_then(PrefixEntry::prefix).is_some_and(|own| is_same(own, prefix))
            };
            if !gateways.iter().any(has_prefix) && gateways.len() < ::gateways::limits::GATEWAYS {
                gateways.push(Gateway { prefix: Some(PrefixEntry::Prefix(*prefix)), ..gateway.clone() });
            }
        }
    }
}

#[cfg(test)]
#[path = "discovered_tests.rs"]
mod tests;
