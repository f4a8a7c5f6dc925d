//! Expectation for an answer, and its comparison with the answer: differences in words, none if all holds. Those of the
//! answer stand apart from those of the queries to the upstream, which no client sees.

use crate::json::Object;
use crate::message::{Answer, Flag, Transport};
use crate::query::{Query, Subnet};
use crate::record::{self, Pattern, Record};
use crate::rrset::{self, Order};
use crate::upstream::ReceivedQuery;
use domain::base::iana::{Opcode, OptRcode, Rtype};
use domain::rdata::ZoneRecordData;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

/// Expectation for one answer. An absent field is not compared. The fields are those of the case format.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// The response code is one of these.
    #[serde(deserialize_with = "rcodes")]
    pub rcode: Option<Vec<OptRcode>>,
    /// Exactly these flags are set.
    pub flags: Option<Vec<Flag>>,
    /// Flags that are not compared.
    pub flags_free: Vec<Flag>,
    /// The answer section has exactly these records.
    pub answer: Option<Vec<Pattern>>,
    /// The order of the RRsets in the answer section is free.
    pub any_order: bool,
    /// The order inside an RRset counts too.
    pub ordered: bool,
    /// The answer section has at least these records.
    pub answer_has: Vec<Pattern>,
    /// Number of records in the answer section.
    pub answer_count: Option<usize>,
    /// No address in the answer section lies in these networks.
    pub answer_excludes: Vec<Subnet>,
    /// No section has a record of these types.
    #[serde(deserialize_with = "record::all_parsed")]
    pub no_types: Vec<Rtype>,
    /// The authority section has exactly these records.
    pub authority: Option<Vec<Pattern>>,
    /// The additional section has exactly these records.
    pub additional: Option<Vec<Pattern>>,
    /// DO bit in the OPT record of the answer (RFC 3225 section 3).
    pub edns_do: Option<bool>,
    /// The answer has all of these extended errors.
    pub ede: Vec<u16>,
    /// The answer has one of these extended errors.
    pub ede_any: Vec<u16>,
    /// The answer came within this time.
    pub within_ms: Option<u64>,
    /// The upstream received exactly these questions.
    pub upstream_queries: Option<Vec<String>>,
    /// The upstream received none of these questions.
    pub upstream_never: Vec<String>,
    /// The upstream received these questions, perhaps among others.
    pub upstream_some: Vec<String>,
    /// Transport of the upstream queries for the name in the client's query.
    pub upstream_transport: Option<Transport>,
    /// Client subnet of the upstream queries for the name in the client's query; `Some(None)`: they have none.
    #[serde(deserialize_with = "present")]
    pub upstream_ecs: Option<Option<Subnet>>,
    /// No answer comes.
    pub silence: bool,
    /// An answer may come or not.
    pub silence_ok: bool,
}

/// Differences between an exchange and its expectation, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// Differences that the client sees.
    pub answer: Vec<String>,
    /// Differences of the queries that the upstream got.
    pub upstream: Vec<String>,
}

impl Differences {
    /// True if all holds.
    pub fn is_empty(&self) -> bool {
        self.answer.is_empty() && self.upstream.is_empty()
    }

    /// All differences, those of the answer first.
    pub fn all(self) -> Vec<String> {
        self.answer.into_iter().chain(self.upstream).collect()
    }

    /// Writes `prefix` before each difference.
    #[must_use]
    pub fn prefixed(self, prefix: &str) -> Differences {
        let add = |list: Vec<String>| list.into_iter().map(|it| format!("{prefix}{it}")).collect();
        Differences { answer: add(self.answer), upstream: add(self.upstream) }
    }
}

/// Observed exchange of a step.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The query of the step.
    pub query: &'a Query,
    /// Octets of the query.
    pub sent: &'a [u8],
    /// Octets of the answer.
    pub answer: Option<&'a [u8]>,
    /// Time between query and answer.
    pub elapsed: Duration,
    /// Queries that reached the upstream.
    pub upstream: &'a [ReceivedQuery],
}

