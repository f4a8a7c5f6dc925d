//! A stream thread: its table of connections, and its four jobs. It accepts connections, delivers the answers from its
//! queue, sweeps and drains. A sweep checks, at intervals, the connections of which a timeout may have expired, a part at a
//! time, so no connection needs a timer. One task per connection does the rest.

use crate::QuerySink;
use crate::admission::{ConnectionSlot, Refusal, Timeouts};
use crate::byte_stream::ByteStream;
use crate::close_reason::CloseReason;
use crate::connection::Connection;
use crate::counters::Counter;
use crate::handshake::{Admitted, Established, Handshakes};
use crate::https::serve::HttpsThread;
use crate::idle_order::{IdleOrder, Standing};
use crate::limits;
use crate::listen::{Listener, Service};
use crate::shared::{AnswerQueue, Shared};
use crate::thread_context::ThreadContext;
use crate::timeout_order::TimeoutOrder;
use engine::{Client, ClientTransport, IdleTimeout};
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::task::{spawn_local, yield_now};

type Connections = HashMap<u64, Rc<RefCell<Connection>>>;

/// The state that the tasks of one stream thread share.
pub(crate) struct StreamThread<Q: QuerySink> {
    context: Rc<ThreadContext<Q>>,
    connections: RefCell<Connections>,
    /// The open connections of both kinds by the time at which they were last active.
    idle_order: IdleOrder,
    /// The open connections of both kinds by the time since which a timeout may run.
    timeout_order: TimeoutOrder,
    /// The TLS handshakes that are under way.
    handshakes: Handshakes,
    /// The connections of DNS over HTTPS.
    https: Rc<HttpsThread<Q>>,
}

impl<Q: QuerySink> StreamThread<Q> {
    pub(crate) fn new(shared: Arc<Shared>, queries: Arc<Q>, index: usize) -> StreamThread<Q> {
        let context = Rc::new(ThreadContext::new(shared, queries, index));
        let https = Rc::new(HttpsThread::new(context.clone()));
        StreamThread {
            context,
            connections: RefCell::default(),
            idle_order: IdleOrder::default(),
            timeout_order: TimeoutOrder::default(),
            handshakes: Handshakes::default(),
            https,
        }
    }

