//! Workers with real sockets, on loopback only.

use crate::echo;
#[path = "loopback/tls.rs"]
mod tls;

use echo::{Running, echo_upstream, options};
use engine::{Client, ClientTransport, Instant, Link, Machine, Outbox, Transport, Unreachable};
use kit::message::{framed, read_frame};
use kit::{Listening, Upstream};
use sixfold_datapath::{Counter, NoStreams, Options, Reflector, ReflectorOptions, Steer, StreamSink, build};
use std::io::Write;
use std::net::{Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A machine that answers each query with itself, or with the reply of an upstream. It records the calls.
#[derive(Default)]
struct Probe {
    upstream: Option<(SocketAddr, Transport)>,
    open: bool,
    link: Option<Link>,
    clients: Vec<Client>,
    replies: Vec<Vec<u8>>,
    unreachable: Vec<Link>,
    orders: Vec<u64>,
    pending: usize,
    failed: Arc<Mutex<usize>>,
}

impl Probe {
    fn upstream(address: SocketAddr, transport: Transport) -> Probe {
        Probe { upstream: Some((address, transport)), ..Probe::default() }
    }
}

/// A query that the probe drops.
const DROPPED: [u8; 12] = [0xd0; 12];

impl Machine for Probe {
    fn query(&mut self, _: Instant, from: &Client, message: &[u8], out: &mut impl Outbox) {
        self.clients.push(*from);
        if message == DROPPED {
            return out.drop_query(from);
        }
        let Some((upstream, transport)) = self.upstream else {
            out.answer(from, message);
            return;
        };
        let link = *self.link.get_or_insert(Link { slot: 3, generation: 7 });
        if !self.open {
            self.open = out.open(link, upstream, transport, 0x8765);
        }
        self.pending += usize::from(out.ask(link, message));
    }

    fn reply(&mut self, _: Instant, via: Link, message: &mut [u8], out: &mut impl Outbox) {
        assert_eq!(Some(via), self.link);
        let client = self.clients[self.replies.len()];
        self.replies.push(message.to_vec());
        self.pending -= 1;
        out.answer(&client, message);
    }

    fn on_link_failure(&mut self, _: Instant, via: Link, _: Unreachable, out: &mut impl Outbox) {
        self.unreachable.push(via);
        self.pending = 0;
        self.open = false;
        out.close(via);
        self.link = Some(Link { generation: via.generation + 1, ..via });
        *self.failed.lock().unwrap() += 1;
    }

    fn is_idle(&self) -> bool {
        self.pending == 0
    }

    fn expire(&mut self, _: Instant, _: &mut impl Outbox) -> Option<Instant> {
        None
    }
}

fn listening(listen: &[&str], workers: usize, steer: Steer) -> Options {
    let listen = listen.iter().map(|address| address.parse().unwrap()).collect();
    Options { listen, tcp_fast_open: true, ..options(([0; 4], 0).into(), workers, steer) }
}

fn start<M: Machine + Send + 'static>(
    listen: &[&str],
    workers: usize,
    steer: Steer,
    machine: impl FnMut() -> M,
) -> Running<M> {
    Running::start(&listening(listen, workers, steer), machine)
}

fn client(local: &str, server: SocketAddr) -> UdpSocket {
    let local: SocketAddr = local.parse().unwrap();
    kit::client::udp(local.ip(), server)
}

fn question(number: usize) -> Vec<u8> {
    kit::query(number as u16, &format!("host-{number:05}.test"), 28)
}

/// Sends `count` different queries, a few at a time, and checks that each is answered with itself.
fn ask_all(socket: &UdpSocket, count: usize) {
    let mut buffer = [0; 2048];
    for start in (0..count).step_by(50) {
        let end = count.min(start + 50);
        let mut open: Vec<_> = (start..end).map(question).collect();
        for message in &open {
            socket.send(message).unwrap();
        }
        while !open.is_empty() {
            let length = socket.recv(&mut buffer).unwrap();
            let at = open.iter().position(|message| message == &buffer[..length]).expect("an unknown answer");
            open.swap_remove(at);
        }
    }
}