impl Expect {
    /// Reads an expectation with its `any_of`: each alternative overrides fields of the rest.
    ///
    /// # Errors
    ///
    /// A field is unknown or has no meaning, or `any_of` is no list of objects, or is empty.
    pub fn alternatives(written: &Object) -> Result<Vec<Expect>, String> {
        let read = |object: Object| {
            serde_json::from_value::<Expect>(Value::Object(object))
                .map_err(|error| format!("expect: {error}"))
        };
        let mut shared = written.clone();
        let Some(any_of) = shared.remove("any_of") else { return Ok(vec![read(shared)?]) };
        let any_of: Vec<Object> =
            serde_json::from_value(any_of).map_err(|error| format!("any_of: {error}"))?;
        if any_of.is_empty() {
            return Err("any_of is empty".to_owned());
        }
        let lay = |own: Object| read(shared.clone().into_iter().chain(own).collect());
        any_of.into_iter().map(lay).collect()
    }

    /// Compares the exchange with this expectation; returns the differences.
    fn differences(&self, observation: &Observation) -> Differences {
        let (mut differences, mut upstream) = (Vec::new(), Vec::new());
        match observation.answer {
            None if self.silence || self.silence_ok => {}
            None => differences.push(format!("no answer in {} ms", observation.elapsed.as_millis())),
            Some(octets) if self.silence => {
                differences.push(format!("silence expected, {} octets came", octets.len()))
            }
            Some(octets) if observation.query.raw.is_some() => {
                // The answer to octets that are no query need not be well-formed, but it has a header.
                let rcode = octets.get(3).map(|octet| OptRcode::masked_from_int(u16::from(octet & 15)));
                self.compare_rcode(rcode, &mut differences);
            }
            Some(octets) => match Answer::read(octets) {
                Ok(answer) => self.compare(observation, &answer, &mut differences),
                Err(error) => differences.push(format!("the answer cannot be read: {error}")),
            },
        }
        self.compare_upstream(observation, &mut upstream);
        Differences { answer: differences, upstream }
    }

    fn compare(&self, observation: &Observation, answer: &Answer, differences: &mut Vec<String>) {
        self.compare_rcode(Some(answer.rcode), differences);
        if let Some(flags) = &self.flags {
            let looked_at = |flag: &&Flag| !self.flags_free.contains(flag);
            let expected: BTreeSet<&Flag> = flags.iter().filter(looked_at).collect();
            let found: BTreeSet<&Flag> = answer.flags.iter().filter(looked_at).collect();
            if expected != found {
                differences.push(format!("flags: {}, expected {}", names(&found), names(&expected)));
            }
        }
        if let Some(expected) = &self.answer {
            let order = match (self.any_order, self.ordered) {
                (false, false) => Order::Rrsets,
                (false, true) => Order::Records,
                (true, false) => Order::Free,
                (true, true) => Order::InsideRrsets,
            };
            differences.extend(rrset::exactly("answer", expected, &answer.answer, order));
        }
        differences.extend(rrset::at_least("answer", &self.answer_has, &answer.answer));
        if let Some(expected) = &self.authority {
            differences.extend(rrset::exactly("authority", expected, &answer.authority, Order::Free));
        }
        if let Some(expected) = &self.additional {
            differences.extend(rrset::exactly("additional", expected, &answer.additional, Order::Free));
        }
        self.compare_addresses_and_types(answer, differences);
        if self.edns_do.is_some() && answer.dnssec_ok != self.edns_do {
            let said = |dnssec_ok| match dnssec_ok {
                Some(true) => "set",
                Some(false) => "clear",
                None => "absent",
            };
            differences.push(format!("DO: {}, expected {}", said(answer.dnssec_ok), said(self.edns_do)));
        }
        self.compare_errors(answer, differences);
        if let Some(within_ms) = self.within_ms
            && observation.elapsed > Duration::from_millis(within_ms)
        {
            let elapsed_ms = observation.elapsed.as_millis();
            differences
                .push(format!("the answer came after {elapsed_ms} ms, expected within {within_ms} ms"));
        }
    }

