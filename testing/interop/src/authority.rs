//! Name servers in the namespace `world`: NSD, Knot DNS and BIND as authorities, and Unbound as a resolver in front
//! of one of them.

use crate::kdig::Kdig;
use crate::namespace::Namespace;
use crate::process::Process;
use crate::zones::Zone;
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

    /// Configuration for one address and these zones. The server writes all files into `place`, stays in the
    /// foreground and keeps its user.
    fn configuration(self, place: &Path, address: &str, zones: &[Zone]) -> String {
        let place = place.display();
        let mut text = match self {
            // Rate limiting would treat the tests' many queries as an attack.
            Program::Nsd => format!(
                "server:\n ip-address: {address}\n server-count: 1\n username: \"\"\n zonesdir: \"{place}\"\n \
                 database: \"\"\n pidfile: \"{place}/nsd.pid\"\n xfrdfile: \"{place}/xfrd.state\"\n \
                 xfrdir: \"{place}\"\n zonelistfile: \"{place}/zone.list\"\n rrl-ratelimit: 0\n \
                 rrl-whitelist-ratelimit: 0\nremote-control:\n control-enable: no\n"
            ),
            Program::Knot => format!(
                "server:\n  rundir: {place}\n  listen: {address}@53\n  udp-workers: 1\n  tcp-workers: 2\n  \
                 background-workers: 1\ndatabase:\n  storage: {place}\nlog:\n  - target: stderr\n    any: info\n\
                 template:\n  - id: default\n    storage: {place}\n    zonefile-sync: -1\n    \
                 journal-content: none\nzone:\n"
            ),
            Program::Bind => {
                let (family, other) = if address.contains(':') { ("-v6", "") } else { ("", "-v6") };
                format!(
                    "options {{ directory \"{place}\"; listen-on{family} port 53 {{ {address}; }}; \
                     listen-on{other} {{ none; }}; recursion no; dnssec-validation no; pid-file none; \
                     session-keyfile none; allow-query {{ any; }}; notify no; }};\ncontrols {{ }};\n"
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
    /// Starts an authority for `zones` and waits until it answers. `place` is a new directory for it.
    pub fn start(
        program: Program,
        namespace: &'a Namespace,
        place: &Path,
        address: &str,
        zones: &[Zone],
    ) -> Authority<'a> {
        let configuration = program.configuration(place, address, zones);
        let file = write(place, "server.conf", &configuration);
        let arguments: &[&str] = match program {
            Program::Nsd => &["nsd", "-d", "-c", &file],
            Program::Knot => &["knotd", "-c", &file],
            Program::Bind => &["named", "-g", "-n", "1", "-c", &file],
        };
        Authority::launch(namespace, arguments, place, address, zones[0].name)
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
        let kdig = Kdig::new(self.namespace, &self.address).with("+timeout=1");
        let asked = [(self.asked.as_str(), "SOA")];
        self.process.expect(&format!("{} answers", self.argv[0]), |_| {
            kdig.ask_all(&asked).first().is_some_and(|answer| !answer.data("SOA").is_empty())
        });
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
