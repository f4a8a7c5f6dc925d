//! Generator of random questions and of the zone data that the upstream has for them. Every case has its own zones,
//! so that no server can answer one case from the cache entries of another.

use super::case::{Case, FinalData, Indirection, Ipv4OnlyQuestion, QuestionKind, ReverseData, UpstreamKind};
use super::rng::Rng;
use super::zone_data::{Fault, Zone, ZoneData, parsed};
use crate::message::{Flag, Transport};
use crate::query::{Edns, Query};
use crate::record::{OwnedName, Record};
use domain::base::iana::{Class, Opcode, Rcode, Rtype};
use domain::base::{Name, ToName};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// TTLs near the limits of servers and RFCs, with their weights: 600 s (RFC 6147 section 5.1.7), an hour, a day and a
/// week (common limits of caches), and the largest (RFC 2181 section 8).
const TTLS: [(u32, u32); 13] = [
    (2, 0),
    (3, 1),
    (5, 5),
    (10, 30),
    (10, 60),
    (30, 300),
    (4, 599),
    (4, 600),
    (4, 601),
    (10, 3600),
    (6, 86_400),
    (2, 100_000),
    (1, 2_147_483_647),
];

/// A run: its cases and the zone data for them.
#[derive(Debug)]
pub struct Plan {
    /// Cases, in the order in which they are asked.
    pub cases: Vec<Case>,
    /// Zone data of the upstream.
    pub zone_data: ZoneData,
}

impl Plan {
    /// Draws `names` cases with `seed`. `silence`: some upstreams do not answer, which takes time.
    pub fn draw(names: usize, seed: u64, silence: bool) -> Plan {
        let mut draft = Generator { rng: Rng::new(seed), zone_data: ZoneData::default(), silence };
        draft.special_zones();
        let cases = (0..names).map(|number| draft.case(number)).collect();
        Plan { cases, zone_data: draft.zone_data }
    }
}

struct Generator {
    rng: Rng,
    zone_data: ZoneData,
    silence: bool,
}

impl Generator {
    /// Adds `ipv4only.arpa` as the Internet has it (RFC 7050 section 8.2), for servers that look it up.
    fn special_zones(&mut self) {
        let soa =
            parsed("ipv4only.arpa. 3600 IN SOA ns.invalid. hostmaster.invalid. 1 7200 3600 604800 3600");
        self.zone_data.add_zone(name("ipv4only.arpa."), Zone { soa: Some(soa), ..Zone::default() });
        let addresses = ["192.0.0.170", "192.0.0.171"];
        let records = addresses.map(|address| parsed(&format!("ipv4only.arpa. 3600 IN A {address}")));
        self.zone_data.add(&name("ipv4only.arpa."), records.to_vec());
    }

    fn case(&mut self, number: usize) -> Case {
        match self.rng.below(1000) {
            0..20 => self.ipv4only(number),
            20..100 => self.reverse(number),
            100..220 => self.forward(number, false),
            _ => self.forward(number, true),
        }
    }

    fn ttl(&mut self) -> u32 {
        self.rng.weighted(&TTLS)
    }

    /// Draws a question for AAAA, or for another type, of a name with addresses.
    fn forward(&mut self, number: usize, for_aaaa: bool) -> Case {
        let indirection = self.rng.weighted(&[
            (48, Indirection::Itself),
            (24, Indirection::Aliases),
            (14, Indirection::Unfinished),
            (8, Indirection::Dname),
            (6, Indirection::Wildcard),
        ]);
        let final_data = self.rng.weighted(&[
            (180, FinalData::Real),
            (350, FinalData::Ipv4Only),
            (60, FinalData::Excluded),
            (15, FinalData::ExcludedAlone),
            (60, FinalData::Mixed),
            (25, FinalData::OwnPrefix),
            (60, FinalData::Nothing),
            (60, FinalData::NxDomain),
            (25, FinalData::NxDomainForAaaa),
            (45, FinalData::AaaaFails),
            (35, FinalData::AFails),
            (15, FinalData::NxDomainForA),
            (35, FinalData::NonGlobal),
            (35, FinalData::PartlyGlobal),
            (20, FinalData::Unreachable),
        ]);
        let upstream_kind = self.upstream_kind(final_data);
        // A wildcard matches every name, so it cannot give NXDOMAIN.
        let indirection = if indirection == Indirection::Wildcard && final_data == FinalData::NxDomain {
            Indirection::Itself
        } else {
            indirection
        };
        let zone = self.zone(&format!("c{number}"), upstream_kind, indirection == Indirection::Unfinished);
        // The final name may be in another zone, with another SOA. Either zone may be signed or not.
        let is_far = indirection != Indirection::Itself
            && indirection != Indirection::Wildcard
            && self.rng.percent(40);
        let end_zone =
            if is_far { self.zone(&format!("d{number}"), upstream_kind, false) } else { zone.clone() };
        let (asked, end_name) = self.indirection(indirection, &zone, &end_zone);
        let node = if indirection == Indirection::Wildcard { wildcard_of(&end_name) } else { end_name };
        self.add_final_data(final_data, upstream_kind, &node);
        let rtype = if for_aaaa { Rtype::AAAA } else { self.other_type(&node) };
        let kind = if for_aaaa {
            QuestionKind::Aaaa(indirection, final_data)
        } else {
            QuestionKind::Other(indirection, final_data)
        };
        let query = self.query(asked, rtype);
        Case { number, kind, upstream_kind, query }
    }