#[test]
fn questions_are_answered_over_ipv4_and_ipv6() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let running = start(&[address], 1, Steer::Name, Probe::default);
        let socket = client(address, running.address());
        ask_all(&socket, 500);
        let (machines, shared) = running.stop();
        assert!(machines[0].clients.iter().all(|client| client.local == Ipv6Addr::UNSPECIFIED));
        let counted = shared.counters(0);
        assert_eq!(counted.get(Counter::ClientPacketsIn), 500);
        assert_eq!(counted.get(Counter::ClientPacketsOut), 500);
        assert_eq!(counted.get(Counter::ClientOctetsIn), counted.get(Counter::ClientOctetsOut));
        assert!(counted.iter().all(|(counter, value)| !counter.is_drop() || value == 0));
    }
}

#[test]
fn a_wildcard_listener_answers_from_the_address_that_was_asked() {
    let running = start(&["0.0.0.0:0", "[::]:0"], 1, Steer::Name, Probe::default);
    let [four, six] = running.shared.addresses() else { panic!("two addresses") };
    for asked in ["127.0.0.5", "127.0.0.1", "127.9.8.7"] {
        // A connected socket takes only datagrams from the address that it sent to.
        ask_all(&client("127.0.0.1:0", SocketAddr::new(asked.parse().unwrap(), four.port())), 3);
    }
    ask_all(&client("[::1]:0", SocketAddr::new("::1".parse().unwrap(), six.port())), 3);
    let (machines, _) = running.stop();
    let local: Vec<_> = machines[0].clients.iter().map(|client| client.local.to_string()).collect();
    for asked in ["::ffff:127.0.0.5", "::ffff:127.0.0.1", "::ffff:127.9.8.7", "::1"] {
        assert_eq!(local.iter().filter(|local| *local == asked).count(), 3, "{local:?}");
    }
}

#[test]
fn each_worker_sees_the_names_it_owns_and_no_others() {
    for steer in [Steer::Name, Steer::Flow] {
        let running = start(&["127.0.0.1:0", "[::1]:0"], 3, steer, Probe::default);
        for address in running.shared.addresses() {
            let local = if address.is_ipv6() { "[::1]:0" } else { "127.0.0.1:0" };
            // One source port each: with steering by flow, all queries arrive at one worker.
            ask_all(&client(local, *address), 300);
        }
        let owners: Vec<_> = (0..300).map(|number| running.shared.home_worker(&question(number))).collect();
        let (machines, shared) = running.stop();
        for (worker, machine) in machines.iter().enumerate() {
            let owned = owners.iter().filter(|&&home_worker| home_worker == worker).count();
            assert!(owned > 50);
            assert_eq!(machine.clients.len(), 2 * owned, "{steer:?}");
        }
        let letters = shared.total().get(Counter::QueuedMessagesIn);
        assert_eq!(letters == 0, steer == Steer::Name);
        assert_eq!(shared.total().get(Counter::MailboxFull), 0);
    }
}

#[test]
fn runts_are_handled_where_they_arrive() {
    let running = start(&["127.0.0.1:0"], 2, Steer::Flow, Probe::default);
    let socket = client("127.0.0.1:0", running.address());
    for message in [&[1u8, 2, 3][..], &[7; 30]] {
        socket.send(message).unwrap();
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], message);
    }
    let (_, shared) = running.stop();
    assert_eq!(shared.total().get(Counter::QueuedMessagesIn), 0);
}

