//! Counters of messages by their result. Each serving thread has its own counters, so counting never waits for
//! another core; [`ServerCounters`] has the counters of all threads of a server.

use datapath::counters::Counters as ResponderCounters;
use datapath::{Counter, ThreadClock};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
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

/// Other counters: queries by type, delayed queries, and the form in which datagrams come: buffers that hold one datagram, or
/// several with UDP GRO; source ports in use within an interval of [`datapath::TICK`], summed over the intervals with a query,
/// and the number of these intervals.
const OTHERS: [&str; 7] =
    ["asked_a", "asked_aaaa", "asked_other", "delayed", "buffers", "source_ports", "port_intervals"];
const DELAYED: usize = 3;
const BUFFERS: usize = 4;
const SOURCE_PORTS: usize = 5;
const PORT_INTERVALS: usize = 6;

/// Counters of one thread, on their own cache lines (two, because processors fetch lines in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ThreadCounters {
    kinds: [AtomicU64; Kind::ALL.len()],
    others: [AtomicU64; OTHERS.len()],
    /// CPU time of the thread, if it is a thread of the server.
    clock: OnceLock<ThreadClock>,
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

    /// Sets the number of buffers received so far. Only this thread may write these counters.
    #[inline]
    pub(crate) fn set_buffers(&self, buffers: u64) {
        self.others[BUFFERS].store(buffers, Ordering::Relaxed);
    }

    /// Counts a source port that is new in its interval, and the interval with its first port. Only this thread may write
    /// these counters.
    pub(crate) fn count_port(&self, is_first: bool) {
        add_single_writer(&self.others[SOURCE_PORTS]);
        if is_first {
            add_single_writer(&self.others[PORT_INTERVALS]);
        }
    }

    /// Makes the calling thread the one whose CPU time counts.
    pub(crate) fn count_cpu_of_this_thread(&self) {
        if let Some(clock) = ThreadClock::of_this_thread() {
            let _ = self.clock.set(clock);
        }
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

    /// All counters with their names: kinds, queries by type, delayed queries, datagrams that the kernel dropped before the
    /// server received them (`queue_overflow`) or after it sent them (`send_full`, `send_failed`), the form of the traffic over
    /// UDP (`datagrams`, `receives` calls that returned something, `buffers`, `source_ports`, `port_intervals`), and the CPU time
    /// of the UDP threads in microseconds (`cpu_us`; 0 if another thread serves).
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
            ("datagrams", Counter::ClientPacketsIn),
            ("receives", Counter::ReceiveBatches),
        ];
        let drops = drops.map(|(name, counter)| {
            (name, self.responders.iter().map(|responders| responders.get(counter)).sum())
        });
        let cpu_us = |counters: &ThreadCounters| {
            counters.clock.get().and_then(|clock| clock.time()).map_or(0, |time| time.as_micros() as u64)
        };
        let cpu = std::iter::once(("cpu_us", self.threads.iter().map(cpu_us).sum()));
        kinds.chain(others).chain(drops).chain(cpu)
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
    fn the_cpu_time_of_a_thread_is_read_by_another_while_it_runs() {
        let counters = ServerCounters::new(1, Vec::new());
        let cpu_us = || counters.totals().find(|(name, _)| *name == "cpu_us").map(|(_, value)| value);
        assert_eq!(cpu_us(), Some(0), "no thread serves yet");
        counters.threads[0].count_cpu_of_this_thread();
        let read = std::thread::scope(|scope| {
            let mut value = 1u64;
            for step in 0..20_000_000u64 {
                value = std::hint::black_box(value.wrapping_mul(step | 1));
            }
            scope.spawn(cpu_us).join().unwrap()
        });
        assert!(read.unwrap() > 0);
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
