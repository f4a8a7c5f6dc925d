//! Parts of a benchmark by RFC 8219 section 9, without I/O: orders to tester and authority ([`order`]), the outcome
//! of a load ([`outcome`]), the search for the highest rate, the statistics, the procedure of a whole run, and its
//! record.
//!
//! Sockets, processes and files are elsewhere: `load` sends queries and checks replies, `bench` starts and watches
//! programs, `report` shows results.
//!
//! Read first: `order.rs` and `outcome.rs`, then `search/mod.rs`, then `procedure.rs`.
#![forbid(unsafe_code)]

pub mod checklist;
pub mod compare;
mod device_title;
pub mod experiment;
#[cfg(test)]
pub(crate) mod model_devices;
pub mod name_range;
pub mod order;
pub mod outcome;
pub mod plan;
pub mod procedure;
pub mod run;
pub mod search;
pub mod starvation;
pub mod statistics;
pub mod units;
