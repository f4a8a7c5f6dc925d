//! Records of the zones as octets, and the signatures over them.

use crate::perf::validation::keys::Key;
use std::io;
use std::time::SystemTime;
use wire::{Class, Type};

/// TTL of all records, and the minimum of SOA records, in seconds: longer than a run with one server.
const TTL: u32 = 3600;

/// Lifetime of the signatures around the present, in seconds.
const BEFORE: u64 = 3600;
const AFTER: u64 = 86_400;

/// Types of a name with an A record.
pub const LEAF_TYPES: [u16; 3] = [A, RRSIG, NSEC];

/// Numbers of types.
pub const A: u16 = Type::A.0;
pub const NS: u16 = 2;
pub const SOA: u16 = Type::SOA.0;
pub const DS: u16 = 43;
pub const RRSIG: u16 = 46;
pub const NSEC: u16 = 47;
pub const DNSKEY: u16 = 48;

/// A name with one label more.
pub fn child(label: &str, parent: &[u8]) -> Vec<u8> {
    [&[label.len() as u8], label.as_bytes(), parent].concat()
}

/// RRset of one record.
pub struct Record<'a> {
    pub owner: &'a [u8],
    pub rtype: u16,
    pub rdata: &'a [u8],
}

impl Record<'_> {
    /// Its octets.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.owner);
        out.extend(self.behind_owner());
    }

    /// Octets behind the owner.
    pub fn behind_owner(&self) -> Vec<u8> {
        [&head_behind_owner(self.rtype, self.rdata.len()), self.rdata].concat()
    }
}

/// Octets between the owner of a record and its RDATA.
pub fn head_behind_owner(rtype: u16, length: usize) -> [u8; 10] {
    let ([t1, t2], [c1, c2]) = (rtype.to_be_bytes(), Class::IN.0.to_be_bytes());
    let ([s1, s2, s3, s4], [l1, l2]) = (TTL.to_be_bytes(), (length as u16).to_be_bytes());
    [t1, t2, c1, c2, s1, s2, s3, s4, l1, l2]
}

/// Labels of a name.
fn labels(name: &[u8]) -> u8 {
    let (mut count, mut at) = (0, 0);
    while name[at] != 0 {
        (count, at) = (count + 1, at + 1 + usize::from(name[at]));
    }
    count
}

/// Type bit map of the first window, of types in ascending order (RFC 4034 section 4.1.2).
fn bitmap(types: &[u16]) -> Vec<u8> {
    let last = usize::from(types.last().copied().unwrap_or(0)) / 8;
    let mut bits = vec![0u8; last + 1];
    types.iter().for_each(|rtype| bits[usize::from(rtype / 8)] |= 0x80 >> (rtype % 8));
    [&[0, last as u8 + 1], &bits[..]].concat()
}

/// RDATA of the NSEC record of a name: the next name is the shortest one below.
pub fn nsec(name: &[u8], types: &[u16]) -> Vec<u8> {
    [&[1, 0], name, &bitmap(types)].concat()
}

/// Signer of a zone.
pub struct Signer<'k> {
    key: &'k Key,
    apex: &'k [u8],
    inception: u32,
    expiration: u32,
}

impl<'k> Signer<'k> {
    /// Signer with a key, for a zone.
    pub fn new(key: &'k Key, apex: &'k [u8]) -> Signer<'k> {
        let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
        let [inception, expiration] = [now.saturating_sub(BEFORE), now + AFTER].map(|second| second as u32);
        Signer { key, apex, inception, expiration }
    }

    /// RDATA of an RRSIG record without the signature (RFC 4034 section 3.1).
    pub fn head(&self, covered: u16, labels: u8) -> Vec<u8> {
        let mut head = covered.to_be_bytes().to_vec();
        head.extend([self.key.algorithm().number(), labels]);
        for number in [TTL, self.expiration, self.inception] {
            head.extend(number.to_be_bytes());
        }
        head.extend(self.key.tag().to_be_bytes());
        head.extend(self.apex);
        head
    }

    /// RDATA of the RRSIG record over a record.
    ///
    /// # Errors
    ///
    /// As [`Key::sign`].
    pub fn sign(&self, record: &Record<'_>) -> io::Result<Vec<u8>> {
        let mut rdata = self.head(record.rtype, labels(record.owner));
        let data = signed_data(&rdata, record);
        let head = rdata.len();
        rdata.resize(head + self.key.signature_octets(), 0);
        self.key.sign(&data, &mut rdata[head..])?;
        Ok(rdata)
    }
}

/// Octets that a signature covers (RFC 4034 section 3.1.8.1).
pub fn signed_data(head: &[u8], record: &Record<'_>) -> Vec<u8> {
    let mut data = head.to_vec();
    record.write(&mut data);
    data
}

/// RDATA of the SOA record of a zone.
pub fn soa_data(apex: &[u8]) -> Vec<u8> {
    let timers = [1, 7200, 3600, 1_209_600, TTL].map(u32::to_be_bytes).concat();
    [child("ns", apex), child("hostmaster", apex), timers].concat()
}
