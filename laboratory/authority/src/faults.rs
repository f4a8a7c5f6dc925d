//! Fault injection: late answers, lost queries, and names that fail. A keyed hash decides, so the same seed gives the
//! same faults. A failure depends on name and type only, so it is a property of the name. Loss and jitter also depend
//! on the message ID, so a retransmission with a new ID is decided again.
//!
//! The hash is FNV-1a over the case-folded name with the finalizer of SplitMix64. It only has to distribute evenly;
//! no security depends on it.

use crate::counters::Kind;
use crate::limits;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use wire::{Class, Message, Opcode, Rcode, Type};

/// The faults to inject and their frequency. The default has none.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    delay: Duration,
    jitter: Duration,
    /// A query is lost if its hash (32 bits) is below this; 2^32 means every query.
    loss_below: u64,
    failures: Vec<Failure>,
    /// True if the server knows no EDNS.
    lacks_edns: bool,
    /// Queries for names that begin with these characters have no answer; empty: there are none.
    silent: &'static str,
    seed: u64,
}

/// A way in which a name fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The answer is SERVFAIL.
    Servfail,
    /// The answer is REFUSED.
    Refused,
    /// The answer is FORMERR.
    Formerr,
    /// The answer is NOTIMP.
    Notimp,
    /// There is no answer.
    Timeout,
    /// The answer over UDP is truncated (TC), the answer over TCP is complete.
    Truncate,
}

/// A share of the names that fail in one way, for one query type or for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure {
    /// The way of failing.
    pub kind: FailureKind,
    /// The share of the names, 0 to 1.
    pub share: f64,
    /// The query type; `None` means every type.
    pub qtype: Option<Type>,
}

/// Action on a query before it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultAction {
    /// Answer at once.
    Answer,
    /// Answer after this time.
    Delay(Duration),
    /// Do not answer.
    Drop(Kind, Type),
}

/// Purpose of a hash, so that the hashes for different purposes are independent.
#[derive(Clone, Copy)]
enum Draw {
    Failure = 1,
    Loss = 2,
    Jitter = 3,
}

impl Faults {
    /// No faults; `seed` decides the faults that are added later.
    pub fn new(seed: u64) -> Faults {
        Faults { seed, ..Faults::default() }
    }

    /// Delays all answers by `delay`, and by up to `jitter` more, evenly distributed. Both together are at most
    /// [`limits::DELAY`].
    pub fn delay(mut self, delay: Duration, jitter: Duration) -> Faults {
        self.delay = delay.min(limits::DELAY);
        self.jitter = jitter.min(limits::DELAY - self.delay);
        self
    }

    /// Loses this share of the UDP queries, 0 to 1.
    pub fn loss(mut self, share: f64) -> Faults {
        self.loss_below = threshold(share);
        self
    }

    /// Makes a server that knows no EDNS: to a query with an OPT record it answers FORMERR (RFC 6891 section 7).
    pub fn without_edns(mut self) -> Faults {
        self.lacks_edns = true;
        self
    }

    /// Makes a server without an answer for the names that begin with `start`, which is not empty and has no letters.
    pub fn silent_about(mut self, start: &'static str) -> Faults {
        self.silent = start;
        self
    }

    /// Lets a share of the names fail. Shares of one type add up, because a name fails in one way only.
    ///
    /// # Errors
    ///
    /// `FaultError::TooMany`: there are [`limits::FAILURES`] already. `FaultError::Sum`: the shares of a type add up to more than 1.
    pub fn fail(mut self, failure: Failure) -> Result<Faults, FaultError> {
        if self.failures.len() == limits::FAILURES {
            return Err(FaultError::TooMany);
        }
        self.failures.push(failure);
        let types = self.failures.iter().filter_map(|failure| failure.qtype);
        for qtype in types.map(Some).chain([None]) {
            let sum: f64 = self.applying(qtype).map(|failure| failure.share).sum();
            // Sums of shares such as 0.1 and 0.9 are not exact.
            if sum > 1.0 + 1e-9 {
                return Err(FaultError::Sum(sum));
            }
        }
        Ok(self)
    }

    /// True if some queries are answered late or never.
    #[inline]
    pub(crate) fn affects_timing(&self) -> bool {
        self.loss_below > 0 || self.may_delay() || !self.failures.is_empty() || !self.silent.is_empty()
    }

    /// True if answers are delayed.
    pub(crate) fn may_delay(&self) -> bool {
        self.delay + self.jitter > Duration::ZERO
    }

    /// True if the server knows no EDNS.
    #[inline]
    pub(crate) fn lacks_edns(&self) -> bool {
        self.lacks_edns
    }

    /// True if some answers fail.
    #[inline]
    pub(crate) fn affects_answers(&self) -> bool {
        !self.failures.is_empty()
    }

