//! The same try in another form: over TCP, without EDNS, without cookie or with a new one, without client subnet.

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::counters::Counter;
use crate::engine::Engine;
use crate::interface::{Outbox, Transport};
use crate::message::cookie;
use crate::upstream::in_flight::Attempt;
use crate::upstream::server::Server;
use wire::{Message, Opt, Rcode};

impl Engine {
    /// Looks at the reply to a question that was asked with a cookie. True: it counts.
    ///
    /// RFC 7873 section 5.3: a reply with another cookie than ours MUST be discarded, and one without where one is
    /// expected.
    #[inline]
    pub(crate) fn verify_cookie(
        &mut self,
        index: Index,
        place: usize,
        message: &Message<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let attempt = self.flights.slab[index].attempts[place];
        let ours = self.links.cookie(attempt.link);
        let over_udp = self.links.transport(attempt.link) == Transport::Udp;
        let cookie_state = &mut self.servers.list[usize::from(attempt.server)].cookie_state;
        match message.opt().as_ref().and_then(cookie::first).map(cookie::split) {
            Some(Some((client, server))) if client == ours => {
                cookie_state.learn(client, server, now);
                return true;
            }
            Some(_) => {}
            None if over_udp => {
                if !cookie_state.expected {
                    return true;
                }
            }
            None => {
                if self.flights.slab[index].cookie_missing {
                    cookie_state.stop_expecting(now);
                    self.counters.count(Counter::UpstreamCookieLost);
                }
                return true;
            }
        }
        self.counters.count(Counter::SuspectCookie);
        if over_udp {
            self.flights.slab[index].cookie_missing = true;
            self.move_to_tcp(index, attempt.server, Counter::TcpSuspicion, now, out);
        } else {
            // Nobody forges this: the server is wrong about cookies.
            cookie_state.stop_expecting(now);
            cookie_state.leave_out(now);
            self.retry_without_cookie(index, place, now, out);
        }
        false
    }

    /// Asks the same server once more without a cookie: the same try in another form.
    #[cold]
    fn retry_without_cookie(&mut self, index: Index, place: usize, now: Instant, out: &mut impl Outbox) {
        let flight = &mut self.flights.slab[index];
        let attempt = &mut flight.attempts[place];
        attempt.failed = true;
        let (server, with_subnet) = (attempt.server, attempt.with_subnet);
        // Of several tries, the first that is not understood is enough; the question without the cookie is on its way.
        if core::mem::replace(&mut flight.without_cookie, true) {
            return;
        }
        if with_subnet {
            // Who does not know one option does not know the other.
            flight.without_subnet = true;
            flight.scope = 0;
            self.counters.count(Counter::SubnetRefused);
        }
        flight.tries = flight.tries.saturating_sub(1);
        self.counters.count(Counter::UpstreamCookieRefused);
        self.ask_server(index, server, now, out);
    }

    /// What a reply that counts means for cookies. True: the question is asked again because of them.
    ///
    /// RFC 7873 section 5.3: after BADCOOKIE the question is asked with the new cookie, and over TCP if that is not good
    /// either. A server that replies FORMERR and does not return the cookie may not know options (RFC 6891 section 7).
    #[inline]
    pub(crate) fn on_badcookie(
        &mut self,
        index: Index,
        place: usize,
        message: &Message<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let flight = &mut self.flights.slab[index];
        let attempt = flight.attempts[place];
        let wanted = flight.waiters != NONE || flight.references > 0;
        match message.rcode() {
            Rcode::FORMERR if attempt.with_cookie && wanted => {
                if message.opt().as_ref().and_then(cookie::first).is_some() {
                    return false;
                }
                self.retry_without_cookie(index, place, now, out);
                true
            }
            Rcode::BADCOOKIE if wanted && self.links.transport(attempt.link) == Transport::Udp => {
                flight.attempts[place].failed = true;
                if attempt.with_cookie && !core::mem::replace(&mut flight.cookie_renewed, true) {
                    flight.tries = flight.tries.saturating_sub(1);
                    self.counters.count(Counter::UpstreamCookieRenewed);
                    self.ask_server(index, attempt.server, now, out);
                } else {
                    self.move_to_tcp(index, attempt.server, Counter::TcpCookie, now, out);
                }
                true
            }
            rcode => {
                let failed_with = |other: &crate::upstream::in_flight::Attempt| {
                    other.server == attempt.server && other.with_cookie && !other.with_subnet && other.failed
                };
                if flight.without_cookie
                    && !attempt.with_cookie
                    && rcode != Rcode::FORMERR
                    && flight.attempts().iter().any(failed_with)
                {
                    self.servers.list[usize::from(attempt.server)].cookie_state.note_formerr(now);
                } else if attempt.with_cookie && rcode != Rcode::FORMERR {
                    self.servers.list[usize::from(attempt.server)].cookie_state.formerrs = 0;
                }
                false
            }
        }
    }

