//! Tests of the monitor in virtual time: a network with loss and gateways that die and come back stands for the sockets.

use super::*;
use engine::dns64::gateways::{AllDown, Spread, TablePrefix};
use kit::Random;
use std::collections::BTreeMap;

const INTERVAL: Span = Span::from_millis(300);
const START: Instant = Instant(1_000_000_000);

fn prefix(number: usize) -> Pref64 {
    format!("2001:db8:64:{number:x}::/96").parse().unwrap()
}

fn gateway(number: usize, probes: usize) -> Gateway {
    let probe = |place| match place % 2 {
        0 => Probe::Tcp([192, 0, 2, place as u8], 443),
        _ => Probe::Icmp([192, 0, 2, place as u8]),
    };
    Gateway { prefix: prefix(number), probes: (0..probes).map(probe).collect() }
}

fn table(prefixes: usize) -> GatewayTable {
    let of = |number| TablePrefix { prefix: prefix(number), weight: 1, is_probed: true };
    GatewayTable::new((Spread::All, AllDown::Keep, 60), (0..prefixes).map(of).collect(), Vec::new())
}

/// Outcome of a probe: after this time it is answered (`Ok`), or fails; none: silence.
type Outcome = Option<(Span, Result<(), Failure>)>;

/// A probe that has an outcome: its round, its place in the round.
type Event = (RoundId, usize, Result<(), Failure>);

struct Simulation {
    monitor: Monitor,
    now: Instant,
    events: BTreeMap<(Instant, u64), Event>,
    event: u64,
    rounds: Vec<(Instant, Vec<Destination>)>,
    changes: Vec<(Instant, Change)>,
}

impl Simulation {
    fn new(gateways: Vec<Gateway>, seed: u64) -> Simulation {
        let mut monitor = Monitor::new(seed);
        monitor.configure(START, HealthSettings::default(), gateways, |_| true);
        Simulation { monitor, now: START, events: BTreeMap::new(), event: 0, rounds: vec![], changes: vec![] }
    }

    /// Advances the time, as the prober does: outcomes first, then timeouts, then rounds that are due.
    fn run(&mut self, span: Span, mut network: impl FnMut(Instant, Destination) -> Outcome) {
        let end = self.now + span;
        loop {
            let event = self.events.first_key_value().map(|(&(at, _), _)| at);
            let next = [event, self.monitor.next()].into_iter().flatten().min();
            let Some(next) = next.filter(|&next| next <= end) else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (id, place, outcome) = entry.remove();
                match outcome {
                    Ok(()) => self.monitor.answered(id, self.now),
                    Err(failure) => self.monitor.failed(id, place, failure, self.now),
                }
            }
            self.monitor.expire(self.now);
            while let Some(Round { id, destinations }) = self.monitor.take_due(self.now) {
                for (place, &destination) in destinations.iter().enumerate() {
                    if let Some((after, outcome)) = network(self.now, destination) {
                        self.event += 1;
                        self.events.insert((self.now + after, self.event), (id, place, outcome));
                    }
                }
                self.rounds.push((self.now, destinations));
            }
            while let Some(change) = self.monitor.take_change() {
                self.changes.push((self.now, change));
            }
        }
        self.now = end;
    }
}

fn alive(_: Instant, _: Destination) -> Outcome {
    Some((Span::from_millis(20), Ok(())))
}

fn silent(_: Instant, _: Destination) -> Outcome {
    None
}

#[test]
fn a_gateway_is_up_after_its_first_answer_and_before_that_counts_as_up() {
    let mut simulation = Simulation::new(vec![gateway(0, 1)], 1);
    let state = |simulation: &Simulation| simulation.monitor.states(&table(1), simulation.now)[0];
    assert_eq!(simulation.monitor.status(&prefix(0)).liveness, Liveness::Unprobed);
    assert_eq!(state(&simulation), PrefixState::Up);
    simulation.run(INTERVAL, alive);
    simulation.run(Span::from_millis(20), alive);
    let status = simulation.monitor.status(&prefix(0));
    assert_eq!((status.liveness, status.round_trip), (Liveness::Up, Some(Span::from_millis(20))));
    assert_eq!(simulation.monitor.version(), 1, "answers do not change");
    let destination = Destination::Tcp("2001:db8:64::c000:200".parse().unwrap(), 443);
    assert_eq!(simulation.rounds[0].1, [destination]);
}