#[test]
fn the_reflector_moves_six_packets_per_question() {
    for (address, rotate) in [("127.0.0.1:0", 0), ("[::1]:0", 16)] {
        let upstream = echo_upstream(address);
        let how =
            ReflectorOptions { upstream: upstream.address, transport: Transport::Udp, rotate, slots: 1024 };
        let running = start(&[address], 1, Steer::Name, move || Reflector::new(how));
        ask_all(&client(address, running.address()), 700);
        let (machines, shared) = running.stop();
        assert_eq!(machines[0].answered(), 700);
        assert_eq!(upstream.all_asked("").values().sum::<u32>(), 1400);
        let counted = shared.total();
        for counter in [Counter::UpstreamPacketsIn, Counter::UpstreamPacketsOut] {
            assert_eq!(counted.get(counter), 1400);
        }
        let links = if rotate == 0 { 1 } else { 1400u64.div_ceil(rotate.into()) };
        assert_eq!(counted.get(Counter::LinksOpened), links);
        assert!(counted.iter().all(|(counter, value)| !counter.is_drop() || value == 0));
    }
}

#[test]
fn a_refused_udp_link_is_noticed() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        // A port that was free a moment ago, so no socket listens there.
        let closed = UdpSocket::bind(address).unwrap().local_addr().unwrap();
        let failed = Arc::new(Mutex::new(0));
        let mut probe =
            Some(Probe { failed: Arc::clone(&failed), ..Probe::upstream(closed, Transport::Udp) });
        let running = start(&[address], 1, Steer::Name, || probe.take().unwrap());
        let socket = client(address, running.address());
        socket.send(&question(1)).unwrap();
        wait_for(|| *failed.lock().unwrap() > 0);
        let (machines, _) = running.stop();
        assert_eq!(machines[0].unreachable, [Link { slot: 3, generation: 7 }]);
    }
}

fn wait_for(condition: impl FnMut() -> bool) {
    kit::wait_until("something happens", condition);
}

#[test]
fn a_tcp_link_pipelines_and_puts_cut_replies_together() {
    let upstream = Listening::start(|mut connection| {
        let mut count = 0;
        while let Ok(message) = read_frame(&mut connection) {
            count += 1;
            let reply = framed(&message);
            // Some come octet by octet, some in two parts, some whole.
            match count % 20 {
                0 => reply.iter().for_each(|octet| connection.write_all(&[*octet]).unwrap()),
                1..5 => {
                    let (one, two) = reply.split_at(count % reply.len());
                    connection.write_all(one).unwrap();
                    connection.write_all(two).unwrap();
                }
                _ => connection.write_all(&reply).unwrap(),
            }
        }
        assert_eq!(count, 400);
    });
    let running =
        start(&["127.0.0.1:0"], 1, Steer::Name, || Probe::upstream(upstream.address, Transport::Tcp));
    ask_all(&client("127.0.0.1:0", running.address()), 400);
    let (machines, shared) = running.stop();
    assert_eq!(machines[0].replies.len(), 400);
    assert!(machines[0].unreachable.is_empty());
    let counted = shared.total();
    assert_eq!(counted.get(Counter::UpstreamPacketsOut), 400);
    assert_eq!(counted.get(Counter::UpstreamOctetsOut), counted.get(Counter::ClientOctetsIn));
    assert_eq!(counted.get(Counter::UpstreamOctetsIn), counted.get(Counter::ClientOctetsIn));
}

#[test]
fn a_closed_tcp_link_is_reported_once_and_can_be_opened_again() {
    let upstream = Listening::on(TcpListener::bind("[::1]:0").unwrap(), |mut connection| {
        let message = read_frame(&mut connection).unwrap();
        // A reply that came before the end still counts.
        connection.write_all(&framed(&message)).unwrap();
        assert!(connection.number == 0 || read_frame(&mut connection).is_err());
    });
    let failed = Arc::new(Mutex::new(0));
    let mut probe =
        Some(Probe { failed: Arc::clone(&failed), ..Probe::upstream(upstream.address, Transport::Tcp) });
    let running = start(&["[::1]:0"], 1, Steer::Name, || probe.take().unwrap());
    let socket = client("[::1]:0", running.address());
    ask_all(&socket, 1);
    wait_for(|| *failed.lock().unwrap() > 0);
    ask_all(&socket, 1);
    let (machines, _) = running.stop();
    drop(upstream);
    assert_eq!(machines[0].unreachable, [Link { slot: 3, generation: 7 }]);
    assert_eq!(machines[0].replies.len(), 2);
}

