//! `sixfold doctor`: whether the parts of an IPv6-only or IPv6-mostly network agree, as a host of it sees them.
//!
//! Routers, DHCP server, resolvers and NAT64 gateway are set up apart, and clients fail if one contradicts another. [`facts`] says what a host
//! can know of them. [`judge()`] is a pure function from facts to findings, each with its cause and remedy: it names the first cause, and not
//! what follows from it. [`report`] prints both.
//!
//! Read [`Facts`] first, then `judge/mod.rs`.
#![forbid(unsafe_code)]

pub mod facts;
pub mod finding;
mod judge;
pub mod report;

pub use facts::Facts;
pub use finding::{Code, Finding, Severity};
pub use judge::judge;
