//! The prefixes in use: the states of their gateways, where they come from, and what operators do with them. A thread of its own
//! (`prober.rs`) probes the gateways and asks the sources of prefixes, and gives each change to the workers; `sockets.rs` has its sockets,
//! `sources.rs` and `asker.rs` what it asks and hears, `state.rs` the states with their lock, `plan.rs` the lists that follow from a
//! configuration and from what was found, `report.rs` what operators see. The same thread tries the
//! addresses in real AAAA records that rules verify (`trials.rs`).

mod asker;
mod plan;
mod prober;
pub mod report;
mod sockets;
mod sources;
mod state;
mod trials;

pub use sockets::Echo;
pub use state::{Answers, HandedPrefix, Prefixes};

use crate::config::Config;
use crate::observers::WorkerEngine;
use datapath::Shared;
use datapath::remedy::with_remedy;
use gateways::Probe;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Starts the thread that probes the gateways, and gives the workers the states.
///
/// # Errors
///
/// The text for the operator: the system starts no more threads.
pub fn start(
    prefixes: Arc<Prefixes>,
    workers: Arc<Shared<WorkerEngine>>,
    echo: Option<Echo>,
) -> Result<(), String> {
    let prober = prober::Prober::new(prefixes, workers, echo);
    let thread = std::thread::Builder::new().name("gateways".into()).spawn(move || prober.run());
    thread
        .map(drop)
        .map_err(|error| format!("cannot start the thread of the gateways: {}", with_remedy(&error)))
}

/// Opens the socket for ICMP probes, if the configuration has some, while the process may still have the right to a raw one.
/// `of_predecessor`: the raw socket of the process before this one.
pub fn open_echo(config: &Config, of_predecessor: Option<OwnedFd>) -> Option<Echo> {
    let mut probes = config.dns64.gateways.iter().flat_map(|gateway| &gateway.probes);
    if !probes.any(|probe| matches!(probe, Probe::Icmp(_))) {
        return None;
    }
    let warn =
        |error: std::io::Error| tracing::warn!(event = "probes_impossible", "{}", prober::impossible(&error));
    Echo::open_at_start(of_predecessor).map_err(warn).ok()
}
