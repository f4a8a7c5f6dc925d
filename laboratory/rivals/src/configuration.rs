//! Configuration files of the devices under test: DNS64 with one prefix, everything forwarded to the tester, no validation, no log,
//! room for all outstanding queries of the tester.

use crate::kind::{Kind, Setup};
use crate::names;
use std::net::SocketAddr;
use std::path::Path;

/// Name and text of a device's configuration file.
pub fn configuration(
    kind: Kind,
    folder: &Path,
    listen: SocketAddr,
    upstream: SocketAddr,
    setup: &Setup,
) -> (&'static str, String) {
    let workers = setup.workers;
    let (prefix, port, to, folder) = (names::PREFIX, listen.port(), upstream.port(), folder.display());
    match kind {
        Kind::Sixfold => (
            "sixfold.toml",
            cache(setup)
                + &format!(
                    "[server]\nlisten = [\"{listen}\"]\nworkers = {workers}\n\
                 [upstream]\nforwarders = [\"{upstream}\"]\n\
                 [dns64]\nprefixes = [\"{prefix}/96\"]\n\
                 [limits]\n{}\n[control]\nsocket = \"{folder}/control.sock\"\n\
                 [log]\nlevel = \"error\"\n",
                    setup.limits
                ),
        ),
        Kind::Reflector | Kind::Echo => (kind.name(), String::new()),
        // `test` is one of Unbound's built-in local zones (RFC 6761), which would answer NXDOMAIN.
        Kind::Unbound => (
            "unbound.conf",
            format!(
                "server:\n  interface: ::1@{port}\n  access-control: ::1/128 allow\n  do-daemonize: no\n\
                 \x20 username: \"\"\n  chroot: \"\"\n  directory: \"{folder}\"\n  pidfile: \"\"\n\
                 \x20 use-syslog: no\n  logfile: \"\"\n  verbosity: 0\n  num-threads: 1\n\
                 \x20 module-config: \"dns64 iterator\"\n  dns64-prefix: {prefix}/96\n\
                 \x20 do-not-query-localhost: no\n  local-zone: \"test.\" nodefault\n\
                 \x20 outgoing-range: 8192\n  num-queries-per-thread: 4096\n\
                 remote-control:\n  control-enable: no\n\
                 forward-zone:\n  name: \".\"\n  forward-addr: ::1@{to}\n"
            ),
        ),
        Kind::Bind => (
            "named.conf",
            format!(
                "options {{\n  directory \"{folder}\";\n  pid-file none;\n  listen-on {{ none; }};\n\
                 \x20 listen-on-v6 port {port} {{ ::1; }};\n  allow-query {{ any; }};\n\
                 \x20 recursion yes;\n  allow-recursion {{ any; }};\n  recursive-clients 10000;\n\
                 \x20 forward only;\n  forwarders {{ ::1 port {to}; }};\n  dnssec-validation no;\n\
                 \x20 empty-zones-enable no;\n  querylog no;\n\
                 \x20 dns64 {prefix}/96 {{ clients {{ any; }}; }};\n}};\n\
                 controls {{ }};\n\
                 logging {{ category default {{ null; }}; category unmatched {{ null; }}; }};\n"
            ),
        ),
        Kind::Powerdns => ("recursor.conf", powerdns_configuration(port, to, folder)),
        Kind::KnotResolver => ("kresd.conf", knot_resolver_configuration(port, to)),
    }
}

/// Text of the recursor's configuration file. By default it sends no queries to loopback addresses (`dont-query`).
fn powerdns_configuration(port: u16, to: u16, folder: std::path::Display<'_>) -> String {
    let prefix = names::PREFIX;
    format!(
        "config-dir={folder}\nsocket-dir={folder}\ndaemon=no\nwrite-pid=no\nsetuid=\nsetgid=\nchroot=\n\
                 local-address=::1\nlocal-port={port}\nallow-from=::1/128\n\
                 forward-zones-recurse=.=[::1]:{to}\ndont-query=\ndns64-prefix={prefix}/96\ndnssec=off\n\
                 threads=1\npdns-distributes-queries=no\nmax-mthreads=8192\n\
                 export-etc-hosts=no\nwebserver=no\nsecurity-poll-suffix=\n\
                 quiet=yes\nloglevel=3\ndisable-syslog=yes\nstatistics-interval=0\n"
    )
}

/// Sixfold's section `[cache]`, if the size is set.
fn cache(setup: &Setup) -> String {
    setup.cache_mib.map_or_else(String::new, |size| format!("[cache]\nsize = \"{size}MiB\"\n"))
}

/// Text of Knot Resolver's configuration file. The rule for all names comes before the built-in ones, which deny `test.` (RFC 6761).
fn knot_resolver_configuration(port: u16, to: u16) -> String {
    let prefix = names::PREFIX;
    format!(
        "net.listen('::1', {port}, {{ kind = 'dns' }})\nmodules = {{ 'policy', 'dns64' }}\n\
         modules.unload('priming')\nmodules.unload('detect_time_skew')\ntrust_anchors.remove('.')\n\
         dns64.config('{prefix}')\npolicy.add(policy.all(policy.FORWARD({{'::1@{to}'}})))\n\
         cache.size = 100 * MB\nlog_level('crit')\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_gets_the_same_prefix_and_upstream() {
        let (listen, upstream) = ("[::1]:5301".parse().unwrap(), "[::1]:5302".parse().unwrap());
        for kind in [Kind::Sixfold, Kind::Unbound, Kind::Bind, Kind::Powerdns, Kind::KnotResolver] {
            let (_, text) = configuration(kind, Path::new("/tmp/x"), listen, upstream, &Setup::default());
            let told = ["2001:db8:64::", "5301", "5302"].map(|part| text.contains(part));
            assert_eq!(told, [true; 3], "{text}");
        }
    }
}
