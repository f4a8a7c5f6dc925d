//! Replies of a resolver that does not validate (RFC 4035 section 3.1, RFC 5155 section 7.2): chains of aliases, records with their signatures,
//! and the proofs of what they deny.

use crate::keyed_worlds::names::{Name, wildcard};
use crate::keyed_worlds::signer::{Key, Terms, rrsig};
use crate::keyed_worlds::tree::{
    Break, CNAME, DNAME, DNSKEY, Denial, Fate, Kind, NSEC, NSEC3, RRSIG, SOA, Source, Tree,
};

/// Record of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) owner: Name,
    pub(super) rtype: u16,
    pub(super) ttl: u32,
    pub(super) rdata: Vec<u8>,
}

/// Reply to a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) rcode: u8,
    pub(super) answer: Vec<Record>,
    pub(super) authority: Vec<Record>,
    pub(super) additional: Vec<Record>,
}

impl Reply {
    /// The reply as a message to a query, whose ID and question it repeats.
    pub(super) fn octets(&self, query: &[u8]) -> Vec<u8> {
        let end = kit::message::question_end(query).unwrap_or(query.len());
        let mut octets = query[..end].to_vec();
        let counts = [self.answer.len(), self.authority.len(), self.additional.len() + 1];
        octets[2..4].copy_from_slice(&[0x81, 0x90 | self.rcode]);
        for (place, count) in [6, 8, 10].into_iter().zip(counts) {
            octets[place..place + 2].copy_from_slice(&(count as u16).to_be_bytes());
        }
        for record in [&self.answer, &self.authority, &self.additional].into_iter().flatten() {
            octets.extend(kit::message::record(&record.owner, record.rtype, record.ttl, &record.rdata));
        }
        octets.extend([0, 0, 41, 0x10, 0, 0, 0, 0x80, 0, 0, 0]);
        octets
    }
}

