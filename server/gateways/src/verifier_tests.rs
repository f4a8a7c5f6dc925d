//! Tests of the trials in virtual time: a table of hosts stands for the network.

use super::*;
use kit::Random;

const START: Instant = Instant(5_000_000_000);
const NAME: &[u8] = b"\x03www\x07example\0";

/// Outcome of a connection: after this time it is established (true) or refused; none: silence.
type Outcome = Option<(Span, bool)>;

/// An address of the network under test.
fn address(number: u32) -> Ipv6Addr {
    Ipv6Addr::from(0x2001_0db8 << 96 | u128::from(number))
}

const fn after(milliseconds: u64, is_established: bool) -> Outcome {
    Some((Span::from_millis(milliseconds), is_established))
}

struct Simulation<F> {
    verifier: Verifier,
    now: Instant,
    /// Outcome of a connection to an address and port.
    outcome: F,
    events: BTreeMap<(Instant, u64), (Ipv6Addr, bool)>,
    /// Each connection, with the time of its begin.
    begun: Vec<(Instant, Ipv6Addr, u16)>,
    most_running: usize,
}

impl<F: FnMut(Ipv6Addr, u16) -> Outcome> Simulation<F> {
    fn new(outcome: F) -> Simulation<F> {
        Simulation {
            verifier: Verifier::default(),
            now: START,
            outcome,
            events: BTreeMap::new(),
            begun: Vec::new(),
            most_running: 0,
        }
    }

    fn want(&mut self, numbers: impl IntoIterator<Item = u32>) {
        numbers.into_iter().for_each(|number| self.verifier.want(address(number), NAME, self.now));
    }

    /// Lets time pass.
    fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            while let Some((address, port)) = self.verifier.take_connection(self.now) {
                self.begun.push((self.now, address, port));
                if let Some((span, is_established)) = (self.outcome)(address, port) {
                    let event = self.begun.len() as u64;
                    self.events.insert((self.now + span, event), (address, is_established));
                }
            }
            self.most_running = self.most_running.max(self.verifier.running.len());
            let next =
                self.events.keys().next().map(|&(at, _)| at).into_iter().chain(self.verifier.next()).min();
            let Some(next) = next.filter(|&next| next <= end) else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= self.now) {
                match entry.remove() {
                    (address, true) => self.verifier.established(address, self.now),
                    (address, false) => self.verifier.failed(address, self.now),
                }
            }
            self.verifier.expire(self.now);
        }
        self.now = end;
    }

    fn verdict(&self, number: u32) -> Option<bool> {
        self.verifier.verdicts().of(address(number)).map(|verdict| verdict.lives)
    }

    fn ports(&self) -> Vec<(u64, u16)> {
        self.begun.iter().map(|&(at, _, port)| ((at - START).0 / 1_000_000, port)).collect()
    }
}

#[test]
fn an_established_connection_proves_life_and_two_failures_or_silence_prove_death() {
    // The outcomes of both ports; the connections with their times in milliseconds; the verdict, and its time.
    /// Outcomes of the two ports, the starts by time and port, the verdict, and its time.
    type Row<'a> = ([Outcome; 2], &'a [(u64, u16)], bool, u64);
    let rows: [Row<'_>; 8] = [
        ([after(30, true), None], &[(0, 443)], true, 30),
        ([after(30, false), after(40, true)], &[(0, 443), (30, 80)], true, 70),
        ([None, after(40, true)], &[(0, 443), (250, 80)], true, 290),
        // A second SYN is answered.
        ([after(1_200, true), None], &[(0, 443), (250, 80)], true, 1_200),
        ([after(30, false), after(40, false)], &[(0, 443), (30, 80)], false, 70),
        ([after(30, false), None], &[(0, 443), (30, 80)], false, 2_000),
        ([None, after(40, false)], &[(0, 443), (250, 80)], false, 2_000),
        ([None, None], &[(0, 443), (250, 80)], false, 2_000),
    ];
    for (row, (outcomes, begun, lives, at)) in rows.into_iter().enumerate() {
        let mut simulation = Simulation::new(|_, port| outcomes[usize::from(port == 80)]);
        simulation.want([1]);
        simulation.run(Span::from_millis(at - 1));
        assert_eq!(simulation.verdict(1), None, "row {row}");
        simulation.run(Span::from_millis(1));
        assert_eq!(simulation.verdict(1), Some(lives), "row {row}");
        simulation.run(Span::from_secs(5));
        assert_eq!((simulation.verdict(1), simulation.ports()), (Some(lives), begun.to_vec()), "row {row}");
        assert!(!simulation.verifier.is_running(address(1)) && simulation.verifier.next().is_none());
    }
}

#[test]
fn an_address_is_tried_once_a_minute_while_it_is_asked_for_and_may_live_again() {
    let mut lives = false;
    let mut trials = Vec::new();
    for _ in 0..2 {
        let mut simulation = Simulation::new(|_, _| after(10, lives));
        for _ in 0..1_300 {
            simulation.want([1]);
            simulation.run(Span::from_millis(100));
        }
        trials.push(simulation.begun.iter().filter(|(.., port)| *port == 443).count());
        assert_eq!(simulation.verdict(1), Some(lives));
        lives = true;
    }
    // At 0 s, a minute after the end of that, and a minute after the end of the second.
    assert_eq!(trials, [3, 3]);

    let mut is_alive = [false, false, true].into_iter();
    let mut simulation = Simulation::new(|_, _| after(10, is_alive.next().unwrap()));
    simulation.want([1]);
    simulation.run(Span::from_secs(59));
    simulation.want([1]);
    simulation.run(Span::from_secs(2));
    assert_eq!((simulation.verdict(1), simulation.begun.len()), (Some(false), 2));
    // Nobody asks, nobody tries, and the verdict stands.
    simulation.run(Span::from_secs(3_600));
    assert_eq!((simulation.verdict(1), simulation.begun.len()), (Some(false), 2));
    simulation.want([1]);
    simulation.run(Span::from_secs(1));
    assert_eq!(simulation.verdict(1), Some(true));
}

