//! CNAME chase: a reply ends in an alias that the upstream did not follow (RFC 6147 section 5.1.5).

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::client::chased::replies;
use crate::counters::Counter;
use crate::engine::Engine;
use crate::event::TraceEvent;
use crate::interface::Outbox;
use crate::limits::{CHAIN_OCTETS, HOPS};
use wire::{Message, Name, Rcode, Type};

impl Engine {
    /// Asks for the end of a chain that the upstream left unfinished. False: the chain is too long, or too many are
    /// followed at a time.
    //= RFC 6147 section 5.1.5: requirement 10
    pub(crate) fn chase_cname(
        &mut self,
        waiter: Index,
        message: &Message<'_>,
        end: Name<'_>,
        qtype: Type,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let before = replies(&self.clients.chases, self.clients.waiters[waiter].chase);
        let comes_back = before.iter().any(|reply| {
            let earlier = Message::parse(reply).expect("it was parsed before it was kept");
            earlier.question_name().eq_ignore_case(&end)
        });
        let octets = before.iter().map(Vec::len).sum::<usize>() + message.bytes().len();
        if comes_back || before.len() == HOPS || octets > CHAIN_OCTETS {
            out.trace(|| TraceEvent::ChaseEnds);
            return false;
        }
        let followed = match self.clients.waiters[waiter].chase {
            NONE => match self.clients.start_chase(waiter) {
                Some(followed) => followed,
                None => return false,
            },
            followed => followed,
        };
        let chain = &mut self.clients.chases[followed];
        let mut name = [0u8; 255];
        let len = end.write(&mut name);
        chain.name.clear();
        chain.name.extend_from_slice(&name[..len]);
        chain.replies.push(message.bytes().to_vec());
        out.trace(|| TraceEvent::ChasesCname { reply: message, name: &chain.name });
        // What was found out and asked ahead was for another name.
        self.clients.waiters[waiter].bogus_recheck = false;
        let a_flight = core::mem::replace(&mut self.clients.waiters[waiter].a_flight, NONE);
        if a_flight != NONE {
            self.upstream.release_flight(a_flight);
        }
        self.counters.count(Counter::CnameHops);
        if self.lookup_local(waiter, now, out) || self.answer_from_cache(waiter, now, out) {
            return true;
        }
        match self.flight_for(waiter, qtype, now, out) {
            Some(flight) => self.attach(flight, waiter),
            None => self.respond_empty(waiter, Rcode::SERVFAIL, None, now, out),
        }
        true
    }
}
