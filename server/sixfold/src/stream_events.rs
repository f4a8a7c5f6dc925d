//! Lines of the log about what the workers learned of upstreams: limits of connections, and letters that do not come back.
//!
//! Each limit is said once per upstream and process. The metrics count how often it was learned.

use crate::log_line::Line;
use engine::upstream::Server;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use tracing::Level;

/// State of the connections to one upstream, in one worker or in all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    /// Answers after which the upstream closes a connection.
    questions: Option<u32>,
    /// Milliseconds for which an idle connection is used; none: no limit was learned.
    idle_ms: Option<u64>,
    /// It answers one query of a connection at a time.
    one_at_a_time: bool,
    /// It changes the letters of questions.
    in_lower_case: bool,
}

impl Streams {
    /// Reads the state of one worker.
    pub fn of(server: &Server) -> Streams {
        let limits = &server.connection_policy;
        Streams {
            questions: limits.questions(),
            idle_ms: limits.learned_idle().map(|idle| idle.as_micros() / 1_000),
            one_at_a_time: limits.is_one_at_a_time(),
            in_lower_case: server.is_asked_in_lower_case(datapath::now()),
        }
    }

    fn join(self, other: Streams) -> Streams {
        Streams {
            questions: self.questions.or(other.questions),
            idle_ms: self.idle_ms.or(other.idle_ms),
            one_at_a_time: self.one_at_a_time || other.one_at_a_time,
            in_lower_case: self.in_lower_case || other.in_lower_case,
        }
    }
}

/// State of each upstream as the log has told it.
#[derive(Default)]
pub struct StreamEvents(BTreeMap<SocketAddr, Streams>);

impl StreamEvents {
    /// The lines for what is new. `seen` has the states of all workers that respond.
    pub fn lines(&mut self, seen: impl Iterator<Item = (SocketAddr, Streams)>) -> Vec<Line> {
        let mut all: BTreeMap<SocketAddr, Streams> = BTreeMap::new();
        for (address, streams) in seen {
            let known = all.entry(address).or_default();
            *known = known.join(streams);
        }
        if all.is_empty() {
            return Vec::new();
        }
        self.0.retain(|address, _| all.contains_key(address));
        let mut lines = Vec::new();
        for (address, new) in all {
            let said = self.0.entry(address).or_default();
            let line = |line| Line { upstream: Some(address.to_string()), ..line };
            if new.in_lower_case && !said.in_lower_case {
                let text = format!(
                    "upstream {address} changes the letters of questions: it is asked in lower case, so mixed letters do not protect its replies; \
                     use a forwarder that keeps them, or TCP or TLS"
                );
                lines.push(line(Line::new(Level::INFO, "upstream_letter_case", text)));
            }
            let mut say = |text: String| {
                let text = format!("upstream {address} {text}");
                lines.push(line(Line::new(Level::INFO, "upstream_connections", text)));
            };
            if let Some(count) = new.questions.filter(|_| said.questions.is_none()) {
                say(format!(
                    "closes connections after {count} answers; Sixfold now sends at most {count} queries over each"
                ));
            }
            if let Some(ms) = new.idle_ms.filter(|_| said.idle_ms.is_none()) {
                say(format!(
                    "closes idle connections early; Sixfold now closes them first, after {ms} ms without a query"
                ));
            }
            if new.one_at_a_time && !said.one_at_a_time {
                say("answers one query at a time on a connection; Sixfold now opens several connections"
                    .to_owned());
            }
            *said = said.join(new);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_said_once() {
        let address: SocketAddr = "192.0.2.53:53".parse().unwrap();
        let mut events = StreamEvents::default();
        let mut lines = |streams: [Streams; 2]| {
            let lines = events.lines(streams.into_iter().map(|one| (address, one)));
            lines.into_iter().map(|line| line.text).collect::<Vec<_>>()
        };
        let nothing = Streams::default();
        assert!(lines([nothing; 2]).is_empty());
        let limited = Streams { questions: Some(7), idle_ms: Some(1_500), one_at_a_time: true, ..nothing };
        assert_eq!(
            lines([nothing, limited]),
            [
                "upstream 192.0.2.53:53 closes connections after 7 answers; Sixfold now sends at most 7 queries over each",
                "upstream 192.0.2.53:53 closes idle connections early; Sixfold now closes them first, after 1500 ms without a query",
                "upstream 192.0.2.53:53 answers one query at a time on a connection; Sixfold now opens several connections",
            ]
        );
        // Another worker learns the limits, then all have forgotten them, and learn them again.
        assert!(
            lines([limited; 2]).is_empty()
                && lines([nothing; 2]).is_empty()
                && lines([limited; 2]).is_empty()
        );
        let changed = Streams { in_lower_case: true, ..nothing };
        let said = lines([changed, nothing]);
        assert!(said.len() == 1 && said[0].contains("is asked in lower case"), "{said:?}");
        assert!(lines([nothing; 2]).is_empty() && lines([changed; 2]).is_empty());
    }
}
