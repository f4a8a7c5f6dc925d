//! Model of a message reader, slow and short. Every rule on which readers differ is a field of [`Rules`]. With
//! [`OURS`] the model must agree with this crate, with [`DOMAIN`] and [`HICKORY`] with these libraries: so each
//! difference between us and them is written here with its reason, and any other difference is a failure.

use crate::view::{Edns, Item, RESERVED, View};

/// Rules of one reader.
pub struct Rules {
    /// Exactly one question, uncompressed as any first name is. We answer questions: a message without one, or with
    /// two, is not an exchange that we take part in (RFC 9619). The libraries also read other messages.
    pub one_question: bool,
    /// Pointers may lead into the header. RFC 1035 section 4.1.4 speaks of a prior occurrence of the name, which the
    /// header cannot be; and patching ID and flags in place must not change a name, so we refuse.
    pub header_pointers: bool,
    /// A pointer must lead before the part of the name that holds it, not only before itself. With this stricter rule
    /// a name cannot contain itself.
    pub before_part: bool,
    /// A name that a pointer leads to, and that begins in the question, ends with the question's name. Its letters change their case, so what
    /// is a pointer in one copy leads elsewhere in another one.
    pub ends_with_question: bool,
    /// The target of a pointer may run into the part that pointed there. This is unusual, but ends.
    pub overlap: bool,
    /// Most pointers in a name. 127 is as many as a name has labels; the limit keeps every later reading short.
    pub hops: usize,
    /// A name in RDATA, behind pointers too, must end before RDATA does. All readers demand this of names in place.
    pub fenced: bool,
    /// Types whose RDATA is read for names. We read all that RFC 3597 section 4 names, and DNAME and KX.
    pub named: fn(u16) -> bool,
    /// Addresses have their length in class IN only. In class CH an A record has another format.
    pub addresses_in_class_in: bool,
    /// Records without RDATA of types that need some.
    pub empty: Empty,
    /// Types that do not exist as records.
    pub refused: &'static [u16],
    /// Types that may be in the additional section only. Of those, OPT concerns us; signatures of messages do not.
    pub additional_only: &'static [u16],
    /// At most one OPT record (RFC 6891 section 6.1.1).
    pub one_opt: bool,
    /// Permitted owners of an OPT record.
    pub opt_owner: OptOwner,
    /// The last option may be truncated. RFC 6891 section 6.1.2 has whole options only.
    pub cut_options: bool,
}

/// Records without RDATA, which RFC 2136 section 2.4 uses in updates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Empty {
    /// As in updates: if the class is ANY or NONE.
    InClassesOfUpdates,
    /// Any record in an UPDATE message, whatever the type, and no record in other messages.
    InUpdates,
    /// Never.
    No,
}

/// Permitted owners of an OPT record; RFC 6891 section 6.1.2 demands the root.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OptOwner {
    /// One root octet, so that the part that may be cut off again has a fixed length.
    RootOctet,
    /// The root, possibly behind a pointer.
    Root,
    /// Any owner.
    Any,
}

/// This crate.
pub const OURS: Rules = Rules {
    one_question: true,
    header_pointers: false,
    before_part: true,
    ends_with_question: true,
    overlap: true,
    hops: 127,
    fenced: false,
    named: |rtype| shape(rtype).is_some(),
    addresses_in_class_in: true,
    empty: Empty::InClassesOfUpdates,
    refused: &[],
    additional_only: &[OPT],
    one_opt: true,
    opt_owner: OptOwner::RootOctet,
    cut_options: false,
};

/// NLnet Labs' `domain`. It reads the RDATA of the types that both of us know, and takes others as octets.
pub const DOMAIN: Rules = Rules {
    one_question: false,
    header_pointers: true,
    before_part: false,
    ends_with_question: false,
    overlap: true,
    hops: 255,
    fenced: true,
    named: |rtype| shape(rtype).is_some() && !matches!(rtype, 18 | 21 | 24 | 26 | 30 | 36),
    addresses_in_class_in: false,
    empty: Empty::No,
    refused: &[],
    additional_only: &[],
    one_opt: false,
    opt_owner: OptOwner::Any,
    cut_options: false,
};

/// `hickory-proto`. It also checks the RDATA of types that we carry as octets: see [`judged_by_hickory`].
pub const HICKORY: Rules = Rules {
    one_question: false,
    header_pointers: true,
    before_part: true,
    ends_with_question: false,
    overlap: false,
    hops: usize::MAX,
    fenced: false,
    named: |rtype| matches!(rtype, 2 | 5 | 6 | 12 | 15 | 33 | 35),
    addresses_in_class_in: false,
    empty: Empty::InUpdates,
    refused: &[251, 252, 255],
    additional_only: &[OPT, 24, 250],
    one_opt: true,
    opt_owner: OptOwner::Root,
    cut_options: true,
};

