//! DNSSEC validation (RFC 4033 to 4035, 4509, 5155, 6840, 9276, 9824) without I/O, clock, allocation or public-key arithmetic: time and
//! budgets are parameters, buffers are lent, digests come from the caller ([`Digests`]), and signatures leave as jobs whose outcome
//! comes back as a value.
//!
//! Read in this order: [`groups`] finds the RRsets of a message, [`fields`] reads the RDATA of the types of DNSSEC, [`canonical`] writes
//! what a signature signs, [`keys`] judges keys and DS records, [`zone_keys`] holds those that can be used, and [`signature`] verifies an
//! RRset step by step. [`denial`] has the proofs that something does not exist, [`chain`] the way from trust anchors to the keys of a
//! zone, and [`validation`] the steps from a message to its verdict. [`aggressive`] finds the proof for a name among those of earlier
//! messages.
#![no_std]
#![forbid(unsafe_code)]

pub mod aggressive;
pub mod algorithm;
pub mod anchors;
pub mod budget;
pub mod canonical;
pub mod chain;
pub mod denial;
pub mod digest;
pub mod fields;
pub mod groups;
pub mod keys;
pub mod limits;
pub mod name;
pub mod nsec;
pub mod nsec3;
pub mod reason;
pub mod sentinel;
pub mod signature;
pub mod type_bitmap;
pub mod validation;
pub mod zone_keys;

pub use algorithm::{Algorithm, Algorithms, DigestType};
pub use anchors::{Anchor, AnchorData, Anchors, NegativeAnchor};
pub use budget::{Budget, MessageBudget};
pub use canonical::{SignedDataError, signed_data};
pub use chain::{Entry, Known, Question, Zones, entry_by_anchors, entry_by_ds};
pub use denial::{Cut, Denials, NoData, Strength};
pub use digest::Digests;
pub use fields::{Dnskey, Ds, FieldError, Nsec, Nsec3, Nsec3Param, Rrsig};
pub use groups::{GroupError, Groups, Rrset};
pub use keys::{KeyError, RsaKey};
pub use name::LowerName;
pub use reason::{Bogus, Insecure};
pub use sentinel::{Answered, Sentinel};
pub use signature::{Proven, SecureZone, SignatureJob, Step, Timestamp, Verification};
pub use type_bitmap::TypeBitmap;
pub use validation::{Context, Delegation, Next, Outcome, Status, Validation, Verdict};
pub use zone_keys::{ZoneKey, ZoneKeys, ZoneKeysError};
