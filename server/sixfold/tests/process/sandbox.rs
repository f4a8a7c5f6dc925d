//! The sandbox of a running server, from outside: the rights of all its threads, and reloads that need files.

use crate::client::{Udp, embedded, name_of};
use crate::daemon::{Daemon, Folder, PREFIX, Process, Setup, free_port};
use crate::demo::{is_root, unprivileged};
use crate::upstream::{Behavior, Upstream};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use wire::Type;

/// The line of `ctl status` about the sandbox.
fn status(server: &Daemon) -> String {
    let status = String::from_utf8(server.ctl(&["status"]).stdout).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("sandbox "));
    line.unwrap_or_else(|| panic!("no sandbox in\n{status}")).trim().to_owned()
}

/// Some lines of `/proc/PID/task/TID/status`, of every thread of a process.
fn threads(process: &Process, names: &[&str]) -> Vec<Vec<String>> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", process.pid())).unwrap();
    let of_task = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(path.join("status")).unwrap();
        let line = |name: &&str| {
            let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            found.unwrap_or_else(|| panic!("no {name} in\n{text}")).trim().to_owned()
        };
        names.iter().map(line).collect()
    };
    tasks.map(|task| of_task(task.unwrap().path())).collect()
}

/// Sets of capabilities in `/proc/PID/status`.
const CAPABILITIES: [&str; 5] = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];

/// No capability.
const NONE: &str = "0000000000000000";

#[test]
fn no_thread_has_a_capability_and_every_thread_is_in_the_sandbox() {
    if !is_root() {
        return kit::skip("only root has capabilities to give up");
    }
    for user in ["nobody", "root"] {
        let server = Setup::answering()
            .line(&format!("server.user = \"{user}\""))
            .line("server.workers = 2")
            .metrics()
            .start();
        assert_eq!(Udp::to(server.v6()).ask(&name_of(1), Type::AAAA).addresses, [embedded(PREFIX, 1)]);
        for capabilities in threads(&server.process, &CAPABILITIES) {
            assert_eq!(capabilities, [NONE; 5], "{user}");
        }
        let found = threads(&server.process, &["NoNewPrivs", "Seccomp"]);
        assert!(found.len() >= 4, "{found:?}");
        let line = status(&server);
        let seccomp = if line.ends_with(", seccomp") { "2" } else { "0" };
        assert!(found.iter().all(|thread| *thread == ["1", seccomp]), "{user}: {found:?}, {line}");
        assert!(line.starts_with(&format!("user {user}, no capabilities, ")), "{line}");
    }
}

#[test]
fn a_server_with_the_one_capability_binds_a_privileged_port_and_gives_it_up() {
    if !is_root() {
        return kit::skip("only root can start a process with this capability");
    }
    let command = unprivileged();
    if command.is_empty() {
        return kit::missing("setpriv", "apt-get install util-linux");
    }
    let command: Vec<String> = command
        .into_iter()
        .map(|word| match &word[..] {
            "--inh-caps=-all" => "--inh-caps=+net_bind_service".to_owned(),
            "--bounding-set=-all" => "--ambient-caps=+net_bind_service".to_owned(),
            _ => word,
        })
        .collect();
    let upstream = Upstream::start(|_| Behavior::Answer);
    let directory = Folder::for_everybody();
    let control = directory.file("control.sock");
    // An address of this test alone, as the port cannot be a free one of the system's choice.
    let pid = std::process::id().to_be_bytes();
    let server = SocketAddr::from(([127, 53, pid[2], pid[3]], 53));
    let config = directory.file("sixfold.toml");
    let text = format!(
        "server.listen = [\"{server}\"]\nupstream.forwarders = [\"{}\"]\nmetrics.listen = \"\"\n\
         control.socket = \"{}\"\ndns64.prefixes = [\"{PREFIX}\"]\n",
        upstream.address,
        control.display()
    );
    std::fs::write(&config, text).unwrap();
    let process =
        Process::start(&command, &["serve", "--config", &config.display().to_string()].map(str::to_owned));
    assert!(process.wait_for("sixfold: ready").is_some(), "{}", process.log());
    assert_eq!(Udp::to(server).ask(&name_of(1), Type::AAAA).addresses, [embedded(PREFIX, 1)]);
    // Only a process with CAP_SETPCAP may change its bounding set.
    let sets = ["CapInh", "CapPrm", "CapEff", "CapAmb"];
    assert!(threads(&process, &sets).iter().all(|thread| *thread == [NONE; 4]), "{}", process.log());
    assert!(threads(&process, &["NoNewPrivs"]).iter().all(|thread| *thread == ["1"]));
    process.stop();
    assert!(!control.exists(), "the control socket is left behind");
}