#[test]
fn a_refused_tcp_link_is_noticed() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let running = start(&["127.0.0.1:0"], 1, Steer::Name, || Probe::upstream(closed, Transport::Tcp));
    let socket = client("127.0.0.1:0", running.address());
    socket.send(&question(1)).unwrap();
    let shared = Arc::clone(&running.shared);
    wait_for(|| shared.total().get(Counter::ClientPacketsIn) == 1);
    let (machines, shared) = running.stop();
    // The kernel may refuse at once or a moment later.
    let refused = shared.total().get(Counter::UpstreamOpenFailed) as usize + machines[0].unreachable.len();
    assert_eq!(refused, 1);
}

#[test]
fn a_tcp_link_that_takes_nothing_refuses_questions_when_its_buffer_is_full() {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = upstream.local_addr().unwrap();
    let running = start(&["127.0.0.1:0"], 1, Steer::Name, || Probe::upstream(address, Transport::Tcp));
    let socket = client("127.0.0.1:0", running.address());
    let shared = Arc::clone(&running.shared);
    let mut sent = 0;
    // The kernel's own buffers take some megabytes first.
    wait_for(|| {
        for _ in 0..100 {
            sent += usize::from(socket.send(&[1; 500]).is_ok());
        }
        shared.total().get(Counter::UpstreamBufferFull) > 0
    });
    assert!(sent > 500);
    shared.stop(Duration::ZERO);
    running.threads.into_iter().for_each(|thread| drop(thread.join().unwrap()));
    drop(upstream);
}

/// A sink that records the answers.
#[derive(Clone, Default)]
struct RecordingSink(Arc<Mutex<Vec<Delivery>>>);

/// A stream and the message for it.
type Delivery = (u64, Vec<u8>);

impl StreamSink for RecordingSink {
    fn deliver(&self, to: &Client, message: &[u8]) -> bool {
        if to.stream == 13 {
            return false;
        }
        self.0.lock().unwrap().push((to.stream, message.to_vec()));
        true
    }
}

#[test]
fn messages_from_streams_are_answered_through_the_sink() {
    let sink = RecordingSink::default();
    let running = Running::start_with(&listening(&[], 2, Steer::Name), Probe::default, sink.clone());
    let mut from = Client::udp("192.0.2.1:999".parse().unwrap());
    from.transport = ClientTransport::Tcp;
    for stream in 0..20 {
        from.stream = stream;
        let mut message = question(stream as usize);
        message.resize(100 * (stream as usize + 1), 0);
        running.shared.enqueue(&from, &message).unwrap();
    }
    running.shared.wake_workers();
    let (_, shared) = running.stop();
    let mut delivered = sink.0.lock().unwrap().clone();
    delivered.sort();
    assert_eq!(
        delivered.iter().map(|(stream, _)| *stream).collect::<Vec<_>>(),
        (0..20).filter(|s| *s != 13).collect::<Vec<_>>()
    );
    assert!(delivered.iter().all(|(stream, message)| message.len() == 100 * (*stream as usize + 1)));
    assert_eq!(shared.total().get(Counter::StreamGone), 1);
    assert_eq!(shared.total().get(Counter::StreamAnswersOut), 19);
    assert!(shared.enqueue(&from, &question(1)).is_err(), "the workers have ended");
}

