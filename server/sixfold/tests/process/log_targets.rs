//! The targets of the log: standard error, systemd-journald and a syslog daemon, real ones, in namespaces of their own.

use crate::client::{Udp, name_of};
use crate::daemon::{Daemon, Folder, Process, Setup, wait_until};
use crate::upstream::{Behavior, Upstream};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use wire::Type;

/// Arguments of `unshare` for a test whose /run and /dev/log are its own, and whose processes end with it.
const OWN_SYSTEM: [&str; 9] = [
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "--",
    "sh",
    "-c",
    "mount -t tmpfs none /run && mkdir -p /run/dev /run/systemd/journal && mount --rbind /dev /run/dev && \
     mount -t tmpfs none /dev && ln -s /run/dev/* /dev/ && rm -f /dev/log && ln -s /run/log.sock /dev/log && exec \"$0\" \"$@\"",
];

/// Standard error as systemd sets it up: `JOURNAL_STREAM` names it.
const AS_JOURNAL: [&str; 4] =
    ["sh", "-c", "JOURNAL_STREAM=$(stat -Lc %d:%i /proc/$$/fd/2); export JOURNAL_STREAM; exec \"$@\"", "sh"];

/// A daemon that is killed with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a daemon and waits for its socket; none, and the test counts as skipped, if this machine does not have or run it.
fn start(program: &str, package: &str, arguments: &[&str], socket: &str) -> Option<Killed> {
    let _ = std::fs::remove_file(socket);
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(child) = command.spawn() else {
        kit::missing(program, &format!("apt-get install {package}"));
        return None;
    };
    let mut daemon = Killed(child);
    let mut ended = None;
    wait_until(&format!("{program} has its socket"), || {
        ended = daemon.0.try_wait().unwrap();
        ended.is_some() || Path::new(socket).exists()
    });
    if let Some(status) = ended {
        kit::skip(&format!("{program} does not run here: {status}"));
        return None;
    }
    Some(daemon)
}

/// Sends a command over the control socket, without a process for it.
fn command(server: &Daemon, line: &str) {
    let mut stream = UnixStream::connect(&server.control).unwrap();
    stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
}

fn dropped(server: &Daemon) -> f64 {
    server.stat("log_lines_total{result=\"dropped\"}")
}

#[test]
fn level_and_format_change_with_a_reload() {
    let server = Setup::answering().start();
    command(&server, "before");
    server.rewrite(&["log.level = \"debug\""]);
    assert_eq!(server.ctl(&["reload"]).stdout, b"reloaded\n");
    command(&server, "after");
    let line = server.process.wait_for("control command \"after\"").unwrap();
    assert!(line.contains(" DEBUG control command "), "{line}");
    assert!(!server.process.log().contains("\"before\""), "{}", server.process.log());
    server.rewrite(&["log.level = \"debug\"", "log.format = \"json\""]);
    assert_eq!(server.ctl(&["reload"]).stdout, b"reloaded\n");
    command(&server, "as json");
    let line = server.process.wait_for("as json").unwrap();
    let object: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&object["level"], &object["fields"]["message"]),
        (&"DEBUG".into(), &"control command \"as json\"".into())
    );
    assert!(server.stat("log_lines_total{result=\"written\"}") >= 3.0);
}

