//! Local answers: records and blocked names of the configuration, and special-use names under `arpa`.
//!
//! Nothing here knows waiters, upstreams or the cache. The lookup order (`resolve/lookup.rs`) decides when these answers apply.
//!
//! Read `local_data.rs` first, then `special_use.rs` (RFC 8880, RFC 6147 section 5.3.1).

pub mod local_data;
pub mod record;
pub(crate) mod special_use;

pub use local_data::LocalData;
pub use record::LocalRecord;
