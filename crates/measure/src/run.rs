//! Record of a whole run: `run.json`, from which everything else in a bundle can be made again.

use crate::order::Validity;
use crate::outcome::{Outcome, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the layout of `run.json`. It changes when a field changes its meaning or is removed.
pub const SCHEMA: u32 = 1;

/// Counter in [`Trial::authority`] of queries for AAAA records.
pub const ASKED_AAAA: &str = "asked_aaaa";
/// Counter in [`Trial::authority`] of queries for A records.
pub const ASKED_A: &str = "asked_a";

/// The record of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`SCHEMA`] at the time of writing.
    pub schema: u32,
    /// Version and commit of the measuring program.
    pub tool: String,
    /// The profile that the plan is based on; the settings show the changes.
    pub profile: String,
    /// Start, UTC, RFC 3339.
    pub started: String,
    /// End, or time of writing if the run is not complete, UTC, RFC 3339.
    pub ended: String,
    /// True if everything planned was done.
    pub complete: bool,
    /// The effective settings.
    pub settings: Settings,
    /// Threads, ports and cores of tester and authority, and the form of their traffic; `None` in records without it.
    #[serde(default)]
    pub equipment: Option<Equipment>,
    /// Sockets, threads and cores by role: `tester`, `device`, `authority`, as far as they are known.
    #[serde(default)]
    pub participants: BTreeMap<String, Participant>,
    /// The device under test.
    pub device: Device,
    /// The hosts by role: `tester`, `authority`, `device`.
    pub hosts: BTreeMap<String, Environment>,
    /// The correctness check before all timing.
    pub correctness: Option<Correctness>,
    /// The tester's certificate; `None` if the run did not get that far.
    pub self_test: Option<SelfTest>,
    /// All trials, in order.
    pub trials: Vec<Trial>,
    /// One result per sweep value and cell.
    pub results: Vec<CellResult>,
    /// The rules of RFC 8219, each with its state.
    pub checklist: Vec<Rule>,
    /// Facts that a reader must know before relying on a number.
    pub warnings: Vec<String>,
}

/// Settings that are needed to read the results.
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
    /// The search ends when the interval is at most this share of its upper end.
    pub precision: f64,
    /// First rate of the first search, in queries per second.
    pub start_qps: f64,
    /// Highest rate of every search, in queries per second.
    pub max_qps: f64,
    /// The margin of the self-test (RFC 8219 section 9.2.1), at least 0.1.
    pub delta: f64,
    /// Range of the queried names.
    pub names: String,
    /// Zone of the names.
    pub zone: String,
    /// The DNS64 prefix.
    pub prefix: String,
    /// TTL of the authority's records, in seconds.
    pub ttl: u32,
    /// Number of A records of each name without AAAA records, and of AAAA records of each other name.
    pub addresses: u16,
    /// Number of CNAME records before the addresses.
    pub cname_depth: u16,
    /// Unmeasured load before each trial, in milliseconds.
    pub warm_up_ms: u64,
    /// Address of the authority; empty: unknown.
    #[serde(default)]
    pub authority: String,
    /// True if failures were also confirmed by a second trial (in addition to the strict result).
    pub confirm: bool,
    /// Name of the procedure: `rfc8219`, or that of a publication.
    #[serde(default)]
    pub procedure: String,
    /// Ends and width of the papers' bisection; `None`: geometric searches.
    #[serde(default)]
    pub bisection: Option<Bisection>,
    /// Rule by which a reply was valid.
    #[serde(default)]
    pub validity: Validity,
    /// True if the device kept its own defaults for buffers and limits.
    #[serde(default)]
    pub as_shipped: bool,
    /// Receive buffer that the device was to have, in octets as the kernel counts them; 0: its own, or unknown.
    #[serde(default)]
    pub receive_buffer: u64,
}

/// The bisection of the papers: the interval that it begins with, and the width at which it ends, in queries per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Bisection {
    /// The lower end, l.
    pub low: f64,
    /// The upper end, h.
    pub high: f64,
    /// The width at the end, e.
    pub width: f64,
}

impl Settings {
    /// Share by which the true value may be above a result: the precision of the search.
    pub fn resolution(&self, rate_qps: f64) -> f64 {
        match self.bisection {
            None => self.precision,
            Some(Bisection { width, .. }) => width / (rate_qps + width),
        }
    }
}

