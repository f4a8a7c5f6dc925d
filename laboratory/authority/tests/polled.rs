//! The server that its owner polls, and faults and counters as a client sees them.

use sixfold_authority::{Failure, Faults, Kind, PolledServer, Server, Settings, Zone, read_counters};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};
use wire::{Class, Flags, Message, Rcode, Section, Type, header};

/// Far longer than any step of these tests takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

fn settings() -> Settings {
    Settings::new(Zone::new("demo.test").unwrap())
}

fn polled(listen: &str, settings: &Settings) -> PolledServer {
    PolledServer::new(&[listen.parse().unwrap()], settings).unwrap()
}

fn question(id: u16, name: &str, qtype: Type, class: Class) -> Vec<u8> {
    kit::Query::new(name, qtype.0).id(id).flags(0).class(class.0).octets()
}

fn address(id: u16, number: u16) -> Vec<u8> {
    question(id, &format!("10-0-{}-{}.demo.test", number >> 8, number & 255), Type::A, Class::IN)
}

fn client(server: SocketAddr) -> UdpSocket {
    kit::client::udp(kit::client::unspecified(server), server)
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    kit::client::receive(socket, TEST_TIMEOUT).unwrap()
}

/// Polls until `count` messages are handled.
fn drive(polled: &mut PolledServer, count: usize) {
    let begin = Instant::now();
    let mut handled = 0;
    while handled < count {
        assert!(begin.elapsed() < TEST_TIMEOUT, "{handled} of {count}");
        handled += polled.poll();
    }
    assert_eq!(handled, count);
}

#[test]
fn its_owner_answers_waiting_queries_when_it_polls() {
    for listen in ["127.0.0.1:0", "[::1]:0"] {
        let mut polled = polled(listen, &settings());
        assert_eq!((polled.poll(), polled.deadline(), polled.descriptors().count()), (0, None, 1));
        let client = client(polled.addresses()[0]);
        for number in 0..100 {
            client.send(&address(number, number)).unwrap();
        }
        drive(&mut polled, 100);
        for number in 0..100 {
            let answer = receive(&client);
            let message = Message::parse(&answer).unwrap();
            let record = message.records(Section::Answer).next().unwrap();
            assert_eq!(record.address4().unwrap()[2..], message.id().to_be_bytes(), "{number}");
        }
        assert_eq!(polled.counters().total(Kind::Address4), 100);
    }
}

#[test]
fn a_delayed_answer_comes_when_it_is_due_and_not_before() {
    let delay = Duration::from_millis(30);
    let mut polled =
        polled("127.0.0.1:0", &settings().faults(Faults::new(1).delay(delay, Duration::from_millis(5))));
    let client = client(polled.addresses()[0]);
    let begin = Instant::now();
    for number in 0..50 {
        client.send(&address(number, number)).unwrap();
    }
    drive(&mut polled, 50);
    let due = polled.deadline().expect("something waits");
    assert_eq!(polled.counters().total(Kind::Address4), 0);
    drive(&mut polled, 50);
    assert!(begin.elapsed() >= delay, "{:?}", begin.elapsed());
    assert!(datapath::now() >= due && polled.deadline().is_none());
    let mut ids: Vec<_> = (0..50).map(|_| header::id(&receive(&client))).collect();
    ids.sort();
    assert_eq!(ids, (0..50).collect::<Vec<_>>());
    let totals: Vec<_> = polled.counters().totals().collect();
    assert!(totals.contains(&("delayed", 50)) && totals.contains(&("asked_a", 50)), "{totals:?}");
}

#[test]
fn lost_and_failed_queries_are_counted_and_the_same_with_the_same_seed() {
    let run = || {
        let faults = ["servfail=0.2", "timeout=0.2:A", "truncate=0.2"]
            .into_iter()
            .fold(Faults::new(42).loss(0.2), |faults, text| {
                faults.fail(text.parse::<Failure>().unwrap()).unwrap()
            });
        let mut polled = polled("[::1]:0", &settings().faults(faults));
        let client = client(polled.addresses()[0]);
        client.set_nonblocking(true).unwrap();
        let mut buffer = [0; 512];
        let mut outcome = Vec::new();
        for group in 0..20 {
            for number in group * 50..(group + 1) * 50 {
                client.send(&address(number, number)).unwrap();
            }
            drive(&mut polled, 50);
            while let Ok(length) = client.recv(&mut buffer) {
                let flags = Message::parse(&buffer[..length]).unwrap().flags();
                outcome.push((header::id(&buffer), flags.rcode(), flags.contains(Flags::TC)));
            }
        }
        outcome.sort();
        let total = |kind| polled.counters().total(kind) as usize;
        let of = |rcode, cut| outcome.iter().filter(|(_, r, tc)| (*r, *tc) == (rcode, cut)).count();
        assert_eq!(of(Rcode::SERVFAIL, false), total(Kind::FaultServfail));
        assert_eq!(of(Rcode::NOERROR, true), total(Kind::FaultTruncated));
        assert_eq!(of(Rcode::NOERROR, false), total(Kind::Address4));
        assert_eq!(1000 - outcome.len(), total(Kind::FaultLoss) + total(Kind::FaultTimeout));
        // Five standard deviations of a binomial distribution: 1,000 draws of 0.2, or of 0.8 x 0.2.
        assert!((137..=263).contains(&total(Kind::FaultLoss)), "{}", total(Kind::FaultLoss));
        for kind in [Kind::FaultServfail, Kind::FaultTruncated, Kind::FaultTimeout] {
            assert!((102..=218).contains(&total(kind)), "{kind:?}: {}", total(kind));
        }
        outcome
    };
    assert_eq!(run(), run());
}

