//! Tests of the choice of prefixes: states, spreads, shares by weight, and networks that move.

use super::*;

const NETWORKS: u64 = 10_000;

/// Number of the client network of an address in it.
fn client(number: u64) -> Ipv6Addr {
    Ipv6Addr::from(0x2001_0db8_u128 << 96 | u128::from(number) << 64 | 1)
}

fn prefix(number: usize) -> Pref64 {
    format!("2001:db8:64:{number:x}::/96").parse().unwrap()
}

/// A table of prefixes with these weights, whose states are up.
fn gateways(spread: Spread, all_down: AllDown, weights: &[u32]) -> Gateways {
    let member =
        |(number, &weight)| TablePrefix { prefix: prefix(number), weight, is_probed: number % 2 == 0 };
    let general = weights.iter().enumerate().map(member).collect();
    Gateways::new(Arc::new(GatewayTable::new((spread, all_down, 60), general, Vec::new())), Arc::new([]))
}

fn with(gateways: &Gateways, states: &[PrefixState]) -> Gateways {
    Gateways::new(Arc::clone(gateways.table()), states.into())
}

/// Prefix of each network.
fn places(gateways: &Gateways) -> Vec<u32> {
    let place = |number| {
        let chosen = gateways.general(client(number));
        assert_eq!(chosen.count_ones(), 1, "a network has one prefix");
        chosen.trailing_zeros()
    };
    (0..NETWORKS).map(place).collect()
}

fn moved(before: &[u32], after: &[u32]) -> Vec<(u32, u32)> {
    let pairs = before.iter().copied().zip(after.iter().copied());
    pairs.filter(|(before, after)| before != after).collect()
}

use PrefixState::{Down, Draining, Leaving, Up};

#[test]
fn the_logarithm_is_that_of_the_table_of_bits() {
    // -log2 of 1/2 is 1, of 1/4 is 2, of 3/4 is 0.41503749927884 (any table of logarithms).
    let unit = 1u64 << 32;
    assert_eq!(negative_log2(1 << 63).abs_diff(unit), 0);
    assert_eq!(negative_log2(1 << 62), 2 * unit);
    assert_eq!(negative_log2(0), 64 * unit);
    let three_quarters = negative_log2(3 << 62);
    assert!(three_quarters.abs_diff((0.415_037_499_278_84 * unit as f64) as u64) < 1 << 14);
    assert!(negative_log2(u64::MAX) >= 1);
    let falls = (1..2_000u64).all(|step| {
        let at = |step: u64| negative_log2(step.wrapping_mul(u64::MAX / 2_000));
        at(step) <= at(step - 1)
    });
    assert!(falls, "a larger number has a smaller logarithm");
}

#[test]
fn the_choice_is_the_same_on_every_machine() {
    // Computed with floating-point numbers by the formula weight / -ln(u). A change would move the clients of a fleet during its upgrade.
    let gateways = gateways(Spread::Client, AllDown::Keep, &[1, 2, 3]);
    let digits: String =
        (0..32).map(|number| gateways.general(client(number)).trailing_zeros().to_string()).collect();
    assert_eq!(digits, "12222212121021222010220021222212");
}

#[test]
fn shares_are_within_5_percent_of_the_weights() {
    for weights in [&[1, 1][..], &[1, 1, 1, 1], &[3, 1], &[1, 2, 3, 4], &[10, 90]] {
        let gateways = gateways(Spread::Client, AllDown::Keep, weights);
        let places = places(&gateways);
        let sum: u32 = weights.iter().sum();
        for (place, &weight) in weights.iter().enumerate() {
            let count = places.iter().filter(|&&of| of == place as u32).count() as f64;
            let share = count / NETWORKS as f64;
            let wanted = f64::from(weight) / f64::from(sum);
            assert!((share - wanted).abs() < 0.05 * wanted.max(0.2), "{weights:?}: {place} has {share}");
        }
    }
}

#[test]
fn when_a_gateway_dies_only_its_own_networks_move_and_they_come_back() {
    let all = gateways(Spread::Client, AllDown::Keep, &[1, 1, 2]);
    let before = places(&all);
    let after = places(&with(&all, &[Up, Down, Up]));
    let moves = moved(&before, &after);
    assert!(moves.iter().all(|&(from, to)| from == 1 && to != 1), "no other network moves");
    assert_eq!(moves.len(), before.iter().filter(|&&place| place == 1).count(), "all of them move");
    assert_eq!(places(&with(&all, &[Up, Up, Up])), before);
}

#[test]
fn a_changed_weight_moves_networks_only_to_the_prefix_that_gained() {
    let before = places(&gateways(Spread::Client, AllDown::Keep, &[1, 1, 1]));
    let after = places(&gateways(Spread::Client, AllDown::Keep, &[1, 3, 1]));
    let moves = moved(&before, &after);
    assert!(!moves.is_empty() && moves.iter().all(|&(_, to)| to == 1));
}

#[test]
fn the_order_of_the_prefixes_does_not_matter() {
    let table = |order: [usize; 3]| {
        let member = |number| TablePrefix { prefix: prefix(number), weight: 1, is_probed: false };
        let general = order.map(member).into();
        let table = GatewayTable::new((Spread::Client, AllDown::Keep, 60), general, Vec::new());
        Gateways::new(Arc::new(table), Arc::new([]))
    };
    let of = |order: [usize; 3]| -> Vec<usize> {
        places(&table(order)).into_iter().map(|place| order[place as usize]).collect()
    };
    assert_eq!(of([0, 1, 2]), of([2, 0, 1]));
}

