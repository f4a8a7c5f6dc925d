//! TLS links to upstreams with habits: one question at a time, answers in another order, connections that end in all ways.

use super::{Probe, ask_all, client, question, start, wait_for};
use engine::{Link, Transport};
use kit::listening::{Connection, Listening};
use kit::message::{framed, read_frame};
use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use sixfold_datapath::tls_upstreams::TlsUpstream;
use sixfold_datapath::{Counter, Shared, Steer};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

type Stream = StreamOwned<ServerConnection, Connection>;

/// Settings of a server with a certificate for `dns.example`, and of its clients.
fn settings() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let anchor = authority.self_signed(&authority_key).unwrap().der().clone();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["dns.example".to_owned()])
        .unwrap()
        .signed_by(&key, &Issuer::new(authority, authority_key))
        .unwrap();
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(anchor).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server), Arc::new(client))
}

/// An upstream whose connections are for `serve`, with their numbers.
struct Upstream {
    to: HashMap<SocketAddr, TlsUpstream>,
    listening: Listening,
}

fn upstream(serve: impl Fn(usize, Stream) + Send + Sync + 'static) -> Upstream {
    let (server, config) = settings();
    let listening = Listening::start(move |connection| {
        let session = ServerConnection::new(Arc::clone(&server)).unwrap();
        serve(connection.number, StreamOwned::new(session, connection));
    });
    let name = ServerName::try_from("dns.example").unwrap();
    let to = HashMap::from([(listening.address, TlsUpstream { name, trust: 0, config })]);
    Upstream { to, listening }
}

/// Plays a client to a worker that asks the upstream, and returns the worker's machine. `play` gets the client's socket, and waits
/// with its second argument until so many links have failed.
fn run(
    upstream: Upstream,
    play: impl FnOnce(&std::net::UdpSocket, &dyn Fn(usize)),
) -> (Probe, Arc<Shared<Probe>>) {
    let failed = Arc::new(Mutex::new(0));
    let shown = Arc::clone(&failed);
    let address = upstream.listening.address;
    let mut probe = Some(Probe { failed, ..Probe::upstream(address, Transport::Tls) });
    let running = start(&["127.0.0.1:0"], 1, Steer::Name, || probe.take().unwrap());
    running.shared.tls_upstreams().replace(upstream.to);
    let socket = client("127.0.0.1:0", running.address());
    play(&socket, &|links| wait_for(|| *shown.lock().unwrap() >= links));
    let (mut machines, shared) = running.stop();
    drop(upstream.listening);
    (machines.remove(0), shared)
}

fn handshakes(shared: &Shared<Probe>) -> [u64; 2] {
    [Counter::UpstreamTlsFull, Counter::UpstreamTlsResumed].map(|counter| shared.total().get(counter))
}

#[test]
fn an_upstream_may_answer_one_at_a_time_in_parts_or_in_another_order() {
    let upstream = upstream(|_, mut stream| {
        // It does not read the next question before it has answered this one, sometimes octet by octet.
        for count in 0..200 {
            let reply = framed(&read_frame(&mut stream).unwrap());
            if count % 20 == 0 {
                reply.iter().for_each(|octet| stream.write_all(&[*octet]).unwrap());
            } else {
                stream.write_all(&reply).unwrap();
            }
            stream.flush().unwrap();
        }
        // The client asks 50 at a time: the answers come in the reverse order, as one record.
        for _ in 0..4 {
            let mut replies: Vec<_> = (0..50).map(|_| framed(&read_frame(&mut stream).unwrap())).collect();
            replies.reverse();
            stream.write_all(&replies.concat()).unwrap();
            stream.flush().unwrap();
        }
        assert!(read_frame(&mut stream).is_err());
    });
    let (machine, shared) = run(upstream, |socket, _| ask_all(socket, 400));
    assert_eq!((machine.replies.len(), machine.unreachable.len()), (400, 0));
    assert_eq!(handshakes(&shared), [1, 0]);
    assert_eq!(shared.total().get(Counter::UpstreamOctetsIn), shared.total().get(Counter::ClientOctetsIn));
}

