//! Record of a whole run: `run.json`, from which everything else in a bundle can be made again.

use crate::order::{Transport, Validity};
use crate::outcome::{Outcome, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the layout of `run.json`. It changes when a field changes its meaning or is removed.
pub const SCHEMA: u32 = 1;

/// Counter in [`Trial::authority`] of queries for AAAA records.
pub const ASKED_AAAA: &str = "asked_aaaa";
/// Counter in [`Trial::authority`] of queries for A records.
pub const ASKED_A: &str = "asked_a";

// Counters in [`Trial::authority`] of the form in which queries came over UDP.

/// Messages over UDP.
pub const DATAGRAMS: &str = "datagrams";
/// Receive calls that returned something.
pub const RECEIVES: &str = "receives";
/// Buffers that the kernel handed over: a datagram, or several (UDP GRO).
pub const BUFFERS: &str = "buffers";
/// Source ports in use within an interval of 100 ms, summed over the intervals.
pub const SOURCE_PORTS: &str = "source_ports";
/// Intervals with a query.
pub const PORT_INTERVALS: &str = "port_intervals";
/// CPU time of the authority's own threads, in microseconds; 0 if the tester's thread serves.
pub const CPU_US: &str = "cpu_us";

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
    /// Goals of the loss ratio beside zero loss, as shares of the queries, ascending.
    #[serde(default)]
    pub loss_goals: Vec<f64>,
    /// Names of the devices whose searches were taken in turns, this run's among them; empty: one device alone.
    #[serde(default)]
    pub turns: Vec<String>,
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
    /// True if the source ports take their turns in a pseudorandom order (RFC 4814).
    #[serde(default)]
    pub random_ports: bool,
    /// Cores of the tester's threads; empty: not pinned.
    pub tester_cores: Vec<u16>,
    /// Threads of the authority; 0: the tester's thread serves it. `None`: the run did not start the authority.
    pub authority_threads: Option<u16>,
    /// Cores of the authority's threads; empty: not pinned.
    pub authority_cores: Vec<u16>,
    /// Transport of the queries to the device.
    #[serde(default)]
    pub transport: Transport,
    /// Connections of each sending thread, for each source address; unused over UDP and with a connection for each query.
    #[serde(default)]
    pub connections: u16,
    /// Hosts that send, each an equal part of a load.
    #[serde(default = "one_host")]
    pub hosts: u16,
}

/// A record of an earlier release has no such key.
fn one_host() -> u16 {
    1
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

/// Certificate of the authority for one result: the self-test of RFC 8219 section 9.2.1 again, with the traffic that the
/// authority received from the device. The tester takes the place of the device: with as many source ports and queries at a
/// time, and the authority gives as many negative answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// The highest rate of the device in the result, r, in queries per second.
    pub device_qps: f64,
    /// The rate that the self-test must pass: 2 * (1 + delta) * r.
    pub required_qps: f64,
    /// The highest rate that it passed; 0 if it passed none, or in a record of an earlier release.
    #[serde(default)]
    pub passed_qps: f64,
    /// The certified rate: `passed_qps`, times [`Certificate::cost_ratio`] if a query cost the authority less CPU time in the
    /// self-test than behind the device.
    pub certified_qps: f64,
    /// True if `certified_qps` is at least `required_qps`.
    pub sufficient: bool,
    /// True if no higher rate was tried: the authority may sustain more.
    pub censored: bool,
    /// A quarter of the timeout of a trial, in milliseconds: the timeout of the self-test.
    pub timeout_ms: u64,
    /// Share of the authority's answers that have an address, 0 to 1: as behind the device, if the run started the authority.
    pub with_address: f64,
    /// The form of the tester's traffic.
    pub form: TrafficForm,
    /// The traffic that the authority received from the device, in the trials on which the result rests; `None`: there are no
    /// counters.
    pub behind_device: Option<Upstream>,
    /// The traffic in the self-test, at the rate nearest to that behind the device.
    pub in_self_test: Option<Upstream>,
}

