//! Special-use names under `arpa`, which are answered locally and never asked upstream: `ipv4only.arpa` with the two reverse
//! names of its addresses (RFC 8880), and the reverse names of the prefixes (RFC 6147 section 5.3.1).

use crate::answer::builder::{ResponseBuilder, Written};
use crate::answer::requestor::Requestor;
use crate::counters::Counter;
use crate::dns64::config::{Dns64, Reverse};
use crate::dns64::rules::PREFIXES;
use crate::local::local_data::LocalData;
use crate::local::record::{SOA_RDATA, soa};
use core::net::Ipv6Addr;
use pref64::Pref64;
use pref64::reverse::{IN_ADDR_NAME_MAX, write_in_addr};
use wire::header::Flags;
use wire::{Builder, Class, Name, Rcode, Section, Type};

/// TTL of all local answers of these zones, in seconds: long enough to be cached, and clients learn of another prefix after an
/// hour (RFC 7050 section 3: they ask again when the TTL ends).
//= RFC 7050 section 4: requirement 41
const TTL: u32 = 3600;

/// TTL of the CNAME record of a reverse name, in seconds: that of an ordinary mapping, which is valid as long as the prefix.
const ALIAS_TTL: u32 = 600;

/// End of every special-use name of this file.
const ARPA: &[u8; 6] = b"\x04arpa\x00";
/// Zone of the reverse names of IPv6 addresses.
const IP6_ARPA: &[u8; 10] = b"\x03ip6\x04arpa\x00";

/// The zone of RFC 8880 section 7.1.
const IPV4ONLY: &[u8] = b"\x08ipv4only\x04arpa\x00";
/// The zones of RFC 8880 section 7.2.
//= RFC 8880 section 7.2: requirement 49
const IPV4ONLY_REVERSE: [&[u8]; 2] =
    [b"\x03170\x010\x010\x03192\x07in-addr\x04arpa\x00", b"\x03171\x010\x010\x03192\x07in-addr\x04arpa\x00"];

/// The addresses of `ipv4only.arpa` (RFC 7050 section 8.2).
const WELL_KNOWN: [[u8; 4]; 2] = [[192, 0, 0, 170], [192, 0, 0, 171]];

/// Most labels of a name, which has 255 octets.
const LABELS: usize = 128;

/// Nibbles of an IPv6 address.
const NIBBLES: usize = 32;

/// Treatment of a question.
pub enum SpecialUse<'s> {
    /// The name is an ordinary name.
    Ordinary,
    /// The question has a local answer.
    Local(LocalAnswer<'s>),
    /// The name is an alias of the reverse name of this IPv4 address. That name is asked upstream.
    Alias([u8; 4]),
}

/// An answer from a local zone under `arpa`.
pub struct LocalAnswer<'s> {
    /// Counter of the answer.
    pub counter: Counter,
    data: ZoneData,
    /// Offset of the zone's name in the question's name.
    apex: usize,
    client: Ipv6Addr,
    dns64: &'s Dns64,
}

/// Data of a zone for a question.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ZoneData {
    /// The name does not exist.
    NxDomain,
    /// The name exists, but has no record of the type asked for.
    NoData,
    A,
    Aaaa,
    Soa,
    Ns,
    /// The reverse name of one of the addresses of `ipv4only.arpa`.
    Pointer,
    /// A CNAME record to the reverse name of this IPv4 address.
    Alias([u8; 4]),
    /// A CNAME record to one of the reverse names of `ipv4only.arpa`, and the PTR record of that name.
    AliasToPointer([u8; 4]),
}

/// Classifies a name for a client: the name of its question, or the target of an alias.
#[inline]
pub fn classify<'s>(
    dns64: &'s Dns64,
    local_data: &LocalData,
    client: Ipv6Addr,
    name: &[u8],
    qtype: Type,
    class: Class,
) -> SpecialUse<'s> {
    let is_arpa = name.len() >= ARPA.len() && name[name.len() - ARPA.len()..].eq_ignore_ascii_case(ARPA);
    if !is_arpa || class != Class::IN {
        SpecialUse::Ordinary
    } else {
        in_arpa(dns64, local_data, client, name, qtype)
    }
}

