//! Plugins of CoreDNS that set no key of Sixfold, each with the reason.

use crate::value::SERVES_NO_ZONES;

/// Plugins without a meaning for Sixfold.
pub(super) const NO_MEANING: &[(&str, &str)] = &[
    ("errors", "Sixfold logs failing upstreams, and counts errors"),
    ("loop", "the start refuses a forwarder that is the server itself"),
    ("loadbalance minimal", "Sixfold passes on the records of the upstream"),
    ("any", "Sixfold passes on the answers of the upstream to ANY"),
    ("cancel metadata timeouts debug pprof root whoami multisocket", "concerns the process of CoreDNS"),
];

/// Zones of a block that is there for questions about the server.
pub(super) const ABOUT_SERVER: [&str; 7] =
    ["version.bind", "version.server", "authors.bind", "hostname.bind", "id.server", "bind", "server"];

/// Zones that `local` answers beside localhost.
pub(super) const LOCAL_ZONES: [&str; 3] = ["127.in-addr.arpa", "0.in-addr.arpa", "255.in-addr.arpa"];

/// Reason why names that CoreDNS does not forward are lost.
pub(super) const FORWARDS_NONE: &str =
    "CoreDNS forwards none of these names: name a server that has them in their [[upstream.zone]]";

/// Reason why a `hosts` without `fallthrough` for all names leaves no forwarders: only PTR questions without an entry pass it (plugin/hosts,
/// ServeDNS).
pub(super) const HOSTS_ALONE: &str = "CoreDNS answers SERVFAIL for the names that are not there, and forwards PTR questions alone: there \
                                      are no forwarders in this configuration";

/// Reason why a `forward` has no effect.
pub(super) const ANSWERED_BEFORE: &str =
    "another plugin of this block answers for all these names, and they go to no forwarder";

/// Reason why names of a cluster are lost.
const NO_CLUSTER: &str =
    "Sixfold serves no such names: forward their zones to a CoreDNS that does, with [[upstream.zone]]";

/// Plugins that are lost.
pub(super) const LEFT_OVER: &[(&str, &str)] = &[
    ("log", "Sixfold logs no queries"),
    ("health ready", "see `metrics.listen`, which also serves /livez and /readyz"),
    ("reload", "Sixfold reads its file again after `sixfold ctl reload` or SIGHUP"),
    ("dnstap", "write it by hand: `log.dnstap` in sixfold.toml(5)"),
    ("kubernetes k8s_external etcd route53 azure clouddns", NO_CLUSTER),
    ("file auto secondary sign transfer dnssec", SERVES_NO_ZONES),
    ("template", "a response policy zone (`filter.rpz`) can give fixed answers"),
    ("rewrite", "Sixfold rewrites no questions"),
    ("header trace tsig view geoip autopath erratic grpc_server", "Sixfold has no such plugin"),
    ("grpc", "Sixfold forwards over UDP, TCP and TLS"),
    ("import", "this snippet is not in the file"),
];
