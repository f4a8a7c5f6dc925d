//! The command line of `sixfold`.

use crate::config::address::{Family, network};
use crate::config::{
    Allowed, Name, Network, Overrides, allowed, duration, endpoint, forgotten_brackets, limits, prefix,
};
use crate::explain::Request;
use crate::needs::By;
use crate::version;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use convert::Dialect;
use plan::Part;
use pref64::Pref64;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::time::Duration;

/// DNS64 server: lets IPv6-only networks reach IPv4-only servers.
#[derive(Debug, Parser)]
#[command(name = "sixfold", version = version::LONG, arg_required_else_help = true)]
#[command(after_help = "Example:\n  sixfold serve --listen '[::1]:5364' --forwarder 2001:db8::53")]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands of `sixfold`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answers queries, in the foreground, until SIGTERM or SIGINT.
    #[command(after_help = SERVE_HELP)]
    Serve(Serve),
    /// Checks the configuration: prints the effective configuration, or all errors at once.
    #[command(after_help = CHECK_HELP)]
    Check(Check),
    /// Translates a configuration of another DNS64 server, and prints it as TOML.
    #[command(after_help = CONVERT_HELP)]
    Convert(Convert),
    /// Writes the configurations of the network around the server: router advertisements, DHCPv4, gateway, packet filter.
    #[command(after_help = PLAN_HELP)]
    Plan(Plan),
    /// Sends a command to the running server over its control socket.
    #[command(after_help = CTL_HELP, arg_required_else_help = true)]
    Ctl(Ctl),
    /// Looks at the network from a host of it: whether routers, DHCP, resolvers and the gateway work and agree.
    #[command(after_help = DOCTOR_HELP)]
    Doctor(Doctor),
    /// Prints the completions of this command line for a shell.
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell
        #[arg(value_enum, value_name = "SHELL")]
        shell: CompletedShell,
    },
    /// Starts the successors of a server, for `ctl upgrade`; `serve` starts it.
    #[command(hide = true)]
    Launcher(Launcher),
}

const DOCTOR_HELP: &str = "\
A line for each finding, with its cause and what to do. Without root it says what it could not look at.
Exit status: 0 if all is well, 1 if there are findings, 2 for wrong usage.

Example: with a DNS server behind the NAT64, and a name that has A records only:
  sixfold doctor --target 192.0.2.53 --name www.shop.example";

const COMPLETIONS_HELP: &str = "\
Example: completions for bash, for all users:
  sixfold completions bash > /usr/share/bash-completion/completions/sixfold";

const SERVE_HELP: &str = "\
Flags override the keys of the file. SIGHUP reloads the file.

Example: forward to two resolvers, embed into the prefix of the local NAT64:
  sixfold serve --listen '[::]:53' --listen 0.0.0.0:53 --allow local --allow 2001:db8:10::/48 \\
    --forwarder 192.0.2.53 --forwarder '[2001:db8::53]:53' --prefix 2001:db8:64::/96";

const CHECK_HELP: &str = "\
Exit status: 0 and the effective configuration as TOML on standard output, or 1 and all errors on standard error.

Example: check a new file before it takes effect:
  sixfold check --config /etc/sixfold/sixfold.toml.new";

const CONVERT_HELP: &str = "\
Statements that were not carried over stand as comments at the top of the output.
Exit status: 0 if there are none, 1 if there are some, 2 if the file cannot be read as a configuration, or has several views
and --view names none.

Example: a configuration of BIND becomes one of sixfold:
  sixfold convert /etc/bind/named.conf > sixfold.toml; sixfold check --config sixfold.toml";

const PLAN_HELP: &str = "\
A first run into a folder writes all files. Later runs show the difference, and change files with --write only. A file that
this command did not write is never changed. A README.md in the folder explains each file.
Exit status: 0 if the folder has the plan, 1 if it differs, or if values contradict each other (nothing is written then).

Example: what the table [network] of the server's configuration means for radvd, Kea, TAYGA and nftables:
  sixfold plan /etc/sixfold/sixfold.toml --out network; less network/README.md";

const CTL_HELP: &str = "\
Exit status: 0 for success, 1 for an error or the answer no.

Example: all counters, for a script:
  sixfold ctl stats --json";

const EXPLAIN_HELP: &str = "\
The upstreams are asked again; the caches of the workers are not used.

