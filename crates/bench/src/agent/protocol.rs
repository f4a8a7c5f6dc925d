//! What `run` and the agents say to each other: one JSON object a line, orders on the agent's standard input, replies on
//! its standard output. So an agent can be a child on this host, or anything that a command prefix leads to: `ssh HOST`,
//! `ip netns exec NAME`.
//!
//! One order at a time; each has one final reply. Only a load also has replies before it ([`Reply::Progress`]), and only
//! [`Order::Abort`] may be given while another order (a load) is being carried out; it has no reply of its own.

use crate::device::{Recipe, Settings};
use crate::process::DeviceLog;
use crate::usage::Usage;
use measure::order::{Authority, Load};
use measure::outcome::{Outcome, Second};
use measure::run::Environment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// The version of the protocol. Both sides must have the same: an agent of another release is refused in the greeting.
pub const VERSION: u32 = 1;

/// What an agent is told to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum Order {
    /// Must be the first.
    Hello {
        /// [`VERSION`] of the one who asks.
        protocol: u32,
    },
    /// The facts of the host.
    Environment {
        /// Addresses that the measurement uses; the interfaces that they lead to are described.
        addresses: Vec<IpAddr>,
    },
    /// Serve this zone; takes the place of the one that was served before.
    Authority(Authority),
    /// Stop serving.
    StopAuthority,
    /// What the authority has answered so far, by kind.
    Counters,
    /// Load a server.
    Load(Load),
    /// End the load that is going on.
    Abort,
    /// Start a device.
    Start(Start),
    /// Watch a device that runs already.
    Attach(Target),
    /// What a device has used so far.
    Usage {
        /// Its number.
        device: u32,
    },
    /// The last that a device said, and whether it still runs.
    Log {
        /// Its number.
        device: u32,
    },
    /// End a device: SIGTERM, then SIGKILL.
    Stop {
        /// Its number.
        device: u32,
        /// Time between the two signals, in milliseconds.
        grace_ms: u64,
    },
    /// End everything that was started, and the agent.
    Quit,
}

impl Order {
    /// As messages call it.
    pub fn name(&self) -> &'static str {
        match self {
            Order::Hello { .. } => "hello",
            Order::Environment { .. } => "environment",
            Order::Authority(_) => "authority",
            Order::StopAuthority => "stop-authority",
            Order::Counters => "counters",
            Order::Load(_) => "load",
            Order::Abort => "abort",
            Order::Start(_) => "start",
            Order::Attach(_) => "attach",
            Order::Usage { .. } => "usage",
            Order::Log { .. } => "log",
            Order::Stop { .. } => "stop",
            Order::Quit => "quit",
        }
    }
}

/// What an agent says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    /// To [`Order::Hello`].
    Hello(Greeting),
    /// To [`Order::Environment`].
    Environment(Environment),
    /// To [`Order::Authority`].
    Serving {
        /// The addresses with the ports that were chosen, in the order of [`Authority::listen`].
        addresses: Vec<SocketAddr>,
    },
    /// To [`Order::Counters`].
    Counters {
        /// Answers by kind.
        counts: BTreeMap<String, u64>,
    },
    /// About once a second while a load goes on.
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
    /// To [`Order::Log`] and [`Order::Stop`].
    Log(DeviceLog),
    /// To [`Order::StopAuthority`] and [`Order::Quit`].
    Done,
    /// To any order that could not be carried out.
    Refused {
        /// What, why, and the remedy.
        why: String,
    },
}

/// Who the agent is.
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
    /// How many processors the agent may use.
    pub cores: u32,
    /// Their numbers.
    #[serde(default)]
    pub allowed: Vec<u16>,
    /// What two agents on one machine have in common, whatever they are called: the ID of its boot.
    #[serde(default)]
    pub machine: String,
}

/// How far a load has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Time since the load began, warm-up included, in seconds.
    pub elapsed_s: f64,
    /// What was counted since the last progress.
    pub counted: Second,
}

/// A device that is to be started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// What it is.
    pub recipe: Recipe,
    /// What it is told.
    pub settings: Settings,
    /// Its cores, as `taskset -c` takes them; empty: all.
    pub cores: String,
    /// Environment variables, beside the agent's own.
    pub environment: BTreeMap<String, String>,
}

/// A device that has been started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// Its number, for later orders.
    pub device: u32,
    /// Its first process.
    pub pid: u32,
    /// Where it listens, or will in a moment.
    pub listen: SocketAddr,
    /// What it says of its version; empty for a command line of the user's.
    pub version: String,
    /// The command line, placeholders filled.
    pub command: Vec<String>,
    /// Its files, placeholders filled: name and text.
    pub files: BTreeMap<String, String>,
}

/// How a device that runs already is found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "by")]
pub enum Target {
    /// By the number of its first process.
    Pid {
        /// The number.
        pid: u32,
    },
    /// By the name of its processes, as `ps -e` shows it.
    Name {
        /// The name.
        name: String,
    },
}

/// A device that ran already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// Its number, for later orders.
    pub device: u32,
    /// Its first processes.
    pub pids: Vec<u32>,
    /// The command line of the first of them.
    pub command: Vec<String>,
}

/// The text for an agent of another release.
pub(crate) fn version_mismatch(protocol: u32, version: &str) -> String {
    format!(
        "it speaks version {protocol} of the agents' protocol (sixfold-bench {version}), this program version {VERSION} \
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
        Load {
            server: "[::1]:53".parse().unwrap(),
            pace: measure::order::Pace::Open { rate_qps: 1234.5, burst: 1 },
            duration_ms: 60_000,
            warm_up_ms: 0,
            timeout_ms: 1000,
            names: "10.0.0.0/8".parse().unwrap(),
            first_name: u64::from(u32::MAX) + 7,
            expect: measure::order::Expectation {
                zone: "dns64perf.test".into(),
                prefixes: vec![("64:ff9b::".parse().unwrap(), 96)],
                addresses: 1,
                cname_depth: 0,
                aaaa_share: 0.25,
                aaaa_seed: u64::MAX,
                ttl: (0, 60),
            },
            cached_share: 0.0,
            lanes: Default::default(),
            seed: u64::MAX - 1,
        }
    }

    #[test]
    fn orders_travel_as_one_line_and_come_out_as_they_went_in() {
        let line = round_trip(Order::Hello { protocol: 7 });
        assert_eq!(line, r#"{"order":"hello","protocol":7}"#);
        round_trip(Order::Environment { addresses: vec!["::1".parse().unwrap()] });
        round_trip(Order::Load(load()));
        round_trip(Order::Abort);
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
        let mut outcome = Outcome { sent: 5, ..Outcome::default() };
        outcome.invalid.insert("wrong prefix".into(), 2);
        outcome.latency_us.actual.histogram = vec![(1, 2), (u64::MAX, 3)];
        round_trip(Reply::Outcome(Box::new(outcome)));
    }
}