#[cold]
fn in_arpa<'s>(
    dns64: &'s Dns64,
    local_data: &LocalData,
    client: Ipv6Addr,
    name: &[u8],
    qtype: Type,
) -> SpecialUse<'s> {
    //= RFC 8880 section 7.1: requirements 43, 44, 45, 48; special where DNS64 is done, an ordinary name elsewhere.
    //= RFC 7050 section 3: requirement 39; whatever bits are set.
    let serves_ipv4only = dns64.arpa.ipv4only && dns64.clients.contains(client);
    if serves_ipv4only && let Some((data, zone)) = ipv4only(name, qtype) {
        return match data {
            Some(data) => {
                let counter = Counter::LocalIpv4Only;
                SpecialUse::Local(LocalAnswer { counter, data, apex: name.len() - zone, client, dns64 })
            }
            None => SpecialUse::Ordinary,
        };
    }
    if dns64.arpa.reverse == Reverse::Off {
        return SpecialUse::Ordinary;
    }
    //= RFC 6147 section 5.3.1: requirement 23
    let Some(ReverseName { apex, place }) = under_prefix(dns64, name) else { return SpecialUse::Ordinary };
    let local =
        |data| SpecialUse::Local(LocalAnswer { counter: Counter::LocalReverse, data, apex, client, dns64 });
    match place {
        _ if apex == 0 && qtype == Type::SOA => local(ZoneData::Soa),
        _ if apex == 0 && qtype == Type::NS => local(ZoneData::Ns),
        _ if apex == 0 => local(ZoneData::NoData),
        //= RFC 6147 section 5.3.1: requirement 21; option 1: an empty zone, nothing exists below its name.
        _ if dns64.arpa.reverse == Reverse::Local => local(ZoneData::NxDomain),
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
            Type::PTR | Type::ANY if !is_forward => ZoneData::Pointer,
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
    let (mut starts, mut labels, mut at) = ([0u8; LABELS], 0, 0);
    while name[at] != 0 {
        starts[labels] = at as u8;
        labels += 1;
        at += 1 + usize::from(name[at]);
    }
    // Without the two labels of `ip6.arpa`.
    let labels = labels.checked_sub(2)?;
    let zone = usize::from(starts[labels]);
    if !name[zone..].eq_ignore_ascii_case(IP6_ARPA) {
        return None;
    }
    let (mut bits, mut nibbles) = (0u128, 0);
    for &start in starts[..labels].iter().rev().take(NIBBLES) {
        let start = usize::from(start);
        let digit = if name[start] == 1 { (name[start + 1] as char).to_digit(16) } else { None };
        let Some(digit) = digit else { break };
        bits = bits << 4 | u128::from(digit);
        nibbles += 1;
    }
    if nibbles == 0 {
        return None;
    }
    let address = (bits << (4 * (NIBBLES - nibbles))).to_be_bytes();
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
    Some(ReverseName { apex: usize::from(starts[labels - usize::from(prefix.length()) / 4]), place })
}

