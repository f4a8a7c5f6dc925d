//! TLS settings of the tester: trust anchors, the name to verify (RFC 8310 section 8.1), and the sessions to resume (RFC 8446
//! section 2.2, RFC 5077). The settings are checked once for a load; each thread has sessions of its own. No sockets here.

use crate::error::{LoadError, refuse};
use crate::limits;
use crate::options::TlsOptions;
use measure::order::Transport;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue, WebPkiServerVerifier,
};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, NamedGroup, RootCertStore, SignatureScheme,
};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// ALPN of DNS over TLS (RFC 7858, as registered with IANA), of HTTP/2 (RFC 9113 section 3.1) and of DNS over QUIC (RFC 9250
/// section 4.1.1).
const DOT: &[u8] = b"dot";
const H2: &[u8] = b"h2";
const DOQ: &[u8] = b"doq";

/// Settings of the TLS connections to one server.
#[derive(Clone, Debug)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    resume: bool,
    /// Decides on certificates; none: every certificate is accepted.
    anchored: Option<Arc<WebPkiServerVerifier>>,
    checks: Arc<Checks>,
    sessions: Arc<Sessions>,
}

/// Checks of certificates by one thread. A handshake that resumes a session has none.
#[derive(Debug, Default)]
pub struct Checks {
    /// Certificates that were accepted: one for each full handshake.
    pub accepted: AtomicU64,
    /// The reason of the first refusal.
    pub refusal: OnceLock<String>,
}

impl TlsClient {
    /// Settings for connections to a server.
    ///
    /// # Errors
    ///
    /// `LoadError::Order`: the name is no DNS name, or the trust anchors or the cryptography cannot be used.
    pub fn new(
        server: SocketAddr,
        transport: Transport,
        options: &TlsOptions,
    ) -> Result<TlsClient, LoadError> {
        let name = match &options.name {
            None => ServerName::IpAddress(server.ip().into()),
            Some(name) => match ServerName::try_from(name.clone()) {
                Ok(name) => name,
                Err(_) => {
                    return refuse(format!(
                        "\"{name}\" is no name of a server; write one like dns.example (--tls-name)"
                    ));
                }
            },
        };
        let builder = ClientConfig::builder_with_provider(tls::provider());
        let builder = match builder.with_safe_default_protocol_versions() {
            Ok(builder) => builder,
            Err(error) => {
                return refuse(format!(
                    "TLS cannot be used: {error}; report this fault: the section BUGS of sixfold-bench(1) says how"
                ));
            }
        };
        let (anchored, checks) = (verifier(options)?, Arc::default());
        let verifier = Verifier::new(&anchored, &checks);
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = match transport {
            Transport::Https => vec![H2.to_vec()],
            Transport::Quic => vec![DOQ.to_vec()],
            _ => vec![DOT.to_vec()],
        };
        config.enable_early_data = options.early_data;
        config.resumption = Resumption::disabled();
        let (config, sessions) = (Arc::new(config), Arc::default());
        let resume = options.resume || options.early_data;
        Ok(TlsClient { config, name, resume, anchored, checks, sessions })
    }

    /// The settings of one thread, with sessions and counters of its own.
    pub fn for_thread(&self) -> TlsClient {
        let mut config = ClientConfig::clone(&self.config);
        let sessions = Arc::<Sessions>::default();
        if self.resume {
            config.resumption = Resumption::store(Arc::clone(&sessions) as Arc<_>);
        }
        let checks = Arc::default();
        config.dangerous().set_certificate_verifier(Verifier::new(&self.anchored, &checks));
        TlsClient { config: Arc::new(config), checks, sessions, ..self.clone() }
    }

    /// The settings of rustls.
    pub fn config(&self) -> &Arc<ClientConfig> {
        &self.config
    }

