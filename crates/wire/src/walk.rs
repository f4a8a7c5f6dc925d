//! The walk that finds a message well formed, in a number of steps linear in its octets.
//!
//! Labels in place are met once, in order. What makes readers slow is pointers: a record of 12 octets may own a name
//! of 127 labels, so 64 KiB of them cost most readers a million steps. Honest messages follow pointers for a few dozen
//! steps. So the walk first runs with a budget of steps behind pointers and no memory ([`Budget`]); if that is spent, it
//! starts over with a table of what it has learned about every position that a pointer can reach ([`Learned`]), and then
//! no position behind a pointer is visited more than twice.

use crate::edns::Options;
use crate::header::{self, HEADER};
use crate::limits::{BUDGET, MAX_HOPS, MAX_LABEL, MAX_NAME, REACH};
use crate::message::{Malformed, Message};
use crate::name::{self, POINTER};
use crate::rdata::{After, Shape, shape};
use crate::record::FIXED;
use crate::types::{Class, Type};

/// Counts the steps of the walk, or does not.
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

/// Why the walk stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Malformed(Malformed),
    /// The budget is spent; the message may be good or bad.
    Spent,
}

impl From<Malformed> for Stop {
    #[inline]
    fn from(malformed: Malformed) -> Stop {
        Stop::Malformed(malformed)
    }
}

/// Walks a message.
#[inline]
pub(crate) fn parse<'a>(bytes: &'a [u8], steps: &mut impl Steps) -> Result<Message<'a>, Malformed> {
    match (Walk { bytes, tails: Budget { left: BUDGET }, last: Last::NONE, furthest: 0, steps: &mut *steps })
        .message()
    {
        Ok(message) => Ok(message),
        Err(Stop::Malformed(malformed)) => Err(malformed),
        Err(Stop::Spent) => parse_learning(bytes, steps),
    }
}

#[cold]
#[inline(never)]
fn parse_learning<'a>(bytes: &'a [u8], steps: &mut impl Steps) -> Result<Message<'a>, Malformed> {
    let tails = Learned { parts: [Part::UNKNOWN; REACH] };
    (Walk { bytes, tails, last: Last::NONE, furthest: 0, steps }).message().map_err(|stop| match stop {
        Stop::Malformed(malformed) => malformed,
        // Without a budget nothing is spent.
        Stop::Spent => Malformed::Name,
    })
}

struct Walk<'a, 's, T, S> {
    bytes: &'a [u8],
    tails: T,
    last: Last,
    /// Where the names end that pointers lead to, the furthest of them.
    furthest: usize,
    steps: &'s mut S,
}

/// The last pointer's target and what was found there: the records of an RRset all point at the same owner.
#[derive(Clone, Copy)]
struct Last {
    target: usize,
    tail: Tail,
}

impl Last {
    /// No pointer leads to 0.
    const NONE: Last = Last { target: 0, tail: Tail { length: 0, hops: 0 } };
}

