//! Queries and answers as frames (`datapath = "xdp"`) over virtual Ethernet: the same answers as through sockets, odd packets for the
//! kernel, and the end of the program in the kernel with the server, even if that is killed. Copies without help of a network card
//! (zero copy) cannot be tested here.

mod compare;
mod differential;
mod disturbance;
mod load;
mod names;
mod packet_cache;
mod pipeline;
mod questions;

use sixfold_interop::{
    Authority, CommandOutput, Configuration, Lab, Namespace, Program, Sixfold, address, program, wait_until,
    zones,
};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Addresses of gateway and client, IPv4.
const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);

/// Types of the questions: A, TXT, AAAA, PTR.
const TYPES: [u16; 4] = [1, 16, 28, 12];

/// Configuration lines of the datapath.
const XDP: &str = "datapath = \"xdp\"\ninterfaces = [\"lan\"]\n";

/// A lab with IPv4 for clients. None: this machine cannot have it, or the server is built without XDP.
fn lab() -> Option<Lab> {
    let version = Command::new(program("sixfold")).arg("--version").output().expect("sixfold starts");
    if !String::from_utf8_lossy(&version.stdout).contains(" xdp") {
        kit::skip("this build of sixfold has no XDP (cargo build -p sixfold --features xdp)");
        return None;
    }
    let lab = Lab::new(&["nsd"])?;
    lab.gateway.configure(&format!("addr add {GATEWAY}/24 dev lan"));
    lab.client.configure(&format!("addr add {CLIENT}/24 dev lan"));
    Some(lab)
}

/// Waits until no other test loads the machine: queries may be lost where the processor is needed elsewhere.
fn alone() -> MutexGuard<'static, ()> {
    static LOADED: Mutex<()> = Mutex::new(());
    // A test that has failed leaves nothing behind the lock.
    LOADED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number in an environment variable.
fn number_from(variable: &str, default: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value.map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

fn authority(lab: &Lab) -> Authority<'_> {
    let place = lab.scratch.directory("nsd");
    Authority::start(Program::Nsd, &lab.world, &place, address::FIRST, &zones::plain(&place))
}

fn configuration(lines: &str) -> Configuration {
    // A message of several KiB tells how the longest answers leave.
    Configuration::forwarding_to(&[address::FIRST]).server(lines).dns64("[edns]\nudp-size = 4096\n")
}

/// A question with an OPT record, if a size is given, that has `padding` octets.
fn question(id: u16, name: &str, kind: u16, size: Option<u16>, padding: usize) -> Vec<u8> {
    let (query, zeros) = (kit::Query::new(name, kind).id(id), vec![0; padding]);
    let options: &[(u16, &[u8])] = if padding > 0 { &[(12, &zeros)] } else { &[] };
    size.into_iter().fold(query, |query, size| query.edns(size, options)).octets()
}

/// All questions of the comparison, by their IDs.
fn questions() -> Vec<Vec<u8>> {
    let names = [
        "v4only.lab.test",
        "dual.lab.test",
        "alias.lab.test",
        "far.lab.test",
        "gone.lab.test",
        "large.lab.test",
    ];
    let more =
        ["many.lab.test", "some.lab.test", "text.lab.test", "x.old.lab.test", "ipv4only.arpa", "localhost"];
    let hosts: Vec<String> = (0..40).map(|number| format!("h{number}.lab.test")).collect();
    let names = names.iter().chain(&more).copied().chain(hosts.iter().map(String::as_str));
    let sizes = [None, Some(512), Some(1232), Some(4096)];
    let forms = names.flat_map(|name| TYPES.map(|kind| (name, kind)));
    let all = forms.flat_map(|(name, kind)| sizes.map(|size| (name, kind, size)));
    (1..).zip(all).map(|(id, (name, kind, size))| question(id, name, kind, size, 0)).collect()
}

/// The answers to all questions, one after the other, by address and ID. Each question is repeated until it is answered.
fn answers(lab: &Lab) -> BTreeMap<(SocketAddr, u16), Vec<u8>> {
    let ask = || {
        let mut answers = BTreeMap::new();
        for server in [
            SocketAddr::from((GATEWAY, 53)),
            format!("[{}]:53", address::GATEWAY).parse().expect("an address"),
        ] {
            let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any)
                .and_then(|socket| socket.connect(server).map(|()| socket))
                .expect("a socket");
            socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a time limit");
            for question in questions() {
                let id = u16::from_be_bytes([question[0], question[1]]);
                answers.insert((server, id), exchange(&socket, &question));
            }
        }
        answers
    };
    lab.client.inside(ask)
}

