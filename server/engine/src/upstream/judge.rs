//! The judgement of a reply: is it believed, and what does it ask for? Nothing is changed here; `receive.rs` acts on the verdict.
//!
//! The order matters. Letter case, cookie and subnet come first ([`verify`]): a reply without them may be forged, and must change nothing.
//! After that come replies that are no answer but ask for another form of the query (TC, BADCOOKIE, FORMERR, REFUSED), and last the failures
//! that another server may not have ([`judge`]).

use crate::base::time::Instant;
use crate::interface::{Link, Transport};
use crate::limits::{REPLY_RECORDS, SHORTEST_RECORD};
use crate::message::cookie::{self, CLIENT};
use crate::message::lame::is_lame;
use crate::message::question::QueryFlags;
use crate::message::reply::warrants_failover;
use crate::upstream::circuit_breaker::Cause;
use crate::upstream::in_flight::{Attempt, OutboundQuery};
use crate::upstream::query_form::{CookieUse, QueryForm};
use crate::upstream::server::Server;
use crate::upstream::verdict::{Failure, Mismatch, Reason, Verdict};
use wire::header::Flags;
use wire::{Message, Rcode, Section};

/// An attempt of a question that a message answers, and what its meaning depends on.
pub(super) struct Exchange<'a> {
    /// The question.
    pub outbound: &'a OutboundQuery,
    /// The attempt.
    pub attempt: &'a Attempt,
    /// Its server.
    pub server: &'a Server,
    /// Client cookie of its link.
    pub client_cookie: &'a [u8; CLIENT],
    /// Time of the message.
    pub now: Instant,
}

/// A reply, and what its OPT record says.
pub(super) struct Reply<'a> {
    /// The message.
    pub message: &'a Message<'a>,
    /// Data of its first cookie option.
    pub cookie: Option<&'a [u8]>,
    /// Its OPT record shows EDNS support.
    pub shows_edns: bool,
}

impl<'a> Reply<'a> {
    /// Reads the OPT record of a reply.
    #[inline]
    pub fn new(message: &'a Message<'a>) -> Reply<'a> {
        let opt = message.opt();
        let cookie = opt.as_ref().and_then(cookie::first);
        // Some servers send the query back as it came: an option with a client cookie alone shows no EDNS support.
        let shows_edns = opt.is_some() && cookie.is_none_or(|data| data.len() > CLIENT);
        Reply { message, cookie, shows_edns }
    }

    /// Client cookie and server cookie of the reply; none if it has no well-formed cookie.
    #[inline]
    pub fn cookies(&self) -> Option<(&'a [u8; CLIENT], &'a [u8])> {
        self.cookie.and_then(cookie::split)
    }
}

impl Exchange<'_> {
    #[inline]
    fn is_over_udp(&self) -> bool {
        self.attempt.form.transport == Transport::Udp
    }

    fn is_probe(&self) -> bool {
        self.outbound.query_flags.has(QueryFlags::PROBE)
    }

    fn retry_over_stream(&self, reason: Reason) -> Verdict {
        Verdict::Retry(QueryForm { transport: Transport::Tcp, ..self.outbound.form }, reason)
    }

    /// The query without a cookie. A server that does not know one option does not know the other.
    fn retry_without_cookie(&self, reason: Reason) -> Verdict {
        let form = self.outbound.form;
        let subnet = form.subnet && !self.attempt.form.subnet;
        Verdict::Retry(QueryForm { cookie: CookieUse::Omitted, subnet, ..form }, reason)
    }

    /// The query without an OPT record. Over UDP a server that has shown EDNS or cookies is not believed to have neither: its reply may be
    /// forged.
    fn retry_without_edns(&self) -> Verdict {
        let Server { edns, cookies, .. } = self.server;
        if self.is_over_udp() && (edns.is_known(self.now) || cookies.is_expected()) {
            return Verdict::Suspect;
        }
        Verdict::Retry(QueryForm { edns: false, ..self.outbound.form }, Reason::EdnsRefused)
    }
}

/// Says if a reply is believed. `fits_case`: it has the letter case of the query, where that matters. `forgiven`: the last mismatch in
/// spite of which it is believed, because other replies agree with it.
///
/// RFC 7873 section 5.3: a reply with another client cookie than that of the query MUST be discarded, and so MUST a reply without a
/// cookie if one is expected.
#[inline(always)]
pub(super) fn verify(
    exchange: &Exchange<'_>,
    reply: &Reply<'_>,
    fits_case: bool,
    forgiven: Option<Mismatch>,
) -> Verdict {
    if !fits_case && forgiven.is_none() {
        return Verdict::Weigh(Mismatch::LetterCase);
    }
    let form = exchange.attempt.form;
    if form.has_cookie() {
        let fits = match reply.cookie {
            Some(_) => reply.cookies().is_some_and(|(client, _)| client == exchange.client_cookie),
            None => form.is_over_stream() || !exchange.server.cookies.is_expected(),
        };
        if !fits && form.is_over_stream() {
            return exchange.retry_without_cookie(Reason::WrongCookie);
        }
        if !fits && forgiven < Some(Mismatch::Cookie) {
            return Verdict::Weigh(Mismatch::Cookie);
        }
    }
    if form.subnet && !fits_subnet(exchange.outbound, reply.message) {
        // A forger guessed ID and letter case, or the upstream does not support subnets. Over a stream, forgers cannot guess.
        return match form.is_over_stream() {
            true => Verdict::Drop(Mismatch::Subnet),
            false => exchange.retry_over_stream(Reason::WrongSubnet),
        };
    }
    Verdict::Accept
}

