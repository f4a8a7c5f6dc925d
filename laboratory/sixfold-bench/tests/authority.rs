//! `sixfold-bench authority` as a process.

use crate::fixtures::{self, RunningAuthority, lossy};
use std::io::Read;
use std::net::UdpSocket;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// Time limit, far longer than anything here takes.
const TIME_LIMIT: Duration = Duration::from_secs(60);

fn command(arguments: &[&str]) -> Command {
    fixtures::command(&[&["authority"], arguments].concat())
}

impl RunningAuthority {
    fn client(&self) -> UdpSocket {
        let socket = UdpSocket::bind(if self.at.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" }).unwrap();
        socket.connect(self.at).unwrap();
        socket.set_read_timeout(Some(TIME_LIMIT)).unwrap();
        socket
    }

    /// Asks for the A records of a name, and returns the answer.
    fn ask(&self, client: &UdpSocket, id: u16, name: &str) -> Vec<u8> {
        client.send(&question(id, name)).unwrap();
        let mut buffer = [0; 512];
        let length = client.recv(&mut buffer).unwrap();
        assert_eq!(buffer[..2], id.to_be_bytes());
        buffer[..length].to_vec()
    }

    /// Resident memory beside the program itself, whose size depends on the profile, in KiB.
    fn anonymous_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Ends it by a signal. Returns its exit status and its counters.
    fn end(mut self, signal: &str) -> (ExitStatus, String) {
        let pid = self.child.0.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let mut text = String::new();
        self.child.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.0.try_wait().unwrap() {
                return (status, text);
            }
            assert!(begin.elapsed() < TIME_LIMIT, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn question(id: u16, name: &str) -> Vec<u8> {
    kit::Query::new(name, 1).id(id).flags(0).octets()
}

#[test]
fn it_answers_until_a_signal_and_then_tells_what_it_did() {
    for (listen, signal) in [("127.0.0.1:0", "-TERM"), ("[::1]:0", "-INT")] {
        let authority = RunningAuthority::start(&["--listen", listen, "--threads", "2", "--addresses", "2"]);
        let client = authority.client();
        for id in 0..50 {
            let answer = authority.ask(&client, id, &format!("192-0-2-{id}.dns64perf.test"));
            assert_eq!(answer[7], 2, "two addresses");
            assert_eq!(answer[answer.len() - 4..], [192, 0, 2, id as u8 + 1]);
        }
        let (status, text) = authority.end(signal);
        assert_eq!(status.code(), Some(0));
        assert!(text.lines().any(|line| line == "address4 50"), "{text}");
        assert!(text.lines().any(|line| line == "asked_a 50"), "{text}");
    }
}

#[test]
fn a_computed_zone_takes_less_than_16_mib_whatever_is_asked() {
    let authority = RunningAuthority::start(&[
        "--listen",
        "[::1]:0",
        "--threads",
        "4",
        "--addresses",
        "28",
        "--cname-depth",
        "8",
    ]);
    // Many ports, so that every thread is used, and bursts, so that its buffers are used.
    let clients: Vec<_> = (0..32).map(|_| authority.client()).collect();
    let mut buffer = [0; 4096];
    for round in 0..100u32 {
        for (number, client) in clients.iter().enumerate() {
            for burst in 0..8u32 {
                let name = round * 256 + number as u32 * 8 + burst;
                let [_, b, c, d] = name.to_be_bytes();
                client.send(&question(name as u16, &format!("10-{b}-{c}-{d}.dns64perf.test"))).unwrap();
            }
        }
        for client in &clients {
            for _ in 0..8 {
                client.recv(&mut buffer).unwrap();
            }
        }
    }
    let resident = authority.anonymous_kib();
    println!("resident after 25,600 queries: {resident} KiB");
    assert!(resident < 16 << 10, "{resident} KiB");
    authority.end("-TERM");
}

#[test]
fn a_master_file_is_served_and_its_size_told() {
    let folder = kit::Folder::new();
    let file = folder.join("zone");
    let mut text = String::from("$ORIGIN dns64perf.test.\n$TTL 60\n@ SOA ns root 1 2 3 4 5\n");
    for c in 0..256 {
        text.push_str(&format!("$GENERATE 0-255 010-000-{c:03}-${{0,3}} A 10.0.{c}.$\n"));
    }
    std::fs::write(&file, text).unwrap();
    let authority = RunningAuthority::start(&["--listen", "127.0.0.1:0", "--zone", file.to_str().unwrap()]);
    let said = authority.before.concat();
    assert!(said.contains("65537 names, 65537 records"), "{said}");
    assert!(said.contains("2^27 names") && said.contains("23 to 38 GB"), "{said}");
    let client = authority.client();
    let answer = authority.ask(&client, 7, "010-000-123-045.dns64perf.test");
    assert_eq!(answer[answer.len() - 4..], [10, 0, 123, 45]);
    let (status, text) = authority.end("-TERM");
    assert!(status.success() && text.contains("address4 1\n"), "{text}");

    std::fs::write(&file, "$TTL 60\nx A 1.2.3.4\n").unwrap();
    let output = command(&["--listen", "127.0.0.1:0", "--zone", file.to_str().unwrap()]).output().unwrap();
    let text = lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("{}:2: ", file.display())), "{text}");
}

#[test]
fn wrong_usage_says_so_and_ends_with_2() {
    for (arguments, word) in [
        (&[][..], "--listen"),
        (&["--listen", "nowhere"], "write it like"),
        (&["--listen", "127.0.0.1:0", "--aaaa-share", "2"], "0 to 1"),
        (&["--listen", "127.0.0.1:0", "--fail", "oops=0.1"], "use servfail"),
        (&["--listen", "127.0.0.1:0", "--fail", "servfail=0.6", "--fail", "timeout=0.6"], "add up"),
        (&["--listen", "127.0.0.1:0", "--zone-name", "a..b"], "empty label"),
        (&["--listen", "127.0.0.1:0", "--delay", "50s", "--jitter", "20s"], "60 s together"),
        (&["--listen", "127.0.0.1:0", "--delay", "20"], "--delay"),
        (&["--listen", "127.0.0.1:0", "--zone", "x", "--ttl", "5"], "--ttl"),
        (&["--listen", "127.0.0.1:0", "--threads", "0"], "--threads"),
    ] {
        let output = command(arguments).output().unwrap();
        let text = lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(word), "{arguments:?}: {text}");
    }
}

#[test]
fn an_address_that_cannot_be_had_is_an_error_that_names_it() {
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = held.local_addr().unwrap();
    let output = command(&["--listen", &taken.to_string()]).output().unwrap();
    let text = lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&taken.to_string()), "{text}");
    drop(held);
}

