//! Requests: where the query of a request is, and the status for one that has none (RFC 8484 section 4.1).

use crate::account::Account;
use crate::https::Service;
use crate::https::response;
use crate::https::target::{self, MESSAGE_OCTETS};
use crate::limits;
use crate::requests::NoAnswer;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, Version};

/// Octets of a DNS header.
const HEADER: usize = 12;

/// The place of the query in a request.
#[derive(Debug)]
pub(crate) enum Query {
    /// The query itself, out of the target.
    InTarget(Vec<u8>),
    /// The query is the body.
    InBody,
}

/// Finds the query of a request.
///
/// # Errors
///
/// The status of the response. 414 (URI Too Long): the target exceeds `HTTPS_URI_OCTETS`, or its message would be too long. 404:
/// another path than that of the service. 400: the target has no message in base64url. 415: a POST with another media type. 413: a POST
/// whose Content-Length exceeds a message. 405: another method than GET, HEAD and POST.
//= RFC 8484 section 4.1: requirement 82
pub(crate) fn query(request: &Parts, service: &Service) -> Result<Query, StatusCode> {
    let uri = &request.uri;
    let octets = uri.path().len() + uri.query().map_or(0, |query| 1 + query.len());
    if octets > limits::HTTPS_URI_OCTETS {
        return Err(StatusCode::URI_TOO_LONG);
    }
    if uri.path() != &*service.path {
        return Err(StatusCode::NOT_FOUND);
    }
    match request.method {
        Method::GET | Method::HEAD => {
            let message = target::message(uri.query().unwrap_or_default());
            message.map(Query::InTarget).map_err(|error| match error {
                target::Error::TooLong => StatusCode::URI_TOO_LONG,
                _ => StatusCode::BAD_REQUEST,
            })
        }
        Method::POST if !has_media_type(request) => Err(StatusCode::UNSUPPORTED_MEDIA_TYPE),
        Method::POST if is_too_long(request) => Err(StatusCode::PAYLOAD_TOO_LARGE),
        Method::POST => Ok(Query::InBody),
        _ => Err(StatusCode::METHOD_NOT_ALLOWED),
    }
}

/// True if a request over HTTP/1 has as many Host fields as RFC 9112 section 3.2 wants: one. HTTP/1.0 may do without.
pub fn names_one_host(version: Version, fields: &HeaderMap) -> bool {
    let hosts = fields.get_all(HOST).iter().count();
    hosts == 1 || hosts == 0 && version == Version::HTTP_10
}

/// Gives a message back if it is a query. A message with QR set is a response, so no answer would come.
///
/// # Errors
///
/// 400 (Bad Request): the message is shorter than a DNS header, or is a response.
pub(crate) fn checked(message: Vec<u8>) -> Result<Vec<u8>, StatusCode> {
    let is_query = message.len() >= HEADER && message[2] & 0x80 == 0;
    if is_query { Ok(message) } else { Err(StatusCode::BAD_REQUEST) }
}

/// Adds octets of a body to the DNS message that it carries, and counts their memory.
///
/// # Errors
///
/// 413 (Content Too Large): the message would exceed the 65,535 octets that a DNS message may have. 503 (Service Unavailable): the
/// memory for all queries and answers is used up. The message stays as it was.
pub(crate) fn extend(message: &mut Vec<u8>, octets: &[u8], account: &mut Account) -> Result<(), StatusCode> {
    if message.len() + octets.len() > MESSAGE_OCTETS {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    if !account.add(octets.len()) {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    message.extend_from_slice(octets);
    Ok(())
}

/// True if the body is a DNS message. Parameters of the media type are ignored (RFC 9110 section 8.3.1).
//= RFC 8484 section 4.2: requirement 83
fn has_media_type(request: &Parts) -> bool {
    let value = request.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(response::MEDIA_TYPE))
}

/// True if the body says that it is longer than a DNS message.
fn is_too_long(request: &Parts) -> bool {
    let length = request.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    length.and_then(|length| length.parse().ok()).is_some_and(|length: u64| length > MESSAGE_OCTETS as u64)
}

/// The status for a query that has no answer.
pub(crate) fn status_of(reason: NoAnswer) -> StatusCode {
    match reason {
        NoAnswer::Busy => StatusCode::SERVICE_UNAVAILABLE,
        NoAnswer::Late => StatusCode::GATEWAY_TIMEOUT,
    }
}
