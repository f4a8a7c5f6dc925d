//! Recipes of authoritative servers: how each is found, configured and started. A recipe is a pure function of text. All
//! servers get the same task: one zone, one address, UDP and TCP, in the foreground, as the calling user, without control
//! socket, log of queries, transfers or rate limit, minimal responses, and as many threads (or processes) as it has cores.

use super::zone_file::{TTL_SECS, ZONE};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

/// A server of the experiment.
#[derive(Debug)]
pub struct Recipe {
    /// Name of `--device`.
    pub name: &'static str,
    /// Name in tables.
    pub title: &'static str,
    /// File name of its program; empty: our own.
    pub program: &'static str,
    /// Debian packages that have it.
    pub packages: &'static str,
    /// Arguments that print its version.
    pub version: &'static [&'static str],
    /// Text with which the version begins.
    pub version_prefix: &'static str,
    /// True if it reads the master file.
    pub reads_zone: bool,
    /// True if it can use one core alone at one port.
    pub is_single: bool,
    /// Form of its answers.
    pub answers: Answers,
    /// Makes command line and files.
    pub plan: fn(&Input) -> Plan,
}

/// Form of the answers of a server, as far as servers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answers {
    /// True if they have the bit AA, and if a name that does not exist gets NXDOMAIN with the SOA record of the zone.
    pub is_authoritative: bool,
    /// TTL of all records, in seconds.
    pub ttl: u32,
}

/// Answers of an authoritative server (RFC 1035) for the zone.
pub const AUTHORITATIVE: Answers = Answers { is_authoritative: true, ttl: TTL_SECS };

/// Answers of FakeDNS, by its source: no AA, TTL 0, and no answer for a name without an address.
pub const OF_FAKEDNS: Answers = Answers { is_authoritative: false, ttl: 0 };

/// Input of a recipe.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Path of the program.
    pub program: &'a str,
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Threads or processes that answer.
    pub threads: usize,
    /// First core of the server.
    pub core: u16,
    /// The master file.
    pub zone_file: &'a Path,
    /// The server's own folder.
    pub folder: &'a Path,
}

/// Command line of a server, and the files of its folder: name and text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The command line.
    pub command: Vec<String>,
    /// Files: name and text.
    pub files: BTreeMap<String, String>,
}

/// All servers, the paper's first.
pub const RECIPES: [Recipe; 8] = [
    Recipe {
        name: "bind",
        title: "BIND",
        program: "named",
        packages: "bind9",
        version: &["-v"],
        version_prefix: "BIND",
        reads_zone: true,
        is_single: false,
        answers: AUTHORITATIVE,
        plan: bind,
    },
    Recipe {
        name: "nsd",
        title: "NSD",
        program: "nsd",
        packages: "nsd",
        version: &["-v"],
        version_prefix: "NSD",
        reads_zone: true,
        is_single: false,
        answers: AUTHORITATIVE,
        plan: nsd,
    },
    Recipe {
        name: "knot",
        title: "Knot DNS",
        program: "knotd",
        packages: "knot",
        version: &["-V"],
        version_prefix: "knotd",
        reads_zone: true,
        is_single: false,
        answers: AUTHORITATIVE,
        plan: knot,
    },
    Recipe {
        name: "yadifa",
        title: "YADIFA",
        program: "yadifad",
        packages: "yadifa",
        version: &["-V"],
        version_prefix: "yadifad",
        reads_zone: true,
        is_single: false,
        answers: AUTHORITATIVE,
        plan: yadifa,
    },
    Recipe {
        name: "powerdns",
        title: "PowerDNS",
        program: "pdns_server",
        packages: "pdns-server pdns-backend-bind",
        version: &["--version"],
        version_prefix: "PowerDNS",
        reads_zone: true,
        is_single: false,
        answers: AUTHORITATIVE,
        plan: powerdns,
    },
    Recipe {
        name: "fakedns",
        title: "FakeDNS",
        program: "fakedns",
        packages: "",
        version: &[],
        version_prefix: "",
        reads_zone: false,
        is_single: true,
        answers: OF_FAKEDNS,
        plan: fakedns,
    },
    Recipe {
        name: "ours-zone-file",
        title: "ours, zone file",
        program: "",
        packages: "",
        version: &["--version"],
        version_prefix: "sixfold-bench",
        reads_zone: true,
        is_single: false,
        answers: AUTHORITATIVE,
        plan: ours_with_zone_file,
    },
    Recipe {
        name: "ours",
        title: "ours, computed",
        program: "",
        packages: "",
        version: &["--version"],
        version_prefix: "sixfold-bench",
        reads_zone: false,
        is_single: false,
        answers: AUTHORITATIVE,
        plan: ours,
    },
];

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Command line of a server with one configuration file.
fn with_file(input: &Input, before: &[&str], file: &str, text: String) -> Plan {
    let path = input.folder.join(file).display().to_string();
    let command = [&[input.program], before, &[path.as_str()]].concat();
    Plan { command: words(&command), files: [(file.to_owned(), text)].into() }
}

