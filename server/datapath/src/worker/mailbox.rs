//! The mailbox of a worker: the way from other threads to it. It takes queries from client streams and from workers that do
//! not own the name, tasks (a reload, a look into the cache), and the request to stop.
//!
//! Everything is bounded and nothing blocks: a full mailbox refuses messages and counts them. No client network takes the
//! room of others (`message_queue.rs`). An eventfd wakes a worker that sleeps. A worker that is awake costs no system call:
//! an atomic flag says which is the case. The way back to the streams is [`StreamSink`].

use crate::limits::{QUEUED_MESSAGES, QUEUED_OCTETS, QUEUED_TASKS};
use crate::socket::syscalls::EventFd;
use crate::worker::message_queue::{MessageQueue, QueuedMessage};
use crossbeam_queue::ArrayQueue;
use engine::limits::JOBS;
use engine::{Client, Instant, VerificationId};
use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
use std::time::Duration;

/// A closure that a worker runs with its machine between two batches.
pub type Task<M> = Box<dyn FnOnce(&mut M, Instant) + Send>;

/// A sink for the answers to clients on TCP, which brings them to their connections.
///
/// Workers call it, so it must not block.
pub trait StreamSink: Send + Sync + 'static {
    /// Hands over an answer, or an empty message: the query gets no answer, and its place in the connection is free. Returns false if the
    /// connection is gone or takes no more answers. The thread of the connection may sleep until [`StreamSink::wake`].
    fn deliver(&self, to: &Client, message: &[u8]) -> bool;

    /// Wakes the threads that have answers. The worker calls it once, at the end of each turn: a wake-up costs more than an answer.
    fn wake(&self) {}
}

impl<S: StreamSink> StreamSink for Arc<S> {
    fn deliver(&self, to: &Client, message: &[u8]) -> bool {
        (**self).deliver(to, message)
    }

    fn wake(&self) {
        (**self).wake();
    }
}

/// A sink for a datapath without client streams. It refuses every answer.
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

/// No request about the listening sockets.
pub(crate) const NONE: u8 = 0;
/// The request to read the listening sockets.
pub(crate) const LISTEN: u8 = 1;
/// The request to stop reading the listening sockets.
pub(crate) const RELEASE: u8 = 2;

/// The mailbox of one worker.
pub struct Mailbox<M> {
    messages: MessageQueue,
    /// Outcomes of verifications. There are no more than a machine has verifications outside.
    verified: ArrayQueue<(VerificationId, bool)>,
    /// Number of these outcomes: nothing else is read of a mailbox that has none.
    outcomes: AtomicUsize,
    tasks: ArrayQueue<Task<M>>,
    /// Places for tasks that are neither taken nor reserved.
    places: AtomicUsize,
    wakeup: EventFd,
    /// True if the worker will check the mailbox before it sleeps.
    awake: AtomicBool,
    /// 0: keep running. Otherwise the grace period in nanoseconds, plus one.
    stop: AtomicU64,
    /// The request about the listening sockets that the worker has not carried out yet: [`LISTEN`], [`RELEASE`] or [`NONE`].
    listening: AtomicU8,
    ended: AtomicBool,
    refused_messages: AtomicU64,
}

impl<M> Mailbox<M> {
    /// An empty mailbox of a worker that is awake.
    ///
    /// # Errors
    ///
    /// The error of eventfd(2): the process may have no more open files.
    pub(crate) fn new() -> io::Result<Mailbox<M>> {
        Ok(Mailbox {
            messages: MessageQueue::new(QUEUED_MESSAGES, QUEUED_OCTETS),
            verified: ArrayQueue::new(JOBS),
            outcomes: AtomicUsize::new(0),
            tasks: ArrayQueue::new(QUEUED_TASKS),
            places: AtomicUsize::new(QUEUED_TASKS),
            wakeup: EventFd::new()?,
            awake: AtomicBool::new(true),
            stop: AtomicU64::new(0),
            listening: AtomicU8::new(NONE),
            ended: AtomicBool::new(false),
            refused_messages: AtomicU64::new(0),
        })
    }

