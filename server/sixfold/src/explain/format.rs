//! Words that the text form and the JSON form of an explanation share.

use crate::config::Config;
use engine::explain::{Attempt, End, LocalSource, LookupReport};
use engine::reasons::LocalReply;
use engine::settings::{Dnssec, Network};
use std::net::Ipv6Addr;
use wire::{Rcode, ede};

/// Source of the reply of a lookup: `upstream`, or the key of the configuration that has the data or, with validation, refuses them.
pub fn source(lookup: &LookupReport, config: &Config) -> &'static str {
    match lookup.own {
        None if config.dns64.dnssec == Dnssec::Validate && is_refusal(lookup) => "dns64.dnssec",
        None => "upstream",
        Some(LocalSource::Alias) => "dns64.ptr",
        Some(LocalSource::Data(LocalReply::Records)) => {
            let is_ours =
                config.local.records.iter().any(|record| record.record.owner[..] == lookup.name[..]);
            if is_ours { "local.records" } else { "local.hosts-file" }
        }
        Some(LocalSource::Data(LocalReply::Block)) => "filter.block",
        Some(LocalSource::Policy) => "filter.rpz",
    }
}

/// True if validation put a failure in the place of a reply: it alone tells reasons, as it takes those of upstreams away.
fn is_refusal(lookup: &LookupReport) -> bool {
    lookup.replied().is_some_and(|reply| {
        let has_reason =
            || reply.opt().is_some_and(|opt| opt.ede().any(|(code, _)| code != ede::CACHED_ERROR));
        reply.rcode() == Rcode::SERVFAIL && has_reason()
    })
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
