//! Upgrades: a new process takes the sockets of the old one, and no query is lost, over UDP or TCP.

use crate::client::{Tcp, Udp, embedded, name_of, query};
use crate::daemon::{Folder, PREFIX, Setup, copy_program, free_port, wait_until};
use crate::service::{Service, is_running, send, text};
use crate::upstream::{Behavior, Upstream};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use wire::{Rcode, Type};

/// Asks over UDP until it is stopped, one query after the other. A lost query fails the test. Returns the number of queries.
fn ask_over_udp(server: SocketAddr, number: &AtomicU32, stop: &AtomicBool) -> u32 {
    let mut asked = 0;
    let client = Udp::to(server);
    while !stop.load(Ordering::Relaxed) {
        let name = number.fetch_add(1, Ordering::Relaxed);
        assert_eq!(client.ask(&name_of(name), Type::AAAA).addresses, [embedded(PREFIX, name)]);
        asked += 1;
    }
    asked
}

/// Asks over TCP until it is stopped: eight queries at a time, and `rounds` times on one connection.
fn ask_over_tcp(server: SocketAddr, number: &AtomicU32, stop: &AtomicBool, rounds: u32) -> u32 {
    let mut asked = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut connection = Tcp::to(server);
        for _ in 0..rounds {
            let first = number.fetch_add(8, Ordering::Relaxed);
            (0..8).for_each(|id| connection.send(&query(id, &name_of(first + u32::from(id)), Type::AAAA)));
            for _ in 0..8 {
                let answer = connection.receive();
                assert_eq!(answer.addresses, [embedded(PREFIX, first + u32::from(answer.id))]);
                asked += 1;
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
    }
    asked
}

/// Stops the clients also when the test fails: otherwise it would wait for them.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn upgrades_under_load_lose_no_query_over_udp_or_tcp() {
    const UPGRADES: usize = 5;
    let service = Service::start(Setup::answering().line("server.workers = 2"));
    let (v4, v6) = (service.server.v4(), service.server.v6());
    let (number, stop) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (number, stop) = (&number, &stop);
        let load = [
            scope.spawn(move || ask_over_udp(v4, number, stop)),
            scope.spawn(move || ask_over_udp(v6, number, stop)),
            scope.spawn(move || ask_over_tcp(v4, number, stop, 1)),
            scope.spawn(move || ask_over_tcp(v6, number, stop, 200)),
        ];
        let at_end = StopAtEnd(stop);
        let mut seen = vec![service.pid()];
        for _ in 0..UPGRADES {
            let before = number.load(Ordering::Relaxed);
            let process = service.upgrade();
            assert!(!seen.contains(&process) && service.pid() == process);
            seen.push(process);
            wait_until("clients go on", || {
                number.load(Ordering::Relaxed) > before + 200 || load.iter().any(|one| one.is_finished())
            });
        }
        drop(at_end);
        for thread in load {
            assert!(thread.join().unwrap() > 10);
        }
        // The first process is a child of this test, so it can be waited for.
        wait_until("the first process has ended", || !service.server.process.is_running());
        wait_until("the others have ended", || service.processes().len() == 2);
    });
    assert_eq!(service.server.stat("upgrades_total{result=\"success\"}"), UPGRADES as f64);
    assert!(!service.server.process.log().contains("ERROR"), "{}", service.server.process.log());
    service.stop();
}

