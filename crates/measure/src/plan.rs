//! What a run is to do: a profile, changed by a TOML file, changed by the command line.
//!
//! A [`Draft`] is what somebody wrote: every key optional. [`Draft::over`] lays one over another, [`Draft::finish`] fills in
//! what nobody said and checks that the whole makes sense.

use crate::amount;
use crate::run::Cell;
use crate::window::Window;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

mod check;
mod core_list;
mod draft;
mod supply;

pub use core_list::core_list;
pub use draft::{
    AuthorityDraft, CorrectnessDraft, DeviceDraft, Draft, GridDraft, NamesDraft, PlanError, SearchDraft,
    SweepDraft, TesterDraft, TrialDraft,
};

/// A duration that is written with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(pub Duration);

impl Span {
    /// Whole milliseconds.
    pub fn ms(self) -> u64 {
        self.0.as_millis() as u64
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Span, String> {
        amount::duration(&text).map(Span)
    }
}

impl From<Span> for String {
    fn from(span: Span) -> String {
        format!("{}ms", span.ms())
    }
}

/// A DNS64 prefix with its length, as `64:ff9b::/96`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix {
    /// The address; bits beyond the length are zero.
    pub address: Ipv6Addr,
    /// 32, 40, 48, 56, 64 or 96.
    pub length: u8,
}

impl TryFrom<String> for Prefix {
    type Error = String;

    fn try_from(text: String) -> Result<Prefix, String> {
        let refused = || {
            format!(
                "\"{text}\" is no DNS64 prefix; write an address and a length of 32, 40, 48, 56, 64 or 96, like 2001:2:0:64::/96, \
                 with no bit set beyond the length and bits 64 to 71 zero (RFC 6052 section 2.2)"
            )
        };
        let (address, length) = text.split_once('/').ok_or_else(refused)?;
        let address: Ipv6Addr = address.parse().map_err(|_| refused())?;
        let length: u8 = length.parse().map_err(|_| refused())?;
        let bits = u128::from(address);
        let known = matches!(length, 32 | 40 | 48 | 56 | 64 | 96);
        if !known || bits << length != 0 || (bits >> 56) & 0xff != 0 {
            return Err(refused());
        }
        Ok(Prefix { address, length })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> String {
        prefix.to_string()
    }
}

/// When the device is started anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Only for another value of the sweep.
    #[default]
    Never,
    /// Before each search too.
    Repetition,
    /// Before each trial: what the ancestors of this program did with servers that cache.
    Trial,
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Plan {
    /// The profile that it began with.
    pub profile: String,
    /// Single trials.
    pub trial: Trial,
    /// Searches.
    pub search: Search,
    /// Names and zone.
    pub names: Names,
    /// The cells of the grid, the required one first.
    pub cells: Vec<Cell>,
    /// A parameter of the device and its values.
    pub sweep: Option<Sweep>,
    /// The check before.
    pub correctness: Correctness,
    /// The device under test.
    pub device: Device,
    /// Who asks.
    pub tester: Tester,
    /// Who answers the device.
    pub authority: Authority,
}

impl Plan {
    /// What is known beforehand not to comply with RFC 8219 section 9.2, in words. The checklist of the record says all of
    /// it.
    pub fn departures(&self) -> Vec<String> {
        let shown = |span: Span| amount::show(span.0);
        let mut found = Vec::new();
        if self.trial.duration.0 < Duration::from_secs(60) {
            found.push(format!("trials of {}, not 60 s", shown(self.trial.duration)));
        }
        if self.trial.timeout.0 > Duration::from_secs(1) {
            found.push(format!("timeout {}, not 1 s", shown(self.trial.timeout)));
        }
        if self.search.repetitions < 20 {
            found.push(format!("repetitions: {}, not 20", self.search.repetitions));
        }
        found
    }
}

/// Single trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Trial {
    /// How long queries are sent.
    pub duration: Span,
    /// When a reply is late.
    pub timeout: Span,
    /// Rest after each trial.
    pub pause: Span,
    /// Unmeasured load before each trial.
    pub warm_up: Span,
}

/// Searches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Search {
    /// Searches for each cell.
    pub repetitions: u32,
    /// The first rate, queries a second.
    pub start: f64,
    /// The highest rate, queries a second.
    pub max: f64,
    /// The search ends when the interval is at most this part of its upper end.
    pub precision: f64,
    /// Whether failures are confirmed, beside the strict result.
    pub confirm: bool,
    /// Points of the curve of loss against rate, as multiples of the result.
    pub curve: Vec<f64>,
    /// The margin of the self-test (RFC 8219 section 9.2.1).
    pub delta: f64,
}

/// Names and zone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Names {
    /// The names that are asked.
    pub window: Window,
    /// The zone that they are in.
    pub zone: String,
    /// TTL of all records, in seconds.
    pub ttl: u32,
    /// The DNS64 prefix.
    pub prefix: Prefix,
    /// Addresses of each name.
    pub addresses: u16,
    /// CNAME records before the addresses.
    pub cname_depth: u16,
    /// Chooses the names with AAAA records, message IDs, names asked again.
    pub seed: u64,
}

/// A parameter of the device, and the values that it is to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sweep {
    /// `workers`, or a placeholder of the command line.
    pub parameter: String,
    /// Its values.
    pub values: Vec<String>,
}

/// The check before any timing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Correctness {
    /// Names asked.
    pub names: u32,
    /// A file of conformance cases; empty: none are played.
    pub conformance: String,
}

/// The device under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Device {
    /// The template, or empty.
    pub template: String,
    /// Path of its program on the device's host; empty: it is looked for.
    #[serde(default)]
    pub program: String,
    /// A command line with placeholders, or empty.
    pub command: Vec<String>,
    /// Where it listens. Nothing: a free port of the loopback interface.
    pub address: Option<SocketAddr>,
    /// The ID of its process, if it runs already and is to be watched.
    pub pid: Option<u32>,
    /// Its cores, as `taskset` takes them; empty: chosen.
    pub cores: String,
    /// Its threads.
    pub workers: u16,
    /// Lines appended to its configuration.
    pub options: Vec<String>,
    /// When it is started anew.
    pub restart: Restart,
    /// Reaches its host: a command before `sixfold-bench agent`; empty: this host.
    pub host: Vec<String>,
}

impl Device {
    /// Whether the run starts it; otherwise it runs already.
    pub fn is_started_by_us(&self) -> bool {
        !self.template.is_empty() || !self.command.is_empty()
    }
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tester {
    /// Reaches its host; empty: this host.
    pub host: Vec<String>,
    /// Its cores; empty: chosen.
    pub cores: Vec<u16>,
    /// Sending threads; 0: chosen.
    pub senders: u16,
    /// Receiving threads; nothing: chosen.
    pub receivers: Option<u16>,
    /// Source ports of each sending thread.
    pub ports: u16,
    /// Source addresses.
    pub sources: Vec<IpAddr>,
    /// Consecutive queries that leave from one port.
    pub group: u16,
    /// Queries due at the same instant.
    pub burst: u32,
    /// Whether sending threads wait in a loop.
    pub spin: bool,
}

/// Who answers the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Authority {
    /// Reaches its host; empty: the tester's.
    pub host: Vec<String>,
    /// Where it listens. Nothing: a free port of the loopback interface.
    pub address: Option<SocketAddr>,
    /// An authority that runs already and is not started: it must serve the same zone.
    pub external: bool,
    /// Its cores; empty: chosen.
    pub cores: Vec<u16>,
}
