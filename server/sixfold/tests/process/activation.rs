//! Socket activation (sd_listen_fds(3)): the server takes sockets that a service manager has bound, in the place of addresses.

use crate::client::{Tcp, Udp, embedded, name_of};
use crate::daemon::{Folder, PREFIX, Process, copy_program, free_port, wait_until};
use crate::service::is_running;
use crate::upstream::{Behavior, Upstream};
use kit::namespace;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use wire::Type;

/// Makes standard input and output descriptors 3 and 4, as a service manager passes them, and runs the rest of the words.
const ACTIVATE: &str = "exec 3<&0 4<&1 0</dev/null 1>/dev/null; LISTEN_PID=$$ LISTEN_FDS=2 exec \"$@\"";

/// Starts the server with two sockets, through another command.
fn start(sockets: [OwnedFd; 2], command: &[&str], arguments: &[&str]) -> (std::process::Child, Folder) {
    let directory = Folder::for_everybody();
    let log = std::fs::File::create(directory.file("log")).unwrap();
    let [first, second] = sockets;
    let mut activated = Command::new("sh");
    activated.args(["-c", ACTIVATE, "sh"]).args(command).arg(env!("CARGO_BIN_EXE_sixfold")).args(arguments);
    let child = activated.stdin(Stdio::from(first)).stdout(Stdio::from(second)).stderr(log).spawn().unwrap();
    (child, directory)
}

/// Ends the server with the test.
struct Activated {
    child: std::process::Child,
    directory: Folder,
}

impl Activated {
    fn start(sockets: [OwnedFd; 2], command: &[&str], arguments: &[&str]) -> Activated {
        let (child, directory) = start(sockets, command, arguments);
        Activated { child, directory }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.file("log")).unwrap()
    }

    fn wait_until_ready(&mut self) {
        wait_until("it is ready", || {
            self.log().contains("sixfold: ready") || self.child.try_wait().unwrap().is_some()
        });
        assert!(self.log().contains("sixfold: ready"), "{}", self.log());
    }
}

