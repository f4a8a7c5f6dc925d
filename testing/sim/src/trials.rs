//! Trials of the addresses in real AAAA records, for a rule with `real-aaaa = "verify"`: which of them the engine was told to be dead.

use crate::config::Config;
use crate::rng::Rng;
use engine::Instant;
use engine::dns64::verdicts::{Untried, Verdict, Verdicts};
use splitmix::mix;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// True for each address that was tried and lives.
pub type Fates = BTreeMap<[u8; 16], bool>;

/// The trials of a world. They draw numbers of their own: a world without them plays as if there were none.
pub struct Trials {
    rng: Rng,
    verdicts: BTreeMap<Ipv6Addr, Verdict>,
    /// What the engine was told, one after the other. The first is empty.
    pub told: Vec<Fates>,
}

impl Trials {
    /// The trials of the world of a seed.
    pub fn new(seed: u64) -> Trials {
        let rng = Rng::new(seed ^ 0x510e_527f_ade6_82d1);
        Trials { rng, verdicts: BTreeMap::new(), told: vec![Fates::new()] }
    }

    /// Draws whether a configuration verifies real addresses. Policy zones, which may match some that are left out, are judged without them.
    pub fn draw(&mut self, config: &mut Config) {
        if config.verified.is_none() && config.policy.is_empty() && self.rng.permille(400) {
            // The one with most names, or that in which they may be ignored.
            config.verified = Some(if config.ignores { 0 } else { *self.rng.choose(&[0, 0, 2]) });
        }
    }

    /// Draws whether trials end now.
    pub fn draws_end(&mut self) -> bool {
        self.rng.below(100) < 2
    }

    /// Trials end: of the addresses that the engine has met since, and of some that were tried before.
    pub fn end(&mut self, untried: Untried, at: Instant) {
        let salt = self.rng.next_u64();
        let again: Vec<Ipv6Addr> = self.verdicts.keys().copied().collect();
        let again = again.into_iter().filter(|_| self.rng.permille(100));
        for address in untried.addresses.into_keys().chain(again.collect::<Vec<_>>()) {
            let lives = mix(u128::from(address) as u64 ^ salt) % 5 < 2;
            self.verdicts.insert(address, Verdict { lives, at });
        }
        self.told
            .push(self.verdicts.iter().map(|(address, verdict)| (address.octets(), verdict.lives)).collect());
    }

    /// What the engine is told.
    pub fn to_engine(&self) -> Arc<Verdicts> {
        Arc::new(Verdicts::new(self.verdicts.iter().map(|(&address, &verdict)| (address, verdict))))
    }
}
