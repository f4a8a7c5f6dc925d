//! Attributes of Unbound that set no key of Sixfold, each with the reason.

use crate::ledger::Known::{self, LeftOver, NoMeaning};

const PROCESS: &str = "files and resources of the process, which Sixfold names itself";
const RECURSION: &str = "concerns the resolution from the root, and Sixfold forwards";
const TAGS: &str = "Sixfold has no tags: run an instance for each";

/// Other clauses than those that are read.
pub(super) const CLAUSES: &[(&str, Known)] = &[
    ("remote-control", NoMeaning("Sixfold has a control socket of its own")),
    ("python dynlib ipsecmod ipset", LeftOver("Sixfold has no modules")),
    ("dnscrypt", LeftOver("Sixfold has no DNSCrypt: put dnsdist before it")),
    ("cachedb", LeftOver("Sixfold shares its cache with no other server")),
    ("dnstap", LeftOver("write it by hand: `log.dnstap` in sixfold.toml(5)")),
];

/// Attributes of the clause `server`.
pub(super) const SERVER: &[(&str, Known)] = &[
    ("udp-upstream-without-downstream", NoMeaning("Sixfold always listens on UDP and TCP")),
    ("proxy-protocol-port", LeftOver("name the networks of the proxies in `server.proxy-from`")),
    ("cache-min-negative-ttl", LeftOver("`cache.min-ttl` is for positive and negative answers at once")),
    ("tcp-connection-limit", LeftOver("see `limits.tcp-per-client`, one number for all clients")),
    ("outbound-msg-retry", LeftOver("see `upstream.tries`, which counts the tries over all forwarders")),
    ("unknown-server-time-limit", LeftOver("see `upstream.timeout`")),
    (
        "verbosity statistics-interval statistics-cumulative extended-statistics shm-enable shm-key log-time-ascii log-identity \
         log-local-actions log-servfail log-destaddr use-syslog use-systemd logfile do-daemonize pidfile chroot username \
         directory root-hints so-rcvbuf so-sndbuf so-reuseport so-sndbuf-wait outgoing-range outgoing-num-tcp \
         msg-cache-slabs rrset-cache-slabs infra-cache-slabs key-cache-slabs \
         ratelimit-slabs ip-ratelimit-slabs msg-buffer-size stream-wait-size http-query-buffer-size \
         http-response-buffer-size http-max-streams http-nodelay infra-host-ttl infra-lame-ttl infra-cache-numhosts \
         infra-cache-min-rtt infra-cache-max-rtt infra-keep-probing infra-lame-cache-size jostle-timeout delay-close udp-connect \
         max-reuse-tcp-queries tcp-reuse-timeout tcp-auth-query-timeout tcp-mss outgoing-tcp-mss edns-tcp-keepalive \
         edns-tcp-keepalive-timeout sock-queue-timeout unwanted-reply-threshold \
         iter-scrub-ns iter-scrub-cname max-global-quota max-query-restarts max-sent-count ip-dscp",
        NoMeaning(PROCESS),
    ),
    (
        "target-fetch-policy harden-short-bufsize harden-large-queries harden-glue harden-below-nxdomain \
         harden-referral-path harden-algo-downgrade harden-unverified-glue harden-unknown-additional qname-minimisation \
         qname-minimisation-strict prefer-ip4 prefer-ip6 do-not-query-address do-not-query-localhost \
         fast-server-permil fast-server-num hide-trustanchor root-key-sentinel disable-edns-do \
         disable-dnssec-lame-check zonemd-permissive-mode zonemd-check",
        NoMeaning(RECURSION),
    ),
    ("dlv-anchor dlv-anchor-file", NoMeaning("DNSSEC lookaside validation has ended (RFC 8749)")),
    ("trust-anchor-signaling", NoMeaning("trust anchors are signalled to nobody (RFC 8145)")),
    (
        "val-max-restart val-bogus-ttl val-clean-additional val-log-level prefetch-key key-cache-size neg-cache-size",
        NoMeaning("Sixfold manages bogus data and the keys of zones itself"),
    ),
    (
        "add-holddown del-holddown keep-missing permit-small-holddown",
        NoMeaning("the times are those of RFC 5011"),
    ),
    (
        "trusted-keys-file",
        LeftOver("write its keys as DNSKEY records into a file, and name that in `dnssec.trust-anchors`"),
    ),
    ("hide-http-user-agent http-user-agent", NoMeaning("Sixfold asks nobody over HTTPS")),
    ("caps-exempt caps-whitelist", LeftOver("`upstream.mix-case` is for all names")),
    ("minimal-responses deny-any", NoMeaning("Sixfold passes on the sections of the upstream")),
    ("rrset-roundrobin", NoMeaning("records stay in the order of the upstream")),
    (
        "log-queries log-replies log-tag-queryreply log-thread-id val-log-squelch",
        LeftOver("Sixfold logs no queries"),
    ),
    (
        "ratelimit ratelimit-size ratelimit-for-domain ratelimit-below-domain ratelimit-factor ratelimit-backoff",
        LeftOver("Sixfold limits by client: see [limits]"),
    ),
    (
        "ip-ratelimit-size ip-ratelimit-factor ip-ratelimit-backoff ip-ratelimit-cookie",
        LeftOver("see `limits.queries-per-client`"),
    ),
    (
        "wait-limit wait-limit-cookie wait-limit-netblock wait-limit-cookie-netblock",
        LeftOver("see `limits.pending-per-client`"),
    ),
    (
        "tls-ciphers tls-ciphersuites tls-protocols tls-use-sni quic-size",
        LeftOver("Sixfold has the versions and ciphers of its library: TLS 1.2 and 1.3"),
    ),
    ("tls-session-ticket-keys", LeftOver("see `tls.ticket-secret-file`")),
    ("http-notls-downstream", LeftOver("Sixfold has HTTPS only: put a proxy before it that ends TLS")),
    (
        "access-control-tag access-control-tag-action access-control-tag-data define-tag \
         local-zone-tag local-zone-override interface-tag interface-tag-action interface-tag-data response-ip-tag",
        LeftOver(TAGS),
    ),
    (
        "interface-action interface-view",
        LeftOver("name the clients of the interface in `server.allow`, of the configuration for their view"),
    ),
    (
        "response-ip response-ip-data",
        LeftOver("a response policy zone (`filter.rpz`) with rpz-ip triggers can refuse such addresses"),
    ),
    (
        "cache-max-negative-ttl-factor serve-original-ttl serve-expired-ttl-reset serve-expired-reply-ttl \
         serve-expired-client-timeout ede-serve-expired",
        LeftOver("Sixfold follows RFC 8767: answers after 1.8 s, with a TTL of 30 s"),
    ),
    ("ede", NoMeaning("Sixfold always gives extended errors (RFC 8914)")),
    (
        "send-client-subnet client-subnet-zone client-subnet-always-forward max-client-subnet-ipv4 \
         max-client-subnet-ipv6 min-client-subnet-ipv4 min-client-subnet-ipv6 max-ecs-tree-size-ipv4 \
         max-ecs-tree-size-ipv6",
        LeftOver("see `edns.client-subnet`"),
    ),
    (
        "pad-responses pad-responses-block-size pad-queries pad-queries-block-size",
        NoMeaning("padding is for encrypted transports"),
    ),
    ("edns-client-string edns-client-string-opcode edns-client-tag", LeftOver("Sixfold adds no such option")),
    ("low-rtt low-rtt-permil", NoMeaning("see `upstream.select`")),
    ("discard-timeout", NoMeaning("late answers over UDP are not sent")),
    (
        "python-script dynlib-file ipsecmod-enabled ipsecmod-hook ipsecmod-strict",
        LeftOver("Sixfold has no modules"),
    ),
    ("dns-error-reporting", LeftOver("Sixfold reports no errors to zones (RFC 9567)")),
    ("cookie-secret-file", LeftOver("write the secrets into `edns.cookie-secret`")),
];
