//! Settings of the gateways of a configuration: `[[dns64.gateway]]`, `[dns64.health]` and `dns64.spread`.

use crate::ground_truth::MILLI;
use crate::prefix::Prefix;
use crate::rng::Rng;
use engine::Span;
use engine::dns64::gateways::{AllDown, GatewayTable, Spread, TablePrefix};
use gateways::HealthSettings;

/// Time within which a death must show in answers, beside the intervals of the probes that find it.
const NOTICE: u64 = 200 * MILLI;

/// Settings of the gateways of a configuration.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// Choice among the general prefixes.
    pub spread: Spread,
    /// Without a living gateway, answers have no addresses.
    pub is_empty_if_all_down: bool,
    /// Longest TTL of an answer with a probed prefix, seconds.
    pub answer_ttl: u32,
    /// Weights of the general prefixes.
    pub weights: Vec<u32>,
    /// For each general prefix, and then for that of the rule: it is probed.
    pub probed: Vec<bool>,
    /// Settings of the probes.
    pub health: HealthSettings,
}

impl GatewayConfig {
    /// Draws the settings for a number of general prefixes.
    pub fn draw(rng: &mut Rng, prefixes: usize) -> GatewayConfig {
        let mut weights: Vec<u32> = (0..prefixes).map(|_| *rng.choose(&[1, 1, 3, 0])).collect();
        if weights.iter().all(|&weight| weight == 0) {
            weights[0] = 1;
        }
        let interval = *rng.choose(&[300, 1000]);
        GatewayConfig {
            spread: *rng.choose(&[Spread::All, Spread::Ordered, Spread::Client, Spread::Client]),
            is_empty_if_all_down: rng.permille(400),
            answer_ttl: *rng.choose(&[60, 5]),
            weights,
            probed: (0..=prefixes).map(|_| rng.permille(800)).collect(),
            health: HealthSettings {
                interval: Span(interval * MILLI),
                timeout: Span(*rng.choose(&[250, interval]) * MILLI),
                fall: 1 + rng.below(4) as u32,
                rise: 1 + rng.below(5) as u32,
            },
        }
    }

    /// The engine's table of these general prefixes and that of the rule.
    pub fn table(&self, general: &[Prefix], legacy: Option<&Prefix>) -> GatewayTable {
        let all_down = if self.is_empty_if_all_down { AllDown::Empty } else { AllDown::Keep };
        let of = |(prefix, (&weight, &is_probed)): (&Prefix, (&u32, &bool))| TablePrefix {
            prefix: prefix.to_engine(),
            weight,
            is_probed,
        };
        let listed = general.iter().zip(self.weights.iter().zip(&self.probed)).map(of).collect();
        let others = legacy.into_iter().zip([(&1, &self.probed[self.weights.len()])]).map(of).collect();
        GatewayTable::new((self.spread, all_down, self.answer_ttl), listed, others)
    }

    /// Longest time in which a death is found, nanoseconds. A probe that was sent just before the death is answered; then the interval passes, and
    /// `fall` probes time out one after the other.
    pub fn longest_detection(&self) -> u64 {
        let HealthSettings { interval, timeout, fall, .. } = self.health;
        let fall = u64::from(fall);
        (fall * interval.0).max(interval.0 + fall * timeout.0) + NOTICE
    }

    /// Longest time in which a gateway that answers again is found, nanoseconds, if no probe is lost. A probe that was sent just before fails;
    /// then `rise` probes are answered, an interval apart, the last of them after its round trip.
    pub fn longest_return(&self) -> u64 {
        let HealthSettings { interval, rise, .. } = self.health;
        (1 + u64::from(rise)) * interval.0 + NOTICE
    }
}
