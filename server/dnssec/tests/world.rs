//! A validator for tests: zones, anchors and the time of a world, and the messages that it judges.

use crate::arithmetic::{AwsLc, verifies};
use crate::examples::RFC4035;
use crate::text::{Line, lines, message_of};
use sixfold_dnssec::anchors::ROOT;
use sixfold_dnssec::{
    Algorithms, Anchor, AnchorData, Anchors, Bogus, Budget, Context, Entry, Groups, Insecure, Known,
    MessageBudget, NegativeAnchor, Next, Outcome, Question, SignatureJob, Status, Timestamp, Validation,
    Verdict, ZoneKeys, Zones, entry_by_anchors,
};
use std::collections::BTreeMap;
use wire::Message;

pub const NOW: u32 = 1_700_000_000;
pub const NXDOMAIN: u8 = 3;

/// Knowledge of a zone.
#[derive(Clone, Debug)]
pub enum Entered {
    NoCut,
    Secure(Vec<u8>),
    Insecure(Insecure),
    Bogus(Bogus),
    Unproven(Bogus),
}

#[derive(Clone, Debug, Default)]
pub struct Table(pub BTreeMap<Vec<u8>, Entered>);

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

/// A validator: zones, anchors, time, and what counts as a valid signature.
pub struct World {
    pub zones: Table,
    pub anchors: Vec<Anchor<'static>>,
    pub negative: Vec<NegativeAnchor<'static>>,
    pub now: u32,
    pub is_real: bool,
}

/// The key of every zone whose signatures are not real: tag 7, P-256.
pub fn key() -> Vec<u8> {
    [&[0, 7, 13, 0, 64][..], &[1; 64]].concat()
}

impl World {
    /// The root and these zones are secure; signatures of octets 1 are valid.
    pub fn new(zones: &[&str]) -> World {
        let secure = |zone: &&str| (kit::message::name(zone), Entered::Secure(key()));
        let zones = Table(zones.iter().chain([&""]).map(secure).collect());
        World { zones, anchors: ROOT.to_vec(), negative: vec![], now: NOW, is_real: false }
    }

    pub fn enter(mut self, zone: &str, entered: Entered) -> World {
        self.zones.0.insert(kit::message::name(zone), entered);
        self
    }

    fn is_valid(&self, job: &SignatureJob<'_>) -> bool {
        if !self.is_real {
            return job.signature[0] == 1;
        }
        let mut data = vec![0; 0xffff];
        let length = job.write_signed_data(&mut data).unwrap();
        verifies(job.algorithm, job.key, job.signature, &data[..length])
    }

    /// Validates a message to its end or its first question, and gives that with the number of verifications.
    pub fn run(&self, message: &[u8]) -> (Result<Verdict, Question>, usize) {
        let (budget, resolution) = (&mut MessageBudget::new(), &mut Budget::new());
        self.run_with(message, budget, resolution, |_, _, _| ())
    }

