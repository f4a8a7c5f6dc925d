//! Canonical form and order of RRsets (RFC 4034 section 6), and the octets that a signature signs (section 3.1.8.1).

use crate::fields::Rrsig;
use crate::groups::Rrset;
use crate::limits::RECORDS;
use crate::name::{LowerName, is_wildcard, labels, suffix};
use core::cmp::Ordering;
use wire::{MAX_NAME, Name, RdataPart, Record, Type};

/// A6 (RFC 2874), obsolete: it is in the list of types whose names are in lower case.
const A6: Type = Type(38);

/// Reason why the signed data of an RRset cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignedDataError {
    /// The buffer is too small.
    Buffer,
    /// The owner has fewer labels than the signature says.
    Labels,
    /// The RRset has more records than [`RECORDS`].
    Records,
}

impl core::fmt::Display for SignedDataError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            SignedDataError::Buffer => "the buffer is too small for the signed data",
            SignedDataError::Labels => "the owner has fewer labels than the signature says",
            SignedDataError::Records => "too many records",
        })
    }
}

impl core::error::Error for SignedDataError {}

/// Labels of an owner as the Labels field counts them: without the root and an asterisk at the left (RFC 4034 section 3.1.3).
#[inline]
pub fn signed_labels(owner: &[u8]) -> usize {
    labels(owner) - usize::from(is_wildcard(owner))
}

/// Writes the octets that a signature over an RRset signs, and returns their number: RDATA of the RRSIG without the signature, with the
/// signer's name in lower case; then the records in canonical form and order, each once, with the original TTL, and with the wildcard as
/// owner if the RRset was expanded from it (RFC 4035 section 5.3.2).
///
/// # Errors
///
/// `Buffer`: `out` is too small. `Labels`: the Labels field is greater than the number of the owner's labels. `Records`: the RRset is too
/// large.
pub fn signed_data(set: &Rrset<'_>, rrsig: &Rrsig<'_>, out: &mut [u8]) -> Result<usize, SignedDataError> {
    let mut order = [0; RECORDS];
    let order = sorted(set, &mut order)?;
    let mut out = Writer { octets: out, length: 0 };
    out.append(rrsig.fixed)?;
    out.append_lower(rrsig.signer)?;
    let owner = original_owner(&LowerName::of(&set.owner()), rrsig.labels)?;
    let mut last: Option<Record<'_>> = None;
    for record in order.iter().filter_map(|&at| set.record_at(at)) {
        if last.is_some_and(|last| compare_rdata(&last, &record).is_eq()) {
            continue;
        }
        out.append(owner.as_wire())?;
        out.append(&record.rtype.0.to_be_bytes())?;
        out.append(&record.class.0.to_be_bytes())?;
        out.append(&rrsig.original_ttl.to_be_bytes())?;
        out.append_rdata(&record)?;
        last = Some(record);
    }
    Ok(out.length)
}

/// Owner under which the RRset was signed: the wildcard at the closest encloser if it was expanded from it.
fn original_owner(owner: &LowerName, signed: u8) -> Result<LowerName, SignedDataError> {
    let signed = usize::from(signed);
    match signed_labels(owner.as_wire()).cmp(&signed) {
        Ordering::Less => Err(SignedDataError::Labels),
        Ordering::Equal => Ok(*owner),
        Ordering::Greater => {
            suffix(owner.as_wire(), signed).and_then(LowerName::wildcard_of).ok_or(SignedDataError::Labels)
        }
    }
}

/// Positions of the records of an RRset in canonical order (RFC 4034 section 6.3).
pub(crate) fn sorted<'o>(
    set: &Rrset<'_>,
    order: &'o mut [u32; RECORDS],
) -> Result<&'o [u32], SignedDataError> {
    let mut count = 0;
    for record in set.records() {
        *order.get_mut(count).ok_or(SignedDataError::Records)? = record.start() as u32;
        count += 1;
    }
    let order = &mut order[..count];
    order.sort_unstable_by(|&a, &b| match (set.record_at(a), set.record_at(b)) {
        (Some(a), Some(b)) => compare_rdata(&a, &b),
        _ => Ordering::Equal,
    });
    Ok(order)
}

/// Order of two records of an RRset by their RDATA in canonical form, as octet strings.
pub fn compare_rdata(a: &Record<'_>, b: &Record<'_>) -> Ordering {
    if !WITH_NAMES.contains(&a.rtype) {
        return a.rdata().cmp(b.rdata());
    }
    let (mut ours, mut theirs) = (CanonicalOctets::of(a), CanonicalOctets::of(b));
    loop {
        match (ours.next(), theirs.next()) {
            (Some(x), Some(y)) if x == y => {}
            (None, None) => return Ordering::Equal,
            // `None` is less than any octet: a string comes before its extensions.
            (x, y) => return x.cmp(&y),
        }
    }
}

