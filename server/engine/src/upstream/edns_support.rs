//! EDNS support of upstream servers (RFC 6891 sections 6.2.2 and 7).
//!
//! Some servers reply FORMERR or NOTIMP to a query with an OPT record, and some do not reply. They are asked once more without
//! an OPT record.
//!
//! Sources of the EDNS support:
//!
//! - A server supports EDNS: shown by an OPT record in a reply that matches in everything. For an hour after that, a reply that
//!   denies EDNS does not end the use of OPT: the question moves to TCP, where forgers cannot guess, and only the reply over
//!   TCP counts.
//! - A server does not support EDNS: counts for the question at hand. If a server answers four questions in a row only without
//!   an OPT record, and no question with one meanwhile, OPT is suspended for ten minutes. So one forged FORMERR turns nothing
//!   off, and a server that never replies with EDNS has none to lose. Over TCP and TLS, where nobody can forge, one question is enough.
//! - Silence counts only as a last resort: if the server has not shown EDNS, the last attempt of a question goes without an OPT
//!   record. With `upstream.tries = 1` there is no such try.
//!
//! An answer to a query without an OPT record has no signatures. It goes to clients that asked for them (DO), but is not cached
//! for others.

use crate::base::time::{Instant, Span};

/// Time for which a server that showed EDNS is known to support it.
const KNOWN_FOR: Span = Span::from_secs(3_600);
/// Questions in a row that a server answers only without an OPT record, after which OPT is suspended.
const MAX_FORMERRS: u8 = 4;
/// Time for which OPT is suspended.
const SUSPENSION: Span = Span::from_secs(600);

/// EDNS support of one server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EdnsSupport {
    /// Until then, the server is known to support EDNS.
    known_until: Instant,
    /// Number of questions in a row that the server answered only without an OPT record.
    formerrs: u8,
    /// Until then, queries go without an OPT record.
    suspended_until: Instant,
}

impl EdnsSupport {
    /// True if the server has shown EDNS not long ago.
    #[inline]
    pub(crate) fn is_known(&self, now: Instant) -> bool {
        now < self.known_until
    }

    /// True if queries go without an OPT record.
    #[inline]
    pub(crate) fn is_suspended(&self, now: Instant) -> bool {
        now < self.suspended_until
    }

    /// Records a reply with an OPT record.
    #[inline]
    pub(crate) fn on_edns(&mut self, now: Instant) {
        self.known_until = now + KNOWN_FOR;
        self.formerrs = 0;
    }

    /// Clears the known support: the server has denied EDNS over TCP.
    pub(crate) fn clear_known(&mut self) {
        self.known_until = Instant(0);
    }

    /// Records a question that the server answered only without an OPT record. `is_certain`: nobody else can have said so.
    pub(crate) fn note_formerr(&mut self, is_certain: bool, now: Instant) {
        if self.is_known(now) {
            return;
        }
        self.formerrs += 1;
        if is_certain || self.formerrs >= MAX_FORMERRS {
            self.formerrs = 0;
            self.suspended_until = now + SUSPENSION;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_questions_in_a_row_suspend_edns_and_one_reply_with_edns_resets_the_count() {
        let mut edns = EdnsSupport::default();
        let now = Instant(1_000_000_000);
        for _ in 1..MAX_FORMERRS {
            edns.note_formerr(false, now);
        }
        edns.on_edns(now);
        for _ in 0..3 * MAX_FORMERRS {
            edns.note_formerr(false, now);
        }
        assert!(!edns.is_suspended(now), "the server has shown EDNS");
        let later = now + KNOWN_FOR;
        for _ in 1..MAX_FORMERRS {
            edns.note_formerr(false, later);
        }
        assert!(!edns.is_suspended(later));
        edns.note_formerr(false, later);
        assert!(edns.is_suspended(later) && !edns.is_suspended(later + SUSPENSION));
    }

    #[test]
    fn one_question_suspends_edns_where_nobody_else_can_have_answered() {
        let mut edns = EdnsSupport::default();
        let now = Instant(1_000_000_000);
        edns.on_edns(now);
        edns.note_formerr(true, now);
        assert!(!edns.is_suspended(now), "the server has shown EDNS");
        edns.clear_known();
        edns.note_formerr(true, now);
        assert!(edns.is_suspended(now));
    }
}
