//! Library of the `sixfold-bench` binary, so that tests can use its parts. The binary measures DNS64 servers by RFC
//! 8219.
//!
//! `cli` has one file for each subcommand. `run` carries out a measurement: its `testbed` controls tester, authority
//! and device through an `agent_client` for each host; an `agent` starts devices by the templates of `device`, as a
//! `process` tree with a supervisor. `conformance` plays cases to any server that has a template. `link` joins
//! two network namespaces. `ttcp_dns` carries DNS over T/TCP between them. `lab` repeats the experiments of published papers. `perf` measures this project beside
//! other servers. `bundle` is the result on disk.
//!
//! The plan, the procedure and the checklist are in `measure`, queries and verdicts in `load`, pages in `report`. First
//! file to read: `run/mod.rs`.
#![forbid(unsafe_code)]

pub mod agent;
pub mod agent_client;
pub mod background;
pub mod bundle;
pub mod cli;
pub mod clock;
pub mod conformance;
pub mod device;
pub mod environment;
pub mod exchange;
mod file_error;
pub mod lab;
pub mod link;
pub mod perf;
pub mod process;
pub mod run;
pub mod signals;
pub mod sockets;
pub mod ttcp_dns;
pub mod usage;
