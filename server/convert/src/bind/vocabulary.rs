//! Statements of BIND that set no key of Sixfold, each with the reason.

use crate::ledger::Known::{self, LeftOver, NoMeaning};

const PROCESS: &str = "files and resources of the process, which Sixfold names itself";
const AUTHORITATIVE: &str = "concerns zones that BIND serves or transfers";
const RECURSION: &str = "concerns the resolution from the root, and Sixfold forwards";

/// Statements outside of `options`.
pub(super) const TOP_LEVEL: &[(&str, Known)] = &[
    ("controls", NoMeaning("Sixfold has a control socket of its own")),
    ("logging", LeftOver("write it by hand: [log] in sixfold.toml(5)")),
    ("key", NoMeaning("keys are for zone transfers, updates and rndc")),
    ("statistics-channels", LeftOver("see `metrics.listen`, with metrics for Prometheus")),
    ("masters primaries parental-agents remote-servers dnssec-policy key-store", NoMeaning(AUTHORITATIVE)),
    ("server", LeftOver("Sixfold has no options for single forwarders")),
    ("dlz dyndb plugin", LeftOver("Sixfold has no modules")),
];

/// Statements in `options` and in views.
pub(super) const OPTIONS: &[(&str, Known)] = &[
    ("min-ncache-ttl", LeftOver("`cache.min-ttl` is for positive and negative answers at once")),
    ("stale-cache-enable", NoMeaning("`stale-answer-enable` decides about stale answers")),
    ("resolver-query-timeout", LeftOver("see `upstream.timeout` and `upstream.tries`, for one try each")),
    (
        "pid-file session-keyfile session-keyname session-keyalg lock-file managed-keys-directory bindkeys-file dump-file \
         statistics-file memstatistics memstatistics-file recursing-file secroots-file coresize datasize files stacksize \
         reserved-sockets tkey-gssapi-keytab tkey-gssapi-credential tkey-domain tkey-dhkey random-device geoip-directory \
         new-zones-directory lmdb-mapsize interface-interval automatic-interface-scan heartbeat-interval tcp-listen-queue \
         tcp-receive-buffer tcp-send-buffer udp-receive-buffer udp-send-buffer reuseport transfer-message-size",
        NoMeaning(PROCESS),
    ),
    (
        "allow-transfer allow-update allow-update-forwarding allow-notify also-notify notify notify-source notify-source-v6 \
         notify-delay notify-rate notify-to-soa startup-notify-rate transfer-source transfer-source-v6 transfer-format \
         transfers-in transfers-out transfers-per-ns serial-query-rate masterfile-format masterfile-style max-records \
         max-zone-ttl max-journal-size max-transfer-time-in max-transfer-time-out max-transfer-idle-in max-transfer-idle-out \
         provide-ixfr request-ixfr request-expire ixfr-from-differences min-refresh-time max-refresh-time min-retry-time \
         max-retry-time allow-new-zones zone-statistics dialup auto-dnssec dnssec-policy dnssec-update-mode \
         dnssec-loadkeys-interval dnssec-secure-to-insecure key-directory sig-validity-interval sig-signing-nodes \
         sig-signing-signatures sig-signing-type update-check-ksk inline-signing check-names check-dup-records check-mx \
         check-mx-cname check-srv-cname check-sibling check-integrity check-spf check-wildcard check-svcb try-tcp-refresh \
         flush-zones-on-shutdown multi-master serial-update-method alt-transfer-source use-alt-transfer-source nsec3-test-zone \
         parental-source transfer-source alt-transfer-source-v6 catalog-zones \
         dnskey-sig-validity dnssec-dnskey-kskonly update-quota",
        NoMeaning(AUTHORITATIVE),
    ),
    (
        "root-delegation-only qname-minimization \
         max-recursion-depth max-recursion-queries resolver-nonbackoff-tries preferred-glue glue-cache lame-ttl servfail-ttl trust-anchor-telemetry \
         dual-stack-servers attach-cache cleaning-interval root-key-sentinel deny-answer-hosts \
         max-query-count max-query-restarts sig0checks-quota",
        NoMeaning(RECURSION),
    ),
    ("dnssec-must-be-secure", LeftOver("Sixfold takes data of secure and of insecure zones")),
    ("disable-algorithms disable-ds-digests", LeftOver("see `dnssec.algorithms`, which holds for all names")),
    ("dnssec-lookaside", NoMeaning("DNSSEC lookaside validation has ended (RFC 8749)")),
    (
        "nta-lifetime nta-recheck",
        NoMeaning("`sixfold ctl anchors add-negative` takes the end of each negative anchor"),
    ),
    ("use-v4-udp-ports use-v6-udp-ports", LeftOver("name the other ports in `upstream.avoid-ports`")),
    ("querylog", LeftOver("Sixfold logs no queries")),
    ("sortlist rrset-order", LeftOver("records stay in the order of the upstream")),
    (
        "dnstap dnstap-output dnstap-identity dnstap-version",
        LeftOver("write it by hand: `log.dnstap` in sixfold.toml(5)"),
    ),
    (
        "deny-answer-addresses",
        LeftOver(
            "write `filter.private-addresses` by hand: it takes such addresses away, where BIND refuses the answer",
        ),
    ),
    ("deny-answer-aliases", LeftOver("a response policy zone (`filter.rpz`) can refuse names")),
    (
        "allow-query-on allow-recursion-on allow-query-cache-on",
        LeftOver("`server.allow` holds for all listening addresses"),
    ),
    ("keep-response-order", NoMeaning("answers over TCP may come in any order (RFC 7766)")),
    ("tcp-initial-timeout tcp-keepalive-timeout tcp-advertised-timeout", LeftOver("see `limits.tcp-idle`")),
    (
        "require-server-cookie nocookie-udp-size cookie-algorithm",
        LeftOver("see `edns.cookies`; the algorithm is SipHash-2-4"),
    ),
    (
        "ipv4only-server ipv4only-contact empty-server empty-contact",
        LeftOver("see `dns64.ptr-server` and `dns64.ptr-contact`"),
    ),
    (
        "response-padding",
        LeftOver("Sixfold pads the answers over encrypted transports to 468 octets (RFC 8467)"),
    ),
    (
        "stale-answer-ttl stale-refresh-time stale-answer-client-timeout",
        LeftOver("Sixfold follows RFC 8767: 30 s, 30 s, 1.8 s"),
    ),
    ("clients-per-query max-clients-per-query", NoMeaning("equal questions share one upstream query")),
    (
        "fetches-per-zone fetches-per-server fetch-quota-params",
        LeftOver("Sixfold limits by client: see [limits]"),
    ),
    (
        "minimal-any minimal-responses additional-from-auth additional-from-cache auth-nxdomain",
        NoMeaning("Sixfold passes on the sections of the upstream"),
    ),
    ("http-port https-port tls-port", LeftOver("write the ports into `tls.listen-dot` and `tls.listen-doh`")),
    (
        "http-listener-clients http-streams-per-connection",
        LeftOver("see `limits.tcp-connections`, for all listeners over connections"),
    ),
    (
        "match-recursive-only",
        LeftOver("the instance of this view answers all queries of its clients, with RD and without"),
    ),
    ("no-case-compress message-compression", NoMeaning("Sixfold passes on the names of the upstream")),
    ("resolver-use-dns64", LeftOver("see `upstream.via-nat64` for forwarders with IPv4 addresses")),
];
