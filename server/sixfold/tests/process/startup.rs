//! Starts that fail: the message has the error, the place and the remedy, and no process stays.

use crate::client::{Udp, embedded, name_of};
use crate::daemon::{Folder, PREFIX, Process, Setup, free_port, wait_until};
use crate::demo::{is_root, unprivileged};
use crate::encrypted_service::{Listeners, Pair};
use crate::upstream::{Behavior, Upstream};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::MetadataExt;
use wire::Type;

/// Starts a server that must fail, with some lines of configuration; returns its log.
fn start_fails(directory: &Folder, command: &[String], lines: &[String]) -> String {
    let config = directory.file("sixfold.toml");
    let mut text = "upstream.forwarders = [\"192.0.2.53\"]\n".to_owned();
    for (key, line) in
        [("server.user", "server.user = \"root\""), ("metrics.listen", "metrics.listen = \"\"")]
    {
        if !lines.iter().any(|line| line.starts_with(key)) {
            text += &format!("{line}\n");
        }
    }
    if !lines.iter().any(|line| line.starts_with("control.socket")) {
        text += &format!("control.socket = \"{}\"\n", directory.file("control.sock").display());
    }
    text += &lines.join("\n");
    std::fs::write(&config, text).unwrap();
    let arguments = ["serve", "--config", &config.display().to_string()].map(str::to_owned);
    let process = Process::start(command, &arguments);
    let (status, stdout) = process.wait();
    assert_eq!((status.code(), stdout.as_str()), (Some(1), ""), "{}", process.log());
    let log = process.log();
    assert!(!log.contains("sixfold: ready"), "{log}");
    assert!(!directory.file("control.sock").exists(), "the control socket is left behind");
    log
}

#[test]
fn the_status_has_the_absolute_path_of_the_file_and_flags_replace_its_list_of_networks() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let directory = Folder::for_everybody();
    let port = free_port();
    let control = directory.file("control.sock");
    let text = format!(
        "server.user = \"root\"\nserver.allow = [\"192.0.2.1\"]\nupstream.forwarders = [\"{}\"]\nmetrics.listen = \"\"\n\
         control.socket = \"{}\"\ndns64.prefixes = [\"{PREFIX}\"]\n",
        upstream.address,
        control.display()
    );
    let config = directory.file("sixfold.toml");
    std::fs::write(&config, text).unwrap();
    let folder = config.parent().unwrap().display().to_string();
    let listen = format!("127.0.0.1:{port}");
    let arguments =
        ["serve", "--config", "sixfold.toml", "--listen", &listen, "--allow", "127.0.0.2", "--allow", "::1"];
    let process = Process::start(&["env", "-C", &folder].map(str::to_owned), &arguments.map(str::to_owned));
    assert!(process.wait_for("sixfold: ready").is_some(), "{}", process.log());
    let status = String::from_utf8(crate::daemon::ctl(&control, &["status"]).stdout).unwrap();
    assert!(status.contains(&format!("{}\n", config.display())), "{status}");
    let server: SocketAddr = listen.parse().unwrap();
    let ask = |client: [u8; 4]| Udp::from(client.into(), server).ask(&name_of(1), Type::AAAA).addresses;
    assert_eq!(ask([127, 0, 0, 2]), [embedded(PREFIX, 1)]);
    assert!(ask([127, 0, 0, 1]).is_empty());
    process.stop();
}

/// The only line that is an error.
fn only_error(log: &str) -> &str {
    let mut errors = log.lines().filter(|line| line.starts_with("sixfold: "));
    let first = errors.next().unwrap_or_else(|| panic!("no error in\n{log}"));
    assert_eq!(errors.next(), None);
    first
}

