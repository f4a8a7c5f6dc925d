//! The HTTP server of `[metrics]`: `/metrics` for Prometheus, `/livez` and `/readyz` for orchestrators. It accepts few
//! connections and has short deadlines, so that it never takes time from the resolver.

use crate::handle::ServerHandle;
use crate::metrics::Metrics;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Connections at a time; more wait in the kernel's queue.
const CONNECTIONS: usize = 32;

/// Time for one connection in all.
const DEADLINE: Duration = Duration::from_secs(30);

/// Wait after an accept that failed, for example for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until the process ends.
pub async fn serve(listener: TcpListener, server: Arc<ServerHandle>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let server = Arc::clone(&server);
        tokio::task::spawn_local(async move {
            let service = service_fn(move |request| {
                let server = Arc::clone(&server);
                async move { Ok::<_, Infallible>(answer(&request, &server).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .max_buf_size(16 << 10)
                .serve_connection(TokioIo::new(stream), service);
            // An error or a timeout concerns only this client.
            let _ = tokio::time::timeout(DEADLINE, connection).await;
            drop(permit);
        });
    }
}

async fn answer(request: &Request<Incoming>, server: &ServerHandle) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".into());
        response.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/metrics" => {
            let mut response = text(StatusCode::OK, Metrics::gather(server).await.to_text());
            let kind = hyper::header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
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
            Ok(()) => text(StatusCode::OK, "ok\n".into()),
            Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        },
        "/status" => text(StatusCode::NOT_IMPLEMENTED, "not supported yet\n".into()),
        _ => text(StatusCode::NOT_FOUND, "the paths are /metrics, /livez and /readyz\n".into()),
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