fn bind(input: &Input) -> Plan {
    let (folder, zone) = (input.folder.display(), input.zone_file.display());
    let (family, other) = if input.listen.is_ipv6() { ("-v6", "") } else { ("", "-v6") };
    let text = format!(
        "options {{\n  directory \"{folder}\";\n  pid-file none;\n  session-keyfile none;\n\
         \x20 listen-on{family} port {} {{ {}; }};\n  listen-on{other} {{ none; }};\n  recursion no;\n\
         \x20 allow-query {{ any; }};\n  allow-transfer {{ none; }};\n  notify no;\n  empty-zones-enable no;\n\
         \x20 dnssec-validation no;\n  minimal-responses yes;\n  querylog no;\n}};\ncontrols {{ }};\n\
         logging {{\n  channel errors {{ stderr; severity warning; }};\n  category default {{ errors; }};\n}};\n\
         zone \"{ZONE}\" {{ type primary; file \"{zone}\"; }};\n",
        input.listen.port(),
        input.listen.ip(),
    );
    let threads = input.threads.to_string();
    // Until named has read its configuration, it would log to the system's log.
    with_file(input, &["-f", "-L", "/dev/stderr", "-n", &threads, "-c"], "named.conf", text)
}

fn nsd(input: &Input) -> Plan {
    let (folder, zone, address) = (input.folder.display(), input.zone_file.display(), input.listen.ip());
    // NSD 4 has no database file unless it is asked for one, and it answers from memory. A limit of 200 responses a second is
    // built into packages; 0 turns it off.
    let text = format!(
        "server:\n  ip-address: {address}@{}\n  server-count: {}\n  reuseport: yes\n  username: \"\"\n  chroot: \"\"\n\
         \x20 zonesdir: \"{folder}\"\n  database: \"\"\n  pidfile: \"\"\n  xfrdfile: \"\"\n  xfrdir: \"{folder}\"\n\
         \x20 zonelistfile: \"{folder}/zone.list\"\n  cookie-secret-file: \"\"\n  rrl-ratelimit: 0\n  minimal-responses: yes\n\
         \x20 verbosity: 0\nremote-control:\n  control-enable: no\nzone:\n  name: {ZONE}\n  zonefile: \"{zone}\"\n",
        input.listen.port(),
        input.threads,
    );
    with_file(input, &["-d", "-c"], "nsd.conf", text)
}

fn knot(input: &Input) -> Plan {
    let (folder, zone, address) = (input.folder.display(), input.zone_file.display(), input.listen.ip());
    // Without a journal and without writing the zone back, the file is only read.
    let text = format!(
        "server:\n  listen: {address}@{}\n  rundir: {folder}\n  udp-workers: {}\n  tcp-workers: 1\n\
         \x20 background-workers: 1\ndatabase:\n  storage: {folder}\ncontrol:\n  listen: {folder}/knot.sock\n\
         log:\n- target: stderr\n  any: warning\nzone:\n- domain: {ZONE}\n  file: {zone}\n  zonefile-load: whole\n\
         \x20 zonefile-sync: -1\n  journal-content: none\n",
        input.listen.port(),
        input.threads,
    );
    with_file(input, &["-c"], "knot.conf", text)
}

fn yadifa(input: &Input) -> Plan {
    let (folder, zone, address) = (input.folder.display(), input.zone_file.display(), input.listen.ip());
    let paths: String =
        ["logpath", "datapath", "keyspath", "xfrpath"].map(|key| format!("  {key} \"{folder}\"\n")).concat();
    let text = format!(
        "<main>\n  daemon off\n  chroot off\n  pidfile \"{folder}/yadifad.pid\"\n{paths}  listen {address} port {}\n\
         \x20 thread-count-by-address {}\n  statistics off\n  allow-transfer none\n  allow-update none\n  allow-notify none\n\
         </main>\n<zone>\n  domain {ZONE}\n  type master\n  file \"{zone}\"\n</zone>\n",
        input.listen.port(),
        input.threads,
    );
    with_file(input, &["-c"], "yadifad.conf", text)
}

