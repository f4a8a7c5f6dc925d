//! DNSSEC validation of messages from anybody: a reply, and the replies to the questions that it leads to. Work stays within the budgets,
//! the same octets get the same verdict, and the octets that signatures sign are those that `domain` writes.
//!
//! An input is an octet of settings, the time, and messages with their lengths before them, as over TCP. The first message is validated.
//! The others are replies to the questions about keys and DS records: each to its own question.

use crate::input::InputReader;
use ::dnssec::budget::{BLOCKS, MESSAGE_BLOCKS, MESSAGE_VERIFICATIONS, QUESTIONS, VERIFICATIONS};
use ::dnssec::{
    Algorithm, Algorithms, Anchor, AnchorData, Anchors, Bogus, Budget, Context, Delegation, Digests, Dnskey,
    Entry, Groups, Insecure, Known, MessageBudget, Next, Outcome, Question, Rrset, SignatureJob, Status,
    Timestamp, Validation, ZoneKeys, Zones, entry_by_anchors, entry_by_ds, signed_data,
};
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, digest};
use domain::base::rdata::ComposeRecordData;
use domain::base::{Message as DomainMessage, ParsedName};
use domain::rdata::AllRecordData;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use wire::{Message, Section, Type};

/// Signatures whose last octet is odd are wrong; else all are valid.
const SOME_WRONG: u8 = 1;
/// The keys of every zone count as vouched for, whatever DS records say.
const ALL_KEYS: u8 = 2;

/// Types in whose RDATA both libraries know where names are.
const COMPARED: [u16; 21] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 28, 33, 35, 39, 43, 48, 50];

/// Tests one input.
pub fn run(input: &[u8]) {
    let first = play(input);
    assert_eq!(first, play(input), "the same octets, another verdict");
}

/// Inputs with the messages of questions about zones of the generator, some of them with a fault.
pub fn seeds() -> Vec<Vec<u8>> {
    use signed_zones::faults::{self, Place, Plant, ProofTwist, Twist};
    use signed_zones::{KINDS, Store, World};
    let table = faults::all();
    let fault = |plant| *table.iter().find(|fault| fault.plant == plant).expect("a fault of the table");
    let none = fault(Plant::None);
    // ECDSA signatures differ from run to run, and seeds should not.
    let is_constant = |world: &World| {
        world
            .zones()
            .iter()
            .flat_map(|zone| &zone.keys)
            .all(|keys| !matches!(keys.entry.pair.algorithm(), 13 | 14))
    };
    let store = (0..).map(Store::new).find(|store| is_constant(&World::new(store, KINDS[0], &none)));
    let store = store.expect("a seed without ECDSA");
    let mut seeds = Vec::new();
    for (kind, faults) in [
        (KINDS[0], [none, fault(Plant::Signature(Place::Proof, Twist::LabelsFewer))]),
        (KINDS[1], [none, fault(Plant::Proof(ProofTwist::MixedSalt))]),
        (KINDS[2], [none, fault(Plant::Proof(ProofTwist::Iterations(51)))]),
        (KINDS[3], [none, fault(Plant::Signature(Place::Address, Twist::LabelsFewer))]),
    ] {
        for (settings, fault) in [(0, faults[0]), (SOME_WRONG, faults[1])] {
            let world = World::new(&store, kind, &fault);
            let questions: &[usize] = if settings == 0 { &[3, 5, 7, 9] } else { &[0, 3] };
            seeds.extend(questions.iter().map(|&place| seed(settings, &world, place)));
        }
    }
    seeds
}

/// Question about a world, with the chain of keys from the root on.
fn seed(settings: u8, world: &signed_zones::World, place: usize) -> Vec<u8> {
    use signed_zones::rtype::{DNSKEY, DS};
    let mut asked = vec![world.question(place)];
    // Below the parent there may be a name between it and the zone.
    asked.push((signed_zones::name::parent(world.apex()).to_vec(), DS));
    for zone in world.zones() {
        asked.extend([(zone.apex.clone(), DS), (zone.apex.clone(), DNSKEY)]);
    }
    let mut octets = vec![settings];
    octets.extend(world.now().to_be_bytes());
    octets.extend(
        asked
            .iter()
            .flat_map(|(name, rtype)| kit::message::framed(&world.reply(name, *rtype).octets(name, *rtype))),
    );
    octets
}

