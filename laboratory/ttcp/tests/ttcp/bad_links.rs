//! Transactions over links that lose, duplicate, reorder, delay and damage packets: the promises that must hold on each.

use crate::network::{Network, PORT, captured, server};
use core::time::Duration;
use netem::{Delay, Distribution, Impairments, Loss};
use proptest::prelude::*;
use sixfold_ttcp::{Connection, Event, Listen, Settings};
use std::collections::HashMap;

/// A run of several transactions, one after the other or all at once.
#[derive(Clone, Debug)]
struct Plan {
    impairments: Impairments,
    seed: u64,
    transactions: bool,
    resend_at_once: bool,
    no_push: bool,
    /// Octets of each request and of its reply.
    sizes: Vec<(usize, usize)>,
    gap: Duration,
}

/// The result of a run.
#[derive(Default)]
struct Outcome {
    /// Times that the server has executed each request.
    executions: HashMap<u32, u32>,
    /// Replies that came whole, FIN included.
    replies: HashMap<u32, Vec<u8>>,
    failures: usize,
}

/// A request: its number, the size of the reply that it asks for, and padding that follows from the number.
fn request(number: u32, size: usize, reply: usize) -> Vec<u8> {
    let mut octets = [number.to_be_bytes(), (reply as u32).to_be_bytes()].concat();
    octets.extend(pattern(number, size));
    octets
}

fn pattern(number: u32, size: usize) -> Vec<u8> {
    (0..size).map(|i| (i as u32).wrapping_mul(31).wrapping_add(number) as u8).collect()
}

fn run(plan: &Plan) -> (Network, Outcome) {
    let settings = Settings {
        transactions: plan.transactions,
        resend_at_once: plan.resend_at_once,
        shortest_rto: Duration::from_millis(200),
        ..Settings::default()
    };
    let mut network = captured(settings.clone(), settings, plan.impairments, plan.seed);
    network.server.listen(PORT, Listen { no_push: plan.no_push, ..Listen::default() }).expect("a free port");
    let mut outcome = Outcome::default();
    let mut requests: HashMap<Connection, Vec<u8>> = HashMap::new();
    let mut asked: HashMap<Connection, (u32, Vec<u8>)> = HashMap::new();
    let mut act = |network: &mut Network,
                   asked: &mut HashMap<Connection, (u32, Vec<u8>)>,
                   at_server: bool,
                   event: Event| {
        match (at_server, event) {
            (true, Event::Received(connection, octets)) => {
                requests.entry(connection).or_default().extend(octets)
            }
            (true, Event::Finished(connection)) => {
                let octets = requests.remove(&connection).unwrap_or_default();
                let word =
                    |at: usize| u32::from_be_bytes(octets[at..at + 4].try_into().expect("eight octets"));
                let (number, size) = (word(0), word(4) as usize);
                let (asked_size, _) = plan.sizes[number as usize];
                assert_eq!(octets, request(number, asked_size, size), "the request came changed");
                *outcome.executions.entry(number).or_default() += 1;
                let _ = network.server.send_and_finish(network.now, connection, &pattern(number + 1, size));
            }
            (false, Event::Received(connection, octets)) => {
                asked.get_mut(&connection).expect("asked").1.extend(octets)
            }
            (false, Event::Finished(connection)) => {
                let (number, reply) = asked.remove(&connection).expect("asked");
                outcome.replies.insert(number, reply);
            }
            (false, Event::Failed(..)) => outcome.failures += 1,
            _ => {}
        }
    };
    for (number, (size, reply)) in plan.sizes.iter().enumerate() {
        let octets = request(number as u32, *size, *reply);
        let connection = network.client.transact(network.now, server(), &octets).expect("a connection");
        asked.insert(connection, (number as u32, Vec::new()));
        let until = network.now + plan.gap;
        network.run(until, |network, at_server, event| act(network, &mut asked, at_server, event));
    }
    // Every timer ends: twelve retransmissions with a back-off to 64 s, then the wait for a silent peer, then TIME-WAIT.
    let end = network.now + Duration::from_secs(3600);
    network.run(end, |network, at_server, event| act(network, &mut asked, at_server, event));
    (network, outcome)
}