Example: why does this client get these addresses?
  sixfold ctl explain www.example.com --client 2001:db8::1";

const TRACE_HELP: &str = "\
At most 1,000 queries a second and 100,000 in all; a line tells how many were left out. Ctrl-C ends the trace.

Example: the queries of one network, until 10 were shown:
  sixfold ctl trace on --client 2001:db8:1::/48 | head";

const NEEDS_HELP: &str = "\
Nothing of it is on a disk; a restart ends the counts.

Example: the networks on which DNS64 may be switched off, for a script:
  sixfold ctl needs --by client --top 1000 --json";

const UPGRADE_HELP: &str = "\
Prints the new process and its version. Exit status 1: the old process goes on, for the reason shown.

Example: after the installation of a new version:
  sixfold ctl upgrade";

/// `sixfold serve`.
#[derive(Clone, Debug, Args)]
pub struct Serve {
    /// Configuration file (TOML) [default: /etc/sixfold/sixfold.toml if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address to listen on, UDP and TCP; may be repeated; default port 53 [default: `[::1]:5364` and 127.0.0.1:5364]
    #[arg(long, value_name = "ADDR", value_parser = parse_endpoint)]
    pub listen: Vec<SocketAddr>,
    /// Resolver to forward to; may be repeated; default port 53 [default: those of /etc/resolv.conf]
    #[arg(long, value_name = "ADDR", value_parser = parse_forwarder)]
    pub forwarder: Vec<SocketAddr>,
    /// Prefix to embed IPv4 addresses in; may be repeated; length 32, 40, 48, 56, 64 or 96 bits [default: 64:ff9b::/96]
    #[arg(long, value_name = "PREFIX", value_parser = parse_prefix)]
    pub prefix: Vec<Pref64>,
    /// Network whose clients may send queries, or `local` for the networks near this machine; may be repeated [default: local]
    #[arg(long, value_name = "NETWORK", value_parser = parse_allowed)]
    pub allow: Vec<Allowed>,
    /// Worker threads, 1 to 256 [default: one per core]
    #[arg(long, value_name = "N", value_parser = parse_workers)]
    pub workers: Option<u16>,
    /// Forward to an authoritative server inside this process, without a network; try dig -p 5364 @::1 AAAA 198-51-100-7.demo.test
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

/// `sixfold convert`.
#[derive(Clone, Debug, Args)]
pub struct Convert {
    /// Configuration of BIND, Unbound, PowerDNS Recursor (YAML and the old form), CoreDNS, TOTD, or MTD64 and mtd64-ng
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Server that the file belongs to [default: recognized by the content]
    #[arg(long, value_name = "NAME", value_parser = parse_dialect)]
    pub from: Option<Dialect>,
    /// View to convert: Sixfold has none, so each becomes a configuration of its own [default: the only view, or the part without one]
    #[arg(long, value_name = "NAME")]
    pub view: Option<String>,
}

/// `sixfold doctor`.
#[derive(Clone, Debug, Args)]
pub struct Doctor {
    /// Resolver to look at; may be repeated; default port 53 [default: those of this host, and those that routers announce]
    #[arg(long, value_name = "ADDR", value_parser = parse_forwarder)]
    pub server: Vec<SocketAddr>,
    /// Network interface to look at [default: that of the default route]
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// IPv4 address behind the NAT64, best of a DNS server; default port 53 [default: none, or 1.1.1.1 with --internet]
    #[arg(long, value_name = "IPV4", value_parser = parse_target)]
    pub target: Option<SocketAddrV4>,
    /// Name with A records only, to see if AAAA records are synthesized for it [default: only ipv4only.arpa is asked for]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub name: Option<Name>,
    /// Ask for names outside of this network, and send packets there
    #[arg(long)]
    pub internet: bool,
    /// Control socket of a server on this host [default: from the configuration, else /run/sixfold/control.sock]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Wait for each answer, from 100ms to 30s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_wait)]
    pub timeout: Duration,
    /// Print one JSON object for scripts
    #[arg(long)]
    pub json: bool,
}

/// `sixfold plan`.
#[derive(Clone, Debug, Args)]
pub struct Plan {
    /// Configuration file of the server (TOML), with a table `[network]`
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Folder for the files; made if it does not exist
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Programs to write files for, which take the place of those in the table: radvd, networkd, bird, odhcpd, kea, dnsmasq, jool, tayga,
    /// nftables, sysctl, units [default: all that the table needs]
    #[arg(long = "for", value_name = "NAME,...", value_delimiter = ',', value_parser = parse_part)]
    pub parts: Vec<Part>,
    /// Change and remove files that an earlier run wrote
    #[arg(long)]
    pub write: bool,
}

/// `sixfold ctl`.
#[derive(Clone, Debug, Args)]
pub struct Ctl {
    /// Control socket of the server [default: from the configuration, else /run/sixfold/control.sock]
    #[arg(long, value_name = "PATH", global = true)]
    pub socket: Option<PathBuf>,
    /// Configuration file (TOML) that names the socket [default: /etc/sixfold/sixfold.toml if it exists]
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Print the answer as JSON for scripts: one object, also for an error (`error` and `code`)
    #[arg(long, global = true)]
    pub json: bool,
    /// The command.
    #[command(subcommand)]
    pub command: CtlCommand,
}

/// `sixfold launcher`: a part of `sixfold serve`.
#[derive(Clone, Debug, Args)]
pub struct Launcher {
    /// Program of the successors.
    pub program: PathBuf,
    /// Its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<std::ffi::OsString>,
}

/// Commands for a running server.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum CtlCommand {
    /// Version, uptime, configuration, workers, pending queries and upstreams
    Status,
    /// All metrics, in the text format of Prometheus
    Stats,
    /// Reads the configuration file again; after an error the old configuration stays in force
    Reload,
    /// Exit status 0 if the server answers queries, 1 if not
    Health,
    /// Removes cache entries
    Flush {
        /// This name only [default: everything]
        #[arg(value_parser = parse_flushed_name)]
        name: Option<String>,
        /// Also all names below it
        #[arg(long, requires = "name")]
        below: bool,
    },
    /// Shows the cache entries of a name
    Lookup {
        /// The name
        name: String,
        /// The record type [default: all]
        #[arg(value_name = "TYPE")]
        record_type: Option<String>,
    },
    /// Explains the answer to a question: rule, lookups, addresses, TTL, each with the RFC section that demands it
    #[command(after_help = EXPLAIN_HELP)]
    Explain(Explain),
    /// Address, transport, state, round trip, questions and failures of every forwarder
    Upstreams,
    /// State, round trip of its probes, weight and answers of every prefix in use
    Prefixes,
    /// Takes one prefix out of new answers, or puts it back
    Prefix(PrefixCommand),
    /// Names or client networks that still need DNS64, by synthesized answers; with `statistics.needs`
    #[command(after_help = NEEDS_HELP)]
    Needs {
        /// Names, or client networks
        #[arg(long, value_enum, value_name = "WHAT", default_value = "name")]
        by: By,
        /// Most of them that are shown
        #[arg(long, value_name = "N", default_value_t = 20)]
        top: usize,
        /// All counts begin anew after this answer
        #[arg(long)]
        reset: bool,
    },
    /// File, name, serial number, records, left-out records and age of every response policy zone
    Rpz,
    /// Trust anchors with key tag, algorithm, state and since when, and negative ones with their end; adds or removes a negative one
    Anchors(AnchorsCommand),
    /// Reports not ready, so that traffic goes to other servers, and still answers queries
    Drain,
    /// Reverses `drain`
    Undrain,
    /// Starts a new process with the same arguments, which takes over all sockets; queries under way are answered by the old one
    #[command(after_help = UPGRADE_HELP)]
    Upgrade {
        /// Program of the new process [default: that of the running one, as it is on the disk now]
        #[arg(long, value_name = "FILE")]
        binary: Option<PathBuf>,
        /// Longest wait until the new process is ready; then it is ended, and the old one goes on
        #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_patience)]
        timeout: Duration,
    },
    /// Shows matching queries as they are answered, one JSON object a line, with every step and its time
    #[command(after_help = TRACE_HELP)]
    Trace(Trace),
}

