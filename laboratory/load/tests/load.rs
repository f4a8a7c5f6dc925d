//! Loads of every kind against a device that answers everything, and loads that end early.

use crate::device;

use device::{assert_verdict, order, right};
use kit::Upstream;
use measure::order::{Load, Pace};
use measure::outcome::{Outcome, Verdict};
use sixfold_load::{Companion, LoadError, NoCompanion, Progress, run};
use std::net::UdpSocket;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

fn answering(address: &str) -> Upstream {
    device::start(address, right)
}

fn go(order: &Load) -> Outcome {
    device::go(order).unwrap()
}

#[test]
fn threads_ports_groups_bursts_and_families_do_not_change_what_is_counted() {
    for (address, senders, receivers, ports, group, burst, spin) in [
        ("127.0.0.1:0", 1, 0, 1, 1, 1, false),
        ("[::1]:0", 1, 0, 16, 16, 1, false),
        ("127.0.0.1:0", 1, 1, 3, 5, 20, false),
        ("[::1]:0", 3, 2, 4, 8, 1, false),
        ("127.0.0.1:0", 2, 0, 2, 64, 100, true),
    ] {
        let device = answering(address);
        let mut order = order(device.address, 2000.0, 500);
        order.pace = Pace::Open { rate_qps: 2000.0, burst };
        (order.lanes.senders, order.lanes.receivers) = (senders, receivers);
        (order.lanes.ports, order.lanes.group, order.lanes.spin) = (ports, group, spin);
        order.warm_up_ms = 100;
        let outcome = go(&order);
        assert_eq!((outcome.sent, outcome.valid, outcome.lost), (1000, 1000, 0), "{outcome:?}");
        assert_eq!((outcome.names_used, device.all_asked("").values().sum::<u32>()), (1200, 1200));
        assert_verdict(&outcome, Verdict::Pass, "");
    }
}

#[test]
fn several_source_addresses_are_used() {
    let silent = device::start("127.0.0.1:0", |_, _| ());
    let mut order = order(silent.address, 100.0, 400);
    order.timeout_ms = 100;
    order.lanes.ports = 2;
    order.lanes.sources = vec!["127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap()];
    assert_eq!(go(&order).lost, 40);
    let sources = silent.take_peers();
    let of = |address: &str| sources.iter().filter(|source| source.ip().to_string() == address).count();
    assert_eq!((of("127.0.0.1"), of("127.0.0.2")), (2, 2));
}

#[test]
fn a_closed_loop_goes_on_after_losses() {
    for (senders, receivers) in [(1, 0), (2, 1)] {
        let dropped = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&dropped);
        let device = device::start("127.0.0.1:0", move |query, replies| {
            if query.number % 101 == 7 {
                counter.fetch_add(1, Ordering::Relaxed);
            } else {
                replies.now(query.right());
            }
        });
        let mut order = order(device.address, 1.0, 1500);
        order.pace = Pace::Closed { outstanding: 40 };
        order.timeout_ms = 500;
        (order.lanes.senders, order.lanes.receivers) = (senders, receivers);
        let outcome = go(&order);
        assert!(outcome.sent > 40);
        // A pause of the machine makes replies late, never lost.
        assert_eq!(outcome.lost, dropped.load(Ordering::Relaxed));
        assert_eq!(outcome.valid + outcome.lost + outcome.late, outcome.sent);
        // Only lost queries occupy places for long: 40 at a time, for 510 ms each, in 1.5 s.
        assert!(outcome.lost >= 1 && outcome.lost <= 40 * 3, "{}", outcome.lost);
        assert_eq!(outcome.rate_asked, 0.0);
    }
}