    /// Posts a client's message, and wakes the worker.
    ///
    /// # Errors
    ///
    /// [`MailboxFull`]: as many messages or octets wait as the mailbox holds, or its worker has ended. The message is dropped.
    pub fn post(&self, client: &Client, message: &[u8]) -> Result<(), MailboxFull> {
        self.enqueue(client, message)?;
        self.wake()
    }

    /// Queues a client's message. The worker may sleep until [`Mailbox::wake_for_messages`].
    ///
    /// # Errors
    ///
    /// As [`Mailbox::post`]. Refused messages are counted.
    pub(crate) fn enqueue(&self, client: &Client, message: &[u8]) -> Result<(), MailboxFull> {
        if self.ended.load(Ordering::SeqCst) || !self.messages.put(client, message) {
            self.refused_messages.fetch_add(1, Ordering::Relaxed);
            return Err(MailboxFull);
        }
        Ok(())
    }

    /// Wakes the worker if it sleeps and messages wait. Messages for a worker that has ended are counted as refused.
    pub(crate) fn wake_for_messages(&self) {
        if !self.messages.is_empty() {
            let _ = self.wake();
        }
    }

    /// Makes the worker run `task` with its machine, soon.
    ///
    /// # Errors
    ///
    /// [`MailboxFull`]: as many tasks wait as the mailbox holds, or its worker has ended. The task is dropped.
    pub fn submit(&self, task: impl FnOnce(&mut M, Instant) + Send + 'static) -> Result<(), MailboxFull> {
        self.reserve()?.submit(task)
    }

