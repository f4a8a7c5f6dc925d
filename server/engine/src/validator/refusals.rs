//! Questions that were refused lately, because their replies were bogus from everybody who was asked.
//!
//! A refusal is cached for a second at first, so a broken name leads to questions again and again. The way through all servers, and to the
//! question with CD clear, is the right one once; soon after it, it would only multiply them.

use crate::base::time::{Instant, Span};
use std::collections::VecDeque;
use wire::Type;

/// Time for which a refusal is remembered.
const MEMORY: Span = Span::from_secs(30);
/// Refusals that are remembered. The oldest one gives way.
const REFUSALS: usize = 256;

/// Hashes of names, types and ends.
#[derive(Default)]
pub(crate) struct Refusals(VecDeque<(u64, Type, Instant)>);

impl Refusals {
    /// Notes the refusal of a question, unless an earlier one is remembered: after its end the whole way is tried once more.
    pub fn note(&mut self, hash: u64, qtype: Type, now: Instant) {
        if self.has(hash, qtype, now) {
            return;
        }
        self.0.truncate(REFUSALS - 1);
        self.0.push_front((hash, qtype, now + MEMORY));
    }

    /// True if a question was refused lately.
    pub fn has(&self, hash: u64, qtype: Type, now: Instant) -> bool {
        self.0.iter().any(|&(of, rtype, end)| (of, rtype) == (hash, qtype) && now < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_remembered_from_the_first_one_on_and_the_oldest_give_way() {
        let mut refusals = Refusals::default();
        let now = Instant(1_000_000_000);
        refusals.note(7, Type::A, now);
        refusals.note(7, Type::A, now + Span::from_secs(20));
        assert!(refusals.has(7, Type::A, now) && !refusals.has(7, Type::AAAA, now));
        assert!(!refusals.has(8, Type::A, now) && !refusals.has(7, Type::A, now + MEMORY));
        for hash in 0..2 * REFUSALS as u64 {
            refusals.note(hash, Type::DS, now);
        }
        assert!(!refusals.has(7, Type::A, now) && refusals.has(511, Type::DS, now));
        assert_eq!(refusals.0.len(), REFUSALS);
    }
}
