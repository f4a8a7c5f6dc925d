//! Honest upstream: AAAA records of one address over UDP and TCP, after a delay; with cookies, without, or with wrong
//! ones. It passes every query over UDP to a channel.

use super::message::{self, CLIENT_COOKIE, cookie_option};
use kit::Upstream;
use std::io;
use std::net::{Ipv6Addr, SocketAddrV4};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Address in the honest replies.
pub(super) const HONEST_ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0x80);

/// Behaviour with cookies (RFC 7873).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cookies {
    /// Ignores cookies.
    None,
    /// Returns the client cookie with a server cookie.
    Returned,
    /// Returns another client cookie over UDP.
    Wrong,
}

/// Query that Sixfold sent.
#[derive(Clone, Debug)]
pub(super) struct ObservedQuery {
    /// Source port.
    pub(super) port: u16,
    /// ID.
    pub(super) id: u16,
    /// Question, in the letter case of the query.
    pub(super) question: Vec<u8>,
    /// True if the query had a cookie.
    pub(super) has_cookie: bool,
    /// Time of arrival.
    pub(super) seen: Instant,
}

/// Starts an upstream that answers each query after `delay`, and tells of those over UDP in `seen`.
///
/// # Errors
///
/// The address cannot be bound.
pub(super) fn start(
    at: SocketAddrV4,
    delay: Duration,
    cookies: Cookies,
    seen: Sender<ObservedQuery>,
) -> io::Result<Upstream> {
    Upstream::bind(at.into(), move |asked, replies| {
        // Over TCP a wrong cookie would show nothing more.
        let is_plain = asked.is_tcp && cookies == Cookies::Wrong;
        let cookies = if is_plain { Cookies::None } else { cookies };
        let Some(reply) = honest(asked.message, cookies) else { return };
        if !asked.is_tcp {
            let question = message::question(&reply).unwrap_or_default().to_vec();
            let has_cookie = message::cookie(asked.message).1.is_some();
            let id = u16::from_be_bytes([asked.message[0], asked.message[1]]);
            let (port, now) = (asked.peer.port(), Instant::now());
            // The channel may have no receiver.
            let _ = seen.send(ObservedQuery { port, id, question, has_cookie, seen: now });
        }
        replies.after(delay, reply);
    })
}

/// Honest reply to a query; `None` if the octets are no query.
fn honest(query: &[u8], cookies: Cookies) -> Option<Vec<u8>> {
    let question = message::question(query)?;
    let id = u16::from_be_bytes([query[0], query[1]]);
    let (edns, brought) = message::cookie(query);
    let client = brought.and_then(|data| data.first_chunk::<CLIENT_COOKIE>());
    let options = match (cookies, client) {
        (Cookies::Returned, Some(client)) => cookie_option(&[&client[..], &[0x5a; 16]].concat()),
        (Cookies::Wrong, Some(client)) => {
            let wrong = client.map(|octet| !octet);
            cookie_option(&[&wrong[..], &[0x5a; 16]].concat())
        }
        _ => vec![],
    };
    Some(message::reply(id, question, HONEST_ADDRESS, edns.then_some(&options)))
}
