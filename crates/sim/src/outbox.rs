//! What the engine sees of the world: its outbox. It checks on the way what holds for each message: links, IDs, sizes.

use crate::message::question_section;
use crate::rng::mix;
use crate::truth::{MILLI, SECOND};
use engine::{Client, Instant, Link, Outbox, Transport};
use std::collections::HashMap;
use std::net::SocketAddr;

/// A question that left for an upstream.
#[derive(Debug)]
pub struct SentQuery {
    /// Link.
    pub link: Link,
    /// Server.
    pub upstream: SocketAddr,
    /// Over UDP.
    pub over_udp: bool,
    /// Message.
    pub bytes: Vec<u8>,
}

/// An open link.
#[derive(Debug)]
pub struct OpenLink {
    /// Server.
    pub upstream: SocketAddr,
    /// Transport.
    pub transport: Transport,
    /// Its own port.
    pub port: u16,
    at: u64,
    /// IDs that went over it, and a digest of the question section that each went with.
    ids: Vec<(u16, u64)>,
}

impl OpenLink {
    /// Whether a message names a question that was asked over this link, with its ID and in its letters: whoever sends that
    /// has guessed everything.
    pub fn matches_query(&self, message: &[u8]) -> bool {
        message.len() > 12
            && message[2] & 0x80 != 0
            && self.ids.contains(&(u16::from_be_bytes([message[0], message[1]]), digest(message)))
    }
}

/// A digest of the question section.
fn digest(message: &[u8]) -> u64 {
    question_section(message).iter().fold(0, |sum, &octet| mix(sum ^ u64::from(octet)))
}

/// An answer that left, or was withheld.
#[derive(Debug)]
pub struct SentAnswer {
    /// To whom.
    pub to: Client,
    /// Message; one that was withheld as it had been written.
    pub bytes: Vec<u8>,
    /// It did not leave after all.
    pub is_withheld: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub struct SimOutbox {
    /// Virtual time.
    pub now: u64,
    /// Open links.
    pub links: HashMap<Link, OpenLink>,
    /// Questions that left.
    pub queries: Vec<SentQuery>,
    /// Answers that left, in order.
    pub answers: Vec<SentAnswer>,
    /// Servers without a route.
    pub no_route: Vec<SocketAddr>,
    /// A link could not be opened.
    pub open_failed: bool,
    /// What was wrong.
    pub faults: Vec<String>,
    /// Figures over all that was asked: how IDs, ports and letters look.
    pub figures: Figures,
}

/// Counts that tell a generator from a counter.
#[derive(Debug, Default)]
pub struct Figures {
    /// Questions.
    pub questions: u64,
    /// Questions whose ID is one more than the one before.
    pub next_ids: u64,
    /// Letters in names, and capital ones.
    pub letters: u64,
    /// Capital letters.
    pub capitals: u64,
    /// UDP links, and those on the port of the one before.
    pub links: u64,
    /// On the same port, or the next.
    pub near_ports: u64,
    last_id: u16,
    last_port: u16,
}

/// Questions over one UDP link, and how long it is used (RFC 5452 section 9.2 in spirit).
const LINK_QUESTIONS: usize = 256;
const LINK_LIFE: u64 = 10 * SECOND;

impl SimOutbox {
    fn fault(&mut self, what: String) {
        self.faults.push(what);
    }
}

impl Outbox for SimOutbox {
    fn answer(&mut self, to: &Client, size: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        // What was in a frame before must not show through.
        let mut frame = vec![0xa5; size];
        let length = fill(&mut frame);
        if length == 0 {
            self.answers.push(SentAnswer { to: *to, bytes: frame, is_withheld: true });
            return true;
        }
        if length < 12 || length > size {
            self.fault(format!("an answer of {length} octets in a frame of {size}"));
        }
        frame.truncate(length);
        self.answers.push(SentAnswer { to: *to, bytes: frame, is_withheld: false });
        true
    }

    fn ask(&mut self, via: Link, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        let mut bytes = vec![0xa5; 512];
        let length = fill(&mut bytes);
        bytes.truncate(length);
        let now = self.now;
        let Some(opened) = self.links.get_mut(&via) else {
            self.fault(format!("a question over {via:?}, which is not open"));
            return false;
        };
        let over_udp = opened.transport == Transport::Udp;
        let upstream = opened.upstream;
        let id = u16::from_be_bytes([bytes[0], bytes[1]]);
        let is_reused = opened.ids.iter().any(|issued| issued.0 == id);
        if over_udp || opened.ids.len() < 512 {
            opened.ids.push((id, digest(&bytes)));
        }
        let (count, age) = (opened.ids.len(), now - opened.at);
        if is_reused {
            self.fault(format!("ID {id} twice over {via:?}"));
        }
        if over_udp && (count > LINK_QUESTIONS || age > LINK_LIFE + MILLI) {
            self.fault(format!("{via:?} carries question {count} after {age} ns"));
        }
        let figures = &mut self.figures;
        if over_udp {
            figures.questions += 1;
            figures.next_ids += u64::from(id.wrapping_sub(figures.last_id) <= 1);
            figures.last_id = id;
            for octet in bytes.get(20..24).unwrap_or_default() {
                figures.letters += u64::from(octet.is_ascii_alphabetic());
                figures.capitals += u64::from(octet.is_ascii_uppercase());
            }
        }
        self.queries.push(SentQuery { link: via, upstream, over_udp, bytes });
        true
    }

    fn open(&mut self, link: Link, upstream: SocketAddr, transport: Transport, port: u16) -> bool {
        if self.links.keys().any(|open| open.slot == link.slot) {
            self.fault(format!("{link:?} is open already"));
        }
        if self.no_route.contains(&upstream) {
            self.open_failed = true;
            return false;
        }
        if transport == Transport::Udp {
            let figures = &mut self.figures;
            figures.links += 1;
            figures.near_ports += u64::from(port.wrapping_sub(figures.last_port) <= 1);
            figures.last_port = port;
            if port < 1024 {
                self.fault(format!("port {port} is privileged"));
            }
        }
        self.links.insert(link, OpenLink { upstream, transport, port, at: self.now, ids: vec![] });
        true
    }

    fn close(&mut self, link: Link) {
        if self.links.remove(&link).is_none() {
            self.fault(format!("{link:?} was not open"));
        }
    }
}

/// The engine's time.
pub fn instant(at: u64) -> Instant {
    Instant(at)
}
