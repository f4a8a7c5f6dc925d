//! Attacks on the time of validators: one network asks for new names in zones that cost much to validate (`signed_zones::attacks`), while
//! others ask for cached names, for new names of an unsigned zone, and for new names of a signed one. Compared are the share of right
//! answers and the latency that the others get, with the attack and without it.
//!
//! One authority gives all zones. First file to read: `clients.rs`, then `source.rs`.

mod clients;
mod limits;
mod source;

use crate::perf::device::Device;
use crate::perf::kind::{self, Setup};
use crate::perf::networks;
use crate::perf::section::{Bound, Goal, Section, cell, summary, table_of};
use crate::perf::series::Timing;
use authority::{Server, Settings, Source};
use clients::{Clients, Kind, Phase, Report};
use report::table::Table;
use serde_json::{Value, json};
use servers::TrustAnchor;
use signed_zones::attacks::{Attack, Sizes};
use source::AttackedZones;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Lowest share of the honest questions with the right answer in time.
const KEPT: f64 = 0.999;

/// Highest 99th percentiles of the latency, as multiples of those without the attack.
const LATENCY: [(Kind, f64); 3] = [(Kind::Cached, 1.05), (Kind::Unsigned, 1.1), (Kind::Signed, 1.5)];

/// Reports of a round: without an attack, and at each of [`limits::ATTACK_RATES`].
type Round = [Report; 1 + limits::ATTACK_RATES.len()];

/// Rounds of a device, by attack.
struct Measured {
    device: String,
    is_own: bool,
    rounds: Vec<(Attack, Vec<Round>)>,
}

/// Attacks of a run that only shows that everything runs: one whose zone is refused, and one whose names are answered.
const QUICK: [Attack; 2] = [Attack::SmallKeyTrap, Attack::Hammer];

/// Measures the devices in turn, in rounds, under all attacks; under two small ones if `is_quick`. Each device is started anew for each
/// attack. `has_networks`: addresses of many networks may be added.
///
/// # Errors
///
/// The authority cannot be started, or Sixfold does not answer or does not validate. Another server that does not is left out, with a note.
pub fn measure(
    devices: &[Device],
    timing: Timing,
    has_networks: bool,
    is_quick: bool,
) -> io::Result<Section> {
    let (attacks, sizes) =
        if is_quick { (&QUICK[..], Sizes::SMALL) } else { (&Attack::ALL[..], Sizes::FULL) };
    let mut notes = vec![note(timing)];
    let servers: Vec<&Device> = devices.iter().filter(|device| device.kind.is_server()).collect();
    let mut all: Vec<Measured> = servers.iter().map(|device| Measured::new(device)).collect();
    if has_networks {
        networks::add_addresses(limits::OTHERS)?;
        let zones = Arc::new(AttackedZones::new(sizes));
        let anchor = zones.trust_anchor();
        let listen = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
        let authority = Server::with(&[listen], &Settings::new(zones as Arc<dyn Source>))?;
        let upstream = authority.addresses()[0];
        for &attack in attacks {
            for round in 1..=timing.rounds {
                for (device, measured) in servers.iter().zip(&mut all) {
                    eprintln!(
                        "validation-attacks: {}, round {round} of {}, {}",
                        attack.title(),
                        timing.rounds,
                        measured.device
                    );
                    match run(device, (upstream, anchor.clone()), attack, timing) {
                        Ok(reports) => measured.add(attack, reports),
                        Err(error) if measured.is_own => return Err(error),
                        Err(error) => notes.push(format!(
                            "Left out: {} under {}, round {round}: {error}",
                            measured.device,
                            attack.title()
                        )),
                    }
                }
            }
        }
    } else {
        notes.push(
            "Left out: the attacker has a network of its own, which needs CAP_SYS_ADMIN, for a network namespace."
                .to_owned(),
        );
    }
    Ok(Section {
        key: "validation-attacks",
        title: "Attacks on the time of validators",
        notes,
        tables: attacks.iter().map(|&attack| table(attack, &all)).collect(),
        goals: goals(attacks, &all),
        data: all.iter().map(|measured| (measured.device.clone(), measured.json())).collect(),
        ..Section::default()
    })
}

