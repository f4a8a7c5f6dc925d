//! Target of a run: a program that reads the configuration of the cases, a server with another configuration format,
//! or a running server that is not configured at all.

use crate::case::{Case, Level};
use crate::citation::Citation;
use crate::client;
use crate::config_demands;
use crate::configuration::{self, RunParameters};
use crate::limits;
use crate::query::Query;
use crate::server_process::{Program, wait_for_exit};
use crate::upstream::Upstream;
use servers::LaunchPlan;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Server under test.
#[derive(Debug)]
pub enum Target {
    /// Program that reads the configuration as the case has it.
    Program(Program),
    /// Server with its own configuration format; the demands of a case are translated for it.
    Foreign(Box<dyn ForeignServer>),
    /// Running server.
    Running(Box<RunningServer>),
}

impl Target {
    /// Files that configure the server for a case: name and text, with `{dir}` for the folder of the case and with example
    /// ports. None if the server runs already or the case is not for it.
    pub fn configuration(&self, case: &Case) -> BTreeMap<String, String> {
        let places = RunParameters {
            directory: Path::new("{dir}"),
            upstream: SocketAddr::from((Ipv4Addr::LOCALHOST, 5302)),
            port: 5301,
            metrics_port: 5303,
            user: "nobody",
        };
        match self {
            Target::Program(_) => {
                let text = configuration::write(&case.config, &places).ok();
                text.map(|text| ("sixfold.toml".to_owned(), text)).into_iter().collect()
            }
            Target::Foreign(foreign) => {
                foreign.launch(case, &places).map_or_else(|_| BTreeMap::new(), |launch| launch.files)
            }
            Target::Running(_) => BTreeMap::new(),
        }
    }

    /// Weight of a case for this server. What Sixfold's own interface demands is information only for servers that have
    /// another one.
    pub fn weight(&self, case: &Case) -> Level {
        match self {
            Target::Program(_) => case.level,
            Target::Foreign(_) | Target::Running(_) => weight_for_others(case),
        }
    }
}

/// Weight of a case for a server that is not Sixfold.
pub fn weight_for_others(case: &Case) -> Level {
    if Citation::of(case) == Citation::Interface { Level::Local } else { case.level }
}

/// Server with its own configuration format.
pub trait ForeignServer: fmt::Debug + Send + Sync {
    /// Command line and files for a case.
    ///
    /// # Errors
    ///
    /// The reason why the case does not apply to this server.
    fn launch(&self, case: &Case, places: &RunParameters) -> Result<LaunchPlan, String>;
}

/// Running server with a known prefix, which forwards to our upstream.
#[derive(Debug)]
pub struct RunningServer {
    server: SocketAddr,
    upstream: Upstream,
    prefix: (Ipv6Addr, u8),
    flush: Vec<String>,
    is_gone: AtomicBool,
}

impl RunningServer {
    /// The server at `server` does DNS64 with `prefix` and forwards to `upstream`. `flush` is a command line that
    /// empties its cache; an empty one does nothing.
    ///
    /// # Errors
    ///
    /// The scripted upstream cannot listen at `upstream`.
    pub fn new(
        server: SocketAddr,
        upstream: SocketAddr,
        prefix: (Ipv6Addr, u8),
        flush: Vec<String>,
    ) -> Result<RunningServer, String> {
        let upstream = Upstream::start_at(upstream)
            .map_err(|error| format!("{upstream}, where the scripted upstream is to listen: {error}"))?;
        Ok(RunningServer { server, upstream, prefix, flush, is_gone: AtomicBool::new(false) })
    }

    /// Address of the server.
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// Upstream that the server forwards to.
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Reason why a case does not apply to this server; `None` if it applies.
    pub fn not_applicable_reason(&self, case: &Case) -> Option<String> {
        let demands = match config_demands::of(case) {
            Ok(demands) => demands,
            Err(reason) => return Some(reason),
        };
        if case.clients().any(|client| client != Ipv6Addr::LOCALHOST) {
            return Some("it asks from a certain address".to_owned());
        }
        let (prefix, length) = self.prefix;
        if demands.prefixes != [self.prefix] {
            return Some(format!("it needs another prefix than {prefix}/{length}"));
        }
        if config_demands::need_only_prefixes(&demands) {
            None
        } else {
            Some("it needs more configuration than a prefix".to_owned())
        }
    }

