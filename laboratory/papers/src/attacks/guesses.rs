//! Blind guesses of a connection count or a cookie, and the lockout that a lucky guess leaves.

use super::{Mechanism, Proof, QUERY_OCTETS, Site, SiteSettings, forged_source, forged_syn};
use crate::network::CLIENT;
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// Trials, and how many of them were executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// Executed.
    pub hits: u64,
    /// Trials.
    pub trials: u64,
}

/// One blind guess in each trial, for a client that the server knows from one query before. Count and key are random.
pub fn guess(mechanism: Mechanism, trials: u64, seed: u64) -> Hits {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut hits = 0;
    for _ in 0..trials {
        let mut site = known_site(mechanism, &mut random);
        let syn = forged_syn(forged_source(999), Proof::guess(mechanism, random.next_u64()), QUERY_OCTETS);
        hits += site.attack(&syn);
    }
    Hits { hits, trials }
}

/// Two guesses of a connection count in each trial, 2^31 apart. Returns the number of trials with no, one and two hits.
pub fn guess_in_pairs(trials: u64, seed: u64) -> [u64; 3] {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut by_hits = [0; 3];
    for _ in 0..trials {
        let mut site = known_site(Mechanism::Transactions, &mut random);
        let guess = random.next_u32();
        let hits: u64 = [(998, guess), (999, guess ^ 0x8000_0000)]
            .map(|(port, guess)| {
                site.attack(&forged_syn(forged_source(port), Proof::Count(guess), QUERY_OCTETS))
            })
            .iter()
            .sum();
        by_hits[hits as usize] += 1;
    }
    by_hits
}

/// The attacker's data is executed with a count `ahead` of the client's, or, with Fast Open, `ahead` guesses of the cookie come.
/// Returns the number of the client's next queries, at most `limit`, that make a handshake before one is fast again.
pub fn lockout(mechanism: Mechanism, ahead: u32, limit: u64, seed: u64) -> u64 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut site = poisoned_site(mechanism, ahead, &mut random);
    (0..limit).take_while(|_| !site.query_is_fast()).count() as u64
}

/// Guesses where the client restarts after the attack, and its first SYN carries CC.NEW.
pub fn lockout_after_restart(ahead: u32, limit: u64, seed: u64) -> u64 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut site = poisoned_site(Mechanism::Transactions, ahead, &mut random);
    site.network.client.reboot(random.next_u32());
    (0..limit).take_while(|_| !site.query_is_fast()).count() as u64
}

fn poisoned_site(mechanism: Mechanism, ahead: u32, random: &mut ChaCha8Rng) -> Site {
    let mut site = known_site(mechanism, random);
    match mechanism {
        Mechanism::Tcp => {}
        Mechanism::Transactions => {
            let known = site.network.server.hosts().get(CLIENT.into()).received.expect("a known client");
            let syn = forged_syn(forged_source(999), Proof::Count(known.plus(ahead).0), QUERY_OCTETS);
            assert_eq!(site.attack(&syn), 1, "a later count passes the TAO test");
        }
        Mechanism::FastOpen => {
            for number in 0..ahead {
                let proof = Proof::guess(mechanism, random.next_u64());
                site.attack(&forged_syn(forged_source(1 + (number % 1000) as u16), proof, QUERY_OCTETS));
            }
        }
    }
    site
}

/// A site whose client has asked once.
fn known_site(mechanism: Mechanism, random: &mut ChaCha8Rng) -> Site {
    let (count, key, seed) = (random.next_u32(), random.next_u64(), random.next_u64());
    let mut site = Site::new(SiteSettings::new(mechanism), count, key, seed);
    site.query();
    site
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_all_counts_and_no_cookie_are_guessed() {
        let counts = guess(Mechanism::Transactions, 2000, 1);
        // 99.99 % of binomial samples: 1000 +- 3.9 * sqrt(500).
        assert!(counts.hits.abs_diff(1000) <= 87, "{counts:?}");
        assert_eq!(guess(Mechanism::FastOpen, 2000, 2).hits, 0);
        assert_eq!(guess(Mechanism::Tcp, 100, 3).hits, 0);
        assert_eq!(guess_in_pairs(500, 4), [0, 500, 0]);
    }

    #[test]
    fn a_forged_count_locks_the_client_out_for_as_many_queries_as_it_is_ahead() {
        for ahead in [1, 10, 100] {
            assert_eq!(lockout(Mechanism::Transactions, ahead, 1000, 5), u64::from(ahead));
        }
        assert_eq!(lockout(Mechanism::Transactions, 0x4000_0000, 50, 5), 50);
        assert_eq!(lockout(Mechanism::FastOpen, 200, 50, 6), 0);
        // CC.NEW replaces the forged count: one handshake.
        assert_eq!(lockout_after_restart(0x4000_0000, 50, 7), 1);
    }
}
