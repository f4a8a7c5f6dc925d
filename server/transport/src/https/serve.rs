//! The HTTPS side of a stream thread: its connections and the requests that wait for answers.

use crate::QuerySink;
use crate::admission::Timeouts;
use crate::close_reason::CloseReason;
use crate::handshake::Established;
use crate::https::connection::{HttpsConnection, http1};
use crate::https::http1::respond;
use crate::https::http2::Http2;
use crate::https::records::ResponseRecords;
use crate::https::reply::Answers;
use crate::https::{ALPN, Service};
use crate::idle_order::Standing;
use crate::thread_context::ThreadContext;
use datapath::QueuedMessage;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::rc::Rc;
use std::time::Instant;

/// The HTTPS connections of one stream thread, by token, and their requests.
pub(crate) struct HttpsThread<Q: QuerySink> {
    context: Rc<ThreadContext<Q>>,
    connections: RefCell<HashMap<u64, Rc<HttpsConnection>>>,
    answers: Rc<Answers<Q>>,
}

impl<Q: QuerySink> HttpsThread<Q> {
    pub(crate) fn new(context: Rc<ThreadContext<Q>>) -> HttpsThread<Q> {
        let answers = Rc::new(Answers::new(context.clone()));
        HttpsThread { context, connections: RefCell::default(), answers }
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

    /// Hands an answer, or the news that there is none, to its request. Returns false if the request waits no more.
    pub(crate) fn deliver(&self, answer: QueuedMessage) -> bool {
        self.answers.deliver(answer)
    }

    /// Fails a request whose answer is lost.
    pub(crate) fn lose_answer(&self, token: u64) {
        self.answers.lose(token);
    }

    /// Ends a connection if a timeout of it has expired. Returns the time since which its timeouts run, or none if it ends or has ended.
    pub(crate) fn sweep_connection(&self, token: u64, now: Instant, timeouts: Timeouts) -> Option<Instant> {
        self.connections.borrow().get(&token).and_then(|connection| connection.sweep(now, timeouts))
    }

    /// Gives up the requests that have waited for too long, and ends the connections whose clients still leave too many octets unread.
    pub(crate) fn sweep(&self, now: Instant, timeouts: Timeouts) {
        self.answers.sweep(now, timeouts.answer_wait);
        for token in self.answers.take_unread() {
            self.sweep_connection(token, now, timeouts);
        }
    }

    /// Closes the connections that pay for the budget of buffered octets.
    pub(crate) fn collect(&self) {
        self.connections.borrow().values().for_each(|connection| connection.pay());
    }

    /// Ends all connections soon: their clients connect to another process.
    pub(crate) fn retire(&self) {
        self.connections.borrow().values().for_each(|connection| connection.retire());
    }

    /// Ends all connections after the responses that are due.
    pub(crate) fn close(&self) {
        self.connections.borrow().values().for_each(|connection| connection.close(CloseReason::Drained));
    }

    /// Enters a connection into the table. The future serves it to its end, and counts the reason of the end.
    pub(crate) fn open(
        self: Rc<HttpsThread<Q>>,
        service: Service,
        established: Established,
    ) -> impl Future<Output = ()> {
        let Established { stream: tls, client, slot } = established;
        let is_http2 = tls.get_ref().1.alpn_protocol() == Some(ALPN[0]);
        let buffered = self.context.shared.budget.begin(&client);
        let connection = Rc::new(HttpsConnection::new(client, slot, buffered, is_http2));
        let entry = Entry::new(self.clone(), &connection);
        let records = ResponseRecords::new(tls, is_http2);
        async move {
            let _entry = entry;
            let context = self.context.clone();
            let reason = self.serve(Rc::new(service), connection, records).await;
            context.count(reason.counter());
        }
    }

    async fn serve(
        self: Rc<HttpsThread<Q>>,
        service: Rc<Service>,
        connection: Rc<HttpsConnection>,
        records: ResponseRecords,
    ) -> CloseReason {
        let is_http2 = connection.is_http2();
        if self.context.shared.drain_deadline().is_some() {
            connection.close(CloseReason::Drained);
        } else if self.context.shared.is_ending() {
            connection.retire();
        }
        if is_http2 {
            let http = Http2::new(self.answers.clone(), service, connection.clone(), records);
            connection.drive(http, |http| http.get_mut().close(), |_| CloseReason::Reset).await
        } else {
            let idle = self.context.shared.admission.timeouts().idle;
            let here = connection.clone();
            let requests = service_fn(move |request| {
                let (thread, service, connection) = (self.clone(), service.clone(), connection.clone());
                async move { respond(&thread.answers, &service, &connection, request).await }
            });
            let http = http1(idle).serve_connection(TokioIo::new(records), requests);
            let reason_of = |error: hyper::Error| {
                match () {
                    () if error.is_timeout() => CloseReason::SlowSender,
                    // `http1::Dropped`: the only error of a request.
                    () if error.is_user() => CloseReason::Unanswered,
                    () => CloseReason::Reset,
                }
            };
            here.drive(http, |http| http.graceful_shutdown(), reason_of).await
        }
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
        self.thread.answers.remove(&self.connection);
        self.thread.context.wake_end();
    }
}
