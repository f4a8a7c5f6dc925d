//! Validation of replies (RFC 4035): what is known of zones, what is being validated, and what that may cost.
//!
//! This folder knows neither clients nor upstreams. `resolve/validate.rs` connects them: it holds the question whose reply is validated, asks
//! the questions about zones that a validation leads to, and gives verifications to the driver. The rules are those of the crate `dnssec`;
//! here is what has to be kept between its steps.
//!
//! Read in this order: `tasks` (a validation under way), `searches` (the way to the keys of a zone), `zones` (what is known already),
//! `budgets` (who pays), `jobs` (verifications on their way to the driver), `remembered` (those that are not repeated), `reply` (the reply
//! after its verdict), `asked_again` (questions that another server answers now), `refusals` (what was refused lately), `ranges` (denials
//! that are used for other names), `denials` (the replies that they make).

pub mod config;

pub(crate) mod asked_again;
pub(crate) mod budgets;
pub(crate) mod denials;
pub(crate) mod jobs;
pub(crate) mod ranges;
pub(crate) mod refusals;
pub(crate) mod remembered;
pub(crate) mod reply;
pub(crate) mod searches;
pub(crate) mod tasks;
pub(crate) mod zones;

use crate::base::name_hash::HashKey;
use crate::base::slab::{Index, NONE, Slab};
use crate::base::time::Instant;
use crate::interface::SignedData;
use crate::limits::{MESSAGE, SEARCHES, UPSTREAMS, VALIDATIONS};
use crate::validator::asked_again::AskedAgain;
use crate::validator::budgets::{Budgets, Payer};
use crate::validator::config::ValidationConfig;
use crate::validator::jobs::Jobs;
use crate::validator::ranges::Ranges;
use crate::validator::refusals::Refusals;
use crate::validator::remembered::RememberedSignatures;
use crate::validator::searches::Searches;
use crate::validator::tasks::{Purpose, Task};
use crate::validator::zones::{Knowledge, KnownZones, ZoneTable};
use dnssec::anchors::ClosestAnchor;
use dnssec::chain::{Closest, closest, unknown_cut};
use dnssec::groups::GroupError;
use dnssec::{
    AnchorData, Anchors, Bogus, Context, Delegation, Dnskey, Ds, Entry, Groups, LowerName, Next, Outcome,
    Question, Status, Timestamp, Verdict, ZoneKeys, entry_by_anchors, entry_by_ds,
};
use std::collections::VecDeque;
use std::sync::Arc;
use wire::{Message, Section, Type};

/// Octets of the keys of a zone: 16 of the longest.
const KEY_OCTETS: usize = dnssec::limits::KEYS * (8 + dnssec::limits::KEY_RDATA);

/// Validation of one worker.
pub(crate) struct Validator {
    /// Settings. None: nothing is validated any more, and what is under way ends.
    pub config: Option<Arc<ValidationConfig>>,
    /// Zones that are known.
    pub zones: ZoneTable,
    /// Validations under way.
    pub tasks: Slab<Task>,
    /// Searches of zones under way.
    pub searches: Searches,
    /// Budgets of resolutions.
    pub budgets: Budgets,
    /// Verifications that wait or are outside.
    pub jobs: Jobs,
    /// Verifications that are not repeated.
    pub remembered: RememberedSignatures,
    /// Validations whose next step can be done.
    pub ready: VecDeque<Index>,
    /// Questions in flight that are asked again because of a bogus reply, and the reason.
    pub asked_again: AskedAgain,
    /// Questions that were refused lately.
    pub refusals: Refusals,
    /// Denials that are used for other names.
    pub ranges: Ranges,
    /// Checks of servers under way.
    pub checks: Vec<SignatureCheck>,
    /// Key, signature and data of the verification that the last step asked for.
    job: Vec<u8>,
    signed: Box<[u8]>,
}

