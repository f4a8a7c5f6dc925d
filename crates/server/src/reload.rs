//! Parts of a reload: the configuration is read on a thread of its own, the workers hand back the settings that they used, and the
//! keys that need a restart keep their old values. `handle.rs` puts them together; this file knows no running server.

use crate::config::{Config, Loaded, Overrides, load_again};
use engine::{Engine, Settings};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;

/// Reads the configuration on a thread of its own: a large response policy zone takes seconds, in which probes, control commands
/// and signals must not wait.
pub async fn read_configuration(source: Option<PathBuf>, overrides: Overrides) -> Result<Loaded, String> {
    let (sender, loaded) = oneshot::channel();
    std::thread::Builder::new()
        .name("reload".into())
        .spawn(move || {
            // The receiver may have given up.
            let _ =
                sender.send(load_again(source.as_deref(), &overrides).map_err(|failure| failure.of_reload()));
        })
        .map_err(|error| format!("cannot start the thread that reads the configuration: {error}"))?;
    loaded.await.unwrap_or_else(|_| Err("the thread that reads the configuration has failed".into()))
}

/// Result of the last reload, for metrics. The configuration of the start counts as one.
pub struct LastReload {
    successful: AtomicBool,
    /// Time of the last success, in milliseconds since 1970.
    success_unix_ms: AtomicU64,
    /// Held by the reload that is under way.
    pub turn: tokio::sync::Mutex<()>,
}

impl LastReload {
    /// The start has read the configuration just now.
    pub fn at_start() -> LastReload {
        let last = LastReload {
            successful: AtomicBool::new(true),
            success_unix_ms: AtomicU64::new(0),
            turn: tokio::sync::Mutex::new(()),
        };
        last.set(true);
        last
    }

    pub fn set(&self, successful: bool) {
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
/// zones may be among them: millions of allocations, which would hold up a worker, or the control thread, if they were freed there.
pub struct Replaced(pub oneshot::Receiver<Settings>);

impl Replaced {
    /// Waits for the settings in the background, and frees them.
    pub fn free_later(self) {
        tokio::spawn(async {
            if let Ok(settings) = self.0.await {
                free(settings);
            }
        });
    }
}

/// Frees settings on a thread that serves nothing.
pub fn free(settings: Settings) {
    tokio::task::spawn_blocking(|| drop(settings));
}

/// A note for each key that has changed and needs a restart.
pub fn restart_notes(old: &Config, new: &Config) -> impl Iterator<Item = String> {
    [
        (new.server.listen != old.server.listen, "server.listen"),
        (new.server.workers != old.server.workers, "server.workers"),
        (new.server.steer != old.server.steer, "server.steer"),
        (new.server.user != old.server.user, "server.user"),
        (new.server.sandbox != old.server.sandbox, "server.sandbox"),
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
pub fn keep_until_restart(old: &Config, new: &mut Config) {
    new.server = crate::config::Server { allow: new.server.allow.clone(), ..old.server.clone() };
    new.udp_size = old.udp_size;
    new.cache.size = old.cache.size;
    new.limits.pending = old.limits.pending;
    new.metrics_listen = old.metrics_listen;
    new.control_socket = old.control_socket.clone();
    new.upstream.tcp_fast_open = old.upstream.tcp_fast_open;
    new.log = old.log.clone();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
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
