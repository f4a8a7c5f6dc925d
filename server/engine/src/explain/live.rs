//! Traces of live queries (`sixfold ctl trace`): the steps of queries that clients send, in the words of explanations, with the
//! time of each.
//!
//! A [`Recorder`] hears the events of an engine with many queries (`observed.rs`) and sorts them by their subject. It allocates:
//! the caller bounds the number of queries per second that it records, and [`RECORDS`] bounds those at a time.
//!
//! A question in flight may have several pending queries, and its first query is sent before the first of them waits. So the steps of a
//! question that was just launched are kept until a pending query says that it waits for it.

use crate::base::slab::Index;
use crate::base::time::{Instant, Span};
use crate::explain::chain::lower_case;
use crate::explain::listen::Transcript;
use crate::explain::{Answer, Decision, Policy};
use crate::interface::{Client, Transport};
use crate::trace::{Subject, TraceEvent, Untrusted};
use core::net::SocketAddr;
use std::collections::HashMap;
use std::sync::Arc;
use wire::{Flags, Rcode, Section, Type};

/// Queries that are recorded at a time: with 1,000 new ones per second, those of the last second, and with up to 65,535 octets
/// of query and answer each 64 MiB at the very most.
pub const RECORDS: usize = 1_024;

/// Steps of one query. A resolution has two lookups, eight hops of a CNAME chase and three attempts for each: 2 x 9 x 3 attempts with two
/// steps each, and about 5 decisions a hop.
pub const STEPS: usize = 160;

/// Trace of one query.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The client.
    pub client: Client,
    /// Time of arrival since 1970.
    pub unix: Span,
    /// The query, a whole message, perhaps malformed.
    pub query: Vec<u8>,
    /// Steps, each with the time since arrival.
    pub steps: Vec<(Span, Step)>,
    /// Steps beyond [`STEPS`].
    pub steps_omitted: usize,
    /// The answer; none if the query was dropped.
    pub answer: Option<Answer>,
    arrived: Instant,
}

/// One step on the way to an answer. Names are in wire form and lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A decision.
    Decided(Decision),
    /// The query waits for this question to the upstreams.
    Waits {
        /// Name of the question.
        name: Box<[u8]>,
        /// Type of the question.
        qtype: Type,
        /// True if another query asked it before.
        is_shared: bool,
    },
    /// Something happened to such a question.
    Upstream {
        /// Name of the question.
        name: Box<[u8]>,
        /// Type of the question.
        qtype: Type,
        /// The event.
        event: UpstreamEvent,
    },
}

/// Event of a question to the upstreams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamEvent {
    /// A query was sent to this upstream.
    Sent(SocketAddr, Transport),
    /// A query could not be sent.
    SendFailed,
    /// The upstream replied.
    Replied {
        /// RCODE of the reply.
        rcode: Rcode,
        /// True if the reply is truncated.
        is_truncated: bool,
        /// Records in the answer section.
        answers: usize,
    },
    /// There is no reply yet, and the time of the last query is over.
    NoReply,
    /// The link to the upstream has failed.
    LinkFailed,
    /// The upstream could not be authenticated.
    Untrusted(Untrusted),
}

/// A recorded query that has not ended.
struct Record {
    trace: Trace,
    transcript: Transcript,
    /// Questions in flight that it waits for.
    questions: Vec<(Index, Box<[u8]>, Type)>,
    /// The caller's mark.
    tag: u32,
}

/// The recorded queries of one engine.
#[derive(Default)]
pub struct Recorder {
    /// The query that the engine handles now, before it is a pending query.
    current: Option<Box<Record>>,
    pending_queries: HashMap<Index, Box<Record>>,
    /// Recorded pending queries of each question in flight.
    outbound_queries: HashMap<Index, Vec<Index>>,
    /// Pending query of the next answer.
    responding: Option<Index>,
    /// Question of the next upstream query.
    sending: Option<Index>,
    /// Question that was just launched, and its events so far.
    launched: Option<Index>,
    launched_events: Vec<UpstreamEvent>,
}

impl Recorder {
    /// True if one more query may be recorded.
    pub fn has_room(&self) -> bool {
        self.pending_queries.len() < RECORDS
    }

    /// Begins to record the query that the engine handles next. `tag` comes back with the trace.
    pub fn begin(
        &mut self,
        now: Instant,
        unix: Span,
        client: &Client,
        query: &[u8],
        policy: Arc<Policy>,
        tag: u32,
    ) {
        let trace = Trace {
            client: *client,
            unix,
            query: query.to_vec(),
            steps: Vec::new(),
            steps_omitted: 0,
            answer: None,
            arrived: now,
        };
        let transcript = Transcript::new(policy, client.address, query.to_vec());
        self.current = Some(Box::new(Record { trace, transcript, questions: Vec::new(), tag }));
    }

    /// The engine has handled the query. Returns its trace, unless it waits, or was not recorded.
    pub fn end_query(&mut self) -> Option<(Trace, u32)> {
        self.current.take().map(|record| (record.trace, record.tag))
    }

    /// Records an answer to a client, which belongs to the pending query that [`TraceEvent::Responds`] has named, or to the query that is
    /// handled now.
    pub fn answer(&mut self, now: Instant, message: &[u8]) {
        if let Some(Record { trace, .. }) = self.of_response() {
            trace.answer = Some(Answer { message: message.to_vec(), after: now - trace.arrived });
        }
    }

    /// The record of the query that is answered now.
    fn of_response(&mut self) -> Option<&mut Record> {
        match self.responding {
            Some(pending) => self.pending_queries.get_mut(&pending).map(|record| &mut **record),
            None => self.current.as_deref_mut(),
        }
    }

