//! Special-use names, which are answered locally: those of DNS64 under `arpa` (`arpa.rs`), and those that no upstream can know or
//! should be asked (`reserved.rs`).

use crate::dns64::config::Dns64;
use crate::local::arpa;
use crate::local::local_answer::{ZoneAuthority, ZoneData};
use crate::local::local_data::LocalData;
use crate::local::reserved::{self, INVALID, LOCALHOST, ONION};
use crate::message::question::ForwardKey;
use crate::reasons::LocalZone;
use crate::upstream::config::ForwardZone;
use core::net::Ipv6Addr;
use wire::{Class, Type};

pub use crate::local::local_answer::{LocalAnswer, SpecialUse};
pub use crate::local::reverse_alias::{Alias, InAddr, alias};

/// End of the special-use names of DNS64 and of the reverse zones.
const ARPA: &[u8] = b"\x04arpa\x00";

/// Bits that make letters small. They change other octets as well, so equal octets are compared once more.
const SMALL: u32 = 0x2020_2020;
const END_OF_ARPA: u32 = u32::from_be_bytes(*b"arpa");
const END_OF_LOCALHOST: u32 = u32::from_be_bytes(*b"host");
const END_OF_INVALID: u32 = u32::from_be_bytes(*b"alid");
const END_OF_ONION: u32 = u32::from_be_bytes(*b"nion");

/// The settings that decide about special-use names.
#[derive(Clone, Copy)]
pub struct SpecialUseSettings<'s> {
    /// Settings of DNS64.
    pub dns64: &'s Dns64,
    /// Local data: they may add names to a zone.
    pub local_data: &'s LocalData,
    /// Forward zones: they take names out of a zone.
    pub forward_zones: &'s [ForwardZone],
}

/// True for a question about a name under a top-level domain that has special-use names, and for one about this resolver (RFC 9606). Few others
/// pass.
#[inline]
pub fn is_candidate(name: &[u8], qtype: Type, class: Class) -> bool {
    // The last four octets before the root tell nearly all names from special ones: one load and four comparisons are all they cost.
    let Some(&[a, b, c, d, _]) = name.last_chunk() else { return false };
    let top_level: &[u8] = match u32::from_be_bytes([a, b, c, d]) | SMALL {
        END_OF_ARPA => ARPA,
        END_OF_LOCALHOST => LOCALHOST,
        END_OF_INVALID => INVALID,
        END_OF_ONION => ONION,
        _ => return qtype == Type::RESINFO && class == Class::IN,
    };
    // The octets may belong to a longer label.
    let has_end =
        name.len() >= top_level.len() && name[name.len() - top_level.len()..].eq_ignore_ascii_case(top_level);
    (has_end || qtype == Type::RESINFO) && class == Class::IN
}

/// Classifies a name for a client: the name of its question, or the target of an alias. Local records of the name take precedence;
/// the caller looks them up.
#[inline]
pub fn classify<'s>(
    settings: SpecialUseSettings<'s>,
    client: Ipv6Addr,
    name: &[u8],
    qtype: Type,
    class: Class,
) -> SpecialUse<'s> {
    match is_candidate(name, qtype, class) {
        true => classify_candidate(settings, client, name, qtype),
        false => SpecialUse::Ordinary,
    }
}

/// The facts about this resolver (RFC 9606), for the name of the question.
fn resolver_info(dns64: &Dns64, client: Ipv6Addr) -> LocalAnswer<'_> {
    let (zone, authority) = (LocalZone::ResolverArpa, ZoneAuthority::Empty);
    LocalAnswer { zone, data: ZoneData::resolver_info(dns64, client), authority, apex: 0, client, dns64 }
}

#[cold]
fn classify_candidate<'s>(
    settings: SpecialUseSettings<'s>,
    client: Ipv6Addr,
    name: &[u8],
    qtype: Type,
) -> SpecialUse<'s> {
    match arpa::classify(settings.dns64, settings.local_data, client, name, qtype) {
        SpecialUse::Ordinary => {}
        special => return special,
    }
    match reserved(settings, client, name, qtype) {
        Some(answer) => SpecialUse::Local(answer),
        // A question about this resolver may also name it as the designated one (RFC 9606 section 3).
        None if qtype == Type::RESINFO && wire::eq_ignore_case(name, &settings.dns64.arpa.designated) => {
            SpecialUse::Local(resolver_info(settings.dns64, client))
        }
        None => SpecialUse::Ordinary,
    }
}

/// The answer for a name of a reserved zone. None: it is an ordinary name, or the operator has servers for it.
fn reserved<'s>(
    settings: SpecialUseSettings<'s>,
    client: Ipv6Addr,
    name: &[u8],
    qtype: Type,
) -> Option<LocalAnswer<'s>> {
    let SpecialUseSettings { dns64, local_data, forward_zones } = settings;
    let zone = reserved::zone_of(name, local_data.has_empty_zones())?;
    // The DS records of a forward zone are data of the zone above it, which is the reserved one unless another forward zone is between.
    let spoken_of = ForwardKey { name, qtype, is_own: false }.forwarded_name();
    // A zone above the reserved one, such as the root, does not speak of it.
    let mut within =
        forward_zones.iter().filter(|forward| wire::is_at_or_below(&forward.name, &name[zone.apex..]));
    if within.any(|forward| wire::is_at_or_below(spoken_of, &forward.name)) {
        return None;
    }
    let exists = || {
        local_data.is_above_records(name)
            || forward_zones.iter().any(|forward| wire::is_at_or_below(&forward.name, name))
            || arpa::is_above_prefix(dns64, name)
    };
    if qtype == Type::RESINFO && zone.is_resolver_arpa() {
        return Some(resolver_info(dns64, client));
    }
    let data = zone.data(qtype, exists)?;
    let (apex, zone) = (zone.apex, zone.kind.zone());
    Some(LocalAnswer { zone, data, authority: ZoneAuthority::Empty, apex, client, dns64 })
}

#[cfg(test)]
#[path = "special_use_tests.rs"]
mod tests;
