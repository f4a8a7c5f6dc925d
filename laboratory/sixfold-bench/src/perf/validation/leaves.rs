//! Zone with the many names, whose replies are put together from signatures that are made before.

use crate::perf::names::{self, QUERY};
use crate::perf::validation::keys::Key;
use crate::perf::validation::records::{
    A, LEAF_TYPES, NSEC, RRSIG, Record, SOA, Signer, head_behind_owner, nsec, signed_data, soa_data,
};
use authority::{Body, Kind};
use load::sockets::Pinned;
use std::io;
use std::net::Ipv4Addr;
use wire::header::HEADER;
use wire::{Message, Rcode, Type};

/// Its name.
pub const LEAVES: &[u8] = b"\x09dns64perf\x04test\0";

/// Octets of a name in it, and its labels.
const LEAF: usize = QUERY - HEADER - 4;
const LEAF_LABELS: u8 = 3;

/// Owners as compression pointers: the queried name, and the zone.
const QUERIED: [u8; 2] = [0xc0, HEADER as u8];
const ZONE: [u8; 2] = [0xc0, (HEADER + LEAF - LEAVES.len()) as u8];

/// Octets that are signed, and the signature.
pub type Sample = (Vec<u8>, Vec<u8>);

/// Zone with the many names.
pub struct Leaves {
    /// SOA record behind its owner, and its signature.
    soa: Vec<u8>,
    soa_signature: Vec<u8>,
    /// RDATA of the signatures over A and NSEC records, without the signature.
    heads: [Vec<u8>; 2],
    /// Two signatures for each name: over its A record, and over its NSEC record.
    signatures: Vec<u8>,
    /// Octets of a signature; 0 in a zone that is not signed.
    octets: usize,
}

/// Places of the two signatures of a name.
const OF_A: usize = 0;
const OF_NSEC: usize = 1;

impl Leaves {
    /// Makes the zone. `key`: that of a signed zone, in which `count` names are signed.
    ///
    /// # Errors
    ///
    /// As [`Key::sign`].
    pub fn new(key: Option<&Key>, count: usize) -> io::Result<Leaves> {
        let rdata = soa_data(LEAVES);
        let record = Record { owner: LEAVES, rtype: SOA, rdata: &rdata };
        let mut leaves = Leaves {
            soa: record.behind_owner(),
            soa_signature: Vec::new(),
            heads: Default::default(),
            signatures: Vec::new(),
            octets: 0,
        };
        if let Some(key) = key {
            let signer = Signer::new(key, LEAVES);
            let signature = signer.sign(&record)?;
            leaves.soa_signature = Record { owner: LEAVES, rtype: RRSIG, rdata: &signature }.behind_owner();
            leaves.heads = [A, NSEC].map(|covered| signer.head(covered, LEAF_LABELS));
            leaves.octets = key.signature_octets();
            leaves.signatures = vec![0; count * 2 * leaves.octets];
            sign_leaves(key, &leaves.heads, &mut leaves.signatures)?;
        }
        Ok(leaves)
    }

    /// The signatures over the A records of the first names, `most` at most.
    pub fn samples(&self, most: usize) -> Vec<Sample> {
        let sample = |number: usize| {
            let (name, rdata) = (leaf_name(number as u64), names::address(number as u64).octets());
            let data = signed_data(&self.heads[OF_A], &Record { owner: &name, rtype: A, rdata: &rdata });
            Some((data, self.signature(number, OF_A)?.to_vec()))
        };
        (0..most).map_while(sample).collect()
    }

    fn signature(&self, number: usize, which: usize) -> Option<&[u8]> {
        let at = (2 * number + which) * self.octets;
        self.signatures.get(at..at + self.octets)
    }

    /// Writes the reply to a question about a name of the zone. `signed`: with signatures.
    pub fn body(
        &self,
        number: usize,
        asked: &Message<'_>,
        signed: bool,
        mut out: Writer<'_>,
    ) -> Option<Body> {
        let signed = signed && self.octets > 0;
        if signed && self.signature(number, OF_NSEC).is_none() {
            return Some(Body::empty(Kind::Refused, Rcode::REFUSED, out.end));
        }
        let (name, address) = (leaf_name(number as u64), names::address(number as u64).octets());
        if asked.qtype() == Type::A {
            out.record(QUERIED, A, &[&address])?;
            if signed {
                out.record(QUERIED, RRSIG, &[&self.heads[OF_A], self.signature(number, OF_A)?])?;
            }
            return Some(out.body(Kind::Address4, true));
        }
        out.put(&ZONE)?;
        out.put(&self.soa)?;
        out.count += 1;
        if signed {
            out.put(&ZONE)?;
            out.put(&self.soa_signature)?;
            out.count += 1;
            out.record(QUERIED, NSEC, &[&nsec(&name, &LEAF_TYPES)])?;
            out.record(QUERIED, RRSIG, &[&self.heads[OF_NSEC], self.signature(number, OF_NSEC)?])?;
        }
        Some(out.body(Kind::NoData, false))
    }
}

