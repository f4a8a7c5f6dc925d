//! What became of the messages that came, by kind. Each serving thread has counters of its own, so counting never waits
//! for another core; a [`Ledger`] has those of all threads of a server.

use datapath::Counter;
use datapath::counters::Counters as Datagrams;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::Type;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// What became of a message.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[$doc])* $name,)*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: [Kind; [$($text),*].len()] = [$(Kind::$name),*];

            /// The name by which it is reported.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Kind::$name => $text,)*
                }
            }
        }
    };
}

kinds! {
    /// A records, after CNAME records if the name is an alias.
    Address4 = "address4",
    /// AAAA records, after CNAME records if the name is an alias.
    Address6 = "address6",
    /// A CNAME record that was asked for, or one that leads out of the zone.
    Alias = "alias",
    /// The SOA record of the apex.
    Soa = "soa",
    /// The NS records of the apex.
    Ns = "ns",
    /// Records of another type.
    Records = "records",
    /// The name servers of a zone below.
    Referral = "referral",
    /// The name exists, the type does not.
    NoData = "nodata",
    /// NXDOMAIN.
    NameError = "nxdomain",
    /// An answer of one of the kinds above that was too large for the client: TC, and no records.
    Truncated = "truncated",
    /// REFUSED: outside the zone, another class than IN, or a zone transfer.
    Refused = "refused",
    /// FORMERR: not exactly one question, or not well formed.
    FormatError = "formerr",
    /// NOTIMP: another opcode than QUERY.
    NotImplemented = "notimp",
    /// BADVERS: an EDNS version that is not 0.
    BadVersion = "badvers",
    /// These counters.
    Counters = "counters",
    /// A fault that was asked for: SERVFAIL.
    FaultServfail = "fault_servfail",
    /// A fault that was asked for: REFUSED.
    FaultRefused = "fault_refused",
    /// A fault that was asked for: FORMERR.
    FaultFormerr = "fault_formerr",
    /// A fault that was asked for: NOTIMP.
    FaultNotimp = "fault_notimp",
    /// A fault that was asked for: TC over UDP, though the answer would have fit.
    FaultTruncated = "fault_truncated",
    /// A fault that was asked for: names that are never answered.
    FaultTimeout = "fault_timeout",
    /// A fault that was asked for: queries that are lost.
    FaultLoss = "fault_loss",
    /// A query that was to be answered later, when no more could wait: lost.
    DelayOverflow = "delay_overflow",
    /// No query: a response, or less than a header.
    Ignored = "ignored",
}

/// Other things that are counted: which types were asked for, and how many queries had to wait.
const OTHERS: [&str; 4] = ["asked_a", "asked_aaaa", "asked_other", "delayed"];
const DELAYED: usize = 3;

/// What one thread counts, on cache lines of its own (two, as processors fetch them in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    kinds: [AtomicU64; Kind::ALL.len()],
    others: [AtomicU64; OTHERS.len()],
}

impl Counters {
    /// Counts what became of a message, which asked for this type, as one of several threads.
    pub(crate) fn count(&self, kind: Kind, qtype: Option<Type>) {
        self.kinds[kind as usize].fetch_add(1, Ordering::Relaxed);
        if let Some(qtype) = qtype {
            self.others[place(qtype)].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Like [`Counters::count`], as the only thread that does, which needs no read-modify-write instruction.
    #[inline]
    pub(crate) fn count_alone(&self, kind: Kind, qtype: Option<Type>) {
        add_alone(&self.kinds[kind as usize]);
        if let Some(qtype) = qtype {
            add_alone(&self.others[place(qtype)]);
        }
    }

    /// Counts a query whose answer has to wait, as the only thread that does.
    pub(crate) fn count_delayed(&self) {
        add_alone(&self.others[DELAYED]);
    }

    fn get(&self, kind: Kind) -> u64 {
        self.kinds[kind as usize].load(Ordering::Relaxed)
    }
}

#[inline]
fn add_alone(cell: &AtomicU64) {
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

#[inline]
fn place(qtype: Type) -> usize {
    match qtype {
        Type::A => 0,
        Type::AAAA => 1,
        _ => 2,
    }
}

/// The counters of all threads of a server.
#[derive(Debug, Default)]
pub struct Ledger {
    pub(crate) threads: Box<[Counters]>,
    /// What the responders count, as many as there are.
    pub(crate) datagrams: Vec<Arc<Datagrams>>,
}

impl Ledger {
    /// Counters for so many threads.
    pub(crate) fn new(threads: usize, datagrams: Vec<Arc<Datagrams>>) -> Ledger {
        Ledger { threads: (0..threads).map(|_| Counters::default()).collect(), datagrams }
    }

    /// Messages of one kind so far.
    pub fn total(&self, kind: Kind) -> u64 {
        self.threads.iter().map(|counters| counters.get(kind)).sum()
    }

    /// All that was counted so far, each with its name: kinds, types asked for, queries that had to wait, and datagrams
    /// that the kernel dropped in front of us (`queue_overflow`) or behind us (`send_full`, `send_failed`).
    pub fn totals(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let kinds = Kind::ALL.into_iter().map(|kind| (kind.name(), self.total(kind)));
        let others = OTHERS.into_iter().enumerate().map(|(index, name)| {
            let value = |counters: &Counters| counters.others[index].load(Ordering::Relaxed);
            (name, self.threads.iter().map(value).sum())
        });
        let drops = [
            ("queue_overflow", Counter::ReceiveQueueOverflow),
            ("send_full", Counter::SendBufferFull),
            ("send_failed", Counter::SendFailed),
        ];
        let drops = drops.map(|(name, counter)| {
            (name, self.datagrams.iter().map(|datagrams| datagrams.get(counter)).sum())
        });
        kinds.chain(others).chain(drops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_counter_of_its_own_over_all_threads() {
        let ledger = Ledger::new(2, Vec::new());
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            for _ in 0..=index {
                ledger.threads[0].count(kind, None);
                ledger.threads[1].count_alone(kind, None);
            }
        }
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(ledger.total(kind), 2 * (index as u64 + 1), "{kind:?}");
        }
    }

    #[test]
    fn names_are_distinct_and_types_are_counted_apart() {
        let ledger = Ledger::new(1, vec![Arc::default()]);
        for qtype in [Type::A, Type::AAAA, Type::AAAA, Type::TXT, Type::ANY, Type::SOA] {
            ledger.threads[0].count_alone(Kind::NoData, Some(qtype));
        }
        ledger.threads[0].count_delayed();
        let totals: Vec<_> = ledger.totals().collect();
        let mut names: Vec<_> = totals.iter().map(|(name, _)| *name).collect();
        for (name, value) in
            [("asked_a", 1), ("asked_aaaa", 2), ("asked_other", 3), ("delayed", 1), ("nodata", 6)]
        {
            assert!(totals.contains(&(name, value)), "{name}: {totals:?}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), totals.len());
    }
}
