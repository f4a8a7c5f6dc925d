//! The AD bit of an explained answer: the reason why it is set or clear (RFC 6147 section 5.5, RFC 6840 sections 5.7 and 5.8).
//!
//! The engine has decided already. This file derives the reason from the answer and the lookups.

use super::Explanation;
use crate::settings::Dnssec;
use core::fmt;
use wire::Flags;

/// Reason why AD is set or clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// AD is set: all parts of the answer are secure, and the client requests AD.
    Secure,
    /// The configuration trusts no upstream, so AD is never set.
    Off,
    /// The answer is local, or there is none.
    Own,
    /// This lookup is not secure: the upstream did not set AD, validation found no chain, or the lookup failed.
    Insecure(usize),
    /// The client did not request AD.
    NotAsked,
    /// The client set CD: it validates itself, and a synthesized address cannot be validated.
    CheckingDisabled,
    /// Some AAAA records are left out, so the rest is not the RRset that was signed.
    Filtered,
}

impl Explanation {
    /// Returns the reason why AD is set or clear in the answer.
    pub fn security(&self) -> Security {
        let flags = self.asked().map_or(Flags(0), |question| question.flags());
        let dnssec_ok = self.dnssec_ok();
        let insecure = self.lookups.iter().position(|lookup| {
            lookup.is_over
                && !lookup.is_for_chain
                && !lookup.replied().is_some_and(|reply| reply.flags().contains(Flags::AD))
        });
        let synthesized = self.secure.is_some();
        match (self.answered(), insecure) {
            (Some(answer), _) if answer.flags().contains(Flags::AD) => Security::Secure,
            (None, _) => Security::Own,
            _ if self.lookups.is_empty() => Security::Own,
            _ if self.dnssec == Dnssec::Off => Security::Off,
            (_, Some(lookup)) if self.lookups[lookup].own.is_some() => Security::Own,
            (_, Some(lookup)) => Security::Insecure(lookup),
            // A synthesized answer has AD only if DO is set in the query; for other answers AD in the query is enough.
            _ if !dnssec_ok && (synthesized || !flags.contains(Flags::AD)) => Security::NotAsked,
            _ if synthesized && flags.contains(Flags::CD) => Security::CheckingDisabled,
            _ => Security::Filtered,
        }
    }

    /// True if the query asks for DNSSEC in any way: with DO (RFC 3225), AD (RFC 6840 section 5.7) or CD.
    pub fn asks_for_dnssec(&self) -> bool {
        let flags = self.asked().map_or(Flags(0), |question| question.flags());
        self.dnssec_ok() || flags.contains(Flags::AD) || flags.contains(Flags::CD)
    }

    /// True if DO is set in the query.
    pub fn dnssec_ok(&self) -> bool {
        self.asked().and_then(|question| question.opt()).is_some_and(|opt| opt.dnssec_ok())
    }
}

impl Security {
    /// Code of the reason for programs.
    pub fn code(self) -> &'static str {
        match self {
            Security::Secure => "secure",
            Security::Off => "off",
            Security::Own => "own",
            Security::Insecure(_) => "insecure",
            Security::NotAsked => "not_asked",
            Security::CheckingDisabled => "checking_disabled",
            Security::Filtered => "filtered",
        }
    }

    /// Requirement behind the reason.
    pub fn requirement(self) -> &'static str {
        match self {
            Security::Off => "dns64.dnssec",
            Security::NotAsked => "RFC 6840 section 5.8",
            Security::Filtered => "RFC 4035 section 3.2.3",
            _ => "RFC 6147 section 5.5",
        }
    }
}

impl fmt::Display for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Security::Secure => {
                write!(f, "AD is set: every lookup is secure, and the client requests it")
            }
            Security::Off => write!(f, "AD is clear: the configuration trusts no upstream"),
            Security::Own => write!(f, "AD is clear: local data is not signed"),
            Security::Insecure(_) => write!(f, "AD is clear: not every lookup is secure"),
            Security::NotAsked => write!(f, "AD is clear: the client does not request it"),
            Security::CheckingDisabled => write!(f, "AD is clear: the client set CD and validates itself"),
            Security::Filtered => write!(f, "AD is clear: some of the signed records are left out"),
        }
    }
}