/// Makes the signatures of all names, on both cores.
fn sign_leaves(key: &Key, heads: &[Vec<u8>; 2], signatures: &mut [u8]) -> io::Result<()> {
    let octets = key.signature_octets();
    let count = signatures.len() / (2 * octets);
    let (low, high) = signatures.split_at_mut(count / 2 * 2 * octets);
    let sign = |core: usize, first: usize, part: &mut [u8]| -> io::Result<()> {
        // A machine where the core is not to be had makes them where it can.
        let _pinned = Pinned::new(core);
        for (number, pair) in (first as u64..).zip(part.chunks_exact_mut(2 * octets)) {
            let (name, address) = (leaf_name(number), names::address(number).octets());
            let proof = nsec(&name, &LEAF_TYPES);
            let records = [(A, &address[..]), (NSEC, &proof)];
            for ((head, (rtype, rdata)), place) in
                heads.iter().zip(records).zip(pair.chunks_exact_mut(octets))
            {
                key.sign(&signed_data(head, &Record { owner: &name, rtype, rdata }), place)?;
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| sign(0, 0, low));
        sign(1, count / 2, high)?;
        other.join().map_err(|_| io::Error::other("a thread that signs has panicked"))?
    })
}

/// Name by its number.
fn leaf_name(number: u64) -> [u8; LEAF] {
    let mut query = [0; QUERY];
    names::write_query(number, &mut query);
    let mut name = [0; LEAF];
    name.copy_from_slice(&query[HEADER..HEADER + LEAF]);
    name
}

/// Number of a name of the zone with the many names.
pub fn leaf_number(name: &[u8]) -> Option<usize> {
    let (leaf, zone) = name.split_at_checked(LEAF - LEAVES.len())?;
    if leaf[0] != 15 || !wire::eq_ignore_case(zone, LEAVES) {
        return None;
    }
    let mut octets = [0; 4];
    for (octet, digits) in octets.iter_mut().zip(leaf[1..].chunks(4)) {
        *octet = std::str::from_utf8(&digits[..3]).ok()?.parse().ok()?;
    }
    let number = u32::from(Ipv4Addr::from(octets)).checked_sub(u32::from(names::address(0)))? as usize;
    wire::eq_ignore_case(name, &leaf_name(number as u64)).then_some(number)
}

/// Records behind a question.
pub struct Writer<'m> {
    message: &'m mut [u8],
    end: usize,
    count: u16,
}

impl<'m> Writer<'m> {
    /// A writer into a message whose question ends at `start`.
    pub fn new(message: &'m mut [u8], start: usize) -> Writer<'m> {
        Writer { message, end: start, count: 0 }
    }

    /// Writes records that are prepared.
    pub fn prepared(&mut self, (count, octets): &(u16, Vec<u8>)) -> Option<()> {
        self.count += count;
        self.put(octets)
    }

    fn put(&mut self, octets: &[u8]) -> Option<()> {
        let end = self.end + octets.len();
        self.message.get_mut(self.end..end)?.copy_from_slice(octets);
        self.end = end;
        Some(())
    }

    /// Writes a record whose RDATA has parts.
    fn record(&mut self, owner: [u8; 2], rtype: u16, rdata: &[&[u8]]) -> Option<()> {
        let length: usize = rdata.iter().map(|part| part.len()).sum();
        self.put(&owner)?;
        self.put(&head_behind_owner(rtype, length))?;
        self.count += 1;
        rdata.iter().try_for_each(|part| self.put(part))
    }

    /// The reply, whose records are an answer or a denial.
    pub fn body(&self, kind: Kind, is_answer: bool) -> Body {
        let counts = if is_answer { [self.count, 0, 0] } else { [0, self.count, 0] };
        Body { kind, rcode: Rcode::NOERROR, authoritative: true, end: self.end, counts }
    }
}
