//! Threads that verify signatures for the workers. A verification takes as long as fifty answers, so none is done on a worker.
//!
//! The threads share one queue, from which they sleep when it is empty. The outcome goes to the mailbox of the worker that asked, which is
//! woken when the queue is empty, or some verifications later ([`WAKE_AFTER`]): a turn of its event loop for each outcome costs as much as
//! half of a verification, and takes the processor from this thread if there is no other one. How many
//! verifications a worker has outside, and in which order they leave, is decided by its machine, fairly by client network; so the queue is
//! short, and bounded by what all workers may have outside.

use crate::socket::syscalls::ThreadClock;
use crate::worker::mailbox::Mailbox;
use engine::limits::JOBS;
use engine::{SignedData, VerificationId};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest time for which outcomes wait in the mailbox of a worker that sleeps, while other verifications are done.
const WAKE_AFTER: Duration = Duration::from_micros(500);

/// The arithmetic: true if a signature is valid.
pub type VerifySignature = fn(&SignedData<'_>) -> bool;

/// Verification that waits for a thread.
struct Job {
    worker: usize,
    id: VerificationId,
    signed: Vec<u8>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Buffers for the next jobs.
    spare: Vec<Vec<u8>>,
    /// Threads that were started.
    threads: usize,
    /// Their clocks.
    clocks: Vec<ThreadClock>,
    /// Threads that wait for a job.
    waiting: usize,
    is_stopped: bool,
}

struct Inner<M> {
    mailboxes: Vec<Arc<Mailbox<M>>>,
    queue: Mutex<Queue>,
    has_jobs: Condvar,
}

/// Threads that verify signatures. They end when this is dropped.
pub(super) struct SignatureThreads<M> {
    inner: Arc<Inner<M>>,
}

impl<M: 'static> SignatureThreads<M> {
    /// No threads yet, for the workers with these mailboxes.
    pub(super) fn new(mailboxes: Vec<Arc<Mailbox<M>>>) -> SignatureThreads<M> {
        let inner = Inner { mailboxes, queue: Mutex::default(), has_jobs: Condvar::new() };
        SignatureThreads { inner: Arc::new(inner) }
    }

    /// Starts threads, `sixfold-sig-N`, until there are so many.
    ///
    /// # Errors
    ///
    /// The error of pthread_create(3): the process may have no more threads. Those that were started go on.
    pub(super) fn start(&self, threads: usize, verify: VerifySignature) -> io::Result<()> {
        loop {
            let mut queue = self.inner.lock();
            if queue.threads >= threads {
                return Ok(());
            }
            let inner = Arc::clone(&self.inner);
            let name = format!("sixfold-sig-{}", queue.threads);
            std::thread::Builder::new().name(name).spawn(move || inner.work(verify))?;
            queue.threads += 1;
        }
    }

    /// Processor time of the threads so far.
    pub(super) fn time(&self) -> Duration {
        self.inner.lock().clocks.iter().filter_map(|clock| clock.time()).sum()
    }

    /// Puts a verification of a worker into the queue. Returns false if no thread was started, or the queue is full.
    pub(super) fn put(&self, worker: usize, id: VerificationId, signed: &SignedData<'_>) -> bool {
        let mut queue = self.inner.lock();
        if queue.threads == 0 || queue.jobs.len() >= JOBS * self.inner.mailboxes.len() {
            return false;
        }
        let mut octets = queue.spare.pop().unwrap_or_default();
        signed.write(&mut octets);
        queue.jobs.push_back(Job { worker, id, signed: octets });
        let is_waited_for = queue.waiting > 0;
        drop(queue);
        if is_waited_for {
            self.inner.has_jobs.notify_one();
        }
        true
    }
}

impl<M> Drop for SignatureThreads<M> {
    fn drop(&mut self) {
        self.inner.lock().is_stopped = true;
        self.inner.has_jobs.notify_all();
    }
}

