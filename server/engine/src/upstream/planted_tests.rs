//! Tests of the randomness tests: predictable ID generators of earlier servers are planted on purpose, and the tests that
//! Sixfold's generator passes (`tests/cases/ids_and_ports.rs`) must find every one of them. TOTD's wrap-around is planted as well.

use crate::base::random::{Planted, Random};
use crate::base::time::Instant;
use crate::limits::LINK_QUESTIONS;
use crate::settings::Transport;
use crate::statistics::{covers, examine, independent, never_twice};
use crate::upstream::links::Links;

/// A planted generator: it returns the next number and updates its state.
type Draw = fn(&mut u64) -> u16;

/// IDs as `links.rs` issues them, with the number of their link: 256 IDs per link.
fn issue(count: usize, planted: Option<Planted>) -> Vec<(u16, u16)> {
    let mut random = Random::new([9; 32]);
    random.planted = planted;
    let mut links = Links::new();
    (0..count.div_ceil(LINK_QUESTIONS))
        .flat_map(|number| {
            let link = links.take(0, Transport::Udp, Instant(0), &mut random).expect("a slot");
            let ids: Vec<_> = (0..LINK_QUESTIONS)
                .map(|_| (number as u16, links.issue(link, 0, Instant(0), &mut random)))
                .collect();
            links.free(link);
            ids
        })
        .collect()
}

/// IDs of the real generator, or of a planted one.
fn ids(count: usize, draw: Option<Draw>) -> Vec<u16> {
    let planted = draw.map(|draw| Planted { state: 0x9e37_79b9_7f4a_7c15, draw, is_forgetful: false });
    issue(count, planted).into_iter().map(|(_, id)| id).collect()
}

/// A counter, as in TOTD 1.5.
fn counter(state: &mut u64) -> u16 {
    *state += 1;
    *state as u16
}

/// A counter that grows by one to sixteen each time: "random increments" were thought to help.
fn stumbling_counter(state: &mut u64) -> u16 {
    let chance = (*state >> 16).wrapping_mul(0x5_deec_e66d).wrapping_add(11) & 0xffff_ffff_ffff;
    let id = (*state as u16).wrapping_add(1 + (chance >> 44) as u16);
    *state = chance << 16 | u64::from(id);
    id
}

/// A linear congruential generator: the example of ISO C for `rand`.
fn linear_congruence(state: &mut u64) -> u16 {
    *state = u64::from((*state as u32).wrapping_mul(1_103_515_245).wrapping_add(12_345));
    (*state >> 16) as u16 & 0x7fff | (*state as u16) << 15
}

/// A linear feedback shift register of 16 bits that returns its state, clocked sixteen times per value.
fn register_16(state: &mut u64) -> u16 {
    let mut register = (*state as u16).max(1);
    for _ in 0..16 {
        let bit = register & 1;
        register = (register >> 1) ^ (bit * 0xb400);
    }
    *state = u64::from(register);
    register
}

/// A linear feedback shift register of 32 bits, like the two that Klein found in BIND 9 (CVE-2007-2926).
fn register_32(state: &mut u64) -> u16 {
    let mut register = (*state as u32).max(1);
    for _ in 0..16 {
        let bit = register & 1;
        register = (register >> 1) ^ (bit * 0x8000_0057);
    }
    *state = u64::from(register);
    register as u16
}

/// Marsaglia's xorshift: 64 bits of state, but only shifts and sums.
fn xorshift(state: &mut u64) -> u16 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 20) as u16
}

/// IDs from half of the range.
fn half(state: &mut u64) -> u16 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 48) as u16 & 0x7fff
}

#[test]
fn ids_of_our_generator_look_like_chance() {
    let ids = ids(100_000, None);
    examine(&ids, 0, 1 << 16).unwrap();
    covers(&ids, 1 << 16).unwrap();
}

#[test]
fn every_predictable_generator_that_is_built_in_is_found_out() {
    let planted: [(&str, Draw); 7] = [
        ("a counter", counter),
        ("a stumbling counter", stumbling_counter),
        ("a linear congruence", linear_congruence),
        ("a register of 16 bits", register_16),
        ("a register of 32 bits", register_32),
        ("xorshift", xorshift),
        ("half of the range", half),
    ];
    for (generator, draw) in planted {
        let verdict = examine(&ids(100_000, Some(draw)), 0, 1 << 16);
        println!("{generator}: {verdict:?}");
        assert!(verdict.is_err(), "{generator} was not found out");
    }
}

/// `random()` of old C libraries, which TOTD's remedy used: each value is the sum of the values 3 and 31 places before it.
#[test]
fn the_random_function_of_old_libraries_is_found_out() {
    let mut table: Vec<u32> = vec![1];
    for place in 1..31 {
        table.push((u64::from(table[place - 1]) * 16_807 % 0x7fff_ffff) as u32);
    }
    for place in 31..3000 {
        let sum = table[place - 31].wrapping_add(table[place - 3]);
        table.push(sum);
    }
    let values: Vec<u16> = table[500..].iter().map(|value| (value >> 1) as u16).collect();
    let verdict = examine(&values, 0, 1 << 16).expect_err("random() was not found out");
    assert!(verdict.contains("sums of the values 3 and 31 places before"), "{verdict}");
}

/// Workers with the same seed, or with shares of the port range.
#[test]
fn workers_that_are_not_independent_are_found_out() {
    let ids = ids(100_000, None);
    independent(&ids, &ids).expect_err("the same numbers twice");
    let shifted: Vec<u16> = ids.iter().map(|id| id.wrapping_add(0x4321)).collect();
    independent(&ids, &shifted).expect_err("the same numbers, shifted");
    // One of two workers that uses the even numbers only.
    let even: Vec<u16> = ids.iter().map(|id| id & !1).collect();
    covers(&even, 1 << 16).expect_err("half of the range");
    examine(&even, 0, 1 << 16).expect_err("half of the range");
}

/// TOTD's wrap-around: at its end, the counter began anew at a random value, now and then just below the end, beside IDs that
/// were still in flight. Here it does so every other time.
fn wrapping_counter(state: &mut u64) -> u16 {
    *state += 1;
    if *state & 0xffff == 0 {
        *state |= if *state >> 16 & 1 == 1 { 0xff80 } else { 0x3039 };
    }
    *state as u16
}

#[test]
fn the_wrap_around_of_totd_is_found_out() {
    let planted = |is_forgetful| Planted { state: 0x30, draw: wrapping_counter, is_forgetful };
    let verdict = never_twice(issue(1 << 17, Some(planted(true))).into_iter());
    assert!(verdict.is_err(), "TOTD's bug was not found out");
    // The links compare IDs, so even this generator does not repeat an ID on one link.
    never_twice(issue(1 << 16, Some(planted(false))).into_iter()).unwrap();
    never_twice(issue(1 << 17, None).into_iter()).unwrap();
}
