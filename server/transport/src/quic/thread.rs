//! The QUIC thread: its table of connections, and its jobs. It accepts connections, delivers the answers from its queue, sweeps and
//! drains. One task per connection accepts the streams, and one task per stream answers it.

use crate::QuerySink;
use crate::close_reason::CloseReason;
use crate::limits;
use crate::quic::accept::{self, Admitted, Handshakes};
use crate::quic::connection::QuicConnection;
use crate::quic::error_code;
use crate::quic::settings::Settings;
use crate::quic::socket::QuicSocket;
use crate::quic::stream::{self, StreamContext};
use crate::requests::{Requests, ToTask};
use crate::shared::Shared;
use crate::thread_context::ThreadContext;
use quinn::{ConnectionError, Endpoint, TokioRuntime};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::UdpSocket;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tokio::sync::Notify;
use tokio::task::{spawn_local, yield_now};

/// The sockets of the thread.
pub(crate) struct Sockets {
    pub(crate) sockets: Vec<UdpSocket>,
    /// The number of the first one among the listeners.
    pub(crate) first_listener: u16,
}

/// The state that the tasks of the thread share.
pub(crate) struct QuicThread<Q: QuerySink> {
    pub(crate) context: Rc<ThreadContext<Q>>,
    pub(crate) settings: Settings,
    pub(crate) handshakes: Rc<Handshakes>,
    /// Signals that a socket is not read any more.
    ended: Notify,
    connections: RefCell<HashMap<u64, Rc<QuicConnection>>>,
    requests: Requests<ToTask>,
}

impl<Q: QuerySink> QuicThread<Q> {
    pub(crate) fn new(
        shared: Arc<Shared>,
        queries: Arc<Q>,
        index: usize,
        settings: Settings,
    ) -> QuicThread<Q> {
        QuicThread {
            context: Rc::new(ThreadContext::new(shared, queries, index)),
            settings,
            handshakes: Rc::default(),
            ended: Notify::new(),
            connections: RefCell::default(),
            requests: Requests::default(),
        }
    }

    /// Runs the thread until it has been drained. Must run within a `LocalSet`.
    ///
    /// # Errors
    ///
    /// The runtime does not take a socket, or a socket has failed.
    pub(crate) async fn serve(self: Rc<QuicThread<Q>>, sockets: Sockets) -> io::Result<()> {
        if !self.may_read().await {
            return Ok(());
        }
        let mut endpoints = Vec::new();
        for (place, socket) in sockets.sockets.into_iter().enumerate() {
            let (endpoint, socket) = self.open(socket)?;
            let listener = sockets.first_listener + place as u16;
            spawn_local(accept_connections(self.clone(), endpoint.clone(), listener));
            endpoints.push((endpoint, socket));
        }
        spawn_local(self.context.clone().announce_queries());
        spawn_local(self.context.clone().keep_packet_cache());
        spawn_local(sweep(self.clone()));
        let wakeup = &self.context.answer_queue().wakeup;
        loop {
            self.deliver().await;
            if self.context.shared.is_ending() {
                break;
            }
            tokio::select! {
                () = wakeup.notified() => {}
                () = self.ended.notified() => return Err(io::Error::other("a UDP socket cannot be read")),
            }
        }
        self.end(endpoints).await;
        Ok(())
    }

    /// Waits until this process may read the sockets. Returns false if it ends before.
    async fn may_read(&self) -> bool {
        let mut accepts = self.context.shared.accepts.subscribe();
        // The sender lives as long as the thread, so there is no error.
        let mut accepts = pin!(accepts.wait_for(|&accepts| accepts));
        while !self.context.shared.is_ending() {
            tokio::select! {
                _ = &mut accepts => return true,
                () = self.context.answer_queue().wakeup.notified() => {}
            }
        }
        false
    }

    /// Begins to read a socket.
    fn open(&self, socket: UdpSocket) -> io::Result<(Endpoint, Arc<QuicSocket>)> {
        let shared = self.context.shared.clone();
        let socket = Arc::new(QuicSocket::new(socket, self.settings.connection_ids(), shared)?);
        let idle = self.context.shared.admission.timeouts().idle;
        let server = Arc::unwrap_or_clone(self.settings.server(idle));
        let (settings, runtime) = (self.settings.endpoint(), Arc::new(TokioRuntime));
        let endpoint = Endpoint::new_with_abstract_socket(settings, Some(server), socket.clone(), runtime)?;
        Ok((endpoint, socket))
    }

    /// Answers the queries that are under way, then closes each connection. A successor of this process may read the sockets already, and
    /// packets of these connections with them. So they are not kept until they are idle, as those of TCP are, and acknowledgements are not
    /// waited for.
    async fn end(&self, endpoints: Vec<(Endpoint, Arc<QuicSocket>)>) {
        let shared = &self.context.shared;
        if shared.last_answers().is_some() {
            endpoints.iter().for_each(|(_, socket)| socket.stop_reading());
        }
        self.connections.borrow().values().for_each(|connection| connection.close(CloseReason::Drained));
        while self.open_connections() > 0 {
            let wakeup = self.context.answer_queue().wakeup.notified();
            if let Some(deadline) = shared.drain_deadline() {
                if tokio::time::timeout_at(deadline.into(), wakeup).await.is_err() {
                    break;
                }
            } else {
                wakeup.await;
            }
            self.deliver().await;
        }
        shared.cut_off.fetch_add(self.open_connections(), Ordering::Relaxed);
        for (endpoint, _) in &endpoints {
            endpoint.close(error_code::NO_ERROR, b"");
        }
        let last_packets = async {
            for (endpoint, _) in &endpoints {
                endpoint.wait_idle().await;
            }
        };
        let _ = tokio::time::timeout(limits::QUIC_FAREWELL, last_packets).await;
    }

