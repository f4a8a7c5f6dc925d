//! Plugins of CoreDNS that set no key of Sixfold, each with the reason.

use crate::ledger::Known::{self, LeftOver, NoMeaning};
use crate::value::SERVES_NO_ZONES;

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

/// Options of `forward` without an equivalent.
pub(super) const FORWARD_OPTIONS: &[(&str, Known)] = &[
    ("prefer_udp", NoMeaning("Sixfold asks over UDP first")),
    (
        "expire max_fails health_check failfast_all_unhealthy_upstreams max_idle_conns",
        NoMeaning("Sixfold probes forwarders that fail, and keeps connections as long as they are used"),
    ),
];

/// Plugins without an equivalent.
pub(super) const PLUGINS: &[(&str, Known)] = &[
    ("errors", NoMeaning("Sixfold logs failing upstreams, and counts errors")),
    ("loop", NoMeaning("the start refuses a forwarder that is the server itself")),
    ("loadbalance minimal", NoMeaning("Sixfold passes on the records of the upstream")),
    ("any", NoMeaning("Sixfold passes on the answers of the upstream to ANY")),
    (
        "cancel metadata timeouts debug pprof root whoami multisocket",
        NoMeaning("concerns the process of CoreDNS"),
    ),
    ("log", LeftOver("Sixfold logs no queries")),
    ("health ready", LeftOver("see `metrics.listen`, which also serves /livez and /readyz")),
    ("reload", LeftOver("Sixfold reads its file again after `sixfold ctl reload` or SIGHUP")),
    ("dnstap", LeftOver("write it by hand: `log.dnstap` in sixfold.toml(5)")),
    ("kubernetes k8s_external etcd route53 azure clouddns", LeftOver(NO_CLUSTER)),
    ("file auto secondary sign transfer dnssec", LeftOver(SERVES_NO_ZONES)),
    ("template", LeftOver("a response policy zone (`filter.rpz`) can give fixed answers")),
    ("rewrite", LeftOver("Sixfold rewrites no questions")),
    ("header trace tsig view geoip autopath erratic grpc_server", LeftOver("Sixfold has no such plugin")),
    ("grpc", LeftOver("Sixfold forwards over UDP, TCP and TLS")),
    ("import", LeftOver("this snippet is not in the file")),
];
