//! Why a load is refused or could not be done.

use crate::limits;
use crate::names::ZoneError;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr};

/// Why a load is refused or could not be done.
#[derive(Debug)]
pub enum LoadError {
    /// Rate, shares, times or counts outside what is possible; the text says which and what is allowed.
    Order(String),
    /// The zone name cannot be asked for.
    Zone(ZoneError),
    /// Not a prefix of RFC 6052 section 2.2.
    Prefix(Ipv6Addr, u8),
    /// More names are needed than the window has left. Needed, left.
    Names(u64, u64),
    /// A companion is served in turn with the load, so the load must be one thread.
    Companion,
    /// A source address of another family than the server's.
    Family(IpAddr),
    /// A port could not be bound.
    Bind(IpAddr, io::Error),
    /// A thread could not be bound to a core.
    Pin(u16, io::Error),
    /// The kernel gave no epoll instance or no thread.
    Kernel(io::Error),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Order(text) => f.write_str(text),
            LoadError::Zone(error) => error.fmt(f),
            LoadError::Prefix(prefix, bits) => write!(
                f,
                "{prefix}/{bits} is no DNS64 prefix; its length must be 32, 40, 48, 56, 64 or 96, with no bit set beyond it \
                 and bits 64 to 71 zero (RFC 6052 section 2.2)"
            ),
            LoadError::Names(needed, left) => write!(
                f,
                "{needed} names are needed, but from the first name on the window has {left}; take a larger window (--names), \
                 a lower rate or less time"
            ),
            LoadError::Companion => f.write_str(
                "an authority that is served by the load's own thread needs a load of one thread: 1 sender (--threads 1) and \
                 no receivers (--receivers 0)",
            ),
            LoadError::Family(source) => write!(
                f,
                "source address {source} is of another family than the server's address; give sources of the same family"
            ),
            LoadError::Bind(source, error) => write!(
                f,
                "no port at {source}: {error}; use an address of this host, and fewer ports (--ports) or a higher limit of \
                 open files (ulimit -n)"
            ),
            LoadError::Pin(core, error) => {
                write!(f, "cannot run on core {core}: {error}; choose cores that this process may use (nproc, taskset -p)")
            }
            LoadError::Kernel(error) => {
                write!(f, "starting the load: {error}; close other programs or raise the limits (ulimit -n, ulimit -u)")
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// Refuses an order with a text.
pub(crate) fn refuse<T>(text: impl Into<String>) -> Result<T, LoadError> {
    Err(LoadError::Order(text.into()))
}

/// The bounds of a rate, for people.
pub(crate) fn rates() -> String {
    format!("{} to {} queries a second are possible", limits::RATES_QPS.0, limits::RATES_QPS.1)
}
