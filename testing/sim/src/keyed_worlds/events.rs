//! Events of a keyed world in virtual time, and the outbox of the engine, which gives it signatures to verify.

use crate::keyed_worlds::signer::Verifier;
use engine::{Client, Link, Outbox, SignedData, Transport, VerificationId};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Event.
#[derive(Debug)]
pub(super) enum Event {
    /// A client asks the query of this number.
    Query(usize),
    /// A reply arrives.
    Reply(Link, Vec<u8>),
    /// The outcome of a verification comes back.
    Verified(VerificationId, bool),
}

/// Events by their time in nanoseconds; those of one time in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct Events {
    of_time: BTreeMap<(u64, u64), Event>,
    added: u64,
}

impl Events {
    /// Adds an event.
    pub(super) fn add(&mut self, at: u64, event: Event) {
        self.added += 1;
        self.of_time.insert((at, self.added), event);
    }

    /// Time of the next event.
    pub(super) fn next_at(&self) -> Option<u64> {
        self.of_time.keys().next().map(|(at, _)| *at)
    }

    /// Takes the next event, if it is due.
    pub(super) fn take(&mut self, now: u64) -> Option<Event> {
        if self.next_at()? > now {
            return None;
        }
        self.of_time.pop_first().map(|(_, event)| event)
    }

    /// True if the outcome of a verification is on its way.
    pub(super) fn has_verification(&self, id: VerificationId) -> bool {
        self.of_time.values().any(|event| matches!(event, Event::Verified(other, _) if *other == id))
    }
}

/// Outbox.
#[derive(Debug, Default)]
pub(super) struct Out {
    verifier: Verifier,
    /// Queries to upstreams.
    pub(super) queries: Vec<(Link, Vec<u8>)>,
    /// Answers, each with the number of its query.
    pub(super) answers: Vec<(u64, Vec<u8>)>,
    /// Queries that the engine dropped.
    pub(super) dropped: Vec<u64>,
    /// Verifications, with their outcomes.
    pub(super) verifications: Vec<(VerificationId, bool)>,
    /// Open links.
    pub(super) links: BTreeSet<(u16, u16)>,
    frame: Vec<u8>,
}

impl Out {
    /// An outbox with these keys.
    pub(super) fn new(verifier: Verifier) -> Out {
        Out { verifier, ..Out::default() }
    }
}

impl Outbox for Out {
    fn answer_frame(&mut self, _: &Client, size: usize) -> Option<&mut [u8]> {
        self.frame.resize(size, 0);
        Some(&mut self.frame)
    }

    fn send_answer(&mut self, to: &Client, length: usize) -> bool {
        if length > 0 {
            self.answers.push((to.stream, self.frame[..length].to_vec()));
        }
        true
    }

    fn drop_query(&mut self, from: &Client) {
        self.dropped.push(from.stream);
    }

    fn query_frame(&mut self, _: Link) -> Option<&mut [u8]> {
        self.frame.resize(65_535, 0);
        Some(&mut self.frame)
    }

    fn send_query(&mut self, via: Link, length: usize) -> bool {
        self.queries.push((via, self.frame[..length].to_vec()));
        true
    }

    fn open(&mut self, link: Link, _: SocketAddr, _: Transport, _: u16) -> bool {
        self.links.insert((link.slot, link.generation));
        true
    }

    fn close(&mut self, link: Link) {
        self.links.remove(&(link.slot, link.generation));
    }

    fn verify(&mut self, id: VerificationId, signed: &SignedData<'_>) -> bool {
        self.verifications.push((id, self.verifier.verify(signed)));
        true
    }
}
