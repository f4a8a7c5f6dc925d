//! Upstreams without EDNS (RFC 6891 sections 6.2.2 and 7): those that reply FORMERR or NOTIMP to a question with an OPT record,
//! and those that do not reply. They are asked once more without one.
//!
//! What is learned, and from what:
//!
//! - That a server knows EDNS: from an OPT record in a reply that fits in everything. For an hour after that, a reply without
//!   one that says otherwise is no reason to leave it out: the question goes over TCP, where nobody guesses, and only what
//!   comes there counts.
//! - That it does not: for the question at hand. Four questions in a row that a server answers only without an OPT record, and
//!   that never answered one with it meanwhile, have the record left out for ten minutes. So one forged FORMERR turns nothing
//!   off, and a server from which nothing comes with EDNS has none to lose.
//! - Silence counts only as the last resort: the last try of a question whose server has not shown EDNS goes without. Who has
//!   `upstream.tries = 1` has no such try.
//!
//! An answer to a question without an OPT record has no signatures. It is given to clients that asked for them (DO), but not
//! kept for others.

use crate::base::time::{Instant, Span};

/// What a server showed counts for so long.
const KNOWN: Span = Span::from_secs(3_600);
/// So many questions in a row that a server answers only without an OPT record, and it is left out for so long.
const FORMERRS: u8 = 4;
const LEFT_OUT: Span = Span::from_secs(600);

/// What is known of a server's EDNS.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EdnsSupport {
    /// Until then it is known to have it.
    known_until: Instant,
    /// Questions in a row that it answered only without an OPT record, and until when it gets none.
    formerrs: u8,
    left_out_until: Instant,
}

impl EdnsSupport {
    /// Whether it has shown EDNS, not long ago.
    #[inline]
    pub(crate) fn is_known(&self, now: Instant) -> bool {
        now < self.known_until
    }

    /// Whether questions go without an OPT record.
    #[inline]
    pub(crate) fn is_left_out(&self, now: Instant) -> bool {
        now < self.left_out_until
    }

    /// A reply had an OPT record.
    #[inline]
    pub(crate) fn on_edns(&mut self, now: Instant) {
        self.known_until = now + KNOWN;
        self.formerrs = 0;
    }

    /// Over TCP it has said that it does not know EDNS.
    pub(crate) fn forget(&mut self) {
        self.known_until = Instant(0);
    }

    /// It has answered a question without an OPT record that it did not answer with one.
    pub(crate) fn note_formerr(&mut self, now: Instant) {
        if self.is_known(now) {
            return;
        }
        self.formerrs += 1;
        if self.formerrs >= FORMERRS {
            self.formerrs = 0;
            self.left_out_until = now + LEFT_OUT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_questions_in_a_row_have_edns_left_out_and_one_reply_with_it_begins_anew() {
        let mut edns = EdnsSupport::default();
        let now = Instant(1_000_000_000);
        for _ in 1..FORMERRS {
            edns.note_formerr(now);
        }
        edns.on_edns(now);
        for _ in 0..3 * FORMERRS {
            edns.note_formerr(now);
        }
        assert!(!edns.is_left_out(now), "it has shown EDNS");
        let later = now + KNOWN;
        for _ in 1..FORMERRS {
            edns.note_formerr(later);
        }
        assert!(!edns.is_left_out(later));
        edns.note_formerr(later);
        assert!(edns.is_left_out(later) && !edns.is_left_out(later + LEFT_OUT));
    }
}
