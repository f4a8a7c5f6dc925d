//! DNS servers as laboratory and tests start them: a recipe for each, and one control of processes.
//!
//! A [`Task`] says in plain terms what a server is to do: where it listens, whom it asks, DNS64, validation, what a case demands. The
//! recipe of a server ([`Recipe`], such as `unbound.rs`) is the one place in Rust that knows the syntax of its configuration, its command
//! line, and when it is ready: task in, files and a command line out ([`LaunchPlan`]), without I/O. [`authority`] does so for authoritative servers.
//! [`program`] finds programs and asks for their version; [`process`] starts them, waits until they are ready, and ends them. First files
//! to read: `task.rs`, then one recipe.

#![forbid(unsafe_code)]

pub mod authority;
mod bind;
mod catalog;
mod coredns;
mod demands;
mod dnsdist;
mod dnsproxy;
mod folder;
mod knot_resolver;
mod lines;
mod powerdns;
pub mod process;
pub mod program;
mod recipe;
mod sixfold;
mod task;
mod unbound;

pub use catalog::{NAMES, RECIPES, find};
pub use demands::{Demands, Ipv4Mapping, Lack, PolicyZone, no_translation};
pub use folder::WorkingFolder;
pub use process::{Output, Process, Ready};
pub use program::ProgramError;
pub use recipe::{LaunchPlan, Place, Recipe};
pub use task::{Anchors, CERTIFICATE_FILE, Encrypted, KEY_FILE, Limits, Task, TrustAnchor, Validation};

pub use bind::RECIPE as BIND;
pub use coredns::RECIPE as COREDNS;
pub use dnsdist::RECIPE as DNSDIST;
pub use knot_resolver::RECIPE as KNOT_RESOLVER;
pub use powerdns::RECIPE as POWERDNS;
pub use sixfold::RECIPE as SIXFOLD;
pub use unbound::RECIPE as UNBOUND;
