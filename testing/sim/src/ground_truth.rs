//! The true data: the names of a world, and the records of each name at a point in time. Upstreams that work return exactly
//! these data, and the oracle knows no others. An address encodes its name and its time, so data in a wrong place are
//! recognised.

use crate::prefix::Prefix;
use crate::reverse_name::{in_addr, ip6};
use crate::rng::Rng;
use splitmix::mix;

/// Number of a name.
pub type NameId = u32;

/// A second of the virtual clock, in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;
/// A millisecond, in nanoseconds.
pub const MILLI: u64 = 1_000_000;

/// RR type A.
pub const A: u16 = 1;
/// RR type NS.
pub const NS: u16 = 2;
/// RR type CNAME.
pub const CNAME: u16 = 5;
/// RR type SOA.
pub const SOA: u16 = 6;
/// RR type PTR.
pub const PTR: u16 = 12;
/// RR type TXT.
pub const TXT: u16 = 16;
/// RR type AAAA.
pub const AAAA: u16 = 28;
/// RR type OPT.
pub const OPT: u16 = 41;
/// RR type RRSIG.
pub const RRSIG: u16 = 46;

/// The kind of data of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only IPv4 addresses.
    V4,
    /// Only IPv6 addresses.
    V6,
    /// IPv4 and IPv6 addresses.
    Both,
    /// IPv4 addresses, and IPv6 addresses that are excluded (RFC 6147 section 5.1.4).
    Excluded,
    /// IPv4 addresses, IPv6 addresses that are excluded, and one that is not.
    Mixed,
    /// By turns IPv4 addresses only, and addresses of both families.
    Flip,
    /// No addresses: NODATA.
    Nothing,
    /// No such name: NXDOMAIN.
    Missing,
    /// An alias whose target is in the upstream's reply.
    Alias(NameId),
    /// An alias at which the upstream's reply ends.
    Loose(NameId),
    /// One of two aliases of each other.
    Loop(NameId),
    /// More IPv4 addresses than a small message can hold.
    Many,
    /// Validation fails.
    Bogus {
        /// The reply has the extended DNS error "DNSSEC Bogus".
        told: bool,
    },
    /// IPv4 addresses that are not global.
    Private,
    /// The reverse name of an IPv6 address that may be under a prefix.
    Reverse([u8; 16]),
    /// The reverse name of an IPv4 address.
    InAddr([u8; 4]),
    /// `ipv4only.arpa` (RFC 7050).
    Ipv4Only,
    /// IPv4 addresses that are never embedded, with or without one that may be.
    Never {
        /// All addresses are of this kind.
        alone: bool,
    },
}

/// One name.
#[derive(Debug)]
pub struct Name {
    /// In wire form, lower case.
    pub wire: Vec<u8>,
    /// Kind of its data.
    pub kind: Kind,
    /// TTL of its records, seconds, as in messages.
    pub ttl: u32,
    /// TTL and MINIMUM of the SOA record of its zone in negative replies; none: these have no SOA record.
    pub soa: Option<(u32, u32)>,
    /// Interval at which its addresses change, nanoseconds; 0: they never change.
    period: u64,
    /// Its zone is signed.
    pub signed: bool,
}

/// All true data.
#[derive(Debug)]
pub struct GroundTruth {
    /// The ordinary names by number.
    pub names: Vec<Name>,
    /// The names under `arpa`, whose numbers begin at [`FIRST_ARPA_ID`].
    arpa_names: Vec<Name>,
}

/// Number of the first name under `arpa`.
pub const FIRST_ARPA_ID: NameId = 1 << 20;

/// The content of a well-formed reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// RCODE.
    pub rcode: u8,
    /// CNAME records in order: owner, target, TTL.
    pub edges: Vec<(NameId, NameId, u32)>,
    /// The CNAME records are a loop.
    pub is_loop: bool,
    /// A records at the end of the chain.
    pub v4: Vec<[u8; 4]>,
    /// AAAA records at the end of the chain.
    pub v6: Vec<[u8; 16]>,
    /// Target of the PTR record.
    pub pointer: Option<NameId>,
    /// TTL of the records at the end of the chain.
    pub ttl: u32,
    /// TTL and MINIMUM of the SOA record in the authority section.
    pub soa: Option<(u32, u32)>,
    /// AD.
    pub ad: bool,
    /// Extended DNS error.
    pub ede: Option<u16>,
    /// TC.
    pub cut: bool,
    /// The records at the end of the chain are signed.
    pub signed: bool,
    /// The reply is a referral.
    pub lame: bool,
}

