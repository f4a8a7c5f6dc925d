//! Why AD is set in an answer, or not (RFC 6147 section 5.5, RFC 6840 sections 5.7 and 5.8). What was decided is seen in
//! the answer and in the legs; here stands only what to say of it.

use super::Explanation;
use crate::settings::Dnssec;
use core::fmt;
use wire::Flags;

/// Why AD is set, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// It is set: everything that the answer is made of is secure, and the client wants to know.
    Secure,
    /// The configuration has it never set.
    Off,
    /// The answer is our own, or there is none.
    Own,
    /// The upstream did not set AD in the reply of this leg, or the leg failed.
    Insecure(usize),
    /// The client did not ask for it.
    NotAsked,
    /// The client set CD: it checks by itself, and an address that was made cannot be checked.
    CheckingDisabled,
    /// Some AAAA records are left out: what is left is not what was signed.
    Filtered,
}

impl Explanation {
    /// Why AD is set in the answer, or not.
    pub fn security(&self) -> Security {
        let flags = self.asked().map_or(Flags(0), |question| question.flags());
        let dnssec_ok = self.dnssec_ok();
        let insecure = self.legs.iter().position(|leg| {
            leg.is_over && !leg.replied().is_some_and(|reply| reply.flags().contains(Flags::AD))
        });
        let synthesized = self.secure.is_some();
        match (self.answered(), insecure) {
            (Some(answer), _) if answer.flags().contains(Flags::AD) => Security::Secure,
            (None, _) => Security::Own,
            _ if self.legs.is_empty() => Security::Own,
            _ if self.dnssec == Dnssec::Off => Security::Off,
            (_, Some(leg)) if self.legs[leg].own.is_some() => Security::Own,
            (_, Some(leg)) => Security::Insecure(leg),
            // Synthesis wants DO; otherwise AD in the question is enough.
            _ if !dnssec_ok && (synthesized || !flags.contains(Flags::AD)) => Security::NotAsked,
            _ if synthesized && flags.contains(Flags::CD) => Security::CheckingDisabled,
            _ => Security::Filtered,
        }
    }

    /// Whether DO is set in the question.
    pub fn dnssec_ok(&self) -> bool {
        self.asked().and_then(|question| question.opt()).is_some_and(|opt| opt.dnssec_ok())
    }
}

impl Security {
    /// A word for programs.
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

    /// What demands it.
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
                write!(f, "AD is set: the upstream set it in every leg, and the client asks for it")
            }
            Security::Off => write!(f, "AD is clear: the configuration trusts no upstream"),
            Security::Own => write!(f, "AD is clear: unlimited_requestor has signed data of our own"),
            Security::Insecure(_) => write!(f, "AD is clear: the upstream did not set it in every leg"),
            Security::NotAsked => write!(f, "AD is clear: the client does not ask for it"),
            Security::CheckingDisabled => write!(f, "AD is clear: the client set CD and checks by itself"),
            Security::Filtered => write!(f, "AD is clear: some of the signed records are left out"),
        }
    }
}
