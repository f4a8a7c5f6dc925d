//! Differential run with real servers: starts the upstreams and the servers, sends every question to every server,
//! and passes the answers to `conform::differential`.

mod ask;
mod run;
mod servers;

pub use ask::ask_all;
pub use run::{Outcome, Unexplained, compare};
pub use servers::{RunningServer, missing, start, version};

use conform::differential::case::UpstreamKind;
use conform::differential::zone_data::{SharedZoneData, ZoneData};
use conform::upstream::Upstream;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

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

    /// Zones, and the upstream address for each.
    pub fn zones(&self) -> Vec<(&'static str, SocketAddr)> {
        self.0.iter().map(|(upstream_kind, upstream)| (upstream_kind.zone(), upstream.address())).collect()
    }

    /// Errors of the upstreams themselves; a run with such an error shows nothing.
    pub fn faults(&self) -> Vec<String> {
        self.0.iter().flat_map(|(_, upstream)| upstream.faults()).collect()
    }
}
