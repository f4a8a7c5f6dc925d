//! A stream thread: its table of connections, and its four jobs. It accepts connections, delivers the answers from its
//! queue, sweeps and drains. A sweep checks the timeouts of all connections at intervals: 10,000 cost less than a
//! millisecond, and no connection needs a timer. One task per connection does the rest.

use crate::QuerySink;
use crate::admission::ConnectionSlot;
use crate::connection::{CloseReason, Connection};
use crate::counters::Counter;
use crate::https::Service;
use crate::https::serve::{Admitted, HttpsThread};
use crate::limits;
use crate::shared::{AnswerQueue, Shared};
use crate::thread_context::ThreadContext;
use engine::{Client, ClientTransport};
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::task::{spawn_local, yield_now};

/// A listening socket of a thread.
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    /// The service behind it, if it is one for DNS over HTTPS.
    pub(crate) https: Option<Service>,
}

type Connections = HashMap<u64, Rc<RefCell<Connection>>>;

/// The state that the tasks of one stream thread share.
pub(crate) struct StreamThread<Q> {
    context: Rc<ThreadContext<Q>>,
    connections: RefCell<Connections>,
    /// The connections of DNS over HTTPS.
    https: Rc<HttpsThread<Q>>,
}

impl<Q: QuerySink> StreamThread<Q> {
    pub(crate) fn new(shared: Arc<Shared>, queries: Arc<Q>, index: usize) -> StreamThread<Q> {
        let context = Rc::new(ThreadContext::new(shared, queries, index));
        let https = Rc::new(HttpsThread::new(context.clone()));
        StreamThread { context, connections: RefCell::default(), https }
    }

    /// Runs the stream thread until it has been drained. Must run within a `LocalSet`.
    pub(crate) async fn serve(self: Rc<StreamThread<Q>>, listeners: Vec<Listener>) -> std::io::Result<()> {
        let mut tasks = vec![spawn_local(sweep(self.clone()))];
        for (index, listener) in listeners.into_iter().enumerate() {
            let socket = tokio::net::TcpListener::from_std(listener.socket)?;
            let https = listener.https.map(Rc::new);
            tasks.push(spawn_local(accept(self.clone(), socket, index as u16, https)));
        }
        loop {
            self.deliver().await;
            if self.context.shared.is_ending() {
                break;
            }
            self.answer_queue().wakeup.notified().await;
        }
        // Aborted tasks drop their listeners as soon as they are polled: no more connections are accepted.
        tasks.drain(1..).for_each(|task| task.abort());
        let Some(drain_deadline) = self.retire().await else { return Ok(()) };
        self.for_each(Connection::drain);
        self.https.close();
        let drained = async {
            while self.open_connections() > 0 {
                self.answer_queue().wakeup.notified().await;
                self.deliver().await;
            }
        };
        let _ = tokio::time::timeout_at(drain_deadline.into(), drained).await;
        self.context.shared.cut_off.fetch_add(self.open_connections(), Ordering::Relaxed);
        Ok(())
    }

    /// Serves the open connections while another process accepts the new ones. Returns the end of the grace period once the
    /// streams must drain; none if no connection is left.
    async fn retire(&self) -> Option<Instant> {
        let shared = &self.context.shared;
        let Some(last_answers) = shared.last_answers() else { return shared.drain_deadline() };
        self.for_each(Connection::retire);
        self.https.close();
        let mut is_late = false;
        while shared.drain_deadline().is_none() && self.open_connections() > 0 {
            let wakeup = self.answer_queue().wakeup.notified();
            if is_late {
                wakeup.await;
            } else if tokio::time::timeout_at(last_answers.into(), wakeup).await.is_err() {
                is_late = true;
                self.for_each(Connection::finish);
            }
            self.deliver().await;
        }
        shared.drain_deadline()
    }

    fn for_each(&self, act: impl Fn(&mut Connection)) {
        self.connections.borrow().values().for_each(|connection| act(&mut connection.borrow_mut()));
    }

    fn open_connections(&self) -> usize {
        self.connections.borrow().len() + self.https.connections()
    }

    /// Delivers the answers in the queue to their connections, which write them after all are delivered.
    async fn deliver(&self) {
        loop {
            for _ in 0..limits::ANSWERS_PER_PASS {
                let Some(answer) = self.answer_queue().take() else { return };
                let taken = if answer.client.transport == ClientTransport::Https {
                    self.https.deliver(answer)
                } else {
                    let connections = self.connections.borrow();
                    connections.get(&answer.client.stream).is_some_and(|connection| {
                        connection.borrow_mut().accept(answer.message(), &self.context)
                    })
                };
                self.context.count(if taken {
                    Counter::AnswersQueued
                } else {
                    Counter::AnswersUndeliverable
                });
            }
            yield_now().await;
        }
    }

