//! Plays conformance cases against a DNS64 server: black-box experiments with one configuration, a scripted
//! upstream, some questions and what must come back. `conformance/README.md` describes the cases.
//!
//! The way of a case, from file to file: [`case`] reads a line, [`configuration`] writes the TOML file,
//! [`device`] starts the server, [`upstream`] answers it as [`script`] and [`reply`] say, [`client`] asks,
//! [`expect`] judges, [`play`] puts these together, [`run`] plays many cases at once and [`report`] sums up.
//! [`namespace`] gives cases the client addresses that the machine does not have.
//!
//! Nothing here is shared with the server that is tested: messages are read and written by the `domain` library.

#![forbid(unsafe_code)]

pub mod case;
pub mod client;
pub mod configuration;
pub mod device;
pub mod expect;
pub mod later;
pub mod limits;
pub mod message;
pub mod namespace;
pub mod play;
pub mod query;
pub mod record;
pub mod reply;
pub mod report;
pub mod rrset;
pub mod run;
pub mod script;
pub mod upstream;
pub mod words;

pub use case::{Case, Level};
pub use device::Program;
pub use later::Later;
pub use report::{Outcome, Played, Summary};
pub use run::Runner;
