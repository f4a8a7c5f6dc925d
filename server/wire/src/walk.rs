//! Walk over a message that checks its form, in a number of steps linear in its octets.
//!
//! The walk meets labels in place once, in order. Pointers are what makes other readers slow: a record of 12 octets
//! may own a name of 127 labels, so 64 KiB of such records cost most readers a million steps. Honest messages follow
//! pointers for a few dozen steps. So the walk first runs without a table and with a budget of steps behind pointers
//! ([`StepBudget`]). If the budget is spent, the walk starts over with a table of the names at every position that a
//! pointer can reach ([`MemoTable`]); then it visits no position behind a pointer more than twice.

use crate::edns::Options;
use crate::header::{self, HEADER};
use crate::limits::{MAX_LABEL, MAX_NAME, MAX_POINTERS, MAX_POSITION, POINTER_REACH, STEP_BUDGET};
use crate::message::{Malformed, Message, Section, SectionOffsets};
use crate::name::{self, POINTER};
use crate::rdata::{After, RdataLayout, layout};
use crate::record::FIXED;
use crate::types::{Class, Type};

impl<'a> Message<'a> {
    /// Walks the whole message once: the header, exactly one question, all records, the names in owners and in RDATA
    /// that may be compressed, the RDATA of A, AAAA and of types with such names, and at most one OPT record with its
    /// options. Octets after the last record are tolerated.
    ///
    /// # Errors
    ///
    /// The first part that is malformed, in the order of the message; [`Malformed`] has a variant for each. A message that is longer
    /// than a position can express counts as a malformed record.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, Malformed> {
        walk(bytes, &mut ())
    }

    /// Walks a message like [`Message::parse`], and counts the steps: one per label, pointer, record and option, and
    /// one per octet of the question's name. For tests of the upper bound: at most 4 steps per octet, plus
    /// [`WALK_CONSTANT`].
    ///
    /// [`WALK_CONSTANT`]: Message::WALK_CONSTANT
    pub fn parse_counted(bytes: &'a [u8]) -> (Result<Message<'a>, Malformed>, u64) {
        let mut steps = 0u64;
        let result = walk(bytes, &mut steps);
        (result, steps)
    }
}

/// Counter of the walk's steps, or none.
pub(crate) trait Steps {
    fn add(&mut self, steps: usize);
}

/// Counts nothing and costs nothing.
impl Steps for () {
    #[inline(always)]
    fn add(&mut self, _: usize) {}
}

impl Steps for u64 {
    fn add(&mut self, steps: usize) {
        *self += steps as u64;
    }
}

/// Walks a message.
///
/// The result is written where the caller keeps it, field by field. A copy of the whole would have to wait until these stores have left
/// the processor's store buffer, which takes longer than the walk over a question.
///
/// # Errors
///
/// As [`Message::parse`].
#[inline]
fn walk<'a>(bytes: &'a [u8], steps: &mut impl Steps) -> Result<Message<'a>, Malformed> {
    if !(HEADER..=MAX_POSITION).contains(&bytes.len()) {
        return Err(if bytes.len() < HEADER { Malformed::Short } else { Malformed::Record });
    }
    if header::qdcount(bytes) != 1 {
        return Err(Malformed::QuestionCount);
    }
    let Some(qname) = name::name_len(&bytes[HEADER..]) else { return Err(Malformed::Name) };
    steps.add(qname);
    let question_end = HEADER + qname + 4;
    if question_end > bytes.len() {
        return Err(Malformed::Question);
    }
    let counts = [header::ancount(bytes), header::nscount(bytes), header::arcount(bytes)];
    // Many queries have no records.
    if counts == [0; 3] {
        return Ok(Message { bytes, offsets: SectionOffsets::without_records(question_end) });
    }
    parse_records(bytes, question_end, counts, steps)
}

#[inline(never)]
fn parse_records<'a, S: Steps>(
    bytes: &'a [u8],
    question_end: usize,
    counts: [u16; 3],
    steps: &mut S,
) -> Result<Message<'a>, Malformed> {
    let mut walk =
        Walk::new(bytes, StepBudget { left: STEP_BUDGET, is_spent: false, question_end }, &mut *steps);
    let mut offsets = SectionOffsets::without_records(question_end);
    match walk.sections(counts, &mut offsets) {
        Ok(()) => Ok(Message { bytes, offsets }),
        Err(_) if walk.pointer_targets.is_spent => parse_with_table(bytes, question_end, counts, steps),
        Err(malformed) => Err(malformed),
    }
}

