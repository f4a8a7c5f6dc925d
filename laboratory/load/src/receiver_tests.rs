//! Messages and the counters that they go to.

use super::*;
use crate::names::Template;
use crate::plan::tests::order;

const SENT_AT: u64 = 1_000;

/// A lane with one port and outstanding queries 0 to 9.
fn out() -> (Plan, Lane) {
    let mut order = order(1000.0, 1000);
    order.lanes.ports = 1;
    let plan = Plan::new(&order, false).unwrap();
    let lane = Lane::new(&plan, 0).unwrap();
    (0..10).for_each(|k| lane.outstanding.insert(k, SENT_AT, [10, 0, 0, k as u8], false));
    lane.sent.set(10);
    (plan, lane)
}

/// The right reply to a query, with the ID of another query.
fn reply(plan: &Plan, lane: &Lane, k: u8, id_of: u64) -> Vec<u8> {
    let mut message = vec![0; plan.template.length()];
    plan.template.prepare(&mut message);
    Template::patch(&mut message, lane.query_ids.id(0, id_of), [10, 0, 0, k]);
    (message[2], message[7]) = (0x81, 1);
    message.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16]);
    message.extend([0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, k]);
    message
}

fn enter(plan: &Plan, lane: &Lane, now: u64, messages: &[(&[u8], bool)]) -> (ThreadStats, Completed) {
    let (mut stats, mut completed) = (ThreadStats::new(plan), Completed::default());
    for (message, from_server) in messages {
        let arrival = Arrival { message, from_server: *from_server };
        Received { plan, lane, port: 0, now, sent: lane.sent.get() }.enter(
            arrival,
            &mut stats,
            &mut completed,
        );
    }
    (stats, completed)
}

fn named(stats: &ThreadStats) -> Vec<(&'static str, u64)> {
    stats.invalid.named().collect()
}

#[test]
fn a_right_reply_counts_once_and_then_as_duplicate() {
    let (plan, lane) = out();
    let right = reply(&plan, &lane, 3, 3);
    let (stats, completed) = enter(&plan, &lane, 2_000, &[(&right, true), (&right, true), (&right, true)]);
    assert_eq!((stats.valid, stats.duplicates, completed.in_time), (1, 2, 1));
    assert_eq!((stats.seconds[0].valid, named(&stats)), (1, vec![]));
    assert_eq!(stats.latencies().actual.max, 1.0);
}

#[test]
fn a_reply_after_the_timeout_is_late_and_a_late_one_is_no_loss_of_order() {
    let (plan, lane) = out();
    let right = reply(&plan, &lane, 3, 3);
    let (stats, completed) = enter(&plan, &lane, SENT_AT + plan.timeout + 1, &[(&right, true)]);
    assert_eq!((stats.late, stats.valid, completed.late, stats.latencies().actual.count), (1, 0, 1, 1));
    let other = reply(&plan, &lane, 4, 4);
    let (stats, _) = enter(&plan, &lane, SENT_AT + plan.timeout, &[(&other, true), (&right, true)]);
    assert_eq!((stats.valid, stats.duplicates), (1, 1));
}

#[test]
fn a_message_from_elsewhere_ends_nothing() {
    let (plan, lane) = out();
    let right = reply(&plan, &lane, 3, 3);
    let (stats, _) = enter(&plan, &lane, 2_000, &[(&right, false), (&right, true)]);
    assert_eq!((stats.wrong_source, stats.valid), (1, 1));
}

#[test]
fn another_question_under_an_outstanding_id_is_named_and_ends_nothing() {
    let (plan, lane) = out();
    let (mixed, right) = (reply(&plan, &lane, 4, 3), reply(&plan, &lane, 3, 3));
    let mut two_questions = right.clone();
    two_questions[5] = 2;
    let messages: [(&[u8], bool); 4] =
        [(&mixed, true), (&two_questions, true), (&right[..5], true), (&right, true)];
    let (stats, completed) = enter(&plan, &lane, 2_000, &messages);
    assert_eq!(named(&stats), [("header", 1), ("question-count", 1), ("question", 1)]);
    assert_eq!((stats.valid, stats.wrong, completed.in_time), (1, 0, 1));
}

