//! Authoritative servers: NSD, Knot DNS and BIND without recursion. None has a log of queries, transfers, or a limit of rates, which would
//! treat many questions of a test as an attack. They read their zones once, and write none back.

use crate::recipe::{LaunchPlan, Place};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;

/// An authoritative server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// Server of NLnet Labs.
    Nsd,
    /// Server of CZ.NIC.
    Knot,
    /// Server of ISC.
    Bind,
}

/// Task of an authoritative server.
#[derive(Clone, Debug, Default)]
pub struct ZoneTask {
    /// Addresses to listen on, UDP and TCP, all with one port; at least one.
    pub listen: Vec<SocketAddr>,
    /// Names of its zones, without the dot at the end, and their master files.
    pub zones: Vec<(String, PathBuf)>,
    /// Number of threads or processes that answer over UDP.
    pub workers: usize,
    /// True if answers have no records that a client need not get. If not, that is as the server has it.
    pub is_minimal: bool,
    /// Secrets of cookies (RFC 9018), of BIND and Knot DNS, in hexadecimal digits. With a secret the server answers BADCOOKIE over UDP to
    /// every client with a cookie option but without a valid server cookie. The first secret makes cookies; Knot DNS knows one secret only.
    pub secrets: Vec<String>,
}

impl Program {
    /// File name of the program.
    pub fn file(self) -> &'static str {
        match self {
            Program::Nsd => "nsd",
            Program::Knot => "knotd",
            Program::Bind => "named",
        }
    }

    /// Makes files and command line. The server stays in the foreground and keeps its user.
    pub fn plan(self, task: &ZoneTask, place: &Place) -> LaunchPlan {
        let folder = place.folder.display();
        let workers = task.workers.to_string();
        let (name, text, arguments) = match self {
            Program::Nsd => ("nsd.conf", nsd(task, place), vec!["-d", "-c"]),
            Program::Knot => ("knot.conf", knot(task, place), vec!["-c"]),
            // Until named has read its configuration, it would log to the system's log.
            Program::Bind => {
                ("named.conf", bind(task, place), vec!["-f", "-L", "/dev/stderr", "-n", &workers, "-c"])
            }
        };
        let mut command = vec![place.program.to_owned()];
        command.extend(arguments.into_iter().map(str::to_owned));
        command.push(format!("{folder}/{name}"));
        LaunchPlan { command, files: [(name.to_owned(), text)].into(), ..LaunchPlan::default() }
    }
}

impl ZoneTask {
    /// A line of text for each zone.
    fn each_zone(&self, line: impl Fn(&str, String) -> String) -> String {
        self.zones.iter().map(|(name, file)| line(name, file.display().to_string())).collect()
    }

    /// Its addresses in the form ADDRESS@PORT.
    fn addresses(&self) -> Vec<String> {
        self.listen.iter().map(|listen| format!("{}@{}", listen.ip(), listen.port())).collect()
    }
}

/// NSD 4 has no database file unless it is asked for one, and it answers from memory.
fn nsd(task: &ZoneTask, place: &Place) -> String {
    let folder = place.folder.display();
    let listen: Vec<String> =
        task.addresses().iter().map(|address| format!("  ip-address: {address}\n")).collect();
    let minimal = if task.is_minimal { "  minimal-responses: yes\n" } else { "" };
    let zones = task.each_zone(|name, file| format!("zone:\n  name: {name}\n  zonefile: \"{file}\"\n"));
    format!(
        "server:\n{}  server-count: {}\n  reuseport: yes\n  username: \"\"\n  chroot: \"\"\n  zonesdir: \"{folder}\"\n\
         \x20 database: \"\"\n  pidfile: \"\"\n  xfrdfile: \"\"\n  xfrdir: \"{folder}\"\n\
         \x20 zonelistfile: \"{folder}/zone.list\"\n  cookie-secret-file: \"\"\n  rrl-ratelimit: 0\n\
         \x20 rrl-whitelist-ratelimit: 0\n{minimal}  verbosity: 0\nremote-control:\n  control-enable: no\n{zones}",
        listen.concat(),
        task.workers,
    )
}

/// Without a journal and without writing the zone back, Knot DNS only reads the file.
fn knot(task: &ZoneTask, place: &Place) -> String {
    let folder = place.folder.display();
    let [cookies, module] = task.secrets.first().map_or_else(Default::default, |secret| {
        [
            format!("mod-cookies:\n  - id: default\n    secret: 0x{secret}\n    badcookie-slip: 1\n"),
            "    global-module: mod-cookies/default\n".to_owned(),
        ]
    });
    let zones = task.each_zone(|name, file| format!("  - domain: {name}\n    file: {file}\n"));
    format!(
        "server:\n  rundir: {folder}\n  listen: [{}]\n  udp-workers: {}\n  tcp-workers: 1\n  background-workers: 1\n\
         database:\n  storage: {folder}\nlog:\n  - target: stderr\n    any: warning\n{cookies}template:\n\
         \x20 - id: default\n    storage: {folder}\n    zonefile-load: whole\n    zonefile-sync: -1\n\
         \x20   journal-content: none\n{module}zone:\n{zones}",
        task.addresses().join(", "),
        task.workers,
    )
}

fn bind(task: &ZoneTask, place: &Place) -> String {
    let folder = place.folder.display();
    let listen = [("", false), ("-v6", true)].map(|(family, is_ipv6)| {
        let of_family: Vec<&SocketAddr> = task.listen.iter().filter(|it| it.is_ipv6() == is_ipv6).collect();
        match of_family.first() {
            None => format!("  listen-on{family} {{ none; }};\n"),
            Some(first) => {
                let addresses: String = of_family.iter().map(|it| format!("{}; ", it.ip())).collect();
                format!("  listen-on{family} port {} {{ {addresses}}};\n", first.port())
            }
        }
    });
    let mut cookies: String =
        task.secrets.iter().map(|secret| format!("  cookie-secret \"{secret}\";\n")).collect();
    if !cookies.is_empty() {
        cookies += "  answer-cookie yes;\n  cookie-algorithm siphash24;\n  require-server-cookie yes;\n";
    }
    let minimal = if task.is_minimal { "  minimal-responses yes;\n" } else { "" };
    let zones =
        task.each_zone(|name, file| format!("zone \"{name}\" {{ type primary; file \"{file}\"; }};\n"));
    format!(
        "options {{\n  directory \"{folder}\";\n  pid-file none;\n  session-keyfile none;\n{}  recursion no;\n  \
         allow-query {{ any; }};\n  allow-transfer {{ none; }};\n  notify no;\n  empty-zones-enable no;\n  \
         dnssec-validation no;\n  querylog no;\n{minimal}{cookies}}};\n{}{zones}",
        listen.concat(),
        crate::bind::LOG,
    )
}