/// Part of a denial.
enum Part<'n> {
    /// The record of this name itself.
    At(&'n [u8]),
    /// The record that says that this name does not exist.
    Over(&'n [u8]),
}

impl Tree {
    /// Reply to a question at a time in seconds.
    pub(super) fn reply(&self, name: &[u8], rtype: u16, secs: u64) -> Reply {
        let mut reply = Reply::default();
        let mut at = name.to_vec();
        for _ in 0..20 {
            let zone = self.zone_of(&at, rtype);
            if self.zones[zone].kind == Kind::Broken(Break::Mute) && rtype == DNSKEY {
                return Reply { rcode: 2, ..Reply::default() };
            }
            let (fate, source) = self.fate(zone, &at, rtype, secs);
            match fate {
                Fate::Alias(target) => {
                    self.answer(zone, &at, CNAME, &source, secs, &mut reply);
                    at = target;
                }
                Fate::Data(_) => {
                    self.answer(zone, &at, rtype, &source, secs, &mut reply);
                    break;
                }
                Fate::NoData | Fate::NoName => {
                    self.add_signed(
                        zone,
                        SOA,
                        (&self.zones[zone].apex, &self.zones[zone].apex),
                        secs,
                        &mut reply.authority,
                    );
                    self.deny(zone, &at, &source, secs, &mut reply.authority);
                    reply.rcode = if fate == Fate::NoName { 3 } else { 0 };
                    break;
                }
            }
        }
        reply
    }

    /// Adds the records of a name to the answer, with a proof if they come from a wildcard.
    fn answer(&self, zone: usize, name: &[u8], rtype: u16, source: &Source, secs: u64, reply: &mut Reply) {
        match source {
            Source::Exact => self.add_signed(zone, rtype, (name, name), secs, &mut reply.answer),
            Source::Wildcard(encloser) => {
                let star = wildcard(encloser);
                self.add_signed(zone, rtype, (&star, name), secs, &mut reply.answer);
                let next = next_closer(name, encloser);
                self.prove(zone, &[Part::Over(next)], secs, &mut reply.authority);
            }
            Source::Redirection(owner) => {
                self.add_signed(zone, DNAME, (owner, owner), secs, &mut reply.answer);
                if let Fate::Alias(target) = self.fate(zone, name, rtype, secs).0 {
                    let record = Record { owner: name.to_vec(), rtype: CNAME, ttl: self.ttl, rdata: target };
                    reply.answer.push(record);
                }
            }
            Source::Nowhere(_) => {}
        }
    }

    /// Proves that a name has no records of a type, or does not exist.
    fn deny(&self, zone: usize, name: &[u8], source: &Source, secs: u64, out: &mut Vec<Record>) {
        let is_hashed = matches!(self.zones[zone].denial, Denial::Nsec3 { .. });
        match source {
            Source::Exact if self.place_of_denial(zone, name).is_some() => {
                self.prove(zone, &[Part::At(name)], secs, out);
            }
            // An empty non-terminal.
            Source::Exact if !is_hashed => self.prove(zone, &[Part::Over(name)], secs, out),
            // An unsigned delegation that Opt-Out leaves out.
            Source::Exact => {
                let encloser = super::names::ancestors(name)
                    .skip(1)
                    .find(|it| self.place_of_denial(zone, it).is_some())
                    .unwrap_or(&self.zones[zone].apex);
                let parts = [Part::At(encloser), Part::Over(next_closer(name, encloser))];
                self.prove(zone, &parts, secs, out);
            }
            Source::Wildcard(encloser) => {
                let (star, next) = (wildcard(encloser), next_closer(name, encloser));
                match is_hashed {
                    true => {
                        self.prove(zone, &[Part::At(encloser), Part::Over(next), Part::At(&star)], secs, out)
                    }
                    false => self.prove(zone, &[Part::Over(name), Part::At(&star)], secs, out),
                }
            }
            Source::Nowhere(encloser) => {
                let (star, next) = (wildcard(encloser), next_closer(name, encloser));
                match is_hashed {
                    true => self.prove(
                        zone,
                        &[Part::At(encloser), Part::Over(next), Part::Over(&star)],
                        secs,
                        out,
                    ),
                    false => self.prove(zone, &[Part::Over(name), Part::Over(&star)], secs, out),
                }
            }
            Source::Redirection(_) => {}
        }
    }

    fn prove(&self, zone: usize, parts: &[Part<'_>], secs: u64, out: &mut Vec<Record>) {
        let data = &self.zones[zone];
        if !data.is_signed() {
            return;
        }
        for part in parts {
            let place = match (part, &data.denial) {
                (Part::At(name), _) => self.place_of_denial(zone, name),
                (Part::Over(name), Denial::Nsec) => {
                    let before = |(_, owner): &(Vec<u8>, Name)| super::names::compare(owner, name).is_lt();
                    data.chain.iter().rposition(before)
                }
                (Part::Over(name), Denial::Nsec3 { .. }) => {
                    let hash = data.hash(name);
                    // The last span leads back to the first.
                    data.chain.iter().rposition(|(owner, _)| *owner < hash).or(Some(data.chain.len() - 1))
                }
            };
            let Some(place) = place else { continue };
            let record = self.denial(zone, place, secs);
            if out.iter().all(|other| (&other.owner, other.rtype) != (&record.owner, record.rtype)) {
                self.add_with_signature(
                    zone,
                    (record.owner.clone(), record.owner.clone()),
                    record.rtype,
                    vec![record.rdata],
                    secs,
                    out,
                );
            }
        }
    }

    /// Number of links in the chain of denials of a zone.
    pub(super) fn denials(&self, zone: usize) -> usize {
        self.zones[zone].chain.len()
    }

    /// Place in the chain of denials of the link that a name owns.
    pub(super) fn place_of_denial(&self, zone: usize, name: &[u8]) -> Option<usize> {
        self.zones[zone].chain.iter().position(|(_, owner)| owner == name)
    }

    /// Adds a link of the chain of denials of a zone with its signature.
    pub(super) fn add_denial(&self, zone: usize, place: usize, secs: u64, out: &mut Vec<Record>) {
        let record = self.denial(zone, place, secs);
        let owner = record.owner.clone();
        self.add_with_signature(zone, (owner.clone(), owner), record.rtype, vec![record.rdata], secs, out);
    }

    /// NSEC or NSEC3 record at a place of the chain.
    fn denial(&self, zone: usize, place: usize, secs: u64) -> Record {
        let data = &self.zones[zone];
        let (hash, owner) = &data.chain[place];
        let (next_hash, next) = &data.chain[(place + 1) % data.chain.len()];
        let mut types = self.types(zone, owner, secs);
        let (record_owner, rtype, mut rdata) = match &data.denial {
            Denial::Nsec => {
                types.extend([RRSIG, NSEC]);
                (owner.clone(), NSEC, next.clone())
            }
            Denial::Nsec3 { opts_out, iterations, salt } => {
                // A delegation without DS records has no signature.
                if types.iter().any(|&rtype| rtype != super::tree::NS) {
                    types.push(RRSIG);
                }
                let mut rdata = vec![1, u8::from(*opts_out)];
                rdata.extend(iterations.to_be_bytes());
                rdata.push(salt.len() as u8);
                rdata.extend(salt);
                rdata.push(20);
                rdata.extend(next_hash);
                ([&base32(hash)[..], &data.apex].concat(), NSEC3, rdata)
            }
        };
        let mut bits = [0u8; 32];
        for rtype in types {
            bits[usize::from(rtype / 8)] |= 0x80 >> (rtype % 8);
        }
        let length = bits.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
        if length > 0 {
            rdata.extend([0, length as u8]);
            rdata.extend(&bits[..length]);
        }
        Record { owner: record_owner, rtype, ttl: self.ttl, rdata }
    }

    /// Adds the records of an owner under a name, with their signature.
    pub(super) fn add_signed(
        &self,
        zone: usize,
        rtype: u16,
        owners: (&[u8], &[u8]),
        secs: u64,
        out: &mut Vec<Record>,
    ) {
        let records = self.records(zone, owners.0, rtype, secs);
        self.add_with_signature(zone, (owners.0.to_vec(), owners.1.to_vec()), rtype, records, secs, out);
    }

    /// Adds records under a name, with the signature of their owner.
    fn add_with_signature(
        &self,
        zone: usize,
        (owner, shown): (Name, Name),
        rtype: u16,
        records: Vec<Vec<u8>>,
        secs: u64,
        out: &mut Vec<Record>,
    ) {
        let kind = self.zones[zone].kind;
        let record = |rtype, rdata| Record { owner: shown.clone(), rtype, ttl: self.ttl, rdata };
        let is_signed =
            self.zones[zone].is_signed() && (kind != Kind::Broken(Break::Unsigned) || rtype == DNSKEY);
        let signature = is_signed.then(|| {
            let keys = self.keys(zone, secs);
            let stranger = Key::new(!secs);
            let key = match (rtype, kind) {
                (DNSKEY, _) => &keys.entry,
                (_, Kind::Broken(Break::Key)) => &stranger,
                _ => &keys.data,
            };
            let tag = if rtype == DNSKEY { &keys.entry } else { &keys.data }.tag();
            rrsig(key, &self.terms(zone, rtype, tag, secs), &owner, rtype, &records)
        });
        out.extend(records.iter().cloned().map(|rdata| record(rtype, rdata)));
        out.extend(signature.map(|rdata| record(RRSIG, rdata)));
    }

    /// Terms of the signatures of a zone over a type. Zones are signed anew when half of their validity has passed.
    pub(super) fn terms(&self, zone: usize, rtype: u16, tag: u16, secs: u64) -> Terms {
        let data = &self.zones[zone];
        let at = self.base.wrapping_add((secs - secs % (self.validity / 2)) as u32);
        let (mut inception, mut expiration) = (at.wrapping_sub(3600), at.wrapping_add(self.validity as u32));
        match data.kind {
            Kind::Broken(Break::Expired) => expiration = at.wrapping_sub(1),
            Kind::Broken(Break::DataExpired) if rtype != DNSKEY => expiration = at.wrapping_sub(1),
            Kind::Broken(Break::Early) => {
                (inception, expiration) = (at.wrapping_add(10_000), at.wrapping_add(20_000));
            }
            _ => {}
        }
        Terms { ttl: self.ttl, inception, expiration, signer: data.apex.clone(), tag }
    }
}

/// The name one label longer than its closest encloser.
fn next_closer<'n>(name: &'n [u8], encloser: &[u8]) -> &'n [u8] {
    let longer = super::names::ancestors(name).take_while(|it| it.len() > encloser.len());
    longer.last().unwrap_or(name)
}

/// The label of a hash: base32 with the alphabet "extended hex" (RFC 4648 section 7).
fn base32(hash: &[u8]) -> Vec<u8> {
    let mut label = vec![32];
    for octets in hash.chunks(5) {
        let bits = octets.iter().fold(0u64, |bits, octet| bits << 8 | u64::from(*octet));
        label.extend(
            (0..8)
                .rev()
                .map(|place| b"0123456789abcdefghijklmnopqrstuv"[(bits >> (5 * place) & 31) as usize]),
        );
    }
    label
}
