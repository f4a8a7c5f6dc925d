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
    /// Standard error, for the log or beside it.
    stderr: Stderr,
    /// Lines that standard error did not take since it took one.
    lost: u64,
}

/// Sockets of the daemons.
struct Paths {
    journald: PathBuf,
    syslog: PathBuf,
}

/// An open target.
enum Target {
    Stderr,
    Journald(Journald),
    Syslog(Box<Syslog>),
}

impl Target {
    fn open(target: LogTarget, paths: &Paths) -> io::Result<Target> {
        Ok(match target {
            LogTarget::Stderr => Target::Stderr,
            LogTarget::Journald => Target::Journald(Journald::new(paths.journald.clone())?),
            LogTarget::Syslog => Target::Syslog(Box::new(Syslog::new(paths.syslog.clone())?)),
        })
    }

    fn write(
        &mut self,
        record: &Record,
        format: Format,
        stderr: &mut Stderr,
        lines_done: &mut usize,
    ) -> io::Result<()> {
        match self {
            Target::Stderr => stderr.write(record, format),
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
            stderr: Stderr::new(),
            lost: 0,
        }
    }

    /// Writes until the log ends and the queue is empty, or the target refuses what is left.
    pub fn run(mut self) {
        loop {
            let wait = match self.is_failing || self.lost > 0 {
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
                    due.push(dropped_lines(dropped, "they came faster than it took them"));
                }
                match item {
                    Item::Record(record) => {
                        if self.repeats.admit(now, &record, &mut due) {
                            due.push(record);
                        } else {
                            self.counts.held_back.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    // A message that standard error does not take is lost.
                    Item::Plain(record) => _ = self.stderr.print(&record, self.format),
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
    /// about to start again. Standard error has no daemon, so a line that it refuses is lost, and is told of before the next one that
    /// it takes.
    fn write_pending(&mut self) {
        self.tell_lost();
        while let Some(record) = self.pending.front() {
            let result = match &mut self.open {
                // The lines before it could not be told of, so nothing can be written.
                Some(_) if self.lost > 0 => Err(io::ErrorKind::StorageFull.into()),
                Some(open) => open.write(record, self.format, &mut self.stderr, &mut self.lines_done),
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
                Err(_) if self.target == LogTarget::Stderr => {
                    self.lost += 1;
                    &self.counts.dropped
                }
                Err(error) => return self.fail(&error),
            };
            count.fetch_add(1, Ordering::Relaxed);
            self.pending.pop_front();
            (self.is_failing, self.lines_done) = (false, 0);
        }
    }

    /// Says how many lines standard error did not take, as soon as it takes one.
    fn tell_lost(&mut self) {
        if self.lost == 0 {
            return;
        }
        let record = dropped_lines(self.lost, "standard error did not take them");
        if self.target != LogTarget::Stderr {
            // A reload has changed the target, which is told like of any other line.
            self.pending.push_front(record);
            self.lost = 0;
        } else if self.stderr.write(&record, self.format).is_ok() {
            self.lost = 0;
            self.counts.written.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that the target refuses, and says so on standard error once.
    fn fail(&mut self, error: &io::Error) {
        if !self.is_failing && !self.queue.is_closed() {
            let (path, daemon) = match self.target {
                LogTarget::Journald => (&self.paths.journald, "systemd-journald"),
                LogTarget::Syslog | LogTarget::Stderr => (&self.paths.syslog, "the syslog daemon"),
            };
            let text = format!(
                "sixfold: cannot log to {}: {error}; new lines wait, and those without room are dropped and counted; look whether \
                 {daemon} runs, or change `log.to`",
                path.display()
            );
            let record = Record::new(Level::ERROR, "log_target_failed", text);
            self.stderr.print_if_ready(&record, self.format);
        }
        self.is_failing = true;
    }
}

/// The line that says how many lines were dropped, and why.
fn dropped_lines(count: u64, why: &str) -> Record {
    let text = match count {
        1 => format!("1 line of the log was dropped: {why}"),
        _ => format!("{count} lines of the log were dropped: {why}"),
    };
    Record {
        fields: vec![("count", count.to_string())],
        ..Record::new(Level::WARN, "log_lines_dropped", text)
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
