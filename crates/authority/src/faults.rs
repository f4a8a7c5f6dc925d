//! Faults on purpose: answers that come late, queries that are lost, and names that fail. All of them are drawn by a keyed
//! hash, so the same seed gives the same faults: a failure depends on name and type alone, so that it is a property of the
//! name; luck (loss, jitter) on the message ID too, so that a query that is repeated has new luck.
//!
//! The hash is FNV-1a over the case-folded name, finished as SplitMix64 does. It spreads; nothing's safety depends on it.

use crate::counters::Kind;
use crate::limits;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use wire::{Class, Message, Opcode, Rcode, Type};

/// What goes wrong, and how often. Nothing by default.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    delay: Duration,
    jitter: Duration,
    /// Queries whose hash (32 bits) is below are lost; 2^32 means all of them.
    loss_below: u64,
    failures: Vec<Failure>,
    seed: u64,
}

/// How a name fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// The answer is SERVFAIL.
    Servfail,
    /// The answer is REFUSED.
    Refused,
    /// The answer is FORMERR.
    Formerr,
    /// The answer is NOTIMP.
    Notimp,
    /// There is never an answer.
    Timeout,
    /// The answer over UDP is cut off (TC), the one over TCP is whole.
    Truncate,
}

/// A share of the names that fail in one way, for one type of query or for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure {
    /// What happens.
    pub mishap: Mishap,
    /// To which share of the names, 0 to 1.
    pub share: f64,
    /// When asked for this type; `None`: for any.
    pub qtype: Option<Type>,
}

/// What is to happen to a query before it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is answered at once.
    Now,
    /// It is answered after this time.
    Later(Duration),
    /// It is not answered.
    Never(Kind, Type),
}

/// What the hashes are drawn for, so that they are independent of each other.
#[derive(Clone, Copy)]
enum Draw {
    Failure = 1,
    Loss = 2,
    Jitter = 3,
}

impl Faults {
    /// No faults; what is added later is drawn by this seed.
    pub fn new(seed: u64) -> Faults {
        Faults { seed, ..Faults::default() }
    }

    /// All answers come this much later, and by up to `jitter` more, evenly distributed. Both together at most
    /// [`limits::DELAY`].
    pub fn delay(mut self, delay: Duration, jitter: Duration) -> Faults {
        self.delay = delay.min(limits::DELAY);
        self.jitter = jitter.min(limits::DELAY - self.delay);
        self
    }

    /// This share of the queries over UDP, 0 to 1, is lost.
    pub fn loss(mut self, share: f64) -> Faults {
        self.loss_below = threshold(share);
        self
    }

    /// A share of the names fails. Shares of the same type add up: a name fails in one way only.
    pub fn fail(mut self, failure: Failure) -> Result<Faults, FaultError> {
        if self.failures.len() == limits::FAILURES {
            return Err(FaultError::TooMany);
        }
        self.failures.push(failure);
        let types = self.failures.iter().filter_map(|failure| failure.qtype);
        for qtype in types.map(Some).chain([None]) {
            let sum: f64 = self.applying(qtype).map(|failure| failure.share).sum();
            // Shares such as 0.1 and 0.9 are not exact.
            if sum > 1.0 + 1e-9 {
                return Err(FaultError::Sum(sum));
            }
        }
        Ok(self)
    }

    /// Whether some queries are answered late or never.
    #[inline]
    pub(crate) fn touch_time(&self) -> bool {
        self.loss_below > 0 || self.may_delay() || !self.failures.is_empty()
    }

    /// Whether answers are delayed.
    pub(crate) fn may_delay(&self) -> bool {
        self.delay + self.jitter > Duration::ZERO
    }

    /// Whether some answers fail.
    #[inline]
    pub(crate) fn touch_answers(&self) -> bool {
        !self.failures.is_empty()
    }

    /// What is to happen to a query. `lossy`: it came over UDP.
    pub(crate) fn fate(&self, query: &[u8], lossy: bool) -> Fate {
        let Ok(asked) = Message::parse(query) else { return Fate::Now };
        if asked.is_response() || !is_concerned(&asked) {
            return Fate::Now;
        }
        let qtype = asked.qtype();
        if lossy && u64::from(self.draw(Draw::Loss, &asked)) < self.loss_below {
            return Fate::Never(Kind::FaultLoss, qtype);
        }
        if self.mishap(&asked) == Some(Mishap::Timeout) {
            return Fate::Never(Kind::FaultTimeout, qtype);
        }
        if !self.may_delay() {
            return Fate::Now;
        }
        let luck = f64::from(self.draw(Draw::Jitter, &asked)) / 4_294_967_296.0;
        Fate::Later(self.delay + self.jitter.mul_f64(luck))
    }

