//! The service manager, usually systemd, that started the server: it hears when the server is ready, reloads and stops, and whether
//! it is alive (sd_notify(3)). Without a service manager all of this does nothing.

use crate::running_server::{SILENT_WORKER, ServerHandle};
use sd_notify::NotifyState;
use std::ops::AsyncFn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Pause before a worker is asked again that did not respond. The question itself waits for
/// [`WORKER_TIMEOUT`](crate::running_server::WORKER_TIMEOUT), unless the worker's mailbox is full.
const RETRY: Duration = Duration::from_millis(100);

/// Sends news. A service manager that does not listen is no reason to stop.
fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(event = "not_notified", "cannot notify the service manager: {error}");
    }
}

/// The server can answer queries.
pub fn ready(server: &ServerHandle) {
    notify(&[NotifyState::Status(&status(server)), NotifyState::Ready]);
}

/// A reload begins.
pub fn reloading() {
    // systemd compares the time with that of its own request (`Type=notify-reload`, since version 253).
    let Ok(now) = NotifyState::monotonic_usec_now() else { return };
    notify(&[NotifyState::Reloading, now, NotifyState::Status("reloading the configuration")]);
}

/// A reload is over. The server goes on, also after a failure.
pub fn reloaded(server: &ServerHandle) {
    ready(server);
}

/// The server stops.
pub fn stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("answering the last queries")]);
}

/// The status line of `systemctl status`.
fn status(server: &ServerHandle) -> String {
    let workers = server.workers.workers();
    let reload = if server.reloads.successful() {
        ""
    } else {
        "; the last reload failed, the configuration of before is in force"
    };
    format!("serving with {workers} worker{}{reload}", if workers == 1 { "" } else { "s" })
}

/// Tells the service manager that the server is alive, as long as it is, until the process ends. The service manager restarts a
/// server that is silent for the time in `WATCHDOG_USEC`, so half of that time is between two messages.
///
/// The control thread sends the messages, and only after every worker has responded. A server that stops is alive although its
/// workers end; the stop has time limits of its own.
pub async fn watchdog(server: Arc<ServerHandle>) {
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    let is_alive = async || {
        // The successor answers from now on.
        if server.upgrade.successor_has_path().is_some() {
            std::future::pending::<()>().await;
        }
        if server.draining.load(Ordering::Relaxed) {
            return true;
        }
        let silent = server.ask_all(|_, _| ()).await.iter().position(Option::is_none);
        if let Some(worker) = silent {
            tracing::warn!(
                event = "worker_silent",
                "worker {worker} does not respond: unless it does, the service manager ends the service after WatchdogSec= of the unit; \
                 {SILENT_WORKER}"
            );
        }
        silent.is_none()
    };
    ping_while(limit / 2, is_alive, || notify(&[NotifyState::Watchdog])).await;
}

/// Calls `ping` every `period`, each time as soon as `is_alive` says yes.
async fn ping_while(period: Duration, is_alive: impl AsyncFn() -> bool, ping: impl Fn()) {
    loop {
        tokio::time::sleep(period).await;
        while !is_alive().await {
            tokio::time::sleep(RETRY).await;
        }
        ping();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn the_watchdog_hears_nothing_while_a_worker_does_not_respond() {
        // A worker that responds, hangs for two questions, and responds again. Then it hangs for good.
        let responses = [true, false, false, true];
        let events = RefCell::new(String::new());
        let is_alive = async || {
            let asked = events.borrow().matches(['+', '-']).count();
            let Some(&responds) = responses.get(asked) else { return std::future::pending().await };
            events.borrow_mut().push(if responds { '+' } else { '-' });
            responds
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let end = async {
                // Bounded by the test's own end: the last question never has an answer.
                while events.borrow().len() < "+P--+P".len() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                for _ in 0..100 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::select! {
                () = ping_while(Duration::from_millis(1), is_alive, || events.borrow_mut().push('P')) => {}
                () = end => {}
            }
        });
        assert_eq!(*events.borrow(), "+P--+P");
    }
}
