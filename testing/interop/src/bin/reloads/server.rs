//! Sixfold and its authority, on free ports of the loopback interface.

use rustix::process::{Pid, Signal, kill_process};
use sixfold_interop::{Process, Scratch, program};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// Time limit of one reload, and of one request.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// Pause between two looks at the log.
const PAUSE: Duration = Duration::from_millis(1);

/// The prefix of synthesized addresses: global, so that every address may be embedded.
pub const PREFIX: &str = "2001:db8:64::/96";

/// Settings of the server.
pub struct Setup {
    /// Worker threads.
    pub workers: u32,
    /// Lines of the response policy zone; 0: none.
    pub policy_lines: u32,
}

/// A running server and its authority.
pub struct Server {
    process: Process,
    _authority: Process,
    scratch: Scratch,
    /// Address for queries.
    pub address: SocketAddr,
    metrics: SocketAddr,
    authorities: [SocketAddr; 2],
    setup: String,
    /// The log, read up to the last reload.
    log: File,
    reloads: u64,
}

impl Server {
    /// Starts both, and waits until the server is ready.
    ///
    /// # Errors
    ///
    /// No port is free, or the log cannot be opened. A server that does not become ready is a panic with its log.
    pub fn start(setup: &Setup) -> Result<Server, String> {
        let scratch = Scratch::new();
        let [address, metrics, first, second] = free_addresses()?;
        let listen = [first, second].map(|address| address.to_string());
        let log = scratch.path().join("authority.log");
        let bench = program("sixfold-bench");
        let _authority =
            Process::start(&[&bench, "authority", "--listen", &listen[0], "--listen", &listen[1]], &log);
        let mut text = format!(
            "[server]\nlisten = [\"{address}\"]\nworkers = {}\nuser = \"root\"\n[dns64]\nprefixes = [\"{PREFIX}\"]\n\
             [limits]\npending-per-client = 65536\n[metrics]\nlisten = \"{metrics}\"\n[control]\nsocket = \"\"\n",
            setup.workers
        );
        if setup.policy_lines > 0 {
            let zone = scratch.write("policy.rpz", &policy_zone(setup.policy_lines));
            let _ = writeln!(text, "[filter]\nrpz = [{zone:?}]");
        }
        let authorities = [first, second];
        let log = scratch.path().join("sixfold.log");
        let file = write(&scratch, &text, authorities, 0);
        let mut process = Process::start(&[&program("sixfold"), "serve", "--config", &file], &log);
        process.expect("the server is ready", |log| log.contains("sixfold: ready"));
        let log = File::open(log).map_err(|error| error.to_string())?;
        let setup = text;
        Ok(Server { process, _authority, scratch, address, metrics, authorities, setup, log, reloads: 0 })
    }