#[test]
fn with_the_format_json_every_line_is_an_object_with_an_event() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let setup = || {
        let setup = Setup::new(upstream.address).line("log.format = \"json\"").line("log.level = \"trace\"");
        setup.line("upstream.timeout = \"100ms\"").metrics()
    };
    let server = setup().start();
    assert_eq!(Udp::to(server.v6()).ask(&name_of(1), Type::AAAA).addresses.len(), 1);
    server.rewrite(&["log.format = \"json\"", "log.level = \"trace\"", "upstream.tries = 99"]);
    server.ctl(&["reload"]);
    server.process.signal("USR1");
    server.process.wait_for("signal_ignored").unwrap();
    let address = upstream.address;
    drop(upstream);
    let mut number = 2;
    wait_until("the log says that nobody answers", || {
        Udp::to(server.v6()).ask(&name_of(number), Type::AAAA);
        number += 1;
        server.process.log().contains("outage_began")
    });
    server.process.stop();
    let log = server.process.log();
    let objects: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect();
    for object in &objects {
        let fields = &object["fields"];
        assert!(
            fields["event"].as_str().is_some_and(|event| !event.is_empty() && event != "library"),
            "{object}"
        );
        assert!(object["timestamp"].is_string() && object["level"].is_string(), "{object}");
    }
    let of = |event: &str| {
        let found = objects.iter().find(|object| object["fields"]["event"] == event);
        found.unwrap_or_else(|| panic!("no {event} in\n{log}"))["fields"].clone()
    };
    assert!(of("ready")["message"].as_str().unwrap().starts_with("sixfold: ready"));
    let down = of("upstream_down");
    assert_eq!((&down["upstream"], &down["reason"]), (&address.to_string().into(), &"port_refused".into()));
    assert_eq!(of("outage_began")["zone"], ".");
    for event in ["reload_failed", "stopped", "upstream_state"] {
        of(event);
    }
    // The error that ends the program.
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let directory = Folder::for_everybody();
    let config = directory.file("x.toml");
    let text = format!(
        "log.format = \"json\"\nserver.listen = [\"{}\"]\nupstream.forwarders = [\"{address}\"]\ncontrol.socket = \"\"\nmetrics.listen = \"\"",
        taken.local_addr().unwrap()
    );
    std::fs::write(&config, text).unwrap();
    let arguments = ["serve", "--config", &config.display().to_string()].map(str::to_owned);
    let failed = Process::start(&[], &arguments);
    assert_eq!(failed.wait().0.code(), Some(1));
    let last: Value = serde_json::from_str(failed.log().lines().last().unwrap()).unwrap();
    assert_eq!((&last["level"], &last["fields"]["event"]), (&"ERROR".into(), &"start_failed".into()));
}

/// A server whose standard error is a file on a small file system; what it has when the server is ready goes to the test.
const SMALL_DISK: &str = "mount -t tmpfs -o size=32k none \"$0\" || exit 1; \
    (until grep -q ready \"$0/log\" 2>&-; do sleep 0.05; done; cat \"$0/log\" >&2; exec sleep 600) & exec \"$@\" 2>>\"$0/log\"";

#[test]
fn lines_that_a_full_disk_did_not_take_are_told_of_when_it_takes_some_again() {
    if !crate::demo::is_root() {
        return kit::skip("only root mounts a small file system");
    }
    let disk = Folder::for_everybody();
    let folder = disk.file("disk");
    std::fs::create_dir(&folder).unwrap();
    let place = folder.display().to_string();
    let server = Setup::answering()
        .line("log.level = \"debug\"")
        .line("server.sandbox = \"off\"")
        .through(&["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", SMALL_DISK, &place])
        .start();
    // The file system as the server sees it.
    let inside = |name: &str| {
        let child = format!("/proc/{}/task/{}/children", server.process.pid(), server.process.pid());
        let child = std::fs::read_to_string(child).unwrap();
        Path::new(&format!("/proc/{}/root", child.trim())).join(place.trim_start_matches('/')).join(name)
    };
    // It fills up in the middle of a line.
    let mut number = 0;
    wait_until("the disk is full", || {
        number += 1;
        command(&server, &format!("fills the disk {number}"));
        dropped(&server) >= 3.0
    });
    let lost = dropped(&server);
    let full = std::fs::read_to_string(inside("log")).unwrap();
    assert!(!full.ends_with('\n'), "the last line is cut");
    // Somebody makes room: the next line begins at the left, and there is one about the lines that are missing.
    let log = std::fs::OpenOptions::new().write(true).open(inside("log")).unwrap();
    log.set_len(full.len() as u64 / 2).unwrap();
    wait_until("the log says so", || {
        let text = std::fs::read_to_string(inside("log")).unwrap();
        text.contains(" lines of the log were dropped: standard error did not take them")
    });
    command(&server, "after that");
    wait_until("the log goes on", || std::fs::read_to_string(inside("log")).unwrap().contains("after that"));
    let text = std::fs::read_to_string(inside("log")).unwrap();
    let line = text.lines().find(|line| line.contains("were dropped")).unwrap();
    assert!(line.starts_with("20") && line.contains(&format!(" WARN {lost} lines of the log")), "{line}");
    let line = text.lines().find(|line| line.contains("after that")).unwrap();
    assert!(line.starts_with("20"), "{line}");
    // The command of the test ends with the server's parent.
    server.process.signal("KILL");
    server.process.wait();
}

