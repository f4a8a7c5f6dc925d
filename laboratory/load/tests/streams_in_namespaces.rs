//! Loads over TCP in network namespaces of their own: packets compared with the counters of the interface, TCP Fast Open, and
//! hosts that have no port or no file left.

use crate::device;

use device::stream::{self, Act, right};
use device::{assert_verdict, go, order};
use kit::message::framed;
use kit::namespace;
use measure::order::{Load, Transport};
use measure::outcome::{FastOpen, Outcome, Traffic, Verdict};
use std::net::TcpListener;

/// A namespace with a loopback interface alone, where TCP Fast Open is allowed for clients and servers.
const NAMESPACE: &str = "ip link set lo up && sysctl -qw net.ipv4.tcp_fastopen=3 && exec \"$@\"";

/// Packets and octets that the loopback interface has carried (proc_net(5): the receiving side comes first).
fn carried() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/net/dev").unwrap();
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("lo:")).unwrap();
    let fields: Vec<u64> = line.split_ascii_whitespace().map(|field| field.parse().unwrap()).collect();
    (fields[1], fields[0])
}

/// Runs a load. Returns its outcome, and what the interface carried meanwhile.
fn watched(order: &Load) -> (Outcome, (u64, u64)) {
    let before = carried();
    let outcome = go(order).unwrap();
    let after = carried();
    assert_eq!((outcome.sent, outcome.valid), (400, 400), "{}", outcome.reason);
    (outcome, (after.0 - before.0, after.1 - before.1))
}

fn both_ways(traffic: &Traffic) -> (u64, u64) {
    (traffic.packets_sent + traffic.packets_received, traffic.octets_sent + traffic.octets_received)
}

/// Checks that the tester counted what the interface carried. A connection that is closed counts no more, so a machine that is late
/// with acknowledgements and retransmissions may carry some more packets, each of at most one query.
#[track_caller]
fn assert_counted(counted: (u64, u64), carried: (u64, u64)) {
    let (Some(packets), Some(octets)) = (carried.0.checked_sub(counted.0), carried.1.checked_sub(counted.1))
    else {
        panic!("more was counted than was there: {counted:?} of {carried:?}");
    };
    assert!(packets <= 20 && octets <= 160 * packets, "{counted:?} of {carried:?} were counted");
}

#[test]
fn the_packets_and_octets_of_a_load_are_those_that_the_interface_carried() {
    if namespace::is_played_in(
        NAMESPACE,
        "streams_in_namespaces::the_packets_and_octets_of_a_load_are_those_that_the_interface_carried",
    ) {
        return;
    }
    let server = device::start("127.0.0.1:0", device::right);
    let (outcome, carried) = watched(&order(server.address, 400.0, 1000));
    assert_eq!((outcome.traffic.packets_sent, outcome.traffic.per_query.packets_received), (400, 1.0));
    assert_eq!(both_ways(&outcome.traffic), carried, "udp");
    let server = stream::start(right);
    for transport in [Transport::Tcp, Transport::TcpReuse] {
        let (outcome, carried) = watched(&Load { transport, ..order(server.address, 400.0, 1000) });
        assert_eq!(outcome.traffic.queries, 400, "{transport:?}");
        assert_counted(both_ways(&outcome.traffic), carried);
    }
}

#[test]
fn a_query_travels_in_the_syn_once_the_cookie_is_known() {
    if namespace::is_played_in(
        NAMESPACE,
        "streams_in_namespaces::a_query_travels_in_the_syn_once_the_cookie_is_known",
    ) {
        return;
    }
    let server = stream::start_with_fast_open(right);
    let load = Load { transport: Transport::Tfo, ..order(server.address, 400.0, 1000) };
    let (outcome, carried) = watched(&load);
    let connections = outcome.connections.clone().unwrap();
    let FastOpen { cold, warm, syn_data_acknowledged } = connections.fast_open.unwrap();
    // Queries that are due before the first handshake is over have no cookie either.
    assert!((1..=20).contains(&cold) && cold + warm == 400, "{connections:?}");
    assert_eq!(syn_data_acknowledged, warm);
    // The cookie in the reply to a cold SYN, 12 octets, cannot be seen by the tester's process.
    let (packets, octets) = both_ways(&outcome.traffic);
    assert_counted((packets, octets + 12 * cold), carried);

    // The kernel keeps the cookie.
    let (outcome, carried) = watched(&Load { first_name: 400, ..load.clone() });
    let all_warm = FastOpen { cold: 0, warm: 400, syn_data_acknowledged: 400 };
    assert_eq!(outcome.connections.as_ref().unwrap().fast_open, Some(all_warm));
    assert_counted(both_ways(&outcome.traffic), carried);

    // Fewer packets than without: the reply to the SYN acknowledges the query, too.
    let (plain, _) = watched(&Load { transport: Transport::Tcp, ..load });
    let of = |outcome: &Outcome| outcome.traffic.packets_sent + outcome.traffic.packets_received;
    assert!(of(&outcome) < of(&plain), "{:?} {:?}", outcome.traffic, plain.traffic);
}