#[test]
fn the_sink_learns_of_queries_from_streams_that_are_dropped() {
    let sink = RecordingSink::default();
    let running =
        Running::start_with(&listening(&["127.0.0.1:0"], 1, Steer::Name), Probe::default, sink.clone());
    let mut from = Client::udp("192.0.2.1:999".parse().unwrap());
    from.transport = ClientTransport::Tcp;
    for stream in [5, 13] {
        from.stream = stream;
        running.shared.enqueue(&from, &DROPPED).unwrap();
    }
    running.shared.wake_workers();
    // A datagram leaves nothing behind.
    let socket = client("127.0.0.1:0", running.address());
    socket.send(&DROPPED).unwrap();
    ask_all(&socket, 1);
    let (machines, shared) = running.stop();
    assert_eq!(machines[0].clients.len(), 4);
    assert_eq!(*sink.0.lock().unwrap(), [(5, Vec::new())]);
    let counters = [Counter::StreamGone, Counter::StreamAnswersOut];
    assert_eq!(counters.map(|counter| shared.total().get(counter)), [1, 0]);
}

#[test]
fn tasks_reach_a_sleeping_worker_and_the_hook_is_called() {
    let options = listening(&[], 1, Steer::Name);
    let (workers, shared) = build::<Probe>(&options).unwrap();
    let (ticked, ticks) = std::sync::mpsc::channel();
    let hook = Box::new(move |machine: &mut Probe, now: Instant| {
        let _ = ticked.send((machine.orders.len(), now));
    });
    let threads: Vec<_> = workers
        .into_iter()
        .map(|worker| worker.start(Probe::default(), NoStreams, hook.clone()).unwrap())
        .collect();
    let first = ticks.recv_timeout(TEST_TIMEOUT).unwrap();
    for round in 1..=3 {
        let (done, result) = std::sync::mpsc::channel();
        shared
            .mailbox(0)
            .submit(move |machine, now| {
                machine.orders.push(round);
                done.send(now).unwrap();
            })
            .unwrap();
        assert!(result.recv_timeout(TEST_TIMEOUT).unwrap() >= first.1);
    }
    wait_for(|| ticks.recv_timeout(TEST_TIMEOUT).unwrap().0 == 3);
    shared.stop(TEST_TIMEOUT);
    for thread in threads {
        assert_eq!(thread.join().unwrap().orders, [1, 2, 3]);
    }
}

#[test]
fn datagrams_that_do_not_fit_are_counted() {
    let running = start(&["127.0.0.1:0"], 1, Steer::Name, Probe::default);
    let socket = client("127.0.0.1:0", running.address());
    socket.send(&[0; 1400]).unwrap();
    ask_all(&socket, 1);
    let (_, shared) = running.stop();
    assert_eq!(shared.total().get(Counter::Truncated), 1);
}

#[test]
fn datagrams_that_the_kernel_drops_at_a_full_queue_are_counted() {
    let running = start(&["127.0.0.1:0"], 1, Steer::Name, Probe::default);
    let socket = client("127.0.0.1:0", running.address());
    // The worker is busy with a task while the flood comes.
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (busy, is_busy) = std::sync::mpsc::channel();
    running
        .shared
        .mailbox(0)
        .submit(move |_, _| {
            busy.send(()).unwrap();
            let _ = wait.recv();
        })
        .unwrap();
    is_busy.recv_timeout(TEST_TIMEOUT).unwrap();
    let sent = 60_000;
    for _ in 0..sent {
        socket.send(&[0; 100]).unwrap();
    }
    go.send(()).unwrap();
    let (_, shared) = running.stop();
    let counted = shared.total();
    assert!(counted.get(Counter::ReceiveQueueOverflow) > 0);
    assert_eq!(counted.get(Counter::ClientPacketsIn) + counted.get(Counter::ReceiveQueueOverflow), sent);
}

