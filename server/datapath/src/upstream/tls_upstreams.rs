//! The upstreams that are asked over TLS: the name by which each is verified, and the settings of its connections. All workers
//! share the table, and a reload replaces it. It is read when a connection is opened, so its lock is not on the way of a query.

use crate::counters::Counter;
use crate::limits::TLS_ERROR_CHARACTERS;
use engine::Untrusted;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, Error};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// An upstream that is asked over TLS.
#[derive(Clone, Debug)]
pub struct TlsUpstream {
    /// The name that its certificate must have (RFC 8310 section 8.1); its address if its key alone decides.
    pub name: ServerName<'static>,
    /// Digest of the trust anchors and the pins. A resumed session is not verified again, so it needs those that it began with.
    pub trust: u64,
    /// Trust anchors, pins, versions, ALPN and kept sessions.
    pub config: Arc<ClientConfig>,
}

/// A reason why a connection to an upstream did not come to be, in the handshake of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TlsFault {
    /// The certificate is for other names. A name that stands only in its common name (CN) does not count (RFC 9525).
    Name,
    /// The certificate has expired, or is not valid yet.
    Expired,
    /// No trust anchor has issued the certificate.
    Issuer,
    /// The key of the certificate has none of the pins.
    Pin,
    /// The certificate has another fault.
    Certificate,
    /// The upstream does not speak TLS, or none that can be used, or sent an alert.
    Protocol,
    /// The connection ended within the handshake.
    Closed,
    /// The handshake took longer than a try may.
    Timeout,
}

impl TlsFault {
    /// The fault behind an error of the handshake.
    pub fn of(error: &Error) -> TlsFault {
        match error {
            Error::InvalidCertificate(error) => match error {
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    TlsFault::Name
                }
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. } => TlsFault::Expired,
                CertificateError::UnknownIssuer | CertificateError::BadSignature => TlsFault::Issuer,
                CertificateError::ApplicationVerificationFailure => TlsFault::Pin,
                // A verifier of the caller's may put its own words to an error of rustls.
                CertificateError::Other(other) => other
                    .0
                    .source()
                    .and_then(|source| source.downcast_ref::<Error>())
                    .map_or(TlsFault::Certificate, TlsFault::of),
                _ => TlsFault::Certificate,
            },
            Error::NoCertificatesPresented => TlsFault::Certificate,
            _ => TlsFault::Protocol,
        }
    }

    /// Description of an error of the handshake for an operator.
    pub(crate) fn describe(error: &Error) -> String {
        match error {
            // The verifier of rustls has no value of its own for this case, and no text but the name of webpki's.
            Error::InvalidCertificate(CertificateError::Other(other))
                if other.to_string() == "CaUsedAsEndEntity" =>
            {
                "the certificate is that of a certification authority (CA:TRUE), which does not count as a server's, not even as its \
                 own trust anchor; name the pin of its key behind the address (#sha256/...) in place of the name"
                    .to_owned()
            }
            // rustls shows such an error as the structure that it is.
            Error::InvalidCertificate(CertificateError::Other(other)) => {
                format!("invalid peer certificate: {other}")
            }
            error => error.to_string(),
        }
    }

    /// The counter of the fault.
    pub(crate) fn counter(self) -> Counter {
        match self {
            TlsFault::Name => Counter::UpstreamTlsName,
            TlsFault::Expired => Counter::UpstreamTlsExpired,
            TlsFault::Issuer => Counter::UpstreamTlsIssuer,
            TlsFault::Pin => Counter::UpstreamTlsPin,
            TlsFault::Certificate => Counter::UpstreamTlsCertificate,
            TlsFault::Protocol => Counter::UpstreamTlsProtocol,
            TlsFault::Closed => Counter::UpstreamTlsClosed,
            TlsFault::Timeout => Counter::UpstreamTlsTimeout,
        }
    }

    /// The remedy, for the operator.
    pub fn remedy(self) -> &'static str {
        match self {
            TlsFault::Name => "write a name that the certificate has behind the # of the forwarder",
            TlsFault::Expired => {
                "compare the clock of this machine with the dates of the certificate; its owner must renew it"
            }
            TlsFault::Issuer => {
                "name the issuer in `upstream.tls-ca`, or write a pin of the key behind the # of the forwarder; somebody may also stand \
                 between"
            }
            TlsFault::Pin => {
                "ask the owner for the new key, and write its pin behind the # of the forwarder; somebody may also stand between"
            }
            TlsFault::Certificate => {
                "the owner must correct the certificate; another forwarder can serve meanwhile"
            }
            TlsFault::Protocol => {
                "look whether this port of the forwarder speaks TLS: `openssl s_client -connect ADDRESS:PORT`"
            }
            TlsFault::Closed => {
                "the forwarder ends connections: look into its log for a limit or a list of clients"
            }
            TlsFault::Timeout => {
                "the forwarder or the path to it is slow: look for lost packets, or raise `upstream.timeout`"
            }
        }
    }

    /// Code of the fault for programs, which is also the label value of the metric.
    pub fn code(self) -> &'static str {
        match self {
            TlsFault::Closed => "closed",
            TlsFault::Timeout => "timeout",
            _ => self.untrusted().map_or("", Untrusted::code),
        }
    }

    /// The reason if the upstream has not shown that it is the one that was meant. Another connection would fail in the same way.
    pub fn untrusted(self) -> Option<Untrusted> {
        match self {
            TlsFault::Name => Some(Untrusted::Name),
            TlsFault::Expired => Some(Untrusted::Expired),
            TlsFault::Issuer => Some(Untrusted::Issuer),
            TlsFault::Pin => Some(Untrusted::Pin),
            TlsFault::Certificate => Some(Untrusted::Certificate),
            TlsFault::Protocol => Some(Untrusted::Protocol),
            TlsFault::Closed | TlsFault::Timeout => None,
        }
    }
}

