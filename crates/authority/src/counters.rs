//! Counters of messages by their result. Each serving thread has its own counters, so counting never waits for
//! another core; [`ServerCounters`] has the counters of all threads of a server.

use datapath::Counter;
use datapath::counters::Counters as ResponderCounters;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::Type;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Result of a message: the kind of its answer, or the reason why there is none.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[$doc])* $name,)*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: [Kind; [$($text),*].len()] = [$(Kind::$name),*];

            /// The name in reports.
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
    /// A CNAME record that was queried for, or one whose target is outside the zone.
    Alias = "alias",
    /// The SOA record of the apex.
    Soa = "soa",
    /// The NS records of the apex.
    Ns = "ns",
    /// Records of another type.
    Records = "records",
    /// Referral to the name servers of a delegated zone.
    Referral = "referral",
    /// NODATA: the name exists, the type does not.
    NoData = "nodata",
    /// NXDOMAIN.
    NameError = "nxdomain",
    /// An answer of one of the kinds above that was too large for the client: TC, without records.
    Truncated = "truncated",
    /// REFUSED: outside the zone, another class than IN, or a zone transfer.
    Refused = "refused",
    /// FORMERR: not exactly one question, or not well formed.
    FormatError = "formerr",
    /// NOTIMP: another opcode than QUERY.
    NotImplemented = "notimp",
    /// BADVERS: an EDNS version other than 0.
    BadVersion = "badvers",
    /// These counters.
    Counters = "counters",
    /// Injected fault: SERVFAIL.
    FaultServfail = "fault_servfail",
    /// Injected fault: REFUSED.
    FaultRefused = "fault_refused",
    /// Injected fault: FORMERR.
    FaultFormerr = "fault_formerr",
    /// Injected fault: NOTIMP.
    FaultNotimp = "fault_notimp",
    /// Injected fault: TC over UDP, although the answer would have fitted.
    FaultTruncated = "fault_truncated",
    /// Injected fault: a name that is never answered.
    FaultTimeout = "fault_timeout",
    /// Injected fault: a lost query.
    FaultLoss = "fault_loss",
    /// A lost query: it was to be delayed, but the delay queue was full.
    DelayOverflow = "delay_overflow",
    /// A message that is not a query: a response, or less than a header.
    Ignored = "ignored",
}

/// Other counters: queries by type, and delayed queries.
const OTHERS: [&str; 4] = ["asked_a", "asked_aaaa", "asked_other", "delayed"];
const DELAYED: usize = 3;

/// Counters of one thread, on their own cache lines (two, because processors fetch lines in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ThreadCounters {
    kinds: [AtomicU64; Kind::ALL.len()],
    others: [AtomicU64; OTHERS.len()],
}

impl ThreadCounters {
    /// Counts a message with its result and query type. Several threads may share these counters.
    pub(crate) fn count(&self, kind: Kind, qtype: Option<Type>) {
        self.kinds[kind as usize].fetch_add(1, Ordering::Relaxed);
        if let Some(qtype) = qtype {
            self.others[type_index(qtype)].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Like [`ThreadCounters::count`], for counters that only this thread writes: no read-modify-write instruction is
    /// needed.
    #[inline]
    pub(crate) fn count_single_writer(&self, kind: Kind, qtype: Option<Type>) {
        add_single_writer(&self.kinds[kind as usize]);
        if let Some(qtype) = qtype {
            add_single_writer(&self.others[type_index(qtype)]);
        }
    }

    /// Counts a delayed query. Only this thread may write these counters.
    pub(crate) fn count_delayed(&self) {
        add_single_writer(&self.others[DELAYED]);
    }

    fn get(&self, kind: Kind) -> u64 {
        self.kinds[kind as usize].load(Ordering::Relaxed)
    }
}

#[inline]
fn add_single_writer(cell: &AtomicU64) {
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

#[inline]
fn type_index(qtype: Type) -> usize {
    match qtype {
        Type::A => 0,
        Type::AAAA => 1,
        _ => 2,
    }
}

/// Counters of all threads of a server.
#[derive(Debug, Default)]
pub struct ServerCounters {
    pub(crate) threads: Box<[ThreadCounters]>,
    /// Counters of the UDP responders.
    pub(crate) responders: Vec<Arc<ResponderCounters>>,
}

impl ServerCounters {
    /// Counters for `threads` threads.
    pub(crate) fn new(threads: usize, responders: Vec<Arc<ResponderCounters>>) -> ServerCounters {
        ServerCounters { threads: (0..threads).map(|_| ThreadCounters::default()).collect(), responders }
    }

    /// Number of messages of one kind so far.
    pub fn total(&self, kind: Kind) -> u64 {
        self.threads.iter().map(|counters| counters.get(kind)).sum()
    }

    /// All counters with their names: kinds, queries by type, delayed queries, and datagrams that the kernel dropped
    /// before the server received them (`queue_overflow`) or after it sent them (`send_full`, `send_failed`).
    pub fn totals(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let kinds = Kind::ALL.into_iter().map(|kind| (kind.name(), self.total(kind)));
        let others = OTHERS.into_iter().enumerate().map(|(index, name)| {
            let value = |counters: &ThreadCounters| counters.others[index].load(Ordering::Relaxed);
            (name, self.threads.iter().map(value).sum())
        });
        let drops = [
            ("queue_overflow", Counter::ReceiveQueueOverflow),
            ("send_full", Counter::SendBufferFull),
            ("send_failed", Counter::SendFailed),
        ];
        let drops = drops.map(|(name, counter)| {
            (name, self.responders.iter().map(|responders| responders.get(counter)).sum())
        });
        kinds.chain(others).chain(drops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_counter_of_its_own_over_all_threads() {
        let counters = ServerCounters::new(2, Vec::new());
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            for _ in 0..=index {
                counters.threads[0].count(kind, None);
                counters.threads[1].count_single_writer(kind, None);
            }
        }
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(counters.total(kind), 2 * (index as u64 + 1), "{kind:?}");
        }
    }

    #[test]
    fn names_are_distinct_and_types_are_counted_apart() {
        let counters = ServerCounters::new(1, vec![Arc::default()]);
        for qtype in [Type::A, Type::AAAA, Type::AAAA, Type::TXT, Type::ANY, Type::SOA] {
            counters.threads[0].count_single_writer(Kind::NoData, Some(qtype));
        }
        counters.threads[0].count_delayed();
        let totals: Vec<_> = counters.totals().collect();
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
