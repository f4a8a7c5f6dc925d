//! Run: starts every server, sends all questions to it, and judges its answers.

use super::{Upstreams, ask_all};
use crate::installed::Installed;
use crate::requirement::Unable;
use conform::differential::case::Case;
use conform::differential::generate::Plan;
use conform::differential::normalized_answer::NormalizedAnswer;
use conform::differential::quirk::Server;
use conform::differential::verdict::{Counts, ReceivedAnswer, Verdict, judge};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Time to wait for an answer if some upstreams are silent: longer than a server tries (BIND, PowerDNS: 10 s).
/// Unbound tries for minutes.
const TIMEOUT_WITH_SILENCE: Duration = Duration::from_secs(20);

/// Time to wait for an answer if all upstreams answer: only a question that is never answered takes so long.
const TIMEOUT: Duration = Duration::from_secs(8);

/// Unexplained answers of one server that are kept for display.
const MAX_SHOWN: usize = 20;

/// Result of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Servers and their counts.
    pub counts: Vec<(Server, Counts)>,
    /// Servers that this machine does not have, with the reason.
    pub left_out: Vec<(Server, Unable)>,
    /// Some of the unexplained answers.
    pub unexplained: Vec<Unexplained>,
    /// Errors of the run itself.
    pub faults: Vec<String>,
}

impl Outcome {
    /// True if every difference is explained, and Sixfold answers as predicted.
    pub fn is_explained(&self) -> bool {
        self.faults.is_empty() && self.counts.iter().all(|(_, counts)| counts.unexplained == 0)
    }
}

/// Answer without an explanation.
#[derive(Debug)]
pub struct Unexplained {
    server: Server,
    case: Case,
    expected: Option<NormalizedAnswer>,
    answered: ReceivedAnswer,
}

/// Sends the same questions to all servers. `silence`: some upstreams do not answer, which takes a minute or two.
///
/// # Errors
///
/// As [`Upstreams::start`]. A server that is not installed is left out, and said so in the outcome.
pub fn compare(names: usize, seed: u64, silence: bool) -> Result<Outcome, String> {
    let Plan { cases, zone_data } = Plan::draw(names, seed, silence);
    let zone_data = Arc::new(zone_data);
    let upstreams = Upstreams::start(&zone_data)?;
    let timeout = if silence { TIMEOUT_WITH_SILENCE } else { TIMEOUT };
    let mut outcome = Outcome::default();
    for server in [Server::Sixfold].into_iter().chain(Server::OTHERS) {
        let installed = Installed::here(server);
        if let Some(why) = installed.missing() {
            outcome.left_out.push((server, why));
            continue;
        }
        let mut running = installed.start(&upstreams.task());
        let answers = ask_all(running.port, &cases, timeout);
        if !running.is_alive() {
            outcome.faults.push(format!("{} ended, log:\n{}", server.name(), running.log()));
        }
        let mut counts = Counts::default();
        let mut shown = 0;
        for (case, answered) in cases.iter().zip(answers) {
            let verdict = judge(server, case, &zone_data, &answered);
            counts.add(&verdict);
            if let Verdict::Unexplained(expected) = verdict
                && shown < MAX_SHOWN
            {
                shown += 1;
                outcome.unexplained.push(Unexplained { server, case: case.clone(), expected, answered });
            }
        }
        outcome.counts.push((server, counts));
    }
    outcome.faults.extend(upstreams.faults());
    Ok(outcome)
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for unexplained in &self.unexplained {
            writeln!(formatter, "{unexplained}\n")?;
        }
        for fault in &self.faults {
            writeln!(formatter, "the run: {fault}")?;
        }
        for (server, why) in &self.left_out {
            writeln!(formatter, "left out: {}: {}", server.name(), why.why())?;
        }
        let Some((_, sixfold)) = self.counts.first() else { return Ok(()) };
        writeln!(
            formatter,
            "Sixfold: {} names, {} not as the model says",
            sixfold.names, sixfold.unexplained
        )?;
        let others = &self.counts[1..];
        let row = |formatter: &mut fmt::Formatter<'_>, title: &str, cell: &dyn Fn(&Counts) -> usize| {
            write!(formatter, "| {title} |")?;
            for (_, counts) in others {
                write!(formatter, " {} |", cell(counts))?;
            }
            writeln!(formatter)
        };
        let names: Vec<&str> = others.iter().map(|(server, _)| server.name()).collect();
        writeln!(formatter, "| | {} |\n| --- |{}", names.join(" | "), " ---: |".repeat(names.len()))?;
        row(formatter, "names", &|counts| counts.names)?;
        row(formatter, "same as Sixfold", &|counts| counts.equal)?;
        row(formatter, "different, explained", &|counts| counts.explained)?;
        let numbers: std::collections::BTreeSet<u8> =
            others.iter().flat_map(|(_, counts)| counts.by_number.keys().copied()).collect();
        for number in numbers {
            let cell = |counts: &Counts| counts.by_number.get(&number).copied().unwrap_or(0);
            row(formatter, &format!("by {number}"), &cell)?;
        }
        row(formatter, "different, unexplained", &|counts| counts.unexplained)
    }
}

impl fmt::Display for Unexplained {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unexplained { server, case, expected, answered } = self;
        let query = &case.query;
        let (name, rtype, dnssec_ok) = (query.name.fmt_with_dot(), query.rtype, case.dnssec_ok());
        writeln!(
            formatter,
            "{}: name {} ({}, {:?})",
            server.name(),
            case.number,
            case.kind,
            case.upstream_kind
        )?;
        writeln!(formatter, "   asked: {name} {rtype}, flags {:?}, DO {dnssec_ok}", query.flags)?;
        match expected {
            Some(answer) => writeln!(formatter, "   expected: {answer}")?,
            None => writeln!(formatter, "   expected: no answer")?,
        }
        let how = if answered.was_cut { ", over TCP after a cut answer" } else { "" };
        match &answered.answer {
            Ok(Some(answer)) => write!(formatter, "   came ({} octets{how}): {answer}", answered.octets),
            Ok(None) => write!(formatter, "   came: no answer"),
            Err(why) => write!(formatter, "   came: {why}"),
        }
    }
}
