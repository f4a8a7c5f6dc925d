//! `sixfold ctl trace`: the queries of clients as they are answered, one JSON object a line, with every step and its time.
//!
//! A trace lives as long as the connection of its operator. The workers record matching queries into its queue (`observers/traces.rs`);
//! the control thread writes them as text (`line.rs`). An operator who does not read fills the queue, and no more. Read [`follow`]
//! first.

mod line;
mod request;

pub use request::Request;

use crate::control_answer::{Answer, Format};
use crate::observers::{Observers, TraceQueue};
use crate::running_server::ServerHandle;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, interval, timeout};

/// Queries of one trace per second, of all workers together: at 20 us a line, 2 % of a core for each trace.
const QUERIES_PER_SECOND: u32 = 1_000;

/// Lines of one trace: a trace that somebody forgot ends. At full rate these are 100 s, at 1 query a second a day.
const LINES: u64 = 100_000;

/// Time between two looks at the queue.
const PERIOD: Duration = Duration::from_millis(50);

/// Queries that may be recorded in one period.
const QUERIES_PER_PERIOD: u32 = QUERIES_PER_SECOND / 20;

/// Time between two lines about queries that were left out.
const NOTICE_PAUSE: Duration = Duration::from_secs(1);

/// Time for an operator's terminal to take the lines of one period.
const WRITE_DEADLINE: Duration = Duration::from_secs(60);

/// Ends a trace, whatever ends the connection.
struct Running(Arc<TraceQueue>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Begins the trace of a request at all workers, and waits until they know it: a query that comes after the status is shown.
async fn begin(server: &ServerHandle, request: &Request) -> Result<Running, String> {
    let running = Running(server.traces.begin(request.filter())?);
    running.0.refill(QUERIES_PER_PERIOD, QUERIES_PER_SECOND);
    let queue = Arc::clone(&running.0);
    let known = server.ask_all(move |machine, _| Observers::add_trace(machine, Arc::clone(&queue))).await;
    match known.iter().position(Option::is_none) {
        Some(worker) => Err(format!("trace: worker {worker} takes no request now; try again\n")),
        None => Ok(running),
    }
}

/// Executes `trace on`: writes the status, then lines until the operator closes the connection, the trace is ended, a bound is
/// reached or the server stops.
///
/// # Errors
///
/// The error of the connection, which the operator has closed for example. A trace that cannot begin is an answer to the operator, and
/// no error.
pub async fn follow(
    server: &ServerHandle,
    rest: &str,
    format: Format,
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let begun = match Request::from_line(rest) {
        Ok(request) => begin(server, &request).await.map(|running| (request, running)),
        Err(text) => Err(text),
    };
    let (request, running) = match begun {
        Ok(begun) => begun,
        Err(text) => return writer.write_all(Answer::error(&text, format).to_wire().as_bytes()).await,
    };
    writer.write_all(b"0\n").await?;
    tracing::info!(event = "trace_began", "{}", request.to_line());
    let closed = async {
        // The operator sends nothing more.
        while reader.read_u8().await.is_ok() {}
    };
    let mut lines = Lines { queue: &running.0, written: 0, reported: 0, next_report: Instant::now() };
    let result = tokio::select! {
        () = closed => Ok(()),
        result = lines.write(server, writer) => result,
    };
    let Lines { written, .. } = lines;
    tracing::info!(
        event = "trace_ended",
        "trace ended: {written} queries shown, {} left out",
        running.0.omitted()
    );
    result
}

/// The lines of one trace.
struct Lines<'t> {
    queue: &'t TraceQueue,
    written: u64,
    /// Queries left out that a notice has told.
    reported: u64,
    next_report: Instant,
}

impl Lines<'_> {
    /// Writes lines until the trace ends.
    async fn write(
        &mut self,
        server: &ServerHandle,
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let mut period = interval(PERIOD);
        loop {
            period.tick().await;
            let end = if self.queue.has_ended() {
                Some("trace off")
            } else if server.draining.load(Ordering::Relaxed) {
                Some("the server stops")
            } else {
                None
            };
            let mut text = String::new();
            while self.written < LINES
                && let Some(trace) = self.queue.take()
            {
                text.push_str(&line::of(&trace));
                self.written += 1;
            }
            let end = end.or((self.written == LINES).then_some("the limit of lines is reached"));
            self.report(&mut text, end);
            timeout(WRITE_DEADLINE, writer.write_all(text.as_bytes())).await??;
            if end.is_some() {
                return writer.shutdown().await;
            }
            self.queue.refill(QUERIES_PER_PERIOD, QUERIES_PER_SECOND);
        }
    }

    /// Adds a notice of queries that were left out, and of the end.
    fn report(&mut self, text: &mut String, end: Option<&str>) {
        let omitted = self.queue.omitted();
        let is_due = omitted > self.reported && Instant::now() >= self.next_report;
        if is_due || end.is_some() {
            text.push_str(&line::notice(omitted - self.reported, end));
            self.reported = omitted;
            self.next_report = Instant::now() + NOTICE_PAUSE;
        }
    }
}
