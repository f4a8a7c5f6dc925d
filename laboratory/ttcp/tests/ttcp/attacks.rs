//! The attacks that ended T/TCP (RFC 6247, RFC 7413 section 8.1): they must work here, as they did there. A connection count is
//! public order, not a secret.

use crate::network::{CLIENT, Network, PORT, answer, captured, server};
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use core::time::Duration;
use netem::Impairments;
use sixfold_ttcp::{ConnectionCount, Event, Listen, Options, Segment, Serial, Settings, State};
use std::collections::HashMap;
use std::net::SocketAddr;

fn hosts(last_count: u32) -> Network {
    let client = Settings { last_count, ..Settings::default() };
    let mut network = captured(client, Settings::default(), Impairments::default(), 1);
    network.server.listen(PORT, Listen::default()).expect("a free port");
    network
}

/// One transaction of the true client. Returns true if the server executed its request without a handshake.
fn transact(network: &mut Network) -> bool {
    let before = network.server.counts().transactions;
    network.client.transact(network.now, server(), b"query").expect("a connection");
    let mut requests = HashMap::new();
    let end = network.now + Duration::from_secs(1);
    network.run(end, |network, at_server, event| answer(network, at_server, &event, &mut requests));
    network.server.counts().transactions > before
}

/// SYN, data and FIN with a source that may be forged. The attacker sees no answer.
fn forged(source: SocketAddr, count: ConnectionCount, payload: &[u8]) -> Vec<u8> {
    Segment {
        seq: Serial(12_345),
        syn: true,
        fin: true,
        psh: true,
        window: 4096,
        options: Options { mss: Some(1460), count: Some(count), ..Options::default() },
        payload,
        ..Segment::between(source, server())
    }
    .write()
}

/// Sends a forged request to the server alone. Returns true if it was executed.
fn attack(network: &mut Network, source: SocketAddr, count: u32) -> bool {
    let packet = forged(source, ConnectionCount::Cc(Serial(count)), b"forged");
    network.server.on_packet(network.now, &packet);
    let mut executed = false;
    while let Some(event) = network.server.next_event() {
        executed |= matches!(event, Event::Received(_, octets) if octets == b"forged");
    }
    executed
}

fn client_port(port: u16) -> SocketAddr {
    SocketAddr::from((CLIENT, port))
}

#[test]
fn a_blind_guess_of_the_count_is_executed_about_every_second_time() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let (trials, mut executed) = (2000, 0);
    for _ in 0..trials {
        let mut network = hosts(random.next_u32());
        transact(&mut network);
        executed += u32::from(attack(&mut network, client_port(999), random.next_u32()));
    }
    // 1/2, in the 99 % interval of 2000 trials: 1000 +- 2.576 * sqrt(500).
    assert!(executed.abs_diff(trials / 2) <= 58, "{executed} of {trials}");
}

#[test]
fn two_guesses_half_a_circle_apart_are_enough() {
    let mut random = ChaCha8Rng::seed_from_u64(8);
    for _ in 0..200 {
        let mut network = hosts(random.next_u32());
        transact(&mut network);
        let guess = random.next_u32();
        let hits = [guess, guess ^ 0x8000_0000]
            .into_iter()
            .zip([998, 999])
            .filter(|&(guess, port)| attack(&mut network, client_port(port), guess))
            .count();
        assert!(hits >= 1, "{guess}");
    }
}

#[test]
fn a_guess_for_a_client_that_the_server_does_not_know_is_never_executed() {
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let mut network = hosts(0);
    for port in 1000..1200 {
        assert!(!attack(&mut network, client_port(port), random.next_u32()));
    }
}

#[test]
fn a_forged_count_far_ahead_locks_the_true_client_out_of_transactions() {
    let mut network = hosts(100);
    transact(&mut network);
    assert!(transact(&mut network));
    assert!(attack(&mut network, client_port(999), 0x4000_0000));
    // Its counts are earlier than the forged one for the next 2^30 connections: each makes a handshake.
    for _ in 0..50 {
        assert!(!transact(&mut network));
    }
}

#[test]
fn forged_syns_with_data_fill_the_connection_blocks_and_their_memory() {
    let mut network = hosts(100);
    transact(&mut network);
    let blocks = Settings::default().blocks as u32;
    for number in 0..blocks + 100 {
        let source = SocketAddr::from(([198, 19, (number >> 8) as u8, number as u8], 1024));
        let packet = forged(source, ConnectionCount::New(Serial(1)), &[0; 1400]);
        network.server.on_packet(network.now, &packet);
    }
    assert_eq!(network.server.blocks(), [(State::SynReceived, blocks as usize)].into());
    assert_eq!(network.server.counts().no_block, 100);
    assert_eq!(network.server.octets_held(), 1400 * blocks as usize);
    // The true client finds no block, although its count would pass.
    network.client.transact(network.now, server(), b"query").expect("a connection");
    network.collect();
    network.run(network.now + Duration::from_millis(100), |_, _, event| panic!("{event:?}"));
    assert_eq!(network.server.counts().no_block, 101);
    // Every block ends with its retransmissions: about nine minutes.
    network.run(network.now + Duration::from_secs(1800), |_, _, _| {});
    assert_eq!((network.server.blocks_in_use(), network.server.octets_held()), (0, 0));
}
