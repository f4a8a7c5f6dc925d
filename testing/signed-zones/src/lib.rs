//! Signed zones with one fault each, and the verdict that a validator owes to questions about them.
//!
//! A [`World`] has a root, a parent, a zone and an unsigned child, all of them from a seed ([`Store`]). The zone has one [`Fault`] out of a
//! table ([`faults`]), in which the verdicts stand beside the section that decides. Nothing here validates, and nothing knows the
//! validator under test: canonical form, key tags, hashes and signatures are written once more.
//!
//! Read in this order: [`verdict`] has the questions, [`faults`] the table, [`world`] the replies with the fault in them. [`zone`] has the
//! chains of names and hashes, [`keys`] and `rsa` the signatures, [`text`] writes zones as files for other servers. A [`Forest`] has many
//! worlds under one root. [`attacks`] has zones that cost much to validate.
#![forbid(unsafe_code)]

pub mod attacks;
pub mod faults;
pub mod keys;
pub mod name;
pub mod published;
pub mod record;
mod rsa;
pub mod text;
pub mod verdict;
pub mod world;
pub mod zone;

pub use faults::{Fault, Plant};
pub use keys::Store;
pub use published::{PUBLISHED, Published};
pub use record::{Record, Reply, Rrset, rtype};
pub use verdict::{KINDS, Kind, Owed, QUESTIONS, Verdict};
pub use world::{Anchor, Forest, World};