#[cold]
#[inline(never)]
fn parse_with_table<'a, S: Steps>(
    bytes: &'a [u8],
    question_end: usize,
    counts: [u16; 3],
    steps: &mut S,
) -> Result<Message<'a>, Malformed> {
    let mut walk =
        Walk::new(bytes, MemoTable { names: [KnownName::UNKNOWN; POINTER_REACH], question_end }, steps);
    let mut offsets = SectionOffsets::without_records(question_end);
    walk.sections(counts, &mut offsets)?;
    Ok(Message { bytes, offsets })
}

struct Walk<'a, 's, T, S> {
    bytes: &'a [u8],
    pointer_targets: T,
    last: LastTarget,
    /// Furthest end of a name that a pointer leads to.
    furthest: usize,
    /// Upper bits of the response code.
    extended_rcode: u8,
    /// A name other than the root was walked up to a root octet in place.
    has_whole_names: bool,
    /// A CNAME record was walked.
    has_cname: bool,
    steps: &'s mut S,
}

/// Target of the last pointer, and the size of the name there: the records of an RRset all point at the same owner.
#[derive(Clone, Copy)]
struct LastTarget {
    target: usize,
    size: NameSize,
}

impl LastTarget {
    /// No pointer leads as far.
    const NONE: LastTarget = LastTarget { target: usize::MAX, size: NameSize { length: 0, pointers: 0 } };
}

impl<'a, 's, T: PointerTargets, S: Steps> Walk<'a, 's, T, S> {
    #[inline]
    fn new(bytes: &'a [u8], pointer_targets: T, steps: &'s mut S) -> Walk<'a, 's, T, S> {
        Walk {
            bytes,
            pointer_targets,
            last: LastTarget::NONE,
            furthest: 0,
            extended_rcode: 0,
            has_whole_names: false,
            has_cname: false,
            steps,
        }
    }

    /// Walks the sections after the question. `offsets` is written at the end, all at once.
    #[inline(always)]
    fn sections(&mut self, counts: [u16; 3], offsets: &mut SectionOffsets) -> Result<(), Malformed> {
        let mut at = offsets.question_end();
        let (mut starts, mut opt) = ((0, 0, 0), (0, 0));
        for (section, count) in counts.into_iter().enumerate() {
            // Three variables and no array, so that the starts stay in registers.
            starts = (starts.1, starts.2, at as u32);
            for _ in 0..count {
                let may_have_opt = section == Section::Additional as usize;
                at = self.record(at, may_have_opt.then_some(&mut opt))?;
            }
        }
        *offsets = SectionOffsets {
            starts: [starts.0, starts.1, starts.2],
            end: at as u32,
            opt,
            furthest: self.furthest as u32,
            extended_rcode: self.extended_rcode,
            has_whole_names: self.has_whole_names,
            has_cname: self.has_cname,
        };
        Ok(())
    }

    /// Walks one record and returns its end. `opt` receives the place of an OPT record, in the section that may have
    /// one.
    #[inline(always)]
    fn record(&mut self, start: usize, opt: Option<&mut (u32, u32)>) -> Result<usize, Malformed> {
        self.steps.add(1);
        let at = self.name(start)?;
        let fixed: &[u8; FIXED] =
            self.bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(Malformed::Record)?;
        let [t0, t1, c0, c1, extended_rcode, _, _, _, l0, l1] = *fixed;
        let rdata_start = at + FIXED;
        let end = rdata_start + usize::from(u16::from_be_bytes([l0, l1]));
        let rdata = self.bytes.get(rdata_start..end).ok_or(Malformed::Record)?;
        let class = Class(u16::from_be_bytes([c0, c1]));
        match Type(u16::from_be_bytes([t0, t1])) {
            // The format of addresses belongs to class IN: in CH an A record is a name and a number.
            Type::A if class == Class::IN && rdata.len() != 4 => Err(Malformed::Rdata),
            Type::AAAA if class == Class::IN && rdata.len() != 16 => Err(Malformed::Rdata),
            Type::A | Type::AAAA => Ok(end),
            Type::OPT => {
                let root = at == start + 1;
                match opt {
                    Some(place @ &mut (0, 0)) if root && self.options(rdata) => {
                        *place = (start as u32, end as u32);
                        self.extended_rcode = extended_rcode;
                    }
                    _ => return Err(Malformed::Opt),
                }
                Ok(end)
            }
            rtype => match layout(rtype).inspect(|_| self.has_cname |= rtype == Type::CNAME) {
                // Updates have records without RDATA in these classes (RFC 2136 sections 2.4 and 2.5).
                Some(_) if rdata.is_empty() && (class == Class::ANY || class == Class::NONE) => Ok(end),
                Some(layout) => self.names(layout, rdata_start, rdata, end),
                None => Ok(end),
            },
        }
    }

