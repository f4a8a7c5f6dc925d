//! The `sixfold` server: its command line, its configuration, and what runs the engine.
#![forbid(unsafe_code)]

pub mod check;
pub mod cli;
pub mod config;
pub mod control;
pub mod explain;
pub mod http;
pub mod metrics;
pub mod running;
pub mod serve;
mod shelf;
pub mod version;
