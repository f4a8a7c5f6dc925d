//! `sixfold-bench load`: runs one load on one server, from the options to the summary.

mod display;
mod rtt;
mod seconds;
mod summary;

use super::result_file::{check_writable, write_error, write_result};
use crate::signals;
use clap::{ArgGroup, Args};
use display::LoadDisplay;
use load::{HttpOptions, LoadError, LoadOptions, NoCompanion, QueryList, TlsOptions};
use measure::name_range::NameRange;
use measure::order::{Expectation, Lanes, Load, Pace, Transport, Validity};
use measure::outcome::Verdict;
use measure::plan::{Prefix, SourceAddresses};
use measure::units;
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const HELP: &str = "\
Without --queries an authority must stand behind the server: it asks for AAA-BBB-CCC-DDD.dns64perf.test, and a reply is valid if it \
has the address in that name. So the server must forward dns64perf.test (or --zone-name) to \"sixfold-bench authority\". With \
--queries FILE any server can be asked any names.

Queries leave on an absolute schedule that does not depend on the replies, and every reply is checked in full. With \
--outstanding instead of --rate, a query leaves whenever fewer than that number are outstanding. TIME is a number with a unit: ns, us, ms, s, m or h.

Exit status: 0 every query got a valid reply in time, 1 some did not, or the tester was the limit, 2 wrong usage.

Example: send 50,000 queries a second for a minute to a DNS64 server with the well-known prefix
  sixfold-bench authority --listen '[::1]:5300' &   # the server forwards dns64perf.test to this
  sixfold-bench load --server '[::1]:5364' --rate 50000 --names 1.0.0.0/8 --prefix 64:ff9b::/96 --json result.json

Example: ask any resolver the names of a file, keeping 100 queries outstanding
  sixfold-bench load --server 192.0.2.53 --outstanding 100 --queries names.txt";

