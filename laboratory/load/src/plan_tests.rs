//! Plans of valid orders, and refused orders.

use super::*;
use crate::order_check::max_requery_age_ms;
use measure::order::Expectation;
use std::time::Duration;

/// An order for one thread without warm-up.
pub(crate) fn order(rate_qps: f64, duration_ms: u64) -> Load {
    let (server, names) = ("127.0.0.1:53".parse().unwrap(), "10.0.0.0/8".parse().unwrap());
    let (pace, duration) = (Pace::Open { rate_qps, burst: 1 }, Duration::from_millis(duration_ms));
    let expect = Expectation::synthesized("dns64perf.test", ("64:ff9b::".parse().unwrap(), 96));
    let expect = Expectation { ttl: (0, u32::MAX), ..expect };
    Load::of_new_names(server, pace, duration, names, expect)
}

fn refusal(change: impl FnOnce(&mut Load)) -> String {
    let mut order = order(1000.0, 1000);
    change(&mut order);
    Plan::new(&order, false).unwrap_err().to_string()
}

#[test]
fn the_number_of_queries_is_rate_times_duration() {
    let mut order = order(1000.0, 60_000);
    order.warm_up_ms = 500;
    let plan = Plan::new(&order, false).unwrap();
    let Timing::Open { warm, total, .. } = plan.timing else { panic!() };
    assert_eq!((warm, total - warm), (500, 60_000));
    assert_eq!(plan.measured, plan.start + 500_000_000);
}

#[test]
fn threads_share_the_queries_in_turn() {
    let mut order = order(1000.0, 1000);
    order.lanes.senders = 3;
    let plan = Plan::new(&order, false).unwrap();
    assert_eq!((0..3).map(|lane| plan.share_of(lane, 1000)).collect::<Vec<_>>(), [334, 333, 333]);
    assert_eq!((plan.share_of(2, 2), plan.share_of(2, 3)), (0, 1));
    assert_eq!(plan.number(2, 5), 17);
    assert_eq!(plan.intended(2, 5, 0), plan.start + 17_000_000);
}

#[test]
fn an_impossible_order_is_refused_with_a_remedy() {
    for (change, part) in [
        ((|order| order.duration_ms = 0) as fn(&mut Load), "--duration"),
        (|order| order.warm_up_ms = u64::MAX, "--duration"),
        (|order| order.duration_ms = 7 * 86_400_000 + 1, "7 days"),
        (|order| order.timeout_ms = 0, "--timeout"),
        (|order| order.pace = Pace::Open { rate_qps: f64::NAN, burst: 1 }, "--rate"),
        (|order| order.pace = Pace::Open { rate_qps: 1.0, burst: 0 }, "--burst"),
        (|order| order.pace = Pace::Closed { outstanding: 0 }, "--outstanding"),
        (|order| order.lanes.senders = 0, "threads"),
        (|order| order.lanes.receivers = 2, "--receivers"),
        (|order| order.lanes.ports = 0, "--ports"),
        (|order| order.lanes.group = 0, "--group"),
        (|order| order.lanes.sources = vec!["::1".parse().unwrap()], "same family"),
        (|order| order.cached_share = 1.5, "0 to 1"),
        (|order| order.cached_share = 1.0, "--warm-up"),
        (|order| (order.cached_share, order.expect.ttl.1) = (0.1, 4), "--ttl"),
        (|order| (order.cached_share, order.warm_up_ms, order.expect.ttl.1) = (1.0, 3000, 5), "--duration"),
        (
            |order| (order.cached_share, order.warm_up_ms, order.duration_ms) = (1.0, 3000, 1_800_000),
            "--duration",
        ),
        (|order| order.expect.zone = "a..b".into(), "dns64perf.test"),
        (|order| order.expect.prefixes[0].1 = 95, "RFC 6052"),
        (|order| order.expect.addresses = 0, "at least 1 address"),
        (|order| order.expect.addresses = 4000, "fewer addresses"),
        (|order| order.expect.addresses = 145, "over UDP is 4096"),
        (|order| (order.expect.addresses, order.expect.cname_depth) = (110, 64), "over UDP is 4096"),
        (|order| order.names = "10.0.0.0/23".parse().unwrap(), "--names"),
        (|order| order.first_name = (1 << 24) - 999, "--names"),
    ] {
        let text = refusal(change);
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_name_is_asked_again_only_while_the_device_has_it() {
    let mut order = order(1000.0, 1000);
    assert_eq!(max_requery_age_ms(&order), 1_800_000);
    // 60 s, less one for the answer's time and one for counting whole seconds.
    order.expect.ttl = (0, 60);
    assert_eq!(max_requery_age_ms(&order), 58_000);
    order.expect.ttl = (0, 1);
    assert_eq!(max_requery_age_ms(&order), 0);
}

#[test]
fn a_whole_burst_has_slots() {
    let slots = |burst, senders| {
        let mut order = order(1000.0, 1000);
        order.pace = Pace::Open { rate_qps: 1000.0, burst };
        order.lanes.senders = senders;
        Plan::new(&order, false).unwrap().slots()
    };
    assert!(slots(100_000, 1).unwrap() >= 103_000);
    assert!(slots(100_000, 2).unwrap() >= 51_500);
    let refused = slots(u32::MAX, 1).unwrap_err().to_string();
    assert!(refused.contains("--burst"), "{refused}");
}

#[test]
fn a_companion_needs_a_load_of_one_thread() {
    let mut order = order(1000.0, 1000);
    assert!(Plan::new(&order, true).is_ok());
    order.lanes.receivers = 1;
    assert!(matches!(Plan::new(&order, true), Err(LoadError::Companion)));
}

#[test]
fn the_largest_answer_over_udp_can_be_asked_for() {
    let mut order = order(1000.0, 1000);
    // 12 + 36 octets of header and question, and 28 for each address.
    order.expect.addresses = 144;
    assert!(Plan::new(&order, false).is_ok());
    (order.expect.addresses, order.expect.cname_depth) = (107, 64);
    assert!(Plan::new(&order, false).is_ok());
}

#[test]
fn large_answers_are_asked_for_with_edns() {
    let mut order = order(1000.0, 1000);
    let plain = Plan::new(&order, false).unwrap().template.length();
    let options = LoadOptions { edns: true, ..LoadOptions::default() };
    assert_eq!(Plan::with(&order, &options, false).unwrap().template.length(), plain + 11, "on request, too");
    order.expect.addresses = 17;
    assert_eq!(Plan::new(&order, false).unwrap().template.length(), plain + 11);
}
