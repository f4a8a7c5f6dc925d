//! The command line of `sixfold`.

use crate::config::{Name, Overrides, endpoint, limits, prefix};
use crate::explain::Request;
use crate::version;
use clap::{Args, Parser, Subcommand, ValueEnum};
use pref64::Pref64;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// DNS64 server: lets IPv6-only networks reach IPv4-only servers.
#[derive(Debug, Parser)]
#[command(name = "sixfold", version = version::LONG, arg_required_else_help = true)]
#[command(after_help = "Example:\n  sixfold serve --listen '[::1]:5364' --forwarder 2001:db8::53")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answers queries, in the foreground, until SIGTERM or SIGINT.
    #[command(after_help = SERVE_HELP)]
    Serve(Serve),
    /// Checks the configuration: shows the effective one, or every error at once.
    #[command(after_help = CHECK_HELP)]
    Check(Check),
    /// Speaks to the running server over its control socket.
    #[command(after_help = CTL_HELP, arg_required_else_help = true)]
    Ctl(Ctl),
}

const SERVE_HELP: &str = "\
Flags take the place of what the file says. SIGHUP reads the file again.

Example: forward to two resolvers, embed into the prefix of the local NAT64:
  sixfold serve --listen '[::]:53' --forwarder 192.0.2.53 --forwarder '[2001:db8::53]:53' --prefix 2001:db8:64::/96";

const CHECK_HELP: &str = "\
Exit status: 0 and the effective configuration as TOML on standard output, or 1 and all errors on standard error.

Example: check a new file before it takes effect:
  sixfold check --config /etc/sixfold/sixfold.toml.new";

const CTL_HELP: &str = "\
Exit status: 0 done, 1 it failed or the answer is no.

Example: all counters, for a script:
  sixfold ctl stats --json";

const EXPLAIN_HELP: &str = "\
The upstreams are asked anew; what workers remember plays no part.

Example: why does this client get these addresses?
  sixfold ctl explain www.example.com --client 2001:db8::1";

/// `sixfold serve`.
#[derive(Clone, Debug, Args)]
pub struct Serve {
    /// Configuration file (TOML) [default: /etc/sixfold/sixfold.toml if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address to answer on, UDP and TCP; may be repeated; without a port 53 [default: `[::1]:5364` and 127.0.0.1:5364]
    #[arg(long, value_name = "ADDR", value_parser = parse_endpoint)]
    pub listen: Vec<SocketAddr>,
    /// Resolver to forward to; may be repeated; without a port 53 [default: those of /etc/resolv.conf]
    #[arg(long, value_name = "ADDR", value_parser = parse_forwarder)]
    pub forwarder: Vec<SocketAddr>,
    /// Prefix to embed IPv4 addresses in; may be repeated; length 32, 40, 48, 56, 64 or 96 bits [default: 64:ff9b::/96]
    #[arg(long, value_name = "PREFIX", value_parser = parse_prefix)]
    pub prefix: Vec<Pref64>,
    /// Worker threads, 1 to 256 [default: one per core]
    #[arg(long, value_name = "N", value_parser = parse_workers)]
    pub workers: Option<u16>,
    /// Forward to an authority inside this process, which needs no network: dig -p 5364 @::1 AAAA 198-51-100-7.demo.test
    #[arg(long, conflicts_with = "forwarder")]
    pub demo: bool,
}

