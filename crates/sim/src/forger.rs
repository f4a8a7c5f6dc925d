//! Somebody off the path who wants his own addresses believed. He is given more than an attacker has: he sees every question
//! and may know everything about it but one thing, so that no luck is needed to tell whether he can win. What he says is
//! marked; no answer and no cache may ever hold it.

use crate::message;
use crate::rng::Chance;
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
    /// A question leaves over `via`; `within` is when its reply will come. What he sends.
    pub fn watch(
        &mut self,
        via: Link,
        asked: &[u8],
        over_udp: bool,
        within: u64,
        chance: &mut Chance,
    ) -> Vec<Forgery> {
        let question = question(asked);
        let id = u16::from_be_bytes([asked[0], asked[1]]);
        let mut forgeries = vec![];
        for _ in 0..1 + chance.below(3) {
            let after = chance.below(within + within / 2 + 1);
            let wrong_id = id ^ (1 + chance.below(65_535) as u16);
            let bytes = match chance.below(7) {
                // The port is known, the letters too.
                0 | 1 => message::forged(question, wrong_id, chance),
                // The port and the ID are known.
                2 if over_udp => message::forged(&other_case(question, chance), id, chance),
                3 if over_udp => {
                    let mut bytes = message::forged(question, id, chance);
                    // Not a response.
                    bytes[2] &= 0x7f;
                    bytes
                }
                // The next ID, for who counts upwards.
                4 => message::forged(question, id.wrapping_add(1), chance),
                // Another type under the right ID.
                5 => {
                    let mut other = question.to_vec();
                    let at = other.len() - 3;
                    other[at] = if other[at] == 1 { 28 } else { 1 };
                    message::forged(&other, id, chance)
                }
                // Everything is known but the socket: of another question, perhaps to another server.
                _ => match self.past.get(chance.below(self.past.len().max(1) as u64) as usize) {
                    Some((link, _)) if *link != via => {
                        forgeries.push(Forgery {
                            via: *link,
                            after,
                            bytes: message::forged(question, id, chance),
                        });
                        continue;
                    }
                    _ => message::forged(question, wrong_id, chance),
                },
            };
            forgeries.push(Forgery { via, after, bytes });
        }
        // An ID of the past, on the link where it was used.
        if let Some((link, old)) = self.past.last()
            && chance.permille(300)
            && *old != asked
        {
            let old_id = u16::from_be_bytes([old[0], old[1]]);
            if old_id != id || *link != via {
                forgeries.push(Forgery {
                    via: *link,
                    after: chance.below(within + 1),
                    bytes: message::forged(question, old_id, chance),
                });
            }
        }
        if self.past.len() < 16 {
            self.past.push((via, asked.to_vec()));
        } else {
            let place = chance.below(16) as usize;
            self.past[place] = (via, asked.to_vec());
        }
        forgeries
    }
}

/// The question section of what the engine asks.
pub fn question(asked: &[u8]) -> &[u8] {
    let mut at = message::QUESTION;
    while asked[at] != 0 {
        at += 1 + usize::from(asked[at]);
    }
    &asked[message::QUESTION..at + 5]
}

/// The same name in other letters: at least one differs.
fn other_case(question: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut other = question.to_vec();
    let letters: Vec<usize> =
        (0..question.len() - 5).filter(|&place| question[place].is_ascii_alphabetic()).collect();
    for _ in 0..1 + chance.below(letters.len().max(1) as u64) {
        if !letters.is_empty() {
            other[*chance.one(&letters)] ^= 0x20;
        }
    }
    if other == question
        && let Some(&place) = letters.first()
    {
        other[place] ^= 0x20;
    }
    other
}