#[test]
fn dig_reads_its_answers_and_its_counters() {
    if Command::new("dig").arg("-v").output().is_err() {
        return kit::missing("dig", "apt-get install bind9-dnsutils");
    }
    let authority = RunningAuthority::start(&[
        "--listen",
        "[::1]:0",
        "--aaaa-share",
        "1",
        "--cname-depth",
        "2",
        "--fail",
        "truncate=1:A",
    ]);
    let port = authority.at.port().to_string();
    let dig = |arguments: &[&str]| {
        let mut command = Command::new("dig");
        command.args(["@::1", "-p", &port, "+norecurse", "+tries=1", "+time=20"]).args(arguments);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let aaaa = dig(&["+short", "AAAA", "198-51-100-7.dns64perf.test"]);
    assert_eq!(
        aaaa.lines().collect::<Vec<_>>(),
        ["1.198-51-100-7.dns64perf.test.", "2.198-51-100-7.dns64perf.test.", "2001:db8::c633:6407"]
    );
    // dig repeats the query over TCP after a truncated answer.
    let a = dig(&["A", "198-51-100-7.dns64perf.test"]);
    assert!(a.contains("Truncated, retrying in TCP mode") && a.contains("198.51.100.7"), "{a}");
    let counters = dig(&["+short", "CH", "TXT", "counters.authority"]);
    for text in ["\"address6=1\"", "\"address4=1\"", "\"fault_truncated=1\""] {
        assert!(counters.contains(text), "{counters}");
    }
    authority.end("-TERM");
}
