//! Admission of QUIC connections, and their handshake. An address that is not validated may be forged, so its connection takes a place in
//! the admission only at the end of the handshake.

use crate::QuerySink;
use crate::close_reason::CloseReason;
use crate::counters::Counter;
use crate::limits;
use crate::quic::connection::QuicConnection;
use crate::quic::settings::Settings;
use crate::stream_thread::client;
use crate::thread_context::ThreadContext;
use engine::ClientTransport;
use quinn::{ConnectionError, Incoming, TransportErrorCode, ZeroRttAccepted};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

/// The number of handshakes under way.
#[derive(Default)]
pub(crate) struct Handshakes {
    all: Cell<usize>,
    unvalidated: Cell<usize>,
}

/// A handshake under way, until it is dropped.
pub(crate) struct Handshake {
    handshakes: Rc<Handshakes>,
    is_validated: bool,
}

impl Handshake {
    fn new(handshakes: &Rc<Handshakes>, is_validated: bool) -> Handshake {
        handshakes.all.update(|all| all + 1);
        handshakes.unvalidated.update(|unvalidated| unvalidated + usize::from(!is_validated));
        Handshake { handshakes: handshakes.clone(), is_validated }
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.handshakes.all.update(|all| all - 1);
        self.handshakes.unvalidated.update(|unvalidated| unvalidated - usize::from(!self.is_validated));
    }
}

/// An admitted connection, whose handshake begins.
pub(crate) struct Admitted {
    pub(crate) connection: Rc<QuicConnection>,
    pub(crate) handshake: Handshake,
    pub(crate) completed: ZeroRttAccepted,
}

/// Admits a connection attempt. Otherwise it asks the client for a token, or refuses it.
//= RFC 9250 section 5.3: requirements 94, 100
pub(crate) fn admit<Q: QuerySink>(
    context: &ThreadContext<Q>,
    handshakes: &Rc<Handshakes>,
    settings: &Settings,
    incoming: Incoming,
    listener: u16,
) -> Option<Admitted> {
    if context.shared.is_ending() {
        incoming.refuse();
        return None;
    }
    if handshakes.all.get() >= limits::QUIC_HANDSHAKES {
        context.count(Counter::QuicBusy);
        incoming.refuse();
        return None;
    }
    let (peer, local, token) = (incoming.remote_address(), incoming.local_ip(), context.next_token());
    let client = client(peer, local, listener, token, ClientTransport::Quic);
    let is_validated = incoming.remote_address_validated();
    let (admission, now) = (&context.shared.admission, Instant::now());
    let slot = match admission.admit(&client) {
        Ok(slot) if is_validated => {
            if !admission.begin_handshake(now, &client, true) {
                context.count(Counter::QuicClientRate);
                incoming.refuse();
                return None;
            }
            Some(slot)
        }
        Err(refusal) if is_validated => {
            context.count(refusal.counter());
            incoming.refuse();
            return None;
        }
        // A limit that a forged address would exceed says nothing about the client.
        Ok(_)
            if handshakes.unvalidated.get() < limits::QUIC_UNVALIDATED
                && admission.begin_handshake(now, &client, false) =>
        {
            None
        }
        _ => {
            context.count(Counter::QuicRetry);
            // An attempt without validation may always be asked for it.
            let _ = incoming.retry();
            return None;
        }
    };
    if slot.is_some() {
        context.count(Counter::Accepted);
    }
    let handshake = Handshake::new(handshakes, is_validated);
    let settings = settings.server(admission.timeouts().idle);
    let begun = incoming.accept_with(settings).map(|connecting| connecting.into_0rtt());
    match begun {
        Ok(Ok((quic, completed))) => {
            let buffered = context.shared.budget.begin(&client);
            let connection = Rc::new(QuicConnection::new(quic, client, buffered, slot));
            Some(Admitted { connection, handshake, completed })
        }
        // A server can always convert.
        Ok(Err(_)) => None,
        Err(error) => {
            context.count(failure(&error));
            if slot.is_some() {
                context.count(CloseReason::Handshake.counter());
            }
            None
        }
    }
}

/// Waits for the end of the handshake, and takes the place in the admission.
///
/// # Errors
///
/// The reason why the connection has been closed, here or by the client: the handshake failed or took too long, or the client has too
/// many connections.
pub(crate) async fn complete<Q: QuerySink>(
    context: &ThreadContext<Q>,
    connection: &QuicConnection,
    _handshake: Handshake,
    completed: ZeroRttAccepted,
) -> Result<(), CloseReason> {
    let patience = context.shared.admission.timeouts().idle.min(limits::QUIC_HANDSHAKE);
    let is_late = tokio::time::timeout(patience, completed).await.is_err();
    if let Some(counter) = failed(connection, is_late) {
        counter.into_iter().for_each(|counter| context.count(counter));
        connection.close_at_once(CloseReason::Handshake, "the handshake takes too long");
        return Err(connection.close_reason().unwrap_or(CloseReason::Handshake));
    }
    context.count(Counter::QuicHandshakes);
    if connection.slot.borrow().is_none() {
        match context.shared.admission.admit(&connection.client) {
            Ok(admitted) => {
                context.count(Counter::Accepted);
                connection.slot.replace(Some(admitted));
            }
            Err(refusal) => {
                context.count(refusal.counter());
                connection.close_at_once(CloseReason::ClientLimit, "too many connections");
                return Err(CloseReason::ClientLimit);
            }
        }
    }
    connection.complete();
    Ok(())
}

/// The counter of a failed handshake, if it has failed. None within: the server has closed the connection because of its own end, or
/// because of a query in 0-RTT data.
fn failed(connection: &QuicConnection, is_late: bool) -> Option<Option<Counter>> {
    match connection.quic.close_reason() {
        Some(ConnectionError::LocallyClosed) => Some(None),
        Some(error) => Some(Some(failure(&error))),
        None => is_late.then_some(Some(Counter::QuicFailedTimeout)),
    }
}

/// The counter of a failed handshake.
fn failure(error: &ConnectionError) -> Counter {
    /// The TLS alert no_application_protocol (RFC 7301 section 3.2).
    const NO_APPLICATION_PROTOCOL: u8 = 120;
    match error {
        ConnectionError::TransportError(error)
            if error.code == TransportErrorCode::crypto(NO_APPLICATION_PROTOCOL) =>
        {
            Counter::QuicFailedAlpn
        }
        // Codes of TLS alerts (RFC 9001 section 4.8).
        ConnectionError::TransportError(error) if (0x100..0x200).contains(&u64::from(error.code)) => {
            Counter::QuicFailedTls
        }
        ConnectionError::ConnectionClosed(_)
        | ConnectionError::ApplicationClosed(_)
        | ConnectionError::Reset => Counter::QuicFailedClient,
        ConnectionError::TimedOut => Counter::QuicFailedTimeout,
        _ => Counter::QuicFailedProtocol,
    }
}
