//! The request slots of a thread: the requests over HTTPS or QUIC that wait for their answers, by token. Message IDs are often 0 (RFC
//! 8484 section 4.1), or always (RFC 9250 section 4.2.1), so only the token tells the requests of a connection apart. To the engine each
//! request is a connection of its own.

use crate::QuerySink;
use crate::counters::Counter;
use crate::limits;
use crate::thread_context::ThreadContext;
use datapath::QueuedMessage;
use engine::Client;
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The requests of one thread that wait for their answers, each with `A`, the way of the answer.
pub(crate) struct Requests<A>(RefCell<HashMap<u64, Waiting<A>>>);

/// The way of an answer to the task of its request.
pub(crate) type ToTask = oneshot::Sender<QueuedMessage>;

struct Waiting<A> {
    since: Instant,
    answer: A,
}

/// A request's slot. Dropping it frees the slot; an answer that comes later is undeliverable.
struct RequestSlot<'r, A> {
    requests: &'r Requests<A>,
    token: u64,
}

/// The reason why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The server had no room for the query.
    Busy,
    /// The answer did not come in time.
    Late,
}

/// Answers a query out of the packet cache, or hands it to the server and waits for its answer. `client.stream` is the token of the request. Dropping the future frees the slot.
/// Returns none if the server drops the query, as a response policy may say.
///
/// # Errors
///
/// `NoAnswer::Busy`: as many requests wait as may, or the worker's mailbox has no room for a while. `NoAnswer::Late`: the answer did
/// not come in time, and the sweep has removed the request.
pub(crate) async fn ask<Q: QuerySink, A: From<ToTask>>(
    thread: &ThreadContext<Q>,
    requests: &Requests<A>,
    client: &Client,
    message: &[u8],
) -> Result<Option<QueuedMessage>, NoAnswer> {
    if let Some(answer) = thread.answer(client, message, |response| QueuedMessage::new(client, response)) {
        return Ok(Some(answer));
    }
    let (sender, answer) = oneshot::channel();
    if requests.enter(client.stream, sender.into()).is_err() {
        thread.count(Counter::QuestionsRefused);
        return Err(NoAnswer::Busy);
    }
    let _slot = RequestSlot { requests, token: client.stream };
    if !thread.post(client, message) {
        post_again(thread, client, message).await?;
    }
    let answer = answer.await.map_err(|_| NoAnswer::Late)?;
    Ok(answer.is_answer().then_some(answer))
}

/// Hands a query to the server that had no room for it before.
///
/// # Errors
///
/// `NoAnswer::Busy`: the mailbox has no room at any of `limits::RETRIES` attempts.
pub(crate) async fn post_again<Q: QuerySink>(
    thread: &ThreadContext<Q>,
    client: &Client,
    message: &[u8],
) -> Result<(), NoAnswer> {
    for _ in 0..limits::RETRIES {
        tokio::time::sleep(limits::RETRY).await;
        if thread.post(client, message) {
            return Ok(());
        }
    }
    thread.count(Counter::QuestionsRefused);
    Err(NoAnswer::Busy)
}

impl<A> Requests<A> {
    /// Takes a slot.
    ///
    /// # Errors
    ///
    /// `answer` itself: all [`limits::REQUESTS`] slots are taken.
    pub(crate) fn enter(&self, token: u64, answer: A) -> Result<(), A> {
        let mut waiting = self.0.borrow_mut();
        if waiting.len() >= limits::REQUESTS {
            return Err(answer);
        }
        waiting.insert(token, Waiting { since: Instant::now(), answer });
        Ok(())
    }

    /// Frees the slot of a request. None if the request waits no more.
    pub(crate) fn take(&self, token: u64) -> Option<A> {
        self.0.borrow_mut().remove(&token).map(|waiting| waiting.answer)
    }

    /// Frees the slots of the requests that have waited for longer than `answer_wait`.
    pub(crate) fn take_overdue(&self, now: Instant, answer_wait: Duration) -> Vec<A> {
        let mut waiting = self.0.borrow_mut();
        let overdue =
            waiting.extract_if(|_, waiting| now.saturating_duration_since(waiting.since) >= answer_wait);
        overdue.map(|(_, waiting)| waiting.answer).collect()
    }

    /// Frees the slots of some requests.
    pub(crate) fn remove_if(&self, is_done: impl Fn(&A) -> bool) {
        self.0.borrow_mut().retain(|_, waiting| !is_done(&waiting.answer));
    }
}

impl Requests<ToTask> {
    /// Hands an answer, or the news that there is none, to its request. Returns false if the request waits no more.
    pub(crate) fn deliver(&self, answer: QueuedMessage) -> bool {
        self.take(answer.client.stream).is_some_and(|waiting| waiting.send(answer).is_ok())
    }
}

impl<A> Default for Requests<A> {
    fn default() -> Requests<A> {
        Requests(RefCell::default())
    }
}

impl<A> Drop for RequestSlot<'_, A> {
    fn drop(&mut self) {
        self.requests.0.borrow_mut().remove(&self.token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Client;

    fn answer_to(token: u64) -> QueuedMessage {
        let client = Client { stream: token, ..Client::udp("192.0.2.1:4000".parse().unwrap()) };
        QueuedMessage::new(&client, b"answer")
    }

    #[test]
    fn a_dropped_or_overdue_request_frees_its_slot_and_its_answer_is_undeliverable() {
        let requests = Requests::<ToTask>::default();
        let ways = [1, 2].map(|token| {
            let (sender, answer) = oneshot::channel();
            assert!(requests.enter(token, sender).is_ok());
            answer
        });
        drop(RequestSlot { requests: &requests, token: 1 });
        assert!(requests.take_overdue(Instant::now(), Duration::from_secs(60)).is_empty());
        assert_eq!(requests.take_overdue(Instant::now(), Duration::ZERO).len(), 1);
        assert!(ways.into_iter().all(|mut answer| answer.try_recv().is_err()));
        assert!(!requests.deliver(answer_to(1)) && !requests.deliver(answer_to(2)));
        assert!(requests.0.borrow().is_empty());
    }

    #[test]
    fn the_slots_have_an_end_and_an_answer_reaches_its_own_request() {
        let requests = Requests::<ToTask>::default();
        let enter = |token: u64| {
            let (sender, answer) = oneshot::channel();
            requests.enter(token, sender).ok().map(|()| answer)
        };
        let mut answers: Vec<_> = (0..limits::REQUESTS as u64).map(|token| enter(token).unwrap()).collect();
        assert!(enter(1 << 40).is_none());
        assert!(requests.deliver(answer_to(7)));
        assert!(answers[7].try_recv().is_ok());
        assert!(answers[8].try_recv().is_err());
        assert!(!requests.deliver(answer_to(7)));
        assert!(enter(1 << 40).is_some());
    }
}