impl LocalAnswer<'_> {
    /// All prefixes from which the client may get synthesized addresses: the general ones first, then those of rules for some
    /// names and addresses.
    fn prefixes(&self) -> Vec<Pref64> {
        let mut special = Vec::new();
        let mut general = &self.dns64.prefixes;
        for rule in self.dns64.rules.advertised(self.client) {
            if rule.is_general() {
                // This rule matches every name, so later rules never apply.
                general = &rule.prefixes;
                break;
            }
            special.extend(rule.prefixes.iter().copied());
        }
        let mut prefixes: Vec<Pref64> = Vec::new();
        for prefix in general.iter().copied().chain(special) {
            if prefixes.len() < PREFIXES && !prefixes.contains(&prefix) {
                prefixes.push(prefix);
            }
        }
        prefixes
    }

    /// Writes the answer about a name; `before` are the replies whose aliases led to it. AA is set, as this server is
    /// authoritative for the zone (RFC 8880 section 7.1, item 4). Behind an alias it is not set: AA is about the first name
    /// only (RFC 1035 section 4.1.1).
    pub fn write<'m>(
        &self,
        frame: &mut [u8],
        requestor: &Requestor<'_>,
        name: &'m [u8],
        before: &'m [Vec<u8>],
    ) -> Written {
        let rcode = if self.data == ZoneData::NxDomain { Rcode::NXDOMAIN } else { Rcode::NOERROR };
        let flags = requestor.flags(rcode, false);
        let flags = if before.is_empty() { flags.with(Flags::AA) } else { flags };
        let mut response = ResponseBuilder::start(frame, requestor, flags, None);
        response.lead(before);
        response.begin_rrset();
        let (Some(owner), Some(apex)) = (Name::from_wire(name), Name::from_wire(&name[self.apex..])) else {
            return response.finish(requestor, Rcode::SERVFAIL, None);
        };
        let arpa = &self.dns64.arpa;
        let room = &mut [0; SOA_RDATA];
        let soa = soa(arpa, TTL, room);
        match self.data {
            // RFC 2308 section 3.
            ZoneData::NxDomain | ZoneData::NoData => {
                response.record(Section::Authority, apex, Type::SOA, TTL, soa);
            }
            ZoneData::A => {
                for address in WELL_KNOWN {
                    response.record(Section::Answer, owner, Type::A, TTL, &address);
                }
            }
            //= RFC 7050 section 3: requirement 40; whatever is left out elsewhere, clients learn the prefixes so.
            ZoneData::Aaaa => {
                let prefixes = self.prefixes();
                if prefixes.is_empty() {
                    response.record(Section::Authority, apex, Type::SOA, TTL, soa);
                }
                for address in WELL_KNOWN {
                    for prefix in &prefixes {
                        response.record(Section::Answer, owner, Type::AAAA, TTL, &prefix.embed(address));
                    }
                }
            }
            ZoneData::Soa => response.record(Section::Answer, apex, Type::SOA, TTL, soa),
            ZoneData::Ns => response.record(Section::Answer, apex, Type::NS, TTL, &arpa.server),
            ZoneData::Pointer => response.record(Section::Answer, owner, Type::PTR, TTL, IPV4ONLY),
            ZoneData::Alias(address) | ZoneData::AliasToPointer(address) => {
                let target = InAddr::new(address);
                response.record(Section::Answer, owner, Type::CNAME, ALIAS_TTL, target.wire());
                if let (ZoneData::AliasToPointer(_), Some(target)) =
                    (self.data, Name::from_wire(target.wire()))
                {
                    response.begin_rrset();
                    response.record(Section::Answer, target, Type::PTR, TTL, IPV4ONLY);
                }
            }
        }
        response.finish(requestor, rcode, None)
    }
}

/// The reverse name of an IPv4 address in wire form.
#[derive(Clone, Copy)]
pub struct InAddr {
    octets: [u8; IN_ADDR_NAME_MAX],
    length: usize,
}

impl InAddr {
    fn new(address: [u8; 4]) -> InAddr {
        let mut octets = [0; IN_ADDR_NAME_MAX];
        let length = write_in_addr(address, &mut octets);
        InAddr { octets, length }
    }

    /// The name in wire form.
    pub fn wire(&self) -> &[u8] {
        &self.octets[..self.length]
    }
}

/// A CNAME record for a reverse name under a prefix.
pub struct Alias {
    /// The reverse name of the IPv4 address.
    pub target: InAddr,
    /// The reply that an upstream would send: the question's name is an alias of the target.
    pub reply: Vec<u8>,
}

/// Makes the name of a question an alias of the reverse name of `address`. None: the question is malformed.
pub fn alias(question: &[u8], address: [u8; 4]) -> Option<Alias> {
    let target = InAddr::new(address);
    // The question, a compressed owner, the ten octets of type, class, TTL and RDLENGTH, the target: 12 octets beside the names.
    let mut reply = vec![0; wire::HEADER + question.len() + 12 + target.length];
    let owner = Name::from_wire(&question[..question.len().checked_sub(4)?])?;
    let limit = reply.len();
    let mut builder = Builder::new(&mut reply, limit, 0, Flags(0).with(Flags::QR), question)?;
    builder.record(Section::Answer, owner, Type::CNAME, Class::IN, ALIAS_TTL, target.wire()).ok()?;
    builder.finish();
    Some(Alias { target, reply })
}

#[cfg(test)]
#[path = "special_use_tests.rs"]
mod tests;
