//! Parts of a reload: the configuration is read and compiled on a thread of its own, keys that need a restart are refused, and the
//! workers hand back the settings that they used. `running_server.rs` puts them together; this file knows no running server.
//!
//! A large response policy zone takes seconds of processor time, in which probes, control commands and signals must not wait, and
//! queries least of all. So that thread only gets processor time that no other thread wants.

use crate::config::{Config, Effect, Overrides, load_again};
use crate::demo;
use crate::history::History;
use crate::reload_changes;
use datapath::remedy::{REPORT, with_remedy};
use engine::message::cookie::Secret;
use engine::{Engine, Settings};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;

/// Runs a job on a thread of its own, with processor time that no other thread wants. On a machine whose workers take all of it,
/// the scheduler leaves at least 0.3 % to such a thread (weight 3 against 1,024).
///
/// # Errors
///
/// The text for the operator: the system starts no more threads, or the job has panicked.
pub async fn in_background<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    let (sender, result) = oneshot::channel();
    std::thread::Builder::new()
        .name("reload".into())
        .spawn(move || {
            if let Err(error) = datapath::run_when_idle() {
                tracing::debug!(
                    event = "reload_priority",
                    "the thread of a reload keeps its priority: {error}"
                );
            }
            // The receiver may have given up.
            let _ = sender.send(job());
        })
        .map_err(|error| format!("cannot start the thread of the reload: {}", with_remedy(&error)))?;
    result.await.map_err(|_| format!("the thread of the reload has failed; {REPORT}"))
}

/// Frees a value in the background: millions of allocations would hold up a worker, or the control thread.
pub fn free<T: Send + 'static>(value: T) {
    tokio::spawn(in_background(move || drop(value)));
}

/// Everything that a reload reads.
#[derive(Clone)]
pub struct Request {
    /// File of the configuration.
    pub source: Option<PathBuf>,
    /// Flags that override the file.
    pub overrides: Overrides,
    /// True with `--demo`.
    pub demo: bool,
    /// The configuration in force.
    pub old: Arc<Config>,
    /// Secret of server cookies for a configuration without one.
    pub cookie_secret: Secret,
    /// Number of workers.
    pub workers: usize,
}

/// Result of a reload that succeeded.
#[derive(Clone, Debug, Default)]
pub struct Reloaded {
    /// Keys that have changed.
    pub changes: Vec<String>,
    /// Warnings about the new configuration.
    pub notes: Vec<String>,
}

/// A configuration that can take effect.
pub struct Prepared {
    /// The configuration.
    pub config: Config,
    /// Warnings about it.
    pub warnings: Vec<String>,
    /// Keys that have changed.
    pub changes: Vec<String>,
    /// Its settings, for each worker.
    pub settings: Vec<Settings>,
}

impl Request {
    /// Reads, checks and compiles the configuration.
    ///
    /// # Errors
    ///
    /// The text for the operator: everything that is wrong with the configuration, or the keys that need a restart.
    pub fn prepare(self) -> Result<Prepared, String> {
        let loaded =
            load_again(self.source.as_deref(), &self.overrides).map_err(|failure| failure.of_reload())?;
        let mut config = loaded.config;
        if self.demo {
            demo::adapt(&mut config);
            config.control.socket.clone_from(&self.old.control.socket);
        }
        let keys = config.refused_changes(&self.old);
        if !keys.is_empty() {
            return Err(refusal(&keys));
        }
        let settings = engine_settings(&config, self.cookie_secret);
        let settings = std::iter::repeat_n(settings, self.workers).collect();
        let changes = reload_changes::between(&self.old, &config);
        Ok(Prepared { config, warnings: loaded.warnings, changes, settings })
    }
}

/// Engine settings of a configuration. Without a secret in the configuration, cookies are made with the secret that
/// was drawn at start.
pub fn engine_settings(config: &Config, drawn: Secret) -> Settings {
    let mut settings = config.settings();
    if settings.cookies.secrets.is_empty() {
        settings.cookies.secrets.push(drawn);
    }
    settings
}