#[test]
fn a_death_is_found_within_fall_intervals_and_200_ms_and_only_once() {
    let bound = Span::from_millis(3 * 300 + 200);
    for seed in 0..300 {
        let mut simulation = Simulation::new(vec![gateway(0, 2)], seed);
        simulation.run(Span::from_secs(3), alive);
        let death = simulation.now + Span::from_millis(seed);
        let network =
            |now: Instant, destination: Destination| if now < death { alive(now, destination) } else { None };
        simulation.run(Span::from_secs(10), network);
        let [_, (at, change)] = simulation.changes[..] else { panic!("{:?}", simulation.changes) };
        assert_eq!((change.to, change.failure), (Liveness::Down, Some(Failure::TimedOut)));
        assert!(at - death <= bound, "{:?} after the death", at - death);
        assert_eq!(simulation.monitor.states(&table(1), simulation.now)[0], PrefixState::Down);
    }
}

#[test]
fn a_probe_never_waits_longer_than_its_timeout_and_rounds_keep_their_interval() {
    let mut simulation = Simulation::new(vec![gateway(0, 1)], 5);
    simulation.run(Span::from_secs(60), alive);
    let starts: Vec<Instant> = simulation.rounds.iter().map(|(at, _)| *at).collect();
    let gaps: Vec<u64> = starts.windows(2).map(|pair| (pair[1] - pair[0]).as_micros() / 1000).collect();
    assert!(gaps.iter().all(|gap| (270..=300).contains(gap)), "a tenth early at most, never late: {gaps:?}");
    assert!(gaps.iter().any(|gap| *gap < 280) && gaps.iter().any(|gap| *gap > 290), "jitter");
    // One that is dead is probed in the same interval.
    simulation.run(Span::from_secs(5), silent);
    simulation.rounds.clear();
    simulation.run(Span::from_secs(60), silent);
    assert!((200..=223).contains(&simulation.rounds.len()), "{}", simulation.rounds.len());
    assert_eq!(simulation.changes.len(), 2);
}

#[test]
fn a_refused_connection_fails_at_once_but_three_of_them_take_their_time() {
    let refused = |_: Instant, _: Destination| Some((Span::from_millis(1), Err(Failure::Reset)));
    let mut simulation = Simulation::new(vec![gateway(0, 1)], 9);
    simulation.run(Span::from_secs(2), alive);
    let before = simulation.now;
    simulation.run(Span::from_secs(3), refused);
    let (at, change) = simulation.changes[1];
    assert_eq!((change.to, change.failure), (Liveness::Down, Some(Failure::Reset)));
    assert!((Span::from_millis(500)..Span::from_millis(1_100)).contains(&(at - before)));
}

#[test]
fn one_probe_of_several_that_is_answered_is_enough() {
    let first_is_dead = |_: Instant, destination: Destination| match destination {
        Destination::Tcp(..) => Some((Span::from_millis(1), Err(Failure::Unreachable))),
        Destination::Icmp(_) => Some((Span::from_millis(30), Ok(()))),
    };
    let mut simulation = Simulation::new(vec![gateway(0, 2)], 2);
    simulation.run(Span::from_secs(30), first_is_dead);
    assert_eq!(simulation.monitor.status(&prefix(0)).liveness, Liveness::Up);
    assert_eq!(simulation.changes.len(), 1);
    let both_fail = |_: Instant, _: Destination| Some((Span::from_millis(1), Err(Failure::Unreachable)));
    simulation.run(Span::from_secs(3), both_fail);
    assert_eq!(simulation.monitor.status(&prefix(0)).failure, Some(Failure::Unreachable));
}

#[test]
fn a_gateway_that_comes_back_is_up_after_rise_answers() {
    let mut simulation = Simulation::new(vec![gateway(0, 1)], 3);
    simulation.run(Span::from_secs(5), silent);
    assert_eq!(simulation.changes.len(), 1, "down without ever being up");
    let back = simulation.now;
    simulation.run(Span::from_secs(5), alive);
    let (at, change) = simulation.changes[1];
    assert_eq!((change.to, change.failure), (Liveness::Up, None));
    let took = at - back;
    assert!((Span::from_millis(4 * 270)..Span::from_millis(5 * 300 + 50)).contains(&took), "{took:?}");
}

