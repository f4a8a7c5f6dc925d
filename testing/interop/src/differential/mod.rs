//! Differential run with real servers: starts the upstreams and the servers, sends every question to every server,
//! and passes the answers to `conform::differential`.

mod ask;
mod run;

pub use ask::ask_all;
pub use run::{Outcome, Unexplained, compare};

use conform::differential::case::UpstreamKind;
use conform::differential::zone_data::{SharedZoneData, ZoneData};
use conform::upstream::Upstream;
use servers::{Demands, Task, Validation};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Prefix of all servers.
const PREFIX: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Upstreams of a run, one of each kind, on loopback addresses.
pub struct Upstreams(Vec<(UpstreamKind, Upstream)>);

impl Upstreams {
    /// Starts all upstreams. Each has all zone data.
    ///
    /// # Errors
    ///
    /// An upstream cannot listen at its address in 127.0.1.0/24.
    pub fn start(zone_data: &Arc<ZoneData>) -> Result<Upstreams, String> {
        let start = |(upstream_kind, last)| {
            // Each has its own address: Knot Resolver remembers servers that do not answer by address, not by port.
            let at = Ipv4Addr::new(127, 0, 1, last);
            let upstream = Upstream::serving(at, Box::new(SharedZoneData(Arc::clone(zone_data))));
            upstream
                .map(|upstream| (upstream_kind, upstream))
                .map_err(|error| format!("an upstream: {error}"))
        };
        UpstreamKind::ALL.into_iter().zip(1..).map(start).collect::<Result<_, _>>().map(Upstreams)
    }

    /// Task of every server: DNS64 with one prefix, no validation, and a forwarder for the zone of each kind of upstream. Everything else is
    /// the default.
    pub fn task(&self) -> Task {
        let zones = self.0.iter().map(|(kind, upstream)| (kind.zone().to_owned(), vec![upstream.address()]));
        let (everything, zones) = zones.partition::<Vec<_>, _>(|(zone, _)| zone == ".");
        Task {
            forwarders: everything.into_iter().flat_map(|(_, servers)| servers).collect(),
            zones,
            workers: 1,
            validation: Validation::Passes,
            demands: Demands { prefixes: vec![PREFIX], ..Demands::default() },
            ..Task::default()
        }
    }

    /// Errors of the upstreams themselves; a run with such an error shows nothing.
    pub fn faults(&self) -> Vec<String> {
        self.0.iter().flat_map(|(_, upstream)| upstream.faults()).collect()
    }
}
