//! Answers from the local zones of special-use names: `ipv4only.arpa`, the reverse zones of the prefixes, `localhost`, and the
//! zones in which nothing exists.

use crate::answer::builder::{ResponseBuilder, Written, append_text};
use crate::answer::params::ResponseParams;
use crate::dns64::config::Dns64;
use crate::dns64::embed::Lack;
use crate::dns64::gateways::{Chooser, Gateways};
use crate::dns64::rules::{PREFIXES, Rule};
use crate::limits::LISTED;
use crate::local::no_gateway::{NO_GATEWAY_TTL, extended_error};
use crate::local::record::{SOA_RDATA, soa};
use crate::local::reverse_alias::{ALIAS_TTL, InAddr};
use crate::reasons::LocalZone;
use core::net::Ipv6Addr;
use pref64::Pref64;
use wire::header::Flags;
use wire::{Name, Rcode, Section, Type};

/// TTL of all local answers about the prefixes, in seconds: long enough to be cached, and clients learn of another prefix after
/// an hour (RFC 7050 section 3: they ask again when the TTL ends).
//= RFC 7050 section 4: requirement 41
const ARPA_TTL: u32 = 3600;

/// TTL of the records of empty zones, of `localhost` and of their negative answers, in seconds: the three hours of the example in
/// RFC 6303 section 3. The data never change.
const EMPTY_ZONE_TTL: u32 = 10_800;

/// The zone of RFC 8880 section 7.1.
pub(crate) const IPV4ONLY: &[u8] = b"\x08ipv4only\x04arpa\x00";

/// The addresses of `ipv4only.arpa` (RFC 7050 section 8.2).
pub(super) const WELL_KNOWN: [[u8; 4]; 2] = [[192, 0, 0, 170], [192, 0, 0, 171]];

/// Treatment of a question.
pub enum SpecialUse<'s> {
    /// The name is an ordinary name.
    Ordinary,
    /// The question has a local answer.
    Local(LocalAnswer<'s>),
    /// The name is an alias of the reverse name of this IPv4 address. That name is asked upstream.
    Alias([u8; 4]),
}

/// An answer from the local zone of a special-use name.
pub struct LocalAnswer<'s> {
    /// Zone of the name.
    pub zone: LocalZone,
    pub(super) data: ZoneData,
    pub(super) authority: ZoneAuthority,
    /// Offset of the zone's name in the question's name.
    pub(super) apex: usize,
    pub(super) client: Ipv6Addr,
    pub(super) dns64: &'s Dns64,
}

/// Source of the SOA and NS records of a zone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ZoneAuthority {
    /// `ptr-server` and `ptr-contact` name the server and the contact, and the TTL is an hour.
    Configured,
    /// An empty zone as in RFC 6303 section 3: the server has the zone's name, and the TTL is three hours.
    Empty,
}

/// TTL of the records of a zone, and the RDATA of its NS and SOA records.
struct AuthorityData<'a> {
    ttl: u32,
    server: &'a [u8],
    soa: &'a [u8],
}

/// Data of a zone for a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ZoneData {
    /// The name does not exist.
    NxDomain,
    /// The name exists, but has no record of the type asked for.
    NoData,
    /// A records of `ipv4only.arpa`.
    A,
    /// AAAA records of `ipv4only.arpa`.
    Aaaa,
    /// An A record with the loopback address.
    Loopback4,
    /// An AAAA record with the loopback address.
    Loopback6,
    Soa,
    Ns,
    /// A PTR record to this name.
    Pointer(&'static [u8]),
    /// A RESINFO record that tells of DNS64.
    ResolverInfo,
    /// A CNAME record to the reverse name of this IPv4 address.
    Alias([u8; 4]),
    /// A CNAME record to one of the reverse names of `ipv4only.arpa`, and the PTR record of that name.
    AliasToPointer([u8; 4]),
}

/// Prefixes of which a client learns.
struct Advertised {
    prefixes: Vec<Pref64>,
    /// TTL of the answer, in seconds.
    longest_ttl: u32,
    /// True if a list has no gateway that lives.
    is_dead: bool,
    /// True if a list waits for the discovery.
    is_undiscovered: bool,
}

