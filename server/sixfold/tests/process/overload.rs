//! Clients that take more than their share of connections, of time and of pending queries, over real sockets. Other clients
//! are served, memory stays bounded, and no test depends on the speed of the machine.

use crate::client::{Tcp, Udp, embedded, name_of, query};
use crate::daemon::{Daemon, PREFIX, Setup, TIMEOUT, wait_until};
use crate::upstream::{Behavior, Upstream};
use kit::message::framed;
use socket2::{Domain, Socket, Type as Kind};
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use wire::{Rcode, Type};

/// Octets that an idle connection may take beside its buffers, as in `docs/how-to/size-and-tune.md`.
const PER_CONNECTION: u64 = 5 << 10;

/// Descriptors that this process needs for other purposes, including other tests.
const OTHER_DESCRIPTORS: usize = 1_500;

fn answering_upstream() -> Upstream {
    Upstream::start(|_| Behavior::Answer)
}

fn at(last: u8, server: &Daemon) -> Udp {
    Udp::from(IpAddr::from([127, 0, 0, last]), server.v4())
}

/// A connection from an address of its own, with a receive buffer of `buffer` octets if given.
fn connect(own: [u8; 4], server: SocketAddr, buffer: Option<usize>) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Kind::STREAM, None).unwrap();
    if let Some(octets) = buffer {
        socket.set_recv_buffer_size(octets).unwrap();
    }
    socket.bind(&SocketAddr::from((own, 0)).into()).unwrap();
    socket.connect_timeout(&server.into(), TIMEOUT).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    stream
}

fn assert_served(client: &Udp, number: u32) {
    let answer = client.ask(&name_of(number), Type::AAAA);
    assert_eq!((answer.rcode, answer.addresses), (Rcode::NOERROR, vec![embedded(PREFIX, number)]));
}

fn closed(server: &Daemon, reason: &str) -> f64 {
    server.stat(&format!("stream_closed_total{{reason=\"{reason}\"}}"))
}

/// Number of connections for which this process has descriptors, at most 10,000.
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
        return kit::skip("too few descriptors: raise `ulimit -n`");
    }
    let upstream = answering_upstream();
    let server = Setup::new(upstream.address)
        .line(&format!("limits.tcp-connections = {connections}"))
        .line("limits.tcp-idle = \"1h\"")
        .start();
    assert_served(&at(200, &server), 1);
    let resident = || {
        let line = server.process.proc_status("VmRSS");
        line.trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    };
    let before = resident();
    // A hundred connections of each network, which is the limit.
    let mut open: Vec<TcpStream> = (0..connections)
        .map(|number| connect([127, 1, (number / 100) as u8, 1], server.v4(), None))
        .collect();
    server.wait_for_stat("stream_connections", connections as f64);
    let taken = resident().saturating_sub(before);
    assert!(taken <= connections as u64 * PER_CONNECTION, "{taken} octets for {connections} connections");
    // A further client takes the place of the one that has been idle for the longest time; UDP and the others are not affected.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let mut further = Tcp::from([127, 0, 0, 3], server.v4());
    assert_eq!(further.ask(&name_of(3), Type::AAAA).rcode, Rcode::NOERROR);
    assert_eq!(server.stat("stream_closed_total{reason=\"displaced\"}"), 1.0);
    assert_eq!(server.stat("stream_connections_total{result=\"total_limit\"}"), 0.0);
    assert_served(&at(3, &server), 2);
    let oldest = &mut open[1];
    oldest.write_all(&framed(&query(3, &name_of(3), Type::AAAA))).unwrap();
    let mut length = [0; 2];
    oldest.read_exact(&mut length).unwrap();
    assert!(u16::from_be_bytes(length) > 12);
    drop(further);
    // Closed connections make room for others.
    open.truncate(connections / 2);
    server.wait_for_stat("stream_connections", open.len() as f64 - 1.0);
    assert_eq!(Tcp::from([127, 0, 0, 3], server.v4()).ask(&name_of(4), Type::AAAA).rcode, Rcode::NOERROR);
    drop(open);
}

#[test]
fn a_client_that_sends_octet_by_octet_is_cut_off_although_it_never_pauses() {
    let upstream = answering_upstream();
    let server = Setup::new(upstream.address).line("limits.tcp-idle = \"500ms\"").start();
    let mut slow = connect([127, 0, 0, 2], server.v4(), None);
    // A message of 65,535 octets: at this rate it takes more than ten minutes.
    let message = [&[0xff, 0xff][..], &[0; 65_535]].concat();
    let end = Instant::now() + TIMEOUT;
    let sent = message.iter().take_while(|&&octet| slow.write_all(&[octet]).is_ok() && Instant::now() < end);
    let sent = sent.inspect(|_| std::thread::sleep(Duration::from_millis(10))).count();
    assert!(sent < message.len() && Instant::now() < end, "{sent} octets");
    wait_until("it is counted", || closed(&server, "slow_sender") + closed(&server, "idle") == 1.0);
    assert_served(&at(3, &server), 1);
}

