//! Worlds of signed zones, with a validating engine and an adversary who sits on the path to the upstream and has everything but the keys.
//!
//! `tree` draws the zones and is the truth; `authority` replies from it, with proofs and signatures (`signer`); `adversary` meddles;
//! `play` has the course of events; `oracle` judges the answers. None of them knows the validator.

mod adversary;
mod authority;
mod events;
mod names;
mod oracle;
mod play;
mod signer;
mod tree;

use crate::keyed_worlds::play::Play;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Seconds for which a lookup may take before its answer is given.
const PATIENCE_SECS: u64 = 10;

/// Failures that are kept; more are only counted.
const KEPT: usize = 5;

/// Counts of a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Answers that were judged.
    pub answers: u64,
    /// Those with AD.
    pub secure: u64,
    /// SERVFAIL.
    pub failed: u64,
    /// Questions upstream.
    pub asked: u64,
    /// Replies that the adversary kept, delayed, replaced or changed.
    pub forged: u64,
    /// Verifications.
    pub verifications: u64,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.answers += other.answers;
        self.secure += other.secure;
        self.failed += other.failed;
        self.asked += other.asked;
        self.forged += other.forged;
        self.verifications += other.verifications;
    }
}

/// Result of some worlds.
#[derive(Debug, Default)]
pub struct Score {
    /// Worlds that were played.
    pub worlds: u64,
    /// Sum of their counts.
    pub tally: Tally,
    /// Worlds with a broken invariant.
    pub failures: u64,
    /// The first ones: seed, and invariant with its description.
    pub shown: Vec<(u64, String)>,
}

/// Plays the world of a seed, with this number of client queries.
///
/// # Errors
///
/// The first broken invariant, and how it is broken.
pub fn play(seed: u64, queries: u64, is_traced: bool) -> Result<Tally, String> {
    Play::new(seed, is_traced).run(queries as usize)
}

/// Plays the worlds of `seeds` seeds from `first` on.
pub fn play_all(first: u64, seeds: u64, queries: u64, threads: usize) -> Score {
    let (next, score) = (AtomicU64::new(0), Mutex::new(Score::default()));
    let lock = || score.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= seeds {
                        break;
                    }
                    let seed = first.wrapping_add(number);
                    let result = play(seed, queries, false);
                    let mut all = lock();
                    all.worlds += 1;
                    match result {
                        Ok(tally) => all.tally.add(&tally),
                        Err(what) => {
                            all.failures += 1;
                            all.shown.push((seed, what));
                            all.shown.sort();
                            all.shown.truncate(KEPT);
                        }
                    }
                }
            });
        }
    });
    score.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_done_to_replies_every_answer_is_one_that_the_zones_allow() {
        let score = play_all(1, 60, 120, 2);
        assert_eq!((score.worlds, score.failures), (60, 0), "{:?}", score.shown);
        let Tally { answers, secure, failed, forged, .. } = score.tally;
        assert!(answers > 3000 && secure > 500 && failed > 300 && forged > 1000, "{:?}", score.tally);
    }

    #[test]
    fn equal_seeds_unfold_equally() {
        assert_eq!(play(7, 100, false), play(7, 100, false));
        assert_ne!(play(7, 100, false), play(8, 100, false));
    }
}