    /// Empties the cache and checks that the server still answers. A server that once did not answer is not waited
    /// for again.
    ///
    /// # Errors
    ///
    /// The command that empties the cache fails, or the server does not answer within `limits::RUNNING_SERVER_TIMEOUT`.
    pub fn prepare(&self) -> Result<(), String> {
        let no_answer = || format!("{} does not answer", self.server);
        if self.is_gone.load(Ordering::Relaxed) {
            return Err(no_answer());
        }
        if let Some((program, arguments)) = self.flush.split_first() {
            run(Command::new(program).args(arguments))
                .map_err(|error| format!("the command that empties the cache: {program}: {error}"))?;
        }
        let end = Instant::now() + limits::RUNNING_SERVER_TIMEOUT;
        let pause = Duration::from_millis(500);
        while Instant::now() < end {
            match client::ask_at(self.server, &Query::probe(), pause) {
                Ok(exchange) if exchange.answer.is_some() => return Ok(()),
                Ok(_) => thread::sleep(Duration::from_millis(20)),
                Err(error) => return Err(format!("{}: {error}", self.server)),
            }
        }
        self.is_gone.store(true, Ordering::Relaxed);
        Err(no_answer())
    }
}

/// Runs a short command, in bounded time.
fn run(command: &mut Command) -> Result<(), String> {
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let child = spawned.map_err(|error| error.to_string())?;
    let status = wait_for_exit(child)?.status;
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> RunningServer {
        let free = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
        // Nothing answers at port 1 of the loopback address.
        let server = SocketAddr::from((Ipv6Addr::LOCALHOST, 1));
        RunningServer::new(server, free, ("2001:db8:64::".parse().unwrap(), 96), Vec::new()).unwrap()
    }

    fn not_applicable_reason(config: &str, client: &str) -> Option<String> {
        let line = format!(
            r#"{{"id": "r", "category": "c", "rfc": "RFC 6147 5", "source": "", "level": "MUST", "config": {config},
                "query": {{"name": "a.", "type": "AAAA", "client": "{client}"}}, "expect": {{}}}}"#
        );
        running().not_applicable_reason(&Case::read(&line).unwrap())
    }

    #[test]
    fn a_running_server_is_asked_what_its_prefix_and_its_defaults_can_answer() {
        let ours = r#"{"dns64": {"prefixes": ["2001:db8:64::/96"]}, "upstream": {"tries": 2}}"#;
        assert_eq!(not_applicable_reason(ours, "::1"), None);
        assert!(not_applicable_reason(ours, "2001:db8::1").unwrap().contains("certain address"));
        assert!(not_applicable_reason("{}", "::1").unwrap().contains("another prefix"));
        let more = r#"{"dns64": {"prefixes": ["2001:db8:64::/96"], "exclude-aaaa": ["::/0"]}}"#;
        assert!(not_applicable_reason(more, "::1").unwrap().contains("more configuration"));
    }

    #[test]
    fn our_own_interface_has_no_weight_for_other_servers() {
        let case = |rfc: &str| {
            Case::read(&format!(
                r#"{{"id": "w", "category": "c", "rfc": "{rfc}", "source": "", "level": "MUST", "config": {{}},
                    "query": {{"name": "a.", "type": "A"}}, "expect": {{}}}}"#
            ))
            .unwrap()
        };
        let other = Target::Running(Box::new(running()));
        assert_eq!(other.weight(&case("contract [filter] block")), Level::Local);
        assert_eq!(other.weight(&case("RFC 6147 5")), Level::Must);
        let ours = Target::Program(crate::Program::sixfold(Path::new("sixfold")));
        assert_eq!(ours.weight(&case("contract [filter] block")), Level::Must);
        let file = &ours.configuration(&case("-"))["sixfold.toml"];
        assert!(file.contains("listen = [\"127.0.0.1:5301\", \"[::1]:5301\"]"), "{file}");
    }

    #[test]
    fn a_command_that_fails_is_told() {
        assert_eq!(run(&mut Command::new("true")), Ok(()));
        assert!(run(&mut Command::new("false")).unwrap_err().contains('1'));
        assert!(run(&mut Command::new("/nowhere/at-all")).is_err());
    }
}