/// `sixfold check`.
#[derive(Clone, Debug, Args)]
pub struct Check {
    /// Configuration file (TOML) [default: /etc/sixfold/sixfold.toml if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `sixfold ctl`.
#[derive(Clone, Debug, Args)]
pub struct Ctl {
    /// Control socket of the server [default: that of the configuration, /run/sixfold/control.sock]
    #[arg(long, value_name = "PATH", global = true)]
    pub socket: Option<PathBuf>,
    /// Configuration file (TOML) that names the socket [default: /etc/sixfold/sixfold.toml if it exists]
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// What to ask for.
    #[command(subcommand)]
    pub command: CtlCommand,
}

/// Commands for a running server.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum CtlCommand {
    /// Version, time since the start, workers, what is pending
    Status,
    /// All counters
    Stats {
        /// As one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Reads the configuration file again; an error leaves everything as it is
    Reload,
    /// Exit status 0 when the server answers queries, 1 when it does not
    Health,
    /// Removes what the cache holds
    Flush {
        /// This name only [default: everything]
        name: Option<String>,
        /// And all names below it
        #[arg(long, requires = "name")]
        below: bool,
    },
    /// Shows what the cache holds of a name
    Lookup {
        /// The name
        name: String,
        /// The record type [default: all]
        #[arg(value_name = "TYPE")]
        record_type: Option<String>,
    },
    /// Shows how the answer to a question comes about: rule, legs, addresses, TTL, and what demands each
    #[command(after_help = EXPLAIN_HELP)]
    Explain(Explain),
    /// Shows the forwarders and how they do (not supported yet)
    Upstreams,
    /// Lets readiness fail so that traffic goes elsewhere, and answers what still comes (not supported yet)
    Drain,
    /// Takes `drain` back (not supported yet)
    Undrain,
    /// Shows queries as they come (not supported yet)
    Trace {
        /// Begin or end
        #[arg(value_enum)]
        switch: Switch,
        /// Only names in this zone
        #[arg(long, value_name = "ZONE")]
        name: Option<String>,
        /// Only clients in this network
        #[arg(long, value_name = "CIDR")]
        client: Option<String>,
    },
}

/// `sixfold ctl explain`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Explain {
    /// The name asked
    #[arg(value_parser = parse_name)]
    pub name: Name,
    /// Who asks
    #[arg(long, value_name = "ADDR", default_value = "::1")]
    pub client: IpAddr,
    /// The record type asked, like PTR or TYPE65
    #[arg(long = "type", value_name = "TYPE", default_value = "AAAA", value_parser = parse_type)]
    pub record_type: wire::Type,
    /// Ask with DO, as who wants signatures
    #[arg(long)]
    pub dnssec: bool,
    /// Ask with CD, as who validates
    #[arg(long)]
    pub cd: bool,
    /// As one JSON object
    #[arg(long)]
    pub json: bool,
}

impl Explain {
    /// What is to be explained.
    pub fn request(&self) -> Request {
        Request {
            name: self.name.clone(),
            qtype: self.record_type,
            client: self.client,
            dnssec_ok: self.dnssec,
            checking_disabled: self.cd,
            json: self.json,
        }
    }
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Begin.
    On,
    /// End.
    Off,
}

impl Serve {
    /// The flags that take the place of keys of the file.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            listen: self.listen.clone(),
            forwarders: self.forwarder.clone(),
            prefixes: self.prefix.clone(),
            workers: self.workers,
        }
    }
}

impl Cli {
    /// Reads the command line. Help and version go to standard output, exit status 0; wrong usage is told on
    /// standard error, exit status 2.
    pub fn read() -> Cli {
        Cli::try_parse().unwrap_or_else(|error| {
            if !error.use_stderr() {
                error.exit();
            }
            // clap begins a message with `error: `, and a help text that stands in for a missing command with
            // nothing.
            let rendered = error.render().to_string();
            match rendered.strip_prefix("error: ") {
                Some(message) => eprint!("sixfold: {message}"),
                None => eprint!("{rendered}"),
            }
            std::process::exit(2)
        })
    }
}

fn parse_endpoint(text: &str) -> Result<SocketAddr, String> {
    endpoint(text, 53).map_err(|fault| fault.to_string())
}

fn parse_forwarder(text: &str) -> Result<SocketAddr, String> {
    crate::config::forwarder(text).map_err(|fault| fault.to_string())
}

fn parse_prefix(text: &str) -> Result<Pref64, String> {
    prefix(text).map_err(|fault| fault.to_string())
}

fn parse_name(text: &str) -> Result<Name, String> {
    Name::parse(text).map_err(|fault| fault.to_string())
}

fn parse_type(text: &str) -> Result<wire::Type, String> {
    let known = text.to_ascii_uppercase().parse();
    known.map_err(|_| "write a type like AAAA or TYPE65".to_owned())
}

fn parse_workers(text: &str) -> Result<u16, String> {
    let workers = text.parse::<u16>().ok().filter(|&workers| limits::WORKERS.contains(&u64::from(workers)));
    workers.ok_or_else(|| {
        format!("write a number from {} to {}", limits::WORKERS.start(), limits::WORKERS.end())
    })
}
