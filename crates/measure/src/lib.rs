//! What a benchmark of RFC 8219 section 9 consists of, without I/O: what is ordered ([`order`]), what comes back
//! ([`outcome`]), the search for the highest rate, the statistics, the procedure of a whole run, and its record.
//!
//! Sockets, processes and files are elsewhere: `load` sends and checks, `bench` starts and watches, `report` shows.
#![forbid(unsafe_code)]

pub mod amount;
pub mod checklist;
pub mod compare;
#[cfg(test)]
pub(crate) mod devices;
pub mod order;
pub mod outcome;
pub mod plan;
pub mod procedure;
pub mod run;
pub mod search;
pub mod statistics;
pub mod window;
