//! Counters of the engine. Every drop, refusal and forgery suspect has a counter with a reason. Label values come from closed
//! sets, never from a packet. The counters are plain numbers; the driver copies them out from time to time.

use wire::{EdeCode, ede};

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident = $family:literal { $($label:literal : $value:literal),* };)*) => {
        /// Name of one counter, with its metric and labels.
        // Neither compared nor matched: a counter is told of a decision (`reasons.rs`).
        #[derive(Clone, Copy, Debug)]
        #[repr(usize)]
        pub enum Counter { $($(#[$doc])* $variant,)* }

        impl Counter {
            /// All counters, in the order of their numbers.
            pub const ALL: &[Counter] = &[$(Counter::$variant,)*];

            /// Name of the metric (without the prefix `sixfold_`) and its labels.
            pub fn describe(self) -> (&'static str, &'static [(&'static str, &'static str)]) {
                match self { $(Counter::$variant => ($family, &[$(($label, $value)),*]),)* }
            }
        }
    };
}

counters! {
    /// Client messages over UDP and IPv4.
    QueriesUdp4 = "queries_total" {"transport": "udp", "family": "ipv4"};
    /// Client messages over UDP and IPv6.
    QueriesUdp6 = "queries_total" {"transport": "udp", "family": "ipv6"};
    /// Client messages over TCP and IPv4.
    QueriesTcp4 = "queries_total" {"transport": "tcp", "family": "ipv4"};
    /// Client messages over TCP and IPv6.
    QueriesTcp6 = "queries_total" {"transport": "tcp", "family": "ipv6"};
    /// Client messages over TLS and IPv4.
    QueriesTls4 = "queries_total" {"transport": "tls", "family": "ipv4"};
    /// Client messages over TLS and IPv6.
    QueriesTls6 = "queries_total" {"transport": "tls", "family": "ipv6"};
    /// Client messages over HTTPS and IPv4.
    QueriesHttps4 = "queries_total" {"transport": "https", "family": "ipv4"};
    /// Client messages over HTTPS and IPv6.
    QueriesHttps6 = "queries_total" {"transport": "https", "family": "ipv6"};
    /// Client messages over QUIC and IPv4.
    QueriesQuic4 = "queries_total" {"transport": "quic", "family": "ipv4"};
    /// Client messages over QUIC and IPv6.
    QueriesQuic6 = "queries_total" {"transport": "quic", "family": "ipv6"};
    /// Answers with RCODE 0.
    ResponsesNoError = "responses_total" {"rcode": "noerror"};
    /// Answers with RCODE 1.
    ResponsesFormErr = "responses_total" {"rcode": "formerr"};
    /// Answers with RCODE 2.
    ResponsesServFail = "responses_total" {"rcode": "servfail"};
    /// Answers with RCODE 3.
    ResponsesNxDomain = "responses_total" {"rcode": "nxdomain"};
    /// Answers with RCODE 4.
    ResponsesNotImp = "responses_total" {"rcode": "notimp"};
    /// Answers with RCODE 5.
    ResponsesRefused = "responses_total" {"rcode": "refused"};
    /// Answers with any other RCODE.
    ResponsesOther = "responses_total" {"rcode": "other"};
    /// Answers over UDP that were truncated, with TC set.
    Truncated = "truncated_responses_total" {};
    /// Answers copied from the one composed for another query that waited for the same reply.
    CopiedAnswers = "copied_responses_total" {};
    /// Synthesized because the AAAA answer was empty.
    SynthesizedNoData = "synthesized_total" {"reason": "nodata"};
    /// Synthesized because all AAAA records were excluded.
    SynthesizedExcluded = "synthesized_total" {"reason": "excluded"};
    /// Synthesized because a rule ignores real AAAA records.
    SynthesizedIgnored = "synthesized_total" {"reason": "ignored"};
    /// Synthesized because the addresses of all AAAA records are dead.
    SynthesizedDead = "synthesized_total" {"reason": "dead"};
    /// Synthesized although the AAAA lookup failed with an RCODE.
    SynthesizedError = "synthesized_total" {"reason": "aaaa_error"};
    /// Synthesized although the AAAA lookup timed out.
    SynthesizedTimeout = "synthesized_total" {"reason": "aaaa_timeout"};
    /// Not synthesized: a real AAAA record was forwarded.
    NotSynthesizedReal = "not_synthesized_total" {"reason": "real_aaaa"};
    /// Not synthesized: the name does not exist.
    NotSynthesizedNxDomain = "not_synthesized_total" {"reason": "nxdomain"};
    /// Not synthesized: DNS64 is not for this client.
    NotSynthesizedClient = "not_synthesized_total" {"reason": "client"};
    /// Not synthesized: DO and CD were both set.
    NotSynthesizedDnssec = "not_synthesized_total" {"reason": "dnssec"};
    /// Not synthesized: RD was clear and `recursive-only` is set.
    NotSynthesizedNotRecursive = "not_synthesized_total" {"reason": "not_recursive"};
    /// Not synthesized: the data are bogus, as an upstream or the validation here found.
    NotSynthesizedBogus = "not_synthesized_total" {"reason": "bogus"};
    /// Not synthesized: the validation here could not prove that the failure of the AAAA lookup is no attack.
    NotSynthesizedUnproven = "not_synthesized_total" {"reason": "unproven"};
    /// Not synthesized: the AAAA lookup failed, and by configuration the failure is the answer.
    NotSynthesizedFailure = "not_synthesized_total" {"reason": "failure_passed"};
    /// Not synthesized: the A answer is empty.
    NotSynthesizedNoA = "not_synthesized_total" {"reason": "no_a"};
    /// Not synthesized: the A lookup failed.
    NotSynthesizedAFailed = "not_synthesized_total" {"reason": "a_failed"};
    /// Not synthesized: no A address may be embedded, or a response policy zone denies the name.
    NotSynthesizedPolicy = "not_synthesized_total" {"reason": "policy"};
    /// Not synthesized: no gateway of the prefixes lives.
    NotSynthesizedNoGateway = "not_synthesized_total" {"reason": "no_gateway"};
    /// Not synthesized: no prefix was discovered.
    NotSynthesizedNoPrefix = "not_synthesized_total" {"reason": "no_prefix"};
    /// Local answers for `ipv4only.arpa` and for the reverse names of its addresses.
    LocalIpv4Only = "local_answers_total" {"zone": "ipv4only"};
    /// Local answers for reverse names of the prefixes, or aliases of them to the reverse name of the IPv4 address.
    LocalReverse = "local_answers_total" {"zone": "reverse"};
    /// Local answers for `localhost`, names below it, and the reverse names of its addresses.
    LocalLocalhost = "local_answers_total" {"zone": "localhost"};
    /// Local answers for `invalid` and names below it.
    LocalInvalid = "local_answers_total" {"zone": "invalid"};
    /// Local answers for `onion` and names below it.
    LocalOnion = "local_answers_total" {"zone": "onion"};
    /// Local answers for `resolver.arpa` and names below it.
    LocalResolverArpa = "local_answers_total" {"zone": "resolver"};
    /// Local answers from the reverse zones of RFC 6303.
    LocalEmptyZone = "local_answers_total" {"zone": "empty"};
    /// Answers about the server itself, in class CH.
    LocalServerNames = "local_answers_total" {"zone": "server"};
    /// Local replies for names with records in the configuration, counted by lookup.
    LocalRecords = "local_answers_total" {"zone": "records"};
    /// Local replies for blocked names.
    FilteredBlock = "filtered_total" {"reason": "block"};
    /// NXDOMAIN answers by a response policy zone.
    FilteredNxDomain = "filtered_total" {"reason": "rpz_nxdomain"};
    /// NODATA answers by a response policy zone.
    FilteredNoData = "filtered_total" {"reason": "rpz_nodata"};
    /// Queries answered with data of a response policy zone.
    FilteredLocal = "filtered_total" {"reason": "rpz_local"};
    /// Queries that a response policy zone sends to TCP.
    FilteredTcpOnly = "filtered_total" {"reason": "rpz_tcp_only"};
    /// Queries dropped by a response policy zone.
    FilteredDrop = "filtered_total" {"reason": "rpz_drop"};
    /// Queries that a response policy zone exempts from its other rules, and from those of later zones.
    FilteredPassthru = "filtered_total" {"reason": "rpz_passthru"};
    /// Answers to A queries without addresses, by a rule with `a = "suppress"`.
    SuppressedA = "suppressed_a_total" {};
    /// Replies of upstreams from which private addresses were taken away.
    FilteredPrivate = "filtered_total" {"reason": "private_address"};
    /// Addresses left out: not global, and the prefix is the well-known one.
    OmittedNonGlobal = "omitted_addresses_total" {"reason": "non_global"};
    /// Addresses left out by `never-embed`.
    OmittedNeverEmbed = "omitted_addresses_total" {"reason": "never_embed"};
    /// Addresses left out by a rule without prefixes.
    OmittedRule = "omitted_addresses_total" {"reason": "rule"};
    /// Addresses left out by `max-records`.
    OmittedMaxRecords = "omitted_addresses_total" {"reason": "max_records"};
    /// Queries from clients outside `allow`.
    RefusedNotAllowed = "refused_total" {"reason": "not_allowed"};
    /// Queries for zone transfers.
    RefusedTransfer = "refused_total" {"reason": "transfer"};
    /// Queries of class CH for names that the server does not tell.
    RefusedClass = "refused_total" {"reason": "class"};
    /// Queries over TCP or with a valid cookie of a client network that has too many such queries pending.
    RefusedPendingPerClient = "refused_total" {"reason": "pending_per_client"};
    /// Queries refused because no slot for pending queries is free, and this client network has most of them.
    RefusedPending = "refused_total" {"reason": "pending"};
    /// Queries over TCP above the query rate of the client's network.
    RefusedQueryRate = "refused_total" {"reason": "queries_per_client"};
    /// Queries over UDP above the query rate of the client's network that got an empty answer with TC.
    SlippedQueryRate = "slipped_total" {"reason": "queries_per_client"};
    /// Queries over UDP of a client network with too many pending queries that got an empty answer with TC.
    SlippedPendingPerClient = "slipped_total" {"reason": "pending_per_client"};
    /// Answers over UDP above the response rate of the client's network that were replaced by an empty answer with TC.
    SlippedResponseRate = "slipped_total" {"reason": "responses_per_client"};
    /// Client messages shorter than a header.
    DroppedShort = "dropped_total" {"reason": "short"};
    /// Client messages that are responses.
    DroppedResponse = "dropped_total" {"reason": "response"};
    /// Queries over UDP above the query rate of the client's network.
    DroppedQueryRate = "dropped_total" {"reason": "queries_per_client"};
    /// Queries over UDP of a client network with too many pending queries.
    DroppedPendingPerClient = "dropped_total" {"reason": "pending_per_client"};
    /// Answers over UDP above the response rate of the client's network.
    DroppedResponseRate = "dropped_total" {"reason": "responses_per_client"};
    /// Retransmissions of a pending query: same client, port, ID and question.
    DroppedRepeated = "dropped_total" {"reason": "repeated"};
    /// Answers over UDP that came after the time for which a client waits.
    DroppedTooLate = "dropped_total" {"reason": "too_late"};
    /// Answers that the datapath could not take.
    DroppedAnswer = "dropped_total" {"reason": "answer_not_taken"};
    /// Upstream queries that the datapath could not take.
    DroppedQuestion = "dropped_total" {"reason": "question_not_taken"};
    /// Malformed messages from an upstream.
    DroppedMalformedReply = "dropped_total" {"reason": "upstream_malformed"};
    /// Late replies to an attempt after another attempt has succeeded.
    DroppedLate = "dropped_total" {"reason": "upstream_late"};
    /// Messages from an upstream over a link that is no longer used.
    DroppedStaleLink = "dropped_total" {"reason": "upstream_stale_link"};
    /// Replies to a question that is not in flight: late ones, or forged ones with a guessed question.
    SuspectUnknown = "forgery_suspects_total" {"reason": "unknown_question"};
    /// Replies with the right question on the right socket, but with another ID.
    SuspectId = "forgery_suspects_total" {"reason": "id"};
    /// Replies whose question has another letter case.
    SuspectCase = "forgery_suspects_total" {"reason": "case"};
    /// Replies to a question that was not asked over this socket.
    SuspectSocket = "forgery_suspects_total" {"reason": "socket"};
    /// UDP replies to a question that has moved to TCP.
    SuspectAbandoned = "forgery_suspects_total" {"reason": "moved_to_tcp"};
    /// Replies with a client subnet that is not that of the question.
    SuspectSubnet = "forgery_suspects_total" {"reason": "client_subnet"};
    /// Replies with a wrong client cookie, or without one from a server that has returned it before.
    SuspectCookie = "forgery_suspects_total" {"reason": "cookie"};
    /// Messages from an upstream that are no responses.
    SuspectNotResponse = "forgery_suspects_total" {"reason": "not_a_response"};
    /// Queries with a client cookie only.
    CookieNew = "cookies_total" {"result": "new"};
    /// Queries with a valid server cookie.
    CookieValid = "cookies_total" {"result": "valid"};
    /// Queries with an invalid server cookie: wrong, of another address, or too old.
    CookieInvalid = "cookies_total" {"result": "invalid"};
    /// Queries with a malformed cookie: its length is not allowed.
    CookieMalformed = "cookies_total" {"result": "malformed"};
    /// Queries answered from the cache with data.
    CacheHitsPositive = "cache_hits_total" {"kind": "positive"};
    /// Queries answered from the cache with a negative answer.
    CacheHitsNegative = "cache_hits_total" {"kind": "negative"};
    /// Queries answered from the cache with synthesized addresses.
    CacheHitsSynthesized = "cache_hits_total" {"kind": "synthesized"};
    /// Queries answered from the cache with a cached failure.
    CacheHitsFailure = "cache_hits_total" {"kind": "failure"};
    /// Queries answered with stale data, because the upstreams failed.
    CacheHitsStale = "cache_hits_total" {"kind": "stale"};
    /// Queries answered by the packet cache in the kernel (XDP).
    CacheHitsKernel = "cache_hits_total" {"kind": "kernel"};
    /// Queries answered by the packet cache of a stream thread.
    CacheHitsStreams = "cache_hits_total" {"kind": "streams"};
    /// Queries for which an upstream had to be asked.
    CacheMisses = "cache_misses_total" {};
    /// Questions asked upstream because their cached data would soon expire (prefetch).
    Refreshed = "cache_refreshes_total" {};
    /// Client queries that joined a question in flight.
    Joined = "joined_total" {};
    /// Questions asked over TCP because the UDP reply was truncated.
    TcpTruncation = "upstream_tcp_total" {"reason": "truncation"};
    /// Questions asked over TCP because of a forgery attempt.
    TcpSuspicion = "upstream_tcp_total" {"reason": "suspicion"};
    /// Questions asked over TCP because the upstream rejected the server cookie that it had just sent.
    TcpCookie = "upstream_tcp_total" {"reason": "bad_cookie"};
    /// Questions asked again with the server cookie of a BADCOOKIE reply.
    UpstreamCookieRenewed = "upstream_cookies_total" {"result": "renewed"};
    /// Questions asked again without a cookie, because the upstream did not understand them with one.
    UpstreamCookieRefused = "upstream_cookies_total" {"result": "refused"};
    /// Upstreams that no longer return cookies, as a reply over TCP shows.
    UpstreamCookieLost = "upstream_cookies_total" {"result": "lost"};
    /// Tries that timed out.
    Timeouts = "upstream_timeouts_total" {};
    /// Hedged retries: sent when the reply is late, while the first attempt may still be answered.
    Hedged = "upstream_hedges_total" {"result": "sent"};
    /// Hedged retries that were answered before the first attempt.
    HedgeHelped = "upstream_hedges_total" {"result": "helped"};
    /// Hedged retries that were not sent, because the retry budget was used up.
    HedgeDeferred = "upstream_hedges_total" {"result": "held_back"};
    /// Questions to which an upstream replied with a referral only (lame).
    Lame = "upstream_unusable_replies_total" {"reason": "lame"};
    /// Questions whose reply was truncated over TCP as well.
    TruncatedOverTcp = "upstream_unusable_replies_total" {"reason": "truncated_over_tcp"};
    /// Questions whose reply had more records than are worked on.
    TooManyRecords = "upstream_unusable_replies_total" {"reason": "too_many_records"};
    /// Questions asked again without EDNS, because the upstream replied FORMERR or NOTIMP.
    EdnsRefused = "upstream_edns_refused_total" {};
    /// Links that failed: ICMP errors, refused or reset connections.
    Unreachable = "upstream_unreachable_total" {};
    /// Connections that an upstream closed or reset with queries on them, after replies.
    StreamsClosed = "upstream_streams_lost_total" {"reason": "closed"};
    /// Connections that an upstream refused, or closed without a reply.
    StreamsRefused = "upstream_streams_lost_total" {"reason": "refused"};
    /// Connections that brought no more replies, with queries on them.
    StreamsStalled = "upstream_streams_lost_total" {"reason": "stalled"};
    /// Questions that were asked again because their connection was lost.
    StreamRetries = "upstream_stream_retries_total" {};
    /// Limits learned: an upstream closes connections after a number of answers.
    LimitQuestions = "upstream_stream_limits_total" {"limit": "questions"};
    /// Limits learned: an upstream closes idle connections early.
    LimitIdle = "upstream_stream_limits_total" {"limit": "idle"};
    /// Limits learned: an upstream answers one query of a connection at a time.
    LimitOneAtATime = "upstream_stream_limits_total" {"limit": "one_at_a_time"};
    /// Replies with an error, after which another upstream was asked.
    Failover = "upstream_failovers_total" {};
    /// Questions asked without their client subnet, because too many with other subnets were in flight.
    SubnetLimit = "client_subnets_omitted_total" {"reason": "subnet_limit"};
    /// Questions asked again without their client subnet, because the upstream replied FORMERR or REFUSED.
    SubnetRefused = "client_subnets_omitted_total" {"reason": "refused"};
    /// CNAME hops: questions for the target of a chain that an upstream left unfinished.
    CnameHops = "chain_hops_total" {};
    /// Bogus checks: failures of the AAAA lookup after which the question was asked with CD set.
    BogusChecks = "bogus_checks_total" {};
    /// Validated replies that are secure.
    ValidatedSecure = "dnssec_validations_total" {"result": "secure"};
    /// Validated replies that need no signatures.
    ValidatedInsecure = "dnssec_validations_total" {"result": "insecure"};
    /// Replies that are bogus.
    ValidatedBogus = "dnssec_validations_total" {"result": "bogus"};
    /// Replies, or failures, whose zone could not be found out.
    ValidatedIndeterminate = "dnssec_validations_total" {"result": "indeterminate"};
    /// Lookups whose name was denied by NSEC records of replies to other questions.
    DeniedByNsec = "dnssec_aggressive_denials_total" {"proof": "nsec"};
    /// Lookups whose name was denied by NSEC3 records of replies to other questions.
    DeniedByNsec3 = "dnssec_aggressive_denials_total" {"proof": "nsec3"};
    /// Bogus: no other reason, such as a wrong signature.
    BogusOther = "dnssec_bogus_total" {"reason": "dnssec_bogus"};
    /// Bogus: a signature has expired.
    BogusExpired = "dnssec_bogus_total" {"reason": "signature_expired"};
    /// Bogus: a signature is not valid yet.
    BogusNotYetValid = "dnssec_bogus_total" {"reason": "signature_not_yet_valid"};
    /// Bogus: a key is missing.
    BogusKeyMissing = "dnssec_bogus_total" {"reason": "dnskey_missing"};
    /// Bogus: signatures are missing.
    BogusSignatureMissing = "dnssec_bogus_total" {"reason": "rrsigs_missing"};
    /// Bogus: a key is none of a zone.
    BogusNoZoneKey = "dnssec_bogus_total" {"reason": "no_zone_key_bit_set"};
    /// Bogus: a proof is missing.
    BogusDenial = "dnssec_bogus_total" {"reason": "nsec_missing"};
    /// Bogus: a signature expires before it becomes valid.
    BogusExpiresBeforeValid = "dnssec_bogus_total" {"reason": "signature_expired_before_valid"};
    /// Bogus: hashes with too many iterations.
    BogusIterations = "dnssec_bogus_total" {"reason": "unsupported_nsec3_iterations_value"};
    /// Signatures that were found valid.
    SignatureValid = "dnssec_signatures_total" {"result": "valid"};
    /// Signatures that were found wrong.
    SignatureWrong = "dnssec_signatures_total" {"result": "wrong"};
    /// Signatures that were found valid lately, and were not verified again.
    SignatureRemembered = "dnssec_signatures_total" {"result": "remembered"};
    /// Questions about the keys of zones that a reply waits for.
    ChainNeeded = "dnssec_chain_queries_total" {"reason": "needed"};
    /// Questions about the keys of zones in use, before they expire.
    ChainRefresh = "dnssec_chain_queries_total" {"reason": "refresh"};
    /// Extended DNS errors: the answer was synthesized.
    ExtendedSynthesized = "extended_errors_total" {"reason": "synthesized"};
    /// Extended DNS errors: the data have expired.
    ExtendedStale = "extended_errors_total" {"reason": "stale"};
    /// Extended DNS errors: the answer has data of a policy instead of the real data.
    ExtendedForged = "extended_errors_total" {"reason": "forged"};
    /// Extended DNS errors: validation failed or could not be done.
    ExtendedDnssec = "extended_errors_total" {"reason": "dnssec"};
    /// Extended DNS errors: blocked by the operator.
    ExtendedBlocked = "extended_errors_total" {"reason": "blocked"};
    /// Extended DNS errors: blocked by an outside requirement.
    ExtendedCensored = "extended_errors_total" {"reason": "censored"};
    /// Extended DNS errors: filtered at the client's request.
    ExtendedFiltered = "extended_errors_total" {"reason": "filtered"};
    /// Extended DNS errors: the client may not ask this.
    ExtendedProhibited = "extended_errors_total" {"reason": "prohibited"};
    /// Extended DNS errors: no server could or would answer.
    ExtendedNoReachableAuthority = "extended_errors_total" {"reason": "no_reachable_authority"};
    /// Extended DNS errors: no server replied.
    ExtendedNetworkError = "extended_errors_total" {"reason": "network_error"};
    /// Other extended DNS errors, which upstreams reported.
    ExtendedOther = "extended_errors_total" {"reason": "other"};
    /// Links opened.
    LinksOpened = "upstream_links_opened_total" {};
}

impl Counter {
    /// Counter of a bogus reply, by its extended DNS error.
    pub fn of_bogus(code: EdeCode) -> Counter {
        match code {
            ede::SIGNATURE_EXPIRED => Counter::BogusExpired,
            ede::SIGNATURE_NOT_YET_VALID => Counter::BogusNotYetValid,
            ede::DNSKEY_MISSING => Counter::BogusKeyMissing,
            ede::RRSIGS_MISSING => Counter::BogusSignatureMissing,
            ede::NO_ZONE_KEY_BIT => Counter::BogusNoZoneKey,
            ede::NSEC_MISSING => Counter::BogusDenial,
            ede::SIGNATURE_EXPIRED_BEFORE_VALID => Counter::BogusExpiresBeforeValid,
            ede::UNSUPPORTED_NSEC3_ITERATIONS => Counter::BogusIterations,
            _ => Counter::BogusOther,
        }
    }

    /// Counter of an extended DNS error (RFC 8914).
    pub fn of_extended_error(code: EdeCode) -> Counter {
        match code {
            ede::SYNTHESIZED => Counter::ExtendedSynthesized,
            ede::STALE | ede::STALE_NXDOMAIN => Counter::ExtendedStale,
            ede::FORGED => Counter::ExtendedForged,
            ede::UNSUPPORTED_DNSKEY_ALGORITHM | ede::UNSUPPORTED_DS_DIGEST => Counter::ExtendedDnssec,
            ede::DNSSEC_INDETERMINATE..=ede::NSEC_MISSING => Counter::ExtendedDnssec,
            ede::SIGNATURE_EXPIRED_BEFORE_VALID | ede::UNSUPPORTED_NSEC3_ITERATIONS => {
                Counter::ExtendedDnssec
            }
            ede::BLOCKED => Counter::ExtendedBlocked,
            ede::CENSORED => Counter::ExtendedCensored,
            ede::FILTERED => Counter::ExtendedFiltered,
            ede::PROHIBITED => Counter::ExtendedProhibited,
            ede::NO_REACHABLE_AUTHORITY => Counter::ExtendedNoReachableAuthority,
            ede::NETWORK_ERROR => Counter::ExtendedNetworkError,
            _ => Counter::ExtendedOther,
        }
    }
}

/// Upper bounds of the histogram buckets of the time from query to answer, in microseconds.
pub const DURATION_BOUNDS_US: [u64; 16] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000,
];

/// Prefixes whose answers are counted, each by a bit of a word.
pub const COUNTED_PREFIXES: usize = 64;

/// Values of all counters of the engine.
#[derive(Clone)]
pub struct Counters {
    values: [u64; Counter::ALL.len()],
    /// Histogram of the durations of answers; the last bucket has no bound.
    pub durations: [u64; DURATION_BOUNDS_US.len() + 1],
    /// Sum of all durations, in nanoseconds.
    pub duration_sum_ns: u64,
    /// Answers with each prefix, by its number in the table of gateways (`dns64/gateways.rs`).
    pub prefixes: [u64; COUNTED_PREFIXES],
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            values: [0; Counter::ALL.len()],
            durations: [0; DURATION_BOUNDS_US.len() + 1],
            duration_sum_ns: 0,
            prefixes: [0; COUNTED_PREFIXES],
        }
    }
}

