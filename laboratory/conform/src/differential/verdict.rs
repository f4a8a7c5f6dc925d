//! Verdict on a server's answer: compares it with the prediction from the server's quirks, and counts.

use super::case::{Case, UpstreamKind};
use super::normalized_answer::{NormalizedAnswer, Order, Rrset};
use super::predict::predict;
use super::quirk::{Quirk, Server};
use super::zone_data::ZoneData;
use domain::base::iana::{OptRcode, Rtype};
use std::collections::{BTreeMap, BTreeSet};

/// Largest answer over UDP of all servers in their default configuration.
const LARGEST: usize = 1232;

/// Octets by which the answer over TCP may be shorter than the truncated one: options that only the truncated one
/// had.
const SLACK: usize = 64;

/// Octets of a signature in an answer: the fixed parts of record and data (10 and 18 octets), two names, 64 octets.
const SIGNATURE: usize = 10 + 18 + 64 + 64;

/// Answer that came back from a server.
#[derive(Clone, Debug)]
pub struct ReceivedAnswer {
    /// The answer, over TCP if the first one was truncated; `None` if none came in time. The error says what is wrong
    /// with it.
    pub answer: Result<Option<NormalizedAnswer>, String>,
    /// The first answer was truncated.
    pub was_cut: bool,
    /// Octets of the answer.
    pub octets: usize,
    /// Duration in seconds, rounded up.
    pub seconds: u32,
}

/// Result of the comparison with Sixfold's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// An equal answer.
    Equal,
    /// Another answer, which the disagreements with these numbers explain.
    Explained(BTreeSet<u8>),
    /// Another answer without an explanation. The field is the expected answer.
    Unexplained(Option<NormalizedAnswer>),
}

/// Judges one answer.
pub fn judge(server: Server, case: &Case, zone_data: &ZoneData, answered: &ReceivedAnswer) -> Verdict {
    let is_repeated = answered.was_cut;
    let plain = predict(case, zone_data, &[], is_repeated);
    // An answer is truncated if and only if it does not fit (RFC 2181 section 9).
    let has_more = case.dnssec_ok() && server.quirks().contains(&Quirk::KeepsSignatureOfA);
    let slack = if has_more { SLACK + SIGNATURE } else { SLACK };
    // A failure of the second query does not show how long the first answer was.
    let failed = matches!(&answered.answer, Ok(Some(answer)) if answer.rcode == OptRcode::SERVFAIL);
    if answered.was_cut && !failed && answered.octets + slack <= case.udp_size().min(LARGEST) {
        return Verdict::Unexplained(plain);
    }
    if admits(&plain, answered) {
        return Verdict::Equal;
    }
    let quirks = server.quirks();
    let predicted = predict(case, zone_data, quirks, is_repeated);
    if quirks.contains(&Quirk::SilenceIsContagious) && is_of_silence(case, answered) {
        return Verdict::Explained(BTreeSet::from([Quirk::SilenceIsContagious.number()]));
    }
    if predicted == plain || !admits(&predicted, answered) {
        return Verdict::Unexplained(predicted);
    }
    // A quirk counts if the answer would differ without it. Two quirks may have the same effect, so a quirk is added
    // to those before it and counts if it changes their result.
    let mut numbers = BTreeSet::new();
    let mut so_far: Vec<Quirk> = Vec::new();
    let mut last = plain;
    for &quirk in quirks {
        so_far.push(quirk);
        let next = predict(case, zone_data, &so_far, is_repeated);
        let matters = if quirk == Quirk::ChainOrder {
            // This quirk permits another order; only the answer shows whether it has another order.
            let ordered = predicted.clone().map(|answer| NormalizedAnswer { order: Order::All, ..answer });
            !admits(&ordered, answered)
        } else {
            next != last
        };
        if matters {
            numbers.insert(quirk.number());
        }
        last = next;
    }
    Verdict::Explained(numbers)
}

/// True for SERVFAIL with no records but CNAMEs, for a name of the silent upstream.
fn is_of_silence(case: &Case, answered: &ReceivedAnswer) -> bool {
    let Ok(Some(answer)) = &answered.answer else { return false };
    let is_alias = |set: &Rrset| set.covered.unwrap_or(set.rtype) == Rtype::CNAME;
    case.upstream_kind == UpstreamKind::Silent
        && answer.rcode == OptRcode::SERVFAIL
        && answer.soa.is_none()
        && answer.sets.iter().all(is_alias)
}

fn admits(predicted: &Option<NormalizedAnswer>, answered: &ReceivedAnswer) -> bool {
    match (predicted, &answered.answer) {
        (Some(answer), Ok(Some(found))) => answer.admits(found, answered.seconds),
        (None, Ok(None)) => true,
        _ => false,
    }
}

/// Counts of one server.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Names asked.
    pub names: usize,
    /// Answers that equal Sixfold's.
    pub equal: usize,
    /// Answers that differ, with an explanation.
    pub explained: usize,
    /// Number of answers that each disagreement explains; several may explain one answer.
    pub by_number: BTreeMap<u8, usize>,
    /// Answers that differ, without an explanation.
    pub unexplained: usize,
}

impl Counts {
    /// Counts one verdict.
    pub fn add(&mut self, verdict: &Verdict) {
        self.names += 1;
        match verdict {
            Verdict::Equal => self.equal += 1,
            Verdict::Explained(numbers) => {
                self.explained += 1;
                for number in numbers {
                    *self.by_number.entry(*number).or_default() += 1;
                }
            }
            Verdict::Unexplained(_) => self.unexplained += 1,
        }
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
