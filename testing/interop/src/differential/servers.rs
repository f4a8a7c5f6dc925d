//! Compared servers, each with DNS64, one prefix, no validation, and a forwarder for the zone of each kind of
//! upstream. Everything else is the default.

use crate::process::{Process, run};
use crate::requirement::{Unable, missing_program};
use crate::scratch::Scratch;
use crate::sixfold::binary;
use conform::client;
use conform::differential::quirk::Server;
use conform::query::Query;
use conform::server_process::tells_of_taken_port;
use kit::free_port;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Prefix of all servers.
const PREFIX: &str = "64:ff9b::/96";

fn program(server: Server) -> &'static str {
    match server {
        Server::Sixfold => binary(),
        Server::Unbound => "unbound",
        Server::Bind => "named",
        Server::PowerDns => "pdns_recursor",
        Server::KnotResolver => "kresd",
    }
}

/// Reason why the server cannot be started here; `None` if it can.
pub fn missing(server: Server) -> Option<Unable> {
    if server == Server::Sixfold { None } else { missing_program(program(server)) }
}

/// Line of its output with the version.
pub fn version(server: Server) -> String {
    let flag = match server {
        Server::Unbound => "-V",
        Server::Bind => "-v",
        _ => "--version",
    };
    let ran = run(&[program(server), flag]);
    let text = ran.stdout + &ran.stderr;
    let line = text.lines().find(|line| line.to_ascii_lowercase().contains("version") || line.contains('.'));
    line.unwrap_or_default().trim().to_owned()
}

/// Name of the server's configuration file, its text, and the command that starts the server.
fn plan(
    server: Server,
    folder: &Path,
    port: u16,
    zones: &[(&str, SocketAddr)],
) -> (&'static str, String, Vec<String>) {
    let folder = folder.display().to_string();
    let mut text = String::new();
    let configure = match server {
        Server::Sixfold => sixfold,
        Server::Unbound => unbound,
        Server::Bind => bind,
        Server::PowerDns => powerdns,
        Server::KnotResolver => knot_resolver,
    };
    let (file, arguments) = configure(&mut text, &folder, port, zones);
    (file, text, [vec![program(server).to_owned()], arguments].concat())
}

