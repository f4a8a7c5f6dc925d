//! Aliases that lead where the configuration decides: a reply ends at the first alias whose target has local data, is blocked, is a
//! special-use name, or belongs to other forwarders than the name that was asked. What the upstream says of the target does not
//! count: the rest of the reply is cut off, and the target is looked up like a question.
//!
//! So a public name that leads to a name of the site gets the site's address (split horizon, private endpoints of cloud providers), and an
//! alias is no way around a block list. This holds for replies from the cache, too, which may be older than the configuration.

use crate::base::slab::Index;
use crate::client::Clients;
use crate::dns64::decision::Stage;
use crate::local::special_use::{self, SpecialUse};
use crate::message::cname_chain::Chain;
use crate::message::question::ForwardKey;
use crate::settings::Settings;
use crate::trace::Diversion;
use crate::upstream::forward_zones::ForwardZones;
use wire::header::Flags;
use wire::{Builder, Message, Name, Section};

/// Octets of the longest name in wire form (RFC 1035 section 3.1).
const NAME: usize = 255;

/// The first place in a chain, after that of the question, with a name that the configuration decides about.
pub(crate) fn diversion(
    clients: &Clients,
    pending: Index,
    chain: &Chain<'_>,
    settings: &Settings,
    servers: &ForwardZones,
) -> Option<(usize, Diversion)> {
    let state = &clients.pending_queries[pending];
    let asked = clients.current_question(pending);
    // The bogus check only learns whether there is a reply.
    if state.stage == Stage::AaaaWithCd || !asked.is_ours() {
        return None;
    }
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

/// True if a name of a chain behind that of the question may be a special-use name for some clients only: `ipv4only.arpa` and the
/// reverse names of its addresses are ordinary names for clients without DNS64.
pub(crate) fn depends_on_client(chain: &Chain<'_>) -> bool {
    let arpa = Name::from_wire(b"\x04arpa\0");
    chain.is_alias()
        && (1..chain.len()).any(|place| arpa.is_some_and(|arpa| chain.name(place).is_at_or_below(&arpa)))
}

/// Writes a reply up to the name at a place of its chain: the aliases that lead there, with their signatures, and nothing more. AD stays,
/// since it speaks of each record (RFC 4035 section 3.2.3).
pub(crate) fn cut(
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

/// Classifies the name of a pending query's current question, for the type that its client asks for.
pub(crate) fn special_use_of<'s>(
    settings: &'s Settings,
    clients: &Clients,
    pending: Index,
) -> SpecialUse<'s> {
    let (name, state) = (clients.current_question(pending).name, &clients.pending_queries[pending]);
    // As for the name in a query: records of the configuration come first, blocks come later.
    if !settings.local_data.is_empty() && settings.local_data.has_records(name) {
        return SpecialUse::Ordinary;
    }
    // The client's own question is answered, from the AAAA lookup and from the A lookup alike.
    let (qtype, class) = state.qtype_and_class();
    special_use::classify(settings.special_use(), state.client.address, name, qtype, class)
}
