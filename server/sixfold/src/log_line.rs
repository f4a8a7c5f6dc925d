//! A line of the log that the control thread writes about what it has seen: its event and its fields are data, so that tests compare
//! them.

use tracing::Level;

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Level of the line.
    pub level: Level,
    /// Word for the kind of event, which does not change.
    pub event: &'static str,
    /// Text for people.
    pub text: String,
    /// The upstream that the line is about.
    pub upstream: Option<String>,
    /// The zone that the line is about; `.` stands for all names without a zone of their own.
    pub zone: Option<String>,
    /// Code of the reason.
    pub reason: Option<&'static str>,
    /// Begin of what the line tells, as RFC 3339 writes it.
    pub since: Option<String>,
    /// The worker that the line is about.
    pub worker: Option<usize>,
    /// Number of what the line counts.
    pub count: Option<u64>,
}

impl Line {
    /// A line without fields.
    pub fn new(level: Level, event: &'static str, text: String) -> Line {
        Line {
            level,
            event,
            text,
            upstream: None,
            zone: None,
            reason: None,
            since: None,
            worker: None,
            count: None,
        }
    }

    /// Writes the line.
    pub fn write(&self) {
        macro_rules! write_at {
            ($level:ident) => {
                tracing::$level!(
                    event = self.event,
                    upstream = self.upstream.as_deref(),
                    zone = self.zone.as_deref(),
                    reason = self.reason,
                    since = self.since.as_deref(),
                    worker = self.worker,
                    count = self.count,
                    "{}",
                    self.text
                )
            };
        }
        match self.level {
            Level::ERROR => write_at!(error),
            Level::WARN => write_at!(warn),
            Level::INFO => write_at!(info),
            Level::DEBUG => write_at!(debug),
            Level::TRACE => write_at!(trace),
        }
    }
}
