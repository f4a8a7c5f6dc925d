//! The counters of the client streams. Every refusal, close and loss has a counter with its reason.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident = $family:literal $label:literal : $value:literal;)*) => {
        /// One counter of the client streams.
        // Neither compared nor matched: a counter is told of a decision, as a `CloseReason`.
        #[derive(Clone, Copy, Debug)]
        #[repr(usize)]
        pub enum Counter { $($(#[$doc])* $variant,)* }

        impl Counter {
            /// All counters, in the order of their numbers.
            pub const ALL: &[Counter] = &[$(Counter::$variant,)*];

            /// The name of the metric (without the prefix `sixfold_`) and its label.
            pub fn describe(self) -> (&'static str, (&'static str, &'static str)) {
                match self { $(Counter::$variant => ($family, ($label, $value)),)* }
            }
        }
    };
}

counters! {
    /// Connections that were admitted.
    Accepted = "stream_connections_total" "result": "accepted";
    /// Connections closed at once: `tcp-connections` are open.
    RefusedTotalLimit = "stream_connections_total" "result": "total_limit";
    /// Connections closed at once: `tcp-per-client` of the client's network are open.
    RefusedClientLimit = "stream_connections_total" "result": "client_limit";
    /// Accepts that failed, mostly because no descriptors were left.
    AcceptFailed = "stream_connections_total" "result": "accept_failed";
    /// The client closed the connection after all its answers.
    ClosedEnded = "stream_closed_total" "reason": "ended";
    /// The connection was idle for the idle timeout.
    ClosedIdle = "stream_closed_total" "reason": "idle";
    /// Idle for the longest time of all when a new client needed a place.
    ClosedDisplaced = "stream_closed_total" "reason": "displaced";
    /// Answers were not read in time, or too many waited to be read.
    ClosedSlowReader = "stream_closed_total" "reason": "slow_reader";
    /// A message took too long to arrive.
    ClosedSlowSender = "stream_closed_total" "reason": "slow_sender";
    /// A proxy sent no PROXY header, or a malformed one.
    ClosedProxyHeader = "stream_closed_total" "reason": "proxy_header";
    /// `tcp-per-client` connections of the client network that the proxy named are open.
    ClosedClientLimit = "stream_closed_total" "reason": "client_limit";
    /// A message was shorter than a DNS header.
    ClosedMalformedLength = "stream_closed_total" "reason": "malformed_length";
    /// The connection was reset, or failed.
    ClosedReset = "stream_closed_total" "reason": "reset";
    /// Answers did not come in time, or over HTTP/1.1 the server drops the query.
    ClosedUnanswered = "stream_closed_total" "reason": "unanswered";
    /// The buffers of all connections together were used up, and this connection held a large part.
    ClosedBuffers = "stream_closed_total" "reason": "buffers";
    /// The TLS handshake failed, or took too long.
    ClosedHandshake = "stream_closed_total" "reason": "handshake";
    /// The client broke the rules of DNS over QUIC: DOQ_PROTOCOL_ERROR.
    ClosedProtocolError = "stream_closed_total" "reason": "protocol_error";
    /// The client of a QUIC connection cancelled too many queries: DOQ_EXCESSIVE_LOAD.
    ClosedCancellations = "stream_closed_total" "reason": "cancellations";
    /// The server stopped.
    ClosedDrained = "stream_closed_total" "reason": "drained";
    /// Connections over TCP without TLS that were admitted.
    AcceptedTcp = "stream_accepted_total" "transport": "tcp";
    /// Connections of DNS over TLS that were admitted, before their handshakes.
    AcceptedTls = "stream_accepted_total" "transport": "tls";
    /// Connections of DNS over HTTPS that were admitted, before their handshakes.
    AcceptedHttps = "stream_accepted_total" "transport": "https";
    /// TLS handshakes with a certificate.
    HandshakesFull = "tls_handshakes_total" "kind": "full";
    /// TLS handshakes that resumed a session.
    HandshakesResumed = "tls_handshakes_total" "kind": "resumed";
    /// Failed handshakes: no version, cipher suite, group or signature scheme that both sides have.
    HandshakeNoSharedParameters = "tls_handshake_failures_total" "reason": "no_shared_parameters";
    /// Failed handshakes: the octets are no TLS, like plain DNS or HTTP.
    HandshakeNotTls = "tls_handshake_failures_total" "reason": "not_tls";
    /// Failed handshakes: a malformed or unexpected message.
    HandshakeMalformed = "tls_handshake_failures_total" "reason": "malformed";
    /// Failed handshakes: the client wants another protocol (ALPN).
    HandshakeAlpn = "tls_handshake_failures_total" "reason": "alpn";
    /// Failed handshakes: the client refused with an alert, for example because it does not trust the certificate.
    HandshakeAlert = "tls_handshake_failures_total" "reason": "alert";
    /// Failed handshakes: the client closed the connection.
    HandshakeClosed = "tls_handshake_failures_total" "reason": "closed";
    /// Failed handshakes: not done in time.
    HandshakeTimeout = "tls_handshake_failures_total" "reason": "timeout";
    /// Failed handshakes: the oldest of too many.
    HandshakeDisplaced = "tls_handshake_failures_total" "reason": "displaced";
    /// Handshakes that were not begun: the client network, or its customer, had begun too many.
    HandshakeClientRate = "tls_handshake_failures_total" "reason": "client_rate";
    /// Failed handshakes: any other reason.
    HandshakeOther = "tls_handshake_failures_total" "reason": "other";
    /// Queries handed over to the server.
    QuestionsPosted = "stream_questions_total" "result": "posted";
    /// Queries answered out of the packet cache of the thread.
    QuestionsAnswered = "stream_questions_total" "result": "answered";
    /// Queries answered with SERVFAIL, over HTTPS with status 503: the server had no room for them for too long.
    QuestionsRefused = "stream_questions_total" "result": "refused";
    /// HTTPS requests that got an answer.
    Https2xx = "https_responses_total" "status": "2xx";
    /// HTTPS requests that were refused: malformed, too long, of another path, method or media type.
    Https4xx = "https_responses_total" "status": "4xx";
    /// HTTPS requests without an answer: the server had no room, or the answer did not come in time.
    Https5xx = "https_responses_total" "status": "5xx";
    /// QUIC handshakes that were completed.
    QuicHandshakes = "quic_handshakes_total" "result": "completed";
    /// QUIC connection attempts that were told to return a token first (Retry).
    QuicRetry = "quic_handshakes_total" "result": "retry";
    /// QUIC connection attempts that were refused: too many handshakes were under way.
    QuicBusy = "quic_handshakes_total" "result": "busy";
    /// QUIC connection attempts that were refused: the client network, or its customer, had begun too many handshakes.
    QuicClientRate = "quic_handshakes_total" "result": "client_rate";
    /// QUIC handshakes that failed: the client did not offer the protocol `doq`.
    QuicFailedAlpn = "quic_handshake_failures_total" "reason": "alpn";
    /// QUIC handshakes that failed for another reason of TLS.
    QuicFailedTls = "quic_handshake_failures_total" "reason": "tls";
    /// QUIC handshakes that the client gave up.
    QuicFailedClient = "quic_handshake_failures_total" "reason": "client";
    /// QUIC handshakes that took too long.
    QuicFailedTimeout = "quic_handshake_failures_total" "reason": "timeout";
    /// QUIC handshakes that broke the rules of QUIC.
    QuicFailedProtocol = "quic_handshake_failures_total" "reason": "protocol";
    /// QUIC streams whose query was answered.
    QuicAnswered = "quic_streams_total" "result": "answered";
    /// QUIC streams whose client cancelled the query.
    QuicCancelled = "quic_streams_total" "result": "cancelled";
    /// QUIC streams without an answer: the server had no room, or the answer did not come in time.
    QuicFailed = "quic_streams_total" "result": "failed";
    /// Queries in 0-RTT data that were answered before the handshake was completed.
    QuicEarly = "quic_early_queries_total" "result": "answered";
    /// Messages in 0-RTT data that waited for the end of the handshake, because their operation is not a query.
    QuicEarlyDeferred = "quic_early_queries_total" "result": "deferred";
    /// Datagrams that were ignored because they are not of QUIC version 1.
    QuicNoQuic = "quic_datagrams_ignored_total" "reason": "not_quic";
    /// Datagrams that were ignored because they belong to no connection that this process has had.
    QuicNoConnection = "quic_datagrams_ignored_total" "reason": "unknown_connection";
    /// Answers queued for their connection.
    AnswersQueued = "stream_answers_total" "result": "queued";
    /// Answers whose connection was gone or could not take them.
    AnswersUndeliverable = "stream_answers_total" "result": "undeliverable";
    /// Answers dropped between a worker and the stream thread, because the queue was full, or the client network held its share of it. Their
    /// connections are closed, and their requests fail.
    AnswersOverrun = "stream_answers_total" "result": "overrun";
}

/// The counters, shared by all threads.
#[derive(Debug)]
pub(crate) struct Counters([AtomicU64; Counter::ALL.len()]);

impl Counters {
    pub(crate) fn new() -> Counters {
        Counters([const { AtomicU64::new(0) }; Counter::ALL.len()])
    }

    pub(crate) fn count(&self, counter: Counter) {
        self.0[counter as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize].load(Ordering::Relaxed)
    }
}
