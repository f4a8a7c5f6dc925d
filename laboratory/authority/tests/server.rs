//! The server over real loopback sockets.

use kit::client;
use kit::message::{framed, read_frame};
use sixfold_authority::{Kind, Server, Zone, limits};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};
use wire::{Flags, Message, Section, header};

/// Far longer than any step of these tests takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

fn start(listen: &[&str], addresses: u16, threads: usize) -> Server {
    let listen: Vec<SocketAddr> = listen.iter().map(|text| text.parse().unwrap()).collect();
    let zone = Zone::new("demo.test").unwrap().addresses(addresses);
    Server::start(&listen, zone, threads).unwrap()
}

/// A query for the A records of a name in the zone.
fn question(id: u16, label: &str) -> Vec<u8> {
    kit::Query::new(&format!("{label}.demo.test"), 1).id(id).flags(0).octets()
}

fn udp_client(server: SocketAddr) -> UdpSocket {
    client::udp(client::unspecified(server), server)
}

fn first_address(message: &[u8]) -> Option<[u8; 4]> {
    Message::parse(message).unwrap().records(Section::Answer).next()?.address4()
}

#[test]
fn questions_over_udp_are_answered_on_every_address() {
    let server = start(&["127.0.0.1:0", "[::1]:0"], 1, 2);
    assert_eq!(server.addresses().len(), 2);
    let mut buffer = [0; 512];
    for &address in server.addresses() {
        assert_ne!(address.port(), 0);
        // Many clients, so that each of the sockets that share the port gets some.
        for index in 0..64 {
            let client = udp_client(address);
            client.send(&question(index, &format!("192-0-2-{index}"))).unwrap();
            let length = client.recv(&mut buffer).unwrap();
            assert_eq!(header::id(&buffer), index);
            assert_eq!(first_address(&buffer[..length]), Some([192, 0, 2, index as u8]));
        }
    }
    assert_eq!(server.answers(Kind::Address4), 128);
    assert_eq!(server.ignored(), 0);
}

#[test]
fn an_answer_truncated_over_udp_is_whole_over_tcp() {
    let server = start(&["127.0.0.1:0"], 1000, 1);
    let client = udp_client(server.addresses()[0]);
    client.send(&question(7, "10-0-0-0")).unwrap();
    let mut buffer = [0; 512];
    let length = client.recv(&mut buffer).unwrap();
    assert!(header::flags(&buffer).contains(Flags::TC));
    assert_eq!(first_address(&buffer[..length]), None);

    let mut stream = client::tcp(server.addresses()[0]);
    stream.write_all(&framed(&question(8, "10-0-0-0"))).unwrap();
    let message = read_frame(&mut stream).unwrap();
    assert!(!header::flags(&message).contains(Flags::TC));
    assert_eq!(Message::parse(&message).unwrap().count(Section::Answer), 1000);
    assert_eq!((server.answers(Kind::Truncated), server.answers(Kind::Address4)), (1, 1));
}

#[test]
fn pipelined_questions_are_answered_in_order() {
    let server = start(&["[::1]:0"], 1, 1);
    let mut stream = client::tcp(server.addresses()[0]);
    let mut questions = Vec::new();
    for id in 0..2000u16 {
        questions.extend(framed(&question(id, &format!("10-0-{}-{}", id >> 8, id & 255))));
    }
    stream.write_all(&questions).unwrap();
    for id in 0..2000u16 {
        let message = read_frame(&mut stream).unwrap();
        assert_eq!(header::id(&message), id);
        let [high, low] = id.to_be_bytes();
        assert_eq!(first_address(&message), Some([10, 0, high, low]));
    }
}

#[test]
fn many_large_answers_leave_in_several_writes() {
    let server = start(&["127.0.0.1:0"], 2000, 1);
    let mut stream = client::tcp(server.addresses()[0]);
    let questions: Vec<u8> = (0..20).flat_map(|id| framed(&question(id, "10-0-0-1"))).collect();
    stream.write_all(&questions).unwrap();
    for id in 0..20 {
        let message = read_frame(&mut stream).unwrap();
        assert_eq!(header::id(&message), id);
        assert_eq!(Message::parse(&message).unwrap().count(Section::Answer), 2000);
    }
}

