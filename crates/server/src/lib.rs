//! The `sixfold` server: its command line, its configuration, and what runs the engine.
#![forbid(unsafe_code)]

mod cache_commands;
pub mod check;
pub mod cli;
pub mod config;
pub mod control;
pub mod explain;
pub mod handle;
pub mod http;
pub mod metrics;
pub mod serve;
pub mod version;