impl Counters {
    /// Adds one to a counter.
    #[inline]
    pub fn count(&mut self, counter: Counter) {
        self.values[counter as usize] += 1;
    }

    /// Adds an amount to a counter.
    pub fn add(&mut self, counter: Counter, amount: u64) {
        self.values[counter as usize] += amount;
    }

    /// Value of a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }

    /// Adds the counters of another engine.
    pub fn include(&mut self, other: &Counters) {
        let mine = self.values.iter_mut().chain(&mut self.durations);
        mine.zip(other.values.iter().chain(&other.durations)).for_each(|(mine, other)| *mine += other);
        self.duration_sum_ns += other.duration_sum_ns;
        self.prefixes.iter_mut().zip(other.prefixes).for_each(|(mine, other)| *mine += other);
    }

    /// Counts answers with some prefixes, a bit for each.
    pub fn count_prefixes(&mut self, prefixes: u64, answers: u64) {
        let mut rest = prefixes;
        while rest != 0 {
            self.prefixes[rest.trailing_zeros() as usize] += answers;
            rest &= rest - 1;
        }
    }

    /// Counts the duration of one answer.
    #[inline]
    pub fn duration(&mut self, span: crate::base::time::Span) {
        self.durations(span, 1);
    }

    /// Counts answers that took this time each.
    #[inline]
    pub fn durations(&mut self, span: crate::base::time::Span, answers: u64) {
        let us = span.as_micros();
        let bucket =
            DURATION_BOUNDS_US.iter().position(|&bound| us <= bound).unwrap_or(DURATION_BOUNDS_US.len());
        self.durations[bucket] += answers;
        self.duration_sum_ns += span.0 * answers;
    }
}