/// Threads, ports and cores of tester and authority, and the form of their traffic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Equipment {
    /// Sending threads of the tester.
    pub senders: u16,
    /// Receiving threads of the tester; 0: the sending threads receive.
    pub receivers: u16,
    /// Source ports of each sending thread, for each source address.
    pub ports: u16,
    /// Source addresses; empty: chosen by the routing table.
    pub sources: Vec<String>,
    /// Consecutive queries that leave from one port. With 1 each message is a datagram of its own; above 1 those that are due
    /// together leave in one system call, and the kernel takes them apart (UDP GSO and GRO at tester and authority).
    pub group: u16,
    /// Queries that are due at the same instant.
    pub burst: u32,
    /// True if the sending threads wait in a busy loop.
    pub spin: bool,
    /// Cores of the tester's threads; empty: not pinned.
    pub tester_cores: Vec<u16>,
    /// Threads of the authority; 0: the tester's thread serves it. `None`: the run did not start the authority.
    pub authority_threads: Option<u16>,
    /// Cores of the authority's threads; empty: not pinned.
    pub authority_cores: Vec<u16>,
}

/// The real sockets, threads and cores of tester, device or authority, as the kernel reports them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Participant {
    /// UDP sockets that receive queries; of the tester, those that receive replies.
    pub sockets: u32,
    /// Smallest and largest receive buffer of these sockets, in octets as the kernel counts them: twice the size that a program
    /// asks for. 0: unknown.
    pub receive_buffer: (u64, u64),
    /// Of these sockets, those whose receive buffer the run raised, because the server had not asked for one of that size.
    pub raised: u32,
    /// True if the kernel may hand over several datagrams of such a socket together (UDP GRO); `None`: unknown.
    pub coalescing: Option<bool>,
    /// Other UDP sockets, towards upstream servers, at that moment: many servers open one for each query.
    pub other_sockets: u32,
    /// Smallest and largest receive buffer of those; 0: unknown.
    pub other_receive_buffer: (u64, u64),
    /// Threads.
    pub threads: u32,
    /// Cores that the threads may use, in the syntax of `taskset`; empty: unknown.
    pub cores: String,
}

/// The device under test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Name of the template, or `custom`.
    pub name: String,
    /// Version as the device reports it.
    pub version: String,
    /// The command line that started it; empty if it was already running.
    pub command: Vec<String>,
    /// Address of the device.
    pub address: String,
    /// Its cores, in the syntax of `taskset`; empty: all.
    pub cores: String,
    /// Its configuration files: name and text.
    pub files: BTreeMap<String, String>,
    /// The swept parameter and its values; `None` without a sweep.
    pub sweep: Option<(String, Vec<String>)>,
}

/// A host, as named facts: `kernel`, `processor`, `cores`, `memory`, `governor`, ...
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The facts.
    pub facts: BTreeMap<String, String>,
    /// Facts that make measurements on it doubtful.
    pub warnings: Vec<String>,
}

/// Result of the correctness check: some hundred names queried before all timing, and conformance cases if they were
/// requested.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Correctness {
    /// Number of queried names.
    pub names: u64,
    /// Number of right answers.
    pub valid: u64,
    /// Wrong answers by reason, including `lost` and `late`.
    pub invalid: BTreeMap<String, u64>,
    /// Conformance cases: passed, failed, skipped.
    pub conformance: Option<(u64, u64, u64)>,
    /// The failed cases, by ID.
    pub failed_cases: Vec<String>,
}

/// The certificate of RFC 8219 section 9.2.1: tester and authority without a device between them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SelfTest {
    /// The highest rate, in queries per second, that the tester passed within a quarter of the timeout.
    pub certified_qps: f64,
    /// The highest permitted rate for a device: `certified_qps / (2 * (1 + delta))`.
    pub device_qps: f64,
    /// The margin.
    pub delta: f64,
    /// A quarter of the timeout, in milliseconds.
    pub timeout_ms: u64,
    /// True if the certificate permits at least 1 query per second for a device. No rate above `device_qps` is tried.
    pub sufficient: bool,
}

/// Purpose of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The self-test.
    SelfTest,
    /// A step of the short search for the rate at which all repetitions begin. It counts in no result.
    Scout,
    /// A step of the search.
    #[default]
    Search,
    /// A repeated trial at a rate that failed.
    Confirm,
    /// A point of the curve of loss against rate.
    Curve,
}

/// A cell of the grid of RFC 8219 section 9.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The share of names with AAAA records, 0 to 1.
    pub aaaa_share: f64,
    /// Share of queries for names that the device should have cached, 0 to 1.
    pub cached_share: f64,
}

/// One trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Number of the trial in the run, from 0.
    pub number: u32,
    /// Its purpose.
    pub purpose: Purpose,
    /// Value of the swept parameter; empty without a sweep.
    pub sweep: String,
    /// The cell.
    pub cell: Cell,
    /// The repetition, from 0.
    pub repetition: u32,
    /// The rate in queries per second.
    pub rate_qps: f64,
    /// Start, UTC, RFC 3339.
    pub started: String,
    /// Number of its first name in the range.
    pub first_name: u64,
    /// Outcome of the load.
    pub outcome: Outcome,
    /// The authority's counters during the trial, by kind of answer; empty: not available.
    pub authority: BTreeMap<String, u64>,
    /// The device's resource use during the trial; `None` if the device runs elsewhere.
    pub device: Option<DeviceUse>,
    /// True if the device was started since the trial before and so had cached no names.
    #[serde(default)]
    pub fresh: bool,
}

