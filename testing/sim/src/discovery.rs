//! Prefixes that are discovered: the sources of a world tell of some, of others, or of none any more.

use crate::config::{Config, DiscoveryConfig};
use crate::prefix::Prefix;
use crate::rng::Rng;

/// The sources of a world. They draw numbers of their own: a world without them plays as if there were none.
pub struct Sources(Rng);

impl Sources {
    /// The sources of the world of a seed.
    pub fn new(seed: u64) -> Sources {
        Sources(Rng::new(seed ^ 0xa54f_f53a_5f1d_36f1))
    }

    /// Draws whether a configuration has sources. Nothing is discovered yet, and half of these configurations have no prefix until then.
    pub fn draw(&mut self, config: &mut Config) {
        if config.gateways.is_some() || config.discovery.is_some() || !self.0.permille(400) {
            return;
        }
        if self.0.permille(500) {
            config.prefixes.clear();
        }
        config.discovery = Some(DiscoveryConfig { configured: config.prefixes.len(), ttl: 3600 });
    }

    /// Draws whether the sources change their mind.
    pub fn draws_change(&mut self) -> bool {
        self.0.below(1000) < 4
    }

    /// What follows from a configuration if they do. None: it has no sources.
    pub fn change(&mut self, config: &Config) -> Option<Config> {
        let discovery = config.discovery?;
        let mut changed = config.clone();
        changed.discovery = Some(DiscoveryConfig { ttl: *self.0.choose(&[60, 600, 3600]), ..discovery });
        // Sometimes the TTL is all that is new.
        if self.0.permille(800) {
            changed.prefixes.truncate(discovery.configured);
            for place in 0..self.0.below(3) as u8 {
                let prefix = Prefix::draw(&mut self.0, 30 + place);
                let is_same =
                    |other: &Prefix| (other.address, other.length) == (prefix.address, prefix.length);
                if !changed.prefixes.iter().any(is_same) {
                    changed.prefixes.push(prefix);
                }
            }
        }
        Some(changed)
    }
}
