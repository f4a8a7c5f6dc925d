//! The engine's [`Outbox`] in virtual time: a datapath that records everything that the engine sends. It panics at faults
//! that a real datapath could not handle: queries over links that are not open, slots opened twice, frames overrun.

use engine::{Client, Instant, Link, Outbox, Transport};
use std::collections::HashMap;
use std::net::SocketAddr;

/// A query that the engine sent to an upstream.
#[derive(Clone, Debug)]
pub struct SentQuery {
    pub at: Instant,
    pub link: Link,
    pub upstream: SocketAddr,
    pub transport: Transport,
    pub port: u16,
    pub bytes: Vec<u8>,
}

impl SentQuery {
    /// The parsed message; panics if the engine wrote a malformed one.
    pub fn message(&self) -> wire::Message<'_> {
        wire::Message::parse(&self.bytes).expect("a well-formed query from the engine")
    }

    /// The name in the question, in lower case, with a dot at its end.
    pub fn name(&self) -> String {
        self.message().question_name().to_string().to_lowercase()
    }

    /// The type in the question.
    pub fn qtype(&self) -> wire::Type {
        self.message().qtype()
    }
}

/// An open link.
#[derive(Clone, Copy, Debug)]
pub struct OpenLink {
    pub upstream: SocketAddr,
    pub transport: Transport,
    pub port: u16,
    pub at: Instant,
}

/// The datapath of the tests.
#[derive(Default)]
pub struct TestOutbox {
    pub now: Instant,
    pub links: HashMap<Link, OpenLink>,
    /// Queries to upstreams since the last poll.
    pub asked: Vec<SentQuery>,
    /// Answers to clients since the last poll.
    pub answered: Vec<(Client, Vec<u8>)>,
    /// Clients on streams whose queries were ended without an answer.
    pub dropped: Vec<Client>,
    /// All links opened so far, in order.
    pub opened_links: Vec<(Link, OpenLink)>,
    /// Opening a link fails.
    pub no_links: bool,
    /// Opening a link to these addresses fails: there is no route.
    pub no_route: Vec<SocketAddr>,
    /// Sending an answer fails.
    pub no_answers: bool,
    /// Sending a query to an upstream fails.
    pub no_questions: bool,
}

impl Outbox for TestOutbox {
    fn answer(&mut self, to: &Client, size: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        if self.no_answers {
            return false;
        }
        // Old contents of a frame must not appear in an answer.
        let mut frame = vec![0xa5; size];
        let len = fill(&mut frame);
        if len == 0 {
            return true;
        }
        assert!(len >= 12 && len <= size, "an answer of {len} octets in a frame of {size}");
        frame.truncate(len);
        self.answered.push((*to, frame));
        true
    }

    fn drop_query(&mut self, from: &Client) {
        self.dropped.push(*from);
    }

    fn ask(&mut self, via: Link, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        let OpenLink { upstream, transport, port, .. } = self.links[&via];
        if self.no_questions {
            return false;
        }
        let mut frame = vec![0xa5; 512];
        let len = fill(&mut frame);
        frame.truncate(len);
        self.asked.push(SentQuery { at: self.now, link: via, upstream, transport, port, bytes: frame });
        true
    }

    fn open(&mut self, link: Link, upstream: SocketAddr, transport: Transport, port: u16) -> bool {
        assert!(!self.links.keys().any(|open| open.slot == link.slot), "slot of {link:?} is already open");
        if self.no_links || self.no_route.contains(&upstream) {
            return false;
        }
        let opened = OpenLink { upstream, transport, port, at: self.now };
        self.links.insert(link, opened);
        self.opened_links.push((link, opened));
        true
    }

    fn close(&mut self, link: Link) {
        assert!(self.links.remove(&link).is_some(), "{link:?} was not open");
    }
}