    /// The answer that a name gives instead of the right one. `lossy`: it goes over UDP.
    pub(crate) fn failure(&self, asked: &Message<'_>, lossy: bool) -> Option<(Kind, Rcode)> {
        if !is_concerned(asked) {
            return None;
        }
        Some(match self.mishap(asked)? {
            Mishap::Servfail => (Kind::FaultServfail, Rcode::SERVFAIL),
            Mishap::Refused => (Kind::FaultRefused, Rcode::REFUSED),
            Mishap::Formerr => (Kind::FaultFormerr, Rcode::FORMERR),
            Mishap::Notimp => (Kind::FaultNotimp, Rcode::NOTIMP),
            Mishap::Truncate if lossy => (Kind::FaultTruncated, Rcode::NOERROR),
            Mishap::Truncate | Mishap::Timeout => return None,
        })
    }

    fn mishap(&self, asked: &Message<'_>) -> Option<Mishap> {
        if self.failures.is_empty() {
            return None;
        }
        let luck = u64::from(self.draw(Draw::Failure, asked));
        let mut below = 0;
        for failure in self.applying(Some(asked.qtype())) {
            below += threshold(failure.share);
            if luck < below {
                return Some(failure.mishap);
            }
        }
        None
    }

    /// The failures of queries for a type; for `None`, those of a type that none of them names.
    fn applying(&self, qtype: Option<Type>) -> impl Iterator<Item = &Failure> {
        self.failures.iter().filter(move |failure| failure.qtype.is_none() || failure.qtype == qtype)
    }

    /// 32 even bits made of seed, purpose, name and type; for luck, of the message ID too.
    fn draw(&self, draw: Draw, asked: &Message<'_>) -> u32 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for &octet in asked.qname() {
            hash = (hash ^ u64::from(octet.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01b3);
        }
        let id = if matches!(draw, Draw::Failure) { 0 } else { asked.id() };
        let rest = (draw as u64) << 32 | u64::from(asked.qtype().0) << 16 | u64::from(id);
        (mix(mix(hash ^ self.seed) ^ rest) >> 32) as u32
    }
}

/// Whether faults concern a query: what a DNS64 server asks for.
fn is_concerned(asked: &Message<'_>) -> bool {
    asked.opcode() == Opcode::QUERY && asked.qclass() == Class::IN
}

/// The finalizer of SplitMix64: every bit of the input changes every bit of the result with even odds.
pub(crate) fn mix(value: u64) -> u64 {
    let mut hash = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

/// A share as a bound for 32 even bits.
fn threshold(share: f64) -> u64 {
    // A float becomes an integer by saturation, so anything outside 0 to 1 and NaN count as 0 or 1.
    ((share * 4_294_967_296.0) as u64).min(1 << 32)
}

impl FromStr for Failure {
    type Err = FaultError;

    /// Reads `KIND=SHARE[:TYPE]`, as `servfail=0.01:AAAA`.
    fn from_str(text: &str) -> Result<Failure, FaultError> {
        let (kind, rest) = text.split_once('=').ok_or(FaultError::Shape)?;
        let (share, qtype) = rest.split_once(':').map_or((rest, None), |(share, qtype)| (share, Some(qtype)));
        let mishap = match kind.to_ascii_lowercase().as_str() {
            "servfail" => Mishap::Servfail,
            "refused" => Mishap::Refused,
            "formerr" => Mishap::Formerr,
            "notimp" => Mishap::Notimp,
            "timeout" => Mishap::Timeout,
            "truncate" => Mishap::Truncate,
            _ => return Err(FaultError::Kind),
        };
        let share =
            share.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or(FaultError::Share)?;
        let qtype = qtype.map(str::parse).transpose().map_err(|_| FaultError::Type)?;
        Ok(Failure { mishap, share, qtype })
    }
}

/// Why a failure cannot be had.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultError {
    /// Not `KIND=SHARE[:TYPE]`.
    Shape,
    /// An unknown kind.
    Kind,
    /// No number from 0 to 1.
    Share,
    /// An unknown type of query.
    Type,
    /// The shares for one type of query add up to this, more than 1.
    Sum(f64),
    /// More than [`limits::FAILURES`].
    TooMany,
}

impl fmt::Display for FaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultError::Shape => {
                f.write_str("a failure is written KIND=SHARE or KIND=SHARE:TYPE, as in servfail=0.01:AAAA")
            }
            FaultError::Kind => f.write_str(
                "unknown kind of failure; use servfail, refused, formerr, notimp, timeout or truncate",
            ),
            FaultError::Share => f.write_str("the share of failing names must be a number from 0 to 1"),
            FaultError::Type => f.write_str("unknown type of query; write it like AAAA or TYPE65"),
            FaultError::Sum(sum) => {
                write!(
                    f,
                    "the shares of failing names add up to {sum} for one type of query; at most 1 is possible"
                )
            }
            FaultError::TooMany => write!(f, "too many failures; give at most {}", limits::FAILURES),
        }
    }
}

impl std::error::Error for FaultError {}

#[cfg(test)]
#[path = "faults_tests.rs"]
mod tests;
