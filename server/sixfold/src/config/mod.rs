//! The configuration: a TOML file and the flags that override it, read into one checked [`Config`].
//!
//! [`load()`] reads and checks everything in one run and reports every error with its place ([`Report`]). A [`Config`]
//! is complete and consistent: it has the defaults, and no two of its values contradict each other.
//! [`Config::to_toml`] prints it as a file that gives the same configuration.
//!
//! Nothing here serves clients or knows how a query is answered; [`Config::settings`] hands the values to the engine.
//! The steps are `document` (TOML tables to a draft), `draft` (overrides, then checks over several values), `model` (the
//! result). Read `load.rs` first, then `document.rs`.

mod access;
pub mod address;
mod amount;
mod cache;
mod datapath;
mod ddr;
mod defaults;
mod dns64;
mod dnstap;
mod document;
mod draft;
mod engine_settings;
mod fields;
mod hidden_rules;
mod hosts_file;
pub mod limits;
mod load;
mod local;
mod model;
mod name;
mod notation;
mod overrides;
mod port_range;
mod print;
mod query_source;
mod record;
pub mod regular_file;
mod report;
mod resolv_conf;
mod rpz;
mod rpz_skipped;
mod secret_files;
mod source;
mod table;
#[cfg(test)]
mod tests;
mod tls;
mod upstream_tls;
mod warnings;
#[cfg(test)]
mod warnings_tests;
mod zone_entries;

pub use access::{Allow, Allowed, allowed, of_interfaces};
pub use address::{Network, endpoint, forwarder, prefix};
pub use amount::duration;
pub use defaults::{DEFAULT_CONTROL, DEFAULT_LISTEN, DEFAULT_METRICS, DEFAULT_PATH};
pub use hosts_file::parse as hosts_text;
pub use load::{Failure, Loaded, control_socket, load, load_again, parse};
pub use model::{
    BadRecords, Cache, Clients, Config, Datapath, Dns64, Format, Forwarders, Level, Limits, Local, Log,
    LogTarget, PolicyFile, Rpz, Rule, Server, Steer, Tls, Upstream, Zone,
};
pub use name::Name;
pub use notation::forgotten_brackets;
pub use overrides::Overrides;
pub use record::ConfiguredRecord;
pub use report::{Fault, Place, Problem, Report};
pub use rpz::zone as policy_zone;
pub use secret_files::warnings as secret_file_warnings;
pub use warnings::listens_for_more_than_local;
