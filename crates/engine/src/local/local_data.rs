//! Data of our own in front of the upstreams: records that the configuration gives, and names that it blocks. They take the
//! place of an upstream's reply, so DNS64 applies to them, and nobody is asked.
//!
//! Response policy zones (`enforce.rs`) come after that. A name with records exists with these alone; names below it are asked upstream. A blocked name and all below it do not
//! exist, unless they have records here.

use crate::base::name_table::Names;
use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::client::waiter::{QUESTION, Stage};
use crate::counters::Counter;
use crate::engine::Engine;
use crate::event::Note;
use crate::interface::Outbox;
use crate::local::special_use::soa;
use crate::message::cname_chain::Chain;
use crate::settings::Arpa;
use crate::upstream::receive::Outcome;
use wire::header::Flags;
use wire::{Builder, Class, Full, Message, Name, Rcode, Section, Type, ede};

/// How long clients may keep that a name is blocked, in seconds: what is unblocked can be reached a minute later.
const BLOCKED_TTL: u32 = 60;

/// One record in class IN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalRecord {
    /// Its name in wire form, lower case.
    pub owner: Box<[u8]>,
    /// Its type.
    pub rtype: Type,
    /// Its TTL in seconds.
    pub ttl: u32,
    /// Its data; names in it are not compressed.
    pub rdata: Box<[u8]>,
}

impl LocalRecord {
    /// Whether it can be read when it stands in a message.
    pub fn is_sound(&self) -> bool {
        let written = || {
            // The question for all that the root has; the record, whose owner takes two octets if that is a pointer.
            let mut frame = vec![0; wire::HEADER + 5 + self.owner.len().max(2) + 10 + self.rdata.len()];
            let (limit, question) = (frame.len(), [0, 0, 255, 0, 1]);
            let mut builder = Builder::new(&mut frame, limit, 0, Flags(0), &question)?;
            let (owner, LocalRecord { rtype, ttl, rdata, .. }) = (Name::from_wire(&self.owner)?, self);
            builder.record(Section::Answer, owner, *rtype, Class::IN, *ttl, rdata).ok()?;
            let length = builder.finish();
            frame.truncate(length);
            Some(frame)
        };
        written().is_some_and(|message| Message::parse(&message).is_ok())
    }
}

/// What we know ourselves.
#[derive(Clone, Debug, Default)]
pub struct LocalData {
    names: Names,
    entries: Vec<LocalEntry>,
}

#[derive(Clone, Debug, Default)]
struct LocalEntry {
    records: Vec<LocalRecord>,
    blocked: bool,
}

/// What is known of a name.
enum LocalMatch<'o> {
    Records(&'o [LocalRecord]),
    /// The blocked name begins behind so many octets.
    Blocked(usize),
}

impl LocalData {
    /// Records, in the order in which they are answered, and blocked names in wire form.
    pub fn new(records: Vec<LocalRecord>, blocked: impl IntoIterator<Item = Box<[u8]>>) -> LocalData {
        let mut entries: std::collections::BTreeMap<Box<[u8]>, LocalEntry> = Default::default();
        for record in records {
            entries.entry(record.owner.clone()).or_default().records.push(record);
        }
        for name in blocked {
            entries.entry(name).or_default().blocked = true;
        }
        let (names, entries) = entries.into_iter().unzip();
        LocalData { names: Names::new(names), entries }
    }

    /// Whether nothing is known here.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether there are records of this very name.
    pub fn has_records(&self, name: &[u8]) -> bool {
        matches!(self.find(name), Some(LocalMatch::Records(_)))
    }

    /// Whether a name is answered here.
    #[inline]
    pub fn knows(&self, name: &[u8]) -> bool {
        !self.is_empty() && self.find(name).is_some()
    }

    fn find(&self, name: &[u8]) -> Option<LocalMatch<'_>> {
        let (mut records, mut blocked) = (None, None);
        self.names.find(name, |number, before| {
            let entry = &self.entries[number];
            if before == 0 && !entry.records.is_empty() {
                records = Some(LocalMatch::Records(&entry.records));
            }
            if entry.blocked {
                blocked = Some(LocalMatch::Blocked(before));
            }
        });
        records.or(blocked)
    }

    /// Writes the reply that an upstream would give if it knew what we know. None: we do not, or it does not fit.
    fn reply(&self, question: &[u8], arpa: &Arpa, frame: &mut [u8]) -> Option<(usize, Counter)> {
        let name = &question[..question.len().checked_sub(4)?];
        let qtype = Type(u16::from_be_bytes([question[name.len()], question[name.len() + 1]]));
        let found = self.find(name)?;
        let owner = Name::from_wire(name)?;
        let limit = frame.len();
        let flags = Flags(0).with(Flags::QR);
        match found {
            LocalMatch::Blocked(before) => {
                let flags = flags.with_rcode(Rcode::NXDOMAIN);
                let mut builder = Builder::new(frame, limit, 0, flags, question)?;
                let apex = Name::from_wire(&name[before..])?;
                deny(&mut builder, apex, BLOCKED_TTL, arpa).ok()?;
                // RFC 8914 section 4.16.
                builder.opt(512, 0, 0, false, Some(ede::BLOCKED)).ok()?;
                Some((builder.finish(), Counter::FilteredBlock))
            }
            LocalMatch::Records(records) => {
                let mut builder = Builder::new(frame, limit, 0, flags, question)?;
                answer_records(&mut builder, owner, qtype, records, arpa).ok()?;
                Some((builder.finish(), Counter::LocalRecords))
            }
        }
    }
}

