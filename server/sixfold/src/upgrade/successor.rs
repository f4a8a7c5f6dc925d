//! The side of the new process: it takes the listening sockets of its predecessor, tells it that it serves, and waits for the word
//! that it is the server now.

use crate::prefixes::HandedPrefix;
use crate::trust::HandedNegative;
use crate::upgrade::channel::Channel;
use crate::upgrade::history::History;
use crate::version;
use datapath::steering::Seed;
use engine::message::cookie::Secret;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Variable that says that standard input is a channel to the predecessor.
pub const HANDOVER: &str = "SIXFOLD_HANDOVER";
/// Value of [`HANDOVER`].
pub const STDIN: &str = "stdin";

/// Version of the messages. Fields may be added without a new one: both sides ignore those that they do not know.
pub const PROTOCOL: u32 = 1;

/// Time for each message of the predecessor, which sends them at once.
const MESSAGE: Duration = Duration::from_secs(10);

/// State that the predecessor hands over, with the descriptor of its raw socket for probes, if it has one. The other sockets follow it.
#[derive(Serialize, Deserialize)]
pub struct Handover {
    /// [`PROTOCOL`] of the predecessor.
    pub protocol: u32,
    /// Number of descriptors that follow.
    pub sockets: usize,
    /// Number of the predecessor's process; 0 from a version that does not tell.
    #[serde(default)]
    pub process: u32,
    /// Secret of server cookies that was drawn at the first start: cookies of clients stay valid.
    pub cookie_secret: [u8; 16],
    /// Secret of the steering hash, so that a name keeps its worker.
    pub steering_seed: u64,
    /// True if the operator has taken the server out of service.
    #[serde(default)]
    pub drained: bool,
    /// True if the server removes the path of the control socket at its end; false if it is the service manager's.
    #[serde(default)]
    pub owns_control_path: bool,
    /// The upgrades so far, without this one.
    #[serde(default)]
    pub history: History,
    /// States of prefixes.
    #[serde(default)]
    pub prefixes: Vec<HandedPrefix>,
    /// Negative trust anchors that operators have added.
    #[serde(default)]
    pub negative_anchors: Vec<HandedNegative>,
}

/// The answer of the successor.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The successor can serve, and waits for the [`Confirmation`].
    Ready {
        /// Its version.
        version: String,
        /// True if the path of the control socket belongs to it.
        control: bool,
    },
    /// The successor cannot start, for this reason.
    Failed(String),
}

/// The last message of the predecessor: it has stopped reading the sockets, and the successor is the server.
#[derive(Serialize, Deserialize)]
pub struct Confirmation {}

/// State that the server before this process has handed over, and the channel to it.
pub struct Predecessor {
    channel: Channel,
    /// Number of its process; 0 if it has not told.
    pub process: u32,
    /// Secret of server cookies.
    pub cookie_secret: Secret,
    /// Secret of the steering hash.
    pub steering_seed: Seed,
    /// True if the operator has taken the server out of service.
    pub drained: bool,
    /// True if the server removes the path of the control socket at its end.
    pub owns_control_path: bool,
    /// The upgrades so far.
    pub history: History,
    /// States of prefixes.
    pub prefixes: Vec<HandedPrefix>,
    /// Negative trust anchors that operators have added.
    pub negative_anchors: Vec<HandedNegative>,
    /// Its raw socket for probes of gateways.
    echo: Cell<Option<OwnedFd>>,
}

impl Predecessor {
    /// Takes the state and the sockets of the predecessor, if this process has one.
    ///
    /// # Errors
    ///
    /// The text for the operator: the process was not started by a launcher, the predecessor sends nothing in time, or its version
    /// hands over in another way.
    pub fn from_environment() -> Result<Option<(Predecessor, Vec<OwnedFd>)>, String> {
        if std::env::var_os(HANDOVER).is_none_or(|value| value != STDIN) {
            return Ok(None);
        }
        let failed = |error: io::Error| {
            format!(
                "cannot take over from the running server: {error}; {HANDOVER} is set by `sixfold launcher` only"
            )
        };
        let channel = Channel::from_stdin().map_err(failed)?;
        let handover = channel.receive::<Handover>(Some(MESSAGE)).map_err(failed)?;
        let (handover, echo) = handover.ok_or_else(|| failed(io::ErrorKind::TimedOut.into()))?;
        if handover.protocol != PROTOCOL {
            let error = format!(
                "cannot take over from a version that hands over in another way ({}, not {PROTOCOL}); restart the service",
                handover.protocol
            );
            let _ = channel.send(&Reply::Failed(error.clone()), &[]);
            return Err(error);
        }
        let sockets = channel.receive_descriptors(handover.sockets, MESSAGE).map_err(failed)?;
        let predecessor = Predecessor {
            channel,
            process: handover.process,
            cookie_secret: Secret(handover.cookie_secret),
            steering_seed: Seed::from(handover.steering_seed),
            drained: handover.drained,
            owns_control_path: handover.owns_control_path,
            history: handover.history,
            prefixes: handover.prefixes,
            negative_anchors: handover.negative_anchors,
            echo: Cell::new(echo.into_iter().next()),
        };
        Ok(Some((predecessor, sockets)))
    }

    /// Takes its raw socket for probes of gateways, if it has one.
    pub fn take_echo(&self) -> Option<OwnedFd> {
        self.echo.take()
    }

    /// Tells the predecessor that this process can serve, and waits until it has stopped reading the sockets. `control`: the path of the control socket belongs
    /// to this process. A predecessor that does not answer has died: then this process is the server all the same.
    pub fn replace(&self, control: bool) {
        let ready =
            Reply::Ready { version: format!("{} (commit {})", version::VERSION, version::COMMIT), control };
        let confirmed = self.channel.send(&ready, &[]).and_then(|()| {
            let end = Instant::now() + MESSAGE;
            loop {
                let left = end.saturating_duration_since(Instant::now());
                if self.channel.receive::<Confirmation>(Some(left))?.is_some() {
                    return Ok(());
                }
                if left.is_zero() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
        });
        if let Err(error) = confirmed {
            tracing::warn!(
                event = "predecessor_silent",
                "the former process does not answer: {error}; this one goes on"
            );
        }
    }

    /// Tells the predecessor why this process cannot start.
    pub fn report(&self, error: &str) {
        let error = error.chars().take(4_000).collect();
        let _ = self.channel.send(&Reply::Failed(error), &[]);
    }
}
