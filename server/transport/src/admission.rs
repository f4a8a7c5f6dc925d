//! Admission: the limits on open connections, in all, per client network and per customer (`client-prefix`), and on handshakes. Only stream
//! threads take the lock, once or twice per connection and once per sweep.
//!
//! The networks of one customer together may hold at most as many connections as are free: one customer alone gets half of them, a
//! second one half of the rest. A network may open one more while it holds fewer than [`CUSTOMER_PARTS`] parts of what its customer may
//! still take, so some are left for its neighbours. A customer with no more connections than one network may have is not limited.

use crate::close_reason::CloseReason;
use crate::counters::Counter;
use crate::handshake_rate::HandshakeRates;
use crate::limits::{self, CUSTOMER_PARTS, Limits};
use engine::{Client, ClientNetwork, IdleTimeout};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The counts of open connections.
pub(crate) struct Admission(Mutex<Open>);

struct Open {
    limits: Limits,
    connections: usize,
    /// Connections by client network. A network without connections has no entry.
    networks: HashMap<ClientNetwork, usize>,
    /// Connections by customer.
    customers: HashMap<ClientNetwork, usize>,
    handshakes: HandshakeRates,
}

/// A guard that counts one connection until it is dropped.
pub(crate) struct ConnectionSlot {
    admission: Arc<Admission>,
    /// The client network and its customer. `None` until a proxy has named its client.
    counted: Option<(ClientNetwork, ClientNetwork)>,
}

/// Limit that forbids a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The client's network has as many connections as one network may have.
    ClientLimit,
    /// The server has as many connections as it may have.
    TotalLimit,
}

impl Refusal {
    pub(crate) fn counter(self) -> Counter {
        match self {
            Refusal::ClientLimit => Counter::RefusedClientLimit,
            Refusal::TotalLimit => Counter::RefusedTotalLimit,
        }
    }
}

impl ConnectionSlot {
    /// Counts a proxy's connection for its client, which is known now.
    ///
    /// # Errors
    ///
    /// `CloseReason::ClientLimit`: the client's network has as many connections as one network may have.
    pub(crate) fn assign_client(&mut self, client: &Client) -> Result<(), CloseReason> {
        self.counted = Some(self.admission.open().count(client.network()).ok_or(CloseReason::ClientLimit)?);
        Ok(())
    }
}

impl Open {
    /// Counts one more connection of a network. Returns the network and its customer, or none if it has too many already.
    fn count(&mut self, network: ClientNetwork) -> Option<(ClientNetwork, ClientNetwork)> {
        let Limits { connections, per_client, client_prefix, .. } = self.limits;
        let customer = network.customer(client_prefix);
        let held = self.networks.get(&network).copied().unwrap_or(0);
        let held_by_customer = self.customers.get(&customer).copied().unwrap_or(0);
        if held >= per_client {
            return None;
        }
        let left = connections.saturating_sub(self.connections).saturating_sub(held_by_customer);
        let is_within_customer = network.is_customer(client_prefix)
            || held_by_customer < per_client
            || held * CUSTOMER_PARTS < left;
        if !is_within_customer {
            return None;
        }
        self.networks.insert(network, held + 1);
        self.customers.insert(customer, held_by_customer + 1);
        Some((network, customer))
    }

    /// Counts one connection less.
    fn uncount(&mut self, (network, customer): (ClientNetwork, ClientNetwork)) {
        for (counts, subject) in [(&mut self.networks, network), (&mut self.customers, customer)] {
            if let Some(held) = counts.get_mut(&subject) {
                *held -= 1;
                if *held == 0 {
                    counts.remove(&subject);
                }
            }
        }
    }
}

impl Admission {
    pub(crate) fn new(limits: Limits) -> Admission {
        Admission(Mutex::new(Open {
            limits,
            connections: 0,
            networks: HashMap::new(),
            customers: HashMap::new(),
            handshakes: HandshakeRates::default(),
        }))
    }

    /// Admits a client's connection. The limit per client is checked first, so that a client that fills its own share does not count as
    /// a full server.
    ///
    /// # Errors
    ///
    /// The limit that forbids the connection: of the client's network, or of the server.
    pub(crate) fn admit(self: &Arc<Admission>, client: &Client) -> Result<ConnectionSlot, Refusal> {
        let mut open = self.open();
        let counted = open.count(client.network()).ok_or(Refusal::ClientLimit)?;
        if open.connections >= open.limits.connections {
            open.uncount(counted);
            return Err(Refusal::TotalLimit);
        }
        open.connections += 1;
        Ok(ConnectionSlot { admission: self.clone(), counted: Some(counted) })
    }

