//! A stream thread's desk: its table of connections, and the four things done there. Accepting, delivering answers
//! from the ring, sweeping (all timeouts, by one look at every connection in a while: 10,000 cost less than a
//! millisecond, and no connection needs a timer), draining. One task per connection does the rest.

use crate::Questions;
use crate::admission::Place;
use crate::connection::{Close, Connection};
use crate::counters::Counter;
use crate::limits;
use crate::shared::{Ring, Shared};
use crate::thread_context::ThreadContext;
use engine::{Carrier, Client};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::task::{spawn_local, yield_now};

type Connections = HashMap<u64, Rc<RefCell<Connection>>>;

/// What the tasks of one stream thread share.
pub(crate) struct Desk<Q> {
    context: ThreadContext<Q>,
    /// Which thread this is: the top octet of its connections' tokens.
    number: usize,
    connections: RefCell<Connections>,
    /// Connections so far: the rest of the token. 56 bits last for two thousand years of a million per second.
    opened: Cell<u64>,
}

impl<Q: Questions> Desk<Q> {
    pub(crate) fn new(shared: Arc<Shared>, questions: Arc<Q>, number: usize) -> Desk<Q> {
        Desk {
            context: ThreadContext::new(shared, questions),
            number,
            connections: RefCell::default(),
            opened: Cell::new(0),
        }
    }

    /// The life of a stream thread: ends when it has been drained. Must run within a `LocalSet`.
    pub(crate) async fn serve(self: Rc<Desk<Q>>, listeners: Vec<TcpListener>) -> std::io::Result<()> {
        let mut tasks = vec![spawn_local(sweep(self.clone()))];
        for (index, listener) in listeners.into_iter().enumerate() {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            tasks.push(spawn_local(accept(self.clone(), listener, index as u16)));
        }
        let deadline = loop {
            self.deliver().await;
            if let Some(deadline) = self.context.shared.deadline() {
                break deadline;
            }
            self.ring().bell.notified().await;
        };
        // Aborted, the tasks drop their listeners as soon as they are polled: nothing more is accepted.
        tasks.drain(1..).for_each(|task| task.abort());
        self.connections.borrow().values().for_each(|connection| connection.borrow_mut().drain());
        let drained = async {
            while !self.connections.borrow().is_empty() {
                self.ring().bell.notified().await;
                self.deliver().await;
            }
        };
        let _ = tokio::time::timeout_at(deadline.into(), drained).await;
        self.context.shared.cut.fetch_add(self.connections.borrow().len(), Ordering::Relaxed);
        Ok(())
    }

    /// Brings the answers in the ring to their connections, which write them when all are there.
    async fn deliver(&self) {
        loop {
            for _ in 0..limits::DELIVERIES {
                let Some(letter) = self.ring().take() else { return };
                let connections = self.connections.borrow();
                let taken = connections.get(&letter.client.stream).is_some_and(|connection| {
                    connection.borrow_mut().accept(letter.message(), &self.context)
                });
                self.context.count(if taken {
                    Counter::AnswersQueued
                } else {
                    Counter::AnswersUndeliverable
                });
            }
            yield_now().await;
        }
    }

    /// Lets a client in, or not.
    fn open(self: &Rc<Desk<Q>>, stream: TcpStream, peer: SocketAddr, listener: u16) {
        self.opened.update(|opened| opened + 1);
        let token = (self.number as u64) << 56 | self.opened.get();
        let client = Client {
            address: mapped(peer.ip()),
            local: stream.local_addr().map_or(Ipv6Addr::UNSPECIFIED, |local| mapped(local.ip())),
            port: peer.port(),
            listener,
            scope: if let SocketAddr::V6(v6) = peer { v6.scope_id() } else { 0 },
            stream: token,
            carrier: Carrier::Tcp,
            hop: None,
        };
        let admission = &self.context.shared.admission;
        let proxied = self.context.shared.proxies.speaks_for_others(&client);
        let admitted = if proxied { admission.admit_proxy() } else { admission.admit(client.address) };
        let place = match admitted {
            Ok(place) if self.context.shared.deadline().is_none() => place,
            Ok(_) => return,
            Err(reason) => {
                self.context.count(reason);
                // A reset: no state of a refused connection stays here, not even in the kernel.
                let _ = stream.set_zero_linger();
                return;
            }
        };
        self.context.count(Counter::Accepted);
        spawn_local(attend(self.clone(), self.seat(stream, client, place, proxied)));
    }

    fn seat(self: &Rc<Desk<Q>>, stream: TcpStream, client: Client, place: Place, proxied: bool) -> Seat<Q> {
        let token = client.stream;
        let connection = Rc::new(RefCell::new(Connection::new(stream, client, place, proxied)));
        self.connections.borrow_mut().insert(token, connection.clone());
        Seat { desk: self.clone(), connection, token, close: Close::Drained }
    }

    fn ring(&self) -> &Ring {
        &self.context.shared.rings[self.number]
    }
}

/// A connection's place at the desk. Given up in whatever way the connection's task ends.
struct Seat<Q: Questions> {
    desk: Rc<Desk<Q>>,
    connection: Rc<RefCell<Connection>>,
    token: u64,
    close: Close,
}

impl<Q: Questions> Drop for Seat<Q> {
    fn drop(&mut self) {
        self.desk.connections.borrow_mut().remove(&self.token);
        self.desk.context.count(self.close.counter());
        self.connection.borrow_mut().leave(self.close, &self.desk.context);
        if self.desk.context.shared.deadline().is_some() {
            self.desk.ring().bell.notify_one();
        }
    }
}

/// The task of a connection.
async fn attend<Q: Questions>(desk: Rc<Desk<Q>>, mut seat: Seat<Q>) {
    seat.close = poll_fn(|context| {
        let mut connection = seat.connection.borrow_mut();
        let turn = connection.turn(context, &desk.context);
        if connection.wants_retry() {
            let again = seat.connection.clone();
            spawn_local(async move {
                tokio::time::sleep(limits::RETRY).await;
                again.borrow_mut().retry();
            });
        }
        turn
    })
    .await;
}

async fn accept<Q: Questions>(desk: Rc<Desk<Q>>, listener: tokio::net::TcpListener, index: u16) {
    let mut failing = false;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                failing = false;
                desk.open(stream, peer, index);
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "cannot accept TCP connections; raise LimitNOFILE or lower tcp-connections");
                }
                failing = true;
                desk.context.count(Counter::AcceptFailed);
                tokio::time::sleep(limits::ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Ends what takes too long. Often enough for the idle time of the moment, which is why it is looked at each time.
async fn sweep<Q: Questions>(desk: Rc<Desk<Q>>) {
    loop {
        let patience = desk.context.shared.admission.patience();
        let now = Instant::now();
        for connection in desk.connections.borrow().values() {
            connection.borrow_mut().sweep(now, patience);
        }
        let shortest = patience.idle.min(patience.answer_wait);
        let pause = (shortest / 20).clamp(Duration::from_millis(5), Duration::from_millis(250));
        tokio::time::sleep(pause).await;
    }
}

/// The engine knows IPv4 addresses as IPv4-mapped ones.
fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}