#[test]
fn probes_of_many_gateways_do_not_come_in_bursts() {
    let mut simulation = Simulation::new((0..60).map(|number| gateway(number, 1)).collect(), 4);
    simulation.run(Span::from_secs(30), alive);
    let mut per_slot = BTreeMap::new();
    for (at, _) in &simulation.rounds {
        *per_slot.entry(at.0 / Span::from_millis(10).0).or_insert(0u32) += 1;
    }
    // 60 rounds in 285 ms on average are 2.1 in 10 ms.
    assert!(per_slot.values().all(|&count| count <= 12), "{:?}", per_slot.values().max());
}

#[test]
fn at_5_percent_loss_two_targets_see_no_change_in_10_minutes() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut simulation = Simulation::new(vec![gateway(0, 2)], seed);
        // The request or the reply is lost.
        let network = move |now: Instant, destination: Destination| {
            let is_lost = random.percent(5) || random.percent(5);
            if is_lost { None } else { alive(now, destination) }
        };
        simulation.run(Span::from_secs(600), network);
        assert_eq!(simulation.changes.len(), 1, "unprobed to up, and no more");
    }
}

#[test]
fn at_20_percent_loss_one_target_sees_as_many_changes_as_chance_gives() {
    let (mut deaths, mut probes) = (0, 0);
    for seed in 0..40 {
        let mut random = Random::new(1_000 + seed);
        let mut simulation = Simulation::new(vec![gateway(0, 1)], seed);
        let network = move |now: Instant, destination: Destination| {
            if random.percent(20) { None } else { alive(now, destination) }
        };
        simulation.run(Span::from_secs(600), network);
        deaths += simulation.changes.iter().filter(|(_, change)| change.to == Liveness::Down).count();
        probes += simulation.rounds.len();
    }
    // Mean number of probes until 3 failures in a row: (1 - p^3) / (p^3 (1 - p)) with p = 0.2 is 155; until 5 successes in a row, with
    // 0.8: (1 - 0.8^5) / (0.8^5 * 0.2) = 10.3 (Feller, An Introduction to Probability Theory, chapter XIII.7).
    let expected = probes as f64 / (155.0 + 10.3);
    let ratio = deaths as f64 / expected;
    assert!((0.85..1.15).contains(&ratio), "{deaths} deaths, {expected} by chance");
}

#[test]
fn a_reload_keeps_states_and_drains_of_prefixes_that_stay() {
    let mut simulation = Simulation::new(vec![gateway(0, 1), gateway(1, 1)], 6);
    let second_is_dead = |now: Instant, destination: Destination| match destination {
        Destination::Tcp(address, _) if prefix(1).contains(address.octets()) => None,
        _ => alive(now, destination),
    };
    simulation.run(Span::from_secs(5), second_is_dead);
    let since = simulation.now;
    assert!(simulation.monitor.drain(prefix(0), Drain { since, over: Span::ZERO }));
    assert!(simulation.monitor.drain(prefix(2), Drain { since, over: Span::ZERO }));
    let gateways = vec![gateway(1, 2), gateway(3, 1), gateway(0, 1)];
    let settings = HealthSettings { fall: 1, ..HealthSettings::default() };
    simulation.monitor.configure(simulation.now, settings, gateways, |prefix| *prefix != self::prefix(2));
    let states = simulation.monitor.states(&table(4), simulation.now);
    use PrefixState::{Down, Draining, Up};
    assert_eq!(states[..], [Draining, Down, Up, Up]);
    let status = |number| simulation.monitor.status(&prefix(number));
    assert_eq!(status(1).failure, Some(Failure::TimedOut));
    assert_eq!((status(3).liveness, status(2).drain), (Liveness::Unprobed, None));
    // A gateway without probes is unprobed.
    simulation.monitor.configure(simulation.now, settings, vec![gateway(0, 1)], |_| true);
    assert_eq!(simulation.monitor.states(&table(4), simulation.now)[1], Up);
}