    /// Admits a proxy's connection. The proxy names its client later ([`ConnectionSlot::assign_client`]).
    ///
    /// # Errors
    ///
    /// `Refusal::TotalLimit`: the server has as many connections as it may have.
    pub(crate) fn admit_proxy(self: &Arc<Admission>) -> Result<ConnectionSlot, Refusal> {
        let mut open = self.open();
        if open.connections >= open.limits.connections {
            return Err(Refusal::TotalLimit);
        }
        open.connections += 1;
        Ok(ConnectionSlot { admission: self.clone(), counted: None })
    }

    /// Counts a handshake that is to begin. Returns false if the client's network or customer has begun too many. `is_proven`: the client's address
    /// is not forged.
    pub(crate) fn begin_handshake(&self, now: Instant, client: &Client, is_proven: bool) -> bool {
        let mut open = self.open();
        let limits = open.limits;
        open.handshakes.take(now, client.network(), is_proven, &limits)
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
        Timeouts {
            idle: open.limits.idle_at(open.connections),
            told: open.limits.idle_timeout_at(open.connections),
            answer_wait: open.limits.answer_wait,
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn networks(&self) -> usize {
        let open = self.open();
        assert!(open.customers.len() <= open.networks.len());
        open.networks.len()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut open = self.admission.open();
        open.connections -= 1;
        if let Some(counted) = self.counted {
            open.uncount(counted);
        }
    }
}

/// The timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    pub(crate) idle: Duration,
    /// The idle timeout that clients are told.
    pub(crate) told: IdleTimeout,
    pub(crate) answer_wait: Duration,
}

impl Timeouts {
    /// The shortest timeout of a connection, and the time between two looks for those that have expired.
    pub(crate) fn sweeps(&self, is_ending: bool) -> (Duration, Duration) {
        let retired = if is_ending { limits::RETIRED_IDLE } else { Duration::MAX };
        let shortest = self.idle.min(self.answer_wait).min(retired);
        let pause = shortest / limits::CHECKS_PER_TIMEOUT;
        (shortest, pause.clamp(Duration::from_millis(5), limits::LONGEST_CHECK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn admission(connections: usize, per_client: usize) -> Arc<Admission> {
        Arc::new(Admission::new(Limits { connections, per_client, ..Limits::default() }))
    }

    /// A client with this address. Of a link-local address the interface has this number.
    fn client(address: &str, scope: u32) -> Client {
        Client { scope, ..Client::udp(SocketAddr::new(address.parse().unwrap(), 4000)) }
    }

    fn from(address: &str) -> Client {
        client(address, 0)
    }

    #[test]
    fn an_ipv6_client_is_its_64_and_an_ipv4_client_is_its_address() {
        let admission = admission(100, 1);
        let _first = admission.admit(&from("2001:db8:1:2::1")).unwrap();
        assert_eq!(admission.admit(&from("2001:db8:1:2:ffff::1")).err(), Some(Refusal::ClientLimit));
        let _other = admission.admit(&from("2001:db8:1:3::1")).unwrap();
        let _v4 = admission.admit(&from("::ffff:192.0.2.1")).unwrap();
        assert_eq!(admission.admit(&from("::ffff:192.0.2.1")).err(), Some(Refusal::ClientLimit));
        let _next_v4 = admission.admit(&from("::ffff:192.0.2.2")).unwrap();
        assert_eq!(admission.connections(), 4);
    }

    #[test]
    fn a_slot_that_is_given_up_is_free_again_and_leaves_no_trace() {
        let admission = admission(2, 2);
        let slots: Vec<ConnectionSlot> =
            (0..2).map(|_| admission.admit(&from("2001:db8::1")).unwrap()).collect();
        assert_eq!(admission.admit(&from("2001:db8:1::1")).err(), Some(Refusal::TotalLimit));
        drop(slots);
        assert_eq!((admission.connections(), admission.networks()), (0, 0));
        assert!(admission.admit(&from("2001:db8:1::1")).is_ok());
    }

    #[test]
    fn a_proxy_counts_in_all_and_its_clients_one_by_one() {
        let admission = admission(3, 1);
        let mut first = admission.admit_proxy().unwrap();
        let mut second = admission.admit_proxy().unwrap();
        assert_eq!((admission.connections(), admission.networks()), (2, 0));
        first.assign_client(&from("2001:db8:1::1")).unwrap();
        assert_eq!(second.assign_client(&from("2001:db8:1::2")), Err(CloseReason::ClientLimit));
        assert_eq!(admission.admit(&from("2001:db8:1::3")).err(), Some(Refusal::ClientLimit));
        second.assign_client(&from("::ffff:192.0.2.1")).unwrap();
        let third = admission.admit_proxy().unwrap();
        assert_eq!(admission.admit_proxy().err(), Some(Refusal::TotalLimit));
        drop((first, second, third));
        assert_eq!((admission.connections(), admission.networks()), (0, 0));
    }

    #[test]
    fn lower_limits_hold_for_the_next_connection() {
        let admission = admission(10, 10);
        let _slots: Vec<ConnectionSlot> =
            (0..5).map(|_| admission.admit(&from("2001:db8::1")).unwrap()).collect();
        admission.configure(Limits { connections: 5, per_client: 10, ..Limits::default() });
        assert_eq!(admission.admit(&from("2001:db8:1::1")).err(), Some(Refusal::TotalLimit));
        assert_eq!(admission.timeouts().idle, Limits::default().idle / 10);
    }

    #[test]
    fn one_customer_takes_neither_all_places_nor_those_of_its_neighbours() {
        for prefix in ["2001:db8:1", "fe80"] {
            let admission = admission(10_000, 100);
            // Of 256 networks of a /56, or of as many link-local clients of a link, each wants as much as a network may have.
            let greedy = |number: usize| match prefix {
                "fe80" => client(&format!("fe80::{:x}", 1 + number), 2),
                _ => from(&format!("{prefix}:{number:x}::1")),
            };
            let mut slots: Vec<ConnectionSlot> =
                (0..25_600).filter_map(|number| admission.admit(&greedy(number % 250)).ok()).collect();
            assert!((4_000..5_000).contains(&slots.len()), "{}", slots.len());
            // A neighbour in this customer, another customer, and a client with IPv4.
            let places = |client: &Client, slots: &mut Vec<ConnectionSlot>| {
                let admitted: Vec<_> = (0..200).map_while(|_| admission.admit(client).ok()).collect();
                let count = admitted.len();
                slots.extend(admitted);
                count
            };
            assert!(places(&greedy(255), &mut slots) >= 10);
            assert_eq!(places(&from("2001:db8:2::1"), &mut slots), 100);
            assert_eq!(places(&from("192.0.2.1"), &mut slots), 100);
            drop(slots);
            assert_eq!((admission.connections(), admission.networks()), (0, 0));
        }
    }

    #[test]
    fn neighbours_of_one_customer_with_ordinary_numbers_of_connections_are_all_admitted() {
        let admission = admission(10_000, 100);
        let neighbour = |number: usize| from(&format!("2001:db8:0:{:x}::1", number % 256));
        let slots: Vec<_> =
            (0..256 * 10).map(|number| admission.admit(&neighbour(number)).unwrap()).collect();
        // 40 of them may even have all that a network may have.
        drop(slots);
        let slots: Vec<_> =
            (0..4_000).map(|number| admission.admit(&neighbour(number % 40)).unwrap()).collect();
        assert_eq!(slots.len(), 4_000);
    }

    #[test]
    fn one_network_may_have_all_places_if_the_configuration_says_so() {
        let admission = admission(50, 50);
        let slots: Vec<_> = (0..50).map(|_| admission.admit(&from("2001:db8::1")).unwrap()).collect();
        assert_eq!((slots.len(), admission.networks()), (50, 1));
    }

    #[test]
    fn link_local_clients_are_told_apart_by_address_and_interface() {
        let admission = admission(100, 1);
        let _first = admission.admit(&client("fe80::1", 2)).unwrap();
        assert_eq!(admission.admit(&client("fe80::1", 2)).err(), Some(Refusal::ClientLimit));
        let _slots = [("fe80::2", 2), ("fe80::1", 3)]
            .map(|(address, scope)| admission.admit(&client(address, scope)).unwrap());
    }
}
