//! Name servers in the namespace `world`: NSD, Knot DNS and BIND as authorities, and Unbound as a resolver in front
//! of one of them.

use crate::kdig::Kdig;
use crate::lab::{Lab, address};
use crate::namespace::Namespace;
use crate::process::Process;
use crate::zones::{self, Zone};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Authoritative server program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Authoritative server of NLnet Labs.
    Nsd,
    /// Authoritative server of CZ.NIC.
    Knot,
    /// Server of ISC, as an authority.
    Bind,
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

    /// Configuration for these sockets and zones. The server writes all files into `place`, stays in the foreground and keeps its user.
    pub(crate) fn configuration(self, place: &Path, sockets: &Sockets<'_>, zones: &[Zone]) -> String {
        let Sockets { addresses, port, secrets } = sockets;
        let place = place.display();
        let mut text = match self {
            // Rate limiting would treat the tests' many queries as an attack.
            Program::Nsd => format!(
                "server:\n ip-address: {}\n server-count: 1\n username: \"\"\n zonesdir: \"{place}\"\n \
                 database: \"\"\n pidfile: \"{place}/nsd.pid\"\n xfrdfile: \"{place}/xfrd.state\"\n \
                 xfrdir: \"{place}\"\n zonelistfile: \"{place}/zone.list\"\n rrl-ratelimit: 0\n \
                 rrl-whitelist-ratelimit: 0\nremote-control:\n control-enable: no\n",
                addresses[0]
            ),
            Program::Knot => {
                let listen: Vec<_> = addresses.iter().map(|address| format!("{address}@{port}")).collect();
                let [cookies, module] = secrets.first().map_or_else(Default::default, |secret| {
                    [
                        format!(
                            "mod-cookies:\n  - id: default\n    secret: 0x{secret}\n    badcookie-slip: 1\n"
                        ),
                        "    global-module: mod-cookies/default\n".to_owned(),
                    ]
                });
                format!(
                    "server:\n  rundir: {place}\n  listen: [{}]\n  udp-workers: 1\n  tcp-workers: 2\n  \
                     background-workers: 1\ndatabase:\n  storage: {place}\nlog:\n  - target: stderr\n    any: info\n\
                     {cookies}template:\n  - id: default\n    storage: {place}\n    zonefile-sync: -1\n    \
                     journal-content: none\n{module}zone:\n",
                    listen.join(", ")
                )
            }
            Program::Bind => {
                let listed = |is_ipv6: bool| {
                    let of_family = addresses.iter().filter(|address| address.contains(':') == is_ipv6);
                    of_family.fold(String::new(), |text, address| format!("{text} {address};"))
                };
                let listen = [("", listed(false)), ("-v6", listed(true))].map(|(family, list)| {
                    let list = if list.is_empty() { " none;".into() } else { list };
                    format!(" listen-on{family} port {port} {{{list} }};\n")
                });
                let cookies = secrets.iter().fold(String::new(), |text, secret| {
                    let text = if text.is_empty() { COOKIES.to_owned() } else { text };
                    format!("{text} cookie-secret \"{secret}\";\n")
                });
                format!(
                    "options {{ directory \"{place}\";\n{} recursion no; dnssec-validation no; pid-file none;\n \
                     session-keyfile none; allow-query {{ any; }}; notify no;\n{cookies}}};\ncontrols {{ }};\n",
                    listen.concat()
                )
            }
        };
        for Zone { name, file, .. } in zones {
            let file = file.display();
            // Writing to a string does not fail.
            let _ = match self {
                Program::Nsd => writeln!(text, "zone:\n name: {name}\n zonefile: \"{file}\""),
                Program::Knot => writeln!(text, "  - domain: {name}\n    file: {file}"),
                Program::Bind => writeln!(text, "zone \"{name}\" {{ type primary; file \"{file}\"; }};"),
            };
        }
        text
    }

    /// The command that starts the server with this configuration.
    pub(crate) fn command(self, file: &str) -> Vec<&str> {
        match self {
            Program::Nsd => vec!["nsd", "-d", "-c", file],
            Program::Knot => vec!["knotd", "-c", file],
            Program::Bind => vec!["named", "-g", "-n", "1", "-c", file],
        }
    }
}

/// Sockets of a name server, and its cookies.
pub(crate) struct Sockets<'s> {
    pub(crate) addresses: &'s [&'s str],
    pub(crate) port: u16,
    /// Secrets of cookies, for BIND and Knot DNS. With a secret the server answers BADCOOKIE over UDP to every client with a cookie
    /// option but without a valid server cookie. The first secret makes cookies; Knot knows one secret only.
    pub(crate) secrets: &'s [&'s str],
}

