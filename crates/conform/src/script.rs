//! What the scripted upstream says: the rules of a case, and for questions that no rule matches, answers derived
//! from the records of all rules, so that a server which follows CNAMEs by itself finds consistent data.

use crate::message::{Flag, Transport, UpstreamQuery};
use crate::record::{self, OwnedName, Record};
use domain::base::Name;
use domain::base::iana::{Class, Rcode, Rtype};
use domain::rdata::ZoneRecordData;
use serde::{Deserialize, Deserializer};

/// The SOA of negative answers for which no rule has one.
const ROOT_SOA: &str = ". 3600 IN SOA ns.invalid. hostmaster.invalid. 1 7200 3600 1209600 3600";

/// One rule: a question and its reply.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    #[serde(deserialize_with = "name_or_any")]
    name: Option<OwnedName>,
    #[serde(rename = "type", deserialize_with = "type_or_any")]
    rtype: Option<Rtype>,
    #[serde(default, deserialize_with = "class")]
    class: Option<Class>,
    transport: Option<Transport>,
    #[serde(default, rename = "match")]
    conditions: Conditions,
    times: Option<u64>,
    #[serde(default, deserialize_with = "rcode")]
    rcode: RuleResult,
    #[serde(default, deserialize_with = "record::records")]
    answers: Vec<Record>,
    #[serde(default, deserialize_with = "record::records")]
    authority: Vec<Record>,
    #[serde(default, deserialize_with = "record::records")]
    additional: Vec<Record>,
    #[serde(default)]
    flags: Vec<Flag>,
    #[serde(default)]
    ede: Vec<u16>,
    ecs_scope: Option<u8>,
    #[serde(default)]
    delay_ms: u64,
    malformed: Option<Malformed>,
    #[serde(default)]
    spoof: Vec<Forgery>,
}

impl Rule {
    /// Whether its reply says that the data were found bogus (RFC 8914 sections 4.7 to 4.13).
    pub fn says_bogus(&self) -> bool {
        self.ede.iter().any(|code| (6..=12).contains(code))
    }
}

/// What a question must be like.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Conditions {
    cd: Option<bool>,
    rd: Option<bool>,
    ad: Option<bool>,
    #[serde(rename = "do")]
    dnssec_ok: Option<bool>,
}

/// A response code, or nothing at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleResult {
    Rcode(Rcode),
    Nothing,
}

impl Default for RuleResult {
    fn default() -> RuleResult {
        RuleResult::Rcode(Rcode::NOERROR)
    }
}

/// How a reply is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Malformed {
    /// No octet.
    Empty,
    /// Less than a header.
    ShortHeader,
    /// A header, and all counts zero.
    NoQuestion,
    /// Two answers announced, then octets that are no record.
    Garbage,
    /// An A record of three octets.
    #[serde(rename = "rdlength-3")]
    Rdlength3,
    /// Record data that reach beyond the end.
    RdlengthOverrun,
    /// Forty answers announced, one there.
    CountLies,
    /// An owner that points to itself.
    PointerLoop,
    /// The last three octets are missing.
    Cut,
}

/// A forged reply.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forgery {
    /// What is wrong with it; everything else is right.
    pub kind: ForgeryKind,
    /// What it would have believed.
    #[serde(default, deserialize_with = "record::records")]
    pub answers: Vec<Record>,
}

/// What is wrong with a forged reply (RFC 5452 section 9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForgeryKind {
    /// Another ID.
    Id,
    /// Another name of the same length.
    Question,
    /// Another type.
    QuestionType,
    /// QR is clear.
    NotAResponse,
    /// It comes from another port.
    SourcePort,
    /// It comes from another address.
    SourceAddress,
}

/// What is sent back.
#[derive(Clone, Debug)]
pub struct ReplyContent {
    /// The response code.
    pub rcode: Rcode,
    /// Flags besides QR, RA and the copied RD and CD.
    pub flags: Vec<Flag>,
    /// The answer section.
    pub answers: Vec<Record>,
    /// The authority section.
    pub authority: Vec<Record>,
    /// The additional section without OPT.
    pub additional: Vec<Record>,
    /// Extended errors.
    pub ede: Vec<u16>,
    /// The scope of an echoed client subnet.
    pub ecs_scope: Option<u8>,
    /// The reply comes so much later.
    pub delay_ms: u64,
    /// The reply is broken.
    pub malformed: Option<Malformed>,
    /// Forged replies before it.
    pub forgeries: Vec<Forgery>,
}

impl ReplyContent {
    /// A reply without records.
    pub fn new(rcode: Rcode) -> ReplyContent {
        ReplyContent {
            rcode,
            flags: Vec::new(),
            answers: Vec::new(),
            authority: Vec::new(),
            additional: Vec::new(),
            ede: Vec::new(),
            ecs_scope: None,
            delay_ms: 0,
            malformed: None,
            forgeries: Vec::new(),
        }
    }
}

/// The rules of a case, and how often each has been used.
#[derive(Debug, Default)]
pub struct Script {
    rules: Vec<Rule>,
    used: Vec<u64>,
}

impl Script {
    /// A script of these rules, none used.
    pub fn new(rules: Vec<Rule>) -> Script {
        Script { used: vec![0; rules.len()], rules }
    }

