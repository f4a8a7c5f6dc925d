//! The DNSKEY RRset of a zone, as an upstream's reply has it: each key with a signature of its own over the set, which is verified here.
//!
//! A validator is content with the first valid signature. Here each key counts: a set counts by the signatures of the keys that are
//! trusted, and a revoked key is revoked by its own (RFC 5011 section 2.1).

use crate::arithmetic;
use anchors::{Observed, Signed};
use dnssec::canonical::signed_labels;
use dnssec::keys::signature_length;
use dnssec::limits::KEY_RECORDS;
use dnssec::{Algorithms, Dnskey, Groups, Rrset, Rrsig, Timestamp, signed_data};
use engine::SignedData;
use wire::{Message, Rcode, Section, Type};

/// Verifications that a set may cost, of a quarter of a millisecond each. A set that a zone publishes has a signature or two for each key.
const VERIFICATIONS: usize = 64;

/// Octets of the data that a signature signs: any RRset of a message.
const SIGNED: usize = 1 << 16;

/// Keys of a set, each with the newest valid signature that it made.
#[derive(Debug, PartialEq, Eq)]
pub struct ObservedSet(Vec<(Box<[u8]>, Option<Signed>)>);

impl ObservedSet {
    /// The keys of a zone in a reply. None: it has none, or more than a validator takes.
    pub fn of(reply: &[u8], zone: &[u8], now: Timestamp, supported: Algorithms) -> Option<ObservedSet> {
        let message = Message::parse(reply).ok().filter(|message| message.rcode() == Rcode::NOERROR)?;
        let groups = Groups::of(&message).ok()?;
        let set = groups.find(Section::Answer, zone, Type::DNSKEY).filter(|set| set.len() <= KEY_RECORDS)?;
        let is_current = |rrsig: &Rrsig<'_>| {
            wire::eq_ignore_case(rrsig.signer, zone)
                && usize::from(rrsig.labels) == signed_labels(zone)
                && Timestamp(rrsig.inception).until(now.0).is_some()
                && now.until(rrsig.expiration).is_some()
        };
        let mut signatures: Vec<Rrsig<'_>> =
            set.signatures().map(|signature| signature.rrsig).filter(is_current).collect();
        signatures.sort_by_key(|rrsig| now.0.wrapping_sub(rrsig.inception));
        let mut verifier =
            Verifier { set, signatures, supported, left: VERIFICATIONS, room: vec![0; SIGNED] };
        let keys = set.records().map(|record| (record.rdata().into(), verifier.signed(record.rdata())));
        Some(ObservedSet(keys.collect()))
    }

    /// The keys in the form of the state machine.
    pub fn records(&self) -> Vec<Observed<'_>> {
        self.0.iter().map(|(rdata, signed)| Observed { rdata, signed: *signed }).collect()
    }
}

/// Verification of the signatures over a set.
struct Verifier<'a> {
    set: Rrset<'a>,
    /// Signatures whose times and names fit, the newest first.
    signatures: Vec<Rrsig<'a>>,
    supported: Algorithms,
    /// Verifications that are left.
    left: usize,
    room: Vec<u8>,
}