fn powerdns(input: &Input) -> Plan {
    let (folder, zone) = (input.folder.display(), input.zone_file.display());
    // One backend thread for each receiver: the zone is in memory, and a handover would only cost time.
    let text = format!(
        "launch=bind\nbind-config={folder}/zones.conf\nlocal-address={}\nlocal-port={}\nreuseport=yes\n\
         receiver-threads={}\ndistributor-threads=1\nsocket-dir={folder}\ndaemon=no\nguardian=no\ndisable-syslog=yes\n\
         loglevel=3\nsecurity-poll-suffix=\ndisable-axfr=yes\n",
        input.listen.ip(),
        input.listen.port(),
        input.threads,
    );
    let zones = format!("zone \"{ZONE}\" {{ type master; file \"{zone}\"; }};\n");
    let command = words(&[input.program, &format!("--config-dir={folder}")]);
    Plan { command, files: [("pdns.conf".to_owned(), text), ("zones.conf".to_owned(), zones)].into() }
}

/// FakeDNS, branch feature/moreproc: it reads a fixed file in `/etc`, so it gets a mount namespace in which `/etc` is its folder. It leaves
/// its first process, which stays. Each of its processes has a port of its own, so it gets one.
fn fakedns(input: &Input) -> Plan {
    let (folder, program) = (input.folder.display(), input.program);
    let script = format!("mount --bind '{folder}' /etc && '{program}'; exec sleep 2147483647");
    let command = words(&["unshare", "--mount", "sh", "-c", &script]);
    let text = format!(
        "have-AAAA 1\nnum-servers 1\nstart-port {}\nstart-cpu {}\ndebug no\n",
        input.listen.port(),
        input.core
    );
    Plan { command, files: [("fakedns.conf".to_owned(), text)].into() }
}

fn ours(input: &Input) -> Plan {
    let (listen, threads) = (input.listen.to_string(), input.threads.to_string());
    let command =
        [input.program, "authority", "--listen", &listen, "--threads", &threads, "--aaaa-share", "1"];
    Plan { command: words(&command), ..Plan::default() }
}

fn ours_with_zone_file(input: &Input) -> Plan {
    let (listen, threads) = (input.listen.to_string(), input.threads.to_string());
    let zone = input.zone_file.display().to_string();
    let command = [input.program, "authority", "--listen", &listen, "--threads", &threads, "--zone", &zone];
    Plan { command: words(&command), ..Plan::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_tells_address_threads_and_zone_file() {
        for listen in ["127.0.0.1:5399", "[::1]:5399"] {
            let listen: SocketAddr = listen.parse().unwrap();
            for recipe in RECIPES.iter().filter(|recipe| !recipe.is_single) {
                let plan = (recipe.plan)(&Input {
                    program: "/bin/program",
                    listen,
                    threads: 7,
                    core: 3,
                    zone_file: Path::new("/zones/the-zone"),
                    folder: Path::new("/tmp/folder"),
                });
                let mut said = plan.command.join("\n");
                plan.files.values().for_each(|text| said.push_str(text));
                assert_eq!(plan.command[0], "/bin/program");
                for needed in ["5399", "7", &listen.ip().to_string()] {
                    assert!(said.contains(needed), "{}: no {needed} in\n{said}", recipe.name);
                }
                assert_eq!(said.contains("/zones/the-zone"), recipe.reads_zone, "{}\n{said}", recipe.name);
                assert_eq!(
                    said.contains(ZONE),
                    recipe.reads_zone && !recipe.program.is_empty(),
                    "{}",
                    recipe.name
                );
            }
        }
    }

    #[test]
    fn fakedns_gets_one_port_and_one_core_in_a_file_of_its_own_etc() {
        let plan = fakedns(&Input {
            program: "/opt/fakedns",
            listen: "127.0.0.1:5399".parse().unwrap(),
            threads: 1,
            core: 3,
            zone_file: Path::new("/z"),
            folder: Path::new("/tmp/folder"),
        });
        assert!(plan.command.join(" ").contains("mount --bind '/tmp/folder' /etc && '/opt/fakedns';"));
        let text = "have-AAAA 1\nnum-servers 1\nstart-port 5399\nstart-cpu 3\ndebug no\n";
        assert_eq!(plan.files["fakedns.conf"], text);
    }

    #[test]
    fn a_configuration_file_is_named_in_the_command_line() {
        let input = Input {
            program: "p",
            listen: "127.0.0.1:1".parse().unwrap(),
            threads: 1,
            core: 3,
            zone_file: Path::new("/z"),
            folder: Path::new("/d"),
        };
        for recipe in RECIPES.iter().filter(|recipe| !recipe.program.is_empty() && !recipe.is_single) {
            let plan = (recipe.plan)(&input);
            let command = plan.command.join(" ");
            let is_named = plan.files.keys().any(|file| command.ends_with(&format!("/d/{file}")));
            assert!(is_named || command.ends_with("--config-dir=/d"), "{command}");
        }
    }
}