    /// Walks RDATA that contains names.
    #[inline]
    fn names(
        &mut self,
        layout: RdataLayout,
        start: usize,
        rdata: &[u8],
        end: usize,
    ) -> Result<usize, Malformed> {
        let mut at = start + layout.first_name(rdata).ok_or(Malformed::Rdata)?;
        for _ in 0..layout.names {
            at = self.name(at)?;
        }
        let fits = match layout.after {
            After::Octets(octets) => at + octets == end,
            After::Rest => at <= end,
        };
        if fits { Ok(end) } else { Err(Malformed::Rdata) }
    }

    fn options(&mut self, rdata: &[u8]) -> bool {
        let mut options = Options::new(rdata);
        self.steps.add(1 + options.by_ref().count());
        options.is_empty()
    }

    /// Walks a name in place and returns its end there. Most names are a pointer to the question's name, which was checked first,
    /// or to the target of the pointer before.
    #[inline(always)]
    fn name(&mut self, start: usize) -> Result<usize, Malformed> {
        if let Some(&[high, low]) = self.bytes.get(start..).and_then(<[u8]>::first_chunk)
            && high >= POINTER
        {
            let target = usize::from(high & !POINTER) << 8 | usize::from(low);
            let last = self.last;
            if target == HEADER || target == last.target && usize::from(last.size.pointers) < MAX_POINTERS {
                self.steps.add(1);
                return Ok(start + 2);
            }
        }
        self.any_name(start)
    }

    /// Walks a name of any form.
    #[inline(never)]
    fn any_name(&mut self, start: usize) -> Result<usize, Malformed> {
        let mut at = start;
        let mut length = 0;
        loop {
            self.steps.add(1);
            let octet = *self.bytes.get(at).ok_or(Malformed::Name)?;
            if octet >= POINTER {
                let target = pointer(self.bytes, at, start)?;
                // Most pointers lead to the question's name, which was checked first. Only the sum of the lengths
                // remains to check, and only if labels precede the pointer.
                if target != HEADER || length != 0 {
                    if target != self.last.target {
                        let size = self.pointer_targets.size_at(self.bytes, target, self.steps)?;
                        self.last = LastTarget { target, size };
                    }
                    let size = self.last.size;
                    // A name with a pointer of its own cannot lie in the question.
                    let ends =
                        if size.pointers == 0 { target + usize::from(size.length) } else { usize::MAX };
                    self.furthest = self.furthest.max(ends);
                    // This pointer counts too.
                    if length + usize::from(size.length) > MAX_NAME
                        || usize::from(size.pointers) >= MAX_POINTERS
                    {
                        return Err(Malformed::Name);
                    }
                }
                return Ok(at + 2);
            }
            if octet > MAX_LABEL {
                return Err(Malformed::Name);
            }
            at += 1 + usize::from(octet);
            length += 1 + usize::from(octet);
            if length > MAX_NAME {
                return Err(Malformed::Name);
            }
            if octet == 0 {
                self.has_whole_names |= length > 1;
                return Ok(at);
            }
        }
    }
}

/// Target of the pointer at `at`: before the part of the name that holds the pointer, and after the header.
#[inline]
fn pointer(bytes: &[u8], at: usize, part: usize) -> Result<usize, Malformed> {
    match name::pointer(bytes, at) {
        Some(target) if target < part => Ok(target),
        _ => Err(Malformed::Name),
    }
}

