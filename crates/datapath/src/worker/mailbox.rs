//! The way from other threads to a worker: questions from client streams and from workers that received a name they
//! do not own, orders (a reload, a look into the cache), and the end.
//!
//! Everything is bounded and nothing waits: a full mailbox refuses, and counts what it refused. A worker that sleeps
//! is woken through an eventfd, one that is awake costs no system call: it says which by an atomic flag.
//! The way back to the streams is [`StreamSink`].

use crate::limits::{INLINE_OCTETS, QUEUED_MESSAGES, QUEUED_TASKS};
use crate::socket::syscalls::EventFd;
use crossbeam_queue::ArrayQueue;
use engine::{Client, Instant};
use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::Duration;

/// What a worker's machine shall do between two batches.
pub type Task<M> = Box<dyn FnOnce(&mut M, Instant) + Send>;

/// Takes the answers for clients whose carrier is TCP, and brings them to their connection.
///
/// A worker calls it: it must not wait.
pub trait StreamSink: Send + Sync + 'static {
    /// Hands over an answer. False: the connection is gone, or it takes nothing more.
    fn deliver(&self, to: &Client, message: &[u8]) -> bool;
}

impl<S: StreamSink> StreamSink for Arc<S> {
    fn deliver(&self, to: &Client, message: &[u8]) -> bool {
        (**self).deliver(to, message)
    }
}

/// A sink for a datapath without client streams: refuses everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoStreams;

impl StreamSink for NoStreams {
    fn deliver(&self, _: &Client, _: &[u8]) -> bool {
        false
    }
}

/// The mailbox has no room, or its worker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailboxFull;

impl fmt::Display for MailboxFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the worker's mailbox is full")
    }
}

impl std::error::Error for MailboxFull {}

/// A client's message on its way to the worker that owns the name.
pub struct QueuedMessage {
    /// Who asked.
    pub client: Client,
    body: Body,
}

#[expect(clippy::large_enum_variant, reason = "inline is the rule, and a queue slot has its size anyway")]
enum Body {
    Inline {
        length: u16,
        octets: [u8; INLINE_OCTETS],
    },
    /// Rare (a question with an unusually long OPT record), so the allocation does not count.
    Boxed(Box<[u8]>),
}

impl QueuedMessage {
    /// A letter with a copy of `message`.
    pub fn new(client: &Client, message: &[u8]) -> QueuedMessage {
        let body = if message.len() <= INLINE_OCTETS {
            let mut octets = [0; INLINE_OCTETS];
            octets[..message.len()].copy_from_slice(message);
            Body::Inline { length: message.len() as u16, octets }
        } else {
            Body::Boxed(message.into())
        };
        QueuedMessage { client: *client, body }
    }

    /// The message.
    pub fn message(&self) -> &[u8] {
        match &self.body {
            Body::Inline { length, octets } => &octets[..usize::from(*length)],
            Body::Boxed(octets) => octets,
        }
    }
}

/// The mailbox of one worker.
pub struct Mailbox<M> {
    messages: ArrayQueue<QueuedMessage>,
    tasks: ArrayQueue<Task<M>>,
    wakeup: EventFd,
    /// Whether the worker will look into the mailbox before it sleeps.
    awake: AtomicBool,
    /// 0: keep running. Else one more than the grace in nanoseconds.
    stop: AtomicU64,
    ended: AtomicBool,
    refused_messages: AtomicU64,
}

impl<M> Mailbox<M> {
    pub(crate) fn new() -> io::Result<Mailbox<M>> {
        Ok(Mailbox {
            messages: ArrayQueue::new(QUEUED_MESSAGES),
            tasks: ArrayQueue::new(QUEUED_TASKS),
            wakeup: EventFd::new()?,
            awake: AtomicBool::new(true),
            stop: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            refused_messages: AtomicU64::new(0),
        })
    }

    /// Posts a client's message.
    pub fn post(&self, client: &Client, message: &[u8]) -> Result<(), MailboxFull> {
        // Looked at first: a flood must not pay for copies that are thrown away.
        if self.messages.is_full() || self.messages.push(QueuedMessage::new(client, message)).is_err() {
            self.refused_messages.fetch_add(1, Ordering::Relaxed);
            return Err(MailboxFull);
        }
        self.wake()
    }

    /// Has the worker call `submit` with its machine, soon.
    pub fn submit(&self, submit: impl FnOnce(&mut M, Instant) + Send + 'static) -> Result<(), MailboxFull> {
        self.tasks.push(Box::new(submit)).map_err(|_| MailboxFull)?;
        self.wake()
    }

    /// Has the worker stop: it takes no more datagrams from clients, finishes what it has, and ends when nothing is
    /// pending and all other workers have been stopped too and have no more letters for it, or `grace` has passed.
    pub fn stop(&self, grace: Duration) {
        let grace_ns = grace.as_nanos().min(u128::from(u64::MAX - 1)) as u64;
        self.stop.store(grace_ns + 1, Ordering::SeqCst);
        let _ = self.wake();
    }

    /// Letters that were refused because the mailbox was full, or lost because the worker ended.
    pub fn refused_messages(&self) -> u64 {
        self.refused_messages.load(Ordering::Relaxed)
    }

    /// Wakes the worker if it may be asleep. The fence stands between the push before and the look at `awake`; the
    /// worker's [`Mailbox::prepare_to_sleep`] has its counterpart, so that one of the two sees the other.
    fn wake(&self) -> Result<(), MailboxFull> {
        fence(Ordering::SeqCst);
        if self.ended.load(Ordering::SeqCst) {
            self.discard();
            return Err(MailboxFull);
        }
        if !self.awake.load(Ordering::SeqCst) && !self.awake.swap(true, Ordering::SeqCst) {
            self.wakeup.notify();
        }
        Ok(())
    }