#[test]
fn the_old_process_answers_what_it_has_and_serves_its_connections_to_their_end() {
    let upstream = Upstream::start(|_| Behavior::Hold);
    let setup = Setup::new(upstream.address).line("upstream.timeout = \"30s\"").line("upstream.tries = 1");
    let service = Service::start(setup);
    let asked = |number| upstream.asked(&name_of(number), Type::AAAA) > 0;
    let udp = Udp::to(service.server.v6());
    udp.send(&query(1, &name_of(1), Type::AAAA));
    let mut tcp = Tcp::to(service.server.v4());
    tcp.send(&query(2, &name_of(2), Type::AAAA));
    wait_until("both are asked", || asked(1) && asked(2));
    service.upgrade();
    // The connection is still served by the old process, which still runs.
    tcp.send(&query(3, &name_of(3), Type::AAAA));
    let late = Udp::to(service.server.v4());
    let of_new_process = "queries_total{transport=\"udp\",family=\"ipv4\"}";
    wait_until("the new process reads", || {
        late.ask("localhost", Type::AAAA);
        service.server.stat(of_new_process) > 0.0
    });
    late.send(&query(4, &name_of(4), Type::AAAA));
    wait_until("these are asked too", || asked(3) && asked(4));
    assert!(service.server.process.is_running(), "{}", service.server.process.log());
    upstream.release();
    for (number, answer) in [(1, udp.receive()), (4, late.receive())] {
        assert_eq!((answer.rcode, answer.addresses), (Rcode::NOERROR, vec![embedded(PREFIX, number)]));
    }
    let mut ids = [tcp.receive().id, tcp.receive().id];
    ids.sort_unstable();
    assert_eq!(ids, [2, 3]);
    // A connection that falls silent is closed soon, and the old process ends.
    tcp.wait_for_close();
    wait_until("the old process has ended", || !service.server.process.is_running());
    let log = service.server.process.log();
    assert!(log.contains("0 connections cut, 0 queries left"));
    // The lines of both processes are in one log: each says which process is meant.
    let (old, new) = (service.server.process.pid(), service.pid());
    for words in [
        format!("upgrade: process {new} was started by the launcher, process "),
        format!("process {new} took over from process {old}; its launcher is process "),
        format!("process {old} has ended after its upgrade, process {new} serves: "),
    ] {
        assert!(log.contains(&words), "{words} is not in\n{log}");
    }
    assert!(service.server.control.exists());
    service.stop();
}

#[test]
fn changed_addresses_and_workers_take_effect_and_the_state_survives() {
    let service = Service::start(Setup::answering().line("server.workers = 2").metrics());
    let (v4, metrics) = (service.server.v4(), service.server.metrics);
    assert_eq!(service.server.ctl(&["drain"]).status.code(), Some(0));
    let added = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let lines = [format!("server.listen = [\"{v4}\", \"{added}\"]"), "server.workers = 3".to_owned()];
    service.server.rewrite(&lines.each_ref().map(String::as_str));
    service.upgrade();
    assert_eq!(service.server.stat("workers"), 3.0);
    assert!(service.server.process.log().contains("2 passed sockets on"), "{}", service.server.process.log());
    for (number, address) in [(1, v4), (2, added), (3, v4), (4, added)] {
        assert_eq!(Udp::to(address).ask(&name_of(number), Type::AAAA).addresses, [embedded(PREFIX, number)]);
        assert_eq!(Tcp::to(address).ask(&name_of(number), Type::AAAA).addresses, [embedded(PREFIX, number)]);
    }
    wait_until("the old process has ended", || !service.server.process.is_running());
    assert!(TcpStream::connect(service.server.v6()).is_err(), "an address that was removed is still open");
    assert!(TcpStream::connect(metrics).is_ok());
    // The operator has taken the service out of service, not a process.
    assert!(text(&service.server.ctl(&["health"])).contains("drained"));
    assert_eq!(service.server.ctl(&["undrain"]).status.code(), Some(0));
    // Fewer workers than sockets: all sockets are read.
    service.server.rewrite(&[&lines[0], "server.workers = 1"]);
    service.upgrade();
    assert_eq!(service.server.stat("workers"), 3.0);
    for number in 10..30 {
        assert_eq!(Udp::to(added).ask(&name_of(number), Type::AAAA).addresses, [embedded(PREFIX, number)]);
    }
    let status = text(&service.server.ctl(&["status"]));
    assert!(status.contains("upgrades    2 (0 failed), the last"), "{status}");
    service.stop();
}

