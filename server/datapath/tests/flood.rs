//! A worker that cannot keep up with the queries of one network, over real sockets: a client that sends little is served.

use crate::echo;

use echo::{Echo, Running, options};
use sixfold_datapath::{Counter, Steer};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longer than any step here takes on a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Time that a query takes this machine. Even a slow flooder sends more than 2,000 a second.
const WORK: Duration = Duration::from_micros(500);

#[test]
fn a_worker_that_cannot_keep_up_serves_who_asks_little() {
    let options = options("127.0.0.1:0".parse().unwrap(), 1, Steer::Name);
    let running = Running::start(&options, || Echo { work: WORK, ..Echo::default() });
    let server = running.address();

    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let flooder = std::thread::spawn(move || {
        let socket = UdpSocket::bind("127.0.0.2:0").unwrap();
        while !stopped.load(Ordering::Relaxed) {
            for _ in 0..32 {
                let _ = socket.send_to(&[0; 40], server);
            }
            // Tens of thousands a second, without using more of the processor than that.
            std::thread::sleep(Duration::from_micros(200));
        }
    });

    let polite = UdpSocket::bind("127.0.0.3:0").unwrap();
    polite.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let end = std::time::Instant::now() + TEST_TIMEOUT;
    let (mut number, mut in_a_row) = (0u32, 0);
    // Without overload control hardly one in ten would pass, and never thirty in a row.
    while in_a_row < 30 && std::time::Instant::now() < end {
        number += 1;
        let question = [&number.to_be_bytes()[..], &[0; 36]].concat();
        polite.send_to(&question, server).unwrap();
        let mut answer = [0; 64];
        let is_answered = loop {
            match polite.recv(&mut answer) {
                Ok(_) if answer[..4] == question[..4] => break true,
                Ok(_) => {}
                Err(_) => break false,
            }
        };
        let counted = running.shared.counters(0);
        let is_flooded = counted.get(Counter::FloodingNetwork) > 0;
        in_a_row = if is_answered && is_flooded { in_a_row + 1 } else { 0 };
    }
    stop.store(true, Ordering::Relaxed);
    flooder.join().unwrap();
    assert_eq!(in_a_row, 30, "after {number} questions");
    running.shared.stop(Duration::ZERO);
    running.stop();
}