    /// Runs the stream thread until it has been drained. Must run within a `LocalSet`.
    ///
    /// # Errors
    ///
    /// The runtime does not take a listening socket: the process may have no more open files, or memory.
    pub(crate) async fn serve(self: Rc<StreamThread<Q>>, listeners: Vec<Listener>) -> std::io::Result<()> {
        spawn_local(self.context.clone().announce_queries());
        spawn_local(self.context.clone().keep_packet_cache());
        let mut tasks = vec![spawn_local(sweep(self.clone()))];
        for (index, listener) in listeners.into_iter().enumerate() {
            let socket = tokio::net::TcpListener::from_std(listener.socket)?;
            tasks.push(spawn_local(accept(self.clone(), socket, index as u16, Rc::new(listener.service))));
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
        self.https.retire();
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
        self.connections.borrow().len() + self.handshakes.under_way() + self.https.connections()
    }

    /// Delivers the answers in the queue to their connections, which write them after all are delivered. A connection that has lost an
    /// answer is closed, so that its client asks again at once. A query that gets no answer leaves its place in the connection.
    async fn deliver(&self) {
        for token in self.answer_queue().take_lost() {
            match self.connections.borrow().get(&token) {
                Some(connection) => connection.borrow_mut().lose_answer(),
                None => self.https.lose_answer(token),
            }
        }
        loop {
            for _ in 0..limits::ANSWERS_PER_PASS {
                let Some(answer) = self.answer_queue().take() else { return };
                let is_answer = answer.is_answer();
                let taken = if answer.client.transport == ClientTransport::Https {
                    self.https.deliver(answer)
                } else {
                    let connections = self.connections.borrow();
                    connections.get(&answer.client.stream).is_some_and(|connection| {
                        let mut connection = connection.borrow_mut();
                        if is_answer { connection.accept(answer.message()) } else { connection.drop_query() }
                    })
                };
                self.context.count_delivery(is_answer, taken);
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
        service: &Rc<Service>,
    ) {
        let token = self.context.next_token();
        let local = stream.local_addr().ok().map(|local| local.ip());
        let client = client(peer, local, listener, token, service.transport());
        let proxied = self.context.shared.proxies.includes(&client);
        let slot = match self.admit(&client, proxied) {
            Ok(slot) if self.context.shared.drain_deadline().is_none() => slot,
            Ok(_) => return,
            Err(refusal) => {
                self.context.count(refusal.counter());
                // A reset, so that no state of a refused connection stays, not even in the kernel.
                let _ = stream.set_zero_linger();
                return;
            }
        };
        self.context.count(Counter::Accepted);
        self.context.count(service.counter());
        if let Service::Tcp = **service {
            self.run(ByteStream::Tcp(stream), client, slot, proxied);
        } else {
            let admitted = Admitted { stream, client, slot, proxied };
            spawn_local(establish(self.clone(), service.clone(), admitted));
        }
    }

    /// Takes a place for a connection. If none is free, the connection of this thread that has been idle for the longest time gives way.
    fn admit(&self, client: &Client, proxied: bool) -> Result<ConnectionSlot, Refusal> {
        let admission = &self.context.shared.admission;
        let admit = || if proxied { admission.admit_proxy() } else { admission.admit(client) };
        match admit() {
            Err(Refusal::TotalLimit) if self.displace_oldest() => admit(),
            admitted => admitted,
        }
    }

    /// Closes the connection that has been idle for the longest time. Returns false if none is idle.
    fn displace_oldest(&self) -> bool {
        let now = Instant::now();
        let standing = |token: u64| match self.connections.borrow().get(&token) {
            Some(connection) => connection.borrow().standing(now),
            None => self.https.standing(token),
        };
        let Some(token) = self.idle_order.take_oldest(now, standing) else { return false };
        match self.connections.borrow().get(&token) {
            Some(connection) => connection.borrow_mut().displace(),
            None => self.https.displace(token),
        }
        true
    }

    /// Enters a connection of a table into the two orders.
    fn enter_orders(&self, token: u64) {
        let is_open = |token: u64| {
            self.connections.borrow().contains_key(&token) || self.https.standing(token) != Standing::Gone
        };
        let (now, open) = (Instant::now(), self.open_connections());
        self.idle_order.enter(token, now, open, is_open);
        self.timeout_order.enter(token, now, open, is_open);
    }

    /// Serves a connection in a task of its own.
    fn run(
        self: &Rc<StreamThread<Q>>,
        stream: ByteStream,
        client: Client,
        slot: ConnectionSlot,
        proxied: bool,
    ) {
        spawn_local(run_connection(self.clone(), self.register(stream, client, slot, proxied)));
    }

    /// Enters a connection into the table.
    fn register(
        self: &Rc<StreamThread<Q>>,
        stream: ByteStream,
        client: Client,
        slot: ConnectionSlot,
        proxied: bool,
    ) -> ConnectionGuard<Q> {
        let token = client.stream;
        let buffered = self.context.shared.budget.begin(&client);
        let mut connection = Connection::new(stream, client, slot, buffered, proxied);
        // A connection whose handshake was under way when the end began.
        if self.context.shared.drain_deadline().is_some() {
            connection.drain();
        } else if self.context.shared.is_ending() {
            connection.retire();
        }
        let connection = Rc::new(RefCell::new(connection));
        self.connections.borrow_mut().insert(token, connection.clone());
        self.enter_orders(token);
        ConnectionGuard { thread: self.clone(), connection, token, close: CloseReason::Drained }
    }

    /// Closes the connections whose timeouts have expired. Returns false if more than a part of them are due. `shortest` is the shortest
    /// timeout; a connection that waits for a longer one is due again after `pause`.
    fn sweep_connections(&self, timeouts: Timeouts, shortest: Duration, pause: Duration) -> bool {
        let now = Instant::now();
        let connections = self.connections.borrow();
        for _ in 0..limits::SWEPT_AT_ONCE {
            let Some(token) = self.timeout_order.take(now - shortest) else { return true };
            let since = match connections.get(&token) {
                Some(connection) => connection.borrow_mut().sweep(now, timeouts),
                None => self.https.sweep_connection(token, now, timeouts),
            };
            if let Some(since) = since {
                self.timeout_order.put_back(token, since.max(now + pause - shortest));
            }
        }
        false
    }

    /// Closes the connections that pay for the budget of buffered octets.
    fn collect(&self) {
        self.https.collect();
        self.connections.borrow().values().for_each(|connection| connection.borrow_mut().pay());
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
        self.connection.borrow().release(self.close);
        self.thread.context.count(self.close.counter());
        self.thread.context.wake_end();
    }
}

/// The task of an encrypted connection's beginning. The connection itself has another task, because a task keeps the size that it needs
/// at most, and handshakes need much.
async fn establish<Q: QuerySink>(thread: Rc<StreamThread<Q>>, service: Rc<Service>, admitted: Admitted) {
    let Some(config) = service.tls() else { return };
    let established = match thread.handshakes.establish(&thread.context, config, admitted).await {
        Ok(established) => established,
        Err(reason) => return thread.context.count(reason.counter()),
    };
    match &*service {
        Service::Https(https) => {
            let token = established.client.stream;
            spawn_local(thread.https.clone().open(https.clone(), established));
            thread.enter_orders(token);
        }
        _ => {
            let Established { stream, client, slot } = established;
            thread.run(ByteStream::Tls(Box::new(stream)), client, slot, false);
        }
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
    service: Rc<Service>,
) {
    // The sender lives as long as the thread, so there is no error.
    let _ = thread.context.shared.accepts.subscribe().wait_for(|&accepts| accepts).await;
    let mut failing = false;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                failing = false;
                thread.open(stream, peer, index, &service);
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

/// Closes connections whose timeouts have expired, and those that pay for the budget of buffered octets. The pause depends on the
/// timeouts, which change with the number of connections, so it is computed each time. The connections that are due are checked in
/// parts, because a worker that shares the core waits for a part.
async fn sweep<Q: QuerySink>(thread: Rc<StreamThread<Q>>) {
    loop {
        let next_round = thread.context.shared.budget.next_round();
        let timeouts = thread.context.shared.admission.timeouts();
        thread.context.idle_timeout.set(timeouts.told);
        thread.https.sweep(Instant::now(), timeouts);
        let (shortest, pause) = timeouts.sweeps(thread.context.shared.is_ending());
        let is_done = thread.sweep_connections(timeouts, shortest, pause);
        tokio::select! {
            () = tokio::time::sleep(if is_done { pause } else { limits::SWEEP_PART }) => {}
            () = next_round => thread.collect(),
        }
    }
}

/// A client on a connection with this token.
pub(crate) fn client(
    peer: SocketAddr,
    local: Option<IpAddr>,
    listener: u16,
    token: u64,
    transport: ClientTransport,
) -> Client {
    let mapped = |address: IpAddr| match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    Client {
        address: mapped(peer.ip()),
        local: local.map_or(Ipv6Addr::UNSPECIFIED, mapped),
        port: peer.port(),
        listener,
        scope: if let SocketAddr::V6(v6) = peer { v6.scope_id() } else { 0 },
        stream: token,
        transport,
        idle_timeout: IdleTimeout::CLOSE,
        proxy: None,
    }
}
