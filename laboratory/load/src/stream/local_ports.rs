//! Local addresses and ports of connections. The tester chooses them, in turn, from the kernel's range: so a port rests as
//! long as possible, and one whose old connection is in TIME-WAIT can be used again (see
//! [`crate::sockets::Connection`]). At 10,000 connections/s, 28,232 ports last for 2.8 s.

use crate::plan::Plan;
use crate::random::mix;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;

/// The kernel's default range (`ip-sysctl`), if it does not tell another one.
const DEFAULT_RANGE: RangeInclusive<u16> = 32_768..=60_999;

/// The addresses and ports of one thread.
pub struct LocalPorts {
    sources: Vec<IpAddr>,
    /// The thread's share of the ports.
    ports: Vec<u16>,
    /// Index of the next port, for each source.
    next: Vec<usize>,
}

impl LocalPorts {
    /// The share of a thread: every T-th port of the range, beginning anywhere.
    pub fn new(plan: &Plan, thread: u64) -> LocalPorts {
        let any = if plan.order.server.is_ipv6() {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        } else {
            Ipv4Addr::UNSPECIFIED.into()
        };
        let sources = match &plan.order.lanes.sources[..] {
            [] => vec![any],
            sources => sources.to_vec(),
        };
        let read = |name: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
        let reserved = ranges(&read("ip_local_reserved_ports"), ',', '-');
        let range = ranges(&read("ip_local_port_range"), '\n', '\t').pop().unwrap_or(DEFAULT_RANGE);
        // From the server's own address and port a connection without a listener would be one with itself.
        let is_free = |port: &u16| {
            *port != plan.order.server.port() && !reserved.iter().any(|range| range.contains(port))
        };
        let free = range.filter(is_free);
        let mut ports: Vec<u16> = free.skip(thread as usize).step_by(plan.threads as usize).collect();
        if ports.is_empty() {
            // The kernel chooses.
            ports.push(0);
        }
        let next = sources.iter().zip(0..).map(|(_, index)| mix(plan.origin ^ index) as usize % ports.len());
        LocalPorts { next: next.collect(), sources, ports }
    }

    /// The next address and port, for a connection that takes the sources in turn by its number.
    pub fn next(&mut self, number: u64) -> SocketAddr {
        let source = (number % self.sources.len() as u64) as usize;
        let next = &mut self.next[source];
        let port = self.ports[*next];
        *next = (*next + 1) % self.ports.len();
        SocketAddr::new(self.sources[source], port)
    }
}

/// The ranges of a text: `1-3,8`, or two numbers with a tabulator between.
fn ranges(text: &str, between: char, within: char) -> Vec<RangeInclusive<u16>> {
    let of = |part: &str| {
        let (low, high) = part.split_once(within).unwrap_or((part, part));
        Some(low.trim().parse().ok()?..=high.trim().parse().ok()?)
    };
    text.split(between).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::order;

    #[test]
    fn ranges_are_read_as_the_kernel_writes_them() {
        assert_eq!(ranges("32768\t60999\n", '\n', '\t'), [32_768..=60_999]);
        assert_eq!(ranges("8080,9148-9150\n", ',', '-'), [8080..=8080, 9148..=9150]);
        assert!(ranges("\n", ',', '-').is_empty());
    }

    #[test]
    fn threads_share_the_ports_and_each_source_has_all_of_them() {
        let mut order = order(10.0, 10);
        order.lanes.senders = 2;
        order.lanes.sources = ["127.0.0.1", "127.0.0.2"].map(|source| source.parse().unwrap()).into();
        let plan = Plan::new(&order, false).unwrap();
        let [mut one, mut other] = [0, 1].map(|thread| LocalPorts::new(&plan, thread));
        let count = one.ports.len() as u64;
        let mut seen: Vec<_> = (0..2 * count).map(|number| one.next(number)).collect();
        seen.extend((0..2 * other.ports.len() as u64).map(|number| other.next(number)));
        seen.sort();
        let all = seen.len();
        seen.dedup();
        assert_eq!(seen.len(), all, "a port came twice");
        let again: Vec<_> = (0..2).map(|number| one.next(number)).collect();
        assert!(again.iter().all(|address| seen.contains(address)));
    }
}
