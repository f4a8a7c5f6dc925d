//! `sixfold-bench link`: a link between two network namespaces.

use crate::file_error::file_error;
use crate::link::interface::{self, LinkNetwork};
use crate::link::namespace::Namespace;
use crate::link::options::{apply, apply_list};
use crate::link::pump::{self, Both};
use crate::link::summary::Summary;
use crate::signals;
use clap::Args;
use measure::units;
use netem::Impairments;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const HELP: &str = "\
Both namespaces must exist. In each a TUN interface sixfold0 gets the first (left) or second (right) address of --net4 and \
--net6. The options hold for both directions; --to-left and --to-right change them for one, with the same names.

Exit status: 0 the link has ended as asked, 1 it could not be made or has failed, 2 wrong usage.

Example: 65 ms of round trip and 1 % of loss in one direction:
  ip netns add left; ip netns add right
  sixfold-bench link --left left --right right --delay 32.5ms --to-right loss=0.01 --duration 10s &
  ip netns exec left ping -c 3 198.18.0.2";

/// `sixfold-bench link`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct LinkArguments {
    /// Left namespace: a name of `ip netns`, or the ID of a process in it
    #[arg(long, value_name = "NETNS")]
    left: Namespace,
    /// Right namespace
    #[arg(long, value_name = "NETNS")]
    right: Namespace,
    /// IPv4 network of the link
    #[arg(long, value_name = "NETWORK", default_value = "198.18.0.0/30")]
    net4: LinkNetwork,
    /// IPv6 network of the link
    #[arg(long, value_name = "NETWORK", default_value = "2001:2::/126")]
    net6: LinkNetwork,
    /// One-way delay [default: 0]
    #[arg(long, value_name = "TIME", value_parser = |text: &str| checked("delay", text))]
    delay: Option<String>,
    /// Variation of the delay: half of the width, or the standard deviation [default: 0]
    #[arg(long, value_name = "TIME", value_parser = |text: &str| checked("jitter", text))]
    jitter: Option<String>,
    /// Distribution of the delay: constant (uniform with a jitter), normal or pareto [default: constant]
    #[arg(long, value_name = "NAME", value_parser = |text: &str| checked("distribution", text))]
    distribution: Option<String>,
    /// Share of packets that are lost, independently [default: 0]
    #[arg(long, value_name = "SHARE", conflicts_with = "burst_loss", value_parser = |text: &str| checked("loss", text))]
    loss: Option<String>,
    /// Loss in bursts: probabilities per packet that a burst begins and ends
    #[arg(long, value_name = "P13,P31", value_parser = |text: &str| checked("burst-loss", text))]
    burst_loss: Option<String>,
    /// Rate of the line, bits a second, also with kbit, Mbit, Gbit [default: no limit]
    #[arg(long, value_name = "BITS", value_parser = |text: &str| checked("rate", text))]
    rate: Option<String>,
    /// Queue before the line, octets, also with KiB, MiB [default: 256KiB]
    #[arg(long, value_name = "OCTETS", value_parser = |text: &str| checked("queue", text))]
    queue: Option<String>,
    /// Share of packets that are sent twice [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = |text: &str| checked("duplicate", text))]
    duplicate: Option<String>,
    /// Share of packets that the next packet overtakes [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = |text: &str| checked("reorder", text))]
    reorder: Option<String>,
    /// Share of packets with a flipped bit [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = |text: &str| checked("corrupt", text))]
    corrupt: Option<String>,
    /// MTU of the interfaces, octets, from 1280 to 65535
    #[arg(long, value_name = "N", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(1280..))]
    mtu: u16,
    /// Seed of all random numbers [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Settings from right to left: KEY=VALUE,... with the names above (burst-loss=P13/P31)
    #[arg(long, value_name = "SETTINGS", value_parser = checked_list)]
    to_left: Option<String>,
    /// Settings from left to right
    #[arg(long, value_name = "SETTINGS", value_parser = checked_list)]
    to_right: Option<String>,
    /// Time until the link ends by itself [default: SIGINT or SIGTERM ends it]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,
    /// File for the summary as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn checked(key: &str, value: &str) -> Result<String, String> {
    apply(&mut Impairments::default(), key, value).map(|()| value.to_owned())
}

fn checked_list(list: &str) -> Result<String, String> {
    apply_list(&mut Impairments::default(), list).map(|()| list.to_owned())
}

impl LinkArguments {
    /// Impairments of both directions.
    fn impairments(&self) -> Result<Both<Impairments>, String> {
        let mut general = Impairments { mtu: usize::from(self.mtu), ..Impairments::default() };
        let options = [
            ("delay", &self.delay),
            ("jitter", &self.jitter),
            ("distribution", &self.distribution),
            ("loss", &self.loss),
            ("burst-loss", &self.burst_loss),
            ("rate", &self.rate),
            ("queue", &self.queue),
            ("duplicate", &self.duplicate),
            ("reorder", &self.reorder),
            ("corrupt", &self.corrupt),
        ];
        for (key, value) in options {
            if let Some(value) = value {
                apply(&mut general, key, value)?;
            }
        }
        let mut both = Both { to_right: general, to_left: general };
        for (list, direction) in [(&self.to_right, &mut both.to_right), (&self.to_left, &mut both.to_left)] {
            if let Some(list) = list {
                apply_list(direction, list)?;
            }
        }
        Ok(both)
    }
}

/// Runs the link until its end.
///
/// # Errors
///
/// An impairment is malformed, a namespace is missing, an interface cannot be made, which needs root, or the file of the results cannot
/// be written.
pub fn run(arguments: &LinkArguments) -> Result<ExitCode, String> {
    let impairments = arguments.impairments()?;
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => random_seed()?,
    };
    let stop = signals::stop_flag()?;
    let LinkArguments { left, right, net4, net6, mtu, .. } = arguments;
    let left = interface::open(left, &[net4.left(), net6.left()], *mtu)?;
    let right = interface::open(right, &[net4.right(), net6.right()], *mtu)?;
    eprintln!("sixfold-bench: link ready");
    let start = Instant::now();
    let achieved =
        pump::run(&left, &right, impairments, seed, arguments.duration, &stop).map_err(|error| {
            format!("the link has failed: {error}; look whether its interfaces are still there (ip link)")
        })?;
    drop((left, right));
    let summary = Summary::new(&impairments, &achieved, seed, start.elapsed());
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&summary).map_err(|error| format!("as JSON: {error}"))?;
        std::fs::write(path, text + "\n")
            .map_err(|error| format!("cannot write {}", file_error(path, &error)))?;
    }
    // A closed standard output is no failure of the link.
    let _ = write!(std::io::stdout(), "{summary}");
    Ok(ExitCode::SUCCESS)
}

fn random_seed() -> Result<u64, String> {
    let mut octets = [0; 8];
    getrandom::fill(&mut octets).map_err(|error| {
        format!("the system has no random numbers: {error}; give a seed (--seed), or allow getrandom(2)")
    })?;
    Ok(u64::from_le_bytes(octets))
}