/// Size of the name at a pointer's target, expanded.
#[derive(Clone, Copy)]
struct NameSize {
    /// Octets with the root, at most 255.
    length: u8,
    /// Number of pointers, at most [`MAX_POINTERS`].
    pointers: u8,
}

/// Method to measure the names at pointers' targets.
trait PointerTargets {
    /// Size of the name that begins at `at`.
    ///
    /// # Errors
    ///
    /// `Malformed::Name`: the name is malformed or has too many pointers, or the budget of steps is spent.
    fn size_at(&mut self, bytes: &[u8], at: usize, steps: &mut impl Steps) -> Result<NameSize, Malformed>;
}

/// Measures each name by walking it, as long as the budget lasts.
struct StepBudget {
    left: u32,
    /// The budget is spent: the message may be well-formed or malformed.
    is_spent: bool,
    question_end: usize,
}

/// True if a part of a name that begins at `part` and ends before `end` leaves the question elsewhere than at the root of its name: the
/// octets there are letters, whose case may change, or the type. Honest software has no such name.
#[inline]
fn leaves_question(part: usize, end: usize, question_end: usize) -> bool {
    part < question_end && end + 4 != question_end
}

impl PointerTargets for StepBudget {
    #[inline]
    fn size_at(&mut self, bytes: &[u8], start: usize, steps: &mut impl Steps) -> Result<NameSize, Malformed> {
        let (mut part, mut at) = (start, start);
        let (mut length, mut pointers) = (0, 0);
        loop {
            steps.add(1);
            let Some(left) = self.left.checked_sub(1) else {
                self.is_spent = true;
                return Err(Malformed::Name);
            };
            self.left = left;
            let octet = *bytes.get(at).ok_or(Malformed::Name)?;
            if octet >= POINTER {
                if part < self.question_end {
                    return Err(Malformed::Name);
                }
                at = pointer(bytes, at, part)?;
                part = at;
                pointers += 1;
                continue;
            }
            at += 1 + usize::from(octet);
            length += 1 + usize::from(octet);
            if octet > MAX_LABEL || length > MAX_NAME || pointers > MAX_POINTERS {
                return Err(Malformed::Name);
            }
            if octet == 0 {
                if leaves_question(part, at, self.question_end) {
                    return Err(Malformed::Name);
                }
                return Ok(NameSize { length: length as u8, pointers: pointers as u8 });
            }
        }
    }
}

/// Table entry for the name that begins at a position.
#[derive(Clone, Copy)]
struct KnownName {
    /// Size of the expanded name; a length of 0 means that nothing is known.
    size: NameSize,
    /// Target of its first pointer, 0 without one. A name that runs into this one from an earlier position must begin
    /// after that target, because the same pointer then belongs to a part that begins there.
    target: u16,
}

impl KnownName {
    const UNKNOWN: KnownName = KnownName { size: NameSize { length: 0, pointers: 0 }, target: 0 };
}

/// Table of every name walked behind a pointer, so that no position is walked again.
struct MemoTable {
    names: [KnownName; POINTER_REACH],
    question_end: usize,
}

impl PointerTargets for MemoTable {
    fn size_at(&mut self, bytes: &[u8], start: usize, steps: &mut impl Steps) -> Result<NameSize, Malformed> {
        let mut targets = [0; MAX_POINTERS + 1];
        let size = self.measure(bytes, start, &mut targets, steps)?;
        self.store(bytes, start, size, &targets, steps);
        Ok(size)
    }
}

/// Targets of the pointers of a name, in order; 0 after the last.
type TargetList = [u16; MAX_POINTERS + 1];

impl MemoTable {
    fn known(&self, at: usize) -> Option<KnownName> {
        self.names.get(at).copied().filter(|part| part.size.length != 0)
    }

