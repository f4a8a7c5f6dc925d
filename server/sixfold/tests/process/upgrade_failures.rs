//! Upgrades that fail: the old process goes on as if nothing had happened, and says why. No process is left behind.

use crate::client::{Tcp, Udp, embedded, name_of, query};
use crate::daemon::{Folder, PREFIX, Process, Setup, ctl, wait_until};
use crate::service::{Service, is_running, send, text};
use crate::upstream::{Behavior, Upstream};
use std::time::Duration;
use wire::Type;

/// Checks that the service answers.
fn expect_service(service: &Service, number: u32) {
    let answer = Udp::to(service.server.v4()).ask(&name_of(number), Type::AAAA);
    assert_eq!(answer.addresses, [embedded(PREFIX, number)]);
}

#[test]
fn a_program_that_cannot_serve_changes_nothing() {
    let programs = Folder::new();
    let service = Service::start(Setup::answering());
    let ends = crate::service::script(&programs, "sixfold-ends", "exit 1", 0o755);
    let writable = crate::service::script(&programs, "sixfold-writable", "exit 0", 0o775);
    let silent = crate::service::script(&programs, "sixfold-silent", "exec sleep 1000", 0o755);
    // The kernel refuses to start it, as it does for a program in a place of NoExecPaths= or of `noexec`.
    let refused = crate::service::script(&programs, "sixfold-refused", "", 0o755);
    std::fs::write(&refused, "#!/etc/passwd\n").unwrap();
    let attempts: [(&[&str], &str); 7] = [
        (&["--binary", &refused], "ExecPaths="),
        (&["--binary", "/bin/false"], "begins with sixfold"),
        (&["--binary", &ends], "has ended before it was ready"),
        (&["--binary", "/no/such/file"], "No such file"),
        (&["--binary", "/etc/passwd"], "is no program"),
        (&["--binary", &writable], "chmod go-w"),
        (&["--binary", &silent, "--timeout", "300ms"], "was not ready within 0.3 s"),
    ];
    for (number, (arguments, reason)) in attempts.into_iter().enumerate() {
        service.fail_to_upgrade(arguments, reason);
        expect_service(&service, number as u32);
    }
    let log = service.server.process.log();
    let started = log.lines().filter_map(|line| line.split("upgrade: process ").nth(1)?.split(' ').next());
    for process in started.map(|process| process.parse().unwrap()) {
        assert!(!is_running(process), "process {process} is left");
    }
    assert_eq!(service.server.stat("upgrades_total{result=\"failure\"}"), 7.0);
    assert_eq!(service.server.stat("upgrade_last_success_timestamp_seconds"), 0.0);
    // The next one succeeds, and takes over all sockets as if there had been no attempt.
    service.upgrade();
    expect_service(&service, 9);
    assert_eq!(service.server.stat("upgrades_total{result=\"failure\"}"), 7.0);
    service.stop();
}

#[test]
fn a_configuration_with_errors_is_reported_to_the_operator() {
    let service = Service::start(Setup::answering());
    service.server.rewrite(&["server.workers = 0"]);
    service.fail_to_upgrade(&[], "server.workers");
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    service.server.rewrite(&[&format!("server.listen = [\"{}\", \"{address}\"]", service.server.v4())]);
    service.fail_to_upgrade(&[], "the port is in use");
    assert!(service.server.control.exists());
    expect_service(&service, 1);
    service.server.rewrite(&[]);
    service.upgrade();
    expect_service(&service, 2);
    service.stop();
}

