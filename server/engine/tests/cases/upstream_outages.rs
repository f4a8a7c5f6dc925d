//! Outages of upstreams under steady traffic: silent, lossy, slow, all dead, and recovered. The tests measure the answers of
//! the clients.

use crate::world::{
    Arrival, Delivery, Reply, Rng, SentQuery, Token, World, deliver, forwarders, query, settings,
};
use engine::{Instant, Settings, Span};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use wire::{Rcode, Type};

/// Round trip to each upstream.
const ROUND_TRIP: Span = Span::from_millis(10);

/// State of an upstream.
#[derive(Clone, Copy)]
enum Condition {
    Healthy,
    /// No reply.
    Silent,
    /// An ICMP error in response to each query.
    Refuses,
    /// Loss in percent of exchanges.
    Loss(u64),
    /// Round-trip time.
    Slow(Span),
}

/// One or two upstreams, and the client queries sent so far.
struct Outage {
    world: World,
    conditions: [Rc<Cell<Condition>>; 2],
    asked: Vec<(Instant, Token)>,
    next: u32,
}

impl Outage {
    fn new(cache: usize) -> Outage {
        Outage::of("192.0.2.53 192.0.2.54", cache)
    }

    /// Upstreams with these addresses.
    fn of(upstreams: &str, cache: usize) -> Outage {
        let mut settings: Settings = settings();
        settings.upstream.forwarders = forwarders(upstreams);
        let addresses: Vec<SocketAddr> = settings.upstream.forwarders.clone();
        let mut world = World::with_cache(settings, cache);
        let conditions = [Rc::new(Cell::new(Condition::Healthy)), Rc::new(Cell::new(Condition::Healthy))];
        let current = conditions.clone();
        world.set_upstreams(move |asked: &SentQuery, rng: &mut Rng| -> Vec<Delivery> {
            let place = addresses.iter().position(|&address| address == asked.upstream).expect("one of two");
            let name = asked.name();
            let reply = match asked.qtype() {
                Type::A => Reply::answer(&[&format!("{name} 5 IN A 192.0.2.1")]),
                Type::AAAA => Reply::empty("example.", 5, 300),
                _ => Reply::default(),
            };
            match current[place].get() {
                Condition::Healthy => vec![deliver(asked, ROUND_TRIP, &reply)],
                Condition::Slow(round_trip) => vec![deliver(asked, round_trip, &reply)],
                Condition::Loss(percent) if rng.below(100) >= percent => {
                    vec![deliver(asked, ROUND_TRIP, &reply)]
                }
                Condition::Refuses => {
                    vec![Delivery { after: Span::from_millis(1), via: asked.link, arrival: Arrival::Failure }]
                }
                Condition::Loss(_) | Condition::Silent => vec![],
            }
        });
        Outage { world, conditions, asked: vec![], next: 0 }
    }

    fn both(&self, to: Condition) {
        self.conditions.iter().for_each(|condition| condition.set(to));
    }

    /// Sends queries at a rate for a time, for `names` different names.
    fn traffic(&mut self, rate: u64, span: Span, names: u32) -> std::ops::Range<usize> {
        let first = self.asked.len();
        let step = Span(1_000_000_000 / rate);
        let end = self.world.now + span;
        while self.world.now < end {
            let number = self.next;
            self.next += 1;
            let name = format!("n{}.example.", number % names);
            let question = query(&name, Type::AAAA)
                .id(number as u16)
                .port(1024 + (number / 65_536) as u16)
                .edns(1232, false);
            let token = self.world.ask(&question);
            self.asked.push((self.world.now, token));
            self.world.run(step);
        }
        first..self.asked.len()
    }

    /// Time to the answer in milliseconds, and RCODE, of each of these queries; sorted.
    fn outcomes(&self, which: std::ops::Range<usize>) -> Vec<(u64, Rcode)> {
        let mut outcomes: Vec<_> = self.asked[which]
            .iter()
            .map(|&(at, token)| {
                let answer = self.world.answer_to(token);
                ((answer.at - at).0.div_ceil(1_000_000), answer.rcode())
            })
            .collect();
        outcomes.sort_by_key(|&(took_ms, _)| took_ms);
        outcomes
    }
}

fn percentile(outcomes: &[(u64, Rcode)], percent: usize) -> u64 {
    outcomes[(outcomes.len() * percent).div_ceil(100) - 1].0
}

