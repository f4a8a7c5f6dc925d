//! One request: the query out of it, the way to the worker and back, and the response.

use crate::QuerySink;
use crate::account::Account;
use crate::https::Service;
use crate::https::connection::HttpsConnection;
use crate::https::response;
use crate::https::target::{self, MESSAGE_OCTETS};
use crate::limits;
use crate::requests::{self, NoAnswer, Requests};
use crate::thread_context::ThreadContext;
use datapath::QueuedMessage;
use engine::Client;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use std::convert::Infallible;
use std::rc::Rc;

/// Octets of a DNS header.
const HEADER: usize = 12;

/// The parts of a stream thread that a request needs.
pub(crate) struct RequestContext<'t, Q> {
    pub(crate) thread: &'t ThreadContext<Q>,
    pub(crate) requests: &'t Rc<Requests>,
    /// The token of this request.
    pub(crate) token: u64,
}

/// Answers a request. Every failure is a response with its status.
pub(crate) async fn respond<Q: QuerySink>(
    context: RequestContext<'_, Q>,
    service: &Service,
    connection: &HttpsConnection,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let _under_way = connection.begin_request();
    let with_body = request.method() != Method::HEAD;
    let mut account = Account::new(context.thread.shared.clone(), connection.buffered.clone());
    let asked = match query(&context, service, request, &mut account).await {
        Ok(message) => ask(&context, &connection.client, &message).await,
        Err(status) => Err(status),
    };
    drop(account);
    let response = asked.and_then(|answer| {
        let mut account = Account::new(context.thread.shared.clone(), connection.buffered.clone());
        if account.add(answer.message().len()) {
            Ok(response::success(answer, account, with_body))
        } else {
            Err(StatusCode::SERVICE_UNAVAILABLE)
        }
    });
    let mut response = response.unwrap_or_else(response::failure);
    if connection.is_retiring() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    context.thread.count(response::counter(response.status()));
    Ok(response)
}

/// The query message of a request.
//= RFC 8484 section 4.1: requirement 82
async fn query<Q: QuerySink>(
    context: &RequestContext<'_, Q>,
    service: &Service,
    request: Request<Incoming>,
    account: &mut Account,
) -> Result<Vec<u8>, StatusCode> {
    let uri = request.uri();
    let octets = uri.path().len() + uri.query().map_or(0, |query| 1 + query.len());
    if octets > limits::HTTPS_URI_OCTETS {
        return Err(StatusCode::URI_TOO_LONG);
    }
    if uri.path() != &*service.path {
        return Err(StatusCode::NOT_FOUND);
    }
    let message = match *request.method() {
        Method::GET | Method::HEAD => {
            target::message(uri.query().unwrap_or_default()).map_err(|error| match error {
                target::Error::TooLong => StatusCode::URI_TOO_LONG,
                _ => StatusCode::BAD_REQUEST,
            })?
        }
        Method::POST if has_media_type(&request) => {
            let patience = context.thread.shared.admission.timeouts().idle;
            let read = tokio::time::timeout(patience, read_body(request.into_body(), account));
            read.await.unwrap_or(Err(StatusCode::REQUEST_TIMEOUT))?
        }
        Method::POST => return Err(StatusCode::UNSUPPORTED_MEDIA_TYPE),
        _ => return Err(StatusCode::METHOD_NOT_ALLOWED),
    };
    // A message with QR set is a response, so no answer would come.
    let is_query = message.len() >= HEADER && message[2] & 0x80 == 0;
    if is_query { Ok(message) } else { Err(StatusCode::BAD_REQUEST) }
}

/// True if the body is a DNS message. Parameters of the media type are ignored (RFC 9110 section 8.3.1).
//= RFC 8484 section 4.2: requirement 83
fn has_media_type(request: &Request<Incoming>) -> bool {
    let value = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(response::MEDIA_TYPE))
}

async fn read_body(mut body: Incoming, account: &mut Account) -> Result<Vec<u8>, StatusCode> {
    if body.size_hint().lower() > MESSAGE_OCTETS as u64 {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let mut message = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| StatusCode::BAD_REQUEST)?;
        let Some(octets) = frame.data_ref() else { continue };
        if message.len() + octets.len() > MESSAGE_OCTETS {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        if !account.add(octets.len()) {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        message.extend_from_slice(octets);
    }
    Ok(message)
}

/// Hands a query to the server and waits for its answer.
async fn ask<Q: QuerySink>(
    context: &RequestContext<'_, Q>,
    client: &Client,
    message: &[u8],
) -> Result<QueuedMessage, StatusCode> {
    let client = Client { stream: context.token, ..*client };
    requests::ask(context.thread, context.requests, &client, message).await.map_err(|reason| match reason {
        NoAnswer::Busy => StatusCode::SERVICE_UNAVAILABLE,
        NoAnswer::Late => StatusCode::GATEWAY_TIMEOUT,
    })
}
