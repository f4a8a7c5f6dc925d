//! Entries of lists of prefixes: a prefix, a source from which prefixes are discovered, or all that are discovered. And what the lists are
//! when something was found.

use super::address::{Network, prefix};
use super::keys::{Dns64, Gateway};
use super::limits;
use super::report::{Fault, quoted};
use gateways::Source;
use pref64::Pref64;
use std::fmt;
use std::net::IpAddr;

/// The word before a source.
const DISCOVER: &str = "discover:";

/// The word for all prefixes that are discovered.
const DISCOVERED: &str = "discovered";

/// Octets of the longest name of an interface (IFNAMSIZ of net/if.h, without the zero).
const INTERFACE_NAME: usize = 15;

/// An entry of a list of prefixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrefixEntry {
    /// A prefix.
    Prefix(Pref64),
    /// The prefixes that this source tells of.
    Source(Source),
    /// The prefixes that all sources tell of.
    Discovered,
}

impl PrefixEntry {
    /// The prefix, if the entry is one.
    pub fn prefix(&self) -> Option<&Pref64> {
        match self {
            PrefixEntry::Prefix(prefix) => Some(prefix),
            PrefixEntry::Source(_) | PrefixEntry::Discovered => None,
        }
    }
}

impl fmt::Display for PrefixEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrefixEntry::Prefix(prefix) => write!(f, "{prefix}"),
            PrefixEntry::Source(source) => write!(f, "{source}"),
            PrefixEntry::Discovered => f.write_str(DISCOVERED),
        }
    }
}

/// Parses an entry of `dns64.prefixes`: a prefix, `discover:upstream`, or `discover:IFNAME`.
///
/// # Errors
///
/// As [`prefix`]; or the name of the interface cannot be one.
pub fn general(text: &str) -> Result<PrefixEntry, Fault> {
    match text.strip_prefix(DISCOVER) {
        Some("upstream") => Ok(PrefixEntry::Source(Source::Upstream)),
        Some(name) => interface(name).map(PrefixEntry::Source),
        None if text == DISCOVERED => {
            let help = "name a source: \"discover:upstream\", or \"discover:IFNAME\" with an interface";
            Err(Fault::new(format!("{} stands for prefixes of a source, and is none", quoted(text)), help))
        }
        None => prefix(text).map(PrefixEntry::Prefix),
    }
}

/// Parses an entry of the prefixes of a rule, or the prefix of a gateway: a prefix, or `discovered`.
///
/// # Errors
///
/// As [`prefix`]; or the entry is a source.
pub fn special(text: &str) -> Result<PrefixEntry, Fault> {
    if text == DISCOVERED {
        return Ok(PrefixEntry::Discovered);
    }
    if text.starts_with(DISCOVER) {
        let help = "name the source in `dns64.prefixes`, and write \"discovered\" here";
        return Err(Fault::new(format!("{} cannot stand here", quoted(text)), help));
    }
    prefix(text).map(PrefixEntry::Prefix)
}

/// Parses the name of an interface, as the kernel accepts it.
fn interface(name: &str) -> Result<Source, Fault> {
    let is_name = (1..=INTERFACE_NAME).contains(&name.len())
        && !matches!(name, "." | "..")
        && name
            .chars()
            .all(|character| character.is_ascii_graphic() && !matches!(character, '/' | ':' | '%'));
    if is_name {
        return Ok(Source::Interface(name.into()));
    }
    let help = "write \"discover:upstream\", or \"discover:eth0\" with the name of an interface";
    Err(Fault::new(format!("{} is no source of prefixes", quoted(&format!("{DISCOVER}{name}"))), help))
}

/// The prefixes of a list, without those that are to be discovered.
pub fn prefixes(list: &[PrefixEntry]) -> impl Iterator<Item = &Pref64> {
    list.iter().filter_map(PrefixEntry::prefix)
}

/// True if two prefixes are the same network. The suffix belongs to `[dns64]`.
pub fn is_same(one: &Pref64, other: &Pref64) -> bool {
    (one.address(), one.length()) == (other.address(), other.length())
}

/// What each source has told of.
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
                let prefixes = of(entry);
                if prefixes.is_empty() {
                    result.push(entry.clone());
                }
                for prefix in prefixes {
                    let is_there = self::prefixes(list)
                        .chain(self::prefixes(&result))
                        .any(|other| is_same(other, &prefix));
                    if !is_there && self::prefixes(&result).count() < limits::PREFIXES {
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
#[path = "prefix_entry_tests.rs"]
mod tests;
