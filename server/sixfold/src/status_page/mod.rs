//! The status page: `/status` for people, with its style sheet, its script, and the data that the script reads.
//!
//! The page works without a script: the server writes all figures into it, and the browser loads it again every ten seconds. With
//! one, the script reads `/status.json` every three seconds and puts the new texts into the same places. All texts are made in
//! `view.rs`, so that both show the same. Read that file first, then `template.rs`. The page begins with the answers to the first
//! questions of a person (`answers.rs`), which take no more than the first screen, on a phone too.
//!
//! Nothing that a client sent is on the page, no name and no address, unless `statistics.needs` asks for it. Names and texts of the
//! configuration are escaped, and the policy of the page forbids any script but its own.

mod answers;
mod format;
mod host;
mod reasons;
mod template;
mod view;

use crate::running_server::ServerHandle;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, HeaderValue,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Request, Response, StatusCode};
use view::View;

/// Policy of the page: its own script, style sheet and data, and nothing else. The icon is an empty one in the page itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Headers of every response.
const HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    // The server closes connections that are idle for two seconds: the script, which comes back after three, would meet that.
    (CONNECTION, "close"),
];

/// Answers a request for `/status` or one of its parts.
pub async fn answer<B>(request: &Request<B>, server: &ServerHandle) -> Response<Full<Bytes>> {
    if !is_trusted(request) {
        let why = "this page answers requests by an IP address or by the name localhost only, as a protection against DNS \
                   rebinding; open it by the address of the server\n";
        return response(StatusCode::MISDIRECTED_REQUEST, "text/plain; charset=utf-8", why.into());
    }
    let (kind, body) = match request.uri().path() {
        "/status.css" => ("text/css; charset=utf-8", include_str!("page.css").into()),
        "/status.js" => ("text/javascript; charset=utf-8", include_str!("page.js").into()),
        "/status.json" => ("application/json", View::of(server).await.to_json()),
        _ => ("text/html; charset=utf-8", template::render(&View::of(server).await)),
    };
    response(StatusCode::OK, kind, body)
}

/// True if the request names this server by its Host header, and by the authority of its target if it has one (RFC 9112 section
/// 3.2.2).
fn is_trusted<B>(request: &Request<B>) -> bool {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let authority = request.uri().authority().map(|authority| authority.as_str());
    host.is_some_and(host::is_trusted) && authority.is_none_or(host::is_trusted)
}

fn response(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_small() {
        let octets =
            include_str!("page.html").len() + include_str!("page.css").len() + include_str!("page.js").len();
        assert!(octets < 30_000, "{octets}");
    }
}