#[test]
fn an_outstanding_question_under_an_old_id_is_a_stale_id() {
    let (plan, lane) = out();
    let (right, stale) = (reply(&plan, &lane, 3, 3), reply(&plan, &lane, 4, 3));
    let (stats, _) = enter(&plan, &lane, 2_000, &[(&right, true), (&stale, true)]);
    assert_eq!((named(&stats), stats.unsolicited, stats.valid), (vec![("stale-id", 1)], 0, 1));
}

#[test]
fn a_reply_without_a_query_is_unsolicited() {
    let (plan, lane) = out();
    let future = reply(&plan, &lane, 11, 11);
    let (stats, completed) = enter(&plan, &lane, 2_000, &[(&future, true), (b"x", true), (b"", true)]);
    assert_eq!((stats.unsolicited, completed.in_time, named(&stats)), (3, 0, vec![]));
}

#[test]
fn a_wrong_reply_ends_its_query_under_its_reason() {
    let (plan, lane) = out();
    let mut wrong = reply(&plan, &lane, 3, 3);
    *wrong.last_mut().unwrap() = 9;
    let (stats, completed) = enter(&plan, &lane, 2_000, &[(&wrong, true)]);
    assert_eq!((named(&stats), stats.wrong, completed.in_time), (vec![("address", 1)], 1, 1));
    assert_eq!(stats.seconds[0].invalid, 1);
}

#[test]
fn a_port_that_is_never_seen_empty_shows_a_thread_that_does_not_keep_up() {
    let mut backlog = Backlog::new(2);
    for (place, empty, now, longest) in [
        (0, true, 100, 0),
        (0, false, 200, 0),
        (1, false, 250, 0),
        (0, false, 300, 100),
        (0, true, 350, 150),
        (0, false, 900, 150),
        (1, true, 950, 700),
        (0, true, 901, 700),
        (7, false, 999, 700),
    ] {
        backlog.seen(place, empty, now);
        assert_eq!(backlog.longest, longest, "{now}");
    }
}

#[test]
fn a_port_is_read_until_it_is_empty_and_no_longer_than_a_turn() {
    let mut order = order(1000.0, 1000);
    let server = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    (order.server, order.lanes.ports) = (server.local_addr().unwrap(), 1);
    let plan = Plan::new(&order, false).unwrap();
    let lane = Lane::new(&plan, 0).unwrap();
    let mut to = lane.ports[0].address().unwrap();
    to.set_ip([127, 0, 0, 1].into());
    // One poll makes 8 receives of 32 datagrams.
    (0..300).for_each(|_| assert!(server.send_to(b"x", to).is_ok()));
    let mut receiver = Receiver::new(&plan, 1);
    assert_eq!((receiver.receive(&lane, 0, 0), receiver.backlog.since[0] == u64::MAX), (256, false));
    assert_eq!((receiver.receive(&lane, 0, 0), receiver.backlog.since[0] == u64::MAX), (44, true));
    assert!(receiver.longest_backlog() > 0);
    assert_eq!(receiver.stats.unsolicited, 300);
}

#[test]
fn queries_of_the_warm_up_are_ended_and_not_counted() {
    let (plan, lane) = out();
    lane.first_measured.set(4);
    let (warm, measured) = (reply(&plan, &lane, 3, 3), reply(&plan, &lane, 4, 4));
    let (question, stale) = (reply(&plan, &lane, 4, 2), reply(&plan, &lane, 2, 3));
    let messages: [(&[u8], bool); 5] =
        [(&warm, true), (&warm, true), (&measured, true), (&question, true), (&stale, true)];
    let (stats, completed) = enter(&plan, &lane, 2_000, &messages);
    assert_eq!((stats.valid, stats.duplicates, completed.in_time), (1, 0, 2));
    assert_eq!((named(&stats), stats.unsolicited), (vec![], 0));
}
