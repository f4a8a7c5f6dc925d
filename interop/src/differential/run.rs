//! A run: every server is started, asked everything, and judged.

use super::{Upstreams, ask_all, lacking, start};
use conform::differential::case::Case;
use conform::differential::generate::Plan;
use conform::differential::habit::Server;
use conform::differential::reading::Reading;
use conform::differential::table::{Answered, Counts, Verdict, judge};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How long an answer is waited for when some upstreams are silent: longer than a server tries (BIND, PowerDNS: 10 s);
/// Unbound goes on for minutes.
const LONG_PATIENCE: Duration = Duration::from_secs(20);

/// The same when all upstreams answer: only what is never answered takes so long.
const SHORT_PATIENCE: Duration = Duration::from_secs(8);

/// Unexplained answers of a server that are kept to be shown.
const SHOWN: usize = 20;

/// What a run has shown.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The servers and their counts.
    pub counts: Vec<(Server, Counts)>,
    /// Servers that this machine does not have, and why.
    pub left_out: Vec<(Server, String)>,
    /// Some of the answers that nothing explains.
    pub unexplained: Vec<Unexplained>,
    /// What the run itself could not do.
    pub faults: Vec<String>,
}

impl Outcome {
    /// Whether everything is explained, and Sixfold answers as the model says.
    pub fn is_explained(&self) -> bool {
        self.faults.is_empty() && self.counts.iter().all(|(_, counts)| counts.unexplained == 0)
    }
}

/// An answer that nothing explains.
#[derive(Debug)]
pub struct Unexplained {
    server: Server,
    case: Case,
    expected: Option<Reading>,
    answered: Answered,
}

/// Asks all servers the same names. `silence`: some upstreams do not answer, which takes a minute or two.
pub fn compare(names: usize, seed: u64, silence: bool) -> Result<Outcome, String> {
    let Plan { cases, world } = Plan::draw(names, seed, silence);
    let world = Arc::new(world);
    let upstreams = Upstreams::start(&world)?;
    let patience = if silence { LONG_PATIENCE } else { SHORT_PATIENCE };
    let mut outcome = Outcome::default();
    for server in [Server::Sixfold].into_iter().chain(Server::OTHERS) {
        if let Some(why) = lacking(server) {
            outcome.left_out.push((server, why));
            continue;
        }
        let mut running = start(server, &upstreams.zones());
        let answers = ask_all(running.port, &cases, patience);
        if !running.is_alive() {
            outcome.faults.push(format!("{} ended, log:\n{}", server.name(), running.log()));
        }
        let mut counts = Counts::default();
        let mut shown = 0;
        for (case, answered) in cases.iter().zip(answers) {
            let verdict = judge(server, case, &world, &answered);
            counts.add(&verdict);
            if let Verdict::Unexplained(expected) = verdict
                && shown < SHOWN
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
            writeln!(formatter, "left out: {}: {why}", server.name())?;
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
        writeln!(formatter, "{}: name {} ({}, {:?})", server.name(), case.number, case.asks, case.province)?;
        writeln!(formatter, "   asked: {name} {rtype}, flags {:?}, DO {dnssec_ok}", query.flags)?;
        match expected {
            Some(reading) => writeln!(formatter, "   expected: {reading}")?,
            None => writeln!(formatter, "   expected: no answer")?,
        }
        let how = if answered.was_cut { ", over TCP after a cut answer" } else { "" };
        match &answered.reading {
            Ok(Some(reading)) => write!(formatter, "   came ({} octets{how}): {reading}", answered.octets),
            Ok(None) => write!(formatter, "   came: no answer"),
            Err(why) => write!(formatter, "   came: {why}"),
        }
    }
}
