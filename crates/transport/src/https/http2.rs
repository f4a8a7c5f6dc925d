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
use crate::https::respond::{self, Query};
use crate::https::response;
use crate::https::serve::{HttpsThread, Way};
use crate::limits;
use crate::requests;
use datapath::QueuedMessage;
use engine::Client;
use h2::RecvStream;
use h2::server::{Builder, Connection, Handshake, SendResponse};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Bytes;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::task::spawn_local;

/// An HTTP/2 connection, from its preface to its end.
pub(crate) struct Http2<Q: QuerySink> {
    thread: Rc<HttpsThread<Q>>,
    service: Rc<Service>,
    connection: Rc<HttpsConnection>,
    state: State,
}

enum State {
    /// The client's preface has not arrived. True: the connection closes after it.
    Preface(Handshake<ResponseRecords>, bool),
    Open(Connection<ResponseRecords, Bytes>),
}

/// The response side of a request.
pub(crate) struct Reply {
    stream: SendResponse<Bytes>,
    under_way: UnderWay,
    /// False for HEAD.
    with_body: bool,
}

impl<Q: QuerySink> Http2<Q> {
    pub(crate) fn new(
        thread: Rc<HttpsThread<Q>>,
        service: Rc<Service>,
        connection: Rc<HttpsConnection>,
        records: ResponseRecords,
    ) -> Http2<Q> {
        let state = State::Preface(builder().handshake(records), false);
        Http2 { thread, service, connection, state }
    }

    /// Tells the client up to which stream it is served (GOAWAY). The connection ends after these.
    pub(crate) fn close(&mut self) {
        match &mut self.state {
            State::Preface(_, closes) => *closes = true,
            State::Open(http) => http.graceful_shutdown(),
        }
    }

    /// Takes a request.
    fn take(&self, context: &mut Context<'_>, request: Request<RecvStream>, stream: SendResponse<Bytes>) {
        let is_busy = self.connection.requests() >= limits::OUTSTANDING;
        let (parts, body) = request.into_parts();
        let under_way = UnderWay::begin(&self.connection);
        let reply = Reply { stream, under_way, with_body: parts.method != Method::HEAD };
        // Streams that the client has reset take no place in HTTP/2, but their queries are under way.
        if is_busy {
            return reply.fail(&self.thread, StatusCode::SERVICE_UNAVAILABLE);
        }
        match respond::query(&parts, &self.service) {
            Ok(Query::InTarget(message)) => reply.ask(&self.thread, message),
            Ok(Query::InBody) => self.read(context, body, reply),
            Err(status) => reply.fail(&self.thread, status),
        }
    }

    /// Reads a body, most often at once.
    fn read(&self, context: &mut Context<'_>, body: RecvStream, reply: Reply) {
        let account = self.thread.account(&self.connection);
        let mut body = PartialBody { body, message: Vec::new(), account };
        match body.poll(context) {
            Poll::Ready(Ok(message)) => reply.ask(&self.thread, message),
            Poll::Ready(Err(status)) => reply.fail(&self.thread, status),
            Poll::Pending => {
                spawn_local(read_late(self.thread.clone(), body, reply));
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
                State::Open(http) => match ready!(http.poll_accept(context)) {
                    Some(Ok((request, stream))) => self.take(context, request, stream),
                    Some(Err(error)) => return Poll::Ready(Err(error)),
                    None => return Poll::Ready(Ok(())),
                },
            }
        }
    }
}

impl Reply {
    /// True if the request came on this connection.
    pub(crate) fn is_of(&self, connection: &Rc<HttpsConnection>) -> bool {
        Rc::ptr_eq(self.under_way.connection(), connection)
    }

    /// Hands the query over. The reply waits for the answer among the requests of the thread.
    fn ask<Q: QuerySink>(self, thread: &Rc<HttpsThread<Q>>, message: Vec<u8>) {
        let message = match respond::checked(message) {
            Ok(message) => message,
            Err(status) => return self.fail(thread, status),
        };
        let client = Client { stream: thread.context.next_token(), ..self.under_way.connection().client };
        if let Err(way) = thread.requests.enter(client.stream, Way::Stream(self)) {
            thread.context.count(crate::Counter::QuestionsRefused);
            if let Way::Stream(reply) = way {
                reply.fail(thread, StatusCode::SERVICE_UNAVAILABLE);
            }
        } else if !thread.context.post(&client, &message) {
            spawn_local(ask_again(thread.clone(), client, message));
        }
    }

    /// Responds with an answer. Returns false if the client has reset the stream.
    pub(crate) fn answer<Q: QuerySink>(self, thread: &HttpsThread<Q>, answer: QueuedMessage) -> bool {
        let account = thread.account(self.under_way.connection());
        let response = response::success(answer, account, self.with_body);
        self.send(thread, response.unwrap_or_else(response::failure))
    }

    /// Responds with a status.
    pub(crate) fn fail<Q: QuerySink>(self, thread: &HttpsThread<Q>, status: StatusCode) {
        self.send(thread, response::failure(status));
    }

    /// Hands the response to HTTP/2, which keeps it until the client's windows are open. The account bounds what is kept.
    fn send<Q: QuerySink>(mut self, thread: &HttpsThread<Q>, response: Response<Bytes>) -> bool {
        let (parts, body) = response.into_parts();
        let status = parts.status;
        let is_whole = body.is_empty();
        let sent = self.stream.send_response(Response::from_parts(parts, ()), is_whole);
        let is_sent = sent.is_ok_and(|mut stream| is_whole || stream.send_data(body, true).is_ok());
        if is_sent {
            thread.context.count(response::counter(status));
        }
        is_sent
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
            let taken = respond::extend(&mut self.message, &octets, &mut self.account);
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
async fn read_late<Q: QuerySink>(thread: Rc<HttpsThread<Q>>, mut body: PartialBody, reply: Reply) {
    let patience = thread.context.shared.admission.timeouts().idle;
    let read = tokio::time::timeout(patience, poll_fn(|context| body.poll(context))).await;
    match read.unwrap_or(Err(StatusCode::REQUEST_TIMEOUT)) {
        Ok(message) => reply.ask(&thread, message),
        Err(status) => reply.fail(&thread, status),
    }
}

/// Hands over a query that found no room.
async fn ask_again<Q: QuerySink>(thread: Rc<HttpsThread<Q>>, client: Client, message: Vec<u8>) {
    if let Err(reason) = requests::post_again(&thread.context, &client, &message).await
        && let Some(Way::Stream(reply)) = thread.requests.take(client.stream)
    {
        reply.fail(&thread, respond::status_of(reason));
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
