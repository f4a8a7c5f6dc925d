//! The differential run with real servers: the upstreams and the servers are started, every question is asked of every
//! server, and what comes back goes to `conform::differential`.

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

/// The upstreams of a run, one for each upstream_kind, on loopback addresses.
pub struct Upstreams(Vec<(UpstreamKind, Upstream)>);

impl Upstreams {
    /// Starts them all; all know the whole zone_data.
    pub fn start(zone_data: &Arc<ZoneData>) -> Result<Upstreams, String> {
        let start = |(upstream_kind, last)| {
            // Each has an address of its own: Knot Resolver remembers by address, not by port, who did not answer.
            let at = Ipv4Addr::new(127, 0, 1, last);
            let upstream = Upstream::serving(at, Box::new(SharedZoneData(Arc::clone(zone_data))));
            upstream
                .map(|upstream| (upstream_kind, upstream))
                .map_err(|error| format!("an upstream: {error}"))
        };
        UpstreamKind::ALL.into_iter().zip(1..).map(start).collect::<Result<_, _>>().map(Upstreams)
    }

    /// The zones and where questions for names in them go.
    pub fn zones(&self) -> Vec<(&'static str, SocketAddr)> {
        self.0.iter().map(|(upstream_kind, upstream)| (upstream_kind.zone(), upstream.address())).collect()
    }

    /// What the upstreams themselves could not do; a run in which this happens says nothing.
    pub fn faults(&self) -> Vec<String> {
        self.0.iter().flat_map(|(_, upstream)| upstream.faults()).collect()
    }
}