impl Advertised {
    /// The reason why there are no prefixes, if there are none.
    fn lack(&self) -> Option<Lack> {
        match self {
            _ if !self.prefixes.is_empty() => None,
            _ if self.is_dead => Some(Lack::Gateway),
            _ if self.is_undiscovered => Some(Lack::Prefix),
            _ => None,
        }
    }
}

impl ZoneData {
    /// The facts about this resolver for a client (RFC 9606): that it does DNS64. The key `dns64` is that of draft-fobser-resinfo-dns64-02, and has
    /// no value. A client without DNS64 learns nothing.
    pub(super) fn resolver_info(dns64: &Dns64, client: Ipv6Addr) -> ZoneData {
        if dns64.clients.contains(client) { ZoneData::ResolverInfo } else { ZoneData::NoData }
    }
}

impl LocalAnswer<'_> {
    /// All prefixes from which the client may get synthesized addresses: the general ones first, then those of rules for some
    /// names and addresses.
    fn prefixes(&self) -> Advertised {
        let Dns64 { rules, gateways, discovery, .. } = self.dns64;
        let gateways = gateways.as_ref();
        let chooser = Chooser::new(self.client);
        let longest_ttl = discovery.map_or(ARPA_TTL, |discovery| discovery.ttl_secs);
        let mut advertised =
            Advertised { prefixes: Vec::new(), longest_ttl, is_dead: false, is_undiscovered: false };
        let mut in_use = |list: &[Pref64], rule: Option<&Rule>| -> Vec<Pref64> {
            let is_general = rule.is_none();
            advertised.is_undiscovered |= list.is_empty() && rule.is_none_or(|rule| rule.awaits_discovery);
            let in_use = chooser.in_use(gateways, list, is_general);
            let is_probed = |gateways: &&Gateways| match is_general {
                true => gateways.is_general_probed(in_use),
                false => gateways.is_probed(list, in_use),
            };
            if let Some(gateways) = gateways.filter(is_probed) {
                advertised.longest_ttl = advertised.longest_ttl.min(gateways.table().answer_ttl_secs);
            }
            advertised.is_dead |= in_use == 0 && !list.is_empty();
            let places = list.iter().enumerate();
            places
                .filter(|(place, _)| in_use >> (place % LISTED) & 1 == 1)
                .map(|(_, prefix)| *prefix)
                .collect()
        };
        let mut special = Vec::new();
        let mut general = None;
        for rule in rules.advertised(self.client) {
            if rule.is_general() {
                // This rule matches every name, so later rules never apply.
                general = Some(in_use(&rule.prefixes, Some(rule)));
                break;
            }
            special.extend(in_use(&rule.prefixes, Some(rule)));
        }
        let general = general.unwrap_or_else(|| in_use(&self.dns64.prefixes, None));
        for prefix in general.into_iter().chain(special) {
            let prefixes = &mut advertised.prefixes;
            if prefixes.len() < PREFIXES && !prefixes.contains(&prefix) {
                prefixes.push(prefix);
            }
        }
        advertised
    }

    /// Writes the answer about a name; `before` are the replies whose aliases led to it. AA is set, as this server is
    /// authoritative for the zone (RFC 8880 section 7.1, item 4). Behind an alias it is not set: AA is about the first name
    /// only (RFC 1035 section 4.1.1).
    pub fn write<'m>(
        &self,
        frame: &mut [u8],
        params: &ResponseParams<'_>,
        name: &'m [u8],
        before: &'m [Vec<u8>],
    ) -> Written {
        let rcode = if self.data == ZoneData::NxDomain { Rcode::NXDOMAIN } else { Rcode::NOERROR };
        let flags = params.flags(rcode, false);
        let flags = if before.is_empty() { flags.with(Flags::AA) } else { flags };
        let mut response = ResponseBuilder::start(frame, params, flags, None);
        response.lead(before);
        response.begin_rrset();
        let (Some(owner), Some(apex)) = (Name::from_wire(name), Name::from_wire(&name[self.apex..])) else {
            return response.finish(params, Rcode::SERVFAIL, None);
        };
        let arpa = &self.dns64.arpa;
        // In lower case: clients mix the case of the question.
        let room = &mut [0; wire::MAX_NAME];
        let zone = &mut room[..name.len() - self.apex];
        zone.copy_from_slice(&name[self.apex..]);
        zone.make_ascii_lowercase();
        let (ttl, server) = match self.authority {
            ZoneAuthority::Configured => (ARPA_TTL, &arpa.server[..]),
            ZoneAuthority::Empty => (EMPTY_ZONE_TTL, &zone[..]),
        };
        let advertised = (self.data == ZoneData::Aaaa).then(|| self.prefixes());
        let lack = advertised.as_ref().and_then(Advertised::lack);
        let ttl = match &advertised {
            Some(_) if lack.is_some() => NO_GATEWAY_TTL,
            Some(advertised) => ttl.min(advertised.longest_ttl),
            None => ttl,
        };
        let prefixes = advertised.map(|advertised| advertised.prefixes).unwrap_or_default();
        let room = &mut [0; SOA_RDATA];
        let soa = soa(server, &arpa.contact, ttl, room);
        self.write_records(&mut response, owner, apex, &prefixes, AuthorityData { ttl, server, soa });
        let written = response.finish(params, rcode, None);
        match lack {
            Some(lack) => append_text(frame, params, written, extended_error(lack)),
            None => written,
        }
    }

    /// Writes the records of the answer: those of the name `owner`, and of the zone `apex`. `prefixes`: those of which the client learns.
    fn write_records<'m>(
        &self,
        response: &mut ResponseBuilder<'_, 'm>,
        owner: Name<'m>,
        apex: Name<'m>,
        prefixes: &[Pref64],
        authority: AuthorityData<'_>,
    ) {
        let AuthorityData { ttl, server, soa } = authority;
        match self.data {
            // RFC 2308 section 3.
            ZoneData::NxDomain | ZoneData::NoData => {
                response.record(Section::Authority, apex, Type::SOA, ttl, soa);
            }
            ZoneData::A => {
                for address in WELL_KNOWN {
                    response.record(Section::Answer, owner, Type::A, ttl, &address);
                }
            }
            ZoneData::Aaaa => {
                if prefixes.is_empty() {
                    response.record(Section::Authority, apex, Type::SOA, ttl, soa);
                }
                //= RFC 7050 section 3: requirement 40; whatever is left out elsewhere, clients learn the prefixes so.
                for (address, prefix) in
                    WELL_KNOWN.iter().flat_map(|v4| prefixes.iter().map(move |p| (*v4, p)))
                {
                    response.record(Section::Answer, owner, Type::AAAA, ttl, &prefix.embed(address));
                }
            }
            ZoneData::Soa => response.record(Section::Answer, apex, Type::SOA, ttl, soa),
            ZoneData::Ns => response.record(Section::Answer, apex, Type::NS, ttl, server),
            ZoneData::Loopback4 => response.record(Section::Answer, owner, Type::A, ttl, &[127, 0, 0, 1]),
            ZoneData::Loopback6 => {
                response.record(Section::Answer, owner, Type::AAAA, ttl, &Ipv6Addr::LOCALHOST.octets());
            }
            // RDATA has the form of TXT, with key and value pairs (RFC 9606 section 4).
            ZoneData::ResolverInfo => {
                response.record(Section::Answer, owner, Type::RESINFO, ARPA_TTL, b"\x05dns64");
            }
            ZoneData::Pointer(target) => response.record(Section::Answer, owner, Type::PTR, ttl, target),
            ZoneData::Alias(address) | ZoneData::AliasToPointer(address) => {
                let target = InAddr::new(address);
                response.record(Section::Answer, owner, Type::CNAME, ALIAS_TTL, target.wire());
                if let (ZoneData::AliasToPointer(_), Some(target)) =
                    (self.data, Name::from_wire(target.wire()))
                {
                    response.begin_rrset();
                    response.record(Section::Answer, target, Type::PTR, ttl, IPV4ONLY);
                }
            }
        }
    }
}
