//! What the engine counts. Every drop, refusal and suspicion has a counter with a reason; label values come from
//! closed sets, never from a packet. Plain numbers: the driver copies them out from time to time.

use wire::{EdeCode, ede};

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident = $family:literal { $($label:literal : $value:literal),* };)*) => {
        /// One counter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Answers over UDP that were cut to fit, with TC set.
    Truncated = "truncated_responses_total" {};
    /// Synthesis because the AAAA answer was empty.
    SynthesizedNoData = "synthesized_total" {"reason": "nodata"};
    /// Synthesis because every AAAA was excluded.
    SynthesizedExcluded = "synthesized_total" {"reason": "excluded"};
    /// Synthesis because a rule ignores real AAAA records.
    SynthesizedIgnored = "synthesized_total" {"reason": "ignored"};
    /// Synthesis although the AAAA leg failed with an RCODE.
    SynthesizedError = "synthesized_total" {"reason": "aaaa_error"};
    /// Synthesis although the AAAA leg was not answered.
    SynthesizedTimeout = "synthesized_total" {"reason": "aaaa_timeout"};
    /// A real AAAA was passed on.
    NotSynthesizedReal = "not_synthesized_total" {"reason": "real_aaaa"};
    /// The name does not exist.
    NotSynthesizedNxDomain = "not_synthesized_total" {"reason": "nxdomain"};
    /// The client has no DNS64.
    NotSynthesizedClient = "not_synthesized_total" {"reason": "client"};
    /// DO and CD were both set.
    NotSynthesizedDnssec = "not_synthesized_total" {"reason": "dnssec"};
    /// RD was clear and `recursive-only` is set.
    NotSynthesizedNotRecursive = "not_synthesized_total" {"reason": "not_recursive"};
    /// The upstream says that the answer is bogus.
    NotSynthesizedBogus = "not_synthesized_total" {"reason": "bogus"};
    /// The AAAA leg failed and the configuration says: pass.
    NotSynthesizedFailure = "not_synthesized_total" {"reason": "failure_passed"};
    /// The A answer is empty.
    NotSynthesizedNoA = "not_synthesized_total" {"reason": "no_a"};
    /// The A leg failed.
    NotSynthesizedAFailed = "not_synthesized_total" {"reason": "a_failed"};
    /// No A address may be embedded, or a response policy zone denies the name.
    NotSynthesizedPolicy = "not_synthesized_total" {"reason": "policy"};
    /// Questions for `ipv4only.arpa`, or the reverse names of its addresses, that were answered here.
    LocalIpv4Only = "local_answers_total" {"zone": "ipv4only"};
    /// Questions for reverse names of the prefixes that were answered here, or followed to the IPv4 address's own.
    LocalReverse = "local_answers_total" {"zone": "reverse"};
    /// Questions for names whose records the configuration gives, by leg.
    LocalRecords = "local_answers_total" {"zone": "records"};
    /// Questions for blocked names.
    FilteredBlock = "filtered_total" {"reason": "block"};
    /// Names that do not exist by a response policy zone.
    FilteredNxDomain = "filtered_total" {"reason": "rpz_nxdomain"};
    /// Names that have nothing by a response policy zone.
    FilteredNoData = "filtered_total" {"reason": "rpz_nodata"};
    /// Questions that a response policy zone has data for.
    FilteredLocal = "filtered_total" {"reason": "rpz_local"};
    /// Questions that a response policy zone sends to TCP.
    FilteredTcpOnly = "filtered_total" {"reason": "rpz_tcp_only"};
    /// Questions that are not answered, by a response policy zone.
    FilteredDrop = "filtered_total" {"reason": "rpz_drop"};
    /// Questions that a response policy zone exempts from its other rules, and from those of later zones.
    FilteredPassthru = "filtered_total" {"reason": "rpz_passthru"};
    /// Addresses left out: not global, and the prefix is the well-known one.
    LeftOutNonGlobal = "left_out_addresses_total" {"reason": "non_global"};
    /// Addresses left out by `never-embed`.
    LeftOutNeverEmbed = "left_out_addresses_total" {"reason": "never_embed"};
    /// Addresses left out by a rule without prefixes.
    LeftOutRule = "left_out_addresses_total" {"reason": "rule"};
    /// Addresses left out by `max-records`.
    LeftOutMaxRecords = "left_out_addresses_total" {"reason": "max_records"};
    /// Clients outside `allow`.
    RefusedNotAllowed = "refused_total" {"reason": "not_allowed"};
    /// Zone transfers.
    RefusedTransfer = "refused_total" {"reason": "transfer"};
    /// The client's network has too many questions pending.
    RefusedPendingPerClient = "refused_total" {"reason": "pending_per_client"};
    /// All room for pending questions is taken, and this network holds most of it.
    RefusedPending = "refused_total" {"reason": "pending"};
    /// The client's network asks more over TCP than it may.
    RefusedQueryRate = "refused_total" {"reason": "queries_per_client"};
    /// Questions over UDP beyond the rate of the client's network that got an empty answer with TC.
    SlippedQueryRate = "slipped_total" {"reason": "queries_per_client"};
    /// Answers over UDP beyond the rate of the client's network that an empty one with TC took the place of.
    SlippedResponseRate = "slipped_total" {"reason": "responses_per_client"};
    /// Client messages shorter than a header.
    DroppedRunt = "dropped_total" {"reason": "runt"};
    /// Client messages that are responses.
    DroppedResponse = "dropped_total" {"reason": "response"};
    /// Questions over UDP beyond the rate of the client's network.
    DroppedQueryRate = "dropped_total" {"reason": "queries_per_client"};
    /// Answers over UDP beyond the rate of the client's network.
    DroppedResponseRate = "dropped_total" {"reason": "responses_per_client"};
    /// The same question from the same port with the same ID while it is pending.
    DroppedRepeated = "dropped_total" {"reason": "repeated"};
    /// Answers over UDP that came later than a client waits.
    DroppedOverdue = "dropped_total" {"reason": "overdue"};
    /// Answers that the datapath could not take.
    DroppedAnswer = "dropped_total" {"reason": "answer_not_taken"};
    /// Questions to an upstream that the datapath could not take.
    DroppedQuestion = "dropped_total" {"reason": "question_not_taken"};
    /// Upstream messages that are malformed.
    DroppedMalformedReply = "dropped_total" {"reason": "upstream_malformed"};
    /// Replies to a try that another try has made superfluous.
    DroppedLate = "dropped_total" {"reason": "upstream_late"};
    /// Upstream messages over a link that is no longer used.
    DroppedStaleLink = "dropped_total" {"reason": "upstream_stale_link"};
    /// Replies that nobody waits for: late ones, or forged ones with a guessed question.
    SuspectUnknown = "forgery_suspects_total" {"reason": "unknown_question"};
    /// Replies with the right question on the right socket, but another ID.
    SuspectId = "forgery_suspects_total" {"reason": "id"};
    /// Replies whose question has another letter case.
    SuspectCase = "forgery_suspects_total" {"reason": "case"};
    /// Replies to a question that was not asked over this socket.
    SuspectSocket = "forgery_suspects_total" {"reason": "socket"};
    /// UDP replies to a question that has gone over to TCP.
    SuspectAbandoned = "forgery_suspects_total" {"reason": "moved_to_tcp"};
    /// Replies about another client subnet than the question's.
    SuspectSubnet = "forgery_suspects_total" {"reason": "client_subnet"};
    /// Replies without our cookie from a server that has returned it before, or with another one.
    SuspectCookie = "forgery_suspects_total" {"reason": "cookie"};
    /// Messages from an upstream that are no responses.
    SuspectNotResponse = "forgery_suspects_total" {"reason": "not_a_response"};
    /// Queries with the cookie of a client that has none of ours yet.
    CookieNew = "cookies_total" {"result": "new"};
    /// Queries with a cookie of ours.
    CookieValid = "cookies_total" {"result": "valid"};
    /// Queries with a server cookie that is wrong, of another address, or too old.
    CookieInvalid = "cookies_total" {"result": "invalid"};
    /// Queries with a cookie of a length that is not allowed.
    CookieMalformed = "cookies_total" {"result": "malformed"};
    /// Questions answered out of the cache with data.
    CacheHitsPositive = "cache_hits_total" {"kind": "positive"};
    /// Questions answered out of the cache: there is nothing.
    CacheHitsNegative = "cache_hits_total" {"kind": "negative"};
    /// Questions answered out of the cache with synthesized addresses.
    CacheHitsSynthesized = "cache_hits_total" {"kind": "synthesized"};
    /// Questions answered out of the cache: asking has just failed.
    CacheHitsFailure = "cache_hits_total" {"kind": "failure"};
    /// Questions answered with data that have expired, as the upstreams failed.
    CacheHitsStale = "cache_hits_total" {"kind": "stale"};
    /// Questions for which an upstream had to be asked.
    CacheMisses = "cache_misses_total" {};
    /// Questions asked upstream because what was kept would soon expire.
    Refreshed = "cache_refreshes_total" {};
    /// Client questions that joined one already asked.
    Joined = "joined_total" {};
    /// Questions asked over TCP because the UDP reply was truncated.
    TcpTruncation = "upstream_tcp_total" {"reason": "truncation"};
    /// Questions asked over TCP because of a forgery attempt.
    TcpSuspicion = "upstream_tcp_total" {"reason": "suspicion"};
    /// Questions asked over TCP because the upstream does not like the cookie that it has just sent.
    TcpCookie = "upstream_tcp_total" {"reason": "bad_cookie"};
    /// Questions asked again with the cookie that came with BADCOOKIE.
    UpstreamCookieRenewed = "upstream_cookies_total" {"result": "renewed"};
    /// Questions asked again without a cookie: the upstream did not understand them with one.
    UpstreamCookieRefused = "upstream_cookies_total" {"result": "refused"};
    /// Upstreams that have returned cookies and do no longer, as a reply over TCP shows.
    UpstreamCookieLost = "upstream_cookies_total" {"result": "lost"};
    /// Tries that were not answered in time.
    Timeouts = "upstream_timeouts_total" {};
    /// Questions that were late and asked once more while their try may still be answered.
    RepeatedEarly = "upstream_repetitions_total" {"result": "sent"};
    /// Of these, those that were answered before what they repeat.
    RepeatHelped = "upstream_repetitions_total" {"result": "helped"};
    /// Questions that were late and had to wait, as the budget for repetitions was used up.
    HeldBack = "upstream_repetitions_total" {"result": "hedge_deferred"};
    /// Questions to which an upstream had nothing but a referral.
    Lame = "upstream_useless_total" {"reason": "lame"};
    /// Questions whose reply was truncated over TCP, too.
    CutOverTcp = "upstream_useless_total" {"reason": "truncated_over_tcp"};
    /// Questions asked again without EDNS: the upstream replied FORMERR or NOTIMP.
    EdnsRefused = "upstream_edns_refused_total" {};
    /// Links that failed: ICMP errors, refused or reset connections.
    Unreachable = "upstream_unreachable_total" {};
    /// Replies with an error that made another upstream be asked.
    Failover = "upstream_failovers_total" {};
    /// Questions asked without their client subnet: too many with others were in flight.
    SubnetCrowded = "client_subnets_left_out_total" {"reason": "crowded"};
    /// Questions asked again without their client subnet: the upstream replied FORMERR or REFUSED.
    SubnetRefused = "client_subnets_left_out_total" {"reason": "refused"};
    /// Chains that an upstream left unfinished and that were followed.
    Hops = "chain_hops_total" {};
    /// Failures of the AAAA leg that were asked about without validation.
    Doubts = "doubted_failures_total" {};
    /// Extended errors: the answer was synthesized.
    ExtendedSynthesized = "extended_errors_total" {"reason": "synthesized"};
    /// Extended errors: the data have expired.
    ExtendedStale = "extended_errors_total" {"reason": "stale"};
    /// Extended errors: the answer has data of a policy in the place of others.
    ExtendedForged = "extended_errors_total" {"reason": "forged"};
    /// Extended errors: validation failed or could not be done.
    ExtendedDnssec = "extended_errors_total" {"reason": "dnssec"};
    /// Extended errors: blocked by the operator.
    ExtendedBlocked = "extended_errors_total" {"reason": "blocked"};
    /// Extended errors: blocked by an outside requirement.
    ExtendedCensored = "extended_errors_total" {"reason": "censored"};
    /// Extended errors: blocked at the client's wish.
    ExtendedFiltered = "extended_errors_total" {"reason": "filtered"};
    /// Extended errors: the client may not ask this.
    ExtendedProhibited = "extended_errors_total" {"reason": "prohibited"};
    /// Extended errors: no server could or would answer.
    ExtendedNoReachableAuthority = "extended_errors_total" {"reason": "no_reachable_authority"};
    /// Extended errors: no server replied.
    ExtendedNetworkError = "extended_errors_total" {"reason": "network_error"};
    /// Other extended errors, which upstreams told.
    ExtendedOther = "extended_errors_total" {"reason": "other"};
    /// Links opened.
    LinksOpened = "upstream_links_opened_total" {};
}

