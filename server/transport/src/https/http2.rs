//! HTTP/2 (RFC 9113) on one connection. h2 speaks it. One task takes the requests of all streams and hands their queries over, and each
//! answer goes into its stream as soon as it is delivered, so a request needs no task.
//!
//! Two kinds of requests are rare, and get a task: those whose body has not arrived with its header fields, and those whose query finds
//! no room at the server.

use crate::QuerySink;
use crate::account::Account;
use crate::https::Service;
use crate::https::connection::{HttpsConnection, UnderWay};
use crate::https::records::ResponseRecords;
use crate::https::reply::{AnsweredReply, Answers, Reply};
use crate::https::request::{self, Query};
use crate::limits;
use h2::RecvStream;
use h2::server::{Builder, Connection, Handshake, SendResponse};
use http::{Method, Request, StatusCode};
use hyper::body::Bytes;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::task::spawn_local;

/// An HTTP/2 connection, from its preface to its end.
pub(crate) struct Http2<Q: QuerySink> {
    answers: Rc<Answers<Q>>,
    service: Rc<Service>,
    connection: Rc<HttpsConnection>,
    state: State,
    /// Requests that the packet cache has answered. The responses are handed to HTTP/2 together, after all requests that have arrived, so
    /// that they leave in one write.
    answered: Vec<AnsweredReply>,
}

enum State {
    /// The client's preface has not arrived. True: the connection closes after it.
    Preface(Handshake<ResponseRecords>, bool),
    Open(Connection<ResponseRecords, Bytes>),
}

impl<Q: QuerySink> Http2<Q> {
    pub(crate) fn new(
        answers: Rc<Answers<Q>>,
        service: Rc<Service>,
        connection: Rc<HttpsConnection>,
        records: ResponseRecords,
    ) -> Http2<Q> {
        let state = State::Preface(builder().handshake(records), false);
        Http2 { answers, service, connection, state, answered: Vec::new() }
    }

    /// Tells the client up to which stream it is served (GOAWAY). The connection ends after these.
    pub(crate) fn close(&mut self) {
        match &mut self.state {
            State::Preface(_, closes) => *closes = true,
            State::Open(http) => http.graceful_shutdown(),
        }
    }

    /// Takes a request.
    fn take(&mut self, context: &mut Context<'_>, request: Request<RecvStream>, stream: SendResponse<Bytes>) {
        let is_busy = self.connection.requests() >= limits::OUTSTANDING;
        let (parts, body) = request.into_parts();
        let under_way = UnderWay::begin(&self.connection);
        let reply = Reply { stream, under_way, with_body: parts.method != Method::HEAD };
        // Streams that the client has reset take no place in HTTP/2, but their queries are under way.
        if is_busy {
            return reply.fail(&self.answers, StatusCode::SERVICE_UNAVAILABLE);
        }
        match request::query(&parts, &self.service) {
            Ok(Query::InTarget(message)) => self.answered.extend(reply.ask(&self.answers, message)),
            Ok(Query::InBody) => self.read(context, body, reply),
            Err(status) => reply.fail(&self.answers, status),
        }
    }

    /// Reads a body, most often at once.
    fn read(&mut self, context: &mut Context<'_>, body: RecvStream, reply: Reply) {
        let account = Account::new(self.connection.buffered.clone());
        let mut body = PartialBody { body, message: Vec::new(), account };
        match body.poll(context) {
            Poll::Ready(Ok(message)) => self.answered.extend(reply.ask(&self.answers, message)),
            Poll::Ready(Err(status)) => reply.fail(&self.answers, status),
            Poll::Pending => {
                spawn_local(read_late(self.answers.clone(), body, reply));
            }
        }
    }
}

impl<Q: QuerySink> Future for Http2<Q> {
    type Output = Result<(), h2::Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        loop {
            match &mut self.state {
                State::Preface(handshake, closes) => {
                    let mut http = ready!(Pin::new(handshake).poll(context))?;
                    if *closes {
                        http.graceful_shutdown();
                    }
                    self.state = State::Open(http);
                }
                State::Open(http) => match http.poll_accept(context) {
                    Poll::Ready(Some(Ok((request, stream)))) => self.take(context, request, stream),
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                    Poll::Ready(None) => return Poll::Ready(Ok(())),
                    Poll::Pending if self.answered.is_empty() => return Poll::Pending,
                    // The next poll writes them.
                    Poll::Pending => {
                        for answered in std::mem::take(&mut self.answered) {
                            answered.send(&self.answers);
                        }
                    }
                },
            }
        }
    }
}

/// A body that has not arrived as a whole.
struct PartialBody {
    body: RecvStream,
    message: Vec<u8>,
    account: Account,
}

impl PartialBody {
    /// Reads what has arrived. Ready at the end of the body.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Vec<u8>, StatusCode>> {
        while !self.body.is_end_stream() {
            let Some(octets) = ready!(self.body.poll_data(context)) else { break };
            let Ok(octets) = octets else { return Poll::Ready(Err(StatusCode::BAD_REQUEST)) };
            let taken = request::extend(&mut self.message, &octets, &mut self.account);
            // An error means that the stream has ended, which the next read tells.
            let _ = self.body.flow_control().release_capacity(octets.len());
            if let Err(status) = taken {
                return Poll::Ready(Err(status));
            }
        }
        Poll::Ready(Ok(std::mem::take(&mut self.message)))
    }
}

/// Reads the rest of a body. The end of the connection ends the wait.
async fn read_late<Q: QuerySink>(answers: Rc<Answers<Q>>, mut body: PartialBody, reply: Reply) {
    let patience = answers.context.shared.admission.timeouts().idle;
    let read = tokio::time::timeout(patience, poll_fn(|context| body.poll(context))).await;
    match read.unwrap_or(Err(StatusCode::REQUEST_TIMEOUT)) {
        Ok(message) => {
            if let Some(answered) = reply.ask(&answers, message) {
                answered.send(&answers);
            }
        }
        Err(status) => reply.fail(&answers, status),
    }
}

/// HTTP/2 with the bounds of this server. It sends no keep-alive pings: an idle client is let go.
fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(limits::OUTSTANDING)
        .max_pending_accept_reset_streams(limits::HTTPS_PENDING_RESETS)
        .max_local_error_reset_streams(Some(limits::HTTPS_LOCAL_RESETS))
        .max_header_list_size(limits::HTTPS_HEADER_OCTETS)
        .header_table_size(limits::HTTPS_HEADER_TABLE_OCTETS)
        .initial_window_size(limits::HTTPS_STREAM_WINDOW_OCTETS)
        .initial_connection_window_size(limits::HTTPS_CONNECTION_WINDOW_OCTETS)
        .max_send_buffer_size(limits::UNREAD_OCTETS);
    builder
}
