//! The HTTP server of `[metrics]`: `/metrics` for Prometheus, `/livez` and `/readyz` for orchestrators. A handful of
//! connections, short deadlines: it must never cost the resolver anything.

use crate::handle::Running;
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

/// How long one connection may take in all.
const DEADLINE: Duration = Duration::from_secs(30);

/// After an accept that failed (out of descriptors, say), the next one waits so long.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until the process ends.
pub async fn serve(listener: TcpListener, running: Arc<Running>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let running = Arc::clone(&running);
        tokio::task::spawn_local(async move {
            let service = service_fn(move |request| {
                let running = Arc::clone(&running);
                async move { Ok::<_, Infallible>(answer(&request, &running).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .max_buf_size(16 << 10)
                .serve_connection(TokioIo::new(stream), service);
            // A client that goes away or dawdles is its own affair.
            let _ = tokio::time::timeout(DEADLINE, connection).await;
            drop(permit);
        });
    }
}

async fn answer(request: &Request<Incoming>, running: &Running) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".into());
        response.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/metrics" => {
            let mut response = text(StatusCode::OK, Metrics::gather(running).await.to_text());
            let kind = hyper::header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        // Alive: the workers look up from their work. Whether upstreams answer is not a reason to be restarted. A
        // server that stops has workers that have ended, and is not to be restarted either.
        "/livez" if running.draining.load(Ordering::Relaxed) => text(StatusCode::OK, "ok\n".into()),
        "/livez" => match running.views().await.iter().position(Option::is_none) {
            None => text(StatusCode::OK, "ok\n".into()),
            Some(worker) => {
                text(StatusCode::SERVICE_UNAVAILABLE, format!("worker {worker} does not respond\n"))
            }
        },
        "/readyz" => match running.health().await {
            Ok(()) => text(StatusCode::OK, "ok\n".into()),
            Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        },
        "/status" => text(StatusCode::NOT_IMPLEMENTED, "not supported yet\n".into()),
        _ => text(StatusCode::NOT_FOUND, "there are /metrics, /livez and /readyz\n".into()),
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
