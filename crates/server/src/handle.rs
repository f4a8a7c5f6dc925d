//! The running server as other threads see it: its workers, its streams, its configuration.

use crate::config::{Config, Overrides, load};
use crate::file_limit::FileLimit;
use datapath::{Full, Shared};
use engine::cookie::Secret;
use engine::limits::HOPS;
use engine::servers::Server;
use engine::{Counters, Engine, Settings};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use transport::Streams;

/// How long a worker may take to look up from its work.
const PATIENCE: Duration = Duration::from_secs(2);

/// What one worker says about itself.
pub struct View {
    /// What its engine has counted.
    pub counters: Counters,
    /// The upstream servers, as this worker knows them.
    pub servers: Vec<Server>,
    /// Client questions that wait.
    pub pending: usize,
    /// Questions in flight to upstreams.
    pub flights: usize,
    /// Open links to upstreams.
    pub links: usize,
    /// Octets that the cache uses, and entries in it.
    pub cached: (usize, usize),
}

/// The running server.
pub struct Running {
    /// The workers.
    pub workers: Arc<Shared<Engine>>,
    /// The client streams.
    pub streams: Streams,
    /// The configuration in force.
    pub config: Mutex<Arc<Config>>,
    /// The file that it came from.
    pub source: Option<PathBuf>,
    /// The flags that override it.
    pub overrides: Overrides,
    /// Whether `--demo` is on.
    pub demo: bool,
    /// What makes server cookies when the configuration has no secret: the same in all workers, and after a reload.
    pub cookie_secret: Secret,
    /// What each worker said last.
    pub last: Arc<Mutex<Vec<Option<Arc<View>>>>>,
    /// How many files may be open, and who needs them.
    pub files: FileLimit,
    /// When it started.
    pub started: Instant,
    /// No new questions are taken.
    pub draining: AtomicBool,
}

impl Running {
    /// Asks every worker about itself. None for a worker that does not look up in time.
    pub async fn views(&self) -> Vec<Option<Arc<View>>> {
        let mut answers = Vec::new();
        for worker in 0..self.workers.workers() {
            let (tell, told) = oneshot::channel();
            let last = Arc::clone(&self.last);
            let order = move |engine: &mut Engine, _| {
                let view = Arc::new(View {
                    counters: engine.counters().clone(),
                    servers: engine.servers().cloned().collect(),
                    pending: engine.pending(),
                    flights: engine.flights(),
                    links: engine.open_links(),
                    cached: engine.cached(),
                });
                // Here, and not where the answers arrive: so the later one always takes the place of the earlier.
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                if last.len() <= worker {
                    last.resize(worker + 1, None);
                }
                last[worker] = Some(Arc::clone(&view));
                drop(last);
                // Whoever asked may have given up.
                let _ = tell.send(view);
            };
            let posted = self.workers.mailbox(worker).order(order).is_ok();
            answers.push(posted.then_some(told));
        }
        let deadline = tokio::time::Instant::now() + PATIENCE;
        let mut views = Vec::new();
        for answer in answers {
            views.push(match answer {
                Some(told) => tokio::time::timeout_at(deadline, told).await.ok().and_then(Result::ok),
                None => None,
            });
        }
        views
    }

    /// The settings that the workers follow; what is large in them is shared. None: no worker looks up in time.
    pub async fn settings(&self) -> Option<Settings> {
        let told = self.ask_all(|engine, _| engine.settings().clone()).await;
        told.into_iter().flatten().next()
    }