#[test]
fn a_standby_gets_networks_only_when_no_other_lives() {
    let all = gateways(Spread::Client, AllDown::Keep, &[1, 0, 1]);
    assert!(places(&all).iter().all(|&place| place != 1));
    assert!(places(&with(&all, &[Down, Up, Up])).iter().all(|&place| place == 2));
    assert!(places(&with(&all, &[Down, Up, Draining])).iter().all(|&place| place == 1));
}

#[test]
fn with_none_up_each_client_gets_what_it_would_get_with_all_up() {
    for spread in [Spread::All, Spread::Ordered, Spread::Client] {
        let all = gateways(spread, AllDown::Keep, &[1, 2, 0]);
        for state in [Down, Draining] {
            let none = with(&all, &[state; 3]);
            assert!((0..NETWORKS).all(|number| none.general(client(number)) == all.general(client(number))));
        }
    }
}

#[test]
fn prefixes_that_drain_serve_when_no_other_is_up() {
    let all = gateways(Spread::All, AllDown::Keep, &[1, 1, 1]);
    assert_eq!(with(&all, &[Draining, Up, Down]).general(client(1)), 0b10);
    assert_eq!(with(&all, &[Draining, Down, Down]).general(client(1)), 0b1);
    let one = gateways(Spread::Client, AllDown::Keep, &[1, 1, 1]);
    assert!(places(&with(&one, &[Down, Draining, Down])).iter().all(|&place| place == 1));
}

#[test]
fn with_empty_no_client_gets_a_prefix_that_is_not_up() {
    for spread in [Spread::All, Spread::Ordered, Spread::Client] {
        let all = gateways(spread, AllDown::Empty, &[1, 1]);
        assert_eq!(with(&all, &[Down, Draining]).general(client(7)), 0, "{spread:?}");
        assert_eq!(with(&all, &[Down, Up]).general(client(7)), 0b10, "{spread:?}");
    }
}

#[test]
fn ordered_gives_the_first_prefix_that_lives() {
    let all = gateways(Spread::Ordered, AllDown::Keep, &[1, 1, 1]);
    let first = |states: &[PrefixState]| with(&all, states).general(client(3));
    assert_eq!((first(&[]), first(&[Down]), first(&[Draining, Down])), (0b1, 0b10, 0b100));
}

#[test]
fn a_client_network_is_a_64_or_an_ipv4_address() {
    let all = gateways(Spread::Client, AllDown::Keep, &[1, 1, 1, 1]);
    for number in 0..100u64 {
        let other_host = Ipv6Addr::from(u128::from(client(number)) ^ 0xdead_beef_0000_0000);
        assert_eq!(all.general(client(number)), all.general(other_host));
    }
    let ipv4 = |last: u8| all.general(std::net::Ipv4Addr::new(192, 0, 2, last).to_ipv6_mapped());
    assert!((0..100).any(|last| ipv4(last) != ipv4(0)), "each IPv4 address is a network of its own");
}

#[test]
fn networks_leave_a_prefix_that_drains_in_a_random_order_and_none_comes_back() {
    let all = gateways(Spread::Client, AllDown::Keep, &[1, 1]);
    let before = places(&all);
    let mut last = before.clone();
    let of_first = before.iter().filter(|&&place| place == 0).count() as f64;
    for tenths in 1..=10u32 {
        let share = (u64::from(u32::MAX) * u64::from(tenths) / 10) as u32;
        let state = if tenths == 10 { Draining } else { Leaving(share) };
        let now = places(&with(&all, &[state, Up]));
        assert!(moved(&last, &now).iter().all(|&(from, to)| (from, to) == (0, 1)));
        let left = moved(&before, &now).len() as f64 / of_first;
        assert!((left - f64::from(tenths) / 10.0).abs() < 0.05, "{left} have left after {tenths} tenths");
        last = now;
    }
    assert!(last.iter().all(|&place| place == 1));
}

#[test]
fn without_networks_that_have_a_prefix_each_all_leave_a_draining_one_at_once() {
    for spread in [Spread::All, Spread::Ordered] {
        let leaving = with(&gateways(spread, AllDown::Keep, &[1, 1]), &[Leaving(1), Up]);
        for number in 0..100 {
            assert_eq!(leaving.general(client(number)), 0b10);
            let chooser = Chooser::new(client(number));
            assert_eq!(chooser.in_use(Some(&leaving), &[prefix(0), prefix(1)], false), 0b10);
        }
    }
}

#[test]
fn lists_of_rules_are_judged_by_their_own_prefixes() {
    let general = vec![TablePrefix { prefix: prefix(0), weight: 1, is_probed: true }];
    let other = |number| TablePrefix { prefix: prefix(number), weight: 1, is_probed: true };
    let table = GatewayTable::new((Spread::All, AllDown::Keep, 60), general, vec![other(1), other(2)]);
    let gateways = Gateways::new(Arc::new(table), [Up, Down, Up].into());
    let chosen = |list: &[Pref64]| Chooser::new(client(1)).in_use(Some(&gateways), list, false);
    assert_eq!(chosen(&[prefix(1), prefix(2)]), 0b10);
    assert_eq!(chosen(&[prefix(1)]), 0b1, "the only one is kept");
    assert_eq!(chosen(&[prefix(9), prefix(1)]), 0b1, "a prefix without a gateway is up");
    assert_eq!(gateways.reason(&prefix(1), client(1)), Unused::Down);
    assert_eq!(gateways.reason(&prefix(2), client(1)), Unused::Other);
    assert!(gateways.is_probed(&[prefix(9), prefix(1)], 0b10) && !gateways.is_probed(&[prefix(9)], 0b1));
    assert_eq!((gateways.counted(&prefix(2)), gateways.counted(&prefix(9))), (0b100, 0));
}
