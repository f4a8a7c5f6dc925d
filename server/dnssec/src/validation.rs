//! Validation of a message, step by step: which RRsets are verified, which zones are asked about, and which proofs the answer needs.
//!
//! RFC 4035 section 5 and RFC 6840 say what makes an RRset and a denial secure. A message is secure if every RRset of its answer is, if
//! the answer follows from the question link by link, and if what it denies is proven (sections 5.3.4 and 5.4). In the authority section
//! the SOA and the proofs are verified; whoever gives the message on as secure leaves other RRsets of that section out.

use crate::anchors::Anchors;
use crate::budget::{Budget, MessageBudget};
use crate::chain::{Closest, Plan, Question, Zones, closest, plan, responsible, unknown_cut};
use crate::denial::{Cut, Denials, Strength};
use crate::digest::Digests;
use crate::groups::{Groups, Rrset};
use crate::limits::{PROOFS, RRSETS};
use crate::name::{LowerName, is_below, labels};
use crate::nsec3::Hashing;
use crate::reason::{Bogus, Insecure};
use crate::signature::{Proven, SignatureJob, Step, Timestamp, Verification};
use wire::{MAX_NAME, Rcode, Record, Section, Type};

/// Surroundings of a validation besides the message.
pub struct Context<'c, D, Z> {
    /// Digests.
    pub digests: &'c D,
    /// Zones that are known.
    pub zones: &'c Z,
    /// Trust anchors.
    pub anchors: Anchors<'c>,
    /// Iterations of NSEC3 above which proofs count as insecure.
    pub iterations: u16,
    /// Time of this step.
    pub now: Timestamp,
    /// Left of what the message may cost.
    pub message: &'c mut MessageBudget,
    /// Left of what the resolution may cost.
    pub resolution: &'c mut Budget,
}

/// State of data (RFC 4035 section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Signed by a chain of keys from a trust anchor.
    Secure,
    /// Proven to need no signatures.
    Insecure(Insecure),
    /// Neither.
    Bogus(Bogus),
    /// Reply with a response code that says nothing about data.
    Failure,
}

/// Answer that a message gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Records of the type that was asked for.
    Data,
    /// The name, or the one at the end of the aliases, has none of this type.
    NoData,
    /// The name, or the one at the end of the aliases, does not exist. The response code may hide it (RFC 9824).
    NoName,
    /// Aliases lead to a name about which the message says nothing.
    Alias,
    /// None.
    Failure,
}

/// Consequence of a reply to a question for DS records.
#[derive(Clone, Copy)]
pub enum Delegation<'a> {
    /// The zone has these DS records, which were verified.
    Signed(Rrset<'a>),
    /// The zone needs no signatures.
    Insecure(Insecure),
    /// The name is no apex of a zone.
    NoCut,
    /// The name does not exist, so nothing below it is the apex of a zone either (RFC 8020).
    NoName,
    /// The reply cannot be trusted, so the name becomes known as [`Unproven`](crate::chain::Known::Unproven).
    Bogus(Bogus),
}

/// Verdict about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// State of all that was verified together.
    pub status: Status,
    /// Answer.
    pub outcome: Outcome,
    /// Longest time that the message may be kept, in seconds, as far as its signatures limit it.
    pub ttl: u32,
}

/// State of an RRset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not looked at.
    Unchecked,
    /// Verified with the keys of a zone of this number of labels.
    Secure(Proven, u8),
    /// In a zone that needs no signatures.
    Insecure(Insecure),
    /// Not to be used.
    Bogus(Bogus),
    /// CNAME record below a DNAME record: it is compared with that, and needs no signature (RFC 6672 section 5.3.1).
    Synthesized,
}

/// Step of a [`Validation`].
#[derive(Clone, Copy)]
pub enum Next<'b> {
    /// A signature is to be verified; then [`Validation::verified`] is called.
    Verify(SignatureJob<'b>),
    /// A zone is to be found first; then the step is done again. If that fails, it becomes known that it did.
    Ask(Question),
    /// The end.
    Done(Verdict),
}

/// Validation of a message under way. It holds positions only, so it can wait beside the message.
#[derive(Clone, Debug)]
pub struct Validation {
    states: [State; RRSETS],
    /// Verification under way: the place of the RRset, and the labels of the zone.
    pending: Option<(u8, u8)>,
    verification: Verification,
    /// Consequence of a denial of DS records, which the verdict has proven: hashes are computed and paid for once.
    cut: Option<Cut>,
}

impl Default for Validation {
    fn default() -> Validation {
        let verification = Verification::default();
        Validation { states: [State::Unchecked; RRSETS], pending: None, verification, cut: None }
    }
}

