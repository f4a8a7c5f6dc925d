//! The engine's [`Outbox`] in virtual time: a datapath that keeps everything that leaves, and checks on the way what
//! a real one could not stand: questions over links that are not open, slots opened twice, frames overrun.

use engine::{Client, Instant, Link, Outbox, Transport};
use std::collections::HashMap;
use std::net::SocketAddr;

/// A question that left for an upstream.
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
    /// The message, which the engine wrote well.
    pub fn message(&self) -> wire::Message<'_> {
        wire::Message::parse(&self.bytes).expect("the engine asks in well-formed messages")
    }

    /// The name asked, lower case, with a dot at its end.
    pub fn name(&self) -> String {
        self.message().question_name().to_string().to_lowercase()
    }

    /// The type asked.
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

/// What the engine sees of the world.
#[derive(Default)]
pub struct TestOutbox {
    pub now: Instant,
    pub links: HashMap<Link, OpenLink>,
    /// What has left since it was looked at last.
    pub asked: Vec<SentQuery>,
    pub answered: Vec<(Client, Vec<u8>)>,
    /// Links opened so far, in order.
    pub history: Vec<(Link, OpenLink)>,
    /// The datapath cannot open links.
    pub no_links: bool,
    /// There is no route to these.
    pub no_route: Vec<SocketAddr>,
    /// The datapath takes no answers.
    pub no_answers: bool,
    /// The datapath takes no questions.
    pub no_questions: bool,
}

impl Outbox for TestOutbox {
    fn answer(&mut self, to: &Client, size: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        if self.no_answers {
            return false;
        }
        // What was in a frame before must not show through.
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
        assert!(!self.links.keys().any(|open| open.slot == link.slot), "{link:?} is open already");
        if self.no_links || self.no_route.contains(&upstream) {
            return false;
        }
        let opened = OpenLink { upstream, transport, port, at: self.now };
        self.links.insert(link, opened);
        self.history.push((link, opened));
        true
    }

    fn close(&mut self, link: Link) {
        assert!(self.links.remove(&link).is_some(), "{link:?} was not open");
    }
}
