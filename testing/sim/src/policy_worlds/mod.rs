//! Random worlds of response policy zones and DNS64: the engine against a model that shares no code with it. Upstream answers at once
//! and nothing is lost: what is compared is the meaning of the rules, in `model.rs`. `world.rs` draws the worlds, `engine_world.rs`
//! makes settings and messages of them.

mod engine_world;
mod model;
mod world;

use crate::policy_worlds::engine_world::EngineWorld;
use crate::policy_worlds::model::{Kind, Query};
use crate::policy_worlds::world::{CLIENTS, LOCAL, NAMES, World, text};
use crate::rng::Rng;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Differences that are kept; more are only counted.
const KEPT: usize = 5;

/// Result of some worlds.
#[derive(Debug, Default)]
pub struct Score {
    /// Worlds that were played.
    pub worlds: u64,
    /// Answers that were compared, a missing one included.
    pub answers: u64,
    /// Those that have the SOA record of a policy zone.
    pub marked: u64,
    /// Worlds with a difference.
    pub different: u64,
    /// Descriptions of the first ones.
    pub shown: Vec<String>,
}

/// Plays the world of a seed: each of some questions twice, so that the second may be answered from the cache. Returns the number of
/// answers and of those with the mark of a policy zone.
///
/// # Errors
///
/// The first difference between the engine's answer and the world's, with the seed.
pub fn play(seed: u64) -> Result<(u64, u64), String> {
    let world = World::draw(seed);
    let mut engine = EngineWorld::new(&world, seed);
    let rng = &mut Rng::new(!seed);
    let (mut answers, mut marked) = (0, 0);
    for _ in 0..10 {
        let number = rng.below(NAMES as u64 + 1) as usize;
        let name = if number < NAMES { text(number) } else { LOCAL };
        // What is said about all types of a local alias is not about policy.
        let kinds = [Kind::A, Kind::Aaaa, Kind::Aaaa, Kind::Aaaa, Kind::Txt, Kind::Any];
        let kind = *rng.choose(if name == LOCAL { &kinds[..5] } else { &kinds });
        let client = rng.choose(&CLIENTS).parse().expect("a constant");
        let over_tcp = rng.permille(300);
        let (is_recursive, has_edns) = (!rng.permille(200), !rng.permille(200));
        let query = Query { name, kind, client, over_tcp, is_recursive, has_edns };
        let expected = world.answer(query);
        for turn in ["fresh", "again"] {
            let got = engine.ask(query);
            answers += 1;
            marked += u64::from(expected.marks().is_some_and(|marks| marks.zone.is_some()));
            if got != Ok(expected.clone()) {
                return Err(format!(
                    "seed {seed}, {turn}: {query:?}\n  expected {expected:?}\n  got      {got:?}\n{world}"
                ));
            }
        }
    }
    Ok((answers, marked))
}

/// Plays the worlds of `seeds` seeds from `first` on.
pub fn play_all(first: u64, seeds: u64, threads: usize) -> Score {
    let (next, score) = (AtomicU64::new(0), Mutex::new(Score::default()));
    let lock = || score.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut own = Score::default();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= seeds {
                        break;
                    }
                    own.worlds += 1;
                    match play(first.wrapping_add(number)) {
                        Ok((answers, marked)) => {
                            own.answers += answers;
                            own.marked += marked;
                        }
                        Err(difference) => {
                            own.different += 1;
                            own.shown.push(difference);
                            own.shown.truncate(KEPT);
                        }
                    }
                }
                let mut all = lock();
                all.worlds += own.worlds;
                all.answers += own.answers;
                all.marked += own.marked;
                all.different += own.different;
                all.shown.extend(own.shown);
                all.shown.truncate(KEPT);
            });
        }
    });
    score.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_answers_as_the_model_says() {
        let score = play_all(1, 4000, 2);
        assert_eq!((score.worlds, score.different), (4000, 0), "{}", score.shown.join("\n"));
        assert!(score.answers >= 80_000, "{score:?}");
        // A rule decides some queries, and none decides others.
        assert!((20_000..60_000).contains(&score.marked), "{score:?}");
    }
}
