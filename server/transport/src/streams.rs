//! The handle to the client streams, for the server and for the workers. The workers' call, `deliver`, costs a copy and a
//! push into a lock-free queue. `wake`, at the end of their turn, wakes the stream threads that have answers and sleep.

use crate::QuerySink;
use crate::counters::Counter;
use crate::limits::{self, Limits};
use crate::listen::{BoundStreams, Error, Listener};
use crate::quic::{self, QuicThread};
use crate::shared::{AnswerQueue, Running, Shared};
use crate::stream_thread::StreamThread;
use datapath::StreamSink;
use engine::Client;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

/// A handle to the client streams. Clones share the streams, which live until [`Streams::drain`].
#[derive(Clone)]
pub struct Streams {
    shared: Arc<Shared>,
}

impl Streams {
    /// Starts the threads. After an error none of them is left.
    ///
    /// # Errors
    ///
    /// The system starts no more threads, the process may have no more open files, or the settings of TLS do not suffice for QUIC.
    pub(crate) fn start(
        bound: BoundStreams,
        queries: Arc<impl QuerySink>,
        threads: usize,
    ) -> io::Result<Streams> {
        let addresses = bound.local_addresses()?.into_iter().chain(bound.quic_addresses()?).collect();
        let BoundStreams { listeners, quic, options } = bound;
        let threads = threads.clamp(1, limits::MAX_THREADS);
        let queues = threads + usize::from(quic.is_some());
        let shared = Arc::new(Shared::new(queues, addresses, options.limits, options.proxies));
        let streams = Streams { shared: shared.clone() };
        for index in 0..threads {
            // All threads accept from the same sockets: a thread that is awake takes the next connection.
            let own = listeners.iter().map(Listener::try_clone).collect::<io::Result<_>>();
            let started = own.and_then(|own| start_stream_thread(&shared, own, queries.clone(), index));
            if let Err(error) = started {
                streams.drain(Duration::ZERO);
                return Err(error);
            }
        }
        if let Some((sockets, service)) = quic {
            let sockets = quic::Sockets { sockets, first_listener: listeners.len() as u16 };
            let started = start_quic_thread(&shared, sockets, &service, queries, threads);
            if let Err(error) = started {
                streams.drain(Duration::ZERO);
                return Err(error);
            }
        }
        Ok(streams)
    }

    /// Begins to accept connections, after [`BoundStreams::start_waiting`].
    pub fn accept(&self) {
        self.shared.accepts.send_replace(true);
    }

    /// Sets new limits, for open connections too.
    pub fn configure(&self, limits: Limits) {
        self.shared.configure(limits);
    }

    /// Leaves new connections to another process, which has the same listening sockets. Open connections are served until their
    /// clients end them or they are idle for [`limits::RETIRED_IDLE`]. After `patience` each is closed as soon as it has all its
    /// answers and no more queries have arrived. Returns when all are closed, or when [`Streams::drain`] was called, at the latest
    /// after `patience` and `grace`. Call [`Streams::drain`] then. The workers must keep running meanwhile.
    pub fn retire(&self, patience: Duration, grace: Duration) {
        let shared = &*self.shared;
        let last_answers = *shared.last_answers.get_or_init(|| Instant::now() + patience);
        self.wake_threads();
        let latest = (last_answers + grace).saturating_duration_since(Instant::now());
        let running = shared.running.lock().unwrap_or_else(PoisonError::into_inner);
        let goes_on = |running: &mut usize| *running > 0 && shared.drain_deadline().is_none();
        drop(shared.ended.wait_timeout_while(running, latest, goes_on));
    }

    fn wake_threads(&self) {
        self.shared.answer_queues.iter().for_each(|queue| queue.wakeup.notify_one());
    }

    /// Stops the streams. They take no more connections and no more queries. Pending answers leave, and then each connection is
    /// closed, at the latest after `grace`. Returns the number of connections that were cut off, when all are closed. The
    /// workers must keep running meanwhile. The first call sets the grace period.
    pub fn drain(&self, grace: Duration) -> usize {
        let shared = &*self.shared;
        let deadline = *shared.drain_deadline.get_or_init(|| Instant::now() + grace);
        self.wake_threads();
        shared.ended.notify_all();
        // Some more seconds, for threads that do not get processor time.
        let latest = deadline.saturating_duration_since(Instant::now()) + Duration::from_secs(5);
        let running = shared.running.lock().unwrap_or_else(PoisonError::into_inner);
        drop(shared.ended.wait_timeout_while(running, latest, |running| *running > 0));
        shared.cut_off.load(Ordering::Relaxed)
    }

