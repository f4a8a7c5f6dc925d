//! Handle to the running server: its workers, its client streams and its configuration, as metrics, control socket,
//! HTTP server and reload use them.
//!
//! The workers share nothing with these threads. A question to a worker is a closure in the worker's mailbox, which
//! the worker runs on its engine between two batches; the result comes back over a channel. A worker that does not
//! respond within `WORKER_TIMEOUT` is reported as such.

use crate::config::{Config, Overrides, load};
use crate::file_limit::FileLimit;
use datapath::{MailboxFull, Shared};
use engine::limits::HOPS;
use engine::message::cookie::Secret;
use engine::upstream::Server;
use engine::{Counters, Engine, Settings};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use transport::Streams;

/// Time within which a worker must respond.
const WORKER_TIMEOUT: Duration = Duration::from_secs(2);

/// Status of one worker.
pub struct WorkerStatus {
    /// Counters of its engine.
    pub counters: Counters,
    /// The upstream servers, as this worker knows them.
    pub servers: Vec<Server>,
    /// Client queries that wait for an answer.
    pub pending: usize,
    /// QuerySink in flight to upstreams.
    pub flights: usize,
    /// Open links to upstreams.
    pub links: usize,
    /// Octets that the cache uses, and entries in it.
    pub cached: (usize, usize),
}

/// Handle to the running server.
pub struct ServerHandle {
    /// The workers.
    pub workers: Arc<Shared<Engine>>,
    /// The client streams.
    pub streams: Streams,
    /// The configuration in force.
    pub config: Mutex<Arc<Config>>,
    /// File of the configuration; none when only defaults and flags count.
    pub source: Option<PathBuf>,
    /// Flags that override the file.
    pub overrides: Overrides,
    /// True with `--demo`.
    pub demo: bool,
    /// Secret of server cookies for a configuration without one. All workers use it, and it survives a reload.
    pub cookie_secret: Secret,
    /// Last status of each worker.
    pub last_statuses: Arc<Mutex<Vec<Option<Arc<WorkerStatus>>>>>,
    /// Limit of open files, and the need for them.
    pub file_limit: FileLimit,
    /// Time of the start.
    pub started: Instant,
    /// True once the server stops: it takes no new queries.
    pub draining: AtomicBool,
}

impl ServerHandle {
    /// Asks every worker for its status. None for a worker that does not respond in time.
    pub async fn worker_statuses(&self) -> Vec<Option<Arc<WorkerStatus>>> {
        let last_statuses = Arc::clone(&self.last_statuses);
        self.ask_each(move |worker, engine, _| {
            let status = Arc::new(WorkerStatus {
                counters: engine.counters().clone(),
                servers: engine.servers().cloned().collect(),
                pending: engine.pending(),
                flights: engine.flights(),
                links: engine.open_links(),
                cached: engine.cached(),
            });
            // The worker stores its status itself: a later status always replaces an earlier one, whatever the order
            // in which the results arrive.
            let mut last = last_statuses.lock().unwrap_or_else(PoisonError::into_inner);
            if last.len() <= worker {
                last.resize(worker + 1, None);
            }
            last[worker] = Some(Arc::clone(&status));
            drop(last);
            status
        })
        .await
    }

    /// Last status of each worker, however old.
    pub fn last_statuses(&self) -> Vec<Arc<WorkerStatus>> {
        self.last_statuses.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().cloned().collect()
    }

    /// The engine settings in force; large parts are shared, not copied. None when no worker responds in time.
    pub async fn settings(&self) -> Option<Settings> {
        let settings = self.ask_all(|engine, _| engine.settings().clone()).await;
        settings.into_iter().flatten().next()
    }

    /// Checks that the server answers queries. The error is the reason why it does not.
    pub async fn health(&self) -> Result<(), String> {
        if self.draining.load(Ordering::Relaxed) {
            return Err("draining".into());
        }
        let statuses = self.worker_statuses().await;
        if let Some(stuck) = statuses.iter().position(Option::is_none) {
            return Err(format!("worker {stuck} does not respond"));
        }
        let has_only_dead_upstreams = |status: &Arc<WorkerStatus>| {
            !status.servers.is_empty() && status.servers.iter().all(|server| server.is_dead())
        };
        if statuses.iter().flatten().all(has_only_dead_upstreams) {
            return Err("no upstream answers".into());
        }
        Ok(())
    }