/// One round of a device under an attack.
fn run(
    device: &Device,
    (upstream, trust_anchor): (SocketAddr, Option<TrustAnchor>),
    attack: Attack,
    timing: Timing,
) -> io::Result<Round> {
    let setup = Setup { as_shipped: true, trust_anchor, ..Setup::default() };
    let mut running = device.start(upstream, setup)?;
    let crowd = networks::crowd();
    let attackers = &crowd[..limits::ATTACKERS.min(crowd.len())];
    let mut clients = Clients::new(running.address, attackers, &networks::others(limits::OTHERS))?;
    if let Err(error) = clients.prepare() {
        return Err(io::Error::other(format!("{}: {error}: {}", device.name(), running.output())));
    }
    let mut phase = |length, attack| {
        clients.run(&Phase { length, attack }, || {
            let used = running.usage().since(&crate::usage::Usage::default(), 0);
            used.user_s + used.system_s
        })
    };
    phase(timing.warm_up, None)?;
    let mut reports = Round::default();
    let attacks = limits::ATTACK_RATES.map(|rate| Some((attack, rate)));
    for (report, attack) in reports.iter_mut().zip([None].into_iter().chain(attacks)) {
        *report = phase(timing.window, attack)?;
    }
    Ok(reports)
}

impl Measured {
    fn new(device: &Device) -> Measured {
        let rounds = Attack::ALL.map(|attack| (attack, Vec::new())).into();
        Measured { device: device.name(), is_own: device.kind == kind::Kind::Sixfold, rounds }
    }

    fn add(&mut self, attack: Attack, round: Round) {
        let of = self.rounds.iter_mut().find(|(one, _)| *one == attack);
        of.into_iter().for_each(|(_, rounds)| rounds.push(round.clone()));
    }

    fn of(&self, attack: Attack) -> &[Round] {
        self.rounds.iter().find(|(one, _)| *one == attack).map_or(&[], |(_, rounds)| rounds)
    }

    /// A figure of all rounds under an attack; phase 0 is the one without.
    fn figures(&self, attack: Attack, phase: usize, figure: impl Fn(&Report) -> f64) -> Vec<f64> {
        self.of(attack).iter().map(|round| figure(&round[phase])).collect()
    }

    /// 99th percentiles of a kind in a phase, as multiples of those without the attack.
    fn slower(&self, attack: Attack, phase: usize, kind: Kind) -> Vec<f64> {
        let p99 = |report: &Report| report.of(kind).ms(99.0);
        self.of(attack).iter().map(|round| p99(&round[phase]) / p99(&round[0])).collect()
    }

    fn json(&self) -> Value {
        let tally = |report: &Report, kind: Kind| {
            let tally = report.of(kind);
            json!({"sent": tally.sent, "answered": tally.answered, "right": tally.right, "p50_ms": tally.ms(50.0),
                   "p99_ms": tally.ms(99.0)})
        };
        let one = |report: &Report| {
            let [cached, unsigned, signed] = Kind::HONEST.map(|kind| tally(report, kind));
            json!({"seconds": report.seconds, "cpu_seconds": report.cpu_s, "attack": tally(report, Kind::Attack),
                   "cached": cached, "new_unsigned": unsigned, "new_signed": signed})
        };
        let rounds = |rounds: &[Round]| -> Value {
            rounds.iter().map(|round| round.iter().map(one).collect::<Value>()).collect()
        };
        self.rounds.iter().map(|(attack, of)| (attack.title(), rounds(of))).collect()
    }
}