impl Certificate {
    /// Cost of a query for the authority in the self-test relative to that behind the device; 1 is equal. `None` if one of
    /// them is not known.
    pub fn cost_ratio(&self) -> Option<f64> {
        let cpu_us = |of: Option<Upstream>| of.and_then(|it| it.cpu_us).filter(|cost| *cost > 0.0);
        Some(cpu_us(self.in_self_test)? / cpu_us(self.behind_device)?)
    }

    /// The certificate for a rate that the self-test has passed: no more than the authority would sustain if each query cost what it
    /// cost behind the device.
    #[must_use]
    pub fn passed_at(self, passed_qps: f64) -> Certificate {
        let certified_qps = passed_qps * self.cost_ratio().map_or(1.0, |ratio| ratio.min(1.0));
        Certificate { passed_qps, certified_qps, sufficient: certified_qps >= self.required_qps, ..self }
    }
}

/// Form of the tester's traffic in a [`Certificate`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficForm {
    /// Source ports of each sending thread.
    pub ports: u16,
    /// Consecutive queries from one port.
    pub group: u16,
    /// Queries that are due at the same instant.
    pub burst: u32,
}

/// Traffic that an authority received over UDP, from its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Upstream {
    /// Queries per second.
    pub rate_qps: f64,
    /// Queries that came with one receive call.
    pub per_receive: f64,
    /// Queries in one buffer: more than 1 only if the kernel handed over several datagrams together (UDP GRO).
    pub per_buffer: f64,
    /// Source ports in use within 100 ms.
    pub ports: f64,
    /// CPU time of the authority for each query, in microseconds; `None` if it has no thread of its own.
    pub cpu_us: Option<f64>,
    /// The rate at which its threads would be busy all the time at this cost, in queries per second; `None` as above.
    pub full_qps: Option<f64>,
}

/// Purpose of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The self-test.
    SelfTest,
    /// The self-test with the traffic of a cell ([`Certificate`]).
    CellSelfTest,
    /// A step of the short search for the rate at which all repetitions begin. It counts in no result.
    Scout,
    /// A step of the search.
    #[default]
    Search,
    /// A repeated trial at a rate that failed.
    Confirm,
    /// A step of the search for the rates at which a goal of the loss ratio is met.
    LossGoal,
    /// A point of the curve of loss against rate.
    Curve,
}

impl Purpose {
    /// True for trials without the device.
    pub fn is_self_test(self) -> bool {
        matches!(self, Purpose::SelfTest | Purpose::CellSelfTest)
    }
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
    /// Certificate of the authority for this result; `None` in records without it, and if the device passed at no rate.
    #[serde(default)]
    pub certificate: Option<Certificate>,
    /// Results for the goals of the loss ratio, in the order of [`Settings::loss_goals`].
    #[serde(default)]
    pub loss_goals: Vec<LossGoal>,
}

impl CellResult {
    /// Computing-power-relative performance, by the name that Lencse and Kadobayashi gave it (Computer Communications 127,
    /// 2018): here valid replies for each second of CPU time that the device used, at the highest rate without loss. This is its
    /// rate divided by the number of cores that it kept busy. `None` if the device's CPU time is not known.
    pub fn replies_per_cpu_second(&self) -> Option<f64> {
        self.cpu_us_per_query.filter(|cost| *cost > 0.0).map(|cost| 1e6 / cost)
    }
}

/// Result of one cell for one goal of the loss ratio.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LossGoal {
    /// Share of queries, 0 to 1, that may get no valid reply in time.
    pub goal: f64,
    /// The highest rate within the goal in each repetition, in queries per second.
    pub rates: Vec<f64>,
    /// Median and percentiles of these rates.
    pub summary: Summary,
    /// True if the device did not exceed the goal in some repetition: the true value is at least the result.
    pub censored: bool,
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
