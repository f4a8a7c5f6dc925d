//! Validity of a reply. The question is already known to be right, because it was used to find the query. Everything
//! else is checked: flags, counts, every record of the answer section, and the end of the message.
//!
//! Most replies have one AAAA record with a compressed owner and nothing else: this layout is compared in place. All
//! other layouts are parsed record by record.

use crate::embed::Embedding;
use crate::limits;
use crate::names::HEADER;
use crate::random::{mix, threshold};
use crate::reader::{Name, Record};
use crate::reason::Reason;
use measure::order::{Expectation, Validity};
use std::net::Ipv6Addr;

/// TYPE and CLASS values (RFC 1035 section 3.2, RFC 3596).
const CNAME: u16 = 5;
const AAAA: u16 = 28;
const IN: u16 = 1;

/// The TC bit in the first octet of the flags, and RCODE 3 (RFC 1035 section 4.1.1).
pub const TC: u8 = 0x02;
const NXDOMAIN: u8 = 3;

/// Octets of an AAAA record with a compressed owner: owner 2, type 2, class 2, TTL 4, length 2, address 16.
const AAAA_RECORD: usize = 28;

/// Words of a bit set of addresses.
const WORDS: usize = limits::RECORDS.div_ceil(64);

/// Checks replies against the expectation.
#[derive(Clone, Debug)]
pub struct Judge {
    /// Embeddings for a name without AAAA records: one for each prefix.
    prefixes: Vec<Embedding>,
    /// Embedding for a name with AAAA records.
    real: [Embedding; 1],
    addresses: u16,
    depth: u16,
    aaaa_below: u64,
    aaaa_seed: u64,
    ttl: (u32, u32),
    validity: Validity,
}

impl Judge {
    /// A judge for an expectation; `None` if a prefix is invalid (RFC 6052 section 2.2).
    pub fn new(expect: &Expectation) -> Option<Judge> {
        let prefixes = expect.prefixes.iter().map(|(prefix, bits)| Embedding::new(*prefix, *bits));
        Some(Judge {
            prefixes: prefixes.collect::<Option<_>>()?,
            real: [Embedding::real()],
            addresses: expect.addresses.max(1),
            depth: expect.cname_depth,
            aaaa_below: threshold(expect.aaaa_share),
            aaaa_seed: expect.aaaa_seed,
            ttl: expect.ttl,
            validity: expect.validity,
        })
    }

    /// Number of records of the longest valid answer.
    pub fn max_records(&self) -> usize {
        usize::from(self.depth) + usize::from(self.addresses) * self.prefixes.len().max(1)
    }

    /// True if the name of an address has AAAA records. The function equals the authority's but is a separate
    /// implementation.
    #[inline]
    pub fn has_aaaa(&self, address: [u8; 4]) -> bool {
        let number = u64::from(u32::from_be_bytes(address)) + 1;
        mix(self.aaaa_seed.wrapping_add(number)) >> 32 < self.aaaa_below
    }

    /// The addresses of a valid reply.
    pub fn expected(&self, address: [u8; 4]) -> impl Iterator<Item = Ipv6Addr> {
        let embeddings: &[Embedding] = if self.has_aaaa(address) { &self.real } else { &self.prefixes };
        let first = u32::from_be_bytes(address);
        let embed = move |embedding: &Embedding, step: u16| {
            embedding.embed(first.wrapping_add(u32::from(step)).to_be_bytes()).into()
        };
        let addresses = self.addresses;
        embeddings.iter().flat_map(move |embedding| (0..addresses).map(move |step| embed(embedding, step)))
    }

