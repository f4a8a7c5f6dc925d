//! The history of upgrades. A process hands it to its successor, so that counters and times survive the upgrades that they are
//! about.

use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// Entries that are kept.
const KEPT: usize = 16;

/// Octets of an error that are kept.
const ERROR_OCTETS: usize = 1_000;

/// One attempt to upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Time of the end of the attempt, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The new process; none if it was not started.
    pub process: Option<u32>,
    /// Version of the new process; empty if it did not become ready.
    #[serde(default)]
    pub version: String,
    /// The reason of the failure; none for a success.
    #[serde(default)]
    pub error: Option<String>,
}

/// All attempts of the service since its first process was started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// Number of upgrades.
    #[serde(default)]
    pub succeeded: u64,
    /// Number of attempts after which the old process went on.
    #[serde(default)]
    pub failed: u64,
    /// The last attempts, the oldest first.
    #[serde(default)]
    pub attempts: Vec<Attempt>,
}

impl History {
    /// Enters a process that has taken the place of its predecessor.
    pub fn add_success(&mut self, process: u32, version: &str) {
        self.succeeded += 1;
        self.add(Attempt {
            unix_ms: now_ms(),
            process: Some(process),
            version: version.to_owned(),
            error: None,
        });
    }

    /// Enters an attempt after which the old process goes on.
    pub fn add_failure(&mut self, process: Option<u32>, error: &str) {
        self.failed += 1;
        let error: String = error.chars().take(ERROR_OCTETS / 4).collect();
        self.add(Attempt { unix_ms: now_ms(), process, version: String::new(), error: Some(error) });
    }

    /// Time of the last success, in seconds since 1970; 0 if there was none.
    pub fn last_success_secs(&self) -> f64 {
        let last = self.attempts.iter().rev().find(|attempt| attempt.error.is_none());
        last.map_or(0.0, |attempt| attempt.unix_ms as f64 / 1e3)
    }

    fn add(&mut self, attempt: Attempt) {
        self.attempts.push(attempt);
        let surplus = self.attempts.len().saturating_sub(KEPT);
        self.attempts.drain(..surplus);
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_keeps_the_last_attempts_and_counts_all() {
        let mut history = History::default();
        assert_eq!(history.last_success_secs(), 0.0);
        for process in 0..20 {
            history.add_success(process, "1.2.3");
            history.add_failure(None, &"é".repeat(5_000));
        }
        assert_eq!((history.succeeded, history.failed, history.attempts.len()), (20, 20, KEPT));
        assert_eq!(history.attempts[KEPT - 2].process, Some(19));
        assert!(history.last_success_secs() > 1e9);
        assert!(serde_json::to_vec(&history).unwrap().len() < 32 << 10);
    }

    #[test]
    fn a_history_of_another_version_is_read() {
        let text = r#"{"succeeded":3,"attempts":[{"unix_ms":5,"process":7,"new-field":1}],"other":{}}"#;
        let history: History = serde_json::from_str(text).unwrap();
        assert_eq!((history.succeeded, history.failed, history.attempts[0].process), (3, 0, Some(7)));
    }
}