/// Check if a server strips signatures: a question for the keys of a zone with a trust anchor, to this server alone.
pub(crate) struct SignatureCheck {
    /// The question.
    pub outbound: Index,
    /// The server.
    pub server: u16,
    /// False during the pause before it.
    pub is_sent: bool,
}

/// Result of a step of a validation.
#[expect(
    clippy::large_enum_variant,
    reason = "a box would be an allocation, and a result is used up at once"
)]
pub(crate) enum Stepped {
    /// A verification is to be done: [`Validator::job`] has it.
    Verifies,
    /// A zone is to be found first. `is_signer`: the name has signed something in the message, so it is a zone.
    Asks { question: Question, is_signer: bool },
    /// The end, with what a reply about DS records says about its name.
    Ends(Verdict, Option<Learned>),
}

/// Consequence of a reply about DS records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    /// There are DS records, which the search keeps.
    Signed,
    /// The name is known.
    Known(Knowledge),
    /// The reply cannot be trusted.
    Failed(Bogus),
}

/// Point in time of a step, for the engine and for signatures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub now: Instant,
    pub unix: Timestamp,
}

impl Validator {
    /// A validator that knows no zone, for so many pending queries and outbound queries. `key` hashes names as the rest of the engine does, and
    /// is secret.
    pub fn new(
        config: Arc<ValidationConfig>,
        key: HashKey,
        (pending_queries, outbound_queries): (usize, usize),
    ) -> Validator {
        Validator {
            config: Some(config),
            zones: ZoneTable::new(key),
            tasks: Slab::new(VALIDATIONS),
            searches: Searches::new(SEARCHES),
            budgets: Budgets::new(pending_queries, outbound_queries),
            jobs: Jobs::new(),
            remembered: RememberedSignatures::new(key.0),
            ready: VecDeque::with_capacity(VALIDATIONS),
            asked_again: AskedAgain::new(outbound_queries),
            refusals: Refusals::default(),
            ranges: Ranges::default(),
            checks: Vec::with_capacity(UPSTREAMS),
            job: Vec::with_capacity(MESSAGE),
            signed: vec![0; MESSAGE].into(),
        }
    }

    /// Applies other settings. What was proven under the former ones ends. None: nothing is validated any more.
    pub fn configure(&mut self, config: Option<Arc<ValidationConfig>>) {
        self.config = config;
        self.zones.clear();
        self.asked_again.clear();
        self.refusals = Refusals::default();
        self.ranges.clear();
    }

    /// Begins a validation. None: there is no room.
    pub fn begin(&mut self, purpose: Purpose, message: Index) -> Option<Index> {
        let index = self.tasks.take()?;
        self.tasks[index].reset(purpose, message);
        self.budgets.renew_task(index);
        self.ready.push_back(index);
        Some(index)
    }

    /// Number of validations, searches and verifications under way.
    pub fn under_way(&self) -> usize {
        self.tasks.len() + self.searches.len() + self.jobs.len()
    }

    /// Octets of the verification that the last step asked for.
    pub fn job(&self) -> &[u8] {
        &self.job
    }

    /// True if the search of a zone waits, perhaps over others, for the end of another one.
    pub fn waits_for(&self, mut search: Index, other: Index) -> bool {
        loop {
            if search == other {
                return true;
            }
            let task = self.searches[search].task;
            match (task != NONE).then(|| self.tasks[task].waits) {
                Some(tasks::Waits::Zone(next)) => search = next,
                _ => return false,
            }
        }
    }

