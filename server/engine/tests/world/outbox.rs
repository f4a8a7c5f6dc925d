//! The engine's [`Outbox`] in virtual time: a datapath that records everything that the engine sends. It panics at faults
//! that a real datapath could not handle: queries over links that are not open, slots opened twice, frames overrun.

use engine::{Client, Instant, Link, Outbox, SignedData, Transport, VerificationId};
use signatures::Signed;
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
    /// Verifications since the last poll, with their outcomes.
    pub verified: Vec<(VerificationId, bool)>,
    /// Number of verifications so far.
    pub verifications: usize,
    /// No verification is taken.
    pub no_verifications: bool,
    /// The message that is being written.
    frame: Vec<u8>,
}

impl Outbox for TestOutbox {
    fn answer_frame(&mut self, _: &Client, size: usize) -> Option<&mut [u8]> {
        // Old contents of a frame must not appear in an answer.
        self.frame = vec![0xa5; size];
        (!self.no_answers).then_some(&mut self.frame)
    }

    fn send_answer(&mut self, to: &Client, length: usize) -> bool {
        let mut frame = std::mem::take(&mut self.frame);
        if length > 0 {
            assert!((12..=frame.len()).contains(&length), "{length} octets in a frame of {}", frame.len());
            frame.truncate(length);
            self.answered.push((*to, frame));
        }
        true
    }

    fn drop_query(&mut self, from: &Client) {
        self.dropped.push(*from);
    }

    fn query_frame(&mut self, via: Link) -> Option<&mut [u8]> {
        assert!(self.links.contains_key(&via), "{via:?} is not open");
        self.frame = vec![0xa5; 512];
        (!self.no_questions).then_some(&mut self.frame)
    }

    fn send_query(&mut self, via: Link, length: usize) -> bool {
        let OpenLink { upstream, transport, port, .. } = self.links[&via];
        let mut bytes = std::mem::take(&mut self.frame);
        bytes.truncate(length);
        self.asked.push(SentQuery { at: self.now, link: via, upstream, transport, port, bytes });
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

    fn verify(&mut self, id: VerificationId, signed: &SignedData<'_>) -> bool {
        if self.no_verifications {
            return false;
        }
        let SignedData { algorithm, key, signature, data } = *signed;
        let is_valid = Signed { algorithm: dnssec::Algorithm(algorithm), key, signature, data }.is_valid();
        self.verified.push((id, is_valid));
        self.verifications += 1;
        true
    }

    fn close(&mut self, link: Link) {
        assert!(self.links.remove(&link).is_some(), "{link:?} was not open");
    }
}
