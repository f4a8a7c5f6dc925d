//! Special-use names of DNS64 under `arpa`: `ipv4only.arpa` with the two reverse names of its addresses (RFC 8880), and the reverse
//! names of the prefixes (RFC 6147 section 5.3.1).

use crate::dns64::config::{Dns64, Reverse};
use crate::local::local_answer::{IPV4ONLY, LocalAnswer, SpecialUse, WELL_KNOWN, ZoneAuthority, ZoneData};
use crate::local::local_data::LocalData;
use crate::local::reverse_alias::InAddr;
use crate::local::reverse_labels::{NIBBLES, ReverseLabels};
use crate::reasons::LocalZone;
use core::net::Ipv6Addr;
use pref64::Pref64;
use wire::Type;

/// The zones of RFC 8880 section 7.2.
//= RFC 8880 section 7.2: requirement 49
const IPV4ONLY_REVERSE: [&[u8]; 2] =
    [b"\x03170\x010\x010\x03192\x07in-addr\x04arpa\x00", b"\x03171\x010\x010\x03192\x07in-addr\x04arpa\x00"];

/// Classifies a name under `arpa` by the settings of DNS64.
pub(super) fn classify<'s>(
    dns64: &'s Dns64,
    local_data: &LocalData,
    client: Ipv6Addr,
    name: &[u8],
    qtype: Type,
) -> SpecialUse<'s> {
    //= RFC 8880 section 7.1: requirements 43, 44, 45, 48; special where DNS64 is done, an ordinary name elsewhere.
    //= RFC 7050 section 3: requirement 39; whatever bits are set.
    let serves_ipv4only = dns64.arpa.ipv4only && dns64.clients.contains(client);
    if serves_ipv4only && let Some((data, zone_length)) = ipv4only(name, qtype) {
        return match data {
            Some(data) => {
                let zone = LocalZone::Ipv4Only;
                let (authority, apex) = (ZoneAuthority::Configured, name.len() - zone_length);
                SpecialUse::Local(LocalAnswer { zone, data, authority, apex, client, dns64 })
            }
            None => SpecialUse::Ordinary,
        };
    }
    if dns64.arpa.reverse == Reverse::Off {
        return SpecialUse::Ordinary;
    }
    if let Some(address) = mapped(dns64, name) {
        let zone = LocalZone::Reverse;
        return match qtype {
            Type::CNAME | Type::ANY => {
                let (data, authority) = (ZoneData::Alias(address), ZoneAuthority::Configured);
                SpecialUse::Local(LocalAnswer { zone, data, authority, apex: 0, client, dns64 })
            }
            _ => SpecialUse::Alias(address),
        };
    }
    //= RFC 6147 section 5.3.1: requirement 23
    let Some(ReverseName { apex, place }) = under_prefix(dns64, name) else { return SpecialUse::Ordinary };
    let (zone, authority) = (LocalZone::Reverse, ZoneAuthority::Configured);
    let local = |data| SpecialUse::Local(LocalAnswer { zone, data, authority, apex, client, dns64 });
    match place {
        _ if apex == 0 && qtype == Type::SOA => local(ZoneData::Soa),
        _ if apex == 0 && qtype == Type::NS => local(ZoneData::Ns),
        _ if apex == 0 => local(ZoneData::NoData),
        //= RFC 6147 section 5.3.1: requirement 21; option 1: an empty zone, nothing exists below its name, but for mapped addresses.
        _ if dns64.arpa.reverse == Reverse::Local && !is_above_mapped(dns64, name) => {
            local(ZoneData::NxDomain)
        }
        NamePlace::EmptyNonTerminal => local(ZoneData::NoData),
        NamePlace::Nonexistent => local(ZoneData::NxDomain),
        NamePlace::Address(address) if matches!(qtype, Type::CNAME | Type::ANY) => {
            local(ZoneData::Alias(address))
        }
        // Local records of the target go before its special use.
        NamePlace::Address(address)
            if serves_ipv4only
                && WELL_KNOWN.contains(&address)
                && !local_data.has_records(InAddr::new(address).wire()) =>
        {
            local(if qtype == Type::PTR {
                ZoneData::AliasToPointer(address)
            } else {
                ZoneData::Alias(address)
            })
        }
        //= RFC 6147 section 5.3.1: requirements 21, 22; option 2.
        NamePlace::Address(address) => SpecialUse::Alias(address),
    }
}

