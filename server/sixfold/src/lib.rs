//! The `sixfold` server: command line, configuration, start and stop, reload, upgrade, metrics and control.
//!
//! This crate does nothing per packet, unless somebody listens to the messages (`observers/`): the engine decides what to answer, the
//! datapath and the transport crate move the messages. Read [`serve`] first, then [`running_server`]; [`config`] stands alone.
#![forbid(unsafe_code)]

mod arithmetic;
mod bind;
mod cache_commands;
mod certificate_files;
pub mod check;
pub mod cli;
pub mod completions;
pub mod config;
mod connection_slots;
pub mod control;
mod control_answer;
pub mod conversion;
pub mod ctl;
mod date;
mod demo;
mod dnstap_output;
pub mod doctor;
mod escape;
mod event_log;
pub mod explain;
mod file_limit;
mod history;
pub mod http;
mod identity;
mod inherited_sockets;
mod local_networks;
pub mod log;
mod log_line;
pub mod memory;
pub mod metric_families;
pub mod metrics;
mod needs;
mod observers;
pub mod panic;
pub mod planning;
mod policy_hits;
mod policy_zones;
mod prefixes;
mod process;
mod reload;
mod reload_changes;
pub mod running_server;
mod sandbox;
pub mod serve;
mod service_manager;
mod signals;
mod status;
mod status_page;
mod stream_events;
mod trace;
mod traffic;
mod trust;
pub mod upgrade;
mod upstream_trouble;
pub mod version;
#[cfg(feature = "xdp")]
mod xdp_start;
mod zone_outages;
