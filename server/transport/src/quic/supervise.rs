//! The start of the QUIC thread, and its restarts: a failure or a panic ends its connections, and nothing else. UDP, TCP and HTTPS are
//! served by other threads. The supervisor is a thread of its own, because a thread that has panicked does not go on (`panic.rs`).

use crate::QuerySink;
use crate::counters::Counter;
use crate::limits;
use crate::quic::Service;
use crate::quic::error::Error;
use crate::quic::panic;
use crate::quic::settings::Settings;
use crate::quic::shares::Shares;
use crate::quic::thread::{QuicThread, Sockets};
use crate::shared::{Running, Shared};
use crate::thread_context::ThreadContext;
use std::io;
use std::net::UdpSocket;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread;
use tokio::task::LocalSet;

/// Bound sockets and their service.
pub(crate) struct Bound {
    pub(crate) sockets: Vec<UdpSocket>,
    pub(crate) service: Service,
    /// The number of the first socket among the listeners ([`engine::Client`]).
    pub(crate) first_listener: u16,
}

/// The work of the thread, by the number of restarts. Each run has shares of its own.
trait Work: Fn(u32, &Arc<Shares>) -> io::Result<()> + Send + Sync + 'static {}

impl<W: Fn(u32, &Arc<Shares>) -> io::Result<()> + Send + Sync + 'static> Work for W {}

/// Starts the thread. `running` holds its place among the threads until it ends.
///
/// # Errors
///
/// `Error::WithoutTls13`: the settings of TLS do not suffice for QUIC. `Error::Thread`: the system starts no more threads.
pub(crate) fn start<Q: QuerySink>(running: Running, bound: Bound, queries: Arc<Q>) -> Result<(), Error> {
    // Here for the error; the thread makes its own, because a failure may have left them in any state.
    Settings::new(&bound.service.tls)?;
    let index = running.index;
    let work = move |restarts, shares: &Arc<Shares>| run(index, &bound, queries.clone(), restarts, shares);
    let supervised = move || {
        supervise(&running.shared, Arc::new(work));
        drop(running);
    };
    thread::Builder::new().name("doq-supervisor".to_owned()).spawn(supervised).map_err(Error::Thread)?;
    Ok(())
}

/// Runs the thread's work until it ends by itself, and again after each failure, at most [`limits::QUIC_RESTARTS`] times.
fn supervise(shared: &Arc<Shared>, work: Arc<impl Work>) {
    for restarts in 0..=limits::QUIC_RESTARTS {
        let Err(reason) = run_thread(shared, &work, restarts) else { return };
        if shared.is_ending() || restarts == limits::QUIC_RESTARTS {
            shared.counters.count(Counter::QuicGivenUp);
            tracing::error!("DNS over QUIC has ended: {reason}; restart the server to serve it again");
            return;
        }
        shared.counters.count(Counter::QuicRestarted);
        tracing::error!(
            "DNS over QUIC has failed and starts again: {reason}; report this fault: the section BUGS of sixfold(8) says how"
        );
        thread::sleep((restarts + 1) * limits::QUIC_RESTART_PAUSE);
    }
}

/// Runs the work once, on a thread of its own, and gives back the thread's shares. A panic is an error.
fn run_thread(shared: &Arc<Shared>, work: &Arc<impl Work>, restarts: u32) -> io::Result<()> {
    let shares = Arc::new(Shares::new(shared.clone()));
    let (sender, ended) = mpsc::channel();
    let (work, own_shares) = (work.clone(), shares.clone());
    let thread = move || {
        panic::report_to(sender.clone());
        let _ = sender.send(work(restarts, &own_shares));
    };
    thread::Builder::new().name("doq".to_owned()).spawn(thread)?;
    let outcome =
        ended.recv().unwrap_or_else(|_| Err(io::Error::other("the thread has ended without a reason")));
    if !shares.release() {
        tracing::error!(
            "the thread for DNS over QUIC has died with a lock that the other transports need, so the process ends: {outcome:?}; report this \
             fault: the section BUGS of sixfold(8) says how"
        );
        std::process::abort();
    }
    outcome
}

