//! The `sixfold` server: command line, configuration, start and stop, reload, metrics and control.
//!
//! This crate does nothing per packet: the engine decides what to answer, the datapath and the transport crate move the
//! messages. Read [`serve`] first, then [`handle`]; [`config`] stands alone.
#![forbid(unsafe_code)]

mod bind;
mod cache_commands;
pub mod check;
pub mod cli;
pub mod config;
pub mod control;
pub mod conversion;
pub mod ctl;
mod demo;
mod escape;
mod event_log;
pub mod explain;
mod file_limit;
pub mod handle;
pub mod http;
mod local_networks;
pub mod metrics;
mod places;
mod reload;
pub mod serve;
mod status;
pub mod version;