/// Knowledge of a zone.
#[derive(Clone)]
enum Entered {
    NoCut,
    Secure(Vec<u8>),
    Insecure(Insecure),
    Bogus(Bogus),
    Unproven(Bogus),
}

#[derive(Clone, Default)]
struct Table(BTreeMap<Vec<u8>, Entered>);

impl Zones for Table {
    fn get(&self, apex: &[u8]) -> Known<'_> {
        match self.0.get(apex) {
            None => Known::Unknown,
            Some(Entered::NoCut) => Known::NoCut,
            Some(Entered::Secure(keys)) => Known::Secure(ZoneKeys::from_octets(keys)),
            Some(Entered::Insecure(reason)) => Known::Insecure(*reason),
            Some(Entered::Bogus(reason)) => Known::Bogus(*reason),
            Some(Entered::Unproven(reason)) => Known::Unproven(*reason),
        }
    }
}

/// Digests that are counted, SHA-1 in blocks (FIPS 180-4 section 5.1.1).
#[derive(Default)]
struct Counted {
    blocks: Cell<u32>,
}

impl Digests for Counted {
    fn sha1(&self, octets: &[u8]) -> [u8; 20] {
        self.blocks.set(self.blocks.get() + (octets.len() as u32 + 9).div_ceil(64));
        digest(&SHA1_FOR_LEGACY_USE_ONLY, octets).as_ref().try_into().expect("20 octets")
    }

    fn sha256(&self, octets: &[u8]) -> [u8; 32] {
        digest(&SHA256, octets).as_ref().try_into().expect("32 octets")
    }

    fn sha384(&self, octets: &[u8]) -> [u8; 48] {
        digest(&SHA384, octets).as_ref().try_into().expect("48 octets")
    }
}

/// Resolution whose replies are those of the input.
struct Resolution<'i> {
    settings: u8,
    now: Timestamp,
    replies: Vec<Message<'i>>,
    zones: Table,
    budget: Budget,
    verifications: u16,
    questions: u16,
    blocks: u32,
}

/// Validates the first message, and gives its verdict as text.
fn play(input: &[u8]) -> String {
    let mut reader = InputReader::new(input);
    let (settings, now) = (reader.octet(), Timestamp(reader.next_u32()));
    let mut replies = Vec::new();
    let octets = usize::from(reader.next_u16());
    let first = reader.take(octets);
    while !reader.is_empty() {
        let octets = usize::from(reader.next_u16());
        replies.extend(Message::parse(reader.take(octets)));
    }
    let (zones, budget) = (Table::default(), Budget::new());
    let mut resolution =
        Resolution { settings, now, replies, zones, budget, verifications: 0, questions: 0, blocks: 0 };
    let verdict = resolution.judge(first);
    assert!(resolution.verifications <= VERIFICATIONS && resolution.questions <= QUESTIONS);
    assert!(resolution.blocks <= BLOCKS);
    format!("{verdict:?} {} {} {}", resolution.verifications, resolution.questions, resolution.blocks)
}