    /// What each worker said last, whenever that was.
    pub fn last_views(&self) -> Vec<Arc<View>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().cloned().collect()
    }

    /// Whether the server answers questions; if not, why.
    pub async fn health(&self) -> Result<(), String> {
        if self.draining.load(Ordering::Relaxed) {
            return Err("draining".into());
        }
        let views = self.views().await;
        if let Some(stuck) = views.iter().position(Option::is_none) {
            return Err(format!("worker {stuck} does not respond"));
        }
        let dead =
            |view: &Arc<View>| !view.servers.is_empty() && view.servers.iter().all(|server| server.dead);
        if views.iter().flatten().all(dead) {
            return Err("no upstream answers".into());
        }
        Ok(())
    }

    /// Has every worker do something with its engine, and gathers what they say. None for a worker that does not look
    /// up in time.
    pub async fn ask_all<T: Send + 'static>(
        &self,
        ask: impl Fn(&mut Engine, engine::Instant) -> T + Clone + Send + 'static,
    ) -> Vec<Option<T>> {
        let mut answers = Vec::new();
        for worker in 0..self.workers.workers() {
            let (tell, told) = oneshot::channel();
            let ask = ask.clone();
            let posted = self.workers.mailbox(worker).order(move |engine: &mut Engine, now| {
                // Whoever asked may have given up.
                let _ = tell.send(ask(engine, now));
            });
            answers.push(posted.is_ok().then_some(told));
        }
        let deadline = tokio::time::Instant::now() + PATIENCE;
        let mut said = Vec::new();
        for answer in answers {
            said.push(match answer {
                Some(told) => tokio::time::timeout_at(deadline, told).await.ok().and_then(Result::ok),
                None => None,
            });
        }
        said
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the configuration again. An error leaves everything as it is; returns what needs a restart. When it
    /// returns, the workers follow the new one.
    pub async fn reload(&self) -> Result<Vec<String>, String> {
        let loaded = load(self.source.as_deref(), &self.overrides).map_err(|failure| failure.to_string())?;
        let old = self.config();
        let mut new = loaded.config;
        if self.demo {
            new.dns64.embed_non_global = true;
        }
        let mut notes = loaded.warnings;
        for (changed, key) in [
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
        ] {
            if changed {
                notes.push(format!("{key} has changed: it takes effect after a restart"));
            }
        }
        // What stays until a restart stays in the configuration that we show, too.
        new.server = crate::config::Server { allow: new.server.allow.clone(), ..old.server.clone() };
        new.udp_size = old.udp_size;
        new.cache.size = old.cache.size;
        new.limits.pending = old.limits.pending;
        new.metrics_listen = old.metrics_listen;
        new.control_socket = old.control_socket.clone();
        new.upstream.tcp_fast_open = old.upstream.tcp_fast_open;
        new.log = old.log.clone();
        let told = self.apply(&old, &new)?;
        notes.extend(self.files.warning(&new));
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        let deadline = tokio::time::Instant::now() + PATIENCE;
        for (worker, done) in told.into_iter().enumerate() {
            if !matches!(tokio::time::timeout_at(deadline, done).await, Ok(Ok(()))) {
                notes.push(format!("worker {worker} does not respond: it follows when it does"));
            }
        }
        Ok(notes)
    }

    /// Tells everybody, or nobody. Returns where each worker says that it has done it.
    fn apply(&self, old: &Config, new: &Config) -> Result<Vec<oneshot::Receiver<()>>, String> {
        let settings = engine_settings(new, self.cookie_secret);
        let mut told = Vec::new();
        for worker in 0..self.workers.workers() {
            match self.configure(worker, settings.clone()) {
                Ok(done) => told.push(done),
                Err(full) => {
                    // The one that refused, too: it may have the order although it could not be woken.
                    let settings = engine_settings(old, self.cookie_secret);
                    for worker in 0..=worker {
                        let _ = self.configure(worker, settings.clone());
                    }
                    return Err(format!("worker {worker} cannot be told: {full}; try again"));
                }
            }
        }
        self.streams.configure(stream_limits(new, &self.files));
        Ok(told)
    }

    /// Has one worker follow these settings. Returns where it says that it does.
    fn configure(&self, worker: usize, settings: Settings) -> Result<oneshot::Receiver<()>, Full> {
        let (tell, done) = oneshot::channel();
        self.workers.mailbox(worker).order(move |engine: &mut Engine, _| {
            engine.configure(settings);
            // Whoever waits may have given up.
            let _ = tell.send(());
        })?;
        Ok(done)
    }
}

/// What the engines are told: without a secret in the configuration, cookies are made with the one drawn at start.
pub fn engine_settings(config: &Config, drawn: Secret) -> Settings {
    let mut settings = config.settings();
    if settings.cookies.secrets.is_empty() {
        settings.cookies.secrets.push(drawn);
    }
    settings
}

/// The limits of client streams.
pub fn stream_limits(config: &Config, files: &FileLimit) -> transport::Limits {
    transport::Limits {
        connections: files.grant(config.limits.tcp_connections),
        per_client: config.limits.tcp_per_client,
        idle: config.limits.tcp_idle,
        answer_wait: answer_wait(config.upstream.timeout * u32::from(config.upstream.tries)),
    }
}

/// How long a connection waits for an answer, when one question to an upstream takes at most `tries`: an answer that
/// has not come by then never will. Two legs and each hop of a chain are a question each; but who waits for two
/// minutes waits in vain, unless the operator lets two legs alone take longer.
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
