//! DNS over T/TCP between two hosts: many questions, and peers that break the rules.

use core::time::Duration;
use netem::Impairments;
use sixfold_papers::dns::{AskError, Client, FrameError, Outcome, Server, frame, limits};
use sixfold_papers::network::{Network, server};
use std::collections::BTreeSet;
use ttcp::{Connection, Failure, Listen, Settings};

/// Client and server on a perfect link.
struct World {
    network: Network,
    client: Client,
    server: Server,
    outcomes: Vec<Outcome>,
}

impl World {
    fn new(transactions: bool, server_side: Server) -> World {
        let settings = Settings { transactions, last_count: 7, ..Settings::default() };
        let mut network = Network::new(settings.clone(), settings, Impairments::default(), 1);
        network.server.listen(server().port(), Listen::default()).expect("a free port");
        World { network, client: Client::default(), server: server_side, outcomes: Vec::new() }
    }

    /// Lets everything happen that happens within a second. The server answers with the question in reverse.
    fn run(&mut self) {
        let end = self.network.now + Duration::from_secs(1);
        loop {
            let goes_on = self.network.step(end);
            let now = self.network.now;
            self.server
                .serve(now, &mut self.network.server, |question| question.iter().rev().copied().collect());
            while let Some(event) = self.network.client.next_event() {
                self.client.on_event(now, &mut self.network.client, &event);
            }
            self.outcomes.extend(std::iter::from_fn(|| self.client.next_outcome()));
            if !goes_on {
                break;
            }
        }
    }

    fn ask(&mut self, message: &[u8]) -> Connection {
        let now = self.network.now;
        self.client.transact(now, &mut self.network.client, server(), message).expect("room")
    }

    /// Sends octets that need not be a message, and a FIN.
    fn send_raw(&mut self, octets: &[u8]) -> Connection {
        self.network.client.transact(self.network.now, server(), octets).expect("room")
    }
}

fn message(octets: usize) -> Vec<u8> {
    (0..octets).map(|i| (i % 251) as u8).collect()
}

fn reversed(octets: usize) -> Vec<u8> {
    message(octets).into_iter().rev().collect()
}

#[test]
fn messages_of_all_sizes_are_answered_with_and_without_t_tcp() {
    for transactions in [true, false] {
        let mut world = World::new(transactions, Server::default());
        for octets in [12, 17, 512, 1418, 1419, 1460, 4096, 65_535] {
            let connection = world.ask(&message(octets));
            world.run();
            let expected = Outcome { connection, answer: Ok(reversed(octets)) };
            assert_eq!(world.outcomes.pop(), Some(expected), "{octets} octets, T/TCP {transactions}");
        }
        let counts = world.server.counts();
        // The first connection fills the caches.
        assert_eq!(counts.transactions, if transactions { 7 } else { 0 });
        assert_eq!((counts.accepted, counts.requests, counts.answers), (8, 8, 8));
        assert_eq!((world.server.connections(), world.client.connections()), (0, 0));
    }
}

#[test]
fn a_kept_connection_takes_many_questions_at_once_and_later() {
    let mut world = World::new(false, Server::default());
    let now = world.network.now;
    let connection = world.client.open(now, &mut world.network.client, server()).expect("room");
    for round in 0..3 {
        for octets in 12..12 + 30 {
            let now = world.network.now;
            world
                .client
                .ask(now, &mut world.network.client, connection, &message(octets))
                .expect("an open connection");
        }
        world.run();
        let answers: BTreeSet<usize> =
            world.outcomes.drain(..).map(|outcome| outcome.answer.expect("an answer").len()).collect();
        assert_eq!(answers, (12..42).collect(), "round {round}");
    }
    assert_eq!(world.server.counts().accepted, 1);
    world.client.close(world.network.now, &mut world.network.client, connection).expect("an open connection");
    world.run();
    assert_eq!((world.server.connections(), world.client.connections()), (0, 0));
}

#[test]
fn a_question_by_the_calls_of_a_socket_is_answered() {
    let mut world = World::new(false, Server::default());
    let now = world.network.now;
    let client = &mut world.network.client;
    world.client.connect_and_ask(now, client, server(), &message(40)).expect("room");
    world.run();
    assert_eq!(world.outcomes.pop().map(|outcome| outcome.answer), Some(Ok(reversed(40))));
    assert_eq!((world.server.connections(), world.client.connections()), (0, 0));
}