/// True if hickory reads RDATA of this type and we do not: texts, keys, parameters, and NAPTR flags. Then it may
/// refuse a message that the model accepts. (0 and 65305 are numbers with a meaning of their own in hickory.)
pub fn judged_by_hickory(rtype: u16) -> bool {
    matches!(rtype, 0 | 13 | 16 | 35 | 37 | 44 | 52 | 53 | 61 | 62 | 64 | 65 | 250 | 257 | 65305)
}

/// EDNS option whose content hickory checks: the client subnet.
pub const CLIENT_SUBNET: u16 = 8;

const OPT: u16 = 41;

/// Octets before the names in RDATA, number of names, octets after them (`None`: any number). NAPTR has strings
/// before them.
fn shape(rtype: u16) -> Option<(usize, usize, Option<usize>)> {
    match rtype {
        2 | 3 | 4 | 5 | 7 | 8 | 9 | 12 | 39 => Some((0, 1, Some(0))),
        6 => Some((0, 2, Some(20))),
        14 | 17 => Some((0, 2, Some(0))),
        15 | 18 | 21 | 36 => Some((2, 1, Some(0))),
        24 => Some((18, 1, None)),
        26 => Some((2, 2, Some(0))),
        30 => Some((0, 1, None)),
        33 => Some((6, 1, Some(0))),
        35 => Some((4, 1, Some(0))),
        _ => None,
    }
}

/// Reads a message by these rules; `None` if it breaks one.
pub fn read(bytes: &[u8], rules: &Rules) -> Option<View> {
    let count = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    if bytes.len() < 12 || (rules.one_question && count(4)? != 1) {
        return None;
    }
    let mut reader = Reader { bytes, rules, update: bytes[2] >> 3 & 15 == 5, question_end: 0 };
    let mut at = 12;
    let mut questions = Vec::new();
    for _ in 0..count(4)? {
        let (qname, end) = reader.name(at, bytes.len())?;
        questions.push((qname, reader.number(end)?, reader.number(end + 2)?));
        at = end + 4;
        reader.question_end = at;
    }
    let mut sections = [const { Vec::new() }; 3];
    let mut edns = None;
    for (number, section) in sections.iter_mut().enumerate() {
        for _ in 0..count(6 + 2 * number)? {
            let (item, end) = reader.record(at, number == 2)?;
            if item.rtype != OPT {
                section.push(item);
            } else if rules.one_opt && edns.is_some() {
                return None;
            } else {
                edns = Some(reader.edns(&item)?);
            }
            at = end;
        }
    }
    let (qname, qtype, qclass) = questions.into_iter().next().unwrap_or_default();
    Some(View { id: count(0)?, flags: count(2)? & !RESERVED, qname, qtype, qclass, sections, edns })
}

struct Reader<'a> {
    bytes: &'a [u8],
    rules: &'a Rules,
    /// True if the message is an UPDATE.
    update: bool,
    /// End of the question, once it was read.
    question_end: usize,
}

