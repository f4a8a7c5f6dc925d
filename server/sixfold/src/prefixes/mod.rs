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

use sockets::Echo;
pub use state::{Answers, HandedPrefix, Prefixes};

use crate::config::Config;
use crate::observers::WorkerEngine;
use datapath::Shared;
use datapath::remedy::with_remedy;
use gateways::{Probe, Source};
use socket2::Socket;
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
    sockets: StartSockets,
) -> Result<(), String> {
    let prober = prober::Prober::new(prefixes, workers, sockets);
    let thread = std::thread::Builder::new().name("gateways".into()).spawn(move || prober.run());
    thread
        .map(drop)
        .map_err(|error| format!("cannot start the thread of the gateways: {}", with_remedy(&error)))
}

/// Sockets that may need more rights than the process keeps.
pub struct StartSockets {
    /// For ICMP probes.
    echo: Option<Echo>,
    /// For router solicitations.
    solicitations: Option<Socket>,
}

impl StartSockets {
    /// Opens those that the configuration needs. `of_predecessor`: the raw socket for probes of the process before this one.
    pub fn open(config: &Config, of_predecessor: Option<OwnedFd>) -> StartSockets {
        let echo = open_echo(config, of_predecessor);
        let hears_routers = config.dns64.sources().any(|source| matches!(source, Source::Interface(_)));
        // Without it, routers are heard when they announce by themselves.
        StartSockets {
            echo,
            solicitations: hears_routers.then(sockets::open_solicitations).and_then(Result::ok),
        }
    }

    /// A further handle of the raw socket for probes, if there is one, for the successor of this process.
    pub fn for_successor(&self) -> Option<OwnedFd> {
        self.echo.as_ref().and_then(Echo::for_successor)
    }
}

/// Opens the socket for ICMP probes, if the configuration has some.
fn open_echo(config: &Config, of_predecessor: Option<OwnedFd>) -> Option<Echo> {
    let mut probes = config.dns64.gateways.iter().flat_map(|gateway| &gateway.probes);
    if !probes.any(|probe| matches!(probe, Probe::Icmp(_))) {
        return None;
    }
    let warn =
        |error: std::io::Error| tracing::warn!(event = "probes_impossible", "{}", prober::impossible(&error));
    Echo::open_at_start(of_predecessor).map_err(warn).ok()
}
