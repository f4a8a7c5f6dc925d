//! An upstream over TCP or TLS whose faults the test chooses: it answers everything with NOERROR, and may cut connections with
//! questions open.

use rcgen::{CertificateParams, DnType, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Certification authority of a test.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// Settings of a server whose certificate has these names, after `change`.
    pub fn certify(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Arc<ServerConfig> {
        self.certify_with_pem(names, change).0
    }

    /// The settings, and the certificate in PEM.
    pub fn certify_with_pem(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> (Arc<ServerConfig>, String) {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (settings(vec![certificate.der().clone()], &key), certificate.pem())
    }

    /// Settings of a server that shows its certificate with so many others behind it.
    pub fn certify_with_chain(&self, name: &str, others: usize) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        settings(vec![certificate.der().clone(); 1 + others], &key)
    }
}

/// Settings of a server whose certificate is signed by its own key.
pub fn self_signed(name: &str) -> Arc<ServerConfig> {
    self_signed_with_pem(name).0
}

/// The settings of [`self_signed`], and the certificate in PEM.
pub fn self_signed_with_pem(name: &str) -> (Arc<ServerConfig>, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
    (settings(vec![certificate.der().clone()], &key), certificate.pem())
}

/// Settings of a server that shows the certificate of a certification authority as its own, and the certificate in PEM.
pub fn self_signed_authority(name: &str) -> (Arc<ServerConfig>, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    (settings(vec![certificate.der().clone()], &key), certificate.pem())
}

fn settings(chain: Vec<CertificateDer<'static>>, key: &KeyPair) -> Arc<ServerConfig> {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(tls::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"dot".to_vec()];
    Arc::new(config)
}

/// Kind of an upstream.
#[derive(Clone)]
pub enum Kind {
    Tcp,
    Tls(Arc<ServerConfig>),
    /// Accepts connections, and never writes.
    Silent,
    /// Greets like a mail server.
    Greeting,
}

#[derive(Default)]
struct State {
    stop: AtomicBool,
    /// Answers after which a connection is cut; 0: never.
    cut_after: AtomicUsize,
    connections: Mutex<Vec<TcpStream>>,
    accepted: AtomicUsize,
    /// Addresses and ports that connections came from.
    peers: Mutex<HashSet<SocketAddr>>,
}

/// The upstream. It ends with the test.
pub struct StreamUpstream {
    pub address: SocketAddr,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

impl StreamUpstream {
    pub fn start(kind: &Kind) -> StreamUpstream {
        StreamUpstream::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), kind)
    }

    pub fn start_at(address: SocketAddr, kind: &Kind) -> StreamUpstream {
        let listener = TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let (shared, kind) = (Arc::clone(&state), kind.clone());
        let thread = std::thread::spawn(move || accept(&listener, &kind, &shared));
        StreamUpstream { address, state, thread: Some(thread) }
    }

    /// Cuts each connection after so many answers.
    pub fn cut_after(&self, answers: usize) {
        self.state.cut_after.store(answers, Ordering::SeqCst);
    }

    /// The addresses and ports that connections came from since the last call.
    pub fn take_peers(&self) -> HashSet<SocketAddr> {
        std::mem::take(&mut self.state.peers.lock().unwrap())
    }

    /// Number of connections so far.
    pub fn accepted(&self) -> usize {
        self.state.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for StreamUpstream {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, kind: &Kind, state: &Arc<State>) {
    let mut threads = Vec::new();
    while !state.stop.load(Ordering::SeqCst) {
        let Ok((stream, peer)) = listener.accept() else {
            std::thread::sleep(Duration::from_millis(2));
            continue;
        };
        stream.set_nonblocking(false).unwrap();
        state.peers.lock().unwrap().insert(peer);
        let number = state.accepted.fetch_add(1, Ordering::SeqCst);
        state.connections.lock().unwrap().push(stream.try_clone().unwrap());
        let (kind, state) = (kind.clone(), Arc::clone(state));
        threads.push(std::thread::spawn(move || {
            match kind {
                Kind::Tcp => serve(&mut &stream, &state),
                Kind::Tls(config) => {
                    let mut session = StreamOwned::new(ServerConnection::new(config).unwrap(), &stream);
                    serve(&mut session, &state);
                    // Every second connection ends with a close_notify.
                    if number.is_multiple_of(2) {
                        session.conn.send_close_notify();
                        let _ = session.flush();
                    }
                }
                Kind::Greeting => {
                    let _ = (&stream).write_all(b"220 mail.example ESMTP\r\n");
                    let _ = (&stream).read(&mut [0; 512]);
                }
                Kind::Silent => drop((&stream).read_to_end(&mut Vec::new())),
            }
            // The list of connections has the socket as well, so it would stay open.
            let _ = stream.shutdown(Shutdown::Both);
        }));
    }
    for connection in state.connections.lock().unwrap().iter() {
        let _ = connection.shutdown(Shutdown::Both);
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Answers until the other side ends the connection, or it is cut.
fn serve(stream: &mut (impl Read + Write), state: &State) {
    let mut answers = 0;
    loop {
        let mut length = [0; 2];
        if stream.read_exact(&mut length).is_err() {
            return;
        }
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        if stream.read_exact(&mut message).is_err() {
            return;
        }
        // QR, RA: the question comes back as a response without records.
        message[2] |= 0x80;
        message[3] |= 0x80;
        if stream.write_all(&[&length[..], &message].concat()).and_then(|()| stream.flush()).is_err() {
            return;
        }
        answers += 1;
        if answers == state.cut_after.load(Ordering::SeqCst) {
            return;
        }
    }
}
