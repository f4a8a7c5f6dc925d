//! One-way delay of a packet.

use crate::random::Random;
use core::time::Duration;

/// Shape of the Pareto distribution: its tail is heavy, and its mean and deviation exist.
const SHAPE: f64 = 3.0;

/// The distribution of the delay around its mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// Constant; with a jitter uniform between mean - jitter and mean + jitter.
    #[default]
    Constant,
    /// Normal, with the jitter as standard deviation.
    Normal,
    /// Pareto with shape 3, moved and scaled so that the mean is the delay and the standard deviation the jitter: most packets
    /// are a little early, and few are very late.
    Pareto,
}

/// One-way delay. A delay that would be negative is 0, so the achieved mean is higher than asked where the jitter is about as
/// large as the mean.
///
/// Each packet has its own delay: with a jitter longer than the gap between packets, packets overtake each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    /// Mean.
    pub mean: Duration,
    /// Half of the width (constant) or standard deviation (normal, Pareto).
    pub jitter: Duration,
    /// Distribution around the mean.
    pub distribution: Distribution,
}

impl Delay {
    /// Draws the delay of a packet.
    pub(crate) fn draw(&self, random: &mut Random) -> Duration {
        if self.jitter.is_zero() {
            return self.mean;
        }
        let deviations = match self.distribution {
            Distribution::Constant => 2.0 * random.unit() - 1.0,
            Distribution::Normal => random.normal(),
            Distribution::Pareto => pareto(1.0 - random.unit()),
        };
        self.at(deviations)
    }

    /// The delay that half of the packets do not reach, for comparison with the measured one.
    pub fn median(&self) -> Duration {
        match self.distribution {
            Distribution::Constant | Distribution::Normal => self.mean,
            Distribution::Pareto => self.at(pareto(0.5)),
        }
    }

    /// The delay this many jitters from the mean, at least 0 and at most the limit.
    fn at(&self, deviations: f64) -> Duration {
        let seconds = self.mean.as_secs_f64() + deviations * self.jitter.as_secs_f64();
        Duration::from_secs_f64(seconds.clamp(0.0, crate::limits::DELAY.as_secs_f64()))
    }
}

/// The Pareto distribution by its inverse, with mean 0 and deviation 1, for a `tail` from 0 (excluded) to 1: the share of
/// packets that are later.
fn pareto(tail: f64) -> f64 {
    let mean = SHAPE / (SHAPE - 1.0);
    let deviation = (SHAPE / ((SHAPE - 1.0).powi(2) * (SHAPE - 2.0))).sqrt();
    (tail.powf(-1.0 / SHAPE) - mean) / deviation
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(delay: Delay) -> Vec<f64> {
        let mut random = Random::new(5);
        let mut draws: Vec<f64> = (0..100_000).map(|_| delay.draw(&mut random).as_secs_f64() * 1e3).collect();
        draws.sort_by(f64::total_cmp);
        draws
    }

    fn delay(distribution: Distribution) -> Delay {
        Delay { mean: Duration::from_millis(100), jitter: Duration::from_millis(10), distribution }
    }

    fn mean(draws: &[f64]) -> f64 {
        draws.iter().sum::<f64>() / draws.len() as f64
    }

    fn deviation(draws: &[f64]) -> f64 {
        let mean = mean(draws);
        (draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64).sqrt()
    }

    #[test]
    fn without_jitter_every_distribution_is_constant() {
        for distribution in [Distribution::Constant, Distribution::Normal, Distribution::Pareto] {
            let delay = Delay { jitter: Duration::ZERO, ..delay(distribution) };
            assert!(draws(delay).iter().all(|&draw| (draw - 100.0).abs() < 1e-9));
        }
    }

    #[test]
    fn a_constant_delay_with_jitter_is_uniform() {
        let draws = draws(delay(Distribution::Constant));
        assert!(draws[0] >= 90.0 && draws[99_999] <= 110.0);
        // A uniform distribution of width 20 has the deviation 20 / sqrt(12).
        assert!((deviation(&draws) - 20.0 / 12_f64.sqrt()).abs() < 0.05);
        assert!((mean(&draws) - 100.0).abs() < 0.1);
    }

    #[test]
    fn a_normal_delay_has_the_quantiles_of_the_normal_distribution() {
        let draws = draws(delay(Distribution::Normal));
        assert!((mean(&draws) - 100.0).abs() < 0.15);
        assert!((draws[50_000] - 100.0).abs() < 0.2);
        // The 99th percentile lies 2.326 deviations above the mean.
        assert!((draws[99_000] - 123.26).abs() < 0.6, "{}", draws[99_000]);
    }

    #[test]
    fn a_pareto_delay_has_the_mean_the_deviation_and_the_tail_that_were_asked() {
        let draws = draws(delay(Distribution::Pareto));
        assert!((mean(&draws) - 100.0).abs() < 0.2, "{}", mean(&draws));
        // The fourth moment does not exist, so the measured deviation converges slowly.
        assert!((deviation(&draws) - 10.0).abs() < 1.5, "{}", deviation(&draws));
        // By hand: (2^(1/3) - 1.5) / sqrt(0.75) = -0.2772; (100^(1/3) - 1.5) / sqrt(0.75) = 3.6276.
        assert!((draws[50_000] - 97.228).abs() < 0.1, "{}", draws[50_000]);
        assert!((draws[99_000] - 136.28).abs() < 1.5, "{}", draws[99_000]);
        assert!((delay(Distribution::Pareto).median().as_secs_f64() - 0.097_228).abs() < 1e-5);
    }

    #[test]
    fn a_delay_is_never_negative_and_never_beyond_the_limit() {
        let wild =
            Delay { mean: Duration::ZERO, jitter: Duration::from_secs(59), ..delay(Distribution::Normal) };
        let draws = draws(wild);
        assert!(draws[0] >= 0.0 && draws[99_999] <= 60_000.0);
    }
}