impl Validation {
    /// States of the RRsets, by their places in the [`Groups`].
    pub fn states(&self) -> &[State; RRSETS] {
        &self.states
    }

    /// Next step of the validation of a message. The groups are those of the same message each time.
    pub fn step<'b, 'c: 'b, D: Digests, Z: Zones>(
        &mut self,
        groups: &Groups<'b>,
        context: &mut Context<'c, D, Z>,
    ) -> Next<'b> {
        if !matches!(groups.message().rcode(), Rcode::NOERROR | Rcode::NXDOMAIN | Rcode::YXDOMAIN) {
            return Next::Done(Verdict { status: Status::Failure, outcome: Outcome::Failure, ttl: u32::MAX });
        }
        // CVE-2026-11605: proofs without a limit. They are counted before anything is verified.
        if groups.iter().filter(is_proof).count() > PROOFS {
            return bogus(Bogus::TooMuchWork);
        }
        if let Some(next) = self.verify(groups, context) {
            return next;
        }
        let mut judge = Judge::of(&self.states, groups, context);
        let (judged, question, cut) = (judge.judge(), judge.question, judge.cut);
        self.cut = cut;
        match (judged, question) {
            (Ok(verdict), _) => Next::Done(verdict),
            (Err(_), Some(question)) => Next::Ask(question),
            (Err(reason), None) => bogus(reason),
        }
    }

    /// Outcome of the verification that the last step asked for.
    pub fn verified(&mut self, groups: &Groups<'_>, is_valid: bool, now: Timestamp) {
        let Some((place, apex)) = self.pending.take() else { return };
        if !is_valid {
            return self.verification.wrong();
        }
        let proven = groups.get(usize::from(place)).and_then(|set| self.verification.valid(&set, now));
        self.verification = Verification::default();
        if let Some(state) = self.states.get_mut(usize::from(place)) {
            *state = proven.map_or(State::Bogus(Bogus::Expired), |proven| State::Secure(proven, apex));
        }
    }

    /// Consequence for the name that was asked about, if the question was for DS records, after the verdict.
    pub fn delegation<'b>(&self, groups: &Groups<'b>, verdict: &Verdict) -> Delegation<'b> {
        let name = LowerName::of(&groups.message().question_name());
        match verdict.status {
            Status::Bogus(reason) => return Delegation::Bogus(reason),
            // An alias that is secure is no delegation, although it leads to a name that needs no signatures.
            Status::Insecure(_) if self.cut == Some(Cut::None) => return Delegation::NoCut,
            Status::Insecure(reason) => return Delegation::Insecure(reason),
            Status::Failure => return Delegation::Bogus(Bogus::Unreachable),
            Status::Secure => {}
        }
        if let Some(set) = groups.find(Section::Answer, name.as_wire(), Type::DS) {
            // DS records at a wildcard are those of no delegation (RFC 4592 section 4.6).
            let is_expanded =
                matches!(self.states[set.place()], State::Secure(proven, _) if proven.is_expanded);
            return if is_expanded { Delegation::NoCut } else { Delegation::Signed(set) };
        }
        // An alias is no delegation, wherever it leads.
        if groups.iter().any(|set| set.section() == Section::Answer) {
            return Delegation::NoCut;
        }
        if verdict.outcome == Outcome::NoName {
            return Delegation::NoName;
        }
        match self.cut {
            Some(Cut::Unsigned) => Delegation::Insecure(Insecure::Delegation),
            Some(Cut::Unknown(Strength::Iterations)) => Delegation::Insecure(Insecure::Iterations),
            Some(Cut::Unknown(_)) => Delegation::Insecure(Insecure::OptOut),
            Some(Cut::None) => Delegation::NoCut,
            Some(Cut::NoName) => Delegation::NoName,
            None => Delegation::Bogus(Bogus::Denial),
        }
    }

    /// Verifies all RRsets that matter. `None`: nothing is left to be done.
    fn verify<'b, 'c: 'b, D: Digests, Z: Zones>(
        &mut self,
        groups: &Groups<'b>,
        context: &mut Context<'c, D, Z>,
    ) -> Option<Next<'b>> {
        let zones: &'b Z = context.zones;
        for set in groups.iter() {
            let state = &mut self.states[set.place()];
            if *state != State::Unchecked
                || set.section() == Section::Authority && !is_proof(&set) && !is_soa(&set)
            {
                continue;
            }
            if is_synthesized(&set, groups) {
                *state = State::Synthesized;
                continue;
            }
            let zone = match plan(&set, zones, &context.anchors, context.now) {
                Plan::Verify(zone) => zone,
                Plan::Ask(question) => return Some(Next::Ask(question)),
                Plan::Insecure(reason) => {
                    *state = State::Insecure(reason);
                    self.verification = Verification::default();
                    continue;
                }
                Plan::Bogus(reason) => {
                    *state = State::Bogus(reason);
                    self.verification = Verification::default();
                    continue;
                }
            };
            let budgets = (&mut *context.message, &mut *context.resolution);
            match self.verification.step(&set, &zone, context.now, budgets) {
                Step::Verify(job) => {
                    self.pending = Some((set.place() as u8, labels(zone.apex.as_wire()) as u8));
                    return Some(Next::Verify(job));
                }
                Step::Bogus(reason) => {
                    *state = State::Bogus(reason);
                    self.verification = Verification::default();
                }
            }
        }
        None
    }
}

