//! The adversary on the path to the upstream: sees every question, and may keep, delay, replay, mix or change every reply. It has the keys of
//! one zone of its own, and no others.

use crate::keyed_worlds::authority::{Record, Reply};
use crate::keyed_worlds::names::{Name, ancestors, below, labels, parent, wildcard};
use crate::keyed_worlds::signer::{Key, Terms, rrsig};
use crate::keyed_worlds::tree::{A, AAAA, CNAME, DNSKEY, DS, NSEC, NSEC3, RRSIG, SOA, Tree};
use crate::rng::Rng;

/// Replies that the adversary remembers.
const REMEMBERED: usize = 200;

/// What the adversary does to a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trick {
    /// Keeps it.
    Drop,
    /// Keeps it for seconds.
    Delay,
    /// Makes it a failure.
    Fail,
    /// Changes addresses.
    Addresses,
    /// Removes the signatures.
    Strip,
    /// Changes addresses and removes the signatures.
    StripAddresses,
    /// Answers with an address that no zone has, without signatures.
    Invent,
    /// Signs changed data with its own key as its own zone.
    SignAsItself,
    /// Signs changed data with its own key in the name of the zone.
    SignAsZone,
    /// Empties it.
    Empty,
    /// Leaves the SOA record only.
    SoaOnly,
    /// Denies the name or the type with proofs about other names of the zone.
    OtherProofs,
    /// Answers with a former reply to the question.
    Replay,
    /// Answers with a reply to another question.
    ReplayOther,
    /// Answers with the records of a former reply to another question under this name.
    Rename,
    /// Answers from the wildcard that would stand for the name.
    Wildcard,
    /// Denies DS records without proof, or with a proof of the zone below.
    Undelegate,
    /// Puts its own keys in place of those of the zone.
    Keys,
    /// Takes one section from a former reply.
    Mix,
    /// Changes a bit.
    Flip,
    /// Turns the order of the records round and changes letter case, which changes nothing.
    Shuffle,
    /// Raises all TTLs.
    Ttl,
    /// Adds addresses to the additional section, and to the others.
    Add,
    /// Leads to a name of its own zone.
    Divert,
    /// Changes the response code.
    Rcode,
    /// Cuts a chain of aliases.
    Cut,
    /// Changes only the end of a chain of aliases.
    End,
    /// Changes the target of an alias.
    Alias,
    /// Has the validator work, from its own zone.
    Work,
}

impl Trick {
    const ALL: [Trick; 29] = [
        Trick::Drop,
        Trick::Delay,
        Trick::Fail,
        Trick::Addresses,
        Trick::Strip,
        Trick::StripAddresses,
        Trick::Invent,
        Trick::SignAsItself,
        Trick::SignAsZone,
        Trick::Empty,
        Trick::SoaOnly,
        Trick::OtherProofs,
        Trick::Replay,
        Trick::ReplayOther,
        Trick::Rename,
        Trick::Wildcard,
        Trick::Undelegate,
        Trick::Keys,
        Trick::Mix,
        Trick::Flip,
        Trick::Shuffle,
        Trick::Ttl,
        Trick::Add,
        Trick::Divert,
        Trick::Rcode,
        Trick::Cut,
        Trick::End,
        Trick::Alias,
        Trick::Work,
    ];

    /// Draws a trick.
    pub(super) fn draw(rng: &mut Rng) -> Trick {
        *rng.choose(&Trick::ALL)
    }
}

/// A reply on its way.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) reply: Reply,
    /// True if it never arrives.
    pub(super) is_dropped: bool,
    /// Milliseconds that it is held.
    pub(super) held_ms: u64,
    /// True if a bit of the message is changed.
    pub(super) is_flipped: bool,
}

/// The adversary.
#[derive(Debug, Default)]
pub(super) struct Adversary {
    memory: Vec<(Name, u16, Reply)>,
}

/// Question that is attacked, at a time in seconds.
#[derive(Clone, Copy)]
pub(super) struct Question<'q> {
    pub(super) tree: &'q Tree,
    pub(super) name: &'q [u8],
    pub(super) rtype: u16,
    pub(super) secs: u64,
}

impl Question<'_> {
    fn zone(&self) -> usize {
        self.tree.zone_of(self.name, self.rtype)
    }

    fn record(&self, owner: &[u8], rtype: u16, rdata: Vec<u8>) -> Record {
        Record { owner: owner.to_vec(), rtype, ttl: self.tree.ttl, rdata }
    }
}

