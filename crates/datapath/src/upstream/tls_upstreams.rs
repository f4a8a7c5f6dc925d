//! The upstreams that are asked over TLS: the name by which each is verified, and the settings of its connections. All workers
//! share the table, and a reload replaces it. It is read when a connection is opened, so its lock is not on the way of a query.

use crate::counters::Counter;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// An upstream that is asked over TLS.
#[derive(Clone, Debug)]
pub struct TlsUpstream {
    /// The name that its certificate must have (RFC 8310 section 8.1).
    pub name: ServerName<'static>,
    /// Trust anchors, versions, ALPN and kept sessions.
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
    /// The counter of the fault.
    pub(crate) fn counter(self) -> Counter {
        match self {
            TlsFault::Name => Counter::UpstreamTlsName,
            TlsFault::Expired => Counter::UpstreamTlsExpired,
            TlsFault::Issuer => Counter::UpstreamTlsIssuer,
            TlsFault::Certificate => Counter::UpstreamTlsCertificate,
            TlsFault::Protocol => Counter::UpstreamTlsProtocol,
            TlsFault::Closed => Counter::UpstreamTlsClosed,
            TlsFault::Timeout => Counter::UpstreamTlsTimeout,
        }
    }

    /// True if the upstream has not shown that it is the one that was meant. Another connection would fail in the same way.
    pub(crate) fn is_untrusted(self) -> bool {
        !matches!(self, TlsFault::Closed | TlsFault::Timeout)
    }
}

/// The latest handshake with an upstream that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFailure {
    /// The upstream.
    pub address: SocketAddr,
    /// The name that was expected.
    pub name: String,
    /// The fault.
    pub fault: TlsFault,
    /// The error, as the library of TLS describes it.
    pub text: String,
}

/// The table of the upstreams, and their latest failures.
#[derive(Debug, Default)]
pub struct TlsUpstreams {
    table: RwLock<HashMap<SocketAddr, TlsUpstream>>,
    /// One failure per upstream at most, until it is taken.
    failures: Mutex<HashMap<SocketAddr, TlsFailure>>,
}

impl TlsUpstreams {
    /// Replaces the table. Connections that are open stay.
    pub fn replace(&self, table: HashMap<SocketAddr, TlsUpstream>) {
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = table;
    }

    /// The latest failure of each upstream since the last call.
    pub fn take_failures(&self) -> Vec<TlsFailure> {
        self.failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain()
            .map(|(_, failure)| failure)
            .collect()
    }

    /// The upstream at an address; none if nothing is asked over TLS there.
    pub fn find(&self, address: SocketAddr) -> Option<TlsUpstream> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).get(&address).cloned()
    }

    /// Notes a failure. The table of upstreams bounds the number.
    pub(crate) fn note(&self, failure: TlsFailure) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.insert(failure.address, failure);
    }
}