fn bogus<'b>(reason: Bogus) -> Next<'b> {
    Next::Done(Verdict { status: Status::Bogus(reason), outcome: Outcome::Failure, ttl: 0 })
}

fn is_proof(set: &Rrset<'_>) -> bool {
    set.section() == Section::Authority && matches!(set.rtype(), Type::NSEC | Type::NSEC3)
}

fn is_soa(set: &Rrset<'_>) -> bool {
    set.section() == Section::Authority && set.rtype() == Type::SOA
}

/// DNAME record of the answer that redirects a name: the closest one, as nothing below another would exist.
fn redirection<'a>(groups: &Groups<'a>, name: &LowerName) -> Option<Rrset<'a>> {
    let owner = |set: &Rrset<'_>| LowerName::of(&set.owner());
    let of_answer =
        groups.iter().filter(|set| (set.section(), set.rtype()) == (Section::Answer, Type::DNAME));
    of_answer
        .filter(|set| is_below(name.as_wire(), owner(set).as_wire()))
        .max_by_key(|set| owner(set).as_wire().len())
}

/// True for a CNAME RRset below a DNAME RRset, without a signature of its own.
fn is_synthesized(set: &Rrset<'_>, groups: &Groups<'_>) -> bool {
    (set.section(), set.rtype()) == (Section::Answer, Type::CNAME)
        && set.signatures().next().is_none()
        && redirection(groups, &LowerName::of(&set.owner())).is_some()
}

/// Alias at a name.
enum Link {
    /// There is none.
    None,
    /// It leads to another name.
    Followed,
    /// It leads to a name that would be too long (RFC 6672 section 2.2).
    TooLong,
}

/// Judgement of a message whose RRsets were verified.
struct Judge<'j, 'b, 'c, D, Z> {
    states: &'j [State; RRSETS],
    groups: &'j Groups<'b>,
    context: &'j mut Context<'c, D, Z>,
    /// RRsets of the answer that belong to it, as bits.
    used: u32,
    insecure: Option<Insecure>,
    /// Question whose answer may replace the proof that is missing.
    question: Option<Question>,
    /// Consequence of a denial of DS records.
    cut: Option<Cut>,
    /// An alias leads to a name that would be too long.
    is_too_long: bool,
}

impl<'j, 'b, 'c, D: Digests, Z: Zones> Judge<'j, 'b, 'c, D, Z> {
    fn of(states: &'j [State; RRSETS], groups: &'j Groups<'b>, context: &'j mut Context<'c, D, Z>) -> Self {
        Judge {
            states,
            groups,
            context,
            used: 0,
            insecure: None,
            question: None,
            cut: None,
            is_too_long: false,
        }
    }

    fn judge(&mut self) -> Result<Verdict, Bogus> {
        let message = *self.groups.message();
        let question = (LowerName::of(&message.question_name()), message.qtype());
        if question.1 == Type::RRSIG && self.groups.is_empty() {
            self.insecure = Some(Insecure::Signatures);
            return Ok(self.verdict(Outcome::Data));
        }
        // A bogus proof or SOA taints the message, even if the others would do: it would be given on as part of it.
        for set in self.groups.iter().filter(|set| is_proof(set) || is_soa(set)) {
            if let State::Bogus(reason) = self.states[set.place()] {
                return Err(reason);
            }
        }
        let outcome = self.follow(question.0, question.1)?;
        let mut answers = self.groups.iter().filter(|set| set.section() == Section::Answer);
        // CVE-2026-123581: a valid RRset that answers another question.
        if answers.any(|set| self.used >> set.place() & 1 == 0) {
            return Err(Bogus::Unrelated);
        }
        // The response code has no signature, so the records must say the same.
        let is_told = match message.rcode() {
            Rcode::NXDOMAIN => outcome == Outcome::NoName,
            Rcode::YXDOMAIN => self.is_too_long,
            _ => true,
        };
        if self.insecure.is_none() && !is_told {
            return Err(Bogus::Denial);
        }
        Ok(self.verdict(outcome))
    }

