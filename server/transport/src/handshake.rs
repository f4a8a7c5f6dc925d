//! The beginning of an encrypted connection: the PROXY header if the peer is a proxy, then the TLS handshake (RFC 8446, RFC 5246).
//!
//! A full handshake takes 128 us of processor time, as much as twenty queries out of the cache over TLS (docs/benchmarks.md), and memory
//! while it lasts. So half-open ones are bounded: each has a time
//! ([`limits::HANDSHAKE_TIME`]), and of too many the oldest gives way ([`limits::HANDSHAKES`]). An honest handshake takes two round trips.
//! And a client network may begin only so many in a second (`handshake_rate.rs`): one more is closed before any of that work is done.
//!
//! A proxy sends its header before TLS (section 2 of the PROXY protocol; HAProxy, nginx), or as the first octets within TLS (dnsdist).
//! The first octet of the connection tells the two apart: a TLS record with a handshake begins with 22, a PROXY header with 13.

use crate::QuerySink;
use crate::admission::{Admission, ConnectionSlot};
use crate::close_reason::CloseReason;
use crate::counters::Counter;
use crate::limits;
use crate::proxy_header;
use crate::thread_context::ThreadContext;
use engine::Client;
use rustls::{HandshakeKind, ServerConfig};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tls::HandshakeFailure;
use tokio::io::AsyncRead;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A connection that was admitted.
pub(crate) struct Admitted {
    pub(crate) stream: TcpStream,
    /// The client, or the proxy.
    pub(crate) client: Client,
    pub(crate) slot: ConnectionSlot,
    /// The peer is a proxy, and sends a PROXY header first, before TLS or within it.
    pub(crate) proxied: bool,
}

/// A connection after its handshake.
pub(crate) struct Established {
    pub(crate) stream: TlsStream<TcpStream>,
    /// The client, behind a proxy the one that the proxy named.
    pub(crate) client: Client,
    pub(crate) slot: ConnectionSlot,
}

/// The handshakes of one thread that are under way, by token, so that the oldest is the first.
#[derive(Default)]
pub(crate) struct Handshakes(RefCell<BTreeMap<u64, Rc<Notify>>>);

impl Handshakes {
    /// Number of handshakes under way.
    pub(crate) fn under_way(&self) -> usize {
        self.0.borrow().len()
    }

    /// Does the handshake of a connection.
    ///
    /// # Errors
    ///
    /// The reason to close the connection. `CloseReason::Handshake`: the handshake failed, took too long, gave way to a newer one, or
    /// its client begins too many; a counter says which. Else the PROXY header was malformed or late, or its client has too many
    /// connections.
    pub(crate) async fn establish<Q: QuerySink>(
        &self,
        thread: &ThreadContext<Q>,
        config: &Arc<ServerConfig>,
        admitted: Admitted,
    ) -> Result<Established, CloseReason> {
        let place = Place::take(self, admitted.client.stream);
        let time = thread.shared.admission.timeouts().idle.min(limits::HANDSHAKE_TIME);
        let done = tokio::select! {
            done = tokio::time::timeout(time, handshake(&thread.shared.admission, config, admitted)) => {
                done.unwrap_or(Err(Failure::Handshake(HandshakeFailure::Timeout)))
            }
            () = place.displaced.notified() => Err(Failure::Handshake(HandshakeFailure::Displaced)),
        };
        drop(place);
        // The end of the thread waits for handshakes too.
        thread.wake_end();
        match done {
            Ok(established) => {
                let kind = established.stream.get_ref().1.handshake_kind();
                thread.count(match kind {
                    Some(HandshakeKind::Resumed) => Counter::HandshakesResumed,
                    _ => Counter::HandshakesFull,
                });
                Ok(established)
            }
            Err(Failure::Proxy(reason)) => Err(reason),
            Err(Failure::ClientRate) => {
                thread.count(Counter::HandshakeClientRate);
                Err(CloseReason::Handshake)
            }
            Err(Failure::Handshake(reason)) => {
                thread.count(counter(reason));
                Err(CloseReason::Handshake)
            }
        }
    }
}

