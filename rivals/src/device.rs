//! Devices under test: Sixfold, the bare reflector, the bare echo, and the Debian packages of the other servers. All
//! get the same configuration: one thread on core 0 (Sixfold also two, on that core or on both), DNS64 with one prefix,
//! everything forwarded to the tester, no validation, no log, room for all outstanding queries of the tester.

use crate::names;
use crate::process::{Folder, Process};
use crate::quota::Quota;
use crate::tester::Check;
use std::fs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

/// Devices that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `sixfold serve`.
    Sixfold,
    /// The datapath of Sixfold, driven by a machine that passes messages on without parsing DNS.
    Reflector,
    /// A program with two system calls per query and nothing else.
    Echo,
    /// Unbound.
    Unbound,
    /// BIND.
    Bind,
    /// PowerDNS Recursor.
    Powerdns,
}

impl Kind {
    /// All kinds, in the order of their turns.
    pub const ALL: [Kind; 6] =
        [Kind::Sixfold, Kind::Reflector, Kind::Echo, Kind::Unbound, Kind::Bind, Kind::Powerdns];

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Sixfold => "sixfold",
            Kind::Reflector => "reflector",
            Kind::Echo => "echo",
            Kind::Unbound => "unbound",
            Kind::Bind => "bind",
            Kind::Powerdns => "powerdns",
        }
    }

    /// Check of its answers.
    pub fn check(self) -> Check {
        match self {
            Kind::Reflector => names::check_reflected,
            _ => names::check_synthesized,
        }
    }
}

/// Limit for a tester that is one client address: the limit per client must be as high as that of all clients, because
/// the other servers have no limit per client.
const ONE_CLIENT: &str = "pending-per-client = 65536";

/// Further settings of a device.
pub struct Setup {
    /// Number of workers. Only Sixfold and the reflector have more than one here.
    pub workers: usize,
    /// Cores that it may use, in the syntax of taskset.
    pub cores: &'static str,
    /// CPU quota on these cores.
    pub quota: Option<Quota>,
    /// Lines of Sixfold's section `[limits]`.
    pub limits: &'static str,
    /// Size of Sixfold's cache in MiB; `None`: Sixfold's default.
    pub cache_mib: Option<u32>,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { workers: 1, cores: "0", quota: None, limits: ONE_CLIENT, cache_mib: None }
    }
}

/// An installed device.
#[derive(Clone, Debug)]
pub struct Device {
    /// Kind of the device.
    pub kind: Kind,
    program: PathBuf,
}

impl Device {
    /// Finds the program of a device. The error says how to install it.
    pub fn find(kind: Kind, sixfold: Option<&Path>) -> Result<Device, String> {
        let own = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
        let program = match kind {
            Kind::Reflector | Kind::Echo => Some(own),
            Kind::Sixfold => Some(sixfold.map_or_else(|| own.with_file_name("sixfold"), Path::to_owned)),
            Kind::Unbound => in_path("unbound"),
            Kind::Bind => in_path("named"),
            Kind::Powerdns => in_path("pdns_recursor"),
        };
        let missing = || match kind {
            Kind::Unbound => "unbound is not installed: apt-get install unbound".to_owned(),
            Kind::Bind => "named is not installed: apt-get install bind9".to_owned(),
            Kind::Powerdns => "pdns_recursor is not installed: apt-get install pdns-recursor".to_owned(),
            Kind::Sixfold | Kind::Reflector | Kind::Echo => {
                "sixfold is not built: cargo build --release -p sixfold, or give --sixfold PATH".to_owned()
            }
        };
        let program = program.filter(|path| path.is_file()).ok_or_else(missing)?;
        Ok(Device { kind, program })
    }

    /// Starts the device.
    pub fn start(&self, upstream: SocketAddr, setup: Setup) -> io::Result<Running> {
        let folder = Folder::new(self.kind.name())?;
        let address = free_address()?;
        let (file, text) = configuration(self.kind, folder.path(), address, upstream, &setup);
        let path = folder.path().join(file);
        fs::write(&path, text)?;
        let mut command = vec![self.program.display().to_string()];
        let path = path.display().to_string();
        match self.kind {
            Kind::Sixfold => command.extend(["serve".into(), "--config".into(), path]),
            Kind::Reflector => command.extend(["reflect".into(), address.to_string(), upstream.to_string()]),
            Kind::Echo => command.extend(["echo".into(), address.to_string()]),
            Kind::Unbound => command.extend(["-d".into(), "-c".into(), path]),
            Kind::Bind => {
                command.extend(["-f", "-n", "1", "-U", "1", "-c"].map(String::from).into_iter().chain([path]))
            }
            Kind::Powerdns => command.push(format!("--config-dir={}", folder.path().display())),
        }
        Ok(Running {
            address,
            check: self.kind.check(),
            process: Process::start(&command, setup.cores, setup.quota, folder)?,
        })
    }
}

/// A running device. Dropping it ends the device.
pub struct Running {
    /// Address on which it listens.
    pub address: SocketAddr,
    /// Check of its answers.
    pub check: Check,
    /// Its process.
    pub process: Process,
}

/// A port of the loopback interface that is free now.
pub fn free_address() -> io::Result<SocketAddr> {
    UdpSocket::bind("[::1]:0")?.local_addr()
}

/// Finds an installed program.
pub fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

/// Name and text of a device's configuration file.
fn configuration(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_the_way_to_get_it() {
        let error = Device::find(Kind::Sixfold, Some(Path::new("/nowhere/sixfold"))).unwrap_err();
        assert!(error.contains("cargo build --release -p sixfold"), "{error}");
    }

    #[test]
    fn every_device_gets_the_same_prefix_and_upstream() {
        let (listen, upstream) = ("[::1]:5301".parse().unwrap(), "[::1]:5302".parse().unwrap());
        for kind in [Kind::Sixfold, Kind::Unbound, Kind::Bind, Kind::Powerdns] {
            let (_, text) = configuration(kind, Path::new("/tmp/x"), listen, upstream, &Setup::default());
            assert!(
                text.contains("2001:db8:64::/96") && text.contains("5301") && text.contains("5302"),
                "{text}"
            );
        }
    }
}