/// Options of BIND that make and demand cookies.
const COOKIES: &str = " answer-cookie yes; cookie-algorithm siphash24; require-server-cookie yes;\n";

/// True if the server at this address has the SOA record of a zone.
pub(crate) fn has_zone(namespace: &Namespace, address: &str, port: u16, zone: &str) -> bool {
    let kdig = Kdig::new(namespace, address).with(&format!("+timeout=1 -p {port}"));
    kdig.ask_all(&[(zone, "SOA")]).first().is_some_and(|answer| !answer.data("SOA").is_empty())
}

/// Running name server on port 53 of one address.
pub struct Authority<'a> {
    namespace: &'a Namespace,
    argv: Vec<String>,
    address: String,
    asked: String,
    log: PathBuf,
    process: Process,
}

impl<'a> Authority<'a> {
    /// Starts an authority at the first address of a lab's world, for the zones without signatures.
    pub fn of_lab(program: Program, lab: &'a Lab) -> Authority<'a> {
        let place = lab.scratch.directory(program.file());
        let zones = zones::plain(&place);
        Authority::start(program, &lab.world, &place, address::FIRST, &zones)
    }

    /// Starts an authority for `zones` and waits until it answers. `place` is a new directory for it.
    pub fn start(
        program: Program,
        namespace: &'a Namespace,
        place: &Path,
        address: &str,
        zones: &[Zone],
    ) -> Authority<'a> {
        let sockets = Sockets { addresses: &[address], port: 53, secrets: &[] };
        let file = write(place, "server.conf", &program.configuration(place, &sockets, zones));
        Authority::launch(namespace, &program.command(&file), place, address, zones[0].name)
    }

    /// Starts Unbound, which queries the authority at `authority` for these zones, validates with their trust
    /// anchors, and returns the reason of bogus data as an extended error (RFC 8914).
    pub fn start_unbound(
        namespace: &'a Namespace,
        place: &Path,
        address: &str,
        authority: &str,
        zones: &[Zone],
    ) -> Authority<'a> {
        let directory = place.display();
        let mut text = format!(
            "server:\n interface: {address}\n access-control: 0.0.0.0/0 allow\n num-threads: 1\n username: \"\"\n \
             chroot: \"\"\n directory: \"{directory}\"\n pidfile: \"{directory}/unbound.pid\"\n use-syslog: no\n \
             module-config: \"validator iterator\"\n ede: yes\n"
        );
        let mut stubs = String::new();
        for Zone { name, anchor, .. } in zones {
            // Otherwise Unbound answers NXDOMAIN for all of `test.` (RFC 6761). Writing to a string does not fail.
            let _ = writeln!(text, " local-zone: \"{name}.\" transparent");
            if let Some(anchor) = anchor {
                let _ = writeln!(text, " trust-anchor: \"{anchor}\"");
            }
            let _ = writeln!(stubs, "stub-zone:\n name: \"{name}.\"\n stub-addr: {authority}");
        }
        let file = write(place, "server.conf", &(text + "remote-control:\n control-enable: no\n" + &stubs));
        Authority::launch(namespace, &["unbound", "-d", "-p", "-c", &file], place, address, zones[0].name)
    }

    fn launch(
        namespace: &'a Namespace,
        argv: &[&str],
        place: &Path,
        address: &str,
        asked: &str,
    ) -> Authority<'a> {
        let log = place.join("server.log");
        let mut authority = Authority {
            namespace,
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
            address: address.into(),
            asked: asked.into(),
            process: namespace.start(argv, &log),
            log,
        };
        authority.expect_answers();
        authority
    }

    fn expect_answers(&mut self) {
        let (namespace, address, asked) = (self.namespace, &self.address, &self.asked);
        let what = format!("{} answers", self.argv[0]);
        self.process.expect(&what, |_| has_zone(namespace, address, 53, asked));
    }

    /// Kills the server at once.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts the server again with the same configuration, and waits until it answers.
    pub fn restart(&mut self) {
        self.process.kill();
        let argv: Vec<_> = self.argv.iter().map(String::as_str).collect();
        self.process = self.namespace.start(&argv, &self.log);
        self.expect_answers();
    }
}

fn write(place: &Path, name: &str, text: &str) -> String {
    let file = place.join(name);
    std::fs::write(&file, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
    file.to_string_lossy().into_owned()
}
