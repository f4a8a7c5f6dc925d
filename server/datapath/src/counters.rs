//! The counters of a worker: packets and octets by side and direction, batches, and every drop by its reason. One thread
//! writes and others read, so no read-modify-write instruction is needed.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// One counter of a worker.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub enum Counter {
            $($(#[$doc])* $name,)*
        }

        impl Counter {
            /// All counters, in the order of [`Snapshot`].
            pub const ALL: [Counter; [$($text),*].len()] = [$(Counter::$name),*];

            /// The counter's name in snake case: for drops, the `reason` label.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Counter::$name => $text,)*
                }
            }
        }
    };
}

counters! {
    /// Datagrams received from clients.
    ClientPacketsIn = "client_packets_in",
    /// Octets of DNS messages received from clients.
    ClientOctetsIn = "client_bytes_in",
    /// Datagrams sent to clients.
    ClientPacketsOut = "client_packets_out",
    /// Octets of DNS messages sent to clients.
    ClientOctetsOut = "client_bytes_out",
    /// Answers handed to client streams.
    StreamAnswersOut = "stream_answers_out",
    /// Messages received from upstreams.
    UpstreamPacketsIn = "upstream_packets_in",
    /// Octets of DNS messages received from upstreams.
    UpstreamOctetsIn = "upstream_bytes_in",
    /// Messages sent to upstreams.
    UpstreamPacketsOut = "upstream_packets_out",
    /// Octets of DNS messages sent to upstreams.
    UpstreamOctetsOut = "upstream_bytes_out",
    /// Messages taken from the mailbox. Its name is that of the metric.
    QueuedMessagesIn = "worker_handoffs",
    /// Names that were found to be popular, so that all workers answer them.
    PopularNames = "hot_names",
    /// Turns of the worker's event loop.
    Turns = "turns",
    /// Receive calls that returned something.
    ReceiveBatches = "receive_batches",
    /// Send calls.
    SendBatches = "send_batches",
    /// Links opened.
    LinksOpened = "links_opened",
    /// Handshakes of TLS with upstreams that were full ones.
    UpstreamTlsFull = "upstream_tls_full",
    /// Handshakes of TLS with upstreams that resumed a session.
    UpstreamTlsResumed = "upstream_tls_resumed",
    /// Failed handshake with an upstream: its certificate is for other names.
    UpstreamTlsName = "name",
    /// Failed handshake with an upstream: its certificate has expired, or is not valid yet.
    UpstreamTlsExpired = "expired",
    /// Failed handshake with an upstream: no trust anchor has issued its certificate.
    UpstreamTlsIssuer = "issuer",
    /// Failed handshake with an upstream: its key has none of the pins.
    UpstreamTlsPin = "pin",
    /// Failed handshake with an upstream: its certificate has another fault.
    UpstreamTlsCertificate = "certificate",
    /// Failed handshake with an upstream: it does not speak TLS, or sent an alert.
    UpstreamTlsProtocol = "protocol",
    /// Failed handshake with an upstream: the connection ended.
    UpstreamTlsClosed = "closed",
    /// Failed handshake with an upstream: it took too long.
    UpstreamTlsTimeout = "timeout",
    /// Drop: a listening socket's queue in the kernel was full, or too long for a time while one network was alone.
    ReceiveQueueOverflow = "receive_queue_overflow",
    /// Drop: more datagrams came than the worker could read, and this client network sent more than its share.
    FloodingNetwork = "flooding_network",
    /// Drop: a link's queue in the kernel was full.
    UpstreamQueueOverflow = "upstream_queue_overflow",
    /// Drop: a datagram from a proxy, without a PROXY header.
    ProxyHeaderMissing = "proxy_header_missing",
    /// Drop: a datagram from a proxy, with a malformed PROXY header.
    ProxyHeaderMalformed = "proxy_header_malformed",
    /// Drop: a client's datagram had a wrong checksum. Counted for frames only (XDP): elsewhere the kernel drops it.
    BadChecksum = "bad_checksum",
    /// Drop: a client's datagram was larger than the buffer.
    Truncated = "truncated",
    /// Drop: a reply was larger than the buffer. If its question could be read, the machine got it as truncated (TC).
    UpstreamTruncated = "upstream_truncated",
    /// Drop: the kernel had no room for an answer.
    SendBufferFull = "send_buffer_full",
    /// Drop: an answer could not be sent (no route, forbidden, too large).
    SendFailed = "send_failed",
    /// Drop: an answer was larger than a datagram may be.
    AnswerOversize = "answer_oversize",
    /// Drop: the mailbox of a worker was full, or the worker had ended. Counted at that mailbox.
    MailboxFull = "mailbox_full",
    /// Drop: an answer for a client stream that is gone or takes no more answers.
    StreamGone = "stream_gone",
    /// Drop: a link could not be opened.
    UpstreamOpenFailed = "upstream_open_failed",
    /// Drop: a query to an upstream could not be sent.
    UpstreamSendFailed = "upstream_send_failed",
    /// Drop: the kernel, or the buffer of a TCP link, had no room for a query.
    UpstreamBufferFull = "upstream_buffer_full",
    /// Drop: a query for a link that is not open, or that was closed before the query left.
    UpstreamClosed = "upstream_closed",
}