impl Said {
    /// The name at the end of the chain.
    pub fn end(&self, asked: NameId) -> NameId {
        if self.is_loop {
            return asked;
        }
        self.edges.last().map_or(asked, |edge| edge.1)
    }

    /// True if the reply ends at a CNAME record and does not deny data of its target.
    pub fn is_unfinished(&self) -> bool {
        self.rcode == 0
            && !self.edges.is_empty()
            && !self.is_loop
            && self.v4.is_empty()
            && self.v6.is_empty()
            && self.pointer.is_none()
            && self.soa.is_none()
    }

    /// True if the reply has records of the type that was asked for.
    pub fn is_answer(&self, rtype: u16) -> bool {
        rtype == A && !self.v4.is_empty() || rtype == AAAA && !self.v6.is_empty() || self.pointer.is_some()
    }

    /// The reply as it counts. A referral in reply to a recursive query (`rd`), and a truncated message over TCP, are failures
    /// of the server; a client gets SERVFAIL with the extended DNS error "No Reachable Authority".
    pub fn effective(self, over_udp: bool, rd: bool) -> Said {
        match self.lame && rd || self.cut && !over_udp {
            true => Said { rcode: 2, ede: Some(22), ..Said::default() },
            false => self,
        }
    }

    /// True if the reply has no data and does not deny them.
    pub fn is_failure(&self) -> bool {
        !matches!(self.rcode, 0 | 3)
    }
}

/// The zones in wire form. Names of the last one have upstream servers of their own.
pub const ZONES: [&[u8]; 4] =
    [b"\x05alpha\x04test\x00", b"\x06legacy\x04test\x00", b"\x06ignore\x04test\x00", b"\x04corp\x04test\x00"];

/// The number of the zone of a name in [`ZONES`].
pub fn zone_of(name: NameId) -> usize {
    match name % 16 {
        _ if name >= FIRST_ARPA_ID => 0,
        0 => 1,
        5 => 2,
        10 => 3,
        _ => 0,
    }
}

impl GroundTruth {
    /// Draws this many names, and those under `arpa`.
    pub fn new(count: u32, rng: &mut Rng) -> GroundTruth {
        let odd_share = *rng.choose(&[0, 30, 200]);
        let mut names: Vec<Name> = (0..count).map(|number| name(number, odd_share, rng)).collect();
        for number in 1..count as usize {
            // Two aliases of each other.
            if names[number].kind == Kind::Loop(number as u32) {
                names[number].kind = Kind::Loop(number as u32 - 1);
                names[number - 1].kind = Kind::Loop(number as u32);
            }
        }
        let mut arpa_names = vec![arpa_name(b"\x08ipv4only\x04arpa\x00".to_vec(), Kind::Ipv4Only)];
        for number in 0..6 {
            let prefix = Prefix::draw(rng, number % 3);
            let address = prefix.embed([44, number, rng.next_u64() as u8, rng.next_u64() as u8]);
            arpa_names.push(arpa_name(ip6(address), Kind::Reverse(address)));
            // The prefix that will contain the address depends on the configuration, so there is a target for each length.
            for length in [32, 40, 48, 56, 64, 96] {
                if let Some(v4) = (Prefix { length, ..prefix }).extract(&address) {
                    arpa_names.push(arpa_name(in_addr(v4), Kind::InAddr(v4)));
                }
            }
        }
        let mut known = std::collections::HashSet::new();
        arpa_names.retain(|name| known.insert(name.wire.clone()));
        GroundTruth { names, arpa_names }
    }