    /// The name that the certificate must have.
    pub fn name(&self) -> &ServerName<'static> {
        &self.name
    }

    /// The checks of certificates so far.
    pub fn checks(&self) -> &Checks {
        &self.checks
    }

    /// Sessions that the server gave so far, if the load resumes them.
    pub fn tickets(&self) -> u64 {
        self.sessions.with(|kept| kept.given)
    }

    /// The TLS state of a new connection.
    ///
    /// # Errors
    ///
    /// The settings allow no connection with this name. [`TlsClient::new`] has checked both, so this does not happen.
    pub fn connection(&self) -> Result<ClientConnection, rustls::Error> {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone())
    }
}

/// The verifier of certificates that the options ask for; none: every certificate is accepted.
fn verifier(options: &TlsOptions) -> Result<Option<Arc<WebPkiServerVerifier>>, LoadError> {
    if options.insecure {
        return Ok(None);
    }
    let anchors = Arc::new(anchors(options.ca.as_deref())?);
    match WebPkiServerVerifier::builder_with_provider(anchors, tls::provider()).build() {
        Ok(verifier) => Ok(Some(verifier)),
        Err(error) => {
            refuse(format!("the trust anchors cannot be used: {error}; give other ones (--tls-ca)"))
        }
    }
}

/// The trust anchors of a PEM file, or of the system.
fn anchors(file: Option<&Path>) -> Result<RootCertStore, LoadError> {
    let mut anchors = RootCertStore::empty();
    let Some(file) = file else {
        anchors.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if anchors.is_empty() {
            return refuse(
                "this host has no trust anchors; install them (ca-certificates), or give a file (--tls-ca FILE)",
            );
        }
        return Ok(anchors);
    };
    let wrong = |what: String| {
        LoadError::Order(format!("{}: {what}; give a PEM file of certificates (--tls-ca)", file.display()))
    };
    let text = tls::pem_text(file).map_err(|error| wrong(error.to_string()))?;
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        anchors.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if anchors.is_empty() {
        return Err(wrong("no certificate in it".into()));
    }
    Ok(anchors)
}

/// Verifier that counts its decisions. The server must own the key of its certificate in any case.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    anchored: Option<Arc<WebPkiServerVerifier>>,
    checks: Arc<Checks>,
}

impl Verifier {
    fn new(anchored: &Option<Arc<WebPkiServerVerifier>>, checks: &Arc<Checks>) -> Arc<Verifier> {
        let (anchored, checks) = (anchored.clone(), Arc::clone(checks));
        Arc::new(Verifier { provider: tls::provider(), anchored, checks })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let checked = match &self.anchored {
            Some(anchored) => anchored.verify_server_cert(certificate, intermediates, name, ocsp, now),
            None => Ok(ServerCertVerified::assertion()),
        };
        match &checked {
            Ok(_) => drop(self.checks.accepted.fetch_add(1, Ordering::Relaxed)),
            Err(rustls::Error::InvalidCertificate(reason)) => {
                self.checks.refusal.get_or_init(|| reason.to_string());
            }
            Err(_) => {}
        }
        checked
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Sessions of one thread with its one server. The store of rustls keeps eight tickets for a server, too few for the
/// connections that a load opens before the first of them has its answer. A ticket is used once (RFC 8446 appendix C.4).
#[derive(Debug, Default)]
struct Sessions(Mutex<Kept>);

/// The sessions, their number, and the group of the last key exchange.
#[derive(Debug, Default)]
struct Kept {
    /// Sessions that the server gave.
    given: u64,
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tickets: Vec<Tls13ClientSessionValue>,
}

impl Sessions {
    /// Reads or changes the sessions. Only the thread's own connections do so: the lock is always free.
    fn with<T>(&self, work: impl FnOnce(&mut Kept) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.with(|kept| kept.group = Some(group));
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.with(|kept| kept.group)
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.with(|kept| {
            kept.given += 1;
            kept.tls12 = Some(session);
        });
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.with(|kept| kept.tls12.clone())
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.with(|kept| kept.tls12 = None);
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.with(|kept| {
            kept.given += 1;
            if kept.tickets.len() < limits::TICKETS {
                kept.tickets.push(ticket);
            }
        });
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.with(|kept| kept.tickets.pop())
    }
}
