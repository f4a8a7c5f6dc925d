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
    /// The message that is being written.
    frame: Vec<u8>,
}

impl FuzzOutbox {
    /// Refuses some things from now on.
    pub fn refuse(&mut self, bits: u8) {
        self.refused = bits & 0x0f;
    }
}

impl Outbox for FuzzOutbox {
    fn answer_frame(&mut self, _: &Client, size: usize) -> Option<&mut [u8]> {
        // The frame is filled with a pattern, so that a gap in the answer shows.
        self.frame = vec![0xa5; size];
        (self.refused & 1 == 0).then_some(&mut self.frame)
    }

    fn send_answer(&mut self, to: &Client, length: usize) -> bool {
        let mut frame = std::mem::take(&mut self.frame);
        assert!(length == 0 || (12..=frame.len()).contains(&length), "{length} octets of {}", frame.len());
        frame.truncate(length);
        if length > 0 {
            self.answers.push((*to, frame));
        }
        true
    }

    fn query_frame(&mut self, via: Link) -> Option<&mut [u8]> {
        assert!(self.links.contains_key(&via), "a question over {via:?}, which is not open");
        self.frame = vec![0xa5; FRAME];
        (self.refused & 2 == 0).then_some(&mut self.frame)
    }

    fn send_query(&mut self, via: Link, length: usize) -> bool {
        assert!((12..=FRAME).contains(&length));
        let mut frame = std::mem::take(&mut self.frame);
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
