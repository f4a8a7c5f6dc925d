//! Experiment 8: memory. Different names fill the cache many times over, then the highest number of connections is open
//! and idle, then a flood fills the table of pending queries. At each stage the memory of the process must stay within
//! its configuration plus a margin for everything else.

use crate::perf::device::Device;
use crate::perf::kind::Setup;
use crate::perf::limits;
use crate::perf::mixed_load::{MixedTester, Phase, QueryKind};
use crate::perf::networks;
use crate::perf::section::{Bound, Goal, Section, summary, table_of};
use crate::perf::tester::Pace;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use serde_json::json;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Memory allowed beyond the configuration: 5 % of it and 32 MiB.
fn allowed_mib(configured_mib: f64) -> f64 {
    configured_mib * 1.05 + 32.0
}

/// One stage: its name, the peak of resident memory until its end, and the allowed memory.
struct Stage {
    what: String,
    after_mib: f64,
    most_mib: f64,
    allowed_mib: f64,
}

/// Sends queries for this number of different names, opens connections, floods Sixfold, and reads its resident memory.
///
/// # Errors
///
/// The device cannot be started, stops answering, or a socket fails.
pub fn measure(device: &Device, names: u64, has_networks: bool) -> io::Result<Section> {
    let mut tester = MixedTester::new()?;
    let options = vec![
        format!("cache.size = \"{}MiB\"", limits::MEMORY_CACHE_MIB),
        "limits.tcp-idle = \"1h\"".to_owned(),
    ];
    let setup = Setup { as_shipped: true, options, ..Setup::default() };
    let running = device.start(tester.upstream(), setup)?;
    let cache = f64::from(limits::MEMORY_CACHE_MIB);
    let stage = |what: String, configured| {
        let (after_mib, most_mib) = running.memory_mib();
        Stage { what, after_mib, most_mib, allowed_mib: allowed_mib(configured) }
    };
    let (crowd, networks) = sources(has_networks)?;
    let phase = |crowd, ask, length| Phase { length, crowd, ask, group: 1, others: 0.0 };
    let (mut valid, mut failed, mut silent) = (0, 0, 0);
    let begin = Instant::now();
    let mut stages = vec![];
    while valid < names {
        let load = phase(Pace::Closed(limits::WINDOW), QueryKind::Misses, limits::MEMORY_WINDOW);
        let report = tester.run(&running, &crowd, &[], &[load])?.remove(0).crowd;
        if stages.is_empty() {
            stages.push(stage(format!("the first {} names", report.useful), cache));
        }
        silent = if report.useful == 0 { silent + 1 } else { 0 };
        if silent == limits::MEMORY_SILENT {
            return Err(io::Error::other("no right answers any more"));
        }
        valid += report.useful;
        failed += report.sent - report.useful;
        eprintln!("memory: {valid} of {names} names, {:.1} MiB", running.memory_mib().0);
    }
    let seconds = begin.elapsed().as_secs_f64();
    stages.push(stage(format!("{valid} names"), cache));
    let open = open_connections(running.address, &networks)?;
    std::thread::sleep(Duration::from_secs(1));
    stages.push(stage(format!("{} idle connections", open.len()), cache));
    if !networks.is_empty() {
        let flood = phase(Pace::Open(limits::MEMORY_FLOOD), QueryKind::Silent, limits::MEMORY_WINDOW);
        tester.run(&running, &networks, &[], &[flood])?;
        let pending = limits::MEMORY_PENDING / f64::from(1 << 20);
        let what = format!("{} networks ask for names that nobody answers", networks.len());
        stages.push(stage(what, cache + pending));
    }
    drop(open);
    Ok(section(&stages, (valid, failed, seconds)))
}

/// Addresses of one network, and of many; empty without a namespace for them.
fn sources(has_networks: bool) -> io::Result<(Vec<IpAddr>, Vec<IpAddr>)> {
    if !has_networks {
        return Ok((vec![Ipv6Addr::LOCALHOST.into(); limits::PORTS], vec![]));
    }
    networks::add_addresses(limits::MEMORY_NETWORKS)?;
    Ok((networks::crowd(), networks::others(limits::MEMORY_NETWORKS)))
}

/// Opens the highest number of connections, an equal number from each network.
fn open_connections(server: SocketAddr, networks: &[IpAddr]) -> io::Result<Vec<OwnedFd>> {
    let mut open = vec![];
    if networks.is_empty() {
        return Ok(open);
    }
    for number in 0..limits::MEMORY_CONNECTIONS {
        let socket = socket(AddressFamily::INET6, SocketType::STREAM, None)?;
        bind(&socket, &SocketAddr::new(networks[number % networks.len()], 0))?;
        connect(&socket, &server).map_err(|error| {
            io::Error::new(
                io::Error::from(error).kind(),
                format!("connection {number} (is `ulimit -n` above 10,100?): {error}"),
            )
        })?;
        open.push(socket);
    }
    Ok(open)
}

fn section(stages: &[Stage], (valid, failed, seconds): (u64, u64, f64)) -> Section {
    let row = |stage: &Stage| {
        let figure = |mib: f64| format!("{mib:.1}");
        vec![stage.what.clone(), figure(stage.after_mib), figure(stage.most_mib), figure(stage.allowed_mib)]
    };
    Section {
        key: "memory",
        title: "Memory",
        charts: Vec::new(),
        notes: vec![
            format!(
                "`sixfold serve` with one worker, `cache.size = {}MiB` and `tcp-idle = 1h`, otherwise default settings; \
                 VmRSS and VmHWM in /proc, in MiB. {valid} different names, resolved in {seconds:.0} s (closed loop of \
                 {}), {failed} lost or wrong. Each stage is added to the earlier ones.",
                limits::MEMORY_CACHE_MIB,
                limits::WINDOW
            ),
            "Allowed: the configured memory, 5 % of it, and 32 MiB. The configured memory is the cache and, under the \
             flood, 65,536 pending queries of 1,900 octets. Without root there is no namespace with many networks, and \
             the last two stages are left out."
                .to_owned(),
        ],
        tables: vec![table_of(
            format!("resident, {} MiB for the cache", limits::MEMORY_CACHE_MIB),
            &["after", "MiB", "most so far", "allowed"],
            stages.iter().map(row).collect(),
        )],
        goals: stages
            .iter()
            .map(|stage| Goal {
                ratio: format!("{}: most resident memory, MiB", stage.what),
                bound: Bound::AtMost(stage.allowed_mib),
                measured: summary(&[stage.most_mib]),
            })
            .collect(),
        data: json!({
            "names": valid, "seconds": seconds, "lost_or_wrong": failed,
            "stages": stages.iter().map(|stage| json!({
                "what": stage.what, "resident_mib": stage.after_mib, "most_mib": stage.most_mib, "allowed_mib": stage.allowed_mib,
            })).collect::<Vec<_>>(),
        }),
    }
}
