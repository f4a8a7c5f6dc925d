//! Loss of packets: independent of each other, or in bursts.

use crate::random::Random;

/// The model of loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Each packet is lost with this probability, independent of the others.
    Independent(f64),
    /// Loss in bursts, after Gilbert (1960): a good state without loss and a bad state in which every packet is lost.
    /// `begin` and `end` are the probabilities, per packet, that a burst begins and that it ends (p13 and p31 of Salsano and
    /// others, and of the netem manual). The mean length of a burst is 1 / `end` packets.
    Bursts {
        /// Probability that a burst begins, per packet.
        begin: f64,
        /// Probability that a burst ends, per packet.
        end: f64,
    },
}

impl Loss {
    /// The share of packets that are lost in the long run.
    pub fn share(&self) -> f64 {
        match *self {
            Loss::Independent(share) => share,
            Loss::Bursts { begin, .. } if begin <= 0.0 => 0.0,
            Loss::Bursts { begin, end } => begin / (begin + end),
        }
    }
}

/// State of the loss in one direction.
#[derive(Clone, Debug)]
pub(crate) struct LossState {
    loss: Loss,
    in_burst: bool,
}

impl LossState {
    /// The state at the start: no burst.
    pub fn new(loss: Loss) -> LossState {
        LossState { loss, in_burst: false }
    }

    /// True if the next packet is lost.
    pub fn is_lost(&mut self, random: &mut Random) -> bool {
        match self.loss {
            Loss::Independent(share) => random.chance(share),
            Loss::Bursts { begin, end } => {
                self.in_burst = if self.in_burst { !random.chance(end) } else { random.chance(begin) };
                self.in_burst
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(loss: Loss, packets: usize) -> Vec<bool> {
        let (mut state, mut random) = (LossState::new(loss), Random::new(3));
        (0..packets).map(|_| state.is_lost(&mut random)).collect()
    }

    #[test]
    fn independent_loss_lies_inside_the_99_percent_interval() {
        for share in [0.0, 0.001, 0.05, 0.5, 1.0] {
            let lost = losses(Loss::Independent(share), 100_000).iter().filter(|&&lost| lost).count() as f64;
            let deviation = (share * (1.0 - share) * 1e5).sqrt();
            assert!((lost - share * 1e5).abs() <= 2.576 * deviation, "{share}: {lost}");
        }
    }

    #[test]
    fn bursts_have_the_share_and_the_length_that_follow_from_their_probabilities() {
        // 0.01 / (0.01 + 0.25): 3.85 % in bursts of 4 packets.
        let loss = Loss::Bursts { begin: 0.01, end: 0.25 };
        let losses = losses(loss, 1_000_000);
        let lost = losses.iter().filter(|&&lost| lost).count() as f64;
        let bursts = losses.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        // About 9600 bursts: the standard error of their number is about 1 %, and so is that of their mean length.
        assert!((loss.share() - 0.01 / 0.26).abs() < 1e-12);
        assert!((lost / 1e6 / loss.share() - 1.0).abs() < 0.06, "{lost}");
        assert!((lost / bursts - 4.0).abs() < 0.2, "{}", lost / bursts);
    }

    #[test]
    fn a_burst_that_never_ends_loses_everything() {
        let loss = Loss::Bursts { begin: 1.0, end: 0.0 };
        assert!(losses(loss, 1000).iter().all(|&lost| lost));
        assert!((loss.share() - 1.0).abs() < f64::EPSILON);
        assert_eq!(Loss::Bursts { begin: 0.0, end: 0.0 }.share(), 0.0);
    }
}
