//! Clients that take more than their share, over real sockets: of connections, of time, of what a slow upstream holds. Others
//! are served, memory stays bounded, and nothing here depends on how fast the machine is.

use crate::client::{Tcp, Udp, embedded, name_of, question};
use crate::daemon::{Daemon, PATIENCE, PREFIX, Setup, left_out, until};
use crate::upstream::{Conduct, Upstream};
use socket2::{Domain, Socket, Type as Kind};
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use wire::{Rcode, Type};

/// Octets that an idle connection may take, as `docs/operating.md` has it beside the buffers.
const PER_CONNECTION: u64 = 5 << 10;

/// Descriptors that this process needs for other things, other tests among them.
const OTHER_DESCRIPTORS: usize = 1_500;

fn prompt() -> Upstream {
    Upstream::start(|_| Conduct::Answer)
}

fn at(last: u8, server: &Daemon) -> Udp {
    Udp::from(IpAddr::from([127, 0, 0, last]), server.v4())
}

/// A connection from an address of its own, with a receive buffer of a size if one is given.
fn connect(own: [u8; 4], server: SocketAddr, buffer: Option<usize>) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Kind::STREAM, None).unwrap();
    if let Some(octets) = buffer {
        socket.set_recv_buffer_size(octets).unwrap();
    }
    socket.bind(&SocketAddr::from((own, 0)).into()).unwrap();
    socket.connect_timeout(&server.into(), PATIENCE).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes(), message].concat()
}

fn is_served(client: &Udp, number: u32) {
    let reply = client.ask(&name_of(number), Type::AAAA);
    assert_eq!((reply.rcode, reply.addresses), (Rcode::NOERROR, vec![embedded(PREFIX, number)]));
}

fn closed(server: &Daemon, reason: &str) -> f64 {
    server.stat(&format!("stream_closed_total{{reason=\"{reason}\"}}"))
}

/// How many connections the descriptors of this process leave room for, 10,000 at most.
fn possible_connections() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let soft: usize = line.split_whitespace().next().unwrap().parse().unwrap_or(usize::MAX);
    soft.saturating_sub(OTHER_DESCRIPTORS).min(10_000)
}

#[test]
fn as_many_idle_connections_as_may_be_take_little_memory_and_keep_nobody_else_out() {
    let connections = possible_connections();
    if connections < 500 {
        return left_out("too few descriptors: raise `ulimit -n`");
    }
    let upstream = prompt();
    let server = Setup::new(upstream.address)
        .line(&format!("limits.tcp-connections = {connections}"))
        .line("limits.tcp-idle = \"1h\"")
        .start();
    is_served(&at(200, &server), 1);
    let resident = || {
        let line = server.process.proc_status("VmRSS");
        line.trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    };
    let before = resident();
    // A hundred of each network, as many as it may have.
    let mut open: Vec<TcpStream> = (0..connections)
        .map(|number| connect([127, 1, (number / 100) as u8, 1], server.v4(), None))
        .collect();
    server.wait_for_stat("stream_connections", connections as f64);
    let taken = resident().saturating_sub(before);
    assert!(taken <= connections as u64 * PER_CONNECTION, "{taken} octets for {connections} connections");
    // One more is turned away, and UDP and the connections that are open do not notice.
    Tcp::turned_away([127, 0, 0, 3], server.v4());
    assert_eq!(server.stat("stream_connections_total{result=\"total_limit\"}"), 1.0);
    is_served(&at(3, &server), 2);
    let oldest = &mut open[0];
    oldest.write_all(&framed(&question(3, &name_of(3), Type::AAAA))).unwrap();
    let mut length = [0; 2];
    oldest.read_exact(&mut length).unwrap();
    assert!(u16::from_be_bytes(length) > 12);
    // Who leaves makes room.
    open.truncate(connections / 2);
    server.wait_for_stat("stream_connections", open.len() as f64);
    assert_eq!(Tcp::from([127, 0, 0, 3], server.v4()).ask(&name_of(4), Type::AAAA).rcode, Rcode::NOERROR);
    drop(open);
    server.process.stop();
}

#[test]
fn who_sends_octet_by_octet_is_cut_off_although_he_never_pauses() {
    let upstream = prompt();
    let server = Setup::new(upstream.address).line("limits.tcp-idle = \"500ms\"").start();
    let mut slow = connect([127, 0, 0, 2], server.v4(), None);
    // A message of 65,535 octets: at this pace it takes ten minutes and more.
    let message = [&[0xff, 0xff][..], &[0; 65_535]].concat();
    let end = Instant::now() + PATIENCE;
    let sent = message.iter().take_while(|&&octet| slow.write_all(&[octet]).is_ok() && Instant::now() < end);
    let sent = sent.inspect(|_| std::thread::sleep(Duration::from_millis(10))).count();
    assert!(sent < message.len() && Instant::now() < end, "{sent} octets");
    until("it is counted", || closed(&server, "slow_sender") + closed(&server, "idle") == 1.0);
    is_served(&at(3, &server), 1);
    server.process.stop();
}

