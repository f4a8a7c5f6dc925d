//! The message cache: which question an entry answers, and what is stored of a message.

use crate::base::name_hash::HashKey;
use crate::base::time::Instant;
use crate::cache::entry::{Body, CacheKey, EntryKind, Facts};
use crate::limits::KEPT_RECORDS;
use crate::message::question::Question;
use crate::upstream::groups::ServerGroups;
use wire::{Message, Section, Type, header};

/// The key under which the reply to a question, or what is made of it, is kept.
#[inline]
pub(crate) fn key_of<'a>(
    hash: HashKey,
    servers: &ServerGroups,
    question: &Question<'a>,
    qtype: Type,
    kind: EntryKind,
) -> CacheKey<'a> {
    let group = servers.group_number(question.name);
    let query_flags = question.query_flags.kept();
    let rest = u64::from(qtype.0)
        | u64::from(question.class.0) << 16
        | u64::from(query_flags) << 32
        | (kind as u64) << 40
        | u64::from(group) << 48;
    let all = hash.hash_number(u128::from(rest) << 64 | u128::from(question.hash));
    CacheKey {
        hash: all & !0xffff_ffff | question.hash & 0xffff_ffff,
        name: question.name,
        qtype,
        class: question.class,
        query_flags,
        kind,
        group,
    }
}

/// Keeps a message with the places of its TTLs, which are those in `records`.
pub(crate) fn put(
    cache: &mut crate::cache::Cache,
    now: Instant,
    key: &CacheKey<'_>,
    facts: &Facts,
    records: &Message<'_>,
    body: Body<'_>,
) {
    let mut ttls = [0u16; KEPT_RECORDS];
    let mut count = 0;
    for section in [Section::Answer, Section::Authority, Section::Additional] {
        for record in records.records(section).filter(|record| record.rtype != Type::OPT) {
            let Some(place) = ttls.get_mut(count) else {
                cache.remove(key);
                return;
            };
            *place = record.ttl_start() as u16;
            count += 1;
        }
    }
    cache.put(now, key, facts, &ttls[..count], body);
}

/// A message that we wrote, without its OPT record, which is the last one.
pub(crate) fn without_opt<'a>(message: &Message<'a>) -> Option<Body<'a>> {
    let mut body = Body::of(&message.bytes()[..message.opt_start().unwrap_or(message.end())])?;
    if message.opt_start().is_some() {
        let others = header::arcount(&body.header);
        header::set_arcount(&mut body.header, others - 1);
    }
    Some(body)
}
