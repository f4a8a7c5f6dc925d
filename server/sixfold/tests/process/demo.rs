//! `sixfold serve --demo`: the first command that a new user tries.

use crate::client::{Tcp, Udp};
use crate::daemon::{Folder, Process, ctl, free_port};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use wire::{Rcode, Type};

/// Starts the demonstration, without privileges if possible.
fn start(port: u16) -> Process {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let flags = format!("serve --demo --listen [::1]:{port} --listen 127.0.0.1:{port} --workers 2");
    let process = Process::start(&unprivileged(), &words(&flags));
    assert!(process.wait_for("sixfold: ready").is_some(), "{}", process.log());
    process
}

pub fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t0")
}

/// The command with which root drops its privileges; empty for other users, and without `setpriv`.
pub fn unprivileged() -> Vec<String> {
    let has_command = Command::new("setpriv").arg("--version").output().is_ok();
    if is_root() && has_command {
        let command =
            "setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all";
        command.split(' ').map(str::to_owned).collect()
    } else {
        Vec::new()
    }
}

#[test]
fn the_demonstration_answers_over_udp_and_tcp_and_over_ipv4_and_ipv6() {
    let port = free_port();
    let process = start(port);
    let expected = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0xc633, 0x6407);
    for host in ["127.0.0.1", "::1"] {
        let server = SocketAddr::new(host.parse().unwrap(), port);
        for answer in [
            Udp::to(server).ask("198-51-100-7.demo.test", Type::AAAA),
            Tcp::to(server).ask("198-51-100-7.demo.test", Type::AAAA),
        ] {
            assert_eq!((answer.rcode, answer.addresses), (Rcode::NOERROR, vec![expected]), "{host}");
        }
    }
    process.signal("TERM");
    let (status, stdout) = process.wait();
    assert_eq!((status.code(), stdout.as_str()), (Some(0), ""), "{}", process.log());
}

#[test]
fn the_command_to_try_is_told_and_works() {
    let port = free_port();
    let process = start(port);
    let ready = process.wait_for("sixfold: ready").unwrap();
    assert!(ready.starts_with("sixfold: ready"), "{ready}");
    let hint = process.wait_for("sixfold: try: dig").unwrap();
    assert_eq!(hint, format!("sixfold: try: dig -p {port} @::1 AAAA 198-51-100-7.demo.test"));
    let dig = Command::new("dig").args(hint.split(' ').skip(3)).args(["+short", "+time=30"]).output();
    match dig {
        Ok(output) => assert_eq!(String::from_utf8_lossy(&output.stdout), "64:ff9b::c633:6407\n"),
        Err(_) => kit::missing("dig", "apt-get install bind9-dnsutils"),
    }
    process.stop();
}

/// The path of the control socket in the hint of a demonstration.
fn control_of(process: &Process) -> PathBuf {
    let hint = process.wait_for(" ctl --socket ").unwrap();
    assert!(
        hint.starts_with("sixfold: try: ") && hint.ends_with(" explain 198-51-100-7.demo.test"),
        "{hint}"
    );
    let path = PathBuf::from(hint.split(' ').skip_while(|word| *word != "--socket").nth(1).unwrap());
    let directory = std::fs::metadata(path.parent().unwrap()).unwrap();
    assert_eq!(directory.permissions().mode() & 0o7777, 0o700);
    path
}

#[test]
fn it_starts_without_a_warning_and_its_control_socket_works_and_goes_with_it() {
    // A port that is taken is no reason for a warning. If this fails, somebody else has taken it.
    let _taken = TcpListener::bind("127.0.0.1:9464");
    let process = start(free_port());
    let socket = control_of(&process);
    let output = ctl(&socket, &["explain", "198-51-100-7.demo.test"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("AAAA 64:ff9b::c633:6407"), "{text}");
    // A reload finds no change of the socket.
    assert_eq!(ctl(&socket, &["reload"]).stdout, b"reloaded\n");
    process.stop();
    assert!(!socket.parent().unwrap().exists(), "the directory is left behind");
    let log = process.log();
    assert!(log.lines().take(3).all(|line| line.starts_with("sixfold: ")) && !log.contains("WARN"), "{log}");
}

#[test]
fn the_control_socket_of_the_demonstration_is_in_the_runtime_directory_of_the_user() {
    let directory = Folder::for_everybody();
    // Whoever runs the test stays what it is.
    std::fs::write(directory.file("sixfold.toml"), "server.user = \"root\"").unwrap();
    let runtime = directory.file("runtime");
    std::fs::create_dir(&runtime).unwrap();
    let command = ["env".to_owned(), format!("XDG_RUNTIME_DIR={}", runtime.display())];
    let config = directory.file("sixfold.toml").display().to_string();
    let listen = format!("127.0.0.1:{}", free_port());
    let arguments = ["serve", "--demo", "--config", &config, "--listen", &listen].map(str::to_owned);
    let process = Process::start(&command, &arguments);
    let socket = control_of(&process);
    assert_eq!(socket.parent().unwrap().parent().unwrap(), runtime);
    assert_eq!(ctl(&socket, &["health"]).status.code(), Some(0));
    process.stop();
    assert_eq!(std::fs::read_dir(&runtime).unwrap().count(), 0);
}

#[test]
fn it_ends_on_sigint_with_exit_status_0() {
    let process = start(free_port());
    process.signal("INT");
    let (status, _) = process.wait();
    assert_eq!(status.code(), Some(0), "{}", process.log());
}

#[test]
fn a_reload_of_the_demonstration_changes_nothing() {
    let port = free_port();
    let process = start(port);
    process.signal("HUP");
    assert!(process.wait_for("configuration reloaded").is_some(), "{}", process.log());
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    assert_eq!(Udp::to(server).ask("198-51-100-7.demo.test", Type::AAAA).addresses.len(), 1);
    process.stop();
}

#[test]
fn the_demonstration_needs_no_network() {
    // A network namespace with only a loopback interface, if the system allows one.
    if !kit::namespace::can_run(&["-rn", "ip", "link", "set", "lo", "up"]) {
        return;
    }
    let directory = Folder::for_everybody();
    // In the namespace the process is root, and there are no other users.
    std::fs::write(directory.file("sixfold.toml"), "server.user = \"root\"").unwrap();
    let script = "ip link set lo up && exec \"$@\"".to_owned();
    let command = ["unshare", "-rn", "sh", "-c", &script, "sh"].map(str::to_owned);
    let config = directory.file("sixfold.toml").display().to_string();
    let process = Process::start(&command, &["serve", "--demo", "--config", &config].map(str::to_owned));
    assert!(process.wait_for("sixfold: ready").is_some(), "{}", process.log());
    process.stop();
}
