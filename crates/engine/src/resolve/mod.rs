//! Resolution of an admitted query: lookup order, the AAAA and A legs, CNAME chase, RPZ, cache, and completion of a question
//! in flight.
//!
//! The parts below (client, cache, upstream, local, rpz) do not know each other; here they meet.
//!
//! Read `a.rs` first.

pub(crate) mod a;
pub(crate) mod aaaa;
pub(crate) mod ask;
pub(crate) mod bogus_check;
pub(crate) mod chase;
pub(crate) mod completion;
pub(crate) mod from_cache;
pub(crate) mod lookup;
pub(crate) mod respond;
pub(crate) mod rpz;
pub(crate) mod run;
pub(crate) mod to_cache;
pub(crate) mod waiters;
