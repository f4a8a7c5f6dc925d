//! The signals of `sixfold serve`: SIGTERM and SIGINT stop, SIGHUP reloads, SIGUSR2 upgrades. SIGUSR1 is ignored: scripts that rotate
//! logs send it to servers that write files. All other signals have their usual effect.

use crate::control;
use crate::running_server::ServerHandle;
use crate::upgrade::attempt;
use crate::upgrade::request::Request;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Time after the first signal in which another one counts as the first: timeout(1) and others send a signal to the
/// process and to its process group.
const REPEATED_SIGNAL: Duration = Duration::from_millis(500);

/// The signals that the server handles.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    upgrade: Signal,
    ignored: Signal,
}

/// The reason why the server ends.
pub enum End {
    /// A signal.
    Stop,
    /// A successor serves.
    Replaced,
}

impl Signals {
    /// The signals, which no longer end the process.
    ///
    /// # Errors
    ///
    /// The error of sigaction(2) or of the pipe of the runtime: the process may have no more open files.
    pub fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            upgrade: signal(SignalKind::user_defined2())?,
            ignored: signal(SignalKind::user_defined1())?,
        })
    }

    /// Waits for SIGTERM, SIGINT or a successor. Until then starts a reload of the configuration at each SIGHUP, and an upgrade
    /// at each SIGUSR2.
    pub async fn serve_until_end(&mut self, server: &Arc<ServerHandle>) -> End {
        loop {
            tokio::select! {
                // A signal to a process that has a successor ends its patience, and does not stop the service.
                biased;
                () = server.upgrade.replaced() => return End::Replaced,
                _ = self.terminate.recv() => return End::Stop,
                _ = self.interrupt.recv() => return End::Stop,
                _ = self.hangup.recv() => {
                    let server = Arc::clone(server);
                    // The log has the result. A stop does not wait for it.
                    tokio::task::spawn_local(async move { drop(control::reload(&server).await) });
                }
                _ = self.upgrade.recv() => {
                    let server = Arc::clone(server);
                    tokio::task::spawn_local(async move {
                        drop(attempt::run(&server, Request::default()).await);
                    });
                }
                _ = self.ignored.recv() => tracing::info!(
                    event = "signal_ignored",
                    "SIGUSR1 is ignored: the log needs no rotation; SIGHUP reloads the configuration, SIGUSR2 upgrades"
                ),
            }
        }
    }

    /// Waits for SIGTERM or SIGINT.
    pub async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Waits for a second SIGTERM or SIGINT that is not an echo of the first.
    pub async fn second_stop(&mut self) {
        let begun = Instant::now();
        loop {
            self.stop().await;
            if begun.elapsed() >= REPEATED_SIGNAL {
                return;
            }
        }
    }
}
