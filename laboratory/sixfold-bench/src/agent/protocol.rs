//! Protocol between `run` and the agents: one JSON object a line, orders on the agent's standard input, replies on its
//! standard output. So an agent can be a child on this host, or a process that a command prefix leads to: `ssh HOST`,
//! `ip netns exec NAME`.
//!
//! One order is carried out at a time, and each has one final reply. Only a load has replies before that
//! ([`Reply::Progress`]). Only [`Order::Abort`] may be sent while another order (a load) is being carried out; it has
//! no reply of its own.

use crate::device::{Recipe, Settings};
use crate::process::DeviceLog;
use crate::usage::Usage;
use measure::order::{Authority, Load};
use measure::outcome::{Outcome, Second};
use measure::run::{Environment, Participant};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Version of the protocol. Both sides must have the same version: the greeting refuses an agent of another release.
pub const VERSION: u32 = 2;

/// Order to an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum Order {
    /// Greeting, which must be the first order.
    Hello {
        /// [`VERSION`] of the client.
        protocol: u32,
    },
    /// Report the facts of the host.
    Environment {
        /// Addresses that the measurement uses. The agent describes the interfaces that lead to them.
        addresses: Vec<IpAddr>,
    },
    /// Start the authority with this zone, which replaces an earlier one.
    Authority(Authority),
    /// Report the number of the authority's answers so far, by kind.
    Counters,
    /// Run a load on a server.
    Load(Load),
    /// Abort the load that runs.
    Abort,
    /// Start a device.
    Start(Start),
    /// Attach to a device that runs already.
    Attach(Target),
    /// Report the resources that a device has used so far.
    Usage {
        /// Number of the device.
        device: u32,
    },
    /// Report the UDP sockets, threads and cores of a device, or of the agent itself with its authority.
    Sockets {
        /// Number of the device; `None`: the agent itself.
        device: Option<u32>,
        /// Port at which its listening sockets are.
        port: u16,
        /// True if smaller receive buffers of these are raised to [`crate::sockets::WANTED`].
        raise: bool,
    },
    /// Report the last output of a device, and whether it still runs.
    Log {
        /// Number of the device.
        device: u32,
    },
    /// End a device: SIGTERM, then SIGKILL.
    Stop {
        /// Number of the device.
        device: u32,
        /// Time between the two signals, in milliseconds.
        grace_ms: u64,
    },
    /// End the agent and everything that it started.
    Quit,
}

impl Order {
    /// Name of the order in messages.
    pub fn name(&self) -> String {
        let tagged = serde_json::to_value(self).unwrap_or_default();
        tagged["order"].as_str().unwrap_or("order").to_owned()
    }
}

/// Reply of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    /// To [`Order::Hello`].
    Hello(Greeting),
    /// To [`Order::Environment`].
    Environment(Environment),
    /// To [`Order::Authority`].
    Serving {
        /// The addresses with the chosen ports, in the order of [`Authority::listen`].
        addresses: Vec<SocketAddr>,
    },
    /// To [`Order::Counters`].
    Counters {
        /// Answers by kind.
        counts: BTreeMap<String, u64>,
    },
    /// Sent about once a second while a load runs.
    Progress(Progress),
    /// To [`Order::Load`].
    Outcome(Box<Outcome>),
    /// To [`Order::Load`] after an [`Order::Abort`].
    Aborted,
    /// To [`Order::Start`].
    Started(Started),
    /// To [`Order::Attach`].
    Attached(Attached),
    /// To [`Order::Usage`].
    Usage(Usage),
    /// To [`Order::Sockets`].
    Sockets(Participant),
    /// To [`Order::Log`] and [`Order::Stop`].
    Log(DeviceLog),
    /// To [`Order::Quit`].
    Done,
    /// To any order that the agent could not carry out.
    Refused {
        /// Problem, cause and remedy.
        why: String,
    },
}

/// Identity of the agent and its host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// Its [`VERSION`].
    pub protocol: u32,
    /// Version of the program.
    pub version: String,
    /// Commit that it was built from.
    pub commit: String,
    /// The host's name.
    pub host: String,
    /// Number of processors that the agent may use.
    pub cores: u32,
    /// Numbers of these processors.
    #[serde(default)]
    pub allowed: Vec<u16>,
    /// ID of the machine's boot. It is equal for two agents on one machine, even if their host names differ.
    #[serde(default)]
    pub machine: String,
}

/// Progress of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Time since the load began, warm-up included, in seconds.
    pub elapsed_s: f64,
    /// Counts since the last progress.
    pub counted: Second,
}