    /// Reserves the place of a task, so that several workers get theirs, or none does.
    ///
    /// # Errors
    ///
    /// [`MailboxFull`]: all places of tasks are taken, or the worker has ended.
    pub fn reserve(&self) -> Result<TaskPlace<'_, M>, MailboxFull> {
        if self.ended.load(Ordering::SeqCst) {
            return Err(MailboxFull);
        }
        let taken =
            self.places.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |places| places.checked_sub(1));
        taken.map(|_| TaskPlace { mailbox: self, is_used: false }).map_err(|_| MailboxFull)
    }

    /// Posts the outcome of a verification. The worker may sleep until [`Mailbox::wake_for_outcomes`].
    pub(super) fn post_verified(&self, id: VerificationId, is_valid: bool) {
        // Counted first: the worker takes one only after it was counted.
        self.outcomes.fetch_add(1, Ordering::SeqCst);
        if self.verified.push((id, is_valid)).is_err() {
            self.outcomes.fetch_sub(1, Ordering::SeqCst);
            debug_assert!(false, "more outcomes than verifications");
        }
    }

    /// Wakes the worker if it sleeps and outcomes of verifications wait.
    pub(super) fn wake_for_outcomes(&self) {
        if self.outcomes.load(Ordering::SeqCst) != 0 {
            let _ = self.wake();
        }
    }

    /// Takes the outcome of a verification.
    #[inline]
    pub(crate) fn take_verified(&self) -> Option<(VerificationId, bool)> {
        if self.outcomes.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let outcome = self.verified.pop()?;
        self.outcomes.fetch_sub(1, Ordering::SeqCst);
        Some(outcome)
    }

    /// Stops the worker: it takes no more datagrams from clients, and finishes the queries that it has. It ends when nothing is
    /// pending and all other workers have been stopped too and have no more queries for it, or when `grace` has passed.
    pub fn stop(&self, grace: Duration) {
        let grace_ns = grace.as_nanos().min(u128::from(u64::MAX - 1)) as u64;
        self.stop.store(grace_ns + 1, Ordering::SeqCst);
        let _ = self.wake();
    }

    /// Makes the worker read its listening sockets, which another process has read until now.
    pub(crate) fn listen(&self) {
        self.listening.store(LISTEN, Ordering::SeqCst);
        let _ = self.wake();
    }

    /// Makes the worker stop reading its listening sockets, because another process is going to read them. It goes on answering the
    /// queries that it has, and those of streams.
    pub(crate) fn release_listeners(&self) {
        self.listening.store(RELEASE, Ordering::SeqCst);
        let _ = self.wake();
    }

    /// The request about the listening sockets, until [`Mailbox::end_request`]: [`LISTEN`], [`RELEASE`] or [`NONE`].
    pub(crate) fn request(&self) -> u8 {
        self.listening.load(Ordering::Acquire)
    }

    /// The worker has carried out this request. A newer one stays.
    pub(crate) fn end_request(&self, request: u8) {
        let _ = self.listening.compare_exchange(request, NONE, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// True if the worker has carried out every request about the listening sockets, or has ended.
    pub(crate) fn is_settled(&self) -> bool {
        self.listening.load(Ordering::SeqCst) == NONE || self.ended.load(Ordering::SeqCst)
    }

    /// Messages that were refused because the mailbox was full, or lost because the worker ended.
    pub fn refused_messages(&self) -> u64 {
        self.refused_messages.load(Ordering::Relaxed)
    }

    /// Wakes the worker if it may be asleep. The fence orders the caller's push before the load of `awake`. Its counterpart is in
    /// [`Mailbox::prepare_to_sleep`], so that one of the two threads sees the other's store.
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

    pub(crate) fn set_client_prefix(&self, length: u8) {
        self.messages.set_client_prefix(length);
    }

    pub(crate) fn take_message(&self) -> Option<QueuedMessage> {
        self.messages.take()
    }

    pub(crate) fn take_task(&self) -> Option<Task<M>> {
        let task = self.tasks.pop();
        if task.is_some() {
            self.places.fetch_add(1, Ordering::SeqCst);
        }
        task
    }

    /// The grace period if the worker must stop.
    pub(crate) fn stop_grace(&self) -> Option<Duration> {
        self.stop.load(Ordering::SeqCst).checked_sub(1).map(Duration::from_nanos)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.tasks.is_empty() && self.outcomes.load(Ordering::SeqCst) == 0
    }

    /// The worker is about to sleep. Returns false if something has come: it must then stay awake. `knows_stop`: the worker knows
    /// that it must stop, so the request to stop does not keep it awake.
    pub(crate) fn prepare_to_sleep(&self, knows_stop: bool) -> bool {
        self.awake.store(false, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let quiet = self.is_empty()
            && (knows_stop || self.stop_grace().is_none())
            && self.listening.load(Ordering::SeqCst) == NONE;
        if !quiet {
            self.mark_awake();
        }
        quiet
    }

    /// True if the worker sleeps and nobody has woken it.
    #[cfg(test)]
    pub(super) fn sleeps(&self) -> bool {
        !self.awake.load(Ordering::SeqCst)
    }

    /// The worker is awake, and will check the mailbox before it sleeps again.
    pub(crate) fn mark_awake(&self) {
        self.awake.store(true, Ordering::SeqCst);
    }

    /// Wakes the worker for an event outside the mailbox, even if it is only about to sleep.
    pub(crate) fn wake_always(&self) {
        self.wakeup.notify();
    }

    /// Clears the wake-up that the worker's poll reported.
    pub(crate) fn clear_wakeup(&self) {
        self.wakeup.clear();
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.wakeup.descriptor()
    }

    /// The worker has ended: drops all that waits, and refuses everything from now on. The drop of a task tells its sender that
    /// no result will come.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.discard();
    }

    fn discard(&self) {
        while self.messages.take().is_some() {
            self.refused_messages.fetch_add(1, Ordering::Relaxed);
        }
        while self.take_task().is_some() {}
        while self.take_verified().is_some() {}
    }
}

/// The place of a task in a mailbox.
pub struct TaskPlace<'m, M> {
    mailbox: &'m Mailbox<M>,
    is_used: bool,
}

impl<M> TaskPlace<'_, M> {
    /// Makes the worker run `task` with its machine, soon.
    ///
    /// # Errors
    ///
    /// [`MailboxFull`]: the worker has ended meanwhile. There is a place otherwise.
    pub fn submit(mut self, task: impl FnOnce(&mut M, Instant) + Send + 'static) -> Result<(), MailboxFull> {
        // There are no more places than the queue has.
        self.is_used = self.mailbox.tasks.push(Box::new(task)).is_ok();
        self.mailbox.wake()
    }
}

