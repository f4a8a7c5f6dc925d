//! What the configuration says of a pending query's question or reply: local data, response policy zones, and aliases that lead to names
//! that the configuration decides about.

use crate::base::buffers::FramePool;
use crate::base::slab::Index;
use crate::client::Clients;
use crate::client::chased::NO_END;
use crate::context::Context;
use crate::counters::Counter;
use crate::dns64::config::is_excluded;
use crate::dns64::decision::Stage;
use crate::dns64::private::PrivateAddresses;
use crate::dns64::verify;
use crate::interface::Outbox;
use crate::local::special_use::{self, Alias, LocalAnswer, SpecialUse};
use crate::message::cname_chain::Chain;
use crate::message::question::QUESTION;
use crate::message::reply::{Outcome, is_bogus};
use crate::reasons::{LocalZone, PolicyAction};
use crate::resolve::progress::{Found, Progress};
use crate::resolve::rpz::{self, Compared};
use crate::resolve::steps::{ForwardReal, Origin};
use crate::resolve::write::End;
use crate::resolve::{divert, join, rewrite};
use crate::rpz::response::Decided;
use crate::rpz::table::{NO_RULE_YET, PASSTHRU};
use crate::settings::Settings;
use crate::trace::{Subject, TraceEvent};
use crate::upstream::Upstream;
use wire::{Message, Rcode, Record, Section, Type, ede};

/// End of a query for which the reply of a rule cannot be written.
const BLOCKED: Progress = Progress::Ends(End::Empty(Rcode::SERVFAIL, Some(ede::BLOCKED)));

/// The configuration, and the parts that its replies need.
pub(crate) struct Here<'e> {
    pub(crate) settings: &'e Settings,
    pub(crate) clients: &'e mut Clients,
    pub(crate) upstream: &'e mut Upstream,
    pub(crate) frames: &'e mut FramePool,
}