#[test]
fn an_upstream_may_close_after_each_answer_and_the_session_is_resumed() {
    let upstream = upstream(|number, mut stream| {
        let reply = framed(&read_frame(&mut stream).unwrap());
        stream.write_all(&reply).and_then(|()| stream.flush()).unwrap();
        // The first two connections end without a close_notify.
        if number > 1 {
            stream.conn.send_close_notify();
            stream.flush().unwrap();
        }
    });
    let (machine, shared) = run(upstream, |socket, wait_for_failures| {
        for asked in 1..=5 {
            ask_all(socket, 1);
            wait_for_failures(asked);
        }
    });
    let closed: Vec<_> = (7..12).map(|generation| Link { slot: 3, generation }).collect();
    assert_eq!((machine.replies.len(), machine.unreachable), (5, closed));
    assert_eq!(handshakes(&shared), [1, 4]);
}

#[test]
fn an_end_of_the_session_with_questions_open_delivers_the_answers_before_it_and_is_reported_once() {
    let upstream = upstream(|number, mut stream| {
        let questions = if number == 0 { 3 } else { 1 };
        let messages: Vec<_> = (0..questions).map(|_| read_frame(&mut stream).unwrap()).collect();
        stream.write_all(&framed(&messages[0])).unwrap();
        if number == 0 {
            stream.conn.send_close_notify();
        }
        stream.flush().unwrap();
        // The client closes the connection.
        let _ = stream.sock.read_to_end(&mut Vec::new());
    });
    let (machine, shared) = run(upstream, |socket, wait_for_failures| {
        for number in 0..3 {
            socket.send(&question(number)).unwrap();
        }
        let length = socket.recv(&mut [0; 2048]).unwrap();
        assert_eq!(length, question(0).len());
        wait_for_failures(1);
        ask_all(socket, 1);
    });
    assert_eq!(
        (machine.replies.len(), &machine.unreachable[..]),
        (2, &[Link { slot: 3, generation: 7 }][..])
    );
    assert_eq!(handshakes(&shared), [1, 1]);
}

#[test]
fn octets_that_are_no_record_end_the_link() {
    let upstream = upstream(|number, mut stream| {
        let message = read_frame(&mut stream).unwrap();
        if number == 0 {
            stream.sock.write_all(&framed(&message)).unwrap();
        } else {
            stream.write_all(&framed(&message)).and_then(|()| stream.flush()).unwrap();
        }
        let _ = stream.sock.read_to_end(&mut Vec::new());
    });
    let (machine, shared) = run(upstream, |socket, wait_for_failures| {
        socket.send(&question(1)).unwrap();
        wait_for_failures(1);
        ask_all(socket, 1);
    });
    assert_eq!((machine.replies.len(), machine.unreachable.len()), (1, 1));
    // The handshake was over: it is no fault of the certificate.
    assert_eq!(shared.total().get(Counter::UpstreamTlsProtocol), 0);
}

/// Octets behind a close_notify are not protected (RFC 8446 section 6.1), so anybody on the path can add them. They must not keep the worker
/// busy, whether they fit into what the session reads at once or not.
#[test]
fn octets_behind_the_end_of_a_session_do_not_hold_the_worker() {
    const BEHIND: [(usize, u8); 4] = [(3 << 10, 0), (8 << 10, 0), (8 << 10, 0x17), (40 << 10, 0xa5)];
    let upstream = upstream(|number, mut stream| {
        let reply = framed(&read_frame(&mut stream).unwrap());
        let Some(&(octets, value)) = BEHIND.get(number) else {
            return stream.write_all(&reply).and_then(|()| stream.flush()).unwrap();
        };
        stream.conn.writer().write_all(&reply).unwrap();
        stream.conn.send_close_notify();
        let mut wire = Vec::new();
        while stream.conn.wants_write() {
            stream.conn.write_tls(&mut wire).unwrap();
        }
        wire.resize(wire.len() + octets, value);
        // One write: the end and what is behind it are read together.
        stream.sock.write_all(&wire).unwrap();
        let _ = stream.sock.read_to_end(&mut Vec::new());
    });
    let (machine, _) = run(upstream, |socket, wait_for_failures| {
        for asked in 1..=BEHIND.len() {
            // The answer before the end counts.
            ask_all(socket, 1);
            wait_for_failures(asked);
        }
        ask_all(socket, 1);
    });
    assert_eq!(machine.replies.len(), BEHIND.len() + 1);
    // The last connection ends with the upstream, perhaps before the worker.
    assert!(machine.unreachable.len() >= BEHIND.len(), "{:?}", machine.unreachable);
}