/// Writes the records of a name that are of the type asked, or that there are none. Whether there are.
pub(crate) fn answer_records(
    builder: &mut Builder<'_>,
    owner: Name<'_>,
    qtype: Type,
    records: &[LocalRecord],
    arpa: &Arpa,
) -> Result<bool, Full> {
    //= RFC 8482 section 4.1: requirement 53; one RRset is enough for ANY.
    let first = records.first().filter(|_| qtype == Type::ANY).map_or(qtype, |record| record.rtype);
    let is_alias = records.iter().any(|record| record.rtype == Type::CNAME);
    let wanted = if is_alias { Type::CNAME } else { first };
    let mut answered = false;
    for record in records.iter().filter(|record| record.rtype == wanted) {
        let LocalRecord { rtype, ttl, rdata, .. } = record;
        // A part is better than nothing for a name with hundreds of addresses.
        if builder.record(Section::Answer, owner, *rtype, Class::IN, *ttl, rdata).is_err() {
            break;
        }
        answered = true;
    }
    if !answered {
        // As long as the longest of its records, so that the TTL of a synthesis is that of its A records.
        let ttl = records.iter().map(|record| record.ttl).max().unwrap_or(BLOCKED_TTL);
        deny(builder, owner, ttl, arpa)?;
    }
    Ok(answered)
}

/// The SOA that lets a client keep that there is nothing (RFC 2308 section 3).
pub(crate) fn deny(builder: &mut Builder<'_>, apex: Name<'_>, ttl: u32, arpa: &Arpa) -> Result<(), Full> {
    let mut room = [0; crate::local::special_use::SOA];
    builder.record(Section::Authority, apex, Type::SOA, Class::IN, ttl, soa(arpa, ttl, &mut room))
}

impl Engine {
    /// Answers a client out of what we know ourselves, or goes on with what that says. False: we know nothing of the name.
    #[inline]
    pub(crate) fn answer_own(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) -> bool {
        !self.settings.own.is_empty() && self.answer_known(waiter, now, out)
            || self.waiters[waiter].chain != NONE && self.answer_aliased(waiter, now, out)
            || !self.settings.policy.is_empty() && self.answer_by_policy(waiter, now, out)
    }

    fn answer_known(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) -> bool {
        let leg = self.leg(waiter);
        // Most names are not ours, and need no more than this look.
        if !leg.is_ours() || self.settings.own.find(leg.name).is_none() {
            return false;
        }
        let (mut room, qtype) = ([0; QUESTION], leg.qtype);
        let question = leg.question(&mut room);
        // Lent while it is read; what it leads to may need another one.
        let mut frame = self.frames.pop().unwrap_or_else(frame);
        let reply = self.settings.own.reply(question, &self.settings.dns64.arpa, &mut frame);
        if let Some((length, counter)) = reply {
            self.counters.count(counter);
            out.note(|| Note::Own(counter));
            self.conclude(waiter, &frame[..length], qtype, now, out);
        }
        self.frames.push(frame);
        reply.is_some()
    }

    /// Takes a reply of our own for that of an upstream.
    pub(crate) fn conclude(
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
        let follows = self.waiters[waiter].stage == Stage::Direct
            && !matches!(qtype, Type::CNAME | Type::ANY)
            && chain.is_unfinished(&message);
        if !follows || !self.follow(waiter, &message, chain.end(), qtype, now, out) {
            self.go_on(waiter, &Outcome::Reply(&message, &chain), now, out);
        }
    }

    /// What is to be asked next for a waiter.
    pub(crate) fn leg(&self, waiter: Index) -> CurrentQuestion<'_> {
        let (name, qtype) = self.sought(waiter);
        CurrentQuestion { name, qtype, class: self.waiters[waiter].asks_for().1 }
    }
}

/// A frame for a reply of our own.
pub(crate) fn frame() -> Box<[u8]> {
    vec![0; crate::limits::MESSAGE].into()
}

/// What is asked: the question of a client, or a part of the way to its answer.
pub(crate) struct CurrentQuestion<'e> {
    /// The name in wire form.
    pub name: &'e [u8],
    pub qtype: Type,
    pub class: Class,
}

impl CurrentQuestion<'_> {
    /// Whether our own data, which are in class IN, are among what is asked for.
    #[inline]
    pub fn is_ours(&self) -> bool {
        matches!(self.class, Class::IN | Class::ANY)
    }

    /// It as a question section.
    pub fn question<'r>(&self, room: &'r mut [u8; QUESTION]) -> &'r [u8] {
        let length = self.name.len();
        room[..length].copy_from_slice(self.name);
        room[length..length + 2].copy_from_slice(&self.qtype.0.to_be_bytes());
        room[length + 2..length + 4].copy_from_slice(&self.class.0.to_be_bytes());
        &room[..length + 4]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_sound_if_its_data_are_what_its_type_asks_for() {
        for (rtype, rdata, is_sound) in [
            (Type::A, &[192, 0, 2, 1][..], true),
            (Type::A, &[192, 0, 2], false),
            (Type::CNAME, b"\x01a\0", true),
            (Type::CNAME, b"\x01a", false),
            (Type::MX, b"\0\x0a\x01a\0", true),
            (Type::MX, b"\0\x0a", false),
            (Type::OPT, b"", false),
            (Type(65_280), b"", true),
            (Type::TXT, &[1; 60_000], true),
            (Type::TXT, &[1; 66_000], false),
        ] {
            let record =
                LocalRecord { owner: Box::from(&b"\x01x\0"[..]), rtype, ttl: 60, rdata: rdata.into() };
            assert_eq!(record.is_sound(), is_sound, "{rtype} of {} octets", rdata.len());
        }
        let rdata = Box::from(&[192, 0, 2, 1][..]);
        let root = LocalRecord { owner: Box::from(&[0][..]), rtype: Type::A, ttl: 0, rdata };
        assert!(root.is_sound());
    }
}
pub use {LocalData as Own, LocalRecord as Record};
