//! The responder between real sockets on loopback.

use super::*;
use kernel::syscalls::option;
use std::net::{SocketAddr, UdpSocket};

/// Far longer than anything here takes.
const TEST_TIMEOUT: Span = Span::from_secs(30);

fn responder(address: &str, offload: bool) -> (Responder, SocketAddr) {
    let group = UdpListener::bind_group(address.parse().unwrap(), 1, false).unwrap();
    let at = group[0].address();
    (Responder::new(group, 1232, offload), at)
}

fn client(address: &str, server: SocketAddr) -> UdpSocket {
    let own: SocketAddr = address.parse().unwrap();
    kit::client::udp(own.ip(), server)
}

/// Takes turns until `count` messages have come, and answers each with the result of `answer`.
fn serve(responder: &mut Responder, count: usize, answer: impl Fn(&[u8]) -> Vec<u8>) -> Vec<Vec<u8>> {
    let mut seen = Vec::new();
    while seen.len() < count {
        responder.wait(TEST_TIMEOUT);
        let handled = responder.turn(|_, message, frame| {
            seen.push(message.to_vec());
            let answer = answer(message);
            frame[..answer.len()].copy_from_slice(&answer);
            answer.len()
        });
        assert!(handled > 0, "nothing came: {} of {count}", seen.len());
    }
    seen
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = [0; 2048];
    let length = socket.recv(&mut buffer).unwrap();
    buffer[..length].to_vec()
}

#[test]
fn every_datagram_of_a_large_send_is_answered_also_the_shorter_last_one() {
    for any in ["127.0.0.1:0", "[::1]:0"] {
        let (mut responder, at) = responder(any, true);
        let client = client(any, at);
        set_option(client.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, 20).unwrap();
        let large: Vec<u8> = (0..5 * 20 + 7).map(|index| (index / 20) as u8).collect();
        client.send(&large).unwrap();
        let seen = serve(&mut responder, 6, |message| vec![message[0]; 30 + usize::from(message[0])]);
        let expected: Vec<Vec<u8>> = (0..6).map(|n| vec![n; if n == 5 { 7 } else { 20 }]).collect();
        assert_eq!(seen, expected);
        let mut answers: Vec<_> = (0..6).map(|_| receive(&client)).collect();
        answers.sort();
        assert_eq!(answers, (0..6u8).map(|n| vec![n; 30 + usize::from(n)]).collect::<Vec<_>>());
        let counters = responder.counters();
        assert_eq!(counters.get(Counter::ClientPacketsIn), 6);
        assert_eq!(counters.get(Counter::ClientOctetsIn), 107);
        assert_eq!(counters.get(Counter::ClientPacketsOut), 6);
    }
}

#[test]
fn a_large_send_of_equal_datagrams_and_single_ones_mix() {
    let (mut responder, at) = responder("[::1]:0", true);
    let (single, segmented) = (client("[::1]:0", at), client("[::1]:0", at));
    set_option(segmented.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, 48).unwrap();
    single.send(&[1; 48]).unwrap();
    segmented.send(&[2; 64 * 48]).unwrap();
    single.send(&[]).unwrap();
    single.send(&[3; 1500]).unwrap();
    let seen = serve(&mut responder, 67, |message| message[..message.len().min(4)].to_vec());
    let lengths: Vec<_> = seen.iter().map(Vec::len).collect();
    assert_eq!(lengths.iter().filter(|&&length| length == 48).count(), 65);
    assert!(lengths.contains(&0) && lengths.contains(&1500));
    for _ in 0..64 {
        assert_eq!(receive(&segmented), [2; 4]);
    }
    let mut answers = [receive(&single), receive(&single)];
    answers.sort();
    // The empty message got none.
    assert_eq!(answers, [vec![1; 4], vec![3; 4]]);
}

#[test]
fn an_answer_leaves_from_the_address_that_was_asked_on_a_wildcard() {
    for (any, asked, segmented) in
        [("0.0.0.0:0", "127.0.0.5", false), ("0.0.0.0:0", "127.0.0.6", true), ("[::]:0", "::1", true)]
    {
        let (mut responder, at) = responder(any, true);
        let server = SocketAddr::new(asked.parse().unwrap(), at.port());
        let local = if at.is_ipv6() { "[::1]:0" } else { "127.0.0.1:0" };
        // The client is connected, so an answer from another address would not arrive.
        let client = client(local, server);
        if segmented {
            set_option(client.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, 10).unwrap();
        }
        client.send(&[7; 30]).unwrap();
        let expected = if segmented { 3 } else { 1 };
        serve(&mut responder, expected, |message| message[..3].to_vec());
        for _ in 0..expected {
            assert_eq!(receive(&client), [7; 3]);
        }
    }
}

