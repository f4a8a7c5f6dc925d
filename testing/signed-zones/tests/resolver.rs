//! Validating resolver of the tests: the functions of `dnssec`, and replies of a world instead of upstreams.

use crate::arithmetic::{AwsLc, verifies};
use dnssec::budget::{BLOCKS, MESSAGE_VERIFICATIONS, QUESTIONS, VERIFICATIONS};
use dnssec::{
    Algorithms, Anchor, AnchorData, Anchors, Bogus, Budget, Context, Delegation, Digests, Entry, Groups,
    Insecure, Known, MessageBudget, NegativeAnchor, Next, Question, SignatureJob, Status, Timestamp,
    Validation, Verdict, ZoneKeys, Zones, entry_by_anchors, entry_by_ds,
};
use signed_zones::attacks::Attacked;
use signed_zones::{Owed, Record, Reply, Verdict as Owes, World, rtype};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use wire::Message;

/// Knowledge of a zone.
#[derive(Clone, Debug)]
enum Entered {
    NoCut,
    Secure(Vec<u8>),
    Insecure(Insecure),
    Bogus(Bogus),
    Unproven(Bogus),
}

#[derive(Clone, Debug, Default)]
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
        AwsLc.sha1(octets)
    }

    fn sha256(&self, octets: &[u8]) -> [u8; 32] {
        AwsLc.sha256(octets)
    }

    fn sha384(&self, octets: &[u8]) -> [u8; 48] {
        AwsLc.sha384(octets)
    }
}

/// Work that a question has caused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub verifications: u16,
    pub questions: u16,
    pub blocks: u32,
}

/// Outcomes of verifications, by key, signature and data: zones of one seed share most of theirs.
#[derive(Default)]
pub struct Verified(RefCell<HashMap<Vec<u8>, bool>>);

impl Verified {
    fn is_valid(&self, job: &SignatureJob<'_>) -> bool {
        let mut data = vec![0; 0x1_0000];
        let length = job.write_signed_data(&mut data).expect("64 KiB are enough for these zones");
        data.truncate(length);
        let key = [&[job.algorithm.0], job.key, job.signature, &data].concat();
        let known = self.0.borrow().get(&key).copied();
        known.unwrap_or_else(|| {
            let is_valid = verifies(job.algorithm, job.key, job.signature, &data);
            self.0.borrow_mut().insert(key, is_valid);
            is_valid
        })
    }
}

/// Order of the records in each section of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    AsMade,
    Reversed,
    /// The first third comes last.
    Turned,
    /// Signatures and proofs come first.
    ByType,
}

/// All orders.
pub const ORDERS: [Order; 4] = [Order::AsMade, Order::Reversed, Order::Turned, Order::ByType];

impl Order {
    fn sort(self, records: &mut [Record]) {
        match self {
            Order::AsMade => {}
            Order::Reversed => records.reverse(),
            Order::Turned => records.rotate_left(records.len() / 3),
            Order::ByType => records.sort_by_key(|record| std::cmp::Reverse(record.rtype)),
        }
    }
}

/// Zones with their replies.
pub trait Replies {
    /// Reply of a resolver that does not validate.
    fn reply(&self, name: &[u8], rtype: u16) -> Reply;
    /// Time of the zones, in seconds since 1970.
    fn now(&self) -> u32;
    /// Their trust anchors.
    fn anchors(&self) -> &[signed_zones::Anchor];
}

impl Replies for World {
    fn reply(&self, name: &[u8], rtype: u16) -> Reply {
        World::reply(self, name, rtype)
    }

    fn now(&self) -> u32 {
        World::now(self)
    }

    fn anchors(&self) -> &[signed_zones::Anchor] {
        World::anchors(self)
    }
}

impl Replies for Attacked {
    fn reply(&self, name: &[u8], rtype: u16) -> Reply {
        Attacked::reply(self, name, rtype)
    }

    fn now(&self) -> u32 {
        Attacked::now(self)
    }

    fn anchors(&self) -> &[signed_zones::Anchor] {
        Attacked::anchors(self)
    }
}

/// Resolver, with the zones that it has learned about.
pub struct Resolver<'w> {
    world: &'w dyn Replies,
    order: Order,
    verified: &'w Verified,
    zones: Table,
    work: Work,
}

