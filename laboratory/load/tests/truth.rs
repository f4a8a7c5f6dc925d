//! Truth of the instrument: each fault of a device is detected, counted exactly, and named. So is each fault of the
//! tester. Loads with options are in `truth_of_options.rs`.

use crate::device;

use device::{Query, assert_verdict, order, right};
use kit::namespace;
use kit::upstream::Replies;
use measure::order::Pace;
use measure::outcome::{Outcome, Verdict};
use sixfold_load::{Companion, NoCompanion, run};
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::process::Command;
use std::time::Duration;

/// A load of 1,000 queries in a second against a device that answers every 100th wrongly, beginning with number 50.
fn with_fault(fault: impl Fn(&Query<'_>, &mut Replies) + Send + 'static) -> Outcome {
    let device = device::start("127.0.0.1:0", move |query, replies| {
        if query.number % 100 == 50 { fault(query, replies) } else { right(query, replies) }
    });
    let outcome = device::go(&order(device.address, 1000.0, 1000)).unwrap();
    assert_eq!(outcome.sent, 1000);
    let seconds = outcome.per_second.iter();
    assert_eq!(seconds.map(|second| second.sent).sum::<u64>(), 1000);
    outcome
}

/// The counts: valid, late, lost, duplicates, unsolicited, wrong source, and the reasons.
fn counts(outcome: &Outcome) -> ([u64; 6], Vec<(&str, u64)>) {
    let o = outcome;
    let reasons = o.invalid.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    ([o.valid, o.late, o.lost, o.duplicates, o.unsolicited, o.wrong_source], reasons)
}

/// A fault that completes its query with a reason. The first one is shown as `got`. `judge_tests.rs` and `first_invalid.rs` have all reasons.
fn assert_named(reason: &str, got: &str, fault: impl Fn(&Query<'_>) -> Vec<u8> + Send + 'static) {
    let outcome = with_fault(move |query, replies| replies.now(fault(query)));
    assert_eq!(counts(&outcome), ([990, 0, 0, 0, 0, 0], vec![(reason, 10)]));
    assert_eq!((outcome.received, outcome.rcodes.values().sum::<u64>()), (1000, 1000));
    let first = &outcome.first_invalid[reason];
    assert_eq!((outcome.first_invalid.len(), first.name.as_str()), (1, "010-000-000-050.dns64perf.test"));
    assert_eq!(first.expected.split(' ').next(), Some("64:ff9b::a00:32"));
    assert_eq!(first.got, got);
    let text = format!("10 of 1,000 queries got no valid reply in time: 10 invalid ({reason})");
    assert_verdict(&outcome, Verdict::Fail, &text);
}

#[test]
fn a_device_without_fault_passes() {
    let outcome = with_fault(right);
    assert_eq!(counts(&outcome), ([1000, 0, 0, 0, 0, 0], vec![]));
    assert_verdict(&outcome, Verdict::Pass, "");
    assert_eq!((outcome.names_used, outcome.asked_again), (1000, 0));
    assert_eq!(outcome.latency_us.actual.count, 1000);
    assert!((outcome.rate_asked - 1000.0).abs() < 1e-6 && (outcome.seconds - 1.0).abs() < 1e-9);
}

#[test]
fn one_lost_query_in_ten_thousand_is_found() {
    let device = device::start("127.0.0.1:0", |query, replies| {
        if query.number % 10_000 != 9_999 {
            replies.now(query.right());
        }
    });
    let outcome = device::go(&order(device.address, 5000.0, 4000)).unwrap();
    assert_eq!((outcome.sent, outcome.lost, outcome.valid), (20_000, 2, 19_998));
    assert!((outcome.loss() - 1e-4).abs() < 1e-12);
    assert_verdict(&outcome, Verdict::Fail, "2 of 20,000 queries got no valid reply in time: 2 lost");
}

#[test]
fn a_wrong_prefix_is_named() {
    assert_named("prefix", "2020:2020:2020:2020:2020:2020:a00:32", |query| {
        query.with_record(&[0x20; 12], query.address(), 60)
    });
}

#[test]
fn servfail_is_named() {
    assert_named("servfail", "SERVFAIL", |query| query.patched(&[(3, 0x82)]));
}

#[test]
fn a_stale_id_is_named_and_does_not_answer() {
    let outcome = with_fault(|query, replies| {
        let [high, low] = query.earlier_id.unwrap();
        replies.now(query.patched(&[(0, high), (1, low)]));
    });
    assert_eq!(counts(&outcome), ([990, 0, 10, 0, 0, 0], vec![("stale-id", 10)]));
    assert_eq!(outcome.first_invalid["stale-id"].name, "010-000-000-050.dns64perf.test");
    assert_verdict(&outcome, Verdict::Fail, "10 lost, 10 invalid (stale-id)");
}

#[test]
fn a_wrong_question_is_named_and_does_not_answer() {
    let outcome = with_fault(|query, replies| {
        replies.now(query.patched(&[(13, b'2')]));
        // The right reply follows for every other query: it still counts.
        if query.number % 200 == 50 {
            replies.now(query.right());
        }
    });
    assert_eq!(counts(&outcome), ([995, 0, 5, 0, 0, 0], vec![("question", 10)]));
    let first = &outcome.first_invalid["question"];
    assert_eq!(first.name, "010-000-000-050.dns64perf.test");
    assert_eq!(first.got, "210-000-000-050.dns64perf.test AAAA");
    assert_verdict(&outcome, Verdict::Fail, "5 lost, 10 invalid (question)");
}

#[test]
fn a_duplicate_is_counted_apart() {
    let outcome = with_fault(|query, replies| {
        replies.now(query.right());
        replies.now(query.right());
    });
    assert_eq!(counts(&outcome), ([1000, 0, 0, 10, 0, 0], vec![]));
    assert_eq!(outcome.received, 1000);
    assert_verdict(&outcome, Verdict::Pass, "");
}

#[test]
fn a_reply_from_another_port_is_counted_apart_and_does_not_answer() {
    let outcome = with_fault(|query, replies| replies.from_elsewhere(query.right()));
    assert_eq!(counts(&outcome), ([990, 0, 10, 0, 0, 10], vec![]));
    assert_verdict(&outcome, Verdict::Fail, "10 lost");
}

#[test]
fn an_unsolicited_reply_is_counted_apart() {
    let outcome = with_fault(|query, replies| {
        replies.now(query.right());
        // A question of the load that was not sent from this port.
        replies.now(query.patched(&[(21, b'2')]));
    });
    assert_eq!(counts(&outcome), ([1000, 0, 0, 0, 10, 0], vec![]));
}

#[test]
fn a_late_reply_is_late_and_not_lost() {
    // 2 s of timeout and 3 s of delay, and the load lasts long enough to see the replies.
    let device = device::start("127.0.0.1:0", |query, replies| {
        let is_late = query.number < 1000 && query.number % 100 == 50;
        replies.after(Duration::from_secs(if is_late { 3 } else { 0 }), query.right());
    });
    let outcome = device::go(&order(device.address, 1000.0, 5000)).unwrap();
    assert_eq!(counts(&outcome), ([4990, 10, 0, 0, 0, 0], vec![]));
    assert_eq!((outcome.received, outcome.per_second[0].late), (5000, 10));
    assert!(outcome.latency_us.actual.max >= 3e6);
    assert_verdict(&outcome, Verdict::Fail, "10 late");
}

#[test]
fn a_port_where_no_process_listens_is_told_apart_from_loss() {
    // Outside the range from which the kernel chooses ports, so no other test can have it.
    for (address, group, receivers) in [("127.0.0.9:1", 1, 0), ("[::1]:1", 16, 0), ("127.0.0.9:1", 16, 1)] {
        let mut order = order(address.parse().unwrap(), 1000.0, 500);
        (order.lanes.group, order.lanes.receivers) = (group, receivers);
        // Ten queries leave together: for the kernel of this host they are one datagram.
        order.pace = Pace::Open { rate_qps: 1000.0, burst: 10 };
        let outcome = device::go(&order).unwrap();
        assert_eq!(counts(&outcome), ([0; 6], vec![]));
        assert_eq!((outcome.sent, outcome.connection_refused, outcome.tester.send_errors), (500, 500, 0));
        let text = "500 of 500 queries got no valid reply in time: 500 connection refused";
        assert_verdict(&outcome, Verdict::Fail, text);
    }
}

#[test]
fn a_server_that_comes_back_is_refused_before_and_answers_afterwards() {
    // Outside the range from which the kernel chooses ports.
    let address = "127.0.0.9:20853";
    let mut device = None;
    let outcome = run(&order(address.parse().unwrap(), 1000.0, 3000), None::<&mut NoCompanion>, |progress| {
        assert!(
            device.is_some() || (progress.refused > 0 && progress.valid + progress.late + progress.lost == 0)
        );
        device.get_or_insert_with(|| device::start(address, right));
        ControlFlow::Continue(())
    });
    let outcome = outcome.unwrap();
    assert!(outcome.connection_refused >= 500 && outcome.valid >= 500, "{outcome:?}");
    assert_eq!(outcome.connection_refused + outcome.valid + outcome.lost + outcome.late, outcome.sent);
    assert_eq!((outcome.duplicates, outcome.tester.send_errors), (0, 0));
}

/// Stalls once, for a given time.
struct Sleeper {
    turns: u32,
    sleep: Duration,
}

impl Companion for Sleeper {
    fn poll(&mut self) -> usize {
        self.turns += 1;
        if self.turns == 100 {
            std::thread::sleep(self.sleep);
        }
        0
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn deadline_ns(&self) -> Option<u64> {
        None
    }
}

#[test]
fn a_tester_that_stood_still_is_found_and_says_nothing_of_the_server() {
    let device = device::start("127.0.0.1:0", right);
    let mut sleeper = Sleeper { turns: 0, sleep: Duration::from_millis(400) };
    let outcome =
        run(&order(device.address, 1000.0, 1000), Some(&mut sleeper), |_| ControlFlow::Continue(()));
    let outcome = outcome.unwrap();
    // Everything is sent and counted despite the stall.
    assert_eq!(counts(&outcome), ([1000, 0, 0, 0, 0, 0], vec![]));
    assert_eq!(outcome.verdict, Verdict::TesterLimited);
    assert!(
        outcome.reason.contains("stalled for") && outcome.reason.contains("after it was due"),
        "{}",
        outcome.reason
    );
    assert!(outcome.lag_max_us > 350_000.0, "{}", outcome.lag_max_us);
    // A latency from the intended time shows the stall; a latency from the actual sending time does not.
    assert!(outcome.latency_us.intended.max > 350_000.0);
    assert!(outcome.latency_us.intended.p50 >= outcome.latency_us.actual.p50);
    // 40 intervals of 10 ms without a query.
    assert!(outcome.pacing_error.ms10.beyond_1_percent > 0.3, "{:?}", outcome.pacing_error);
}

#[test]
fn queries_that_the_kernel_refuses_are_the_testers_affair_and_the_reason_is_told() {
    // Nothing can be sent to port 0.
    let outcome = device::go(&order("127.0.0.1:0".parse().unwrap(), 1000.0, 50)).unwrap();
    assert_eq!((outcome.sent, outcome.tester.send_errors), (0, 50));
    assert_eq!(outcome.verdict, Verdict::TesterLimited);
    assert!(outcome.reason.contains("refused 50 queries: Invalid argument"), "{}", outcome.reason);
}

fn succeeds(command: &str) -> bool {
    let mut words = command.split(' ');
    let output = Command::new(words.next().unwrap()).args(words).output();
    output.is_ok_and(|output| output.status.success())
}

#[test]
fn drops_of_the_testers_own_interface_queue_say_nothing_of_the_server() {
    let name = "truth::drops_of_the_testers_own_interface_queue_say_nothing_of_the_server";
    if !namespace::is_inside() {
        namespace::run_inside(name, &["--map-root-user", "--net", "--"]);
        return;
    }
    // Sends succeed even if the queueing discipline drops the packets.
    if !succeeds("ip link set lo up")
        || !succeeds("tc qdisc add dev lo root tbf rate 256kbit burst 1600 limit 3000")
    {
        return kit::skip("no ip or tc, or no tbf in this kernel");
    }
    let device = device::start("127.0.0.1:0", right);
    let outcome = device::go(&order(device.address, 1000.0, 1000)).unwrap();
    assert!(outcome.lost > 0 && outcome.tester.interface_drops > 0, "{outcome:?}");
    assert_eq!(outcome.verdict, Verdict::TesterLimited);
    assert!(outcome.reason.contains("network interfaces or their queues dropped"), "{}", outcome.reason);
}