#[test]
fn a_port_in_use_is_named_with_the_remedy() {
    let udp = UdpSocket::bind(("127.0.0.1", free_port())).unwrap();
    let [tcp, metrics] = [(); 2].map(|()| TcpListener::bind(("127.0.0.1", free_port())).unwrap());
    let [for_udp, for_tcp, for_metrics] =
        [udp.local_addr(), tcp.local_addr(), metrics.local_addr()].map(Result::unwrap);
    let listen = |address: SocketAddr| format!("server.listen = [\"{address}\"]");
    let elsewhere = listen(SocketAddr::from(([127, 0, 0, 1], free_port())));
    for (lines, words) in [
        (
            vec![listen(for_udp)],
            vec![format!("sixfold: cannot listen on {for_udp} (UDP): "), "in use".into(), "ss -lunp".into()],
        ),
        (vec![listen(for_tcp)], vec!["TCP".into(), for_tcp.to_string(), "ss -ltnp".into()]),
        (
            vec![elsewhere, format!("metrics.listen = \"{for_metrics}\"")],
            vec![
                format!("sixfold: cannot listen on {for_metrics} for metrics: "),
                "change `metrics.listen`".into(),
            ],
        ),
    ] {
        let log = start_fails(&Folder::for_everybody(), &[], &lines);
        let error = only_error(&log);
        assert!(words.iter().all(|words| error.contains(words)), "{words:?}: {error}");
    }
    // The UDP port of the second start is free again.
    UdpSocket::bind(for_tcp).unwrap();
}

#[test]
fn the_default_metrics_port_in_use_is_only_a_warning() {
    let default = "127.0.0.1:9464";
    let mut taken = None;
    // Another test or program may use it for a while.
    wait_until("the port can be taken", || {
        taken = TcpListener::bind(default).ok();
        taken.is_some()
    });
    let upstream = Upstream::start(|_| Behavior::Answer);
    let directory = Folder::for_everybody();
    let config = directory.file("sixfold.toml");
    let text = format!(
        "server.listen = [\"127.0.0.1:{}\"]\nupstream.forwarders = [\"{}\"]\nserver.user = \"root\"",
        free_port(),
        upstream.address
    );
    std::fs::write(&config, text).unwrap();
    let process =
        Process::start(&[], &["serve", "--config", &config.display().to_string()].map(str::to_owned));
    assert!(process.wait_for("sixfold: ready").is_some(), "{}", process.log());
    assert!(process.log().contains(&format!("no metrics: cannot listen on {default}")), "{}", process.log());
    process.stop();
}

#[test]
fn a_control_socket_in_a_directory_that_does_not_exist_is_named() {
    let path = "/nonexistent/sixfold/control.sock";
    let lines =
        [format!("server.listen = [\"127.0.0.1:{}\"]", free_port()), format!("control.socket = \"{path}\"")];
    let log = start_fails(&Folder::for_everybody(), &[], &lines);
    let error = only_error(&log);
    assert!(error.starts_with(&format!("sixfold: cannot listen on {path}: ")), "{error}");
    assert!(error.contains("change `control.socket`"), "{error}");
}

#[test]
fn an_address_that_no_interface_has_is_named_with_the_remedies() {
    let missing = "192.0.2.77:5300";
    let files = Listeners::new(&Pair::new());
    for (key, start) in [
        ("server.listen", format!("cannot listen on {missing} (UDP): no interface has")),
        ("metrics.listen", format!("cannot listen on {missing} for metrics: ")),
        ("tls.listen-dot", format!("cannot listen on TCP {missing}: no interface has")),
        ("tls.listen-doh", format!("cannot listen on TCP {missing}: no interface has")),
        ("tls.listen-doq", format!("cannot listen on UDP {missing} for DNS over QUIC: no interface has")),
    ] {
        let value =
            if key == "metrics.listen" { format!("\"{missing}\"") } else { format!("[\"{missing}\"]") };
        let mut lines = vec![format!("{key} = {value}")];
        if key != "server.listen" {
            lines.push(format!("server.listen = [\"127.0.0.1:{}\"]", free_port()));
        }
        if key.starts_with("tls.") {
            lines.push(format!("tls.certificate = \"{}\"", files.certificate().display()));
            lines.push(format!("tls.key = \"{}\"", files.key().display()));
        }
        let log = start_fails(&Folder::for_everybody(), &[], &lines);
        let error = only_error(&log);
        assert!(error.starts_with(&format!("sixfold: {start}")), "{error}");
        assert_eq!(error.contains("listen on 0.0.0.0:5300"), key == "server.listen", "{error}");
        let remedies =
            "set `server.freebind`, or let the service manager start the server again until it is there";
        assert!(error.contains(remedies), "{error}");
    }
}

