//! The packet cache of the XDP program: the answers that it gives are the server's, they are counted, and they end with a flush, with
//! other settings, and while somebody traces.

use super::{CLIENT, GATEWAY, XDP, authority, configuration, exchange, lab, question, split_ttls};
use sixfold_interop::{Authority, Lab, Sixfold, address, program, wait_until};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Line of the log after a reload.
const RELOADED: &str = "configuration reloaded";
/// Type AAAA.
const AAAA: u16 = 28;
/// The limit of a wait. The server pauses the packet cache for a second after each change.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server with frames, and the authority behind it.
fn start(lab: &Lab) -> (Authority<'_>, Sixfold<'_>) {
    (authority(lab), Sixfold::start(lab, &configuration(XDP)))
}

fn kernel_hits(sixfold: &Sixfold<'_>) -> u64 {
    sixfold.labelled("sixfold_cache_hits_total")["kernel"]
}

/// A socket in the client's namespace, connected to the server over IPv4 or IPv6.
fn connect(lab: &Lab, ipv4: bool) -> UdpSocket {
    let server = match ipv4 {
        true => SocketAddr::from((GATEWAY, 53)),
        false => format!("[{}]:53", address::GATEWAY).parse().expect("an address"),
    };
    lab.client.inside(|| {
        let socket = UdpSocket::bind(if ipv4 { "0.0.0.0:0" } else { "[::]:0" }).expect("a socket");
        socket.connect(server).expect("the server has an address");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a time limit");
        socket
    })
}

/// Asks until an answer comes from the packet cache: true; false if none did in this time.
fn becomes_popular(sixfold: &Sixfold<'_>, socket: &UdpSocket, question: &[u8], patience: Duration) -> bool {
    let (end, before) = (Instant::now() + patience, kernel_hits(sixfold));
    while Instant::now() < end {
        (0..8).for_each(|_| drop(exchange(socket, question)));
        if kernel_hits(sixfold) > before {
            return true;
        }
    }
    false
}

/// Asks a popular question, and waits until its hits are counted. Returns the answer.
fn ask_popular(sixfold: &Sixfold<'_>, socket: &UdpSocket, question: &[u8]) -> Vec<u8> {
    assert!(becomes_popular(sixfold, socket, question, PATIENCE), "the program does not answer");
    exchange(socket, question)
}

#[test]
fn the_program_s_answers_are_those_of_the_server_and_are_counted() {
    let Some(lab) = lab() else { return };
    let (_authority, sixfold) = start(&lab);
    let names = [
        "v4only.lab.test",
        "dual.lab.test",
        "alias.lab.test",
        "gone.lab.test",
        "many.lab.test",
        "x.old.lab.test",
    ];
    for (id, name) in (1u16..).zip(names) {
        for (kind, size) in [AAAA, 1, 16].into_iter().flat_map(|kind| [(kind, None), (kind, Some(1232))]) {
            for ipv4 in [true, false] {
                let socket = connect(&lab, ipv4);
                let question = question(id, name, kind, size, 0);
                // Some answers of these names are longer than the packet cache takes.
                let (expected, ttls) = split_ttls(&exchange(&socket, &question));
                for _ in 0..12 {
                    let (answer, lowered) = split_ttls(&exchange(&socket, &question));
                    assert_eq!(answer, expected, "{name} {kind} {size:?}");
                    assert!(
                        ttls.iter().zip(&lowered).all(|(before, after)| before - after <= 3),
                        "{ttls:?} {lowered:?}"
                    );
                }
            }
        }
    }
    let socket = connect(&lab, true);
    let plain = question(7, "v4only.lab.test", AAAA, None, 0);
    ask_popular(&sixfold, &socket, &plain);
    // Each answer is counted once, wherever it was given.
    let queries = || sixfold.metric("sixfold_client_packets_in_total");
    let answers = || sixfold.metric("sixfold_client_packets_out_total");
    // Hits are counted once a second: wait until all are.
    let is_settled = || {
        let before = queries();
        std::thread::sleep(Duration::from_secs(2));
        queries() == before
    };
    assert!(wait_until(is_settled));
    let (asked, hits) = (queries(), kernel_hits(&sixfold));
    (0..50).for_each(|_| drop(exchange(&socket, &plain)));
    assert!(
        wait_until(|| queries() == asked + 50.0 && answers() == asked + 50.0),
        "{asked} {} {}",
        queries(),
        answers()
    );
    assert!(kernel_hits(&sixfold) >= hits + 40, "{hits} {}", kernel_hits(&sixfold));
    assert_eq!(sixfold.labelled("sixfold_dropped_total")["bad_checksum"], 0);
}