impl Adversary {
    /// Remembers a reply.
    pub(super) fn remember(&mut self, question: Question<'_>, reply: &Reply, rng: &mut Rng) {
        let entry = (question.name.to_vec(), question.rtype, reply.clone());
        if self.memory.len() < REMEMBERED {
            return self.memory.push(entry);
        }
        let place = rng.below(REMEMBERED as u64) as usize;
        self.memory[place] = entry;
    }

    /// Plays a trick on a reply.
    pub(super) fn play(&self, trick: Trick, question: Question<'_>, reply: Reply, rng: &mut Rng) -> Way {
        let mut way = Way { reply, is_dropped: false, held_ms: 0, is_flipped: false };
        let reply = &mut way.reply;
        match trick {
            Trick::Drop => way.is_dropped = true,
            Trick::Delay => way.held_ms = 100 + rng.below(6000),
            Trick::Fail => *reply = Reply { rcode: *rng.choose(&[1, 2, 2, 2, 4, 5]), ..Reply::default() },
            Trick::Addresses => change_addresses(reply, rng),
            Trick::Strip => strip(reply),
            Trick::StripAddresses => {
                change_addresses(reply, rng);
                strip(reply);
            }
            Trick::Invent => {
                *reply = Reply::default();
                reply.answer.push(invented(question, question.name, rng));
            }
            Trick::SignAsItself | Trick::SignAsZone => {
                if rng.permille(300) {
                    *reply = Reply::default();
                    reply.answer.push(invented(question, question.name, rng));
                }
                change_addresses(reply, rng);
                sign_anew(question, reply, trick == Trick::SignAsZone);
            }
            Trick::Empty => *reply = Reply::default(),
            Trick::SoaOnly => {
                *reply = Reply { rcode: *rng.choose(&[0, 0, 3]), ..Reply::default() };
                let zone = question.zone();
                let apex = &question.tree.zones[zone].apex;
                question.tree.add_signed(zone, SOA, (apex, apex), question.secs, &mut reply.authority);
            }
            Trick::OtherProofs => deny_with_others(question, reply, rng),
            Trick::Replay => self.replay(question, reply, rng),
            Trick::ReplayOther => {
                if let Some((_, _, other)) = self.any(rng) {
                    *reply = other.clone();
                }
            }
            Trick::Rename => self.rename(question, reply, rng),
            Trick::Wildcard => from_wildcard(question, reply, rng),
            Trick::Undelegate => undelegate(question, reply, rng),
            Trick::Keys => replace_keys(question, reply),
            Trick::Mix => {
                if let Some((_, _, other)) = self.any(rng) {
                    match rng.below(3) {
                        0 => reply.answer.clone_from(&other.answer),
                        1 => reply.authority.clone_from(&other.authority),
                        _ => reply.authority.extend(other.authority.iter().cloned()),
                    }
                }
            }
            Trick::Flip => way.is_flipped = true,
            Trick::Shuffle => shuffle(reply),
            Trick::Ttl => all(reply).for_each(|record| record.ttl = 80_000),
            Trick::Add => add(question, reply, rng),
            Trick::Divert => divert(question, reply, rng),
            Trick::Rcode => reply.rcode = *rng.choose(&[0, 3, 3, 6]),
            Trick::Cut => reply.answer.truncate(2),
            Trick::End => change_end(reply, rng),
            Trick::Alias => change_alias(question, reply, rng),
            Trick::Work => work(question, reply, rng),
        }
        way
    }

    fn any(&self, rng: &mut Rng) -> Option<&(Name, u16, Reply)> {
        (!self.memory.is_empty()).then(|| rng.choose(&self.memory))
    }

    fn replay(&self, question: Question<'_>, reply: &mut Reply, rng: &mut Rng) {
        let is_same = |it: &&(Name, u16, Reply)| it.0 == question.name && it.1 == question.rtype;
        let former: Vec<_> = self.memory.iter().filter(is_same).collect();
        if let Some((_, _, former)) = former.get(rng.below(former.len() as u64 + 1) as usize) {
            reply.clone_from(former);
        }
    }

    fn rename(&self, question: Question<'_>, reply: &mut Reply, rng: &mut Rng) {
        let zone = question.zone();
        let is_fit = |it: &&(Name, u16, Reply)| {
            it.1 == question.rtype && question.tree.zone_of(&it.0, it.1) == zone && !it.2.answer.is_empty()
        };
        let fit: Vec<_> = self.memory.iter().filter(is_fit).collect();
        let Some((name, _, other)) = fit.get(rng.below(fit.len() as u64 + 1) as usize) else { return };
        *reply = other.clone();
        for record in reply.answer.iter_mut().filter(|record| record.owner == *name) {
            record.owner = question.name.to_vec();
        }
    }
}