    /// The listening addresses, by the number in [`Client::listener`].
    pub fn addresses(&self) -> &Arc<[SocketAddr]> {
        &self.shared.addresses
    }

    /// Number of open connections.
    pub fn connections(&self) -> usize {
        self.shared.admission.connections()
    }

    /// Octets buffered for all connections, in both directions.
    pub fn buffered_octets(&self) -> usize {
        self.shared.budget.octets()
    }

    /// Has the threads tell the workers of the answers that they have given themselves, so that the counters of the workers have them.
    /// Waits for at most [`limits::REPORT_TIME`].
    pub async fn report_answers(&self) {
        let reports: Vec<_> = self.shared.answer_queues.iter().map(AnswerQueue::ask_for_report).collect();
        let all = async {
            for report in reports {
                // An error means that the thread has ended, and has reported before.
                let _ = report.await;
            }
        };
        let _ = tokio::time::timeout(limits::REPORT_TIME, all).await;
    }

    /// The value of a counter.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.shared.counters.get(counter)
    }
}

impl BoundStreams {
    /// Starts to serve on `threads` threads (1 to [`crate::limits::MAX_THREADS`]).
    ///
    /// # Errors
    ///
    /// [`Error::Thread`]: a thread cannot be started, or the settings of TLS do not suffice for QUIC.
    pub fn start(self, queries: Arc<impl QuerySink>, threads: usize) -> Result<Streams, Error> {
        let streams = self.start_waiting(queries, threads)?;
        streams.accept();
        Ok(streams)
    }

    /// Like [`BoundStreams::start`], but leaves the connections to another process, which has the same listening sockets, until
    /// [`Streams::accept`]. So nothing is lost if this process fails before that.
    ///
    /// # Errors
    ///
    /// As [`BoundStreams::start`].
    pub fn start_waiting(self, queries: Arc<impl QuerySink>, threads: usize) -> Result<Streams, Error> {
        Streams::start(self, queries, threads).map_err(Error::Thread)
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").field("connections", &self.connections()).finish_non_exhaustive()
    }
}

impl StreamSink for Streams {
    fn deliver(&self, to: &Client, message: &[u8]) -> bool {
        let taken = match self.shared.answer_queues.get((to.stream >> 56) as usize) {
            Some(queue) if !queue.closed.load(Ordering::Relaxed) => queue.put(to, message),
            _ => false,
        };
        if !taken {
            self.shared.counters.count(Counter::AnswersOverrun);
        }
        taken
    }

    fn wake(&self) {
        self.shared.answer_queues.iter().for_each(AnswerQueue::wake);
    }
}

fn start_stream_thread(
    shared: &Arc<Shared>,
    listeners: Vec<Listener>,
    queries: Arc<impl QuerySink>,
    index: usize,
) -> io::Result<()> {
    let serve = move |shared| Rc::new(StreamThread::new(shared, queries, index)).serve(listeners);
    let end = "TCP, TLS and HTTPS have ended; restart the server to serve them again";
    start_thread(Running::new(shared.clone(), index), format!("streams-{index}"), end, serve)
}

fn start_quic_thread(
    shared: &Arc<Shared>,
    sockets: quic::Sockets,
    service: &quic::Service,
    queries: Arc<impl QuerySink>,
    index: usize,
) -> io::Result<()> {
    let settings = quic::Settings::new(&service.tls).map_err(io::Error::other)?;
    let serve = move |shared| Rc::new(QuicThread::new(shared, queries, index, settings)).serve(sockets);
    let end = "DNS over QUIC has ended; restart the server to serve it again";
    start_thread(Running::new(shared.clone(), index), "doq".to_owned(), end, serve)
}

/// Starts a thread, which runs `serve` in a runtime of its own. If that fails, the message `end` goes to the log.
fn start_thread<S: Future<Output = io::Result<()>>>(
    running: Running,
    name: String,
    end: &'static str,
    serve: impl FnOnce(Arc<Shared>) -> S + Send + 'static,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    thread::Builder::new().name(name).spawn(move || {
        let local = LocalSet::new();
        if let Err(error) = local.block_on(&runtime, serve(running.shared.clone())) {
            tracing::error!(%error, "{end}");
        }
        // The tasks are dropped first, with their sockets and connection slots. `running` then wakes the caller of `drain`.
        drop(local);
        drop(runtime);
        drop(running);
    })?;
    Ok(())
}
