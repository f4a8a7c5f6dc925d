//! Words that an explanation has as text and as JSON.

use crate::config::Config;
use engine::Counter;
use engine::explain::{End, Own, Try};
use engine::settings::Network;
use std::net::Ipv6Addr;

/// Where a reply came from, as the key of the configuration that has it.
pub fn source(own: Option<Own>, name: &[u8], config: &Config) -> &'static str {
    match own {
        None => "upstream",
        Some(Own::Alias) => "dns64.ptr",
        Some(Own::Counted(Counter::LocalRecords)) => {
            let is_ours = config.local.records.iter().any(|record| record.record.owner[..] == *name);
            if is_ours { "local.records" } else { "local.hosts-file" }
        }
        Some(Own::Counted(Counter::FilteredBlock)) => "filter.block",
        Some(Own::Counted(_)) => "filter.rpz",
    }
}

/// A span in milliseconds.
pub fn milliseconds(span: engine::Span) -> f64 {
    span.as_micros() as f64 / 1e3
}

/// A name in wire form as text.
pub fn name(wire: &[u8]) -> String {
    wire::Name::from_wire(wire).map_or_else(|| "?".into(), |name| name.to_string())
}

/// What came of a try: an RCODE, `truncated`, `unreachable` or `no_reply`.
pub fn outcome(it: &Try) -> String {
    match it.end {
        Some((End::Reply(rcode), _)) => rcode.to_string(),
        Some((End::Truncated, _)) => "truncated".into(),
        Some((End::Unreachable, _)) => "unreachable".into(),
        None => "no_reply".into(),
    }
}

/// A network as the configuration has it.
pub fn network(network: &Network) -> String {
    format!("{}/{}", Ipv6Addr::from(network.address), network.mask.count_ones())
}
