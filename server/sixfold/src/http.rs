//! The HTTP server of `[metrics]`: `/metrics` for Prometheus, `/livez` and `/readyz` for orchestrators, `/status` for people. It accepts few
//! connections and has short deadlines, so that it never takes time from the resolver. Clients that send nothing, or that
//! stay connected, give way to new ones (`slots.rs`), so they cannot make a probe fail.

use crate::config::{Config, Network};
use crate::connection_slots::{ConnectionSlot, ConnectionSlots};
use crate::metrics::{Metrics, REFUSED};
use crate::prefixes::report;
use crate::running_server::ServerHandle;
use crate::status_page;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Connections at a time.
const CONNECTIONS: usize = 32;

/// Time for the head of a request, also for the next one on the same connection.
const HEAD: Duration = Duration::from_secs(2);

/// Time for one connection in all.
const DEADLINE: Duration = Duration::from_secs(30);

/// Wait after an accept that failed, for example for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until the process ends.
pub async fn serve(listener: TcpListener, server: Arc<ServerHandle>) {
    let slots = ConnectionSlots::new(CONNECTIONS);
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Without an answer: it would need a place, which others may have.
        if !is_allowed(peer.ip(), &server.config()) {
            REFUSED.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            continue;
        }
        let slot = Rc::new(slots.take().await);
        tokio::task::spawn_local(serve_connection(stream, slot, Arc::clone(&server)));
        // The connection reads the request that may be here already, before the next one can make it give way.
        tokio::task::yield_now().await;
    }
}

/// True if `metrics.allow` is empty or has the address. Over a socket of both families, an IPv4 address comes in the form of IPv6.
fn is_allowed(peer: IpAddr, config: &Config) -> bool {
    let peer = peer.to_canonical();
    let peer = Network::of(peer, if peer.is_ipv4() { 32 } else { 128 });
    config.metrics.allow.is_empty() || config.metrics.allow.iter().any(|network| network.contains(&peer))
}

async fn serve_connection(stream: TcpStream, slot: Rc<ConnectionSlot>, server: Arc<ServerHandle>) {
    let of_service = Rc::clone(&slot);
    let service = service_fn(move |request| {
        let (slot, server) = (Rc::clone(&of_service), Arc::clone(&server));
        async move {
            slot.begin_request();
            let response = answer(&request, &server).await;
            let (method, uri) = (request.method(), request.uri().to_string());
            tracing::trace!(event = "http_request", "HTTP request {method} {uri:?}: {}", response.status());
            slot.wait_for_request();
            Ok::<_, Infallible>(response)
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(16 << 10)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // An error or a timeout concerns only this client.
        _ = tokio::time::timeout(DEADLINE, connection) => {}
        () = slot.evicted() => tracing::debug!(event = "http_evicted", "metrics: a connection without a request gave way to a new one"),
    }
}

async fn answer(request: &Request<Incoming>, server: &ServerHandle) -> Response<Full<Bytes>> {
    if !transport::https::names_one_host(request.version(), request.headers()) {
        return text(StatusCode::BAD_REQUEST, "a request has one Host field\n".into());
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".into());
        return with(response, ALLOW, "GET, HEAD");
    }
    match request.uri().path() {
        "/metrics" => {
            let response = text(StatusCode::OK, Metrics::gather(server).await.to_text());
            with(response, CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")
        }
        // Alive means that the workers respond. A restart does not help against dead upstreams, and a server that stops
        // has workers that have ended: neither makes `/livez` fail.
        "/livez" if server.draining.load(Ordering::Relaxed) => text(StatusCode::OK, "ok\n".into()),
        "/livez" => match server.worker_statuses().await.iter().position(Option::is_none) {
            None => text(StatusCode::OK, "ok\n".into()),
            Some(worker) => {
                text(StatusCode::SERVICE_UNAVAILABLE, format!("worker {worker} does not respond\n"))
            }
        },
        "/readyz" => match server.health().await {
            Ok(()) => {
                let trouble = report::trouble(&server.prefix_statuses(), &server.prefixes.empty_sources());
                text(StatusCode::OK, format!("ok\n{trouble}"))
            }
            Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        },
        "/status" | "/status.json" | "/status.css" | "/status.js" => {
            status_page::answer(request, server).await
        }
        // For people who know the port only. The address is relative, as the page may lie behind a proxy.
        "/" => {
            let response = text(StatusCode::TEMPORARY_REDIRECT, "the status page is /status\n".into());
            with(response, LOCATION, "status")
        }
        _ => text(StatusCode::NOT_FOUND, "the paths are /metrics, /livez, /readyz and /status\n".into()),
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    with(response, CONTENT_TYPE, "text/plain; charset=utf-8")
}

/// The response with a header field.
fn with(mut response: Response<Full<Bytes>>, name: HeaderName, value: &'static str) -> Response<Full<Bytes>> {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}
