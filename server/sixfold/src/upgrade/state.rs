//! The state of the upgrades of a running server: its launcher, the sockets for a successor, the history, and whether a successor
//! serves.

use crate::upgrade::history::History;
use crate::upgrade::launcher::Launcher;
use datapath::remedy::remedy;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{MutexGuard, Notify};

/// Interval of the checks whether control commands are answered, at the end of the process.
const ANSWER_CHECK: Duration = Duration::from_millis(2);

/// The state of the upgrades of a running server.
pub struct Upgrade {
    /// None if this process cannot have a successor, or has one.
    pub launcher: Mutex<Option<Launcher>>,
    /// Further handles of all listening sockets, for a successor.
    pub sockets: Mutex<Vec<OwnedFd>>,
    /// A further handle of the raw socket for probes of gateways, if there is one, for a successor.
    pub echo: Option<OwnedFd>,
    /// True if the server removes the path of the control socket at its end.
    pub owns_control_path: bool,
    history: Mutex<History>,
    /// Held by the upgrade that is under way.
    turn: tokio::sync::Mutex<()>,
    /// Cloned by each control command that is under way.
    answering: Arc<()>,
    /// True once this process stops: a successor that is not ready yet is ended.
    is_cancelled: AtomicBool,
    /// Set when a successor serves: true if the path of the control socket belongs to it.
    replaced: Mutex<Option<bool>>,
    wakeup: Notify,
    refusal: Option<Refusal>,
}

/// A reason why a server has no upgrades, whatever the system is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is a demonstration.
    Demo,
    /// Its datapath is XDP. The launcher would inherit the link of the program, and keep it when the server is killed: the program would
    /// go on taking queries, which nobody reads.
    Xdp,
}

impl Upgrade {
    /// Starts the launcher. `for_successor`: further handles of all listening sockets, and of the raw socket for probes. Call it when
    /// the process has its user, and before it restricts itself further or starts threads.
    pub fn prepare(
        (sockets, echo): (Vec<OwnedFd>, Option<OwnedFd>),
        owns_control_path: bool,
        history: History,
        refusal: Option<Refusal>,
    ) -> Upgrade {
        let launcher = (refusal.is_none() && std::process::id() != 1).then(|| {
            Launcher::start().inspect_err(|error| {
                tracing::warn!(
                    event = "no_launcher",
                    "cannot start the launcher: {error}; {}; until then only a restart of the service upgrades it",
                    remedy(error)
                );
            })
        });
        Upgrade {
            launcher: Mutex::new(launcher.and_then(Result::ok)),
            sockets: Mutex::new(sockets),
            echo,
            owns_control_path,
            history: Mutex::new(history),
            turn: tokio::sync::Mutex::default(),
            answering: Arc::default(),
            is_cancelled: AtomicBool::new(false),
            replaced: Mutex::default(),
            wakeup: Notify::new(),
            refusal,
        }
    }

    /// The upgrades so far.
    pub fn history(&self) -> History {
        lock(&self.history).clone()
    }

    /// Enters this process into the history: it has taken the place of its predecessor.
    pub fn note_success(&self) {
        lock(&self.history).add_success(std::process::id(), crate::version::VERSION);
    }

    /// Takes the turn to upgrade. None: an upgrade is under way.
    pub fn try_turn(&self) -> Option<MutexGuard<'_, ()>> {
        self.turn.try_lock().ok()
    }

    /// Keeps the process until the result is dropped: a control command is under way, whose client gets an answer.
    pub fn answering(&self) -> Arc<()> {
        Arc::clone(&self.answering)
    }

    /// Waits until all control commands are answered.
    pub async fn all_answered(&self) {
        while Arc::strong_count(&self.answering) > 1 {
            tokio::time::sleep(ANSWER_CHECK).await;
        }
    }

    /// None if no successor serves. True if the path of the control socket belongs to it.
    pub fn successor_has_path(&self) -> Option<bool> {
        *lock(&self.replaced)
    }

    /// Enters a successor that serves. `control`: the path of the control socket belongs to it.
    pub fn note_successor(&self, process: u32, version: &str, control: bool) {
        lock(&self.history).add_success(process, version);
        *lock(&self.replaced) = Some(control);
        self.wakeup.notify_one();
    }

    /// Number of the process that has taken the place of this one.
    pub fn successor(&self) -> Option<u32> {
        self.successor_has_path()?;
        lock(&self.history).attempts.last()?.process
    }

    /// Number of the launcher's process; none if this process cannot have a successor, or has one.
    pub fn launcher_process(&self) -> Option<u32> {
        lock(&self.launcher).as_ref().map(Launcher::process_id)
    }

    /// Enters an attempt after which this process goes on.
    pub fn note_failure(&self, process: Option<u32>, error: &str) {
        lock(&self.history).add_failure(process, error);
    }

    /// Waits until a successor serves.
    pub async fn replaced(&self) {
        while self.successor_has_path().is_none() {
            self.wakeup.notified().await;
        }
    }

    /// Ends a successor that is not ready yet. Returns when no upgrade is under way any more.
    pub async fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        drop(self.turn.lock().await);
    }

    /// Closes the further handles of the listening sockets.
    pub fn close_sockets(&self) {
        lock(&self.sockets).clear();
    }

    /// True once this process stops.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// The reason why this process has no launcher.
    pub fn unavailable(&self) -> &'static str {
        match self.refusal {
            Some(Refusal::Demo) => "a demonstration cannot be upgraded: stop it, and start the new version",
            Some(Refusal::Xdp) => {
                "a server with `server.datapath = \"xdp\"` cannot be upgraded, because an interface has one XDP program at a time: \
                 restart the service"
            }
            None if std::process::id() == 1 => {
                "the first process of a container cannot be replaced, because the container ends with it: replace the container"
            }
            None => "this process has no launcher, see the log of its start: restart the service",
        }
    }
}

/// Locks a mutex. A thread that failed left nothing half done.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
