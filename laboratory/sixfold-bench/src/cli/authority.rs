//! `sixfold-bench authority`: the authoritative server for a device under test, computed or from a master file.

use crate::{signals, usage};
use ::authority::{Content, Failure, Faults, Records, Server, Settings, Steer, Zone, limits};
use clap::{Args, ValueEnum};
use measure::units;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Interval at which the stop flag is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Number of names in the zones of the published papers: 2^27.
const PUBLISHED_ZONE_NAMES: f64 = 134_217_728.0;

const HELP: &str = "\
Serves the names AAA-BBB-CCC-DDD.ZONE. The A record is that address. The answer for AAAA is empty, or, for the share of names chosen \
by --aaaa-share and --seed, 2001:db8:: with the address in its last 32 bits. The records of a name and its failures are drawn from \
--seed and the name, so they are equal in every run. Loss and jitter are drawn from the message ID too, so they are drawn \
again for a repeated query.

SIGINT or SIGTERM ends the authority. It then prints how many messages it handled in each way. While it runs, a query \
returns these counters:
  dig @::1 -p 5300 +tcp CH TXT counters.authority

--fail makes a share of the names fail: servfail, refused, formerr, notimp (answers with this RCODE), timeout (no answer) or \
truncate (TC over UDP, complete over TCP), optionally for one query type, as in --fail servfail=0.01:AAAA. TIME is a number with a unit: \
ns, us, ms, s, m or h.

Exit status: 0 ended by a signal, 1 failure, 2 wrong usage.

Example: half of the names have AAAA records, one query in 10,000 is lost, answers are delayed by 20 to 25 ms
  sixfold-bench authority --listen '[::1]:5300' --aaaa-share 0.5 --loss 0.0001 --delay 20ms --jitter 5ms";

/// `sixfold-bench authority`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct AuthorityArguments {
    /// Address to listen on, UDP and TCP; may be repeated; the default port is 53, port 0 chooses a free one
    #[arg(long, value_name = "ADDR", required = true, num_args = 1.., value_parser = parse_endpoint)]
    listen: Vec<SocketAddr>,
    /// Threads for UDP, 1 to 256; each thread serves all addresses
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=limits::THREADS as i64))]
    threads: u16,
    /// Cores of the threads, in turn, separated by commas [default: not pinned]
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    pin: Vec<usize>,
    /// How the kernel chooses the thread for a datagram: name (the name in the question) or flow (source address and
    /// port)
    #[arg(long, value_name = "HOW", value_enum, default_value_t = SteerBy::Flow, hide_possible_values = true)]
    steer: SteerBy,
    /// Let datagrams of equal length come and leave together (UDP GRO and GSO), which no wire carries; for traffic that the tester
    /// groups
    #[arg(long)]
    offload: bool,
    /// Name of the zone
    #[arg(long, value_name = "NAME", default_value = "dns64perf.test")]
    zone_name: String,
    /// Share of the names, 0 to 1, that have AAAA records
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = parse_share)]
    aaaa_share: f64,
    /// Addresses of each name: the address in the name, and those that follow it; 1 to 2000
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(limits::ADDRESSES)))]
    addresses: u16,
    /// CNAME records before the addresses of each name, 0 to 64
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=i64::from(limits::CNAME_DEPTH)))]
    cname_depth: u8,
    /// TTL of all records and the negative TTL, in seconds
    #[arg(long, value_name = "S", default_value_t = 3600, value_parser = clap::value_parser!(u32).range(..=i64::from(limits::TTL_SECS)))]
    ttl: u32,
    /// Delay of the answers, up to 60s together with the jitter
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = units::duration)]
    delay: Duration,
    /// Highest additional delay, drawn evenly for each query
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = units::duration)]
    jitter: Duration,
    /// Share of the queries over UDP, 0 to 1, that are lost; loss is drawn again for a repeated query
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = parse_share)]
    loss: f64,
    /// Share of the names that fail, in one way and for one query type or all types; may be repeated [default: none]
    #[arg(long, value_name = "KIND=SHARE[:TYPE]")]
    fail: Vec<Failure>,
    /// Seed of all random choices: names with AAAA records, loss, jitter, failures
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Serve this master file (RFC 1035 section 5, with $GENERATE; "$ORIGIN zone." as first line, or absolute names) instead of computed names [default: computed]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["zone_name", "aaaa_share", "addresses", "cname_depth", "ttl"])]
    zone: Option<PathBuf>,
}

