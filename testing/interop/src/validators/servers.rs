//! Validators: Sixfold of this build, and the four of Debian 13, each with the trust anchors of the zones and one forwarder for everything.
//! Proofs of one answer are not used for another question (RFC 8198), where a server has a switch for that, as the fault would then be in
//! some answers only. Clocks are as strict as RFC 4035 section 5.3.1 has them. Everything else is the default.

use super::ask::query;
use super::resolver::Resolver;
use crate::debian::Debian13;
use crate::process::Process;
use crate::scratch::Scratch;
use crate::sixfold::binary;
use conform::client;
use conform::differential::quirk::Server;
use conform::message::Transport;
use conform::server_process::tells_of_taken_port;
use kit::free_port;
use signed_zones::Anchor;
use signed_zones::name::text;
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

/// Folder of a server, as it sees it itself.
const FOLDER: &str = "/mnt";

/// Running validator.
pub struct Validator {
    /// Port on 127.0.0.1.
    pub port: u16,
    process: Process,
    _place: Scratch,
}

impl Validator {
    /// True if the process still runs.
    pub fn is_alive(&mut self) -> bool {
        self.process.is_running()
    }

    /// Log so far.
    pub fn log(&self) -> String {
        self.process.log()
    }
}

/// Trust anchors as texts.
struct Anchors {
    /// Zone, and the four fields of a DS record.
    positive: Vec<(String, [String; 4])>,
    negative: Vec<String>,
}

impl Anchors {
    fn of(anchors: &[Anchor]) -> Anchors {
        let (mut positive, mut negative) = (vec![], vec![]);
        for anchor in anchors {
            match anchor {
                Anchor::Ds(zone, rdata) => {
                    let digest: String = rdata[4..].iter().map(|octet| format!("{octet:02X}")).collect();
                    let tag = u16::from_be_bytes([rdata[0], rdata[1]]).to_string();
                    positive.push((text(zone), [tag, rdata[2].to_string(), rdata[3].to_string(), digest]));
                }
                Anchor::Negative(zone, _) => negative.push(text(zone)),
                Anchor::Dnskey(..) => panic!("not every server takes a DNSKEY record as its anchor"),
            }
        }
        Anchors { positive, negative }
    }

    /// DS records in master file format.
    fn lines(&self) -> Vec<String> {
        let line = |(zone, fields): &(String, [String; 4])| format!("{zone} IN DS {}", fields.join(" "));
        self.positive.iter().map(line).collect()
    }

    fn negative(&self, before: &str, after: &str) -> String {
        self.negative.iter().fold(String::new(), |text, zone| text + before + zone + after)
    }
}

/// Words that version commands print before the version.
pub fn version(debian: &Debian13, server: Server) -> String {
    let place = Scratch::new();
    let ran = match server {
        Server::Sixfold => crate::process::run(&[binary(), "--version"]),
        Server::Unbound => debian.run(place.path(), &["/usr/sbin/unbound", "-V"]),
        Server::Bind => debian.run(place.path(), &["/usr/sbin/named", "-v"]),
        Server::PowerDns => debian.run(place.path(), &["/usr/sbin/pdns_recursor", "--version"]),
        Server::KnotResolver => debian.run(place.path(), &["/usr/sbin/kresd", "--version"]),
    };
    let text = ran.stdout + &ran.stderr;
    let is_version =
        |word: &&str| word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.');
    let words = text.split_whitespace().filter(is_version);
    let version = words.into_iter().next().unwrap_or_default();
    version.split('-').next().unwrap_or_default().to_owned()
}

/// File of a configuration, its text, and the command of the server.
struct Plan {
    file: &'static str,
    text: String,
    command: Vec<String>,
}

impl Plan {
    fn of(file: &'static str, text: String, command: &[&str]) -> Plan {
        Plan { file, text, command: command.iter().map(|&word| word.to_owned()).collect() }
    }
}

fn plan(server: Server, port: u16, upstream: SocketAddr, anchors: &Anchors) -> Plan {
    match server {
        Server::Sixfold => sixfold(port, upstream, anchors),
        Server::Unbound => unbound(port, upstream, anchors),
        Server::Bind => bind(port, upstream, anchors),
        Server::PowerDns => powerdns(port, upstream, anchors),
        Server::KnotResolver => knot_resolver(port, upstream, anchors),
    }
}

