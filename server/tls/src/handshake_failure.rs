//! The reasons for which handshakes with clients fail, as metrics count them: a closed set.

use rustls::Error;
use std::io;

/// The reason why a handshake with a client failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// No version, cipher suite, group or signature scheme that both sides have.
    NoSharedParameters,
    /// The octets are no TLS: plain DNS, HTTP.
    NotTls,
    /// A malformed message, or one that does not belong there.
    Malformed,
    /// The client wants other application protocols (RFC 7301).
    Alpn,
    /// The client ended the handshake with an alert, for example because it does not trust the certificate.
    Alert,
    /// The client closed the connection.
    Closed,
    /// The handshake was not done in time.
    Timeout,
    /// The handshake was the oldest of too many.
    Displaced,
    /// Any other reason.
    Other,
}

impl HandshakeFailure {
    /// The reason in the error of a handshake over a stream.
    pub fn of(error: &io::Error) -> HandshakeFailure {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
            Some(error) => HandshakeFailure::of_tls(error),
            // The end of the stream, or a reset.
            None => HandshakeFailure::Closed,
        }
    }

    /// The reason in an error of rustls.
    pub fn of_tls(error: &Error) -> HandshakeFailure {
        match error {
            Error::PeerIncompatible(_) => HandshakeFailure::NoSharedParameters,
            // The deframer refuses octets that do not begin with a record of TLS.
            Error::InvalidMessage(
                rustls::InvalidMessage::InvalidContentType
                | rustls::InvalidMessage::UnknownProtocolVersion
                | rustls::InvalidMessage::MessageTooLarge,
            ) => HandshakeFailure::NotTls,
            Error::NoApplicationProtocol => HandshakeFailure::Alpn,
            Error::AlertReceived(_) => HandshakeFailure::Alert,
            Error::InvalidMessage(_)
            | Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::PeerMisbehaved(_)
            | Error::PeerSentOversizedRecord
            | Error::DecryptError => HandshakeFailure::Malformed,
            _ => HandshakeFailure::Other,
        }
    }
}
