//! The requests of a stream thread that wait for answers, and the ways of the answers: to the task of a request over HTTP/1.1, or into
//! the stream of one over HTTP/2.

use crate::QuerySink;
use crate::counters::Counter;
use crate::https::connection::{HttpsConnection, UnderWay};
use crate::https::request;
use crate::https::response;
use crate::requests::{self, Requests, ToTask};
use crate::thread_context::ThreadContext;
use datapath::QueuedMessage;
use engine::Client;
use h2::server::SendResponse;
use http::{Response, StatusCode};
use hyper::body::Bytes;
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::spawn_local;

/// The requests of one stream thread that wait for answers.
pub(crate) struct Answers<Q: QuerySink> {
    pub(crate) context: Rc<ThreadContext<Q>>,
    pub(crate) requests: Requests<Way>,
    /// The connections that had too many unread octets after a response.
    unread: RefCell<HashSet<u64>>,
}

/// Destination of an answer, by the version of HTTP of its request.
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

/// The response side of a request over HTTP/2.
pub(crate) struct Reply {
    pub(crate) stream: SendResponse<Bytes>,
    pub(crate) under_way: UnderWay,
    /// False for HEAD.
    pub(crate) with_body: bool,
}

/// A request over HTTP/2 with its answer out of the packet cache.
pub(crate) struct AnsweredReply {
    reply: Reply,
    answer: Vec<u8>,
}

impl AnsweredReply {
    /// Responds with the answer.
    pub(crate) fn send<Q: QuerySink>(self, answers: &Answers<Q>) {
        self.reply.answer(answers, self.answer);
    }
}

impl<Q: QuerySink> Answers<Q> {
    pub(crate) fn new(context: Rc<ThreadContext<Q>>) -> Answers<Q> {
        Answers { context, requests: Requests::default(), unread: RefCell::default() }
    }

    /// Hands an answer, or the news that there is none, to its request. Returns false if the request waits no more.
    pub(crate) fn deliver(&self, answer: QueuedMessage) -> bool {
        match self.requests.take(answer.client.stream) {
            Some(Way::Task(task)) => task.send(answer).is_ok(),
            Some(Way::Stream(reply)) if !answer.is_answer() => {
                reply.reset();
                true
            }
            Some(Way::Stream(reply)) => reply.answer(self, answer),
            None => false,
        }
    }

    /// Fails a request whose answer is lost. Over HTTP/1.1 its task notices that no answer comes.
    pub(crate) fn lose(&self, token: u64) {
        if let Some(Way::Stream(reply)) = self.requests.take(token) {
            reply.fail(self, StatusCode::SERVICE_UNAVAILABLE);
        }
    }

    /// Takes the tokens of the connections that had too many unread octets after a response.
    pub(crate) fn take_unread(&self) -> HashSet<u64> {
        self.unread.take()
    }

    /// Gives up the requests that have waited for longer than `answer_wait`.
    pub(crate) fn sweep(&self, now: Instant, answer_wait: Duration) {
        for way in self.requests.take_overdue(now, answer_wait) {
            if let Way::Stream(reply) = way {
                reply.fail(self, StatusCode::GATEWAY_TIMEOUT);
            }
        }
    }

    /// Frees the slots of a connection that has ended. A request over HTTP/1.1 has freed its slot with its task.
    pub(crate) fn remove(&self, connection: &Rc<HttpsConnection>) {
        if connection.requests() > 0 {
            let is_here = |way: &Way| matches!(way, Way::Stream(reply) if reply.is_of(connection));
            self.requests.remove_if(is_here);
        }
    }
}

impl Reply {
    /// True if the request came on this connection.
    fn is_of(&self, connection: &Rc<HttpsConnection>) -> bool {
        Rc::ptr_eq(self.under_way.connection(), connection)
    }

    /// Hands the query over, and the reply then waits for the answer among the requests of the thread. If the packet cache has the answer,
    /// it is returned.
    #[must_use]
    pub(crate) fn ask<Q: QuerySink>(
        self,
        answers: &Rc<Answers<Q>>,
        message: Vec<u8>,
    ) -> Option<AnsweredReply> {
        let message = match request::checked(message) {
            Ok(message) => message,
            Err(status) => {
                self.fail(answers, status);
                return None;
            }
        };
        let client = &self.under_way.connection().client;
        if let Some(answer) = answers.context.answer(client, &message, <[u8]>::to_vec) {
            return Some(AnsweredReply { reply: self, answer });
        }
        let client = Client { stream: answers.context.next_token(), ..*client };
        if let Err(way) = answers.requests.enter(client.stream, Way::Stream(self)) {
            answers.context.count(Counter::QuestionsRefused);
            if let Way::Stream(reply) = way {
                reply.fail(answers, StatusCode::SERVICE_UNAVAILABLE);
            }
        } else if !answers.context.post(&client, &message) {
            spawn_local(ask_again(answers.clone(), client, message));
        }
        None
    }

    /// Responds with an answer. Returns false if the client has reset the stream.
    fn answer<Q: QuerySink>(self, answers: &Answers<Q>, answer: impl AsRef<[u8]> + Send + 'static) -> bool {
        let connection = self.under_way.connection();
        let response = response::success(answer, connection.buffered.clone(), self.with_body);
        if connection.has_too_many_unread() {
            answers.unread.borrow_mut().insert(connection.client.stream);
        }
        self.send(answers, response.unwrap_or_else(response::failure))
    }

    /// Responds with a status.
    pub(crate) fn fail<Q: QuerySink>(self, answers: &Answers<Q>, status: StatusCode) {
        self.send(answers, response::failure(status));
    }

    /// Ends the stream without a response: the server drops the query. CANCEL says that it is no longer needed (RFC 9113 section 7), and
    /// not that another try may do better, as REFUSED_STREAM would.
    fn reset(mut self) {
        self.stream.send_reset(h2::Reason::CANCEL);
    }

    /// Hands the response to HTTP/2, which keeps it until the client's windows are open. The account bounds what is kept.
    fn send<Q: QuerySink>(mut self, answers: &Answers<Q>, response: Response<Bytes>) -> bool {
        let (parts, body) = response.into_parts();
        let status = parts.status;
        let is_whole = body.is_empty();
        let sent = self.stream.send_response(Response::from_parts(parts, ()), is_whole);
        let is_sent = sent.is_ok_and(|mut stream| is_whole || stream.send_data(body, true).is_ok());
        if is_sent {
            answers.context.count(response::counter(status));
        }
        is_sent
    }
}

/// Hands over a query that found no room.
async fn ask_again<Q: QuerySink>(answers: Rc<Answers<Q>>, client: Client, message: Vec<u8>) {
    if let Err(reason) = requests::post_again(&answers.context, &client, &message).await
        && let Some(Way::Stream(reply)) = answers.requests.take(client.stream)
    {
        reply.fail(&answers, request::status_of(reason));
    }
}
