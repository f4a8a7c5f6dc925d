//! Answers for a packet cache (`packet_cache_entry.rs`): those of the cache that no setting makes depend on the client.

use crate::answer::params::{ResponseParams, unlimited_params};
use crate::base::name_hash::HashKey;
use crate::base::time::{Instant, Span};
use crate::cache::entry::{Entry, EntryKind, FAILURE, NEGATIVE, REFRESHED};
use crate::cache::index::Place;
use crate::cache::store::MessageCache;
use crate::cache::ttl::due_at;
use crate::client::respond::{query_counter, response_counter};
use crate::counters::{Counter, Counters};
use crate::dns64::config::Dnssec;
use crate::dns64::decision::{Stage, first_stage};
use crate::interface::ClientTransport;
use crate::local::special_use::{self, SpecialUse};
use crate::message::question::{QueryFlags, Question};
use crate::packet_cache_entry::{
    PACKET_CACHE_ANSWER, PacketCacheEntry, PacketCacheEntryKind, PacketCacheHits,
};
use crate::reasons::AnswerReason;
use crate::settings::Settings;
use crate::upstream::forward_zones::ForwardZones;
use core::net::Ipv6Addr;
use wire::header::{self, Flags};
use wire::{Class, Message, Type};

/// The parts that the answers are read from. `Machine` makes one only if the settings treat all clients alike.
pub(crate) struct PacketCacheSource<'e> {
    pub(crate) settings: &'e Settings,
    pub(crate) cache: &'e MessageCache,
    pub(crate) servers: &'e ForwardZones,
    /// Key of the hash over names.
    pub(crate) key: HashKey,
}

impl PacketCacheSource<'_> {
    /// Copies the cached answer to a query, as [`Machine::packet_cache_entry`](crate::interface::Machine::packet_cache_entry) says.
    #[cold]
    pub(crate) fn write_entry(&self, now: Instant, query: &[u8], answer: &mut PacketCacheEntry) -> bool {
        let Ok(message) = Message::parse(query) else { return false };
        let Some((place, dns64)) = self.find(&message, now) else { return false };
        let entry = self.cache.entries.entry(place);
        // An entry that is being refreshed will be another one soon.
        if entry.is(FAILURE) || entry.is(REFRESHED) {
            return false;
        }
        // Each answer counts the addresses that it leaves out, and a packet cache cannot.
        let reason = if dns64 { entry.reason() } else { None };
        if reason.is_some_and(AnswerReason::leaves_out) {
            return false;
        }
        let due = if self.settings.cache.prefetch { due_at(&entry) } else { None };
        let until = due.unwrap_or(entry.expires()).min(entry.expires());
        if until <= now || !copy(&entry, &message, self.settings.dns64.dnssec == Dnssec::Trust, answer) {
            return false;
        }
        answer.stored = entry.stored();
        answer.until = until;
        answer.udp_size = self.settings.udp_size;
        answer.kind =
            PacketCacheEntryKind { rcode: header::flags(entry.message()).rcode(), reason, ede: entry.ede() };
        true
    }

    /// The valid entry that is the complete answer to a query of any client; true if it is that of a client with DNS64.
    pub(crate) fn find(&self, message: &Message<'_>, now: Instant) -> Option<(Place, bool)> {
        let PacketCacheSource { settings, cache, servers, key } = *self;
        let (name, qtype, class) = (message.qname(), message.qtype(), message.qclass());
        let flags = message.flags();
        let has_odd_flags = flags.0 & !(Flags::RD.0 | Flags::AD.0) != 0;
        if has_odd_flags || message.opt().is_some() || qtype == Type::ANY {
            return None;
        }
        // Every client would do: the settings make no difference between them.
        let client = Ipv6Addr::UNSPECIFIED;
        let special = special_use::classify(settings.special_use(), client, name, qtype, class);
        let is_ordinary = matches!(special, SpecialUse::Ordinary);
        let rules = &settings.dns64.rules;
        if !is_ordinary || settings.local_data.has_name(name) || !rules.of(client, name).is_empty() {
            return None;
        }
        let query_flags = QueryFlags::of_query(flags, false);
        let (stage, _) = first_stage(&settings.dns64, client, message, query_flags);
        let question = Question { name, hash: key.hash(name), qtype, class, query_flags, subnet: None };
        if class != Class::IN || !cache.is_cacheable(&question) {
            return None;
        }
        let (kinds, dns64) = match stage {
            Stage::Direct => (&[EntryKind::Reply][..], false),
            _ => (&[EntryKind::Synthesis, EntryKind::Reply][..], true),
        };
        let group = servers.group_number(question.forward_key());
        let find = |&kind| cache.entries.find(&cache.key(&question, qtype, kind, group));
        let is_valid = |&place: &Place| cache.is_valid(&cache.entries.entry(place), dns64, now);
        kinds.iter().filter_map(find).find(is_valid).map(|place| (place, dns64))
    }
}

/// Counts answers of a packet cache.
#[cold]
pub(crate) fn count_hits(
    counters: &mut Counters,
    transport: ClientTransport,
    kind: PacketCacheEntryKind,
    hits: PacketCacheHits,
) {
    let all = hits.ipv4 + hits.ipv6;
    counters.add(query_counter(transport, true), hits.ipv4);
    counters.add(query_counter(transport, false), hits.ipv6);
    counters.add(response_counter(kind.rcode), all);
    let is_stream = !transport.is_datagram();
    counters.add(if is_stream { Counter::CacheHitsStreams } else { Counter::CacheHitsKernel }, all);
    if let Some(reason) = kind.reason {
        counters.add(reason.counter(), all);
    }
    if let Some(code) = kind.ede {
        counters.add(Counter::of_extended_error(code), hits.with_opt);
    }
    counters.durations(Span::ZERO, all);
}

/// Copies an entry with the header of an answer. Returns false if it is too long or has too many records.
fn copy(entry: &Entry<'_>, query: &Message<'_>, trusted: bool, answer: &mut PacketCacheEntry) -> bool {
    let message = entry.message();
    if message.len() > PACKET_CACHE_ANSWER {
        return false;
    }
    answer.length = message.len();
    let frame = &mut answer.message[..message.len()];
    frame.copy_from_slice(message);
    let kept = header::flags(message);
    let params = ResponseParams { flags: query.flags(), ..unlimited_params(QueryFlags::default(), &[]) };
    let secure = trusted && kept.contains(Flags::AD) && params.wants_ad();
    header::set_id(frame, 0);
    header::set_flags(frame, params.flags(kept.rcode(), secure));
    answer.records = 0;
    let lifetime = ((entry.expires() - entry.stored()).0 / 1_000_000_000).min(u64::from(u32::MAX)) as u32;
    for at in entry.ttls() {
        let (Some(place), Some(record)) = (answer.ttls.get_mut(answer.records), frame.get_mut(at - 4..))
        else {
            return false;
        };
        *place = at as u16;
        answer.records += 1;
        // The SOA record of a negative answer ends with the answer (RFC 2308 section 5), see `cache/ttl.rs`.
        if let Some([high, low, _, _, ttl @ ..]) = record.first_chunk_mut::<8>()
            && entry.is(NEGATIVE)
            && Type(u16::from_be_bytes([*high, *low])) == Type::SOA
        {
            *ttl = u32::from_be_bytes(*ttl).min(lifetime).to_be_bytes();
        }
    }
    true
}