#[cold]
fn fits_subnet(outbound: &OutboundQuery, message: &Message<'_>) -> bool {
    outbound.subnet.is_none_or(|subnet| subnet.scope_of_reply(message).is_some())
}

/// Says what a reply that is believed asks for.
#[inline(always)]
pub(super) fn judge(exchange: &Exchange<'_>, reply: &Reply<'_>) -> Verdict {
    let Exchange { outbound, .. } = *exchange;
    let Reply { message, .. } = *reply;
    if exchange.is_probe() {
        return Verdict::Probed(probed_failure(message));
    }
    if exchange.is_over_udp() && message.flags().contains(Flags::TC) {
        return exchange.retry_over_stream(Reason::Truncated);
    }
    if !matches!(message.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN)
        && outbound.is_wanted()
        && let Some(verdict) = other_form(exchange, reply)
    {
        return verdict;
    }
    if has_too_many_records(message) {
        return Verdict::TooManyRecords;
    }
    // Over UDP there was no TC.
    if message.flags().contains(Flags::TC) {
        return Verdict::FailOver(Failure::Truncated);
    }
    // A query without RD may be answered with a referral.
    if outbound.query_flags.has(QueryFlags::RD) && is_lame(message) {
        return Verdict::FailOver(Failure::Lame);
    }
    if warrants_failover(message) {
        return Verdict::FailOver(Failure::Error(message.rcode()));
    }
    Verdict::Accept
}

/// The form of the query that a reply with an error asks for.
///
/// RFC 7873 section 5.3: after BADCOOKIE the query is sent with the new cookie, and over TCP if that is not good either. A server that
/// replies FORMERR and does not return the cookie may not know options (RFC 6891 section 7). RFC 7871 section 7.3: after REFUSED the query
/// MUST be repeated without the client subnet; a server that does not know options replies FORMERR.
#[cold]
fn other_form(exchange: &Exchange<'_>, reply: &Reply<'_>) -> Option<Verdict> {
    let (form, sent) = (exchange.outbound.form, exchange.attempt.form);
    match reply.message.rcode() {
        Rcode::FORMERR if sent.has_cookie() && reply.cookie.is_none() => {
            Some(exchange.retry_without_cookie(Reason::CookieRefused))
        }
        Rcode::BADCOOKIE if exchange.is_over_udp() => {
            Some(match sent.has_cookie() && form.cookie == CookieUse::Sent {
                true => {
                    Verdict::Retry(QueryForm { cookie: CookieUse::Renewed, ..form }, Reason::CookieRenewed)
                }
                false => exchange.retry_over_stream(Reason::BadCookie),
            })
        }
        Rcode::REFUSED | Rcode::FORMERR if sent.subnet => {
            Some(Verdict::Retry(QueryForm { subnet: false, ..form }, Reason::SubnetRefused))
        }
        Rcode::FORMERR | Rcode::NOTIMP if sent.edns && !reply.shows_edns => {
            Some(exchange.retry_without_edns())
        }
        _ => None,
    }
}

/// Judges a reply without a question (`bare_replies.rs`) to the attempt at this place, with these flags, and with or without an OPT
/// record.
#[cold]
pub(super) fn judge_bare(exchange: &Exchange<'_>, place: usize, flags: Flags, has_opt: bool) -> Verdict {
    let Exchange { outbound, attempt, .. } = *exchange;
    let over_udp = exchange.is_over_udp();
    if over_udp && (outbound.form.is_over_stream() || place < usize::from(outbound.doubt.first)) {
        // As for a reply with a question: over UDP it is too late, or comes from a third party.
        return Verdict::Drop(Mismatch::MovedToTcp);
    }
    let (rcode, is_cut) = (flags.rcode(), flags.contains(Flags::TC));
    // The query without EDNS may be on its way already; then this reply asks for nothing new.
    let went_without =
        |other: &Attempt| other.server == attempt.server && !other.form.edns && other.link != Link::NOWHERE;
    let asks_without_edns = matches!(rcode, Rcode::FORMERR | Rcode::NOTIMP)
        && attempt.form.edns
        && !has_opt
        && (outbound.is_wanted() || exchange.is_probe())
        && !(over_udp && outbound.attempts().iter().any(went_without));
    if over_udp && (exchange.is_probe() || !is_cut && !asks_without_edns) {
        return Verdict::Drop(Mismatch::Malformed);
    }
    if over_udp && is_cut {
        return exchange.retry_over_stream(Reason::Truncated);
    }
    if asks_without_edns {
        return exchange.retry_without_edns();
    }
    let is_error = !is_cut && !matches!(rcode, Rcode::NOERROR | Rcode::NXDOMAIN);
    let cause = if is_error { Cause::Replied(rcode) } else { Cause::Unusable };
    match exchange.is_probe() {
        true => Verdict::Probed(Some(cause)),
        false => Verdict::FailOver(Failure::Bare(cause)),
    }
}

/// Failure that the reply to a probe reports.
#[cold]
fn probed_failure(message: &Message<'_>) -> Option<Cause> {
    if is_lame(message) {
        return Some(Cause::Unusable);
    }
    warrants_failover(message).then_some(Cause::Replied(message.rcode()))
}

/// True if a reply has more records than are worked on; the OPT record is not counted.
#[inline]
fn has_too_many_records(message: &Message<'_>) -> bool {
    // A shorter message has no room for them.
    if message.bytes().len() <= REPLY_RECORDS * SHORTEST_RECORD {
        return false;
    }
    let sections = [Section::Answer, Section::Authority, Section::Additional];
    let records: usize = sections.into_iter().map(|section| message.count(section)).sum();
    records - usize::from(message.opt_start().is_some()) > REPLY_RECORDS
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