#[test]
fn cookies_of_clients_stay_valid() {
    let service = Service::start(Setup::answering());
    let ask = |cookie: &[u8]| {
        let mut message = query(5, &name_of(1), Type::AAAA);
        message[11] = 1;
        message.extend([
            0,
            0,
            41,
            4,
            208,
            0,
            0,
            0,
            0,
            0,
            cookie.len() as u8 + 4,
            0,
            10,
            0,
            cookie.len() as u8,
        ]);
        message.extend(cookie);
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(crate::daemon::TIMEOUT)).unwrap();
        socket.send_to(&message, service.server.v4()).unwrap();
        let mut buffer = [0; 1500];
        let length = socket.recv(&mut buffer).unwrap();
        // The OPT record is the last one, and the cookie its last option: 24 octets (RFC 9018).
        buffer[length - 24..length].to_vec()
    };
    let cookie = ask(b"clientID");
    assert_eq!(&cookie[..8], b"clientID");
    service.upgrade();
    wait_until("the old process has ended", || !service.server.process.is_running());
    assert_eq!(ask(&cookie), cookie);
    assert_eq!(service.server.stat("cookies_total{result=\"valid\"}"), 1.0);
    service.stop();
}

#[test]
fn the_service_manager_follows_an_upgrade_by_a_signal() {
    let programs = Folder::new();
    let path = programs.file("notify.sock");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(crate::daemon::TIMEOUT)).unwrap();
    let notify = format!("NOTIFY_SOCKET={}", path.display());
    let setup = Setup::answering();
    let service =
        Service::start(setup.through(&["env", &notify, "WATCHDOG_PID=1", "WATCHDOG_USEC=9000000000"]));
    let next = || {
        let mut buffer = [0; 1024];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    assert!(next().trim().ends_with("\nREADY=1"));
    service.server.process.signal("USR2");
    let reloading = next();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    let main = next();
    wait_until("the old process has ended", || !service.server.process.is_running());
    assert_eq!(main.trim(), format!("MAINPID={}", service.pid()));
    assert!(next().trim().ends_with("\nREADY=1"));
    // The watchdog applies to the new process; the variable named the old one.
    let environment = std::fs::read(format!("/proc/{}/environ", service.pid())).unwrap();
    let environment = String::from_utf8_lossy(&environment);
    assert!(
        environment.contains("WATCHDOG_USEC=") && !environment.contains("WATCHDOG_PID="),
        "{environment}"
    );
    // After a failure the old process is ready again.
    let programs = Folder::new();
    let ends = crate::service::script(&programs, "sixfold-ends", "exit 1", 0o755);
    service.fail_to_upgrade(&["--binary", &ends], "has ended before it was ready");
    assert!(next().starts_with("RELOADING=1"));
    assert!(next().trim().ends_with("READY=1"));
    service.stop();
}

#[test]
fn a_program_that_was_replaced_on_the_disk_is_started() {
    let programs = Folder::new();
    let (program, next) = (programs.file("sixfold"), programs.file("sixfold.new"));
    copy_program(&program);
    let run = format!("shift; exec {} \"$@\"", program.display());
    let service = Service::start(Setup::answering().through(&["sh", "-c", &run, "sh"]));
    copy_program(&next);
    std::fs::rename(&next, &program).unwrap();
    let process = service.upgrade();
    let inode = |path: &str| std::fs::metadata(path).unwrap().ino();
    assert_eq!(inode(&format!("/proc/{process}/exe")), inode(&program.display().to_string()));
    service.stop();
}

#[test]
fn a_signal_ends_the_patience_of_the_old_process_with_its_connections() {
    let upstream = Upstream::start(|_| Behavior::Hold);
    let setup = Setup::new(upstream.address).line("upstream.timeout = \"30s\"").line("upstream.tries = 1");
    let service = Service::start(setup);
    let mut tcp = Tcp::to(service.server.v4());
    tcp.send(&query(2, &name_of(2), Type::AAAA));
    wait_until("it is asked", || upstream.asked(&name_of(2), Type::AAAA) > 0);
    let process = service.upgrade();
    send("TERM", service.server.process.pid());
    assert!(service.server.process.wait_for("draining").is_some());
    std::thread::sleep(Duration::from_millis(50));
    upstream.release();
    assert_eq!(tcp.receive().addresses, [embedded(PREFIX, 2)]);
    tcp.wait_for_close();
    wait_until("the old process has ended", || !service.server.process.is_running());
    assert!(is_running(process) && service.pid() == process);
    service.stop();
}
