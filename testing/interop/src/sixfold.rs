//! Server under test.

use crate::lab::{Lab, address};
use crate::process::{CommandOutput, Process, Signal, run, wait_until};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;

/// Address of metrics and health, in the gateway.
const METRICS: &str = "127.0.0.1:9464";

/// Log line after a reload of the configuration.
const RELOADED: &str = "configuration reloaded";

/// Path of the binary: that of `SIXFOLD_BIN`, or the one of this build, which is built if it is missing.
pub(crate) fn binary() -> &'static str {
    static BINARY: OnceLock<String> = OnceLock::new();
    BINARY.get_or_init(|| std::env::var("SIXFOLD_BIN").unwrap_or_else(|_| built("sixfold")))
}

/// Runs the laboratory's program to its end, within the time limit of short programs.
pub fn bench(arguments: &[&str]) -> CommandOutput {
    static BINARY: OnceLock<String> = OnceLock::new();
    let binary = BINARY.get_or_init(|| built("sixfold-bench"));
    run(&[&[binary.as_str()], arguments].concat())
}

/// Path of a program of this project: that of `SIXFOLD_BIN` for `sixfold`, or the one of this build, which is built
/// if it is missing.
pub fn program(package: &str) -> String {
    if package == "sixfold" { binary().to_owned() } else { built(package) }
}

/// Path of a package's program in this build, which is built if it is missing.
fn built(package: &str) -> String {
    let this = std::env::current_exe().expect("a test knows its own file");
    // target/PROFILE/deps/test-0123 or target/PROFILE/program: the directory of the profile is above the file.
    let folder = this.parent().expect("a file is in a directory");
    let profile = if folder.ends_with("deps") { folder.parent() } else { Some(folder) };
    let profile = profile.expect("a test is built into target/PROFILE/deps");
    let binary = profile.join(package);
    if !binary.is_file() {
        build(profile, package);
    }
    assert!(binary.is_file(), "there is no {}: build it with `cargo build -p {package}`", binary.display());
    binary.to_string_lossy().into_owned()
}

/// Builds a package. Dependencies may have to be compiled, so there is no time limit but cargo's own.
fn build(profile: &Path, package: &str) {
    let target = profile.parent().expect("a profile is below a target directory");
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    command.args(["build", "--quiet", "--package", package, "--target-dir"]).arg(target);
    if !profile.ends_with("debug") {
        command.arg("--profile").arg(profile.file_name().expect("the folder of a profile"));
    }
    let status = command.current_dir(env!("CARGO_MANIFEST_DIR")).status();
    assert!(status.is_ok_and(|status| status.success()), "cargo build -p {package} failed");
}

/// Test-specific part of the configuration; the lab adds the rest.
pub struct Configuration {
    /// `upstream.forwarders`.
    pub forwarders: Vec<String>,
    /// More lines of `[server]`.
    pub server: String,
    /// More lines of `[upstream]`.
    pub upstream: String,
    /// `dns64.prefixes`.
    pub prefixes: Vec<String>,
    /// More lines of `[dns64]`.
    pub dns64: String,
    /// Lines of `[cache]`.
    pub cache: &'static str,
}

impl Configuration {
    /// Two workers that forward to these addresses.
    pub fn forwarding_to(forwarders: &[&str]) -> Configuration {
        let forwarders = forwarders.iter().map(|&address| address.to_owned()).collect();
        let [server, upstream, dns64] = [const { String::new() }; 3];
        let prefixes = vec![address::PREFIX.to_owned()];
        Configuration { forwarders, server, upstream, prefixes, dns64, cache: "" }
    }

    /// Replaces the prefixes.
    pub fn prefixes(mut self, prefixes: &[&str]) -> Configuration {
        self.prefixes = prefixes.iter().map(|&prefix| prefix.to_owned()).collect();
        self
    }

    /// Adds lines to `[server]`.
    pub fn server(mut self, lines: &str) -> Configuration {
        self.server.push_str(lines);
        self
    }

    /// Adds lines to `[upstream]`.
    pub fn upstream(mut self, lines: &str) -> Configuration {
        self.upstream.push_str(lines);
        self
    }

    /// Adds lines to `[dns64]`.
    pub fn dns64(mut self, lines: &str) -> Configuration {
        self.dns64.push_str(lines);
        self
    }

    /// Disables the cache, so that every query goes upstream.
    pub fn without_cache(mut self) -> Configuration {
        self.cache = "size = \"0MiB\"\n";
        self
    }

