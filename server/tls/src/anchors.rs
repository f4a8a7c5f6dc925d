//! The client side: trust anchors (RFC 5280 section 6.1.1), and the settings of connections to upstreams over TLS (RFC 7858, with
//! the strict profile of RFC 8310: the name is verified, and there is no other way to a server whose name does not fit).

use crate::identity::{Identity, PinVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// ALPN of DNS over TLS (registered with IANA for RFC 7858).
pub const ALPN_DOT: &[u8] = b"dot";

/// Sessions that are kept for resumption: more than there can be upstreams, which are 64.
const SESSIONS: usize = 256;

/// Source of trust anchors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnchorSource {
    /// The anchors of the system.
    System,
    /// A file with certificates (PEM).
    File(PathBuf),
}

/// Trust anchors.
#[derive(Clone, Debug)]
pub struct Anchors {
    roots: Arc<RootCertStore>,
    digest: u64,
}

/// Anchors are equal if the certificates are.
impl PartialEq for Anchors {
    fn eq(&self, other: &Anchors) -> bool {
        self.digest == other.digest
    }
}

/// The reason why trust anchors cannot be read.
#[derive(Debug)]
pub enum AnchorError {
    /// The file cannot be read, or is not PEM.
    Unreadable(PathBuf, String),
    /// The file has no certificate.
    Empty(PathBuf),
    /// A certificate of the file is malformed.
    Malformed(PathBuf, String),
    /// The system has no trust anchors.
    NoneInSystem(String),
}

impl fmt::Display for AnchorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnchorError::Unreadable(path, error) => {
                write!(f, "cannot read trust anchors from {}: {error}", path.display())
            }
            AnchorError::Empty(path) => write!(f, "{} has no certificate", path.display()),
            AnchorError::Malformed(path, error) => {
                write!(f, "{} has a certificate that is no trust anchor: {error}", path.display())
            }
            AnchorError::NoneInSystem(errors) => {
                write!(f, "the system has no trust anchors{errors}; install the package `ca-certificates`")
            }
        }
    }
}

impl std::error::Error for AnchorError {}

impl Anchors {
    /// Reads the anchors of a source.
    ///
    /// # Errors
    ///
    /// `AnchorError::Unreadable`, `AnchorError::Empty`, `AnchorError::Malformed`: the file cannot be read, has no certificate, or has
    /// one that cannot be parsed. `AnchorError::NoneInSystem`: the system has no trust anchors.
    pub fn read(source: &AnchorSource) -> Result<Anchors, AnchorError> {
        match source {
            AnchorSource::System => Anchors::of_system(),
            AnchorSource::File(path) => Anchors::of_file(path),
        }
    }

    /// A number for the set of anchors: equal sets have equal numbers while the process lives.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    fn of_file(path: &Path) -> Result<Anchors, AnchorError> {
        let unreadable = |error: &dyn fmt::Display| AnchorError::Unreadable(path.into(), error.to_string());
        let octets = crate::pem_text(path).map_err(|error| unreadable(&error))?;
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&octets).collect();
        let certificates = certificates.map_err(|error| unreadable(&error))?;
        if certificates.is_empty() {
            return Err(AnchorError::Empty(path.into()));
        }
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            let added = roots.add(certificate.clone());
            added.map_err(|error| AnchorError::Malformed(path.into(), error.to_string()))?;
        }
        Ok(Anchors { roots: Arc::new(roots), digest: digest(&certificates) })
    }

    fn of_system() -> Result<Anchors, AnchorError> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        // Old certificates of a system may be malformed, and are of no use then.
        let (added, _) = roots.add_parsable_certificates(found.certs.iter().cloned());
        if added == 0 {
            let errors: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
            let errors = if errors.is_empty() { String::new() } else { format!(" ({})", errors.join("; ")) };
            return Err(AnchorError::NoneInSystem(errors));
        }
        Ok(Anchors { roots: Arc::new(roots), digest: digest(&found.certs) })
    }
}

/// The settings of connections to an upstream with this identity. Without a name it needs no anchors. Sessions are kept for resumption, without
/// early data: queries could be replayed.
///
/// # Errors
///
/// The cryptography refuses the settings: with a name and pins, there are no anchors to check the name with.
//= RFC 8310 section 6.6: requirement 79
//= RFC 8310 section 8.1: requirement 80
pub fn client_config(
    identity: &Identity,
    anchors: Option<&Anchors>,
) -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = crate::provider();
    let roots =
        || anchors.map_or_else(|| Arc::new(RootCertStore::empty()), |anchors| Arc::clone(&anchors.roots));
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let builder = if identity.pins.is_empty() {
        builder.with_root_certificates(roots())
    } else {
        let by_name = identity
            .name
            .as_ref()
            .map(|_| WebPkiServerVerifier::builder_with_provider(roots(), Arc::clone(&provider)).build());
        let by_name = by_name.transpose().map_err(|error| rustls::Error::General(error.to_string()))?;
        let verifier = PinVerifier { pins: identity.pins.clone(), by_name, provider };
        builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![ALPN_DOT.to_vec()];
    config.resumption = Resumption::in_memory_sessions(SESSIONS);
    Ok(Arc::new(config))
}

fn digest(certificates: &[CertificateDer<'_>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for certificate in certificates {
        certificate.as_ref().hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_anchors_is_refused_with_its_reason() {
        let directory = kit::Folder::new();
        let path = directory.join("ca.pem");
        let read = || Anchors::read(&AnchorSource::File(path.clone())).map(|anchors| anchors.digest());
        assert!(read().unwrap_err().to_string().contains("No such file"));
        std::fs::write(&path, "no PEM\n").unwrap();
        assert!(read().unwrap_err().to_string().ends_with("ca.pem has no certificate"));
        let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        std::fs::write(&path, pem).unwrap();
        assert!(read().unwrap_err().to_string().contains("is no trust anchor"));
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(["ca.example".to_owned()]).unwrap().self_signed(&key);
        let pem = certificate.unwrap().pem();
        std::fs::write(&path, &pem).unwrap();
        let digest = read().unwrap();
        std::fs::write(&path, "\u{feff}".to_owned() + &pem).unwrap();
        assert_eq!(read().unwrap(), digest);
    }
}
