//! Compares what servers answered with what their habits make of a case, and counts.

use super::case::{Case, Province};
use super::normalized_answer::{Order, Reading, Rrset};
use super::predict::predict;
use super::quirk::{Habit, Server};
use super::zone_data::World;
use domain::base::iana::{OptRcode, Rtype};
use std::collections::{BTreeMap, BTreeSet};

/// What all servers send over UDP at most, as they come.
const LARGEST: usize = 1232;

/// Octets by which the answer over TCP may be the shorter one: options that only the other had.
const SLACK: usize = 64;

/// A signature as it stands in an answer: the fixed parts of record and data (10 and 18 octets), two names, 64 octets.
const SIGNATURE: usize = 10 + 18 + 64 + 64;

/// What came back from a server.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The answer, over TCP if the first one was cut; none if nothing came in time; or what is
    /// wrong with it.
    pub reading: Result<Option<Reading>, String>,
    /// The first answer was cut.
    pub was_cut: bool,
    /// Octets of the answer.
    pub octets: usize,
    /// How many seconds it took, rounded up.
    pub seconds: u32,
}

/// What an answer is, beside Sixfold's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same.
    Equal,
    /// Another one, for the reasons that have these numbers.
    Explained(BTreeSet<u8>),
    /// Another one, and nobody knows why. This would have been expected.
    Unexplained(Option<Reading>),
}

/// Judges one answer.
pub fn judge(server: Server, case: &Case, world: &World, answered: &Answered) -> Verdict {
    let again = answered.was_cut;
    let plain = predict(case, world, &[], again);
    // An answer is cut when it does not fit (RFC 2181 section 9), and never otherwise.
    let has_more = case.dnssec_ok() && server.habits().contains(&Habit::KeepsSignatureOfA);
    let slack = if has_more { SLACK + SIGNATURE } else { SLACK };
    // What failed the second time does not show how long the first answer was.
    let failed = matches!(&answered.reading, Ok(Some(reading)) if reading.rcode == OptRcode::SERVFAIL);
    if answered.was_cut && !failed && answered.octets + slack <= case.udp_size().min(LARGEST) {
        return Verdict::Unexplained(plain);
    }
    if admits(&plain, answered) {
        return Verdict::Equal;
    }
    let habits = server.habits();
    let predicted = predict(case, world, habits, again);
    if habits.contains(&Habit::SilenceIsContagious) && is_of_silence(case, answered) {
        return Verdict::Explained(BTreeSet::from([Habit::SilenceIsContagious.number()]));
    }
    if predicted == plain || !admits(&predicted, answered) {
        return Verdict::Unexplained(predicted);
    }
    // A habit counts if the answer would be another one without it. Two may do the same, so one that counts together
    // with those before it does too.
    let mut numbers = BTreeSet::new();
    let mut so_far: Vec<Habit> = Vec::new();
    let mut last = plain;
    for &habit in habits {
        so_far.push(habit);
        let next = predict(case, world, &so_far, again);
        let matters = if habit == Habit::ChainOrder {
            // It allows another order; whether there is one is in the answer alone.
            let ordered = predicted.clone().map(|reading| Reading { order: Order::All, ..reading });
            !admits(&ordered, answered)
        } else {
            next != last
        };
        if matters {
            numbers.insert(habit.number());
        }
        last = next;
    }
    Verdict::Explained(numbers)
}

/// SERVFAIL with nothing but aliases, for a name of the upstream that is silent at times.
fn is_of_silence(case: &Case, answered: &Answered) -> bool {
    let Ok(Some(reading)) = &answered.reading else { return false };
    let is_alias = |set: &Rrset| set.covered.unwrap_or(set.rtype) == Rtype::CNAME;
    case.province == Province::Silent
        && reading.rcode == OptRcode::SERVFAIL
        && reading.soa.is_none()
        && reading.sets.iter().all(is_alias)
}

fn admits(predicted: &Option<Reading>, answered: &Answered) -> bool {
    match (predicted, &answered.reading) {
        (Some(reading), Ok(Some(found))) => reading.admits(found, answered.seconds),
        (None, Ok(None)) => true,
        _ => false,
    }
}

/// The counts of a server.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Names asked.
    pub names: usize,
    /// Answers that are Sixfold's.
    pub equal: usize,
    /// Answers that are not, with a reason.
    pub explained: usize,
    /// How many of these have which number; some have several.
    pub by_number: BTreeMap<u8, usize>,
    /// Answers that are not, without a reason.
    pub unexplained: usize,
}

impl Counts {
    /// Counts one more.
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