#[test]
fn more_messages_than_one_turn_takes_are_all_answered() {
    let (mut responder, at) = responder("127.0.0.1:0", true);
    let clients: Vec<_> = (0..7).map(|_| client("127.0.0.1:0", at)).collect();
    let count = 2 * RESPONDER_RECEIVES * RESPONDER_SLOTS + 11;
    for number in 0..count {
        clients[number % 7].send(&(number as u16).to_be_bytes()).unwrap();
    }
    let seen = serve(&mut responder, count, |message| message.repeat(1 + usize::from(message[1]) * 2));
    assert_eq!(seen.len(), count);
    let mut answered: Vec<_> = (0..count)
        .map(|number| {
            let answer = receive(&clients[number % 7]);
            assert_eq!(answer.len(), 2 + 4 * usize::from(answer[1]));
            (number % 7, u16::from_be_bytes([answer[0], answer[1]]))
        })
        .collect();
    answered.sort();
    let mut expected: Vec<_> = (0..count).map(|number| (number % 7, number as u16)).collect();
    expected.sort();
    assert_eq!(answered, expected);
}

#[test]
fn an_answer_may_come_later() {
    let (mut responder, at) = responder("[::1]:0", true);
    let client = client("[::1]:0", at);
    client.send(b"one").unwrap();
    let mut waiting = None;
    responder.wait(TEST_TIMEOUT);
    assert_eq!(
        responder.turn(|from, _, _| {
            waiting = Some(*from);
            0
        }),
        1
    );
    assert_eq!(responder.turn(|_, _, _| unreachable!()), 0);
    assert_eq!(responder.counters().get(Counter::ClientPacketsOut), 0);
    responder.answer(&waiting.unwrap(), |frame| {
        frame[..4].copy_from_slice(b"late");
        4
    });
    responder.flush();
    assert_eq!(receive(&client), b"late");
    // A listener that does not exist is a counted drop.
    responder.answer(&Client { listener: 9, ..waiting.unwrap() }, |_| unreachable!());
    assert_eq!(responder.counters().get(Counter::SendFailed), 1);
}

#[test]
fn datagrams_that_do_not_fit_the_queue_of_the_socket_are_counted() {
    let (mut responder, at) = responder("127.0.0.1:0", true);
    let socket = responder.descriptors().next().unwrap().as_raw_fd();
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, 4096).unwrap();
    let client = client("127.0.0.1:0", at);
    let sent = 200;
    for _ in 0..sent {
        client.send(&[0; 100]).unwrap();
    }
    let mut received = 0;
    while let count @ 1.. = responder.turn(|_, _, _| 0) {
        received += count as u64;
    }
    assert!(received < sent, "the buffer held all {sent}");
    assert_eq!(responder.counters().get(Counter::ReceiveQueueOverflow), 0);
    responder.count_drops();
    assert_eq!(responder.counters().get(Counter::ReceiveQueueOverflow), sent - received);
    responder.count_drops();
    assert_eq!(responder.counters().get(Counter::ReceiveQueueOverflow), sent - received);
}

#[test]
fn a_wait_ends_with_its_time_or_with_a_message() {
    let (mut responder, at) = responder("127.0.0.1:0", true);
    let before = datapath::now();
    responder.wait(Span(3_000_000));
    assert!(datapath::now() - before >= Span(3_000_000));
    client("127.0.0.1:0", at).send(b"x").unwrap();
    responder.wait(TEST_TIMEOUT);
    assert_eq!(responder.turn(|_, _, _| 0), 1);
}

#[test]
fn offload_is_switched_on_only_if_it_is_wanted() {
    for wanted in [false, true] {
        let (mut responder, at) = responder("127.0.0.1:0", wanted);
        let descriptor = responder.descriptors().next().unwrap().as_raw_fd();
        let value = option(descriptor, libc::SOL_UDP, libc::UDP_GRO).unwrap();
        assert_eq!(value, i32::from(wanted));
        // A sender's large send is taken apart by the kernel, and each message is answered.
        let client = client("127.0.0.1:0", at);
        set_option(client.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, 20).unwrap();
        client.send(&[5; 60]).unwrap();
        assert_eq!(serve(&mut responder, 3, |message| message[..4].to_vec()), vec![vec![5; 20]; 3]);
        for _ in 0..3 {
            assert_eq!(receive(&client), [5; 4]);
        }
    }
}
