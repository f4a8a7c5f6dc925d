//! Many worlds one after another on several threads, and the command that replays a failing seed.

use crate::world::{Tally, Violation, World};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A failing seed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Seed.
    pub seed: u64,
    /// The broken invariant.
    pub violation: Violation,
}

/// The worlds to run, and when to stop.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The first seed.
    pub first_seed: u64,
    /// Number of worlds.
    pub seeds: u64,
    /// Client queries in each world.
    pub queries: u64,
    /// Longest time of the run.
    pub time: Option<Duration>,
    /// Number of threads.
    pub threads: usize,
    /// Continue after a failure.
    pub keep_going: bool,
}

/// Result of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Number of worlds.
    pub seeds: u64,
    /// Sum of the counts of all worlds.
    pub tally: Tally,
    /// Failures in the order in which they were found.
    pub failures: Vec<Failure>,
}

/// The command that replays a seed.
pub fn replay_command(seed: u64, queries: u64) -> String {
    format!("cargo run -p sixfold-sim --profile fuzz -- --seed {seed} --queries {queries} --trace")
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
                    // A panic of the engine ends the thread, and the scope passes it on. The guard prints the seed.
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

/// Prints the seed when it is dropped by unwinding. In a build where panics abort, nothing is unwound, and the panic hook
/// prints the seed.
struct SeedOnPanic {
    seed: u64,
    queries: u64,
}

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        eprintln!("panicked; replay with: {}", replay_command(self.seed, self.queries));
    }
}