    fn compare_rcode(&self, found: Option<OptRcode>, differences: &mut Vec<String>) {
        let Some(rcodes) = &self.rcode else { return };
        if !found.is_some_and(|found| rcodes.contains(&found)) {
            let expected: Vec<String> = rcodes.iter().map(ToString::to_string).collect();
            let found = found.map_or_else(|| "none".to_owned(), |found| found.to_string());
            differences.push(format!("RCODE: {found}, expected {}", expected.join(" or ")));
        }
    }

    fn compare_addresses_and_types(&self, answer: &Answer, differences: &mut Vec<String>) {
        if let Some(expected) = self.answer_count
            && answer.answer.len() != expected
        {
            differences.push(format!("answer: {} records, expected {expected}", answer.answer.len()));
        }
        for record in &answer.answer {
            let excluded = address(record)
                .is_some_and(|address| self.answer_excludes.iter().any(|network| network.contains(address)));
            if excluded {
                differences
                    .push(format!("answer: an address that must not be there: {}", record::line(record)));
            }
        }
        for record in answer.answer.iter().chain(&answer.authority).chain(&answer.additional) {
            if self.no_types.contains(&record.rtype()) {
                differences
                    .push(format!("a record of a type that must not be there: {}", record::line(record)));
            }
        }
    }

    fn compare_errors(&self, answer: &Answer, differences: &mut Vec<String>) {
        let found = &answer.extended_errors;
        for expected in self.ede.iter().filter(|code| !found.contains(code)) {
            differences.push(format!("extended error {expected} is missing, found {found:?}"));
        }
        if !self.ede_any.is_empty() && !self.ede_any.iter().any(|code| found.contains(code)) {
            differences.push(format!("none of the extended errors {:?}, found {found:?}", self.ede_any));
        }
    }

    fn compare_upstream(&self, observation: &Observation, differences: &mut Vec<String>) {
        let name = observation.query.name.fmt_with_dot().to_string().to_ascii_lowercase();
        // `A` is short for the type A and the name of the query.
        let full = |written: &String| match written.split_once(' ') {
            Some((name, rtype)) => format!("{} {rtype}", name.to_ascii_lowercase()),
            None => format!("{name} {written}"),
        };
        let found: BTreeSet<String> = observation
            .upstream
            .iter()
            .map(|seen| format!("{} {}", seen.lower_case_name(), seen.rtype))
            .collect();
        let listed = |set: &BTreeSet<String>| {
            if set.is_empty() {
                "nothing".to_owned()
            } else {
                set.iter().cloned().collect::<Vec<_>>().join(", ")
            }
        };
        if let Some(expected) = &self.upstream_queries {
            let expected: BTreeSet<String> = expected.iter().map(full).collect();
            if expected != found {
                differences.push(format!(
                    "the upstream saw {}, expected {}",
                    listed(&found),
                    listed(&expected)
                ));
            }
        }
        for question in self.upstream_never.iter().map(full).filter(|question| found.contains(question)) {
            differences.push(format!("the upstream saw {question}, which must never be asked"));
        }
        for question in self.upstream_some.iter().map(full).filter(|question| !found.contains(question)) {
            differences.push(format!("the upstream did not see {question}, only {}", listed(&found)));
        }
        for seen in observation.upstream.iter().filter(|seen| seen.lower_case_name() == name) {
            if let Some(expected) = self.upstream_transport
                && seen.transport != expected
            {
                let (found, expected) = (seen.transport.name(), expected.name());
                differences.push(format!("{} was asked over {found}, expected {expected}", seen.rtype));
            }
            if let Some(expected) = self.upstream_ecs
                && seen.subnet != expected
            {
                let (found, rtype) = (subnet(seen.subnet), seen.rtype);
                differences.push(format!("{rtype} had {found}, expected {}", subnet(expected)));
            }
        }
    }
}

