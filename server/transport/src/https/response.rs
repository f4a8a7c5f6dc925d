//! Responses: the status of a failure, or an answer with its freshness lifetime (RFC 8484 section 5.1).

use crate::account::Account;
use crate::budget::Buffered;
use crate::counters::Counter;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use hyper::body::Bytes;
use std::sync::Arc;
use wire::{Message, Section, Type};

/// The media type of DNS messages (RFC 8484 section 6).
pub(crate) const MEDIA_TYPE: &str = "application/dns-message";

/// The response with a status that is not 200: no body, and the remedy in a header field where HTTP has one.
pub(crate) fn failure(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    let field = match status {
        StatusCode::METHOD_NOT_ALLOWED => Some((ALLOW, "GET, HEAD, POST")),
        StatusCode::SERVICE_UNAVAILABLE => Some((RETRY_AFTER, "1")),
        _ => None,
    };
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    if let Some((name, value)) = field {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The response with an answer. `with_body` is false for HEAD, whose header fields are those of GET (RFC 9110 section 9.3.2).
///
/// # Errors
///
/// 503 (Service Unavailable): the memory for all queries and answers is used up.
pub(crate) fn success(
    answer: impl AsRef<[u8]> + Send + 'static,
    buffered: Arc<Buffered>,
    with_body: bool,
) -> Result<Response<Bytes>, StatusCode> {
    let length = answer.as_ref().len();
    let account = Account::of_response(buffered, length).ok_or(StatusCode::SERVICE_UNAVAILABLE)?;
    let lifetime_s = freshness_lifetime(answer.as_ref());
    let body =
        if with_body { Bytes::from_owner(Payload { answer, _account: account }) } else { Bytes::new() };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(CACHE_CONTROL, max_age(lifetime_s));
    Ok(response)
}

/// The value of Cache-Control for a lifetime.
fn max_age(lifetime_s: u32) -> HeaderValue {
    const NAME: &[u8; 8] = b"max-age=";
    // Ten digits hold every lifetime.
    let mut text = [b'0'; NAME.len() + 10];
    let mut start = text.len();
    let mut rest = lifetime_s;
    while rest > 0 || start == text.len() {
        start -= 1;
        text[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    start -= NAME.len();
    text[start..start + NAME.len()].copy_from_slice(NAME);
    HeaderValue::from_bytes(&text[start..]).unwrap_or(HeaderValue::from_static("no-cache"))
}

/// The class of a status, for the metrics.
pub(crate) fn counter(status: StatusCode) -> Counter {
    if status.is_success() {
        Counter::Https2xx
    } else if status.is_client_error() {
        Counter::Https4xx
    } else {
        Counter::Https5xx
    }
}

/// Seconds for which an HTTP cache may keep an answer: the smallest TTL of the answer section. Of a negative answer, the smaller of
/// the TTL and the MINIMUM of the SOA record (RFC 2308 section 5). Without either, 0.
//= RFC 8484 section 5.1: requirements 84, 85
fn freshness_lifetime(answer: &[u8]) -> u32 {
    let Ok(message) = Message::parse(answer) else { return 0 };
    let smallest = message.records(Section::Answer).map(|record| record.ttl).min();
    let is_negative = message.count(Section::Answer) == 0;
    let mut authority = message.records(Section::Authority);
    let of_soa = authority
        .find(|record| record.rtype == Type::SOA)
        .map(|record| record.soa_minimum().map_or(record.ttl, |minimum| minimum.min(record.ttl)));
    // An alias whose target has no data carries both, and neither may be exceeded.
    match (smallest, of_soa) {
        (Some(answer), Some(soa)) => answer.min(soa),
        (Some(answer), None) => answer,
        (None, Some(soa)) if is_negative => soa,
        _ => 0,
    }
}

/// The octets of an answer on its way through HTTP, which are counted until HTTP has written them.
struct Payload<A> {
    answer: A,
    _account: Account,
}

impl<A: AsRef<[u8]>> AsRef<[u8]> for Payload<A> {
    fn as_ref(&self) -> &[u8] {
        self.answer.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: [u8; 12] = [0, 0, 0x84, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    const QUESTION: [u8; 5] = [0, 0, 1, 0, 1];

    /// An answer for the root with these TTLs in the answer section, and an SOA record with this TTL and MINIMUM.
    fn answer(ttls: &[u32], soa: Option<(u32, u32)>) -> Vec<u8> {
        let mut message = [&HEADER[..], &QUESTION].concat();
        message[7] = ttls.len() as u8;
        message[9] = u8::from(soa.is_some());
        for ttl in ttls {
            message.extend([&[0, 0, 1, 0, 1][..], &ttl.to_be_bytes(), &[0, 4, 192, 0, 2, 1]].concat());
        }
        if let Some((ttl, minimum)) = soa {
            message.extend([&[0, 0, 6, 0, 1][..], &ttl.to_be_bytes(), &[0, 22, 0, 0]].concat());
            message.extend([0; 16]);
            message.extend(minimum.to_be_bytes());
        }
        message
    }

    #[test]
    fn a_lifetime_is_written_in_decimal() {
        for (lifetime_s, text) in [(0, "max-age=0"), (70, "max-age=70"), (u32::MAX, "max-age=4294967295")] {
            assert_eq!(max_age(lifetime_s), text);
        }
    }

    //= RFC 8484 section 5.1: requirements 84, 85
    #[test]
    fn the_freshness_lifetime_is_the_smallest_ttl_or_that_of_the_negative_answer() {
        assert_eq!(freshness_lifetime(&answer(&[300, 60, 200], None)), 60);
        assert_eq!(freshness_lifetime(&answer(&[], Some((3600, 900)))), 900);
        assert_eq!(freshness_lifetime(&answer(&[], Some((5, 900)))), 5);
        assert_eq!(freshness_lifetime(&answer(&[300], Some((3600, 30)))), 30);
        assert_eq!(freshness_lifetime(&answer(&[], None)), 0);
        assert_eq!(freshness_lifetime(&[0; 12]), 0);
    }
}
