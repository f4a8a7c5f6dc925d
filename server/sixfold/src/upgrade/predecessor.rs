//! The side of the old process: it has a successor started, hands it the listening sockets, waits until the successor can serve, and
//! stops reading. Until then nothing changes for clients or sockets, so a failure costs nothing. These functions block, on a thread of their own.

use crate::running_server::{SILENT_WORKER, ServerHandle};
use crate::upgrade::channel::Channel;
use crate::upgrade::launcher::Launcher;
use crate::upgrade::request::Request;
use crate::upgrade::state::lock;
use crate::upgrade::successor::{Confirmation, Handover, PROTOCOL, Reply};
use datapath::remedy::with_remedy;
use sd_notify::NotifyState;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Time for the workers to stop reading. A turn of a worker takes less than a millisecond; the successor waits for 10 s.
const RELEASE: Duration = Duration::from_secs(2);

/// Interval of the checks whether the server stops meanwhile.
const CHECK: Duration = Duration::from_millis(50);

/// The successor that serves.
pub struct Successor {
    /// Number of its process.
    pub process: u32,
    /// Its version.
    pub version: String,
    /// True if the path of the control socket belongs to it.
    pub control: bool,
}

/// The reason why there is no successor, and the process that was tried.
pub struct Failure {
    /// The reason, with the remedy if there is one.
    pub error: String,
    /// Number of the process that was started.
    pub process: Option<u32>,
}

impl From<String> for Failure {
    fn from(error: String) -> Failure {
        Failure { error, process: None }
    }
}

/// The place of a successor's reason.
const LOG: &str = "look for its reason in the log (`journalctl -u sixfold`)";

/// Starts a successor, and waits until it serves. After a failure no process is left, and this one goes on. The service manager
/// hears of both.
///
/// # Errors
///
/// The text for the operator: there is no launcher, the successor cannot be started, has failed, or does not serve in time.
pub fn replace(server: &ServerHandle, request: &Request) -> Result<Successor, Failure> {
    let mut launcher = lock(&server.upgrade.launcher);
    let Some(running) = launcher.as_ref() else { return Err(server.upgrade.unavailable().to_owned().into()) };
    notify(&[Some(NotifyState::Reloading), NotifyState::monotonic_usec_now().ok()]);
    let result = try_replace(server, running, request);
    match &result {
        Ok((successor, channel)) => {
            // The successor becomes a child of the service manager, which otherwise would warn that it is none of its own.
            *launcher = None;
            notify(&[Some(NotifyState::MainPid(successor.process))]);
            // It is the main process now, and may report that it is ready.
            let _ = channel.send(&Confirmation {}, &[]);
        }
        Err(_) => notify(&[Some(NotifyState::Ready)]),
    }
    result.map(|(successor, _)| successor)
}

fn try_replace(
    server: &ServerHandle,
    launcher: &Launcher,
    request: &Request,
) -> Result<(Successor, Channel), Failure> {
    let (channel, end) = Channel::pair()
        .map_err(|error| format!("cannot make a channel to a new process: {}", with_remedy(&error)))?;
    let process = launcher.start_successor(request.program.as_deref(), end)?;
    tracing::info!(
        event = "upgrade_started",
        process,
        launcher = launcher.process_id(),
        "upgrade: process {process} was started by the launcher, process {}",
        launcher.process_id()
    );
    let ready = hand_over(server, &channel, request.patience);
    match ready.and_then(|ready| release(server, &channel).map(|()| ready)) {
        Ok((version, control)) => Ok((Successor { process, version, control }, channel)),
        Err(error) => {
            let status = launcher.end_successor().unwrap_or_else(|error| error);
            Err(Failure { error: format!("{error} ({status})"), process: Some(process) })
        }
    }
}

/// Hands over the sockets, and waits until the successor serves: its version, and the owner of the control socket's path.
fn hand_over(server: &ServerHandle, channel: &Channel, patience: Duration) -> Result<(String, bool), String> {
    let sockets = lock(&server.upgrade.sockets);
    let borrowed: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
    let handover = Handover {
        protocol: PROTOCOL,
        sockets: borrowed.len(),
        process: std::process::id(),
        cookie_secret: server.cookie_secret.0,
        steering_seed: server.workers.seed().into(),
        drained: server.drained.load(Ordering::Relaxed),
        owns_control_path: server.upgrade.owns_control_path,
        history: server.upgrade.history(),
        prefixes: server.prefixes.handover(),
        negative_anchors: server.trust.handover(),
    };
    // A program that is none of ours may end without reading, which the wait for its answer reports.
    let echo: Vec<_> = server.upgrade.echo.iter().map(AsFd::as_fd).collect();
    let sent = channel.send(&handover, &echo).and_then(|()| channel.send_descriptors(&borrowed));
    if let Err(error) = sent
        && !matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
    {
        return Err(format!("cannot hand over the sockets: {}", with_remedy(&error)));
    }
    drop(borrowed);
    drop(sockets);
    let end = Instant::now() + patience;
    loop {
        match channel.receive::<Reply>(Some(CHECK)) {
            Ok(Some((Reply::Ready { version, control }, _))) => return Ok((version, control)),
            Ok(Some((Reply::Failed(error), _))) => {
                return Err(format!("the new process cannot start: {error}"));
            }
            Err(_) => {
                return Err(format!("the new process has ended before it was ready; {LOG}"));
            }
            Ok(None) if server.upgrade.is_cancelled() => {
                return Err("this process stops; the new one was ended".into());
            }
            Ok(None) if Instant::now() >= end => {
                return Err(format!(
                    "the new process was not ready within {} s, and was ended; {LOG}, or give it more time with `--timeout`",
                    patience.as_secs_f64()
                ));
            }
            Ok(None) => {}
        }
    }
}

/// Stops reading the sockets, probing gateways, and following trust anchors. A successor that has ended meanwhile has read nothing, so
/// this process goes on.
fn release(server: &ServerHandle, channel: &Channel) -> Result<(), String> {
    server.prefixes.pause_probes();
    server.trust.pause();
    if !server.workers.release_listeners(RELEASE) {
        tracing::warn!(
            event = "worker_silent",
            "a worker has not stopped reading within {} s; {SILENT_WORKER}",
            RELEASE.as_secs()
        );
    }
    if channel.receive::<Reply>(Some(Duration::ZERO)).is_ok() {
        return Ok(());
    }
    server.read_sockets();
    server.prefixes.resume_probes();
    server.trust.resume();
    Err(format!("the new process was ready, but has ended before it took over; {LOG}"))
}

/// Tells the service manager. Without one this does nothing.
fn notify(states: &[Option<NotifyState<'_>>]) {
    let states: Vec<NotifyState<'_>> = states.iter().flatten().cloned().collect();
    let _ = sd_notify::notify(&states);
}