/// Compares an exchange with all alternatives. Returns no differences if one alternative holds and the answer obeys
/// the protocol. If an alternative holds but for the queries to the upstream, these are the differences; otherwise the
/// differences from every alternative.
pub fn judge(alternatives: &[Expect], observation: &Observation) -> Differences {
    let mut differences = Differences { answer: protocol_errors(observation), upstream: Vec::new() };
    let each: Vec<Differences> = alternatives.iter().map(|expect| expect.differences(observation)).collect();
    if each.iter().any(Differences::is_empty) {
        return differences;
    }
    let number = |index: usize| {
        if each.len() == 1 { String::new() } else { format!("alternative {}: ", index + 1) }
    };
    let is_answered = each.iter().any(|own| own.answer.is_empty());
    for (index, own) in each.iter().enumerate() {
        if is_answered && !own.answer.is_empty() {
            continue;
        }
        let own = own.clone().prefixed(&number(index));
        differences.answer.extend(own.answer);
        differences.upstream.extend(own.upstream);
    }
    differences
}

/// Checks the rules that every answer to a proper query must obey, whatever the case says.
fn protocol_errors(observation: &Observation) -> Vec<String> {
    let Observation { query, sent, answer: Some(octets), .. } = *observation else { return Vec::new() };
    if query.raw.is_some() {
        return Vec::new();
    }
    let mut differences = Vec::new();
    let client_takes = query.edns.as_ref().map_or(512, |edns| usize::from(edns.udp.max(512)));
    if query.transport == Transport::Udp && octets.len() > client_takes {
        differences.push(format!("{} octets over UDP, the client takes {client_takes}", octets.len()));
    }
    // The comparison with the expectation reports that the answer cannot be read.
    let Ok(answer) = Answer::read(octets) else { return differences };
    if sent[..2] != answer.id.to_be_bytes() {
        differences.push("the answer has another ID than the question".to_owned());
    }
    if !answer.flags.contains(&Flag::Qr) {
        differences.push("QR is not set".to_owned());
    }
    let version = query.edns.as_ref().map_or(0, |edns| edns.version);
    if query.qdcount == 1 && query.opcode == Opcode::QUERY && version == 0 {
        let length = answer.question.len();
        if sent.get(12..12 + length) != Some(answer.question.as_slice()) || length == 0 {
            differences.push("the question section is not the one that was sent".to_owned());
        }
    }
    let expected = usize::from(query.edns.is_some());
    if answer.opt_records != expected {
        differences.push(format!("{} OPT records, expected {expected}", answer.opt_records));
    }
    differences
}

fn address(record: &Record) -> Option<IpAddr> {
    match record.data() {
        ZoneRecordData::A(data) => Some(IpAddr::V4(data.addr())),
        ZoneRecordData::Aaaa(data) => Some(IpAddr::V6(data.addr())),
        _ => None,
    }
}

fn names(flags: &BTreeSet<&Flag>) -> String {
    flags.iter().map(|flag| flag.name()).collect::<Vec<_>>().join(" ")
}

fn subnet(subnet: Option<Subnet>) -> String {
    match subnet {
        Some(Subnet { address, length }) => format!("client subnet {address}/{length}"),
        None => "no client subnet".to_owned(),
    }
}

/// Reads one name or a list of names.
fn rcodes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<OptRcode>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        One(String),
        Several(Vec<String>),
    }
    let names = match Written::deserialize(deserializer)? {
        Written::One(name) => vec![name],
        Written::Several(names) => names,
    };
    let read = |name: &String| {
        name.parse().map_err(|_| serde::de::Error::custom(format!("{name} is not a response code")))
    };
    names.iter().map(read).collect::<Result<_, _>>().map(Some)
}

/// Tells a field that is `null` from an absent one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Subnet>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

#[cfg(test)]
#[path = "expect_tests.rs"]
mod tests;
