//! The outbox of the engine: it stands for the sockets, and checks links, IDs and sizes of every message.

use crate::ground_truth::{MILLI, SECOND};
use crate::message::question_section;
use engine::limits::{LINKS, STREAM_LINKS};
use engine::{Client, Instant, Link, Outbox, SignedData, Transport, VerificationId};
use splitmix::mix;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

/// A query that was sent to an upstream.
#[derive(Debug)]
pub struct SentQuery {
    /// Link.
    pub link: Link,
    /// Server.
    pub upstream: SocketAddr,
    /// The query was sent over UDP, not TCP.
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
    /// Source port.
    pub port: u16,
    at: u64,
    /// IDs that were sent over the link, each with a digest of its question section.
    ids: Vec<(u16, u64)>,
}

impl OpenLink {
    /// True if a message has the ID and the question of a query that was sent over this link, in its letter case or, if the query was in
    /// lower case, in any: a forged one has guessed everything.
    pub fn matches_query(&self, message: &[u8]) -> bool {
        let is_sent = |digest| self.ids.contains(&(u16::from_be_bytes([message[0], message[1]]), digest));
        message.len() > 12
            && message[2] & 0x80 != 0
            && (is_sent(digest(message)) || is_sent(digest(&message.to_ascii_lowercase())))
    }
}

/// A digest of the question section.
fn digest(message: &[u8]) -> u64 {
    question_section(message).iter().fold(0, |sum, &octet| mix(sum ^ u64::from(octet)))
}

/// An answer that was sent, or that was withheld.
#[derive(Debug)]
pub struct SentAnswer {
    /// The client.
    pub to: Client,
    /// The message; a withheld one as it would have been sent.
    pub bytes: Vec<u8>,
    /// The answer was written but not sent.
    pub is_withheld: bool,
}

/// The outbox. See the module.
#[derive(Debug, Default)]
pub struct SimOutbox {
    /// Virtual time.
    pub now: u64,
    /// Open links.
    pub links: HashMap<Link, OpenLink>,
    /// Queries that were sent, in order.
    pub queries: Vec<SentQuery>,
    /// Answers that were sent, in order.
    pub answers: Vec<SentAnswer>,
    /// Servers without a route.
    pub no_route: Vec<SocketAddr>,
    /// A link could not be opened since this was last reset.
    pub open_failed: bool,
    /// Broken invariants.
    pub faults: Vec<String>,
    /// Statistics of IDs, ports and letter case over all queries.
    pub figures: Figures,
    /// Upstreams that have returned a question in another letter case.
    pub changes_letters: HashSet<SocketAddr>,
    /// The message that is being written.
    frame: Vec<u8>,
}

/// Counts that show whether IDs, ports and letter case are random.
#[derive(Debug, Default)]
pub struct Figures {
    /// Queries.
    pub questions: u64,
    /// Queries whose ID equals the previous one, or is one more.
    pub next_ids: u64,
    /// Letters in names.
    pub letters: u64,
    /// Capital letters.
    pub capitals: u64,
    /// UDP links.
    pub links: u64,
    /// UDP links whose port equals the previous one, or is one more.
    pub near_ports: u64,
    last_id: u16,
    last_port: u16,
}

/// Largest number of queries over one UDP link, and its longest time of use (in the spirit of RFC 5452 section 9.2).
const LINK_QUESTIONS: usize = 256;
const LINK_LIFE: u64 = 10 * SECOND;

impl SimOutbox {
    /// True if no further link may be opened to any upstream: the replies of many queries are awaited, each over a socket of its own.
    pub fn has_all_links(&self) -> bool {
        self.links.len() >= LINKS
    }

    /// True if an upstream has as many connections as it may have.
    pub fn has_all_streams(&self) -> bool {
        let mut streams: HashMap<SocketAddr, usize> = HashMap::new();
        self.links.len() >= STREAM_LINKS
            && self.links.values().filter(|link| link.transport.is_stream()).any(|link| {
                let count = streams.entry(link.upstream).or_default();
                *count += 1;
                *count >= STREAM_LINKS
            })
    }

    fn fault(&mut self, what: String) {
        self.faults.push(what);
    }
}

impl Outbox for SimOutbox {
    fn answer_frame(&mut self, _: &Client, size: usize) -> Option<&mut [u8]> {
        // The frame is filled with a pattern, so that a gap in the answer shows.
        self.frame = vec![0xa5; size];
        Some(&mut self.frame)
    }

    fn send_answer(&mut self, to: &Client, length: usize) -> bool {
        let mut frame = std::mem::take(&mut self.frame);
        let size = frame.len();
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

    fn query_frame(&mut self, _: Link) -> Option<&mut [u8]> {
        self.frame = vec![0xa5; 512];
        Some(&mut self.frame)
    }

    fn send_query(&mut self, via: Link, length: usize) -> bool {
        let mut bytes = std::mem::take(&mut self.frame);
        bytes.truncate(length);
        let now = self.now;
        let Some(opened) = self.links.get_mut(&via) else {
            self.fault(format!("a query over {via:?}, which is not open"));
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
            self.fault(format!("{via:?} carries query {count} after {age} ns"));
        }
        let figures = &mut self.figures;
        if over_udp {
            figures.questions += 1;
            figures.next_ids += u64::from(id.wrapping_sub(figures.last_id) <= 1);
            figures.last_id = id;
            let is_lower = !question_section(&bytes).iter().any(u8::is_ascii_uppercase);
            // An upstream that changes letters may be asked in lower case.
            if !(is_lower && self.changes_letters.contains(&upstream)) {
                for octet in bytes.get(20..24).unwrap_or_default() {
                    figures.letters += u64::from(octet.is_ascii_alphabetic());
                    figures.capitals += u64::from(octet.is_ascii_uppercase());
                }
            }
        }
        self.queries.push(SentQuery { link: via, upstream, over_udp, bytes });
        true
    }

    fn open(&mut self, link: Link, upstream: SocketAddr, transport: Transport, port: u16) -> bool {
        if self.links.keys().any(|open| open.slot == link.slot) {
            self.fault(format!("{link:?} is already open"));
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

    fn verify(&mut self, id: VerificationId, _: &SignedData<'_>) -> bool {
        self.fault(format!("{id:?} is to be verified, and no world validates"));
        false
    }
}

/// The engine's time.
pub fn instant(at: u64) -> Instant {
    Instant(at)
}