    /// Draws the kind of failure, if one query of the name fails.
    fn upstream_kind(&mut self, final_data: FinalData) -> UpstreamKind {
        if !matches!(final_data, FinalData::AaaaFails | FinalData::AFails) {
            return UpstreamKind::Ordinary;
        }
        // Silence costs seconds for each name and server.
        if self.silence && self.rng.percent(4) {
            return UpstreamKind::Silent;
        }
        self.rng.pick(&[
            UpstreamKind::ServFail,
            UpstreamKind::Refused,
            UpstreamKind::NotImp,
            UpstreamKind::FormErr,
        ])
    }

    /// Adds a new zone to an upstream.
    fn zone(&mut self, label: &str, upstream_kind: UpstreamKind, unfinished: bool) -> OwnedName {
        let parent = if upstream_kind == UpstreamKind::Ordinary { "example." } else { upstream_kind.zone() };
        let apex = name(&format!("{label}.{parent}"));
        let soa = (!self.rng.percent(8)).then(|| (self.ttl(), self.ttl()));
        let signed = self.rng.percent(20);
        let secure = signed && self.rng.percent(70);
        let record = soa.map(|(ttl, minimum)| {
            parsed(&format!(
                "{} {ttl} IN SOA ns.invalid. hostmaster.invalid. 1 7200 3600 604800 {minimum}",
                apex.fmt_with_dot()
            ))
        });
        self.zone_data.add_zone(apex.clone(), Zone { soa: record, signed, secure, unfinished });
        apex
    }

    /// Adds the way to the final name; returns the name in the question and the final name.
    fn indirection(
        &mut self,
        indirection: Indirection,
        zone: &OwnedName,
        end: &OwnedName,
    ) -> (OwnedName, OwnedName) {
        match indirection {
            Indirection::Itself | Indirection::Wildcard => {
                let asked = self.name_in(zone);
                (asked.clone(), asked)
            }
            Indirection::Aliases | Indirection::Unfinished => {
                let asked = self.name_in(zone);
                let hops = self.rng.weighted(&[(50, 1), (25, 2), (15, 3), (10, 5)]);
                let mut from = asked.clone();
                for hop in 1..=hops {
                    let to = below(&format!("hop{hop}"), if hop == hops { end } else { zone });
                    self.alias(&from, &to);
                    from = to;
                }
                (asked, from)
            }
            Indirection::Dname => {
                let (owner, target) = (below("old", zone), below("new", end));
                let (ttl, into) = (self.ttl(), target.fmt_with_dot());
                let dname = parsed(&format!("{} {ttl} IN DNAME {into}", owner.fmt_with_dot()));
                self.zone_data.add(&owner, vec![dname]);
                (below("host", &owner), below("host", &target))
            }
        }
    }

    fn alias(&mut self, from: &OwnedName, to: &OwnedName) {
        let (owner, ttl, target) = (from.fmt_with_dot(), self.ttl(), to.fmt_with_dot().to_string());
        // Letter case does not matter (RFC 4343).
        let target = if self.rng.percent(20) { target.to_ascii_uppercase() } else { target };
        self.zone_data.add(from, vec![parsed(&format!("{owner} {ttl} IN CNAME {target}"))]);
    }

