//! Plays conformance cases against a DNS64 server: black-box experiments with one configuration, a scripted
//! upstream, some questions and what must come back. `conformance/README.md` describes the cases.
//!
//! The way of a case, from file to file: [`case`] reads a line, [`configuration`] writes the TOML file,
//! [`server_process`] starts the server, [`upstream`] answers it as [`script`] and [`reply`] say, [`client`] asks,
//! [`expect`] judges, [`play`] puts these together, [`run`] plays many cases at once and [`report`] sums up.
//! [`differential`] compares servers with each other instead of with expectations.
//! [`namespace`] gives cases the client addresses that the machine does not have. [`target`] is what can be tested besides
//! our own server, for which [`config_demands`] says what a case asks of a configuration; [`score`] counts by [`citation`];
//! [`suite`] has the cases themselves.
//!
//! Nothing here is shared with the server that is tested: messages are read and written by the `domain` library.

#![forbid(unsafe_code)]

pub mod case;
pub mod citation;
pub mod client;
pub mod config_demands;
pub mod configuration;
pub mod differential;
pub mod expect;
pub mod json;
pub mod known_failures;
pub mod limits;
pub mod message;
pub mod namespace;
pub mod play;
pub mod query;
pub mod record;
pub mod record_tokens;
pub mod reply;
pub mod report;
pub mod rrset;
pub mod run;
pub mod score;
pub mod script;
pub mod server_process;
pub mod suite;
pub mod target;
pub mod upstream;

pub use case::{Case, Level};
pub use citation::Citation;
pub use config_demands::ConfigDemands;
pub use known_failures::KnownFailures;
pub use report::{Outcome, Played, Summary};
pub use run::Runner;
pub use score::Score;
pub use server_process::{Launch, Program};
pub use target::{ForeignServer, RunningServer, Target};
