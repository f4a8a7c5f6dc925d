//! Announced queries: loads the cache entries that a batch of queries will need, and for names that have none, the memory that their
//! resolutions will read.
//!
//! The index of the cache and its entries lie scattered over all of its memory, so a query whose name was not asked for lately waits for
//! two accesses to main memory, each of which also needs an entry of the page table. One after the other they are the largest part of
//! what the engine costs. For a batch, the hashes of all names are computed first, then the lines of the index are loaded, then the
//! heads of the entries: the processor has many of these loads under way at a time. The table of questions in flight and the places of
//! the entries that give way to new ones are scattered as much.
//!
//! The question is read without the checks of the parser. A wrong guess, about a malformed query say, costs a load and nothing else.

use crate::base::name_hash::HashKey;
use crate::cache::entry::EntryKind;
use crate::cache::store::MessageCache;
use crate::limits::PREFETCHED;
use crate::message::question::{ForwardKey, QueryFlags, Question};
use crate::upstream::Upstream;
use core::hint::black_box;
use wire::header::{self, Flags};
use wire::{Class, Type};

// `Cache::touch` has one bit for each.
const _: () = assert!(PREFETCHED <= u64::BITS as usize);

/// Octets of an OPT record before its DO bit: name, type, size, extended RCODE and version (RFC 6891 section 6.1.2).
const BEFORE_DO: usize = 1 + 2 + 2 + 2;
/// DO within its octet.
const DO: u8 = 0x80;

/// Loads the entries for at most [`PREFETCHED`] queries. `key` hashes names.
pub(crate) fn touch_entries<'m>(
    cache: &MessageCache,
    upstream: &Upstream,
    key: HashKey,
    messages: impl Iterator<Item = &'m [u8]>,
) {
    let (mut entries, mut names) = ([0; PREFETCHED], [0; PREFETCHED]);
    let mut count = 0;
    for ((message, entry), name) in messages.zip(&mut entries).zip(&mut names) {
        let group = |question: ForwardKey<'_>| upstream.servers.group_number(question);
        (*entry, *name) = hashes(message, cache, key, group).unwrap_or_default();
        count += 1;
    }
    let mut missing = cache.entries.touch(&entries[..count]);
    let outbound_queries = &upstream.outbound_queries;
    let mut loaded = 0;
    while missing != 0 {
        let name = names[missing.trailing_zeros() as usize];
        loaded ^= outbound_queries.touch(name, Type::AAAA) ^ outbound_queries.touch(name, Type::A);
        missing &= missing - 1;
    }
    black_box(loaded);
}

/// The hashes of the entry that would answer a query, and of its name. None: it has no question. `key` hashes names, `group` finds their
/// upstreams.
#[inline]
fn hashes(
    message: &[u8],
    cache: &MessageCache,
    key: HashKey,
    group: impl FnOnce(ForwardKey<'_>) -> u32,
) -> Option<(u64, u64)> {
    let question = message.get(wire::HEADER..)?;
    let (name, rest) = question.split_at(wire::name_len(question)?);
    let ([a, b, _, _], additional) = rest.split_first_chunk()?;
    let qtype = Type(u16::from_be_bytes([*a, *b]));
    let dnssec_ok = additional.get(BEFORE_DO).is_some_and(|octet| octet & DO != 0);
    let flags = header::flags(message);
    // The synthesis is looked for first. A client that validates by itself gets none (RFC 6147 section 5.5).
    let is_synthesis = qtype == Type::AAAA && !(dnssec_ok && flags.contains(Flags::CD));
    let kind = if is_synthesis { EntryKind::Synthesis } else { EntryKind::Reply };
    let query_flags = QueryFlags::of_query(flags, dnssec_ok);
    let question =
        Question { name, hash: key.hash(name), qtype, class: Class::IN, query_flags, subnet: None };
    Some((cache.key(&question, qtype, kind, group(question.forward_key())).hash, question.hash))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::ttl::Caching;
    use wire::Message;

    const KEY: HashKey = HashKey([0x1234_5678_9abc_def1, 0x0fed_cba9_8765_4321]);

    fn cache() -> MessageCache {
        MessageCache::new(1 << 20, Caching::default(), KEY)
    }

    /// A query with these flags, and an OPT record with or without DO, or none.
    fn query(name: &[u8], qtype: Type, flags: u16, dnssec_ok: Option<bool>) -> Vec<u8> {
        let [high, low] = flags.to_be_bytes();
        let additional = u8::from(dnssec_ok.is_some());
        let mut message = vec![0, 7, high, low, 0, 1, 0, 0, 0, 0, 0, additional];
        message.extend(name);
        message.extend(qtype.0.to_be_bytes());
        message.extend([0, 1]);
        if let Some(dnssec_ok) = dnssec_ok {
            message.extend([0, 0, 41, 4, 208, 0, 0, if dnssec_ok { DO } else { 0 }, 0, 0, 0]);
        }
        message
    }

    #[test]
    fn the_entry_that_is_loaded_is_the_one_that_is_looked_for() {
        let cache = cache();
        let name = b"\x03wWw\x07example\x00";
        for (qtype, kind) in
            [(Type::AAAA, EntryKind::Synthesis), (Type::A, EntryKind::Reply), (Type::TXT, EntryKind::Reply)]
        {
            for flags in [0x0100, 0x0110, 0x0120] {
                for dnssec_ok in [None, Some(false), Some(true)] {
                    let bytes = query(name, qtype, flags, dnssec_ok);
                    let message = Message::parse(&bytes).unwrap();
                    let query_flags = QueryFlags::of_query(header::flags(&bytes), dnssec_ok == Some(true));
                    let question = Question {
                        name: message.qname(),
                        hash: KEY.hash(b"\x03www\x07example\x00"),
                        qtype,
                        class: Class::IN,
                        query_flags,
                        subnet: None,
                    };
                    // DO with CD turns DNS64 off (RFC 6147 section 5.5).
                    let has_dns64 = !query_flags.has(QueryFlags::CD.with(QueryFlags::DO, true));
                    let kind = if has_dns64 { kind } else { EntryKind::Reply };
                    let key = cache.key(&question, qtype, kind, 3);
                    let found = hashes(&bytes, &cache, KEY, |_| 3);
                    assert_eq!(found, Some((key.hash, question.hash)), "{qtype:?} {flags:#x} {dnssec_ok:?}");
                }
            }
        }
    }

    #[test]
    fn a_message_without_a_whole_question_has_no_hash() {
        let cache = cache();
        let whole = query(b"\x03www\x07example\x00", Type::AAAA, 0x0100, None);
        for length in 0..whole.len() {
            assert_eq!(hashes(&whole[..length], &cache, KEY, |_| 0), None, "{length}");
        }
        assert!(hashes(&whole, &cache, KEY, |_| 0).is_some());
        for odd in [[0xff; 300], [63; 300]] {
            assert_eq!(hashes(&odd, &cache, KEY, |_| 0), None);
        }
    }
}
