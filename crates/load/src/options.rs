//! Options of a load that are not part of its order, because they do not travel to another host.

use crate::query_list::QueryList;
use std::path::PathBuf;
use std::sync::Arc;

/// Options of a load on this host.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Queries to ask in place of computed names. Their replies are checked as far as they can be: question, flags, form and
    /// RCODE.
    pub queries: Option<Arc<QueryList>>,
    /// Records the times of every query ([`QueryTimes`](crate::QueryTimes)).
    pub query_times: bool,
    /// Settings of TLS.
    pub tls: TlsOptions,
}

/// Settings of the tester's TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// PEM file of the trust anchors; `None`: those of the system.
    pub ca: Option<PathBuf>,
    /// Name that the certificate must have; `None`: the address of the server.
    pub name: Option<String>,
    /// True if every certificate is accepted.
    pub insecure: bool,
    /// True if connections resume earlier sessions.
    pub resume: bool,
    /// True if the first query of a resumed connection leaves as early data (0-RTT).
    pub early_data: bool,
}