    /// Draws a name in a zone: mostly plain, sometimes with unusual octets or of maximum length.
    fn name_in(&mut self, apex: &OwnedName) -> OwnedName {
        let plain = ["www", "mail", "a", "host-7", "x--y", "_service", "0", "192-0-2-1"];
        let odd = ["a b", "dot\\.dot", "\\000", "\\255\\254", "*x", "\\\"quoted\\\"", "under_score", "\\@"];
        match self.rng.below(100) {
            0..80 => below(self.rng.pick(&plain), apex),
            80..86 => below(&self.rng.pick(&odd).replace(' ', "\\032"), apex),
            86..92 => below("deep", &below("below", &below("far", apex))),
            _ => {
                let mut name = apex.clone();
                while name.len() + 64 <= 255 {
                    name = below(&"l".repeat(63), &name);
                }
                match 255 - name.len() {
                    0 | 1 => name,
                    left => below(&"m".repeat(left - 1), &name),
                }
            }
        }
    }

    /// Adds the data of the final name.
    fn add_final_data(&mut self, final_data: FinalData, upstream_kind: UpstreamKind, node: &OwnedName) {
        let (mut aaaa, mut a): (Vec<Ipv6Addr>, Vec<Ipv4Addr>) = (Vec::new(), Vec::new());
        let fault = upstream_kind.rcode().map_or(Fault::Silence, Fault::Rcode);
        match final_data {
            FinalData::Real => {
                aaaa = self.real(4);
                let several = self.rng.below(3);
                a = self.global(several);
            }
            FinalData::Ipv4Only => {
                let several = self.rng.weighted(&[(70, 1), (20, 2), (6, 5), (2, 13), (2, 40)]);
                a = self.global(several);
            }
            FinalData::Excluded => {
                aaaa = self.mapped();
                a = self.global(2);
            }
            FinalData::ExcludedAlone => aaaa = self.mapped(),
            FinalData::Mixed => {
                aaaa = self.mapped();
                aaaa.extend(self.real(2));
                a = self.global(1);
            }
            FinalData::OwnPrefix => {
                let embedded = self.global(1)[0];
                aaaa = vec![super::embed(embedded)];
                a = self.global(1);
            }
            FinalData::Nothing => self
                .zone_data
                .add(node, vec![parsed(&format!("{} 300 IN HINFO no addresses", node.fmt_with_dot()))]),
            FinalData::NxDomain => {}
            FinalData::NxDomainForAaaa | FinalData::AaaaFails => {
                let fault =
                    if final_data == FinalData::AaaaFails { fault } else { Fault::Rcode(Rcode::NXDOMAIN) };
                self.zone_data.fail(node, Rtype::AAAA, fault);
                a = self.global(2);
            }
            FinalData::AFails | FinalData::NxDomainForA => {
                let fault =
                    if final_data == FinalData::AFails { fault } else { Fault::Rcode(Rcode::NXDOMAIN) };
                self.zone_data.fail(node, Rtype::A, fault);
            }
            FinalData::NonGlobal => a = self.non_global(),
            FinalData::PartlyGlobal => {
                a = self.non_global();
                a.extend(self.global(2));
            }
            FinalData::Unreachable => {
                let several =
                    [[127, 0, 0, 1], [0, 0, 0, 0], [169, 254, 7, 7], [224, 0, 0, 251], [255, 255, 255, 255]];
                a = vec![self.rng.pick(&several).into()];
            }
        }
        self.add_addresses(node, &aaaa, &a);
    }

    /// Adds AAAA and A records to a name.
    fn add_addresses(&mut self, node: &OwnedName, aaaa: &[Ipv6Addr], a: &[Ipv4Addr]) {
        let (owner, aaaa_ttl, a_ttl) = (node.fmt_with_dot(), self.ttl(), self.ttl());
        let aaaa = aaaa.iter().map(|data| format!("{owner} {aaaa_ttl} IN AAAA {data}"));
        let a = a.iter().map(|data| format!("{owner} {a_ttl} IN A {data}"));
        let records: Vec<Record> = aaaa.chain(a).map(|text| parsed(&text)).collect();
        if !records.is_empty() {
            self.zone_data.add(node, records);
        }
    }

    /// Draws global addresses, all different. The choice of first octets avoids 198.18.0.0/15 and similar networks.
    fn global(&mut self, several: u32) -> Vec<Ipv4Addr> {
        let first = self.rng.pick(&[1, 8, 23, 64, 93, 151, 185, 212]);
        let rest = self.rng.below(1 << 24);
        let address =
            |index: u32| Ipv4Addr::from(first << 24 | (rest.wrapping_add(index * 257)) & 0x00ff_ffff);
        (0..several).map(address).collect()
    }

