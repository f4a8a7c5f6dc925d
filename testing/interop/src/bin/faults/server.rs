//! Servers of the experiments, all with equal configurations: one worker, DNS64, two upstreams, no validation, and
//! expired data when upstreams fail, if the server has an option for it. Everything else is the default.

use sixfold_interop::{Lab, Process, address, missing_program, program};

/// Names of all servers.
pub const ALL: [&str; 4] = ["sixfold", "unbound", "powerdns", "bind"];

/// Name of the configuration file, its text, and the command.
fn setup(device: &str, folder: &str, upstreams: [&str; 2]) -> (&'static str, String, Vec<String>) {
    let (listen, prefix) = (address::GATEWAY, address::PREFIX);
    let [first, second] = upstreams;
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    match device {
        "unbound" => (
            "unbound.conf",
            format!(
                "server:\n  interface: {listen}\n  access-control: 2001:db8:c::/64 allow\n  do-daemonize: no\n  \
                 username: \"\"\n  chroot: \"\"\n  directory: \"{folder}\"\n  pidfile: \"\"\n  use-syslog: no\n  \
                 logfile: \"\"\n  verbosity: 0\n  num-threads: 1\n  module-config: \"dns64 iterator\"\n  \
                 dns64-prefix: {prefix}\n  local-zone: \"test.\" nodefault\n  serve-expired: yes\n  ede: yes\n  \
                 serve-expired-client-timeout: 1800\n  ede-serve-expired: yes\nremote-control:\n  \
                 control-enable: no\nforward-zone:\n  name: \".\"\n  forward-addr: {first}\n  forward-addr: {second}\n"
            ),
            words(&["unbound", "-d", "-c", &format!("{folder}/unbound.conf")]),
        ),
        "powerdns" => (
            "recursor.conf",
            format!(
                "config-dir={folder}\nsocket-dir={folder}\ndaemon=no\nwrite-pid=no\nsetuid=\nsetgid=\nchroot=\n\
                 local-address={listen}\nallow-from=2001:db8:c::/64\nforward-zones-recurse=.={first};{second}\n\
                 dont-query=\ndns64-prefix={prefix}\ndnssec=off\nthreads=1\npdns-distributes-queries=no\n\
                 export-etc-hosts=no\nwebserver=no\nsecurity-poll-suffix=\nserve-stale-extensions=1440\nquiet=yes\n\
                 loglevel=3\ndisable-syslog=yes\nstatistics-interval=0\n"
            ),
            words(&["pdns_recursor", &format!("--config-dir={folder}")]),
        ),
        "bind" => (
            "named.conf",
            format!(
                "options {{\n directory \"{folder}\"; pid-file none; listen-on {{ none; }};\n \
                 listen-on-v6 {{ {listen}; }}; allow-query {{ any; }}; recursion yes; allow-recursion {{ any; }};\n \
                 forward only; forwarders {{ {first}; {second}; }}; dnssec-validation no; empty-zones-enable no;\n \
                 stale-cache-enable yes; stale-answer-enable yes; stale-answer-client-timeout 1800;\n \
                 dns64 {prefix} {{ clients {{ any; }}; }};\n}};\ncontrols {{ }};\n"
            ),
            words(&["named", "-f", "-n", "1", "-c", &format!("{folder}/named.conf")]),
        ),
        _ => (
            "sixfold.toml",
            format!(
                "[server]\nlisten = [\"[{listen}]:53\"]\nworkers = 1\nallow = [\"2001:db8:c::/64\"]\n\
                 [upstream]\nforwarders = [\"{first}\", \"{second}\"]\n[dns64]\nprefixes = [\"{prefix}\"]\n\
                 [metrics]\nlisten = \"127.0.0.1:9464\"\n\
                 [control]\nsocket = \"{folder}/control.sock\"\n[log]\nlevel = \"error\"\n"
            ),
            words(&[&program("sixfold"), "serve", "--config", &format!("{folder}/sixfold.toml")]),
        ),
    }
}

/// Starts a server in the gateway and waits until it answers.
///
/// # Errors
///
/// The server is not installed. A server that does not answer in time is a panic with its log.
pub fn start(device: &str, lab: &Lab, upstreams: [&str; 2]) -> Result<Process, String> {
    let installed = match device {
        "powerdns" => "pdns_recursor",
        "bind" => "named",
        other => other,
    };
    if device != "sixfold"
        && let Some(why) = missing_program(installed)
    {
        return Err(why.why());
    }
    let folder = lab.scratch.path().display().to_string();
    let (file, text, command) = setup(device, &folder, upstreams);
    lab.scratch.write(file, &text);
    let argv: Vec<&str> = command.iter().map(String::as_str).collect();
    let mut process = lab.gateway.start(&argv, &lab.scratch.path().join("server.log"));
    let kdig = lab.kdig().with("+timeout=1");
    process.expect(&format!("{device} answers"), |_| {
        kdig.ask_all(&[("010-255-000-001.dns64perf.test", "AAAA")])
            .first()
            .is_some_and(|answer| answer.status == "NOERROR")
    });
    Ok(process)
}
