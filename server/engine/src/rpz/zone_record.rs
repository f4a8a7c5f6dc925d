//! Records of a response policy zone (draft-vixie-dnsop-dns-rpz-00 sections 3 and 4): owners are triggers, CNAME targets are
//! actions, all other records are data. The text of a zone file is read elsewhere.

use crate::base::network::Network;
use crate::local::record::LocalRecord;
use crate::rpz::table::{Action, PolicyRule, PolicyZone, Trigger};
use crate::rpz::zone_source::ZoneSource;
use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::HashMap;
use std::fmt;
use wire::{Type, is_at_or_below};

/// Limit of octets of all records of one name: the room in an answer beside the question, an SOA and an OPT record.
const DATA_OCTETS: usize = 60_000;

/// Error of a record that cannot be part of a response policy zone. `Display` says what to do instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RpzRecordError {
    /// The first record is no SOA.
    NoSoa,
    /// Its owner is not at or below that of the SOA.
    Outside,
    /// A trigger for name servers (`rpz-nsdname`, `rpz-nsip`).
    Delegation,
    /// A trigger that is not in the draft.
    UnknownTrigger,
    /// A malformed network.
    Network,
    /// A network with bits set behind its prefix length.
    HostBits,
    /// An action that is not in the draft.
    UnknownAction,
    /// An action without a dot at its end, which makes it a name in the zone.
    MissingDot,
    /// A record type that cannot be data.
    Type,
    /// Another action or other data for the same trigger.
    Mixed,
    /// Too many octets of data for one trigger.
    Long,
}

impl RpzRecordError {
    /// The error, and the remedy.
    pub fn advice(self) -> (&'static str, &'static str) {
        match self {
            RpzRecordError::NoSoa => (
                "a response policy zone begins with its SOA record",
                "write `@ SOA localhost. root.localhost. 1 3600 600 86400 60` as the first record",
            ),
            RpzRecordError::Outside => (
                "this name is not in the zone",
                "end it with the name of the zone, or leave its last dot out",
            ),
            RpzRecordError::Delegation => (
                "a forwarder sees no delegations, so it cannot watch name servers",
                "delete the record: `rpz-nsdname` and `rpz-nsip` need a server that resolves by itself",
            ),
            RpzRecordError::UnknownTrigger => {
                ("this trigger is not known", "write a name, or a network below `rpz-ip` or `rpz-client-ip`")
            }
            RpzRecordError::Network => (
                "this is not a network",
                "write its length and its parts from the last to the first: `24.0.2.0.192.rpz-ip` is 192.0.2.0/24, \
                 `32.zz.db8.2001.rpz-ip` is 2001:db8::/32",
            ),
            RpzRecordError::HostBits => {
                ("bits are set beyond the length of the network", "clear them, or write a longer network")
            }
            RpzRecordError::UnknownAction => (
                "this action is not known",
                "write `CNAME .`, `CNAME *.`, `CNAME rpz-passthru.`, `CNAME rpz-drop.` or `CNAME rpz-tcp-only.`",
            ),
            RpzRecordError::MissingDot => {
                ("this action is a name in the zone", "end it with a dot, like `rpz-passthru.`")
            }
            RpzRecordError::Type => (
                "records of this type cannot take the place of an answer",
                "delete the record: its type is about zones or messages",
            ),
            RpzRecordError::Mixed => (
                "the same trigger has another action, or other data beside a CNAME record",
                "leave one of the two",
            ),
            RpzRecordError::Long => {
                ("the data of this trigger are too long for an answer", "give it fewer records")
            }
        }
    }
}

impl fmt::Display for RpzRecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (error, remedy) = self.advice();
        write!(f, "{error}: {remedy}")
    }
}

impl std::error::Error for RpzRecordError {}

/// Builder of a zone, which takes its records one by one.
pub struct RpzZoneBuilder {
    soa: LocalRecord,
    entries: Vec<PolicyRule>,
    /// Index of the entry of each owner.
    entry_of: HashMap<Box<[u8]>, u32>,
    /// Line of each entry.
    lines: Vec<u32>,
    /// Line of the records that are added now.
    line: u32,
}

impl RpzZoneBuilder {
    /// Begins a zone with its first record, the SOA record.
    ///
    /// # Errors
    ///
    /// `RpzRecordError::NoSoa`: the record is no SOA record.
    pub fn begin(soa: LocalRecord) -> Result<RpzZoneBuilder, RpzRecordError> {
        if soa.rtype != Type::SOA {
            return Err(RpzRecordError::NoSoa);
        }
        Ok(RpzZoneBuilder { soa, entries: Vec::new(), entry_of: HashMap::new(), lines: Vec::new(), line: 0 })
    }

    /// Says in which line the records begin that are added next.
    pub fn at_line(&mut self, line: u32) {
        self.line = line;
    }

