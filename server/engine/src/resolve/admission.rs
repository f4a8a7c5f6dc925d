//! Admission: finds a place for one more pending query, and a query that gives way to it.

use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::client::quota::QuotaKey;
use crate::client::{Admission, Clients};
use crate::limits::{JOSTLE_AGE, JOSTLE_COMPARED};
use crate::reasons::Limit;
use crate::upstream::Upstream;

/// A place for a new query.
pub(crate) struct Place {
    /// Entry of the client's network in the quotas, where it is known.
    pub(crate) quota: Option<Index>,
    /// The pending query that gives way, and the limit that applies to it.
    pub(crate) evicted: Option<(Index, Limit)>,
}

/// Finds a place for a query. If its network has all of its share, or the table is full, a late query gives way: of its network, or of the
/// largest network of the largest customer. If none is late, the newest query of that largest network is evicted.
///
/// # Errors
///
/// The limit, with the reaction, for a query for which there is no place. Its network has all of its share, and none of its queries
/// is late: `Limit::RefusedPendingPerClient` if the address is proven, else `Limit::SlippedPendingPerClient` or
/// `Limit::DroppedPendingPerClient`. The table is full, and no late query can give way: `Limit::RefusedPending`.
#[inline]
pub(crate) fn find_place(
    clients: &mut Clients,
    upstream: &Upstream,
    key: QuotaKey,
    now: Instant,
) -> Result<Place, Limit> {
    match clients.admission(key) {
        Admission::Room(quota) => Ok(Place { quota, evicted: None }),
        crowded => find_evicted(clients, upstream, key, crowded, now),
    }
}

/// Finds the query that gives way.
#[cold]
fn find_evicted(
    clients: &mut Clients,
    upstream: &Upstream,
    QuotaKey { proven, .. }: QuotaKey,
    admission: Admission,
    now: Instant,
) -> Result<Place, Limit> {
    let evicted = match admission {
        Admission::Room(_) => None,
        Admission::AtLimit(network) => {
            let late = network.and_then(|network| find_late(clients, upstream, network, now));
            let late = late.ok_or_else(|| clients.reject(network, proven))?;
            // Its source address may be forged unless it is proven, as that of the new query.
            let limit = match proven {
                true => Limit::RefusedPendingPerClient,
                false => Limit::SlippedPendingPerClient,
            };
            Some((late, limit))
        }
        Admission::Full(network) => {
            let late = match network {
                Some(network) => find_late(clients, upstream, network, now),
                None => find_late_of_any(clients, upstream, proven, now),
            };
            Some((late.ok_or(Limit::RefusedPending)?, Limit::RefusedPending))
        }
        Admission::Evict(network) => {
            let late = find_late(clients, upstream, network, now);
            Some((late.unwrap_or(clients.newest_of(network)), Limit::RefusedPending))
        }
    };
    Ok(Place { quota: None, evicted })
}

/// Finds a late query of a network among its oldest ones: one that has waited for [`JOSTLE_AGE`], and whose upstream has not
/// replied in its usual time.
fn find_late(clients: &Clients, upstream: &Upstream, network: Index, now: Instant) -> Option<Index> {
    let mut oldest = clients.oldest_of(network).take(JOSTLE_COMPARED);
    oldest.find(|&pending| {
        let pending = &clients.pending_queries[pending];
        now - pending.arrived >= JOSTLE_AGE && upstream.is_late(pending.outbound, now)
    })
}

/// Finds a late query of the largest customers. Each call goes on behind the last result, so all of them have their turn.
fn find_late_of_any(clients: &mut Clients, upstream: &Upstream, proven: bool, now: Instant) -> Option<Index> {
    (0..JOSTLE_COMPARED).find_map(|_| {
        let network = clients.next_largest(proven, JOSTLE_COMPARED)?;
        find_late(clients, upstream, network, now)
    })
}
