//! The `sixfold` server: its command line, its configuration, and what runs the engine.
#![forbid(unsafe_code)]

mod bind;
mod cache_commands;
pub mod check;
pub mod cli;
pub mod config;
pub mod control;
pub mod ctl;
pub mod explain;
mod file_limit;
pub mod handle;
pub mod http;
pub mod metrics;
pub mod serve;
pub mod version;