/// `sixfold ctl prefix`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct PrefixCommand {
    /// Take the prefix out of new answers, or put it back
    #[arg(value_enum)]
    pub action: PrefixAction,
    /// A prefix in use
    #[arg(value_parser = parse_prefix)]
    pub prefix: Pref64,
    /// Time over which its clients leave a prefix that drains, one by one in random order, with `spread = "client"` [default: all at once]
    #[arg(long, value_name = "TIME", value_parser = parse_drain)]
    pub over: Option<Duration>,
}

/// Out of new answers, or back into them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrefixAction {
    /// Out.
    Drain,
    /// Back.
    Undrain,
}

/// `sixfold ctl anchors`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct AnchorsCommand {
    /// Do not validate a zone for a time (RFC 7646), or validate it again
    #[arg(value_enum, requires = "zone")]
    pub action: Option<AnchorsAction>,
    /// The zone
    #[arg(value_name = "NAME", value_parser = parse_name)]
    pub zone: Option<Name>,
    /// Time after which a zone is validated again, with `add-negative`, from 1s to 7d
    #[arg(long = "for", value_name = "TIME", value_parser = parse_life, required_if_eq("action", "add-negative"))]
    pub life: Option<Duration>,
}

/// A change of the negative trust anchors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AnchorsAction {
    /// Add.
    AddNegative,
    /// Remove.
    Remove,
}

