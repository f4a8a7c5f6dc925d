//! `sixfold ctl trace`: lines of live queries, filters, bounds, and operators who do not read.

use crate::client::{Tcp, Udp, embedded, name_of, query};
use crate::daemon::{Daemon, PREFIX, Setup, TIMEOUT, ctl, wait_until};
use crate::packet_cache::warm;
use crate::upstream::{Behavior, Upstream};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use wire::{Rcode, Type};

/// A running `sixfold ctl trace on`. It is killed when the test ends.
struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    /// Starts the command, and waits until the workers know of the trace, which is the `number`-th of the server.
    fn start(server: &Daemon, number: usize, arguments: &[&str]) -> Follower {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sixfold"))
            .args(["ctl", "--socket"])
            .arg(&server.control)
            .arg("trace")
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        server.process.wait_for_nth("trace on", number).expect("the trace begins");
        Follower { child, lines }
    }

    /// The next line, as JSON.
    fn next(&self) -> Value {
        let line = self.lines.recv_timeout(TIMEOUT).expect("a line");
        assert!(!line.chars().any(char::is_control), "{line:?}");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Waits for the end of the command with exit status 0. Returns the lines that are left.
    fn end(mut self) -> Vec<Value> {
        let lines = std::iter::from_fn(|| self.lines.recv_timeout(TIMEOUT).ok());
        let rest = lines.map(|line| serde_json::from_str(&line).unwrap()).collect();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        rest
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start() -> (Upstream, Daemon) {
    let upstream = Upstream::start(|name| match name.starts_with("9-0-0-99.") {
        true => Behavior::Ignore,
        false => Behavior::Answer,
    });
    let allow = "server.allow = [\"::1/128\", \"127.0.0.1/32\"]";
    let server = Setup::new(upstream.address).line(allow).line("upstream.timeout = \"100ms\"").start();
    (upstream, server)
}

/// The words of the steps of a line, and the RCODE of the answer.
fn steps(line: &Value) -> (Vec<&str>, Option<&str>) {
    let steps = line["steps"].as_array().expect("steps").iter();
    (steps.map(|step| step["step"].as_str().expect("a word")).collect(), line["answer"]["rcode"].as_str())
}

#[test]
fn a_query_is_one_line_with_every_step_and_its_time() {
    let (upstream, server) = start();
    let trace = Follower::start(&server, 1, &["on"]);
    let client = Udp::to(server.v6());
    client.ask(&name_of(1), Type::AAAA);
    let line = trace.next();
    let resolved = ["dns64", "asks", "sent", "reply", "nodata", "asks", "sent", "reply", "synthesized"];
    assert_eq!(steps(&line), (resolved.to_vec(), Some("NOERROR")));
    assert_eq!((line["client"].as_str(), line["transport"].as_str()), (Some("::1"), Some("udp")));
    let question = (line["name"].as_str().unwrap().to_owned(), line["type"].as_str());
    assert_eq!(question, (format!("{}.", name_of(1)), Some("AAAA")));
    let sent = &line["steps"][2];
    assert_eq!(sent["upstream"].as_str(), Some(upstream.address.to_string().as_str()));
    assert_eq!((sent["type"].as_str(), sent["transport"].as_str()), (Some("AAAA"), Some("udp")));
    let times: Vec<u64> =
        line["steps"].as_array().unwrap().iter().map(|step| step["us"].as_u64().unwrap()).collect();
    assert!(times.is_sorted() && times[0] == 0 && times[8] > 0, "{times:?}");
    assert!(line["answer"]["us"].as_u64() >= times.last().copied());
    let record = line["answer"]["records"][0].as_str().unwrap();
    assert!(record.ends_with(&format!(" AAAA {}", embedded(PREFIX, 1))), "{record}");
    let time: jiff::Timestamp = line["time"].as_str().unwrap().parse().unwrap();
    assert!(time.duration_until(jiff::Timestamp::now()).as_secs() < 2 * TIMEOUT.as_secs() as i64);
    // Out of the cache; over TCP; from a client that is not allowed; without a reply.
    client.ask(&name_of(1), Type::AAAA);
    assert_eq!(steps(&trace.next()).0, ["dns64", "cached_negative", "nodata", "cached", "synthesized"]);
    Tcp::to(server.v4()).ask(&name_of(1), Type::AAAA);
    let line = trace.next();
    assert_eq!(steps(&line).0, ["dns64", "cached_synthesis"]);
    assert_eq!((line["client"].as_str(), line["transport"].as_str()), (Some("127.0.0.1"), Some("tcp")));
    Udp::from([127, 0, 0, 2].into(), server.v4()).ask(&name_of(1), Type::AAAA);
    assert_eq!(steps(&trace.next()), (vec!["refused"], Some("REFUSED")));
    client.ask(&name_of(99), Type::A);
    let line = trace.next();
    let (words, rcode) = steps(&line);
    assert_eq!(
        (&words[..3], words.last(), rcode),
        (&["other_type", "asks", "sent"][..], Some(&"no_reply"), Some("SERVFAIL"))
    );
}

#[test]
fn filters_choose_the_queries_of_each_trace_and_off_ends_all() {
    let (_upstream, server) = start();
    let by_name = Follower::start(&server, 1, &["on", "--name", "9-0-0-1.V4.test"]);
    let by_client = Follower::start(&server, 2, &["--client", "127.0.0.0/24"]);
    let both = Follower::start(&server, 3, &["on", "--client", "::1", "--name", "v4.test"]);
    for number in [1, 2] {
        Udp::to(server.v6()).ask(&name_of(number), Type::AAAA);
        Udp::to(server.v4()).ask(&name_of(number), Type::AAAA);
    }
    Udp::to(server.v6()).ask("localhost", Type::AAAA);
    let off = server.ctl(&["trace", "off"]);
    assert_eq!(
        (off.status.code(), String::from_utf8_lossy(&off.stdout).as_ref()),
        (Some(0), "3 traces ended\n")
    );
    let of = |follower: Follower| -> Vec<(String, String)> {
        let mut lines = follower.end();
        let end = lines.pop().expect("the last line");
        assert_eq!((end["notice"].as_str(), end["why"].as_str()), (Some("end"), Some("trace off")));
        let text = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
        lines.iter().map(|line| (text(line, "client"), text(line, "name"))).collect()
    };
    let row = |client: &str, number: u32| (client.to_owned(), format!("{}.", name_of(number)));
    assert_eq!(of(by_name), [row("::1", 1), row("127.0.0.1", 1)]);
    assert_eq!(of(by_client), [row("127.0.0.1", 1), row("127.0.0.1", 2)]);
    assert_eq!(of(both), [row("::1", 1), row("::1", 2)]);
    let again = server.ctl(&["trace", "off"]);
    assert_eq!(String::from_utf8_lossy(&again.stdout), "no trace was running\n");
}

#[test]
fn names_of_strangers_break_neither_the_line_nor_the_terminal() {
    let (_upstream, server) = start();
    let trace = Follower::start(&server, 1, &["on", "--name", "test"]);
    let client = Udp::to(server.v6());
    let mut message = query(7, "", Type::AAAA);
    let label = b"\n\"}\x1b]0;x\x07\x7f\x80\x9b\xff\\.";
    message.truncate(wire::HEADER);
    message.push(label.len() as u8);
    message.extend(label);
    message.extend(b"\x04test\0\0\x1c\0\x01");
    client.send(&message);
    client.receive_header();
    let name = trace.next()["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("\\010") && name.ends_with(".test."), "{name}");
    assert!(name.is_ascii() && !name.chars().any(char::is_control), "{name}");
}

#[test]
fn an_operator_who_does_not_read_slows_nobody_and_every_query_is_accounted_for() {
    const QUERIES: u64 = 4_000;
    let (_upstream, server) = start();
    let mut slow = UnixStream::connect(&server.control).unwrap();
    slow.write_all(b"trace on\n").unwrap();
    server.process.wait_for("trace on").unwrap();
    let client = Udp::to(server.v6());
    for number in 0..QUERIES {
        assert_eq!(client.ask(&name_of(number as u32 % 8), Type::AAAA).rcode, Rcode::NOERROR);
    }
    assert_eq!(server.ctl(&["trace", "off"]).status.code(), Some(0));
    slow.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut text = String::new();
    slow.read_to_string(&mut text).unwrap();
    let lines = text.strip_prefix("0\n").unwrap().lines();
    let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let omitted: u64 = lines.iter().filter_map(|line| line["omitted"].as_u64()).sum();
    let shown = lines.iter().filter(|line| line["notice"].is_null()).count() as u64;
    assert_eq!(shown + omitted, QUERIES, "{shown} shown, {omitted} left out");
    assert!(shown > 0);
}

#[test]
fn a_fifth_trace_is_refused_until_an_operator_has_gone() {
    let (_upstream, server) = start();
    let mut followers: Vec<_> = (1..=4).map(|number| Follower::start(&server, number, &[])).collect();
    let refused = server.ctl(&["trace"]);
    assert_eq!(refused.status.code(), Some(1));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.starts_with("sixfold: trace: 4 traces are running already"), "{text}");
    drop(followers.pop());
    server.process.wait_for("trace ended").expect("the server notices");
    followers.push(Follower::start(&server, 5, &[]));
    Udp::to(server.v6()).ask(&name_of(1), Type::AAAA);
    for follower in &followers {
        assert_eq!(follower.next()["type"].as_str(), Some("AAAA"));
    }
    // The end of the server ends the command, too.
    server.process.stop();
    for follower in followers {
        follower.end();
    }
}

#[test]
fn malformed_requests_are_refused() {
    let (_upstream, server) = start();
    for arguments in [&["--client", "nobody"][..], &["--name", "a..b"], &["on", "--client", "::1/200"]] {
        let output = ctl(&server.control, &[&["trace"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
    // Other clients of the socket may send anything.
    for (line, reason) in [
        ("trace on loudly", "unknown word"),
        ("trace on client", "nothing follows"),
        ("trace", "unknown command"),
    ] {
        let mut stream = UnixStream::connect(&server.control).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("1 ") && answer.contains(reason), "{line}: {answer}");
    }
    wait_until("no trace is left", || {
        String::from_utf8_lossy(&server.ctl(&["trace", "off"]).stdout) == "no trace was running\n"
    });
}

#[test]
fn a_trace_hears_of_queries_that_the_stream_thread_answered_before() {
    let (_upstream, server) = start();
    let mut client = Tcp::to(server.v4());
    for number in 1..=10 {
        warm(&server, || client.ask(&name_of(7), Type::AAAA));
        let follower = Follower::start(&server, number, &["on"]);
        // The first one too: the command has its status when all workers know the trace.
        for _ in 0..10 {
            client.ask(&name_of(7), Type::AAAA);
            assert_eq!(steps(&follower.next()).1, Some("NOERROR"));
        }
        server.ctl(&["trace", "off"]);
        follower.end();
    }
}