fn failed(outcomes: &[(u64, Rcode)]) -> usize {
    outcomes.iter().filter(|(_, rcode)| *rcode != Rcode::NOERROR).count()
}

#[test]
fn one_of_two_upstreams_falls_silent_and_clients_hardly_notice() {
    let mut outage = Outage::new(0);
    let before = outage.traffic(500, Span::from_secs(2), u32::MAX);
    outage.world.run(Span::from_millis(100));
    outage.conditions[0].set(Condition::Silent);
    let first = outage.traffic(500, Span::from_secs(1), u32::MAX);
    let later = outage.traffic(500, Span::from_secs(10), u32::MAX);
    outage.world.run(Span::from_secs(5));
    let two_lookups = outage.outcomes(before);
    assert_eq!((percentile(&two_lookups, 100), failed(&two_lookups)), (20, 0));
    let first = outage.outcomes(first);
    println!("first second: median {} ms, p99 {} ms", percentile(&first, 50), percentile(&first, 99));
    assert_eq!(failed(&first), 0);
    assert!(percentile(&first, 99) - 20 <= 250);
    let later = outage.outcomes(later);
    assert_eq!((failed(&later), percentile(&later, 100)), (0, 20), "no delay after a second");
}

#[test]
fn with_all_upstreams_dead_stale_data_are_served_at_once_and_the_rest_fails_in_two_seconds() {
    let mut outage = Outage::new(4 << 20);
    // A hundred names that are queried again and again.
    let steady = outage.traffic(500, Span::from_secs(4), 100);
    outage.both(Condition::Silent);
    outage.world.run(Span::from_secs(6));
    let cached = outage.traffic(500, Span::from_secs(5), 100);
    let uncached = outage.traffic(50, Span::from_secs(5), u32::MAX);
    let at_once = outage.traffic(500, Span::from_secs(1), 100);
    outage.world.run(Span::from_secs(3));
    assert_eq!(failed(&outage.outcomes(steady)), 0);
    let cached = outage.outcomes(cached);
    println!("stale data: median {} ms, slowest {} ms", percentile(&cached, 50), percentile(&cached, 100));
    assert_eq!(failed(&cached), 0);
    assert!(percentile(&cached, 100) <= 1_800 && percentile(&cached, 80) == 0);
    let at_once = outage.outcomes(at_once);
    assert_eq!((failed(&at_once), percentile(&at_once, 100)), (0, 0));
    let uncached = outage.outcomes(uncached);
    println!("no data: median {} ms, slowest {} ms", percentile(&uncached, 50), percentile(&uncached, 100));
    assert_eq!(failed(&uncached), uncached.len());
    assert!(percentile(&uncached, 100) <= 2_000);
}

#[test]
fn icmp_errors_from_all_upstreams_fail_both_lookups_sooner_than_timeouts() {
    let mut outage = Outage::new(0);
    outage.traffic(500, Span::from_secs(2), u32::MAX);
    outage.both(Condition::Refuses);
    let refused = outage.traffic(500, Span::from_secs(3), u32::MAX);
    outage.world.run(Span::from_secs(5));
    let outcomes = outage.outcomes(refused);
    println!("SERVFAIL after at most {} ms", percentile(&outcomes, 100));
    assert_eq!(failed(&outcomes), outcomes.len());
    assert!(percentile(&outcomes, 100) <= 1_000);
}

#[test]
fn restarts_of_the_only_upstream_cost_no_question_its_answer() {
    let mut outage = Outage::of("192.0.2.53", 0);
    let first = outage.traffic(250, Span::from_secs(1), u32::MAX).start;
    for down in [200, 600, 2_500] {
        outage.both(Condition::Refuses);
        outage.traffic(250, Span::from_millis(down), u32::MAX);
        outage.both(Condition::Healthy);
        outage.traffic(250, Span::from_secs(1), u32::MAX);
    }
    outage.world.run(Span::from_secs(5));
    let outcomes = outage.outcomes(first..outage.asked.len());
    assert_eq!((failed(&outcomes), outcomes.len()), (0, 250 * 7 + 75));
    // The last restart, a pause between two probes, a pause of a question, and two round trips.
    assert!(percentile(&outcomes, 100) <= 2_500 + 150 + 100 + 20, "{} ms", percentile(&outcomes, 100));
}

