//! RFC 8219 sections 9.1, 13 and 14: hosts, addresses, messages, and the isolation of the network.

use super::{Assessment, required};
use crate::run::{Rule, Run};
use std::net::{IpAddr, SocketAddr};

/// Relative tolerance of the queries that the authority received per query, against two: a device sometimes
/// retransmits a query, or sends a query of its own.
const UPSTREAM_TOLERANCE: f64 = 0.05;

/// Section 9.1, "Test and Traffic Setup".
pub(super) fn section_9_1(run: &Run) -> Vec<Rule> {
    vec![
        apart(run).rule("9.1", "described", "Tester and device are apart (figure 3)"),
        one_or_two(run).rule("9.1", "MAY", "The tester is one physical device, or two"),
        six_messages(run).rule(
            "9.1",
            "SHOULD",
            "Six messages: query, AAAA query, empty answer, A query, A record, synthesized AAAA record",
        ),
        ipv6(run).rule("9.1", "MUST", "IPv6 between the client and the DNS64 server"),
    ]
}

/// Sections 13, "Security Considerations", and 14, "IANA Considerations".
pub(super) fn sections_13_and_14(run: &Run) -> Vec<Rule> {
    vec![
        isolated(run).rule(
            "13",
            "MUST NOT",
            "The test network MUST NOT be connected to devices that may forward its traffic into a production or management network",
        ),
        Assessment::kept("results come only from the sent and received messages; CPU time and memory are shown as additional information")
            .rule("13", "described", "Black box: what can be observed from outside the device"),
        special(run).rule("13", "SHOULD NOT", "The device SHOULD NOT have special capabilities for being measured"),
        dedicated(run).rule(
            "14",
            "described",
            "Dedicated addresses: 2001:2::/48 (RFC 5180) and 198.18.0.0/15 (RFC 6890) are reserved for this",
        ),
    ]
}

/// True if tester and device share a machine; `None` if unknown.
fn share_a_machine(run: &Run) -> Option<bool> {
    if address(run).is_some_and(|address| address.is_loopback()) {
        return Some(true);
    }
    Some(host_name(run, "tester")? == host_name(run, "device")?)
}

fn host_name<'a>(run: &'a Run, role: &str) -> Option<&'a str> {
    let facts = &run.hosts.get(role)?.facts;
    facts.get("hostname").or_else(|| facts.get("host")).map(String::as_str).filter(|name| !name.is_empty())
}

/// The device's address; for an IPv4-mapped one the packets are IPv4.
fn address(run: &Run) -> Option<IpAddr> {
    let text = run.device.address.trim();
    let parsed = text.parse::<SocketAddr>().map(|address| address.ip()).or_else(|_| text.parse::<IpAddr>());
    parsed.ok().map(|address| address.to_canonical())
}

fn apart(run: &Run) -> Assessment {
    match share_a_machine(run) {
        Some(true) => Assessment::not_kept(
            "tester and device run on one machine and share its memory, caches and kernel: the results are only indicative; measure from another \
             host to compare with others' results",
        ),
        Some(false) => Assessment::kept(format!(
            "the device runs on {}, the tester on {}",
            host_name(run, "device").unwrap_or_default(),
            host_name(run, "tester").unwrap_or_default()
        )),
        None => Assessment::not_checked("the device's host is not recorded"),
    }
}

fn one_or_two(run: &Run) -> Assessment {
    match (host_name(run, "tester"), host_name(run, "authority")) {
        (Some(tester), Some(authority)) if tester == authority => Assessment::kept(format!("one, {tester}")),
        (Some(tester), Some(authority)) => {
            Assessment::kept(format!("two: {tester} sends the queries, {authority} is the authority"))
        }
        _ => Assessment::not_checked("both are permitted; the hosts are not recorded"),
    }
}

/// A device that sends fewer than two queries for a name that it cannot have cached did not do the six steps.
fn six_messages(run: &Run) -> Assessment {
    let known: Vec<f64> =
        required(run).map(|result| result.upstream_per_query).filter(|queries| *queries > 0.0).collect();
    let far = known.iter().copied().max_by(|one, other| (one - 2.0).abs().total_cmp(&(other - 2.0).abs()));
    match far {
        None => Assessment::not_checked("unknown, because the authority's counters are missing"),
        Some(queries) => Assessment::when(
            (queries / 2.0 - 1.0).abs() <= UPSTREAM_TOLERANCE,
            format!("the authority received {queries:.3} queries for each of the tester's; 2 are expected"),
        ),
    }
}

fn ipv6(run: &Run) -> Assessment {
    match address(run) {
        Some(address) => Assessment::when(address.is_ipv6(), format!("the queries went to {address}")),
        None => Assessment::not_kept("the device's address is not recorded"),
    }
}

fn isolated(run: &Run) -> Assessment {
    match address(run) {
        Some(address) if address.is_loopback() => {
            Assessment::kept("the queries went over the loopback interface, which leads nowhere else")
        }
        _ => Assessment::not_checked("no record shows where the cables lead; the user must make sure of it"),
    }
}

fn special(run: &Run) -> Assessment {
    let device = &run.device;
    let how = if device.command.is_empty() {
        "it was already running, and its command line is not recorded".to_owned()
    } else {
        format!(
            "started as: {}; {} configuration files are in the record",
            device.command.join(" "),
            device.files.len()
        )
    };
    Assessment::not_checked(format!("not visible from outside ({how})"))
}

fn dedicated(run: &Run) -> Assessment {
    let Some(address) = address(run) else {
        return Assessment::not_checked("the device's address is not recorded");
    };
    if address.is_loopback() {
        Assessment::not_applicable(format!("{address} never leaves the host"))
    } else if is_for_benchmarks(address) {
        Assessment::kept(format!("the queries went to {address}"))
    } else if is_local(address) {
        Assessment::kept(format!("{address} is outside these blocks, but is not an address of the Internet"))
    } else {
        Assessment::not_kept(format!(
            "the queries went to {address}; give the device an address of these blocks for the measurement"
        ))
    }
}

fn is_for_benchmarks(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => u32::from(address) >> 17 == u32::from_be_bytes([198, 18, 0, 0]) >> 17,
        IpAddr::V6(address) => address.segments()[..3] == [0x2001, 2, 0],
    }
}

/// Private, link-local and documentation addresses, which are not routed on the Internet.
fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_private() || address.is_link_local() || address.is_documentation(),
        IpAddr::V6(address) => {
            let [first, second, ..] = address.segments();
            // RFC 4193, RFC 4291, RFC 3849, RFC 9637.
            first >> 9 == 0xfc00 >> 9
                || first >> 6 == 0xfe80 >> 6
                || (first, second) == (0x2001, 0x0db8)
                || (first == 0x3fff && second >> 12 == 0)
        }
    }
}
