//! The configuration: a TOML file and the flags that override it, read into one checked [`Config`].
//!
//! [`load()`] reads and checks everything in one run and reports every error with its place ([`Report`]). A [`Config`]
//! is complete and consistent: it has the defaults, and no two of its values contradict each other.
//! [`Config::to_toml`] prints it as a file that gives the same configuration.
//!
//! Nothing here serves clients or knows how a query is answered; [`Config::settings`] hands the values to the engine.
//! A key is an entry of the table in `keys.rs`: its default, its form (`form.rs`, `values.rs`), and whether a reload takes it. `document`
//! reads the tables of the file by it, `checks` applies the flags and checks what depends on several keys. Read `load.rs` first, then
//! `keys.rs`.

mod access;
pub mod address;
mod address_syntax;
mod checks;
mod ddr;
mod discovered;
mod dnstap;
mod document;
mod engine_settings;
mod form;
mod forwarder;
mod gateway;
mod hosts_file;
mod key;
mod keys;
pub mod limits;
mod load;
mod local;
mod mappings_file;
mod model;
mod name;
mod network;
mod overrides;
mod port_range;
mod prefix_entry;
mod probe;
mod query_source;
mod record;
pub mod regular_file;
mod report;
mod resolv_conf;
mod rpz;
mod rpz_skipped;
mod secret_files;
mod shadowed_rules;
mod source;
mod table;
#[cfg(test)]
mod tests;
mod tls;
mod trust_anchors;
mod units;
mod upstream_tls;
mod values;
mod warnings;
#[cfg(test)]
mod warnings_tests;
mod zone_entries;

pub use access::{Allow, Allowed, allowed, of_interfaces};
pub use address::{Network, endpoint, forwarder, prefix};
pub use address_syntax::forgotten_brackets;
pub use discovered::Found;
pub use document::{DescribedKey, described};
pub use engine_settings::anchor_of_engine;
pub use forwarder::{Forwarder, Forwarders};
pub use hosts_file::parse as hosts_text;
pub use key::Effect;
pub use keys::{
    Cache, Config, Control, DEFAULT_CONTROL, DEFAULT_LISTEN, DEFAULT_METRICS, DEFAULT_PATH, Dns64, Edns,
    Filter, Gateway, Limits, Local, Log, Metrics, NetworkInterface, Rule, Server, Surroundings, Tls,
    Upstream, Zone,
};
pub use load::{Failure, Loaded, Located, control_socket, load, load_again, load_with_places, parse};
pub use mappings_file::parse as mappings_text;
pub use model::{BadRecords, Datapath, Format, Level, LogTarget, PolicyFile, Steer};
pub use name::Name;
pub use overrides::Overrides;
pub use port_range::PortRange;
pub use prefix_entry::{PrefixEntry, is_same, prefixes};
pub use record::ConfiguredRecord;
pub use report::{Fault, Place, Places, Problem, Report};
pub use resolv_conf::forwarders as system_resolvers;
pub use rpz::zone as policy_zone;
pub use secret_files::warnings as secret_file_warnings;
pub use units::duration;
pub use warnings::listens_for_more_than_local;