/// Data of a name under the zones of RFC 8880 sections 7.1 and 7.2, and the octets of the zone's name. No data: the question
/// is resolved as an ordinary one.
fn ipv4only(name: &[u8], qtype: Type) -> Option<(Option<ZoneData>, usize)> {
    let is_forward = wire::is_at_or_below(name, IPV4ONLY);
    let zone = if is_forward {
        IPV4ONLY
    } else {
        IPV4ONLY_REVERSE.into_iter().find(|zone| wire::is_at_or_below(name, zone))?
    };
    let data = if name.len() > zone.len() {
        //= RFC 8880 section 7.1: requirement 47
        ZoneData::NxDomain
    } else {
        match qtype {
            //= RFC 8880 section 7.1: requirement 45; the delegation is unsigned, and a validator must be able to see that.
            Type::DS => return Some((None, zone.len())),
            //= RFC 8880 section 7.1: requirement 46
            Type::A | Type::ANY if is_forward => ZoneData::A,
            Type::AAAA if is_forward => ZoneData::Aaaa,
            Type::PTR | Type::ANY if !is_forward => ZoneData::Pointer(IPV4ONLY),
            _ => ZoneData::NoData,
        }
    };
    Some((Some(data), zone.len()))
}

/// A name at or under the reverse name of a prefix.
struct ReverseName {
    /// Offset of the reverse name of the prefix.
    apex: usize,
    place: NamePlace,
}

/// Place of a name in the tree under the reverse name of a prefix.
enum NamePlace {
    /// The reverse name of an IPv6 address in which this IPv4 address is embedded.
    Address([u8; 4]),
    /// A name with fewer nibbles than an address has: it has no records, but names below it exist.
    EmptyNonTerminal,
    /// A name below that of an address, or with a label that is no nibble.
    Nonexistent,
}

/// Finds the longest prefix whose reverse name a name is under. None: it is under no prefix, or the name of an address that has no
/// IPv4 address embedded. The bits after an embedded address (the suffix) may have any value: RFC 6052 section 2.2 reserves them
/// for extensions, and says that readers ignore them.
fn under_prefix(dns64: &Dns64, name: &[u8]) -> Option<ReverseName> {
    let read = ReverseLabels::read(name)?;
    let ReverseLabels { labels, nibbles, address, .. } = read;
    //= RFC 6052 section 2.2: requirement 34; another host may have such an address under a prefix of up to 64 bits.
    if !pref64::has_zero_octet_u(address) {
        return None;
    }
    let is_under = |prefix: &&Pref64| usize::from(prefix.length()) <= 4 * nibbles && prefix.contains(address);
    //= RFC 6147 section 5.3.1: requirement 20; the well-known prefix too, whether it is in use or not.
    let general = dns64.prefixes.iter().chain([&pref64::WELL_KNOWN]).filter(is_under);
    let longest = general.chain(dns64.rules.longest_prefix_of(address, 4 * nibbles));
    let prefix = longest.max_by_key(|prefix| prefix.length())?;
    let place = match prefix.extract(address) {
        Some(v4) if labels == NIBBLES && nibbles == NIBBLES => NamePlace::Address(v4),
        _ if labels > nibbles => NamePlace::Nonexistent,
        _ => NamePlace::EmptyNonTerminal,
    };
    Some(ReverseName { apex: read.zone(usize::from(prefix.length()) / 4), place })
}

/// The IPv4 address that is mapped to the IPv6 address with this reverse name (RFC 7757).
fn mapped(dns64: &Dns64, name: &[u8]) -> Option<[u8; 4]> {
    let mappings = dns64.mappings.as_ref()?;
    let ReverseLabels { labels, nibbles, address, .. } = ReverseLabels::read(name)?;
    let found = mappings.to_v4(address).filter(|_| labels == NIBBLES && nibbles == NIBBLES);
    // The reverse names of ipv4only.arpa are no ordinary names, and no host has its addresses.
    found.filter(|v4| !WELL_KNOWN.contains(v4))
}

/// True if the reverse name of a mapped address is below a name.
fn is_above_mapped(dns64: &Dns64, name: &[u8]) -> bool {
    let Some(mappings) = &dns64.mappings else { return false };
    ReverseLabels::read(name).is_some_and(|ReverseLabels { labels, nibbles, address, .. }| {
        labels == nibbles && nibbles < NIBBLES && mappings.reaches_below(address, 4 * nibbles as u8)
    })
}

/// True if the reverse name of a prefix, or of a mapped address, is below a name, so that the name exists.
pub(super) fn is_above_prefix(dns64: &Dns64, name: &[u8]) -> bool {
    let read = ReverseLabels::read(name).filter(|_| dns64.arpa.reverse != Reverse::Off);
    let Some(ReverseLabels { labels, nibbles, address, .. }) = read else {
        return false;
    };
    let bits = 4 * nibbles;
    let has_these_bits = |prefix: &&Pref64| {
        let difference = u128::from(prefix.address()) ^ u128::from_be_bytes(address);
        usize::from(prefix.length()) > bits && difference.leading_zeros() as usize >= bits
    };
    let mut general = dns64.prefixes.iter().chain([&pref64::WELL_KNOWN]);
    labels == nibbles
        && (general.any(|prefix| has_these_bits(&prefix))
            || dns64.rules.has_prefix_below(address, bits)
            || is_above_mapped(dns64, name))
}