#[test]
fn a_privileged_port_without_privilege_is_named_with_the_remedy() {
    const PORT: u16 = 77;
    let first = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap_or_default();
    if first.trim().parse::<u16>().is_ok_and(|first| first <= PORT) {
        return kit::skip(&format!("the kernel lets everybody use port {PORT}"));
    }
    let command = unprivileged();
    if command.is_empty() && is_root() {
        return kit::missing("setpriv", "apt-get install util-linux");
    }
    let address = SocketAddr::from(([127, 0, 0, 1], PORT));
    let log = start_fails(&Folder::for_everybody(), &command, &[format!("server.listen = [\"{address}\"]")]);
    let error = only_error(&log);
    assert!(
        error.starts_with(&format!("sixfold: cannot listen on {address} (UDP): permission denied")),
        "{error}"
    );
    assert!(error.contains("CAP_NET_BIND_SERVICE"), "{error}");
}

#[test]
fn a_user_that_does_not_exist_is_named_with_the_remedy() {
    if !is_root() {
        return kit::skip("only root takes another identity");
    }
    let lines = [
        format!("server.listen = [\"127.0.0.1:{}\"]", free_port()),
        "server.user = \"no-such-user-here\"".to_owned(),
    ];
    let log = start_fails(&Folder::for_everybody(), &[], &lines);
    assert!(log.starts_with("error: no such user: no-such-user-here\n --> "), "{log}");
    assert!(log.contains("useradd") && log.contains("server.user"), "{log}");
}

#[test]
fn root_becomes_the_user_for_all_threads_and_works_on() {
    if !is_root() {
        return kit::skip("only root takes another identity");
    }
    let server =
        Setup::answering().line("server.user = \"nobody\"").line("server.workers = 2").metrics().start();
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.process.pid())).unwrap();
    let mut threads = 0;
    for task in tasks {
        let text = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let line =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        assert!(!line("Uid:").split_whitespace().any(|id| id == "0"), "{text}");
        assert!(!line("Gid:").split_whitespace().any(|id| id == "0"), "{text}");
        assert_eq!((line("Groups:").as_str(), line("CapEff:").as_str()), ("", "0000000000000000"));
        threads += 1;
    }
    assert!(threads >= 4, "{threads}");
    // The socket belongs to that user; otherwise only root could use it.
    let socket = std::fs::metadata(&server.control).unwrap();
    assert_eq!((socket.uid() == 0, socket.gid() == 0, socket.mode() & 0o777), (false, false, 0o660));
    assert_eq!(Udp::to(server.v6()).ask(&name_of(1), Type::AAAA).addresses, [embedded(PREFIX, 1)]);
    assert_eq!(server.ctl(&["health"]).status.code(), Some(0));
    server.process.stop();
    assert!(!server.control.exists());
}

#[test]
fn all_errors_of_a_configuration_are_told_and_nothing_starts() {
    let port = free_port();
    let lines = [
        format!("server.listen = [\"127.0.0.1:{port}\"]"),
        "dns64.prefixes = [\"64:ff9b::/52\"]".to_owned(),
        "upstream.timeout = \"5\"".to_owned(),
        "dns46.lookup = 1".to_owned(),
    ];
    let log = start_fails(&Folder::for_everybody(), &[], &lines);
    for words in ["`64:ff9b::/52`", "`5` is not a duration", "unknown table `dns46`", "3 errors"] {
        assert!(log.contains(words), "{words} not in\n{log}");
    }
    UdpSocket::bind(("127.0.0.1", port)).unwrap();
}

#[test]
fn wrong_usage_has_exit_status_2() {
    for arguments in
        [&["serve", "--workers", "none"][..], &["serve", "extra"], &["serve", "--demo", "--forwarder", "::1"]]
    {
        let process = Process::start(&[], &arguments.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        let (status, _) = process.wait();
        assert_eq!(status.code(), Some(2), "{arguments:?}: {}", process.log());
        assert!(process.log().starts_with("sixfold: "), "{}", process.log());
    }
}
