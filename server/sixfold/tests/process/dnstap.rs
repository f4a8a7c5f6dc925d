//! dnstap: real readers (`fstrm_capture`, `dnstap-ldns`) read what the server writes, and a reader that hangs slows nobody.

use crate::client::{Tcp, Udp, name_of};
use crate::daemon::{Daemon, Folder, Setup, free_port, wait_until};
use crate::upstream::{Behavior, Upstream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use wire::{Rcode, Type};

/// A running `fstrm_capture`, the reader. It is killed when the test ends.
struct Capture(Child);

impl Capture {
    /// Starts the reader at an address, as its options. None: it is not installed.
    fn start(address: &[&str], file: &Path) -> Option<Capture> {
        let child = Command::new("fstrm_capture")
            .args(["-t", "protobuf:dnstap.Dnstap"])
            .args(address)
            .arg("-w")
            .arg(file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match child {
            Ok(child) => Some(Capture(child)),
            Err(_) => {
                kit::missing("fstrm_capture", "apt-get install fstrm-bin");
                None
            }
        }
    }

    fn signal(&self, name: &str) {
        let kill = Command::new("sh").arg("-c").arg(format!("kill -{name} {}", self.0.id())).status();
        assert!(kill.unwrap().success());
    }

    /// Ends the reader, which then writes the rest of its file.
    fn end(mut self) {
        self.signal("TERM");
        let _ = self.0.wait();
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The frames of a file as lines of `dnstap-ldns`; `format`: its option. None: it is not installed.
fn read(file: &Path, format: &str) -> Option<String> {
    let output = Command::new("dnstap-ldns").arg("-r").arg(file).arg(format).output();
    let Ok(output) = output else {
        kit::missing("dnstap-ldns", "apt-get install dnstap-ldns");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

fn frames(server: &Daemon, result: &str) -> f64 {
    server.stat(&format!("dnstap_frames_total{{result=\"{result}\"}}"))
}

fn setup(upstream: &Upstream, dnstap: &str) -> Setup {
    Setup::new(upstream.address).line(&format!("log.dnstap = \"{dnstap}\""))
}

/// The PROXY header of version 2 for a UDP client 198.51.100.9, port 4000.
const PROXIED: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c\xc6\x33\x64\x09\xc0\0\x02\x35\x0f\xa0\0\x35";

#[test]
fn real_readers_read_every_message_with_its_addresses() {
    let (upstream, directory) = (Upstream::start(|_| Behavior::Answer), Folder::for_everybody());
    let (socket, file) = (directory.file("tap.sock"), directory.file("tap"));
    let Some(capture) = Capture::start(&["-u", &socket.display().to_string()], &file) else { return };
    let server = setup(&upstream, &format!("unix:{}", socket.display()))
        .line("server.proxy-from = [\"127.0.0.2/32\"]")
        .line("server.allow = [\"::1/128\", \"127.0.0.1/32\", \"198.51.100.0/24\"]")
        .start();
    server.process.wait_for("dnstap: connected").expect("a connection");
    let client = Udp::to(server.v6());
    for number in [1, 2, 1] {
        client.ask(&name_of(number), Type::AAAA);
    }
    Tcp::to(server.v4()).ask(&name_of(1), Type::AAAA);
    let proxy = Udp::from([127, 0, 0, 2].into(), server.v4());
    proxy.send(&[PROXIED, &crate::client::query(9, &name_of(1), Type::AAAA)].concat());
    assert_eq!(proxy.receive().rcode, Rcode::NOERROR);
    // Five queries of clients, and two lookups of two names.
    server.wait_for_stat("dnstap_frames_total{result=\"sent\"}", f64::from(2 * 5 + 2 * 4));
    assert_eq!(frames(&server, "dropped"), 0.0);
    server.process.stop();
    capture.end();
    let Some(text) = read(&file, "-q") else { return };
    // A line has the time, then the kind.
    let count = |kind: &str| text.lines().filter(|line| line.contains(&format!(" {kind} "))).count();
    assert_eq!(["CQ", "CR", "FQ", "FR"].map(count), [5, 5, 4, 4], "{text}");
    let yaml = read(&file, "-y").unwrap();
    let documents: Vec<&str> = yaml.split("---").collect();
    let has = |words: &[&str]| {
        documents.iter().filter(|document| words.iter().all(|word| document.contains(word))).count()
    };
    let upstream_port = format!("response_port: {}", upstream.address.port());
    assert_eq!(
        has(&["FORWARDER_QUERY", "socket_protocol: UDP", "response_address: \"127.0.0.1\"", &upstream_port]),
        4,
        "{yaml}"
    );
    assert_eq!(has(&["FORWARDER_RESPONSE", "query_port: ", &upstream_port]), 4);
    assert_eq!(has(&["CLIENT_RESPONSE", "socket_family: INET6", "query_address: \"::1\""]), 3);
    let own_port = format!("response_port: {}", server.port);
    assert_eq!(has(&["CLIENT_QUERY", "socket_protocol: TCP", "query_address: \"127.0.0.1\"", &own_port]), 1);
    assert_eq!(has(&["CLIENT_QUERY", "query_address: \"198.51.100.9\"", "query_port: 4000"]), 1);
    assert_eq!(has(&["CLIENT_RESPONSE", "query_address: \"198.51.100.9\""]), 1);
    assert_eq!(has(&["version: \"sixfold "]), 18);
}

#[test]
fn a_reader_that_hangs_slows_nobody_and_drops_are_counted() {
    let (upstream, directory) = (Upstream::start(|_| Behavior::Answer), Folder::for_everybody());
    let port = free_port().to_string();
    let address = ["-a", "127.0.0.1", "-p", &port];
    let Some(capture) = Capture::start(&address, &directory.file("tap")) else { return };
    let server = setup(&upstream, &format!("tcp:127.0.0.1:{port}")).start();
    server.process.wait_for("dnstap: connected").expect("a connection");
    capture.signal("STOP");
    // Messages that are never answered fill the buffers: 8 MiB of them, and those of the sockets.
    let client = Udp::to(server.v4());
    let mut junk = [0; 1_200];
    junk[2] = 0x80;
    for round in 0..1_000 {
        assert!(round < 999, "nothing is dropped");
        (0..100).for_each(|_| client.send(&junk));
        // Each round ends with an answer, so the flood is not faster than the server.
        assert_eq!(client.ask(&name_of(round % 4), Type::AAAA).rcode, Rcode::NOERROR);
        if round % 20 == 19 && frames(&server, "dropped") > 0.0 {
            break;
        }
    }
    for number in 0..50 {
        assert_eq!(client.ask(&name_of(number), Type::AAAA).rcode, Rcode::NOERROR);
    }
    let sent = frames(&server, "sent");
    capture.signal("CONT");
    wait_until("the reader goes on", || frames(&server, "sent") > sent);
    server.process.stop();
    capture.end();
}

#[test]
fn the_server_finds_a_reader_that_starts_again_and_a_reload_changes_it() {
    let (upstream, directory) = (Upstream::start(|_| Behavior::Answer), Folder::for_everybody());
    let (socket, file) = (directory.file("tap.sock"), directory.file("tap"));
    let path = socket.display().to_string();
    // The server starts without a reader, and says so once.
    let server = setup(&upstream, &format!("unix:{path}")).start();
    server.process.wait_for("dnstap: no connection").expect("a warning");
    let Some(first) = Capture::start(&["-u", &path], &file) else { return };
    server.process.wait_for("dnstap: connected").expect("a connection");
    first.end();
    // Nothing is to be written, and yet the server notices.
    server.process.wait_for_nth("dnstap: no connection", 2).expect("a warning");
    let _ = std::fs::remove_file(&socket);
    let second = Capture::start(&["-u", &path], &file).expect("it was there");
    server.process.wait_for_nth("dnstap: connected", 2).expect("a connection");
    let client = Udp::to(server.v4());
    client.ask(&name_of(1), Type::AAAA);
    server.wait_for_stat("dnstap_frames_total{result=\"sent\"}", 6.0);
    // Another reader after a reload, then none.
    let (other, other_file) = (directory.file("other.sock"), directory.file("other"));
    let third = Capture::start(&["-u", &other.display().to_string()], &other_file).expect("it was there");
    wait_until("the reader listens", || other.exists());
    server.rewrite(&[&format!("log.dnstap = \"unix:{}\"", other.display())]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    server.process.wait_for("other.sock").expect("a connection");
    client.ask(&name_of(2), Type::AAAA);
    server.wait_for_stat("dnstap_frames_total{result=\"sent\"}", 12.0);
    server.rewrite(&["log.dnstap = \"\""]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    client.ask(&name_of(3), Type::AAAA);
    server.process.stop();
    second.end();
    third.end();
    let Some(text) = read(&other_file, "-q") else { return };
    assert_eq!(text.lines().count(), 6, "{text}");
    assert!(text.contains(&name_of(2)) && !text.contains(&name_of(3)), "{text}");
}