#[test]
fn outcomes_of_a_round_that_is_over_do_not_count() {
    let mut monitor = Monitor::new(1);
    monitor.configure(START, HealthSettings::default(), vec![gateway(0, 1)], |_| true);
    let now = START + INTERVAL;
    let first = monitor.take_due(now).unwrap().id;
    assert!(monitor.is_running(first) && monitor.take_due(now).is_none(), "one round at a time");
    monitor.expire(now + Span::from_millis(250));
    assert!(!monitor.is_running(first));
    monitor.answered(first, now + Span::from_millis(251));
    assert_eq!(monitor.status(&prefix(0)).liveness, Liveness::Unprobed, "it was too late");
    let second = monitor.take_due(now + Span::from_millis(260)).unwrap().id;
    monitor.abandon(second);
    assert!(!monitor.is_running(second));
}

#[test]
fn a_gateway_that_answers_each_probe_in_the_time_of_a_later_one_is_dead() {
    let late = |_: Instant, _: Destination| Some((Span::from_millis(260), Ok(())));
    let mut simulation = Simulation::new(vec![gateway(0, 2)], 7);
    simulation.run(Span::from_secs(3), alive);
    simulation.run(Span::from_secs(60), late);
    let states: Vec<Liveness> = simulation.changes.iter().map(|(_, change)| change.to).collect();
    assert_eq!(states, [Liveness::Up, Liveness::Down]);
    assert_eq!(simulation.monitor.status(&prefix(0)).failure, Some(Failure::TimedOut));
}

#[test]
fn outcomes_of_other_rounds_and_probes_do_not_count() {
    let mut monitor = Monitor::new(1);
    monitor.configure(START, HealthSettings::default(), vec![gateway(0, 2), gateway(1, 2)], |_| true);
    let now = START + INTERVAL;
    let [first, second] = [(); 2].map(|()| monitor.take_due(now).unwrap().id);
    // Of a round that nobody has started.
    let foreign = RoundId(second.0 + 1);
    monitor.answered(foreign, now);
    monitor.failed(foreign, 0, Failure::Reset, now);
    // Twice the same probe, and one that the round does not have: the other one may still be answered.
    for probe in [0, 0, 7, usize::MAX] {
        monitor.failed(first, probe, Failure::Reset, now);
    }
    assert!(monitor.is_running(first) && monitor.is_running(second));
    monitor.answered(first, now);
    let liveness = |number| monitor.status(&prefix(number)).liveness;
    let up = (0..2).filter(|&number| liveness(number) == Liveness::Up).count();
    assert_eq!(up, 1, "the gateway of the first round alone");
    assert!(monitor.is_running(second));
}

#[test]
fn while_another_process_watches_no_round_starts_and_no_state_changes() {
    let mut monitor = Monitor::new(1);
    monitor.configure(START, HealthSettings::default(), vec![gateway(0, 1), gateway(1, 1)], |_| true);
    let now = START + INTERVAL;
    let running = monitor.take_due(now).unwrap().id;
    monitor.pause();
    assert!(!monitor.is_running(running));
    monitor.expire(now + Span::from_secs(5));
    assert!(monitor.take_due(now + Span::from_secs(5)).is_none() && monitor.next().is_none());
    assert_eq!(monitor.status(&prefix(0)).liveness, Liveness::Unprobed);
    let now = now + Span::from_secs(5);
    monitor.resume(now);
    let next = monitor.next().unwrap();
    assert!(next >= now && next <= now + INTERVAL && monitor.take_due(next).is_some());
}

#[test]
fn a_drain_over_time_moves_on_each_second_and_ends() {
    let mut monitor = Monitor::new(1);
    let drain = Drain { since: START, over: Span::from_secs(10) };
    assert!(monitor.drain(prefix(0), drain) && !monitor.drain(prefix(0), drain), "said twice");
    let mut versions = vec![];
    let mut now = START;
    while let Some(next) = monitor.next() {
        now = now.max(next);
        monitor.expire(now);
        versions.push(monitor.version());
    }
    assert_eq!(versions.len(), 11, "0 to 10 s");
    assert!(versions.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(monitor.states(&table(1), now)[0], PrefixState::Draining);
    assert!(monitor.undrain(&prefix(0)) && !monitor.undrain(&prefix(0)));
    assert_eq!(monitor.states(&table(1), now)[0], PrefixState::Up);
}
