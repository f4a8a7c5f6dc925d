//! Many worlds one after another, on several threads, and the command that plays a failing one again.

use crate::world::{Tally, Violation, World};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A failing seed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Seed.
    pub seed: u64,
    /// What is wrong.
    pub violation: Violation,
}

/// What to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The first seed.
    pub first_seed: u64,
    /// How many.
    pub seeds: u64,
    /// Client questions for each.
    pub queries: u64,
    /// Stop after this.
    pub time: Option<Duration>,
    /// Threads.
    pub threads: usize,
    /// Go on behind a failure.
    pub keep_going: bool,
}

/// How it went.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Worlds.
    pub seeds: u64,
    /// Sum of all.
    pub tally: Tally,
    /// What failed, by seed.
    pub failures: Vec<Failure>,
}

/// The command that plays a seed again.
pub fn replay_command(seed: u64, queries: u64) -> String {
    format!("cargo run -p sixfold-sim --release -- --seed {seed} --queries {queries} --trace")
}

/// Runs the worlds of a plan.
pub fn run(plan: &Plan) -> Outcome {
    let next = AtomicU64::new(plan.first_seed);
    let stop = AtomicBool::new(false);
    let outcome = Mutex::new(Outcome::default());
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..plan.threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let late = plan.time.is_some_and(|time| start.elapsed() > time);
                    if late
                        || stop.load(Ordering::Relaxed)
                        || seed >= plan.first_seed.saturating_add(plan.seeds)
                    {
                        return;
                    }
                    // A panic of the engine ends the thread; the scope passes it on, and this says which seed it was.
                    let on_panic = SeedOnPanic { seed, queries: plan.queries };
                    let result = World::new(seed, plan.queries, false).run();
                    core::mem::forget(on_panic);
                    let Ok(mut outcome) = outcome.lock() else { return };
                    outcome.seeds += 1;
                    match result {
                        Ok(tally) => outcome.tally.add(&tally),
                        Err(violation) => {
                            outcome.failures.push(Failure { seed, violation });
                            stop.store(!plan.keep_going, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    outcome.into_inner().unwrap_or_default()
}

/// Says on unwinding which seed it was. Where panics abort, the hook of the program says it.
struct SeedOnPanic {
    seed: u64,
    queries: u64,
}

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        eprintln!("panicked; again with: {}", replay_command(self.seed, self.queries));
    }
}
