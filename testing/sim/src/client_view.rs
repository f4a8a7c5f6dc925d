//! Answers as a client reads them. The parser is independent of the engine's.

use crate::ground_truth::{A, AAAA, CNAME, GroundTruth, NameId, OPT, PTR, RRSIG, SOA};
use crate::message::COOKIE_OPTION;

/// Number of an owner or target that is no name of the world.
pub const UNKNOWN_NAME: NameId = NameId::MAX;

/// A parsed answer.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    /// Flags and RCODE.
    pub flags: u16,
    /// CNAME records of the answer section: owner, target, TTL.
    pub edges: Vec<(NameId, NameId, u32)>,
    /// A records of the answer section: owner, TTL, address.
    pub v4: Vec<(NameId, u32, [u8; 4])>,
    /// AAAA records of the answer section: owner, TTL, address.
    pub v6: Vec<(NameId, u32, [u8; 16])>,
    /// PTR records of the answer section: owner, TTL, target.
    pub pointers: Vec<(NameId, u32, NameId)>,
    /// Types that signatures of the answer section cover.
    pub signed: Vec<u16>,
    /// TTL and MINIMUM of the SOA of the authority section.
    pub soa: Option<(u32, u32)>,
    /// The OPT record: UDP size, DO.
    pub opt: Option<(u16, bool)>,
    /// Extended DNS error in the OPT record.
    pub ede: Option<u16>,
    /// Data of the cookie option.
    pub cookie: Option<Vec<u8>>,
    /// Number of other records in the answer section.
    pub others: usize,
}

impl Seen {
    /// RCODE.
    pub fn rcode(&self) -> u16 {
        self.flags & 15
    }

    /// AD.
    pub fn ad(&self) -> bool {
        self.flags & 0x20 != 0
    }

    /// Reads the options of the OPT record.
    fn read_options(&mut self, mut rest: &[u8]) -> Result<(), &'static str> {
        while !rest.is_empty() {
            let [high, low, long, length, value @ ..] = rest else { return Err("half an option") };
            let length = usize::from(u16::from_be_bytes([*long, *length]));
            let (value, after) = value.split_at_checked(length).ok_or("an option beyond the end")?;
            match (u16::from_be_bytes([*high, *low]), value) {
                (15, [high, low, ..]) => self.ede = Some(u16::from_be_bytes([*high, *low])),
                (COOKIE_OPTION, _) if self.cookie.is_some() => return Err("two cookies"),
                (COOKIE_OPTION, _) => self.cookie = Some(value.to_vec()),
                _ => return Err("an option that was not asked for"),
            }
            rest = after;
        }
        Ok(())
    }

    /// TC.
    pub fn is_truncated(&self) -> bool {
        self.flags & 0x0200 != 0
    }
}

/// Parses an answer whose question section has `question` octets.
///
/// # Errors
///
/// The first malformed part: the message ends before it, a name is malformed, or a record is one that the world does not have.
pub fn parse_answer(ground_truth: &GroundTruth, bytes: &[u8], question: usize) -> Result<Seen, &'static str> {
    let word = |at: usize| bytes.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]));
    let mut seen = Seen { flags: word(2).ok_or("no header")?, ..Seen::default() };
    let mut at = 12 + question;
    let mut name = Vec::with_capacity(255);
    for section in 0..3 {
        for _ in 0..word(6 + 2 * section).ok_or("no header")? {
            at = read_name(bytes, at, &mut name)?;
            let rtype = word(at).ok_or("no type")?;
            let class = word(at + 2).ok_or("no class")?;
            let ttl = bytes.get(at + 4..at + 8).ok_or("no TTL")?;
            let ttl = u32::from_be_bytes(ttl.try_into().map_err(|_| "no TTL")?);
            // RFC 2181 section 8.
            let ttl = if ttl > i32::MAX as u32 { 0 } else { ttl };
            let length = usize::from(word(at + 8).ok_or("no length")?);
            let start = at + 10;
            let data = bytes.get(start..start + length).ok_or("data beyond the end")?;
            at = start + length;
            if rtype == OPT {
                if section != 2 || seen.opt.is_some() {
                    return Err("an OPT record too many");
                }
                let dnssec_ok = bytes[start - 4] & 0x80 != 0;
                seen.opt = Some((class, dnssec_ok));
                seen.read_options(data)?;
                continue;
            }
            if class != 1 {
                return Err("a record of another class");
            }
            let owner = ground_truth.find(&name).unwrap_or(UNKNOWN_NAME);
            let mut target = || {
                if read_name(bytes, start, &mut name)? != at {
                    return Err("a target of another length");
                }
                Ok(ground_truth.find(&name).unwrap_or(UNKNOWN_NAME))
            };
            match (section, rtype) {
                (0, CNAME) => seen.edges.push((owner, target()?, ttl)),
                (0, A) => seen.v4.push((owner, ttl, data.try_into().map_err(|_| "A without address")?)),
                (0, AAAA) => seen.v6.push((owner, ttl, data.try_into().map_err(|_| "AAAA without address")?)),
                (0, PTR) => seen.pointers.push((owner, ttl, target()?)),
                (0, RRSIG) => seen.signed.push(u16::from_be_bytes([data[0], data[1]])),
                (0, _) => seen.others += 1,
                (1, SOA) => {
                    let last = data.last_chunk().ok_or("a short SOA")?;
                    seen.soa = Some((ttl, u32::from_be_bytes(*last)));
                }
                _ => {}
            }
        }
    }
    if at != bytes.len() { Err("octets behind the end") } else { Ok(seen) }
}

/// Reads a name, compressed or not, in lower case. Returns the offset behind it.
fn read_name(bytes: &[u8], mut at: usize, name: &mut Vec<u8>) -> Result<usize, &'static str> {
    name.clear();
    let mut end = None;
    for _ in 0..128 {
        match *bytes.get(at).ok_or("a name beyond the end")? {
            0 => {
                name.push(0);
                return Ok(end.unwrap_or(at + 1));
            }
            length @ 1..64 => {
                let label = bytes.get(at..at + 1 + usize::from(length)).ok_or("a label beyond the end")?;
                name.extend(label.iter().map(u8::to_ascii_lowercase));
                at += label.len();
            }
            high @ 0xc0.. => {
                let low = *bytes.get(at + 1).ok_or("half a pointer")?;
                let target = usize::from(high & 0x3f) << 8 | usize::from(low);
                if target >= at {
                    return Err("a pointer forward");
                }
                end = end.or(Some(at + 2));
                at = target;
            }
            _ => return Err("a label of unknown kind"),
        }
    }
    Err("a name too long")
}
