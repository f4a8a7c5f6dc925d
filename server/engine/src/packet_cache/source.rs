//! The engine's part of packet caches: entries made of the cached messages that no setting makes depend on the client, and the count of
//! their hits.

use crate::answer::params::{ResponseParams, unlimited_params};
use crate::base::name_hash::HashKey;
use crate::base::time::{Instant, Span};
use crate::cache::entry::{self, Entry, EntryKind, FAILURE, NEGATIVE, REFRESHED};
use crate::cache::index::Place;
use crate::cache::store::MessageCache;
use crate::cache::ttl::due_at;
use crate::client::respond::{query_counter, response_counter};
use crate::counters::{Counter, Counters};
use crate::dns64::decision::{Stage, first_stage};
use crate::dns64::gateways::Spread;
use crate::limits::PACKET_CACHE_ANSWER;
use crate::local::special_use::{self, SpecialUse};
use crate::message::question::{QueryFlags, Question};
use crate::needs::Needs;
use crate::packet_cache::{
    PacketCacheEntry, PacketCacheEpoch, PacketCacheHits, PacketCacheKind, PacketCacheQuery, PacketCacheReply,
    PacketCacheTask,
};
use crate::reasons::AnswerReason;
use crate::settings::Settings;
use crate::upstream::forward_zones::ForwardZones;
use core::net::Ipv6Addr;
use std::sync::Arc;
use wire::header::{self, Flags};
use wire::{Message, Type};

/// Memory of an engine for the entries that it has given. They end with it.
pub(crate) struct PacketCacheSource {
    /// True if answers suit packet caches ([`Settings::treats_clients_alike`]).
    suits: bool,
    epoch: Arc<PacketCacheEpoch>,
}

/// The parts of an engine that entries are made of.
pub(crate) struct Parts<'e> {
    pub(crate) settings: &'e Settings,
    pub(crate) cache: &'e mut MessageCache,
    pub(crate) servers: &'e ForwardZones,
    pub(crate) key: &'e HashKey,
    pub(crate) counters: &'e mut Counters,
    pub(crate) needs: Option<&'e mut Needs>,
}

impl PacketCacheSource {
    /// Begins with these settings.
    pub(crate) fn new(settings: &Settings) -> PacketCacheSource {
        let epoch = Arc::new(PacketCacheEpoch::new(settings.allow.clone()));
        PacketCacheSource { suits: settings.treats_clients_alike(), epoch }
    }

    /// Ends all entries, and serves these clients from now on. Other settings want a new source.
    pub(crate) fn end_entries(&mut self, settings: &Settings) {
        self.epoch.end();
        self.epoch = Arc::new(PacketCacheEpoch::new(settings.allow.clone()));
    }

    /// Counts hits, and makes entries.
    #[cold]
    pub(crate) fn serve(&self, now: Instant, task: PacketCacheTask, parts: Parts<'_>) -> PacketCacheReply {
        let mut parts = parts;
        task.hits.iter().for_each(|hits| parts.count(now, hits));
        let wanted = task.wanted.into_iter().filter(|_| self.suits);
        let entries = wanted.filter_map(|query| parts.entry(now, query, &self.epoch)).collect();
        PacketCacheReply { epoch: Arc::clone(&self.epoch), entries }
    }
}

impl Drop for PacketCacheSource {
    fn drop(&mut self) {
        self.epoch.end();
    }
}