    fn open_connections(&self) -> usize {
        self.connections.borrow().len()
    }

    /// Delivers the answers in the queue to their streams.
    async fn deliver(&self) {
        for token in self.context.answer_queue().take_lost() {
            // The stream of the request notices that no answer comes.
            drop(self.requests.take(token));
        }
        loop {
            for _ in 0..limits::ANSWERS_PER_PASS {
                let Some(answer) = self.context.answer_queue().take() else { return };
                let is_answer = answer.is_answer();
                self.context.count_delivery(is_answer, self.requests.deliver(answer));
            }
            yield_now().await;
        }
    }

    /// Serves a connection to its end, and counts its reason. Streams with 0-RTT data are accepted before the handshake is completed.
    async fn serve_connection(self: Rc<QuicThread<Q>>, admitted: Admitted) {
        let Admitted { connection, handshake, completed } = admitted;
        let _entry = Entry::new(self.clone(), &connection);
        let completion = async {
            let outcome = accept::complete(&self.context, &connection, handshake, completed).await;
            connection.abandon();
            match outcome {
                Ok(()) => std::future::pending().await,
                Err(reason) => reason,
            }
        };
        let reason = tokio::select! {
            biased;
            reason = completion => reason,
            reason = self.clone().accept_streams(connection.clone()) => reason,
        };
        // A connection without a place was not counted as accepted.
        if connection.slot.take().is_some() {
            self.context.count(reason.counter());
        }
    }

    /// Accepts streams until the connection ends.
    async fn accept_streams(self: Rc<QuicThread<Q>>, connection: Rc<QuicConnection>) -> CloseReason {
        let mut unidirectional = pin!(connection.quic.accept_uni());
        loop {
            let is_closing = connection.close_reason().is_some();
            let is_read_elsewhere = self.context.shared.last_answers().is_some();
            if is_closing && !connection.awaits_answers(is_read_elsewhere) {
                connection.quic.close(error_code::NO_ERROR, b"");
            }
            tokio::select! {
                biased;
                stream = connection.quic.accept_bi() => match stream {
                    // The client opened it before it could know of the close. It asks another connection.
                    Ok(stream) if is_closing => drop(stream),
                    Ok((send, receive)) => {
                        spawn_local(self.clone().serve_stream(connection.clone(), send, receive));
                    }
                    Err(error) => return end_of(&error, &connection),
                },
                Ok(_) = &mut unidirectional, if connection.close_reason().is_none() => {
                    connection.close_at_once(CloseReason::ProtocolError, "a unidirectional stream");
                }
                () = connection.wakeup.notified() => {}
            }
        }
    }

    async fn serve_stream(
        self: Rc<QuicThread<Q>>,
        connection: Rc<QuicConnection>,
        send: quinn::SendStream,
        receive: quinn::RecvStream,
    ) {
        let context = StreamContext { thread: &self.context, requests: &self.requests };
        stream::answer(context, &connection, send, receive).await;
    }
}

/// The reason why a connection has ended.
fn end_of(error: &ConnectionError, connection: &QuicConnection) -> CloseReason {
    match error {
        ConnectionError::LocallyClosed => connection.close_reason().unwrap_or(CloseReason::Drained),
        ConnectionError::ConnectionClosed(_) | ConnectionError::ApplicationClosed(_) => CloseReason::Ended,
        ConnectionError::TimedOut => CloseReason::Idle,
        _ => CloseReason::Reset,
    }
}

/// A connection's entry in the table. Dropping it removes the connection, however its task ends.
struct Entry<Q: QuerySink> {
    thread: Rc<QuicThread<Q>>,
    token: u64,
}

impl<Q: QuerySink> Entry<Q> {
    fn new(thread: Rc<QuicThread<Q>>, connection: &Rc<QuicConnection>) -> Entry<Q> {
        let token = connection.client.stream;
        thread.connections.borrow_mut().insert(token, connection.clone());
        Entry { thread, token }
    }
}

impl<Q: QuerySink> Drop for Entry<Q> {
    fn drop(&mut self) {
        self.thread.connections.borrow_mut().remove(&self.token);
        self.thread.context.wake_end();
    }
}

/// Accepts connections until the socket is closed, or fails: then the library has said why in the log.
async fn accept_connections<Q: QuerySink>(thread: Rc<QuicThread<Q>>, endpoint: Endpoint, listener: u16) {
    while let Some(incoming) = endpoint.accept().await {
        let QuicThread { context, handshakes, settings, .. } = &*thread;
        if let Some(admitted) = accept::admit(context, handshakes, settings, incoming, listener) {
            spawn_local(thread.clone().serve_connection(admitted));
        }
    }
    thread.ended.notify_one();
}

/// Closes connections, and gives up queries, whose timeouts have expired. Closes connections that pay for the budget of buffered octets.
async fn sweep<Q: QuerySink>(thread: Rc<QuicThread<Q>>) {
    loop {
        let next_round = thread.context.shared.budget.next_round();
        let timeouts = thread.context.shared.admission.timeouts();
        let now = Instant::now();
        let is_read_elsewhere = thread.context.shared.last_answers().is_some();
        for connection in thread.connections.borrow().values() {
            connection.sweep(now, timeouts, is_read_elsewhere);
        }
        drop(thread.requests.take_overdue(now, timeouts.answer_wait));
        let (_, pause) = timeouts.sweeps(thread.context.shared.is_ending());
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = next_round => thread.connections.borrow().values().for_each(|connection| connection.pay()),
        }
    }
}
