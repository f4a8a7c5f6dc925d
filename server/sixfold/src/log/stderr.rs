//! Standard error as the target of the log. If it goes to the journal, each line begins with its priority (sd-daemon(3)), and text has
//! no time, as the journal adds one.

use super::record::Record;
use crate::config::Format;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use tracing::Level;

/// Standard error.
pub struct Stderr {
    /// It goes to the journal.
    is_journal: bool,
    /// A write has failed after a part of its line. A line feed ends that part before the next line.
    is_cut: bool,
}

impl Stderr {
    /// Finds out if standard error goes to the journal.
    pub fn new() -> Stderr {
        Stderr { is_journal: is_journal(), is_cut: false }
    }

    /// Writes a record. This may hang.
    ///
    /// # Errors
    ///
    /// The error of write(2): the other end of a pipe is closed, or the disk is full.
    pub fn write(&mut self, record: &Record, format: Format) -> io::Result<()> {
        let lines = record.line(format, self.is_journal);
        let lines = if self.is_journal { prioritized(&lines, record.severity()) } else { lines };
        self.put(&lines)
    }

    /// Writes the message of a record without level and time.
    ///
    /// # Errors
    ///
    /// As [`Stderr::write`].
    pub fn print(&mut self, record: &Record, format: Format) -> io::Result<()> {
        self.put(&record.plain(format))
    }

    /// Writes the message of a record if standard error takes it at once.
    pub fn print_if_ready(&mut self, record: &Record, format: Format) {
        let stderr = io::stderr();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], Some(&now)) == Ok(1) {
            let _ = self.print(record, format);
        }
    }

    /// Writes lines. The part of a line that an earlier write has left is ended first: a full disk takes what has room.
    fn put(&mut self, lines: &str) -> io::Result<()> {
        let end = if self.is_cut { "\n" } else { "" };
        let octets = format!("{end}{lines}\n");
        let mut written = 0;
        let result = write_all(octets.as_bytes(), &mut written);
        let last = octets.as_bytes()[..written].last();
        self.is_cut = last.map_or(self.is_cut, |&last| last != b'\n');
        result
    }
}

/// The error that ends the program as a line: with the mark by which the journal knows it as an error, if standard error goes there.
pub fn error(text: &str, format: Format) -> String {
    let record = Record::new(Level::ERROR, "start_failed", text.to_owned());
    let line = record.plain(format);
    if is_journal() { prioritized(&line, record.severity()) } else { line }
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
/// `written` counts those that it took.
fn write_all(octets: &[u8], written: &mut usize) -> io::Result<()> {
    let stderr = io::stderr();
    while *written < octets.len() {
        match rustix::io::write(&stderr, &octets[*written..]) {
            Ok(count) => *written += count,
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
