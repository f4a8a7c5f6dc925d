//! Admission: the limits on open connections, in all and per client network. Only stream threads take the lock, once per
//! connection and once per sweep.

use crate::counters::Counter;
use crate::limits::Limits;
use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The counts of open connections.
pub(crate) struct Admission(Mutex<Open>);

struct Open {
    limits: Limits,
    connections: usize,
    /// Connections by client network. A network without connections has no entry.
    networks: HashMap<u128, usize>,
}

/// A guard that counts one connection until it is dropped.
pub(crate) struct ConnectionSlot {
    admission: Arc<Admission>,
    /// The client network. `None` until a proxy has named its client.
    network: Option<u128>,
}

impl ConnectionSlot {
    /// Counts a proxy's connection for its client, which is known now. An error means that the client has too many already.
    pub(crate) fn assign_client(&mut self, address: Ipv6Addr) -> Result<(), Counter> {
        let network = network_of(address);
        let mut open = self.admission.open();
        let held = open.networks.get(&network).copied().unwrap_or(0);
        if held >= open.limits.per_client {
            return Err(Counter::ClosedClientLimit);
        }
        open.networks.insert(network, held + 1);
        self.network = Some(network);
        Ok(())
    }
}

impl Admission {
    pub(crate) fn new(limits: Limits) -> Admission {
        Admission(Mutex::new(Open { limits, connections: 0, networks: HashMap::new() }))
    }

    /// Admits a client's connection, or returns the limit that forbids it. The limit per client is checked first, so that a
    /// client that fills its own share does not count as a full server.
    pub(crate) fn admit(self: &Arc<Admission>, address: Ipv6Addr) -> Result<ConnectionSlot, Counter> {
        let network = network_of(address);
        let mut open = self.open();
        let held = open.networks.get(&network).copied().unwrap_or(0);
        if held >= open.limits.per_client {
            return Err(Counter::RefusedClientLimit);
        }
        if open.connections >= open.limits.connections {
            return Err(Counter::RefusedTotalLimit);
        }
        open.connections += 1;
        open.networks.insert(network, held + 1);
        Ok(ConnectionSlot { admission: self.clone(), network: Some(network) })
    }

    /// Admits a proxy's connection. The proxy names its client later ([`ConnectionSlot::assign_client`]).
    pub(crate) fn admit_proxy(self: &Arc<Admission>) -> Result<ConnectionSlot, Counter> {
        let mut open = self.open();
        if open.connections >= open.limits.connections {
            return Err(Counter::RefusedTotalLimit);
        }
        open.connections += 1;
        Ok(ConnectionSlot { admission: self.clone(), network: None })
    }

    /// Sets new limits. Connections beyond them stay until they end, which is soon: the idle timeout is then at its shortest.
    pub(crate) fn configure(&self, limits: Limits) {
        self.open().limits = limits;
    }

    pub(crate) fn connections(&self) -> usize {
        self.open().connections
    }

    /// The timeouts that hold now.
    pub(crate) fn timeouts(&self) -> Timeouts {
        let open = self.open();
        Timeouts { idle: open.limits.idle_at(open.connections), answer_wait: open.limits.answer_wait }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn networks(&self) -> usize {
        self.open().networks.len()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut open = self.admission.open();
        open.connections -= 1;
        if let Some(network) = self.network
            && let Some(held) = open.networks.get_mut(&network)
        {
            *held -= 1;
            if *held == 0 {
                open.networks.remove(&network);
            }
        }
    }
}

/// The network under which an address (IPv4 as IPv4-mapped) is counted: an IPv6 client controls a /64.
fn network_of(address: Ipv6Addr) -> u128 {
    let bits = u128::from(address);
    if address.to_ipv4_mapped().is_some() { bits } else { bits >> 64 << 64 }
}

/// The timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    pub(crate) idle: Duration,
    pub(crate) answer_wait: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(connections: usize, per_client: usize) -> Arc<Admission> {
        Arc::new(Admission::new(Limits { connections, per_client, ..Limits::default() }))
    }

    fn address(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    #[test]
    fn an_ipv6_client_is_its_64_and_an_ipv4_client_is_its_address() {
        let admission = admission(100, 1);
        let _first = admission.admit(address("2001:db8:1:2::1")).unwrap();
        assert_eq!(admission.admit(address("2001:db8:1:2:ffff::1")).err(), Some(Counter::RefusedClientLimit));
        let _other = admission.admit(address("2001:db8:1:3::1")).unwrap();
        let _v4 = admission.admit(address("::ffff:192.0.2.1")).unwrap();
        assert_eq!(admission.admit(address("::ffff:192.0.2.1")).err(), Some(Counter::RefusedClientLimit));
        let _next_v4 = admission.admit(address("::ffff:192.0.2.2")).unwrap();
        assert_eq!(admission.connections(), 4);
    }

    #[test]
    fn a_slot_that_is_given_up_is_free_again_and_leaves_no_trace() {
        let admission = admission(2, 2);
        let slots: Vec<ConnectionSlot> =
            (0..2).map(|_| admission.admit(address("2001:db8::1")).unwrap()).collect();
        assert_eq!(admission.admit(address("2001:db8:1::1")).err(), Some(Counter::RefusedTotalLimit));
        drop(slots);
        assert_eq!((admission.connections(), admission.networks()), (0, 0));
        assert!(admission.admit(address("2001:db8:1::1")).is_ok());
    }

    #[test]
    fn a_proxy_counts_in_all_and_its_clients_one_by_one() {
        let admission = admission(3, 1);
        let mut first = admission.admit_proxy().unwrap();
        let mut second = admission.admit_proxy().unwrap();
        assert_eq!((admission.connections(), admission.networks()), (2, 0));
        first.assign_client(address("2001:db8:1::1")).unwrap();
        assert_eq!(second.assign_client(address("2001:db8:1::2")), Err(Counter::ClosedClientLimit));
        assert_eq!(admission.admit(address("2001:db8:1::3")).err(), Some(Counter::RefusedClientLimit));
        second.assign_client(address("::ffff:192.0.2.1")).unwrap();
        let third = admission.admit_proxy().unwrap();
        assert_eq!(admission.admit_proxy().err(), Some(Counter::RefusedTotalLimit));
        drop((first, second, third));
        assert_eq!((admission.connections(), admission.networks()), (0, 0));
    }

    #[test]
    fn lower_limits_hold_for_the_next_connection() {
        let admission = admission(10, 10);
        let _slots: Vec<ConnectionSlot> =
            (0..5).map(|_| admission.admit(address("2001:db8::1")).unwrap()).collect();
        admission.configure(Limits { connections: 5, per_client: 10, ..Limits::default() });
        assert_eq!(admission.admit(address("2001:db8:1::1")).err(), Some(Counter::RefusedTotalLimit));
        assert_eq!(admission.timeouts().idle, Limits::default().idle / 10);
    }
}
