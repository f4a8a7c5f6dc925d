//! Player of conformance cases against a DNS64 server. A case is a black-box experiment: a configuration, a scripted
//! upstream, some queries and the expected answers. `conformance/README.md` describes the cases.
//!
//! The way of a case through the files: [`case`] reads a line, [`configuration`] writes the TOML file,
//! [`server_process`] starts the server, [`upstream`] answers the server's queries by [`script`] and [`reply`],
//! [`client`] sends the client's query, [`expect`] compares the answer, [`play`] connects these, [`run`] plays many
//! cases at once, and [`report`] writes the results. Read [`play`] first.
//!
//! [`target`] is the server under test: ours, another one, or one that runs already. [`config_demands`] translates a
//! case for other servers, [`choice`] knows where an RFC leaves a choice, [`score`] counts results by [`citation`] and by
//! [`requirement`], [`known_failures`] lists cases that Sixfold fails, [`namespace`] provides client addresses that the machine does not have, and [`suite`] has the cases
//! themselves. [`differential`] compares servers with each other instead of with expectations.
//!
//! This crate shares no code with the server under test: the `domain` library reads and writes the messages. The configuration of other
//! servers is known to `servers`.

#![forbid(unsafe_code)]

pub mod case;
pub mod choice;
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
pub mod requirement;
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
pub use known_failures::KnownFailures;
pub use report::{Outcome, Played};
pub use requirement::Requirements;
pub use run::Runner;
pub use score::Score;
pub use server_process::Program;
pub use target::{ForeignServer, RunningServer, Target};