    pub(crate) fn take_message(&self) -> Option<QueuedMessage> {
        self.messages.pop()
    }

    pub(crate) fn take_task(&self) -> Option<Task<M>> {
        self.tasks.pop()
    }

    /// The grace, once the worker is to stop.
    pub(crate) fn stop_grace(&self) -> Option<Duration> {
        self.stop.load(Ordering::SeqCst).checked_sub(1).map(Duration::from_nanos)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.tasks.is_empty()
    }

    /// The worker is about to sleep. False: something has come, it must not. `knows_stop`: it knows that it is to
    /// stop, so that is no reason to stay awake.
    pub(crate) fn prepare_to_sleep(&self, knows_stop: bool) -> bool {
        self.awake.store(false, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let quiet = self.is_empty() && (knows_stop || self.stop_grace().is_none());
        if !quiet {
            self.mark_awake();
        }
        quiet
    }

    /// The worker is awake and will look into the mailbox before it sleeps again.
    pub(crate) fn mark_awake(&self) {
        self.awake.store(true, Ordering::SeqCst);
    }

    /// Wakes the worker for something that is not in the mailbox, whether it is about to sleep or not.
    pub(crate) fn wake_always(&self) {
        self.wakeup.notify();
    }

    /// The bell was seen ringing.
    pub(crate) fn clear_wakeup(&self) {
        self.wakeup.clear();
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.wakeup.descriptor()
    }

    /// The worker has ended: what still waits is dropped (whoever waits for an order's result learns of it by the
    /// drop), and nothing more is taken.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.discard();
    }

    fn discard(&self) {
        while self.messages.pop().is_some() {
            self.refused_messages.fetch_add(1, Ordering::Relaxed);
        }
        while self.tasks.pop().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> Client {
        Client::udp("192.0.2.1:5353".parse().unwrap())
    }

    #[test]
    fn a_letter_keeps_short_and_long_messages() {
        for length in [0, 1, INLINE_OCTETS, INLINE_OCTETS + 1, 65_535] {
            let message: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let letter = QueuedMessage::new(&client(), &message);
            assert_eq!(letter.message(), message);
            assert_eq!(matches!(letter.body, Body::Inline { .. }), length <= INLINE_OCTETS);
        }
    }

    #[test]
    fn a_full_mailbox_refuses_and_counts() {
        let mailbox = Mailbox::<()>::new().unwrap();
        for _ in 0..QUEUED_MESSAGES {
            mailbox.post(&client(), b"question").unwrap();
        }
        assert_eq!(mailbox.post(&client(), b"question"), Err(MailboxFull));
        assert_eq!(mailbox.refused_messages(), 1);
        for _ in 0..QUEUED_TASKS {
            mailbox.submit(|_, _| ()).unwrap();
        }
        assert_eq!(mailbox.submit(|_, _| ()), Err(MailboxFull));
    }

    #[test]
    fn a_worker_does_not_doze_over_unread_mail() {
        let mailbox = Mailbox::<()>::new().unwrap();
        assert!(mailbox.prepare_to_sleep(false));
        mailbox.mark_awake();
        mailbox.post(&client(), b"question").unwrap();
        assert!(!mailbox.prepare_to_sleep(false));
        mailbox.take_message().unwrap();
        assert!(mailbox.prepare_to_sleep(false));
        mailbox.mark_awake();
        mailbox.stop(Duration::ZERO);
        assert_eq!(mailbox.stop_grace(), Some(Duration::ZERO));
        assert!(!mailbox.prepare_to_sleep(false));
        assert!(mailbox.prepare_to_sleep(true));
    }

    #[test]
    fn an_ended_mailbox_drops_orders_so_that_their_senders_learn_of_it() {
        let mailbox = Mailbox::<()>::new().unwrap();
        let (before, waits_before) = std::sync::mpsc::channel::<()>();
        mailbox.submit(move |_, _| before.send(()).unwrap()).unwrap();
        mailbox.end();
        assert!(waits_before.recv().is_err());
        let (after, waits_after) = std::sync::mpsc::channel::<()>();
        assert_eq!(mailbox.submit(move |_, _| after.send(()).unwrap()), Err(MailboxFull));
        assert!(waits_after.recv().is_err());
    }

    #[test]
    fn letters_that_meet_the_end_of_the_worker_are_counted() {
        let mailbox = Mailbox::<()>::new().unwrap();
        mailbox.post(&client(), b"question").unwrap();
        mailbox.end();
        assert_eq!(mailbox.refused_messages(), 1);
        assert_eq!(mailbox.post(&client(), b"question"), Err(MailboxFull));
        assert_eq!(mailbox.refused_messages(), 2);
    }

    #[test]
    fn only_a_sleeping_worker_is_rung_for() {
        let mailbox = Mailbox::<()>::new().unwrap();
        let mut poll = crate::socket::syscalls::Epoll::new(1).unwrap();
        poll.registry().unwrap().add(mailbox.descriptor(), libc::EPOLLIN, 7).unwrap();
        mailbox.post(&client(), b"question").unwrap();
        poll.wait(0);
        assert_eq!(poll.ready(), 0);
        mailbox.take_message().unwrap();
        assert!(mailbox.prepare_to_sleep(false));
        mailbox.post(&client(), b"question").unwrap();
        poll.wait(0);
        assert_eq!(poll.ready(), 1);
        assert_eq!(poll.event(0).0, 7);
        mailbox.clear_wakeup();
        mailbox.post(&client(), b"question").unwrap();
        poll.wait(0);
        assert_eq!(poll.ready(), 0);
    }
}
