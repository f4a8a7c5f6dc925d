//! Options of a load that are not part of its order, because they do not travel to another host.

use crate::query_list::QueryList;
use std::sync::Arc;

/// Options of a load on this host.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Queries to ask in place of computed names. Their replies are checked as far as they can be: question, flags, form and
    /// RCODE.
    pub queries: Option<Arc<QueryList>>,
    /// Records the times of every query ([`QueryTimes`](crate::QueryTimes)).
    pub query_times: bool,
}