impl<'a, T: Tails, S: Steps> Walk<'a, '_, T, S> {
    #[inline]
    fn message(&mut self) -> Result<Message<'a>, Stop> {
        let bytes = self.bytes;
        if bytes.len() < HEADER {
            return Err(Malformed::Short.into());
        }
        if header::qdcount(bytes) != 1 {
            return Err(Malformed::QuestionCount.into());
        }
        let qname = name::name_len(&bytes[HEADER..]).ok_or(Malformed::Name)?;
        self.steps.add(qname);
        let mut at = HEADER + qname + 4;
        if at > bytes.len() {
            return Err(Malformed::Question.into());
        }
        let mut message = Message { bytes, starts: [at; 3], end: at, opt: (0, 0), furthest: 0 };
        for _ in 0..header::ancount(bytes) {
            at = self.record(at, None)?;
        }
        message.starts[1] = at;
        for _ in 0..header::nscount(bytes) {
            at = self.record(at, None)?;
        }
        message.starts[2] = at;
        for _ in 0..header::arcount(bytes) {
            at = self.record(at, Some(&mut message.opt))?;
        }
        message.end = at;
        message.furthest = self.furthest;
        Ok(message)
    }

    /// Walks one record and returns where it ends. `opt` takes the place of an OPT record, where one may stand.
    #[inline]
    fn record(&mut self, start: usize, opt: Option<&mut (usize, usize)>) -> Result<usize, Stop> {
        self.steps.add(1);
        let at = self.name(start)?;
        let fixed: &[u8; FIXED] =
            self.bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(Malformed::Record)?;
        let [t0, t1, c0, c1, _, _, _, _, l0, l1] = *fixed;
        let rdata_start = at + FIXED;
        let end = rdata_start + usize::from(u16::from_be_bytes([l0, l1]));
        let rdata = self.bytes.get(rdata_start..end).ok_or(Malformed::Record)?;
        let class = Class(u16::from_be_bytes([c0, c1]));
        match Type(u16::from_be_bytes([t0, t1])) {
            // The format of addresses belongs to class IN: in CH an A record is a name and a number.
            Type::A if class == Class::IN && rdata.len() != 4 => Err(Malformed::Rdata.into()),
            Type::AAAA if class == Class::IN && rdata.len() != 16 => Err(Malformed::Rdata.into()),
            Type::A | Type::AAAA => Ok(end),
            Type::OPT => {
                let root = at == start + 1;
                match opt {
                    Some(place @ &mut (0, 0)) if root && self.options(rdata) => *place = (start, end),
                    _ => return Err(Malformed::Opt.into()),
                }
                Ok(end)
            }
            rtype => match shape(rtype) {
                // Updates have records without RDATA in these classes (RFC 2136 sections 2.4 and 2.5).
                Some(_) if rdata.is_empty() && (class == Class::ANY || class == Class::NONE) => Ok(end),
                Some(shape) => self.names(shape, rdata_start, rdata, end),
                None => Ok(end),
            },
        }
    }

    /// Walks RDATA that holds names.
    fn names(&mut self, shape: Shape, start: usize, rdata: &[u8], end: usize) -> Result<usize, Stop> {
        let mut at = start + shape.first_name(rdata).ok_or(Malformed::Rdata)?;
        for _ in 0..shape.names {
            at = self.name(at)?;
        }
        let fits = match shape.after {
            After::Octets(octets) => at + octets == end,
            After::Rest => at <= end,
        };
        if fits { Ok(end) } else { Err(Malformed::Rdata.into()) }
    }

    fn options(&mut self, rdata: &[u8]) -> bool {
        let mut options = Options::new(rdata);
        self.steps.add(1 + options.by_ref().count());
        options.is_empty()
    }

    /// Walks a name in its place and returns where it ends there.
    #[inline]
    fn name(&mut self, start: usize) -> Result<usize, Stop> {
        let mut at = start;
        let mut length = 0;
        loop {
            self.steps.add(1);
            let octet = *self.bytes.get(at).ok_or(Malformed::Name)?;
            if octet >= POINTER {
                let target = pointer(self.bytes, at, start)?;
                // Most pointers lead to the question's name, which was the first to be checked: only the sum of
                // the lengths is left to see, and that only behind labels.
                if target != HEADER || length != 0 {
                    if target != self.last.target {
                        let tail = self.tails.tail(self.bytes, target, self.steps)?;
                        self.last = Last { target, tail };
                    }
                    let tail = self.last.tail;
                    // With a pointer of its own, a name cannot lie in the question.
                    let ends = if tail.hops == 0 { target + usize::from(tail.length) } else { usize::MAX };
                    self.furthest = self.furthest.max(ends);
                    // This pointer is one more hop.
                    if length + usize::from(tail.length) > MAX_NAME || usize::from(tail.hops) >= MAX_HOPS {
                        return Err(Malformed::Name.into());
                    }
                }
                return Ok(at + 2);
            }
            if octet > MAX_LABEL {
                return Err(Malformed::Name.into());
            }
            at += 1 + usize::from(octet);
            length += 1 + usize::from(octet);
            if length > MAX_NAME {
                return Err(Malformed::Name.into());
            }
            if octet == 0 {
                return Ok(at);
            }
        }
    }
}

/// Where the pointer at `at` leads: before the part of the name that holds it, and after the header.
#[inline]
fn pointer(bytes: &[u8], at: usize, part: usize) -> Result<usize, Malformed> {
    match name::pointer(bytes, at) {
        Some(target) if target < part => Ok(target),
        _ => Err(Malformed::Name),
    }
}

/// What a pointer leads to: a name, expanded.
#[derive(Clone, Copy)]
struct Tail {
    /// Octets with the root, at most 255.
    length: u8,
    /// Pointers on the way, at most [`MAX_HOPS`].
    hops: u8,
}

/// Judges the names behind pointers.
trait Tails {
    fn tail(&mut self, bytes: &[u8], at: usize, steps: &mut impl Steps) -> Result<Tail, Stop>;
}

/// Walks each name behind a pointer, as long as the budget lasts.
struct Budget {
    left: u32,
}

impl Tails for Budget {
    #[inline]
    fn tail(&mut self, bytes: &[u8], start: usize, steps: &mut impl Steps) -> Result<Tail, Stop> {
        let (mut part, mut at) = (start, start);
        let (mut length, mut hops) = (0, 0);
        loop {
            steps.add(1);
            self.left = self.left.checked_sub(1).ok_or(Stop::Spent)?;
            let octet = *bytes.get(at).ok_or(Malformed::Name)?;
            if octet >= POINTER {
                at = pointer(bytes, at, part)?;
                part = at;
                hops += 1;
                continue;
            }
            at += 1 + usize::from(octet);
            length += 1 + usize::from(octet);
            if octet > MAX_LABEL || length > MAX_NAME || hops > MAX_HOPS {
                return Err(Malformed::Name.into());
            }
            if octet == 0 {
                return Ok(Tail { length: length as u8, hops: hops as u8 });
            }
        }
    }
}

