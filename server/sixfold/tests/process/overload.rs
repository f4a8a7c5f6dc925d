//! Clients that take more than their share of connections, of time and of pending queries, over real sockets. Other clients
//! are served, memory stays bounded, and no test depends on the speed of the machine.

use crate::client::{Tcp, Udp, embedded, name_of, query};
use crate::daemon::{Daemon, PREFIX, Setup, TIMEOUT};
use crate::upstream::{Behavior, Upstream};
use kit::message::framed;
use socket2::{Domain, Socket, Type as Kind};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
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

/// A connection from an address of its own.
fn connect(own: [u8; 4], server: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Kind::STREAM, None).unwrap();
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
    let mut open: Vec<TcpStream> =
        (0..connections).map(|number| connect([127, 1, (number / 100) as u8, 1], server.v4())).collect();
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
