//! DNS over T/TCP between two namespaces: stub, link, relay, server.

use ::ttcp::Settings;
use authority::{Content, Records, Server, Zone};
use netem::{Delay, Impairments, Loss};
use sixfold_bench::ttcp_dns::relay::{Relay, RelayCounts};
use sixfold_bench::ttcp_dns::stub::Stub;
use sixfold_bench::ttcp_dns::testbed::{PORT, Testbed, packets, ttcp_server};
use sixfold_bench::ttcp_dns::upstream::Upstream;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A generous time limit: the machine may be slow.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Namespaces with a link; none where this machine cannot make them.
fn testbed() -> Option<Testbed> {
    match Testbed::new() {
        Ok(testbed) => Some(testbed),
        Err(why) if why.contains("needs root") => {
            kit::skip(&why);
            None
        }
        Err(why) => panic!("{why}"),
    }
}

/// A stub on the left, a relay on the right with a server on its loopback.
fn with_relay(
    testbed: &Testbed,
    content: impl Into<Content>,
    impairments: Impairments,
    work: impl FnOnce(&mut Stub),
) -> (RelayCounts, u64) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let content = content.into();
    let server = testbed.right().run(|| Server::start(&[address], content, 1).map_err(|e| e.to_string()));
    let server = server.expect("a free port");
    with_relay_to(testbed, server.addresses()[0], impairments, work)
}

/// A stub on the left, a relay on the right to a server on its loopback.
fn with_relay_to(
    testbed: &Testbed,
    server: SocketAddr,
    impairments: Impairments,
    work: impl FnOnce(&mut Stub),
) -> (RelayCounts, u64) {
    let settings = |last_count| Settings { last_count, ..Settings::default() };
    let upstream = Upstream::new(testbed.right(), server).expect("a socket");
    let relay =
        Relay::start(testbed.host(1, settings(1), 1).expect("an interface"), upstream).expect("starts");
    let mut stub = Stub::new(testbed.host(0, settings(2), 2).expect("an interface"), ttcp_server());
    let ((), achieved) = testbed
        .during(impairments, 1, || {
            work(&mut stub);
            stub.idle(Duration::from_millis(50))
        })
        .expect("a link");
    (relay.end().expect("counts"), packets(&achieved))
}

#[test]
fn a_question_over_t_tcp_gets_the_right_answer() {
    let Some(testbed) = testbed() else { return };
    let zone = Zone::new("dns64perf.test").expect("a name");
    let direct = zone.clone();
    let delay = Delay { mean: Duration::from_millis(5), ..Delay::default() };
    let link = Impairments { delay, ..Impairments::default() };
    let (counts, packets) = with_relay(&testbed, zone, link, |stub| {
        for id in [7, 8, 9, 65_535] {
            let asked = kit::query(id, "000-000-000-001.dns64perf.test", 1);
            let mut expected = vec![0; 65_535];
            let octets = direct.answer(&asked, 65_535, &mut expected).expect("an answer");
            let answer = stub.ask(&asked, TIME_LIMIT).expect("an answer");
            assert_eq!(answer, expected[..octets], "ID {id}");
        }
        assert_eq!(stub.stack().counts().malformed, 0);
    });
    assert_eq!((counts.server.requests, counts.server.answers, counts.upstream.sent), (4, 4, 4));
    // The first question fills the caches: 6 segments, later ones 3. More if the machine stalls for longer than a timer.
    assert_eq!(counts.server.transactions, 3);
    assert!(packets >= 6 + 3 * 3, "{packets} packets");
}

/// Sixfold with its demonstration authority, in the namespace of the relay. It is killed when this is dropped.
struct Sixfold(Child);

impl Sixfold {
    /// Starts the program and waits for its line that says that it is ready.
    fn start(testbed: &Testbed, program: &Path, listen: SocketAddr) -> Sixfold {
        let child = testbed.right().run(|| {
            let mut command = Command::new(program);
            command.args(["serve", "--demo", "--listen", &listen.to_string()]);
            command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().map_err(|error| error.to_string())
        });
        let mut sixfold = Sixfold(child.expect("starts"));
        let lines = BufReader::new(sixfold.0.stderr.take().expect("a pipe")).lines();
        let is_ready = lines.map_while(Result::ok).any(|line| line.starts_with("sixfold: ready"));
        assert!(is_ready, "Sixfold ended before it was ready");
        sixfold
    }
}

impl Drop for Sixfold {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_question_over_t_tcp_reaches_sixfold_and_is_synthesized() {
    let Some(testbed) = testbed() else { return };
    let program = Path::new(env!("CARGO_BIN_EXE_sixfold-bench")).with_file_name("sixfold");
    if !program.is_file() {
        return kit::missing("sixfold", "cargo build -p sixfold");
    }
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 5364));
    let _sixfold = Sixfold::start(&testbed, &program, listen);
    let delay = Delay { mean: Duration::from_millis(5), ..Delay::default() };
    let (counts, _) =
        with_relay_to(&testbed, listen, Impairments { delay, ..Impairments::default() }, |stub| {
            for id in [1, 2] {
                let answer =
                    stub.ask(&kit::query(id, "198-51-100-7.demo.test", 28), TIME_LIMIT).expect("an answer");
                // One AAAA record (RFC 3596: 16 octets), with the IPv4 address at its end.
                assert_eq!((&answer[..2], &answer[6..8]), (&id.to_be_bytes()[..], &[0, 1][..]));
                let records = &answer[answer.len() - 18..];
                assert_eq!(
                    (&records[..2], &records[14..]),
                    (&[0, 16][..], &[198, 51, 100, 7][..]),
                    "{answer:02x?}"
                );
            }
        });
    assert_eq!((counts.server.requests, counts.server.answers, counts.server.transactions), (2, 2, 1));
}

#[test]
fn a_truncated_answer_is_fetched_over_tcp_and_a_bad_link_loses_no_question() {
    let Some(testbed) = testbed() else { return };
    let mut file =
        "$ORIGIN big.test.\n@ 60 IN SOA ns.big.test. root.big.test. 1 2 3 4 5\n@ NS ns\n".to_owned();
    // 100 addresses of 16 octets do not fit into 512 octets.
    for host in 1..=100 {
        file += &format!("many 60 IN A 192.0.2.{host}\n");
    }
    let records = Records::parse(file.as_bytes()).expect("a zone");
    let link = Impairments { loss: Loss::Independent(0.05), reorder: 0.05, ..Impairments::default() };
    let (counts, _) = with_relay(&testbed, records, link, |stub| {
        for id in 0..5 {
            let answer = stub.ask(&kit::query(id, "many.big.test", 1), TIME_LIMIT).expect("an answer");
            assert_eq!(answer[..2], id.to_be_bytes());
            assert!(answer.len() > 1600 && answer[2] & 2 == 0, "{} octets, whole", answer.len());
            assert_eq!(answer[6..8], 100u16.to_be_bytes(), "records of the answer");
        }
    });
    assert_eq!(counts.upstream.truncated, 5);
    assert_eq!(counts.upstream.unanswered, 0);
}
