//! The outbox of the engine: it keeps everything that the engine sends, and checks the demands of a datapath.

use engine::{Client, Link, Outbox, Transport};
use std::collections::HashMap;
use std::net::SocketAddr;

/// Octets of the frame for a query.
const FRAME: usize = 512;

/// The outbox. See the module.
#[derive(Default)]
pub struct FuzzOutbox {
    /// Open links.
    pub links: HashMap<Link, Transport>,
    /// Queries that were sent since they were last taken out.
    pub queries: Vec<(Link, Vec<u8>)>,
    /// Answers that were sent since they were last taken out.
    pub answers: Vec<(Client, Vec<u8>)>,
    /// Bits of the things to refuse: answers, queries, links, a second link.
    refused: u8,
}

impl FuzzOutbox {
    /// Refuses some things from now on.
    pub fn refuse(&mut self, bits: u8) {
        self.refused = bits & 0x0f;
    }
}

impl Outbox for FuzzOutbox {
    fn answer(&mut self, to: &Client, size: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        if self.refused & 1 != 0 {
            return false;
        }
        // The frame is filled with a pattern, so that a gap in the answer shows.
        let mut frame = vec![0xa5; size];
        let length = fill(&mut frame);
        assert!(length == 0 || (12..=size).contains(&length), "{length} octets in a frame of {size}");
        frame.truncate(length);
        if length > 0 {
            self.answers.push((*to, frame));
        }
        true
    }

    fn ask(&mut self, via: Link, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        assert!(self.links.contains_key(&via), "a question over {via:?}, which is not open");
        if self.refused & 2 != 0 {
            return false;
        }
        let mut frame = vec![0xa5; FRAME];
        let length = fill(&mut frame);
        assert!((12..=FRAME).contains(&length));
        frame.truncate(length);
        self.queries.push((via, frame));
        true
    }

    fn open(&mut self, link: Link, _upstream: SocketAddr, transport: Transport, port: u16) -> bool {
        assert!(!self.links.keys().any(|open| open.slot == link.slot), "{link:?} is open already");
        assert!(usize::from(link.slot) < engine::limits::LINKS);
        assert!(transport.is_stream() || port >= 1024, "port {port}");
        if self.refused & 4 != 0 || self.refused & 8 != 0 && !self.links.is_empty() {
            return false;
        }
        self.links.insert(link, transport);
        true
    }

    fn close(&mut self, link: Link) {
        assert!(self.links.remove(&link).is_some(), "{link:?} was not open");
    }
}