impl Counter {
    /// What an extended error (RFC 8914) counts as.
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

/// Upper bounds of the buckets of the time from question to answer, in microseconds.
pub const DURATION_BOUNDS_US: [u64; 16] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000,
];

/// The engine's counters.
#[derive(Clone)]
pub struct Counters {
    values: [u64; Counter::ALL.len()],
    /// Answers by duration; the last bucket has no bound.
    pub durations: [u64; DURATION_BOUNDS_US.len() + 1],
    /// Sum of all durations, in nanoseconds.
    pub duration_sum_ns: u64,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            values: [0; Counter::ALL.len()],
            durations: [0; DURATION_BOUNDS_US.len() + 1],
            duration_sum_ns: 0,
        }
    }
}

impl Counters {
    /// Counts one.
    #[inline]
    pub fn count(&mut self, counter: Counter) {
        self.values[counter as usize] += 1;
    }

    /// Counts several.
    pub fn add(&mut self, counter: Counter, amount: u64) {
        self.values[counter as usize] += amount;
    }

    /// The value of a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }

    /// Counts the duration of one answer.
    #[inline]
    pub fn duration(&mut self, span: crate::base::time::Span) {
        let us = span.as_micros();
        let bucket =
            DURATION_BOUNDS_US.iter().position(|&bound| us <= bound).unwrap_or(DURATION_BOUNDS_US.len());
        self.durations[bucket] += 1;
        self.duration_sum_ns += span.0;
    }
}
