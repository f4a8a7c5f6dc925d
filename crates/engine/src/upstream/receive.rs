//! Replies of upstreams, believed only when everything fits (RFC 5452 section 9.1): the socket, the address (the
//! socket is connected), QR, the operation, the ID, one question, octet for octet in the letter case that we sent. Anything else is
//! counted, and the wait goes on. A forgery attempt moves its question to TCP.

use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::counters::Counter;
use crate::engine::Engine;
use crate::interface::{Link, Outbox, Transport};
use crate::message::question::QueryFlags;
use crate::message::reply::{is_bogus, is_lame, warrants_failover};
use crate::upstream::in_flight::FlightState;
use wire::header::{self, Flags};
use wire::{Message, Opcode, Rcode};

/// What a message from an upstream is.
enum Match {
    /// The reply to a try of a flight.
    Reply { flight: Index, attempt: usize },
    /// None; the reason, and the flight that somebody tries to answer in the upstream's place.
    Suspect(Counter, Option<Index>),
}

impl Engine {
    pub(crate) fn on_reply(&mut self, now: Instant, via: Link, bytes: &[u8], out: &mut impl Outbox) {
        if !self.links.is_open(via) {
            return self.counters.count(Counter::DroppedStaleLink);
        }
        self.links.hear(via, now);
        if bytes.len() >= wire::HEADER && !is_response(header::flags(bytes)) {
            return self.counters.count(Counter::SuspectNotResponse);
        }
        // TuDoor: a malformed reply is neither believed nor taken for a failure; the wait goes on.
        let Ok(message) = Message::parse(bytes) else {
            return self.counters.count(Counter::DroppedMalformedReply);
        };
        match self.matching(via, &message) {
            Match::Reply { flight, attempt } => self.accept(flight, attempt, &message, now, out),
            Match::Suspect(reason, flight) => {
                self.counters.count(reason);
                if let Some(flight) = flight {
                    let server = self.links.server(via);
                    self.move_to_tcp(flight, server, Counter::TcpSuspicion, now, out);
                }
            }
        }
    }

    /// Finds the try that a message answers.
    fn matching(&self, via: Link, message: &Message<'_>) -> Match {
        let hash = self.key.hash(message.qname());
        let mut suspicion = Match::Suspect(Counter::SuspectUnknown, None);
        for index in self.flights.candidates(hash, message.qtype(), message.qclass()) {
            let flight = &self.flights.slab[index];
            if flight.qtype != message.qtype() || flight.class != message.qclass() {
                continue;
            }
            let exact = flight.name() == message.qname();
            if !exact && !wire::eq_ignore_case(flight.name(), message.qname()) {
                continue;
            }
            let mut suspect = |reason, flight: Option<Index>| {
                // Of several flights that may be meant, one that can still be moved to TCP is named.
                if flight.is_some() || matches!(suspicion, Match::Suspect(_, None)) {
                    suspicion = Match::Suspect(reason, flight);
                }
            };
            let mut over_link =
                flight.attempts().iter().enumerate().filter(|(_, a)| a.link == via).peekable();
            if over_link.peek().is_none() {
                suspect(Counter::SuspectSocket, None);
                continue;
            }
            let over_udp = self.links.transport(via) == Transport::Udp;
            if over_udp && flight.over_tcp {
                // The question was moved to TCP: whoever still answers over UDP is too late, or nobody we know.
                suspect(Counter::SuspectAbandoned, None);
                continue;
            }
            match over_link.find(|(_, attempt)| attempt.id == message.id()) {
                // The reply to an earlier flight's try, which another try has made superfluous.
                None if self.links.was_issued(via, message.id()) => suspect(Counter::DroppedLate, None),
                None => suspect(Counter::SuspectId, over_udp.then_some(index)),
                // 0x20 is a defence of UDP; over TCP an upstream may write the name as it likes.
                Some(_) if over_udp && !exact => {
                    suspect(Counter::SuspectCase, Some(index));
                }
                Some((attempt, _)) => return Match::Reply { flight: index, attempt },
            }
        }
        suspicion
    }

    /// A reply that fits.
    fn accept(
        &mut self,
        index: Index,
        attempt: usize,
        message: &Message<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let place = attempt;
        let attempt = self.flights.slab[index].attempts[place];
        if attempt.with_cookie && !self.verify_cookie(index, place, message, now, out) {
            return;
        }
        if attempt.with_subnet && !self.verify_subnet(index, place, message, now, out) {
            return;
        }
        if attempt.is_hedge {
            self.hedge_helped();
        }
        if self.servers.list[attempt.server as usize].answered(now - attempt.sent) {
            self.servers.start_slow_start(attempt.server, now);
        }
        if self.flights.slab[index].query_flags.has(QueryFlags::PROBE) {
            let jitter = self.random.bits();
            let is_failure = warrants_failover(message) || is_lame(message);
            self.servers.list[usize::from(attempt.server)].breaker.on_probe_reply(now, is_failure, jitter);
            return self.complete_flight(index, Some(message), now, out);
        }
        let over_udp = self.links.transport(attempt.link) == Transport::Udp;
        if over_udp && message.flags().contains(Flags::TC) {
            return self.move_to_tcp(index, attempt.server, Counter::TcpTruncation, now, out);
        }
        if self.on_badcookie(index, place, message, now, out) {
            return;
        }
        if attempt.with_subnet && self.on_subnet_refused(index, place, message, now, out) {
            return;
        }
        if self.on_no_edns(index, place, message, now, out) {
            return;
        }
        let is_unusable = self.is_unusable(index, message, over_udp);
        if is_unusable || warrants_failover(message) {
            self.flights.slab[index].attempts[place].failed = true;
            if self.is_wanted(index) && !is_bogus(message) {
                if self.asks_another(index, attempt.server) {
                    self.counters.count(Counter::Failover);
                    return self.ask(index, now, out);
                }
                if self.waits_for_another(index, attempt.server) {
                    return;
                }
            }
            if is_unusable {
                let is_cut = message.flags().contains(Flags::TC);
                self.counters.count(if is_cut { Counter::CutOverTcp } else { Counter::Lame });
                return self.complete_unusable(index, message, now, out);
            }
        } else {
            self.record_result(index, attempt.server, now);
        }
        self.flights.slab[index].is_private = !attempt.with_opt;
        // What it thinks of our cookies is nothing to the client. What is cut over TCP, too, would look like the whole answer
        // (RFC 2181 section 9), and has not come as far as this.
        let reply = Some(message).filter(|message| message.rcode() != Rcode::BADCOOKIE);
        self.complete_flight(index, reply, now, out);
    }