/// What is known of the name that begins at a position.
#[derive(Clone, Copy)]
struct Part {
    /// Its expansion; a length of 0 means that nothing is known.
    tail: Tail,
    /// Where its first pointer leads, 0 without one. A name that runs into this one from further ahead must begin
    /// behind that place, as the same pointer then belongs to a part that begins there.
    target: u16,
}

impl Part {
    const UNKNOWN: Part = Part { tail: Tail { length: 0, hops: 0 }, target: 0 };
}

/// Remembers every name that it has walked behind a pointer, so that no position is walked again.
struct Learned {
    parts: [Part; REACH],
}

impl Tails for Learned {
    fn tail(&mut self, bytes: &[u8], start: usize, steps: &mut impl Steps) -> Result<Tail, Stop> {
        let mut targets = [0; MAX_HOPS + 1];
        let tail = self.judge(bytes, start, &mut targets, steps)?;
        self.learn(bytes, start, tail, &targets, steps);
        Ok(tail)
    }
}

/// Where the pointers of a name lead, in order; 0 after the last.
type Targets = [u16; MAX_HOPS + 1];

impl Learned {
    fn known(&self, at: usize) -> Option<Part> {
        self.parts.get(at).copied().filter(|part| part.tail.length != 0)
    }

    /// Walks from `start` to the root or to the first position that is known.
    fn judge(
        &self,
        bytes: &[u8],
        start: usize,
        targets: &mut Targets,
        steps: &mut impl Steps,
    ) -> Result<Tail, Malformed> {
        let (mut part, mut at) = (start, start);
        let (mut length, mut hops) = (0, 0);
        loop {
            steps.add(1);
            let known = self.known(at);
            let octet = *bytes.get(at).ok_or(Malformed::Name)?;
            if let Some(known) = known {
                if usize::from(known.target) >= part {
                    return Err(Malformed::Name);
                }
                *targets.get_mut(hops).ok_or(Malformed::Name)? = known.target;
                length += usize::from(known.tail.length);
                hops += usize::from(known.tail.hops);
            } else if octet >= POINTER {
                at = pointer(bytes, at, part)?;
                part = at;
                *targets.get_mut(hops).ok_or(Malformed::Name)? = at as u16;
                hops += 1;
                continue;
            } else if octet > MAX_LABEL {
                return Err(Malformed::Name);
            } else {
                at += 1 + usize::from(octet);
                length += 1 + usize::from(octet);
            }
            if length > MAX_NAME || hops > MAX_HOPS {
                return Err(Malformed::Name);
            }
            if known.is_some() || octet == 0 {
                return Ok(Tail { length: length as u8, hops: hops as u8 });
            }
        }
    }

    /// Walks the same way again and writes down what is left of the name at each position.
    fn learn(
        &mut self,
        bytes: &[u8],
        start: usize,
        mut left: Tail,
        targets: &Targets,
        steps: &mut impl Steps,
    ) {
        let mut at = start;
        let mut targets = targets.iter().copied();
        let mut target = targets.next().unwrap_or(0);
        while self.known(at).is_none() && left.length != 0 {
            steps.add(1);
            if let Some(part) = self.parts.get_mut(at) {
                *part = Part { tail: left, target };
            }
            match bytes.get(at) {
                Some(POINTER..) => {
                    left.hops -= 1;
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

    /// A message whose NULL record holds octets that are likely labels and pointers, and CNAME records that point there.
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
    fn what_was_learned_changes_no_verdict() {
        let mut random = 0x1234_5678_u64;
        let mut next = move |below: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            ((random >> 8) % below as u64) as usize
        };
        let mut accepted = 0;
        for _ in 0..200_000 {
            let bytes = tangle(&mut next);
            let endless = Budget { left: u32::MAX };
            let plain =
                (Walk { bytes: &bytes, tails: endless, last: Last::NONE, furthest: 0, steps: &mut () })
                    .message();
            let learned = parse_learning(&bytes, &mut ());
            let plain = plain.map_err(|stop| match stop {
                Stop::Malformed(malformed) => malformed,
                Stop::Spent => panic!("a chain of backward pointers ended"),
            });
            assert_eq!(plain.err(), learned.err(), "{bytes:02x?}");
            accepted += u32::from(learned.is_ok());
        }
        // Both verdicts were seen often, or the test shows nothing.
        assert!((10_000..190_000).contains(&accepted), "{accepted}");
    }
}