    /// Draws addresses that are not global (RFC 6052 section 3.1, RFC 6890), but not [`FinalData::Unreachable`]
    /// either.
    fn non_global(&mut self) -> Vec<Ipv4Addr> {
        let networks: [[u8; 3]; 6] =
            [[10, 1, 2], [172, 16, 9], [192, 168, 1], [100, 64, 3], [198, 51, 100], [198, 18, 5]];
        let [a, b, c] = self.rng.pick(&networks);
        let last = u8::try_from(1 + self.rng.below(200)).expect("below 201");
        (0..1 + self.rng.below(2)).map(|index| Ipv4Addr::new(a, b, c, last + index as u8)).collect()
    }

    fn real(&mut self, most: u32) -> Vec<Ipv6Addr> {
        let base = 0x2001_0db8_u128 << 96 | u128::from(self.rng.below(1 << 16)) << 64;
        (0..1 + self.rng.below(most)).map(|index| Ipv6Addr::from(base + u128::from(index))).collect()
    }

    /// Draws IPv4-mapped addresses (RFC 6147 section 5.1.4).
    fn mapped(&mut self) -> Vec<Ipv6Addr> {
        let several = 1 + self.rng.below(2);
        self.global(several).into_iter().map(|address| address.to_ipv6_mapped()).collect()
    }

    /// Draws a type other than AAAA; the name may have records of it or not.
    fn other_type(&mut self, node: &OwnedName) -> Rtype {
        let kinds = [
            ("MX", "10 mail.invalid."),
            ("TXT", "\"v=spf1 ip4:192.0.2.1 -all\""),
            ("HTTPS", "1 . alpn=\"h2\" ipv4hint=192.0.2.1"),
            ("SRV", "1 2 443 host.invalid."),
            ("NAPTR", "1 1 \"u\" \"x\" \"\" ."),
            ("CAA", "0 issue \"ca.invalid\""),
            ("TYPE65280", "\\# 2 abcd"),
        ];
        if self.rng.percent(45) {
            let types =
                [Rtype::A, Rtype::A, Rtype::ANY, Rtype::SOA, Rtype::NS, Rtype::MX, Rtype::DS, Rtype::CNAME];
            return self.rng.pick(&types);
        }
        let (rtype, data) = self.rng.pick(&kinds);
        // The record must not stand beside a CNAME; final names have none.
        let record = parsed(&format!("{} {} IN {rtype} {data}", node.fmt_with_dot(), self.ttl()));
        let rtype = record.rtype();
        self.zone_data.add(node, vec![record]);
        rtype
    }

    /// Draws a question for a reverse name.
    fn reverse(&mut self, number: usize) -> Case {
        let has = self.rng.weighted(&[
            (60, ReverseData::Pointer),
            (15, ReverseData::Delegated),
            (25, ReverseData::Missing),
        ]);
        let number32 = u32::try_from(number).expect("fewer than 16 million cases");
        // The number makes the address unique; the first octet keeps it out of the zones of RFC 6303.
        let address = Ipv4Addr::from(0x2d00_0000 | number32 & 0x00ff_ffff);
        let [a, b, c, d] = address.octets();
        let in_addr = name(&format!("{d}.{c}.{b}.{a}.in-addr.arpa."));
        let inside = Name::from_octets(reverse_name(super::embed(address))).expect("a reverse name");
        let (asked, owner, kind) = match self.rng.below(10) {
            0..6 => (inside, in_addr, QuestionKind::ReverseInside(has)),
            6..9 => {
                let outside = 0x2610_u128 << 112 | u128::from(number32);
                let outside = Name::from_octets(reverse_name(outside.into())).expect("a reverse name");
                (outside.clone(), outside, QuestionKind::ReverseOutside(has))
            }
            _ => {
                let near = if self.rng.percent(50) {
                    below("x", &inside)
                } else {
                    let labels = 1 + self.rng.below(4) as usize;
                    inside.iter_suffixes().nth(labels).expect("it has more labels").to_vec()
                };
                (near, in_addr, QuestionKind::ReverseNear)
            }
        };
        let apex = self.zone_at(owner.iter_suffixes().nth(1).expect("it has labels").to_vec());
        let pointer = |owner: &OwnedName, ttl| {
            vec![parsed(&format!("{} {ttl} IN PTR host{number}.example.", owner.fmt_with_dot()))]
        };
        let ttl = self.ttl();
        match has {
            ReverseData::Missing => {}
            ReverseData::Pointer => self.zone_data.add(&owner, pointer(&owner, ttl)),
            ReverseData::Delegated => {
                let target = below(&format!("d{number}"), &below("rev", &apex));
                self.alias(&owner, &target);
                self.zone_data.add(&target, pointer(&target, ttl));
            }
        }
        let query = self.query(asked, Rtype::PTR);
        Case { number, kind, upstream_kind: UpstreamKind::Ordinary, query }
    }