#[test]
fn letter_case_and_id_are_the_client_s() {
    let Some(lab) = lab() else { return };
    let (_authority, sixfold) = start(&lab);
    let socket = connect(&lab, false);
    ask_popular(&sixfold, &socket, &question(1, "v4only.lab.test", AAAA, None, 0));
    for (id, name) in [(0xabcd, "V4ONLY.lab.TEST"), (0xffff, "v4OnLy.LaB.tEsT")] {
        let asked = question(id, name, AAAA, None, 0);
        let answer = exchange(&socket, &asked);
        assert_eq!(answer[..2], asked[..2]);
        assert_eq!(answer[12..asked.len()], asked[12..], "the question as the client wrote it");
        assert!(answer.len() > asked.len());
    }
}

/// Changes a part of the configuration, and reloads it.
pub fn edit(lab: &Lab, sixfold: &Sixfold<'_>, from: &str, to: &str) {
    let file = lab.scratch.path().join("sixfold.toml");
    let text = std::fs::read_to_string(&file).expect("the configuration is there");
    assert!(text.contains(from), "{from}: {text}");
    lab.scratch.write("sixfold.toml", &text.replace(from, to));
    let reloads = || sixfold.log().matches(RELOADED).count();
    let before = reloads();
    lab.gateway.run_checked(&["kill", "-s", "HUP", &sixfold.id().to_string()]);
    assert!(wait_until(|| reloads() > before), "{}", sixfold.log());
}

/// Removes a name from the cache.
pub fn flush(lab: &Lab, name: &str) {
    let socket = lab.scratch.path().join("control.sock");
    lab.gateway.run_checked(&[
        &program("sixfold"),
        "ctl",
        "--socket",
        &socket.to_string_lossy(),
        "flush",
        name,
    ]);
}

#[test]
fn a_flush_and_other_settings_end_the_program_s_answers_at_once() {
    let Some(lab) = lab() else { return };
    let (_authority, sixfold) = start(&lab);
    let socket = connect(&lab, true);
    let plain = question(1, "v4only.lab.test", AAAA, None, 0);
    ask_popular(&sixfold, &socket, &plain);
    let misses = || sixfold.metric("sixfold_cache_misses_total");
    let before = misses();
    flush(&lab, "v4only.lab.test");
    exchange(&socket, &plain);
    assert!(wait_until(|| misses() > before), "the first question after a flush goes upstream");
    ask_popular(&sixfold, &socket, &plain);

    let has = |message: &[u8], prefix: [u8; 12]| message.windows(12).any(|octets| octets == prefix);
    let prefix = |network: u8| [0x20, 1, 0x0d, 0xb8, 0, network, 0, 0, 0, 0, 0, 0];
    assert!(has(&exchange(&socket, &plain), prefix(0x64)));
    edit(&lab, &sixfold, address::PREFIX, "2001:db8:77::/96");
    assert!(has(&exchange(&socket, &plain), prefix(0x77)), "the new prefix holds from the reload on");
    ask_popular(&sixfold, &socket, &plain);

    let rcode = |message: &[u8]| message[3] & 15;
    edit(&lab, &sixfold, ", \"192.0.2.0/24\"]", ", \"192.0.2.128/25\", \"198.51.100.0/24\"]");
    assert_eq!(rcode(&exchange(&socket, &plain)), 5, "{CLIENT} is not allowed any more");
    let allowed = connect(&lab, false);
    ask_popular(&sixfold, &allowed, &plain);
    assert_eq!(rcode(&exchange(&socket, &plain)), 5, "even if the program answers others");
}

#[test]
fn with_a_rate_limit_the_server_sees_each_query() {
    let Some(lab) = lab() else { return };
    let (_authority, sixfold) = start(&lab);
    let socket = connect(&lab, true);
    let plain = question(1, "v4only.lab.test", AAAA, None, 0);
    ask_popular(&sixfold, &socket, &plain);
    edit(&lab, &sixfold, "[metrics]", "[limits]\nqueries-per-client = 1000000\n[metrics]");
    assert!(wait_until(|| kernel_hits(&sixfold) > 0));
    std::thread::sleep(Duration::from_secs(1));
    assert!(!becomes_popular(&sixfold, &socket, &plain, Duration::from_secs(3)));
}

#[test]
fn datagrams_that_a_sender_leaves_to_its_card_to_take_apart_are_told_apart() {
    let Some(lab) = lab() else { return };
    let (_authority, _sixfold) = start(&lab);
    let names = lab.scratch.write("names.txt", "v4only.lab.test AAAA\ndual.lab.test A\nh7.lab.test AAAA\n");
    // Queries that are due together leave with one system call (UDP_SEGMENT), and cross a virtual pair in one piece.
    let server = format!("{GATEWAY}:53");
    let names = names.to_string_lossy();
    let load = [&program("sixfold-bench"), "load", "--server", &server, "--queries", &names];
    let rate = ["--rate", "2000", "--burst", "16", "--duration", "2s", "--timeout", "5s", "--quiet"];
    lab.client.run_checked(&[&load[..], &rate].concat());
}