    /// Adds a record; names in its data are not compressed.
    ///
    /// # Errors
    ///
    /// The first fault of the record. Its owner is outside the zone (`Outside`), is a trigger for name servers (`Delegation`) or none
    /// of the draft (`UnknownTrigger`), or has a bad network (`Network`, `HostBits`). Its type cannot be data (`Type`). Its target is
    /// no action (`UnknownAction`, `MissingDot`). It contradicts a record before it (`Mixed`), or the trigger has too much data with it
    /// (`Long`). The zone stays as it was, without the record.
    pub fn add(&mut self, record: LocalRecord) -> Result<(), RpzRecordError> {
        let apex = &self.soa.owner;
        if !is_at_or_below(&record.owner, apex) {
            return Err(RpzRecordError::Outside);
        }
        // Records at the apex are about the zone itself, and DNSSEC records come with signed zones. Both are no policy.
        if record.owner == *apex || is_of_dnssec(record.rtype) {
            return Ok(());
        }
        // RFC 6895 section 3.1.
        let is_meta = matches!(record.rtype, Type::OPT | Type(0 | 128..=255));
        if is_meta || matches!(record.rtype, Type::SOA | Type::NS | Type::DNAME) {
            return Err(RpzRecordError::Type);
        }
        // The trigger is the owner without the zone's name, ended by a root label.
        let mut relative = record.owner[..record.owner.len() - (apex.len() - 1)].to_vec();
        relative[record.owner.len() - apex.len()] = 0;
        let trigger = trigger(&relative)?;
        let ttl = record.ttl;
        let action = match record.rtype {
            Type::CNAME => action(&relative, apex, &record)?,
            _ => Action::Data([record.clone()].into()),
        };
        let next = self.entries.len() as u32;
        let number = *self.entry_of.entry(record.owner).or_insert(next);
        let Some(entry) = self.entries.get_mut(number as usize) else {
            self.entries.push(PolicyRule { trigger, action, ttl });
            self.lines.push(self.line);
            return Ok(());
        };
        if entry.action == action {
            return Ok(());
        }
        match (&mut entry.action, action) {
            (Action::Data(known), Action::Data(new)) => add_data(known, new),
            _ => Err(RpzRecordError::Mixed),
        }
    }

    /// Returns the zone.
    pub fn finish(self) -> PolicyZone {
        PolicyZone { soa: self.soa, entries: self.entries }
    }

    /// Returns the zone, and its source: this file, and the line of each rule.
    pub fn finish_with_source(mut self, file: &str) -> (PolicyZone, ZoneSource) {
        let lines = core::mem::take(&mut self.lines);
        (self.finish(), ZoneSource { file: file.into(), lines })
    }
}

/// True for the record types that a signed zone has for DNSSEC.
fn is_of_dnssec(rtype: Type) -> bool {
    const DS: u16 = 43;
    const RRSIG: u16 = 46;
    const NSEC: u16 = 47;
    const DNSKEY: u16 = 48;
    const NSEC3: u16 = 50;
    const NSEC3PARAM: u16 = 51;
    matches!(rtype.0, DS | RRSIG | NSEC | DNSKEY | NSEC3 | NSEC3PARAM)
}

/// Adds data to a trigger that has some.
fn add_data(known: &mut Box<[LocalRecord]>, new: Box<[LocalRecord]>) -> Result<(), RpzRecordError> {
    let is_alias = |records: &[LocalRecord]| records.iter().any(|record| record.rtype == Type::CNAME);
    if is_alias(known) || is_alias(&new) {
        return Err(RpzRecordError::Mixed);
    }
    let same =
        |record: &LocalRecord| known.iter().any(|k| (k.rtype, &k.rdata) == (record.rtype, &record.rdata));
    if new.iter().all(same) {
        return Ok(());
    }
    if known.iter().chain(&new).map(|record| 12 + record.rdata.len()).sum::<usize>() > DATA_OCTETS {
        return Err(RpzRecordError::Long);
    }
    let mut joined = core::mem::take(known).into_vec();
    joined.extend(new);
    *known = joined.into();
    Ok(())
}

/// Returns the labels of a name in wire form, without the root.
fn labels(name: &[u8]) -> Vec<&[u8]> {
    let (mut labels, mut rest) = (Vec::new(), name);
    while let Some((&length @ 1.., tail)) = rest.split_first() {
        let (label, tail) = tail.split_at(usize::from(length).min(tail.len()));
        labels.push(label);
        rest = tail;
    }
    labels
}

