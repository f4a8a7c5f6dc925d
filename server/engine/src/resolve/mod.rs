//! Resolution of an admitted query: lookup order, the AAAA and A lookups, CNAME chase, RPZ, cache, and completion of a question
//! in flight.
//!
//! The parts below (client, cache, upstream, local, rpz) do not know each other; here they meet.
//!
//! Read `driver.rs` first: it has the loop, every stage and every way on, and only it has methods of the parts together, besides the files
//! for validation (`validate.rs`, `zone_searches.rs`, `signature_checks.rs`). `steps.rs` decides what comes next, `join.rs` asks upstreams,
//! `write.rs` writes the responses. The other files are functions on the parts that they name.

pub(crate) mod admission;
pub(crate) mod cache_lines;
pub(crate) mod divert;
pub(crate) mod driver;
pub(crate) mod from_cache;
pub(crate) mod here;
pub(crate) mod join;
pub(crate) mod progress;
pub(crate) mod rewrite;
pub(crate) mod rpz;
pub(crate) mod serve_stale;
pub(crate) mod signature_checks;
pub(crate) mod steps;
pub(crate) mod to_cache;
pub(crate) mod validate;
pub(crate) mod write;
pub(crate) mod zone_searches;
