//! The way from other threads to a worker: questions from client streams and from workers that received a name they
//! do not own, orders (a reload, a look into the cache), and the end.
//!
//! Everything is bounded and nothing waits: a full mailbox refuses, and counts what it refused. A worker that sleeps
//! is woken through an eventfd, one that is awake costs no system call: it says which by an atomic flag.
//! The way back to the streams is [`StreamSink`].

use crate::limits::{INLINE, LETTERS, ORDERS};
use crate::socket::syscalls::Bell;
use crossbeam_queue::ArrayQueue;
use engine::{Client, Instant};
use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::Duration;

/// What a worker's machine shall do between two batches.
pub type Order<M> = Box<dyn FnOnce(&mut M, Instant) + Send>;

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
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the worker's mailbox is full")
    }
}

impl std::error::Error for Full {}

/// A client's message on its way to the worker that owns the name.
pub struct Letter {
    /// Who asked.
    pub client: Client,
    body: Body,
}

#[expect(clippy::large_enum_variant, reason = "inline is the rule, and a queue slot has its size anyway")]
enum Body {
    Inline {
        length: u16,
        octets: [u8; INLINE],
    },
    /// Rare (a question with an unusually long OPT record), so the allocation does not count.
    Boxed(Box<[u8]>),
}

impl Letter {
    /// A letter with a copy of `message`.
    pub fn new(client: &Client, message: &[u8]) -> Letter {
        let body = if message.len() <= INLINE {
            let mut octets = [0; INLINE];
            octets[..message.len()].copy_from_slice(message);
            Body::Inline { length: message.len() as u16, octets }
        } else {
            Body::Boxed(message.into())
        };
        Letter { client: *client, body }
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
    letters: ArrayQueue<Letter>,
    orders: ArrayQueue<Order<M>>,
    bell: Bell,
    /// Whether the worker will look into the mailbox before it sleeps.
    awake: AtomicBool,
    /// 0: keep running. Else one more than the grace in nanoseconds.
    stop: AtomicU64,
    ended: AtomicBool,
    refused_letters: AtomicU64,
}

impl<M> Mailbox<M> {
    pub(crate) fn new() -> io::Result<Mailbox<M>> {
        Ok(Mailbox {
            letters: ArrayQueue::new(LETTERS),
            orders: ArrayQueue::new(ORDERS),
            bell: Bell::new()?,
            awake: AtomicBool::new(true),
            stop: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            refused_letters: AtomicU64::new(0),
        })
    }

    /// Posts a client's message.
    pub fn post(&self, client: &Client, message: &[u8]) -> Result<(), Full> {
        // Looked at first: a flood must not pay for copies that are thrown away.
        if self.letters.is_full() || self.letters.push(Letter::new(client, message)).is_err() {
            self.refused_letters.fetch_add(1, Ordering::Relaxed);
            return Err(Full);
        }
        self.wake()
    }