/// Asks until there is an answer, three times at most.
fn exchange(socket: &UdpSocket, question: &[u8]) -> Vec<u8> {
    let mut buffer = [0; 8192];
    for _ in 0..3 {
        socket.send(question).expect("the network is up");
        while let Ok(length) = socket.recv(&mut buffer) {
            if buffer[..2] == question[..2] {
                return buffer[..length].to_vec();
            }
        }
    }
    panic!("no answer to {question:02x?}");
}

/// The message with all TTLs, and each of them.
fn split_ttls(message: &[u8]) -> (Vec<u8>, Vec<u32>) {
    let word = |at: usize| usize::from(u16::from_be_bytes([message[at], message[at + 1]]));
    let skip_name = |mut at: usize| {
        while message[at] != 0 && message[at] & 0xc0 == 0 {
            at += 1 + usize::from(message[at]);
        }
        at + if message[at] == 0 { 1 } else { 2 }
    };
    let (mut masked, mut ttls, mut at) = (message.to_vec(), Vec::new(), 12);
    for _ in 0..word(4) {
        at = skip_name(at) + 4;
    }
    for _ in 0..word(6) + word(8) + word(10) {
        at = skip_name(at);
        if word(at) != 41 {
            ttls.push(u32::from_be_bytes([
                message[at + 4],
                message[at + 5],
                message[at + 6],
                message[at + 7],
            ]));
            masked[at + 4..at + 8].fill(0);
        }
        at += 10 + word(at + 8);
    }
    (masked, ttls)
}

/// UDP datagrams that the kernel of the gateway has handed to sockets, over IPv4 and over IPv6.
fn datagrams_of_sockets(lab: &Lab) -> (u64, u64) {
    let four = lab.gateway.run_checked(&["cat", "/proc/net/snmp"]);
    let four = four
        .lines()
        .filter_map(|line| line.strip_prefix("Udp: "))
        .nth(1)
        .and_then(|line| line.split(' ').next());
    let six = lab.gateway.run_checked(&["cat", "/proc/net/snmp6"]);
    let six = six.lines().find_map(|line| line.strip_prefix("Udp6InDatagrams")).map(str::trim);
    let number =
        |text: Option<&str>| text.and_then(|text| text.parse().ok()).expect("the kernel counts datagrams");
    (number(four), number(six))
}

fn has_program(namespace: &Namespace) -> bool {
    namespace.run_checked(&["ip", "link", "show", "dev", "lan"]).contains("xdp")
}

/// Tries to start a second server, on other ports.
fn second(lab: &Lab, lines: &str) -> CommandOutput {
    let text = format!(
        "[server]\nlisten = [\"[::]:5399\"]\nuser = \"root\"\n{lines}\n[metrics]\nlisten = \"\"\n[control]\nsocket = \"\"\n"
    );
    let file = lab.scratch.write("second.toml", &text);
    lab.gateway.run(&[
        &program("sixfold"),
        "serve",
        "--config",
        &file.to_string_lossy(),
        "--forwarder",
        "192.0.2.53",
    ])
}

#[test]
fn answers_over_frames_are_those_over_sockets_octet_for_octet() {
    let Some(lab) = lab() else { return };
    let _authority = authority(&lab);
    let sixfold = Sixfold::start(&lab, &configuration(""));
    let expected = answers(&lab);
    assert!(sixfold.stop().success());

    let sixfold = Sixfold::start(&lab, &configuration(XDP));
    assert!(
        sixfold.log().contains(
            "XDP on lan: generic mode (the interface is a virtual pair), 1 queue, frames are copied"
        ),
        "{}",
        sixfold.log()
    );
    let (_, before) = datagrams_of_sockets(&lab);
    let found = answers(&lab);
    // Those of upstreams come over IPv4.
    assert_eq!(
        datagrams_of_sockets(&lab).1,
        before,
        "no query over IPv6 has taken the way through the kernel"
    );
    assert_eq!(sixfold.labelled("sixfold_dropped_total")["bad_checksum"], 0);
    assert_eq!(found.len(), 2 * questions().len());
    for (key, answer) in &found {
        let ((masked, ttls), (expected, expected_ttls)) = (split_ttls(answer), split_ttls(&expected[key]));
        assert_eq!(masked, expected, "{key:?}");
        assert!(
            ttls.iter().zip(&expected_ttls).all(|(one, other)| one.abs_diff(*other) <= 1),
            "{key:?}: {ttls:?} {expected_ttls:?}"
        );
    }
    let longest = found.values().map(Vec::len).max();
    assert!(longest > Some(1232), "{longest:?}: an answer has left through a socket, in fragments");
    // The other worker has no queue, and answers what it owns through sockets.
    assert!(sixfold.metric("sixfold_worker_handoffs_total") > 100.0);
    assert!(sixfold.stop().success());
    assert!(!has_program(&lab.gateway));
}

