//! TCP Fast Open (RFC 7413) between a link and a listening socket. The kernel decides if data travels with the SYN, and
//! everything works either way. In a network namespace that allows Fast Open on both sides, the kernel's counters show that
//! data does travel with the SYN.

use crate::echo;

use echo::{Running, options};
use engine::Transport;
use kit::listening::{Connection, Listening};
use kit::namespace;
use sixfold_datapath::{Counter, Options, Reflector, ReflectorOptions, Steer, fast_open};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;

/// Queries of a round. The reflector sends each twice, here over a connection of its own each time.
const QUESTIONS: usize = 10;
const CONNECTIONS: usize = 2 * QUESTIONS;

/// Brings the loopback device up, allows Fast Open to clients and servers, and executes the program.
const ENTER: &str = r#"set -e; ip link set lo up; echo 3 > /proc/sys/net/ipv4/tcp_fastopen; exec "$@""#;

/// An upstream that sends back what it receives.
fn echo_upstream(listen: &str, allow: bool) -> Listening {
    let listener = TcpListener::bind(listen).unwrap();
    if allow {
        fast_open(listener.as_fd(), 16).unwrap();
    }
    Listening::on(listener, |mut connection: Connection| {
        let mut buffer = [0; 2048];
        while let Ok(length @ 1..) = connection.read(&mut buffer) {
            connection.write_all(&buffer[..length]).unwrap();
        }
    })
}

/// Sends a round of queries through a worker. The upstream and the link each allow Fast Open or not.
fn round(listen: &str, upstream_allows: bool, link_allows: bool) {
    let upstream = echo_upstream(listen, upstream_allows);
    let listen: SocketAddr = listen.parse().unwrap();
    let options = Options { tcp_fast_open: link_allows, ..options(listen, 1, Steer::Name) };
    let how =
        ReflectorOptions { upstream: upstream.address, transport: Transport::Tcp, rotate: 1, slots: 64 };
    let running = Running::start(&options, move || Reflector::new(how));
    let client = kit::client::udp(listen.ip(), running.address());
    for number in 0..QUESTIONS {
        let mut question = [number as u8; 40];
        question[0] = 0x77;
        client.send(&question).unwrap();
        let mut buffer = [0; 64];
        let length = client.recv(&mut buffer).unwrap();
        assert_eq!(buffer[..length], question);
    }
    let (machines, shared) = running.stop();
    assert_eq!(machines[0].answered(), QUESTIONS as u64);
    assert_eq!(upstream.accepted(), CONNECTIONS);
    assert_eq!(shared.total().get(Counter::LinksOpened), CONNECTIONS as u64);
    assert!(shared.total().iter().all(|(counter, value)| !counter.is_drop() || value == 0));
}

#[test]
fn links_work_whether_fast_open_is_used_or_not() {
    for listen in ["127.0.0.1:0", "[::1]:0"] {
        for upstream_allows in [false, true] {
            for link_allows in [false, true] {
                round(listen, upstream_allows, link_allows);
            }
        }
    }
}

#[test]
fn questions_travel_with_the_syn_only_where_both_sides_allow_it() {
    if !namespace::is_played_in(
        ENTER,
        "fast_open::questions_travel_with_the_syn_only_where_both_sides_allow_it",
    ) {
        rounds_by_the_counters_of_the_kernel();
    }
}

fn rounds_by_the_counters_of_the_kernel() {
    for listen in ["127.0.0.1:0", "[::1]:0"] {
        for (upstream_allows, link_allows) in [(false, false), (true, false), (false, true)] {
            let before = fast_opens();
            round(listen, upstream_allows, link_allows);
            assert_eq!(fast_opens(), before, "upstream {upstream_allows}, link {link_allows}");
        }
        let (active, passive) = fast_opens();
        round(listen, true, true);
        let (active, passive) = (fast_opens().0 - active, fast_opens().1 - passive);
        // The first connection brings the cookie, which stays valid for all others to that address.
        assert_eq!((active, passive), (CONNECTIONS - 1, CONNECTIONS - 1), "{listen}");
    }
}

/// Connections of this namespace whose SYN carried data that was taken: those made, and those accepted.
fn fast_opens() -> (usize, usize) {
    let text = std::fs::read_to_string("/proc/net/netstat").unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let value = |wanted| {
        let at = names.split(' ').position(|name| name == wanted).unwrap();
        values.split(' ').nth(at).unwrap().parse().unwrap()
    };
    (value("TCPFastOpenActive"), value("TCPFastOpenPassive"))
}