    /// Has the worker call `order` with its machine, soon.
    pub fn order(&self, order: impl FnOnce(&mut M, Instant) + Send + 'static) -> Result<(), Full> {
        self.orders.push(Box::new(order)).map_err(|_| Full)?;
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
    pub fn refused_letters(&self) -> u64 {
        self.refused_letters.load(Ordering::Relaxed)
    }

    /// Wakes the worker if it may be asleep. The fence stands between the push before and the look at `awake`; the
    /// worker's [`Mailbox::doze`] has its counterpart, so that one of the two sees the other.
    fn wake(&self) -> Result<(), Full> {
        fence(Ordering::SeqCst);
        if self.ended.load(Ordering::SeqCst) {
            self.discard();
            return Err(Full);
        }
        if !self.awake.load(Ordering::SeqCst) && !self.awake.swap(true, Ordering::SeqCst) {
            self.bell.ring();
        }
        Ok(())
    }

    pub(crate) fn take_letter(&self) -> Option<Letter> {
        self.letters.pop()
    }

    pub(crate) fn take_order(&self) -> Option<Order<M>> {
        self.orders.pop()
    }

    /// The grace, once the worker is to stop.
    pub(crate) fn stopping(&self) -> Option<Duration> {
        self.stop.load(Ordering::SeqCst).checked_sub(1).map(Duration::from_nanos)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.letters.is_empty() && self.orders.is_empty()
    }

    /// The worker is about to sleep. False: something has come, it must not. `stop_known`: it knows that it is to
    /// stop, so that is no reason to stay awake.
    pub(crate) fn doze(&self, stop_known: bool) -> bool {
        self.awake.store(false, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let quiet = self.is_empty() && (stop_known || self.stopping().is_none());
        if !quiet {
            self.rise();
        }
        quiet
    }

    /// The worker is awake and will look into the mailbox before it sleeps again.
    pub(crate) fn rise(&self) {
        self.awake.store(true, Ordering::SeqCst);
    }

    /// Wakes the worker for something that is not in the mailbox, whether it is about to sleep or not.
    pub(crate) fn ring(&self) {
        self.bell.ring();
    }

    /// The bell was seen ringing.
    pub(crate) fn hush(&self) {
        self.bell.hush();
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.bell.descriptor()
    }

    /// The worker has ended: what still waits is dropped (whoever waits for an order's result learns of it by the
    /// drop), and nothing more is taken.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.discard();
    }

    fn discard(&self) {
        while self.letters.pop().is_some() {
            self.refused_letters.fetch_add(1, Ordering::Relaxed);
        }
        while self.orders.pop().is_some() {}
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
        for length in [0, 1, INLINE, INLINE + 1, 65_535] {
            let message: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let letter = Letter::new(&client(), &message);
            assert_eq!(letter.message(), message);
            assert_eq!(matches!(letter.body, Body::Inline { .. }), length <= INLINE);
        }
    }

    #[test]
    fn a_full_mailbox_refuses_and_counts() {
        let mailbox = Mailbox::<()>::new().unwrap();
        for _ in 0..LETTERS {
            mailbox.post(&client(), b"question").unwrap();
        }
        assert_eq!(mailbox.post(&client(), b"question"), Err(Full));
        assert_eq!(mailbox.refused_letters(), 1);
        for _ in 0..ORDERS {
            mailbox.order(|_, _| ()).unwrap();
        }
        assert_eq!(mailbox.order(|_, _| ()), Err(Full));
    }

    #[test]
    fn a_worker_does_not_doze_over_unread_mail() {
        let mailbox = Mailbox::<()>::new().unwrap();
        assert!(mailbox.doze(false));
        mailbox.rise();
        mailbox.post(&client(), b"question").unwrap();
        assert!(!mailbox.doze(false));
        mailbox.take_letter().unwrap();
        assert!(mailbox.doze(false));
        mailbox.rise();
        mailbox.stop(Duration::ZERO);
        assert_eq!(mailbox.stopping(), Some(Duration::ZERO));
        assert!(!mailbox.doze(false));
        assert!(mailbox.doze(true));
    }

    #[test]
    fn an_ended_mailbox_drops_orders_so_that_their_senders_learn_of_it() {
        let mailbox = Mailbox::<()>::new().unwrap();
        let (before, waits_before) = std::sync::mpsc::channel::<()>();
        mailbox.order(move |_, _| before.send(()).unwrap()).unwrap();
        mailbox.end();
        assert!(waits_before.recv().is_err());
        let (after, waits_after) = std::sync::mpsc::channel::<()>();
        assert_eq!(mailbox.order(move |_, _| after.send(()).unwrap()), Err(Full));
        assert!(waits_after.recv().is_err());
    }

    #[test]
    fn letters_that_meet_the_end_of_the_worker_are_counted() {
        let mailbox = Mailbox::<()>::new().unwrap();
        mailbox.post(&client(), b"question").unwrap();
        mailbox.end();
        assert_eq!(mailbox.refused_letters(), 1);
        assert_eq!(mailbox.post(&client(), b"question"), Err(Full));
        assert_eq!(mailbox.refused_letters(), 2);
    }

    #[test]
    fn only_a_sleeping_worker_is_rung_for() {
        let mailbox = Mailbox::<()>::new().unwrap();
        let mut poll = crate::socket::syscalls::Poll::new(1).unwrap();
        poll.registry().unwrap().add(mailbox.descriptor(), libc::EPOLLIN, 7).unwrap();
        mailbox.post(&client(), b"question").unwrap();
        poll.wait(0);
        assert_eq!(poll.ready(), 0);
        mailbox.take_letter().unwrap();
        assert!(mailbox.doze(false));
        mailbox.post(&client(), b"question").unwrap();
        poll.wait(0);
        assert_eq!(poll.ready(), 1);
        assert_eq!(poll.event(0).0, 7);
        mailbox.hush();
        mailbox.post(&client(), b"question").unwrap();
        poll.wait(0);
        assert_eq!(poll.ready(), 0);
    }
}
