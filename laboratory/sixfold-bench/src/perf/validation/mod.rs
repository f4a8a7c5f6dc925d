//! Experiment 10: what validation costs. All names are new, no name has an AAAA record, and the keys of the zones are known after the first
//! name: a resolution takes two upstream questions, and two verifications if the zone is signed, of the NSEC record that proves that there
//! is no AAAA record, and of the A record.
//!
//! Sixfold is compared with itself: what it takes without validation, and two bare verifications by the same library in the same round.
//! Other validators have the same authority, trust anchor and load. Further parts are the first name of a zone ([`first_names`]) and memory
//! ([`footprint`]).
//!
//! First file to read: `zones.rs`, then `replies.rs` and `leaves.rs`.

mod bare;
mod contender;
mod first_names;
mod footprint;
mod keys;
mod leaves;
mod question;
mod records;
mod replies;
mod zones;

use crate::perf::device::Device;
use crate::perf::kind::Kind;
use crate::perf::limits;
use crate::perf::names;
use crate::perf::section::{Bound, Goal, Section, cell, ratios, table_of};
use crate::perf::series::{self, Series, Timing};
use crate::perf::tester::{Answers, Names, Pace, Tester};
use authority::{Settings, Source};
use bare::Bare;
use contender::Contender;
use footprint::Footprint;
use keys::Algorithm;
use question::check_validation;
use report::table::Table;
use serde_json::{Value, json};
use servers::TrustAnchor;
use std::io;
use std::sync::Arc;
use zones::Zones;

/// Highest cost of Sixfold as a share of that without validation and two bare verifications.
const GOAL: f64 = 1.1;

/// Highest cost of Sixfold as a share of Unbound's: by algorithm, and in a zone that is not signed.
const GOALS: [(Option<Algorithm>, f64); 4] = [
    (Some(Algorithm::EcdsaP256), 0.5),
    (Some(Algorithm::Ed25519), 0.25),
    (Some(Algorithm::Rsa2048), 0.3),
    (None, 0.3),
];

/// Name of the load in JSON.
const LOAD: [&str; 1] = ["closed loop"];

/// Measurements in one zone.
struct Measured {
    algorithm: Option<Algorithm>,
    /// One series for each contender.
    series: Vec<Series>,
    bare: Bare,
}

impl Measured {
    fn name(&self) -> &'static str {
        self.algorithm.map_or("unsigned", Algorithm::name)
    }
}

/// Measures the devices in turn, in rounds, in zones of each algorithm and in one that is not signed. Each device is restarted for each
/// round.
///
/// # Errors
///
/// A device cannot be started, gives no right answer, does not validate, or a socket fails.
pub fn measure(devices: &[Device], timing: Timing) -> io::Result<Section> {
    let servers = || devices.iter().filter(|device| device.kind.is_server());
    let own = servers().filter(|device| device.kind == Kind::Sixfold);
    let mut contenders: Vec<_> = own.map(|device| Contender { device, validates: false }).collect();
    contenders.extend(servers().map(|device| Contender { device, validates: true }));
    let (mut plain, zones) = tester(None, timing)?;
    let left_out = leave_out(&mut contenders, &mut plain, &zones.trust_anchor())?;
    let mut all = Vec::new();
    let mut footprints = [Footprint::default(), Footprint::default()];
    for (algorithm, _) in GOALS {
        let (mut signed, zones) = tester(algorithm, timing)?;
        let anchor = zones.trust_anchor();
        all.push(measure_zone(algorithm, &contenders, (&mut plain, &mut signed, &zones), timing)?);
        if algorithm == Some(Algorithm::EcdsaP256) {
            for round in 1..=timing.rounds {
                for contender in contenders.iter().filter(|one| one.device.kind == Kind::Sixfold) {
                    eprintln!("validation: memory, round {round} of {}, {}", timing.rounds, contender.name());
                    let tester = if contender.validates { &mut signed } else { &mut plain };
                    footprints[usize::from(contender.validates)].measure(
                        contender,
                        (tester, &anchor),
                        timing,
                    )?;
                }
            }
        }
    }
    let first = first_names::measure(&contenders, timing.rounds)?;
    let mut section = section(&contenders, &all, &first, &footprints, timing);
    section.notes.extend(left_out);
    Ok(section)
}

