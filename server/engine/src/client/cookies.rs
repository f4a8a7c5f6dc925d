//! Server cookies for clients (RFC 7873 section 5.2, RFC 9018): what the cookie of a query is worth.

use crate::answer::params::ResponseParamsEdns;
use crate::client::Clients;
use crate::context::Context;
use crate::counters::Counter;
use crate::interface::{Client, Outbox};
use crate::message::cookie::{Cookie, Cookies, MalformedCookie, first};
use wire::{Opcode, Opt, header};

impl Clients {
    /// The cookie for the response to a query with this OPT record; none if the query has none, or cookies are off.
    ///
    /// # Errors
    ///
    /// `MalformedCookie`: the cookie option has a length that RFC 7873 section 4 does not allow. Such a query is counted, and the RFC
    /// demands FORMERR as its answer.
    #[inline]
    pub fn cookie_for(
        &self,
        opt: &Opt<'_>,
        from: &Client,
        config: &Cookies,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Result<Option<Cookie>, MalformedCookie> {
        let Cookies { enabled, secrets } = config;
        if !enabled || first(opt).is_none() {
            return Ok(None);
        }
        let cookie = Cookie::of_query(opt, from.address, secrets, self.clock.unix_secs(cx.now));
        match cookie {
            Ok(Some(cookie)) => cx.counters.count(cookie.counter()),
            Ok(None) => {}
            Err(_) => cx.counters.count(Counter::CookieMalformed),
        }
        cookie
    }

    /// The cookie that a message without a question asks for: an OPT record with a cookie and nothing else (RFC 7873 section
    /// 5.4, which RFC 9619 leaves as it is).
    #[cold]
    pub fn cookie_alone(
        &self,
        from: &Client,
        message: &[u8],
        config: &Cookies,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<(ResponseParamsEdns, Cookie)> {
        let opt = wire::sole_opt(message).filter(|opt| opt.version() == 0)?;
        if header::flags(message).opcode() != Opcode::QUERY {
            return None;
        }
        let cookie = self.cookie_for(&opt, from, config, cx).ok()??;
        // Nothing but the cookie is told.
        Some((ResponseParamsEdns::of_query(&opt, from.transport, false), cookie))
    }
}