    fn to_toml(&self, lab: &Lab) -> String {
        let mut text = String::new();
        let socket = lab.scratch.path().join("control.sock");
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "[server]\nlisten = [\"[::]:53\", \"0.0.0.0:53\"]\nworkers = 2\nuser = \"nobody\"\n\
             allow = [\"2001:db8:c::/64\", \"192.0.2.0/24\"]\n{}\n\
             [upstream]\nforwarders = {:?}\n{}\n\
             [dns64]\nprefixes = {:?}\n{}\n\
             [cache]\n{}\
             [metrics]\nlisten = \"{METRICS}\"\n[control]\nsocket = {socket:?}\n[log]\nlevel = \"debug\"\n",
            self.server, self.forwarders, self.upstream, self.prefixes, self.dns64, self.cache,
        );
        text
    }
}

/// Running Sixfold in the gateway of a lab.
pub struct Sixfold<'a> {
    lab: &'a Lab,
    process: Process,
}

impl<'a> Sixfold<'a> {
    /// Starts Sixfold and waits until it reports that it is ready.
    pub fn start(lab: &'a Lab, configuration: &Configuration) -> Sixfold<'a> {
        let file = lab.scratch.write("sixfold.toml", &configuration.to_toml(lab));
        let log = lab.scratch.path().join("sixfold.log");
        let argv = [binary(), "serve", "--config", &file.to_string_lossy()];
        let mut process = lab.gateway.start(&argv, &log);
        process.expect("Sixfold is ready", |log| log.contains("sixfold: ready"));
        Sixfold { lab, process }
    }

    /// Replaces the configuration and reloads it.
    pub fn reload(&mut self, configuration: &Configuration) {
        self.lab.scratch.write("sixfold.toml", &configuration.to_toml(self.lab));
        let before = self.log().matches(RELOADED).count();
        self.process.signal(Signal::HUP);
        self.process.expect("Sixfold has reloaded", |log| log.matches(RELOADED).count() > before);
    }

    /// Process ID.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Log so far.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Stops Sixfold as an operator would.
    pub fn stop(mut self) -> ExitStatus {
        self.process.stop(Signal::TERM)
    }

    /// True if `/readyz` reports success.
    pub fn is_ready(&self) -> bool {
        let url = format!("http://{METRICS}/readyz");
        self.lab
            .gateway
            .run(&["curl", "--silent", "--fail", "--max-time", "20", "--noproxy", "*", &url])
            .success
    }

    /// Value of a series of `/metrics`, like `sixfold_pending` or `sixfold_upstream_up{upstream="[::1]:53"}`.
    pub fn metric(&self, series: &str) -> f64 {
        let text = self.metrics();
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {series}: {text}"))
    }

    /// All series of a metric with one label, by the value of the label.
    pub fn labelled(&self, metric: &str) -> BTreeMap<String, u64> {
        let text = self.metrics();
        let series = text.lines().filter_map(|line| line.strip_prefix(metric)?.strip_prefix('{'));
        let read = series.filter_map(|series| {
            let (label, value) = series.split_once("} ")?;
            Some((label.split('"').nth(1)?.to_owned(), value.parse::<f64>().ok()? as u64))
        });
        read.collect()
    }

    fn metrics(&self) -> String {
        let url = format!("http://{METRICS}/metrics");
        self.lab.gateway.run_checked(&["curl", "--silent", "--max-time", "20", "--noproxy", "*", &url])
    }

    /// Waits until a series has a value; panics with its last value otherwise.
    pub fn expect_metric(&self, series: &str, expected: f64) {
        let mut value = f64::NAN;
        let held = wait_until(|| {
            value = self.metric(series);
            (value - expected).abs() < f64::EPSILON
        });
        assert!(held, "{series} is {value}, not {expected}; log:\n{}", self.log());
    }

    /// Output of `sixfold ctl`.
    pub fn control(&self, command: &str) -> String {
        let socket = self.lab.scratch.path().join("control.sock");
        let ran = run(&[binary(), "ctl", "--socket", &socket.to_string_lossy(), command]);
        assert!(ran.success, "sixfold ctl {command}: {}", ran.stderr);
        ran.stdout
    }
}

impl Drop for Sixfold<'_> {
    /// Stops Sixfold, and checks that it ends well, if the test has not ended it another way.
    fn drop(&mut self) {
        if !std::thread::panicking() && self.process.is_running() {
            let status = self.process.stop(Signal::TERM);
            assert!(status.success(), "{status}: {}", self.process.log());
        }
    }
}
