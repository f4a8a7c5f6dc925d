//! A DNS64 forwarder in the manner of TOTD 1.5, as a state machine: queries, replies and time go in, messages come out.
//!
//! A query from a client becomes an AAAA query to the upstream, and if the reply has no answer, an A query with a new ID. All
//! queries leave from one port. A reply belongs to the newest outstanding query with its source and its ID; its question is
//! not compared. Messages that the table of duplicates knows are ignored ([`super::duplicates`]). An AAAA query without a
//! reply is taken as one without an answer after [`limits::TIMEOUT`]; an A query is repeated once, with the next upstream if
//! there is one, and then the client gets no answer.
//!
//! Not here: TCP, other types than AAAA, TOTD's CNAME chasing, and the check whether a prefix is valid.

use super::duplicates::{Duplicates, Source};
use super::ids::Ids;
use super::limits;
use core::time::Duration;
use std::collections::VecDeque;

/// Type of an upstream query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// AAAA, the first query of each resolution.
    Aaaa,
    /// A, for the synthesis.
    A,
}

/// Message that leaves. `C` stands for a client's query, `R` for a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<C, R> {
    /// A query to an upstream.
    Ask {
        /// Position of the upstream in the list.
        upstream: usize,
        /// Transaction ID.
        id: u16,
        /// Type.
        kind: Kind,
        /// Query of the client, which has the name.
        client: C,
    },
    /// An answer to a client.
    Answer {
        /// Query of the client.
        client: C,
        /// Type of the upstream query: with [`Kind::A`] the answer is synthesized.
        kind: Kind,
        /// Reply that the forwarder takes as the one to its query.
        reply: R,
    },
}

/// Settings of a forwarder.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Upstreams, in order of preference. The same one may be listed twice, as in the paper.
    pub upstreams: Vec<Source>,
    /// Source of IDs.
    pub ids: Ids,
    /// Time that an upstream has for a reply.
    pub timeout: Duration,
    /// Lifetime of the entries of the table of duplicates; 0: no table.
    pub lifetime: Duration,
}

impl Settings {
    /// TOTD's times.
    pub fn new(upstreams: Vec<Source>, ids: Ids) -> Settings {
        Settings { upstreams, ids, timeout: limits::TIMEOUT, lifetime: limits::LIFETIME }
    }
}

/// An upstream.
#[derive(Clone, Debug)]
struct Upstream {
    source: Source,
    /// Timeouts less replies, at least 0.
    timeouts: u32,
    down_since: Option<Duration>,
}

/// A query to an upstream without a reply yet.
#[derive(Clone, Debug)]
struct Request<C> {
    client: C,
    kind: Kind,
    id: u16,
    upstream: usize,
    repetitions: u8,
    timeout: Duration,
    due: Duration,
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages that were ignored as duplicates.
    pub duplicates: u64,
    /// Replies without an outstanding query.
    pub unmatched: u64,
    /// AAAA queries without a reply in time.
    pub aaaa_timeouts: u64,
    /// A queries without a reply in time, each of its repetitions counted.
    pub a_timeouts: u64,
    /// Resolutions that were given up without an answer.
    pub given_up: u64,
    /// Queries of clients that found too many outstanding.
    pub refused: u64,
}

/// The forwarder.
#[derive(Debug)]
pub struct Forwarder<C, R> {
    ids: Ids,
    timeout: Duration,
    duplicates: Option<Duplicates>,
    upstreams: Vec<Upstream>,
    /// Upstream of new queries.
    current: usize,
    /// Oldest first.
    requests: Vec<Request<C>>,
    /// Messages to send, in order.
    pub actions: VecDeque<Action<C, R>>,
    /// Counters.
    pub counters: Counters,
}

