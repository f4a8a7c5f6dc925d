//! Differential run: two servers with one configuration, but that one gets its queries as frames and the other through sockets, answer
//! the same generated questions octet for octet alike.
//!
//! ```text
//!     client A -- gateway A (xdp)     -- world A
//!     client B -- gateway B (sockets) -- world B      the same addresses and ports in A and B
//! ```
//!
//! The number of questions is that of `SIXFOLD_XDP_QUESTIONS`, the seed that of `SIXFOLD_XDP_SEED`. A long run takes a release build:
//!
//! ```text
//!     cargo build --profile dist -p sixfold --features xdp
//!     SIXFOLD_XDP_QUESTIONS=10000000 cargo test --profile dist -p sixfold-interop --test namespaces xdp::differential -- --nocapture
//! ```

use super::{CLIENT, GATEWAY, XDP, alone, datagrams_of_sockets, lab, number_from};
use crate::xdp::names;
use crate::xdp::pipeline::{Pipeline, Report};
use crate::xdp::questions::{self, PORTS, Questions};
use sixfold_interop::{Authority, Configuration, Lab, Program, Sixfold, address, zones::Zone};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Questions of a short run.
const QUESTIONS: u64 = 20_000;

/// First source port.
const FIRST_PORT: u16 = 40_001;

/// Share of the queries over IPv6 that may reach the sockets of the server with frames. In generic mode these are all but the plain ones.
const BY_SOCKETS: f64 = 0.3;

/// Cache of both servers, with room for all names of a long run: the time at which an entry makes room for another depends on the secret
/// key of the cache, and then the answers have other TTLs.
const CACHE: &str = "size = \"512MiB\"\n";

/// Lines of both servers: one cookie secret, and no limit for the only client. The limits are off by default, but that of pending
/// queries.
const LINES: &str =
    "[edns]\ncookie-secret = \"000102030405060708090a0b0c0d0e0f\"\n[limits]\npending-per-client = 65536\n";

fn authority(lab: &Lab) -> Authority<'_> {
    let place = lab.scratch.directory("nsd");
    let file = place.join("root.zone");
    std::fs::write(&file, names::zone()).expect("the scratch directory can be written to");
    let zone = Zone { name: ".", file, anchor: None };
    Authority::start(Program::Nsd, &lab.world, &place, address::FIRST, &[zone])
}

/// Sockets of the client, by turns for IPv4 and IPv6.
fn sockets(lab: &Lab) -> Vec<UdpSocket> {
    let addresses: [IpAddr; 2] = [CLIENT.into(), address::CLIENT.parse().expect("an address")];
    let bind = |place| {
        let address = (addresses[place % 2], FIRST_PORT + place as u16);
        UdpSocket::bind(address).expect("a port of a new namespace is free")
    };
    lab.client.inside(|| (0..PORTS).map(bind).collect())
}

/// Asks each question about the set once, so that both caches hold the answers.
fn fill(pipeline: &mut Pipeline) -> Report {
    let (mut report, mut round) = (Report::default(), questions::round().zip((0..PORTS).cycle()));
    pipeline.run(|_| round.next().map(|(message, port)| (port, message)), &mut report);
    report
}

#[test]
fn generated_questions_get_the_same_answers_as_frames_and_through_sockets() {
    let (Some(frames), Some(others)) = (lab(), lab()) else { return };
    let _alone = alone();
    let _authorities = [&frames, &others].map(authority);
    let configuration = |lines| {
        let plain = Configuration::forwarding_to(&[address::FIRST]).server(lines).dns64(LINES);
        Configuration { cache: CACHE, ..plain }
    };
    let with_frames = Sixfold::start(&frames, &configuration(XDP));
    let with_sockets = Sixfold::start(&others, &configuration(""));
    let servers: [IpAddr; 2] = [GATEWAY.into(), address::GATEWAY.parse().expect("an address")];
    let mut pipeline = Pipeline::new(
        [sockets(&frames), sockets(&others)],
        servers.map(|server| SocketAddr::new(server, 53)),
    );
    let filled = fill(&mut pipeline);
    println!("first round: {filled}");
    assert_eq!(filled.differences, 0, "{filled}");

    let (wanted, seed) =
        (number_from("SIXFOLD_XDP_QUESTIONS", QUESTIONS), number_from("SIXFOLD_XDP_SEED", 1));
    let (mut report, mut questions) = (Report::default(), Questions::new(seed));
    let (_, before) = datagrams_of_sockets(&frames);
    let (mut asked, start) = (0, Instant::now());
    let next = |cookies: &_| {
        asked += 1;
        (asked <= wanted).then(|| questions.next(cookies))
    };
    pipeline.run(next, &mut report);
    let rate = wanted as f64 / start.elapsed().as_secs_f64();
    // Hits are counted once a second.
    std::thread::sleep(Duration::from_secs(2));
    let by_program = with_frames.labelled("sixfold_cache_hits_total")["kernel"];
    println!("seed {seed}, {rate:.0} questions/s, {by_program} answers by the program: {report}");
    assert_eq!((report.questions, report.differences), (wanted, 0), "{report}");
    assert!(report.answered > wanted * 8 / 10, "most questions have answers: {report}");
    assert!(by_program > wanted / 20, "{by_program} answers by the program");
    // Replies of upstreams come over IPv4.
    let by_sockets = datagrams_of_sockets(&frames).1 - before;
    assert!((by_sockets as f64) < BY_SOCKETS * wanted as f64, "{by_sockets} queries by sockets");
    assert!(with_frames.stop().success() && with_sockets.stop().success());
}
