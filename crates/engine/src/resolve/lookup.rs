//! Aliases that lead to names under `arpa` which are answered here (RFC 8880 section 7.1, RFC 6147 section 5.3.1): the
//! aliases, and what we know ourselves, are the answer. No upstream is asked for such a name, whoever knows the alias.

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::client::waiter::Stage;
use crate::engine::{Engine, Exit};
use crate::event::Note;
use crate::interface::Outbox;
use crate::local::special_use::{self as arpa, Alias, SpecialUse};
use crate::message::cname_chain::Chain;
use crate::upstream::receive::Outcome;
use wire::{Message, Type};

impl Engine {
    /// Answers a client whose alias has led to such a name, or goes on with what that is an alias of. False: it is an
    /// ordinary name.
    pub(crate) fn answer_aliased(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) -> bool {
        let Engine { settings, waiters, counters, rates, chains, .. } = self;
        let state = &waiters[waiter];
        if state.chain == NONE {
            return false;
        }
        let followed = &chains[state.chain];
        // Whatever leg has led here, it is the client's own question that is answered.
        let (qtype, class) = state.asks_for();
        let own_size = settings.udp_size;
        match arpa::classify(settings, state.client.address, &followed.name, qtype, class) {
            SpecialUse::Ordinary => false,
            SpecialUse::Here(here) => {
                out.note(|| Note::Arpa { counter: here.counter, name: &followed.name });
                counters.count(here.counter);
                let (name, before) = (&followed.name[..], &followed.replies[..]);
                let exit = Exit { counters, rates: Some(rates), now };
                Engine::respond(waiters, exit, own_size, waiter, out, |frame, asker| {
                    here.write(frame, asker, name, before)
                });
                self.forget(waiter);
                true
            }
            SpecialUse::Alias(address) => {
                let leg = if state.stage == Stage::A { Type::A } else { qtype };
                let mut question = followed.name.clone();
                question.extend([leg.0.to_be_bytes(), class.0.to_be_bytes()].as_flattened());
                let Some(Alias { reply, .. }) = arpa::alias(&question, address) else { return false };
                counters.count(crate::counters::Counter::LocalReverse);
                out.note(|| Note::Alias { name: &followed.name, address });
                let message = Message::parse(&reply).expect("an alias is well formed");
                let chain = Chain::follow(&message);
                if !self.follow(waiter, &message, chain.end(), leg, now, out) {
                    self.go_on(waiter, &Outcome::Reply(&message, &chain), now, out);
                }
                true
            }
        }
    }
}
