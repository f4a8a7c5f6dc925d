//! Replies that are well formed and no answers: of servers that do not resolve for us, and truncated ones over TCP. They are
//! failures of the server, as SERVFAIL is, and not "there is nothing".

use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::upstream::in_flight::Wishes;
use wire::header::{self, Flags};
use wire::{Message, Rcode, Section, Type, ede};

/// Whether a server refers us to others, or has nothing to say, instead of resolving (RFC 1034 section 4.3.1, RFC 2308
/// section 2.2): we asked for recursion, and it neither is the authority nor has an answer. A referral has NS records and no
/// SOA; one that says nothing at all does not offer recursion.
pub(crate) fn is_lame(message: &Message<'_>) -> bool {
    let flags = message.flags();
    if message.rcode() != Rcode::NOERROR
        || !flags.contains(Flags::RD)
        || flags.contains(Flags::AA)
        || flags.contains(Flags::TC)
        || message.count(Section::Answer) > 0
    {
        return false;
    }
    let has = |rtype| message.records(Section::Authority).any(|record| record.rtype == rtype);
    !has(Type::SOA) && (has(Type::NS) || !flags.contains(Flags::RA))
}

impl Engine {
    /// Whether a reply is none, though it says that all is well. Replies to probes show life, whatever they say.
    #[inline]
    pub(crate) fn is_useless(&self, index: Index, message: &Message<'_>, over_udp: bool) -> bool {
        let flight = &self.flights.slab[index];
        let is_cut = !over_udp && message.flags().contains(Flags::TC);
        // What a client asks without RD it may be referred for.
        (is_cut || flight.wishes.has(Wishes::RD) && is_lame(message)) && !flight.wishes.has(Wishes::PROBE)
    }

    /// Ends a flight that got nothing better: its clients are told that no authority can be reached (RFC 8914 section
    /// 4.23).
    #[cold]
    pub(crate) fn finish_useless(
        &mut self,
        index: Index,
        message: &Message<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let mut frame = self.frame();
        let end = wire::HEADER + message.question().len();
        frame[..end].copy_from_slice(&message.bytes()[..end]);
        let flags = message.flags().without(Flags::TC).without(Flags::AD).with_rcode(Rcode::SERVFAIL);
        header::set_flags(&mut frame, flags);
        header::set_ancount(&mut frame, 0);
        header::set_nscount(&mut frame, 0);
        header::set_arcount(&mut frame, 1);
        let room = &mut frame[end..];
        let octets = wire::write_opt(room, 512, 0, 0, false, Some(ede::NO_REACHABLE_AUTHORITY));
        if let Ok(failure) = Message::parse(&frame[..end + octets.unwrap_or(0)]) {
            self.finish(index, Some(&failure), now, out);
        } else {
            debug_assert!(false, "a failure of our own does not parse");
            self.finish(index, None, now, out);
        }
        self.frames.push(frame);
    }
}
