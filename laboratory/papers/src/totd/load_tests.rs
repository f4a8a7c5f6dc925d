//! Tests of the load in virtual time.

use super::*;
use crate::totd::ids::landing;

fn parameters(scheme: Scheme) -> Parameters {
    Parameters {
        clients: 4,
        experiments: 8,
        scheme,
        counter: 63_536,
        clock_ns: 1_400_000_000_000_000_000,
        upstreams: Upstreams::One,
        duplicates: true,
        seed: 1,
    }
}

/// Time at the start, in nanoseconds since 1970, for which a counter that runs over at once lands `below` IDs below 0.
fn clock(below: u16) -> u64 {
    let second = (1_400_000_000u32..).find(|second| landing(*second) == 0u16.wrapping_sub(below));
    // The counter begins 2,000 IDs before 0 and runs over after 1,000 resolutions: about a second later.
    u64::from(second.unwrap() - 1) * 1_000_000_000 + 500_000_000
}

#[test]
fn without_the_bug_every_name_is_resolved_at_the_speed_of_the_server() {
    for scheme in [Scheme::SequentialFixed, Scheme::Permuted] {
        let outcome = run(&parameters(scheme));
        assert_eq!((outcome.answered, outcome.failed), (4 * 8 * 256, 0));
        // 1,010 requests/s is the limit; the ends of the experiments leave the server idle at times.
        assert!((900.0..=1010.0).contains(&outcome.rate()), "{}", outcome.rate());
        assert_eq!(outcome.counters, Counters::default());
        assert_eq!(outcome.experiments_s.len(), 32);
    }
}

#[test]
fn the_two_free_times_give_the_rates_of_table_2_that_they_are_fitted_to() {
    for (clients, rate) in FITTED.into_iter().zip([494.0, 1010.0]) {
        let fixed = parameters(Scheme::SequentialFixed);
        let outcome = run(&Parameters { clients, experiments: 32, ..fixed });
        assert!((outcome.rate() / rate - 1.0).abs() < 0.01, "{clients}: {}", outcome.rate());
    }
}

#[test]
fn a_counter_that_lands_just_below_its_end_stalls_the_server_for_a_minute() {
    let stalled = Parameters { clock_ns: clock(800), ..parameters(Scheme::Sequential) };
    let outcome = run(&stalled);
    assert!(outcome.restarts >= 1);
    // The entries of the table live for 60 s; the last call before their end takes up to 10 s.
    assert!((30.0..=75.0).contains(&outcome.longest_s()), "{}", outcome.longest_s());
    assert!(outcome.counters.duplicates > 100, "{:?}", outcome.counters);
    let without_table = run(&Parameters { duplicates: false, ..stalled.clone() });
    assert!(without_table.longest_s() < 15.0, "{}", without_table.longest_s());
    let two = run(&Parameters { upstreams: Upstreams::Two, ..stalled });
    assert!(two.longest_s() < 15.0, "{}", two.longest_s());
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let parameters = Parameters { clock_ns: clock(800), ..parameters(Scheme::Sequential) };
    let (one, other) = (run(&parameters), run(&parameters));
    assert_eq!(one.experiments_s, other.experiments_s);
    assert_eq!(one.counters, other.counters);
}
