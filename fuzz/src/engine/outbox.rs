//! What the engine sees of the world: it keeps what leaves, and knows what a datapath could not stand.

use engine::{Client, Link, Outbox, Transport};
use std::collections::HashMap;
use std::net::SocketAddr;

/// Octets of a frame for a question.
const FRAME: usize = 512;

/// See the module.
#[derive(Default)]
pub struct Ways {
    /// Open links.
    pub links: HashMap<Link, Transport>,
    /// Questions that have left since they were looked at last.
    pub asked: Vec<(Link, Vec<u8>)>,
    /// Answers that have.
    pub answered: Vec<(Client, Vec<u8>)>,
    /// Bits: no answers, no questions, no links, no second link are taken.
    hindered: u8,
}

impl Ways {
    /// From now on, some things are not taken.
    pub fn hinder(&mut self, bits: u8) {
        self.hindered = bits & 0x0f;
    }
}

impl Outbox for Ways {
    fn answer(&mut self, to: &Client, size: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        if self.hindered & 1 != 0 {
            return false;
        }
        // What was in a frame before must not show through.
        let mut frame = vec![0xa5; size];
        let length = fill(&mut frame);
        assert!(length == 0 || (12..=size).contains(&length), "{length} octets in a frame of {size}");
        frame.truncate(length);
        if length > 0 {
            self.answered.push((*to, frame));
        }
        true
    }

    fn ask(&mut self, via: Link, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        assert!(self.links.contains_key(&via), "a question over {via:?}, which is not open");
        if self.hindered & 2 != 0 {
            return false;
        }
        let mut frame = vec![0xa5; FRAME];
        let length = fill(&mut frame);
        assert!((12..=FRAME).contains(&length));
        frame.truncate(length);
        self.asked.push((via, frame));
        true
    }

    fn open(&mut self, link: Link, _upstream: SocketAddr, transport: Transport, port: u16) -> bool {
        assert!(!self.links.keys().any(|open| open.slot == link.slot), "{link:?} is open already");
        assert!(usize::from(link.slot) < engine::limits::LINKS);
        assert!(transport == Transport::Tcp || port >= 1024, "port {port}");
        if self.hindered & 4 != 0 || self.hindered & 8 != 0 && !self.links.is_empty() {
            return false;
        }
        self.links.insert(link, transport);
        true
    }

    fn close(&mut self, link: Link) {
        assert!(self.links.remove(&link).is_some(), "{link:?} was not open");
    }
}
