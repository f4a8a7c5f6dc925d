//! Some worlds of the simulator; `./test` runs a thousand of them in the release build. `docs/simulation.md` lists the checks.

use sixfold_sim::run::{Plan, replay_command, run};
use sixfold_sim::spoofing::{Knowledge, spoof};
use sixfold_sim::world::World;

const QUERIES: u64 = 1000;

#[test]
fn in_any_network_faults_every_answer_is_one_that_the_oracle_allows() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let plan =
        Plan { first_seed: 1_000_000, seeds: 60, queries: QUERIES, time: None, threads, keep_going: true };
    let outcome = run(&plan);
    assert_eq!(outcome.seeds, 60);
    for failure in &outcome.failures {
        eprintln!("{}: {}: {}", failure.seed, failure.violation.invariant, failure.violation.what);
        eprintln!("replay with: {}", replay_command(failure.seed, QUERIES));
    }
    assert!(outcome.failures.is_empty());
    // A world in which nothing happens would pass, too. Some queries are over the limits of their networks.
    let tally = &outcome.tally;
    let seen = [
        tally.synthesized,
        tally.failed,
        tally.hits,
        tally.asked,
        tally.forged,
        tally.reloads,
        tally.mapped,
        tally.discoveries,
        tally.trials,
        tally.healed,
    ];
    assert!(tally.judged >= 45 * QUERIES && seen.iter().all(|&count| count > 20), "{tally:?}");
}

#[test]
fn equal_seeds_unfold_equally() {
    let tally = |seed| {
        World::new(seed, 300, false).run().map(|tally| format!("{tally:?}")).expect("a world in order")
    };
    assert_eq!(tally(7), tally(7));
    assert_ne!(tally(7), tally(8));
}

#[test]
fn forged_replies_never_succeed_whatever_the_attacker_knows() {
    for knows in Knowledge::ALL {
        let score = spoof(knows, 2 * 65_536, 1);
        assert!(score.is_in_order(), "{knows:?}: {score:?}");
        // Forged replies reached the socket, and there were client queries.
        let least = if knows == Knowledge::Address { 0 } else { 2 * 65_536 };
        assert!(
            score.delivered >= least && score.sent == 2 * 65_536 && score.questions > 1,
            "{knows:?}: {score:?}"
        );
    }
}