    /// A name by its number.
    pub fn name(&self, number: NameId) -> &Name {
        match number.checked_sub(FIRST_ARPA_ID) {
            Some(place) => &self.arpa_names[place as usize],
            None => &self.names[number as usize],
        }
    }

    /// The numbers of the names under `arpa`.
    pub fn arpa_ids(&self) -> core::ops::Range<NameId> {
        FIRST_ARPA_ID..FIRST_ARPA_ID + self.arpa_names.len() as NameId
    }

    /// The zone of a name in wire form.
    pub fn zone(number: NameId) -> &'static [u8] {
        if number >= FIRST_ARPA_ID { b"\x04arpa\x00" } else { ZONES[zone_of(number)] }
    }

    /// The number of a name in wire form, lower case.
    pub fn find(&self, wire: &[u8]) -> Option<NameId> {
        if wire.ends_with(b"\x04arpa\x00") {
            let place = self.arpa_names.iter().position(|name| name.wire == wire)?;
            return Some(FIRST_ARPA_ID + place as NameId);
        }
        let digits = wire.get(2..7)?;
        let number = digits.iter().try_fold(0u32, |number, &digit| {
            digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0'))
        })?;
        self.names.get(number as usize).filter(|name| name.wire == wire).map(|_| number)
    }

    /// The reply of an upstream that works. `bits`: flags and DO of the query.
    pub fn reply_to(&self, asked: NameId, rtype: u16, at: u64, bits: Bits) -> Said {
        let mut said = Said::default();
        let mut end = asked;
        let mut secure = true;
        loop {
            let name = self.name(end);
            secure &= name.signed;
            match name.kind {
                Kind::Alias(target) | Kind::Loose(target) | Kind::Loop(target) if rtype != CNAME => {
                    said.edges.push((end, target, name.ttl));
                    if matches!(name.kind, Kind::Loop(_)) && target == asked {
                        said.is_loop = true;
                        return said;
                    }
                    // A loop that does not contain the query name: the upstream gives up.
                    if matches!(name.kind, Kind::Loop(_)) && said.edges.len() > 12 {
                        return Said { rcode: 2, ..Said::default() };
                    }
                    end = target;
                    if matches!(name.kind, Kind::Loose(_)) {
                        return said;
                    }
                }
                _ => break,
            }
        }
        let name = self.name(end);
        if let Kind::Bogus { told } = name.kind
            && !bits.cd
        {
            return Said { rcode: 2, ede: told.then_some(6), ..Said::default() };
        }
        let is_missing = match name.kind {
            Kind::Missing | Kind::Reverse(_) => true,
            Kind::InAddr(v4) => v4[3] % 2 == 0,
            _ => false,
        };
        said.rcode = if is_missing { 3 } else { 0 };
        said.ttl = name.ttl;
        match rtype {
            A => said.v4 = self.v4(end, at),
            AAAA => said.v6 = self.v6(end, at),
            PTR if !is_missing && matches!(name.kind, Kind::InAddr(_)) => {
                said.pointer = Some(NameId::from(name.wire[1]) % self.names.len() as NameId);
            }
            _ => {}
        }
        let is_empty = said.v4.is_empty() && said.v6.is_empty() && said.pointer.is_none();
        if is_empty {
            said.soa = name.soa;
        }
        said.ad = secure && !bits.cd && (bits.ad || bits.dnssec_ok);
        said.signed = name.signed && bits.dnssec_ok && !is_empty;
        said
    }

    fn version(&self, number: NameId, at: u64) -> u64 {
        let period = self.name(number).period;
        // The shift makes names change at different times.
        let shift = mix(u64::from(number)).checked_rem(period).unwrap_or(0);
        (at + shift).checked_div(period).unwrap_or(0)
    }

    fn v4(&self, number: NameId, at: u64) -> Vec<[u8; 4]> {
        let version = self.version(number, at) as u8;
        let of = |first: u8| [first, (number >> 8) as u8, number as u8, version];
        match self.name(number).kind {
            Kind::Ipv4Only => vec![[192, 0, 0, 170], [192, 0, 0, 171]],
            Kind::V4 | Kind::Excluded | Kind::Mixed | Kind::Flip | Kind::Bogus { .. } => {
                (0..1 + number as u8 % 3).map(|place| of(44 + place)).collect()
            }
            Kind::Both => vec![of(44)],
            // One address is twice there: equal records are one (RFC 2181 section 5).
            Kind::Many => (0..40).map(|place| of(44 + place)).chain([of(44)]).collect(),
            Kind::Private => vec![of(10), of(44)],
            Kind::Never { alone } => {
                let mut all = vec![of(127)];
                all.extend((!alone).then(|| of(44)));
                all
            }
            _ => vec![],
        }
    }

    fn v6(&self, number: NameId, at: u64) -> Vec<[u8; 16]> {
        let version = self.version(number, at);
        let of = |last: u8| {
            [
                0x20,
                1,
                0xd,
                0xb8,
                0,
                6,
                0,
                0,
                0,
                0,
                (number >> 8) as u8,
                number as u8,
                0,
                0,
                version as u8,
                last,
            ]
        };
        let mapped = {
            let mut address = [0u8; 16];
            address[10..12].fill(0xff);
            address[12..].copy_from_slice(&[44, (number >> 8) as u8, number as u8, version as u8]);
            address
        };
        match self.name(number).kind {
            Kind::V6 | Kind::Both => (0..1 + number as u8 % 2).map(of).collect(),
            Kind::Flip if version % 2 == 1 => vec![of(0)],
            Kind::Excluded => vec![mapped],
            Kind::Mixed => vec![mapped, of(1)],
            _ => vec![],
        }
    }
}

