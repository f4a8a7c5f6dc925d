//! Workers that take over the listening sockets of others, on loopback only: no query is lost, whoever reads it.

use crate::echo;

use echo::{Echo, options};
use engine::Client;
use sixfold_datapath::{Counter, Given, NoStreams, Options, Seed, Shared, Steer, build, build_with};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Running workers, and further handles of their sockets.
struct Running {
    shared: Arc<Shared<Echo>>,
    threads: Vec<JoinHandle<Echo>>,
    sockets: Vec<OwnedFd>,
}

fn start(options: &Options, given: Option<Given>) -> Running {
    let built = given.map_or_else(|| build(options), |given| build_with(options, given));
    let (workers, shared) = built.unwrap();
    let listeners = workers.iter().flat_map(|worker| worker.listeners());
    let sockets = listeners.map(|listener| listener.socket().try_clone_to_owned().unwrap()).collect();
    let start = |worker: sixfold_datapath::Worker<Echo>| {
        worker.start(Echo::default(), NoStreams, Box::new(|_, _| ())).unwrap()
    };
    Running { shared, threads: workers.into_iter().map(start).collect(), sockets }
}

impl Running {
    /// Stops the workers; the number of queries that each has read.
    fn stop(self) -> Vec<usize> {
        self.shared.stop(TEST_TIMEOUT);
        self.threads.into_iter().map(|thread| thread.join().unwrap().queries).collect()
    }
}

fn question(number: u32) -> Vec<u8> {
    kit::query(number as u16, &format!("host-{number:05}.test"), 28)
}

/// Asks these questions, and waits for all answers.
fn ask(server: SocketAddr, numbers: std::ops::Range<u32>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server).unwrap();
    socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    numbers.clone().for_each(|number| assert!(socket.send(&question(number)).is_ok()));
    numbers.for_each(|_| assert!(socket.recv(&mut [0; 512]).is_ok(), "an answer is missing"));
}

/// Workers take over the sockets of others. The first ones must stop reading and still answer.
fn take_over(first: usize, second: usize, steer: Steer) {
    let old = start(&options("127.0.0.1:0".parse().unwrap(), first, steer), None);
    let address = old.shared.addresses()[0];
    ask(address, 0..50);
    let sockets = old.sockets.iter().map(|socket| socket.try_clone().unwrap()).collect();
    let given = Given { sockets: vec![(address, sockets)], seed: Some(old.shared.seed()), waits: true };
    let new = start(&options(address, second, steer), Some(given));
    assert_eq!(new.shared.addresses(), [address]);
    assert_eq!(new.shared.workers(), first.max(second));
    assert_eq!(new.shared.steering_error().is_some(), steer == Steer::Name && first < second);
    // The old workers read, alone.
    ask(address, 100..150);
    assert!(old.shared.release_listeners(TEST_TIMEOUT));
    let read = |shared: &Shared<Echo>| shared.total().get(Counter::ClientPacketsIn);
    assert_eq!(read(&new.shared), 0, "the new workers read too early");
    new.shared.listen().unwrap();
    let client = Client::udp("127.0.0.1:9".parse().unwrap());
    let (done, is_done) = std::sync::mpsc::channel();
    for worker in 0..first {
        // Queries of streams are still answered, after the sockets were released.
        old.shared.enqueue(&client, &question(200 + worker as u32)).unwrap();
        old.shared.wake_workers();
        let done = done.clone();
        old.shared.mailbox(worker).submit(move |echo, _| done.send(echo.queries).unwrap()).unwrap();
        is_done.recv_timeout(TEST_TIMEOUT).unwrap();
    }
    // A worker counts a batch at its end, and another one may have answered a part of it before: so the workers must have stopped.
    let (old_shared, new_shared) = (Arc::clone(&old.shared), Arc::clone(&new.shared));
    let before = read(&old_shared);
    ask(address, 300..350);
    let read_by_old: usize = old.stop().iter().sum();
    let read_by_new: usize = new.stop().iter().sum();
    assert_eq!((read(&old_shared) - before, read(&new_shared)), (0, 50), "the old workers still read");
    assert_eq!(read_by_old + read_by_new, 150 + first);
}

#[test]
fn as_many_workers_take_over_the_sockets_and_steer_by_name() {
    take_over(1, 1, Steer::Name);
    take_over(3, 3, Steer::Name);
}

#[test]
fn more_workers_share_the_sockets_and_pass_on_the_queries_of_others() {
    take_over(1, 3, Steer::Name);
    take_over(2, 3, Steer::Flow);
}

#[test]
fn fewer_workers_than_sockets_become_as_many() {
    take_over(3, 2, Steer::Name);
    take_over(3, 1, Steer::Flow);
}

#[test]
fn workers_that_fail_before_they_listen_change_nothing() {
    let old = start(&options("127.0.0.1:0".parse().unwrap(), 3, Steer::Name), None);
    let address = old.shared.addresses()[0];
    for steer in [Steer::Flow, Steer::Name] {
        let sockets = old.sockets.iter().map(|socket| socket.try_clone().unwrap()).collect();
        // Another secret, so that the kernel would pick other workers.
        let given = Given { sockets: vec![(address, sockets)], seed: Some(Seed::from(7)), waits: true };
        let new = start(&options(address, 3, steer), Some(given));
        ask(address, 0..50);
        assert_eq!(new.stop().iter().sum::<usize>(), 0, "the new workers have read");
    }
    ask(address, 0..50);
    let mut owned = [0; 3];
    (0..50).for_each(|number| owned[old.shared.home_worker(&question(number))] += 3);
    assert_eq!(old.stop(), owned, "each query still comes to the worker that owns its name");
}

#[test]
fn workers_that_have_released_their_sockets_listen_again() {
    let old = start(&options("127.0.0.1:0".parse().unwrap(), 2, Steer::Name), None);
    let address = old.shared.addresses()[0];
    ask(address, 0..10);
    assert!(old.shared.release_listeners(TEST_TIMEOUT));
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    client.send_to(&question(10), address).unwrap();
    assert_eq!(old.shared.total().get(Counter::ClientPacketsIn), 10);
    old.shared.listen().unwrap();
    assert!(client.recv(&mut [0; 512]).is_ok(), "the query that waited is lost");
    ask(address, 11..20);
    assert_eq!(old.stop().iter().sum::<usize>(), 20);
}
