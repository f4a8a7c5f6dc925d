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
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The requests of one thread that wait for their answers.
#[derive(Default)]
pub(crate) struct Requests(RefCell<HashMap<u64, Waiting>>);

struct Waiting {
    since: Instant,
    answer: oneshot::Sender<QueuedMessage>,
}

/// A request's slot. Dropping it frees the slot; an answer that comes later is undeliverable.
pub(crate) struct RequestSlot {
    requests: Rc<Requests>,
    token: u64,
    answer: oneshot::Receiver<QueuedMessage>,
}

/// The reason why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The server had no room for the query.
    Busy,
    /// The answer did not come in time.
    Late,
}

/// Hands a query to the server and waits for its answer. `client.stream` is the token of the request. Dropping the future frees the slot.
pub(crate) async fn ask<Q: QuerySink>(
    thread: &ThreadContext<Q>,
    requests: &Rc<Requests>,
    client: &Client,
    message: &[u8],
) -> Result<QueuedMessage, NoAnswer> {
    let Some(mut slot) = requests.enter(client.stream) else {
        thread.count(Counter::QuestionsRefused);
        return Err(NoAnswer::Busy);
    };
    let mut refusals = 0;
    while !thread.post(client, message) {
        if refusals == limits::RETRIES {
            thread.count(Counter::QuestionsRefused);
            return Err(NoAnswer::Busy);
        }
        refusals += 1;
        tokio::time::sleep(limits::RETRY).await;
    }
    slot.answer().await.ok_or(NoAnswer::Late)
}

impl Requests {
    /// Takes a slot. Returns none if [`limits::REQUESTS`] are taken.
    pub(crate) fn enter(self: &Rc<Requests>, token: u64) -> Option<RequestSlot> {
        let mut waiting = self.0.borrow_mut();
        if waiting.len() >= limits::REQUESTS {
            return None;
        }
        let (sender, answer) = oneshot::channel();
        waiting.insert(token, Waiting { since: Instant::now(), answer: sender });
        Some(RequestSlot { requests: self.clone(), token, answer })
    }

    /// Hands an answer to its request. Returns false if the request waits no more.
    pub(crate) fn deliver(&self, answer: QueuedMessage) -> bool {
        let waiting = self.0.borrow_mut().remove(&answer.client.stream);
        waiting.is_some_and(|waiting| waiting.answer.send(answer).is_ok())
    }

    /// Gives up the requests that have waited for longer than `answer_wait`.
    pub(crate) fn sweep(&self, now: Instant, answer_wait: Duration) {
        self.0.borrow_mut().retain(|_, waiting| now.saturating_duration_since(waiting.since) < answer_wait);
    }
}

impl RequestSlot {
    /// Waits for the answer. Returns none if it did not come in time.
    pub(crate) async fn answer(&mut self) -> Option<QueuedMessage> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for RequestSlot {
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
        let requests = Rc::new(Requests::default());
        let dropped = requests.enter(1).unwrap();
        let mut overdue = requests.enter(2).unwrap();
        drop(dropped);
        requests.sweep(Instant::now(), Duration::ZERO);
        assert!(overdue.answer.try_recv().is_err());
        assert!(!requests.deliver(answer_to(1)) && !requests.deliver(answer_to(2)));
        assert!(requests.0.borrow().is_empty());
    }

    #[test]
    fn the_slots_have_an_end_and_an_answer_reaches_its_own_request() {
        let requests = Rc::new(Requests::default());
        let mut slots: Vec<_> =
            (0..limits::REQUESTS as u64).map(|token| requests.enter(token).unwrap()).collect();
        assert!(requests.enter(1 << 40).is_none());
        assert!(requests.deliver(answer_to(7)));
        assert!(slots[7].answer.try_recv().is_ok());
        assert!(slots[8].answer.try_recv().is_err());
        assert!(!requests.deliver(answer_to(7)));
        assert!(requests.enter(1 << 40).is_some());
    }
}
