//! Plan of a run: a profile, changed by a TOML file, changed by the command line.
//!
//! A [`Draft`] is a plan as written, with every key optional. [`Draft::over`] lays one draft over another;
//! [`Draft::finish`] fills in the defaults and checks the result.

use crate::order::Validity;
use crate::run::{Bisection, Cell};
use crate::units;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

mod check;
mod core_list;
mod draft;
mod name_budget;
mod sections;
mod source_addresses;

pub use core_list::core_list;
pub use draft::{Draft, PROCEDURES, PlanError};
pub use sections::{
    Authority, AuthorityDraft, Correctness, CorrectnessDraft, Device, DeviceDraft, GridDraft, Names,
    NamesDraft, SearchDraft, SearchMethod, SweepDraft, Tester, TesterDraft, Trial, TrialDraft,
};
pub use source_addresses::SourceAddresses;

/// A duration in text form with its unit.
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
        units::duration(&text).map(Span)
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
    /// The address; the bits beyond the length are zero.
    pub address: Ipv6Addr,
    /// 32, 40, 48, 56, 64 or 96.
    pub length: u8,
}

impl TryFrom<String> for Prefix {
    type Error = String;

    fn try_from(text: String) -> Result<Prefix, String> {
        let refused = || {
            format!(
                "\"{text}\" is not a DNS64 prefix; write an address and a length of 32, 40, 48, 56, 64 or 96, like 2001:2:0:64::/96, \
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

/// Times at which the device is restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Only for another value of the sweep.
    #[default]
    Never,
    /// Before each search, too.
    Repetition,
    /// Before each trial, as the predecessors of this program did with caching servers.
    Trial,
}

/// The plan of a whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Plan {
    /// The profile that it is based on.
    pub profile: String,
    /// The procedure that it follows: one of [`PROCEDURES`].
    #[serde(default = "default_procedure")]
    pub procedure: String,
    /// Settings of a trial.
    pub trial: Trial,
    /// Settings of the searches.
    pub search: Search,
    /// Names and zone.
    pub names: Names,
    /// The cells of the grid, the required one first.
    pub cells: Vec<Cell>,
    /// The swept parameter of the device and its values.
    pub sweep: Option<Sweep>,
    /// The correctness check before all timing.
    pub correctness: Correctness,
    /// The device under test.
    pub device: Device,
    /// The tester, which sends the queries.
    pub tester: Tester,
    /// The authority, which answers the device.
    pub authority: Authority,
    /// Names of the devices whose searches are taken in turns, in order, this run's among them; empty: one device alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<String>,
}

impl Plan {
    /// The plan of a device that takes turns with others, all of `names`. It is stopped while another has its turn, so it is
    /// restarted for each repetition at least, whatever else the plan says.
    pub fn in_turns(mut self, names: &[String]) -> Plan {
        self.turns = names.to_vec();
        if self.device.restart == Restart::Never {
            self.device.restart = Restart::Repetition;
        }
        self
    }

    /// Deviations from RFC 8219 section 9.2 that are known before the run, in words. The record's checklist has all
    /// of them.
    pub fn departures(&self) -> Vec<String> {
        let shown = |span: Span| units::show(span.0);
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
        if self.trial.validity == Validity::Answered {
            found.push("any answer record makes a reply valid, not only an AAAA record".to_owned());
        }
        found
    }
}

/// Settings of the searches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Search {
    /// Number of searches for each cell.
    pub repetitions: u32,
    /// The first rate, in queries per second.
    pub start: f64,
    /// The highest rate, in queries per second.
    pub max: f64,
    /// The search ends when the interval is at most this share of its upper end.
    pub precision: f64,
    /// True if failures are also confirmed, in addition to the strict result.
    pub confirm: bool,
    /// Points of the curve of loss against rate, as multiples of the result.
    pub curve: Vec<f64>,
    /// The margin of the self-test (RFC 8219 section 9.2.1).
    pub delta: f64,
    /// The papers' bisection, whose upper end is `max`; `None`: geometric searches.
    #[serde(default)]
    pub bisection: Option<Bisection>,
    /// True if the self-test is done again for each cell, with the traffic of its device. False only in a plan of an earlier
    /// release, whose run goes on as it began.
    #[serde(default)]
    pub certify: bool,
    /// Goals of the loss ratio beside zero loss, as shares of the queries, ascending.
    #[serde(default)]
    pub loss_goals: Vec<f64>,
}

/// A plan of an earlier release has no such key.
fn default_procedure() -> String {
    PROCEDURES[0].to_owned()
}

/// A swept parameter of the device, and its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sweep {
    /// `workers`, or a placeholder of the command line.
    pub parameter: String,
    /// Its values.
    pub values: Vec<String>,
}

impl Device {
    /// True if the run starts the device; otherwise it is already running.
    pub fn is_started_by_us(&self) -> bool {
        !self.template.is_empty() || !self.command.is_empty()
    }
}

/// A further host of the tester.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TesterHost {
    /// Command that reaches it.
    pub host: Vec<String>,
    /// Its cores; empty: not pinned.
    #[serde(default)]
    pub cores: Vec<u16>,
    /// Its source addresses; empty: chosen by the routing table.
    #[serde(default)]
    pub sources: Vec<IpAddr>,
}

impl Tester {
    /// Number of hosts that send queries.
    pub fn hosts(&self) -> usize {
        1 + self.more.len()
    }
}
