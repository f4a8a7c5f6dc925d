//! The addresses and ports that questions leave from (`upstream.source`, `upstream.avoid-ports`). The ports that the
//! system reserves (`net.ipv4.ip_local_reserved_ports`) are for other programs, and are avoided, too.

use super::keys::Upstream;
use super::limits;
use super::port_range::PortRange;
use super::report::{Problems, quoted};
use datapath::sources::{SourcePorts, Sources};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// The system's list of reserved ports (ip-sysctl, `ip_local_reserved_ports`).
pub const RESERVED_PORTS: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";

/// The ports that the system reserves. A list that cannot be read counts as empty: a container may not have it.
pub fn reserved_ports(file: &Path, problems: &Problems) -> Vec<PortRange> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let entries = text.trim().split(',').filter(|entry| !entry.is_empty());
    let ranges: Option<Vec<PortRange>> = entries.map(PortRange::parse).collect();
    let Some(ranges) = ranges else {
        problems.warn(Some(format!(
            "cannot read the ports that the system reserves: {} in {} is not a list of ports; questions may leave from any port that \
             `upstream.avoid-ports` does not name",
            quoted(text.trim()),
            file.display()
        )));
        return Vec::new();
    };
    let left = SourcePorts::outside(ranges.iter().map(|range| range.ports())).count();
    if left < limits::FEWEST_PORTS {
        problems.warn(Some(format!(
            "the system reserves all ports but {left} ({}), fewer than the {} that make forged replies unlikely: questions leave from \
             reserved ports, too; reserve fewer, or name the ports that matter in `upstream.avoid-ports`",
            file.display(),
            limits::FEWEST_PORTS
        )));
        return Vec::new();
    }
    ranges
}

impl Upstream {
    /// The ports that questions may leave from over UDP.
    pub(super) fn ports(&self) -> SourcePorts {
        SourcePorts::outside(self.avoid_ports.iter().chain(&self.reserved_ports).map(|range| range.ports()))
    }

    /// The sources of questions, for the datapath. `freebind`: `server.freebind`.
    pub fn query_sources(&self, freebind: bool) -> Sources {
        Sources {
            addresses: self.sources.clone(),
            ports: self.ports(),
            ports_for_tcp: !self.avoid_ports.is_empty(),
            freebind,
        }
    }

    /// Warnings about forwarders that no address of `upstream.source` reaches.
    pub(super) fn source_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (is_ipv4, family) in [(true, "IPv4"), (false, "IPv6")] {
            let reached = self.all_forwarders().map(|forwarder| self.reached_at(forwarder));
            let asked: Vec<SocketAddr> = reached.filter(|address| address.is_ipv4() == is_ipv4).collect();
            let sources: Vec<&IpAddr> =
                self.sources.iter().filter(|address| address.is_ipv4() == is_ipv4).collect();
            let Some(first) = asked.first() else { continue };
            if sources.is_empty() && !self.sources.is_empty() {
                warnings.push(format!(
                    "`upstream.source` has no {family} address: the system chooses the one that questions to {first} leave from; add \
                     an {family} address if that matters"
                ));
            }
            let outside = asked.iter().find(|address| !address.ip().is_loopback());
            if let (Some(source), Some(outside)) =
                (sources.iter().find(|address| address.is_loopback()), outside)
            {
                warnings.push(format!(
                    "`upstream.source` has the loopback address {source}, from which no question reaches {outside}: take it out, or \
                     ask only forwarders of this machine"
                ));
            }
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranges that are read from a list of reserved ports, and the warnings about it.
    fn reserved(text: &str) -> (Vec<PortRange>, Vec<String>) {
        let (folder, problems) = (kit::Folder::new(), Problems::default());
        let ranges = reserved_ports(&folder.write("ports", text), &problems);
        (ranges, problems.take_warnings())
    }

    #[test]
    fn the_list_of_reserved_ports_is_read_as_the_kernel_writes_it() {
        let range = |first, last| PortRange { first, last };
        assert_eq!(reserved("\n"), (vec![], vec![]));
        assert_eq!(
            reserved("0,8080,9148-9160\n"),
            (vec![range(0, 0), range(8080, 8080), range(9148, 9160)], vec![])
        );
        let problems = Problems::default();
        assert_eq!(reserved_ports(Path::new("/nowhere/ports"), &problems), []);
        assert_eq!(problems.take_warnings(), Vec::<String>::new());
    }

    #[test]
    fn a_malformed_list_of_reserved_ports_is_a_warning_and_counts_as_empty() {
        for text in ["8080,http\n", "9160-9148\n", "70000\n", "+1\n"] {
            let (ranges, warnings) = reserved(text);
            assert_eq!(ranges, [], "{text}");
            assert!(warnings.len() == 1 && warnings[0].contains("is not a list of ports"), "{warnings:?}");
        }
    }

    #[test]
    fn a_system_that_reserves_nearly_all_ports_does_not_make_questions_easy_to_forge() {
        // 16,384 ports are left, then one fewer.
        let (ranges, warnings) = reserved("1024-49151\n");
        assert_eq!((ranges.len(), warnings.len()), (1, 0));
        let (ranges, warnings) = reserved("1024-49152\n");
        assert_eq!((ranges.len(), warnings.len()), (0, 1));
        assert!(warnings[0].contains("all ports but 16383"), "{warnings:?}");
    }

    #[test]
    fn reserved_ports_are_avoided_over_udp_only_and_avoided_ones_over_tcp_too() {
        let reserved_ports = vec![PortRange { first: 8000, last: 8999 }];
        let mut upstream = Upstream { reserved_ports, ..Upstream::default() };
        let sources = upstream.query_sources(false);
        assert_eq!((sources.ports.count(), sources.ports_for_tcp), (64_512 - 1000, false));
        upstream.avoid_ports = vec![PortRange { first: 8500, last: 9499 }, PortRange::single(1024)];
        let sources = upstream.query_sources(true);
        assert_eq!((sources.ports.count(), sources.ports_for_tcp), (64_512 - 1501, true));
        assert!(sources.freebind && !sources.ports.contains(9499) && sources.ports.contains(9500));
    }
}
