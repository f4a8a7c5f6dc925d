//! The reasons why DNS over QUIC cannot start.

use datapath::LATE_ADDRESS;
use datapath::remedy::{of_forbidden_port, remedy};
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// The reason why DNS over QUIC cannot start.
#[derive(Debug)]
pub enum Error {
    /// A UDP socket could not be bound. The text contains the remedy for the cause.
    Socket(SocketAddr, io::Error),
    /// The TLS settings lack TLS 1.3 with AES-128-GCM, which QUIC begins with (RFC 9001 section 5.2).
    WithoutTls13,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Socket(address, error) if error.kind() == io::ErrorKind::AddrNotAvailable => write!(
                f,
                "cannot listen on UDP {address} for DNS over QUIC: no interface has this address; add it, or change `listen-doq`; \
                 {LATE_ADDRESS}"
            ),
            Error::Socket(address, error) => {
                let port = address.port();
                write!(f, "cannot listen on UDP {address} for DNS over QUIC: {error}; ")?;
                match error.kind() {
                    io::ErrorKind::AddrInUse => write!(
                        f,
                        "find the process that uses the port with `ss -lunp sport = :{port}` and stop it, or change `listen-doq`"
                    ),
                    io::ErrorKind::PermissionDenied => f.write_str(of_forbidden_port(port)),
                    _ => f.write_str(remedy(error)),
                }
            }
            Error::WithoutTls13 => {
                write!(f, "DNS over QUIC needs TLS 1.3 with AES-128-GCM; allow both, or remove `listen-doq`")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Socket(_, error) => Some(error),
            Error::WithoutTls13 => None,
        }
    }
}
