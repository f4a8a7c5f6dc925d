//! Local zones and local data of Unbound.
//!
//! Unbound serves some zones unless the file says otherwise: the reverse zones of private addresses, which are
//! `local.empty-zones` here; localhost, invalid and onion, which Sixfold always answers; and `test` and `home.arpa`, which are
//! ordinary names for Sixfold and become blocked names.

use super::syntax::Attribute;
use crate::draft::Draft;
use crate::empty_zones;
use crate::ledger::{Outcome, Reading, Spot, UNKNOWN};
use crate::model::add;
use crate::value;
use std::collections::HashSet;
use std::net::IpAddr;

/// Zones that Unbound serves with NXDOMAIN, and Sixfold does not know.
const DEFAULT_BLOCKED: [&str; 2] = ["home.arpa", "test"];

/// Zones that Unbound serves by default, and Sixfold whatever the file says.
const ALWAYS_LOCAL: [&str; 3] = ["localhost", "invalid", "onion"];

/// Local zones so far.
#[derive(Debug, Default)]
pub(super) struct LocalZones {
    /// Zones of the file, which replace the built-in ones.
    named: HashSet<String>,
    /// Zones whose names are resolved as all others, with their statements.
    open: Vec<(String, Spot)>,
    /// True if private reverse zones are forwarded.
    unblocks_lan: bool,
}

impl LocalZones {
    /// Reads an attribute, if it is about local zones.
    pub(super) fn read(&mut self, attribute: &Attribute, draft: &mut Draft) -> Reading<bool> {
        let value = attribute.value();
        match attribute.key.as_str() {
            "local-zone" => {
                let kind = attribute.values.get(1).map_or("", String::as_str);
                self.read_zone(value::taken_name(value)?, kind, &attribute.spot, draft)?;
            }
            "local-data" => add(&mut draft.model.records, value::record(&attribute.values.join(" "))?),
            "local-data-ptr" => {
                let record =
                    pointer(&attribute.values.join(" ")).ok_or("this is not an address with a name")?;
                add(&mut draft.model.records, record);
            }
            "unblock-lan-zones" => self.unblocks_lan = value == "yes",
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read_zone(&mut self, zone: String, kind: &str, spot: &Spot, draft: &mut Draft) -> Reading {
        let model = &mut draft.model;
        self.named.insert(zone.clone());
        match kind {
            // Local data names their own answers, and other names are forwarded.
            "transparent" | "typetransparent" | "inform" | "always_transparent" => {
                self.open.push((zone.clone(), spot.clone()));
                model.forwarded_zones.push(zone);
            }
            "nodefault" if ALWAYS_LOCAL.contains(&zone.as_str()) => {
                let how = "Sixfold always answers these names itself (RFC 6761, RFC 7686)";
                return Err(Outcome::differs(how));
            }
            // The word turns off the zone of this very name, and says nothing about a zone above it.
            "nodefault" if empty_zones::is_one(&zone) || DEFAULT_BLOCKED.contains(&zone.as_str()) => {
                model.forwarded_zones.push(zone);
            }
            "nodefault" => return Err(Outcome::NoMeaning("Unbound has no zone of this name by default")),
            // Names that get no data there get none here: they must not go to the forwarders.
            "static" | "always_nxdomain" | "refuse" | "always_refuse" | "deny" | "always_deny"
            | "inform_deny" | "redirect" | "always_nodata" | "always_null" | "inform_redirect" => {
                add(&mut model.block, zone)
            }
            "block_a" => return Err("A records of these names are answered".into()),
            _ => return Err(UNKNOWN.into()),
        }
        Err(Outcome::differs(match kind {
            "transparent" | "nodefault" | "static" => return Ok(()),
            "inform" => return Err("Sixfold logs no queries".into()),
            "typetransparent" => "other types of a name with local data do not exist",
            "always_transparent" | "always_nxdomain" => "local data of these names still answer",
            "redirect" | "always_nodata" | "always_null" | "inform_redirect" => {
                "names without local data of their own do not exist; a response policy zone (`filter.rpz`) can give an answer to all \
                 names of a zone"
            }
            _ => "its names do not exist; a response policy zone (`filter.rpz`) can drop queries",
        }))
    }

    /// Adds the zones that Unbound serves by default.
    pub(super) fn finish(self, draft: &mut Draft) {
        draft.model.empty_zones = Some(!self.unblocks_lan);
        for zone in DEFAULT_BLOCKED {
            if !self.named.contains(zone) {
                add(&mut draft.model.block, zone.to_owned());
            }
        }
        // Other zones are not answered locally, so they need no forwarders of their own. Without empty zones, home.arpa still is one.
        let needs_forwarders = |zone: &String| match self.unblocks_lan {
            true => zone == "home.arpa" || is_below(zone, "home.arpa"),
            false => is_below(zone, "arpa"),
        };
        draft.model.forwarded_zones.retain(needs_forwarders);
        for (zone, spot) in &self.open {
            let above = draft.model.block.iter().find(|blocked| is_below(zone, blocked));
            if let Some(above) = above {
                let why = format!(
                    "its names are blocked with those of `{above}`: rules of a response policy zone (`filter.rpz`) in place of `filter.block` can let them pass"
                );
                draft.record(spot, why);
            }
        }
    }
}

/// True if a name is below a zone.
fn is_below(name: &str, zone: &str) -> bool {
    match zone {
        "." => name != ".",
        zone => name.strip_suffix(zone).is_some_and(|rest| rest.ends_with('.')),
    }
}

/// The PTR record of `192.0.2.1 [TTL] name`.
fn pointer(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (address, rest) = words.split_first()?;
    let owner = value::reverse_name(address.parse::<IpAddr>().ok()?);
    let (ttl, name) = match rest {
        [name] => ("3600", name),
        [ttl, name] if ttl.bytes().all(|octet| octet.is_ascii_digit()) => (*ttl, name),
        _ => return None,
    };
    value::name(name).map(|name| format!("{owner} {ttl} IN PTR {name}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_below_a_zone_have_more_labels() {
        for (name, zone) in [("a.b", "b"), ("a.b.c", "b.c"), ("a", ".")] {
            assert!(is_below(name, zone), "{name} {zone}");
        }
        for (name, zone) in [("b", "b"), ("ab", "b"), (".", "."), ("b", "a.b")] {
            assert!(!is_below(name, zone), "{name} {zone}");
        }
    }

    #[test]
    fn an_address_with_a_name_is_a_ptr_record() {
        assert_eq!(pointer("192.0.2.1 nas.home").unwrap(), "1.2.0.192.in-addr.arpa. 3600 IN PTR nas.home.");
        assert_eq!(pointer("192.0.2.1 60 nas.home.").unwrap(), "1.2.0.192.in-addr.arpa. 60 IN PTR nas.home.");
        assert_eq!(pointer("nas.home 192.0.2.1"), None);
    }
}