#[test]
fn a_server_without_fast_open_is_asked_after_the_handshake() {
    if namespace::is_played_in(
        NAMESPACE,
        "streams_in_namespaces::a_server_without_fast_open_is_asked_after_the_handshake",
    ) {
        return;
    }
    let server = stream::start(right);
    let (outcome, carried) =
        watched(&Load { transport: Transport::Tfo, ..order(server.address, 400.0, 1000) });
    let all_cold = FastOpen { cold: 400, warm: 0, syn_data_acknowledged: 0 };
    assert_eq!(outcome.connections.as_ref().unwrap().fast_open, Some(all_cold));
    // The request for a cookie, 4 octets, is in each SYN; no reply has a cookie.
    assert_counted(both_ways(&outcome.traffic), carried);
}

#[test]
fn fast_open_that_the_host_does_not_allow_is_refused_with_the_remedy() {
    let script = NAMESPACE.replace("fastopen=3", "fastopen=2");
    if namespace::is_played_in(
        &script,
        "streams_in_namespaces::fast_open_that_the_host_does_not_allow_is_refused_with_the_remedy",
    ) {
        return;
    }
    let load = Load { transport: Transport::Tfo, ..order("127.0.0.1:53".parse().unwrap(), 10.0, 100) };
    let error = go(&load).unwrap_err().to_string();
    assert!(error.contains("net.ipv4.tcp_fastopen is 2") && error.contains("sysctl -w"), "{error}");
}

#[test]
fn ports_in_time_wait_are_used_again_and_a_lack_of_ports_is_a_fault_of_the_tester() {
    let script = NAMESPACE.replace("tcp_fastopen=3", "ip_local_port_range=\"40000 40031\"");
    if namespace::is_played_in(
        &script,
        "streams_in_namespaces::ports_in_time_wait_are_used_again_and_a_lack_of_ports_is_a_fault_of_the_tester",
    ) {
        return;
    }
    let over_tcp = |server| Load { transport: Transport::Tcp, ..order(server, 400.0, 1000) };
    // 400 connections from 32 ports; each then stays in TIME-WAIT.
    let (outcome, _) = watched(&over_tcp(stream::start(right).address));
    assert_verdict(&outcome, Verdict::Pass, "");

    // A device that never answers: all ports but its own have a connection after 80 ms.
    let silent = stream::start(|_| vec![]);
    let outcome = go(&over_tcp(silent.address)).unwrap();
    assert_eq!((outcome.sent, outcome.lost, outcome.tester.send_errors), (31, 31, 369));
    assert_eq!(outcome.verdict, Verdict::TesterLimited);
    assert!(
        outcome.reason.contains("no local port is free: use more source addresses"),
        "{}",
        outcome.reason
    );
    let mut more = over_tcp(silent.address);
    more.lanes.sources = (1..=20).map(|last| [127, 0, 0, last].into()).collect();
    assert_eq!(go(&more).unwrap().sent, 400);
}

#[test]
fn a_lack_of_descriptors_is_a_fault_of_the_tester() {
    let script = format!("ulimit -n 200; {NAMESPACE}");
    if namespace::is_played_in(
        &script,
        "streams_in_namespaces::a_lack_of_descriptors_is_a_fault_of_the_tester",
    ) {
        return;
    }
    // The kernel completes the handshakes, and nobody takes the connections.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    socket2::SockRef::from(&listener).listen(4096).unwrap();
    let load = Load { transport: Transport::Tcp, ..order(listener.local_addr().unwrap(), 400.0, 1000) };
    let outcome = go(&load).unwrap();
    // 200 less 64 for other things.
    assert_eq!((outcome.sent, outcome.tester.send_errors), (136, 264));
    assert_eq!(outcome.verdict, Verdict::TesterLimited);
    assert!(outcome.reason.contains("raise the limit of open files (ulimit -n)"), "{}", outcome.reason);

    let mut many = Load { transport: Transport::TcpReuse, ..load };
    many.lanes.connections = 200;
    let error = go(&many).unwrap_err().to_string();
    assert!(error.contains("ulimit -n"), "{error}");
}

#[test]
fn a_large_answer_comes_over_tcp_in_full() {
    // 300 records of 28 octets do not fit a datagram of 4,096 octets.
    let server = stream::start(|query| {
        let mut message = query.message.to_vec();
        (message[2], message[3]) = (0x81, 0x80);
        message[6..8].copy_from_slice(&300u16.to_be_bytes());
        for step in 0..300u32 {
            let address = 0x0a00_0000 + query.number as u32 + step;
            message.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16, 0, 0x64, 0xff, 0x9b]);
            message.extend([0; 8]);
            message.extend(address.to_be_bytes());
        }
        vec![Act::Octets(framed(&message))]
    });
    let mut load = Load { transport: Transport::Tcp, ..order(server.address, 100.0, 200) };
    load.expect.addresses = 300;
    let outcome = go(&load).unwrap();
    assert_eq!((outcome.sent, outcome.valid), (20, 20), "{}", outcome.reason);
    load.transport = Transport::Udp;
    assert!(go(&load).unwrap_err().to_string().contains("the maximum over UDP is 4096"));
}