    /// Does the next step of a validation of a message.
    pub fn step(&mut self, task: Index, message: &[u8], payer: Payer, moment: Moment) -> Stepped {
        let Validator { config, zones, tasks, searches, budgets, job, signed, .. } = self;
        let Some(config) = config else { return ends(Status::Bogus(Bogus::Unreachable)) };
        let Ok(message) = Message::parse(message) else { return ends(Status::Bogus(Bogus::Malformed)) };
        let groups = match Groups::of(&message) {
            Ok(groups) => groups,
            Err(GroupError::Class) => return ends(Status::Bogus(Bogus::Malformed)),
            Err(GroupError::Records | GroupError::Rrsets) => {
                return ends(Status::Bogus(Bogus::TooMuchWork));
            }
        };
        let state = &mut tasks[task];
        let overlay = match state.purpose {
            Purpose::Keys(search) => Some((searches[search].name.as_wire(), searches[search].trial())),
            _ => None,
        };
        let zones = KnownZones { table: zones, overlay, now: moment.now };
        let next = config.with_anchors(|anchors| {
            let mut context = Context {
                digests: &config.digests,
                zones: &zones,
                anchors,
                iterations: config.nsec3_iterations,
                now: moment.unix,
                message: &mut state.budget,
                resolution: budgets.of(payer),
            };
            match state.validation.step(&groups, &mut context) {
                // A signature whose data cannot be written is wrong.
                Next::Verify(signature) => {
                    let length = signature.write_signed_data(signed).unwrap_or(0);
                    let data = SignedData {
                        algorithm: signature.algorithm.0,
                        key: signature.key,
                        signature: signature.signature,
                        data: &signed[..length],
                    };
                    data.write(job);
                    Stepped::Verifies
                }
                Next::Ask(question) => Stepped::Asks { question, is_signer: is_signer(&groups, &question) },
                Next::Done(verdict) => Stepped::Ends(verdict, None),
            }
        });
        match (next, state.purpose) {
            (Stepped::Ends(verdict, _), Purpose::Delegation(search)) => {
                let learned = match state.validation.delegation(&groups, &verdict) {
                    Delegation::Signed(set) => {
                        let records = set.records();
                        let rdata: Vec<&[u8]> = records.map(|record| record.rdata()).collect();
                        match searches.keep_ds(search, rdata.into_iter(), verdict.ttl) {
                            true => Learned::Signed,
                            false => Learned::Failed(Bogus::TooMuchWork),
                        }
                    }
                    Delegation::Insecure(reason) => Learned::Known(Knowledge::Insecure(reason)),
                    Delegation::NoCut | Delegation::NoName => Learned::Known(Knowledge::NoCut),
                    Delegation::Bogus(reason) => Learned::Failed(reason),
                };
                Stepped::Ends(verdict, Some(learned))
            }
            (next, _) => next,
        }
    }

    /// True if a trust anchor of the root has this key tag.
    pub fn trusts_root_key(&self, tag: u16) -> bool {
        self.config.as_ref().is_some_and(|config| {
            config.with_anchors(|anchors| {
                anchors.of_zone(&[0]).any(|data| match data {
                    AnchorData::Ds(rdata) => Ds::parse(rdata).is_ok_and(|ds| ds.key_tag == tag),
                    AnchorData::Dnskey(rdata) => Dnskey::parse(rdata).is_ok_and(|key| key.key_tag() == tag),
                })
            })
        })
    }

    /// Zone of the closest trust anchor at or above a name; none under a negative one.
    pub fn anchored_zone(&self, name: &LowerName, now: Timestamp) -> Option<LowerName> {
        self.config.as_ref()?.with_anchors(|anchors| match anchors.closest(name.as_wire(), now) {
            ClosestAnchor::Positive(labels) => name.suffix(labels),
            ClosestAnchor::Negative | ClosestAnchor::None => None,
        })
    }