#[test]
fn a_client_that_asks_and_never_reads_is_cut_off_and_its_answers_are_freed() {
    let upstream = answering_upstream();
    let server = Setup::new(upstream.address).line("limits.tcp-idle = \"500ms\"").start();
    let mut non_reader = connect([127, 0, 0, 2], server.v4(), Some(4096));
    let batch: Vec<u8> =
        (0..100).flat_map(|number| framed(&query(number, &name_of(7), Type::AAAA))).collect();
    let end = Instant::now() + TIMEOUT;
    // Until the server closes the connection. Its buffers are bounded, so this ends long before all batches are sent.
    let sent =
        (0..100_000).take_while(|_| non_reader.write_all(&batch).is_ok() && Instant::now() < end).count();
    assert!(sent < 100_000 && Instant::now() < end, "{sent} batches");
    wait_until("it is counted", || closed(&server, "slow_reader") == 1.0);
    server.wait_for_stat("stream_connections", 0.0);
    assert_served(&at(2, &server), 8);
    assert_eq!(Tcp::from([127, 0, 0, 2], server.v4()).ask(&name_of(9), Type::AAAA).rcode, Rcode::NOERROR);
}

#[test]
fn a_thousand_questions_in_one_write_and_a_half_close_are_all_answered() {
    let upstream = answering_upstream();
    let server = Setup::new(upstream.address).start();
    let mut client = connect([127, 0, 0, 2], server.v4(), None);
    let questions: Vec<u8> =
        (0..1000u32).flat_map(|number| framed(&query(number as u16, &name_of(number), Type::AAAA))).collect();
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
        let answer = crate::client::Answer::read(message);
        assert_eq!(answer.addresses, [embedded(PREFIX, u32::from(answer.id))]);
        assert!(!std::mem::replace(&mut seen[usize::from(answer.id)], true), "{} twice", answer.id);
        rest = behind;
    }
    assert!(seen.iter().all(|&seen| seen));
    wait_until("it has ended", || closed(&server, "ended") == 1.0);
}

#[test]
fn odd_lengths_and_resets_in_the_middle_harm_nobody_else() {
    let upstream = answering_upstream();
    let server = Setup::new(upstream.address).start();
    let reset = |octets: &[u8]| {
        let mut stream = connect([127, 0, 0, 2], server.v4(), None);
        stream.write_all(octets).unwrap();
        Socket::from(stream).set_linger(Some(Duration::ZERO)).unwrap();
    };
    // Inside the length, inside the message, after one query, and after a hundred queries.
    let whole = framed(&query(1, &name_of(1), Type::AAAA));
    for octets in [&whole[..1], &whole[..2], &whole[..20], &whole, &whole.repeat(100)] {
        reset(octets);
    }
    // An empty message, and one shorter than a header.
    for short in [vec![0, 0], framed(&[7; 11])] {
        let mut stream = connect([127, 0, 0, 2], server.v4(), None);
        stream.write_all(&short).unwrap();
        assert_eq!(stream.read(&mut [0; 64]).unwrap_or(0), 0);
    }
    wait_until("they are counted", || closed(&server, "malformed_length") == 2.0);
    // The largest possible message: a query with octets after it. Whatever the answer is, the connection stays open.
    let mut largest = query(5, &name_of(5), Type::AAAA);
    largest.resize(65_535, 0);
    let mut stream = connect([127, 0, 0, 2], server.v4(), None);
    stream.write_all(&framed(&largest)).unwrap();
    stream.write_all(&framed(&query(6, &name_of(6), Type::AAAA))).unwrap();
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
    assert_served(&at(2, &server), 2);
}

#[test]
fn queries_of_one_network_at_a_slow_upstream_stay_few_and_delay_no_other_network() {
    const SHARE: usize = 100;
    const ASKED: u32 = 1_000;
    let slow = |name: &str| name.ends_with(".slow.v4.test.");
    let upstream = Upstream::start(move |name| if slow(name) { Behavior::Hold } else { Behavior::Answer });
    let server = Setup::new(upstream.address)
        .line("upstream.timeout = \"30s\"")
        .line("upstream.tries = 1")
        .line(&format!("limits.pending-per-client = {SHARE}"))
        .start();
    let victim = at(2, &server);
    let mut sent_to_tcp = 0;
    for number in 0..ASKED {
        victim.send(&query(number as u16, &format!("9-0-0-{}.slow.v4.test", number % 200), Type::AAAA));
        // Every second one beyond the limit is dropped. A new query takes the place of one that has waited long.
        if number as usize >= SHARE && number % 2 == 0 {
            assert!(victim.receive().truncated);
            sent_to_tcp += 1;
        }
    }
    assert_eq!(server.stat("pending"), SHARE as f64);
    assert_served(&at(3, &server), 1);
    upstream.release();
    let mut burst = 0;
    server.wait_for_stat("pending", 0.0);
    while let Some(answer) = victim.receive_within(Duration::from_millis(500)) {
        match answer.truncated {
            true => sent_to_tcp += 1,
            false => burst += 1,
        }
    }
    assert!(burst <= SHARE, "{burst} answers at once");
    // All that got no place, or on a slow machine lost it.
    let least = (ASKED as usize - SHARE) / 2;
    assert!((least..=ASKED as usize / 2).contains(&sent_to_tcp), "{sent_to_tcp}");
}