    /// Records a query to an upstream, which belongs to the question that [`TraceEvent::Sends`] has named.
    pub fn ask(&mut self, now: Instant, upstream: SocketAddr, transport: Transport) {
        if let Some(outbound) = self.sending.take() {
            self.upstream_event(now, outbound, UpstreamEvent::Sent(upstream, transport));
        }
    }

    /// Records an event. Returns the trace of a query that ends with it.
    pub fn event(&mut self, now: Instant, subject: Subject, event: &TraceEvent<'_>) -> Option<(Trace, u32)> {
        match subject {
            Subject::Query => {
                if let Some(record) = &mut self.current {
                    record.decide(now, event);
                }
                None
            }
            Subject::Response => {
                if let Some(record) = self.of_response() {
                    record.decide(now, event);
                }
                None
            }
            Subject::PendingQuery(pending) => self.pending_query_event(now, pending, event),
            Subject::OutboundQuery(outbound) => {
                self.outbound_query_event(now, outbound, event);
                None
            }
        }
    }

    fn pending_query_event(
        &mut self,
        now: Instant,
        pending: Index,
        event: &TraceEvent<'_>,
    ) -> Option<(Trace, u32)> {
        match *event {
            TraceEvent::Admitted => {
                if let Some(record) = self.current.take() {
                    self.pending_queries.insert(pending, record);
                }
            }
            TraceEvent::Responds => self.responding = Some(pending),
            TraceEvent::WaitsFor { outbound, name, qtype } => {
                self.wait_for(now, pending, outbound, name, qtype)
            }
            TraceEvent::Freed => {
                self.responding = None;
                let record = self.pending_queries.remove(&pending)?;
                for (outbound, ..) in &record.questions {
                    if let Some(pending_queries) = self.outbound_queries.get_mut(outbound) {
                        pending_queries.retain(|other| *other != pending);
                    }
                }
                return Some((record.trace, record.tag));
            }
            _ => {
                if let Some(record) = self.pending_queries.get_mut(&pending) {
                    record.decide(now, event);
                }
            }
        }
        None
    }

    fn wait_for(&mut self, now: Instant, pending: Index, outbound: Index, name: &[u8], qtype: Type) {
        let launched = self.launched.take();
        let Some(record) = self.pending_queries.get_mut(&pending) else { return };
        let is_shared = launched != Some(outbound);
        let name = lower_case(name);
        record.step(now, Step::Waits { name: name.clone(), qtype, is_shared });
        if !is_shared {
            for &event in &self.launched_events {
                record.step(now, Step::Upstream { name: name.clone(), qtype, event });
            }
        }
        if !record.questions.iter().any(|(other, ..)| *other == outbound) {
            record.questions.push((outbound, name, qtype));
            self.outbound_queries.entry(outbound).or_default().push(pending);
        }
    }

    fn outbound_query_event(&mut self, now: Instant, outbound: Index, event: &TraceEvent<'_>) {
        match event {
            TraceEvent::Launched => {
                self.launched = Some(outbound);
                self.launched_events.clear();
            }
            TraceEvent::Sends => self.sending = Some(outbound),
            TraceEvent::SendFailed => {
                self.sending = None;
                self.upstream_event(now, outbound, UpstreamEvent::SendFailed);
            }
            TraceEvent::Replied(message) => {
                let replied = UpstreamEvent::Replied {
                    rcode: message.rcode(),
                    is_truncated: message.flags().contains(Flags::TC),
                    answers: message.count(Section::Answer),
                };
                self.upstream_event(now, outbound, replied);
            }
            TraceEvent::RepliedBare(rcode, is_truncated) => {
                let replied =
                    UpstreamEvent::Replied { rcode: *rcode, is_truncated: *is_truncated, answers: 0 };
                self.upstream_event(now, outbound, replied);
            }
            TraceEvent::NoReply => self.upstream_event(now, outbound, UpstreamEvent::NoReply),
            TraceEvent::LinkFailed => self.upstream_event(now, outbound, UpstreamEvent::LinkFailed),
            TraceEvent::Untrusted(reason) => {
                self.upstream_event(now, outbound, UpstreamEvent::Untrusted(*reason));
            }
            TraceEvent::Completed => self.complete(outbound),
            _ => {}
        }
    }

    fn upstream_event(&mut self, now: Instant, outbound: Index, event: UpstreamEvent) {
        if self.launched == Some(outbound) {
            self.launched_events.push(event);
            return;
        }
        for pending in self.outbound_queries.get(&outbound).into_iter().flatten() {
            let Some(record) = self.pending_queries.get_mut(pending) else { continue };
            let question = record.questions.iter().find(|(other, ..)| *other == outbound);
            if let Some((_, name, qtype)) = question.cloned() {
                record.step(now, Step::Upstream { name, qtype, event });
            }
        }
    }

    fn complete(&mut self, outbound: Index) {
        if self.launched == Some(outbound) {
            self.launched = None;
        }
        for pending in self.outbound_queries.remove(&outbound).into_iter().flatten() {
            if let Some(record) = self.pending_queries.get_mut(&pending) {
                record.questions.retain(|(other, ..)| *other != outbound);
            }
        }
    }
}

impl Record {
    /// Records a decision, if the event is one.
    fn decide(&mut self, now: Instant, event: &TraceEvent<'_>) {
        self.transcript.on_event(event);
        let decisions = core::mem::take(&mut self.transcript.explanation.decisions);
        for decision in decisions {
            self.step(now, Step::Decided(decision));
        }
    }

    fn step(&mut self, now: Instant, step: Step) {
        if self.trace.steps.len() < STEPS {
            self.trace.steps.push((now - self.trace.arrived, step));
        } else {
            self.trace.steps_omitted += 1;
        }
    }
}
