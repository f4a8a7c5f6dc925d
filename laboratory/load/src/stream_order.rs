//! Order of a load over connections: its lines, and the refusal of an order that cannot be carried out anywhere.

use crate::error::{LoadError, refuse};
use crate::limits;
use measure::order::{Load, Transport};

/// Lines of a thread, which are to queries over connections what ports are over UDP: the places of the open connections, or a single
/// one if each query has a connection of its own. `None` over UDP.
pub fn lines(order: &Load) -> Option<usize> {
    match order.transport {
        Transport::Udp => None,
        _ if order.has_connection_per_query() => Some(1),
        _ => Some(usize::from(order.lanes.connections) * order.lanes.sources.len().max(1)),
    }
}

/// Checks an order that is for a transport with connections.
///
/// # Errors
///
/// `LoadError::Order`: such a load has receiving threads of their own, a companion, or a number of connections outside 1 to
/// [`limits::LINES`].
pub fn check(order: &Load, companion: bool) -> Result<(), LoadError> {
    let Some(lines) = lines(order) else { return Ok(()) };
    let name = order.transport.name();
    if order.lanes.receivers > 0 {
        return refuse(format!(
            "over {name} the sending threads receive, too; leave out --receivers, or use more sending threads (--threads)"
        ));
    }
    if companion {
        return refuse(format!(
            "the tester's thread serves the authority, which works over UDP only, and the transport is {name}; give the authority a core of \
             its own (in a plan `cores` of [authority])"
        ));
    }
    if !(1..=limits::LINES).contains(&lines) {
        return refuse(format!(
            "{lines} connections per thread (connections times sources); the number must be 1 to {} (--connections)",
            limits::LINES
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::order;

    #[test]
    fn an_impossible_load_is_refused_with_the_remedy() {
        let refusal = |change: &dyn Fn(&mut Load), companion| {
            let mut order = order(10.0, 10);
            order.transport = Transport::TcpReuse;
            change(&mut order);
            check(&order, companion).map_err(|error| error.to_string()).unwrap_err()
        };
        assert!(refusal(&|order| order.lanes.receivers = 1, false).contains("leave out --receivers"));
        assert!(refusal(&|order| order.lanes.connections = 0, false).contains("1 to 1024 (--connections)"));
        assert!(refusal(&|_| (), true).contains("a core of its own"));
    }
}