/// Name of a configuration file, and the arguments of the server's command.
type FileAndArguments = (&'static str, Vec<String>);

fn sixfold(text: &mut String, folder: &str, port: u16, zones: &[(&str, SocketAddr)]) -> FileAndArguments {
    let _ = write!(
        text,
        "[server]\nlisten = [\"127.0.0.1:{port}\"]\nworkers = 1\n[upstream]\nforwarders = [\"{}\"]\n",
        zones[0].1
    );
    for (zone, upstream) in &zones[1..] {
        let _ = write!(text, "[[upstream.zone]]\nzone = \"{zone}\"\nforwarders = [\"{upstream}\"]\n");
    }
    let _ = write!(
        text,
        "[dns64]\nprefixes = [\"{PREFIX}\"]\n[metrics]\nlisten = \"\"\n[control]\n\
         socket = \"{folder}/control.sock\"\n[log]\nlevel = \"error\"\n"
    );
    ("sixfold.toml", vec!["serve".into(), "--config".into(), format!("{folder}/sixfold.toml")])
}

fn unbound(text: &mut String, folder: &str, port: u16, zones: &[(&str, SocketAddr)]) -> FileAndArguments {
    let _ = write!(
        text,
        "server:\n interface: 127.0.0.1@{port}\n access-control: 127.0.0.0/8 allow\n do-daemonize: no\n \
         username: \"\"\n chroot: \"\"\n directory: \"{folder}\"\n pidfile: \"\"\n use-syslog: no\n \
         logfile: \"\"\n verbosity: 1\n num-threads: 1\n module-config: \"dns64 iterator\"\n \
         dns64-prefix: {PREFIX}\n do-not-query-localhost: no\n\
         remote-control:\n control-enable: no\n"
    );
    for (zone, upstream) in zones {
        let (ip, port) = (upstream.ip(), upstream.port());
        let _ = write!(text, "forward-zone:\n name: \"{zone}\"\n forward-addr: {ip}@{port}\n");
    }
    ("unbound.conf", vec!["-d".into(), "-c".into(), format!("{folder}/unbound.conf")])
}

fn bind(text: &mut String, folder: &str, port: u16, zones: &[(&str, SocketAddr)]) -> FileAndArguments {
    let forwarders = |upstream: &SocketAddr| {
        format!("forward only; forwarders {{ {} port {}; }};", upstream.ip(), upstream.port())
    };
    let _ = write!(
        text,
        "options {{ directory \"{folder}\"; pid-file none; session-keyfile none;\n\
         listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};\n\
         recursion yes; allow-query {{ any; }}; allow-recursion {{ any; }}; dnssec-validation no;\n\
         empty-zones-enable no; {}\ndns64 {PREFIX} {{ clients {{ any; }}; }}; }};\ncontrols {{ }};\n\
         logging {{ channel errors {{ stderr; severity warning; }}; category default {{ errors; }};\n\
         category lame-servers {{ null; }}; }};\n",
        forwarders(&zones[0].1)
    );
    for (zone, upstream) in &zones[1..] {
        let _ = writeln!(text, "zone \"{zone}\" {{ type forward; {} }};", forwarders(upstream));
    }
    let words = ["-f", "-L", "/dev/stderr", "-n", "1", "-c"].map(str::to_owned);
    ("named.conf", words.into_iter().chain([format!("{folder}/named.conf")]).collect())
}

fn powerdns(text: &mut String, folder: &str, port: u16, zones: &[(&str, SocketAddr)]) -> FileAndArguments {
    let others: Vec<String> =
        zones[1..].iter().map(|(zone, upstream)| format!("{zone}={upstream}")).collect();
    let _ = write!(
        text,
        "config-dir={folder}\nsocket-dir={folder}\ndaemon=no\nwrite-pid=no\nsetuid=\nsetgid=\nchroot=\n\
         local-address=127.0.0.1\nlocal-port={port}\nallow-from=127.0.0.0/8\n\
         forward-zones-recurse={},.={}\ndont-query=\ndns64-prefix={PREFIX}\ndnssec=process-no-validate\nthreads=1\n\
         pdns-distributes-queries=no\nserve-rfc1918=no\nexport-etc-hosts=no\nwebserver=no\n\
         security-poll-suffix=\nquiet=yes\nloglevel=3\ndisable-syslog=yes\nstatistics-interval=0\n",
        others.join(","),
        zones[0].1
    );
    ("recursor.conf", vec![format!("--config-dir={folder}")])
}

fn knot_resolver(
    text: &mut String,
    folder: &str,
    port: u16,
    zones: &[(&str, SocketAddr)],
) -> FileAndArguments {
    let prefix = PREFIX.trim_end_matches("/96");
    let _ = write!(
        text,
        "net.listen('127.0.0.1', {port}, {{ kind = 'dns' }})\nmodules = {{ 'policy', 'dns64' }}\n\
         modules.unload('priming')\nmodules.unload('detect_time_skew')\ntrust_anchors.remove('.')\n\
         dns64.config('{prefix}')\nlog_level('warning')\n"
    );
    for (zone, upstream) in &zones[1..] {
        let target = format!("'{}@{}'", upstream.ip(), upstream.port());
        let _ = writeln!(
            text,
            "policy.add(policy.suffix(policy.FORWARD({{{target}}}), policy.todnames({{'{zone}'}})))"
        );
    }
    let target = format!("'{}@{}'", zones[0].1.ip(), zones[0].1.port());
    let _ = writeln!(text, "policy.add(policy.all(policy.FORWARD({{{target}}})))");
    let words = ["-n", "-c"].map(str::to_owned);
    let words = words.into_iter().chain([format!("{folder}/kresd.conf"), folder.to_string()]);
    ("kresd.conf", words.collect())
}

/// Running server.
pub struct RunningServer {
    /// Server software.
    pub server: Server,
    /// Port on 127.0.0.1.
    pub port: u16,
    process: Process,
    _place: Scratch,
}

impl RunningServer {
    /// True if the process still runs.
    pub fn is_alive(&mut self) -> bool {
        self.process.is_running()
    }

    /// Log so far.
    pub fn log(&self) -> String {
        self.process.log()
    }
}

/// Starts of a server, each at another port: another process may take a port before the server has it.
const STARTS: u32 = 4;

/// Starts a server and waits until it answers.
pub fn start(server: Server, zones: &[(&str, SocketAddr)]) -> RunningServer {
    let mut starts = 0;
    loop {
        starts += 1;
        match try_start(server, zones) {
            Ok(running) => return running,
            Err(why) if starts < STARTS && tells_of_taken_port(&why) => {}
            Err(why) => panic!("{} does not answer: {why}", server.name()),
        }
    }
}

fn try_start(server: Server, zones: &[(&str, SocketAddr)]) -> Result<RunningServer, String> {
    let place = Scratch::new();
    let port = free_port();
    let (file, text, command) = plan(server, place.path(), port, zones);
    place.write(file, &text);
    let argv: Vec<&str> = command.iter().map(String::as_str).collect();
    let mut process = Process::start(&argv, &place.path().join("server.log"));
    let query: Query =
        serde_json::from_str(r#"{"name": "ready.example.", "type": "TXT", "client": "127.0.0.1"}"#)
            .expect("a query");
    process.wait_for(|_| {
        let exchange = client::ask(port, &query, Duration::from_millis(300));
        exchange.is_ok_and(|exchange| exchange.answer.is_some())
    })?;
    Ok(RunningServer { server, port, process, _place: place })
}
