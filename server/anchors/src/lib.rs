//! Trust anchors of the validator (`dnssec`): where they come from, and how they change.
//!
//! [`mod@file`] reads files of DS and DNSKEY records. [`trust_point`] follows the keys of a zone by RFC 5011, as a state machine: time and what
//! was observed go in, events and the time of the next question come out. [`saved`] is the text of what it has to remember, [`state_file`]
//! brings that to the disk so that it survives any crash, and [`trust_points`] puts the three together. [`negative`] has the zones whose
//! signatures are not looked at (RFC 7646).
//!
//! Only `state_file` has I/O, behind a trait; nothing has a clock, a thread or cryptography. Signatures are verified by the caller.
#![forbid(unsafe_code)]

pub mod anchor;
mod checksum;
pub mod file;
pub mod key;
pub mod limits;
pub mod name;
pub mod negative;
pub mod saved;
pub mod state_file;
pub mod trust_point;
pub mod trust_points;

pub use anchor::{Data, TrustAnchor};
pub use file::{AnchorFile, AnchorFileError};
pub use key::{Key, Moment, Pending, State, Steady};
pub use negative::{Negative, NegativeAnchors, NegativeError};
pub use saved::{RevokedKey, Saved, SavedError, SavedZone};
pub use state_file::{Disk, Files, Loaded, SaveError, StateFile};
pub use trust_point::{Event, EventKind, Observed, Outcome, Signed, TrustPoint};
pub use trust_points::{Start, TrustPoints};