    /// Walks from `start` to the root or to the first known position.
    fn measure(
        &self,
        bytes: &[u8],
        start: usize,
        targets: &mut TargetList,
        steps: &mut impl Steps,
    ) -> Result<NameSize, Malformed> {
        let (mut part, mut at) = (start, start);
        let (mut length, mut pointers) = (0, 0);
        loop {
            steps.add(1);
            let known = self.known(at);
            let octet = *bytes.get(at).ok_or(Malformed::Name)?;
            if let Some(known) = known {
                // The known part of the question ends with its name.
                let leaves = part < self.question_end && at >= self.question_end;
                if leaves || usize::from(known.target) >= part {
                    return Err(Malformed::Name);
                }
                *targets.get_mut(pointers).ok_or(Malformed::Name)? = known.target;
                length += usize::from(known.size.length);
                pointers += usize::from(known.size.pointers);
            } else if octet >= POINTER {
                if part < self.question_end {
                    return Err(Malformed::Name);
                }
                at = pointer(bytes, at, part)?;
                part = at;
                *targets.get_mut(pointers).ok_or(Malformed::Name)? = at as u16;
                pointers += 1;
                continue;
            } else if octet > MAX_LABEL {
                return Err(Malformed::Name);
            } else {
                at += 1 + usize::from(octet);
                length += 1 + usize::from(octet);
                if octet == 0 && leaves_question(part, at, self.question_end) {
                    return Err(Malformed::Name);
                }
            }
            if length > MAX_NAME || pointers > MAX_POINTERS {
                return Err(Malformed::Name);
            }
            if known.is_some() || octet == 0 {
                return Ok(NameSize { length: length as u8, pointers: pointers as u8 });
            }
        }
    }

    /// Walks the same way again and stores the rest of the name at each position.
    fn store(
        &mut self,
        bytes: &[u8],
        start: usize,
        mut left: NameSize,
        targets: &TargetList,
        steps: &mut impl Steps,
    ) {
        let mut at = start;
        let mut targets = targets.iter().copied();
        let mut target = targets.next().unwrap_or(0);
        while self.known(at).is_none() && left.length != 0 {
            steps.add(1);
            if let Some(part) = self.names.get_mut(at) {
                *part = KnownName { size: left, target };
            }
            match bytes.get(at) {
                Some(POINTER..) => {
                    left.pointers -= 1;
                    at = usize::from(target);
                    target = targets.next().unwrap_or(0);
                }
                Some(&octet) => {
                    left.length -= 1 + octet;
                    at += 1 + usize::from(octet);
                }
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// A message whose NULL record holds octets that are likely labels and pointers, and CNAME records that point
    /// there.
    fn tangle(next: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
        let mut bytes = b"\0\0\x80\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01".to_vec();
        let fabric = 2 + next(60);
        bytes.extend(b"\0\0\x0a\0\x01\0\0\0\0\0");
        bytes.push(fabric as u8);
        let start = bytes.len();
        while bytes.len() < start + fabric {
            match next(8) {
                0 => bytes.push(0),
                1..=4 => bytes.push(1 + next(4) as u8),
                _ => bytes.extend([0xc0, (12 + next(bytes.len() - 10)) as u8]),
            }
        }
        bytes.truncate(start + fabric);
        let records = 1 + next(12);
        for _ in 0..records {
            let owner = start + next(fabric);
            bytes.extend([0xc0, owner as u8, 0, 5, 0, 1, 0, 0, 0, 0, 0, 2, 0xc0]);
            bytes.push((start + next(fabric)) as u8);
        }
        bytes[7] = 1 + records as u8;
        bytes
    }

    #[test]
    fn the_table_changes_no_result() {
        let mut random = kit::Random::new(0x1234_5678);
        let mut next = move |below: usize| random.place(below);
        let mut accepted = 0;
        for _ in 0..200_000 {
            let bytes = tangle(&mut next);
            let question_end = HEADER + name::name_len(&bytes[HEADER..]).unwrap() + 4;
            let counts = [header::ancount(&bytes), header::nscount(&bytes), header::arcount(&bytes)];
            let (mut steps, mut offsets) = (0u64, SectionOffsets::without_records(question_end));
            let mut plain_walk =
                Walk::new(&bytes, StepBudget { left: u32::MAX, is_spent: false, question_end }, &mut steps);
            let plain = plain_walk.sections(counts, &mut offsets);
            assert!(!plain_walk.pointer_targets.is_spent, "a chain of backward pointers ended");
            let with_table = parse_with_table(&bytes, question_end, counts, &mut ());
            assert_eq!(plain.err(), with_table.err(), "{bytes:02x?}");
            accepted += u32::from(with_table.is_ok());
        }
        // Both results must have occurred often, or the test shows nothing.
        assert!((10_000..190_000).contains(&accepted), "{accepted}");
    }
}