/// Types whose RDATA has names that canonical form writes in lower case.
///
/// They are those of RFC 4034 section 6.2 without NSEC, which RFC 6840 section 5.1 takes out. HINFO stands in the list, and has no name.
/// RRSIG records are never signed, so theirs are written in [`signed_data`] only. RFC 3597 section 7 leaves all other types as they are.
const WITH_NAMES: [Type; 22] = [
    Type::NS,
    Type::MD,
    Type::MF,
    Type::CNAME,
    Type::SOA,
    Type::MB,
    Type::MG,
    Type::MR,
    Type::PTR,
    Type::MINFO,
    Type::MX,
    Type::RP,
    Type::AFSDB,
    Type::RT,
    Type::SIG,
    Type::PX,
    Type::NXT,
    Type::NAPTR,
    Type::KX,
    Type::SRV,
    Type::DNAME,
    A6,
];

/// Octets before the name in the RDATA of an A6 record (RFC 2874 section 3.1); `None` without a name.
fn before_a6_name(rdata: &[u8]) -> Option<usize> {
    let &bits @ 1..=128 = rdata.first()? else { return None };
    let before = 1 + (128 - usize::from(bits)).div_ceil(8);
    (wire::name_len(rdata.get(before..)?)? == rdata.len() - before).then_some(before)
}

/// RDATA in canonical form, octet by octet.
struct CanonicalOctets<'a> {
    parts: wire::RdataParts<'a>,
    plain: &'a [u8],
    labels: Option<wire::Labels<'a>>,
    label: &'a [u8],
    /// Octets of `plain` behind which letters of a name follow, for A6.
    plain_before_name: Option<usize>,
}

impl<'a> CanonicalOctets<'a> {
    fn of(record: &Record<'a>) -> CanonicalOctets<'a> {
        let plain_before_name = if record.rtype == A6 { before_a6_name(record.rdata()) } else { None };
        CanonicalOctets {
            parts: record.rdata_parts(),
            plain: &[],
            labels: None,
            label: &[],
            plain_before_name,
        }
    }

    /// Next octet of a name: of the label, or the length of the next one, or the root.
    fn next_of_name(&mut self) -> Option<u8> {
        if let Some((&octet, rest)) = self.label.split_first() {
            self.label = rest;
            return Some(octet.to_ascii_lowercase());
        }
        match self.labels.as_mut()?.next() {
            Some(label) => {
                self.label = label;
                Some(label.len() as u8)
            }
            None => {
                self.labels = None;
                Some(0)
            }
        }
    }
}

impl Iterator for CanonicalOctets<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        loop {
            if let Some((&octet, rest)) = self.plain.split_first() {
                self.plain = rest;
                return Some(match self.plain_before_name.as_mut() {
                    None => octet,
                    // A length octet of a label is no letter.
                    Some(0) => octet.to_ascii_lowercase(),
                    Some(left) => {
                        *left -= 1;
                        octet
                    }
                });
            }
            if let Some(octet) = self.next_of_name() {
                return Some(octet);
            }
            match self.parts.next()? {
                RdataPart::Octets(octets) => self.plain = octets,
                RdataPart::Name(name) => self.labels = Some(name.labels()),
            }
        }
    }
}

/// Octets that are written one after the other into a lent buffer.
struct Writer<'o> {
    octets: &'o mut [u8],
    length: usize,
}

impl Writer<'_> {
    #[inline]
    fn append(&mut self, piece: &[u8]) -> Result<(), SignedDataError> {
        let end = self.length + piece.len();
        self.octets.get_mut(self.length..end).ok_or(SignedDataError::Buffer)?.copy_from_slice(piece);
        self.length = end;
        Ok(())
    }

    fn append_lower(&mut self, name: &[u8]) -> Result<(), SignedDataError> {
        let start = self.length;
        self.append(name)?;
        wire::fold(&mut self.octets[start..self.length]);
        Ok(())
    }

    fn append_name(&mut self, name: &Name<'_>) -> Result<(), SignedDataError> {
        let mut octets = [0; MAX_NAME];
        let length = name.write(&mut octets).min(MAX_NAME);
        self.append_lower(&octets[..length])
    }

    /// RDLENGTH and RDATA in canonical form.
    fn append_rdata(&mut self, record: &Record<'_>) -> Result<(), SignedDataError> {
        let length_at = self.length;
        self.append(&[0, 0])?;
        let start = self.length;
        if WITH_NAMES.contains(&record.rtype) {
            for part in record.rdata_parts() {
                match part {
                    RdataPart::Octets(octets) => self.append(octets)?,
                    RdataPart::Name(name) => self.append_name(&name)?,
                }
            }
        } else {
            self.append(record.rdata())?;
        }
        if record.rtype == A6
            && let Some(before) = before_a6_name(record.rdata())
        {
            wire::fold(&mut self.octets[start + before..self.length]);
        }
        // Expanded names may make RDATA longer than its length field can say.
        let length = u16::try_from(self.length - start).map_err(|_| SignedDataError::Buffer)?;
        self.octets[length_at..start].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}