impl<M> Drop for TaskPlace<'_, M> {
    fn drop(&mut self) {
        if !self.is_used {
            self.mailbox.places.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> Client {
        Client::udp("192.0.2.1:5353".parse().unwrap())
    }

    #[test]
    fn a_full_mailbox_refuses_and_counts() {
        let mailbox = Mailbox::<()>::new().unwrap();
        let posted =
            (0..QUEUED_MESSAGES).take_while(|_| mailbox.post(&client(), b"question").is_ok()).count();
        assert_eq!(posted, QUEUED_MESSAGES / 4 * 3, "the rest is for other networks");
        assert_eq!(mailbox.post(&client(), b"question"), Err(MailboxFull));
        assert_eq!(mailbox.refused_messages(), 2);
        let others =
            (0..QUEUED_MESSAGES).map(|number| format!("[2001:db8:{number:x}::1]:53").parse().unwrap());
        let answered = others.filter(|&other| mailbox.post(&Client::udp(other), b"question").is_ok()).count();
        assert_eq!(answered, QUEUED_MESSAGES / 4);
        for _ in 0..QUEUED_TASKS {
            mailbox.submit(|_, _| ()).unwrap();
        }
        assert_eq!(mailbox.submit(|_, _| ()), Err(MailboxFull));
    }

    #[test]
    fn a_reserved_place_is_kept_until_its_task_has_run_or_it_is_given_back() {
        let mailbox = Mailbox::<()>::new().unwrap();
        for _ in 0..QUEUED_TASKS - 1 {
            mailbox.submit(|_, _| ()).unwrap();
        }
        let place = mailbox.reserve().unwrap();
        assert_eq!(mailbox.submit(|_, _| ()), Err(MailboxFull));
        drop(place);
        let place = mailbox.reserve().unwrap();
        let (ran, has_run) = std::sync::mpsc::channel();
        place.submit(move |(), _| ran.send(()).unwrap()).unwrap();
        assert!(mailbox.reserve().is_err());
        while let Some(task) = mailbox.take_task() {
            task(&mut (), Instant(0));
        }
        has_run.try_recv().unwrap();
        let taken = (0..=QUEUED_TASKS).take_while(|_| mailbox.submit(|_, _| ()).is_ok()).count();
        assert_eq!(taken, QUEUED_TASKS);
        let place = mailbox.take_task().map(|_| mailbox.reserve().unwrap()).unwrap();
        mailbox.end();
        assert_eq!(place.submit(|(), _| ()), Err(MailboxFull));
        assert!(mailbox.is_empty() && mailbox.reserve().is_err());
    }

    #[test]
    fn a_worker_does_not_sleep_over_waiting_messages() {
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
    fn an_ended_mailbox_drops_tasks_so_that_their_senders_learn_of_it() {
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
    fn messages_that_meet_the_end_of_the_worker_are_counted() {
        let mailbox = Mailbox::<()>::new().unwrap();
        mailbox.post(&client(), b"question").unwrap();
        mailbox.end();
        assert_eq!(mailbox.refused_messages(), 1);
        assert_eq!(mailbox.post(&client(), b"question"), Err(MailboxFull));
        assert_eq!(mailbox.refused_messages(), 2);
    }

    #[test]
    fn only_a_sleeping_worker_is_woken() {
        let mailbox = Mailbox::<()>::new().unwrap();
        let mut poll = kernel::epoll::Epoll::new(1).unwrap();
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
        // Messages that are queued wake nobody by themselves.
        while mailbox.take_message().is_some() {}
        assert!(mailbox.prepare_to_sleep(false));
        mailbox.wake_for_messages();
        mailbox.enqueue(&client(), b"question").unwrap();
        mailbox.enqueue(&client(), b"question").unwrap();
        poll.wait(0);
        assert_eq!(poll.ready(), 0);
        mailbox.wake_for_messages();
        poll.wait(0);
        assert_eq!(poll.ready(), 1);
    }
}
