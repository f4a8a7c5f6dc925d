//! What was answered, by kind. Each serving thread has counters of its own, so counting never waits for another core.

use std::sync::atomic::{AtomicU64, Ordering};

/// What an answer was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A records.
    Address4,
    /// AAAA records.
    Address6,
    /// The SOA record of the apex.
    Soa,
    /// The NS record of the apex.
    Ns,
    /// The name exists, the type does not.
    NoData,
    /// NXDOMAIN.
    NameError,
    /// An answer of one of the kinds above that was too large for the client: TC, and no records.
    Truncated,
    /// REFUSED: outside the zone, another class than IN, or a zone transfer.
    Refused,
    /// FORMERR: not exactly one question, or not well formed.
    FormatError,
    /// NOTIMP: another opcode than QUERY.
    NotImplemented,
    /// BADVERS: an EDNS version that is not 0.
    BadVersion,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 11] = [
        Kind::Address4,
        Kind::Address6,
        Kind::Soa,
        Kind::Ns,
        Kind::NoData,
        Kind::NameError,
        Kind::Truncated,
        Kind::Refused,
        Kind::FormatError,
        Kind::NotImplemented,
        Kind::BadVersion,
    ];
}

/// Counts of answers, on cache lines of their own (two, as processors fetch them in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    answers: [AtomicU64; Kind::ALL.len()],
    ignored: AtomicU64,
}

impl Counters {
    /// Counts one query: its answer, or that it got none.
    #[inline]
    pub fn count(&self, answer: Option<Kind>) {
        let counter = answer.map_or(&self.ignored, |kind| &self.answers[kind as usize]);
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Answers of one kind so far.
    pub fn answers(&self, kind: Kind) -> u64 {
        self.answers[kind as usize].load(Ordering::Relaxed)
    }

    /// Messages that got no answer so far: responses, and what is shorter than a header.
    pub fn ignored(&self) -> u64 {
        self.ignored.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_counter_of_its_own() {
        let counters = Counters::default();
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            for _ in 0..=index {
                counters.count(Some(kind));
            }
        }
        counters.count(None);
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(counters.answers(kind), index as u64 + 1, "{kind:?}");
        }
        assert_eq!(counters.ignored(), 1);
    }
}