    /// The reply to `query`; none, if there is to be no reply at all.
    pub fn reply(&mut self, query: &UpstreamQuery, transport: Transport) -> Option<ReplyContent> {
        let Some(index) = self.choose(query, transport) else { return Some(self.derive(query)) };
        self.used[index] += 1;
        let rule = &self.rules[index];
        let RuleResult::Rcode(rcode) = rule.rcode else { return None };
        Some(ReplyContent {
            rcode,
            flags: rule.flags.clone(),
            answers: rule.answers.clone(),
            authority: rule.authority.clone(),
            additional: rule.additional.clone(),
            ede: rule.ede.clone(),
            ecs_scope: rule.ecs_scope,
            delay_ms: rule.delay_ms,
            malformed: rule.malformed,
            forgeries: rule.spoof.clone(),
        })
    }

    /// The first rule that matches; those for any name come after all that have a name.
    fn choose(&self, query: &UpstreamQuery, transport: Transport) -> Option<usize> {
        let usable = |index: &usize| {
            let rule = &self.rules[*index];
            rule.matches(query, transport) && rule.times.is_none_or(|times| self.used[*index] < times)
        };
        let named = |index: &usize| self.rules[*index].name.is_some();
        let mut all = 0..self.rules.len();
        all.clone().filter(named).find(usable).or_else(|| all.find(|index| !named(index) && usable(index)))
    }

    /// A reply made of the records of all rules.
    fn derive(&self, query: &UpstreamQuery) -> ReplyContent {
        let records = || self.rules.iter().flat_map(|rule| rule.answers.iter().chain(&rule.additional));
        let mut owned =
            records().filter(|record| record.owner() == &query.name && record.class() == query.class);
        let mut answers: Vec<Record> =
            owned.clone().filter(|record| record.rtype() == query.rtype).cloned().collect();
        if answers.is_empty() {
            answers.extend(owned.find(|record| record.rtype() == Rtype::CNAME).cloned());
        }
        if !answers.is_empty() {
            answers = without_repetitions(answers);
            return ReplyContent { answers, ..ReplyContent::new(Rcode::NOERROR) };
        }
        let rcode = if self.exists(&query.name) { Rcode::NOERROR } else { Rcode::NXDOMAIN };
        ReplyContent { authority: vec![self.soa(query)], ..ReplyContent::new(rcode) }
    }

    /// A name exists if it or a name below it is spoken of.
    fn exists(&self, name: &OwnedName) -> bool {
        self.rules.iter().any(|rule| {
            let positive = rule.rcode == RuleResult::Rcode(Rcode::NOERROR);
            let targets = rule.answers.iter().filter_map(|record| match record.data() {
                ZoneRecordData::Cname(data) if positive => Some(data.cname()),
                _ => None,
            });
            let owners = rule.answers.iter().chain(&rule.additional).map(Record::owner);
            let named = rule.name.iter().filter(|_| positive);
            named.chain(owners).chain(targets).any(|known| known.ends_with(name))
        })
    }

    /// A SOA that covers the name, of rules for the same type first.
    fn soa(&self, query: &UpstreamQuery) -> Record {
        let same_type = |rule: &&Rule| rule.rtype == Some(query.rtype);
        let first = self.rules.iter().filter(same_type);
        let others = self.rules.iter().filter(|rule| !same_type(rule));
        let records = first
            .chain(others)
            .flat_map(|rule| rule.authority.iter().chain(&rule.answers).chain(&rule.additional));
        let covers = |record: &&Record| record.rtype() == Rtype::SOA && query.name.ends_with(record.owner());
        records
            .into_iter()
            .find(covers)
            .cloned()
            .unwrap_or_else(|| record::record(ROOT_SOA).expect("it is a record"))
    }
}

impl Rule {
    fn matches(&self, query: &UpstreamQuery, transport: Transport) -> bool {
        let is = |wanted: Option<bool>, found: bool| wanted.is_none_or(|wanted| wanted == found);
        let Conditions { cd, rd, ad, dnssec_ok } = self.conditions;
        // A rule for any name is for any class, unless it says otherwise.
        let class = self.class.or_else(|| self.name.is_some().then_some(Class::IN));
        self.name.as_ref().is_none_or(|name| name == &query.name)
            && self.rtype.is_none_or(|rtype| rtype == query.rtype)
            && class.is_none_or(|class| class == query.class)
            && self.transport.is_none_or(|wanted| wanted == transport)
            && is(cd, query.has(Flag::Cd))
            && is(rd, query.has(Flag::Rd))
            && is(ad, query.has(Flag::Ad))
            && is(dnssec_ok, query.dnssec_ok())
    }
}

/// The same record may stand in several rules, an A record as answer and as additional record for example.
fn without_repetitions(records: Vec<Record>) -> Vec<Record> {
    let mut kept: Vec<Record> = Vec::new();
    for record in records {
        if !kept.contains(&record) {
            kept.push(record);
        }
    }
    kept
}

fn name_or_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<OwnedName>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text == "*" {
        return Ok(None);
    }
    text.parse::<Name<Vec<u8>>>()
        .map(Some)
        .map_err(|_| serde::de::Error::custom(format!("{text} is no name")))
}

fn type_or_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Rtype>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text == "*" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| serde::de::Error::custom(format!("{text} is no type")))
}

fn class<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Class>, D::Error> {
    crate::query::class(deserializer).map(Some)
}

fn rcode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RuleResult, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text == "TIMEOUT" {
        return Ok(RuleResult::Nothing);
    }
    text.parse()
        .map(RuleResult::Rcode)
        .map_err(|_| serde::de::Error::custom(format!("{text} is no response code")))
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