#[test]
fn a_draining_worker_finishes_what_waits_and_takes_nothing_new() {
    let upstream = Upstream::start(|asked, replies| replies.hold(asked.message.to_vec()));
    let running =
        start(&["127.0.0.1:0"], 1, Steer::Name, || Probe::upstream(upstream.address, Transport::Udp));
    let socket = client("127.0.0.1:0", running.address());
    socket.send(&question(1)).unwrap();
    wait_for(|| !upstream.all_asked("").is_empty());
    running.shared.stop(TEST_TIMEOUT);
    // A task that is submitted after the stop has run: at the end of that turn the listeners are no longer read.
    let (seen, is_seen) = std::sync::mpsc::channel();
    running.shared.mailbox(0).submit(move |_, _| seen.send(()).unwrap()).unwrap();
    is_seen.recv_timeout(TEST_TIMEOUT).unwrap();
    let turns = || running.shared.total().get(Counter::Turns);
    let before = turns();
    wait_for(|| turns() > before);
    socket.send(&question(2)).unwrap();
    upstream.release();
    assert_eq!(kit::client::receive(&socket, TEST_TIMEOUT), Some(question(1)));
    for thread in running.threads {
        let machine = thread.join().unwrap();
        assert_eq!(machine.clients.len(), 1);
        assert!(machine.is_idle());
    }
}

#[test]
fn a_drain_ends_with_its_grace_even_if_the_upstream_is_silent() {
    let upstream = Upstream::start(|_, _| ());
    let running =
        start(&["127.0.0.1:0"], 1, Steer::Name, || Probe::upstream(upstream.address, Transport::Udp));
    client("127.0.0.1:0", running.address()).send(&question(1)).unwrap();
    wait_for(|| !upstream.all_asked("").is_empty());
    running.shared.stop(Duration::from_millis(20));
    for thread in running.threads {
        assert!(!thread.join().unwrap().is_idle());
    }
}

#[test]
fn questions_that_wait_when_the_workers_stop_reach_their_owners_and_are_answered() {
    let running = start(&["127.0.0.1:0"], 2, Steer::Flow, Probe::default);
    let go: Vec<_> = (0..2)
        .map(|worker| {
            let (go, wait) = std::sync::mpsc::channel::<()>();
            let (busy, is_busy) = std::sync::mpsc::channel();
            let submit = move |_: &mut Probe, _| {
                busy.send(()).unwrap();
                let _ = wait.recv();
            };
            running.shared.mailbox(worker).submit(submit).unwrap();
            is_busy.recv_timeout(TEST_TIMEOUT).unwrap();
            go
        })
        .collect();
    // Many flows, so that some arrive at each worker.
    let sockets: Vec<_> = (0..16).map(|_| client("127.0.0.1:0", running.address())).collect();
    for socket in &sockets {
        (0..50).for_each(|number| assert!(socket.send(&question(number)).is_ok()));
    }
    running.shared.stop(TEST_TIMEOUT);
    // One worker has nothing left to do long before the other one looks at its listener.
    go[0].send(()).unwrap();
    let turns = running.shared.counters(0).get(Counter::Turns);
    wait_for(|| {
        running.threads[0].is_finished() || running.shared.counters(0).get(Counter::Turns) > turns + 2
    });
    go[1].send(()).unwrap();
    let (machines, shared) = running.stop();
    let counted = shared.total();
    assert_eq!(counted.get(Counter::MailboxFull), 0);
    assert_eq!(machines.iter().map(|machine| machine.clients.len()).sum::<usize>(), 16 * 50);
    for socket in sockets {
        (0..50).for_each(|_| assert!(socket.recv(&mut [0; 512]).is_ok()));
    }
}

#[test]
fn a_reply_that_does_not_fit_is_handed_on_as_truncated() {
    let upstream = Upstream::start(|asked, replies| {
        // A reply that cannot be parsed is only counted.
        replies.now(vec![0; 4000]);
        let mut long = asked.message.to_vec();
        long.resize(4000, 0);
        replies.now(long);
    });
    let running =
        start(&["127.0.0.1:0"], 1, Steer::Name, || Probe::upstream(upstream.address, Transport::Udp));
    let socket = client("127.0.0.1:0", running.address());
    let mut expected = question(1);
    expected[2] |= 2;
    assert_eq!(kit::client::ask(&socket, &question(1)), expected);
    let (machines, shared) = running.stop();
    assert_eq!(machines[0].replies, [expected]);
    assert_eq!(shared.total().get(Counter::UpstreamTruncated), 2);
}
