//! Somebody off the path who wants his own addresses believed. He is given more than an attacker has: he sees every question
//! and may know everything about it but one thing, so that no luck is needed to tell whether he can win. What he says is
//! marked; no answer and no cache may ever hold it.

use crate::message;
use crate::outbox::SentQuery;
use crate::rng::Rng;
use engine::Link;

/// A forged reply: over which link, after how long, and the message.
#[derive(Debug)]
pub struct Forgery {
    /// Link.
    pub via: Link,
    /// After so long, nanoseconds.
    pub after: u64,
    /// Message.
    pub bytes: Vec<u8>,
}

/// What he remembers: questions of the past.
#[derive(Debug, Default)]
pub struct Forger {
    past: Vec<(Link, Vec<u8>)>,
}

impl Forger {
    /// The forged replies to a query. `within`: the time until its true reply arrives.
    pub fn forge_replies(&mut self, query: &SentQuery, within: u64, rng: &mut Rng) -> Vec<Forgery> {
        let (via, asked) = (query.link, &query.bytes);
        let question = message::question_section(asked);
        let id = u16::from_be_bytes([asked[0], asked[1]]);
        let mut forgeries = vec![];
        for _ in 0..1 + rng.below(3) {
            let after = rng.below(within + within / 2 + 1);
            let wrong_id = id ^ (1 + rng.below(65_535) as u16);
            let bytes = match rng.below(7) {
                // The port is known, the letters too.
                0 | 1 => message::write_forged_reply(question, wrong_id, rng),
                // The port and the ID are known.
                2 if query.over_udp => message::write_forged_reply(&other_case(question, rng), id, rng),
                3 if query.over_udp => {
                    let mut bytes = message::write_forged_reply(question, id, rng);
                    // Not a response.
                    bytes[2] &= 0x7f;
                    bytes
                }
                // The next ID, for who counts upwards.
                4 => message::write_forged_reply(question, id.wrapping_add(1), rng),
                // Another type under the right ID.
                5 => {
                    let mut other = question.to_vec();
                    let at = other.len() - 3;
                    other[at] = if other[at] == 1 { 28 } else { 1 };
                    message::write_forged_reply(&other, id, rng)
                }
                // Everything is known but the socket: of another question, perhaps to another server.
                _ => match self.past.get(rng.below(self.past.len().max(1) as u64) as usize) {
                    Some((link, _)) if *link != via => {
                        forgeries.push(Forgery {
                            via: *link,
                            after,
                            bytes: message::write_forged_reply(question, id, rng),
                        });
                        continue;
                    }
                    _ => message::write_forged_reply(question, wrong_id, rng),
                },
            };
            forgeries.push(Forgery { via, after, bytes });
        }
        // An ID of the past, on the link where it was used.
        if let Some((link, old)) = self.past.last()
            && rng.permille(300)
            && old != asked
        {
            let old_id = u16::from_be_bytes([old[0], old[1]]);
            if old_id != id || *link != via {
                forgeries.push(Forgery {
                    via: *link,
                    after: rng.below(within + 1),
                    bytes: message::write_forged_reply(question, old_id, rng),
                });
            }
        }
        if self.past.len() < 16 {
            self.past.push((via, asked.to_vec()));
        } else {
            let place = rng.below(16) as usize;
            self.past[place] = (via, asked.to_vec());
        }
        forgeries
    }
}

/// The same name in other letters: at least one differs.
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