/// `sixfold ctl explain`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Explain {
    /// The name in the question
    #[arg(value_parser = parse_name)]
    pub name: Name,
    /// Address of the client
    #[arg(long, value_name = "ADDR", default_value = "::1")]
    pub client: IpAddr,
    /// The record type in the question, like PTR or TYPE65
    #[arg(long = "type", value_name = "TYPE", default_value = "AAAA", value_parser = parse_type)]
    pub record_type: wire::Type,
    /// Ask with DO set, like a client that wants signatures, and show the chain of trust
    #[arg(long)]
    pub dnssec: bool,
    /// Ask with CD set, like a client that validates
    #[arg(long)]
    pub cd: bool,
}

impl Explain {
    /// The request to the server.
    pub fn request(&self) -> Request {
        Request {
            name: self.name.clone(),
            qtype: self.record_type,
            client: self.client,
            dnssec_ok: self.dnssec,
            checking_disabled: self.cd,
        }
    }
}

/// Shell with completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompletedShell {
    /// In /usr/share/bash-completion/completions/sixfold
    Bash,
    /// In /usr/share/zsh/vendor-completions/_sixfold
    Zsh,
    /// In /usr/share/fish/vendor_completions.d/sixfold.fish
    Fish,
}

/// `sixfold ctl trace`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Trace {
    /// Start a trace, which goes on until it is interrupted, or stop all traces
    #[arg(value_enum, default_value = "on")]
    pub switch: Switch,
    /// Only names in this zone
    #[arg(long, value_name = "ZONE", value_parser = parse_name)]
    pub name: Option<Name>,
    /// Only clients in this network
    #[arg(long, value_name = "CIDR", value_parser = parse_network)]
    pub client: Option<Network>,
}

impl Trace {
    /// The request to the server.
    pub fn request(&self) -> crate::trace::Request {
        crate::trace::Request { zone: self.name.clone(), client: self.client }
    }
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Start.
    On,
    /// Stop.
    Off,
}

impl Serve {
    /// The flags that override keys of the file.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            listen: self.listen.clone(),
            forwarders: self.forwarder.clone(),
            prefixes: self.prefix.clone(),
            allow: self.allow.clone(),
            workers: self.workers,
        }
    }
}

impl Cli {
    /// Reads the command line. Help and version go to standard output, with exit status 0; wrong usage is an error on
    /// standard error, with exit status 2.
    pub fn read() -> Cli {
        Cli::try_parse().and_then(Cli::checked).unwrap_or_else(|error| {
            if !error.use_stderr() {
                error.exit();
            }
            // clap begins an error message with `error: `. The help text that it shows for a missing command has no such
            // prefix.
            let rendered = error.render().to_string();
            match rendered.strip_prefix("error: ") {
                Some(message) => eprint!("sixfold: {message}"),
                None => eprint!("{rendered}"),
            }
            std::process::exit(2)
        })
    }

    /// Refuses an option that its command does not have, as far as the definitions above do not.
    fn checked(self) -> Result<Cli, clap::Error> {
        let Command::Ctl(Ctl { command, .. }) = &self.command else { return Ok(self) };
        let text = match command {
            CtlCommand::Prefix(PrefixCommand { action: PrefixAction::Undrain, over: Some(_), .. }) => {
                "`--over` is for `drain`: a prefix that drains no more is in new answers at once; leave it out"
            }
            CtlCommand::Anchors(AnchorsCommand {
                action: Some(AnchorsAction::Remove),
                life: Some(_),
                ..
            }) => {
                "`--for` is for `add-negative`: a zone is validated as soon as its anchor is removed; leave it out"
            }
            CtlCommand::Anchors(AnchorsCommand { action: None, life: Some(_), .. }) => {
                "`--for` is for `add-negative`; write `anchors add-negative NAME --for TIME`"
            }
            _ => return Ok(self),
        };
        Err(Cli::command().error(ErrorKind::ArgumentConflict, text))
    }
}