impl Trial {
    /// True if the trial passed.
    pub fn passed(&self) -> bool {
        self.outcome.verdict == Verdict::Pass
    }
}

/// Resource use of a device during a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceUse {
    /// CPU time in user mode, in seconds.
    pub user_s: f64,
    /// CPU time in the kernel, in seconds.
    pub system_s: f64,
    /// Time that its threads were ready to run but had no core, in seconds: they have more work than cores, or other
    /// programs use the cores.
    #[serde(default)]
    pub waited_s: f64,
    /// Per thread: name, user and system seconds. Threads without CPU time are left out.
    pub threads: Vec<(String, f64, f64)>,
    /// Time that each of these threads was ready to run but had no core, in seconds.
    #[serde(default)]
    pub thread_waits_s: Vec<f64>,
    /// Cores that the threads may use according to the kernel, in the syntax of `taskset`; empty: unknown.
    #[serde(default)]
    pub allowed_cores: String,
    /// CPU time of other programs on these cores, and time that the hypervisor took from them, in seconds; `None`: unknown.
    #[serde(default)]
    pub others_s: Option<f64>,
    /// Resident memory at the end, in octets.
    pub resident: u64,
    /// The highest resident memory so far, in octets.
    pub resident_peak: u64,
    /// Context switches because a thread waited.
    pub voluntary_switches: u64,
    /// Context switches because a thread was preempted.
    pub involuntary_switches: u64,
    /// CPU time per valid reply, in microseconds.
    pub cpu_us_per_query: f64,
}

/// Result of one cell and one value of the sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// Value of the swept parameter; empty without a sweep.
    pub sweep: String,
    /// The cell.
    pub cell: Cell,
    /// Highest rate without loss in each repetition, strictly by RFC 8219, in queries per second.
    pub strict: Vec<f64>,
    /// Highest rate without loss in each repetition if a failure counts only after a second trial at that rate failed
    /// too.
    pub confirmed: Vec<f64>,
    /// Median and percentiles of the strict rates.
    pub summary: Summary,
    /// Median and percentiles of the confirmed rates.
    pub confirmed_summary: Summary,
    /// True if a strict search ended for a reason other than the device: at the highest permitted rate, at a rate
    /// that the tester could not send, or after too many trials. Then the true value is at least the result.
    pub censored: bool,
    /// Queries that the authority received per query of the tester; the expected value is `(1 - cached) * (2 -
    /// aaaa)`.
    pub upstream_per_query: f64,
    /// Share of cached names according to the authority's counters.
    pub achieved_cached_share: f64,
    /// Share of names with AAAA records according to the authority's counters.
    pub achieved_aaaa_share: f64,
    /// Trials of its searches that the tester limited. They were repeated, up to [`crate::search::TESTER_TRIES`] at a rate.
    #[serde(default)]
    pub tester_limited_trials: u32,
    /// Trials of its searches in which the device was starved ([`crate::starvation`]). They were repeated as well.
    #[serde(default)]
    pub starved_trials: u32,
    /// The device's CPU time per valid reply at the highest passed rate, in microseconds; the median.
    pub cpu_us_per_query: Option<f64>,
}

/// Statistics of RFC 8219 section 12 and of the papers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values.
    pub count: u32,
    /// The median; for an even number of values the mean of the middle two (RFC 2330 section 11.3).
    pub median: f64,
    /// The 1st percentile by RFC 2330 section 11.3; for up to 100 values this is the smallest value.
    pub p1: f64,
    /// The 99th percentile by RFC 2330 section 11.3; for fewer than 100 values this is the largest value.
    pub p99: f64,
    /// The mean.
    pub mean: f64,
    /// The sample standard deviation.
    pub deviation: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

/// A rule of RFC 8219 and its state in the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The section.
    pub section: String,
    /// The rule in short.
    pub rule: String,
    /// MUST, SHOULD, MAY, RECOMMENDED or described.
    pub level: String,
    /// The state of the rule.
    pub state: Kept,
    /// The evidence, or the reason of a violation.
    pub because: String,
}

/// State of a rule in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// The run followed the rule.
    Kept,
    /// The run violated the rule.
    NotKept,
    /// The rule does not apply to this run.
    NotApplicable,
    /// The record cannot show it: the user must check it.
    NotChecked,
}