/// Result of the last reload, and the history of all. The configuration of the start counts as a success.
pub struct Reloads {
    /// The reloads since the start.
    pub history: History,
    successful: AtomicBool,
    /// Time of the last success, in milliseconds since 1970.
    success_unix_ms: AtomicU64,
    /// Held by the reload that is under way.
    pub turn: tokio::sync::Mutex<()>,
}

impl Reloads {
    /// The start has read the configuration just now.
    pub fn at_start() -> Reloads {
        let reloads = Reloads {
            history: History::default(),
            successful: AtomicBool::new(true),
            success_unix_ms: AtomicU64::new(0),
            turn: tokio::sync::Mutex::new(()),
        };
        reloads.set(true);
        reloads
    }

    /// Records the result of a reload, or its errors.
    pub fn record(&self, result: &Result<Reloaded, String>) {
        self.set(result.is_ok());
        match result {
            Ok(Reloaded { changes, notes }) => {
                let all = std::iter::once(reload_changes::listed(changes)).chain(notes.iter().cloned());
                self.history.record(true, &all.collect::<Vec<_>>().join("\n"));
            }
            Err(error) => self.history.record(false, error),
        }
    }

    fn set(&self, successful: bool) {
        self.successful.store(successful, Ordering::Relaxed);
        if successful {
            let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.success_unix_ms.store(since_1970.as_millis() as u64, Ordering::Relaxed);
        }
    }

    /// True if the last reload succeeded.
    pub fn successful(&self) -> bool {
        self.successful.load(Ordering::Relaxed)
    }

    /// Time of the last success, in seconds since 1970.
    pub fn success_unix_secs(&self) -> f64 {
        self.success_unix_ms.load(Ordering::Relaxed) as f64 / 1e3
    }
}

/// Applies settings on a worker. The former settings leave the worker with the report that it uses the new ones.
pub fn replace(engine: &mut Engine, settings: Settings, sender: oneshot::Sender<Settings>) {
    // Nobody drops the receiver before it has the settings, but at the end of the process.
    let _ = sender.send(engine.configure(settings));
}

/// The settings that a worker used before, as soon as it uses the new ones. The last reference to local data and response policy
/// zones may be among them.
pub struct Replaced(pub oneshot::Receiver<Settings>);

impl Replaced {
    /// Waits for the settings, and frees them in the background.
    pub fn free_later(self) {
        tokio::spawn(async {
            if let Ok(settings) = self.0.await {
                free(settings);
            }
        });
    }
}

/// The error for keys that take effect only at a start. Nothing has changed yet: half of a configuration in force would be one that no file has.
fn refusal(keys: &[(String, Effect)]) -> String {
    let lines = keys.iter().map(|(key, _)| format!("{key} has changed, and takes effect only at a start\n"));
    let remedy = if keys.iter().any(|&(_, effect)| effect == Effect::Restart) {
        "restart the server"
    } else {
        "run `sixfold ctl upgrade`, which loses no query, or restart the server"
    };
    format!(
        "{}{remedy} to use the new file, or put the old value{} back to reload the rest of it",
        lines.collect::<String>(),
        if keys.len() == 1 { "" } else { "s" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn settings_that_are_replaced_leave_the_worker_and_are_freed_elsewhere() {
        let text = "[upstream]\nforwarders = [\"192.0.2.53\"]";
        let read = crate::config::parse("x.toml", text, &Overrides::default(), "/etc/resolv.conf".as_ref());
        let Ok((config, _)) = read else { panic!("a configuration without faults") };
        let settings = || config.settings();
        let first = settings();
        let local_data = Arc::downgrade(&first.local_data);
        let capacity = engine::Capacity { pending: 16, cache: 0 };
        let (sender, replaced) = oneshot::channel();
        let second = settings();
        let worker = std::thread::spawn(move || {
            let mut engine = Engine::new(first, capacity, [7; 32]);
            replace(&mut engine, second, sender);
        });
        worker.join().expect("the worker ends");
        assert!(local_data.upgrade().is_some(), "the worker has freed them");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            Replaced(replaced).free_later();
            for _ in 0..1_000 {
                if local_data.upgrade().is_none() {
                    return;
                }
                tokio::task::yield_now().await;
                std::thread::sleep(Duration::from_millis(5));
            }
            panic!("the settings were not freed");
        });
    }
}
