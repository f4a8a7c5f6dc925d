//! The record of a whole run: `run.json`, of which everything else in a bundle can be made again.

use crate::outcome::{Outcome, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the layout of `run.json`. It changes when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// The counter of [`Trial::authority`] for questions for AAAA records, and the one for A records.
pub const ASKED_AAAA: &str = "asked_aaaa";
/// See [`ASKED_AAAA`].
pub const ASKED_A: &str = "asked_a";

/// Everything that is known of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`SCHEMA`] when it was written.
    pub schema: u32,
    /// Version and commit of the program that measured.
    pub tool: String,
    /// The name of the profile that the plan began with; the settings say what was changed.
    pub profile: String,
    /// Start, UTC, RFC 3339.
    pub started: String,
    /// End, or when the record was written of a run that is not complete, UTC, RFC 3339.
    pub ended: String,
    /// Whether all that was planned was done.
    pub complete: bool,
    /// The settings that were in force.
    pub settings: Settings,
    /// The device under test.
    pub device: Device,
    /// The hosts by role: `tester`, `authority`, `device`.
    pub hosts: BTreeMap<String, Environment>,
    /// The check before any timing.
    pub correctness: Option<Correctness>,
    /// The tester's certificate; nothing if the run did not come so far.
    pub self_test: Option<SelfTest>,
    /// Every trial, in the order in which they were done.
    pub trials: Vec<Trial>,
    /// One result per sweep value and cell.
    pub results: Vec<CellResult>,
    /// The rules of RFC 8219, and whether they were kept.
    pub checklist: Vec<Rule>,
    /// What a reader should know before believing a number.
    pub warnings: Vec<String>,
}

/// Settings that matter for reading the results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Length of a trial, in milliseconds.
    pub trial_ms: u64,
    /// Timeout of a query, in milliseconds.
    pub timeout_ms: u64,
    /// Pause after each trial, in milliseconds.
    pub pause_ms: u64,
    /// Searches for each result.
    pub repetitions: u32,
    /// The search ends when the interval is at most this part of its upper end.
    pub precision: f64,
    /// The rate at which the first search begins, queries a second.
    pub start_qps: f64,
    /// No search goes beyond this rate, queries a second.
    pub max_qps: f64,
    /// The margin of the self-test (RFC 8219 section 9.2.1), at least 0.1.
    pub delta: f64,
    /// The names that are asked.
    pub names: String,
    /// The zone that they are in.
    pub zone: String,
    /// The DNS64 prefix.
    pub prefix: String,
    /// TTL of the authority's records, in seconds.
    pub ttl: u32,
    /// A records of each name without AAAA records, and AAAA records of each other.
    pub addresses: u16,
    /// CNAME records before the addresses.
    pub cname_depth: u16,
    /// Unmeasured load before each trial, in milliseconds.
    pub warm_up_ms: u64,
    /// Where the authority listens; empty: not known.
    #[serde(default)]
    pub authority: String,
    /// Whether failures were also confirmed by a second trial (beside the strict result).
    pub confirm: bool,
}

/// The device under test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Its name: that of the template, or `custom`.
    pub name: String,
    /// What it says of its version.
    pub version: String,
    /// The command line that starts it; empty when it ran already.
    pub command: Vec<String>,
    /// Where it listens.
    pub address: String,
    /// Its cores, as `taskset` takes them; empty: all.
    pub cores: String,
    /// Its configuration files: name and text.
    pub files: BTreeMap<String, String>,
    /// The parameter that is swept, and its values; empty: none.
    pub sweep: Option<(String, Vec<String>)>,
}

/// A host, by facts with a name: `kernel`, `processor`, `cores`, `memory`, `governor`, ...
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The facts.
    pub facts: BTreeMap<String, String>,
    /// What makes measurements on it doubtful.
    pub warnings: Vec<String>,
}

/// Some hundred names asked before any timing, and conformance cases if they were asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Correctness {
    /// Names asked.
    pub names: u64,
    /// Right answers.
    pub valid: u64,
    /// Wrong ones, by reason, `lost` and `late` among them.
    pub invalid: BTreeMap<String, u64>,
    /// Conformance cases: passed, failed, skipped.
    pub conformance: Option<(u64, u64, u64)>,
    /// The failed cases by ID.
    pub failed_cases: Vec<String>,
}

/// The certificate of RFC 8219 section 9.2.1: tester and authority without a device between them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SelfTest {
    /// The highest rate, queries a second, that the tester passed within a quarter of the timeout.
    pub certified_qps: f64,
    /// The highest rate at which a device may be measured: `certified_qps / (2 * (1 + delta))`.
    pub device_qps: f64,
    /// The margin.
    pub delta: f64,
    /// The quarter of the timeout, in milliseconds.
    pub timeout_ms: u64,
    /// Whether it is worth anything: a device may be measured at 1 query a second at least. No rate above `device_qps` is tried.
    pub sufficient: bool,
}

