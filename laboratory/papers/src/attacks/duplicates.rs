//! Requests that are executed twice: after a crash of the server, and by an observer that sends a SYN again.

use super::{Mechanism, QUERY_OCTETS, Site, SiteSettings};
use crate::network::{Filter, server};
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use core::time::Duration;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use ttcp::{Event, Segment, Serial};

/// The server crashes after it has executed a request and before anything leaves that acknowledges it, and starts again at
/// once. Returns the number of executions, and true if the client has an answer.
pub fn crash_before_the_answer(mechanism: Mechanism, seed: u64) -> (u64, bool) {
    let mut site = Site::new(SiteSettings::new(mechanism), 100, seed, seed);
    let crashes = Rc::new(Cell::new(false));
    site.network = site.network.with_filter(without_acknowledgment(Rc::clone(&crashes)));
    site.query();
    crashes.set(true);
    let before = site.executed;
    let start = site.network.now;
    site.network.client.transact(start, server(), &[b'q'; QUERY_OCTETS]).expect("a connection");
    // Until the request has come: the events wait in the server, and the crash takes them and the answer.
    let (mut crashed, mut answered) = (0, false);
    while crashed == 0 && site.network.step(start + Duration::from_secs(10)) {
        while let Some(event) = site.network.server.next_event() {
            crashed += u64::from(matches!(event, Event::Received(..)));
        }
    }
    site.network.server.reboot(7);
    crashes.set(false);
    site.run(start + Duration::from_secs(100), |_, event| answered |= matches!(event, Event::Received(..)));
    (site.executed - before + crashed, answered)
}

/// Drops what the server sends and what acknowledges data, while it crashes.
fn without_acknowledgment(crashes: Rc<Cell<bool>>) -> Filter {
    let mut first = Serial::default();
    Box::new(move |_, to_server, segment| {
        if to_server && segment.syn {
            first = segment.seq;
        }
        let acknowledges = segment.ack.is_some_and(|ack| ack.minus(first) > 1);
        to_server || !crashes.get() || !acknowledges
    })
}

/// State of the hosts when an observer sends a SYN again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// The connection of the SYN is over.
    AfterTheConnection,
    /// The server has started again, with the same key, and knows no client.
    AfterServerRestart,
    /// The client has started again, with a random count, and has asked once.
    AfterClientRestart,
}

/// In each trial an observer records the SYN of the client's second query and sends it again. Returns the number of trials in
/// which the server executes it again.
pub fn replay(mechanism: Mechanism, when: Replay, trials: u64, seed: u64) -> u64 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..trials).map(|_| replay_once(mechanism, when, &mut random)).sum()
}

fn replay_once(mechanism: Mechanism, when: Replay, random: &mut ChaCha8Rng) -> u64 {
    let mut site =
        Site::new(SiteSettings::new(mechanism), random.next_u32(), random.next_u64(), random.next_u64());
    let seen: Rc<RefCell<Vec<u8>>> = Rc::default();
    let record = Rc::clone(&seen);
    site.network = site.network.with_filter(Box::new(move |_, to_server, segment: &Segment<'_>| {
        if to_server && segment.syn && record.borrow().is_empty() {
            *record.borrow_mut() = segment.write();
        }
        true
    }));
    site.query();
    seen.borrow_mut().clear();
    site.query();
    let syn = seen.borrow().clone();
    match when {
        Replay::AfterTheConnection => {}
        Replay::AfterServerRestart => site.network.server.reboot(random.next_u32()),
        Replay::AfterClientRestart => {
            site.network.client.reboot(random.next_u32());
            site.query();
        }
    }
    // Past TIME-WAIT, of which the server has none here.
    let end = site.network.now + Duration::from_secs(120);
    site.run(end, |_, _| {});
    let executed = site.attack(&syn);
    site.network.collect();
    let (end, before) = (site.network.now + Duration::from_secs(1000), site.executed);
    site.run(end, |_, _| {});
    executed + site.executed - before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_makes_data_with_a_syn_execute_twice() {
        assert_eq!(crash_before_the_answer(Mechanism::Tcp, 1), (1, false));
        assert_eq!(crash_before_the_answer(Mechanism::Transactions, 1), (2, true));
        assert_eq!(crash_before_the_answer(Mechanism::FastOpen, 1), (2, true));
    }

    #[test]
    fn t_tcp_refuses_old_syns_and_fast_open_does_not() {
        for when in [Replay::AfterTheConnection, Replay::AfterServerRestart] {
            assert_eq!(replay(Mechanism::Tcp, when, 20, 1), 0);
            assert_eq!(replay(Mechanism::Transactions, when, 20, 1), 0);
            assert_eq!(replay(Mechanism::FastOpen, when, 20, 1), 20);
        }
    }

    #[test]
    fn t_tcp_takes_half_of_all_old_syns_after_the_client_has_started_again() {
        let executed = replay(Mechanism::Transactions, Replay::AfterClientRestart, 1000, 1);
        // 99.99 % of binomial samples: 500 +- 3.9 * sqrt(250).
        assert!(executed.abs_diff(500) <= 62, "{executed}");
    }
}