impl<'i> Resolution<'i> {
    /// Reply to a question.
    fn reply(&self, name: &[u8], rtype: Type) -> Option<Message<'i>> {
        let is_it = |reply: &&Message<'i>| reply.qtype() == rtype && reply.question_name().eq_wire(name);
        self.replies.iter().find(is_it).copied()
    }

    /// Verdict about a message, with the questions that it leads to.
    fn judge(&mut self, octets: &[u8]) -> Option<Status> {
        let message = Message::parse(octets).ok()?;
        let groups = Groups::of(&message).ok()?;
        compare(octets, &groups);
        self.validate(&groups).map(|(status, _)| status)
    }

    /// Validates a message. `None`: it leads to a question about itself.
    fn validate<'m>(&mut self, groups: &Groups<'m>) -> Option<(Status, Delegation<'m>)> {
        let (mut validation, mut own) = (Validation::default(), MessageBudget::new());
        let (mut verifications, mut blocks) = (0, 0);
        loop {
            let (zones, digests) = (self.zones.clone(), Counted::default());
            let positive = [Anchor { zone: b"\0", data: AnchorData::Ds(b"") }];
            let anchors = Anchors { positive: &positive, negative: &[] };
            let (message, resolution) = (&mut own, &mut self.budget);
            let mut context = Context {
                digests: &digests,
                zones: &zones,
                anchors,
                iterations: 50,
                now: self.now,
                message,
                resolution,
            };
            let asked = loop {
                match validation.step(groups, &mut context) {
                    Next::Verify(job) => {
                        verifications += 1;
                        let is_valid = is_valid(&job, self.settings);
                        validation.verified(groups, is_valid, self.now);
                    }
                    Next::Ask(question) => break Err(question),
                    Next::Done(verdict) => break Ok(verdict),
                }
            };
            blocks += digests.blocks.get();
            match asked {
                Err(question) => self.learn(question),
                Ok(verdict) => {
                    assert!(verifications <= MESSAGE_VERIFICATIONS && blocks <= MESSAGE_BLOCKS);
                    self.verifications += verifications;
                    self.blocks += blocks;
                    if matches!(verdict.status, Status::Bogus(_)) {
                        assert_eq!((verdict.outcome, verdict.ttl), (Outcome::Failure, 0));
                    }
                    return Some((verdict.status, validation.delegation(groups, &verdict)));
                }
            }
        }
    }

    /// Answers a question by the messages of the input.
    fn learn(&mut self, question: Question) {
        let (Question::Anchor(name) | Question::Delegation(name)) = question;
        let zone = name.as_wire().to_vec();
        assert!(matches!(self.zones.get(&zone), Known::Unknown), "a question about what is known: {name:?}");
        // A question about itself, which the reply may lead to, is answered so.
        self.zones.0.insert(zone.clone(), Entered::Unproven(Bogus::Denial));
        if !self.budget.ask() {
            return;
        }
        self.questions += 1;
        let entered = match question {
            Question::Anchor(_) => self.keys(&zone, None),
            Question::Delegation(_) => self.delegation(&zone),
        };
        self.zones.0.insert(zone, entered.unwrap_or(Entered::Unproven(Bogus::Unreachable)));
    }

    fn delegation(&mut self, zone: &[u8]) -> Option<Entered> {
        let message = self.reply(zone, Type::DS)?;
        let groups = Groups::of(&message).ok()?;
        compare(message.bytes(), &groups);
        Some(match self.validate(&groups)?.1 {
            Delegation::Signed(set) => self.keys(zone, Some(&set))?,
            Delegation::Insecure(reason) => Entered::Insecure(reason),
            Delegation::NoCut | Delegation::NoName => Entered::NoCut,
            Delegation::Bogus(reason) => Entered::Unproven(reason),
        })
    }

    /// Keys of a zone by its DS records; those of the root all count.
    fn keys(&mut self, zone: &[u8], ds: Option<&Rrset<'_>>) -> Option<Entered> {
        let message = self.reply(zone, Type::DNSKEY)?;
        let groups = Groups::of(&message).ok()?;
        let set = groups.find(Section::Answer, zone, Type::DNSKEY)?;
        let digests = Counted::default();
        let mut room = vec![0; 0x4000];
        let anchors =
            Anchors { positive: &[Anchor { zone: b"\0", data: AnchorData::Ds(b"") }], negative: &[] };
        assert!(!matches!(
            entry_by_anchors(&anchors, &set, Algorithms::ALL, &digests, &mut room),
            Entry::Keys(_)
        ));
        let records: Vec<_> = ds.into_iter().flat_map(Rrset::records).collect();
        let entry =
            entry_by_ds(records.iter().map(|it| it.rdata()), &set, Algorithms::ALL, &digests, &mut room);
        let is_free = ds.is_none() || self.settings & ALL_KEYS != 0;
        let entered = match entry {
            Entry::Keys(keys) => Entered::Secure(keys.octets().to_vec()),
            _ if is_free => Entered::Secure(vec![]),
            Entry::Insecure(reason) => return Some(Entered::Insecure(reason)),
            Entry::Bogus(reason) => return Some(Entered::Bogus(reason)),
        };
        let all = ZoneKeys::of(&set, Algorithms::ALL, |_| true, &mut room);
        let Ok(all) = all.map(|keys| Entered::Secure(keys.octets().to_vec())) else {
            return Some(Entered::Bogus(Bogus::KeyMissing));
        };
        self.zones.0.insert(zone.to_vec(), if is_free { all.clone() } else { entered });
        match self.judge(message.bytes())? {
            Status::Secure => Some(all),
            Status::Bogus(reason) => Some(Entered::Bogus(reason)),
            _ => None,
        }
    }
}

