//! Reserved names: `localhost`, `invalid` (RFC 6761 sections 6.3 and 6.4) and `onion` (RFC 7686), which no upstream can know, and
//! the reverse names of the two loopback addresses that `localhost` has; `resolver.arpa` (RFC 9462), which is about the resolver
//! that is asked, so that an upstream would designate resolvers for itself. With `local.empty-zones` also the reverse zones of
//! addresses that have no meaning outside a site (RFC 6303 section 4, RFC 7793), and the other zones that IANA lists as served locally.
//! `home.arpa` is one of them that must not be forwarded unless the operator says where (RFC 8375 section 4).
//!
//! The other special-use names stay ordinary: `test` and `local` are names of a site, which its resolvers may serve.

use crate::local::local_answer::ZoneData;
use crate::local::reverse_labels::{NIBBLES, ReverseLabels, label_starts};
use crate::reasons::LocalZone;
use wire::Type;

pub(super) const LOCALHOST: &[u8] = b"\x09localhost\x00";
pub(super) const INVALID: &[u8] = b"\x07invalid\x00";
pub(super) const ONION: &[u8] = b"\x05onion\x00";

/// Zone of the designated resolvers of the resolver that is asked (RFC 9462 section 8.1).
const RESOLVER_ARPA: &[u8] = b"\x08resolver\x04arpa\x00";

/// Zone of homes (RFC 8375).
const HOME_ARPA: &[u8] = b"\x04home\x04arpa\x00";

/// Zones beside the reverse ones that `local.empty-zones` adds: that of service discovery, which is local to a site (RFC 9665 section
/// 10.5), and the target of the AS112 project's redirections (RFC 7535 section 3.2).
const LOCALLY_SERVED: [&[u8]; 2] = [b"\x07service\x04arpa\x00", b"\x05empty\x05as112\x04arpa\x00"];

/// Zone of the reverse names of IPv4 addresses.
const IN_ADDR_ARPA: &[u8] = b"\x07in-addr\x04arpa\x00";

/// Kind of a reserved zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReservedKind {
    Localhost,
    Invalid,
    Onion,
    /// `resolver.arpa` and all names below it.
    ResolverArpa,
    /// The reverse name of a loopback address of `localhost`.
    LoopbackReverse,
    /// A zone of RFC 6303, or one of the same kind.
    Empty,
}

/// The reserved zone that a name is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ReservedZone {
    pub kind: ReservedKind,
    /// Offset of the zone's name in the name.
    pub apex: usize,
}

/// Finds the reserved zone that a name in wire form is in; the zones of RFC 6303 and those like them only if `empty_zones` is set.
//= RFC 6303 section 4: requirement 60
pub(super) fn zone_of(name: &[u8], empty_zones: bool) -> Option<ReservedZone> {
    for (zone, kind) in
        [(LOCALHOST, ReservedKind::Localhost), (INVALID, ReservedKind::Invalid), (ONION, ReservedKind::Onion)]
    {
        if wire::is_at_or_below(name, zone) {
            return Some(ReservedZone { kind, apex: name.len() - zone.len() });
        }
    }
    if wire::is_at_or_below(name, RESOLVER_ARPA) {
        return Some(ReservedZone {
            kind: ReservedKind::ResolverArpa,
            apex: name.len() - RESOLVER_ARPA.len(),
        });
    }
    let served = if empty_zones { &LOCALLY_SERVED[..] } else { &[] };
    if let Some(zone) = served.iter().chain([&HOME_ARPA]).find(|zone| wire::is_at_or_below(name, zone)) {
        return Some(ReservedZone { kind: ReservedKind::Empty, apex: name.len() - zone.len() });
    }
    let (apex, is_loopback) = match ReverseLabels::read(name) {
        Some(read) => (ip6_zone(&read), is_loopback6(&read)),
        None => in_addr_zone(name)?,
    };
    let apex = apex.filter(|_| empty_zones);
    match is_loopback {
        true => Some(ReservedZone { kind: ReservedKind::LoopbackReverse, apex: apex.unwrap_or(0) }),
        false => Some(ReservedZone { kind: ReservedKind::Empty, apex: apex? }),
    }
}

/// True for the reverse name of ::1.
fn is_loopback6(read: &ReverseLabels) -> bool {
    read.labels == NIBBLES
        && read.nibbles == NIBBLES
        && read.address == core::net::Ipv6Addr::LOCALHOST.octets()
}

/// Offset of the zone under `ip6.arpa` that a name is in.
fn ip6_zone(read: &ReverseLabels) -> Option<usize> {
    let nibbles = match read.address {
        // RFC 6303 section 4.6: the prefix of examples. A zone needs as many nibbles as it has in the name.
        [0x20, 0x01, 0x0d, 0xb8, ..] if read.nibbles >= 8 => 8,
        // RFC 6303 section 4.4: ULA with a prefix that the site has chosen.
        [0xfd, ..] if read.nibbles >= 2 => 2,
        // RFC 6303 section 4.5: link-local addresses, fe80::/10.
        [0xfe, 0x80..=0xbf, ..] if read.nibbles >= 3 => 3,
        // RFC 6303 section 4.3: the unspecified and the loopback address, each with a zone of its own.
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 | 1] if read.nibbles == NIBBLES => NIBBLES,
        _ => return None,
    };
    Some(read.zone(nibbles))
}

