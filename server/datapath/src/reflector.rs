//! The reflector: a machine that moves six packets per query and does nothing else, to measure the cost of the packets alone. A
//! client's query goes upstream with a slot number as its ID. At the first reply it is sent again. The second reply goes to
//! the client with the client's ID. The rest of the messages is left as it is.

use crate::limits::{REFLECTOR_LINKS, REFLECTOR_QUESTION_OCTETS, REFLECTOR_SLOTS};
use engine::{Client, Instant, Link, Machine, Outbox, Transport, Unreachable};
use std::net::SocketAddr;

/// Octets of a DNS header. Shorter messages are ignored.
const HEADER: usize = 12;

/// The options of a [`Reflector`].
#[derive(Clone, Copy, Debug)]
pub struct ReflectorOptions {
    /// The upstream that queries go to.
    pub upstream: SocketAddr,
    /// The transport to the upstream.
    pub transport: Transport,
    /// Queries after which the next link is used. 0: never.
    pub rotate: u32,
    /// Queries that may wait at a time, up to 65,536. The next query replaces the oldest.
    pub slots: usize,
}

struct Slot {
    client: Client,
    /// Replies that are still to come. 0: the slot is free.
    replies_left: u8,
    length: u8,
    id: [u8; 2],
    question: [u8; REFLECTOR_QUESTION_OCTETS],
}

/// A machine without DNS.
pub struct Reflector {
    options: ReflectorOptions,
    slots: Vec<Slot>,
    next: usize,
    waiting: usize,
    link: Link,
    open: bool,
    asked: u32,
    answered: u64,
}

impl Reflector {
    /// A reflector. Its link is opened with the first query.
    pub fn new(options: ReflectorOptions) -> Reflector {
        let client = Client::udp(options.upstream);
        let slot = || Slot {
            client,
            replies_left: 0,
            length: 0,
            id: [0; 2],
            question: [0; REFLECTOR_QUESTION_OCTETS],
        };
        Reflector {
            options,
            slots: (0..options.slots.clamp(1, REFLECTOR_SLOTS)).map(|_| slot()).collect(),
            next: 0,
            waiting: 0,
            link: Link { slot: 0, generation: 0 },
            open: false,
            asked: 0,
            answered: 0,
        }
    }

    /// Number of queries answered so far.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// The link to send over. Opens the next one after [`ReflectorOptions::rotate`] queries.
    fn link(&mut self, now: Instant, out: &mut impl Outbox) -> Link {
        let due = self.options.rotate != 0 && self.asked >= self.options.rotate;
        if due || !self.open {
            if due {
                self.link.slot = (self.link.slot + 1) % REFLECTOR_LINKS;
                self.link.generation = self.link.generation.wrapping_add(1);
                self.asked = 0;
            }
            // Any port will do for a benchmark: the datapath takes another if this is in use.
            let port = 1024 + (now.0 ^ now.0 >> 20) as u16 % 64_512;
            self.open = out.open(self.link, self.options.upstream, self.options.transport, port);
        }
        self.asked += 1;
        self.link
    }

    fn ask(&mut self, now: Instant, slot: usize, out: &mut impl Outbox) {
        let link = self.link(now, out);
        let Slot { length, question, .. } = &self.slots[slot];
        let question = &question[..usize::from(*length)];
        if let Some(frame) = out.query_frame(link) {
            frame[..question.len()].copy_from_slice(question);
            frame[..2].copy_from_slice(&(slot as u16).to_be_bytes());
            out.send_query(link, question.len());
        }
    }
}

impl Machine for Reflector {
    fn query(&mut self, now: Instant, from: &Client, message: &[u8], out: &mut impl Outbox) {
        if message.len() < HEADER || message.len() > REFLECTOR_QUESTION_OCTETS {
            return;
        }
        let number = self.next;
        self.next = (number + 1) % self.slots.len();
        let slot = &mut self.slots[number];
        self.waiting += usize::from(slot.replies_left == 0);
        slot.client = *from;
        slot.replies_left = 2;
        slot.length = message.len() as u8;
        slot.id = [message[0], message[1]];
        slot.question[..message.len()].copy_from_slice(message);
        self.ask(now, number, out);
    }

    fn reply(&mut self, now: Instant, _: Link, message: &mut [u8], out: &mut impl Outbox) {
        let Some(id) = message.first_chunk().filter(|_| message.len() >= HEADER) else { return };
        let number = usize::from(u16::from_be_bytes(*id));
        let Some(slot) = self.slots.get_mut(number) else { return };
        match slot.replies_left {
            0 => {}
            1 => {
                slot.replies_left = 0;
                self.waiting -= 1;
                message[..2].copy_from_slice(&slot.id);
                self.answered += u64::from(out.answer(&slot.client, message));
            }
            _ => {
                slot.replies_left -= 1;
                self.ask(now, number, out);
            }
        }
    }

    fn on_link_failure(&mut self, _: Instant, via: Link, _: Unreachable, out: &mut impl Outbox) {
        if via == self.link {
            out.close(via);
            self.link.generation = self.link.generation.wrapping_add(1);
            self.open = false;
        }
    }

    fn is_idle(&self) -> bool {
        self.waiting == 0
    }

    fn expire(&mut self, _: Instant, _: &mut impl Outbox) -> Option<Instant> {
        None
    }
}