#[test]
fn faults_over_tcp_are_those_of_the_name_without_loss() {
    use std::io::Write;
    let faults = Faults::new(5)
        .loss(1.0)
        .fail("truncate=1:A".parse().unwrap())
        .unwrap()
        .fail("servfail=1:AAAA".parse().unwrap())
        .unwrap()
        .fail("timeout=1:TXT".parse().unwrap())
        .unwrap()
        .delay(Duration::from_millis(20), Duration::ZERO);
    let server = Server::with(&["127.0.0.1:0".parse().unwrap()], &settings().faults(faults)).unwrap();
    let mut stream = TcpStream::connect(server.addresses()[0]).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let begin = Instant::now();
    for (id, qtype) in [(1, Type::TXT), (2, Type::AAAA), (3, Type::A)] {
        let question = question(id, "10-0-0-1.demo.test", qtype, Class::IN);
        stream.write_all(&kit::message::framed(&question)).unwrap();
    }
    let mut answers = Vec::new();
    for _ in 0..2 {
        let answer = kit::message::read_frame(&mut stream).unwrap();
        let flags = header::flags(&answer);
        answers.push((
            header::id(&answer),
            flags.rcode(),
            flags.contains(Flags::TC),
            header::ancount(&answer),
        ));
    }
    assert_eq!(answers, [(2, Rcode::SERVFAIL, false, 0), (3, Rcode::NOERROR, false, 1)]);
    assert!(begin.elapsed() >= Duration::from_millis(20));
    assert_eq!((server.answers(Kind::FaultTimeout), server.answers(Kind::FaultLoss)), (1, 0));
}

#[test]
fn the_counters_can_be_asked_for_over_udp_and_tcp() {
    let server = Server::with(&["127.0.0.1:0".parse().unwrap()], &settings().threads(3)).unwrap();
    let at = server.addresses()[0];
    let client = client(at);
    for number in 0..10 {
        client.send(&address(number, number)).unwrap();
        receive(&client);
    }
    client.send(&question(1, "10-0-0-1.demo.test", Type::AAAA, Class::IN)).unwrap();
    receive(&client);
    let counters = read_counters(at, TEST_TIMEOUT).unwrap();
    for (name, value) in
        [("address4", 10), ("nodata", 1), ("asked_a", 10), ("asked_aaaa", 1), ("queue_overflow", 0)]
    {
        assert_eq!(counters.get(name), Some(&value), "{counters:?}");
    }
    let mut large = question(9, "Counters.Authority", Type::TXT, Class::CH);
    header::set_arcount(&mut large, 1);
    let mut opt = [0; wire::OPT_LEN];
    wire::write_opt(&mut opt, 1232, 0, 0, false, None).unwrap();
    large.extend_from_slice(&opt);
    client.send(&large).unwrap();
    let answer = receive(&client);
    let message = Message::parse(&answer).unwrap();
    let record = message.records(Section::Answer).next().unwrap();
    let text = String::from_utf8_lossy(record.rdata()).into_owned();
    assert!(text.contains("address4=10") && text.contains("counters=1"), "{text}");
    // Other names and types of the class are refused.
    for (name, qtype) in [("version.bind", Type::TXT), ("counters.authority", Type::A)] {
        client.send(&question(9, name, qtype, Class::CH)).unwrap();
        assert_eq!(header::flags(&receive(&client)).rcode(), Rcode::REFUSED);
    }
}

#[test]
fn every_thread_has_its_share_when_the_kernel_steers_by_name() {
    let settings = settings().threads(2).steer(sixfold_authority::Steer::Name);
    let server =
        Server::with(&["[::1]:0".parse().unwrap(), "127.0.0.1:0".parse().unwrap()], &settings).unwrap();
    for &at in server.addresses() {
        // One source port: steered by flow, one thread would get everything.
        let client = client(at);
        for number in 0..200 {
            client.send(&address(number, number)).unwrap();
            assert_eq!(header::id(&receive(&client)), number);
        }
    }
    assert_eq!(server.answers(Kind::Address4), 400);
}

#[test]
fn a_core_that_does_not_exist_is_an_error_that_names_it() {
    let error = Server::with(&["127.0.0.1:0".parse().unwrap()], &settings().pins(vec![99_999])).unwrap_err();
    assert!(error.to_string().contains("core 99999"), "{error}");
}