impl<C: Clone, R> Forwarder<C, R> {
    /// A forwarder. It has at least one upstream.
    pub fn new(settings: Settings) -> Forwarder<C, R> {
        let upstream = |source: &Source| Upstream { source: *source, timeouts: 0, down_since: None };
        assert!(!settings.upstreams.is_empty(), "a forwarder needs an upstream");
        Forwarder {
            ids: settings.ids,
            timeout: settings.timeout,
            duplicates: (!settings.lifetime.is_zero()).then(|| Duplicates::new(settings.lifetime)),
            upstreams: settings.upstreams.iter().map(upstream).collect(),
            current: 0,
            requests: Vec::new(),
            actions: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Takes an AAAA query of a client. `second` is the time in seconds since 1970, TOTD's seed.
    pub fn on_query(&mut self, now: Duration, second: u32, source: Source, id: u16, client: C) {
        if self.is_duplicate(now, source, id) {
            return;
        }
        self.prefer_earlier_upstream(now);
        self.ask(now, second, Kind::Aaaa, client);
    }

    /// Takes a reply. `has_answer`: the answer section is not empty and the RCODE is 0.
    pub fn on_reply(
        &mut self,
        now: Duration,
        second: u32,
        source: Source,
        id: u16,
        has_answer: bool,
        reply: R,
    ) {
        if self.is_duplicate(now, source, id) {
            return;
        }
        let is_it =
            |request: &Request<C>| request.id == id && self.upstreams[request.upstream].source == source;
        let Some(position) = self.requests.iter().rposition(is_it) else {
            self.counters.unmatched += 1;
            return;
        };
        let Request { client, kind, .. } = self.requests.remove(position);
        if let Some(upstream) = self.upstreams.iter_mut().find(|upstream| upstream.source == source) {
            upstream.timeouts = upstream.timeouts.saturating_sub(1);
        }
        match (kind, has_answer) {
            (Kind::Aaaa, false) => self.ask(now, second, Kind::A, client),
            (kind, _) => self.actions.push_back(Action::Answer { client, kind, reply }),
        }
    }

    /// Time at which [`Forwarder::on_time`] is due.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.requests.iter().map(|request| request.due).min()
    }

    /// Handles the queries whose time is over.
    pub fn on_time(&mut self, now: Duration, second: u32) {
        // An expired query leaves the list or gets a later time, so each is handled once.
        while let Some(position) = self.requests.iter().position(|request| request.due <= now) {
            let request = self.requests.remove(position);
            match request.kind {
                Kind::Aaaa => {
                    self.counters.aaaa_timeouts += 1;
                    self.ask(now, second, Kind::A, request.client);
                }
                Kind::A => self.repeat(now, request),
            }
        }
    }

    /// Number of times that a sequential counter took a random value.
    pub fn restarts(&self) -> u64 {
        self.ids.restarts()
    }

    fn is_duplicate(&mut self, now: Duration, source: Source, id: u16) -> bool {
        let found = self.duplicates.as_mut().is_some_and(|table| table.is_duplicate(now, source, id));
        self.counters.duplicates += u64::from(found);
        found
    }

    /// Sends a query with a new ID to the current upstream.
    fn ask(&mut self, now: Duration, second: u32, kind: Kind, client: C) {
        if self.requests.len() == limits::OUTSTANDING {
            self.counters.refused += 1;
            return;
        }
        let id = self.ids.next(second);
        let (upstream, timeout) = (self.current, self.timeout);
        let due = now + timeout;
        self.actions.push_back(Action::Ask { upstream, id, kind, client: client.clone() });
        self.requests.push(Request { client, kind, id, upstream, repetitions: 0, timeout, due });
    }

    /// Repeats an A query with its ID, or gives it up.
    fn repeat(&mut self, now: Duration, mut request: Request<C>) {
        self.counters.a_timeouts += 1;
        self.mark_timeout(now, request.upstream);
        request.repetitions += 1;
        if request.repetitions > limits::REPETITIONS {
            self.counters.given_up += 1;
            return;
        }
        request.timeout *= 2;
        request.due = now + request.timeout;
        // TOTD goes through the list that was valid at the start of the query, and stays at its last entry.
        request.upstream = (request.upstream + 1).min(self.upstreams.len() - 1);
        let Request { upstream, id, kind, .. } = request;
        self.actions.push_back(Action::Ask { upstream, id, kind, client: request.client.clone() });
        self.requests.push(request);
    }

    /// Counts a timeout of an upstream. TOTD finds it by its address, so of equal entries the first one counts. After enough
    /// timeouts new queries go to the next upstream; if all are down, all are taken as up again.
    fn mark_timeout(&mut self, now: Duration, upstream: usize) {
        let source = self.upstreams[upstream].source;
        let Some(first) = self.upstreams.iter_mut().find(|upstream| upstream.source == source) else {
            return;
        };
        first.timeouts += 1;
        if first.timeouts < limits::TIMEOUTS_UNTIL_DOWN {
            return;
        }
        first.down_since = Some(now);
        if self.upstreams[self.current].down_since.is_none() {
            return;
        }
        let is_up = |position: &usize| self.upstreams[*position].down_since.is_none();
        match (self.current + 1..self.upstreams.len()).find(is_up) {
            Some(next) => self.current = next,
            None => self.upstreams.iter_mut().for_each(|upstream| {
                upstream.timeouts = 0;
                upstream.down_since = None;
            }),
        }
    }

    /// Goes back to the nearest earlier upstream after [`limits::RETRY`].
    fn prefer_earlier_upstream(&mut self, now: Duration) {
        let has_rested = |position: &usize| {
            self.upstreams[*position].down_since.is_none_or(|since| now - since > limits::RETRY)
        };
        if let Some(earlier) = (0..self.current).rev().find(has_rested) {
            self.upstreams[earlier].down_since = None;
            self.current = earlier;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ids::{Scheme, landing};
    use super::*;

    const CLIENT: Source = Source { identity: 1, octets: 1 };
    const UPSTREAM: Source = Source { identity: 2, octets: 2 };
    const OTHER: Source = Source { identity: 3, octets: 3 };

    type Tested = Forwarder<&'static str, &'static str>;

    fn forwarder(upstreams: &[Source], scheme: Scheme, counter: u16) -> Tested {
        Forwarder::new(Settings::new(upstreams.to_vec(), Ids::new(scheme, counter)))
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// The next message, which must be a query: upstream, ID and type.
    fn asked(forwarder: &mut Tested) -> (usize, u16, Kind) {
        match forwarder.actions.pop_front() {
            Some(Action::Ask { upstream, id, kind, .. }) => (upstream, id, kind),
            other => panic!("{other:?} is no query"),
        }
    }

    #[test]
    fn a_name_without_aaaa_costs_two_queries_and_the_a_reply_is_the_answer() {
        let mut tested = forwarder(&[UPSTREAM], Scheme::SequentialFixed, 99);
        tested.on_query(seconds(0), 0, CLIENT, 5, "client");
        assert_eq!(asked(&mut tested), (0, 100, Kind::Aaaa));
        tested.on_reply(seconds(0), 0, UPSTREAM, 100, false, "none");
        assert_eq!(asked(&mut tested), (0, 101, Kind::A));
        tested.on_reply(seconds(0), 0, UPSTREAM, 101, true, "A");
        let answer = Action::Answer { client: "client", kind: Kind::A, reply: "A" };
        assert_eq!(tested.actions.pop_front(), Some(answer));
        assert_eq!((tested.next_deadline(), tested.actions.len()), (None, 0));
    }

    #[test]
    fn a_reply_from_another_source_or_with_another_id_is_ignored() {
        let mut tested = forwarder(&[UPSTREAM], Scheme::SequentialFixed, 99);
        tested.on_query(seconds(0), 0, CLIENT, 5, "client");
        asked(&mut tested);
        tested.on_reply(seconds(0), 0, OTHER, 100, true, "forged");
        tested.on_reply(seconds(0), 0, UPSTREAM, 101, true, "forged");
        assert_eq!((tested.actions.len(), tested.counters.unmatched), (0, 2));
    }

    #[test]
    fn a_silent_upstream_costs_8_seconds_and_the_client_gets_no_answer() {
        let mut tested = forwarder(&[UPSTREAM], Scheme::SequentialFixed, 99);
        tested.on_query(seconds(0), 0, CLIENT, 5, "client");
        assert_eq!((asked(&mut tested), tested.next_deadline()), ((0, 100, Kind::Aaaa), Some(seconds(2))));
        tested.on_time(seconds(2), 0);
        assert_eq!((asked(&mut tested), tested.next_deadline()), ((0, 101, Kind::A), Some(seconds(4))));
        tested.on_time(seconds(4), 0);
        assert_eq!((asked(&mut tested), tested.next_deadline()), ((0, 101, Kind::A), Some(seconds(8))));
        tested.on_time(seconds(8), 0);
        assert_eq!((tested.actions.len(), tested.next_deadline(), tested.counters.given_up), (0, None, 1));
    }

    #[test]
    fn a_query_is_repeated_to_the_second_upstream_and_after_three_timeouts_all_queries_go_there() {
        let mut tested = forwarder(&[UPSTREAM, OTHER], Scheme::SequentialFixed, 99);
        for client in 0..3u16 {
            tested.on_query(seconds(0), 0, CLIENT, client, "client");
            asked(&mut tested);
        }
        tested.on_time(seconds(2), 0);
        assert_eq!([asked(&mut tested), asked(&mut tested), asked(&mut tested)].map(|asked| asked.0), [0; 3]);
        tested.on_time(seconds(4), 0);
        assert_eq!([asked(&mut tested), asked(&mut tested), asked(&mut tested)].map(|asked| asked.0), [1; 3]);
        tested.on_query(seconds(4), 0, CLIENT, 9, "client");
        assert_eq!(asked(&mut tested).0, 1);
        tested.on_query(seconds(4) + limits::RETRY, 0, CLIENT, 10, "client");
        assert_eq!(asked(&mut tested).0, 1);
        tested.on_query(seconds(5) + limits::RETRY, 0, CLIENT, 11, "client");
        assert_eq!(asked(&mut tested).0, 0, "the first upstream is tried again");
    }

    #[test]
    fn the_reply_to_an_id_that_was_used_a_moment_ago_is_ignored_for_a_minute() {
        // A second whose random value is 10 IDs below the end.
        let second = (0..).find(|second| landing(*second) == 0xfff5).unwrap();
        let mut tested = forwarder(&[UPSTREAM], Scheme::Sequential, 0xfff5);
        let mut answered = Vec::new();
        for client in 0..11u16 {
            tested.on_query(seconds(0), second, CLIENT, client, "client");
            let (_, id, _) = asked(&mut tested);
            tested.on_reply(seconds(0), second, UPSTREAM, id, true, "AAAA");
            answered.extend(tested.actions.drain(..).map(|_| id));
        }
        assert_eq!(answered, (0xfff6..=0xffff).chain([0]).collect::<Vec<u16>>());
        for (at, is_answered) in [(0, false), (59, false), (60, true)] {
            let before = tested.counters.duplicates;
            tested.on_query(seconds(at), second, CLIENT, 100 + at as u16, "client");
            let (_, id, _) = asked(&mut tested);
            tested.on_reply(seconds(at), second, UPSTREAM, id, true, "AAAA");
            assert_eq!(tested.counters.duplicates - before, u64::from(!is_answered), "after {at} s");
            assert_eq!(tested.actions.drain(..).count(), usize::from(is_answered), "after {at} s");
        }
    }
}