/// No client gets synthesis, so that AAAA questions are questions like others.
fn sixfold(port: u16, upstream: SocketAddr, anchors: &Anchors) -> Plan {
    let negative: Vec<String> = anchors.negative.iter().map(|zone| format!("\"{zone}\"")).collect();
    let text = format!(
        "[server]\nlisten = [\"127.0.0.1:{port}\"]\nworkers = 1\n[upstream]\nforwarders = [\"{upstream}\"]\n\
         [dns64]\nprefixes = [\"64:ff9b::/96\"]\ndnssec = \"validate\"\nclients = [\"192.0.2.0/24\"]\n\
         [dnssec]\ntrust-anchors = \"FOLDER/anchors\"\nnegative-trust-anchors = [{}]\n\
         aggressive-nsec = false\n[metrics]\nlisten = \"\"\n\
         [control]\nsocket = \"FOLDER/control.sock\"\n[log]\nlevel = \"error\"\n",
        negative.join(", ")
    );
    Plan::of("sixfold.toml", text, &["serve", "--config"])
}

fn unbound(port: u16, upstream: SocketAddr, anchors: &Anchors) -> Plan {
    let mut text = format!(
        "server:\n interface: 127.0.0.1@{port}\n access-control: 127.0.0.0/8 allow\n do-daemonize: no\n \
         username: \"\"\n chroot: \"\"\n directory: \"{FOLDER}\"\n pidfile: \"\"\n use-syslog: no\n logfile: \"\"\n \
         num-threads: 1\n module-config: \"validator iterator\"\n do-not-query-localhost: no\n aggressive-nsec: no\n \
         val-sig-skew-min: 0\n val-sig-skew-max: 0\n"
    );
    anchors.lines().iter().for_each(|line| text += &format!(" trust-anchor: \"{line}\"\n"));
    text += &anchors.negative(" domain-insecure: \"", "\"\n");
    let (ip, port) = (upstream.ip(), upstream.port());
    let _ = write!(
        text,
        "remote-control:\n control-enable: no\nforward-zone:\n name: \".\"\n forward-addr: {ip}@{port}\n"
    );
    Plan::of("unbound.conf", text, &["/usr/sbin/unbound", "-d", "-c"])
}

fn bind(port: u16, upstream: SocketAddr, anchors: &Anchors) -> Plan {
    let except = match anchors.negative.is_empty() {
        true => String::new(),
        false => format!("validate-except {{ {} }};", anchors.negative("\"", "\"; ")),
    };
    let mut text = format!(
        "options {{ directory \"{FOLDER}\"; pid-file none; session-keyfile none;\n\
         listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};\n\
         recursion yes; allow-query {{ any; }}; allow-recursion {{ any; }}; dnssec-validation yes;\n\
         synth-from-dnssec no; empty-zones-enable no; {except}\n\
         forward only; forwarders {{ {} port {}; }}; }};\ncontrols {{ }};\n\
         logging {{ channel errors {{ stderr; severity warning; }}; category default {{ errors; }};\n\
         category lame-servers {{ null; }}; }};\ntrust-anchors {{\n",
        upstream.ip(),
        upstream.port()
    );
    for (zone, [tag, algorithm, digest_type, digest]) in &anchors.positive {
        let _ = writeln!(text, "\"{zone}\" static-ds {tag} {algorithm} {digest_type} \"{digest}\";");
    }
    text += "};\n";
    Plan::of("named.conf", text, &["/usr/sbin/named", "-f", "-L", "/dev/stderr", "-n", "1", "-c"])
}

