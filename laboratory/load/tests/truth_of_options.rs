//! Truth of the instrument with its options: queries from a file, and the times of every query.

use crate::device;

use device::{Query, assert_verdict, order, right};
use kit::upstream::Replies;
use measure::order::Pace;
use measure::outcome::Verdict;
use sixfold_load::{LoadOptions, QueryList};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Planted replies to the numbered names of a query file: one in ten is something else than a plain answer.
fn reply_to_listed(query: &Query<'_>, replies: &mut Replies) {
    replies.now(match query.number {
        10 => query.patched(&[(3, 0x83)]),
        20 => query.patched(&[(3, 0x82)]),
        // Another question under this ID: it does not answer.
        30 => query.patched(&[(13, b'9')]),
        40 => [query.right(), vec![0]].concat(),
        50 => query.patched(&[(2, 0x83)]),
        // The address cannot be known, nor the TTL.
        60 => query.with_record(&[0x20; 12], [1, 2, 3, 4], 1 << 30),
        70 => query.patched(&[(3, 0x85)]),
        80 => query.patched(&[(2, 0x01)]),
        90 => return,
        _ => query.right(),
    });
}

#[test]
fn queries_of_a_file_are_asked_in_its_order_and_judged_by_what_can_be_known() {
    let mut text = String::new();
    for number in 0..100 {
        // Names of three lengths and two types.
        let kind = ["AAAA", "type65"][number % 2];
        text += &format!("010-000-000-{number:03}.{}Test {kind}\n", "x.".repeat(number % 3));
    }
    let list = QueryList::read(text.as_bytes(), Path::new("names")).unwrap();
    let options = LoadOptions { queries: Some(Arc::new(list)), ..LoadOptions::default() };
    let mut asked = 0;
    let device = device::start("127.0.0.1:0", move |query, replies| {
        let kind = query.message[query.message.len() - 3];
        assert_eq!((query.number, kind), (asked % 100, if asked % 2 == 0 { 28 } else { 65 }));
        assert!(query.message.windows(6).any(|name| name == b"\x04Test\0"));
        asked += 1;
        reply_to_listed(query, replies);
    });
    let (outcome, _) = device::run(&order(device.address, 1000.0, 1000), &options).unwrap();
    let reasons =
        vec![("malformed", 10), ("not-a-response", 10), ("question", 10), ("refused", 10), ("servfail", 10)];
    assert_eq!((outcome.valid, outcome.late, outcome.lost, outcome.unsolicited), (940, 0, 20, 0));
    assert_eq!(
        outcome.invalid.iter().map(|(name, count)| (name.as_str(), *count)).collect::<Vec<_>>(),
        reasons
    );
    let rcodes: Vec<_> = outcome.rcodes.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(rcodes, [("NOERROR", 950), ("NXDOMAIN", 10), ("REFUSED", 10), ("SERVFAIL", 10)]);
    let first = &outcome.first_invalid["refused"];
    assert_eq!((first.name.as_str(), first.got.as_str()), ("010-000-000-070.x.Test AAAA", "REFUSED"));
    assert_eq!((outcome.truncated, outcome.names_used, outcome.asked_again), (10, 100, 900));
    assert_verdict(
        &outcome,
        Verdict::Fail,
        "60 of 1,000 queries got no valid reply in time: 20 lost, 50 invalid",
    );
}

#[test]
fn a_query_file_has_no_share_of_cached_names() {
    let list = QueryList::read(&b"a A\n"[..], Path::new("names")).unwrap();
    let options = LoadOptions { queries: Some(Arc::new(list)), ..LoadOptions::default() };
    let mut order = order("127.0.0.1:9".parse().unwrap(), 10.0, 10);
    order.cached_share = 0.5;
    let refused = device::run(&order, &options);
    assert!(refused.unwrap_err().to_string().contains("leave out --cached-share"));
}

#[test]
fn every_query_has_its_times_and_its_outcome_on_request() {
    for (senders, receivers) in [(1, 0), (2, 0), (3, 2)] {
        let device = device::start("127.0.0.1:0", |query, replies| match query.number % 100 {
            7 => {}
            8 => replies.now(query.patched(&[(3, 0x82)])),
            9 => replies.after(Duration::from_millis(60), query.right()),
            _ => right(query, replies),
        });
        let mut order = order(device.address, 1000.0, 1000);
        (order.warm_up_ms, order.lanes.senders, order.lanes.receivers) = (105, senders, receivers);
        let options = LoadOptions { query_times: true, ..LoadOptions::default() };
        let (outcome, times) = device::run(&order, &options).unwrap();
        let all: Vec<_> = times.queries().collect();
        assert_eq!((all.len(), times.omitted(), outcome.sent), (1000, 0, 1000));
        // The first measured query is number 105, and query n is due n ms after it.
        for (n, query) in (0..).zip(&all) {
            assert_eq!(query.due, n * 1_000_000);
            assert!(query.sent.unwrap() >= query.due);
            let expected = match (n + 105) % 100 {
                7 => "lost",
                8 => "servfail",
                _ => "valid",
            };
            assert_eq!(query.outcome, expected, "{n}");
            assert_eq!(query.received.is_none(), expected == "lost");
            let rtt = query.received.map(|received| received - query.sent.unwrap());
            assert!((n + 105) % 100 != 9 || rtt.unwrap() >= 60_000_000);
        }
        // The mean is that of these replies, exactly.
        let rtts = all.iter().filter(|query| query.outcome == "valid");
        let rtts: Vec<u64> = rtts.map(|query| query.received.unwrap() - query.sent.unwrap()).collect();
        let mean = rtts.iter().sum::<u64>() as f64 / rtts.len() as f64 / 1e3;
        assert_eq!(
            (outcome.latency_us.actual.count, outcome.latency_us.actual.mean),
            (rtts.len() as u64, mean)
        );
        assert!(outcome.latency_us.actual.standard_deviation > 1_000.0);
    }
}

#[test]
fn a_closed_loop_has_the_times_of_its_queries_too() {
    let device = device::start("127.0.0.1:0", right);
    let mut order = order(device.address, 1000.0, 200);
    (order.pace, order.lanes.senders, order.warm_up_ms) = (Pace::Closed { outstanding: 4 }, 2, 50);
    let options = LoadOptions { query_times: true, ..LoadOptions::default() };
    let (outcome, times) = device::run(&order, &options).unwrap();
    assert_eq!(times.queries().count() as u64, outcome.sent);
    assert!(outcome.sent > 0 && times.queries().all(|query| query.sent == Some(query.due)));
    let valid = times.queries().filter(|query| query.outcome == "valid").count();
    assert_eq!(valid as u64, outcome.valid);
}

#[test]
fn more_queries_than_can_be_recorded_are_refused_before_the_load() {
    let options = LoadOptions { query_times: true, ..LoadOptions::default() };
    let mut order = order("127.0.0.1:9".parse().unwrap(), 1e6, 68_000);
    order.names = "1.0.0.0-126.255.255.255".parse().unwrap();
    let refused = device::run(&order, &options);
    let said = refused.unwrap_err().to_string();
    assert!(
        said.contains("68000000 queries") && said.contains("at most 67108864") && said.contains("--rate"),
        "{said}"
    );
}
