//! Aliases that lead where the configuration decides: a reply ends at the first alias whose target has local data, is blocked, is a
//! special-use name, or belongs to other forwarders than the name that was asked. What the upstream says of the target does not
//! count: the rest of the reply is cut off, and the target is looked up like a question (`lookup.rs`).
//!
//! So a public name that leads to a name of the site gets the site's address (split horizon, private endpoints of cloud providers), and an
//! alias is no way around a block list. This holds for replies from the cache, too, which may be older than the configuration.

use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::dns64::decision::Stage;
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::local::special_use::{self, SpecialUse};
use crate::message::cname_chain::Chain;
use crate::message::question::{ForwardKey, QUESTION};
use crate::message::reply::{Outcome, is_bogus};
use crate::resolve::chase::NO_END;
use crate::trace::{Diversion, Subject, TraceEvent};
use wire::header::Flags;
use wire::{Builder, Message, Name, Section};

/// Octets of the longest name in wire form (RFC 1035 section 3.1).
const NAME: usize = 255;

impl Engine {
    /// Continues a pending query with the first target of an alias that the configuration decides about. Returns false if the reply counts to its
    /// end.
    #[inline(never)]
    pub(crate) fn divert(
        &mut self,
        pending: Index,
        message: &Message<'_>,
        chain: &Chain<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let Some((place, reason)) = self.diversion(pending, chain) else { return false };
        // Its aliases may be forged.
        if is_bogus(message) {
            return false;
        }
        // Policy has its say about the names before.
        let before = chain.up_to(place);
        if self.is_subject_to_rpz(pending)
            && self.apply_rpz_to_reply(pending, &Outcome::Reply(message, &before), false, now, out)
        {
            return true;
        }
        out.trace(Subject::PendingQuery(pending), || TraceEvent::Diverts(reason));
        let mut frame = self.frames.take();
        let mut room = [0; QUESTION];
        let question = self.clients.current_question(pending).question(&mut room);
        let length = cut(message, chain, place, question, &mut frame);
        match length.and_then(|length| Message::parse(&frame[..length]).ok()) {
            Some(message) => self.chase_cname(pending, &message, chain.name(place), now, out),
            None => self.respond_endless(pending, NO_END, now, out),
        }
        self.frames.give(frame);
        true
    }

    /// The first place in a chain, after that of the question, with a name that the configuration decides about.
    fn diversion(&self, pending: Index, chain: &Chain<'_>) -> Option<(usize, Diversion)> {
        let state = &self.clients.pending_queries[pending];
        let asked = self.clients.current_question(pending);
        // The bogus check only learns whether there is a reply.
        if state.stage == Stage::AaaaWithCd || !asked.is_ours() {
            return None;
        }
        let (settings, servers) = (&self.settings, &self.upstream.servers);
        let (qtype, class) = state.qtype_and_class();
        (1..chain.len()).find_map(|place| {
            let mut room = [0; NAME];
            let length = chain.name(place).write(&mut room);
            let name = &room[..length];
            let classified =
                || special_use::classify(settings.special_use(), state.client.address, name, qtype, class);
            let target = ForwardKey { name, ..asked.forward_key() };
            let reason = match () {
                () if settings.local_data.has_name(name) => Diversion::LocalData,
                () if !matches!(classified(), SpecialUse::Ordinary) => Diversion::SpecialUse,
                () if !servers.have_the_same(asked.forward_key(), target) => Diversion::ForwardZone,
                () => return None,
            };
            Some((place, reason))
        })
    }
}

/// True if a name of a chain behind that of the question may be a special-use name for some clients only: `ipv4only.arpa` and the
/// reverse names of its addresses are ordinary names for clients without DNS64.
pub(crate) fn depends_on_client(chain: &Chain<'_>) -> bool {
    let arpa = Name::from_wire(b"\x04arpa\0");
    chain.is_alias()
        && (1..chain.len()).any(|place| arpa.is_some_and(|arpa| chain.name(place).is_at_or_below(&arpa)))
}

/// Writes a reply up to the name at a place of its chain: the aliases that lead there, with their signatures, and nothing more. AD stays,
/// since it speaks of each record (RFC 4035 section 3.2.3).
fn cut(
    message: &Message<'_>,
    chain: &Chain<'_>,
    place: usize,
    question: &[u8],
    frame: &mut [u8],
) -> Option<usize> {
    let flags = Flags(0).with(Flags::QR);
    let flags = if message.flags().contains(Flags::AD) { flags.with(Flags::AD) } else { flags };
    let limit = frame.len();
    let mut builder = Builder::new(frame, limit, 0, flags, question)?;
    for record in message.records(Section::Answer) {
        if chain.leads_to(&record, place) || chain.signs_way_to(&record, place) {
            builder.copy(Section::Answer, &record).ok()?;
        }
    }
    Some(builder.finish())
}