/// Leaves servers of other projects out that do not start or do not validate, so that they end no long run. Returns the reasons.
fn leave_out(
    contenders: &mut Vec<Contender<'_>>,
    tester: &mut Tester,
    anchor: &TrustAnchor,
) -> io::Result<Vec<String>> {
    let (mut left_out, mut kept) = (Vec::new(), Vec::new());
    for contender in contenders.drain(..) {
        tester.start_over();
        let started = series::start(tester, contender.device, contender.setup(anchor));
        let fit = started.and_then(|running| match contender.validates {
            true => check_validation(tester, running.address),
            false => Ok(()),
        });
        match fit {
            Err(error) if contender.device.kind == Kind::Sixfold => return Err(error),
            Err(error) => left_out.push(format!("Left out: {}: {error}", contender.name())),
            Ok(()) => kept.push(contender),
        }
    }
    *contenders = kept;
    Ok(left_out)
}

/// A tester whose zone with the many names has this algorithm, or is not signed.
fn tester(algorithm: Option<Algorithm>, timing: Timing) -> io::Result<(Tester, Arc<Zones>)> {
    let seconds = (timing.warm_up + timing.window).as_secs_f64();
    let count = (limits::VALIDATION_RATE * seconds).ceil() as u64 + 2 * limits::VALIDATION_SPARE;
    eprintln!(
        "validation: {}",
        algorithm.map_or_else(
            || "a zone without signatures".to_owned(),
            |algorithm| format!("signing {count} names, {}", algorithm.name()),
        )
    );
    let zones = Arc::new(Zones::new(algorithm, count as usize, 1)?);
    let count = if algorithm.is_some() { count } else { names::NAMES };
    let source: Arc<dyn Source> = zones.clone();
    Ok((Tester::serving(&Settings::new(source), count)?, zones))
}