/// Why a trial was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The self-test.
    SelfTest,
    /// A step of the search.
    #[default]
    Search,
    /// A second try at a rate that failed.
    Confirm,
    /// A point of the curve of loss against rate.
    Curve,
}

/// A cell of the grid of RFC 8219 section 9.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The share of names with AAAA records, 0 to 1.
    pub aaaa_share: f64,
    /// The share of queries for names that the device should have cached, 0 to 1.
    pub cached_share: f64,
}

/// One trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Counts the trials of a run from 0.
    pub number: u32,
    /// Why it was done.
    pub purpose: Purpose,
    /// The value of the swept parameter; empty: none.
    pub sweep: String,
    /// The cell.
    pub cell: Cell,
    /// The repetition, from 0.
    pub repetition: u32,
    /// The rate, queries a second.
    pub rate_qps: f64,
    /// Start, UTC, RFC 3339.
    pub started: String,
    /// The number of the first name in the window.
    pub first_name: u64,
    /// What the load said.
    pub outcome: Outcome,
    /// What the authority counted meanwhile, by kind of answer; empty: it could not be asked.
    pub authority: BTreeMap<String, u64>,
    /// What the device took meanwhile; nothing when it runs elsewhere.
    pub device: Option<DeviceUse>,
    /// Whether the device was started since the trial before, and knew no names.
    #[serde(default)]
    pub fresh: bool,
}

impl Trial {
    /// Whether it passed.
    pub fn passed(&self) -> bool {
        self.outcome.verdict == Verdict::Pass
    }
}

/// What a device took during a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceUse {
    /// CPU time in user mode, in seconds.
    pub user_s: f64,
    /// CPU time in the kernel, in seconds.
    pub system_s: f64,
    /// Time that its threads were ready to run and had no core, in seconds: they have more work than cores, or others had
    /// them.
    #[serde(default)]
    pub waited_s: f64,
    /// By thread: name, user and system seconds. Threads that took nothing are left out.
    pub threads: Vec<(String, f64, f64)>,
    /// Resident memory at the end, in octets.
    pub resident: u64,
    /// The highest resident memory so far, in octets.
    pub resident_peak: u64,
    /// Context switches that a thread asked for by waiting.
    pub voluntary_switches: u64,
    /// Context switches that it did not ask for.
    pub involuntary_switches: u64,
    /// CPU time per valid reply, in microseconds.
    pub cpu_us_per_query: f64,
}

/// What was found for one cell and one value of the sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The value of the swept parameter; empty: none.
    pub sweep: String,
    /// The cell.
    pub cell: Cell,
    /// The highest rate without loss in each repetition, strictly by RFC 8219: queries a second.
    pub strict: Vec<f64>,
    /// The same when a failure counts only if a second trial at that rate fails too.
    pub confirmed: Vec<f64>,
    /// Median and percentiles of the strict rates.
    pub summary: Summary,
    /// The same of the confirmed rates.
    pub confirmed_summary: Summary,
    /// Whether a strict search ended for another reason than the device: at the highest rate that was allowed, at one that the
    /// tester could not send, or after too many trials. Then the truth is that or more.
    pub censored: bool,
    /// Queries that the authority received per query of the tester; `(1 - cached) * (2 - aaaa)` is expected.
    pub upstream_per_query: f64,
    /// The share of cached names that follows from the authority's counters.
    pub achieved_cached_share: f64,
    /// The share of names with AAAA records that follows from the authority's counters.
    pub achieved_aaaa_share: f64,
    /// CPU time of the device per valid reply at the highest passed rate, in microseconds; the median.
    pub cpu_us_per_query: Option<f64>,
}

/// The statistics that RFC 8219 section 12 and the papers ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many values there are.
    pub count: u32,
    /// The median; with an even number of values the mean of the two in the middle (RFC 2330 section 11.3).
    pub median: f64,
    /// The 1st percentile by RFC 2330 section 11.3; up to 100 values it is the smallest.
    pub p1: f64,
    /// The 99th percentile by RFC 2330 section 11.3; below 100 values it is the largest.
    pub p99: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the sample.
    pub deviation: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// A rule of RFC 8219 and whether the run kept it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The section.
    pub section: String,
    /// The rule, in short.
    pub rule: String,
    /// MUST, SHOULD, MAY, RECOMMENDED.
    pub level: String,
    /// Whether it was kept.
    pub state: Kept,
    /// What shows it, or why not.
    pub because: String,
}

/// Whether a rule was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// It was.
    Kept,
    /// It was not.
    NotKept,
    /// It does not concern this run.
    NotApplicable,
}
