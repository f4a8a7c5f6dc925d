//! The differential run with real servers: the upstreams and the servers are started, every question is asked of every
//! server, and what comes back goes to `conform::differential`.

mod ask;
mod run;
mod servers;

pub use ask::ask_all;
pub use run::{Outcome, Unexplained, compare};
pub use servers::{Running, lacking, start, version};

use conform::differential::case::Province;
use conform::differential::zone_data::{Shared, World};
use conform::upstream::Upstream;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// The upstreams of a run, one for each province, on loopback addresses.
pub struct Upstreams(Vec<(Province, Upstream)>);

impl Upstreams {
    /// Starts them all; all know the whole world.
    pub fn start(world: &Arc<World>) -> Result<Upstreams, String> {
        let start = |(province, last)| {
            // Each has an address of its own: Knot Resolver remembers by address, not by port, who did not answer.
            let at = Ipv4Addr::new(127, 0, 1, last);
            let upstream = Upstream::serving(at, Box::new(Shared(Arc::clone(world))));
            upstream.map(|upstream| (province, upstream)).map_err(|error| format!("an upstream: {error}"))
        };
        Province::ALL.into_iter().zip(1..).map(start).collect::<Result<_, _>>().map(Upstreams)
    }

    /// The zones and where questions for names in them go.
    pub fn zones(&self) -> Vec<(&'static str, SocketAddr)> {
        self.0.iter().map(|(province, upstream)| (province.zone(), upstream.address())).collect()
    }

    /// What the upstreams themselves could not do; a run in which this happens says nothing.
    pub fn faults(&self) -> Vec<String> {
        self.0.iter().flat_map(|(_, upstream)| upstream.faults()).collect()
    }
}
