//! The identity that an upstream over TLS must show: a name in its certificate, or its public key, or both (RFC 7858 section 4, RFC 8310
//! section 8). The public key is named by a pin: the SHA-256 digest of its SubjectPublicKeyInfo (RFC 7469 section 2.4).

use aws_lc_rs::digest;
use data_encoding::BASE64;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use std::fmt;
use std::sync::Arc;

/// The beginning of a pin in text.
const PREFIX: &str = "sha256/";

/// The digest of a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pin([u8; 32]);

/// The identity of an upstream. It has a name or a pin at least.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The name that the certificate must have. None: the key alone decides, and nobody need have issued the certificate.
    pub name: Option<ServerName<'static>>,
    /// Pins of keys, of which the upstream must have one. None: any key.
    pub pins: Vec<Pin>,
}

/// The reason why a text is no identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityError {
    /// This part is no name that a certificate can have.
    Name(String),
    /// This part is like a pin, but not `sha256/` and the 44 characters of base64 for 32 octets.
    Pin(String),
    /// There are two names.
    TwoNames(String),
}

impl Pin {
    /// Parses a pin like `sha256/`, and 44 characters of base64 (RFC 4648 section 4).
    fn parse(text: &str) -> Option<Pin> {
        let octets = BASE64.decode(text.strip_prefix(PREFIX)?.as_bytes()).ok()?;
        octets.try_into().ok().map(Pin)
    }

    /// The pin of the key in a certificate. None if the certificate cannot be parsed.
    pub fn of(certificate: &CertificateDer<'_>) -> Option<Pin> {
        // The library that verifies the signature of the handshake reads the key, so that no certificate can show each a key of its own.
        let parsed = ParsedCertificate::try_from(certificate).ok()?;
        //= RFC 7858 section 4.2: requirement 101
        let key = digest::digest(&digest::SHA256, parsed.subject_public_key_info().as_ref());
        key.as_ref().try_into().ok().map(Pin)
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", BASE64.encode(&self.0))
    }
}

impl Identity {
    /// Parses a name, pins, or both, separated by `#`: `dns.example`, `sha256/...`, `dns.example#sha256/...`.
    ///
    /// # Errors
    ///
    /// `IdentityError::Pin`: a part with `/` or `=` is no pin of SHA-256. `IdentityError::Name`: another part is no name.
    /// `IdentityError::TwoNames`: there are two names.
    pub fn parse(text: &str) -> Result<Identity, IdentityError> {
        let mut identity = Identity { name: None, pins: Vec::new() };
        for part in text.split('#') {
            // No name has these characters, so this is a pin, perhaps written in another way.
            if part.contains(['/', '=']) {
                identity.pins.push(Pin::parse(part).ok_or_else(|| IdentityError::Pin(part.to_owned()))?);
                continue;
            }
            let name = ServerName::try_from(part.to_owned());
            let name = name.map_err(|_| IdentityError::Name(part.to_owned()))?;
            if identity.name.replace(name).is_some() {
                return Err(IdentityError::TwoNames(text.to_owned()));
            }
        }
        Ok(identity)
    }
}

/// The form that [`Identity::parse`] reads.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_ref().map(|name| name.to_str().into_owned());
        let parts: Vec<String> = name.into_iter().chain(self.pins.iter().map(Pin::to_string)).collect();
        f.write_str(&parts.join("#"))
    }
}

/// The error of an upstream whose key has none of the pins. Its source is the error that rustls has for the case, by which a program
/// without this type knows it; the text is for the operator, who compares the pin with the configured ones.
#[derive(Debug)]
struct NoPinFits {
    /// The pin of the key that the upstream has shown.
    shown: Pin,
    source: Error,
}

impl NoPinFits {
    fn of(shown: Pin) -> Error {
        let source = CertificateError::ApplicationVerificationFailure.into();
        CertificateError::Other(OtherError(Arc::new(NoPinFits { shown, source }))).into()
    }
}

impl fmt::Display for NoPinFits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no pin fits: its key has the pin {}", self.shown)
    }
}

impl std::error::Error for NoPinFits {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// The verifier of an upstream with pins. rustls verifies in the handshake that the upstream has the private key.
#[derive(Debug)]
pub(crate) struct PinVerifier {
    pub(crate) pins: Vec<Pin>,
    /// Verifies the name too. None: the pins alone decide.
    pub(crate) by_name: Option<Arc<WebPkiServerVerifier>>,
    pub(crate) provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let pin = Pin::of(certificate).ok_or(CertificateError::BadEncoding)?;
        //= RFC 7858 section 4.2: requirement 102
        if !self.pins.contains(&pin) {
            return Err(NoPinFits::of(pin));
        }
        match &self.by_name {
            Some(verifier) => verifier.verify_server_cert(certificate, chain, name, ocsp_response, now),
            None => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIN: &str = "sha256/AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

    #[test]
    fn an_identity_has_a_name_or_pins_or_both_and_is_printed_as_it_is_read() {
        let pin = Pin([1; 32]);
        for (text, has_name, pins) in [
            ("dns.example".to_owned(), true, vec![]),
            (PIN.to_owned(), false, vec![pin]),
            (format!("dns.example#{PIN}#{PIN}"), true, vec![pin, pin]),
        ] {
            let identity = Identity::parse(&text).unwrap();
            assert_eq!((identity.name.is_some(), &identity.pins), (has_name, &pins));
            assert_eq!(identity.to_string(), text);
        }
    }

    #[test]
    fn a_text_that_is_no_identity_is_refused_with_its_part() {
        for text in
            ["sha256/", "sha256/AQEB", &PIN[..50], &format!("{PIN}="), "SHA256/AAAA", "pin-sha256=AAAA"]
        {
            assert_eq!(Identity::parse(text), Err(IdentityError::Pin(text.to_owned())), "{text}");
        }
        for text in ["", "a..b", "two names"] {
            assert_eq!(Identity::parse(text), Err(IdentityError::Name(text.to_owned())), "{text}");
        }
        let two = "a.example#b.example".to_owned();
        assert_eq!(Identity::parse(&two), Err(IdentityError::TwoNames(two)));
    }
}