impl Counter {
    /// True if the counter counts handshakes with upstreams that failed. Its name is then the reason.
    pub const fn is_tls_failure(self) -> bool {
        self as usize >= Counter::UpstreamTlsName as usize
            && self as usize <= Counter::UpstreamTlsTimeout as usize
    }

    /// True if the counter counts drops. Its name is then the reason.
    pub const fn is_drop(self) -> bool {
        self as usize >= Counter::ReceiveQueueOverflow as usize
    }
}

const COUNT: usize = Counter::ALL.len();

/// The counters of one worker, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub struct Counters([AtomicU64; COUNT]);

impl Default for Counters {
    fn default() -> Counters {
        Counters([const { AtomicU64::new(0) }; COUNT])
    }
}

impl Counters {
    /// Adds to a counter. Only the thread that owns the counters may call this: a second writer would lose counts.
    #[inline]
    pub fn add(&self, counter: Counter, amount: u64) {
        let cell = &self.0[counter as usize];
        cell.store(cell.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    /// The value of a counter now.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize].load(Ordering::Relaxed)
    }

    /// The values of all counters, read one after the other and not at one instant.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(std::array::from_fn(|index| self.0[index].load(Ordering::Relaxed)))
    }
}

/// Values of all counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot([u64; COUNT]);

impl Default for Snapshot {
    fn default() -> Snapshot {
        Snapshot([0; COUNT])
    }
}

impl Snapshot {
    /// The value of one counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// Adds the values of another worker.
    pub fn add(&mut self, other: &Snapshot) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.wrapping_add(theirs);
        }
    }

    /// Each counter with its value.
    pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        Counter::ALL.into_iter().zip(self.0)
    }

    pub(crate) fn set(&mut self, counter: Counter, value: u64) {
        self.0[counter as usize] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_drops_come_last() {
        let mut names: Vec<_> = Counter::ALL.iter().map(|counter| counter.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Counter::ALL.len());
        assert!(!Counter::LinksOpened.is_drop());
        assert!(Counter::UpstreamClosed.is_drop());
        for (index, counter) in Counter::ALL.iter().enumerate() {
            assert_eq!(*counter as usize, index);
        }
    }

    #[test]
    fn values_add_up_over_workers() {
        let counters = Counters::default();
        counters.add(Counter::Turns, 2);
        counters.add(Counter::Turns, 3);
        let mut sum = counters.snapshot();
        sum.add(&counters.snapshot());
        assert_eq!(sum.get(Counter::Turns), 10);
        assert_eq!(counters.get(Counter::Turns), 5);
    }
}
