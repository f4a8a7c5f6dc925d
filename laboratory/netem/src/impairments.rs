//! Settings of one direction of a link, and their limits.

use crate::delay::Delay;
use crate::limits;
use crate::loss::Loss;
use core::fmt;
use core::time::Duration;

/// Impairments of one direction. The default passes everything on at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impairments {
    /// One-way delay.
    pub delay: Delay,
    /// Loss on the line.
    pub loss: Loss,
    /// Rate of the line, bits per second of IP packets; none: no limit, and no queue.
    pub rate: Option<u64>,
    /// Octets that may wait before the line, with the rest of the packet that is being sent.
    pub queue_octets: usize,
    /// Probability that a packet is sent twice.
    pub duplicate: f64,
    /// Probability that a packet is overtaken by the next one.
    pub reorder: f64,
    /// Probability that one bit of a packet is flipped.
    pub corrupt: f64,
    /// Longest packet, octets.
    pub mtu: usize,
}

impl Default for Impairments {
    fn default() -> Impairments {
        Impairments {
            delay: Delay::default(),
            loss: Loss::Independent(0.0),
            rate: None,
            queue_octets: limits::QUEUE_OCTETS,
            duplicate: 0.0,
            reorder: 0.0,
            corrupt: 0.0,
            mtu: 1500,
        }
    }
}

/// A setting beyond its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ImpairmentError {
    /// A probability that is not from 0 to 1: name of the setting, value.
    Probability(&'static str, f64),
    /// A delay or jitter above the limit; make it shorter.
    Delay(Duration),
    /// A rate of 0, which would never send a packet; leave the rate out for no limit.
    Rate,
    /// An MTU beyond its limits.
    Mtu(usize),
    /// A queue larger than what may be under way.
    Queue(usize),
}

impl fmt::Display for ImpairmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImpairmentError::Probability(name, value) => {
                write!(f, "{name} is a probability from 0 to 1, not {value}")
            }
            ImpairmentError::Delay(delay) => {
                write!(
                    f,
                    "a delay of {delay:?} is longer than {:?}, the most that a link keeps a packet",
                    limits::DELAY
                )
            }
            ImpairmentError::Rate => {
                f.write_str("a rate of 0 bits a second sends nothing; leave the rate out for no limit")
            }
            ImpairmentError::Mtu(mtu) => {
                write!(
                    f,
                    "an MTU of {mtu} octets is not from {} to {}",
                    limits::SMALLEST_MTU,
                    limits::LARGEST_MTU
                )
            }
            ImpairmentError::Queue(octets) => {
                write!(
                    f,
                    "a queue of {octets} octets is larger than {}, the most that may be under way",
                    limits::OCTETS_UNDER_WAY
                )
            }
        }
    }
}

impl std::error::Error for ImpairmentError {}

impl Impairments {
    /// Checks every setting against its limits. [`crate::Direction::new`] expects settings that passed.
    ///
    /// # Errors
    ///
    /// [`ImpairmentError`] has a variant for each: a probability outside 0 to 1, a delay or a queue above its limit, a rate of 0, or an
    /// MTU outside its limits.
    pub fn check(&self) -> Result<(), ImpairmentError> {
        let losses = match self.loss {
            Loss::Independent(share) => [("loss", share), ("loss", share)],
            Loss::Bursts { begin, end } => [("burst-loss P13", begin), ("burst-loss P31", end)],
        };
        let others = [("duplicate", self.duplicate), ("reorder", self.reorder), ("corrupt", self.corrupt)];
        for (name, value) in losses.into_iter().chain(others) {
            if !(0.0..=1.0).contains(&value) {
                return Err(ImpairmentError::Probability(name, value));
            }
        }
        if let Some(&long) = [self.delay.mean, self.delay.jitter].iter().find(|&&span| span > limits::DELAY) {
            return Err(ImpairmentError::Delay(long));
        }
        if self.rate == Some(0) {
            return Err(ImpairmentError::Rate);
        }
        if !(limits::SMALLEST_MTU..=limits::LARGEST_MTU).contains(&self.mtu) {
            return Err(ImpairmentError::Mtu(self.mtu));
        }
        if self.queue_octets > limits::OCTETS_UNDER_WAY {
            return Err(ImpairmentError::Queue(self.queue_octets));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_passes_and_every_limit_is_named() {
        let fine = Impairments::default();
        assert_eq!(fine.check(), Ok(()));
        let minute = limits::DELAY;
        let wrong = [
            (
                Impairments { loss: Loss::Independent(1.5), ..fine },
                "loss is a probability from 0 to 1, not 1.5",
            ),
            (Impairments { loss: Loss::Bursts { begin: 0.1, end: -1.0 }, ..fine }, "burst-loss P31"),
            (Impairments { duplicate: f64::NAN, ..fine }, "duplicate"),
            (Impairments { delay: Delay { jitter: 2 * minute, ..Delay::default() }, ..fine }, "120s"),
            (Impairments { rate: Some(0), ..fine }, "leave the rate out"),
            (Impairments { mtu: 67, ..fine }, "68"),
            (Impairments { queue_octets: usize::MAX, ..fine }, "queue"),
        ];
        for (impairments, text) in wrong {
            let error = impairments.check().expect_err(text).to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