impl<'w> Resolver<'w> {
    /// Resolver that gets records in an order.
    pub fn new(world: &'w dyn Replies, verified: &'w Verified, order: Order) -> Resolver<'w> {
        Resolver { world, order, verified, zones: Table::default(), work: Work::default() }
    }

    fn reply(&self, name: &[u8], rtype: u16) -> Reply {
        let mut reply = self.world.reply(name, rtype);
        self.order.sort(&mut reply.answer);
        self.order.sort(&mut reply.authority);
        reply
    }

    /// Response to a client that sets DO, the reason, and the work.
    pub fn resolve(&mut self, name: &[u8], rtype: u16) -> (Owed, Status, Work) {
        self.work = Work::default();
        let reply = self.reply(name, rtype);
        let status = self.judge(&reply.octets(name, rtype), &mut Budget::new());
        let verdict = match status {
            Status::Secure => Owes::Secure,
            Status::Insecure(Insecure::NoAnchor) => Owes::NoAnchor,
            Status::Insecure(_) => Owes::Insecure,
            Status::Bogus(Bogus::Unreachable) | Status::Failure => Owes::Unreachable,
            Status::Bogus(_) => Owes::Bogus,
        };
        let Work { verifications, questions, blocks } = self.work;
        assert!(
            verifications <= VERIFICATIONS && questions <= QUESTIONS && blocks <= BLOCKS,
            "{:?}",
            self.work
        );
        (Owed::of(verdict, reply.rcode), status, self.work)
    }

    /// Verdict about a message. Questions that it leads to are asked.
    fn judge(&mut self, message: &[u8], budget: &mut Budget) -> Status {
        let groups = match Message::parse(message).map(|message| Groups::of(&message)) {
            Ok(Ok(groups)) => groups,
            _ => return Status::Bogus(Bogus::Malformed),
        };
        let mut validation = Validation::default();
        let mut own = MessageBudget::new();
        loop {
            match self.steps(&groups, &mut validation, (&mut own, budget)) {
                Err(question) => self.learn(*question, budget),
                Ok((verdict, _)) => return verdict.status,
            }
        }
    }

    /// Steps of a validation up to a verdict, with what follows for a name whose DS records were asked for, or to a question.
    fn steps<'m>(
        &mut self,
        groups: &Groups<'m>,
        validation: &mut Validation,
        (message, resolution): (&mut MessageBudget, &mut Budget),
    ) -> Result<(Verdict, Delegation<'m>), Box<Question>> {
        let (positive, negative) = anchors(self.world);
        let anchors = Anchors { positive: &positive, negative: &negative };
        let now = Timestamp(self.world.now());
        let (zones, digests) = (self.zones.clone(), Counted::default());
        let iterations = 50;
        let mut context =
            Context { digests: &digests, zones: &zones, anchors, iterations, now, message, resolution };
        let mut verifications = 0;
        let end = loop {
            let step = validation.step(groups, &mut context);
            if let Next::Verify(job) = &step {
                verifications += 1;
                let is_valid = self.verified.is_valid(job);
                validation.verified(groups, is_valid, now);
            }
            match step {
                Next::Verify(_) => {}
                Next::Ask(question) => break Err(Box::new(question)),
                Next::Done(verdict) => {
                    let delegation = match groups.message().qtype().0 {
                        rtype::DS => validation.delegation(groups, &verdict),
                        _ => Delegation::NoCut,
                    };
                    break Ok((verdict, delegation));
                }
            }
        };
        assert!(verifications <= MESSAGE_VERIFICATIONS);
        self.work.verifications += verifications;
        self.work.blocks += digests.blocks.get();
        end
    }

    /// Asks a question, and enters what follows from the reply.
    fn learn(&mut self, question: Question, budget: &mut Budget) {
        let (Question::Anchor(name) | Question::Delegation(name)) = question;
        let zone = name.as_wire().to_vec();
        if !budget.ask() {
            self.zones.0.insert(zone, Entered::Unproven(Bogus::TooMuchWork));
            return;
        }
        self.work.questions += 1;
        let entered = match question {
            Question::Anchor(_) => self.keys_by(&zone, None, budget),
            Question::Delegation(_) => self.delegation(&zone, budget),
        };
        self.zones.0.insert(zone, entered);
    }

    fn delegation(&mut self, zone: &[u8], budget: &mut Budget) -> Entered {
        let message = self.reply(zone, rtype::DS).octets(zone, rtype::DS);
        let groups = match Message::parse(&message).map(|message| Groups::of(&message)) {
            Ok(Ok(groups)) => groups,
            _ => return Entered::Unproven(Bogus::Malformed),
        };
        let (mut validation, mut own) = (Validation::default(), MessageBudget::new());
        let delegation = loop {
            match self.steps(&groups, &mut validation, (&mut own, budget)) {
                // The reply cannot be judged without itself.
                Err(question) if matches!(*question, Question::Delegation(name) if name.as_wire() == zone) => {
                    return Entered::Unproven(Bogus::Denial);
                }
                Err(question) => self.learn(*question, budget),
                Ok((_, delegation)) => break delegation,
            }
        };
        match delegation {
            Delegation::Signed(set) => {
                let ds: Vec<Vec<u8>> = set.records().map(|record| record.rdata().to_vec()).collect();
                self.keys_by(zone, Some(&ds), budget)
            }
            Delegation::Insecure(reason) => Entered::Insecure(reason),
            Delegation::NoCut | Delegation::NoName => Entered::NoCut,
            Delegation::Bogus(reason) => Entered::Unproven(reason),
        }
    }

    /// Keys of a zone by its DS records, or by its anchors.
    fn keys_by(&mut self, zone: &[u8], ds: Option<&[Vec<u8>]>, budget: &mut Budget) -> Entered {
        let message = self.reply(zone, rtype::DNSKEY).octets(zone, rtype::DNSKEY);
        let groups = match Message::parse(&message).map(|message| Groups::of(&message)) {
            Ok(Ok(groups)) => groups,
            _ => return Entered::Bogus(Bogus::Malformed),
        };
        let Some(set) = groups.find(wire::Section::Answer, zone, wire::Type(rtype::DNSKEY)) else {
            return Entered::Bogus(Bogus::Unreachable);
        };
        let (positive, negative) = anchors(self.world);
        let anchors = Anchors { positive: &positive, negative: &negative };
        let mut octets = vec![0; 16_384];
        let entry = match ds {
            Some(ds) => {
                entry_by_ds(ds.iter().map(Vec::as_slice), &set, Algorithms::CURRENT, &AwsLc, &mut octets)
            }
            None => entry_by_anchors(&anchors, &set, Algorithms::CURRENT, &AwsLc, &mut octets),
        };
        let entry = match entry {
            Entry::Keys(keys) => keys.octets().to_vec(),
            Entry::Insecure(reason) => return Entered::Insecure(reason),
            Entry::Bogus(reason) => return Entered::Bogus(reason),
        };
        // The keys that are vouched for are all that may sign the keys.
        self.zones.0.insert(zone.to_vec(), Entered::Secure(entry));
        let status = self.judge(&message, budget);
        self.zones.0.remove(zone);
        match status {
            Status::Secure => {}
            Status::Bogus(reason) => return Entered::Bogus(reason),
            other => panic!("keys that are {other:?}"),
        }
        match ZoneKeys::of(&set, Algorithms::CURRENT, |_| true, &mut octets) {
            Ok(keys) => Entered::Secure(keys.octets().to_vec()),
            Err(_) => Entered::Bogus(Bogus::TooMuchWork),
        }
    }
}

/// Anchors of a world, in the form of the validator.
fn anchors(world: &dyn Replies) -> (Vec<Anchor<'_>>, Vec<NegativeAnchor<'_>>) {
    let (mut positive, mut negative) = (vec![], vec![]);
    for anchor in world.anchors() {
        match anchor {
            signed_zones::Anchor::Ds(zone, rdata) => {
                positive.push(Anchor { zone, data: AnchorData::Ds(rdata) })
            }
            signed_zones::Anchor::Dnskey(zone, rdata) => {
                positive.push(Anchor { zone, data: AnchorData::Dnskey(rdata) })
            }
            signed_zones::Anchor::Negative(zone, until) => {
                negative.push(NegativeAnchor { zone, until: *until })
            }
        }
    }
    (positive, negative)
}
