//! The thread that writes the log. Only this thread waits for a target.

use super::counts::Counts;
use super::journald::{self, Journald};
use super::limits::RETRY;
use super::queue::{Item, Queue, Taken};
use super::record::Record;
use super::repeats::Repeats;
use super::stderr::Stderr;
use super::syslog::{self, Syslog};
use crate::config::{self, Format, LogTarget};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tracing::Level;

/// Longest wait for a record.
const IDLE: Duration = Duration::from_secs(3600);

/// The writer.
pub struct Writer {
    queue: Arc<Queue>,
    counts: Arc<Counts>,
    paths: Paths,
    format: Format,
    target: LogTarget,
    /// The open target; none if it could not be opened.
    open: Option<Target>,
    repeats: Repeats,
    started: Instant,
    /// Records that were taken from the queue and are still to be written.
    pending: VecDeque<Record>,
    /// Lines of the first pending record that the target has already.
    lines_done: usize,
    /// True after the target has refused a line, until it takes one.
    is_failing: bool,
}

/// Sockets of the daemons.
struct Paths {
    journald: PathBuf,
    syslog: PathBuf,
}

/// An open target.
enum Target {
    Stderr(Stderr),
    Journald(Journald),
    Syslog(Box<Syslog>),
}

impl Target {
    fn open(target: LogTarget, paths: &Paths) -> io::Result<Target> {
        Ok(match target {
            LogTarget::Stderr => Target::Stderr(Stderr::new()),
            LogTarget::Journald => Target::Journald(Journald::new(paths.journald.clone())?),
            LogTarget::Syslog => Target::Syslog(Box::new(Syslog::new(paths.syslog.clone())?)),
        })
    }

    fn write(&mut self, record: &Record, format: Format, lines_done: &mut usize) -> io::Result<()> {
        match self {
            Target::Stderr(stderr) => stderr.write(record, format),
            Target::Journald(journald) => journald.write(record, format),
            Target::Syslog(syslog) => syslog.write(record, format, lines_done),
        }
    }
}

impl Writer {
    /// A writer for the configured target, which is opened at the first line.
    pub fn new(queue: Arc<Queue>, counts: Arc<Counts>, config: &config::Log) -> Writer {
        Writer {
            queue,
            counts,
            paths: Paths { journald: journald::SOCKET.into(), syslog: syslog::SOCKET.into() },
            format: config.format,
            target: config.to,
            open: None,
            repeats: Repeats::default(),
            started: Instant::now(),
            pending: VecDeque::new(),
            lines_done: 0,
            is_failing: false,
        }
    }

    /// Writes until the log ends and the queue is empty, or the target refuses what is left.
    pub fn run(mut self) {
        loop {
            let wait = match self.is_failing {
                true => RETRY,
                false => self.repeats.next_due(self.started.elapsed()).unwrap_or(IDLE),
            };
            let taken = self.queue.take(wait, self.is_failing);
            let is_end = taken == Taken::End;
            self.accept(taken);
            self.write_pending();
            if is_end {
                break;
            }
        }
        self.counts.dropped.fetch_add(self.pending.len() as u64, Ordering::Relaxed);
        self.queue.set_ended();
    }

    /// Turns what came from the queue into pending records, or does it at once.
    fn accept(&mut self, taken: Taken) {
        let now = self.started.elapsed();
        let mut due = Vec::new();
        match taken {
            Taken::Item(item, dropped) => {
                if dropped > 0 {
                    let text = format!(
                        "{dropped} lines of the log were dropped: they came faster than it took them"
                    );
                    due.push(Record::new(Level::WARN, text));
                }
                match item {
                    Item::Record(record) => {
                        if self.repeats.admit(now, &record, &mut due) {
                            due.push(record);
                        } else {
                            self.counts.held_back.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    // A line that standard error does not take is lost.
                    Item::Plain(line) => _ = Stderr::print(&line),
                    Item::Configure(format, target) => self.configure(format, target),
                }
            }
            Taken::Nothing => self.repeats.finish(now, &mut due),
            Taken::End => self.repeats.finish_all(now, &mut due),
        }
        self.pending.extend(due);
    }

    fn configure(&mut self, format: Format, target: LogTarget) {
        self.format = format;
        if target != self.target {
            (self.target, self.open) = (target, None);
            (self.is_failing, self.lines_done) = (false, 0);
        }
    }

    /// Writes the pending records, up to the first one that the target refuses. That one stays: the daemon behind the target may be
    /// about to start again. Standard error has no daemon, so a line that it refuses is lost.
    fn write_pending(&mut self) {
        while let Some(record) = self.pending.front() {
            let result = match &mut self.open {
                Some(open) => open.write(record, self.format, &mut self.lines_done),
                None => match Target::open(self.target, &self.paths) {
                    Ok(open) => {
                        self.open = Some(open);
                        continue;
                    }
                    Err(error) => Err(error),
                },
            };
            let count = match result {
                Ok(()) => &self.counts.written,
                Err(_) if self.target == LogTarget::Stderr => &self.counts.dropped,
                Err(error) => return self.fail(&error),
            };
            count.fetch_add(1, Ordering::Relaxed);
            self.pending.pop_front();
            (self.is_failing, self.lines_done) = (false, 0);
        }
    }

    /// Notes that the target refuses, and says so on standard error once.
    fn fail(&mut self, error: &io::Error) {
        if !self.is_failing && !self.queue.is_closed() {
            let path = match self.target {
                LogTarget::Journald => &self.paths.journald,
                LogTarget::Syslog | LogTarget::Stderr => &self.paths.syslog,
            };
            Stderr::print_if_ready(&format!(
                "sixfold: cannot log to {}: {error}; new lines wait, and those without room are dropped and counted",
                path.display()
            ));
        }
        self.is_failing = true;
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
