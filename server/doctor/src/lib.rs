//! `sixfold doctor`: whether the parts of an IPv6-only or IPv6-mostly network agree, as a host of it sees them.
//!
//! Routers, DHCP server, resolvers and NAT64 gateway are set up apart, and clients fail if one contradicts another. [`facts`] says what a
//! host can know of them. [`judge()`] is a pure function from facts to findings, each with its cause and remedy: it names the first cause,
//! and not what follows from it. [`gather()`] finds the facts, and [`report`] prints both.
//!
//! Read [`Facts`] first, then `judge/mod.rs`, then `gather/mod.rs`.
#![forbid(unsafe_code)]

pub mod facts;
pub mod finding;
mod gather;
mod judge;
mod limits;
pub mod report;

pub use facts::Facts;
pub use finding::{Code, Finding, Severity};
pub use gather::{Plan, gather, readers};
pub use judge::judge;
