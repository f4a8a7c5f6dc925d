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
    /// Numbers of the names, in the range of the load, in the order in which they are asked for, again and again. Without them each name
    /// of the range is asked for once.
    pub turns: Option<Arc<[u32]>>,
    /// Gives the queries for computed names an OPT record (RFC 6891). Without it they have one only if the expected answers need it.
    pub edns: bool,
    /// Records the times of every query ([`QueryTimes`](crate::QueryTimes)).
    pub query_times: bool,
    /// Settings of TLS.
    pub tls: TlsOptions,
    /// Settings of HTTPS.
    pub http: HttpOptions,
}

/// Settings of the tester's HTTPS (RFC 8484 section 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpOptions {
    /// True if queries are in the path (GET), not in the body (POST).
    pub get: bool,
    /// Path of the resource.
    pub path: String,
}

impl Default for HttpOptions {
    fn default() -> HttpOptions {
        HttpOptions { get: false, path: "/dns-query".to_owned() }
    }
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