#[test]
fn a_share_of_names_is_asked_again_two_timeouts_after_its_answer_at_the_earliest() {
    let (tell, told) = mpsc::channel();
    let device = device::start("127.0.0.1:0", move |query, replies| {
        let _ = tell.send((query.number, query.asked_before, Instant::now()));
        replies.now(query.right());
    });
    let mut order = order(device.address, 2000.0, 2000);
    (order.warm_up_ms, order.timeout_ms, order.cached_share) = (1000, 300, 0.5);
    let outcome = go(&order);
    assert_eq!((outcome.sent, outcome.valid + outcome.late), (4000, 4000));
    drop(device);
    let mut first = std::collections::HashMap::new();
    let mut again = 0;
    for (number, asked_before, time) in told {
        if asked_before == 0 {
            first.insert(number, time);
        } else {
            again += 1;
            assert!(time - first[&number] >= Duration::from_millis(600));
        }
    }
    assert_eq!(first.len() as u64, outcome.names_used);
    // The warm-up queries as many new names as the measured time in the same duration: 1,000.
    assert_eq!(first.len() as u64 + again, 5000);
    // Half of 4,000: five standard deviations of a binomial distribution are 158. Fewer if for a while no name was
    // eligible.
    assert!(outcome.asked_again <= 2158, "{}", outcome.asked_again);
    if outcome.verdict == Verdict::Pass {
        assert!(outcome.asked_again >= 1842, "{}", outcome.asked_again);
    }
}

#[test]
fn with_a_share_of_one_the_warm_up_asks_what_the_measured_time_asks_again() {
    let device = answering("127.0.0.1:0");
    let mut order = order(device.address, 1000.0, 500);
    (order.warm_up_ms, order.timeout_ms, order.cached_share) = (1000, 200, 1.0);
    let outcome = go(&order);
    assert_eq!((outcome.sent, outcome.asked_again, outcome.names_used), (500, 500, 1000));
}

#[test]
fn a_load_that_is_stopped_says_so_and_keeps_its_counters() {
    let device = answering("127.0.0.1:0");
    let mut shown: Vec<Progress> = Vec::new();
    let outcome = run(&order(device.address, 500.0, 60_000), None::<&mut NoCompanion>, |progress| {
        shown.push(*progress);
        if shown.len() < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let outcome = outcome.unwrap();
    assert_eq!(outcome.verdict, Verdict::TesterLimited);
    assert!(outcome.reason.contains("stopped"), "{}", outcome.reason);
    assert_eq!(outcome.valid, outcome.sent);
    assert!(outcome.sent >= 500 && outcome.sent < 30_000, "{}", outcome.sent);
    assert_eq!(shown.len(), 2);
    assert!(shown[0].elapsed >= Duration::from_secs(1) && shown[0].whole == Duration::from_secs(60));
    assert!(shown[0].sent > 0 && shown[0].sent <= shown[1].sent);
}

#[test]
fn a_closed_loop_ends_when_no_names_are_left() {
    let device = answering("127.0.0.1:0");
    let mut order = order(device.address, 1.0, 60_000);
    order.pace = Pace::Closed { outstanding: 10 };
    order.names = "10.0.0.0/24".parse().unwrap();
    let outcome = go(&order);
    assert_eq!((outcome.sent, outcome.valid, outcome.names_used), (256, 256, 256));
    assert!(outcome.reason.contains("no names were left"), "{}", outcome.reason);
}

/// A server in the load's own thread.
struct Server {
    socket: UdpSocket,
    served: usize,
}

impl Companion for Server {
    fn poll(&mut self) -> usize {
        let mut buffer = [0; 512];
        let mut count = 0;
        while let Ok((length, from)) = self.socket.recv_from(&mut buffer) {
            self.socket.send_to(&device::Query::of(&buffer[..length]).right(), from).unwrap();
            count += 1;
        }
        self.served += count;
        count
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.socket.as_fd()]
    }

    fn deadline_ns(&self) -> Option<u64> {
        None
    }
}

#[test]
fn a_companion_is_served_in_turn_with_the_load() {
    let socket = UdpSocket::bind("[::1]:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut server = Server { socket, served: 0 };
    for pace in [
        Pace::Open { rate_qps: 500.0, burst: 1 },
        Pace::Open { rate_qps: 50_000.0, burst: 1 },
        Pace::Closed { outstanding: 20 },
    ] {
        let mut order = order(server.socket.local_addr().unwrap(), 1.0, 300);
        order.pace = pace;
        server.served = 0;
        let outcome = run(&order, Some(&mut server), |_| ControlFlow::Continue(())).unwrap();
        assert_eq!((outcome.valid, outcome.lost), (outcome.sent, 0));
        assert_eq!(server.served as u64, outcome.sent);
        assert!(outcome.sent > 0);
    }
}

#[test]
fn a_companion_with_several_threads_is_refused() {
    let socket = UdpSocket::bind("[::1]:0").unwrap();
    let mut order = order(socket.local_addr().unwrap(), 1.0, 300);
    order.lanes.senders = 2;
    let outcome = run(&order, Some(&mut Server { socket, served: 0 }), |_| ControlFlow::Continue(()));
    assert!(matches!(outcome, Err(LoadError::Companion)));
}

#[test]
fn a_refusal_of_the_kernel_is_an_error_with_a_remedy() {
    let mut wrong = order("127.0.0.1:53".parse().unwrap(), 1.0, 300);
    wrong.lanes.sources = vec!["192.0.2.1".parse().unwrap()];
    let error = device::go(&wrong).unwrap_err();
    assert!(
        matches!(error, LoadError::Bind(..)) && error.to_string().contains("address of this host"),
        "{error}"
    );
    let device = answering("127.0.0.1:0");
    let mut wrong = order(device.address, 1.0, 60_000);
    wrong.lanes.pins = vec![1023];
    let error = device::go(&wrong).unwrap_err();
    assert!(matches!(error, LoadError::Pin(1023, _)) && error.to_string().contains("taskset"), "{error}");
}

#[test]
fn a_sender_that_cannot_start_ends_the_load_of_its_receiver_too() {
    let device = answering("127.0.0.1:0");
    let mut wrong = order(device.address, 1.0, 60_000);
    (wrong.lanes.senders, wrong.lanes.receivers) = (2, 2);
    // The second sender's core does not exist.
    wrong.lanes.pins = vec![0, 1023, 0, 0];
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = tell.send(device::go(&wrong));
    });
    let outcome = told.recv_timeout(Duration::from_secs(30)).expect("the receiver waits for ever");
    assert!(matches!(outcome, Err(LoadError::Pin(1023, _))));
}

