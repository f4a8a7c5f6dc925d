//! Form of the requests over HTTPS (RFC 8484 section 4.1): POST with the query in the body, or GET with the query in the path.

use crate::error::{LoadError, refuse};
use crate::options::HttpOptions;
use data_encoding::BASE64URL_NOPAD;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use measure::order::Transport;
use std::net::SocketAddr;

/// Media type of DNS messages (RFC 8484 section 6).
const DNS_MESSAGE: &str = "application/dns-message";

/// Requests to one resource of one server.
#[derive(Clone, Debug)]
pub struct RequestForm {
    uri: Uri,
    is_get: bool,
    headers: HeaderMap,
}

impl RequestForm {
    /// Requests to the server of this address and name.
    ///
    /// # Errors
    ///
    /// `LoadError::Order`: the server's name does not fit into a URI, or the path does not begin with a slash, or has a query, a
    /// fragment or a variable.
    pub fn new(
        server: SocketAddr,
        name: Option<&str>,
        options: &HttpOptions,
    ) -> Result<RequestForm, LoadError> {
        let authority = match (name, server.port()) {
            (None, port) if port == Transport::Https.default_port() => match server {
                SocketAddr::V4(_) => server.ip().to_string(),
                SocketAddr::V6(_) => format!("[{}]", server.ip()),
            },
            (None, _) => server.to_string(),
            (Some(name), port) if port == Transport::Https.default_port() => name.to_owned(),
            (Some(name), port) => format!("{name}:{port}"),
        };
        let Ok(authority) = Authority::try_from(authority) else {
            return refuse(
                "the name of the server does not fit a URI; write one like dns.example (--tls-name)",
            );
        };
        let path = options.path.as_str();
        let fits = path.starts_with('/') && !path.contains(['?', '#', '{']);
        let Some(path) = PathAndQuery::try_from(path).ok().filter(|_| fits) else {
            return refuse(format!(
                "\"{path}\" is no path of a resource; write one like /dns-query, without variables (--http-path)"
            ));
        };
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(DNS_MESSAGE));
        if !options.get {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(DNS_MESSAGE));
        }
        let uri = Uri::builder().scheme(Scheme::HTTPS).authority(authority).path_and_query(path).build();
        let Ok(uri) = uri else { return refuse("the server and the path give no URI (--http-path)") };
        Ok(RequestForm { uri, is_get: options.get, headers })
    }

    /// The request with a query, and its body; `None` if the query is in the path.
    pub fn request(&self, query: Vec<u8>) -> (Request<()>, Option<Vec<u8>>) {
        let mut request = Request::new(());
        *request.headers_mut() = self.headers.clone();
        if !self.is_get {
            *request.method_mut() = Method::POST;
            *request.uri_mut() = self.uri.clone();
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(query.len()));
            return (request, Some(query));
        }
        let path = format!("{}?dns={}", self.uri.path(), BASE64URL_NOPAD.encode(&query));
        let mut parts = self.uri.clone().into_parts();
        // The characters of base64url may stand in a path.
        parts.path_and_query = PathAndQuery::try_from(path).ok();
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
        (request, None)
    }
}

/// True if a response says that its body is a DNS message. Parameters may follow the type (RFC 9110 section 8.3.1).
pub fn has_message<T>(response: &Response<T>) -> bool {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let kind = value.split(';').next().unwrap_or("").trim();
    kind.eq_ignore_ascii_case(DNS_MESSAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(server: &str, name: Option<&str>, path: &str, get: bool) -> Result<RequestForm, LoadError> {
        RequestForm::new(server.parse().unwrap(), name, &HttpOptions { get, path: path.to_owned() })
    }

    #[test]
    fn a_query_is_in_the_body_or_in_the_path() {
        let post = form("192.0.2.1:443", Some("dns.test"), "/dns-query", false).unwrap();
        let (request, body) = post.request(vec![1, 2, 3]);
        assert_eq!(request.uri(), "https://dns.test/dns-query");
        assert_eq!((request.method(), body), (&Method::POST, Some(vec![1, 2, 3])));
        assert_eq!(
            (&request.headers()[CONTENT_TYPE], &request.headers()[CONTENT_LENGTH]),
            (&HeaderValue::from_static(DNS_MESSAGE), &HeaderValue::from_static("3"))
        );
        // RFC 8484 section 4.1.1: a query for www.example.com.
        let example = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03com\0\0\x01\0\x01";
        let get = form("[2001:db8::1]:8443", None, "/", true).unwrap();
        let (request, body) = get.request(example.to_vec());
        assert_eq!(
            request.uri(),
            "https://[2001:db8::1]:8443/?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB"
        );
        assert_eq!((request.method(), body), (&Method::GET, None));
        assert!(!request.headers().contains_key(CONTENT_TYPE) && request.headers().contains_key(ACCEPT));
    }

    #[test]
    fn a_path_with_variables_is_refused() {
        for path in ["/dns-query{?dns}", "dns-query", "", "/a b", "/x?y=1"] {
            let refused = form("192.0.2.1:443", None, path, true).unwrap_err().to_string();
            assert!(refused.contains("--http-path"), "{path}: {refused}");
        }
    }

    #[test]
    fn the_type_of_a_message_may_have_parameters() {
        let of =
            |value: &str| has_message(&Response::builder().header(CONTENT_TYPE, value).body(()).unwrap());
        assert!(of("application/dns-message") && of("Application/DNS-message; charset=x"));
        assert!(!of("text/html") && !of("application/dns-message-2") && !has_message(&Response::new(())));
    }
}
