//! One stream: the query out of it, the way to the worker and back, and the answer into it (RFC 9250 section 4.2).

use crate::QuerySink;
use crate::account::Account;
use crate::close_reason::CloseReason;
use crate::counters::Counter;
use crate::quic::connection::QuicConnection;
use crate::quic::error_code;
use crate::quic::query::{self, NoQuery};
use crate::requests::{self, Requests, ToTask};
use crate::thread_context::ThreadContext;
use engine::Client;
use hyper::body::Bytes;
use quinn::{RecvStream, SendStream, StoppedError, VarInt};
use std::pin::pin;

/// The parts of the thread by which a stream gets its answer: the way to the workers, and the table of requests that wait for one.
pub(crate) struct StreamContext<'t, Q: QuerySink> {
    pub(crate) thread: &'t ThreadContext<Q>,
    pub(crate) requests: &'t Requests<ToTask>,
}

/// Answers a stream. Returns when the client has acknowledged the answer: an answer that a close overtakes would be lost.
//= RFC 9250 section 4.2: requirement 89
//= RFC 9250 section 4.4: requirement 99
pub(crate) async fn answer<Q: QuerySink>(
    context: StreamContext<'_, Q>,
    connection: &QuicConnection,
    mut send: SendStream,
    mut receive: RecvStream,
) {
    let mut under_way = connection.begin_stream();
    let mut account = Account::new(connection.buffered.clone());
    let message = match read(&context, connection, &mut receive, &mut account).await {
        Ok(message) => message,
        Err(NoQuery::ProtocolError(text)) => {
            return connection.close_at_once(CloseReason::ProtocolError, text);
        }
        Err(NoQuery::Cancelled) => return cancel(&context, connection, &mut send),
        Err(NoQuery::Memory) => return connection.close_at_once(CloseReason::Buffers, "out of memory"),
        Err(NoQuery::ConnectionEnded) => return,
    };
    drop(account);
    // Ends when the client cancels the query, when it has acknowledged the answer, and with the connection.
    let mut stopped = pin!(send.stopped());
    let client = Client { stream: context.thread.next_token(), ..connection.client };
    let answered = tokio::select! {
        biased;
        answered = requests::ask(context.thread, context.requests, &client, &message) => answered,
        end = &mut stopped => return on_stopped(end, &context, connection, &mut send),
    };
    let answered = match answered {
        Ok(Some(answered)) => answered,
        Ok(None) => {
            // No error of this server, and RFC 9250 section 8.4 has no code that says more.
            let _ = send.reset(error_code::UNSPECIFIED_ERROR);
            return;
        }
        Err(_) => {
            context.thread.count(Counter::QuicFailed);
            let _ = send.reset(error_code::INTERNAL_ERROR);
            return;
        }
    };
    let answer = framed(answered.message());
    drop(answered);
    // Kept until the client has acknowledged the answer.
    let Some(_account) = Account::of_response(connection.buffered.clone(), answer.len()) else {
        return connection.close_at_once(CloseReason::Buffers, "out of memory");
    };
    // An error of writing is one that `stopped` returns too.
    if send.write_chunk(answer).await.is_ok() && send.finish().is_ok() {
        context.thread.count(Counter::QuicAnswered);
        connection.note_answered();
        under_way.note_written();
    }
    on_stopped(stopped.await, &context, connection, &mut send);
}

/// Reads and checks the query. One that is not replayable waits for the end of the handshake (RFC 9250 section 4.5).
async fn read<Q: QuerySink>(
    context: &StreamContext<'_, Q>,
    connection: &QuicConnection,
    receive: &mut RecvStream,
    account: &mut Account,
) -> Result<Vec<u8>, NoQuery> {
    // Half, so that the client learns its fault before the idle timeout of QUIC, which is silent.
    let patience = context.thread.shared.admission.timeouts().idle / 2;
    let read = tokio::time::timeout(patience, query::read(receive, account)).await;
    let message =
        read.unwrap_or(Err(NoQuery::ProtocolError("the message or the end of the stream is late")))?;
    query::check(&message)?;
    if receive.is_0rtt() {
        if query::is_replayable(&message) {
            context.thread.count(Counter::QuicEarly);
        } else {
            context.thread.count(Counter::QuicEarlyDeferred);
            connection.completed().await;
        }
    }
    Ok(message)
}

/// Ends a stream whose sending side the client has stopped, or has acknowledged.
fn on_stopped<Q: QuerySink>(
    end: Result<Option<VarInt>, StoppedError>,
    context: &StreamContext<'_, Q>,
    connection: &QuicConnection,
    send: &mut SendStream,
) {
    if let Ok(Some(_)) = end {
        cancel(context, connection, send);
    }
}

/// Ends a stream whose query the client has cancelled (RFC 9250 section 4.3.1).
//= RFC 9250 section 4.3.1: requirement 91
fn cancel<Q: QuerySink>(context: &StreamContext<'_, Q>, connection: &QuicConnection, send: &mut SendStream) {
    context.thread.count(Counter::QuicCancelled);
    connection.note_cancelled();
    let _ = send.reset(error_code::REQUEST_CANCELLED);
}

/// An answer with its length before it.
fn framed(message: &[u8]) -> Bytes {
    [&(message.len() as u16).to_be_bytes(), message].concat().into()
}