    pub fn run_with(
        &self,
        message: &[u8],
        budget: &mut MessageBudget,
        resolution: &mut Budget,
        after: impl FnOnce(&Validation, &Groups<'_>, &Verdict),
    ) -> (Result<Verdict, Question>, usize) {
        let groups = Groups::of(&Message::parse(message).unwrap()).unwrap();
        let anchors = Anchors { positive: &self.anchors, negative: &self.negative };
        let mut context = Context {
            digests: &AwsLc,
            zones: &self.zones,
            anchors,
            iterations: 50,
            now: Timestamp(self.now),
            message: budget,
            resolution,
        };
        let mut validation = Validation::default();
        let mut jobs = 0;
        loop {
            match validation.step(&groups, &mut context) {
                Next::Verify(job) => {
                    jobs += 1;
                    let is_valid = self.is_valid(&job);
                    validation.verified(&groups, is_valid, Timestamp(self.now));
                }
                Next::Ask(question) => return (Err(question), jobs),
                Next::Done(verdict) => {
                    after(&validation, &groups, &verdict);
                    return (Ok(verdict), jobs);
                }
            }
        }
    }

    /// The verdict about a message with these records.
    pub fn verdict(
        &self,
        question: (&str, u16),
        rcode: u8,
        answer: &[Line],
        authority: &[Line],
    ) -> (Status, Outcome) {
        let octets = |lines: &[Line]| lines.iter().map(Line::octets).collect::<Vec<_>>();
        let message = message_of(question, rcode, [&octets(answer), &octets(authority)]);
        let verdict = self.run(&message).0.unwrap_or_else(|question| panic!("{question:?} is asked"));
        (verdict.status, verdict.outcome)
    }

    /// The question that a message leads to.
    pub fn asks(
        &self,
        question: (&str, u16),
        rcode: u8,
        answer: &[Line],
        authority: &[Line],
    ) -> Option<Question> {
        let octets = |lines: &[Line]| lines.iter().map(Line::octets).collect::<Vec<_>>();
        let message = message_of(question, rcode, [&octets(answer), &octets(authority)]);
        self.run(&message).0.err()
    }
}

/// Records in master file format, each RRset with a signature of a zone that counts as valid. `labels` replaces the number of labels.
pub fn signed_by(zone: &str, text: &str, labels: Option<u8>) -> Vec<Line> {
    let mut found: Vec<Line> = Vec::new();
    for record in lines(text) {
        let is_new = !found.iter().any(|other| (&other.owner, other.rtype) == (&record.owner, record.rtype));
        found.push(record.clone());
        if is_new {
            let all = sixfold_dnssec::name::labels(&record.owner) as u8
                - u8::from(record.owner.starts_with(b"\x01*"));
            let mut rdata = record.rtype.to_be_bytes().to_vec();
            rdata.extend([13, labels.unwrap_or(all)]);
            rdata.extend(3600u32.to_be_bytes());
            rdata.extend((NOW + 1000).to_be_bytes());
            rdata.extend((NOW - 1000).to_be_bytes());
            rdata.extend(7u16.to_be_bytes());
            rdata.extend(kit::message::name(zone));
            rdata.extend([1; 64]);
            found.push(Line { rtype: 46, rdata, ..record });
        }
    }
    found
}

pub fn signed(zone: &str, text: &str) -> Vec<Line> {
    signed_by(zone, text, None)
}

pub const SECURE: Status = Status::Secure;

pub fn refused(reason: Bogus) -> (Status, Outcome) {
    (Status::Bogus(reason), Outcome::Failure)
}

/// RRsets of a zone file with their signatures: those of an owner and a type.
pub fn of(zone: &str, wanted: &[(&str, u16)]) -> Vec<Line> {
    let zone = lines(zone);
    let mut found = Vec::new();
    for &(owner, rtype) in wanted {
        let is_wanted = |line: &&Line| {
            line.owner == kit::message::name(owner)
                && (line.rtype == rtype || line.rtype == 46 && line.rdata[..2] == rtype.to_be_bytes())
        };
        found.extend(zone.iter().filter(is_wanted).cloned());
    }
    found
}

/// Under another owner.
pub fn at(owner: &str, mut lines: Vec<Line>) -> Vec<Line> {
    lines.iter_mut().for_each(|line| line.owner = kit::message::name(owner));
    lines
}

/// The world of RFC 4035: the key of `example` is verified from its anchor, with real arithmetic.
pub fn rfc4035() -> World {
    let dnskeys = of(RFC4035, &[("example", 48)]);
    let octets: Vec<_> = dnskeys.iter().map(Line::octets).collect();
    let message = message_of(("example", 48), 0, [&octets, &[]]);
    let groups = Groups::of(&Message::parse(&message).unwrap()).unwrap();
    let set = groups.get(0).unwrap();
    let ksk: &'static [u8] =
        Box::leak(dnskeys.iter().find(|line| line.rdata[1] == 1).unwrap().rdata.clone().into_boxed_slice());
    let anchors = vec![Anchor { zone: b"\x07example\0", data: AnchorData::Dnskey(ksk) }];
    let list = Anchors { positive: &anchors, negative: &[] };
    let mut out = [0; 1000];
    let Entry::Keys(entry) = entry_by_anchors(&list, &set, Algorithms::ALL, &AwsLc, &mut out) else {
        panic!("the anchor names no key")
    };
    assert_eq!(entry.iter().map(|key| key.key_tag).collect::<Vec<_>>(), [9465]);
    let mut world =
        World { zones: Table::default(), anchors, negative: vec![], now: 1_082_419_200, is_real: true };
    world = world.enter("example", Entered::Secure(entry.octets().to_vec()));
    assert_eq!(world.verdict(("example.", 48), 0, &dnskeys, &[]), (SECURE, Outcome::Data));
    let keys = ZoneKeys::of(&set, Algorithms::ALL, |_| true, &mut out).unwrap();
    world.enter("example", Entered::Secure(keys.octets().to_vec()))
}

pub const SOA: (&str, u16) = ("example", 6);

/// NSEC record of a zone in which nothing is between the apex and `z`.
pub const NO_B: &str = "example. NSEC z.example. NS SOA RRSIG NSEC DNSKEY";

/// A message that is as expected, and bogus, or in need of a question, if any record of it but an SOA record is left out.
pub fn needs_all(
    world: &World,
    question: (&str, u16),
    rcode: u8,
    answer: &[Line],
    authority: &[Line],
    expected: (Status, Outcome),
) {
    assert_eq!(world.verdict(question, rcode, answer, authority), expected, "{question:?}");
    // The first half are answers.
    for missing in 0..answer.len() + authority.len() {
        let (mut answer, mut authority) = (answer.to_vec(), authority.to_vec());
        let removed = if missing < answer.len() {
            answer.remove(missing)
        } else {
            authority.remove(missing - answer.len())
        };
        if removed.rtype == 6 {
            // Without its signature the SOA is tried as well; without the SOA that signature covers nothing, and the proof stands.
            continue;
        }
        let message = message_of(question, rcode, [&octets(&answer), &octets(&authority)]);
        match world.run(&message).0 {
            Ok(verdict) => assert!(
                matches!(verdict.status, Status::Bogus(_)),
                "{question:?} without {missing}: {verdict:?}"
            ),
            // The proof is missing, so the name might be below an unsigned delegation.
            Err(asked) => {
                assert!(matches!(asked, Question::Delegation(_)), "{question:?} without {missing}: {asked:?}")
            }
        }
    }
}

pub fn octets(lines: &[Line]) -> Vec<Vec<u8>> {
    lines.iter().map(Line::octets).collect()
}
