//! The rate of TLS and QUIC handshakes per client network and customer ([`Limits::handshakes_per_second`]). Whoever opens connections and
//! closes them at once never reaches the limits on open connections, but each handshake costs signatures and key exchanges.
//!
//! Resumed sessions count too: with TLS 1.3 they cost hardly less (docs/benchmarks.md), and nobody knows before the work what a ticket is
//! worth.
//!
//! A network and its customer have token buckets. A bucket is kept as the time at which it is full again (the generic cell rate
//! algorithm), so nothing refills it, and a network without an entry has a full one.

use crate::limits::{HANDSHAKE_BUCKETS, HANDSHAKE_BURST, Limits};
use engine::ClientNetwork;
use engine::limits::CUSTOMER_RATES;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A network or customer, and whether its addresses are proven. The source of a first datagram may be forged: handshakes of both kinds have
/// tokens of their own, so that a forger takes none from the client itself.
type Subject = (ClientNetwork, bool);

/// The token buckets of all networks and customers.
#[derive(Default)]
pub(crate) struct HandshakeRates {
    networks: Buckets,
    customers: Buckets,
}

impl HandshakeRates {
    /// Takes a token of a network for one handshake, and one of its customer. Returns false if one of them has none left.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        network: ClientNetwork,
        is_proven: bool,
        limits: &Limits,
    ) -> bool {
        let interval = Duration::from_secs(1) / limits.handshakes_per_second();
        let subject = (network, is_proven);
        let customer = (network.customer(limits.client_prefix), is_proven);
        let has_level = !network.is_customer(limits.client_prefix);
        let is_within = self.networks.has_token(now, &subject, interval)
            && (!has_level || self.customers.has_token(now, &customer, interval / CUSTOMER_RATES));
        if is_within {
            self.networks.take(now, subject, interval);
            if has_level {
                self.customers.take(now, customer, interval / CUSTOMER_RATES);
            }
        }
        is_within
    }
}

/// When the buckets are full again. The hash has a random key, so nobody can choose networks that collide.
#[derive(Default)]
struct Buckets(HashMap<Subject, Instant>);

impl Buckets {
    fn owed(&self, now: Instant, subject: &Subject) -> Duration {
        self.0.get(subject).map_or(Duration::ZERO, |full| full.saturating_duration_since(now))
    }

    fn has_token(&self, now: Instant, subject: &Subject, interval: Duration) -> bool {
        self.owed(now, subject) + interval <= HANDSHAKE_BURST
    }

    fn take(&mut self, now: Instant, subject: Subject, interval: Duration) {
        let full = now + self.owed(now, &subject) + interval;
        if self.0.len() >= HANDSHAKE_BUCKETS && !self.0.contains_key(&subject) {
            self.0.retain(|_, full| *full > now);
            // See HANDSHAKE_BUCKETS: it does not come to that.
            if self.0.len() >= HANDSHAKE_BUCKETS {
                self.0.clear();
            }
        }
        self.0.insert(subject, full);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    /// A network: this address with a number added to its upper half.
    fn network(address: &str, number: u64) -> ClientNetwork {
        let address: Ipv6Addr = address.parse().unwrap();
        ClientNetwork::of(Ipv6Addr::from(u128::from(address) + (u128::from(number) << 64)), 0)
    }

    /// Number of handshakes that are within the limits, of this many at one time.
    fn within(rates: &mut HandshakeRates, now: Instant, network: ClientNetwork, tries: usize) -> usize {
        (0..tries).filter(|_| rates.take(now, network, true, &Limits::default())).count()
    }

    #[test]
    fn a_network_has_its_burst_at_once_and_then_its_rate_and_others_do_not_feel_it() {
        let (mut rates, start) = (HandshakeRates::default(), Instant::now());
        for address in ["::ffff:192.0.2.1", "2001:db8::1"] {
            let one = network(address, 0);
            assert_eq!(within(&mut rates, start, one, 3_000), 1_000);
            assert_eq!(within(&mut rates, start + Duration::from_secs(1), one, 3_000), 200);
            // Tries beyond the rate cost nothing: after five quiet seconds all tokens are back.
            assert_eq!(within(&mut rates, start + Duration::from_secs(6), one, 3_000), 1_000);
        }
        assert_eq!(within(&mut rates, start, network("::ffff:192.0.2.2", 0), 3_000), 1_000);
    }

    #[test]
    fn the_networks_of_a_customer_have_four_shares_together() {
        let (mut rates, start) = (HandshakeRates::default(), Instant::now());
        let all = |rates: &mut HandshakeRates| -> usize {
            (0..256).map(|number| within(rates, start, network("2001:db8:1::", number), 1_000)).sum()
        };
        assert_eq!(all(&mut rates), 4_000);
        assert_eq!(all(&mut rates), 0);
        assert_eq!(within(&mut rates, start, network("2001:db8:2::", 0), 2_000), 1_000, "another customer");
    }

    #[test]
    fn forged_addresses_take_no_tokens_from_the_client_that_has_them() {
        let (mut rates, now) = (HandshakeRates::default(), Instant::now());
        let victim = network("::ffff:192.0.2.1", 0);
        let forged = (0..3_000).filter(|_| rates.take(now, victim, false, &Limits::default())).count();
        assert_eq!((forged, within(&mut rates, now, victim, 3_000)), (1_000, 1_000));
    }

    #[test]
    fn a_network_that_may_hold_more_connections_may_begin_more() {
        let mut rates = HandshakeRates::default();
        let limits = Limits { per_client: 1, ..Limits::default() };
        let now = Instant::now();
        let of_one = (0..100).filter(|_| rates.take(now, network("2001:db8::", 0), true, &limits)).count();
        assert_eq!(of_one, 10);
        for per_client in [0, usize::MAX] {
            let limits = Limits { per_client, ..Limits::default() };
            assert!(rates.take(now, network("2001:db8::", 1), true, &limits));
        }
    }

    #[test]
    fn handshakes_of_a_million_networks_take_a_bounded_table_and_lift_nobodys_limit() {
        let (mut rates, start) = (HandshakeRates::default(), Instant::now());
        let greedy = network("::ffff:192.0.2.1", 0);
        assert_eq!(within(&mut rates, start, greedy, 3_000), 1_000);
        // As many in a second as no machine begins. The greedy network wants more all the time.
        let mut more = 0;
        for number in 0..400_000 {
            let now = start + Duration::from_micros(number * 5 / 2);
            more += within(&mut rates, now, greedy, 1);
            assert!(rates.take(now, network("2001:db8::", number << 8), true, &Limits::default()));
            assert!(
                rates.networks.0.len() <= HANDSHAKE_BUCKETS && rates.customers.0.len() <= HANDSHAKE_BUCKETS
            );
        }
        assert!((199..=201).contains(&more), "{more}");
    }
}