impl Reader<'_> {
    fn number(&self, at: usize) -> Option<u16> {
        Some(u16::from_be_bytes([*self.bytes.get(at)?, *self.bytes.get(at + 1)?]))
    }

    /// Expanded name, and its end in place. Nothing is read from `fence` on.
    fn name(&self, start: usize, fence: usize) -> Option<(Vec<u8>, usize)> {
        let bytes = self.bytes.get(..fence)?;
        let (mut at, mut part) = (start, start);
        let (mut before, mut end) = (None, None);
        let mut hops = 0;
        let mut name = Vec::new();
        loop {
            if !self.rules.overlap && before.is_some_and(|before| at >= before) {
                return None;
            }
            let octet = *bytes.get(at)?;
            let ends = octet == 0 && at + 5 == self.question_end;
            let stops = octet == 0 || octet >= 192;
            if self.rules.ends_with_question && part < self.question_end && stops && !ends {
                return None;
            }
            match octet {
                0..=63 => {
                    let label = bytes.get(at..at + 1 + usize::from(octet))?;
                    name.extend(label);
                    at += label.len();
                    if name.len() > 255 - usize::from(octet != 0) {
                        return None;
                    }
                    if octet == 0 {
                        return Some((name, end.unwrap_or(at)));
                    }
                }
                192.. => {
                    let target = usize::from(octet & 63) << 8 | usize::from(*bytes.get(at + 1)?);
                    let bound = if self.rules.before_part { part } else { at };
                    hops += 1;
                    if target >= bound || hops > self.rules.hops {
                        return None;
                    }
                    if target < 12 && !self.rules.header_pointers {
                        return None;
                    }
                    end = end.or(Some(at + 2));
                    before = Some(part);
                    (part, at) = (target, target);
                }
                _ => return None,
            }
        }
    }

    fn record(&self, start: usize, additional: bool) -> Option<(Item, usize)> {
        let (owner, fixed) = self.name(start, self.bytes.len())?;
        let (rtype, class) = (self.number(fixed)?, self.number(fixed + 2)?);
        let ttl = u32::from(self.number(fixed + 4)?) << 16 | u32::from(self.number(fixed + 6)?);
        let at = fixed + 10;
        let end = at + usize::from(self.number(fixed + 8)?);
        let octets = self.bytes.get(at..end)?;
        if !additional && self.rules.additional_only.contains(&rtype) {
            return None;
        }
        let owner_fits = match self.rules.opt_owner {
            OptOwner::RootOctet => self.bytes[start] == 0,
            OptOwner::Root => owner == [0],
            OptOwner::Any => true,
        };
        if rtype == OPT && !owner_fits {
            return None;
        }
        let rdata = if octets.is_empty() && self.empty_is_judged(rtype, class)? {
            Vec::new()
        } else {
            self.rdata(rtype, class, at, end)?
        };
        Some((Item { owner, rtype, class, ttl, rdata: Some(rdata) }, end))
    }

    /// Decides on empty RDATA without a look at the type: true if it passes, `None` if it is refused.
    fn empty_is_judged(&self, rtype: u16, class: u16) -> Option<bool> {
        match self.rules.empty {
            Empty::InClassesOfUpdates => Some(matches!(class, 254 | 255) && (self.rules.named)(rtype)),
            Empty::InUpdates => (self.update || rtype == OPT).then_some(true),
            Empty::No => Some(false),
        }
    }

    fn rdata(&self, rtype: u16, class: u16, at: usize, end: usize) -> Option<Vec<u8>> {
        let octets = &self.bytes[at..end];
        if self.rules.refused.contains(&rtype) {
            return None;
        }
        let address = match rtype {
            1 => Some(4),
            28 => Some(16),
            _ => None,
        };
        match address {
            Some(length) if class == 1 || !self.rules.addresses_in_class_in => {
                (octets.len() == length).then(|| octets.to_vec())
            }
            _ => match shape(rtype).filter(|_| (self.rules.named)(rtype)) {
                Some(shape) => self.names(rtype, shape, at, end),
                None => Some(octets.to_vec()),
            },
        }
    }

    fn names(
        &self,
        rtype: u16,
        (before, names, after): (usize, usize, Option<usize>),
        start: usize,
        end: usize,
    ) -> Option<Vec<u8>> {
        let mut at = start + before;
        if rtype == 35 {
            for _ in 0..3 {
                at += 1 + usize::from(*self.bytes.get(at)?);
            }
        }
        let mut rdata = self.bytes.get(start..at)?.to_vec();
        let fence = if self.rules.fenced { end } else { self.bytes.len() };
        for _ in 0..names {
            let (name, next) = self.name(at, fence)?;
            rdata.extend(name);
            at = next;
        }
        rdata.extend(self.bytes.get(at..end)?);
        after.is_none_or(|after| at + after == end).then_some(rdata)
    }

    fn edns(&self, item: &Item) -> Option<Edns> {
        let mut options = Vec::new();
        let mut rest = item.rdata.as_deref()?;
        let whole = rest.len();
        while !rest.is_empty() {
            let length = rest.get(2..4).map(|length| usize::from(u16::from_be_bytes([length[0], length[1]])));
            let option = length.and_then(|length| rest.get(4..4 + length));
            match (option, length) {
                (Some(data), _) => options.push((u16::from_be_bytes([rest[0], rest[1]]), data.to_vec())),
                // Truncated after the code, or in data no longer than all of RDATA.
                (None, None) if self.rules.cut_options && rest.len() == 2 => break,
                (None, Some(length)) if self.rules.cut_options && length <= whole => break,
                _ => return None,
            }
            rest = &rest[4 + length?..];
        }
        let [extended_rcode, version, flags, _] = item.ttl.to_be_bytes();
        Some(Edns { udp_size: item.class, extended_rcode, version, dnssec_ok: flags & 0x80 != 0, options })
    }
}

/// True if RDATA of this type has names.
pub fn has_names(rtype: u16) -> bool {
    shape(rtype).is_some()
}