    /// Runs a function on the engine of every worker and collects the results. None for a worker that does not
    /// respond in time.
    pub async fn ask_all<T: Send + 'static>(
        &self,
        ask: impl Fn(&mut Engine, engine::Instant) -> T + Clone + Send + 'static,
    ) -> Vec<Option<T>> {
        self.ask_each(move |_, engine, now| ask(engine, now)).await
    }

    /// Like [`ServerHandle::ask_all`]; the function also gets the number of the worker.
    async fn ask_each<T: Send + 'static>(
        &self,
        ask: impl Fn(usize, &mut Engine, engine::Instant) -> T + Clone + Send + 'static,
    ) -> Vec<Option<T>> {
        let mut receivers = Vec::new();
        for worker in 0..self.workers.workers() {
            let (sender, receiver) = oneshot::channel();
            let ask = ask.clone();
            let posted = self.workers.mailbox(worker).submit(move |engine: &mut Engine, now| {
                // The receiver may have given up.
                let _ = sender.send(ask(worker, engine, now));
            });
            receivers.push(posted.is_ok().then_some(receiver));
        }
        let deadline = tokio::time::Instant::now() + WORKER_TIMEOUT;
        let mut results = Vec::new();
        for receiver in receivers {
            results.push(match receiver {
                Some(receiver) => tokio::time::timeout_at(deadline, receiver).await.ok().and_then(Result::ok),
                None => None,
            });
        }
        results
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the configuration again. After an error the old configuration stays in force, with all its parts. After
    /// success the workers use the new configuration; the result has warnings, and the keys that need a restart.
    pub async fn reload(&self) -> Result<Vec<String>, String> {
        let loaded = load(self.source.as_deref(), &self.overrides).map_err(|failure| failure.to_string())?;
        let old = self.config();
        let mut new = loaded.config;
        if self.demo {
            new.dns64.embed_non_global = true;
        }
        let mut notes = loaded.warnings;
        notes.extend(restart_notes(&old, &new));
        keep_until_restart(&old, &mut new);
        let applied = self.apply(&old, &new)?;
        notes.extend(self.file_limit.warning(&new));
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        let deadline = tokio::time::Instant::now() + WORKER_TIMEOUT;
        for (worker, done) in applied.into_iter().enumerate() {
            if !matches!(tokio::time::timeout_at(deadline, done).await, Ok(Ok(()))) {
                notes.push(format!(
                    "worker {worker} does not respond: it uses the new configuration as soon as it does"
                ));
            }
        }
        Ok(notes)
    }

    /// Sends the new configuration to all workers and to the streams; if one worker cannot take it, all keep the old
    /// one. Each receiver of the result hears from one worker that it uses the new configuration.
    fn apply(&self, old: &Config, new: &Config) -> Result<Vec<oneshot::Receiver<()>>, String> {
        let settings = engine_settings(new, self.cookie_secret);
        let mut receivers = Vec::new();
        for worker in 0..self.workers.workers() {
            match self.configure(worker, settings.clone()) {
                Ok(done) => receivers.push(done),
                Err(full) => {
                    // The worker that refused gets the old settings as well: it may have the new ones in its mailbox
                    // although it could not be woken.
                    let settings = engine_settings(old, self.cookie_secret);
                    for worker in 0..=worker {
                        let _ = self.configure(worker, settings.clone());
                    }
                    return Err(format!(
                        "worker {worker} cannot take the new configuration: {full}; try again"
                    ));
                }
            }
        }
        self.workers.set_client_prefix(new.limits.client_prefix);
        self.streams.configure(stream_limits(new, &self.file_limit));
        Ok(receivers)
    }

    /// Sends settings to one worker. The receiver hears when the worker uses them.
    fn configure(&self, worker: usize, settings: Settings) -> Result<oneshot::Receiver<()>, MailboxFull> {
        let (sender, done) = oneshot::channel();
        self.workers.mailbox(worker).submit(move |engine: &mut Engine, _| {
            engine.configure(settings);
            // The receiver may have given up.
            let _ = sender.send(());
        })?;
        Ok(done)
    }
}

/// A note for each key that has changed and needs a restart.
fn restart_notes(old: &Config, new: &Config) -> impl Iterator<Item = String> {
    [
        (new.server.listen != old.server.listen, "server.listen"),
        (new.server.workers != old.server.workers, "server.workers"),
        (new.server.steer != old.server.steer, "server.steer"),
        (new.server.user != old.server.user, "server.user"),
        (new.server.proxy_from != old.server.proxy_from, "server.proxy-from"),
        (new.udp_size != old.udp_size, "edns.udp-size"),
        (new.cache.size != old.cache.size, "cache.size"),
        (new.limits.pending != old.limits.pending, "limits.pending"),
        (new.metrics_listen != old.metrics_listen, "metrics.listen"),
        (new.control_socket != old.control_socket, "control.socket"),
        (new.upstream.tcp_fast_open != old.upstream.tcp_fast_open, "upstream.tcp-fast-open"),
        (new.log.level != old.log.level, "log.level"),
        (new.log.format != old.log.format, "log.format"),
    ]
    .into_iter()
    .filter(|&(is_changed, _)| is_changed)
    .map(|(_, key)| format!("{key} has changed: it takes effect after a restart"))
}

/// Puts the old values back into the new configuration where a change needs a restart, so that the configuration that
/// is shown is the one in force.
fn keep_until_restart(old: &Config, new: &mut Config) {
    new.server = crate::config::Server { allow: new.server.allow.clone(), ..old.server.clone() };
    new.udp_size = old.udp_size;
    new.cache.size = old.cache.size;
    new.limits.pending = old.limits.pending;
    new.metrics_listen = old.metrics_listen;
    new.control_socket = old.control_socket.clone();
    new.upstream.tcp_fast_open = old.upstream.tcp_fast_open;
    new.log = old.log.clone();
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

/// Limits of client streams.
pub fn stream_limits(config: &Config, file_limit: &FileLimit) -> transport::Limits {
    transport::Limits {
        connections: file_limit.grant(config.limits.tcp_connections),
        per_client: config.limits.tcp_per_client,
        client_prefix: config.limits.client_prefix,
        idle: config.limits.tcp_idle,
        answer_wait: answer_wait(config.upstream.timeout * u32::from(config.upstream.tries)),
    }
}

/// Time for which a connection waits for an answer, when one question to an upstream takes at most `tries`: an answer
/// that has not come by then never comes. The two legs and each hop of a CNAME chain are one question each. More than
/// two minutes are of no use to a client, unless the operator lets the two legs alone take longer.
fn answer_wait(tries: Duration) -> Duration {
    let resolution = tries * (2 + HOPS as u32);
    resolution
        .clamp(Duration::from_secs(15), Duration::from_secs(120))
        .max(tries * 2 + Duration::from_secs(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_may_take_two_legs_and_a_chain() {
        let seconds = |tries| answer_wait(Duration::from_secs(tries)).as_secs();
        assert_eq!([seconds(0), seconds(3), seconds(20), seconds(240)], [15, 30, 120, 485]);
    }
}