impl Verifier<'_> {
    /// The newest valid signature by a key.
    fn signed(&mut self, rdata: &[u8]) -> Option<Signed> {
        let key = Dnskey::parse(rdata).ok()?;
        if key.protocol != 3 || !key.is_zone_key() || !self.supported.contains(key.algorithm) {
            return None;
        }
        let length = signature_length(key.algorithm, key.key)?;
        let tag = key.key_tag();
        for rrsig in &self.signatures {
            let names_key =
                (rrsig.algorithm, rrsig.key_tag, rrsig.signature.len()) == (key.algorithm, tag, length);
            if !names_key || self.left == 0 {
                continue;
            }
            self.left -= 1;
            let Ok(octets) = signed_data(&self.set, rrsig, &mut self.room) else { continue };
            let data = &self.room[..octets];
            let signed =
                SignedData { algorithm: key.algorithm.0, key: key.key, signature: rrsig.signature, data };
            if arithmetic::verify(&signed) {
                let Rrsig { inception, expiration, original_ttl, .. } = *rrsig;
                return Some(Signed { inception, expiration, original_ttl });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signed_zones::keys::{Fields, Key};
    use signed_zones::{Reply, Rrset as Keys, Store, rtype};
    use std::collections::BTreeSet;

    const ZONE: &[u8] = b"\x07example\0";
    const NOW: Timestamp = Timestamp(1_795_910_400);
    const DAY: u32 = 86_400;

    fn key(number: u8, flags: u16) -> Key {
        Key { flags, ..Key::new(Store::new(7).pair(number, 13, 256), true) }
    }

    /// Reply with these keys and signatures by some of them: key, first and last second.
    fn reply(keys: &[&Key], signers: &[(&Key, u32, u32)]) -> Vec<u8> {
        let data: BTreeSet<Vec<u8>> = keys.iter().map(|key| key.rdata()).collect();
        let set = Keys { owner: ZONE.to_vec(), rtype: rtype::DNSKEY, ttl: 7_200, data };
        let mut reply = Reply { answer: set.records(ZONE).collect(), ..Reply::default() };
        for &(key, inception, expiration) in signers {
            let fields = Fields {
                covered: rtype::DNSKEY,
                algorithm: 13,
                labels: 1,
                ttl: 3_600,
                expiration,
                inception,
                tag: key.tag(),
                signer: ZONE.to_vec(),
            };
            let rdata = fields.sign(&set, key);
            let signature = Keys::one(ZONE.to_vec(), rtype::RRSIG, 7_200, rdata);
            reply.answer.extend(signature.records(ZONE).collect::<Vec<_>>());
        }
        reply.octets(ZONE, rtype::DNSKEY)
    }

    fn observed(reply: &[u8]) -> Option<ObservedSet> {
        ObservedSet::of(reply, ZONE, NOW, Algorithms::CURRENT)
    }

    /// Inception of the signature of each key.
    fn inceptions(reply: &[u8], keys: &[&Key]) -> Vec<Option<u32>> {
        let set = observed(reply).expect("a set");
        let of = |key: &&Key| {
            let found = set.0.iter().find(|(rdata, _)| **rdata == *key.rdata()).expect("the key");
            found.1.map(|signed| signed.inception)
        };
        keys.iter().map(of).collect()
    }

    #[test]
    fn each_key_counts_by_its_own_signature_and_a_revoked_one_as_any_other() {
        let (one, two, revoked, silent) = (key(1, 257), key(2, 257), key(3, 385), key(4, 257));
        let all = [&one, &two, &revoked, &silent];
        let (from, to) = (NOW.0 - DAY, NOW.0 + DAY);
        let octets = reply(&all, &[(&one, from, to), (&two, from + 1, to), (&revoked, from + 2, to)]);
        assert_eq!(inceptions(&octets, &all), [Some(from), Some(from + 1), Some(from + 2), None]);
        // The TTL in the zone is that of the signature (RFC 4034 section 3.1.4).
        let set = observed(&octets).expect("a set");
        assert!(set.0.iter().filter_map(|(_, signed)| *signed).all(|signed| signed.original_ttl == 3_600));
    }

    #[test]
    fn a_signature_counts_within_its_times_only_and_the_newest_of_a_key() {
        let one = key(1, 257);
        let (from, to) = (NOW.0 - DAY, NOW.0 + DAY);
        for (times, expected) in [
            (vec![(NOW.0, NOW.0)], Some(NOW.0)),
            (vec![(NOW.0 + 1, to)], None),
            (vec![(from, NOW.0 - 1)], None),
            (vec![(from, to), (from + 5, to), (from + 2, to)], Some(from + 5)),
        ] {
            let signers: Vec<(&Key, u32, u32)> = times.iter().map(|&(from, to)| (&one, from, to)).collect();
            assert_eq!(inceptions(&reply(&[&one], &signers), &[&one]), [expected], "{times:?}");
        }
    }

    #[test]
    fn a_forged_set_has_no_signature_of_its_keys() {
        let (one, two) = (key(1, 257), key(2, 257));
        let (from, to) = (NOW.0 - DAY, NOW.0 + DAY);
        let honest = reply(&[&one], &[(&one, from, to)]);
        // The signature of another set: a key was added on the way.
        let signature = honest.len() - 11 - (10 + 9 + 18 + 9 + 64);
        let mut forged = reply(&[&one, &two], &[]);
        forged.truncate(forged.len() - 11);
        forged.extend(&honest[signature..]);
        forged[7] += 1;
        assert_eq!(inceptions(&forged, &[&one, &two]), [None, None]);
        assert_eq!(observed(&reply(&[], &[])), None);
        assert_eq!(observed(&honest[..40]), None);
        assert_eq!(ObservedSet::of(&honest, b"\x05other\0", NOW, Algorithms::CURRENT), None);
    }

    // Without the limit 64 keys with one tag would cost thousands of verifications (KeyTrap).
    #[test]
    fn the_verifications_of_a_set_are_bounded() {
        let one = key(1, 257);
        let signers: Vec<(&Key, u32, u32)> =
            (0..32).map(|second| (&one, NOW.0 - DAY - second, NOW.0 + DAY)).collect();
        // Keys that begin with zeros stand first, and each of them tries all signatures.
        for (count, expected) in [(1, Some(NOW.0 - DAY)), (2, None)] {
            let colliding: Vec<Key> =
                (0..count).map(|number| signed_zones::keys::collision(&one, number)).collect();
            let all: Vec<&Key> = colliding.iter().chain([&one]).collect();
            assert_eq!(inceptions(&reply(&all, &signers), &[&one]), [expected], "{count}");
        }
    }
}