/// The latest handshake with an upstream, if it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFailure {
    /// The upstream.
    pub address: SocketAddr,
    /// The name that was expected.
    pub name: String,
    /// The fault.
    pub fault: TlsFault,
    /// The error, as the library of TLS describes it, without control characters: it may quote the certificate. At most
    /// `TLS_ERROR_CHARACTERS` characters.
    pub text: String,
}

/// The table of the upstreams, and their latest failures.
#[derive(Debug, Default)]
pub struct TlsUpstreams {
    table: RwLock<HashMap<SocketAddr, TlsUpstream>>,
    /// One failure per upstream at most, until a handshake succeeds.
    failures: Mutex<HashMap<SocketAddr, Noted>>,
}

/// A failure that was noted.
#[derive(Debug)]
struct Noted {
    failure: TlsFailure,
    /// The log has not taken it yet.
    is_new: bool,
    /// A later handshake has succeeded.
    is_over: bool,
}

impl TlsUpstreams {
    /// Replaces the table. Connections that are open stay, and upstreams with the name, the trust anchors and the pins that they had
    /// keep their sessions.
    pub fn replace(&self, mut table: HashMap<SocketAddr, TlsUpstream>) {
        self.failures().retain(|address, _| table.contains_key(address));
        let mut current = self.table.write().unwrap_or_else(PoisonError::into_inner);
        for (address, upstream) in &mut table {
            if let Some(before) = current.get(address)
                && (&before.name, before.trust) == (&upstream.name, upstream.trust)
            {
                upstream.config = Arc::clone(&before.config);
            }
        }
        *current = table;
    }

    /// The latest failure of each upstream since the last call, for the log.
    pub fn take_failures(&self) -> Vec<TlsFailure> {
        let mut failures = self.failures();
        let take = |noted: &mut Noted| std::mem::take(&mut noted.is_new).then(|| noted.failure.clone());
        let taken = failures.values_mut().filter_map(take).collect();
        failures.retain(|_, noted| !noted.is_over);
        taken
    }

    /// The failure of the latest handshake with an upstream; none if it succeeded.
    pub fn failure(&self, address: SocketAddr) -> Option<TlsFailure> {
        self.failures().get(&address).filter(|noted| !noted.is_over).map(|noted| noted.failure.clone())
    }

