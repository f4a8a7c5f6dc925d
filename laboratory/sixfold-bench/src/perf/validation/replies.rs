//! Prepared replies: to questions about the apex of each zone, its delegation, and the names of small zones.

use crate::perf::validation::keys::Key;
use crate::perf::validation::records::{
    A, DNSKEY, DS, LEAF_TYPES, NS, NSEC, RRSIG, Record, SOA, Signer, child, nsec, soa_data,
};
use authority::Kind;
use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;

/// Label of the name whose A record has a wrong signature.
pub const BOGUS: &str = "bogus";

/// Records of a prepared reply: those of one section.
pub struct Prepared {
    /// Its kind.
    pub kind: Kind,
    /// True if the records are an answer, and no denial.
    pub is_answer: bool,
    /// Number of records and their octets, without signatures and with them.
    pub plain: (u16, Vec<u8>),
    /// See `plain`.
    pub signed: (u16, Vec<u8>),
}

impl Prepared {
    fn empty(kind: Kind, is_answer: bool) -> Prepared {
        Prepared { kind, is_answer, plain: (0, Vec::new()), signed: (0, Vec::new()) }
    }

    /// A reply with a record in the answer.
    fn answer(record: &Record<'_>, signer: Option<&Signer<'_>>) -> io::Result<Prepared> {
        let kind = if record.rtype == A { Kind::Address4 } else { Kind::Records };
        let mut prepared = Prepared::empty(kind, true);
        prepared.add(record, signer)?;
        Ok(prepared)
    }

    /// A reply that denies all types of a name but these, with the SOA record of its zone.
    fn denial(
        name: &[u8],
        types: &[u16],
        soa: &Record<'_>,
        signer: Option<&Signer<'_>>,
    ) -> io::Result<Prepared> {
        let mut prepared = Prepared::empty(Kind::NoData, false);
        prepared.add(soa, signer)?;
        if signer.is_some() {
            let proof = nsec(name, types);
            prepared.add_if_signed(&Record { owner: name, rtype: NSEC, rdata: &proof }, signer)?;
        }
        Ok(prepared)
    }

    fn add(&mut self, record: &Record<'_>, signer: Option<&Signer<'_>>) -> io::Result<()> {
        record.write(&mut self.plain.1);
        self.plain.0 += 1;
        self.add_if_signed(record, signer)
    }

    /// Adds a record to the reply with signatures alone.
    fn add_if_signed(&mut self, record: &Record<'_>, signer: Option<&Signer<'_>>) -> io::Result<()> {
        record.write(&mut self.signed.1);
        self.signed.0 += 1;
        if let Some(signer) = signer {
            let signature = Record { owner: record.owner, rtype: RRSIG, rdata: &signer.sign(record)? };
            signature.write(&mut self.signed.1);
            self.signed.0 += 1;
        }
        Ok(())
    }
}

/// Prepared replies.
#[derive(Default)]
pub struct Replies {
    /// To questions about types that a name has, and about DS records.
    of_types: HashMap<(Vec<u8>, u16), Prepared>,
    /// To questions about other types of a name.
    denials: HashMap<Vec<u8>, Prepared>,
}

impl Replies {
    /// Adds the records of an apex; `key`: that of a zone that is signed.
    ///
    /// # Errors
    ///
    /// As [`Key::sign`].
    pub fn add_apex(&mut self, apex: &[u8], key: Option<&Key>) -> io::Result<()> {
        let signer = key.map(|key| Signer::new(key, apex));
        let (server, soa) = (child("ns", apex), soa_data(apex));
        let mut records = vec![(NS, server), (SOA, soa.clone())];
        records.extend(key.map(|key| (DNSKEY, key.dnskey())));
        for (rtype, rdata) in &records {
            let record = Record { owner: apex, rtype: *rtype, rdata };
            self.of_types.insert((apex.to_vec(), *rtype), Prepared::answer(&record, signer.as_ref())?);
        }
        let soa = Record { owner: apex, rtype: SOA, rdata: &soa };
        let denial = Prepared::denial(apex, &[NS, SOA, RRSIG, NSEC, DNSKEY], &soa, signer.as_ref())?;
        self.denials.insert(apex.to_vec(), denial);
        Ok(())
    }

    /// Adds the DS record of a zone, or the proof that there is none. `key`: that of a zone that is signed. `parent`: name and key of the
    /// zone above.
    ///
    /// # Errors
    ///
    /// As [`Key::sign`].
    pub fn add_delegation(
        &mut self,
        (parent, parent_key): (&[u8], &Key),
        zone: &[u8],
        key: Option<&Key>,
    ) -> io::Result<()> {
        let signer = Signer::new(parent_key, parent);
        let soa = soa_data(parent);
        let soa = Record { owner: parent, rtype: SOA, rdata: &soa };
        let prepared = match key {
            Some(key) => {
                let record = Record { owner: zone, rtype: DS, rdata: &key.ds(zone) };
                Prepared::answer(&record, Some(&signer))?
            }
            None => Prepared::denial(zone, &[NS, RRSIG, NSEC], &soa, Some(&signer))?,
        };
        self.of_types.insert((zone.to_vec(), DS), prepared);
        Ok(())
    }

    /// Adds a name with an A record to a signed zone.
    ///
    /// # Errors
    ///
    /// As [`Key::sign`].
    pub fn add_name(&mut self, apex: &[u8], key: &Key, label: &str, address: Ipv4Addr) -> io::Result<()> {
        let (name, signer) = (child(label, apex), Signer::new(key, apex));
        let record = Record { owner: &name, rtype: A, rdata: &address.octets() };
        let mut answer = Prepared::answer(&record, Some(&signer))?;
        if let Some(last) = answer.signed.1.last_mut().filter(|_| label == BOGUS) {
            *last ^= 1;
        }
        let soa = soa_data(apex);
        let soa = Record { owner: apex, rtype: SOA, rdata: &soa };
        let denial = Prepared::denial(&name, &LEAF_TYPES, &soa, Some(&signer))?;
        self.of_types.insert((name.clone(), A), answer);
        self.denials.insert(name, denial);
        Ok(())
    }

    /// Finds the reply to a question.
    pub fn find(&self, name: &[u8], rtype: u16) -> Option<&Prepared> {
        let mut folded = name.to_vec();
        wire::fold(&mut folded);
        let key = (folded, rtype);
        self.of_types.get(&key).or_else(|| self.denials.get(&key.0))
    }
}