#[test]
fn an_only_upstream_that_stays_away_gets_few_queries_and_its_questions_fail() {
    let mut outage = Outage::of("192.0.2.53", 0);
    outage.traffic(250, Span::from_secs(1), u32::MAX);
    outage.both(Condition::Refuses);
    let sent = outage.world.asked.len();
    let first = outage.traffic(250, Span::from_secs(4), u32::MAX);
    let later = outage.traffic(250, Span::from_secs(2), u32::MAX);
    outage.world.run(Span::from_secs(5));
    // A query for each lookup of a question, a tenth more for the first ones, and the probes.
    let queries = outage.world.asked[sent..].iter().filter(|asked| asked.name() != ".").count();
    assert!(queries <= 250 * 6 * 2 * 11 / 10, "{queries} queries");
    let first = outage.outcomes(first);
    assert_eq!(failed(&first), first.len());
    assert!(percentile(&first, 100) <= 3_200, "{} ms", percentile(&first, 100));
    // Nobody waits for an upstream that was away for longer than a restart takes.
    let later = outage.outcomes(later);
    assert!(failed(&later) == later.len() && percentile(&later, 100) <= 1_000);
}

#[test]
fn the_return_of_the_upstreams_is_detected_within_a_second_and_causes_no_query_storm() {
    let mut outage = Outage::new(4 << 20);
    outage.traffic(500, Span::from_secs(3), u32::MAX);
    let per_second = |outage: &Outage, from: Instant| {
        let within = |asked: &&SentQuery| asked.at >= from && asked.at < from + Span::from_secs(1);
        outage.world.asked.iter().filter(within).count()
    };
    let steady = per_second(&outage, Instant(1_500_000_000));
    outage.both(Condition::Silent);
    outage.traffic(500, Span::from_secs(10), u32::MAX);
    outage.both(Condition::Healthy);
    let back = outage.world.now;
    let first = outage.traffic(500, Span::from_secs(1), u32::MAX);
    let later = outage.traffic(500, Span::from_secs(3), u32::MAX);
    outage.world.run(Span::from_secs(5));
    let detected = outage.asked[first]
        .iter()
        .map(|&(_, token)| outage.world.answer_to(token))
        .filter(|answer| answer.rcode() == Rcode::NOERROR)
        .map(|answer| answer.at - back)
        .min();
    println!("detected after {detected:?}");
    assert!(detected.is_some_and(|span| span <= Span::from_secs(1)));
    let later = outage.outcomes(later);
    assert_eq!((failed(&later), percentile(&later, 100)), (0, 20));
    let storm = (0..5).map(|second| per_second(&outage, back + Span::from_secs(second))).max();
    println!("{steady} queries a second before, at most {storm:?} after");
    assert!(storm.is_some_and(|storm| storm <= 2 * steady), "{storm:?} {steady}");
}

#[test]
fn lost_packets_fail_no_more_queries_than_three_tries_leave() {
    for percent in [10, 30, 50] {
        let mut outage = Outage::new(0);
        outage.traffic(200, Span::from_secs(2), u32::MAX);
        outage.both(Condition::Loss(percent));
        let during = outage.traffic(200, Span::from_secs(20), u32::MAX);
        outage.world.run(Span::from_secs(5));
        let during = outage.outcomes(during);
        let failures = failed(&during) as f64 / during.len() as f64;
        // Each lookup has three attempts. Only a failed A lookup is a failure, a failed AAAA lookup is not (RFC 6147 section 5.1.3).
        let expected = (percent as f64 / 100.0).powi(3);
        println!(
            "{percent} % lost: {:.2} % failed, three tries leave {:.2} %",
            failures * 100.0,
            expected * 100.0
        );
        assert!(failures <= expected * 1.3 + 0.002, "{failures} {expected}");
    }
}

#[test]
fn replies_of_slow_upstreams_are_awaited_without_retransmission() {
    let mut outage = Outage::new(0);
    outage.both(Condition::Slow(Span::from_millis(500)));
    outage.traffic(100, Span::from_secs(10), u32::MAX);
    let before = outage.world.asked.len();
    let later = outage.traffic(100, Span::from_secs(10), u32::MAX);
    outage.world.run(Span::from_secs(5));
    let outcomes = outage.outcomes(later.clone());
    assert_eq!((failed(&outcomes), percentile(&outcomes, 100)), (0, 1_000));
    let asked = outage.world.asked[before..].iter().filter(|asked| asked.name() != ".").count();
    // Two for each client query, and the A lookups of the second before.
    assert!(asked <= 2 * later.len() + 60, "{asked} for {}", later.len());
}