fn is_valid(job: &SignatureJob<'_>, settings: u8) -> bool {
    let mut data = vec![0; 0xffff];
    let is_written = job.write_signed_data(&mut data).is_ok();
    assert_eq!(::dnssec::keys::signature_length(job.algorithm, job.key), Some(job.signature.len()));
    is_written && (settings & SOME_WRONG == 0 || job.signature.last().is_some_and(|octet| octet % 2 == 0))
}

/// RDATA in canonical form by section, owner as text in lower case, and type; `None` where `domain` does not read a record.
type Canonical = BTreeMap<(usize, String, u16), Option<BTreeSet<Vec<u8>>>>;

/// RRsets of a message as `domain` reads them; `None` if it refuses the message.
fn by_domain(octets: &[u8]) -> Option<Canonical> {
    let parsed = DomainMessage::from_octets(octets).ok()?;
    let mut canonical = Canonical::new();
    for (place, section) in [parsed.answer(), parsed.authority()].into_iter().enumerate() {
        for record in section.ok()? {
            let record = record.ok()?;
            let key = (place, record.owner().to_string().to_ascii_lowercase(), record.rtype().to_int());
            let set = canonical.entry(key).or_insert_with(|| Some(BTreeSet::new()));
            let Ok(record) = record.to_any_record::<AllRecordData<&[u8], ParsedName<&[u8]>>>() else {
                *set = None;
                continue;
            };
            let mut rdata = Vec::new();
            record.data().compose_canonical_rdata(&mut rdata).expect("a Vec has room");
            if let AllRecordData::Dnskey(key) = record.data()
                // Of algorithm 1 the libraries read keys of fewer than three octets in different ways (RFC 4034 appendix B.1).
                && let Ok(ours) = Dnskey::parse(&rdata)
                && ours.algorithm != Algorithm::RSAMD5
            {
                assert_eq!(ours.key_tag(), key.key_tag());
            }
            if let Some(set) = set {
                set.insert(rdata);
            }
        }
    }
    Some(canonical)
}

/// Compares canonical form and key tags with those of `domain`, where it reads the message.
fn compare(octets: &[u8], groups: &Groups<'_>) {
    let Some(canonical) = by_domain(octets) else { return };
    for set in groups.iter().filter(|set| COMPARED.contains(&set.rtype().0)) {
        let Some(signature) = set.signatures().next() else { continue };
        let mut out = vec![0; 0xffff];
        let Ok(length) = signed_data(&set, &signature.rrsig, &mut out) else { continue };
        let mut owner = [0; 255];
        let written = set.owner().write(&mut owner);
        let owner = domain::base::Name::from_octets(&owner[..written]).expect("a name").to_string();
        let place = usize::from(set.section() == Section::Authority);
        let Some(Some(expected)) = canonical.get(&(place, owner.to_ascii_lowercase(), set.rtype().0)) else {
            continue;
        };
        let data = &out[18 + signature.rrsig.signer.len()..length];
        assert_eq!(rdata_of(data), expected.iter().cloned().collect::<Vec<_>>(), "{octets:02x?}");
    }
}

/// RDATA of the records in signed data, in order.
fn rdata_of(mut data: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while !data.is_empty() {
        let owner = wire::name_len(data).expect("an owner");
        let at = owner + 10;
        let length = usize::from(u16::from_be_bytes([data[at - 2], data[at - 1]]));
        found.push(data[at..at + length].to_vec());
        data = &data[at + length..];
    }
    found
}