    /// The action on a query.
    pub(crate) fn action(&self, query: &[u8], over_udp: bool) -> FaultAction {
        let Ok(asked) = Message::parse(query) else { return FaultAction::Answer };
        if asked.is_response() || !is_eligible(&asked) {
            return FaultAction::Answer;
        }
        let qtype = asked.qtype();
        if over_udp && u64::from(self.draw(Draw::Loss, &asked)) < self.loss_below {
            return FaultAction::Drop(Kind::FaultLoss, qtype);
        }
        if self.is_silent_about(&asked) || self.failure_kind(&asked) == Some(FailureKind::Timeout) {
            return FaultAction::Drop(Kind::FaultTimeout, qtype);
        }
        if !self.may_delay() {
            return FaultAction::Answer;
        }
        let drawn = f64::from(self.draw(Draw::Jitter, &asked)) / 4_294_967_296.0;
        FaultAction::Delay(self.delay + self.jitter.mul_f64(drawn))
    }

    /// True if the name of a query is one without an answer. The first label follows its length.
    fn is_silent_about(&self, asked: &Message<'_>) -> bool {
        !self.silent.is_empty()
            && asked.qname().get(1..).is_some_and(|name| name.starts_with(self.silent.as_bytes()))
    }

    /// The failure that replaces the right answer of a name.
    pub(crate) fn failure(&self, asked: &Message<'_>, over_udp: bool) -> Option<(Kind, Rcode)> {
        if !is_eligible(asked) {
            return None;
        }
        Some(match self.failure_kind(asked)? {
            FailureKind::Servfail => (Kind::FaultServfail, Rcode::SERVFAIL),
            FailureKind::Refused => (Kind::FaultRefused, Rcode::REFUSED),
            FailureKind::Formerr => (Kind::FaultFormerr, Rcode::FORMERR),
            FailureKind::Notimp => (Kind::FaultNotimp, Rcode::NOTIMP),
            FailureKind::Truncate if over_udp => (Kind::FaultTruncated, Rcode::NOERROR),
            FailureKind::Truncate | FailureKind::Timeout => return None,
        })
    }

    fn failure_kind(&self, asked: &Message<'_>) -> Option<FailureKind> {
        if self.failures.is_empty() {
            return None;
        }
        let drawn = u64::from(self.draw(Draw::Failure, asked));
        let mut below = 0;
        for failure in self.applying(Some(asked.qtype())) {
            below += threshold(failure.share);
            if drawn < below {
                return Some(failure.kind);
            }
        }
        None
    }

    /// The failures that apply to queries for a type; `None` stands for a type that no failure names.
    fn applying(&self, qtype: Option<Type>) -> impl Iterator<Item = &Failure> {
        self.failures.iter().filter(move |failure| failure.qtype.is_none() || failure.qtype == qtype)
    }

    /// 32 evenly distributed bits from seed, purpose, name and type; for loss and jitter also from the message ID.
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

/// True for the queries that a DNS64 server sends: only these get faults.
fn is_eligible(asked: &Message<'_>) -> bool {
    asked.opcode() == Opcode::QUERY && asked.qclass() == Class::IN
}

/// The first number of SplitMix64 for a seed: every bit of the input flips every bit of the result with probability 1/2.
pub(crate) fn mix(value: u64) -> u64 {
    splitmix::mix(value.wrapping_add(splitmix::GAMMA))
}

/// Converts a share to a threshold for 32 evenly distributed bits.
fn threshold(share: f64) -> u64 {
    // The conversion saturates, so values outside 0 to 1 count as 0 or 1, and NaN as 0.
    ((share * 4_294_967_296.0) as u64).min(1 << 32)
}

impl FromStr for Failure {
    type Err = FaultError;

    /// Parses `KIND=SHARE[:TYPE]`, as `servfail=0.01:AAAA`.
    fn from_str(text: &str) -> Result<Failure, FaultError> {
        let (kind, rest) = text.split_once('=').ok_or(FaultError::Shape)?;
        let (share, qtype) = rest.split_once(':').map_or((rest, None), |(share, qtype)| (share, Some(qtype)));
        let kind = match kind.to_ascii_lowercase().as_str() {
            "servfail" => FailureKind::Servfail,
            "refused" => FailureKind::Refused,
            "formerr" => FailureKind::Formerr,
            "notimp" => FailureKind::Notimp,
            "timeout" => FailureKind::Timeout,
            "truncate" => FailureKind::Truncate,
            _ => return Err(FaultError::Kind),
        };
        let share =
            share.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or(FaultError::Share)?;
        let qtype = qtype.map(str::parse).transpose().map_err(|_| FaultError::Type)?;
        Ok(Failure { kind, share, qtype })
    }
}

/// Reason why a failure is refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultError {
    /// Not `KIND=SHARE[:TYPE]`.
    Shape,
    /// An unknown kind.
    Kind,
    /// Not a number from 0 to 1.
    Share,
    /// An unknown type of query.
    Type,
    /// The sum of the shares for one query type, which is more than 1.
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
            FaultError::Type => f.write_str("unknown query type; write it like AAAA or TYPE65"),
            FaultError::Sum(sum) => {
                write!(
                    f,
                    "the shares of failing names add up to {sum} for one query type; the sum must be at most 1"
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