fn plan(loss: impl Strategy<Value = f64> + 'static) -> impl Strategy<Value = Plan> {
    let shares = (loss, 0.0..0.3_f64, 0.0..0.3_f64, 0.0..0.1_f64);
    let delay = (0..100_u64, 0..50_u64);
    let sizes = prop::collection::vec((0..4000_usize, 0..20_000_usize), 1..12);
    let switches = (any::<bool>(), any::<bool>(), any::<bool>());
    (shares, delay, any::<u64>(), switches, sizes, 0..3000_u64).prop_map(
        |((loss, duplicate, reorder, corrupt), (mean, jitter), seed, switches, sizes, gap)| Plan {
            impairments: Impairments {
                delay: Delay {
                    mean: Duration::from_millis(mean),
                    jitter: Duration::from_millis(jitter),
                    distribution: Distribution::Constant,
                },
                loss: Loss::Independent(loss),
                duplicate,
                reorder,
                corrupt,
                ..Impairments::default()
            },
            seed,
            transactions: switches.0,
            resend_at_once: switches.1,
            no_push: switches.2,
            sizes,
            gap: Duration::from_millis(gap),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// On any link: a request is executed at most once while the cache lives, a reply that came whole is the right one, all
    /// octets are in order, and no connection block is left over.
    #[test]
    fn a_request_is_executed_at_most_once_and_nothing_is_left_over(plan in plan(0.0..0.6_f64)) {
        let (network, outcome) = run(&plan);
        for (number, times) in &outcome.executions {
            prop_assert!(*times <= 1, "request {} was executed {} times", number, times);
        }
        for (number, reply) in &outcome.replies {
            prop_assert_eq!(reply, &pattern(number + 1, plan.sizes[*number as usize].1));
            prop_assert!(outcome.executions.contains_key(number));
        }
        prop_assert_eq!(outcome.replies.len() + outcome.failures, plan.sizes.len());
        prop_assert_eq!((network.client.blocks_in_use(), network.server.blocks_in_use()), (0, 0));
        prop_assert_eq!((network.client.next_deadline(), network.server.next_deadline()), (None, None));
    }

    /// On a link that loses little, every request is answered.
    #[test]
    fn every_request_is_answered_where_little_is_lost(plan in plan(0.0..0.05_f64)) {
        let (_, outcome) = run(&plan);
        prop_assert_eq!(outcome.replies.len(), plan.sizes.len());
        prop_assert_eq!(outcome.failures, 0);
    }
}

#[test]
fn a_dead_link_ends_every_connection_after_its_retransmissions() {
    let impairments = Impairments { loss: Loss::Independent(1.0), ..Impairments::default() };
    let plan = Plan {
        impairments,
        seed: 1,
        transactions: true,
        resend_at_once: true,
        no_push: true,
        sizes: vec![(10, 10); 3],
        gap: Duration::ZERO,
    };
    let (network, outcome) = run(&plan);
    assert_eq!((outcome.failures, outcome.replies.len(), network.client.blocks_in_use()), (3, 0, 0));
    // The SYN, twelve retransmissions and the RST at the end, each.
    assert_eq!(network.capture.len(), 3 * 14);
}

#[test]
fn an_old_syn_that_comes_late_executes_nothing() {
    let plan = Plan {
        impairments: Impairments::default(),
        seed: 1,
        transactions: true,
        resend_at_once: true,
        no_push: true,
        sizes: vec![(10, 10); 3],
        gap: Duration::from_secs(1),
    };
    let (mut network, outcome) = run(&plan);
    assert_eq!(outcome.executions.len(), 3);
    let syns: Vec<Vec<u8>> = network
        .capture
        .iter()
        .filter(|(_, to_server, packet)| {
            *to_server && sixfold_ttcp::Segment::parse(packet).expect("whole").syn
        })
        .map(|(.., packet)| packet.clone())
        .collect();
    assert_eq!(syns.len(), 3);
    for syn in syns.iter().skip(1) {
        let now = network.now;
        network.server.on_packet(now, syn);
        network.run(now + Duration::from_secs(3600), |_, at_server, event| {
            assert!(
                !at_server || !matches!(event, Event::Accepted { .. } | Event::Received(..)),
                "{event:?}"
            );
        });
    }
    // The count is not later than the cached one, so a handshake begins, and the client knows nothing of it.
    assert_eq!(network.server.blocks_in_use(), 0);
}
