//! Records, RRsets, type bit maps and messages as octets.

use crate::name::Name;
use std::collections::BTreeSet;

/// Numbers of types.
pub mod rtype {
    /// RFC 1035.
    pub const A: u16 = 1;
    /// RFC 1035.
    pub const NS: u16 = 2;
    /// RFC 1035.
    pub const CNAME: u16 = 5;
    /// RFC 1035.
    pub const SOA: u16 = 6;
    /// RFC 1035.
    pub const MX: u16 = 15;
    /// RFC 3596.
    pub const AAAA: u16 = 28;
    /// RFC 6672.
    pub const DNAME: u16 = 39;
    /// RFC 4034.
    pub const DS: u16 = 43;
    /// RFC 4034.
    pub const RRSIG: u16 = 46;
    /// RFC 4034.
    pub const NSEC: u16 = 47;
    /// RFC 4034.
    pub const DNSKEY: u16 = 48;
    /// RFC 5155.
    pub const NSEC3: u16 = 50;
    /// RFC 5155.
    pub const NSEC3PARAM: u16 = 51;
    /// Pseudo-type of RFC 9824.
    pub const NXNAME: u16 = 128;
}

/// Class IN.
pub const IN: u16 = 1;

/// Record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Owner.
    pub owner: Name,
    /// Type.
    pub rtype: u16,
    /// Class.
    pub class: u16,
    /// TTL in seconds.
    pub ttl: u32,
    /// RDATA without compressed names.
    pub rdata: Vec<u8>,
}

impl Record {
    /// The octets of the record.
    pub fn octets(&self) -> Vec<u8> {
        let mut octets = self.owner.clone();
        octets.extend(self.rtype.to_be_bytes());
        octets.extend(self.class.to_be_bytes());
        octets.extend(self.ttl.to_be_bytes());
        octets.extend(u16::try_from(self.rdata.len()).expect("RDATA of 65,535 octets").to_be_bytes());
        octets.extend(&self.rdata);
        octets
    }
}

/// RRset in canonical form: all names in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rrset {
    /// Owner.
    pub owner: Name,
    /// Type.
    pub rtype: u16,
    /// TTL in seconds.
    pub ttl: u32,
    /// RDATA of the records.
    pub data: BTreeSet<Vec<u8>>,
}

impl Rrset {
    /// RRset of one record.
    pub fn one(owner: Name, rtype: u16, ttl: u32, rdata: Vec<u8>) -> Rrset {
        Rrset { owner, rtype, ttl, data: BTreeSet::from([rdata]) }
    }

    /// Records under an owner, which differs from that of the RRset if a wildcard is expanded.
    pub fn records<'s>(&'s self, owner: &'s [u8]) -> impl Iterator<Item = Record> + 's {
        let record = |rdata: &Vec<u8>| Record {
            owner: owner.to_vec(),
            rtype: self.rtype,
            class: IN,
            ttl: self.ttl,
            rdata: rdata.clone(),
        };
        self.data.iter().map(record)
    }
}

/// Type bit map (RFC 4034 section 4.1.2).
pub fn bitmap(types: &BTreeSet<u16>) -> Vec<u8> {
    let mut octets = Vec::new();
    for window in types.iter().map(|rtype| rtype >> 8).collect::<BTreeSet<_>>() {
        let mut bits = [0u8; 32];
        let mut last = 0;
        for low in types.iter().filter(|&rtype| rtype >> 8 == window).map(|rtype| usize::from(rtype & 255)) {
            bits[low / 8] |= 0x80 >> (low % 8);
            last = low / 8;
        }
        octets.extend([window as u8, last as u8 + 1]);
        octets.extend(&bits[..=last]);
    }
    octets
}

/// Response of a resolver with CD to a question with DO.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Response code.
    pub rcode: u8,
    /// Answer section.
    pub answer: Vec<Record>,
    /// Authority section.
    pub authority: Vec<Record>,
}

impl Reply {
    /// The message: QR, RD, RA and CD are set, and there is an OPT record with DO.
    pub fn octets(&self, name: &[u8], rtype: u16) -> Vec<u8> {
        let mut octets = vec![0, 1, 0x81, 0x90 | self.rcode, 0, 1];
        for section in [&self.answer, &self.authority] {
            octets.extend((section.len() as u16).to_be_bytes());
        }
        octets.extend([0, 1]);
        octets.extend(name);
        octets.extend(rtype.to_be_bytes());
        octets.extend(IN.to_be_bytes());
        octets.extend(self.answer.iter().chain(&self.authority).flat_map(Record::octets));
        octets.extend([0, 0, 41, 4, 208, 0, 0, 0x80, 0, 0, 0]);
        octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The example of RFC 4034 section 4.3: A MX RRSIG NSEC TYPE1234.
    #[test]
    fn the_bit_map_of_rfc_4034_is_written() {
        let types = BTreeSet::from([1, 15, 46, 47, 1234]);
        let mut expected = vec![0, 6, 0x40, 0x01, 0, 0, 0, 0x03, 4, 27];
        expected.extend([0; 26]);
        expected.push(0x20);
        assert_eq!(bitmap(&types), expected);
        assert_eq!(bitmap(&BTreeSet::new()), b"");
    }
}