    /// What a reply that counts means for EDNS. True: the question is asked again because of that.
    #[inline]
    pub(crate) fn on_no_edns(
        &mut self,
        index: Index,
        place: usize,
        message: &Message<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let flight = &mut self.flights.slab[index];
        let attempt = flight.attempts[place];
        let Server { edns, cookie_state, .. } = &mut self.servers.list[usize::from(attempt.server)];
        let is_failure = matches!(message.rcode(), Rcode::FORMERR | Rcode::NOTIMP);
        if !attempt.with_opt {
            let needed = |other: &Attempt| {
                other.server == attempt.server && other.with_opt && other.sent < attempt.sent
            };
            if !is_failure && flight.attempts().iter().any(needed) {
                edns.note_formerr(now);
            }
            return false;
        }
        // Some send the question back as it came: a client cookie alone is our own.
        let is_own = |opt: &Opt<'_>| cookie::first(opt).is_none_or(|data| data.len() > cookie::CLIENT);
        if message.opt().as_ref().is_some_and(is_own) {
            edns.shows(now);
            return false;
        }
        if !is_failure || flight.waiters == NONE && flight.references == 0 {
            return false;
        }
        if edns.is_known(now) || cookie_state.is_expected() {
            if self.links.transport(attempt.link) == Transport::Udp {
                flight.attempts[place].failed = true;
                self.move_to_tcp(index, attempt.server, Counter::TcpSuspicion, now, out);
                return true;
            }
            edns.forget();
        }
        flight.attempts[place].failed = true;
        // Of several tries, the first that is not understood is enough; the question without the record is on its way.
        if !core::mem::replace(&mut flight.without_edns, true) {
            // The same try in another form.
            flight.tries = flight.tries.saturating_sub(1);
            self.counters.count(Counter::EdnsRefused);
            self.ask_server(index, attempt.server, now, out);
        }
        true
    }

    /// Looks at the reply to a question that was asked with a subnet. True: it counts.
    #[cold]
    pub(crate) fn verify_subnet(
        &mut self,
        index: Index,
        place: usize,
        message: &Message<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let flight = &mut self.flights.slab[index];
        let attempt = flight.attempts[place];
        if let Some(scope) = flight.subnet.map_or(Some(0), |subnet| subnet.scope_of_reply(message)) {
            flight.scope = scope;
            return true;
        }
        self.counters.count(Counter::SuspectSubnet);
        // Somebody who guessed ID and letter case, or an upstream that cannot do it: over TCP nobody guesses.
        if self.links.transport(attempt.link) == Transport::Udp {
            self.move_to_tcp(index, attempt.server, Counter::TcpSuspicion, now, out);
        }
        false
    }

    /// Whether an upstream wants no subnet, and is asked once more without it. RFC 7871 section 7.3: after REFUSED the
    /// question MUST be repeated without the option. FORMERR is what one says that does not know options.
    #[cold]
    pub(crate) fn on_subnet_refused(
        &mut self,
        index: Index,
        place: usize,
        message: &Message<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let flight = &mut self.flights.slab[index];
        let unwanted = matches!(message.rcode(), Rcode::REFUSED | Rcode::FORMERR);
        if !unwanted || (flight.waiters == NONE && flight.references == 0) {
            return false;
        }
        flight.attempts[place].failed = true;
        // Of several tries, the first that is refused is enough; the question without the subnet is on its way.
        if !flight.without_subnet {
            flight.without_subnet = true;
            flight.scope = 0;
            // The same try in another form.
            flight.tries = flight.tries.saturating_sub(1);
            let server = flight.attempts[place].server;
            self.counters.count(Counter::SubnetRefused);
            self.ask_server(index, server, now, out);
        }
        true
    }

    /// Asks again over TCP: the reply was truncated, or somebody forges. What still comes over UDP is not believed.
    pub(crate) fn move_to_tcp(
        &mut self,
        index: Index,
        server: u16,
        reason: Counter,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let flight = &mut self.flights.slab[index];
        flight.over_tcp = true;
        // The same try over another transport.
        flight.tries = flight.tries.saturating_sub(1);
        self.counters.count(reason);
        self.ask_server(index, server, now, out);
    }
}