fn parse_endpoint(text: &str) -> Result<SocketAddr, String> {
    check_brackets(text)?;
    endpoint(text, 53).map_err(|fault| fault.to_string())
}

fn parse_allowed(text: &str) -> Result<Allowed, String> {
    allowed(text).map_err(|fault| fault.to_string())
}

/// An address that probably lacks its brackets is an error here, where it can be written again at once, and a warning in a
/// file.
fn check_brackets(text: &str) -> Result<(), String> {
    forgotten_brackets(text).map_or(Ok(()), Err)
}

fn parse_forwarder(text: &str) -> Result<SocketAddr, String> {
    check_brackets(text)?;
    crate::config::forwarder(text).map_err(|fault| fault.to_string())
}

fn parse_prefix(text: &str) -> Result<Pref64, String> {
    prefix(text).map_err(|fault| fault.to_string())
}

fn parse_network(text: &str) -> Result<Network, String> {
    network(text, Family::Both).map_err(|fault| fault.to_string())
}

fn parse_name(text: &str) -> Result<Name, String> {
    Name::configured(text).map_err(|fault| fault.to_string())
}

/// A name to flush. A wildcard would be taken literally, and flush nothing.
fn parse_flushed_name(text: &str) -> Result<String, String> {
    match text.strip_prefix('*').map(|rest| rest.strip_prefix('.').unwrap_or(rest)) {
        Some("") => Err("to flush everything, write no name".to_owned()),
        Some(zone) => {
            Err(format!("a name is no pattern; to flush {zone} and all names below it, write {zone} --below"))
        }
        None => Ok(text.to_owned()),
    }
}

fn parse_patience(text: &str) -> Result<Duration, String> {
    duration(text, limits::UPGRADE_PATIENCE).map_err(|fault| fault.to_string())
}

fn parse_life(text: &str) -> Result<Duration, String> {
    duration(text, limits::NEGATIVE_LIFE).map_err(|fault| fault.to_string())
}

fn parse_drain(text: &str) -> Result<Duration, String> {
    duration(text, limits::DRAIN).map_err(|fault| fault.to_string())
}

fn parse_wait(text: &str) -> Result<Duration, String> {
    duration(text, limits::DOCTOR_WAIT).map_err(|fault| fault.to_string())
}

fn parse_target(text: &str) -> Result<SocketAddrV4, String> {
    let without_port = || text.parse::<Ipv4Addr>().map(|address| SocketAddrV4::new(address, 53));
    text.parse::<SocketAddrV4>().or_else(|_| without_port()).map_err(|_| {
        "write an IPv4 address, with or without a port, like 192.0.2.53 or 192.0.2.10:443".to_owned()
    })
}

fn parse_type(text: &str) -> Result<wire::Type, String> {
    let known = text.to_ascii_uppercase().parse();
    known.map_err(|_| "write a type like AAAA or TYPE65".to_owned())
}

fn parse_dialect(text: &str) -> Result<Dialect, String> {
    Dialect::ALL.into_iter().find(|dialect| dialect.name() == text).ok_or_else(|| {
        let names: Vec<&str> = Dialect::ALL.into_iter().map(Dialect::name).collect();
        format!("write one of {}", names.join(", "))
    })
}

fn parse_part(text: &str) -> Result<Part, String> {
    Part::ALL.into_iter().find(|part| part.name() == text).ok_or_else(|| {
        let names: Vec<&str> = Part::ALL.into_iter().map(Part::name).collect();
        format!("write one or more of {}, with commas between", names.join(", "))
    })
}

fn parse_workers(text: &str) -> Result<u16, String> {
    let workers = text.parse::<u16>().ok().filter(|&workers| limits::WORKERS.contains(&u64::from(workers)));
    workers.ok_or_else(|| {
        format!("write a number from {} to {}", limits::WORKERS.start(), limits::WORKERS.end())
    })
}