/// A device that is to be started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Template or command line.
    pub recipe: Recipe,
    /// Settings that its configuration is made from.
    pub settings: Settings,
    /// Its cores, in the syntax of `taskset -c`; empty: all.
    pub cores: String,
    /// Environment variables, in addition to the agent's own.
    pub environment: BTreeMap<String, String>,
}

/// A device that has been started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// Its number, for later orders.
    pub device: u32,
    /// Process ID of its first process.
    pub pid: u32,
    /// The address on which it listens, or will listen in a moment.
    pub listen: SocketAddr,
    /// Version that the program reports; empty for a user's own command line.
    pub version: String,
    /// The command line, with placeholders filled.
    pub command: Vec<String>,
    /// Its files, with placeholders filled: name and text.
    pub files: BTreeMap<String, String>,
}

/// Key by which a running device is found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "by")]
pub enum Target {
    /// The ID of its first process.
    Pid {
        /// Process ID.
        pid: u32,
    },
    /// The name of its processes, as `ps -e` shows it.
    Name {
        /// Process name.
        name: String,
    },
}

/// A running device that the agent has attached to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// Its number, for later orders.
    pub device: u32,
    /// Its first processes.
    pub pids: Vec<u32>,
    /// The command line of the first of them.
    pub command: Vec<String>,
}

/// Error text for an agent of another release.
pub(crate) fn version_mismatch(protocol: u32, version: &str) -> String {
    format!(
        "its agent protocol has version {protocol} (sixfold-bench {version}), that of this program version {VERSION} \
         (sixfold-bench {}); install the same release on both hosts",
        env!("CARGO_PKG_VERSION")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Serialize + for<'a> Deserialize<'a> + PartialEq + std::fmt::Debug>(value: T) -> String {
        let line = serde_json::to_string(&value).unwrap();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(serde_json::from_str::<T>(&line).unwrap(), value);
        line
    }

    fn load() -> Load {
        let pace = measure::order::Pace::Open { rate_qps: 1234.5, burst: 1 };
        let expect = measure::order::Expectation {
            aaaa_share: 0.25,
            aaaa_seed: u64::MAX,
            ..measure::order::Expectation::synthesized("dns64perf.test", ("64:ff9b::".parse().unwrap(), 96))
        };
        let (server, names) = ("[::1]:53".parse().unwrap(), "10.0.0.0/8".parse().unwrap());
        let load = Load::of_new_names(server, pace, std::time::Duration::from_secs(60), names, expect);
        Load { first_name: u64::from(u32::MAX) + 7, seed: u64::MAX - 1, ..load }
    }

    #[test]
    fn orders_travel_as_one_line_and_come_out_as_they_went_in() {
        let line = round_trip(Order::Hello { protocol: 7 });
        assert_eq!(line, r#"{"order":"hello","protocol":7}"#);
        round_trip(Order::Environment { addresses: vec!["::1".parse().unwrap()] });
        round_trip(Order::Load(load()));
        round_trip(Order::Abort);
        round_trip(Order::Sockets { device: Some(3), port: 53, raise: true });
        round_trip(Order::Attach(Target::Name { name: "a \"b\"\n".into() }));
        round_trip(Order::Stop { device: 3, grace_ms: 500 });
        round_trip(Order::Start(Start {
            recipe: Recipe::Custom {
                command: vec!["x y".into()],
                files: [("a".into(), "b\nc".into())].into(),
            },
            settings: Settings::example(),
            cores: "0,1".into(),
            environment: [("GOMAXPROCS".into(), "1".into())].into(),
        }));
    }

    #[test]
    fn replies_travel_as_one_line_and_come_out_as_they_went_in() {
        round_trip(Reply::Done);
        round_trip(Reply::Refused { why: "two\nlines".into() });
        round_trip(Reply::Counters { counts: [("reply".into(), u64::MAX)].into() });
        round_trip(Reply::Usage(Usage::default()));
        let usage = Usage::read(&[std::process::id()]);
        assert!(!usage.free_ticks.is_empty());
        round_trip(Reply::Usage(usage));
        round_trip(Reply::Sockets(Participant { receive_buffer: (1, 2), ..Participant::default() }));
        let mut outcome = Outcome { sent: 5, ..Outcome::default() };
        outcome.invalid.insert("wrong prefix".into(), 2);
        outcome.latency_us.actual.histogram = vec![(1, 2), (u64::MAX, 3)];
        round_trip(Reply::Outcome(Box::new(outcome)));
    }
}
