//! `sixfold-bench totd-forwarder`, hidden: the forwarder of the experiments on TOTD, as a process of its own.

use crate::lab::totd::proxy::{self, ProxySettings};
use crate::signals;
use clap::Args;
use measure::units;
use papers::totd::ids::{SCHEMES, Scheme};
use std::net::{Ipv6Addr, SocketAddrV4};
use std::process::ExitCode;
use std::time::Duration;

/// `sixfold-bench totd-forwarder`.
#[derive(Debug, Args)]
pub struct ForwarderArguments {
    /// Address to listen on, a loopback address
    #[arg(long, value_name = "ADDR")]
    listen: SocketAddrV4,
    /// Upstream, a loopback address
    #[arg(long, value_name = "ADDR")]
    upstream: SocketAddrV4,
    /// IDs: sequential, fixed or permuted
    #[arg(long, value_name = "SCHEME", value_parser = scheme)]
    ids: Scheme,
    /// Value of the counter at the start
    #[arg(long, value_name = "N", default_value_t = 0)]
    counter: u16,
    /// Second since 1970 that seeds the random numbers until the counter has run over once [default: the clock's]
    #[arg(long, value_name = "N")]
    second: Option<u32>,
    /// Time that the upstream has for a reply
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = units::duration)]
    timeout: Duration,
    /// Lifetime of the entries of the table of duplicates
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    lifetime: Duration,
    /// DNS64 prefix of 96 bits
    #[arg(long, value_name = "ADDRESS")]
    prefix: Ipv6Addr,
}

fn scheme(text: &str) -> Result<Scheme, String> {
    let found = SCHEMES.into_iter().find(|scheme| scheme.name() == text);
    found.ok_or_else(|| format!("expected {}", SCHEMES.map(Scheme::name).join(", ")))
}

/// Runs the command.
///
/// # Errors
///
/// As [`proxy::serve`].
pub fn run(arguments: &ForwarderArguments) -> Result<ExitCode, String> {
    let stop = signals::stop_flag().map_err(|error| format!("totd-forwarder: {error}"))?;
    let settings = ProxySettings {
        listen: arguments.listen,
        upstream: arguments.upstream,
        scheme: arguments.ids,
        counter: arguments.counter,
        second: arguments.second,
        timeout: arguments.timeout,
        lifetime: arguments.lifetime,
        prefix: arguments.prefix,
    };
    let counters = proxy::serve(settings, &stop).map_err(|error| format!("totd-forwarder: {error}"))?;
    let words: Vec<String> = counters.iter().map(|(name, count)| format!("{name}: {count}")).collect();
    println!("{}", words.join(", "));
    Ok(ExitCode::SUCCESS)
}
