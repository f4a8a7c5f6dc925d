//! `sixfold-bench link` between two network namespaces, with what the kernel sends through it.

use super::namespaces::Ends;
use kit::Killed;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A generous time limit: the machine may be slow.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Starts a link between the namespaces and waits until it is ready.
fn start(ends: &Ends, options: &[&str]) -> Link {
    let mut command = command(ends.left.name(), ends.right.name(), options);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program");
    let mut lines = BufReader::new(child.stderr.take().expect("standard error"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line");
    assert_eq!(line, "sixfold-bench: link ready\n");
    Link(Killed(child))
}

fn command(left: &str, right: &str, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sixfold-bench"));
    command.args(["link", "--left", left, "--right", right]).args(options);
    command
}

fn output(ends: &Ends, options: &[&str]) -> Output {
    command(ends.left.name(), ends.right.name(), options).output().expect("the program")
}

/// A running link, ended by SIGKILL if a test fails.
struct Link(Killed);

impl Link {
    /// Ends the link by SIGTERM and returns its output.
    fn end(mut self) -> String {
        // The child has not been waited for, so its ID is its own.
        let done = Command::new("kill").arg(self.0.0.id().to_string()).status().expect("kill");
        assert!(done.success());
        let mut text = String::new();
        self.0.0.stdout.take().expect("standard output").read_to_string(&mut text).expect("text");
        assert!(self.0.0.wait().expect("an end").success());
        text
    }
}

fn socket(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).expect("an address of the link");
    socket.set_read_timeout(Some(TIME_LIMIT)).expect("a timeout");
    socket
}

fn json(path: &PathBuf) -> Value {
    let text = std::fs::read_to_string(path).expect("the summary");
    let _ = std::fs::remove_file(path);
    serde_json::from_str(&text).expect("JSON")
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("sixfold-link-{name}-{}.json", std::process::id()))
}

#[test]
fn datagrams_of_both_families_take_the_delay_of_each_direction() {
    let Some(ends) = Ends::make("delay") else { return };
    let file = scratch("delay");
    let link =
        start(&ends, &["--delay", "20ms", "--to-left", "delay=50ms", "--json", &file.display().to_string()]);
    for (left, right) in [("198.18.0.1:0", "198.18.0.2:0"), ("[2001:2::1]:0", "[2001:2::2]:0")] {
        let (near, far) = (ends.left.inside(|| socket(left)), ends.right.inside(|| socket(right)));
        let started = Instant::now();
        near.send_to(b"there", far.local_addr().unwrap()).expect("sent");
        let (octets, from) = far.recv_from(&mut [0; 64]).expect("a datagram");
        assert_eq!(octets, 5);
        assert!(started.elapsed() >= Duration::from_millis(20));
        far.send_to(b"and back", from).expect("sent");
        near.recv_from(&mut [0; 64]).expect("a datagram");
        assert!(started.elapsed() >= Duration::from_millis(70));
    }
    let text = link.end();
    assert!(
        text.contains("delay     asked 20.000 ms") && text.contains("delay     asked 50.000 ms"),
        "{text}"
    );
    let summary = json(&file);
    for (direction, asked) in [("to_right", 20.0), ("to_left", 50.0)] {
        let direction = &summary[direction];
        assert_eq!(direction["delay_asked_ms"], asked);
        assert!(direction["delay_median_ms"].as_f64().unwrap() >= asked);
        assert!(direction["delivered"].as_u64().unwrap() >= 2);
    }
}

#[test]
fn tcp_fragments_and_icmp_pass_a_bad_link() {
    let Some(ends) = Ends::make("bad") else { return };
    let _link = start(
        &ends,
        &["--delay", "1ms", "--loss", "0.02", "--duplicate", "0.05", "--reorder", "0.05", "--seed", "1"],
    );
    // A stream of 400 KB, there and back, although packets are lost.
    let listener = ends.right.inside(|| TcpListener::bind("198.18.0.2:0").expect("an address of the link"));
    let address = listener.local_addr().unwrap();
    let echo = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut octets = Vec::new();
        stream.read_to_end(&mut octets).expect("octets");
        stream.write_all(&octets).expect("written");
    });
    let mut stream =
        ends.left.inside(|| TcpStream::connect_timeout(&address, TIME_LIMIT).expect("a connection"));
    stream.set_read_timeout(Some(TIME_LIMIT)).unwrap();
    let sent: Vec<u8> = (0..400_000_u32).map(|i| (i * 31 % 251) as u8).collect();
    stream.write_all(&sent).expect("written");
    stream.shutdown(std::net::Shutdown::Write).expect("finished");
    let mut got = Vec::new();
    stream.read_to_end(&mut got).expect("octets");
    assert!(got == sent, "{} octets of {} came back", got.len(), sent.len());
    echo.join().expect("the echo");
    // A datagram of three fragments arrives whole; one lost fragment loses it, so it is sent until it comes.
    let (near, far) =
        (ends.left.inside(|| socket("198.18.0.1:0")), ends.right.inside(|| socket("198.18.0.2:0")));
    far.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let datagram: Vec<u8> = sent[..4000].to_vec();
    let mut buffer = [0; 5000];
    let came = (0..100).any(|_| {
        near.send_to(&datagram, far.local_addr().unwrap()).expect("sent");
        far.recv_from(&mut buffer).is_ok()
    });
    assert!(came && buffer[..4000] == datagram[..]);
    // A closed port answers with ICMP, which the kernel turns into an error.
    let closed: SocketAddr = "198.18.0.2:9".parse().unwrap();
    let asker = ends.left.inside(|| socket("198.18.0.1:0"));
    asker.connect(closed).expect("connected");
    asker.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let refused = (0..100).any(|_| {
        let _ = asker.send(b"anybody?");
        asker.recv(&mut [0; 64]).is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    });
    assert!(refused);
}

#[test]
fn nothing_is_left_after_a_signal_and_no_interface_after_sigkill() {
    let Some(ends) = Ends::make("end") else { return };
    let link = start(&ends, &[]);
    assert_eq!(ends.interfaces().matches("sixfold0").count(), 2);
    link.end();
    assert_eq!(ends.interfaces(), "");
    drop(start(&ends, &[]));
    assert_eq!(ends.interfaces(), "");
    // The end of the duration is an end like that by a signal.
    assert!(output(&ends, &["--duration", "10ms"]).status.success());
    assert_eq!(ends.interfaces(), "");
}

#[test]
fn wrong_use_is_told_with_its_remedy() {
    let Some(ends) = Ends::make("wrong") else { return };
    let _link = start(&ends, &[]);
    let told = |output: Output| (output.status.code(), String::from_utf8(output.stderr).unwrap());
    let (code, text) = told(output(&ends, &[]));
    assert!(code == Some(1) && text.contains("another link ends there"), "{text}");
    let missing = command("no-such-namespace", ends.right.name(), &[]).output().expect("the program");
    let (code, text) = told(missing);
    assert!(code == Some(1) && text.contains("ip netns list"), "{text}");
    for (options, remedy) in [
        (&["--loss", "5%"][..], "number"),
        (&["--loss", "0.1", "--burst-loss", "0.1,0.5"], "cannot be used with"),
        (&["--net4", "198.18.0.0/31"], "two addresses"),
        (&["--mtu", "600"], "1280"),
        (&["--to-left", "speed=1"], "burst-loss, rate"),
    ] {
        let (code, text) = told(output(&ends, options));
        assert!(code == Some(2) && text.contains(remedy), "{options:?}: {text}");
    }
}
