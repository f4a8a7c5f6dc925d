//! An upstream over TCP or TLS whose faults the test chooses: it answers everything with NOERROR, and may cut connections with
//! questions open.

use kit::listening::{Connection, Listening};
use kit::message::{framed, read_frame};
use rcgen::{CertificateParams, DnType, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// The upstream. It ends with the test.
pub struct StreamUpstream {
    server: Listening,
    /// Answers after which a connection is cut; 0: never.
    cut_after: Arc<AtomicUsize>,
}

impl StreamUpstream {
    pub fn start(kind: &Kind) -> StreamUpstream {
        StreamUpstream::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), kind)
    }

    pub fn start_at(address: SocketAddr, kind: &Kind) -> StreamUpstream {
        let (cut_after, kind) = (Arc::new(AtomicUsize::new(0)), kind.clone());
        let cut = Arc::clone(&cut_after);
        let serve = move |connection| play(&kind, connection, &cut);
        StreamUpstream { server: Listening::on(TcpListener::bind(address).unwrap(), serve), cut_after }
    }

    /// Cuts each connection after so many answers.
    pub fn cut_after(&self, answers: usize) {
        self.cut_after.store(answers, Ordering::SeqCst);
    }
}

impl Deref for StreamUpstream {
    type Target = Listening;

    fn deref(&self) -> &Listening {
        &self.server
    }
}

fn play(kind: &Kind, mut connection: Connection, cut_after: &AtomicUsize) {
    match kind {
        Kind::Tcp => serve(&mut connection, cut_after),
        Kind::Tls(config) => {
            let session = ServerConnection::new(Arc::clone(config)).unwrap();
            let mut stream = StreamOwned::new(session, connection);
            serve(&mut stream, cut_after);
            // Every second connection ends with a close_notify.
            if stream.sock.number.is_multiple_of(2) {
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
            connection = stream.sock;
        }
        Kind::Greeting => {
            let _ = connection.write_all(b"220 mail.example ESMTP\r\n");
            let _ = connection.read(&mut [0; 512]);
        }
        Kind::Silent => drop(connection.read_to_end(&mut Vec::new())),
    }
    connection.finish();
}

/// Answers until the other side ends the connection, or it is cut.
fn serve(stream: &mut (impl Read + Write), cut_after: &AtomicUsize) {
    let mut answers = 0;
    while let Ok(mut message) = read_frame(stream) {
        // QR, RA: the question comes back as a response without records.
        message[2] |= 0x80;
        message[3] |= 0x80;
        if stream.write_all(&framed(&message)).and_then(|()| stream.flush()).is_err() {
            return;
        }
        answers += 1;
        if answers == cut_after.load(Ordering::SeqCst) {
            return;
        }
    }
}
