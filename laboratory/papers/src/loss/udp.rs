//! Concurrent DNS queries over UDP on a link that loses packets, in virtual time.

use super::retry::RetryPolicy;
use super::{ANSWER_OCTETS, Completed, QUERY_OCTETS};
use core::time::Duration;
use netem::{Direction, Impairments};

/// Octets of the IPv4 and UDP headers.
const HEADERS: usize = 28;

/// Runs queries that begin at the same time against a server that answers at once. None: no answer in time. At most 65,536
/// queries, as many as there are message IDs.
///
/// A datagram carries the message ID of its query and the number of its send, which stands for the source port: the server
/// returns both.
pub fn run(
    policy: &RetryPolicy,
    impairments: Impairments,
    queries: u32,
    seed: u64,
) -> Vec<Option<Completed>> {
    assert!(queries <= 1 << 16, "one message ID for each query");
    let mut exchange = Exchange {
        to_server: Direction::new(impairments, seed),
        to_client: Direction::new(impairments, !seed),
        completed: vec![None; queries as usize],
        accepts_late: policy.accepts_late,
        sends: 0,
    };
    let mut query = [0; HEADERS + QUERY_OCTETS];
    for send in policy.sends() {
        exchange.deliver_until(send);
        for id in 0..queries {
            if exchange.completed[id as usize].is_none() {
                query[HEADERS..HEADERS + 2].copy_from_slice(&(id as u16).to_be_bytes());
                query[HEADERS + 2] = exchange.sends;
                exchange.to_server.offer(send, &query);
            }
        }
        exchange.sends += 1;
    }
    exchange.deliver_until(policy.end());
    exchange.completed
}

/// Queries under way.
struct Exchange {
    to_server: Direction,
    to_client: Direction,
    completed: Vec<Option<Completed>>,
    accepts_late: bool,
    /// Sends so far.
    sends: u8,
}

impl Exchange {
    /// Delivers what arrives up to `end`, in order.
    fn deliver_until(&mut self, end: Duration) {
        let mut answer = [0; HEADERS + ANSWER_OCTETS];
        let next = |line: &Direction| line.next_due().filter(|&due| due <= end);
        while let Some(now) = [next(&self.to_server), next(&self.to_client)].into_iter().flatten().min() {
            let (to_client, completed) = (&mut self.to_client, &mut self.completed);
            while self.to_server.take_due(now, |query, _| {
                answer[HEADERS..HEADERS + 3].copy_from_slice(&query[HEADERS..HEADERS + 3]);
                to_client.offer(now, &answer);
            }) {}
            let (sends, accepts_late) = (self.sends, self.accepts_late);
            while to_client.take_due(now, |answer, _| {
                let id = u16::from_be_bytes([answer[HEADERS], answer[HEADERS + 1]]);
                let is_latest = answer[HEADERS + 2] + 1 == sends;
                let query = &mut completed[usize::from(id)];
                if query.is_none() && (is_latest || accepts_late) {
                    *query = Some(Completed { time: now, retries: u32::from(sends) - 1 });
                }
            }) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::retry::{DJBDNS, POLICIES, UNBOUND};
    use super::super::{failures, lossy};
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn without_loss_each_query_completes_after_one_round_trip_or_as_soon_as_a_wait_is_longer() {
        for policy in POLICIES {
            let fast = run(&policy, lossy(0.0, Duration::ZERO), 100, 1);
            let one_trip = Completed { time: Duration::from_micros(400), retries: 0 };
            assert!(fast.iter().all(|query| *query == Some(one_trip)), "{}", policy.name);
        }
        // Unbound's first wait that is longer than 1.0004 s is the third one, after sends at 0, 376 and 1128 ms.
        let slow = run(&UNBOUND, lossy(0.0, 500 * MS), 1, 1);
        assert_eq!(slow, [Some(Completed { time: 2128 * MS + Duration::from_micros(400), retries: 2 })]);
    }

    #[test]
    fn without_a_link_every_query_fails() {
        assert_eq!(failures(&run(&DJBDNS, lossy(1.0, Duration::ZERO), 100, 1)), 100);
    }

    #[test]
    fn failures_agree_with_the_arithmetic() {
        for policy in POLICIES {
            for added in [Duration::ZERO, 250 * MS, 500 * MS] {
                let impairments = lossy(0.4, added);
                let expected = policy.failure(0.4, 2 * impairments.delay.mean) * 50_000.0;
                let failed = failures(&run(&policy, impairments, 50_000, 7)) as f64;
                // Five standard errors: 1 in 1.7 million for each of 24 comparisons.
                let error = 5.0 * (expected.max(1.0)).sqrt();
                assert!((failed - expected).abs() < error, "{} {added:?}: {failed}, {expected}", policy.name);
            }
        }
    }

    #[test]
    fn the_retries_of_a_query_say_which_send_was_answered() {
        for query in run(&DJBDNS, lossy(0.3, Duration::ZERO), 1000, 3).into_iter().flatten() {
            let sends: Vec<Duration> = DJBDNS.sends().collect();
            assert_eq!(query.time, sends[query.retries as usize] + Duration::from_micros(400));
        }
    }
}