    /// Adds the zone of a reverse name. Cases may share it, so it has no random part: the order of creation does not
    /// matter.
    fn zone_at(&mut self, apex: OwnedName) -> OwnedName {
        let text = apex.fmt_with_dot().to_string();
        let record =
            parsed(&format!("{text} 3600 IN SOA ns.invalid. hostmaster.invalid. 1 7200 3600 604800 300"));
        if !self.zone_data.has_zone(&apex) {
            self.zone_data.add_zone(apex.clone(), Zone { soa: Some(record), ..Zone::default() });
        }
        apex
    }

    fn ipv4only(&mut self, number: usize) -> Case {
        let special = self.rng.weighted(&[
            (4, Ipv4OnlyQuestion::Aaaa),
            (2, Ipv4OnlyQuestion::A),
            (2, Ipv4OnlyQuestion::OtherType),
            (3, Ipv4OnlyQuestion::Below),
        ]);
        let apex = name("ipv4only.arpa.");
        let (asked, rtype) = match special {
            Ipv4OnlyQuestion::A => (apex.clone(), Rtype::A),
            Ipv4OnlyQuestion::Aaaa => (apex.clone(), Rtype::AAAA),
            Ipv4OnlyQuestion::OtherType => {
                (apex.clone(), self.rng.pick(&[Rtype::MX, Rtype::TXT, Rtype::HTTPS]))
            }
            Ipv4OnlyQuestion::Below => {
                (below(&format!("b{number}"), &apex), self.rng.pick(&[Rtype::AAAA, Rtype::A]))
            }
        };
        let query = self.query(asked, rtype);
        Case {
            number,
            kind: QuestionKind::Ipv4OnlyArpa(special),
            upstream_kind: UpstreamKind::Ordinary,
            query,
        }
    }

    /// Builds the query, with random flags and EDNS.
    fn query(&mut self, asked: OwnedName, rtype: Rtype) -> Query {
        let mut flags = vec![Flag::Rd];
        if self.rng.percent(12) {
            flags.push(Flag::Cd);
        }
        if self.rng.percent(20) {
            flags.push(Flag::Ad);
        }
        let edns = (!self.rng.percent(15)).then(|| Edns {
            udp: self.rng.pick(&[1232, 1232, 1232, 4096, 512]),
            dnssec_ok: self.rng.percent(25),
            version: 0,
            ecs: None,
            options: Vec::new(),
        });
        let name = if self.rng.percent(15) { self.in_odd_case(&asked) } else { asked };
        Query {
            name,
            rtype,
            class: Class::IN,
            flags,
            edns,
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
            transport: Transport::Udp,
            opcode: Opcode::QUERY,
            qdcount: 1,
            raw: None,
        }
    }

    fn in_odd_case(&mut self, name: &OwnedName) -> OwnedName {
        // Lengths of labels are below 64, so they are not letters.
        let flip = |octet: &u8| if self.rng.percent(50) { octet.to_ascii_uppercase() } else { *octet };
        Name::from_octets(name.as_slice().iter().map(flip).collect()).expect("the same lengths")
    }
}

fn name(text: &str) -> OwnedName {
    text.parse().expect("a name")
}

/// The name `label.parent`.
fn below(label: &str, parent: &OwnedName) -> OwnedName {
    let parent = parent.fmt_with_dot().to_string();
    name(&if parent == "." { format!("{label}.") } else { format!("{label}.{parent}") })
}

/// The wildcard that covers a name.
fn wildcard_of(covered: &OwnedName) -> OwnedName {
    below("*", &covered.iter_suffixes().nth(1).expect("it has labels").to_vec())
}

/// The name of an address under `ip6.arpa`, in wire form.
fn reverse_name(address: Ipv6Addr) -> Vec<u8> {
    let mut octets = Vec::new();
    for octet in address.octets().iter().rev() {
        for nibble in [octet & 15, octet >> 4] {
            octets.extend([1, char::from_digit(u32::from(nibble), 16).expect("a nibble") as u8]);
        }
    }
    octets.extend(b"\x03ip6\x04arpa\x00");
    octets
}