    /// State of the zone of a name whose lookup has failed, step by step.
    pub fn step_to_zone(&self, name: &LowerName, moment: Moment) -> Stepped {
        let Some(config) = &self.config else { return ends(Status::Bogus(Bogus::Unreachable)) };
        let zones = KnownZones { table: &self.zones, overlay: None, now: moment.now };
        let asks = |question| Stepped::Asks { question, is_signer: false };
        config.with_anchors(|anchors: Anchors<'_>| match closest(&zones, &anchors, name, moment.unix) {
            Closest::Ask(zone) => asks(Question::Anchor(zone)),
            Closest::Insecure(reason) => ends(Status::Insecure(reason)),
            Closest::Bogus(reason) => ends(Status::Bogus(reason)),
            Closest::Secure(zone) => match unknown_cut(&zone.apex, name, &zones) {
                Ok(Some(question)) => asks(question),
                Ok(None) => ends(Status::Secure),
                Err(reason) => ends(Status::Bogus(reason)),
            },
        })
    }

    /// Takes the outcome of a verification into the validation that asked for it.
    pub fn verified(&mut self, task: Index, message: &[u8], is_valid: bool, now: Timestamp) {
        if let Ok(message) = Message::parse(message)
            && let Ok(groups) = Groups::of(&message)
        {
            self.tasks[task].validation.verified(&groups, is_valid, now);
        }
    }

    /// Puts the keys of a reply on trial that the DS records or the anchors of a search vouch for.
    ///
    /// # Errors
    ///
    /// Knowledge about the zone, as no such keys are in the reply. None: there is no room for them.
    pub fn try_keys(&mut self, index: Index, message: &[u8]) -> Result<(), Option<Knowledge>> {
        let bogus = |reason| Err(Some(Knowledge::Bogus(reason)));
        let Some(config) = &self.config else { return bogus(Bogus::Unreachable) };
        let search = &self.searches[index];
        let name = search.name;
        let Ok(groups) =
            Message::parse(message).map_err(|_| ()).and_then(|message| Groups::of(&message).map_err(|_| ()))
        else {
            return bogus(Bogus::Malformed);
        };
        let Some(set) = groups.find(Section::Answer, name.as_wire(), Type::DNSKEY) else {
            return bogus(Bogus::Unreachable);
        };
        let mut room = [0; KEY_OCTETS];
        let entry = match search.has_anchors {
            true => config.with_anchors(|anchors| {
                entry_by_anchors(&anchors, &set, config.algorithms, &config.digests, &mut room)
            }),
            false => entry_by_ds(search.ds(), &set, config.algorithms, &config.digests, &mut room),
        };
        match entry {
            Entry::Keys(keys) if self.searches.put_on_trial(index, keys.octets()) => Ok(()),
            Entry::Keys(_) => Err(None),
            Entry::Insecure(reason) => Err(Some(Knowledge::Insecure(reason))),
            Entry::Bogus(reason) => bogus(reason),
        }
    }

    /// All keys of a DNSKEY RRset that was verified.
    pub fn all_keys(&self, search: Index, message: &[u8]) -> Knowledge {
        let Some(config) = &self.config else { return Knowledge::Bogus(Bogus::Unreachable) };
        let name = &self.searches[search].name;
        let mut room = [0; KEY_OCTETS];
        let keys = Message::parse(message).ok().and_then(|message| {
            let groups = Groups::of(&message).ok()?;
            let set = groups.find(Section::Answer, name.as_wire(), Type::DNSKEY)?;
            let keys = ZoneKeys::of(&set, config.algorithms, |_| true, &mut room).ok()?;
            Some(keys.octets().into())
        });
        keys.map_or(Knowledge::Bogus(Bogus::TooMuchWork), Knowledge::Secure)
    }
}

/// The end of a validation that has not come to a verdict of its own.
pub(crate) fn ends(status: Status) -> Stepped {
    Stepped::Ends(Verdict { status, outcome: Outcome::Failure, ttl: u32::MAX }, None)
}

/// True if the name of a question has signed something in a message.
fn is_signer(groups: &Groups<'_>, question: &Question) -> bool {
    let Question::Delegation(name) = question else { return false };
    let has_signed = |signer: &[u8]| wire::eq_ignore_case(signer, name.as_wire());
    groups.iter().any(|set| set.signatures().any(|signature| has_signed(signature.rrsig.signer)))
}
