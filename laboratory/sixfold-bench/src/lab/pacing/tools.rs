//! Other load generators against the same receiver: dnsperf if it is installed, and dns64perf++ if the user has built it. Both ask for the
//! names of the trial in their order, so the receiver judges them as it judges the tester.

use super::{ZONE, names};
use crate::lab::context::Context;
use measure::experiment::Program;
use servers::WorkingFolder;
use servers::program::find_in_path;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Names of `--program`.
pub const TOOLS: [&str; 2] = ["dnsperf", "dns64perf++"];

/// Time that a tool may take beyond its load: start, timeouts, and its own evaluation.
const BEYOND: Duration = Duration::from_secs(30);

/// Pause between two looks at a tool.
const POLL: Duration = Duration::from_millis(20);

/// A load generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name, of [`TOOLS`].
    pub name: &'static str,
    program: PathBuf,
}

impl Tool {
    /// The tools that are there: those of `--program`, and dnsperf of the system.
    ///
    /// # Errors
    ///
    /// A program is not at the path that `--program` gives.
    pub fn all(context: &Context) -> Result<Vec<Tool>, String> {
        let mut found = Vec::new();
        for name in TOOLS {
            let given = context.options.programs.iter().rev().find(|(given, _)| given == name);
            let program = match given {
                Some((_, path)) => Some(path.canonicalize().map_err(|error| {
                    format!("--program {name}={}: {error}; give the path of the program", path.display())
                })?),
                None if name == "dnsperf" => find_in_path(name),
                None => None,
            };
            found.extend(program.map(|program| Tool { name, program }));
        }
        Ok(found)
    }

    /// Arguments for a load of `queries` at a rate: one client with one thread, one query at a time, the names in order.
    fn arguments(&self, server: SocketAddr, queries: usize, rate_qps: f64, file: &Path) -> Vec<String> {
        let (address, port, count) = (server.ip(), server.port(), queries);
        let text = match self.name {
            // One pass through the file; no bound on the queries without an answer that the rate would meet.
            "dnsperf" => format!(
                "-s {address} -p {port} -d {} -n 1 -c 1 -T 1 -q 65535 -t 1 -Q {rate_qps:.0}",
                file.display()
            ),
            // Names of a network, queries, burst, threads, ports of a thread, pause in nanoseconds, timeout in seconds.
            _ => format!("{address} {port} 10.0.0.0/8 {count} 1 1 1 {:.0} 1", 1e9 / rate_qps),
        };
        text.split(' ').map(str::to_owned).collect()
    }

    /// Runs a load to its end.
    ///
    /// # Errors
    ///
    /// The program cannot be started or fails, its file of names cannot be written, or the user stops the experiment.
    pub fn run(
        &self,
        context: &mut Context,
        server: SocketAddr,
        queries: usize,
        (rate_qps, duration): (f64, Duration),
        core: Option<u16>,
    ) -> Result<(), String> {
        let folder = WorkingFolder::new().map_err(|error| error.to_string())?;
        let file = folder.path().join("names");
        if self.name == "dnsperf" {
            std::fs::write(&file, query_file(queries))
                .map_err(|error| format!("{}: {error}", file.display()))?;
        }
        let arguments = self.arguments(server, queries, rate_qps, &file);
        let mut words = vec![self.program.display().to_string()];
        words.extend(arguments);
        if let Some(core) = core {
            words.splice(0..0, ["taskset".to_owned(), "-c".to_owned(), core.to_string()]);
        }
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", self.name);
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed(&error))?;
        context.program(Program { name: self.name.to_owned(), command: words, ..Program::default() });
        let end = Instant::now() + duration + BEYOND;
        loop {
            if child.try_wait().map_err(|error| failed(&error))?.is_some() {
                return Ok(());
            }
            let stopped = context.check_stop();
            if stopped.is_err() || Instant::now() > end {
                let _ = child.kill();
                let _ = child.wait();
                return stopped
                    .and(Err(failed(&format!("it has not ended {} s after its load", BEYOND.as_secs()))));
            }
            std::thread::sleep(POLL);
        }
    }
}

/// The names in order as a query file of dnsperf.
fn query_file(queries: usize) -> String {
    let mut text = String::new();
    for number in 0..queries as u64 {
        let [a, b, c, d] = names().address(number);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{a:03}-{b:03}-{c:03}-{d:03}.{ZONE} AAAA");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_asked_for_the_names_in_order_at_the_rate() {
        let server: SocketAddr = "[::1]:5399".parse().unwrap();
        let line = |name| {
            Tool { name, program: "/p".into() }
                .arguments(server, 2000, 1000.0, Path::new("/f/names"))
                .join(" ")
        };
        assert_eq!(line("dnsperf"), "-s ::1 -p 5399 -d /f/names -n 1 -c 1 -T 1 -q 65535 -t 1 -Q 1000");
        assert_eq!(line("dns64perf++"), "::1 5399 10.0.0.0/8 2000 1 1 1 1000000 1");
        let file = query_file(258);
        assert!(file.starts_with("010-000-000-000.dns64perf.test AAAA\n"));
        assert!(file.ends_with("\n010-000-001-001.dns64perf.test AAAA\n"));
    }
}