    /// A server has an answer: it helps, and those that failed with this question do not.
    #[inline]
    fn record_result(&mut self, index: Index, server: u16, now: Instant) {
        self.servers.list[usize::from(server)].breaker.on_success();
        let flight = &self.flights.slab[index];
        if flight.attempts().len() > 1 {
            for place in 0..flight.attempts().len() {
                let other = self.flights.slab[index].attempts[place];
                // What could not be sent is no failure of this kind.
                if other.failed && other.server != server && other.link != Link::NOWHERE {
                    self.servers.list[usize::from(other.server)].breaker.on_failure(now);
                }
            }
        }
    }

    /// Whether a failure that one server reports is reason to ask another one that lives and was not asked yet.
    fn asks_another(&self, index: Index, server: u16) -> bool {
        let flight = &self.flights.slab[index];
        flight.tries < self.settings.upstream.tries
            && self.servers.group(flight.name()).iter().any(|&other| {
                other != server
                    && !self.servers.list[other as usize].is_dead()
                    && !self.servers.list[other as usize].breaker.is_failing()
                    && flight.attempts().iter().all(|attempt| attempt.server != other)
            })
    }

    /// Whether another server that lives was asked and may still answer: one server's failure, or the same failure
    /// coming twice, is not the last word then.
    fn waits_for_another(&self, index: Index, server: u16) -> bool {
        let flight = &self.flights.slab[index];
        flight.attempts().iter().any(|attempt| {
            attempt.server != server
                && !attempt.failed
                && !self.servers.list[attempt.server as usize].is_dead()
                && self.links.is_open(attempt.link)
                && (self.links.transport(attempt.link) == Transport::Tcp) == flight.over_tcp
        })
    }

    /// A link failed: every question whose current try went over it is asked again at once, elsewhere if possible.
    pub(crate) fn on_unreachable(&mut self, now: Instant, via: Link, out: &mut impl Outbox) {
        if !self.links.is_open(via) {
            return;
        }
        let server = self.links.server(via);
        let transport = self.links.transport(via);
        // An upstream may close an idle TCP connection whenever it likes (RFC 7766 section 6.2.3).
        if self.links.outstanding(via) > 0 {
            self.counters.count(Counter::Unreachable);
            // A server that only answers over UDP is not dead.
            if transport == Transport::Udp || self.settings.upstream.transport == Transport::Tcp {
                self.servers.list[server as usize].breaker.on_refused(now);
            }
        }
        match transport {
            Transport::Udp => {
                // Nothing more goes over it; replies that are under way may still come.
                let current = &mut self.servers.list[server as usize].current[transport as usize];
                // An old link may fail while its successor is in use.
                if *current == Some(via.slot) {
                    *current = None;
                }
                let _ = self.links.retire(via);
                for place in 0..crate::limits::LINK_QUESTIONS {
                    let Some((id, index)) = self.links.asked(via, place) else { break };
                    if self.is_current(index, via, Some(id)) {
                        self.try_again(index, now, out);
                        if !self.links.is_open(via) {
                            break;
                        }
                    }
                }
                if self.links.is_open(via) && self.links.outstanding(via) == 0 {
                    self.close(via, out);
                }
            }
            Transport::Tcp => {
                let waited = self.links.outstanding(via) > 0;
                self.forget_link(via);
                let touched = if waited { self.flights.slab.touched() } else { 0 };
                for index in 0..touched {
                    if self.is_current(index, via, None) {
                        self.try_again(index, now, out);
                    }
                }
            }
        }
    }

    /// Whether the current try of a flight went over a link.
    fn is_current(&self, index: Index, via: Link, id: Option<u16>) -> bool {
        let flight = &self.flights.slab[index];
        flight.state == FlightState::Asked
            && flight
                .attempts()
                .last()
                .is_some_and(|attempt| attempt.link == via && id.is_none_or(|id| attempt.id == id))
    }

    /// Whether a reply is none, though it says that all is well. Replies to probes show life, whatever they say.
    #[inline]
    pub(crate) fn is_unusable(&self, index: Index, message: &Message<'_>, over_udp: bool) -> bool {
        let flight = &self.flights.slab[index];
        let is_cut = !over_udp && message.flags().contains(Flags::TC);
        // What a client asks without RD it may be referred for.
        (is_cut || flight.query_flags.has(QueryFlags::RD) && is_lame(message))
            && !flight.query_flags.has(QueryFlags::PROBE)
    }
}

/// Whether this is a response, and to a query: we ask nothing else.
#[inline]
fn is_response(flags: Flags) -> bool {
    flags.contains(Flags::QR) && flags.opcode() == Opcode::QUERY
}