impl Here<'_> {
    /// Steps before the stage of a pending query after a reply of an upstream. None: the reply counts.
    #[inline]
    pub(crate) fn overrule(
        mut self,
        pending: Index,
        outcome: &Outcome<'_, '_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Progress> {
        if let Outcome::Reply(message, chain) = outcome
            && chain.is_alias()
            && let Some(progress) = self.divert(pending, message, chain, cx)
        {
            return Some(progress);
        }
        let decided = self.apply_to_reply(pending, &Compared { outcome, is_whole: true }, cx);
        match &self.settings.private_addresses {
            Some(private) if decided.is_none() => self.take_private_addresses(private, pending, outcome, cx),
            _ => decided,
        }
    }

    /// Takes private addresses out of a reply. None: it has none, or may have them.
    #[inline(never)]
    fn take_private_addresses(
        &mut self,
        private: &PrivateAddresses,
        pending: Index,
        outcome: &Outcome<'_, '_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Progress> {
        let Outcome::Reply(message, chain) = *outcome else { return None };
        let is_private = |record: &Record<'_>| private.is_in(record, &self.settings.dns64);
        let has_private = |section| message.records(section).any(|record| is_private(&record));
        let query = &mut self.clients.pending_queries[pending];
        // The client never gets the reply without validation.
        if query.stage == Stage::AaaaWithCd
            || private.exempts(query.name())
            || ![Section::Answer, Section::Authority, Section::Additional].into_iter().any(has_private)
        {
            return None;
        }
        query.has_lost_addresses = true;
        cx.counters.count(Counter::FilteredPrivate);
        cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::TakesPrivateAddresses);
        let written = self.write(pending, Origin::Filtered, |settings, question, frame| {
            let arpa = &settings.dns64.arpa;
            rewrite::without((message, chain), &is_private, ede::BLOCKED, arpa, question, frame)
        });
        Some(written.unwrap_or(BLOCKED))
    }

    /// Ends a reply at the first alias whose target the configuration decides about. None: the reply counts to its end.
    #[inline(never)]
    fn divert(
        &mut self,
        pending: Index,
        message: &Message<'_>,
        chain: &Chain<'_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Progress> {
        let servers = &self.upstream.servers;
        let (place, reason) = divert::diversion(self.clients, pending, chain, self.settings, servers)?;
        // Its aliases may be forged.
        if is_bogus(message) {
            return None;
        }
        // Policy has its say about the names before.
        let before = chain.up_to(place);
        let compared = Compared { outcome: &Outcome::Reply(message, &before), is_whole: false };
        if let Some(progress) = self.apply_to_reply(pending, &compared, cx) {
            return Some(progress);
        }
        cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::Diverts(reason));
        let found = self.write(pending, Origin::Alias, |_, question, frame| {
            divert::cut(message, chain, place, question, frame)
        });
        Some(found.unwrap_or(Progress::Ends(End::Endless(NO_END))))
    }

    /// Finds what the configuration says of a special-use name that a CNAME chase has reached (RFC 8880 section 7.1, RFC 6147 section 5.3.1,
    /// RFC 6761): the local answer, which ends the resolution, or another alias. No upstream is ever asked for such a name. None: it is an
    /// ordinary name.
    #[cold]
    pub(crate) fn look_in_special_use(
        mut self,
        pending: Index,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Progress> {
        match divert::special_use_of(self.settings, self.clients, pending) {
            SpecialUse::Ordinary => None,
            SpecialUse::Local(LocalAnswer { zone, .. }) => {
                let name = self.clients.current_question(pending).name;
                cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::SpecialUse { zone, name });
                cx.counters.count(zone.counter());
                Some(Progress::Ends(End::SpecialUse))
            }
            SpecialUse::Alias(address) => {
                let found = self.write(pending, Origin::Alias, |_, question, frame| {
                    let Alias { reply, .. } = special_use::alias(question, address)?;
                    frame[..reply.len()].copy_from_slice(&reply);
                    Some(reply.len())
                })?;
                let name = self.clients.current_question(pending).name;
                cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::ReverseAlias { name, address });
                cx.counters.count(LocalZone::Reverse.counter());
                Some(found)
            }
        }
    }

    /// Writes the reply to a pending query's A question without its addresses. None: there is no room.
    pub(crate) fn without_addresses(
        &mut self,
        pending: Index,
        message: &Message<'_>,
        chain: &Chain<'_>,
    ) -> Option<Found> {
        let written = self.write(pending, Origin::Denial, |settings, question, frame| {
            let left_out = |record: &Record<'_>| chain.ends_in(record, Type::A);
            rewrite::without(
                (message, chain),
                &left_out,
                ede::SYNTHESIZED,
                &settings.dns64.arpa,
                question,
                frame,
            )
        });
        match written {
            Some(Progress::Found(found)) => Some(found),
            _ => None,
        }
    }

    /// Writes the AAAA reply to a pending query's question with the addresses that its client gets. None: there is no room.
    pub(crate) fn real_addresses(&mut self, pending: Index, forward: &ForwardReal<'_, '_>) -> Option<Found> {
        let ForwardReal { reply, chain, is_filtered, ttl_secs } = *forward;
        let written = self.write(pending, Origin::Denial, |settings, question, frame| {
            let dns64 = &settings.dns64;
            let left_out = |record: &Record<'_>| match is_filtered {
                true => verify::is_left_out(record, chain, dns64),
                false => chain.ends_in(record, Type::AAAA) && is_excluded(record, Some(dns64)),
            };
            rewrite::for_a_time((reply, chain), &left_out, ttl_secs, question, frame)
        });
        match written {
            Some(Progress::Found(found)) => Some(found),
            _ => None,
        }
    }

    /// Finds the reply to a pending query's current question in local data.
    pub(crate) fn look_in_local_data(
        mut self,
        pending: Index,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Progress> {
        let lookup = self.clients.current_question(pending);
        // Most names are not local: this one lookup is all they cost.
        if !lookup.is_ours() || self.settings.local_data.find(lookup.name).is_none() {
            return None;
        }
        self.write(pending, Origin::Local, |settings, question, frame| {
            let (length, source) = settings.local_data.reply(question, &settings.dns64.arpa, frame)?;
            cx.counters.count(source.counter());
            cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::LocalReply(source));
            Some(length)
        })
    }

    /// Applies the rules of response policy zones to a pending query's current question, before it is asked.
    pub(crate) fn apply_to_question(
        mut self,
        pending: Index,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Progress> {
        match self.clients.pending_queries[pending].rpz_rule {
            PASSTHRU => None,
            NO_RULE_YET => {
                let decided = rpz::of_question(self.clients, self.settings, pending, cx)?;
                self.apply(pending, &decided, cx)
            }
            rule => {
                cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::LocalLookup);
                self.look_in_rule(pending, rule)
            }
        }
    }

    /// Applies the rules of response policy zones to the outcome of a pending query's current question, if it is subject to them.
    #[inline(always)]
    fn apply_to_reply(
        &mut self,
        pending: Index,
        compared: &Compared<'_, '_, '_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Progress> {
        match rpz::is_subject(self.settings, &self.clients.pending_queries[pending]) {
            true => self.apply_rules(pending, compared, cx),
            false => None,
        }
    }

    #[inline(never)]
    fn apply_rules(
        &mut self,
        pending: Index,
        compared: &Compared<'_, '_, '_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Progress> {
        let decided = rpz::of_reply(self.clients, self.settings, pending, compared, cx)?;
        self.apply(pending, &decided, cx)
    }

    /// Carries out the action of a rule. None: PASSTHRU.
    fn apply(
        &mut self,
        pending: Index,
        decided: &Decided<'_, '_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Progress> {
        let query = &mut self.clients.pending_queries[pending];
        let action = rpz::apply(&self.settings.rpz, query, decided.rule, cx)?;
        if action == PolicyAction::LocalData {
            // The early A question is not about the zone's data.
            join::release_early_a(self.clients, self.upstream, pending);
            return match decided.from {
                // The upstream's reply ends at the name with the rule.
                Some(from) if from.place > 0 => {
                    let way =
                        self.write(pending, Origin::Alias, |_, question, frame| from.way(question, frame));
                    Some(way.unwrap_or(BLOCKED))
                }
                _ => self.look_in_rule(pending, decided.rule),
            };
        }
        if query.stage.has_dns64() {
            cx.counters.count(Counter::NotSynthesizedPolicy);
        }
        Some(match action {
            PolicyAction::Drop => Progress::Ends(End::Dropped),
            PolicyAction::TcpOnly => Progress::Ends(End::TcpOnly),
            _ => {
                let denial = self.write(pending, Origin::Denial, |settings, question, frame| {
                    settings.rpz.denial(decided, question, &settings.dns64.arpa, frame)
                });
                denial.unwrap_or(BLOCKED)
            }
        })
    }

    /// Finds the reply to a lookup in the data of a rule. None: the rule is gone after a reload.
    fn look_in_rule(&mut self, pending: Index, rule: u32) -> Option<Progress> {
        if !rpz::has_data(&self.settings.rpz, &mut self.clients.pending_queries[pending], rule) {
            return None;
        }
        let found = self.write(pending, Origin::Local, |settings, question, frame| {
            settings.rpz.data(rule, question, &settings.dns64.arpa, frame)
        });
        Some(found.unwrap_or(BLOCKED))
    }

    /// Has `write` write a reply to a pending query's current question. None: it could not.
    fn write(
        &mut self,
        pending: Index,
        origin: Origin,
        write: impl FnOnce(&Settings, &[u8], &mut [u8]) -> Option<usize>,
    ) -> Option<Progress> {
        let mut frame = self.frames.take();
        let mut room = [0; QUESTION];
        let question = self.clients.current_question(pending).question(&mut room);
        match write(self.settings, question, &mut frame) {
            Some(length) => Some(Progress::Found(Found { frame, length, origin })),
            None => {
                self.frames.give(frame);
                None
            }
        }
    }
}
