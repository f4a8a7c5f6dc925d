//! Fallbacks of one attempt: over TCP, without EDNS, without a cookie or with a new one, without the client subnet.
//!
//! A server's reply may ask for that (BADCOOKIE, FORMERR, REFUSED, TC), or a reply may look forged. All fallbacks end in
//! [`Upstream::retry_as`]: the query goes to the server again, and does not count as a further try.

use crate::base::slab::Index;
use crate::context::Context;
use crate::counters::Counter;
use crate::interface::{Outbox, Transport};
use crate::message::cookie;
use crate::upstream::Upstream;
use crate::upstream::in_flight::Attempt;
use crate::upstream::query_form::CookieUse;
use crate::upstream::server::Server;
use crate::upstream::suspicion::Mismatch;
use wire::{Message, Opt, Rcode};

impl Upstream {
    /// Sends the current attempt again to a server in the form that the question's flags say now. `reason` counts it.
    fn retry_as(&mut self, index: Index, server: u16, reason: Counter, cx: &mut Context<'_, impl Outbox>) {
        let outbound = &mut self.outbound_queries[index];
        outbound.tries = outbound.tries.saturating_sub(1);
        cx.counters.count(reason);
        if outbound.doubt.compares && outbound.doubt.server == server && !outbound.form.is_over_stream() {
            // What was agreed on asks for another form, whose replies are compared anew.
            outbound.doubt.agreeing = 0;
            return self.send_to_compare(index, server, cx);
        }
        self.send_to(index, server, cx);
    }

    /// Moves a question to TCP: the reply was truncated, or looks forged. Replies over UDP to what was sent until now are not believed any
    /// more; `suspicion.rs` has the way back.
    pub(super) fn move_to_tcp(
        &mut self,
        index: Index,
        server: u16,
        reason: Counter,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        self.outbound_queries[index].form.transport = Transport::Tcp;
        self.retry_as(index, server, reason, cx);
    }

    /// Verifies the cookie of a reply to a query with a cookie. Returns true if the reply counts; may send the query again.
    ///
    /// RFC 7873 section 5.3: a reply with another client cookie than that of the query MUST be discarded, and so MUST a reply
    /// without a cookie if one is expected.
    #[inline]
    pub(super) fn verify_cookie(
        &mut self,
        index: Index,
        place: usize,
        message: &Message<'_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> bool {
        let attempt = self.outbound_queries[index].attempts[place];
        let ours = self.links.cookie(attempt.link);
        let over_udp = self.links.transport(attempt.link) == Transport::Udp;
        let cookies = &mut self.servers.list[usize::from(attempt.server)].cookies;
        match message.opt().as_ref().and_then(cookie::first).map(cookie::split) {
            Some(Some((client, server))) if client == ours => {
                cookies.learn(client, server, cx.now);
                return true;
            }
            Some(_) => {}
            None if over_udp => {
                if !cookies.is_expected() {
                    return true;
                }
            }
            None => {
                if self.outbound_queries[index].cookie_missing {
                    cookies.stop_expecting(cx.now);
                    cx.counters.count(Counter::UpstreamCookieLost);
                }
                return true;
            }
        }
        cx.counters.count(Counter::SuspectCookie);
        if over_udp {
            self.outbound_queries[index].cookie_missing = true;
            if cookies.was_returned_lately(cx.now) {
                self.suspect(index, attempt.server, cx);
                return false;
            }
            return self.weigh((index, place), Mismatch::Cookie, message, cx);
        } else {
            // Over TCP no third party forges this: the server is wrong about cookies.
            cookies.stop_expecting(cx.now);
            cookies.suspend(cx.now);
            self.retry_without_cookie(index, place, cx);
        }
        false
    }

    /// Sends the query to its server once more without a cookie.
    #[cold]
    fn retry_without_cookie(&mut self, index: Index, place: usize, cx: &mut Context<'_, impl Outbox>) {
        let outbound = &mut self.outbound_queries[index];
        let attempt = &mut outbound.attempts[place];
        attempt.failed = true;
        let (server, with_subnet) = (attempt.server, attempt.form.subnet);
        // Of several attempts, the first that is not understood is enough; the query without the cookie is on its way.
        if core::mem::replace(&mut outbound.form.cookie, CookieUse::Omitted) == CookieUse::Omitted {
            return;
        }
        if with_subnet {
            // A server that does not know one option does not know the other.
            outbound.form.subnet = false;
            outbound.scope = 0;
            cx.counters.count(Counter::SubnetRefused);
        }
        self.retry_as(index, server, Counter::UpstreamCookieRefused, cx);
    }

