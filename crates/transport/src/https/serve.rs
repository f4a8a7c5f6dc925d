//! The HTTPS side of a stream thread: its connections and the requests that wait for answers.

use crate::QuerySink;
use crate::account::Account;
use crate::admission::Timeouts;
use crate::close_reason::CloseReason;
use crate::handshake::Established;
use crate::https::connection::{HttpsConnection, http1};
use crate::https::http2::{Http2, Reply};
use crate::https::records::ResponseRecords;
use crate::https::respond::respond;
use crate::https::{ALPN, Service};
use crate::idle_order::Standing;
use crate::requests::{Requests, ToTask};
use crate::thread_context::ThreadContext;
use datapath::QueuedMessage;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Instant;

/// The HTTPS connections of one stream thread, by token, and their requests.
pub(crate) struct HttpsThread<Q> {
    pub(crate) context: Rc<ThreadContext<Q>>,
    connections: RefCell<HashMap<u64, Rc<HttpsConnection>>>,
    pub(crate) requests: Requests<Way>,
}

/// The way of an answer to its request.
pub(crate) enum Way {
    /// To the task of a request over HTTP/1.1.
    Task(ToTask),
    /// Into the stream of a request over HTTP/2.
    Stream(Reply),
}

impl From<ToTask> for Way {
    fn from(task: ToTask) -> Way {
        Way::Task(task)
    }
}

impl<Q: QuerySink> HttpsThread<Q> {
    pub(crate) fn new(context: Rc<ThreadContext<Q>>) -> HttpsThread<Q> {
        HttpsThread { context, connections: RefCell::default(), requests: Requests::default() }
    }

    /// Number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.borrow().len()
    }

    /// The standing of a connection in the order of idle connections.
    pub(crate) fn standing(&self, token: u64) -> Standing {
        self.connections.borrow().get(&token).map_or(Standing::Gone, |connection| connection.standing())
    }

    /// Closes a connection, and frees its place at once.
    pub(crate) fn displace(&self, token: u64) {
        if let Some(connection) = self.connections.borrow().get(&token) {
            connection.displace();
        }
    }

    /// Hands an answer to its request. Returns false if the request waits no more.
    pub(crate) fn deliver(&self, answer: QueuedMessage) -> bool {
        match self.requests.take(answer.client.stream) {
            Some(Way::Task(task)) => task.send(answer).is_ok(),
            Some(Way::Stream(reply)) => reply.answer(self, answer),
            None => false,
        }
    }

    /// The tokens of the connections.
    pub(crate) fn tokens(&self) -> Vec<u64> {
        self.connections.borrow().keys().copied().collect()
    }

    /// Ends a connection if a timeout of it has expired.
    pub(crate) fn sweep_connection(&self, token: u64, now: Instant, timeouts: Timeouts) {
        if let Some(connection) = self.connections.borrow().get(&token) {
            connection.sweep(now, timeouts);
        }
    }

    /// Gives up the requests that have waited for too long.
    pub(crate) fn sweep_requests(&self, now: Instant, timeouts: Timeouts) {
        for way in self.requests.take_overdue(now, timeouts.answer_wait) {
            if let Way::Stream(reply) = way {
                reply.fail(self, StatusCode::GATEWAY_TIMEOUT);
            }
        }
    }

    /// Ends all connections soon: their clients connect to another process.
    pub(crate) fn retire(&self) {
        self.connections.borrow().values().for_each(|connection| connection.retire());
    }

    /// Ends all connections after the responses that are due.
    pub(crate) fn close(&self) {
        self.connections.borrow().values().for_each(|connection| connection.close(CloseReason::Drained));
    }

    /// Serves a connection to its end, and counts its reason.
    pub(crate) async fn run(self: Rc<HttpsThread<Q>>, service: Service, established: Established) {
        let reason = self.clone().serve(Rc::new(service), established).await;
        self.context.count(reason.counter());
    }

    async fn serve(self: Rc<HttpsThread<Q>>, service: Rc<Service>, established: Established) -> CloseReason {
        let Established { stream: tls, client, slot } = established;
        let is_http2 = tls.get_ref().1.alpn_protocol() == Some(ALPN[0]);
        let connection = Rc::new(HttpsConnection::new(client, slot, is_http2));
        let _entry = Entry::new(self.clone(), &connection);
        if self.context.shared.drain_deadline().is_some() {
            connection.close(CloseReason::Drained);
        } else if self.context.shared.is_ending() {
            connection.retire();
        }
        let records = ResponseRecords::new(tls, is_http2);
        if is_http2 {
            let http = Http2::new(self.clone(), service, connection.clone(), records);
            connection.drive(http, |http| http.get_mut().close(), |_| CloseReason::Reset).await
        } else {
            let idle = self.context.shared.admission.timeouts().idle;
            let here = connection.clone();
            let requests = service_fn(move |request| {
                self.clone().respond_http1(service.clone(), connection.clone(), request)
            });
            let http = http1(idle).serve_connection(TokioIo::new(records), requests);
            let reason_of = |error: hyper::Error| {
                if error.is_timeout() { CloseReason::SlowSender } else { CloseReason::Reset }
            };
            here.drive(http, |http| http.graceful_shutdown(), reason_of).await
        }
    }

    async fn respond_http1(
        self: Rc<HttpsThread<Q>>,
        service: Rc<Service>,
        connection: Rc<HttpsConnection>,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        respond(&self, &service, &connection, request).await
    }

    /// A new account of a connection.
    pub(crate) fn account(&self, connection: &HttpsConnection) -> Account {
        Account::new(self.context.shared.clone(), connection.buffered.clone())
    }
}

/// A connection's entry in the table. Dropping it removes the connection, however its task ends.
struct Entry<Q: QuerySink> {
    thread: Rc<HttpsThread<Q>>,
    connection: Rc<HttpsConnection>,
}

impl<Q: QuerySink> Entry<Q> {
    fn new(thread: Rc<HttpsThread<Q>>, connection: &Rc<HttpsConnection>) -> Entry<Q> {
        thread.connections.borrow_mut().insert(connection.client.stream, connection.clone());
        Entry { thread, connection: connection.clone() }
    }
}

impl<Q: QuerySink> Drop for Entry<Q> {
    fn drop(&mut self) {
        self.thread.connections.borrow_mut().remove(&self.connection.client.stream);
        // Streams of HTTP/2 that still wait. The task of HTTP/1.1 frees its slot itself.
        if self.connection.requests() > 0 {
            let is_here = |way: &Way| matches!(way, Way::Stream(reply) if reply.is_of(&self.connection));
            self.thread.requests.remove_if(is_here);
        }
        self.thread.context.wake_end();
    }
}