#[test]
fn a_length_that_no_message_has_ends_the_connection_and_is_counted() {
    let mut world = World::new(true, Server::default().limits(10, 512));
    for (nth, stream) in [&[0u8, 0][..], &[0, 11, 1, 2, 3], &[2, 1, 9], &[255, 255]].into_iter().enumerate() {
        world.send_raw(stream);
        world.run();
        assert_eq!(world.server.counts().malformed, nth as u64 + 1);
        assert_eq!(world.server.connections(), 0);
    }
    assert_eq!(world.server.counts().requests, 0);
    // A whole message before the wrong length is a question; its connection is over when the answer comes.
    world.send_raw(&[&frame(&message(20)).unwrap()[..], &[0, 1]].concat());
    world.run();
    let counts = world.server.counts();
    assert_eq!((counts.requests, counts.answers, counts.late), (1, 0, 1));
}

#[test]
fn half_a_message_with_a_fin_is_counted_and_the_connection_ends() {
    let mut world = World::new(true, Server::default());
    world.send_raw(&[0, 20, 1, 2, 3]);
    world.send_raw(&[0]);
    world.send_raw(&[]);
    world.run();
    let counts = world.server.counts();
    assert_eq!((counts.accepted, counts.truncated, counts.requests), (3, 2, 0));
    assert_eq!(world.server.connections(), 0);
}

#[test]
fn connections_beyond_the_limit_are_refused_and_counted() {
    let mut world = World::new(false, Server::default().limits(3, 512));
    for _ in 0..5 {
        let now = world.network.now;
        world.client.open(now, &mut world.network.client, server()).expect("room");
    }
    world.run();
    assert_eq!((world.server.counts().accepted, world.server.counts().refused), (3, 2));
    assert_eq!((world.server.connections(), world.client.connections()), (3, 3));
}

#[test]
fn too_many_waiting_questions_end_their_connection() {
    let mut world = World::new(false, Server::default());
    let many = frame(&message(12)).unwrap().repeat(limits::WAITING + 1);
    let connection = world.network.client.transact(world.network.now, server(), &many).expect("room");
    let end = world.network.now + Duration::from_secs(1);
    // Nothing is answered before all questions have come.
    while world.network.step(end) {}
    // Once to hand the events on, once for the reset to come.
    world.run();
    world.run();
    let counts = world.server.counts();
    assert_eq!((counts.overflowed, counts.answers, world.server.connections()), (1, 0, 0));
    assert_eq!(world.network.client.state(connection), None, "the client got a reset");
}

#[test]
fn the_client_says_why_a_question_has_no_answer() {
    // Nobody listens.
    let mut world = World::new(true, Server::default());
    let now = world.network.now;
    let closed = std::net::SocketAddr::new(server().ip(), 9);
    world.client.transact(now, &mut world.network.client, closed, &message(12)).expect("room");
    world.run();
    let told = |world: &mut World| world.outcomes.pop().expect("an outcome").answer.unwrap_err();
    assert_eq!(told(&mut world), AskError::Failed(Failure::Refused));
    // The server answers with a length that no message has, or finishes without an answer.
    for (stream, error) in [
        (&[0, 3, 1, 2, 3][..], AskError::Malformed(FrameError::TooShort(3))),
        (&[0, 20, 1], AskError::NoAnswer),
        (&[], AskError::NoAnswer),
    ] {
        let mut world = World::new(false, Server::default());
        world.ask(&message(12));
        let end = world.network.now + Duration::from_secs(1);
        while world.network.step(end) {
            while let Some(event) = world.network.server.next_event() {
                if let ttcp::Event::Finished(connection) = event {
                    let now = world.network.now;
                    let _ = world.network.server.send_and_finish(now, connection, stream);
                }
            }
        }
        world.run();
        assert_eq!(told(&mut world), error);
        assert_eq!(world.client.connections(), 0);
    }
    let mut world = World::new(true, Server::default());
    let too_long = world.client.transact(now, &mut world.network.client, server(), &message(65_536));
    assert_eq!(too_long, Err(AskError::NoRoom));
}
