//! A window: a load of queries, with reloads or scrapes meanwhile.

use crate::server::{PREFIX, Server, get};
use serde_json::Value;
use sixfold_interop::{Process, Scratch, program};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Pause between two requests to `/livez`.
const PROBE_PAUSE: Duration = Duration::from_millis(20);

/// Steps that disturb the queries of a window.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    /// None.
    None,
    /// Reloads, one in each such time, or one after the other if they take longer.
    Reloads(Duration),
    /// A scrape each second.
    Scrapes,
}

/// The load of a window.
pub struct Load {
    /// Length in seconds.
    pub seconds: u32,
    /// Queries a second.
    pub rate: u32,
    /// Share of queries for names that were asked before.
    pub cached_share: f64,
}

/// Figures of a window.
pub struct Figures {
    /// Queries.
    pub sent: u64,
    /// Correct answers in time.
    pub valid: u64,
    /// Percentiles of the time from sending to the answer.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// 99.9th percentile.
    pub p999_ms: f64,
    /// Reloads in it.
    pub reloads: u64,
    /// Longest time of an answer of `/livez`.
    pub longest_probe: Duration,
}

/// Runs a window. `number`: each asks for other names.
///
/// # Errors
///
/// A reload fails, the metrics cannot be read, or the load fails or writes no result.
pub fn measure_window(
    server: &mut Server,
    load: &Load,
    disturbance: Disturbance,
    number: u32,
) -> Result<Figures, String> {
    let scratch = Scratch::new();
    let json = scratch.path().join("load.json").to_string_lossy().into_owned();
    let first = number * 2 * load.rate * load.seconds;
    let bench = program("sixfold-bench");
    let arguments = [
        ("--server", server.address.to_string()),
        ("--rate", load.rate.to_string()),
        ("--duration", format!("{}s", load.seconds)),
        ("--names", "1.0.0.0-9.255.255.255".into()),
        ("--first", first.to_string()),
        ("--prefix", PREFIX.into()),
        ("--cached-share", load.cached_share.to_string()),
        ("--timeout", "2s".into()),
        ("--group", "1".into()),
        ("--json", json.clone()),
    ];
    let words = arguments.iter().flat_map(|(option, value)| [*option, value.as_str()]);
    let argv: Vec<&str> = [bench.as_str(), "load", "--quiet"].into_iter().chain(words).collect();
    let before = server.reloads();
    let mut tester = Process::start(&argv, &scratch.path().join("load.log"));
    let end = Instant::now() + Duration::from_secs(load.seconds.into());
    let longest_probe = disturb(server, disturbance, end)?;
    let status = tester.finish();
    let text = std::fs::read_to_string(&json)
        .map_err(|error| format!("the load left no result: {error}: {status}"))?;
    let result: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let count = |name: &str| result[name].as_u64().unwrap_or_default();
    let latency_ms = |name: &str| result["latency_us"]["actual"][name].as_f64().unwrap_or(f64::NAN) / 1e3;
    Ok(Figures {
        sent: count("sent"),
        valid: count("valid"),
        p50_ms: latency_ms("p50"),
        p99_ms: latency_ms("p99"),
        p999_ms: latency_ms("p999"),
        reloads: server.reloads() - before,
        longest_probe,
    })
}

/// Disturbs the server until the end of the window. Returns the longest time of a probe.
fn disturb(server: &mut Server, disturbance: Disturbance, end: Instant) -> Result<Duration, String> {
    let (metrics, is_over) = (server.metrics(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let prober = scope.spawn(|| probe(metrics, &is_over));
        let done = disturb_alone(server, disturbance, end);
        is_over.store(true, Ordering::Relaxed);
        let longest = prober.join().map_err(|_| "the prober failed".to_owned())?;
        done.and(longest)
    })
}

fn disturb_alone(server: &mut Server, disturbance: Disturbance, end: Instant) -> Result<(), String> {
    let mut next = Instant::now();
    while Instant::now() < end {
        next += match disturbance {
            Disturbance::None => PROBE_PAUSE,
            Disturbance::Reloads(period) => {
                server.reload()?;
                period
            }
            Disturbance::Scrapes => {
                server.scrape()?;
                Duration::from_secs(1)
            }
        };
        std::thread::sleep(next.min(end).saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// Asks `/livez` again and again. Returns the longest time of an answer.
fn probe(server: SocketAddr, is_over: &AtomicBool) -> Result<Duration, String> {
    let mut longest = Duration::ZERO;
    while !is_over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        get(server, "/livez")?;
        longest = longest.max(begun.elapsed());
        std::thread::sleep(PROBE_PAUSE);
    }
    Ok(longest)
}

/// The median of some numbers.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
