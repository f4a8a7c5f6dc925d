//! The authorities of the experiment, in its place.

use super::setups::Upstream;
use crate::lab::mtd64::cores::Cores;
use crate::lab::mtd64::place::Place;
use authority::{Faults, Server, Settings, Zone};
use std::net::SocketAddr;
use std::time::Duration;

/// Zone of the names.
pub const ZONE: &str = "dns64perf.test";

/// An authority of each kind, on the tester's core.
pub struct Upstreams(Vec<(Upstream, Server)>);

impl Upstreams {
    /// Starts them. The plain one is at the address that the papers' programs ask.
    ///
    /// # Errors
    ///
    /// An authority cannot listen on its address.
    pub fn start(place: &Place, cores: &Cores) -> Result<Upstreams, String> {
        let start = |kind: Upstream| -> Result<(Upstream, Server), String> {
            let listen = match kind {
                Upstream::Plain => place.upstream(),
                _ => SocketAddr::new(place.upstream().ip(), 0),
            };
            let zone = Zone::new(ZONE).map_err(|error| error.to_string())?;
            let zone = zone.aaaa_share(if kind.is_native() { 1.0 } else { 0.0 });
            let faults = Faults::new(1).delay(kind.delay(), Duration::ZERO);
            let faults = if kind == Upstream::WithoutEdns { faults.without_edns() } else { faults };
            let pins = cores.tester.into_iter().map(usize::from).collect();
            let settings = Settings::new(zone).faults(faults).pins(pins);
            let failed = |error: std::io::Error| format!("the authority at {listen}: {error}");
            Ok((kind, place.run(|| Server::with(&[listen], &settings).map_err(failed))?))
        };
        Upstream::ALL.into_iter().map(start).collect::<Result<_, _>>().map(Upstreams)
    }

    fn server(&self, kind: Upstream) -> &Server {
        let found = self.0.iter().find(|(other, _)| *other == kind);
        &found.expect("there is one of each kind").1
    }

    /// Its address.
    pub fn address(&self, kind: Upstream) -> SocketAddr {
        self.server(kind).addresses()[0]
    }

    /// Queries that it has got so far.
    pub fn asked(&self, kind: Upstream) -> u64 {
        let totals = self.server(kind).counters().totals();
        totals.filter(|(name, _)| name.starts_with("asked_")).map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::mtd64::client::Query;
    use std::net::UdpSocket;
    use wire::{Message, Rcode, Section, Type};

    #[test]
    fn each_authority_answers_as_its_kind_says() {
        let cores = Cores { device: String::new(), tester: None };
        let upstreams = Upstreams::start(&Place::Host, &cores).unwrap();
        let ask = |kind, edns| {
            let socket = UdpSocket::bind("[::1]:0").unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let name = format!("010-000-000-001.{ZONE}");
            let query = Query { name: &name, rtype: Type::AAAA, id: 5, edns };
            socket.send_to(&query.octets(), upstreams.address(kind)).unwrap();
            let mut reply = [0; 512];
            let length = socket.recv(&mut reply).unwrap();
            let reply = Message::parse(&reply[..length]).unwrap();
            (reply.rcode(), reply.count(Section::Answer))
        };
        assert_eq!(ask(Upstream::Plain, true), (Rcode::NOERROR, 0));
        assert_eq!(ask(Upstream::WithoutEdns, true), (Rcode::FORMERR, 0));
        assert_eq!(ask(Upstream::WithoutEdns, false), (Rcode::NOERROR, 0));
        assert_eq!(ask(Upstream::Slow, true), (Rcode::NOERROR, 0));
        assert_eq!(ask(Upstream::SlowNative, true), (Rcode::NOERROR, 1));
        assert_eq!(Upstream::ALL.map(|kind| upstreams.asked(kind)), [1, 2, 1, 1]);
    }
}