    /// Opens a connection for an accepted socket if the limits allow it.
    fn open(
        self: &Rc<StreamThread<Q>>,
        stream: TcpStream,
        peer: SocketAddr,
        listener: u16,
        https: Option<&Rc<Service>>,
    ) {
        let token = self.context.next_token();
        let client = Client {
            address: mapped(peer.ip()),
            local: stream.local_addr().map_or(Ipv6Addr::UNSPECIFIED, |local| mapped(local.ip())),
            port: peer.port(),
            listener,
            scope: if let SocketAddr::V6(v6) = peer { v6.scope_id() } else { 0 },
            stream: token,
            transport: if https.is_some() { ClientTransport::Https } else { ClientTransport::Tcp },
            proxy: None,
        };
        let admission = &self.context.shared.admission;
        let proxied = self.context.shared.proxies.includes(&client);
        let admitted = if proxied { admission.admit_proxy() } else { admission.admit(&client) };
        let slot = match admitted {
            Ok(slot) if self.context.shared.drain_deadline().is_none() => slot,
            Ok(_) => return,
            Err(reason) => {
                self.context.count(reason);
                // A reset, so that no state of a refused connection stays, not even in the kernel.
                let _ = stream.set_zero_linger();
                return;
            }
        };
        self.context.count(Counter::Accepted);
        match https {
            Some(service) => {
                let admitted = Admitted { stream, client, slot, proxied };
                spawn_local(self.https.clone().run(service.clone(), admitted));
            }
            None => {
                spawn_local(run_connection(self.clone(), self.register(stream, client, slot, proxied)));
            }
        }
    }

    /// Enters a connection into the table.
    fn register(
        self: &Rc<StreamThread<Q>>,
        stream: TcpStream,
        client: Client,
        slot: ConnectionSlot,
        proxied: bool,
    ) -> ConnectionGuard<Q> {
        let token = client.stream;
        let connection = Rc::new(RefCell::new(Connection::new(stream, client, slot, proxied)));
        self.connections.borrow_mut().insert(token, connection.clone());
        ConnectionGuard { thread: self.clone(), connection, token, close: CloseReason::Drained }
    }

    fn answer_queue(&self) -> &AnswerQueue {
        self.context.answer_queue()
    }
}

/// A guard that holds a connection in the thread's table. Dropping it removes the connection, however its task ends.
struct ConnectionGuard<Q: QuerySink> {
    thread: Rc<StreamThread<Q>>,
    connection: Rc<RefCell<Connection>>,
    token: u64,
    close: CloseReason,
}

impl<Q: QuerySink> Drop for ConnectionGuard<Q> {
    fn drop(&mut self) {
        self.thread.connections.borrow_mut().remove(&self.token);
        self.thread.context.count(self.close.counter());
        self.connection.borrow_mut().release(self.close, &self.thread.context);
        self.thread.context.wake_end();
    }
}

/// The task of a connection: polls it to its end, and schedules its retries.
async fn run_connection<Q: QuerySink>(thread: Rc<StreamThread<Q>>, mut guard: ConnectionGuard<Q>) {
    guard.close = poll_fn(|context| {
        let mut connection = guard.connection.borrow_mut();
        let outcome = connection.poll(context, &thread.context);
        if connection.wants_retry() {
            let again = guard.connection.clone();
            spawn_local(async move {
                tokio::time::sleep(limits::RETRY).await;
                again.borrow_mut().retry();
            });
        }
        outcome
    })
    .await;
}

async fn accept<Q: QuerySink>(
    thread: Rc<StreamThread<Q>>,
    listener: tokio::net::TcpListener,
    index: u16,
    https: Option<Rc<Service>>,
) {
    // The sender lives as long as the thread, so there is no error.
    let _ = thread.context.shared.accepts.subscribe().wait_for(|&accepts| accepts).await;
    let mut failing = false;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                failing = false;
                thread.open(stream, peer, index, https.as_ref());
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "cannot accept TCP connections; raise LimitNOFILE or lower tcp-connections");
                }
                failing = true;
                thread.context.count(Counter::AcceptFailed);
                tokio::time::sleep(limits::ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Closes connections whose timeouts have expired. The pause depends on the timeouts, which change with the number of
/// connections, so it is computed each time.
async fn sweep<Q: QuerySink>(thread: Rc<StreamThread<Q>>) {
    loop {
        let timeouts = thread.context.shared.admission.timeouts();
        let now = Instant::now();
        for connection in thread.connections.borrow().values() {
            connection.borrow_mut().sweep(now, timeouts);
        }
        thread.https.sweep(now, timeouts);
        let shortest = timeouts.idle.min(timeouts.answer_wait);
        let pause = (shortest / 20).clamp(Duration::from_millis(5), Duration::from_millis(250));
        tokio::time::sleep(pause).await;
    }
}

/// The address as the engine stores it: IPv4 as IPv4-mapped.
pub(crate) fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}
