//! Script of the upstream: the rules of a case. Queries that no rule matches get replies derived from the records of
//! all rules, so that a server which follows CNAMEs itself finds consistent data.

use crate::message::{Flag, Transport, UpstreamQuery};
use crate::record::{self, OwnedName, Record};
use domain::base::Name;
use domain::base::iana::{Class, Rcode, Rtype};
use domain::rdata::ZoneRecordData;
use serde::{Deserialize, Deserializer};

/// SOA of negative replies for which no rule has one.
const ROOT_SOA: &str = ". 3600 IN SOA ns.invalid. hostmaster.invalid. 1 7200 3600 1209600 3600";

/// Rule: conditions on a query, and the reply to it.
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
    /// Name that the rule is for; `None`: any.
    pub fn owner(&self) -> Option<&OwnedName> {
        self.name.as_ref()
    }

    /// True if an extended error of the reply says that the data were found bogus (RFC 8914 sections 4.7 to 4.13).
    pub fn says_bogus(&self) -> bool {
        self.ede.iter().any(|code| (6..=12).contains(code))
    }
}

/// Conditions on the flags of a query.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Conditions {
    cd: Option<bool>,
    rd: Option<bool>,
    ad: Option<bool>,
    #[serde(rename = "do")]
    dnssec_ok: Option<bool>,
}

/// Response code of the reply, or no reply at all.
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

/// Kind of a malformed reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Malformed {
    /// No octets.
    Empty,
    /// Less than a header.
    ShortHeader,
    /// A header with all counts zero.
    NoQuestion,
    /// ANCOUNT is 2, but the octets that follow are no record.
    Garbage,
    /// A record with RDLENGTH 3.
    #[serde(rename = "rdlength-3")]
    Rdlength3,
    /// RDLENGTH reaches beyond the end of the message.
    RdlengthOverrun,
    /// ANCOUNT is 40, but one record follows.
    CountLies,
    /// An owner name that is a compression pointer to itself.
    PointerLoop,
    /// The last three octets are missing.
    Cut,
}

/// Forged reply.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forgery {
    /// Property that is wrong; all others are right.
    pub kind: ForgeryKind,
    /// Answer section of the forged reply.
    #[serde(default, deserialize_with = "record::records")]
    pub answers: Vec<Record>,
}

/// Property by which a forged reply can be recognized (RFC 5452 section 9.1).
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
    /// Another source port.
    SourcePort,
    /// Another source address.
    SourceAddress,
}

/// Content of a reply.
#[derive(Clone, Debug)]
pub struct ReplyContent {
    /// Response code.
    pub rcode: Rcode,
    /// Flags besides QR, RA and the copied RD and CD.
    pub flags: Vec<Flag>,
    /// Answer section.
    pub answers: Vec<Record>,
    /// Authority section.
    pub authority: Vec<Record>,
    /// Additional section without OPT.
    pub additional: Vec<Record>,
    /// Extended errors.
    pub ede: Vec<u16>,
    /// Scope of an echoed client subnet.
    pub ecs_scope: Option<u8>,
    /// Delay of the reply.
    pub delay_ms: u64,
    /// Kind of a malformed reply.
    pub malformed: Option<Malformed>,
    /// Forged replies that are sent before it.
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

/// Rules of a case, with the number of uses of each.
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

    /// Finds the reply to `query`; `None` if the script says not to reply.
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

    /// Finds the first rule that matches. Rules for any name come after all rules with a name.
    fn choose(&self, query: &UpstreamQuery, transport: Transport) -> Option<usize> {
        let usable = |index: &usize| {
            let rule = &self.rules[*index];
            rule.matches(query, transport) && rule.times.is_none_or(|times| self.used[*index] < times)
        };
        let named = |index: &usize| self.rules[*index].name.is_some();
        let mut all = 0..self.rules.len();
        all.clone().filter(named).find(usable).or_else(|| all.find(|index| !named(index) && usable(index)))
    }

    /// Builds a reply from the records of all rules.
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

    /// True if a rule names `name` or a name below it: then the name exists.
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

    /// Finds a SOA that covers the name. Rules for the type of the query come first.
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
        // A rule for any name matches any class, unless it has a class.
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

/// Drops duplicates: several rules may have the same record, for example an A record as answer and as additional
/// record.
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
        .map_err(|_| serde::de::Error::custom(format!("{text} is not a name")))
}

fn type_or_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Rtype>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text == "*" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| serde::de::Error::custom(format!("{text} is not a type")))
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
        .map_err(|_| serde::de::Error::custom(format!("{text} is not a response code")))
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