fn all(reply: &mut Reply) -> impl Iterator<Item = &mut Record> {
    [&mut reply.answer, &mut reply.authority, &mut reply.additional].into_iter().flatten()
}

/// Address of no zone.
fn forged_address(rtype: u16, rng: &mut Rng) -> Vec<u8> {
    let octets = rng.next_u64().to_be_bytes();
    match rtype {
        A => [&[66, 66], &octets[..2]].concat(),
        _ => [&[0x20, 1, 0x0d, 0xb8, 0xba, 0xd0, 0, 0], &octets[..]].concat(),
    }
}

fn change_addresses(reply: &mut Reply, rng: &mut Rng) {
    for record in reply.answer.iter_mut().filter(|record| matches!(record.rtype, A | AAAA)) {
        record.rdata = forged_address(record.rtype, rng);
    }
}

fn change_end(reply: &mut Reply, rng: &mut Rng) {
    match reply.answer.iter_mut().rfind(|record| matches!(record.rtype, A | AAAA | CNAME)) {
        Some(record) if record.rtype != CNAME => record.rdata = forged_address(record.rtype, rng),
        Some(record) => record.rdata = kit::name("nowhere.evil"),
        None => {}
    }
    if rng.permille(500)
        && let Some(last) = reply.answer.iter().rposition(|record| record.rtype == RRSIG)
    {
        reply.answer.remove(last);
    }
}

fn change_alias(question: Question<'_>, reply: &mut Reply, rng: &mut Rng) {
    let Question { tree, .. } = question;
    let zone = rng.below(tree.zones.len() as u64) as usize;
    let target = below(rng.choose::<&str>(&["h0", "h1", "no"]), &tree.zones[zone].apex);
    if let Some(alias) = reply.answer.iter_mut().find(|record| record.rtype == CNAME) {
        alias.rdata.clone_from(&target);
        let end = tree.reply(&target, question.rtype, question.secs);
        if rng.permille(700) {
            let upto =
                reply.answer.iter().rposition(|record| record.rtype == CNAME).map_or(0, |last| last + 1);
            reply.answer.truncate(upto);
            reply.answer.extend(end.answer);
            reply.authority = end.authority;
        }
    }
}

fn strip(reply: &mut Reply) {
    reply.answer.retain(|record| record.rtype != RRSIG);
    reply.authority.retain(|record| record.rtype != RRSIG);
}

fn invented(question: Question<'_>, owner: &[u8], rng: &mut Rng) -> Record {
    let rtype = if question.rtype == A { A } else { AAAA };
    question.record(owner, rtype, forged_address(rtype, rng))
}

/// Signature of the forger's key over records.
fn own_signature(
    question: Question<'_>,
    signer: usize,
    owner: &[u8],
    rtype: u16,
    records: &[Vec<u8>],
) -> Record {
    let Question { tree, secs, .. } = question;
    let is_own = signer == tree.forgers;
    let key = if is_own { tree.keys(signer, secs).data } else { tree.twin(signer, secs) };
    let tag = if is_own { key.tag() } else { tree.keys(signer, secs).data.tag() };
    let terms = Terms { signer: tree.zones[signer].apex.clone(), ..tree.terms(tree.forgers, A, tag, secs) };
    question.record(owner, RRSIG, rrsig(&key, &terms, owner, rtype, records))
}

/// Replaces all signatures by the forger's.
fn sign_anew(question: Question<'_>, reply: &mut Reply, as_zone: bool) {
    strip(reply);
    for section in [&mut reply.answer, &mut reply.authority] {
        let mut sets: Vec<(Name, u16, Vec<Vec<u8>>)> = vec![];
        for record in section.iter() {
            match sets.iter_mut().find(|set| (&set.0, set.1) == (&record.owner, record.rtype)) {
                Some(set) => set.2.push(record.rdata.clone()),
                None => sets.push((record.owner.clone(), record.rtype, vec![record.rdata.clone()])),
            }
        }
        for (owner, rtype, records) in sets {
            let zone = match (as_zone, rtype) {
                (false, _) => question.tree.forgers,
                (true, NSEC | NSEC3) => question.zone(),
                (true, rtype) => question.tree.zone_of(&owner, rtype),
            };
            section.push(own_signature(question, zone, &owner, rtype, &records));
        }
    }
}