/// An IPv4 packet from the client, with a UDP datagram whose checksum is `checksum`.
fn packet(options: &[u8], checksum: u16, message: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let length = (header + 8 + message.len()) as u16;
    let mut packet = vec![0x40 | (header / 4) as u8, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 1, 0, 0, 64, 17, 0, 0]);
    packet.extend([CLIENT.octets(), GATEWAY.octets()].concat());
    packet.extend(options);
    let udp = [4444, 53, 8 + message.len() as u16, checksum];
    packet.extend(udp.iter().flat_map(|word| word.to_be_bytes()));
    packet.extend(message);
    packet
}

#[test]
fn what_is_odd_reaches_the_sockets_of_the_kernel_and_what_is_damaged_reaches_nobody() {
    let Some(lab) = lab() else { return };
    let sixfold = Sixfold::start(&lab, &configuration(XDP));
    let sockets = || datagrams_of_sockets(&lab);
    let plain = question(1, "localhost", 28, None, 0);
    let ask = |server: SocketAddr, question: &[u8]| {
        let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any)
            .and_then(|socket| socket.connect(server).map(|()| socket))
            .expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a time limit");
        exchange(&socket, question)
    };
    let four = SocketAddr::from((GATEWAY, 53));
    let six: SocketAddr = format!("[{}]:53", address::GATEWAY).parse().expect("an address");
    let before = sockets();
    for server in [four, six] {
        lab.client.inside(|| ask(server, &plain));
    }
    assert_eq!(sockets(), before, "plain questions do not");

    // Longer than a packet, so in fragments.
    let padded = question(2, "localhost", 28, Some(4096), 2500);
    for server in [four, six] {
        lab.client.inside(|| ask(server, &padded));
    }
    assert_eq!(sockets(), (before.0 + 1, before.1 + 1), "fragments do");

    let before = sockets();
    lab.client.inside(|| {
        let answer = UdpSocket::bind((CLIENT, 4444)).expect("a port");
        answer.set_read_timeout(Some(Duration::from_secs(5))).expect("a time limit");
        let raw =
            Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255))).expect("root has raw sockets");
        let send = |packet: &[u8]| {
            raw.send_to(packet, &SocketAddr::from((GATEWAY, 0)).into()).expect("the network is up")
        };
        // The kernel completes the checksum of the header. The first packet has no operation as an option, four times.
        send(&packet(&[1; 4], 0, &plain));
        answer.recv(&mut [0; 512]).expect("an answer to a packet with options");
        send(&packet(&[], 0, &plain));
        answer.recv(&mut [0; 512]).expect("an answer to a packet without a checksum");
        answer.set_read_timeout(Some(Duration::from_millis(300))).expect("a time limit");
        send(&packet(&[], 0x1234, &plain));
        answer.recv(&mut [0; 512]).expect_err("no answer to a damaged packet");
    });
    assert_eq!(sockets(), (before.0 + 1, before.1), "only options do");
    assert!(wait_until(|| sixfold.labelled("sixfold_dropped_total")["bad_checksum"] == 1));
    // Echo requests are answered by the kernel.
    lab.client.run_checked(&["kdig", "+tcp", &format!("@{GATEWAY}"), "localhost"]);
}

#[test]
fn the_program_ends_with_the_server_even_if_that_is_killed() {
    let Some(lab) = lab() else { return };
    for _ in 0..2 {
        let sixfold = Sixfold::start(&lab, &configuration(XDP));
        assert!(has_program(&lab.gateway));
        lab.gateway.run_checked(&["kill", "-s", "KILL", &sixfold.id().to_string()]);
        assert!(wait_until(|| !has_program(&lab.gateway)), "the program is still there");
        drop(sixfold);
    }
}

#[test]
fn an_interface_that_cannot_be_used_is_an_error_with_a_remedy() {
    let Some(lab) = lab() else { return };
    let _sixfold = Sixfold::start(&lab, &configuration(XDP));
    let refused = second(&lab, XDP);
    assert!(!refused.success);
    for words in ["cannot use XDP on lan: it has another XDP program (ID ", "ip link set dev lan xdp off"] {
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    assert!(has_program(&lab.gateway), "the program of the first server stays");
    for (interface, words) in [
        ("no-such-if0", "cannot use XDP on no-such-if0: there is no such interface"),
        ("lo", "cannot use XDP on lo: its packets have no Ethernet header"),
    ] {
        let refused = second(&lab, &XDP.replace("lan", interface));
        assert!(!refused.success && refused.stderr.contains(words), "{}", refused.stderr);
    }
    let socket = lab.scratch.path().join("control.sock");
    let upgrade =
        lab.gateway.run(&[&program("sixfold"), "ctl", "--socket", &socket.to_string_lossy(), "upgrade"]);
    assert!(!upgrade.success && upgrade.stderr.contains("restart the service"), "{}", upgrade.stderr);
}
