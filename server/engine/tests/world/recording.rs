//! An observer that records traces and messages, with no bound.

use engine::explain::Policy;
use engine::explain::live::{Recorder, Trace};
use engine::trace::{Subject, TraceEvent};
use engine::{Client, Moment, ObservedLink, Observer};
use std::sync::Arc;

/// A message that an observer heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    Query(Client, Vec<u8>),
    Answer(Client, Vec<u8>),
    Asked(ObservedLink, Vec<u8>),
    Reply(ObservedLink, Vec<u8>),
}

/// The traces that have ended, and all messages, in order.
#[derive(Default)]
pub struct Recording {
    recorder: Recorder,
    pub traces: Vec<Trace>,
    pub heard: Vec<Heard>,
}

impl Recording {
    fn keep(&mut self, ended: Option<(Trace, u32)>) {
        if let Some((trace, tag)) = ended {
            assert_eq!(tag, 7, "another tag than was given");
            self.traces.push(trace);
        }
    }
}

impl Observer for Recording {
    fn query(&mut self, at: Moment, from: &Client, message: &[u8], policy: impl FnOnce() -> Arc<Policy>) {
        self.heard.push(Heard::Query(*from, message.to_vec()));
        if self.recorder.has_room() {
            self.recorder.begin(at.now, at.unix, from, message, policy(), 7);
        }
    }

    fn end_query(&mut self, _: Moment) {
        let ended = self.recorder.end_query();
        self.keep(ended);
    }

    fn answer(&mut self, at: Moment, to: &Client, message: &[u8]) {
        self.heard.push(Heard::Answer(*to, message.to_vec()));
        self.recorder.answer(at.now, message);
    }

    fn ask(&mut self, at: Moment, link: &ObservedLink, message: &[u8]) {
        self.heard.push(Heard::Asked(*link, message.to_vec()));
        self.recorder.ask(at.now, link.upstream, link.transport);
    }

    fn reply(&mut self, _: Moment, link: &ObservedLink, message: &[u8]) {
        self.heard.push(Heard::Reply(*link, message.to_vec()));
    }

    fn event<'n>(&mut self, at: Moment, subject: Subject, event: impl FnOnce() -> TraceEvent<'n>) {
        let ended = self.recorder.event(at.now, subject, &event());
        self.keep(ended);
    }
}