/// A handshake's place among those under way, until it is dropped.
struct Place<'h> {
    handshakes: &'h Handshakes,
    token: u64,
    displaced: Rc<Notify>,
}

impl<'h> Place<'h> {
    fn take(handshakes: &'h Handshakes, token: u64) -> Place<'h> {
        let displaced = Rc::new(Notify::new());
        let mut under_way = handshakes.0.borrow_mut();
        if under_way.len() >= limits::HANDSHAKES
            && let Some((_, oldest)) = under_way.pop_first()
        {
            oldest.notify_one();
        }
        under_way.insert(token, displaced.clone());
        Place { handshakes, token, displaced }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.handshakes.0.borrow_mut().remove(&self.token);
    }
}

enum Failure {
    Proxy(CloseReason),
    /// The client network has begun too many handshakes.
    ClientRate,
    Handshake(HandshakeFailure),
}

/// First octet of a TLS record with a part of a handshake (RFC 8446 section 5.1).
const HANDSHAKE_RECORD: u8 = 22;

//= RFC 7858 section 3.1: requirement 73
async fn handshake(
    admission: &Admission,
    config: &Arc<ServerConfig>,
    admitted: Admitted,
) -> Result<Established, Failure> {
    let Admitted { mut stream, mut client, mut slot, proxied } = admitted;
    let is_inside = proxied && begins_with_tls(&stream).await;
    if proxied && !is_inside {
        client = read_proxy_header(&mut stream, &client, &mut slot).await.map_err(Failure::Proxy)?;
    }
    // A proxy that names its client within TLS is trusted, and has the connections of many.
    if !is_inside && !admission.begin_handshake(Instant::now(), &client, true) {
        // A reset, so that no state of the connection stays, not even in the kernel.
        let _ = stream.set_zero_linger();
        return Err(Failure::ClientRate);
    }
    let accepted = TlsAcceptor::from(config.clone()).accept(stream).await;
    let mut stream = accepted.map_err(|error| Failure::Handshake(HandshakeFailure::of(&error)))?;
    if is_inside {
        client = read_proxy_header(&mut stream, &client, &mut slot).await.map_err(Failure::Proxy)?;
    }
    Ok(Established { stream, client, slot })
}

/// True if the first octet on the connection begins a TLS handshake. The octet stays on the socket.
async fn begins_with_tls(stream: &TcpStream) -> bool {
    let mut first = [0];
    matches!(stream.peek(&mut first).await, Ok(1)) && first[0] == HANDSHAKE_RECORD
}

/// Reads the header of a proxy, and no octet after it. Assigns the connection to the client that it names.
async fn read_proxy_header<S: AsyncRead + Unpin>(
    stream: &mut S,
    proxy: &Client,
    slot: &mut ConnectionSlot,
) -> Result<Client, CloseReason> {
    let client = proxy_header::read(stream).await.ok_or(CloseReason::ProxyHeader)?.client(proxy);
    slot.assign_client(&client)?;
    Ok(client)
}

fn counter(failure: HandshakeFailure) -> Counter {
    match failure {
        HandshakeFailure::NoSharedParameters => Counter::HandshakeNoSharedParameters,
        HandshakeFailure::NotTls => Counter::HandshakeNotTls,
        HandshakeFailure::Malformed => Counter::HandshakeMalformed,
        HandshakeFailure::Alpn => Counter::HandshakeAlpn,
        HandshakeFailure::Alert => Counter::HandshakeAlert,
        HandshakeFailure::Closed => Counter::HandshakeClosed,
        HandshakeFailure::Timeout => Counter::HandshakeTimeout,
        HandshakeFailure::Displaced => Counter::HandshakeDisplaced,
        HandshakeFailure::Other => Counter::HandshakeOther,
    }
}