impl Drop for Activated {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A configuration that listens on these addresses and forwards to an upstream.
fn configuration(directory: &Folder, listen: &str, upstream: SocketAddr, more: &str) -> String {
    let path = directory.file("sixfold.toml");
    let text = format!(
        "server.listen = {listen}\nserver.user = \"root\"\nserver.workers = 3\ndns64.prefixes = [\"{PREFIX}\"]\n\
         upstream.forwarders = [\"{upstream}\"]\nmetrics.listen = \"\"\ncontrol.socket = \"\"\n{more}\n"
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Bound sockets for UDP and TCP, blocking, as a service manager makes them.
fn bound(port: u16) -> (UdpSocket, TcpListener, SocketAddr) {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    (UdpSocket::bind(address).unwrap(), TcpListener::bind(address).unwrap(), address)
}

#[test]
fn sockets_of_the_service_manager_are_taken_with_what_waits_in_them() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let (udp, tcp, address) = bound(free_port());
    let files = Folder::for_everybody();
    let config = configuration(&files, &format!("[\"{address}\"]"), upstream.address, "");
    // A client that was there before the server.
    let early = Udp::to(address);
    early.send(&crate::client::query(1, &name_of(1), Type::AAAA));
    let mut server = Activated::start([udp.into(), tcp.into()], &[], &["serve", "--config", &config]);
    server.wait_until_ready();
    assert_eq!(early.receive().addresses, [embedded(PREFIX, 1)]);
    for number in 2..40 {
        assert_eq!(Udp::to(address).ask(&name_of(number), Type::AAAA).addresses, [embedded(PREFIX, number)]);
    }
    assert_eq!(Tcp::to(address).ask(&name_of(2), Type::AAAA).addresses, [embedded(PREFIX, 2)]);
    // Three workers share the one UDP socket.
    assert!(server.log().contains("1 passed socket on"), "{}", server.log());
}

#[test]
fn a_control_socket_of_the_service_manager_stays_and_its_metrics_socket_is_taken() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let files = Folder::for_everybody();
    let path = files.file("given.sock");
    let control = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let metrics = TcpListener::bind("127.0.0.1:0").unwrap();
    let scraped = metrics.local_addr().unwrap();
    let (listen, socket) = (free_port(), path.display());
    let config = configuration(&files, &format!("[\"127.0.0.1:{listen}\"]"), upstream.address, "");
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text.replace("metrics.listen = \"\"", &format!("metrics.listen = \"{scraped}\""));
    let text = text.replace("control.socket = \"\"", &format!("control.socket = \"{socket}\""));
    std::fs::write(&config, text).unwrap();
    let mut server = Activated::start([metrics.into(), control.into()], &[], &["serve", "--config", &config]);
    server.wait_until_ready();
    assert_eq!(crate::scrape::request(scraped, "GET", "/livez").status, 200);
    // It survives an upgrade too, and belongs to the service manager still.
    let output = crate::daemon::ctl(&path, &["upgrade"]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let process = told.strip_prefix("upgraded: process ").and_then(|rest| rest.split(',').next());
    let process: u32 = process.unwrap_or_else(|| panic!("{told}{}", server.log())).parse().unwrap();
    wait_until("the old process has ended", || server.child.try_wait().unwrap().is_some());
    assert_eq!(crate::scrape::request(scraped, "GET", "/livez").status, 200);
    crate::service::send("TERM", process);
    wait_until("the new process has ended", || !is_running(process));
    assert!(path.exists(), "the path belongs to the service manager");
}

#[test]
fn a_process_without_privileges_listens_on_port_53() {
    let name = "activation::a_process_without_privileges_listens_on_port_53";
    if namespace::is_played_in("ip link set lo up; exec \"$@\"", name) {
        return;
    }
    let upstream = Upstream::start(|_| Behavior::Answer);
    let (udp, tcp, address) = bound(53);
    let files = Folder::for_everybody();
    let config = configuration(&files, &format!("[\"{address}\"]"), upstream.address, "");
    // A copy that any user may run: the build may be in a private folder.
    let programs = Folder::new();
    copy_program(&programs.file("sixfold"));
    let run = format!("shift; exec {} \"$@\"", programs.file("sixfold").display());
    let privileges = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"];
    let command = [&privileges[..], &["sh", "-c", &run, "sh"]].concat();
    // Without the sockets the process may not listen there.
    let words: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
    let refused = Process::start(&words, &["serve", "--config", &config].map(str::to_owned));
    assert_eq!(refused.wait().0.code(), Some(1));
    assert!(refused.log().contains("permission denied"), "{}", refused.log());
    let mut server = Activated::start([udp.into(), tcp.into()], &command, &["serve", "--config", &config]);
    server.wait_until_ready();
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    assert!(status.contains("Uid:\t65534\t65534\t65534\t65534"), "{status}");
    assert_eq!(Udp::to(address).ask(&name_of(1), Type::AAAA).addresses, [embedded(PREFIX, 1)]);
    assert_eq!(Tcp::to(address).ask(&name_of(2), Type::AAAA).addresses, [embedded(PREFIX, 2)]);
}

#[test]
fn the_program_of_systemd_passes_sockets_that_are_used() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    for is_udp in [true, false] {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let files = Folder::for_everybody();
        let config = configuration(&files, &format!("[\"{address}\"]"), upstream.address, "");
        let log = std::fs::File::create(files.file("log")).unwrap();
        let mut command = Command::new("systemd-socket-activate");
        command.args(if is_udp { &["--datagram"][..] } else { &[] }).arg(format!("--listen={address}"));
        command.arg(env!("CARGO_BIN_EXE_sixfold")).args(["serve", "--config", &config]).stderr(log);
        let child = match command.stdin(Stdio::null()).spawn() {
            Ok(child) => child,
            Err(_) => return kit::missing("systemd-socket-activate", "apt-get install systemd"),
        };
        let mut server = Activated { child, directory: files };
        wait_until("systemd listens", || server.log().contains("Listening on"));
        // The first query starts the server, which answers it.
        let asked = name_of(u32::from(is_udp));
        let answer = match is_udp {
            true => Udp::to(address).ask(&asked, Type::AAAA),
            false => Tcp::to(address).ask(&asked, Type::AAAA),
        };
        assert_eq!(answer.addresses, [embedded(PREFIX, u32::from(is_udp))], "{}", server.log());
        server.wait_until_ready();
        // The other protocol was not given: the server has bound it.
        assert_eq!(Udp::to(address).ask(&name_of(5), Type::AAAA).addresses, [embedded(PREFIX, 5)]);
        assert_eq!(Tcp::to(address).ask(&name_of(6), Type::AAAA).addresses, [embedded(PREFIX, 6)]);
    }
}

#[test]
fn sockets_for_another_process_are_left_alone() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let files = Folder::for_everybody();
    let config = configuration(&files, &format!("[\"{address}\"]"), upstream.address, "");
    // The variables of a parent that did not remove them: descriptors 3 and 4 are none of this process.
    let command = ["env", "LISTEN_PID=1", "LISTEN_FDS=2"].map(str::to_owned);
    let process = Process::start(&command, &["serve", "--config", &config].map(str::to_owned));
    assert!(process.wait_for("sixfold: ready").is_some(), "{}", process.log());
    assert_eq!(Udp::to(address).ask(&name_of(1), Type::AAAA).addresses, [embedded(PREFIX, 1)]);
    process.stop();
    for (count, fault) in [("many", "invalid LISTEN_FDS"), ("99", "Bad file descriptor")] {
        let script = format!("LISTEN_PID=$$ LISTEN_FDS={count} exec \"$@\"");
        let command = ["sh", "-c", &script, "sh"].map(str::to_owned);
        let process = Process::start(&command, &["serve", "--config", &config].map(str::to_owned));
        assert_eq!(process.wait().0.code(), Some(1));
        let said = process.log();
        assert!(said.contains(&format!("LISTEN_FDS is \"{count}\"")) && said.contains(fault), "{said}");
    }
}