/// Denies what was asked for with links of the chain that are about something else.
fn deny_with_others(question: Question<'_>, reply: &mut Reply, rng: &mut Rng) {
    let zone = question.zone();
    let is_partly_true = rng.permille(500);
    if !is_partly_true {
        reply.authority.clear();
    }
    reply.answer.clear();
    reply.rcode = *rng.choose(&[0, 0, 3, 3, 2]) % 4;
    let Question { tree, secs, .. } = question;
    if reply.authority.is_empty() {
        let apex = &tree.zones[zone].apex;
        tree.add_signed(zone, SOA, (apex, apex), secs, &mut reply.authority);
    }
    let from = match rng.below(10) {
        0..7 => zone,
        7..9 => tree.zones[zone].parent.unwrap_or(zone),
        _ => rng.below(tree.zones.len() as u64) as usize,
    };
    if tree.zones[from].is_signed() {
        // The links of the name itself and of those above it often look as if they were about it.
        let near: Vec<usize> =
            ancestors(question.name).filter_map(|name| tree.place_of_denial(from, name)).collect();
        for _ in 0..1 + rng.below(4) {
            let place = match near.is_empty() || rng.permille(500) {
                true => rng.below(tree.denials(from) as u64) as usize,
                false => *rng.choose(&near),
            };
            tree.add_denial(from, place, secs, &mut reply.authority);
        }
    }
    if is_partly_true && reply.authority.len() > 2 && rng.permille(500) {
        let place = rng.below(reply.authority.len() as u64) as usize;
        reply.authority.remove(place);
    }
}

/// Answers from the wildcard that would stand for the name, with proofs or without.
fn from_wildcard(question: Question<'_>, reply: &mut Reply, rng: &mut Rng) {
    let Question { tree, name, rtype, secs } = question;
    let zone = question.zone();
    let stars = ancestors(name).skip(1).map(wildcard);
    let Some(star) = stars.into_iter().find(|star| tree.zones[zone].nodes.contains_key(star)) else { return };
    let has = |rtype| !tree.records(zone, &star, rtype, secs).is_empty();
    let Some(given) = [rtype, CNAME].into_iter().find(|rtype| has(*rtype)) else { return };
    *reply = Reply::default();
    tree.add_signed(zone, given, (&star, name), secs, &mut reply.answer);
    for _ in 0..rng.below(3) {
        let place = rng.below(tree.denials(zone) as u64) as usize;
        if tree.zones[zone].is_signed() {
            tree.add_denial(zone, place, secs, &mut reply.authority);
        }
    }
    if rng.permille(300) {
        // Proofs that are true for another name below the wildcard.
        if let Some(above) = parent(name) {
            reply.authority = tree.reply(&below("other", above), rtype, secs).authority;
        }
    }
}

/// Has a delegation look unsigned.
fn undelegate(question: Question<'_>, reply: &mut Reply, rng: &mut Rng) {
    let Question { tree, name, secs, .. } = question;
    *reply = Reply::default();
    let zone = if rng.permille(500) { tree.zone_of(name, A) } else { question.zone() };
    let apex = &tree.zones[zone].apex;
    match rng.below(4) {
        0 => {}
        1 => tree.add_signed(zone, SOA, (apex, apex), secs, &mut reply.authority),
        2 => *reply = tree.reply(name, DS, secs),
        _ => *reply = tree.reply(name, super::tree::TXT, secs),
    }
    reply.answer.clear();
    if tree.zones[zone].is_signed() {
        for _ in 0..rng.below(4) {
            let place = rng.below(tree.denials(zone) as u64) as usize;
            tree.add_denial(zone, place, secs, &mut reply.authority);
        }
    }
    if rng.permille(300) {
        strip(reply);
    }
}

/// Puts the forger's keys in place of those of the zone, or beside them.
fn replace_keys(question: Question<'_>, reply: &mut Reply) {
    let Question { tree, name, rtype, secs } = question;
    let mut keys = tree.keys(tree.forgers, secs).all;
    keys.push(tree.twin(tree.zone_of(name, A), secs));
    let mut rdata: Vec<Vec<u8>> = keys.iter().map(Key::rdata).collect();
    if rtype == DS {
        rdata = keys.iter().map(|key| key.ds(name)).collect();
    } else {
        let own = reply.answer.iter().filter(|record| record.rtype == DNSKEY && secs.is_multiple_of(2));
        rdata.extend(own.map(|record| record.rdata.clone()));
    }
    let kept: Vec<Record> = reply.answer.iter().filter(|record| record.rtype == RRSIG).cloned().collect();
    let given = if rtype == DS { DS } else { DNSKEY };
    reply.answer = rdata.iter().cloned().map(|rdata| question.record(name, given, rdata)).collect();
    reply.answer.extend(kept);
    let zone = tree.zone_of(name, rtype);
    reply.answer.push(own_signature(question, zone, name, given, &rdata));
    reply.answer.push(own_signature(question, tree.forgers, name, given, &rdata));
}

