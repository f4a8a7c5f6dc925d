//! Values of the configuration that have a type of their own. The tables and their keys are in `keys.rs`.

use super::Name;
use engine::dns64::gateways::AllDown;
use std::path::PathBuf;
use std::time::Duration;

/// How the kernel chooses the worker of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steer {
    /// By a hash of the name in the question, so that equal questions reach the same worker.
    Name,
    /// By addresses and ports.
    Flow,
}

/// The way of datagrams between the network and the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datapath {
    /// Through UDP sockets.
    Sockets,
    /// As frames, past the kernel's network stack (AF_XDP). A build without the feature `xdp` refuses it.
    Xdp,
}

/// `[filter] rpz-bad-records`: what a record of a response policy zone means that cannot be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadRecords {
    /// It is left out.
    #[default]
    Skip,
    /// The zone cannot be used, nor the configuration.
    Refuse,
}

/// A response policy zone as it was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFile {
    /// The file.
    pub file: PathBuf,
    /// Name of the zone: the owner of its SOA record.
    pub zone: Name,
    /// Serial number in the SOA record.
    pub serial: u32,
    /// Records that were taken, with the SOA record and others of the zone itself.
    pub records: usize,
    /// Records that were left out.
    pub skipped: usize,
    /// Time of the file's last change; none if the file system does not tell it.
    pub modified: Option<std::time::SystemTime>,
}

/// `[dns64.health]`: the probes of the gateways, and the answers that depend on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Time between the starts of two probes.
    pub interval: Duration,
    /// Time after which a probe has failed.
    pub timeout: Duration,
    /// Failures in a row that make a gateway down.
    pub fall: u32,
    /// Successes in a row that make it up again.
    pub rise: u32,
    /// Answer when no gateway is up.
    pub all_down: AllDown,
    /// Longest TTL of an answer with a probed prefix.
    pub answer_ttl: Duration,
}

impl Default for Health {
    fn default() -> Health {
        Health {
            interval: Duration::from_millis(300),
            timeout: Duration::from_millis(250),
            fall: 3,
            rise: 5,
            all_down: AllDown::Keep,
            answer_ttl: Duration::from_secs(60),
        }
    }
}

/// `log.level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something does not work.
    Error,
    /// Something may fail soon, or does not work as expected.
    Warn,
    /// Starts, stops, reloads, upstreams that fail and recover.
    Info,
    /// Details for an operator who looks for a fault.
    Debug,
    /// Everything.
    Trace,
}

/// `log.format`, and the form of an answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// `log.to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard error.
    Stderr,
    /// systemd-journald, by its native protocol.
    Journald,
    /// The local syslog daemon, by RFC 5424.
    Syslog,
}
