//! Reader of `upstream.source` and `upstream.avoid-ports`: the addresses and ports that questions leave from. The ports that the
//! system reserves (`net.ipv4.ip_local_reserved_ports`) are for other programs, and are avoided, too.

use super::limits;
use super::model::Upstream;
use super::notation::outer_blank;
use super::port_range::PortRange;
use super::report::{Fault, Problems, quoted};
use super::table::Table;
use datapath::sources::{SourcePorts, Sources};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// The system's list of reserved ports (ip-sysctl, `ip_local_reserved_ports`).
pub const RESERVED_PORTS: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";

/// Reads both keys, and the list of reserved ports in the file `reserved`.
pub fn read(table: &mut Table<'_>, upstream: &mut Upstream, reserved: &Path, problems: &Problems) {
    read_addresses(table, upstream, problems);
    upstream.reserved_ports = reserved_ports(reserved, problems);
    let Some(entry) = table.get("avoid-ports") else { return };
    let place = entry.place.clone();
    let kind = "a port like 1234 or a range like \"2000-2999\"";
    for entry in
        entry.elements(kind, "write [1234, \"2000-2999\"] with the ports to avoid").unwrap_or_default()
    {
        let range = match entry.as_str() {
            None => entry.integer(1..=u64::from(u16::MAX)).map(|item| PortRange::single(item.value as u16)),
            Some(_) => entry.parse(kind, PortRange::configured).map(|item| item.value),
        };
        upstream.avoid_ports.extend(range);
    }
    if upstream.avoid_ports.len() > limits::AVOIDED_PORTS {
        let what = format!("`upstream.avoid-ports` has more than {} entries", limits::AVOIDED_PORTS);
        problems.add(&place, Fault::new(what, "join ports that follow one another into ranges"));
    }
    let left = upstream.ports().count();
    if left < limits::FEWEST_PORTS {
        let reserved = match upstream.reserved_ports.is_empty() {
            true => "",
            false => ", with the ports that the system reserves,",
        };
        let what = format!(
            "`upstream.avoid-ports`{reserved} leaves {left} of 64512 UDP ports to draw from, but at least {} are needed",
            limits::FEWEST_PORTS
        );
        let help = "avoid fewer ports: a forger of replies has to guess the port, which is worth 16 bits with all of them, and \
                    less than 14 bits with so few (RFC 5452 section 9.2)";
        problems.add(&place, Fault::new(what, help));
    }
}

fn read_addresses(table: &mut Table<'_>, upstream: &mut Upstream, problems: &Problems) {
    let Some(items) = table.list("source", "an address of this machine", address) else { return };
    for item in items {
        if upstream.sources.contains(&item.value) {
            let what = format!("the address {} is listed twice", item.value);
            problems.add(&item.place, Fault::new(what, "name each address once: all have the same share"));
        } else if upstream.sources.len() == limits::SOURCES {
            let what = format!("`upstream.source` has more than {} addresses", limits::SOURCES);
            problems.add(&item.place, Fault::new(what, "name fewer addresses"));
            break;
        } else {
            upstream.sources.push(item.value);
        }
    }
}

/// Parses an address that questions may leave from.
fn address(text: &str) -> Result<IpAddr, Fault> {
    if let Some(fault) = outer_blank(text) {
        return Err(fault);
    }
    let help = "write an address of this machine, like \"192.0.2.7\" or \"2001:db8::7\"";
    let refuse = |why: &str, help: &str| {
        Err(Fault::new(format!("{} cannot be the source of questions: {why}", quoted(text)), help))
    };
    let Ok(address) = text.parse::<IpAddr>() else {
        let why = "it is neither an IPv4 nor an IPv6 address";
        return match text.parse::<SocketAddr>() {
            Ok(with_port) => {
                let help = format!("write \"{}\"; each socket has a random port", with_port.ip());
                refuse("it has a port", &help)
            }
            Err(_) => refuse(why, help),
        };
    };
    let system = "write [] if the system is to choose the address, or addresses of this machine";
    match address {
        _ if address.is_unspecified() => refuse("it means any address", system),
        _ if address.is_multicast() => refuse("it is a multicast address", help),
        IpAddr::V4(v4) if v4.is_broadcast() => refuse("it is the broadcast address", help),
        IpAddr::V6(v6) if v6.is_unicast_link_local() => {
            refuse("it is link-local, so it does not reach servers beyond its link", system)
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => refuse("it is an IPv4 address in the form of IPv6", &format!("write \"{v4}\"")),
            None => Ok(address),
        },
        IpAddr::V4(_) => Ok(address),
    }
}

/// The ports that the system reserves. A list that cannot be read counts as empty: a container may not have it.
fn reserved_ports(file: &Path, problems: &Problems) -> Vec<PortRange> {
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
    fn ports(&self) -> SourcePorts {
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
            let reached = self.all_forwarders().map(|&forwarder| self.reached_at(forwarder));
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
        let mut upstream = super::super::defaults::config().upstream;
        upstream.reserved_ports = vec![PortRange { first: 8000, last: 8999 }];
        let sources = upstream.query_sources(false);
        assert_eq!((sources.ports.count(), sources.ports_for_tcp), (64_512 - 1000, false));
        upstream.avoid_ports = vec![PortRange { first: 8500, last: 9499 }, PortRange::single(1024)];
        let sources = upstream.query_sources(true);
        assert_eq!((sources.ports.count(), sources.ports_for_tcp), (64_512 - 1501, true));
        assert!(sources.freebind && !sources.ports.contains(9499) && sources.ports.contains(9500));
    }
}