/// The work of the thread, with sockets of its own over the same ports.
fn run<Q: QuerySink>(
    index: usize,
    bound: &Bound,
    queries: Arc<Q>,
    restarts: u32,
    shares: &Arc<Shares>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let settings = Settings::new(&bound.service.tls).map_err(io::Error::other)?;
    let sockets = bound.sockets.iter().map(UdpSocket::try_clone).collect::<io::Result<_>>()?;
    let context = ThreadContext::new(shares.shared().clone(), queries, index);
    context.skip_tokens(restarts);
    // A thread that has died may still wait there, and would take the next signal from this one.
    context.answer_queue().wakeup.notify_waiters();
    let thread = Rc::new(QuicThread::new(Rc::new(context), settings, shares.clone()));
    let sockets = Sockets { sockets, first_listener: bound.first_listener };
    LocalSet::new().block_on(&runtime, thread.serve(sockets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Client;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Runs a test whose threads panic in a process of its own, because a parked thread keeps the panic hook from being replaced, which the
    /// test program does at its end.
    fn with_panics(test: &str, run: impl FnOnce()) {
        kit::in_child(&format!("quic::supervise::tests::{test}"), run);
    }

    #[test]
    fn a_failure_and_a_panic_are_followed_by_a_restart_until_the_work_ends_by_itself() {
        with_panics("a_failure_and_a_panic_are_followed_by_a_restart_until_the_work_ends_by_itself", || {
            let shared = Arc::new(Shared::for_tests());
            let attempts = Arc::new(Mutex::new(Vec::new()));
            let seen = attempts.clone();
            let work = move |restarts, _: &Arc<Shares>| {
                seen.lock().unwrap().push(restarts);
                match restarts {
                    0 => panic!("a test of panics"),
                    1 => Err(io::Error::other("a test of failures")),
                    _ => Ok(()),
                }
            };
            supervise(&shared, Arc::new(work));
            assert_eq!(*attempts.lock().unwrap(), [0, 1, 2]);
            assert_eq!(shared.counters.get(Counter::QuicRestarted), 2);
            assert_eq!(shared.counters.get(Counter::QuicGivenUp), 0);
        });
    }

    #[test]
    fn a_panic_is_reported_with_its_place_and_gives_back_the_places_of_the_connections() {
        with_panics(
            "a_panic_is_reported_with_its_place_and_gives_back_the_places_of_the_connections",
            || {
                let shared = Arc::new(Shared::for_tests());
                let admitted = Arc::new(AtomicU32::new(0));
                let seen = admitted.clone();
                let work = move |_, shares: &Arc<Shares>| {
                    let client = Client::udp("192.0.2.1:4000".parse().unwrap());
                    let _share = shares.begin(&client, shares.shared().admission.admit(&client).ok());
                    seen.store(shares.shared().admission.connections() as u32, Ordering::SeqCst);
                    panic!("a test\nof panics");
                };
                let reason = run_thread(&shared, &Arc::new(work), 0).unwrap_err().to_string();
                assert!(reason.starts_with("a panic at ") && reason.contains("supervise.rs:"), "{reason}");
                assert!(reason.ends_with(": a test of panics"), "{reason}");
                assert_eq!((admitted.load(Ordering::SeqCst), shared.admission.connections()), (1, 0));
            },
        );
    }

    /// As quinn's connections and endpoints: the destructor takes the lock that a panic has poisoned.
    struct Owner(Mutex<()>);

    impl Drop for Owner {
        fn drop(&mut self) {
            drop(self.0.lock().unwrap());
        }
    }

    #[test]
    fn a_panic_within_a_lock_whose_owner_would_panic_again_ends_only_its_thread() {
        with_panics("a_panic_within_a_lock_whose_owner_would_panic_again_ends_only_its_thread", || {
            let work = |_, _: &Arc<Shares>| {
                let owner = Owner(Mutex::new(()));
                let _locked = owner.0.lock().unwrap();
                panic!("a test of panics");
            };
            assert!(run_thread(&Arc::new(Shared::for_tests()), &Arc::new(work), 0).is_err());
        });
    }

    #[test]
    fn a_failure_while_the_server_ends_is_not_followed_by_a_restart() {
        let shared = Arc::new(Shared::for_tests());
        let attempts = Arc::new(AtomicU32::new(0));
        let seen = attempts.clone();
        let work = move |_, shares: &Arc<Shares>| {
            seen.fetch_add(1, Ordering::SeqCst);
            shares.shared().drain_deadline.get_or_init(std::time::Instant::now);
            Err(io::Error::other("a test of failures"))
        };
        supervise(&shared, Arc::new(work));
        assert_eq!((attempts.load(Ordering::SeqCst), shared.counters.get(Counter::QuicGivenUp)), (1, 1));
    }
}
