//! Runs of dnsperf from core 1, and what it prints.

use crate::lab::authorities::zone_file;
use load::sockets::Usage;
use servers::program::find_in_path;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Results of a run.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    /// Queries sent, and those of them that were answered and lost.
    pub sent: f64,
    pub completed: f64,
    pub lost: f64,
    /// Length of the run, in seconds.
    pub seconds: f64,
    /// CPU time of dnsperf, in seconds.
    pub cpu_s: f64,
}

/// Finds the program.
///
/// # Errors
///
/// It is not installed.
pub fn find() -> Result<PathBuf, String> {
    find_in_path("dnsperf").ok_or_else(|| "dnsperf is not installed: apt-get install dnsperf".to_owned())
}

/// A file of AAAA queries for these names of the zone.
pub fn questions(numbers: Range<u32>) -> String {
    let mut text = String::new();
    for number in numbers {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} AAAA", zone_file::name(zone_file::address(number)));
    }
    text
}

/// Runs dnsperf on a server for this time, of whole seconds, with further options.
///
/// # Errors
///
/// It cannot be started, or says nothing that is understood.
pub fn run(
    program: &Path,
    server: SocketAddr,
    seconds: f64,
    options: &[&str],
    questions: &Path,
) -> io::Result<Said> {
    let mut command = Command::new("taskset");
    command.args(["-c", "1"]).arg(program).args(options);
    command.args(["-s", &server.ip().to_string(), "-p", &server.port().to_string()]);
    command.args(["-l", &format!("{:.0}", seconds.max(1.0)), "-d"]).arg(questions);
    let before = Usage::of_children();
    let output = command.stdin(Stdio::null()).output()?;
    let used = Usage::of_children().since(before);
    let [said, faults] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    read(&said, (used.user + used.system).as_secs_f64())
        .ok_or_else(|| io::Error::other(format!("dnsperf says nothing that is understood: {said}{faults}")))
}

fn read(text: &str, cpu_s: f64) -> Option<Said> {
    let figure = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<f64>().ok()
    };
    let said = Said {
        sent: figure("Queries sent:")?,
        completed: figure("Queries completed:")?,
        lost: figure("Queries lost:")?,
        seconds: figure("Run time (s):")?,
        cpu_s,
    };
    (said.completed > 0.0).then_some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_the_statistics() {
        let text = "Statistics:\n\n  Queries sent:         1000\n  Queries completed:    998 (99.80%)\n  Queries lost:         2 (0.20%)\n\n\
                    \x20 Run time (s):         2.500000\n  Queries per second:   399.200000\n";
        let said = read(text, 0.5).unwrap();
        assert_eq!((said.sent, said.completed, said.lost, said.seconds), (1000.0, 998.0, 2.0, 2.5));
        assert!(read("no statistics", 0.0).is_none());
    }

    #[test]
    fn a_question_has_a_name_of_the_zone() {
        assert_eq!(
            questions(255..257),
            "010-000-000-255.dns64perf.test AAAA\n010-000-001-000.dns64perf.test AAAA\n"
        );
    }
}