/// Offset of the zone under `in-addr.arpa` that a name is in, if there is one; true for the reverse name of 127.0.0.1. None: it is
/// not below `in-addr.arpa`.
fn in_addr_zone(name: &[u8]) -> Option<(Option<usize>, bool)> {
    let (starts, labels) = label_starts(name);
    let labels = labels.checked_sub(2)?;
    if !name[usize::from(starts[labels])..].eq_ignore_ascii_case(IN_ADDR_ARPA) {
        return None;
    }
    let mut octets = [None; 4];
    for (octet, &start) in octets.iter_mut().zip(starts[..labels].iter().rev()) {
        let start = usize::from(start);
        *octet = decimal(&name[start + 1..][..usize::from(name[start])]);
    }
    let depth = match octets {
        // RFC 6303 section 4.1: private addresses.
        [Some(10), ..] => Some(1),
        [Some(172), Some(16..=31), ..] | [Some(192), Some(168), ..] => Some(2),
        // RFC 6303 section 4.2: this network, loopback, link-local, the three networks of examples, broadcast.
        [Some(0 | 127), ..] => Some(1),
        [Some(169), Some(254), ..] => Some(2),
        [Some(192), Some(0), Some(2), _] | [Some(198), Some(51), Some(100), _] => Some(3),
        [Some(203), Some(0), Some(113), _] => Some(3),
        [Some(255), Some(255), Some(255), Some(255)] => Some(4),
        // RFC 7793: the shared addresses of carriers, 100.64.0.0/10.
        [Some(100), Some(64..=127), ..] => Some(2),
        _ => None,
    };
    let is_loopback = labels == 4 && octets == [Some(127), Some(0), Some(0), Some(1)];
    Some((depth.map(|depth| usize::from(starts[labels - depth])), is_loopback))
}

/// Value of a label that is an octet in decimal, without leading zeros.
fn decimal(label: &[u8]) -> Option<u8> {
    let is_canonical =
        label.iter().all(u8::is_ascii_digit) && (label.len() == 1 || label.first() != Some(&b'0'));
    core::str::from_utf8(label).ok().filter(|_| is_canonical)?.parse().ok()
}

impl ReservedZone {
    /// True for the name `resolver.arpa` itself.
    pub fn is_resolver_arpa(&self) -> bool {
        self.kind == ReservedKind::ResolverArpa && self.apex == 0
    }

    /// Data of the zone for a question; none if it has to be asked upstream. `exists` tells if there are names of the
    /// configuration below the name of the question.
    pub fn data(&self, qtype: Type, exists: impl FnOnce() -> bool) -> Option<ZoneData> {
        use ReservedKind::{Empty, Invalid, Localhost, LoopbackReverse, Onion, ResolverArpa};
        Some(match (self.kind, qtype) {
            //= RFC 6761 section 6.3: requirement 56; localhost and all names below it.
            //= RFC 8482 section 4.1: requirement 53
            (Localhost, Type::A | Type::ANY) => ZoneData::Loopback4,
            (Localhost, Type::AAAA) => ZoneData::Loopback6,
            (Localhost, _) => ZoneData::NoData,
            (LoopbackReverse, Type::PTR | Type::ANY) => ZoneData::Pointer(LOCALHOST),
            //= RFC 6303 section 3: requirement 59
            (LoopbackReverse | Empty | ResolverArpa, Type::SOA) if self.apex == 0 => ZoneData::Soa,
            (LoopbackReverse | Empty | ResolverArpa, Type::NS) if self.apex == 0 => ZoneData::Ns,
            // The parent has the DS records. The public delegations are unsigned, and a validator must be able to see that.
            (Empty, Type::DS) if self.apex == 0 => return None,
            //= RFC 9462 section 4: requirement 61
            //= RFC 9462 section 6.4: requirement 62; each name exists, and no record but those of the apex.
            (LoopbackReverse | ResolverArpa, _) => ZoneData::NoData,
            (Empty, _) if self.apex == 0 => ZoneData::NoData,
            // RFC 8020: a name with names below it exists.
            _ if exists() => ZoneData::NoData,
            //= RFC 6761 section 6.4: requirement 57
            //= RFC 7686 section 2: requirement 58
            (Invalid | Onion | Empty, _) => ZoneData::NxDomain,
        })
    }
}

impl ReservedKind {
    /// The local zone, as operators know it.
    pub fn zone(self) -> LocalZone {
        match self {
            ReservedKind::Localhost | ReservedKind::LoopbackReverse => LocalZone::Localhost,
            ReservedKind::Invalid => LocalZone::Invalid,
            ReservedKind::Onion => LocalZone::Onion,
            ReservedKind::ResolverArpa => LocalZone::ResolverArpa,
            ReservedKind::Empty => LocalZone::Empty,
        }
    }
}

#[cfg(test)]
#[path = "reserved_tests.rs"]
mod tests;