#[test]
fn a_thousand_dead_addresses_among_ten_thousand_are_found_within_ten_seconds_and_no_living_one_is_called_dead()
 {
    let mut random = Random::new(7);
    let is_dead = |address: Ipv6Addr| u128::from(address) % 11 == 0;
    // Every fiftieth SYN is lost, and sent again after a second.
    let mut simulation = Simulation::new(|address, port| match (is_dead(address), port) {
        (true, _) => None,
        (false, 443) if random.below(50) == 0 => after(1_000 + 80 + random.below(100), true),
        (false, 443) => after(5 + random.below(200), true),
        (false, _) => after(5 + random.below(200), false),
    });
    for _ in 0..10 {
        simulation.want(1..=11_000);
        simulation.run(Span::from_millis(980));
    }
    let verdicts = simulation.verifier.verdicts();
    let lives = |address| verdicts.of(address).map(|verdict| verdict.lives);
    let wrong = (1..=11_000).map(address).filter(|&address| lives(address) != Some(!is_dead(address)));
    assert_eq!(wrong.count(), 0);
    let Trials { alive, dead, dropped, .. } = simulation.verifier.counts();
    assert_eq!((alive, dead, dropped), (10_000, 1_000, 0));
    assert!(simulation.most_running <= TRIALS);
}

#[test]
fn trials_are_bounded_in_number_in_rate_and_in_memory() {
    let mut simulation = Simulation::new(|_, _| None);
    simulation.want(0..WAITING as u32 + 100);
    assert_eq!(simulation.verifier.counts().dropped, 100);
    simulation.run(Span::from_secs(20));
    assert_eq!(simulation.most_running, TRIALS);
    // Silence of 2 s each: ten rounds are over, and the next begins.
    let trials = simulation.begun.iter().filter(|(.., port)| *port == 443).count();
    assert!((10 * TRIALS..=11 * TRIALS).contains(&trials), "{trials}");

    let mut simulation = Simulation::new(|_, _| after(1, true));
    for second in 0..50 {
        simulation.want(second * 3_000..(second + 1) * 3_000);
        simulation.run(Span::from_secs(1));
        let begun = simulation.begun.len() as u64;
        assert!(begun <= u64::from(second + 1) * TRIALS_PER_SECOND + 501, "{begun} in {} s", second + 1);
    }
    assert!(simulation.begun.len() > VERDICTS);
    simulation.run(Span::from_secs(60));
    assert_eq!(simulation.verifier.by_age.len(), VERDICTS);
    assert_eq!(simulation.verifier.known.len(), VERDICTS);
    // The oldest have gone.
    let last = simulation.begun.last().map(|&(_, address, _)| address).unwrap();
    assert!(simulation.verifier.verdicts().of(last).is_some() && simulation.verdict(0).is_none());
}

#[test]
fn a_trial_that_this_machine_cannot_carry_out_changes_no_verdict() {
    let mut simulation = Simulation::new(|_, _| after(10, false));
    simulation.want([1]);
    simulation.run(Span::from_secs(61));
    simulation.want([1, 2]);
    for _ in 0..2 {
        let (address, port) = simulation.verifier.take_connection(simulation.now).unwrap();
        assert_eq!(port, 443);
        simulation.verifier.abandon(address, simulation.now);
        simulation.verifier.abandon(address, simulation.now);
    }
    assert_eq!((simulation.verdict(1), simulation.verdict(2)), (Some(false), None));
    assert_eq!(simulation.verifier.counts(), Trials { dead: 1, impossible: 2, ..Trials::default() });
    // It is tried again like any other, after a minute.
    simulation.want([2]);
    assert!(simulation.verifier.take_connection(simulation.now).is_none());
    simulation.run(Span::from_secs(60));
    simulation.want([2]);
    assert!(simulation.verifier.take_connection(simulation.now).is_some());
}

#[test]
fn the_dead_are_reported_once_a_minute_with_the_first_of_them() {
    let mut simulation = Simulation::new(|_, _| after(10, false));
    assert_eq!(simulation.verifier.take_report(simulation.now), None);
    simulation.want([7]);
    simulation.run(Span::from_secs(1));
    let report = |number, others| Some(Report { address: address(number), name: NAME.into(), others });
    assert_eq!(simulation.verifier.take_report(simulation.now), report(7, 0));
    simulation.want([8, 9, 10]);
    simulation.run(Span::from_secs(59));
    assert_eq!(simulation.verifier.take_report(simulation.now), None);
    simulation.run(Span::from_secs(1));
    assert_eq!(simulation.verifier.take_report(simulation.now), report(8, 2));
    // One that stays dead is no news.
    simulation.run(Span::from_secs(60));
    simulation.want([7, 8, 9, 10]);
    simulation.run(Span::from_secs(60));
    assert_eq!(simulation.verifier.take_report(simulation.now), None);
}