impl Parts<'_> {
    /// The answer that each client gets to a query, but for ID, letter case and OPT record. None: it is not cached, or not for all, or
    /// something is to be done before it is given again.
    fn entry(
        &self,
        now: Instant,
        query: PacketCacheQuery,
        epoch: &Arc<PacketCacheEpoch>,
    ) -> Option<PacketCacheEntry> {
        let message = Message::parse(query.message()).ok()?;
        let (place, dns64) = self.find(&message, now)?;
        let cached = self.cache.entries.entry(place);
        // An entry that is being refreshed will be another one soon.
        if cached.is(FAILURE) || cached.is(REFRESHED) {
            return None;
        }
        // Each answer counts the addresses that it leaves out, and a packet cache cannot.
        let reason = if dns64 { cached.reason() } else { None };
        if reason.is_some_and(AnswerReason::leaves_out) {
            return None;
        }
        let due = if self.settings.cache.prefetch { due_at(&cached) } else { None };
        let until = due.unwrap_or(cached.expires()).min(cached.expires());
        let rcode = header::flags(cached.message()).rcode();
        let mut entry = PacketCacheEntry {
            stored: cached.stored(),
            until,
            epoch: Arc::clone(epoch),
            udp_size: self.settings.udp_size,
            kind: PacketCacheKind { rcode, reason, ede: cached.ede() },
            ..PacketCacheEntry::empty(query.clone())
        };
        let trusted = self.settings.dns64.dnssec.trusts_ad();
        (now < until && copy(&cached, message.flags(), trusted, &mut entry)).then_some(entry)
    }

    /// Counts answers, and the use of the cached entry.
    fn count(&mut self, now: Instant, hits: &PacketCacheHits) {
        let PacketCacheHits { query, kind, transport, ipv4, ipv6, with_opt } = hits;
        let all = ipv4 + ipv6;
        self.counters.add(query_counter(*transport, true), *ipv4);
        self.counters.add(query_counter(*transport, false), *ipv6);
        self.counters.add(response_counter(kind.rcode), all);
        let is_stream = !transport.is_datagram();
        self.counters.add(if is_stream { Counter::CacheHitsStreams } else { Counter::CacheHitsKernel }, all);
        if let Some(reason) = kind.reason {
            self.counters.add(reason.counter(), all);
            if let Some(gateways) = self.settings.dns64.gateways.as_ref().filter(|_| reason.is_synthesis()) {
                // Every client gets the same ones, or none comes here.
                self.counters.count_prefixes(gateways.general(Ipv6Addr::UNSPECIFIED), all);
            }
        }
        if let Some(code) = kind.ede {
            self.counters.add(Counter::of_extended_error(code), *with_opt);
        }
        self.counters.durations(Span::ZERO, all);
        let Ok(message) = Message::parse(query.message()) else { return };
        if let Some(needs) = self.needs.as_deref_mut()
            && kind.reason.is_some_and(AnswerReason::is_synthesis)
        {
            let name = message.qname();
            needs.count_unseen(name, self.key.hash(name), all, now);
        }
        if let Some((place, _)) = self.find(&message, now) {
            // A use in each interval of counting keeps an entry, as it keeps one that the engine itself answers from.
            entry::visit(self.cache.entries.entry_mut(place));
        }
    }

    /// The valid entry that is the complete answer to a query of any client; true if it is that of a client with DNS64.
    fn find(&self, message: &Message<'_>, now: Instant) -> Option<(Place, bool)> {
        let settings = self.settings;
        let (name, qtype, class) = (message.qname(), message.qtype(), message.qclass());
        // Every client would do: the settings make no difference between them.
        let client = Ipv6Addr::UNSPECIFIED;
        let special = special_use::classify(settings.special_use(), client, name, qtype, class);
        let is_ordinary = matches!(special, SpecialUse::Ordinary) && qtype != Type::ANY;
        let rules = &settings.dns64.rules;
        if !is_ordinary || settings.local_data.has_name(name) || !rules.of(client, name).is_empty() {
            return None;
        }
        let query_flags = QueryFlags::of_query(message.flags(), false);
        let (stage, _) = first_stage(&settings.dns64, client, message, query_flags);
        let question = Question { name, hash: self.key.hash(name), qtype, class, query_flags, subnet: None };
        if !self.cache.is_cacheable(&question) {
            return None;
        }
        let (kinds, dns64) = match stage {
            Stage::Direct => (&[EntryKind::Reply][..], false),
            // Each client network has a prefix of its own.
            _ if spread(settings) == Spread::Client => (&[EntryKind::Reply][..], true),
            _ => (&[EntryKind::Synthesis, EntryKind::Reply][..], true),
        };
        let group = self.servers.group_number(question.forward_key());
        let find = |&kind| self.cache.entries.find(&self.cache.key(&question, qtype, kind, group));
        let is_valid = |&place: &Place| self.cache.is_valid(&self.cache.entries.entry(place), dns64, now);
        kinds.iter().filter_map(find).find(is_valid).map(|place| (place, dns64))
    }
}

/// Choice among the prefixes.
fn spread(settings: &Settings) -> Spread {
    settings.dns64.gateways.as_ref().map_or(Spread::All, |gateways| gateways.table().spread)
}

/// Copies a cached message with the header of an answer. Returns false if it is too long or has too many records.
fn copy(cached: &Entry<'_>, query: Flags, trusted: bool, entry: &mut PacketCacheEntry) -> bool {
    let message = cached.message();
    if message.len() > PACKET_CACHE_ANSWER {
        return false;
    }
    entry.length = message.len();
    let frame = &mut entry.message[..message.len()];
    frame.copy_from_slice(message);
    let kept = header::flags(message);
    let params = ResponseParams { flags: query, ..unlimited_params(QueryFlags::default(), &[]) };
    let secure = trusted && kept.contains(Flags::AD) && params.wants_ad();
    header::set_id(frame, 0);
    header::set_flags(frame, params.flags(kept.rcode(), secure));
    let lifetime = ((cached.expires() - cached.stored()).0 / 1_000_000_000).min(u64::from(u32::MAX)) as u32;
    for at in cached.ttls() {
        let (Some(place), Some(record)) = (entry.ttls.get_mut(entry.records), frame.get_mut(at - 4..)) else {
            return false;
        };
        *place = at as u16;
        entry.records += 1;
        // The SOA record of a negative answer ends with the answer (RFC 2308 section 5), see `cache/ttl.rs`.
        if let Some([high, low, _, _, ttl @ ..]) = record.first_chunk_mut::<8>()
            && cached.is(NEGATIVE)
            && Type(u16::from_be_bytes([*high, *low])) == Type::SOA
        {
            *ttl = u32::from_be_bytes(*ttl).min(lifetime).to_be_bytes();
        }
    }
    true
}
