//! Settings of PowerDNS Recursor that set no key of Sixfold, each with the reason. Names are those of the old form.

use crate::ledger::Known::{self, LeftOver, NoMeaning};

/// Settings without an equivalent.
pub(super) const SETTINGS: &[(&str, Known)] = &[
    (
        "daemon write-pid setuid setgid chroot config-dir config-name socket-dir socket-owner socket-group socket-mode hint-file \
         entropy-source version help no-shuffle no-config config enable-old-settings reuseport cpu-map \
         pdns-distributes-queries distributor-threads distribution-load-factor distribution-pipe-buffer-size stack-size \
         stack-cache-size stats-ringbuffer-entries security-poll-suffix udp-source-port-min udp-source-port-max \
         single-socket event-trace-enabled structured-logging structured-logging-backend \
         record-cache-shards packetcache-shards recordcache-shards shards locked-ttl-perc x-dnssec-names setaffinity \
         max-include-depth public-suffix-list-file system-resolver-ttl system-resolver-interval system-resolver-self-resolve-check",
        NoMeaning("files and resources of the process, which Sixfold names itself"),
    ),
    (
        "loglevel quiet disable-syslog log-timestamp logging-facility log-common-errors log-rpz-changes statistics-interval trace \
         stats-api-blacklist stats-carbon-blacklist stats-rec-control-blacklist stats-snmp-blacklist stats-api-disabled-list \
         stats-carbon-disabled-list stats-rec-control-disabled-list stats-snmp-disabled-list",
        NoMeaning("Sixfold logs to standard error, and never queries"),
    ),
    ("dnssec-log-bogus", NoMeaning("Sixfold counts bogus data by their reasons")),
    ("dnssec-disabled-algorithms", LeftOver("see `dnssec.algorithms`")),
    (
        "x-dnssec-names aggressive-cache-min-nsec3-hit-ratio aggressive-cache-max-nsec3-hash-cost \
         max-dnskeys max-ds-per-zone max-nsec3s-per-record max-nsec3-hash-computations-per-query max-rrsigs-per-record \
         max-signature-validations-per-query trustanchorfile-interval",
        NoMeaning("Sixfold bounds the work of validation itself"),
    ),
    (
        "dont-query qname-minimization qname-max-minimize-count qname-minimize-one-label root-nx-trust nothing-below-nxdomain \
         server-down-max-fails server-down-throttle-time bypass-server-throttling-probability max-ns-per-resolve \
         max-ns-address-qperq max-qperq max-recursion-depth max-total-msec spoof-nearmiss-max save-parent-ns-set \
         non-resolving-ns-max-fails non-resolving-ns-throttle-time dont-throttle-names dont-throttle-netmasks max-generate-steps \
         unique-response-tracking extended-resolution-errors any-to-tcp edns-padding-out edns-padding-mode edns-padding-from \
         edns-padding-tag max-bytesperq max-cnames-followed max-busy-dot-probes dot-to-auth-names allow-trust-anchor-query",
        NoMeaning("concerns the resolution from the root, and Sixfold forwards"),
    ),
    (
        "tcp-fast-open tcp-fast-open-connect tcp-out-max-idle-ms tcp-out-max-idle-per-auth tcp-out-max-idle-per-thread \
         tcp-out-max-queries network-timeout-tcp max-tcp-queries-per-connection \
         max-udp-queries-per-round max-concurrent-requests-per-tcp-connection",
        NoMeaning("Sixfold manages its connections itself"),
    ),
    (
        "disable-packetcache max-packetcache-entries packetcache-ttl packetcache-negative-ttl packetcache-servfail-ttl \
         max-cache-bogus-ttl",
        NoMeaning("Sixfold has one cache"),
    ),
    ("proxy-protocol-exceptions", LeftOver("proxies always send a PROXY header to Sixfold")),
    ("max-cache-entries", LeftOver("`cache.size` counts octets, not records")),
    (
        "webserver webserver-address webserver-port webserver-allow-from webserver-password webserver-loglevel \
         webserver-hash-plaintext-credentials api-key api-config-dir api-readonly experimental-webserver",
        LeftOver("see `metrics.listen`, with metrics for Prometheus"),
    ),
    (
        "carbon-server carbon-interval carbon-instance carbon-namespace carbon-ourname snmp-agent \
         snmp-daemon-socket snmp-master-socket",
        LeftOver("see `metrics.listen`, with metrics for Prometheus"),
    ),
    (
        "ecs-add-for ecs-cache-limit-ttl ecs-ipv4-bits ecs-ipv4-cache-bits ecs-ipv4-never-cache ecs-ipv6-bits \
         ecs-ipv6-cache-bits ecs-ipv6-never-cache ecs-minimum-ttl-override ecs-scope-zero-address \
         edns-subnet-allow-list edns-subnet-whitelist",
        LeftOver("see `edns.client-subnet`"),
    ),
    ("use-incoming-edns-subnet", LeftOver("see `edns.client-subnet`")),
    (
        "new-domain-tracking new-domain-log new-domain-lookup new-domain-history-dir new-domain-db-size \
         new-domain-ignore-list new-domain-pb-tag new-domain-whitelist protobuf-use-kernel-timestamp tracking \
         log lookup",
        LeftOver("Sixfold reports no new names"),
    ),
    ("latency-statistic-size", LeftOver("see `metrics.listen`")),
    ("dot-port", LeftOver("write the ports into `upstream.forwarders`, behind the addresses")),
    ("gettag-needs-edns-options protobuf-mask-v4 protobuf-mask-v6", LeftOver("Sixfold runs no Lua")),
    ("proxy-protocol-maximum-size", LeftOver("a PROXY header has at most 512 octets")),
    (
        "allow-from-file allow-notify-from allow-notify-from-file allow-notify-for allow-notify-for-file",
        LeftOver("name the networks in `server.allow`; Sixfold takes no NOTIFY"),
    ),
    ("proxymappings proxy-mappings", LeftOver("Sixfold has no mapping of clients")),
    ("xpf-allow-from xpf-rr-code", LeftOver("Sixfold knows the PROXY header instead: `server.proxy-from`")),
    ("zonetocaches catalog-zones", LeftOver("Sixfold transfers no zones")),
];