#[test]
fn a_question_may_arrive_octet_by_octet() {
    let server = start(&["127.0.0.1:0"], 1, 1);
    let mut stream = client::tcp(server.addresses()[0]);
    stream.set_nodelay(true).unwrap();
    for octet in framed(&question(1, "192-0-2-1")) {
        stream.write_all(&[octet]).unwrap();
    }
    assert_eq!(first_address(&read_frame(&mut stream).unwrap()), Some([192, 0, 2, 1]));
}

#[test]
fn responses_and_scraps_are_counted_and_not_answered() {
    let server = start(&["127.0.0.1:0"], 1, 1);
    let client = udp_client(server.addresses()[0]);
    let mut response = question(1, "192-0-2-1");
    header::set_flags(&mut response, Flags::QR);
    let mut stream = client::tcp(server.addresses()[0]);
    for message in [&response[..], &[], &response[..5]] {
        client.send(message).unwrap();
        stream.write_all(&framed(message)).unwrap();
    }
    // The next answer belongs to the query after them.
    client.send(&question(2, "192-0-2-2")).unwrap();
    let mut buffer = [0; 512];
    client.recv(&mut buffer).unwrap();
    stream.write_all(&framed(&question(2, "192-0-2-2"))).unwrap();
    assert_eq!((header::id(&buffer), header::id(&read_frame(&mut stream).unwrap())), (2, 2));
    assert_eq!((server.ignored(), server.answers(Kind::Address4)), (6, 2));
}

#[test]
fn an_address_that_is_taken_is_an_error_that_names_it() {
    let server = start(&["127.0.0.1:0"], 1, 1);
    let address = server.addresses()[0];
    let zone = Zone::new("demo.test").unwrap();
    let error = Server::start(&[address], zone.clone(), 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&format!("{address} (TCP)")), "{error}");
    drop(server);

    // A test beside this one may have the port over TCP, which is bound first.
    let is_udp = (0..10).any(|_| {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let error = Server::start(&[taken.local_addr().unwrap()], zone.clone(), 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        error.to_string().contains("(UDP)")
    });
    assert!(is_udp);
}

#[test]
fn a_stopped_server_closes_its_connections_and_frees_its_address() {
    let server = start(&["127.0.0.1:0"], 1, 2);
    let address = server.addresses()[0];
    let mut stream = client::tcp(address);
    stream.write_all(&framed(&question(1, "192-0-2-1"))).unwrap();
    read_frame(&mut stream).unwrap();
    let begin = Instant::now();
    drop(server);
    assert!(begin.elapsed() < TEST_TIMEOUT);
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    let again = Server::start(&[address], Zone::new("demo.test").unwrap(), 2).unwrap();
    assert_eq!(again.addresses(), [address]);
}

#[test]
fn a_connection_beyond_the_limit_is_closed_and_the_others_work() {
    let server = start(&["127.0.0.1:0"], 1, 1);
    let address = server.addresses()[0];
    let mut tcp_threads: Vec<TcpStream> = (0..limits::CONNECTIONS).map(|_| client::tcp(address)).collect();
    for (id, stream) in tcp_threads.iter_mut().enumerate() {
        stream.write_all(&framed(&question(id as u16, "192-0-2-1"))).unwrap();
        assert_eq!(header::id(&read_frame(stream).unwrap()), id as u16);
    }
    let mut one_more = client::tcp(address);
    match one_more.read(&mut [0; 1]) {
        Ok(octets) => assert_eq!(octets, 0),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    let last = tcp_threads.last_mut().unwrap();
    last.write_all(&framed(&question(9, "192-0-2-1"))).unwrap();
    assert_eq!(header::id(&read_frame(last).unwrap()), 9);
}
