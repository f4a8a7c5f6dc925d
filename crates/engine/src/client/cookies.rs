//! Server cookies for clients (RFC 7873 section 5.2).

use crate::answer::requestor::RequestorEdns;
use crate::base::time::Instant;
use crate::counters::Counter;
use crate::engine::Engine;
use crate::interface::Client;
use crate::message::cookie::{Cookie, Cookies, MalformedCookie, first};
use wire::{Opcode, Opt, header};

impl Engine {
    /// Checks the cookie of a query, and returns the cookie for its answer.
    #[inline]
    pub(crate) fn cookie_for(
        &mut self,
        opt: &Opt<'_>,
        from: &Client,
        now: Instant,
    ) -> Result<Option<Cookie>, MalformedCookie> {
        let Cookies { enabled, secrets } = &self.settings.cookies;
        if !enabled || first(opt).is_none() {
            return Ok(None);
        }
        let cookie = Cookie::of_query(opt, from.address, secrets, self.clients.clock.unix_secs(now));
        match cookie {
            Ok(Some(cookie)) => self.counters.count(cookie.counter()),
            Ok(None) => {}
            Err(_) => self.counters.count(Counter::CookieMalformed),
        }
        cookie
    }

    /// Reads a query without a question that asks only for a cookie: QDCOUNT is zero, and its OPT record has a cookie (RFC 7873
    /// section 5.4, which RFC 9619 does not change). Returns the EDNS parameters and the cookie for the answer.
    #[cold]
    pub(crate) fn cookie_alone(
        &mut self,
        from: &Client,
        message: &[u8],
        now: Instant,
    ) -> Option<(RequestorEdns, Cookie)> {
        let opt = wire::sole_opt(message).filter(|opt| opt.version() == 0)?;
        if header::flags(message).opcode() != Opcode::QUERY || !self.settings.allow.contains(from.address) {
            return None;
        }
        let cookie = self.cookie_for(&opt, from, now).ok()??;
        Some((RequestorEdns { size: opt.udp_size(), dnssec_ok: opt.dnssec_ok() }, cookie))
    }
}