    fn verdict(&self, outcome: Outcome) -> Verdict {
        let status = self.insecure.map_or(Status::Secure, Status::Insecure);
        // Proofs limit the TTL as well as data: all that was verified was needed.
        let ttl = self.states.iter().filter_map(|state| match state {
            State::Secure(proven, _) => Some(proven.ttl),
            _ => None,
        });
        Verdict { status, outcome, ttl: ttl.min().unwrap_or(u32::MAX) }
    }

    /// Follows the aliases from the question to the end of the answer.
    fn follow(&mut self, mut name: LowerName, rtype: Type) -> Result<Outcome, Bogus> {
        let asked = name;
        // Each round uses an RRset that was not used, or ends.
        for _ in 0..=RRSETS {
            if rtype == Type::ANY && self.take_all(&name)? {
                return Ok(Outcome::Data);
            }
            let set = self.groups.find(Section::Answer, name.as_wire(), rtype);
            let answer = set.filter(|set| self.states[set.place()] != State::Synthesized);
            if let Some(answer) = answer {
                self.take(&answer)?;
                return Ok(Outcome::Data);
            }
            match self.alias(&mut name)? {
                Link::Followed if set.is_none() => {
                    if rtype == Type::DS && self.insecure.is_none() {
                        self.cut = self.cut.or(Some(Cut::None));
                    }
                }
                Link::None => return self.deny(&name, rtype, name != asked),
                link => {
                    self.is_too_long = matches!(link, Link::TooLong);
                    return Ok(Outcome::Data);
                }
            }
        }
        Err(Bogus::Unrelated)
    }

    /// Takes all RRsets of a name for QTYPE ANY (RFC 6840 section 4.2). False: there is none.
    fn take_all(&mut self, name: &LowerName) -> Result<bool, Bogus> {
        let groups = self.groups;
        let mut is_any = false;
        for set in groups
            .iter()
            .filter(|set| set.section() == Section::Answer && set.owner().eq_wire(name.as_wire()))
        {
            self.take(&set)?;
            is_any = true;
        }
        Ok(is_any)
    }

    /// Takes an RRset into the answer, with the proof that it needs if it was expanded from a wildcard.
    fn take(&mut self, set: &Rrset<'b>) -> Result<(), Bogus> {
        if self.used >> set.place() & 1 == 1 {
            return Err(Bogus::Unrelated);
        }
        self.used |= 1 << set.place();
        match self.states[set.place()] {
            State::Secure(proven, apex) => {
                if proven.is_expanded {
                    let owner = LowerName::of(&set.owner());
                    let zone = owner.suffix(usize::from(apex)).ok_or(Bogus::Labels)?;
                    let denials = self.denials(zone)?;
                    let strength = denials.no_closer(&owner, proven.labels, &mut self.hashing())?;
                    self.weigh(strength);
                }
            }
            State::Insecure(reason) => self.insecure = self.insecure.or(Some(reason)),
            State::Bogus(reason) => return Err(reason),
            State::Unchecked | State::Synthesized => return Err(Bogus::SignatureMissing),
        }
        Ok(())
    }