/// Table of one attack: for each device a row without it, and one for each rate.
fn table(attack: Attack, all: &[Measured]) -> Table {
    let row = |measured: &Measured, phase: usize| {
        let figure =
            |decimals, figure: fn(&Report) -> f64| cell(&measured.figures(attack, phase, figure), decimals);
        let rate = if phase == 0 { "0".to_owned() } else { limits::ATTACK_RATES[phase - 1].to_string() };
        let mut row = vec![measured.device.clone(), rate, figure(2, |report| report.kept() * 100.0)];
        for kind in Kind::HONEST {
            let of = |percent| measured.figures(attack, phase, |report| report.of(kind).ms(percent));
            row.extend([cell(&of(50.0), 2), cell(&of(99.0), 2)]);
            row.push(if phase == 0 {
                "-".to_owned()
            } else {
                cell(&measured.slower(attack, phase, kind), 2)
            });
        }
        row.push(figure(1, |report| {
            report.of(Kind::Attack).answered as f64 * 100.0 / report.of(Kind::Attack).sent as f64
        }));
        row.push(figure(3, |report| report.cpu_s / report.seconds));
        row
    };
    let columns = [
        "device",
        "attack/s",
        "kept %",
        "cached p50 ms",
        "p99",
        "x",
        "unsigned p50 ms",
        "p99",
        "x",
        "signed p50 ms",
        "p99",
        "x",
        "attack answered %",
        "CPU s/s",
    ];
    let phases = 0..=limits::ATTACK_RATES.len();
    let rows = all.iter().flat_map(|measured| phases.clone().map(move |phase| (measured, phase)));
    table_of(attack.title(), &columns, rows.map(|(measured, phase)| row(measured, phase)).collect())
}

/// Goals of Sixfold: the worst of all attacks at each rate, round by round.
fn goals(attacks: &[Attack], all: &[Measured]) -> Vec<Goal> {
    let own = all.iter().find(|measured| measured.is_own);
    let worst = |figures: &dyn Fn(&Measured, Attack) -> Vec<f64>, worse: fn(f64, f64) -> f64| {
        let by_attack: Vec<Vec<f64>> =
            attacks.iter().filter_map(|&attack| Some(figures(own?, attack))).collect();
        let rounds = by_attack.iter().map(Vec::len).min().unwrap_or(0);
        let of_round = |round: usize| by_attack.iter().map(|figures| figures[round]).reduce(worse);
        summary(&(0..rounds).filter_map(of_round).collect::<Vec<_>>())
    };
    let mut goals = Vec::new();
    for (place, rate) in limits::ATTACK_RATES.iter().enumerate() {
        let phase = place + 1;
        goals.push(Goal {
            ratio: format!("sixfold: share of right answers to others, worst attack at {rate}/s"),
            bound: Bound::AtLeast(KEPT),
            measured: worst(&|one, attack| one.figures(attack, phase, Report::kept), f64::min),
        });
        for (kind, limit) in LATENCY {
            goals.push(Goal {
                ratio: format!(
                    "sixfold: p99 of {} names / without the attack, worst attack at {rate}/s",
                    kind.name()
                ),
                bound: Bound::AtMost(limit),
                measured: worst(&|one, attack| one.slower(attack, phase, kind), f64::max),
            });
        }
    }
    goals
}

fn note(timing: Timing) -> String {
    format!(
        "Device on core 0 with one worker, its own limits, and the trust anchor of a root; authority and clients on \
         core 1. A /64 with {} addresses asks for new names in zones of the attack; {} others, each a /64 of its own, \
         ask for cached names ({} a second), for new names of an unsigned zone and for new names of a zone signed with \
         P-256 ({} a second each), AAAA in all cases, which are synthesized. An answer counts if it is right and comes \
         within {} s. `x`: the 99th percentile as a multiple of that of the same start without the attack. Each device \
         is started anew for each attack, and has shown that it refuses a wrong signature. {} rounds.",
        limits::ATTACKERS,
        limits::OTHERS,
        limits::CACHED_RATE,
        limits::NEW_RATE,
        limits::ANSWER_TIMEOUT.as_secs(),
        timing.rounds,
    )
}