/// Choice of the thread for a datagram.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SteerBy {
    /// By the name in the question.
    Name,
    /// By source address and port.
    Flow,
}

/// Serves until a signal comes.
///
/// # Errors
///
/// The zone file cannot be loaded, or an address cannot be bound. A wrong zone or fault on the command line is exit status 2.
pub fn run(arguments: &AuthorityArguments) -> Result<ExitCode, String> {
    let (zone, faults) = match (build_zone(arguments), build_faults(arguments)) {
        (Ok(zone), Ok(faults)) => (zone, faults),
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("sixfold-bench: authority: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    let content = match &arguments.zone {
        None => Content::from(zone),
        Some(file) => load_zone_file(file)?.into(),
    };
    let settings = Settings::new(content)
        .faults(faults)
        .threads(arguments.threads.into())
        .pins(arguments.pin.clone())
        .offload(arguments.offload)
        .steer(match arguments.steer {
            SteerBy::Name => Steer::Name,
            SteerBy::Flow => Steer::Flow,
        });
    let stop = signals::stop_flag().map_err(|error| format!("authority: {error}"))?;
    let server = Server::with(&arguments.listen, &settings).map_err(|error| format!("authority: {error}"))?;
    let addresses: Vec<_> = server.addresses().iter().map(SocketAddr::to_string).collect();
    eprintln!("sixfold-bench: authority ready on {}", addresses.join(", "));
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(POLL_INTERVAL);
    }
    let mut text = String::new();
    for (name, value) in server.counters().totals() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name} {value}");
    }
    print!("{text}");
    Ok(ExitCode::SUCCESS)
}

fn build_zone(arguments: &AuthorityArguments) -> Result<Zone, String> {
    let zone = Zone::new(&arguments.zone_name).map_err(|error| format!("--zone-name: {error}"))?;
    Ok(zone
        .ttl(arguments.ttl)
        .addresses(arguments.addresses)
        .cname_depth(arguments.cname_depth)
        .aaaa_share(arguments.aaaa_share)
        .seed(arguments.seed))
}

fn build_faults(arguments: &AuthorityArguments) -> Result<Faults, String> {
    if arguments.delay.saturating_add(arguments.jitter) > limits::DELAY {
        return Err(format!("--delay and --jitter: at most {} s together", limits::DELAY.as_secs()));
    }
    let faults = Faults::new(arguments.seed).delay(arguments.delay, arguments.jitter).loss(arguments.loss);
    arguments
        .fail
        .iter()
        .try_fold(faults, |faults, failure| faults.fail(*failure).map_err(|error| format!("--fail: {error}")))
}

/// Loads a master file and prints its time and memory, with those of the published zones for comparison.
fn load_zone_file(file: &Path) -> Result<Records, String> {
    let before = memory_mib();
    let begin = Instant::now();
    let records = Records::load(file).map_err(|error| {
        let lines: Vec<String> = error.to_string().lines().map(|line| format!("authority: {line}")).collect();
        lines.join("\nsixfold-bench: ")
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    let taken = (memory_mib() - before).max(0.0);
    eprintln!(
        "sixfold-bench: authority: {}: {} names, {} records, loaded in {seconds:.1} s, {taken:.0} MiB",
        file.display(),
        records.names(),
        records.records()
    );
    // A small zone gives no estimate for a large one.
    if records.names() >= 1 << 16 {
        let times = PUBLISHED_ZONE_NAMES / records.names() as f64;
        eprintln!(
            "sixfold-bench: authority: 2^27 names would take {:.0} s and {:.1} GB at this pace; published for zones of that \
             size: 210 to 657 s to load, 23 to 38 GB (YADIFA, Knot, NSD)",
            seconds * times,
            taken * times * 1_048_576.0 / 1e9
        );
    }
    Ok(records)
}

/// Resident memory of this process, in MiB.
fn memory_mib() -> f64 {
    usage::numbers("/proc/self/status").get("VmRSS").map_or(0.0, |kib| *kib as f64 / 1024.0)
}

/// Parses an address. The port is 53 if the text has none.
///
/// # Errors
///
/// The text is no IP address with or without a port.
pub(super) fn parse_endpoint(text: &str) -> Result<SocketAddr, String> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    text.parse()
        .or_else(|_| bare.parse::<IpAddr>().map(|address| SocketAddr::new(address, 53)))
        .map_err(|_| "write it like 192.0.2.1:5300, '[2001:db8::1]:5300' or ::1".to_owned())
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a number from 0 to 1 is required".to_owned())
}
