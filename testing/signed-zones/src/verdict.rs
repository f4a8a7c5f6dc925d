//! Questions, kinds of denial, and verdicts.

use crate::record::rtype;

/// Way in which a zone denies names and types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// NSEC (RFC 4034 section 4).
    Nsec,
    /// NSEC3 (RFC 5155).
    Nsec3,
    /// NSEC3, with Opt-Out in every record.
    OptOut,
    /// NSEC records that are made for each answer (RFC 9824).
    Compact,
}

/// All kinds.
pub const KINDS: [Kind; 4] = [Kind::Nsec, Kind::Nsec3, Kind::OptOut, Kind::Compact];

/// Question: labels below the zone, and type.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// Labels below the apex.
    pub labels: &'static str,
    /// Type.
    pub rtype: u16,
    /// Description.
    pub what: &'static str,
}

const fn ask(labels: &'static str, rtype: u16, what: &'static str) -> Question {
    Question { labels, rtype, what }
}

/// Questions about a zone, in the order of the letters.
pub const QUESTIONS: [Question; 12] = [
    ask("both", rtype::A, "an address"),
    ask("both", rtype::AAAA, "an IPv6 address"),
    ask("four", rtype::AAAA, "an IPv6 address of a name that has none"),
    ask("missing", rtype::A, "a name that does not exist"),
    ask("x.wild", rtype::A, "an address by wildcard"),
    ask("x.wild", rtype::AAAA, "a type that the wildcard lacks"),
    ask("chain", rtype::A, "an address behind two aliases"),
    ask("host.plain", rtype::A, "an address below an unsigned delegation"),
    ask("ent", rtype::A, "an empty non-terminal"),
    ask("both.dname", rtype::A, "an address behind a DNAME record"),
    ask("y.alias", rtype::A, "an address behind an alias by wildcard"),
    ask("plain", rtype::DS, "DS records of an unsigned delegation"),
];

/// Verdict (RFC 4035 section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A chain of signatures leads to a trust anchor.
    Secure,
    /// Proven to need none.
    Insecure,
    /// Neither.
    Bogus,
    /// No trust anchor above the name.
    NoAnchor,
    /// The chain cannot be fetched.
    Unreachable,
}

/// Response to a client that sets DO and not CD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owed {
    /// Verdict.
    pub verdict: Verdict,
    /// Response code.
    pub rcode: u8,
    /// AD.
    pub is_authentic: bool,
}

impl Owed {
    /// Response after a verdict about a message with this response code.
    pub fn of(verdict: Verdict, rcode: u8) -> Owed {
        let has_failed = matches!(verdict, Verdict::Bogus | Verdict::Unreachable);
        // RFC 4035 section 5.5.
        let rcode = if has_failed { 2 } else { rcode };
        Owed { verdict, rcode, is_authentic: verdict == Verdict::Secure }
    }
}
