//! Entries of lists of prefixes: a prefix, a source from which prefixes are discovered, or all that are discovered.

use super::address::prefix;
use super::report::{Fault, Place, Problems, quoted};
use gateways::Source;
use pref64::Pref64;
use std::fmt;

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

/// Reports an entry for discovered prefixes where none are discovered.
pub(super) fn check_discovered(entry: &PrefixEntry, has_sources: bool, place: &Place, problems: &Problems) {
    if *entry == PrefixEntry::Discovered && !has_sources {
        let help = "name a source in `dns64.prefixes`: \"discover:upstream\", or \"discover:IFNAME\" with an interface";
        problems.add(
            place,
            Fault::new("\"discovered\" stands for nothing: `dns64.prefixes` names no source", help),
        );
    }
}
