//! An off-path attacker who wants addresses of his own to be believed. He has more than a real attacker: he sees every query, and
//! may know everything about it but one thing, so that the result does not depend on luck. His replies are marked. No answer
//! and no cache may ever hold a mark.

use crate::message::{question_section, write_bare_reply, write_forged_reply};
use crate::outbox::SentQuery;
use crate::rng::Rng;
use engine::Link;
use splitmix::mix;
use std::collections::HashMap;

/// Replies to one question, at most, in which all but the letter case is right. Each is a guess of port and ID, 32 bits, that came true.
/// An engine that gets letters changed from an upstream without TCP believes replies of which three agree (`upstream/suspicion.rs`).
const RIGHT_BUT_FOR_CASE: u8 = 2;

/// A forged reply.
#[derive(Debug)]
pub struct Forgery {
    /// Link over which it arrives.
    pub via: Link,
    /// Delay, nanoseconds.
    pub after: u64,
    /// Message.
    pub bytes: Vec<u8>,
}

/// The attacker, with the queries that he remembers.
#[derive(Debug, Default)]
pub struct Forger {
    past: Vec<(Link, Vec<u8>)>,
    /// Replies to each question, in lower case, that were right but for the letter case.
    right_but_for_case: HashMap<Vec<u8>, u8>,
}

impl Forger {
    /// The forged replies to a query. `within`: the time until its true reply arrives.
    pub fn forge_replies(&mut self, query: &SentQuery, within: u64, rng: &mut Rng) -> Vec<Forgery> {
        let mut forgeries = vec![];
        for _ in 0..1 + rng.below(3) {
            let after = rng.below(within + within / 2 + 1);
            let (via, bytes) = self.forge_one(query, rng);
            forgeries.push(Forgery { via, after, bytes });
        }
        forgeries.extend(self.reuse_old_id(query, within, rng));
        forgeries.push(forge_bare(query, within));
        if self.past.len() < 16 {
            self.past.push((query.link, query.bytes.clone()));
        } else {
            let place = rng.below(16) as usize;
            self.past[place] = (query.link, query.bytes.clone());
        }
        forgeries
    }

    /// A reply in which one thing is wrong, and its link.
    fn forge_one(&mut self, query: &SentQuery, rng: &mut Rng) -> (Link, Vec<u8>) {
        let (via, question, id) = (query.link, question_section(&query.bytes), query_id(&query.bytes));
        let wrong_id = id ^ (1 + rng.below(65_535) as u16);
        let bytes = match rng.below(7) {
            // Port and letter case are right.
            0 | 1 => write_forged_reply(question, wrong_id, rng),
            // Port and ID are right.
            2 if query.over_udp && self.may_differ_in_case(question) => {
                write_forged_reply(&other_case(question, rng), id, rng)
            }
            3 if query.over_udp => {
                let mut bytes = write_forged_reply(question, id, rng);
                // QR is clear.
                bytes[2] &= 0x7f;
                bytes
            }
            // The next ID, against a generator that counts.
            4 => write_forged_reply(question, id.wrapping_add(1), rng),
            // Another type with the right ID.
            5 => {
                let mut other = question.to_vec();
                let at = other.len() - 3;
                other[at] = if other[at] == 1 { 28 } else { 1 };
                write_forged_reply(&other, id, rng)
            }
            // Everything is right but the socket: it is the one of another query, perhaps to another server.
            _ => match self.past.get(rng.below(self.past.len().max(1) as u64) as usize) {
                Some((link, _)) if *link != via => return (*link, write_forged_reply(question, id, rng)),
                _ => write_forged_reply(question, wrong_id, rng),
            },
        };
        (via, bytes)
    }

    /// True, and counted, if the attacker may send a reply to this question in which only the letter case is wrong. A question in lower
    /// case goes to an upstream that changes letters, and there they protect nothing.
    fn may_differ_in_case(&mut self, question: &[u8]) -> bool {
        if !question.iter().any(u8::is_ascii_uppercase) {
            return false;
        }
        let count = self.right_but_for_case.entry(question.to_ascii_lowercase()).or_default();
        let may_differ = *count < RIGHT_BUT_FOR_CASE;
        *count += u8::from(may_differ);
        may_differ
    }

    /// Now and then, a reply with the ID of an earlier query, over the link of that query.
    fn reuse_old_id(&self, query: &SentQuery, within: u64, rng: &mut Rng) -> Option<Forgery> {
        let (link, old) = self.past.last()?;
        if !rng.permille(300) || *old == query.bytes {
            return None;
        }
        let old_id = query_id(old);
        if old_id == query_id(&query.bytes) && *link == query.link {
            return None;
        }
        let after = rng.below(within + 1);
        let bytes = write_forged_reply(question_section(&query.bytes), old_id, rng);
        Some(Forgery { via: *link, after, bytes })
    }
}

/// A reply without a question, with a guessed ID. Its choices come from the query, so that they leave those of the world alone.
fn forge_bare(query: &SentQuery, within: u64) -> Forgery {
    let id = query_id(&query.bytes);
    let drawn = mix(u64::from(id) << 16 | u64::from(query.link.slot));
    let guess = id ^ (1 + (drawn % 65_535) as u16);
    Forgery {
        via: query.link,
        after: (drawn >> 16) % (within + 1),
        bytes: write_bare_reply(guess, drawn >> 60),
    }
}

fn query_id(query: &[u8]) -> u16 {
    u16::from_be_bytes([query[0], query[1]])
}

/// The question with its name in another letter case: at least one letter differs.
fn other_case(question: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut other = question.to_vec();
    let letters: Vec<usize> =
        (0..question.len() - 5).filter(|&place| question[place].is_ascii_alphabetic()).collect();
    for _ in 0..1 + rng.below(letters.len().max(1) as u64) {
        if !letters.is_empty() {
            other[*rng.choose(&letters)] ^= 0x20;
        }
    }
    if other == question
        && let Some(&place) = letters.first()
    {
        other[place] ^= 0x20;
    }
    other
}