/// `sixfold-bench load`.
#[derive(Debug, Args)]
#[command(after_help = HELP, group = ArgGroup::new("pace").args(["rate", "outstanding"]).required(true))]
pub struct LoadArguments {
    /// Address of the server; the default port is 53, over tls and quic 853, over https 443
    #[arg(long, value_name = "ADDR", value_parser = parse_server)]
    server: Server,
    /// Queries a second, 0.1 to 1000000000, over all threads; this or --outstanding is required
    #[arg(long, value_name = "QPS")]
    rate: Option<f64>,
    /// Closed loop: send a query whenever fewer than N, 1 to 1048576, are outstanding, over all threads
    #[arg(long, value_name = "N", conflicts_with = "rate")]
    outstanding: Option<u32>,
    /// Time during which queries are sent and measured, 1ms to 168h together with the warm-up
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    duration: Duration,
    /// Time before that during which queries are sent but not measured; each of these asks for a new name
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = units::duration)]
    warm_up: Duration,
    /// Timeout of a query, 1ms to 60s; a later reply counts as late
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration)]
    timeout: Duration,
    /// Ask the queries of this file, NAME TYPE a line, in its order and again from the start, in place of computed names
    /// [default: computed]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "first", "zone_name", "prefix", "no_prefix", "addresses", "cname_depth", "aaaa_share", "ttl", "cached_share"])]
    queries: Option<PathBuf>,
    /// Names to ask for, each at most once: a network, or the first and the last address, as 1.0.0.0-9.255.255.255
    #[arg(long, value_name = "RANGE", default_value = "10.0.0.0/8")]
    names: NameRange,
    /// Number of the first name in that range
    #[arg(long, value_name = "N", default_value_t = 0)]
    first: u64,
    /// Zone of the names
    #[arg(long, value_name = "NAME", default_value = "dns64perf.test")]
    zone_name: String,
    /// DNS64 prefix of the server; may be repeated: each address then has one AAAA record for each prefix
    #[arg(long, value_name = "PREFIX", default_value = "64:ff9b::/96", value_parser = parse_prefix)]
    prefix: Vec<Prefix>,
    /// Expect no synthesis: names have the AAAA records that the authority gives them
    #[arg(long, visible_alias = "self-test", conflicts_with = "prefix")]
    no_prefix: bool,
    /// Addresses of each name, at least 1
    #[arg(long, value_name = "N", default_value_t = 1)]
    addresses: u16,
    /// CNAME records before the addresses, 0 to 64
    #[arg(long, value_name = "N", default_value_t = 0)]
    cname_depth: u16,
    /// Share of names, 0 to 1, that have AAAA records, as set at the authority
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    aaaa_share: f64,
    /// Seed of the authority's choice of these names, and of all random choices here
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Lowest and highest TTL of a valid record, in seconds
    #[arg(long, value_name = "LOW-HIGH", default_value = "0-2147483647", value_parser = parse_ttl_range)]
    ttl: (u32, u32),
    /// Share of queries, 0 to 1, that ask for names which were answered at least two timeouts before
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    cached_share: f64,
    /// Sending threads, 1 to 1024
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: u16,
    /// Receiving threads, at most as many as sending threads; 0: the sending threads receive too
    #[arg(long, value_name = "N", default_value_t = 0)]
    receivers: u16,
    /// Source ports of each sending thread, for each source address; 1 to 16384 in all
    #[arg(long, value_name = "N", default_value_t = 16)]
    ports: u16,
    /// Source addresses of this host, separated by commas; NETWORK/LENGTH stands for all of its addresses, up to 256 [default:
    /// chosen by the routing table]
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    sources: Vec<SourceAddresses>,
    /// Let the source ports take their turns in a pseudorandom order (RFC 4814)
    #[arg(long)]
    random_ports: bool,
    /// Consecutive queries of a thread, 1 to 4096, that leave from one port; above 1, those that are due together leave in one
    /// system call, as datagrams that the kernel takes apart (UDP GSO), and replies come together (UDP GRO)
    #[arg(long, value_name = "N", default_value_t = 1)]
    group: u16,
    /// Queries that are due at the same instant, at least 1
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "outstanding")]
    burst: u32,
    /// Cores of the sending threads, then of the receiving threads, separated by commas [default: not pinned]
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    pin: Vec<u16>,
    /// Wait in a busy loop instead of sleeping; for cores that nothing else uses
    #[arg(long)]
    spin: bool,
    /// Transport of the queries: udp; tcp, a connection for each query; tcp-reuse, a few connections that stay open; tfo, as
    /// tcp with the query in the SYN (TCP Fast Open); tls, DNS over TLS; https, DNS over HTTPS with HTTP/2; quic, DNS
    /// over QUIC; these three on connections that stay open
    #[arg(long, value_name = "NAME", default_value = "udp", hide_possible_values = true, value_parser = ["udp", "tcp", "tcp-reuse", "tfo", "tls", "https", "quic"])]
    transport: String,
    /// Connections that each sending thread keeps open with --transport tcp-reuse, tls, https or quic, for each source
    /// address; 1 to 1024 in all
    #[arg(long, value_name = "N", default_value_t = 4)]
    connections: u16,
    /// Open a connection for each query with --transport tls, https or quic
    #[arg(long)]
    connection_per_query: bool,
    /// Resume earlier TLS sessions on new connections
    #[arg(long)]
    resume: bool,
    /// Send the first query of a resumed connection as early data (0-RTT) with --transport tls or quic; includes --resume
    #[arg(long)]
    early_data: bool,
    /// PEM file of the certificates that may issue that of the server [default: those of the system]
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Name that the certificate of the server must have [default: the address of the server]
    #[arg(long, value_name = "NAME")]
    tls_name: Option<String>,
    /// Accept every certificate of the server
    #[arg(long, conflicts_with_all = ["tls_ca", "tls_name"])]
    tls_insecure: bool,
    /// Method of the requests with --transport https: post, the query in the body; get, in the path
    #[arg(long, value_name = "NAME", default_value = "post", hide_possible_values = true, value_parser = ["post", "get"])]
    http_method: String,
    /// Path of the resource with --transport https
    #[arg(long, value_name = "PATH", default_value = "/dns-query")]
    http_path: String,
    /// Write the outcome as JSON to this file (-: standard output) [default: not written]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write one line for each second as CSV to this file (-: standard output) [default: not written]
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write due, sending and receiving time, round-trip time and outcome of every query as CSV to this file, after the load;
    /// for up to 67108864 queries [default: not written]
    #[arg(long, value_name = "FILE")]
    rtt: Option<PathBuf>,
    /// Print no progress and no summary
    #[arg(long)]
    quiet: bool,
}