    /// Checks a reply to the question for an address. The question ends at `end`.
    ///
    /// # Errors
    ///
    /// The first [`Reason`] for which the reply is wrong: its header, its RCODE, the number of its records, a record's owner, type,
    /// address or TTL, or octets after the last record.
    #[inline]
    pub fn judge(&self, message: &[u8], end: usize, address: [u8; 4]) -> Result<(), Reason> {
        if message.len() < end || end < HEADER {
            return Err(Reason::Header);
        }
        if self.validity == Validity::Answered {
            // QR and RCODE alone.
            flags(message[2] & 0x80 | 0x01, message[3] & 0x0f)?;
            return if message[6..8] == [0, 0] { Err(Reason::NoRecords) } else { Ok(()) };
        }
        flags(message[2], message[3])?;
        let has_aaaa = self.aaaa_below > 0 && self.has_aaaa(address);
        let embeddings: &[Embedding] = if has_aaaa { &self.real } else { &self.prefixes };
        let records = embeddings.len() * usize::from(self.addresses) + usize::from(self.depth);
        match usize::from(u16::from_be_bytes([message[6], message[7]])) {
            count if count == records => {}
            0 => return Err(Reason::NoRecords),
            count if count < records => return Err(Reason::MissingRecord),
            _ => return Err(Reason::ExtraRecord),
        }
        // No authority or additional records, one answer record, and the resulting length.
        if message[6..12] == [0, 1, 0, 0, 0, 0]
            && message.len() == end + AAAA_RECORD
            && self.depth == 0
            && message[end..end + 6] == [0xc0, HEADER as u8, 0, AAAA as u8, 0, IN as u8]
            && message[end + 10..end + 12] == [0, 16]
            && message[end + 12..] == embeddings[0].embed(address)
        {
            return self.ttl([message[end + 6], message[end + 7], message[end + 8], message[end + 9]]);
        }
        self.check_records(message, end, address, embeddings, records)
    }

    fn ttl(&self, octets: [u8; 4]) -> Result<(), Reason> {
        let ttl = u32::from_be_bytes(octets);
        if (self.ttl.0..=self.ttl.1).contains(&ttl) { Ok(()) } else { Err(Reason::Ttl) }
    }

    /// Checks record by record, in any order and layout.
    #[cold]
    fn check_records(
        &self,
        message: &[u8],
        end: usize,
        address: [u8; 4],
        embeddings: &[Embedding],
        records: usize,
    ) -> Result<(), Reason> {
        let (asked, _) = Name::read(message, HEADER).ok_or(Reason::Malformed)?;
        let (mut found, mut seen_cnames) = ([0u64; WORDS], 0u128);
        let mut at = end;
        for _ in 0..records {
            let (owner, behind) = Name::read(message, at).ok_or(Reason::Malformed)?;
            let record = Record::behind(message, behind).ok_or(Reason::Malformed)?;
            at = record.end;
            let position = chain_position(owner.octets(), asked.octets()).ok_or(Reason::Owner)?;
            if record.class != IN {
                return Err(Reason::Class);
            }
            match record.kind {
                AAAA if position != self.depth => return Err(Reason::Owner),
                AAAA => {
                    let data = message.get(record.data..record.end).and_then(|data| data.try_into().ok());
                    mark(&mut found, self.index(data.ok_or(Reason::Length)?, address, embeddings)?)?;
                }
                CNAME if position >= self.depth => return Err(Reason::Chain),
                CNAME => {
                    let (target, after) = Name::read(message, record.data).ok_or(Reason::Malformed)?;
                    if after != record.end {
                        return Err(Reason::Malformed);
                    }
                    if seen_cnames >> position & 1 == 1
                        || chain_position(target.octets(), asked.octets()) != Some(position + 1)
                    {
                        return Err(Reason::Chain);
                    }
                    seen_cnames |= 1 << position;
                }
                _ => return Err(Reason::Type),
            }
            self.ttl(record.ttl.to_be_bytes())?;
        }
        let others = [8, 10].map(|at| usize::from(u16::from_be_bytes([message[at], message[at + 1]])));
        for _ in 0..others[0] + others[1] {
            at = Record::read(message, at).ok_or(Reason::Malformed)?.end;
        }
        if at == message.len() { Ok(()) } else { Err(Reason::Malformed) }
    }