#[test]
fn lines_for_the_journal_on_standard_error_have_their_priority() {
    let server = Setup::answering().through(&AS_JOURNAL).start();
    server.rewrite(&["upstream.tries = 99", "dns64.max-records = 0"]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(1));
    server.rewrite(&[]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    let line = server.process.wait_for("configuration reloaded").unwrap();
    // The journal has the time of each line.
    assert!(line.starts_with("<6> INFO configuration reloaded"), "{line}");
    let log = server.process.log();
    // Also the lines after the first one of a message.
    let errors: Vec<&str> = log.lines().skip_while(|line| !line.contains("reload failed")).collect();
    let last = errors.iter().position(|line| line.contains("configuration reloaded")).unwrap();
    assert!(last > 2 && errors[..last].iter().all(|line| line.starts_with("<3>")), "{log}");
    server.process.stop();
    // The error that ends the program.
    let command = AS_JOURNAL.map(str::to_owned);
    let failed = Process::start(&command, &["serve", "--config", "/nonexistent/x.toml"].map(str::to_owned));
    assert_eq!(failed.wait().0.code(), Some(1));
    assert!(failed.log().starts_with("<3>sixfold: cannot read /nonexistent/x.toml"), "{}", failed.log());
}

/// The messages of Sixfold in the journal of this namespace.
fn journal() -> Vec<Value> {
    let arguments = ["-D", "/run/log/journal", "-o", "json", "--all", "-t", "sixfold", "--no-pager", "-q"];
    let output = Command::new("journalctl").args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn journald_gets_messages_with_priority_and_fields() {
    const JOURNALD: &str = "/lib/systemd/systemd-journald";
    if !kit::namespace::is_inside() {
        kit::namespace::run_inside(
            "log_targets::journald_gets_messages_with_priority_and_fields",
            &OWN_SYSTEM,
        );
        return;
    }
    let socket = "/run/systemd/journal/socket";
    // Storage is in memory: there is /run/log/journal, and no other.
    std::fs::create_dir_all("/run/log/journal").unwrap();
    let Some(daemon) = start(JOURNALD, "systemd", &[], socket) else { return };
    let server = Setup::answering().line("log.to = \"journald\"").line("log.level = \"debug\"").start();
    command(&server, &"long ".repeat(400));
    server.rewrite(&["upstream.tries = 99"]);
    server.ctl(&["reload"]);
    wait_until("the journal has the error", || journal().iter().any(|message| message["PRIORITY"] == "3"));
    let messages = journal();
    let error = messages.iter().find(|message| message["PRIORITY"] == "3").unwrap();
    let text = error["MESSAGE"].as_str().unwrap();
    assert!(text.starts_with("reload failed") && text.lines().count() > 3, "{error}");
    assert_eq!(error["_PID"], server.process.pid().to_string());
    let debug = messages.iter().find(|message| message["PRIORITY"] == "7").unwrap();
    assert!(debug["MESSAGE"].as_str().unwrap().starts_with("control command \"long long"), "{debug}");
    let log = server.process.log();
    assert!(log.contains("sixfold: ready") && !log.contains("reload failed"), "{log}");
    // Another daemon takes the place of the first.
    drop(daemon);
    let _daemon = start(JOURNALD, "systemd", &[], socket).unwrap();
    server.rewrite(&[]);
    server.ctl(&["reload"]);
    wait_until("the journal has the next line", || {
        let is_it = |message: &Value| message["SIXFOLD_EVENT"] == "reloaded";
        journal().iter().any(|message| {
            is_it(message)
                && message["MESSAGE"].as_str().is_some_and(|text| text.starts_with("configuration reloaded"))
        })
    });
    assert_eq!(dropped(&server), 0.0);
}

/// Starts rsyslogd on the socket of this namespace; it writes the parts of each message into a file.
fn rsyslogd(directory: &Folder) -> Option<Killed> {
    let config = directory.file("rsyslog.conf");
    let output = directory.file("messages");
    let text = format!(
        "module(load=\"imuxsock\" SysSock.Name=\"/run/log.sock\" SysSock.Use=\"on\" SysSock.RateLimit.Interval=\"0\"\n\
         SysSock.UseSpecialParser=\"off\" SysSock.UseSysTimeStamp=\"off\" SysSock.ParseTrusted=\"off\")\n\
         template(name=\"parts\" type=\"string\" string=\"%protocol-version%|%syslogfacility-text%|%syslogseverity-text%|\
         %app-name%|%procid%|%timereported:::date-rfc3339%|%msg%\\n\")\n\
         action(type=\"omfile\" file=\"{}\" template=\"parts\")\n",
        output.display()
    );
    std::fs::write(&config, text).unwrap();
    let (config, pid) = (config.display().to_string(), directory.file("pid").display().to_string());
    start("rsyslogd", "rsyslog", &["-n", "-f", &config, "-i", &pid], "/run/log.sock")
}

#[test]
fn a_syslog_daemon_gets_messages_of_rfc_5424_and_may_hang_or_restart() {
    if !kit::namespace::is_inside() {
        let name = "log_targets::a_syslog_daemon_gets_messages_of_rfc_5424_and_may_hang_or_restart";
        kit::namespace::run_inside(name, &OWN_SYSTEM);
        return;
    }
    let directory = Folder::for_everybody();
    let Some(daemon) = rsyslogd(&directory) else { return };
    let messages = || std::fs::read_to_string(directory.file("messages")).unwrap_or_default();
    let wait_for = |words: &str| wait_until(words, || messages().contains(words));
    let server = Setup::answering().line("log.to = \"syslog\"").line("log.level = \"debug\"").start();
    command(&server, "x \u{1b}[31m \u{e9}");
    wait_for("control command");
    let (pid, text) = (server.process.pid(), messages());
    let line = text.lines().find(|line| line.contains("control command")).unwrap();
    let parts: Vec<&str> = line.split('|').collect();
    assert_eq!(parts[..5], ["1", "daemon", "debug", "sixfold", &pid.to_string()], "{line}");
    assert!(
        parts[5].starts_with("20") && parts[6].ends_with("control command \"x \\u{1b}[31m \u{e9}\""),
        "{line}"
    );
    assert!(!server.process.log().contains("control command"), "{}", server.process.log());

    // The daemon is stopped: the log fills up, and the server answers.
    let signal = |name: &str| {
        let kill = format!("kill -{name} {}", daemon.0.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    };
    signal("STOP");
    let mut number = 0;
    wait_until("the log is full", || {
        for _ in 0..200 {
            command(&server, &format!("n{number}"));
            number += 1;
        }
        dropped(&server) > 0.0
    });
    assert_eq!(Udp::to(server.v6()).ask(&name_of(1), Type::AAAA).addresses.len(), 1);
    signal("CONT");
    wait_for(" lines of the log were dropped: they came faster than it took them");
    // The daemon is started again: what was logged meanwhile is there.
    drop(daemon);
    command(&server, "between");
    let _daemon = rsyslogd(&directory).unwrap();
    wait_for("control command \"between\"");
}
