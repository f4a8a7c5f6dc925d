//! Aliases that lead to names under `arpa` which are answered here (RFC 8880 section 7.1, RFC 6147 section 5.3.1): the
//! aliases, and what we know ourselves, are the answer. No upstream is asked for such a name, whoever knows the alias.

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::client::Clients;
use crate::client::respond::{ResponseSink, respond};
use crate::dns64::decision::Stage;
use crate::engine::Engine;
use crate::event::TraceEvent;
use crate::interface::Outbox;
use crate::local::special_use::{self, Alias, SpecialUse};
use crate::message::cname_chain::Chain;
use crate::message::question::QUESTION;
use crate::message::reply::Outcome;
use wire::{Message, Rcode, Type};

impl Engine {
    /// Answers a client whose alias has led to such a name, or goes on with what that is an alias of. False: it is an
    /// ordinary name.
    pub(crate) fn answer_aliased(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) -> bool {
        let Engine { settings, clients, counters, .. } = self;
        let Clients { waiters, rate_limiter, chases, .. } = clients;
        let state = &waiters[waiter];
        if state.chase == NONE {
            return false;
        }
        let followed = &chases[state.chase];
        // Whatever leg has led here, it is the client's own question that is answered.
        let (qtype, class) = state.qtype_and_class();
        let own_size = settings.udp_size;
        match special_use::classify(settings, state.client.address, &followed.name, qtype, class) {
            SpecialUse::Ordinary => false,
            SpecialUse::Local(answer) => {
                out.trace(|| TraceEvent::SpecialUse { counter: answer.counter, name: &followed.name });
                counters.count(answer.counter);
                let (name, before) = (&followed.name[..], &followed.replies[..]);
                let sink = ResponseSink { counters, rate_limiter: Some(rate_limiter), now };
                respond(waiters, sink, own_size, waiter, out, |frame, requestor| {
                    answer.write(frame, requestor, name, before)
                });
                self.free_waiter(waiter);
                true
            }
            SpecialUse::Alias(address) => {
                let leg = if state.stage == Stage::A { Type::A } else { qtype };
                let mut question = followed.name.clone();
                question.extend([leg.0.to_be_bytes(), class.0.to_be_bytes()].as_flattened());
                let Some(Alias { reply, .. }) = special_use::alias(&question, address) else { return false };
                counters.count(crate::counters::Counter::LocalReverse);
                out.trace(|| TraceEvent::ReverseAlias { name: &followed.name, address });
                let message = Message::parse(&reply).expect("an alias is well formed");
                let chain = Chain::follow(&message);
                if !self.chase_cname(waiter, &message, chain.end(), leg, now, out) {
                    self.proceed(waiter, &Outcome::Reply(&message, &chain), now, out);
                }
                true
            }
        }
    }

    /// Answers a client out of what we know ourselves, or goes on with what that says. False: we know nothing of the name.
    #[inline]
    pub(crate) fn lookup_local(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) -> bool {
        !self.settings.local_data.is_empty() && self.answer_from_local_data(waiter, now, out)
            || self.clients.waiters[waiter].chase != NONE && self.answer_aliased(waiter, now, out)
            || !self.settings.rpz.is_empty() && self.apply_rpz_to_question(waiter, now, out)
    }

    fn answer_from_local_data(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) -> bool {
        let leg = self.clients.current_question(waiter);
        // Most names are not ours, and need no more than this look.
        if !leg.is_ours() || self.settings.local_data.find(leg.name).is_none() {
            return false;
        }
        let (mut room, qtype) = ([0; QUESTION], leg.qtype);
        let question = leg.question(&mut room);
        // Lent while it is read; what it leads to may need another one.
        let mut frame = self.frames.take();
        let reply = self.settings.local_data.reply(question, &self.settings.dns64.arpa, &mut frame);
        if let Some((length, counter)) = reply {
            self.counters.count(counter);
            out.trace(|| TraceEvent::LocalReply(counter));
            self.use_local_reply(waiter, &frame[..length], qtype, now, out);
        }
        self.frames.give(frame);
        reply.is_some()
    }

    /// Takes a reply of our own for that of an upstream.
    pub(crate) fn use_local_reply(
        &mut self,
        waiter: Index,
        reply: &[u8],
        qtype: Type,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let Ok(message) = Message::parse(reply) else {
            // Data that is not what its type asks for.
            return self.respond_empty(waiter, Rcode::SERVFAIL, None, now, out);
        };
        let chain = Chain::follow(&message);
        // An upstream follows aliases for us, unless it is we who know the alias.
        let follows = self.clients.waiters[waiter].stage == Stage::Direct
            && !matches!(qtype, Type::CNAME | Type::ANY)
            && chain.is_unfinished(&message);
        if !follows || !self.chase_cname(waiter, &message, chain.end(), qtype, now, out) {
            self.proceed(waiter, &Outcome::Reply(&message, &chain), now, out);
        }
    }
}