/// Runs the load and prints its outcome.
///
/// # Errors
///
/// A result file cannot be written, or the load fails or is impossible on this host. Options that contradict each other are exit status
/// 2.
pub fn run(arguments: &LoadArguments) -> Result<ExitCode, String> {
    let transport = transport(&arguments.transport);
    for file in [&arguments.json, &arguments.csv, &arguments.rtt].into_iter().flatten() {
        check_writable("load", file)?;
    }
    if let Some((option, needs)) = misplaced_option(arguments, transport) {
        eprintln!(
            "sixfold-bench: load: {option} needs --transport {needs}, and the transport is {}",
            transport.name()
        );
        return Ok(ExitCode::from(2));
    }
    let order = order(arguments, transport);
    let options = match options(arguments) {
        Ok(options) => options,
        Err(error) => {
            for line in error.lines() {
                eprintln!("sixfold-bench: load: {line}");
            }
            return Ok(ExitCode::from(2));
        }
    };
    let stop = signals::stop_flag().map_err(|error| format!("load: {error}"))?;
    let display = LoadDisplay::new(arguments.quiet);
    let outcome = load::run_with(&order, &options, None::<&mut NoCompanion>, |progress| {
        display.show(progress);
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    display.end();
    let (outcome, times) = match outcome {
        Ok(done) => done,
        Err(error @ (LoadError::Bind(..) | LoadError::Pin(..) | LoadError::Kernel(..))) => {
            return Err(format!("load: {error}"));
        }
        Err(error) => {
            eprintln!("sixfold-bench: load: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    print_summary(arguments, &summary::text(&order, &options, &outcome));
    if let Some(file) = &arguments.json {
        let text = serde_json::to_string(&outcome).map_err(|error| format!("load: JSON: {error}"))?;
        write_result("load", file, &format!("{text}\n"))?;
    }
    if let Some(file) = &arguments.csv {
        write_result("load", file, &seconds::csv_text(&outcome))?;
    }
    if let Some(file) = &arguments.rtt {
        rtt::write(file, &times).map_err(|error| write_error("load", file, &error))?;
        if times.omitted() > 0 {
            eprintln!(
                "sixfold-bench: load: {}: {} queries beyond the limit are not in this file; use a shorter --duration",
                file.display(),
                times.omitted()
            );
        }
    }
    Ok(if outcome.verdict == Verdict::Pass { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the summary on standard output, or on standard error if a result is written there.
fn print_summary(arguments: &LoadArguments, text: &str) {
    let files = [&arguments.json, &arguments.csv, &arguments.rtt];
    match files.into_iter().any(|file| file.as_deref() == Some(Path::new("-"))) {
        _ if arguments.quiet => {}
        true => eprint!("{text}"),
        false => print!("{text}"),
    }
}

/// Reads the files of the options. An error has a line for each fault.
fn options(arguments: &LoadArguments) -> Result<LoadOptions, String> {
    let list = arguments.queries.as_deref().map(QueryList::load).transpose();
    let queries = list.map_err(|error| error.to_string())?.map(Arc::new);
    let tls = TlsOptions {
        ca: arguments.tls_ca.clone(),
        name: arguments.tls_name.clone(),
        insecure: arguments.tls_insecure,
        resume: arguments.resume,
        early_data: arguments.early_data,
    };
    let http = HttpOptions { get: arguments.http_method == "get", path: arguments.http_path.clone() };
    Ok(LoadOptions { queries, turns: None, edns: false, query_times: arguments.rtt.is_some(), tls, http })
}

/// The first option that the transport does not have, and the transports that have it.
fn misplaced_option(arguments: &LoadArguments, transport: Transport) -> Option<(&'static str, &'static str)> {
    let of_https = [
        ("--http-method", arguments.http_method != "post"),
        ("--http-path", arguments.http_path != HttpOptions::default().path),
    ];
    let of_tls = [
        ("--connection-per-query", arguments.connection_per_query),
        ("--resume", arguments.resume),
        ("--tls-ca", arguments.tls_ca.is_some()),
        ("--tls-name", arguments.tls_name.is_some()),
        ("--tls-insecure", arguments.tls_insecure),
    ];
    let given =
        |options: &[(&'static str, bool)]| options.iter().find(|option| option.1).map(|option| option.0);
    let misplaced = (!transport.is_encrypted()).then(|| given(&of_tls)).flatten();
    let misplaced = misplaced.map(|option| (option, "tls, https or quic"));
    let is_early = arguments.early_data && !transport.is_encrypted();
    let misplaced = misplaced.or_else(|| is_early.then_some(("--early-data", "tls or quic")));
    misplaced.or_else(|| Some((given(&of_https)?, "https"))).filter(|_| transport != Transport::Https)
}

/// The transport of this name.
fn transport(name: &str) -> Transport {
    Transport::ALL.into_iter().find(|transport| transport.name() == name).unwrap_or_default()
}

/// Builds the load from the options.
fn order(arguments: &LoadArguments, transport: Transport) -> Load {
    let prefixes = if arguments.no_prefix { &[][..] } else { &arguments.prefix };
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let pace = match (arguments.outstanding, arguments.rate) {
        (Some(outstanding), _) => Pace::Closed { outstanding },
        (None, rate) => Pace::Open { rate_qps: rate.unwrap_or(0.0), burst: arguments.burst },
    };
    Load {
        server: SocketAddr::new(arguments.server.0, arguments.server.1.unwrap_or(transport.default_port())),
        pace,
        duration_ms: ms(arguments.duration),
        warm_up_ms: ms(arguments.warm_up),
        timeout_ms: ms(arguments.timeout),
        names: arguments.names,
        first_name: arguments.first,
        expect: Expectation {
            zone: arguments.zone_name.clone(),
            prefixes: prefixes.iter().map(|prefix| (prefix.address, prefix.length)).collect(),
            addresses: arguments.addresses,
            cname_depth: arguments.cname_depth,
            aaaa_share: arguments.aaaa_share,
            aaaa_seed: arguments.seed,
            ttl: arguments.ttl,
            validity: Validity::Exact,
        },
        cached_share: arguments.cached_share,
        lanes: Lanes {
            senders: arguments.threads,
            receivers: arguments.receivers,
            ports: arguments.ports,
            sources: arguments.sources.iter().flat_map(|it| it.0.clone()).collect(),
            group: arguments.group,
            pins: arguments.pin.clone(),
            spin: arguments.spin,
            connections: arguments.connections,
            connection_per_query: arguments.connection_per_query,
            random_ports: arguments.random_ports,
        },
        seed: arguments.seed,
        transport,
    }
}

/// Address of a server, and its port if it is given.
#[derive(Clone, Copy, Debug)]
struct Server(IpAddr, Option<u16>);

fn parse_server(text: &str) -> Result<Server, String> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let whole = text.parse().map(|server: SocketAddr| Server(server.ip(), Some(server.port())));
    whole.or_else(|_| bare.parse().map(|address| Server(address, None))).map_err(|_| {
        format!(
            "\"{text}\" is not an address; write one like 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:5353"
        )
    })
}

fn parse_prefix(text: &str) -> Result<Prefix, String> {
    Prefix::try_from(text.to_owned())
}

fn parse_ttl_range(text: &str) -> Result<(u32, u32), String> {
    let refused = || {
        format!("\"{text}\" is not a TTL range; write the lowest and the highest TTL in seconds, like 0-3600")
    };
    let (low, high) = text.split_once('-').ok_or_else(refused)?;
    let (low, high) = (low.parse().map_err(|_| refused())?, high.parse().map_err(|_| refused())?);
    if low <= high { Ok((low, high)) } else { Err(refused()) }
}

#[cfg(test)]
mod tests;