#[test]
fn who_asks_and_never_reads_is_cut_off_and_what_he_was_owed_is_freed() {
    let upstream = prompt();
    let server = Setup::new(upstream.address).line("limits.tcp-idle = \"500ms\"").start();
    let mut deaf = connect([127, 0, 0, 2], server.v4(), Some(4096));
    let batch: Vec<u8> =
        (0..100).flat_map(|number| framed(&question(number, &name_of(7), Type::AAAA))).collect();
    let end = Instant::now() + PATIENCE;
    // Until the server has had enough. What it buffers is bounded, so this ends long before all are sent.
    let sent = (0..100_000).take_while(|_| deaf.write_all(&batch).is_ok() && Instant::now() < end).count();
    assert!(sent < 100_000 && Instant::now() < end, "{sent} batches");
    until("it is counted", || closed(&server, "slow_reader") == 1.0);
    server.wait_for_stat("stream_connections", 0.0);
    is_served(&at(2, &server), 8);
    assert_eq!(Tcp::from([127, 0, 0, 2], server.v4()).ask(&name_of(9), Type::AAAA).rcode, Rcode::NOERROR);
    server.process.stop();
}

#[test]
fn a_thousand_questions_in_one_write_and_a_half_close_are_all_answered() {
    let upstream = prompt();
    let server = Setup::new(upstream.address).start();
    let mut client = connect([127, 0, 0, 2], server.v4(), None);
    let questions: Vec<u8> = (0..1000u32)
        .flat_map(|number| framed(&question(number as u16, &name_of(number), Type::AAAA)))
        .collect();
    let mut writing = client.try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        writing.write_all(&questions).unwrap();
        writing.shutdown(Shutdown::Write).unwrap();
    });
    let mut answers = vec![];
    client.read_to_end(&mut answers).unwrap();
    writer.join().unwrap();
    let (mut rest, mut seen) = (&answers[..], vec![false; 1000]);
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let (message, behind) = behind.split_at(usize::from(u16::from_be_bytes(*length)));
        let reply = crate::client::Reply::read(message);
        assert_eq!(reply.addresses, [embedded(PREFIX, u32::from(reply.id))]);
        assert!(!std::mem::replace(&mut seen[usize::from(reply.id)], true), "{} twice", reply.id);
        rest = behind;
    }
    assert!(seen.iter().all(|&seen| seen));
    until("it has ended", || closed(&server, "ended") == 1.0);
    server.process.stop();
}

#[test]
fn odd_lengths_and_resets_in_the_middle_harm_nobody_else() {
    let upstream = prompt();
    let server = Setup::new(upstream.address).start();
    let reset = |octets: &[u8]| {
        let mut stream = connect([127, 0, 0, 2], server.v4(), None);
        stream.write_all(octets).unwrap();
        Socket::from(stream).set_linger(Some(Duration::ZERO)).unwrap();
    };
    // Within the length, within the message, behind a question, and behind a hundred of them.
    let whole = framed(&question(1, &name_of(1), Type::AAAA));
    for octets in [&whole[..1], &whole[..2], &whole[..20], &whole, &whole.repeat(100)] {
        reset(octets);
    }
    // Nothing in a message, and less than a header.
    for short in [vec![0, 0], framed(&[7; 11])] {
        let mut stream = connect([127, 0, 0, 2], server.v4(), None);
        stream.write_all(&short).unwrap();
        assert_eq!(stream.read(&mut [0; 64]).unwrap_or(0), 0);
    }
    until("they are counted", || closed(&server, "malformed_length") == 2.0);
    // The largest message there is: a question, and octets behind it. Whatever it is told, the connection goes on.
    let mut largest = question(5, &name_of(5), Type::AAAA);
    largest.resize(65_535, 0);
    let mut stream = connect([127, 0, 0, 2], server.v4(), None);
    stream.write_all(&framed(&largest)).unwrap();
    stream.write_all(&framed(&question(6, &name_of(6), Type::AAAA))).unwrap();
    let ids: Vec<u16> = (0..2)
        .map(|_| {
            let mut length = [0; 2];
            stream.read_exact(&mut length).unwrap();
            let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut message).unwrap();
            wire::header::id(&message)
        })
        .collect();
    assert!(ids.contains(&5) && ids.contains(&6), "{ids:?}");
    drop(stream);
    server.wait_for_stat("stream_connections", 0.0);
    is_served(&at(2, &server), 2);
    server.process.stop();
}

#[test]
fn what_a_slow_upstream_holds_for_one_network_goes_off_in_small_numbers_and_delays_nobody_else() {
    const SHARE: usize = 100;
    const ASKED: u32 = 1_000;
    let slow = |name: &str| name.ends_with(".slow.v4.test.");
    let upstream = Upstream::start(move |name| if slow(name) { Conduct::Hold } else { Conduct::Answer });
    let server = Setup::new(upstream.address)
        .line("upstream.timeout = \"30s\"")
        .line("upstream.tries = 1")
        .line(&format!("limits.pending-per-client = {SHARE}"))
        .start();
    let victim = at(2, &server);
    let mut refused = 0;
    for number in 0..ASKED {
        victim.send(&question(number as u16, &format!("9-0-0-{}.slow.v4.test", number % 200), Type::AAAA));
        if number as usize >= SHARE {
            assert_eq!(victim.receive().rcode, Rcode::REFUSED);
            refused += 1;
        }
    }
    assert_eq!(server.stat("pending"), SHARE as f64);
    is_served(&at(3, &server), 1);
    upstream.release();
    let mut burst = 0;
    server.wait_for_stat("pending", 0.0);
    while victim.receive_within(Duration::from_millis(500)).is_some() {
        burst += 1;
    }
    assert!(burst <= SHARE, "{burst} answers at once");
    assert_eq!(refused, ASKED as usize - SHARE);
    server.process.stop();
}