#[test]
fn a_new_process_that_is_killed_before_it_takes_over_loses_nothing() {
    const QUERIES: u32 = 40;
    let upstream = Upstream::start(|_| Behavior::Answer);
    let programs = Folder::new();
    let (at_door, go) = (programs.file("pid"), programs.file("go"));
    let script = format!(
        "echo $$ >{0}.new && mv {0}.new {0}; while [ ! -e {1} ]; do sleep 0.02; done; exec {2} \"$@\"",
        at_door.display(),
        go.display(),
        env!("CARGO_BIN_EXE_sixfold")
    );
    let program = crate::service::script(&programs, "sixfold-stopped", &script, 0o755);
    let service = Service::start(Setup::new(upstream.address).line("server.workers = 2"));
    let (old, control) = (service.pid(), service.server.control.clone());
    let upgrade = std::thread::spawn(move || ctl(&control, &["upgrade", "--binary", &program]));
    wait_until("the program was started", || at_door.exists());
    let new: u32 = std::fs::read_to_string(&at_door).unwrap().trim().parse().unwrap();
    // A stopped process does not confirm, so the new one is held where its threads run and it is not the server yet.
    send("STOP", old);
    std::fs::write(&go, "").unwrap();
    let has_thread = |name: &str| {
        let threads = std::fs::read_dir(format!("/proc/{new}/task")).unwrap().flatten();
        let mut names =
            threads.map(|one| std::fs::read_to_string(one.path().join("comm")).unwrap_or_default());
        names.any(|thread| thread.trim() == name)
    };
    wait_until("its workers run", || has_thread("sixfold-1") && has_thread("streams-0"));
    let clients: Vec<_> = (0..QUERIES).map(|_| Udp::to(service.server.v4())).collect();
    clients
        .iter()
        .zip(0..)
        .for_each(|(client, id)| client.send(&query(id, &name_of(u32::from(id)), Type::AAAA)));
    let mut connection = Tcp::to(service.server.v6());
    connection.send(&query(99, &name_of(99), Type::AAAA));
    // Time in which workers that read would have read. A shorter or longer one makes no correct server fail.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(upstream.asked(&name_of(0), Type::AAAA), 0, "the new process reads already");
    send("KILL", new);
    // Its files are closed once its other threads are gone and the first one is a zombie. The old process must not wake up earlier.
    wait_until("the new process has ended", || {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{new}/task")) else { return true };
        let stat = std::fs::read_to_string(format!("/proc/{new}/stat")).unwrap_or_default();
        threads.count() <= 1 && (stat.is_empty() || stat.contains(") Z "))
    });
    send("CONT", old);
    let output = upgrade.join().unwrap();
    let told = text(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("has ended before it") && told.contains(&format!("process {old} goes on")),
        "{told}"
    );
    for (client, number) in clients.iter().zip(0..) {
        assert_eq!(client.receive().addresses, [embedded(PREFIX, number)]);
    }
    assert_eq!(connection.receive().addresses, [embedded(PREFIX, 99)]);
    // The old one reads and accepts as before.
    expect_service(&service, 50);
    assert_eq!(Tcp::to(service.server.v4()).ask(&name_of(51), Type::AAAA).addresses, [embedded(PREFIX, 51)]);
    assert_eq!(service.pid(), old);
    service.upgrade();
    expect_service(&service, 52);
    service.stop();
}

#[test]
fn a_second_upgrade_is_refused_and_a_stop_ends_the_first() {
    let programs = Folder::new();
    let silent = crate::service::script(&programs, "sixfold-silent", "exec sleep 1000", 0o755);
    let service = Service::start(Setup::answering());
    let control = service.server.control.clone();
    let first =
        std::thread::spawn(move || ctl(&control, &["upgrade", "--binary", &silent, "--timeout", "10m"]));
    let line = service.server.process.wait_for("upgrade: process ").unwrap();
    let words = line.split("upgrade: process ").nth(1).unwrap();
    let process = words.split(' ').next().unwrap().parse().unwrap();
    let second = service.server.ctl(&["upgrade"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second).contains("an upgrade is under way"), "{}", text(&second));
    assert!(is_running(process));
    expect_service(&service, 1);
    service.server.process.signal("TERM");
    let told = first.join().unwrap();
    assert_eq!(told.status.code(), Some(1));
    assert!(text(&told).contains("this process stops"), "{}", text(&told));
    let (status, _) = service.server.process.wait();
    assert_eq!(status.code(), Some(0), "{}", service.server.process.log());
    assert!(!is_running(process));
    assert!(service.processes().is_empty() && !service.server.control.exists());
}

#[test]
fn signals_for_the_whole_service_do_not_end_its_launcher() {
    let service = Service::start(Setup::answering());
    let server = service.pid();
    let [launcher] = service.processes().into_iter().filter(|&pid| pid != server).collect::<Vec<_>>()[..]
    else {
        panic!("one launcher")
    };
    // SIGUSR2, number 12, is the last signal for which it sets a handler; it may still be about to.
    wait_until("the launcher handles signals", || {
        let status = std::fs::read_to_string(format!("/proc/{launcher}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
        u64::from_str_radix(caught, 16).unwrap() & 1 << (12 - 1) != 0
    });
    for signal in ["INT", "TERM", "HUP", "USR1", "USR2"] {
        send(signal, launcher);
    }
    service.upgrade();
    wait_until("the first launcher has ended with its server", || !is_running(launcher));
    // Killed for lack of memory, for example: the server goes on, and says what an upgrade needs.
    let server = service.pid();
    service.processes().into_iter().filter(|&pid| pid != server).for_each(|pid| send("KILL", pid));
    let output = service.server.ctl(&["upgrade"]);
    assert!(text(&output).contains("restart the service"), "{}", text(&output));
    expect_service(&service, 1);
    assert_eq!(service.pid(), server);
}

#[test]
fn a_demonstration_has_no_upgrades() {
    let directory = crate::daemon::Folder::for_everybody();
    let (config, control) = (directory.file("sixfold.toml"), directory.file("control.sock"));
    let lines = format!(
        "server.user = \"root\"\nserver.listen = [\"127.0.0.1:{}\"]\nmetrics.listen = \"\"\ncontrol.socket = \"{}\"",
        crate::daemon::free_port(),
        control.display()
    );
    std::fs::write(&config, lines).unwrap();
    let arguments = ["serve", "--demo", "--config", &config.display().to_string()].map(str::to_owned);
    let process = Process::start(&[], &arguments);
    assert!(process.wait_for("sixfold: ready").is_some(), "{}", process.log());
    let output = ctl(&control, &["upgrade"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("a demonstration cannot be upgraded"), "{}", text(&output));
    process.stop();
}
