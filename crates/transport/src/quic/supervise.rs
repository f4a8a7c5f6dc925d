//! The start of the QUIC thread, and its restarts: a failure or a panic ends its connections, and nothing else. UDP, TCP and HTTPS are
//! served by other threads.

use crate::QuerySink;
use crate::counters::Counter;
use crate::limits;
use crate::quic::Service;
use crate::quic::error::Error;
use crate::quic::settings::Settings;
use crate::quic::thread::{QuicThread, Sockets};
use crate::shared::{Running, Shared};
use crate::thread_context::ThreadContext;
use std::io;
use std::net::UdpSocket;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use tokio::task::LocalSet;

/// Bound sockets and their service.
pub(crate) struct Bound {
    pub(crate) sockets: Vec<UdpSocket>,
    pub(crate) service: Service,
    /// The number of the first socket among the listeners ([`engine::Client`]).
    pub(crate) first_listener: u16,
}

/// Starts the thread. `running` holds its place among the threads until it ends.
pub(crate) fn start<Q: QuerySink>(running: Running, bound: Bound, queries: Arc<Q>) -> Result<(), Error> {
    // Here for the error; the thread makes its own, because a failure may have left them in any state.
    Settings::new(&bound.service.tls)?;
    let supervised = move || {
        let shared = running.shared.clone();
        supervise(&shared, |restarts| run(&running, &bound, queries.clone(), restarts));
        drop(running);
    };
    thread::Builder::new().name("doq".to_owned()).spawn(supervised).map_err(Error::Thread)?;
    Ok(())
}

/// Runs the thread's work until it ends by itself, and again after each failure, at most [`limits::QUIC_RESTARTS`] times.
fn supervise(shared: &Shared, mut work: impl FnMut(u32) -> io::Result<()>) {
    for restarts in 0..=limits::QUIC_RESTARTS {
        let reason = match catch_unwind(AssertUnwindSafe(|| work(restarts))) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            // The panic hook has written the message.
            Err(_) => "a panic".to_owned(),
        };
        if shared.is_ending() || restarts == limits::QUIC_RESTARTS {
            shared.counters.count(Counter::QuicGivenUp);
            tracing::error!("DNS over QUIC has ended: {reason}; restart the server to serve it again");
            return;
        }
        shared.counters.count(Counter::QuicRestarted);
        tracing::error!("DNS over QUIC has failed and starts again: {reason}");
        thread::sleep((restarts + 1) * limits::QUIC_RESTART_PAUSE);
    }
}

/// The work of the thread, with sockets of its own over the same ports.
fn run<Q: QuerySink>(running: &Running, bound: &Bound, queries: Arc<Q>, restarts: u32) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let settings = Settings::new(&bound.service.tls).map_err(io::Error::other)?;
    let sockets = bound.sockets.iter().map(UdpSocket::try_clone).collect::<io::Result<_>>()?;
    let context = ThreadContext::new(running.shared.clone(), queries, running.index);
    context.skip_tokens(restarts);
    let thread = Rc::new(QuicThread::new(Rc::new(context), settings));
    let sockets = Sockets { sockets, first_listener: bound.first_listener };
    LocalSet::new().block_on(&runtime, thread.serve(sockets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_and_a_panic_are_followed_by_a_restart_until_the_work_ends_by_itself() {
        let shared = Shared::for_tests();
        let mut attempts = Vec::new();
        supervise(&shared, |restarts| {
            attempts.push(restarts);
            match restarts {
                0 => panic!("a test of panics"),
                1 => Err(io::Error::other("a test of failures")),
                _ => Ok(()),
            }
        });
        assert_eq!(attempts, [0, 1, 2]);
        assert_eq!(shared.counters.get(Counter::QuicRestarted), 2);
        assert_eq!(shared.counters.get(Counter::QuicGivenUp), 0);
    }

    #[test]
    fn a_failure_while_the_server_ends_is_not_followed_by_a_restart() {
        let shared = Shared::for_tests();
        let mut attempts = 0;
        supervise(&shared, |_| {
            attempts += 1;
            shared.drain_deadline.get_or_init(std::time::Instant::now);
            Err(io::Error::other("a test of failures"))
        });
        assert_eq!((attempts, shared.counters.get(Counter::QuicGivenUp)), (1, 1));
    }
}