/// Flags of a query, with DO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Bits {
    /// Recursion desired.
    pub rd: bool,
    /// Checking disabled.
    pub cd: bool,
    /// The requestor understands AD.
    pub ad: bool,
    /// DNSSEC OK.
    pub dnssec_ok: bool,
}

impl Bits {
    /// The flags as a number below 16.
    pub fn number(self) -> u64 {
        u64::from(self.rd)
            | u64::from(self.cd) << 1
            | u64::from(self.ad) << 2
            | u64::from(self.dnssec_ok) << 3
    }
}

fn arpa_name(wire: Vec<u8>, kind: Kind) -> Name {
    Name { wire, kind, ttl: 30, soa: Some((60, 20)), period: 0, signed: false }
}

fn name(number: u32, odd_share: u64, rng: &mut Rng) -> Name {
    let target = rng.below(u64::from(number.max(1))) as u32;
    let kind = match rng.below(100) {
        0..24 => Kind::V4,
        24..32 => Kind::V6,
        32..44 => Kind::Both,
        44..50 => Kind::Excluded,
        50..55 => Kind::Mixed,
        55..62 => Kind::Flip,
        62..67 => Kind::Nothing,
        67..73 => Kind::Missing,
        73..80 if number > 0 => Kind::Alias(target),
        80..84 if number > 0 => Kind::Loose(target),
        84..86 if number > 0 => Kind::Loop(number),
        86..89 => Kind::Many,
        89..92 => Kind::Bogus { told: rng.permille(500) },
        92..96 => Kind::Private,
        96..98 => Kind::Never { alone: rng.permille(500) },
        _ => Kind::V4,
    };
    let ttl = |rng: &mut Rng| match rng.permille(odd_share) {
        true => *rng.choose(&[0, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 604_800]),
        false => *rng.choose(&[1, 2, 5, 5, 10, 30, 60, 300, 3600]),
    };
    let letters = b"abcdefghijklmnopqrstuvwxyz";
    let mut label = format!("n{number:05}").into_bytes();
    label.extend((0..4 + rng.below(8)).map(|_| *rng.choose(letters)));
    let mut wire = vec![label.len() as u8];
    wire.extend(label);
    wire.extend(ZONES[zone_of(number)]);
    Name {
        wire,
        kind,
        ttl: ttl(rng),
        soa: (!rng.permille(100)).then(|| (ttl(rng), ttl(rng))),
        period: *rng.choose(&[0, 3, 7, 20, 100]) * SECOND,
        signed: rng.permille(400),
    }
}