impl<M> Inner<M> {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A thread that panics leaves the queue as it is.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, verify: VerifySignature) {
        self.lock().clocks.extend(ThreadClock::of_this_thread());
        // Time of the first outcome for which no worker was woken.
        let mut first = None;
        while let Some(Job { worker, id, signed }) = self.next(&mut first) {
            let is_valid = SignedData::read(&signed).is_some_and(|signed| verify(&signed));
            self.mailboxes[worker].post_verified(id, is_valid);
            self.lock().spare.push(signed);
            if first.get_or_insert_with(Instant::now).elapsed() >= WAKE_AFTER {
                self.wake_workers(&mut first);
            }
        }
    }

    /// Waits for the next job. None: the threads are to end. Workers are woken before it waits.
    fn next(&self, first: &mut Option<Instant>) -> Option<Job> {
        let mut queue = self.lock();
        if queue.jobs.is_empty() && first.is_some() {
            drop(queue);
            self.wake_workers(first);
            queue = self.lock();
        }
        while queue.jobs.is_empty() && !queue.is_stopped {
            queue.waiting += 1;
            queue = self.has_jobs.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.waiting -= 1;
        }
        if queue.is_stopped { None } else { queue.jobs.pop_front() }
    }

    fn wake_workers(&self, first: &mut Option<Instant>) {
        *first = None;
        self.mailboxes.iter().for_each(|mailbox| mailbox.wake_for_outcomes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn verify(signed: &SignedData<'_>) -> bool {
        signed.key == signed.signature
    }

    fn outcomes(mailbox: &Mailbox<()>, wanted: usize) -> Vec<(VerificationId, bool)> {
        let end = Instant::now() + Duration::from_secs(30);
        let mut found = vec![];
        while found.len() < wanted {
            assert!(Instant::now() < end, "{} of {wanted} outcomes", found.len());
            match mailbox.take_verified() {
                Some(outcome) => found.push(outcome),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        found.sort_by_key(|(id, _)| id.slot);
        found
    }

    #[test]
    fn outcomes_come_back_to_the_worker_that_asked() {
        let mailboxes: Vec<Arc<Mailbox<()>>> =
            (0..2).map(|_| Arc::new(Mailbox::new().expect("an eventfd"))).collect();
        let threads = SignatureThreads::new(mailboxes.clone());
        let id = |slot| VerificationId { slot, serial: 7 };
        let signed = |signature| SignedData { algorithm: 15, key: b"good", signature, data: b"data" };
        assert!(!threads.put(0, id(0), &signed(b"good")), "there is no thread yet");
        threads.start(3, verify).expect("threads");
        for slot in 0..20 {
            let signature: &[u8] = if slot % 3 == 0 { b"wrong" } else { b"good" };
            while !threads.put(slot as usize % 2, id(slot), &signed(signature)) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        for (worker, mailbox) in mailboxes.iter().enumerate() {
            let expected: Vec<_> = (0..20)
                .filter(|slot| slot % 2 == worker as u32)
                .map(|slot| (id(slot), slot % 3 != 0))
                .collect();
            assert_eq!(outcomes(mailbox, 10), expected);
        }
    }

    #[test]
    fn the_processor_time_of_the_threads_is_known() {
        let mailbox = Arc::new(Mailbox::<()>::new().expect("an eventfd"));
        let threads = SignatureThreads::new(vec![Arc::clone(&mailbox)]);
        assert_eq!(threads.time(), Duration::ZERO);
        let spins = |signed: &SignedData<'_>| {
            let clock = ThreadClock::of_this_thread().expect("a clock");
            while clock.time() < Some(Duration::from_millis(20)) {}
            signed.key.is_empty()
        };
        threads.start(1, spins).expect("a thread");
        let signed = SignedData { algorithm: 15, key: b"", signature: b"", data: b"" };
        assert!(threads.put(0, VerificationId { slot: 0, serial: 0 }, &signed));
        outcomes(&mailbox, 1);
        assert!(threads.time() >= Duration::from_millis(20));
    }

    #[test]
    fn a_worker_does_not_sleep_over_an_outcome() {
        let mailbox = Arc::new(Mailbox::<()>::new().expect("an eventfd"));
        let threads = SignatureThreads::new(vec![Arc::clone(&mailbox)]);
        threads.start(1, verify).expect("a thread");
        let signed = SignedData { algorithm: 15, key: b"", signature: b"", data: b"" };
        assert!(threads.put(0, VerificationId { slot: 0, serial: 0 }, &signed));
        let end = Instant::now() + Duration::from_secs(30);
        while mailbox.is_empty() || mailbox.sleeps() {
            assert!(Instant::now() < end);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!mailbox.prepare_to_sleep(false));
        assert!(mailbox.take_verified().is_some());
        assert!(mailbox.prepare_to_sleep(false));
    }

    #[test]
    fn workers_that_sleep_are_woken_for_every_outcome_whichever_thread_has_the_last_one() {
        let mailboxes: Vec<Arc<Mailbox<()>>> =
            (0..2).map(|_| Arc::new(Mailbox::new().expect("an eventfd"))).collect();
        let threads = SignatureThreads::new(mailboxes.clone());
        threads.start(3, verify).expect("threads");
        let signed = SignedData { algorithm: 15, key: b"", signature: b"", data: b"" };
        let end = Instant::now() + Duration::from_secs(30);
        for round in 0..300 {
            let jobs = 1 + round % 7;
            for slot in 0..jobs {
                assert!(threads.put(slot as usize % 2, VerificationId { slot, serial: round }, &signed));
            }
            let mut left = jobs;
            while left > 0 {
                for mailbox in &mailboxes {
                    while mailbox.take_verified().is_some() {
                        left -= 1;
                    }
                    // A worker that is not woken sleeps until the test fails.
                    if mailbox.prepare_to_sleep(false) && left > 0 {
                        let is_owed = |mailbox: &Mailbox<()>| mailbox.sleeps() && !mailbox.is_empty();
                        while is_owed(mailbox) {
                            assert!(Instant::now() < end);
                            std::thread::yield_now();
                        }
                    }
                }
                assert!(Instant::now() < end, "round {round}: {left} outcomes are missing");
            }
        }
    }
}