    /// The upstream at an address; none if nothing is asked over TLS there.
    pub fn find(&self, address: SocketAddr) -> Option<TlsUpstream> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).get(&address).cloned()
    }

    /// Notes a failure. The table of upstreams bounds the number.
    pub(crate) fn note(&self, mut failure: TlsFailure) {
        let printed = failure.text.chars().filter(|character| !character.is_control());
        failure.text = printed.take(TLS_ERROR_CHARACTERS).collect();
        self.failures().insert(failure.address, Noted { failure, is_new: true, is_over: false });
    }

    /// Notes that a handshake succeeded. The log still gets the failure before it.
    pub(crate) fn note_success(&self, address: SocketAddr) {
        if let Some(noted) = self.failures().get_mut(&address) {
            noted.is_over = true;
        }
    }

    fn failures(&self) -> MutexGuard<'_, HashMap<SocketAddr, Noted>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(name: &'static str, trust: u64) -> TlsUpstream {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        TlsUpstream { name: ServerName::try_from(name).unwrap(), trust, config: Arc::new(config) }
    }

    fn address(host: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, host], 853))
    }

    #[test]
    fn an_upstream_keeps_its_sessions_unless_its_name_or_the_trust_in_it_change() {
        let upstreams = TlsUpstreams::default();
        let table = |changed: TlsUpstream| {
            HashMap::from([(address(1), upstream("a.example", 1)), (address(2), changed)])
        };
        upstreams.replace(table(upstream("b.example", 1)));
        let config = |host| upstreams.find(address(host)).unwrap().config;
        let before = [config(1), config(2)];
        upstreams.replace(table(upstream("b.example", 1)));
        assert!(Arc::ptr_eq(&before[0], &config(1)) && Arc::ptr_eq(&before[1], &config(2)));
        for changed in [upstream("c.example", 1), upstream("b.example", 2)] {
            upstreams.replace(table(upstream("b.example", 1)));
            let before = [config(1), config(2)];
            upstreams.replace(table(changed));
            assert!(Arc::ptr_eq(&before[0], &config(1)) && !Arc::ptr_eq(&before[1], &config(2)));
        }
    }

    /// An error in the words of a verifier.
    #[derive(Debug)]
    struct InOtherWords(Error);

    impl std::fmt::Display for InOtherWords {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("the words")
        }
    }

    impl std::error::Error for InOtherWords {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn an_error_in_the_words_of_a_verifier_is_the_fault_behind_it() {
        for (source, fault) in [
            (CertificateError::ApplicationVerificationFailure.into(), TlsFault::Pin),
            (CertificateError::Expired.into(), TlsFault::Expired),
            (Error::DecryptError, TlsFault::Protocol),
        ] {
            let other = rustls::OtherError(Arc::new(InOtherWords(source)));
            let error = Error::InvalidCertificate(CertificateError::Other(other));
            assert_eq!(TlsFault::of(&error), fault);
            assert_eq!(TlsFault::describe(&error), "invalid peer certificate: the words");
        }
        let other = rustls::OtherError(Arc::new(std::fmt::Error));
        assert_eq!(TlsFault::of(&CertificateError::Other(other).into()), TlsFault::Certificate);
    }

    #[test]
    fn a_failure_is_shown_until_a_handshake_succeeds_and_logged_once() {
        let upstreams = TlsUpstreams::default();
        upstreams.replace(HashMap::from([(address(1), upstream("a.example", 1))]));
        let text = format!("\u{1b}[31m\n{}", "x".repeat(1_000));
        let failure =
            TlsFailure { address: address(1), name: "a.example".to_owned(), fault: TlsFault::Name, text };
        upstreams.note(failure.clone());
        let shown = upstreams.failure(address(1)).unwrap().text;
        assert_eq!(shown, format!("[31m{}", "x".repeat(TLS_ERROR_CHARACTERS - 4)));
        upstreams.note_success(address(1));
        assert_eq!(upstreams.failure(address(1)), None);
        // The log has not told of it yet.
        assert_eq!(upstreams.take_failures().len(), 1);
        assert_eq!(upstreams.take_failures(), []);
        upstreams.note(failure);
        assert_eq!(upstreams.take_failures().len(), 1);
        assert!(upstreams.failure(address(1)).is_some());
        upstreams.replace(HashMap::new());
        assert_eq!(upstreams.failure(address(1)), None);
    }
}
