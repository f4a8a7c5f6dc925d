//! The table of metrics. A metric is one entry: its name, type, labels, the sentence that is its HELP text, and more for the page about
//! metrics, `docs/reference/metrics.md`, which is written from here. Labels and the text for the page are Markdown.

/// Metrics of one section of the page.
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// Text below the heading.
    pub introduction: &'static str,
    /// The metrics.
    pub families: &'static [Family],
}

/// A metric with all its labels.
pub struct Family {
    /// The name, as outside tools see it.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: &'static str,
    /// Its labels and their values.
    pub labels: &'static str,
    /// Its sentence; it may have backquotes, and no links.
    pub sentence: &'static str,
    /// Further sentences of the page.
    pub more: &'static str,
}

impl Family {
    const fn of(
        name: &'static str,
        kind: &'static str,
        labels: &'static str,
        sentence: &'static str,
        more: &'static str,
    ) -> Family {
        Family { name, kind, labels, sentence, more }
    }

    /// The metric with this name.
    pub fn named(name: &str) -> Option<&'static Family> {
        SECTIONS.iter().flat_map(|section| section.families).find(|family| family.name == name)
    }

    /// The sentence as plain text.
    pub fn help(&self) -> String {
        self.sentence.replace('`', "")
    }
}

/// All metrics.
#[rustfmt::skip]
pub const SECTIONS: &[Section] = &[
    Section {
        title: "Clients",
        introduction: "",
        families: &[
            Family::of("sixfold_queries_total", "counter",
                "`transport`: `udp` `tcp` `tls` `https` `quic`; `family`: `ipv4` `ipv6`", "Messages from clients.", ""),
            Family::of("sixfold_responses_total", "counter",
                "`rcode`: `noerror` `formerr` `servfail` `nxdomain` `notimp` `refused` `other`", "Answers to clients.", ""),
            Family::of("sixfold_truncated_responses_total", "counter",
                "", "Answers over UDP with TC set, because they were too large.", ""),
            Family::of("sixfold_copied_responses_total", "counter",
                "", "Answers copied from the answer to another query that waited for the same reply.", ""),
            Family::of("sixfold_request_duration_seconds", "histogram",
                "`le`", "Time from query to answer; buckets from 50 µs to 5 s.",
                "An answer from the cache counts with 0, in the first bucket. Queries that are refused or dropped at once do not count. For the \
                 time of queries that waited for an upstream, take `sixfold_cache_hits_total` off the first bucket and the count."),
            Family::of("sixfold_refused_total", "counter",
                "`reason`: `not_allowed` outside `server.allow`; `transfer` AXFR, IXFR; `class` names of class CH that are not told; \
                 `pending_per_client` too many pending queries of the client network over TCP or with a valid cookie; `pending` the table of \
                 pending queries is full and this network, or its customer prefix, holds most of it; `queries_per_client` too high a query rate \
                 over TCP", "Queries answered with REFUSED.", ""),
            Family::of("sixfold_slipped_total", "counter",
                "`reason`: `queries_per_client` query rate of the client network or its customer prefix; `responses_per_client` rate of one \
                 answer; `pending_per_client` too many pending queries", "Queries over UDP that got an empty answer with TC because of a limit.",
                ""),
            Family::of("sixfold_cookies_total", "counter",
                "`result`: `new` only a client cookie; `valid`; `invalid` wrong, for another address, or too old; `malformed` answered with FORMERR",
                "Messages from clients with a cookie.", ""),
            Family::of("sixfold_cache_hits_total", "counter",
                "`kind`: `positive` data; `negative`; `synthesized` addresses made from cached A records; `failure`; `stale` expired data (also \
                 a miss if an upstream was tried); `kernel` answers of any kind by the [XDP program](../how-to/af-xdp.md#popular-answers), \
                 counted here only, once a second; `streams` those of a [stream thread](../explanation/cache.md#answers-of-the-stream-threads), \
                 counted here only", "Queries answered from the cache.", ""),
            Family::of("sixfold_cache_misses_total", "counter", "", "Queries that needed an upstream.", ""),
            Family::of("sixfold_cache_refreshes_total", "counter",
                "", "Questions asked upstream to refresh a cache entry before it expires.",
                "See [refresh before expiry](../explanation/cache.md#refresh-before-expiry)."),
            Family::of("sixfold_cache_bytes", "gauge", "", "Bytes in cache entries.", ""),
            Family::of("sixfold_cache_limit_bytes", "gauge", "", "`cache.size` in bytes.", ""),
            Family::of("sixfold_cache_entries", "gauge", "", "Live cache entries.", ""),
            Family::of("sixfold_joined_total", "counter", "", "Queries that joined an equal query in flight.", ""),
            Family::of("sixfold_pending", "gauge", "", "Pending client queries.", ""),
            Family::of("sixfold_pending_limit", "gauge",
                "", "Client queries that may be pending: `limits.pending` times the workers.", ""),
            Family::of("sixfold_client_packets_in_total", "counter", "", "Datagrams received from clients.", ""),
            Family::of("sixfold_client_packets_out_total", "counter", "", "Datagrams sent to clients.", ""),
            Family::of("sixfold_client_bytes_in_total", "counter", "", "Bytes of messages in datagrams from clients.", ""),
            Family::of("sixfold_client_bytes_out_total", "counter", "", "Bytes of messages in datagrams to clients.", ""),
        ],
    },
    Section {
        title: "Synthesis",
        introduction: "",
        families: &[
            Family::of("sixfold_synthesized_total", "counter",
                "`reason`, the result of the AAAA lookup: `nodata`; `excluded` all AAAA records; `ignored` by a rule; `dead` all addresses; `aaaa_error`; `aaaa_timeout`",
                "Answers with synthesized AAAA records.", ""),
            Family::of("sixfold_not_synthesized_total", "counter",
                "`reason`: `real_aaaa` a real AAAA record; `nxdomain`; `client` outside `dns64.clients`, or excluded there; `dnssec` DO and CD \
                 are set; `not_recursive` RD is clear; `bogus` the upstream, or the validation here, calls the data bogus; `unproven` validation lacks keys or DS \
                 records; `failure_passed` by `dns64.on-failure`; `no_a` \
                 no A record; `a_failed` the A lookup failed; `policy` no address may be embedded, or a response policy zone denies the name; \
                 `no_gateway` no gateway of the prefixes is up, and `dns64.health.all-down` is \"empty\"; \
                 `no_prefix` no prefix has been discovered",
                "AAAA queries answered without synthesis.", ""),
            Family::of("sixfold_local_answers_total", "counter",
                "`zone`: `ipv4only` `ipv4only.arpa` and the reverse names of its addresses; `reverse` reverse names under the prefixes; \
                 `localhost`, `invalid`, `onion`; `resolver` `resolver.arpa`; `empty` `home.arpa` and the zones of `local.empty-zones`; `server` \
                 names of class CH about the server itself; `records` names of `[local]`, counted per lookup", "Queries answered from local data.",
                ""),
            Family::of("sixfold_filtered_total", "counter",
                "`reason`: `block` a name of `filter.block`; by a response policy zone: `rpz_nxdomain`, `rpz_nodata`, `rpz_local` data of the \
                 zone, `rpz_tcp_only` sent to TCP, `rpz_drop` not answered, `rpz_passthru` exempted; `private_address` replies that lost addresses of \
                 `filter.private-addresses`", "Queries decided by a filter.", ""),
            Family::of("sixfold_suppressed_a_total", "counter",
                "", "A queries answered without addresses, by a rule with `a = \"suppress\"`.", ""),
            Family::of("sixfold_omitted_addresses_total", "counter",
                "`reason`: `non_global` `never_embed` `rule` `max_records`", "IPv4 addresses that were not embedded.", ""),
            Family::of("sixfold_prefix_up", "gauge",
                "`prefix`", "1 if new answers have the prefix: its gateway is up, or nobody probes it; 0 if it is down, or the prefix drains.",
                "Of more than 64 prefixes only the first have metrics: those of `dns64.prefixes`, then those with a gateway."),
            Family::of("sixfold_prefix_probe_duration_seconds", "gauge",
                "`prefix`", "Round trip of the latest probe of its gateway that was answered; absent before the first.", ""),
            Family::of("sixfold_prefix_answers_total", "counter",
                "`prefix`", "Answers with synthesized addresses under the prefix.",
                "Counted with `dns64.spread`, with a `[[dns64.gateway]]`, or while a prefix drains; absent otherwise. A copy of a cached \
                 answer counts for all prefixes in use for its client, although `max-records` and `non-global` may keep one out of it."),
            Family::of("sixfold_address_trials_total", "counter",
                "`result`: `alive` a connection was established; `dead` none; `impossible` this machine has no route or no socket; `dropped` for \
                 lack of room", "Trials of addresses in real AAAA records, for rules with `real-aaaa = \"verify\"`.",
                "See [dead AAAA records](../how-to/dead-aaaa.md)."),
            Family::of("sixfold_bogus_checks_total", "counter",
                "", "AAAA queries that failed without a reason and were repeated with CD.", "See [DNSSEC](../explanation/dnssec.md)."),
            Family::of("sixfold_dnssec_validations_total", "counter",
                "`result`: `secure` `insecure` `bogus`; `indeterminate` if the keys of a zone, or that it has none, could not be found out",
                "Replies that the server has validated.", "See [DNSSEC](../explanation/dnssec.md)."),
            Family::of("sixfold_dnssec_bogus_total", "counter",
                "`reason`: that of the extended DNS error, in words: `dnssec_bogus` 6; `signature_expired` 7; `signature_not_yet_valid` 8; \
                 `dnskey_missing` 9; `rrsigs_missing` 10; `no_zone_key_bit_set` 11; `nsec_missing` 12; `signature_expired_before_valid` 25; \
                 `unsupported_nsec3_iterations_value` 27", "Replies that were bogus.", "See [extended errors](extended-errors.md)."),
            Family::of("sixfold_dnssec_signatures_total", "counter",
                "`result`: `valid`; `wrong`; `remembered` found valid lately, and not verified again", "Signatures of replies.", ""),
            Family::of("sixfold_dnssec_verification_seconds_total", "counter",
                "", "Processor time of the threads that verify signatures.", ""),
            Family::of("sixfold_dnssec_chain_queries_total", "counter",
                "`reason`: `needed` a reply waits for it; `refresh` the keys of a zone in use are about to expire",
                "Upstream lookups of DS and DNSKEY records, to find the keys of zones.",
                "Each counts once, however often its query is repeated."),
            Family::of("sixfold_dnssec_aggressive_denials_total", "counter",
                "`proof`: `nsec` `nsec3`", "Lookups whose name the proofs of replies to other questions deny.",
                "See [proofs for other names](../explanation/dnssec.md#proofs-for-other-names)."),
            Family::of("sixfold_trust_anchors", "gauge",
                "`state`: `valid` trusted; `missing` trusted, and not published any more; `add-pend` waits to be trusted; `revoked`; `removed` \
                 revoked more than 30 days ago", "Keys of trust anchors, by state; with `dns64.dnssec = \"validate\"`.",
                "See [trust anchors](../how-to/validate.md#trust-anchors)."),
            Family::of("sixfold_negative_trust_anchors", "gauge",
                "", "Negative trust anchors, of the configuration and of operators; with `dns64.dnssec = \"validate\"`.", ""),
            Family::of("sixfold_extended_errors_total", "counter",
                "`reason`: `synthesized` 29; `stale` 3, 19; `forged` 4; `dnssec` 1, 2, 5 to 12, 25, 27; `blocked` 15; `censored` 16; `filtered` \
                 17; `prohibited` 18; `no_reachable_authority` 22; `network_error` 23; `other`", "Answers with an extended DNS error, by code.",
                "See [extended errors](extended-errors.md)."),
            Family::of("sixfold_chain_hops_total", "counter",
                "", "Upstream queries for the target of an alias that the upstream did not resolve.", ""),
        ],
    },
    Section {
        title: "Upstreams",
        introduction: "`upstream` is address and port of the configuration.",
        families: &[
            Family::of("sixfold_upstream_queries_total", "counter",
                "`upstream`; `type`: `AAAA` `A` `other` `probe`", "Upstream queries; each attempt counts.", ""),
            Family::of("sixfold_upstream_duration_seconds", "histogram", "`upstream`; `le`", "Time from upstream query to reply.", ""),
            Family::of("sixfold_upstream_up", "gauge",
                "`upstream`", "0 if the upstream is dead or failing, or strips signatures, in all workers, else 1.",
                "See [circuit breakers](../explanation/upstream-failures.md#circuit-breakers)."),
            Family::of("sixfold_upstream_timeouts_total", "counter", "", "Attempts at upstreams that timed out.", ""),
            Family::of("sixfold_upstream_failovers_total", "counter",
                "", "Error replies after which another upstream was queried.", ""),
            Family::of("sixfold_upstream_hedges_total", "counter",
                "`result`: `sent`; `helped` answered before the attempt that it repeats; `held_back` not sent, for lack of budget",
                "Hedges: late upstream queries that were repeated, or not for lack of budget.",
                "See [hedges](../explanation/upstream-failures.md#hedges)."),
            Family::of("sixfold_upstream_unusable_replies_total", "counter",
                "`reason`: `lame` a referral or nothing; `truncated_over_tcp`; `too_many_records` more than 512 in one reply",
                "Queries without a usable reply from any upstream, by the last reply.", ""),
            Family::of("sixfold_upstream_edns_refused_total", "counter",
                "", "Upstream queries repeated without EDNS after FORMERR or NOTIMP.", ""),
            Family::of("sixfold_upstream_unreachable_total", "counter",
                "", "Links to upstreams that failed: ICMP errors, refused and reset connections.", ""),
            Family::of("sixfold_upstream_streams_lost_total", "counter",
                "`reason`: `closed` or reset after replies; `refused` or closed without a reply; `stalled`",
                "TCP and TLS connections to upstreams that were lost with queries outstanding.", ""),
            Family::of("sixfold_upstream_stream_retries_total", "counter",
                "", "Upstream queries repeated because their connection was lost.", ""),
            Family::of("sixfold_upstream_stream_limits_total", "counter",
                "`limit`: `questions` a number of answers; `idle` a short idle time; `one_at_a_time` one query at a time",
                "Limits of connections to an upstream that a worker learned.", "Forgotten after 10 minutes; then each counts again."),
            Family::of("sixfold_upstream_tcp_total", "counter",
                "`reason`: `truncation`; `suspicion` a forgery attempt; `bad_cookie` the upstream rejects its own cookie",
                "Upstream queries that moved from UDP to TCP.", ""),
            Family::of("sixfold_client_subnets_omitted_total", "counter",
                "`reason`: `subnet_limit` eight equal queries were in flight; `refused` FORMERR or REFUSED",
                "Upstream queries without the client subnet.", "See [client subnets](../explanation/cookies-and-subnets.md#client-subnets)."),
            Family::of("sixfold_upstream_cookies_total", "counter",
                "`result`: `renewed` repeated with the cookie of a BADCOOKIE reply; `refused` repeated without a cookie after FORMERR; `lost` a \
                 reply over TCP lacks the cookie that the upstream used to return", "Changes in the use of cookies with upstreams.", ""),
            Family::of("sixfold_forgery_suspects_total", "counter",
                "`reason`: `unknown_question` no query waits for it: late or guessed; `id` wrong message ID; `case` wrong letter case; \
                 `client_subnet` another subnet than in the query; `cookie` missing or wrong, from an upstream that has returned it before; \
                 `socket` another socket than that of the query; `moved_to_tcp` over UDP although the query has moved to TCP; `not_a_response` a \
                 query, or another opcode than QUERY", "Messages from upstream addresses that were rejected.", ""),
            Family::of("sixfold_upstream_queries_in_flight", "gauge", "", "Lookups that wait for a reply of an upstream.", ""),
            Family::of("sixfold_upstream_links", "gauge", "", "Open sockets and connections to upstreams.", ""),
            Family::of("sixfold_upstream_links_opened_total", "counter",
                "", "Sockets and connections to upstreams that were opened.",
                "`sixfold_dropped_total{reason=\"upstream_open_failed\"}` has those that could not be opened."),
            Family::of("sixfold_upstream_tls_handshakes_total", "counter",
                "`kind`: `full` `resumed`", "Handshakes of TLS with upstreams.", ""),
            Family::of("sixfold_upstream_tls_failures_total", "counter",
                "`reason`: `name` `expired` `issuer` `pin` `certificate` `protocol` `closed` `timeout`",
                "Failed handshakes of TLS with upstreams.",
                "The certificate: is for other names; has expired or is not valid yet; is from no trust anchor; has a key that fits no pin; has \
                 another fault. The upstream: does not speak TLS, or sent an alert; ended the connection; took too long."),
            Family::of("sixfold_links_opened_total", "counter",
                "", "Sockets and connections to upstreams that were opened, as the datapath counts them.",
                "A check: equal to `sixfold_upstream_links_opened_total`."),
            Family::of("sixfold_upstream_packets_in_total", "counter", "", "Messages from upstreams.", ""),
            Family::of("sixfold_upstream_packets_out_total", "counter", "", "Messages to upstreams.", ""),
            Family::of("sixfold_upstream_bytes_in_total", "counter", "", "Bytes of messages from upstreams.", ""),
            Family::of("sixfold_upstream_bytes_out_total", "counter", "", "Bytes of messages to upstreams.", ""),
        ],
    },
    Section {
        title: "Client connections",
        introduction: "Over TCP, TLS, HTTPS and QUIC.",
        families: &[
            Family::of("sixfold_stream_connections", "gauge", "", "Open client connections.", ""),
            Family::of("sixfold_stream_connections_limit", "gauge",
                "", "Client connections that may be open: `tcp-connections`, or less if the limit of open files is low.", ""),
            Family::of("sixfold_stream_connections_total", "counter",
                "`result`: `accepted`; `total_limit` `tcp-connections`; `client_limit` `tcp-per-client`, or the share of the customer prefix; \
                 `accept_failed` mostly too few file descriptors", "Client connection attempts, by result.", ""),
            Family::of("sixfold_stream_closed_total", "counter",
                "`reason`: `ended` by the client; `idle`; `displaced` idle for the longest time when a new client needed a slot; `slow_reader` \
                 the client did not read its answers; `slow_sender` a message took too long; `malformed_length` shorter than a DNS header; \
                 `proxy_header` missing or malformed, from a proxy; `client_limit` the same limits, behind a proxy; `handshake` TLS failed or \
                 took too long; `reset`; `unanswered` answers did not come, or over HTTP/1.1 a policy drops the query; `buffers` all buffers were \
                 full, and the client network held most; `protocol_error` against the rules of DNS over QUIC; `cancellations` too many queries \
                 cancelled over QUIC; `drained` the server stops, or a new process has replaced it", "Closed client connections.", ""),
            Family::of("sixfold_stream_accepted_total", "counter",
                "`transport`: `tcp` `tls` `https`", "Accepted client connections, before the handshake of TLS.", ""),
            Family::of("sixfold_tls_handshakes_total", "counter", "`kind`: `full` `resumed`", "Handshakes of TLS with clients.", ""),
            Family::of("sixfold_tls_handshake_failures_total", "counter",
                "`reason`: `no_shared_parameters` no version, cipher suite or group in common; `not_tls` plain DNS or HTTP; `malformed`; `alpn` \
                 the client wants another protocol; `alert` the client refused, mostly the certificate; `closed`; `timeout` not done within 5 s \
                 or `tcp-idle`; `displaced` the oldest of more than 1,024; `client_rate` not begun: the client network or its customer prefix \
                 began too many; `other`", "Handshakes of TLS with clients that failed.", ""),
            Family::of("sixfold_tls_certificate_expiry_timestamp_seconds", "gauge",
                "", "End of the certificate of the encrypted listeners, in seconds since 1970.", "Only with a certificate."),
            Family::of("sixfold_stream_questions_total", "counter",
                "`result`: `posted` handed to a worker; `answered` by the stream thread; `refused` with SERVFAIL, for lack of room",
                "Queries over client connections.", ""),
            Family::of("sixfold_stream_answers_total", "counter",
                "`result`: `queued`; `undeliverable` no connection any more; `overrun` too many answers on the way: the connection is closed, or \
                 the request fails", "Answers to client connections.", ""),
            Family::of("sixfold_https_responses_total", "counter",
                "`status`: `2xx` an answer; `4xx` a bad request; `5xx` no room, or no answer in time", "Responses to HTTPS requests.", ""),
            Family::of("sixfold_quic_handshakes_total", "counter",
                "`result`: `completed`; `retry` the client had to prove its address first; `busy` refused: 1,024 handshakes were under way; \
                 `client_rate` refused: the client network or its customer prefix began too many", "QUIC connection attempts.", ""),
            Family::of("sixfold_quic_handshake_failures_total", "counter",
                "`reason`: `alpn` the client did not offer `doq`; `tls`; `client` the client gave up, perhaps because of the certificate; \
                 `timeout`; `protocol` against the rules of QUIC", "Failed QUIC handshakes.", ""),
            Family::of("sixfold_quic_streams_total", "counter",
                "`result`: `answered`; `cancelled` by the client; `failed` no room, or no answer in time", "Queries over QUIC.", ""),
            Family::of("sixfold_quic_early_queries_total", "counter",
                "`result`: `answered` at once; `deferred` until the end of the handshake: not a query", "Messages in 0-RTT data.", ""),
            Family::of("sixfold_quic_datagrams_ignored_total", "counter",
                "`reason`: `not_quic`; `unknown_connection` plain DNS, or a connection from before a restart",
                "Ignored datagrams to the QUIC port.", ""),
            Family::of("sixfold_stream_answers_out_total", "counter", "", "Answers that workers handed to connections.", ""),
        ],
    },
    Section {
        title: "Drops, and the server itself",
        introduction: "",
        families: &[
            Family::of("sixfold_dropped_total", "counter",
                "`reason`: see [dropped messages](dropped-messages.md)", "Dropped messages.", ""),
            Family::of("sixfold_worker_handoffs_total", "counter", "", "Queries passed to the responsible worker.", ""),
            Family::of("sixfold_hot_names_total", "counter",
                "", "Popular names; all workers answer them for a minute.", "See [terms](terms.md)."),
            Family::of("sixfold_receive_batches_total", "counter", "", "Receive calls that returned something.", ""),
            Family::of("sixfold_send_batches_total", "counter", "", "Send calls.", ""),
            Family::of("sixfold_turns_total", "counter", "", "Iterations of the event loops.", ""),
            Family::of("sixfold_dnstap_frames_total", "counter",
                "`result`: `sent`; `dropped`: the reader is slow or gone", "Messages for the reader of dnstap.", ""),
            Family::of("sixfold_metrics_refused_total", "counter",
                "", "Connections to the HTTP server that were closed, because `metrics.allow` does not have their address.", ""),
            Family::of("sixfold_workers", "gauge", "", "Workers.", ""),
            Family::of("sixfold_workers_responding", "gauge",
                "", "Workers that answered this scrape within two seconds.", "The others contribute their last values."),
            Family::of("sixfold_ready", "gauge",
                "", "1 if the server is to get queries, as `/readyz` says, 0 if not.", "See [health](../how-to/monitor.md#health)."),
            Family::of("sixfold_draining", "gauge", "", "1 while the server drains.", ""),
            Family::of("sixfold_log_lines_total", "counter",
                "`result`: `written`; `held_back` repetitions; `dropped` the target hung or refused", "Lines of the log.", ""),
            Family::of("sixfold_drained", "gauge", "", "1 while `ctl drain` is in force.", ""),
            Family::of("sixfold_config_reloads_total", "counter", "`result`: `succeeded` `failed`", "Reloads since the start.", ""),
            Family::of("sixfold_config_last_reload_successful", "gauge",
                "", "1 if the last reload succeeded, 0 if the old configuration is in force.", "The start counts as a success."),
            Family::of("sixfold_config_last_reload_success_timestamp_seconds", "gauge",
                "", "Time of the last successful reload, in seconds since 1970.", ""),
            Family::of("sixfold_cpu_seconds_total", "counter", "", "Processor time, user and system.", ""),
            Family::of("process_cpu_seconds_total", "counter",
                "", "Processor time of the process, user and system.", "This and the next five have the usual names of Prometheus."),
            Family::of("process_resident_memory_bytes", "gauge", "", "Resident memory of the process.", ""),
            Family::of("process_virtual_memory_bytes", "gauge", "", "Address space of the process.", ""),
            Family::of("process_open_fds", "gauge", "", "Open file descriptors.", ""),
            Family::of("process_max_fds", "gauge", "", "Limit of open file descriptors.", ""),
            Family::of("process_start_time_seconds", "gauge", "", "Start of the process, in seconds since 1970.", ""),
            Family::of("sixfold_rpz_serial", "gauge", "`file`", "Serial number of the response policy zone.", ""),
            Family::of("sixfold_rpz_records", "gauge", "`file`", "Records of a response policy zone in force, with the SOA record.", ""),
            Family::of("sixfold_rpz_skipped_records", "gauge", "`file`", "Records of a response policy zone that were left out.", ""),
            Family::of("sixfold_rpz_modified_timestamp_seconds", "gauge",
                "`file`", "Last change of the file of a response policy zone that was read, in seconds since 1970.", ""),
            Family::of("sixfold_upgrades_total", "counter",
                "`result`: `success`; `failure` the old process went on", "Upgrades since the start of the first process.", ""),
            Family::of("sixfold_upgrade_last_success_timestamp_seconds", "gauge",
                "", "Last successful upgrade, in seconds since 1970; 0 if there was none.", ""),
            Family::of("sixfold_uptime_seconds", "gauge", "", "Time since the start.", ""),
            Family::of("sixfold_build_info", "gauge", "`version`; `commit`", "Version and commit.", "Always 1."),
        ],
    },
];