    /// Index of this address among the expected ones.
    fn index(&self, data: [u8; 16], address: [u8; 4], embeddings: &[Embedding]) -> Result<usize, Reason> {
        let mut reason = Reason::Prefix;
        for (place, embedding) in embeddings.iter().enumerate() {
            let Some(embedded) = embedding.extract(data) else { continue };
            let step = u32::from_be_bytes(embedded).wrapping_sub(u32::from_be_bytes(address));
            if step < u32::from(self.addresses) {
                return Ok(place * usize::from(self.addresses) + step as usize);
            }
            reason = Reason::Address;
        }
        Err(reason)
    }
}

/// Checks a reply whose records cannot be predicted: its flags, its RCODE, and that it can be parsed to its end. The question
/// ends at `end`. NOERROR and NXDOMAIN are answers. A truncated reply is one, too: it is the right reply where a record set
/// is larger than the requestor allows over UDP (RFC 2181 section 9).
///
/// # Errors
///
/// The first [`Reason`] for which it is no answer: no header and question, a wrong flag, another RCODE than NOERROR and NXDOMAIN, or
/// malformed records.
#[inline]
pub fn answered(message: &[u8], end: usize) -> Result<(), Reason> {
    if message.len() < end || end < HEADER {
        return Err(Reason::Header);
    }
    let rcode = if message[3] & 0x0f == NXDOMAIN { 0 } else { message[3] & 0x0f };
    flags(message[2] & !TC, message[3] & 0xf0 | rcode)?;
    let counts = [6, 8, 10].map(|at| u32::from(u16::from_be_bytes([message[at], message[at + 1]])));
    let mut at = end;
    for _ in 0..counts.iter().sum::<u32>() {
        at = Record::read(message, at).ok_or(Reason::Malformed)?.end;
    }
    if at == message.len() { Ok(()) } else { Err(Reason::Malformed) }
}

/// Checks QR, opcode, TC, RD, Z and RCODE (RFC 1035 section 4.1.1). Our queries have RD set. AA, RA, AD and CD
/// describe the server and its work; any value is valid.
#[inline]
fn flags(high: u8, low: u8) -> Result<(), Reason> {
    if high & 0xfb == 0x81 && low & 0x4f == 0 {
        return Ok(());
    }
    Err(match low & 0x0f {
        _ if high & 0x80 == 0 => Reason::NotAResponse,
        _ if high & 0x78 != 0 => Reason::Opcode,
        0 if high & 0x02 != 0 => Reason::Truncated,
        0 => Reason::Flags,
        1 => Reason::FormErr,
        2 => Reason::ServFail,
        3 => Reason::NxDomain,
        4 => Reason::NotImp,
        5 => Reason::Refused,
        _ => Reason::Rcode,
    })
}

/// The position of a name in the chain: 0 for the query name, k for `k.` before it.
fn chain_position(name: &[u8], asked: &[u8]) -> Option<u16> {
    let before = name.strip_suffix(asked)?;
    let (length, digits) = match before {
        [] => return Some(0),
        [length, digits @ ..] => (*length, digits),
    };
    if usize::from(length) != digits.len() || digits.len() > 3 || digits[0] == b'0' {
        return None;
    }
    digits
        .iter()
        .try_fold(0u16, |value, digit| digit.is_ascii_digit().then(|| value * 10 + u16::from(digit - b'0')))
}

/// Adds an index to a bit set.
fn mark(set: &mut [u64; WORDS], index: usize) -> Result<(), Reason> {
    let word = set.get_mut(index / 64).ok_or(Reason::ExtraRecord)?;
    let bit = 1 << (index % 64);
    if *word & bit != 0 {
        return Err(Reason::Repeated);
    }
    *word |= bit;
    Ok(())
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
