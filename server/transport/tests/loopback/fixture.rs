//! Streams over loopback with fake workers, and clients with plain blocking sockets. Every wait has a generous outer bound,
//! so no test depends on the speed of the machine.

use datapath::StreamSink;
use engine::{Client, IdleTimeout};
pub use kit::message::framed;
use kit::message::read_frame;
pub use kit::{TIMEOUT as TEST_TIMEOUT, wait_until as eventually};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use sixfold_transport::{BoundStreams, Counter, Limits, Options, QuerySink, Streams};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// Limits that a test reaches only on purpose.
pub const ROOMY: Limits = Limits {
    connections: 10_000,
    per_client: 10_000,
    client_prefix: 56,
    idle: TEST_TIMEOUT,
    answer_wait: TEST_TIMEOUT,
};

type Queries = VecDeque<(Client, Vec<u8>)>;

/// Fake workers: they record the queries for the test.
#[derive(Default)]
pub struct FakeWorkers {
    /// The queries that the workers were not woken for.
    posted: Mutex<Queries>,
    asked: Mutex<Queries>,
    arrived: Condvar,
    /// Number of posts that are still refused.
    pub refuse: AtomicUsize,
}

impl QuerySink for FakeWorkers {
    fn post(&self, client: &Client, message: &[u8]) -> bool {
        let refused =
            self.refuse.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if !refused {
            self.posted.lock().unwrap().push_back((*client, message.to_vec()));
        }
        !refused
    }

    fn wake(&self) {
        self.asked.lock().unwrap().append(&mut self.posted.lock().unwrap());
        self.arrived.notify_all();
    }
}

/// Hands an answer over as a worker does at the end of a turn. Returns false if it was not taken.
pub fn deliver(streams: &Streams, to: &Client, message: &[u8]) -> bool {
    let taken = streams.deliver(to, message);
    streams.wake();
    taken
}

/// Ends a query without an answer, as a worker does by a response policy.
pub fn drop_query(streams: &Streams, from: &Client) {
    assert!(deliver(streams, from, &[]));
}

impl FakeWorkers {
    /// Takes the next query.
    pub fn next(&self) -> (Client, Vec<u8>) {
        let asked = self.asked.lock().unwrap();
        let (mut asked, _) =
            self.arrived.wait_timeout_while(asked, TEST_TIMEOUT, |asked| asked.is_empty()).unwrap();
        asked.pop_front().expect("a question arrives")
    }

    /// Number of queries that wait.
    pub fn waiting(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

/// Running streams with their fake workers.
pub struct Service {
    pub workers: Arc<FakeWorkers>,
    pub streams: Streams,
    pub address: SocketAddr,
}

impl Service {
    pub fn new(limits: Limits) -> Service {
        Service::listening("127.0.0.1:0", limits, 1)
    }

    pub fn listening(listen: &str, limits: Limits, threads: usize) -> Service {
        let bound = BoundStreams::bind(
            &[listen.parse().unwrap()],
            Vec::new(),
            Options { limits, ..Options::default() },
        )
        .unwrap();
        let address = bound.local_addresses().unwrap()[0];
        let workers = Arc::new(FakeWorkers::default());
        let streams = bound.start(workers.clone(), threads).unwrap();
        Service { workers, streams, address }
    }

    /// Answers each query with itself and QR set, from a thread of its own, until the service is dropped.
    pub fn echo(self) -> Service {
        let (workers, streams) = (Arc::downgrade(&self.workers), self.streams.clone());
        thread::spawn(move || {
            // The stream threads hold the fake workers until they have been drained.
            while let Some(workers) = workers.upgrade() {
                let asked = std::mem::take(&mut *workers.asked.lock().unwrap());
                if asked.is_empty() {
                    thread::sleep(Duration::from_millis(1));
                }
                for (client, question) in asked {
                    deliver(&streams, &client, &answer(&question));
                }
            }
        });
        self
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Connects from another loopback address, as another client.
    pub fn connect_from(&self, address: Ipv4Addr) -> TcpStream {
        connect_from(address, self.address)
    }

    /// Waits until a counter has a value.
    pub fn await_count(&self, counter: Counter, value: u64) {
        eventually(&format!("{counter:?} is {value}"), || self.streams.counter(counter) == value);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.streams.drain(Duration::ZERO);
    }
}

/// Connects from another loopback address, as another client.
pub fn connect_from(address: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((address, 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

/// Asks, and returns the idle timeout that the answer would tell.
pub fn told(service: &Service, client: &mut TcpStream) -> IdleTimeout {
    send(client, &[question(1, 20)]);
    let (from, asked) = service.workers.next();
    assert!(deliver(&service.streams, &from, &answer(&asked)));
    assert_eq!(id(&receive(client)), 1);
    from.idle_timeout
}

/// A query with an ID and `body` octets after the header.
pub fn question(id: u16, body: usize) -> Vec<u8> {
    let mut message = vec![0; 12 + body];
    message[..2].copy_from_slice(&id.to_be_bytes());
    message[5] = 1;
    message
}

/// The answer to a query: the query with QR set.
pub fn answer(question: &[u8]) -> Vec<u8> {
    let mut answer = question.to_vec();
    answer[2] |= 0x80;
    answer
}

/// Sends messages in one write.
pub fn send(stream: &mut impl Write, messages: &[Vec<u8>]) {
    let frames: Vec<u8> = messages.iter().flat_map(|message| framed(message)).collect();
    stream.write_all(&frames).unwrap();
}

/// Reads one message.
pub fn receive(stream: &mut impl Read) -> Vec<u8> {
    read_frame(stream).unwrap()
}

/// The ID of a message.
pub fn id(message: &[u8]) -> u16 {
    u16::from_be_bytes([message[0], message[1]])
}

/// Waits for the end of a stream, by a close or a reset. Returns the number of octets before it.
pub fn read_to_end(stream: &mut TcpStream) -> usize {
    let mut room = vec![0; 65_536];
    let mut octets = 0;
    loop {
        match stream.read(&mut room) {
            Ok(0) => return octets,
            Ok(read) => octets += read,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return octets,
            Err(error) => panic!("the stream does not end: {error}"),
        }
    }
}

/// A certificate for `dns.example`, and the settings of a server that shows it and speaks these protocols.
pub fn server_settings(protocols: &[&[u8]]) -> (CertificateDer<'static>, ServerConfig) {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["dns.example".to_owned()]).unwrap();
    let certificate = cert.der().clone();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let versions = ServerConfig::builder_with_provider(tls::provider()).with_safe_default_protocol_versions();
    let settings = versions.unwrap().with_no_client_auth().with_single_cert(vec![certificate.clone()], key);
    let mut settings = settings.unwrap();
    settings.alpn_protocols = protocols.iter().map(|&protocol| protocol.into()).collect();
    (certificate, settings)
}

/// The settings of a client that trusts this certificate, and offers these protocols.
pub fn client_settings(certificate: &CertificateDer<'static>, protocols: &[&[u8]]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let versions = ClientConfig::builder_with_provider(tls::provider()).with_safe_default_protocol_versions();
    let mut settings = versions.unwrap().with_root_certificates(roots).with_no_client_auth();
    settings.alpn_protocols = protocols.iter().map(|&protocol| protocol.into()).collect();
    settings
}