fn powerdns(port: u16, upstream: SocketAddr, anchors: &Anchors) -> Plan {
    let mut text =
        "dnssec:\n  validation: validate\n  aggressive_nsec_cache_size: 0\n  signature_inception_skew: 0\n  \
                    trustanchors:\n"
            .to_owned();
    for (zone, fields) in &anchors.positive {
        let _ = writeln!(text, "  - name: {zone}\n    dsrecords:\n    - {}", fields.join(" "));
    }
    if !anchors.negative.is_empty() {
        text += "  negative_trustanchors:\n";
        text += &anchors.negative("  - name: ", "\n    reason: a test\n");
    }
    let _ = write!(
        text,
        "incoming:\n  listen: ['127.0.0.1:{port}']\n  allow_from: [127.0.0.0/8]\noutgoing:\n  dont_query: []\n\
         recursor:\n  forward_zones_recurse:\n  - zone: .\n    forwarders: ['{upstream}']\n  daemon: false\n  \
         write_pid: false\n  socket_dir: {FOLDER}\n  threads: 1\n  setuid: ''\n  setgid: ''\n  serve_rfc1918: false\n  \
         export_etc_hosts: false\n  security_poll_suffix: ''\npacketcache:\n  disable: true\nlogging:\n  loglevel: 3\n  \
         quiet: true\n  disable_syslog: true\n  statistics_interval: 0\nwebservice:\n  webserver: false\n"
    );
    let config = format!("--config-dir={FOLDER}");
    Plan::of("recursor.yml", text, &["/usr/sbin/pdns_recursor", &config])
}

fn knot_resolver(port: u16, upstream: SocketAddr, anchors: &Anchors) -> Plan {
    let mut text = format!(
        "net.listen('127.0.0.1', {port}, {{ kind = 'dns' }})\nmodules = {{ 'policy' }}\nmodules.unload('priming')\n\
         modules.unload('detect_time_skew')\nmodules.unload('ta_signal_query')\nmodules.unload('ta_update')\n\
         trust_anchors.remove('.')\ncache.size = 20 * MB\nlog_level('warning')\n"
    );
    anchors.lines().iter().for_each(|line| text += &format!("trust_anchors.add('{line}')\n"));
    text += &format!("trust_anchors.set_insecure({{{}}})\n", anchors.negative("'", "', "));
    let _ = writeln!(text, "policy.add(policy.all(policy.FLAGS({{'NO_CACHE'}})))");
    let target = format!("'{}@{}'", upstream.ip(), upstream.port());
    let _ = writeln!(text, "policy.add(policy.all(policy.FORWARD({{{target}}})))");
    Plan::of("kresd.conf", text, &["/usr/sbin/kresd", "-n", "-c"])
}

/// Starts of a server, each at another port: another process may take a port before the server has it.
const STARTS: u32 = 4;

/// Starts a validator of the zones behind a resolver, and waits until it answers.
///
/// # Panics
///
/// If it does not.
pub fn start(debian: &Debian13, server: Server, resolver: &Resolver) -> Validator {
    let mut starts = 0;
    loop {
        starts += 1;
        match try_start(debian, server, resolver) {
            Ok(running) => return running,
            Err(why) if starts < STARTS && tells_of_taken_port(&why) => {}
            Err(why) => panic!("{} does not answer: {why}", server.name()),
        }
    }
}

fn try_start(debian: &Debian13, server: Server, resolver: &Resolver) -> Result<Validator, String> {
    let (place, port) = (Scratch::new(), free_port());
    let anchors = Anchors::of(&resolver.anchors);
    let Plan { file, text, mut command } = plan(server, port, resolver.address(), &anchors);
    let folder = place.path().display().to_string();
    let log = place.path().join("server.log");
    if server == Server::Sixfold {
        place.write("anchors", &(anchors.lines().join("\n") + "\n"));
        command.insert(0, binary().to_owned());
        command.push(format!("{folder}/{file}"));
    } else {
        if server != Server::PowerDns {
            command.push(format!("{FOLDER}/{file}"));
        }
        if server == Server::KnotResolver {
            command.push(FOLDER.to_owned());
        }
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        command = debian.command_in_namespace(place.path(), &words);
    }
    place.write(file, &text.replace("FOLDER", &folder));
    let argv: Vec<&str> = command.iter().map(String::as_str).collect();
    let mut process = Process::start(&argv, &log);
    let probe = query(kit::query(1, "ready.example", 1), Transport::Udp);
    process.wait_for(|_| {
        let exchange = client::ask(port, &probe, Duration::from_millis(300));
        exchange.is_ok_and(|exchange| exchange.answer.is_some())
    })?;
    Ok(Validator { port, process, _place: place })
}