#[test]
fn a_burst_larger_than_all_that_is_out_at_its_rate_is_matched() {
    // The whole burst is outstanding before the first reply comes.
    let device = device::start("127.0.0.1:0", |query, replies| {
        replies.after(Duration::from_millis(200), query.right());
    });
    // Three timeouts at this rate are 3,000 queries.
    let mut order = order(device.address, 1.0, 3000);
    order.pace = Pace::Open { rate_qps: 2000.0, burst: 6000 };
    (order.timeout_ms, order.lanes.ports) = (500, 4);
    let outcome = go(&order);
    assert_eq!((outcome.sent, outcome.unsolicited), (6000, 0), "{outcome:?}");
}

#[test]
fn an_outcome_is_json_with_the_fields_that_scripts_rely_on() {
    let device = answering("127.0.0.1:0");
    let outcome = go(&order(device.address, 1000.0, 200));
    let json = serde_json::to_value(&outcome).unwrap();
    for field in ["sent", "received", "valid", "late", "lost", "duplicates"] {
        assert!(json[field].is_u64(), "{field}");
    }
    assert_eq!(json["sent"], 200);
    assert!(json["invalid"].is_object() && json["rate_asked"].is_f64() && json["rate_achieved"].is_f64());
    assert!(json["pacing_error"]["ms10"].is_object() && json["pacing_error"]["s1"].is_object());
    assert!(json["latency_us"]["intended"]["p99"].is_f64() && json["latency_us"]["actual"]["p50"].is_f64());
    assert!(["pass", "tester-limited"].contains(&json["verdict"].as_str().unwrap()));
    let back: Outcome = serde_json::from_value(json).unwrap();
    assert_eq!(
        (back.sent, back.verdict, back.per_second),
        (outcome.sent, outcome.verdict, outcome.per_second)
    );
}
