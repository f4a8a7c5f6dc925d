//! Signed zones with a fault each (`signed-zones`), played to validators of others beside Sixfold: every validator has the trust anchors of
//! the zones and forwards all questions to one false resolver, which passes on signatures. What a client that sets DO and not CD gets is
//! compared: RCODE, AD, addresses.
//!
//! Read in this order: [`plan`] picks the zones, `resolver` answers for them, [`compare`] starts the validators and asks, and
//! [`reasons`] has the differences that are known, each with the sentence of an RFC.

mod ask;
pub mod plan;
pub mod reasons;
mod resolver;
mod run;

pub use run::{Outcome, compare};

use conform::differential::quirk::Server;
use signed_zones::{Fault, Kind};
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

/// Answer that a client gets for a question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Given {
    /// Response code; `None` if there is no answer.
    pub rcode: Option<u8>,
    /// AD.
    pub is_authentic: bool,
    /// Addresses in the answer section.
    pub addresses: BTreeSet<IpAddr>,
}

impl fmt::Display for Given {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rcode {
            None => return write!(formatter, "nothing"),
            Some(0) => write!(formatter, "NOERROR")?,
            Some(2) => write!(formatter, "SERVFAIL")?,
            Some(3) => write!(formatter, "NXDOMAIN")?,
            Some(other) => write!(formatter, "RCODE {other}")?,
        }
        write!(formatter, "{}", if self.is_authentic { " AD" } else { "" })?;
        match self.addresses.len() {
            0 => Ok(()),
            1 => write!(formatter, " 1 address"),
            count => write!(formatter, " {count} addresses"),
        }
    }
}

/// Answer of a validator that differs from that of Sixfold.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Validator.
    pub server: Server,
    /// Kind of denial of the zone.
    pub kind: Kind,
    /// Fault of the zone.
    pub fault: Fault,
    /// Place of the question in [`QUESTIONS`](signed_zones::QUESTIONS).
    pub question: usize,
    /// Seed of the keys and names.
    pub seed: u64,
    /// Answer of Sixfold.
    pub ours: Given,
    /// Answer of the validator.
    pub theirs: Given,
}
