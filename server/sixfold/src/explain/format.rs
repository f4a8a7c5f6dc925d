//! Words that the text form and the JSON form of an explanation share.

use crate::config::Config;
use engine::explain::{Attempt, End, LocalSource};
use engine::reasons::LocalReply;
use engine::settings::Network;
use std::net::Ipv6Addr;

/// Source of a reply: `upstream`, or the key of the configuration that has the data.
pub fn source(own: Option<LocalSource>, name: &[u8], config: &Config) -> &'static str {
    match own {
        None => "upstream",
        Some(LocalSource::Alias) => "dns64.ptr",
        Some(LocalSource::Data(LocalReply::Records)) => {
            let is_ours = config.local.records.iter().any(|record| record.record.owner[..] == *name);
            if is_ours { "local.records" } else { "local.hosts-file" }
        }
        Some(LocalSource::Data(LocalReply::Block)) => "filter.block",
        Some(LocalSource::Policy) => "filter.rpz",
    }
}

/// A time span in milliseconds.
pub fn milliseconds(span: engine::Span) -> f64 {
    span.as_micros() as f64 / 1e3
}

/// Result of a try: an RCODE, `truncated`, `unreachable` or `no_reply`.
pub fn outcome(attempt: &Attempt) -> String {
    match attempt.end {
        Some((End::Reply(rcode), _)) => rcode.to_string(),
        Some((End::Truncated, _)) => "truncated".into(),
        Some((End::Unreachable(_), _)) => "unreachable".into(),
        None => "no_reply".into(),
    }
}

/// A network as the configuration writes it.
pub fn network(network: &Network) -> String {
    format!("{}/{}", Ipv6Addr::from(network.address), network.mask.count_ones())
}
