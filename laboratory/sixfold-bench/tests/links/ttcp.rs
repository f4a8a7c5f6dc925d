//! The laboratory's TCP talks with the kernel's, in both directions and over bad links, with T/TCP on and off.

use super::namespaces::Ends;
use ::ttcp::{Connection, Event, Failure, Listen, Settings, Stack};
use kit::namespace::within;
use netem::{Delay, Direction, Impairments, Loss};
use sixfold_bench::link::interface;
use sixfold_bench::link::ttcp_host::TtcpHost;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

const TIME_LIMIT: Duration = Duration::from_secs(60);
const PORT: u16 = 5300;

/// Addresses of the host (its own, the kernel's), by family.
const FAMILIES: [(&str, &str); 2] = [("198.18.0.2", "198.18.0.1"), ("2001:2::2", "2001:2::1")];

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// A host behind an interface of the left namespace.
fn host(ends: &Ends, transactions: bool, impairments: Impairments) -> TtcpHost {
    let namespace = ends.left.name().parse().expect("a namespace");
    let addresses = ["198.18.0.1/30".to_owned(), "2001:2::1/126".to_owned()];
    let device = interface::open(&namespace, &addresses, 1500).expect("an interface");
    let settings = Settings { transactions, shortest_rto: Duration::from_millis(200), ..Settings::default() };
    let own: Vec<IpAddr> = FAMILIES.iter().map(|(own, _)| address(own)).collect();
    let mut stack = Stack::new(&own, settings, 1).expect("addresses for benchmarks");
    stack.listen(PORT, Listen::default()).expect("a free port");
    TtcpHost::new(device, stack, Direction::new(impairments, 1), Direction::new(impairments, 2))
}

fn bad() -> Impairments {
    Impairments {
        delay: Delay { mean: Duration::from_millis(2), ..Delay::default() },
        loss: Loss::Independent(0.03),
        duplicate: 0.03,
        reorder: 0.05,
        ..Impairments::default()
    }
}

fn pattern(octets: usize) -> Vec<u8> {
    (0..octets as u32).map(|i| (i * 31 % 251) as u8).collect()
}

/// Has the host send back what comes, until the thread of the kernel's side has ended.
fn echo<T>(host: &mut TtcpHost, kernel: JoinHandle<T>) -> T {
    // Octets that the stack had no room for yet, and whether the peer has finished.
    let mut waiting: HashMap<Connection, (Vec<u8>, bool)> = HashMap::new();
    let end = host.now() + TIME_LIMIT;
    while !kernel.is_finished() {
        assert!(host.now() < end, "the exchange does not end");
        let until = host.now() + Duration::from_millis(10);
        match host.next_event(until).expect("an interface") {
            Some(Event::Received(connection, octets)) => {
                waiting.entry(connection).or_default().0.extend(octets)
            }
            Some(Event::Finished(connection)) => waiting.entry(connection).or_default().1 = true,
            Some(Event::Failed(_, failure)) => panic!("{failure:?}"),
            _ => {}
        }
        let now = host.now();
        waiting.retain(|&connection, (octets, finished)| {
            let taken = host.stack.send(now, connection, octets).unwrap_or(0);
            octets.drain(..taken);
            let done = octets.is_empty() && *finished;
            if done {
                host.stack.finish(now, connection).expect("an open connection");
            }
            !done
        });
    }
    kernel.join().expect("the kernel's side")
}

#[test]
fn the_kernel_as_client_gets_its_octets_back() {
    let Some(ends) = Ends::make("client") else { return };
    for (transactions, impairments) in
        [(false, Impairments::default()), (true, Impairments::default()), (false, bad())]
    {
        let mut host = host(&ends, transactions, impairments);
        for (own, _) in FAMILIES {
            let to = SocketAddr::new(address(own), PORT);
            let namespace = ends.left.name().to_owned();
            let client = std::thread::spawn(move || {
                let mut stream =
                    within(&namespace, || TcpStream::connect_timeout(&to, TIME_LIMIT)).expect("a connection");
                stream.set_read_timeout(Some(TIME_LIMIT)).unwrap();
                let sent = pattern(150_000);
                let writer = {
                    let (mut stream, sent) = (stream.try_clone().unwrap(), sent.clone());
                    std::thread::spawn(move || {
                        stream.write_all(&sent).expect("written");
                        stream.shutdown(Shutdown::Write).expect("finished");
                    })
                };
                let mut got = Vec::new();
                stream.read_to_end(&mut got).expect("octets");
                writer.join().expect("the writer");
                got == sent
            });
            assert!(echo(&mut host, client), "{own}, T/TCP {transactions}");
        }
        assert_eq!(host.stack.counts().transactions, 0, "the kernel sends no counts");
        assert_eq!(host.stack.counts().malformed, 0);
    }
}

#[test]
fn the_kernel_as_server_answers() {
    let Some(ends) = Ends::make("server") else { return };
    for (transactions, impairments) in
        [(false, Impairments::default()), (true, Impairments::default()), (true, bad())]
    {
        let mut host = host(&ends, transactions, impairments);
        for (_, kernel) in FAMILIES {
            let at = SocketAddr::new(address(kernel), PORT);
            let listener = ends.left.inside(|| TcpListener::bind(at).expect("an address of the interface"));
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut octets = Vec::new();
                stream.read_to_end(&mut octets).expect("octets");
                stream.write_all(&octets).expect("written");
            });
            let sent = pattern(40_000);
            let now = host.now();
            let connection = host.stack.transact(now, at, &sent).expect("a connection");
            let (mut got, end) = (Vec::new(), now + TIME_LIMIT);
            loop {
                match host.next_event(end).expect("an interface").expect("an event in time") {
                    Event::Received(_, octets) => got.extend(octets),
                    Event::Finished(_) => break,
                    Event::Failed(_, failure) => panic!("{failure:?}"),
                    _ => {}
                }
            }
            assert!(got == sent, "{kernel}, T/TCP {transactions}: {} octets", got.len());
            // The server's thread ends once its FIN is acknowledged.
            host.run_for(Duration::from_millis(20)).expect("an interface");
            server.join().expect("the kernel's side");
            assert!(host.stack.state(connection).is_some(), "in TIME-WAIT");
        }
    }
}

#[test]
fn a_closed_port_of_either_side_refuses() {
    let Some(ends) = Ends::make("closed") else { return };
    let mut host = host(&ends, true, Impairments::default());
    let now = host.now();
    let closed = SocketAddr::new(address("198.18.0.1"), 9);
    let connection = host.stack.transact(now, closed, b"anybody?").expect("a connection");
    let event = host.next_event(now + TIME_LIMIT).expect("an interface");
    assert_eq!(event, Some(Event::Failed(connection, Failure::Refused)));
    let namespace = ends.left.name().to_owned();
    let client = std::thread::spawn(move || {
        let to = SocketAddr::new(address("198.18.0.2"), 9);
        within(&namespace, || TcpStream::connect_timeout(&to, TIME_LIMIT)).map(drop)
    });
    let refused = echo(&mut host, client).expect_err("nobody listens");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}
