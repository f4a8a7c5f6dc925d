//! Signatures of a world, with the fault in them.

use super::{PARENT, World, ZONE};
use crate::faults::{DsTwist, KeyTwist, Place, Plant, ProofTwist, Twist};
use crate::keys::{Fields, Key, Keys, signed_labels};
use crate::name::{Name, below, child, parent};
use crate::record::{Record, Rrset, rtype};
use crate::zone::{Denial, TTL};

impl World {
    /// RRset that the zone does not have, under an owner, with the signatures that the zone would give it.
    pub fn signed_by_zone(&self, set: &Rrset, owner: &[u8]) -> Vec<Record> {
        self.signed(ZONE, set, owner)
    }

    /// RRset under an owner, with its signatures.
    pub(super) fn signed(&self, zone: usize, set: &Rrset, owner: &[u8]) -> Vec<Record> {
        let mut records: Vec<Record> = set.records(owner).collect();
        if self.zones[zone].signs(set) {
            // Compact denial signs what it expands under the name that was asked for (RFC 9824 section 3).
            let is_compact = self.zones[zone].denial == Denial::Compact;
            let set = if is_compact { Rrset { owner: owner.to_vec(), ..set.clone() } } else { set.clone() };
            let source = records[0].clone();
            let rrsigs = self.signatures(zone, &set, &source.owner, &mut records);
            records.extend(rrsigs);
        }
        records
    }

    /// Signatures of an RRset, with the fault if it is there.
    fn signatures(&self, zone: usize, set: &Rrset, owner: &[u8], records: &mut [Record]) -> Vec<Record> {
        let Keys { entry, data } = self.keys(zone);
        let mut key = if set.rtype == rtype::DNSKEY { entry } else { data };
        if zone == ZONE && set.rtype == rtype::DNSKEY {
            key = match self.plant {
                Plant::Keys(KeyTwist::SignedByDataKey) => data,
                Plant::Keys(KeyTwist::SignedByStranger) | Plant::Ds(DsTwist::Sha1OfStranger) => {
                    &self.stranger
                }
                _ => key,
            };
        }
        let record = |rdata| Record { owner: owner.to_vec(), rtype: rtype::RRSIG, class: 1, ttl: TTL, rdata };
        let fields = self.fields(zone, set, key);
        match self.plant {
            Plant::Signature(place, twist) if self.is_at(place, zone, set) => {
                let rrsigs = self.twisted(zone, set, fields, (key, twist));
                let mut made: Vec<Record> = rrsigs.into_iter().map(record).collect();
                if twist == Twist::DataBit {
                    records[0].rdata[1] ^= 1;
                }
                if twist == Twist::Moved {
                    made.iter_mut().for_each(|rrsig| rrsig.owner = child("moved", self.apex()));
                }
                made
            }
            Plant::Proof(ProofTwist::UnsignedIterations) if zone == ZONE && set.rtype == rtype::NSEC3 => {
                vec![]
            }
            _ => vec![record(fields.sign(set, key))],
        }
    }

    pub(super) fn fields(&self, zone: usize, set: &Rrset, key: &Key) -> Fields {
        Fields {
            covered: set.rtype,
            algorithm: key.pair.algorithm(),
            labels: signed_labels(&set.owner) as u8,
            ttl: set.ttl,
            expiration: self.now.wrapping_add(100_000),
            inception: self.now.wrapping_sub(100_000),
            tag: key.tag(),
            signer: self.zones[zone].apex.clone(),
        }
    }

    fn is_at(&self, place: Place, zone: usize, set: &Rrset) -> bool {
        let of_zone = |labels: &str, rtype| {
            zone == ZONE && set.rtype == rtype && set.owner == below(labels, self.apex())
        };
        match place {
            Place::Address => of_zone("both", rtype::A),
            Place::Proof => zone == ZONE && matches!(set.rtype, rtype::NSEC | rtype::NSEC3),
            Place::Soa => zone == ZONE && set.rtype == rtype::SOA,
            Place::Alias => of_zone("chain", rtype::CNAME),
            // Compact denial signs the name that was expanded.
            Place::Wildcard => of_zone("*.wild", rtype::A) || of_zone("x.wild", rtype::A),
            Place::Redirection => of_zone("dname", rtype::DNAME),
            Place::Keys => zone == ZONE && set.rtype == rtype::DNSKEY,
            Place::Delegation => zone == PARENT && set.rtype == rtype::DS,
            Place::ParentKeys => zone == PARENT && set.rtype == rtype::DNSKEY,
        }
    }

    /// RDATA of signatures with a fault.
    fn twisted(&self, zone: usize, set: &Rrset, fields: Fields, (key, twist): (&Key, Twist)) -> Vec<Vec<u8>> {
        let good = || fields.sign(set, key);
        let with = |change: &dyn Fn(&mut Fields)| {
            let mut fields = fields.clone();
            change(&mut fields);
            fields.sign(set, key)
        };
        let altered = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut rdata = good();
            change(&mut rdata);
            rdata
        };
        let ago = |seconds| self.now.wrapping_sub(seconds);
        let expired = || with(&|it| it.expiration = ago(1));
        let wrong = || altered(&|rdata| *rdata.last_mut().expect("a signature") ^= 1);
        let above = zone.saturating_sub(1);
        let by = |signer: usize, key: &Key| {
            let fields = Fields {
                signer: self.zones[signer].apex.clone(),
                tag: key.tag(),
                algorithm: key.pair.algorithm(),
                ..fields.clone()
            };
            fields.sign(set, key)
        };
        let signer = |name: Name| with(&|it| it.signer.clone_from(&name));
        vec![match twist {
            Twist::Expired => expired(),
            Twist::LastSecond => with(&|it| it.expiration = self.now),
            Twist::FirstSecond => with(&|it| it.inception = self.now),
            Twist::NotYetValid => with(&|it| it.inception = self.now.wrapping_add(1)),
            Twist::Reversed => {
                with(&|it| (it.inception, it.expiration) = (self.now.wrapping_add(10), ago(10)))
            }
            Twist::SignerParent => signer(self.zones[above].apex.clone()),
            Twist::SignerRoot => signer(vec![0]),
            Twist::SignerChild => signer(child("plain", self.apex())),
            Twist::SignerSibling => signer(child("sibling", parent(self.apex()))),
            Twist::SignedByParent => by(above, &self.keys(above).data),
            Twist::SignedByChild => by(ZONE, &self.keys(ZONE).data),
            Twist::Covers => altered(&|rdata| rdata[1] = rtype::MX as u8),
            Twist::LabelsMore => with(&|it| it.labels += 1),
            Twist::LabelsNone => with(&|it| it.labels = 0),
            Twist::LabelsFewer => with(&|it| it.labels -= 1),
            Twist::DataBit => good(),
            Twist::SignatureBit => wrong(),
            Twist::Missing => return vec![],
            Twist::Longer => altered(&|rdata| rdata.push(0)),
            Twist::Shorter => altered(&|rdata| rdata.truncate(rdata.len() - 1)),
            Twist::Tag => with(&|it| it.tag ^= 1),
            Twist::AlgorithmUnknown => with(&|it| it.algorithm = 253),
            Twist::AlgorithmOther => with(&|it| it.algorithm = if it.algorithm == 13 { 15 } else { 13 }),
            Twist::Ttl => altered(&|rdata| rdata[7] ^= 1),
            Twist::Moved => good(),
            Twist::ExpiredAndGood => return vec![expired(), good()],
            Twist::WrongAndGood => return vec![wrong(), good()],
            Twist::Twice => return vec![good(), good()],
        }]
    }
}
