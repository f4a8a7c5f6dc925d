//! Experiments of the published papers in virtual time: hosts, a link between them, clients with their timers, and
//! counters. Minutes of waiting pass in microseconds, so an experiment is repeated thousands of times.
//!
//! [`bisection`] has the searches for a rate, of the papers and of this laboratory, under transient failures.
//! [`network::Network`] joins two hosts that speak T/TCP (crate `ttcp`) by a link (crate `link`). Each experiment is a file
//! that takes parameters and a seed and returns numbers; `sixfold-bench lab` compares them with the papers and draws them.
//!
//! [`mtd64`] has the replies of the papers on MTD64, and models of the programs that rewrite them.
//! [`dns`] puts DNS messages on such hosts; [`sequential`] asks 1,000 questions in a row over each transport (Table 1).
//!
//! The crate does no I/O and reads no clock. The same seed gives the same numbers.
#![forbid(unsafe_code)]

pub mod attacks;
pub mod bisection;
pub mod connection_blocks;
pub mod dns;
pub mod fallback;
pub mod loss;
pub mod mtd64;
pub mod network;
pub mod segment_lines;
pub mod sequential;
pub mod totd;