/// Reads the trigger from an owner name, relative to the zone (draft section 4).
fn trigger(relative: &[u8]) -> Result<Trigger, RpzRecordError> {
    let parts = labels(relative);
    let Some((&kind, parts)) = parts.split_last() else { return Err(RpzRecordError::UnknownTrigger) };
    match kind {
        b"rpz-ip" => Ok(Trigger::Address(network(parts)?)),
        b"rpz-client-ip" => Ok(Trigger::Client(network(parts)?)),
        b"rpz-nsdname" | b"rpz-nsip" => Err(RpzRecordError::Delegation),
        _ if kind.starts_with(b"rpz-") => Err(RpzRecordError::UnknownTrigger),
        _ => Ok(match relative.strip_prefix(b"\x01*") {
            Some(above) => Trigger::Below(above.into()),
            None => Trigger::Name(relative.into()),
        }),
    }
}

/// Reads a network: the prefix length, then the parts from the last to the first (draft sections 4.1.1 and 4.1.2).
fn network(parts: &[&[u8]]) -> Result<Network, RpzRecordError> {
    let number = |text: &[u8], radix| {
        let text = core::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'))?;
        u16::from_str_radix(text, radix).ok()
    };
    let Some((length, parts)) = parts.split_first() else { return Err(RpzRecordError::Network) };
    let length =
        number(length, 10).and_then(|length| u8::try_from(length).ok()).ok_or(RpzRecordError::Network)?;
    let gap = parts.iter().position(|part| *part == b"zz");
    let read = if parts.len() == 4 && gap.is_none() {
        let octet = |part: &&[u8]| u8::try_from(number(part, 10)?).ok();
        let octets: Option<Vec<u8>> = parts.iter().rev().map(octet).collect();
        octets.and_then(|octets| <[u8; 4]>::try_from(octets).ok()).filter(|_| length <= 32).map(|octets| {
            let address = Ipv4Addr::from(octets);
            (Network::v4(address, length), u128::from(address.to_ipv6_mapped()))
        })
    } else {
        // `zz` stands for one run of zeros, like `::`.
        let (low, high) = gap.map_or((parts, [].as_slice()), |gap| (&parts[..gap], &parts[gap + 1..]));
        let omitted = 8usize.checked_sub(low.len() + high.len());
        let zeros = omitted.filter(|&zeros| (zeros > 0) == gap.is_some()).unwrap_or(usize::MAX);
        let words =
            |parts: &[&[u8]]| parts.iter().rev().map(|part| number(part, 16)).collect::<Option<Vec<_>>>();
        match (words(high), words(low)) {
            (Some(high), Some(low)) if zeros <= 8 && length <= 128 => {
                let words = [high, vec![0; zeros], low].concat();
                <[u16; 8]>::try_from(words).ok().map(|words| {
                    let address = Ipv6Addr::from(words);
                    (Network::new(address, length), u128::from(address))
                })
            }
            _ => None,
        }
    };
    let (network, address) = read.ok_or(RpzRecordError::Network)?;
    if network.address != address {
        return Err(RpzRecordError::HostBits);
    }
    Ok(network)
}

/// Reads the action from the target of a CNAME record (draft section 3).
fn action(relative: &[u8], apex: &[u8], record: &LocalRecord) -> Result<Action, RpzRecordError> {
    let mut target = record.rdata.to_vec();
    wire::fold(&mut target);
    let parts = labels(&target);
    let has_rpz_prefix = parts.first().is_some_and(|label| label.starts_with(b"rpz-"));
    Ok(match &parts[..] {
        [] => Action::NxDomain,
        [b"*"] => Action::NoData,
        [b"rpz-passthru"] => Action::Passthru,
        [b"rpz-drop"] => Action::Drop,
        [b"rpz-tcp-only"] => Action::TcpOnly,
        _ if has_rpz_prefix && parts.len() == 1 => return Err(RpzRecordError::UnknownAction),
        _ if has_rpz_prefix && is_at_or_below(&target, apex) => return Err(RpzRecordError::MissingDot),
        // Draft section 3.6: top-level domains that begin with `rpz-` are reserved for actions.
        [.., top] if top.starts_with(b"rpz-") => return Err(RpzRecordError::UnknownAction),
        // The older form of `rpz-passthru`: the target is the trigger itself (draft section 3.3), for addresses without the kind at its end.
        _ if target == relative || is_network_of(&parts, relative) => Action::Passthru,
        [b"*", ..] => Action::Suffix(target[2..].into()),
        _ => Action::Data([record.clone()].into()),
    })
}

/// True if `parts`, the labels of a target, are those of an address trigger without its last label.
fn is_network_of(parts: &[&[u8]], relative: &[u8]) -> bool {
    match labels(relative).split_last() {
        Some((&kind, network)) => matches!(kind, b"rpz-ip" | b"rpz-client-ip") && network == parts,
        None => false,
    }
}

#[cfg(test)]
#[path = "zone_record_tests.rs"]
mod tests;