fn shuffle(reply: &mut Reply) {
    for section in [&mut reply.answer, &mut reply.authority] {
        section.reverse();
        section.iter_mut().for_each(|record| record.owner.make_ascii_uppercase());
    }
}

fn add(question: Question<'_>, reply: &mut Reply, rng: &mut Rng) {
    let owner = match rng.permille(500) {
        true => question.name.to_vec(),
        false => below("h0", &question.tree.zones[question.zone()].apex),
    };
    let record = invented(question, &owner, rng);
    match rng.below(3) {
        0 => reply.answer.push(record),
        1 => reply.authority.push(record),
        _ => reply.additional.push(record),
    }
}

/// Leads to a name of the forger's zone, in place of the data.
fn divert(question: Question<'_>, reply: &mut Reply, rng: &mut Rng) {
    let Question { tree, name, rtype, secs } = question;
    let target = below(rng.choose::<&str>(&["h0", "h1", "c0"]), &tree.zones[tree.forgers].apex);
    let alias = question.record(name, CNAME, target.clone());
    *reply = tree.reply(&target, rtype, secs);
    let mut answer = vec![alias];
    match rng.below(3) {
        0 => {}
        1 => answer.push(own_signature(question, tree.forgers, name, CNAME, std::slice::from_ref(&target))),
        _ => {
            answer.push(own_signature(question, question.zone(), name, CNAME, std::slice::from_ref(&target)))
        }
    }
    answer.append(&mut reply.answer);
    reply.answer = answer;
}

/// Answers from the forger's zone what costs the most.
fn work(question: Question<'_>, reply: &mut Reply, rng: &mut Rng) {
    let Question { tree, name, rtype, .. } = question;
    if question.zone() != tree.forgers {
        return;
    }
    if rtype == DNSKEY {
        return trap(question, reply, rng);
    }
    if !matches!(rtype, A | AAAA) || labels(name) > 20 {
        return;
    }
    *reply = Reply::default();
    let apex = &tree.zones[tree.forgers].apex;
    let mut at = name.to_vec();
    for _ in 0..rng.below(16) {
        let target = below(&format!("w{}", rng.below(1_000_000)), apex);
        reply.answer.push(question.record(&at, CNAME, target.clone()));
        at = target;
    }
    if rng.permille(500) || reply.answer.is_empty() {
        reply.answer.push(question.record(&at, rtype, forged_address(rtype, rng)));
    }
    sign_anew(question, reply, false);
    // Wrong signatures beside the right ones.
    let mut wrong: Vec<Record> = reply.answer.iter().filter(|it| it.rtype == RRSIG).cloned().collect();
    if rng.permille(500) {
        wrong.iter_mut().for_each(|record| {
            let last = record.rdata.len() - 1;
            record.rdata[last - 63] ^= 0x80;
        });
        reply.answer.extend(wrong);
    }
}

/// Many keys and signatures of one key tag (CVE-2023-50387).
fn trap(question: Question<'_>, reply: &mut Reply, rng: &mut Rng) {
    let Some(first) = reply.answer.iter().find(|record| record.rtype == DNSKEY).cloned() else { return };
    for _ in 0..rng.below(13) {
        let mut other = first.clone();
        // The sum of two pairs stays the same, and so does the tag.
        let (a, b) = (4 + 2 * rng.below(16) as usize, 40 + 2 * rng.below(12) as usize);
        other.rdata.swap(a, b);
        reply.answer.push(other);
    }
    let signature = reply.answer.iter().find(|record| record.rtype == RRSIG).cloned();
    for _ in 0..rng.below(20) {
        reply.answer.extend(signature.clone().map(|mut record| {
            let last = record.rdata.len() - 1;
            record.rdata[last - rng.below(60) as usize] ^= 1 << rng.below(8);
            record
        }));
    }
    if rng.permille(500) {
        let rdata: Vec<Vec<u8>> =
            reply.answer.iter().filter(|it| it.rtype == DNSKEY).map(|it| it.rdata.clone()).collect();
        let Question { tree, name, secs, .. } = question;
        let key = tree.keys(tree.forgers, secs).entry;
        let terms = tree.terms(tree.forgers, DNSKEY, key.tag(), secs);
        reply.answer.push(question.record(name, RRSIG, rrsig(&key, &terms, name, DNSKEY, &rdata)));
    }
}
