//! HTTP/1.1 on one connection: the query out of a request, the way to the worker and back, and the response. hyper speaks it.

use crate::QuerySink;
use crate::account::Account;
use crate::https::Service;
use crate::https::connection::{HttpsConnection, UnderWay};
use crate::https::reply::Answers;
use crate::https::request::{self, Query};
use crate::https::response;
use crate::requests;
use engine::Client;
use http::header::{CONNECTION, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use std::fmt;
use std::rc::Rc;

/// The server drops the query of a request. Responses have the order of the requests (RFC 9112 section 9.3.2), so none can be left out: the
/// connection ends instead.
#[derive(Debug)]
pub(crate) struct Dropped;

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the query gets no answer")
    }
}

impl std::error::Error for Dropped {}

/// Answers a request over HTTP/1.1. Every failure of a request is a response with its status.
///
/// # Errors
///
/// `Dropped`: the server drops the query, as a response policy may say. The connection then ends without a response.
pub(crate) async fn respond<Q: QuerySink>(
    answers: &Answers<Q>,
    service: &Service,
    connection: &Rc<HttpsConnection>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Dropped> {
    let _under_way = UnderWay::begin(connection);
    let with_body = request.method() != Method::HEAD;
    let mut account = Account::new(connection.buffered.clone());
    let answered = match message(answers, service, request, &mut account).await {
        Ok(message) => {
            let client = Client { stream: answers.context.next_token(), ..connection.client };
            match requests::ask(&answers.context, &answers.requests, &client, &message).await {
                Ok(None) => return Err(Dropped),
                Ok(Some(answer)) => Ok(answer),
                Err(reason) => Err(request::status_of(reason)),
            }
        }
        Err(status) => Err(status),
    };
    drop(account);
    let answered =
        answered.and_then(|answer| response::success(answer, connection.buffered.clone(), with_body));
    let mut response = answered.unwrap_or_else(response::failure);
    if connection.is_retiring() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answers.context.count(response::counter(response.status()));
    Ok(response.map(Full::new))
}

/// The query message of a request over HTTP/1.1.
async fn message<Q: QuerySink>(
    answers: &Answers<Q>,
    service: &Service,
    request: Request<Incoming>,
    account: &mut Account,
) -> Result<Vec<u8>, StatusCode> {
    let (parts, body) = request.into_parts();
    if !request::names_one_host(parts.version, &parts.headers) {
        return Err(StatusCode::BAD_REQUEST);
    }
    let message = match request::query(&parts, service)? {
        Query::InTarget(message) => message,
        Query::InBody => {
            let patience = answers.context.shared.admission.timeouts().idle;
            let read = tokio::time::timeout(patience, read_body(body, account));
            read.await.unwrap_or(Err(StatusCode::REQUEST_TIMEOUT))?
        }
    };
    request::checked(message)
}

async fn read_body(mut body: Incoming, account: &mut Account) -> Result<Vec<u8>, StatusCode> {
    let mut message = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| StatusCode::BAD_REQUEST)?;
        if let Some(octets) = frame.data_ref() {
            request::extend(&mut message, octets, account)?;
        }
    }
    Ok(message)
}
