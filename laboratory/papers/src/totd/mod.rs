//! TOTD, a DNS64 forwarder, in virtual time: its transaction IDs, its bug, its load test, and the prediction of its IDs.
//!
//! Sources: Lencse and Repas, Improving the Performance and Security of the TOTD DNS64 Implementation, 2014; the published
//! source of TOTD 1.5.1 and 1.5.3 (repository `fwdillema/totd`), read for its constants and its order of steps.
//!
//! [`forwarder::Forwarder`] is the forwarder without I/O: queries, replies and time go in, messages come out. [`load`]
//! plays the paper's clients against it. Read first: `ids.rs` (how IDs come to repeat), then `duplicates.rs` (why that
//! makes a stall of a minute).

pub mod duplicates;
pub mod forwarder;
pub mod ids;
pub mod libc_random;
pub mod limits;
pub mod load;
pub mod prediction;