/// Measures all contenders in one zone: those without validation with the tester without signatures.
fn measure_zone(
    algorithm: Option<Algorithm>,
    contenders: &[Contender<'_>],
    (plain, signed, zones): (&mut Tester, &mut Tester, &Zones),
    timing: Timing,
) -> io::Result<Measured> {
    let series = contenders.iter().map(|_| Series::default()).collect();
    let mut measured = Measured { algorithm, series, bare: Bare::default() };
    let (anchor, samples) = (zones.trust_anchor(), zones.samples(limits::VALIDATION_SAMPLES));
    for round in 1..=timing.rounds {
        let zone = measured.name();
        for (contender, series) in contenders.iter().zip(&mut measured.series) {
            eprintln!("validation: {zone}, round {round} of {}, {}", timing.rounds, contender.name());
            let tester = if contender.validates { &mut *signed } else { &mut *plain };
            tester.start_over();
            let running = series::start(tester, contender.device, contender.setup(&anchor))?;
            if contender.validates {
                check_validation(tester, running.address)?;
            }
            let load = timing.load(Pace::Closed(limits::WINDOW), Names::Fresh(Answers::Synthesized));
            series::run(tester, &running, (0, &load), series)?;
        }
        if let Some((key, samples)) = &samples {
            measured.bare.measure((key, samples), timing.window, plain)?;
        }
    }
    Ok(measured)
}

fn section(
    contenders: &[Contender<'_>],
    all: &[Measured],
    first: &first_names::FirstNames,
    [trusting, validating]: &[Footprint; 2],
    timing: Timing,
) -> Section {
    let mut tables: Vec<Table> = Vec::new();
    let mut charts = Vec::new();
    for measured in all {
        let names = contenders.iter().map(Contender::name);
        let named: Vec<(String, &Series)> = names.zip(&measured.series).collect();
        let title = format!("closed loop, {}", measured.name());
        tables.push(series::table(0, &title, &named));
        charts.push(series::chart(0, &title, &named));
    }
    let place = |validates| {
        contenders.iter().position(|one| one.device.kind == Kind::Sixfold && one.validates == validates)
    };
    tables.extend([bare_table(all), first.table(), footprint::table(trusting, validating)]);
    let mut goals = goals(contenders, all, [place(false), place(true)]);
    goals.extend(first.goals(place(true), place(false)));
    goals.push(footprint::goal(trusting, validating));
    Section {
        key: "validation",
        title: "What validation costs",
        notes: notes(timing),
        tables,
        charts,
        goals,
        data: json!({
            "zones": all.iter().map(|one| (one.name(), zone_json(contenders, one))).collect::<Value>(),
            "first_names": first.json(),
            "memory": footprint::json(trusting, validating),
        }),
    }
}

/// Goals for CPU time. `own`: places of Sixfold without validation, and with it.
fn goals(contenders: &[Contender<'_>], all: &[Measured], own: [Option<usize>; 2]) -> Vec<Goal> {
    let mut goals = Vec::new();
    for (measured, (_, limit)) in all.iter().zip(GOALS) {
        let costs = |place: usize| measured.series[place].costs(0);
        let [trusting, validating] = own.map(|place| place.map(costs));
        let zone = measured.name();
        if measured.algorithm.is_some() {
            let least: Option<Vec<f64>> = trusting.map(|costs| {
                costs.iter().zip(&measured.bare.beside_load).map(|(cost, bare)| cost + 2.0 * bare).collect()
            });
            goals.push(Goal {
                ratio: format!("validate / (trust + 2 bare verifications), {zone}"),
                bound: Bound::AtMost(GOAL),
                measured: validating.as_ref().zip(least).and_then(|(with, least)| ratios(with, &least)),
            });
        }
        for (place, rival) in contenders.iter().enumerate() {
            if rival.device.kind == Kind::Unbound {
                goals.push(Goal {
                    ratio: format!("sixfold / {}, both validate, {zone}", rival.device.name()),
                    bound: Bound::AtMost(limit),
                    measured: validating.as_ref().and_then(|with| ratios(with, &costs(place))),
                });
            }
        }
    }
    goals
}

/// Table of the bare verifications.
fn bare_table(all: &[Measured]) -> Table {
    let row = |measured: &Measured| {
        let Bare { alone, beside_load } = &measured.bare;
        let per_second: Vec<f64> = alone.iter().map(|us| 1e6 / us).collect();
        vec![measured.name().to_owned(), cell(alone, 2), cell(beside_load, 2), cell(&per_second, 0)]
    };
    table_of(
        "one bare verification by AWS-LC",
        &["algorithm", "alone, us", "beside the load, us", "alone, per second"],
        all.iter().filter(|measured| measured.algorithm.is_some()).map(row).collect(),
    )
}

fn zone_json(contenders: &[Contender<'_>], measured: &Measured) -> Value {
    let series = contenders.iter().zip(&measured.series);
    let devices: Value = series.map(|(one, series)| (one.name(), series.json(&LOAD))).collect();
    let Bare { alone, beside_load } = &measured.bare;
    json!({"devices": devices, "bare_us": {"alone": alone, "beside_load": beside_load}})
}

/// The notes of the report.
fn notes(timing: Timing) -> Vec<String> {
    vec![
        format!(
            "Device on core 0 with one worker and its default settings for validation, all of its threads there; client and authoritative \
             server on core 1, {} queries outstanding, all names new. `trust`: the device asks the same questions and validates nothing. \
             `validate`: the device has the trust anchor of the parent zone; before the load it gave AD to a signed name, and SERVFAIL to \
             one with a wrong signature. A name has an A record and its own NSEC record. Figures are median [lowest-highest] of {} \
             rounds; ratios are taken within a round.",
            limits::WINDOW,
            timing.rounds
        ),
        "A bare verification is that of AWS-LC with the key of a DNSKEY record, on core 0: while core 1 has nothing to do, and while the \
         tester there asks its own authority. The goal takes the second figure, since the devices run beside the tester too."
            .to_owned(),
        format!(
            "New zones: one question at a time, {} zones in each round. Questions are those that arrive at the authority, tries \
             again among them.",
            limits::VALIDATION_ZONES
        ),
    ]
}