    /// Handles the information about cookies in a valid reply. Returns true if the query was sent again because of that.
    ///
    /// RFC 7873 section 5.3: after BADCOOKIE the query is sent with the new cookie, and over TCP if that is not good
    /// either. A server that replies FORMERR and does not return the cookie may not know options (RFC 6891 section 7).
    #[inline]
    pub(super) fn on_badcookie(
        &mut self,
        index: Index,
        place: usize,
        message: &Message<'_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> bool {
        let outbound = &mut self.outbound_queries[index];
        let attempt = outbound.attempts[place];
        let wanted = outbound.is_wanted();
        match message.rcode() {
            Rcode::FORMERR if attempt.form.has_cookie() && wanted => {
                if message.opt().as_ref().and_then(cookie::first).is_some() {
                    return false;
                }
                self.retry_without_cookie(index, place, cx);
                true
            }
            Rcode::BADCOOKIE if wanted && self.links.transport(attempt.link) == Transport::Udp => {
                outbound.attempts[place].failed = true;
                if attempt.form.has_cookie() && outbound.form.cookie == CookieUse::Sent {
                    outbound.form.cookie = CookieUse::Renewed;
                    let reason = Counter::UpstreamCookieRenewed;
                    self.retry_as(index, attempt.server, reason, cx);
                } else {
                    self.move_to_tcp(index, attempt.server, Counter::TcpCookie, cx);
                }
                true
            }
            rcode => {
                let failed_with = |other: &Attempt| {
                    other.server == attempt.server
                        && other.form.has_cookie()
                        && !other.form.subnet
                        && other.failed
                };
                let cookies = &mut self.servers.list[usize::from(attempt.server)].cookies;
                if !outbound.form.has_cookie()
                    && !attempt.form.has_cookie()
                    && rcode != Rcode::FORMERR
                    && outbound.attempts().iter().any(failed_with)
                {
                    cookies.note_formerr(cx.now);
                } else if attempt.form.has_cookie() && rcode != Rcode::FORMERR {
                    cookies.clear_formerrs();
                }
                false
            }
        }
    }

    /// Handles the information about EDNS in a valid reply. Returns true if the query was sent again because of that.
    #[inline]
    pub(super) fn on_no_edns(
        &mut self,
        index: Index,
        place: usize,
        message: &Message<'_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> bool {
        let outbound = &mut self.outbound_queries[index];
        let attempt = outbound.attempts[place];
        let edns = &mut self.servers.list[usize::from(attempt.server)].edns;
        let is_failure = matches!(message.rcode(), Rcode::FORMERR | Rcode::NOTIMP);
        if !attempt.form.edns {
            let needed = |other: &&Attempt| {
                other.server == attempt.server && other.form.edns && other.sent < attempt.sent
            };
            if !is_failure && let Some(refused) = outbound.attempts().iter().rfind(needed) {
                // Both replies came over streams.
                let links = &self.links;
                let is_stream = |link| links.is_open(link) && links.transport(link).is_stream();
                let is_certain = refused.failed && is_stream(refused.link) && is_stream(attempt.link);
                edns.note_formerr(is_certain, cx.now);
            }
            return false;
        }
        // Some servers send the query back as it came: an option with a client cookie alone shows no EDNS support.
        let is_own = |opt: &Opt<'_>| cookie::first(opt).is_none_or(|data| data.len() > cookie::CLIENT);
        if message.opt().as_ref().is_some_and(is_own) {
            edns.on_edns(cx.now);
            return false;
        }
        if !is_failure || !outbound.is_wanted() {
            return false;
        }
        self.retry_without_edns(index, place, cx);
        true
    }

    /// Sends the query to its server once more, without an OPT record. Over UDP a server that has shown EDNS or cookies is not believed to
    /// have neither: its reply may be forged, and the question is asked as after any other (`suspicion.rs`), with an OPT record.
    #[cold]
    pub(super) fn retry_without_edns(
        &mut self,
        index: Index,
        place: usize,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let outbound = &mut self.outbound_queries[index];
        let attempt = outbound.attempts[place];
        outbound.attempts[place].failed = true;
        let Server { edns, cookies, .. } = &mut self.servers.list[usize::from(attempt.server)];
        if edns.is_known(cx.now) || cookies.is_expected() {
            if self.links.transport(attempt.link) == Transport::Udp {
                self.suspect(index, attempt.server, cx);
                return;
            }
            edns.clear_known();
        }
        // Of several attempts, the first that is not understood is enough; the query without the record is on its way.
        if core::mem::take(&mut outbound.form.edns) {
            self.retry_as(index, attempt.server, Counter::EdnsRefused, cx);
        }
    }

    /// Verifies the client subnet of a reply to a query with one. Returns true if the reply counts; may move the question to
    /// TCP.
    #[cold]
    pub(super) fn verify_subnet(
        &mut self,
        index: Index,
        place: usize,
        message: &Message<'_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> bool {
        let outbound = &mut self.outbound_queries[index];
        let attempt = outbound.attempts[place];
        if let Some(scope) = outbound.subnet.map_or(Some(0), |subnet| subnet.scope_of_reply(message)) {
            outbound.scope = scope;
            return true;
        }
        cx.counters.count(Counter::SuspectSubnet);
        // A forger guessed ID and letter case, or the upstream does not support subnets. Over TCP, forgers cannot guess.
        if self.links.transport(attempt.link) == Transport::Udp {
            self.move_to_tcp(index, attempt.server, Counter::TcpSuspicion, cx);
        }
        false
    }

    /// Handles an upstream that refuses the client subnet. Returns true if it is asked without it.
    ///
    /// RFC 7871 section 7.3: after REFUSED the query MUST be repeated without the option. A server that does not know options
    /// replies FORMERR.
    #[cold]
    pub(super) fn on_subnet_refused(
        &mut self,
        index: Index,
        place: usize,
        message: &Message<'_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> bool {
        let outbound = &mut self.outbound_queries[index];
        let unwanted = matches!(message.rcode(), Rcode::REFUSED | Rcode::FORMERR);
        if !unwanted || !outbound.is_wanted() {
            return false;
        }
        outbound.attempts[place].failed = true;
        // Of several attempts, the first that is refused is enough; the query without the subnet is on its way.
        if outbound.form.subnet {
            outbound.form.subnet = false;
            outbound.scope = 0;
            let server = outbound.attempts[place].server;
            self.retry_as(index, server, Counter::SubnetRefused, cx);
        }
        true
    }
}
