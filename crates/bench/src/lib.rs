//! The parts of the `sixfold-bench` binary, as a library so that its tests can drive them.
#![forbid(unsafe_code)]

pub mod agent;
pub mod agent_client;
pub mod bundle;
pub mod cli;
pub mod clock;
pub mod conformance;
pub mod device;
pub mod environment;
pub mod process;
pub mod run;
pub mod signals;
pub mod usage;