    fn signal(&self, signal: Signal) -> Result<(), String> {
        let pid = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw).ok_or("no process ID")?;
        kill_process(pid, signal).map_err(|error| error.to_string())
    }

    /// Changes the configuration and has it reloaded. Returns when the log says that it is in force.
    ///
    /// # Errors
    ///
    /// The server refuses the configuration, or does not say within [`TIME_LIMIT`] that it is in force.
    pub fn reload(&mut self) -> Result<(), String> {
        self.reloads += 1;
        write(&self.scratch, &self.setup, self.authorities, self.reloads);
        self.signal(Signal::HUP)?;
        let end = Instant::now() + TIME_LIMIT;
        let mut told = String::new();
        while !told.contains("configuration reloaded") {
            if told.contains("reload failed") || Instant::now() > end {
                return Err(format!("a reload failed: {told}"));
            }
            std::thread::sleep(PAUSE);
            self.log.read_to_string(&mut told).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Number of reloads so far.
    pub fn reloads(&self) -> u64 {
        self.reloads
    }

    /// The address of metrics and probes.
    pub fn metrics(&self) -> SocketAddr {
        self.metrics
    }

    /// Reads all metrics.
    ///
    /// # Errors
    ///
    /// As [`get`].
    pub fn scrape(&self) -> Result<String, String> {
        get(self.metrics, "/metrics")
    }

    /// Processor time of the server so far.
    ///
    /// # Errors
    ///
    /// The process has ended.
    pub fn processor_seconds(&self) -> Result<f64, String> {
        let folder = std::fs::read_dir(format!("/proc/{}/task", self.process.id()));
        let threads = folder.map_err(|error| error.to_string())?.flatten();
        // The first number is the time on a processor, in nanoseconds. A thread may have ended.
        let times = threads.filter_map(|thread| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<f64>().ok()
        });
        Ok(times.sum::<f64>() / 1e9)
    }

    /// Stops the server while it reads its configuration. Returns the time to its end.
    ///
    /// # Errors
    ///
    /// The signal cannot be sent, or the server ends with an exit status other than 0.
    pub fn stop_during_reload(mut self) -> Result<Duration, String> {
        self.reloads += 1;
        write(&self.scratch, &self.setup, self.authorities, self.reloads);
        self.signal(Signal::HUP)?;
        std::thread::sleep(Duration::from_millis(20));
        let begun = Instant::now();
        let status = self.process.stop(Signal::TERM);
        if status.success() { Ok(begun.elapsed()) } else { Err(format!("the server ended with {status}")) }
    }
}

/// Writes the configuration: the forwarder and a rule change with each reload.
fn write(scratch: &Scratch, setup: &str, authorities: [SocketAddr; 2], reloads: u64) -> String {
    let forwarder = authorities[(reloads % 2) as usize];
    let rule = format!("names = [\"r{reloads}.example\"]\nprefixes = []");
    let text = format!("{setup}[upstream]\nforwarders = [\"{forwarder}\"]\n[[dns64.rule]]\n{rule}\n");
    let next = scratch.write("next.toml", &text);
    let file = scratch.path().join("sixfold.toml");
    // The server must not read half of a file.
    std::fs::rename(next, &file).expect("two files of one directory");
    file.to_string_lossy().into_owned()
}

/// An answer to a request.
///
/// # Errors
///
/// The server cannot be connected to, does not answer in time, or answers with a status other than 200.
pub fn get(server: SocketAddr, path: &str) -> Result<String, String> {
    let exchange = || {
        let mut stream = TcpStream::connect(server)?;
        stream.set_read_timeout(Some(TIME_LIMIT))?;
        stream.write_all(
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes(),
        )?;
        let mut text = String::new();
        stream.read_to_string(&mut text).map(|_| text)
    };
    let text = exchange().map_err(|error: std::io::Error| format!("{path}: {error}"))?;
    match text.starts_with("HTTP/1.1 200 ") {
        true => Ok(text),
        false => Err(format!("{path}: {}", text.lines().next().unwrap_or_default())),
    }
}

/// Addresses whose ports are free for UDP and TCP.
fn free_addresses() -> Result<[SocketAddr; 4], String> {
    let mut kept = Vec::new();
    let mut addresses = Vec::new();
    while addresses.len() < 4 {
        let bound = UdpSocket::bind("127.0.0.1:0").and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (address, socket) = bound.map_err(|error| error.to_string())?;
        if TcpListener::bind(address).is_ok() {
            addresses.push(address);
        }
        kept.push(socket);
    }
    addresses.try_into().map_err(|_| "four addresses".into())
}

/// A response policy zone of this length: names, each with and without an asterisk label in front.
fn policy_zone(lines: u32) -> String {
    let mut text = "@ SOA localhost. root.localhost. 1 3600 600 86400 60\n".to_owned();
    for number in 0..lines / 2 {
        let _ =
            writeln!(text, "host-{number}.blocked.example CNAME .\n*.host-{number}.blocked.example CNAME .");
    }
    text
}