#[test]
fn a_reload_reads_files_beside_the_known_ones_and_names_the_sandbox_for_others() {
    let server = Setup::answering().start();
    if !status(&server).contains("Landlock ABI") {
        return kit::skip("this kernel has no Landlock");
    }
    let text = "192.0.2.1 nas.example\n";
    let beside = server.config.with_file_name("hosts");
    std::fs::write(&beside, text).unwrap();
    server.rewrite(&[&format!("local.hosts-file = \"{}\"", beside.display())]);
    let output = server.ctl(&["reload"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));

    let elsewhere = Folder::for_everybody();
    let file = elsewhere.file("hosts");
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    server.rewrite(&[&format!("local.hosts-file = \"{}\"", file.display())]);
    let output = server.ctl(&["reload"]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    for words in
        [&*file.display().to_string(), "the sandbox of the running server does not reach it", "restart"]
    {
        assert!(told.contains(words), "{words} not in\n{told}");
    }
    assert_eq!(Udp::to(server.v6()).ask(&name_of(1), Type::AAAA).addresses, [embedded(PREFIX, 1)]);
    server.process.stop();
    assert!(!server.control.exists(), "the control socket is left behind");
}

#[test]
fn without_the_sandbox_a_reload_reads_every_file_and_the_status_says_so() {
    let server = Setup::answering().line("server.sandbox = \"off\"").start();
    assert!(status(&server).ends_with(", off"), "{}", status(&server));
    let found = threads(&server.process, &["Seccomp", "NoNewPrivs"]);
    let own = |name: &str| {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
    };
    // The server has the restrictions of this test, which may run in a container.
    let expected = [own("Seccomp:"), own("NoNewPrivs:")];
    assert!(found.iter().all(|thread| *thread == expected), "{found:?}");
    let elsewhere = Folder::for_everybody();
    let file = elsewhere.file("hosts");
    std::fs::write(&file, "192.0.2.1 nas.example\n").unwrap();
    server.rewrite(&["server.sandbox = \"off\"", &format!("local.hosts-file = \"{}\"", file.display())]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
}

#[test]
fn the_demonstration_removes_its_directory_in_the_sandbox() {
    let port = free_port();
    let arguments = ["serve", "--demo", "--listen", &format!("127.0.0.1:{port}")].map(str::to_owned);
    let runtime = Folder::for_everybody();
    let variable = format!("XDG_RUNTIME_DIR={}", runtime.file("").display());
    let process = Process::start(&["env".into(), variable], &arguments);
    assert!(process.wait_for("sixfold: ready").is_some(), "{}", process.log());
    let restricted = threads(&process, &["NoNewPrivs"]);
    assert!(restricted.len() >= 4 && restricted.iter().all(|thread| *thread == ["1"]), "{restricted:?}");
    process.stop();
    let left: Vec<_> = std::fs::read_dir(runtime.file("")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_systemd_unit_is_as_strict_as_promised() {
    /// Exposure by `systemd-analyze security`: 0 is the least, 10 the most.
    const MOST: f64 = 1.5;
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd/sixfold.service");
    let analyze = |arguments: &[&str]| Command::new("systemd-analyze").args(arguments).output();
    let Ok(output) = analyze(&["security", "--offline=true", unit]) else {
        return kit::missing("systemd-analyze", "apt-get install systemd");
    };
    let said = String::from_utf8(output.stdout).unwrap();
    let exposure = said.lines().find_map(|line| line.split_once("exposure level for sixfold.service:"));
    let exposure = exposure.unwrap_or_else(|| panic!("no exposure level in\n{said}")).1;
    let exposure: f64 = exposure.split_whitespace().next().unwrap().parse().unwrap();
    assert!(exposure <= MOST, "{said}");
    // Unknown settings and system calls are warnings, which name the line. The program may be missing on this machine.
    let output = analyze(&["verify", "--man=no", unit]).unwrap();
    let warnings = String::from_utf8(output.stderr).unwrap();
    let of_unit: Vec<&str> = warnings
        .lines()
        .filter(|line| line.contains("sixfold.service:") && !line.contains("is not executable"))
        .collect();
    assert!(of_unit.is_empty(), "{of_unit:?}");
}

#[test]
fn the_socket_unit_is_valid_and_as_documented() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd/sixfold.socket");
    let text = std::fs::read_to_string(unit).unwrap();
    let documented = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/run.md");
    let documented = std::fs::read_to_string(documented).unwrap();
    let (_, example) = documented.split_once("```ini\n[Socket]\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    for line in example.lines() {
        assert!(text.lines().any(|one| one == line), "{line} is not in the unit");
    }
    let Ok(output) = Command::new("systemd-analyze").args(["verify", "--man=no", unit]).output() else {
        return kit::missing("systemd-analyze", "apt-get install systemd");
    };
    let warnings = String::from_utf8(output.stderr).unwrap();
    assert!(!warnings.contains("sixfold.socket"), "{warnings}");
}
