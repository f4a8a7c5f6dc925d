//! Standard error as the target of the log. If it goes to the journal, each line begins with its priority (sd-daemon(3)).

use super::record::Record;
use crate::config::Format;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;

/// Priority of an error, for the line that ends the program.
const ERROR: u8 = 3;

/// Standard error.
pub struct Stderr {
    has_priorities: bool,
}

impl Stderr {
    /// Finds out if standard error goes to the journal.
    pub fn new() -> Stderr {
        Stderr { has_priorities: is_journal() }
    }

    /// Writes a record. This may hang.
    pub fn write(&self, record: &Record, format: Format) -> io::Result<()> {
        let lines = record.line(format);
        let lines = if self.has_priorities { prioritized(&lines, record.severity()) } else { lines };
        write_all(format!("{lines}\n").as_bytes())
    }

    /// Writes a line as it is.
    pub fn print(line: &str) -> io::Result<()> {
        write_all(format!("{line}\n").as_bytes())
    }

    /// Writes a line if standard error takes it at once.
    pub fn print_if_ready(line: &str) {
        let stderr = io::stderr();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], Some(&now)) == Ok(1) {
            let _ = Stderr::print(line);
        }
    }
}

/// An error of the program with the mark by which the journal knows it as an error; as it is, if standard error goes elsewhere.
pub fn marked(error: &str) -> String {
    if is_journal() { prioritized(error, ERROR) } else { error.to_owned() }
}

/// Each line with the mark of its priority: the journal takes each as a message of its own.
fn prioritized(lines: &str, severity: u8) -> String {
    lines.split('\n').map(|line| format!("<{severity}>{line}")).collect::<Vec<_>>().join("\n")
}

/// True if standard error is the stream to the journal that `JOURNAL_STREAM` names (systemd.exec(5)).
fn is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    let stat = rustix::fs::fstat(io::stderr());
    stat.is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// Writes octets to standard error. Another process may have made it non-blocking; then this waits for room.
fn write_all(mut octets: &[u8]) -> io::Result<()> {
    let stderr = io::stderr();
    while !octets.is_empty() {
        match rustix::io::write(&stderr, octets) {
            Ok(written) => octets = &octets[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => _ = poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], None)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_for_the_journal_has_its_priority() {
        assert_eq!(prioritized("one", 6), "<6>one");
        assert_eq!(prioritized("reload failed:\nerror: a\n", 3), "<3>reload failed:\n<3>error: a\n<3>");
    }
}
