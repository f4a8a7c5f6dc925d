//! CNAME chase: a reply ends in an alias that the upstream did not follow (RFC 6147 section 5.1.5).

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::client::chased::replies;
use crate::client::quota::network_of;
use crate::counters::Counter;
use crate::engine::Engine;
use crate::event::Note;
use crate::interface::Outbox;
use crate::limits::{CHAIN_OCTETS, HOPS};
use wire::{Message, Name, Rcode, Type};

impl Engine {
    /// Room for the way of a client's question, which has none yet. None: its network has enough.
    pub(crate) fn take_chain(&mut self, waiter: Index) -> Option<Index> {
        let chain = self.chains.take(network_of(self.waiters[waiter].client.address))?;
        self.waiters[waiter].chain = chain;
        Some(chain)
    }

    /// Asks for the end of a chain that the upstream left unfinished. False: the chain is too long, or too many are
    /// followed at a time.
    //= RFC 6147 section 5.1.5: requirement 10
    pub(crate) fn follow(
        &mut self,
        waiter: Index,
        message: &Message<'_>,
        end: Name<'_>,
        qtype: Type,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let before = replies(&self.chains, self.waiters[waiter].chain);
        let comes_back = before.iter().any(|reply| {
            let earlier = Message::parse(reply).expect("it was parsed before it was kept");
            earlier.question_name().eq_ignore_case(&end)
        });
        let octets = before.iter().map(Vec::len).sum::<usize>() + message.bytes().len();
        if comes_back || before.len() == HOPS || octets > CHAIN_OCTETS {
            out.note(|| Note::Unfinished);
            return false;
        }
        let followed = match self.waiters[waiter].chain {
            NONE => match self.take_chain(waiter) {
                Some(followed) => followed,
                None => return false,
            },
            followed => followed,
        };
        let chain = &mut self.chains[followed];
        let mut name = [0u8; 255];
        let len = end.write(&mut name);
        chain.name.clear();
        chain.name.extend_from_slice(&name[..len]);
        chain.replies.push(message.bytes().to_vec());
        out.note(|| Note::Follows { reply: message, name: &chain.name });
        // What was found out and asked ahead was for another name.
        self.waiters[waiter].doubtful = false;
        let second = core::mem::replace(&mut self.waiters[waiter].second, NONE);
        if second != NONE {
            self.let_go(second);
        }
        self.counters.count(Counter::Hops);
        if self.answer_own(waiter, now, out) || self.answer_recalled(waiter, now, out) {
            return true;
        }
        match self.flight_for(waiter, qtype, now, out) {
            Some(flight) => self.join(flight, waiter),
            None => self.respond_empty(waiter, Rcode::SERVFAIL, None, now, out),
        }
        true
    }
}
