//! Reasons why a load is refused or fails.

use crate::limits;
use crate::names::ZoneError;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Reason why a load is refused or fails.
#[derive(Debug)]
pub enum LoadError {
    /// Rate, shares, times or counts outside their limits; the text says which, and the allowed values.
    Order(String),
    /// The zone name is invalid.
    Zone(ZoneError),
    /// Not a prefix according to RFC 6052 section 2.2.
    Prefix(Ipv6Addr, u8),
    /// The name range has fewer names left than the load needs. Fields: needed, left.
    Names(u64, u64),
    /// A companion is polled in turn with the load, so the load must use one thread.
    Companion,
    /// A source address of another address family than the server's.
    Family(IpAddr),
    /// A port could not be bound.
    Bind(IpAddr, io::Error),
    /// A thread could not be pinned to a core.
    Pin(u16, io::Error),
    /// The server is not the one to ask: its certificate was refused. Fields: the server, the reason.
    Certificate(SocketAddr, String),
    /// The kernel refused an epoll instance or a thread.
    Kernel(io::Error),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Order(text) => f.write_str(text),
            LoadError::Zone(error) => error.fmt(f),
            LoadError::Prefix(prefix, bits) => write!(
                f,
                "{prefix}/{bits} is not a DNS64 prefix; its length must be 32, 40, 48, 56, 64 or 96, with no bit set beyond it \
                 and bits 64 to 71 zero (RFC 6052 section 2.2)"
            ),
            LoadError::Names(needed, left) => write!(
                f,
                "the load needs {needed} names, but the name range has {left} from its first name on; use a larger range (--names), \
                 a lower rate or a shorter duration"
            ),
            LoadError::Companion => f.write_str(
                "the tester's thread serves the authority, so it must be the only one: use 1 sender (--threads 1) and no receivers \
                 (--receivers 0), or give the authority a core of its own (in a plan `cores` of [authority])",
            ),
            LoadError::Family(source) => write!(
                f,
                "source address {source} has another address family than the server; use sources of the same family"
            ),
            LoadError::Bind(source, error) => write!(
                f,
                "cannot bind a port at {source}: {error}; use an address of this host, and fewer ports (--ports) or a higher limit of \
                 open files (ulimit -n)"
            ),
            LoadError::Pin(core, error) => {
                write!(f, "cannot run on core {core}: {error}; choose cores that this process may use (nproc, taskset -p)")
            }
            LoadError::Certificate(server, reason) => write!(
                f,
                "the certificate of {server} is refused: {reason}; give its issuer (--tls-ca FILE) and the name in it (--tls-name NAME), \
                 or accept every certificate (--tls-insecure)"
            ),
            LoadError::Kernel(error) => {
                write!(f, "cannot start the load: {error}; close other programs or raise the limits (ulimit -n, ulimit -u)")
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// Refuses an order with this text.
///
/// # Errors
///
/// Always: [`LoadError::Order`] with the text.
pub(crate) fn refuse<T>(text: impl Into<String>) -> Result<T, LoadError> {
    Err(LoadError::Order(text.into()))
}

/// The limits of a rate, as text.
pub(crate) fn rates() -> String {
    format!("it must be {} to {} queries per second", limits::RATES_QPS.0, limits::RATES_QPS.1)
}
