//! Local answers: records and blocked names of the configuration, and special-use names.
//!
//! Nothing here knows pending queries, upstreams or the cache. The lookup order (`resolve/driver.rs`) decides when these answers apply.
//!
//! Read `local_data.rs` first, then `special_use.rs`, which names the rest: `arpa.rs` (RFC 8880, RFC 6147 section 5.3.1),
//! `reserved.rs` (RFC 6761, RFC 7686, RFC 6303). `server_names.rs` has the names of class CH.

mod arpa;
pub(crate) mod local_answer;
pub mod local_data;
pub(crate) mod no_gateway;
pub mod record;
mod reserved;
mod reverse_alias;
mod reverse_labels;
pub mod server_names;
pub(crate) mod special_use;

pub use local_data::LocalData;
pub use record::LocalRecord;
