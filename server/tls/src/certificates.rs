//! Server certificates: a chain and its private key, read from two PEM files, and replaced at run time.

use crate::validity;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

/// Time before the end of a certificate at which a warning begins. Certificates that are renewed by a program are renewed before that.
const EXPIRES_SOON: Duration = Duration::from_secs(14 * DAY);

/// Seconds of a day.
const DAY: u64 = 86_400;

/// The certificate chain and the key that handshakes use. Connections that exist keep theirs after a change.
#[derive(Debug)]
pub struct Certificates {
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificates {
    /// Reads a chain and its key. The key is PKCS#8, PKCS#1 or SEC1.
    ///
    /// # Errors
    ///
    /// `Error::Certificate`, `Error::Key`: a file cannot be read, or has no certificate or key. `Error::Pair`: the key does not belong
    /// to the certificate, or is of a kind that is not supported.
    pub fn read(certificate: &Path, key: &Path, provider: &CryptoProvider) -> Result<Certificates, Error> {
        Ok(Certificates { current: RwLock::new(read_pair(certificate, key, provider)?) })
    }

    /// The pair that new handshakes use.
    pub fn current(&self) -> Arc<CertifiedKey> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes new handshakes use the pair of `other`.
    pub fn replace(&self, other: &Certificates) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = other.current();
    }

    /// The time after which clients refuse the server's certificate. None if it cannot be read.
    pub fn expires(&self) -> Option<SystemTime> {
        validity::validity(self.current().cert.first()?).map(|(_, end)| end)
    }

    /// True if the server's certificate is for this name.
    pub fn is_for(&self, name: &ServerName<'_>) -> bool {
        let pair = self.current();
        let parsed = pair.cert.first().and_then(|certificate| ParsedCertificate::try_from(certificate).ok());
        parsed.is_some_and(|parsed| rustls::client::verify_server_name(&parsed, name).is_ok())
    }

    /// A warning about a certificate that has expired or soon will. Clients refuse it then.
    pub fn warning(&self, now: SystemTime) -> Option<String> {
        let expires = self.expires()?;
        match expires.duration_since(now) {
            Ok(left) if left > EXPIRES_SOON => None,
            Ok(left) if left.as_secs() >= 2 * DAY => {
                Some(format!("expires in {} days: renew it", left.as_secs() / DAY))
            }
            Ok(left) => Some(format!("expires in {} hours: renew it", left.as_secs() / 3_600)),
            Err(_) => Some("has expired, and clients refuse it: renew it".to_owned()),
        }
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

fn read_pair(certificate: &Path, key: &Path, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, Error> {
    let chain = crate::pem_text(certificate)
        .map_err(pem::Error::Io)
        .and_then(|text| CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, pem::Error>>())
        .map_err(|error| Error::Certificate(certificate.into(), error))?;
    if chain.is_empty() {
        return Err(Error::Certificate(certificate.into(), pem::Error::NoItemsFound));
    }
    let der = crate::pem_text(key)
        .map_err(pem::Error::Io)
        .and_then(|text| PrivateKeyDer::from_pem_slice(&text))
        .map_err(|error| Error::Key(key.into(), error))?;
    CertifiedKey::from_der(chain, der, provider)
        .map(Arc::new)
        .map_err(|error| Error::Pair(certificate.into(), key.into(), error))
}

/// The reason why the settings of a TLS server cannot be used. The text names the file; [`Error::remedy`] says what to do.
#[derive(Debug)]
pub enum Error {
    /// The file of the certificate chain cannot be read, or has no certificate.
    Certificate(PathBuf, pem::Error),
    /// The file of the private key cannot be read, or has no private key.
    Key(PathBuf, pem::Error),
    /// The key does not belong to the certificate, or one of the two is of a kind that is not supported.
    Pair(PathBuf, PathBuf, rustls::Error),
    /// The file of the ticket secret cannot be read.
    TicketSecret(PathBuf, std::io::Error),
    /// The ticket secret has fewer octets than [`crate::tickets::SECRET_OCTETS`].
    ShortTicketSecret(PathBuf, usize),
    /// The library of cryptography refuses the settings.
    Settings(String),
}

impl Error {
    /// The remedy, for the operator.
    pub fn remedy(&self) -> &'static str {
        match self {
            Error::Certificate(..) => {
                "name a readable PEM file with the certificate chain, the server's certificate first, in `tls.certificate`"
            }
            Error::Key(..) => {
                "name a readable PEM file with the unencrypted private key (PKCS#8, PKCS#1 or SEC1) in `tls.key`; a reload \
                 reads it with the rights of `server.user`"
            }
            Error::Pair(..) => "name the key of the first certificate in the file",
            Error::TicketSecret(..) | Error::ShortTicketSecret(..) => {
                "make the file with `openssl rand -out FILE 64`, or delete the key for a random secret"
            }
            Error::Settings(_) => "report this fault: the section BUGS of sixfold(8) says how",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Certificate(path, error) => {
                write!(f, "cannot read a certificate from {}: {}", path.display(), reason(error))
            }
            Error::Key(path, error) => {
                write!(f, "cannot read a private key from {}: {}", path.display(), reason(error))
            }
            Error::Pair(certificate, key, error) => {
                write!(
                    f,
                    "the key {} does not go with the certificate {}: {error}",
                    key.display(),
                    certificate.display()
                )
            }
            Error::TicketSecret(path, error) => {
                write!(f, "cannot read the ticket secret from {}: {error}", path.display())
            }
            Error::ShortTicketSecret(path, octets) => {
                write!(f, "the ticket secret in {} has {octets} octets and needs 32", path.display())
            }
            Error::Settings(error) => write!(f, "TLS cannot be set up: {error}"),
        }
    }
}

impl std::error::Error for Error {}

/// The words for a fault of a PEM file.
fn reason(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => "the file has none".to_owned(),
        other => other.to_string(),
    }
}