    /// Follows the alias at a name, if there is one in the answer, and replaces the name.
    fn alias(&mut self, name: &mut LowerName) -> Result<Link, Bogus> {
        let cname = self.groups.find(Section::Answer, name.as_wire(), Type::CNAME);
        let target = |record: Option<Record<'_>>| {
            record.and_then(|record| record.target()).map(|name| LowerName::of(&name)).ok_or(Bogus::Malformed)
        };
        if let Some(dname) = redirection(self.groups, name) {
            if self.used >> dname.place() & 1 == 0 {
                self.take(&dname)?;
            }
            let owner = LowerName::of(&dname.owner());
            let Some(redirected) = redirected(name, &owner, &target(dname.only_record())?) else {
                let is_told = self.groups.message().rcode() == Rcode::YXDOMAIN && cname.is_none();
                return if is_told { Ok(Link::TooLong) } else { Err(Bogus::Unrelated) };
            };
            // The CNAME record follows from the DNAME record, so its content is known (RFC 6672 section 5.3.1).
            let cname = cname.ok_or(Bogus::Unrelated)?;
            if self.used >> cname.place() & 1 == 1 || target(cname.only_record())? != redirected {
                return Err(Bogus::Unrelated);
            }
            self.used |= 1 << cname.place();
            *name = redirected;
            return Ok(Link::Followed);
        }
        let Some(cname) = cname else { return Ok(Link::None) };
        self.take(&cname)?;
        // RFC 2181 section 10.1: there is one alias at most.
        *name = target(cname.only_record())?;
        Ok(Link::Followed)
    }

    /// Proves that a name does not exist, or has no records of a type, as the response code says.
    fn deny(&mut self, name: &LowerName, rtype: Type, is_alias: bool) -> Result<Outcome, Bogus> {
        let is_missing = self.groups.message().rcode() == Rcode::NXDOMAIN;
        // A denial has the SOA record (RFC 2308 section 2.2). Without it, proofs are those of an alias by wildcard, and the target is open.
        let is_denied = is_missing || self.groups.iter().any(|set| is_soa(&set));
        if is_alias && !is_denied {
            return Ok(Outcome::Alias);
        }
        let told = if is_missing { Outcome::NoName } else { Outcome::NoData };
        let target = responsible(name, rtype);
        let zone = match closest(self.context.zones, &self.context.anchors, &target, self.context.now) {
            Closest::Secure(zone) => zone.apex,
            Closest::Ask(zone) => {
                self.question = Some(Question::Anchor(zone));
                return Err(Bogus::Denial);
            }
            Closest::Bogus(reason) => return Err(reason),
            Closest::Insecure(reason) => {
                self.insecure = self.insecure.or(Some(reason));
                return Ok(told);
            }
        };
        match self.prove(name, rtype, zone, is_missing) {
            // The name may belong to a zone below, which needs no proofs.
            Err(Bogus::Denial) => {
                self.question = unknown_cut(&zone, &target, self.context.zones)?;
                Err(Bogus::Denial)
            }
            result => result,
        }
    }

    fn prove(
        &mut self,
        name: &LowerName,
        rtype: Type,
        zone: LowerName,
        is_missing: bool,
    ) -> Result<Outcome, Bogus> {
        let denials = self.denials(zone)?;
        let (strength, outcome) = if is_missing {
            (denials.no_name(name, &mut self.hashing())?, Outcome::NoName)
        } else {
            let proof = denials.no_data(name, rtype, &mut self.hashing())?;
            // Behind an alias it is about another name.
            if rtype == Type::DS && self.used == 0 {
                self.cut = Some(proof.cut());
            }
            (proof.strength, if proof.denies_name() { Outcome::NoName } else { Outcome::NoData })
        };
        self.weigh(strength);
        let groups = self.groups;
        for set in groups.iter().filter(|set| is_proof(set) || is_soa(set)) {
            // An SOA of another zone would decide how long the denial is kept.
            if is_soa(&set) && !set.owner().eq_wire(zone.as_wire()) {
                return Err(Bogus::Denial);
            }
        }
        Ok(outcome)
    }

    /// Proofs of a zone in the message.
    fn denials(&self, zone: LowerName) -> Result<Denials<'b>, Bogus> {
        let apex = labels(zone.as_wire());
        Denials::of(self.groups, zone, |set| match self.states[set.place()] {
            State::Secure(proven, labels) if usize::from(labels) == apex => Some(proven),
            _ => None,
        })
    }

    fn hashing(&mut self) -> Hashing<'_, D> {
        Hashing {
            digests: self.context.digests,
            iterations: self.context.iterations,
            message: self.context.message,
            resolution: self.context.resolution,
        }
    }

    fn weigh(&mut self, strength: Strength) {
        let reason = match strength {
            Strength::Full => return,
            Strength::OptOut => Insecure::OptOut,
            Strength::Iterations => Insecure::Iterations,
        };
        self.insecure = self.insecure.or(Some(reason));
    }
}

/// Name below the owner of a DNAME record, moved below its target (RFC 6672 section 2.2). `None`: it would be too long.
fn redirected(name: &LowerName, owner: &LowerName, target: &LowerName) -> Option<LowerName> {
    let (name, target) = (name.as_wire(), target.as_wire());
    let prefix = name.get(..name.len().checked_sub(owner.as_wire().len())?)?;
    let mut octets = [0; MAX_NAME];
    octets.get_mut(..prefix.len())?.copy_from_slice(prefix);
    octets.get_mut(prefix.len()..prefix.len() + target.len())?.copy_from_slice(target);
    LowerName::from_wire(octets.get(..prefix.len() + target.len())?)
}
