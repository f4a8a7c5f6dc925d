//! Upstreams in bad weather, under steady traffic: silent, lossy, slow, all dead and back again. What clients notice.

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

/// What an upstream does.
#[derive(Clone, Copy)]
enum Sky {
    Clear,
    /// Nothing comes back.
    Silent,
    /// An ICMP error comes back.
    Refuses,
    /// So many in a hundred exchanges are lost.
    Loss(u64),
    /// The round trip.
    Slow(Span),
}

/// Two upstreams, and traffic of so many questions a second.
struct Weather {
    world: World,
    skies: [Rc<Cell<Sky>>; 2],
    asked: Vec<(Instant, Token)>,
    next: u32,
}

impl Weather {
    fn new(cache: usize) -> Weather {
        let mut of_two: Settings = settings();
        of_two.upstream.forwarders = forwarders("192.0.2.53 192.0.2.54");
        let addresses: Vec<SocketAddr> = of_two.upstream.forwarders.clone();
        let mut world = World::with_cache(of_two, cache);
        let skies = [Rc::new(Cell::new(Sky::Clear)), Rc::new(Cell::new(Sky::Clear))];
        let above = skies.clone();
        world.set_upstreams(move |asked: &SentQuery, rng: &mut Rng| -> Vec<Delivery> {
            let place = addresses.iter().position(|&address| address == asked.upstream).expect("one of two");
            let name = asked.name();
            let reply = match asked.qtype() {
                Type::A => Reply::answer(&[&format!("{name} 5 IN A 192.0.2.1")]),
                Type::AAAA => Reply::empty("example.", 5, 300),
                _ => Reply::default(),
            };
            match above[place].get() {
                Sky::Clear => vec![deliver(asked, ROUND_TRIP, &reply)],
                Sky::Slow(round_trip) => vec![deliver(asked, round_trip, &reply)],
                Sky::Loss(percent) if rng.below(100) >= percent => {
                    vec![deliver(asked, ROUND_TRIP, &reply)]
                }
                Sky::Refuses => {
                    vec![Delivery { after: Span::from_millis(1), via: asked.link, arrival: Arrival::Failure }]
                }
                Sky::Loss(_) | Sky::Silent => vec![],
            }
        });
        Weather { world, skies, asked: vec![], next: 0 }
    }

    fn both(&self, sky: Sky) {
        self.skies.iter().for_each(|above| above.set(sky));
    }

    /// Questions at a rate for a time, each for a name of its own or for one of so many.
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

    /// How long each of some questions took, in milliseconds, and how it ended; sorted.
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
    let mut weather = Weather::new(0);
    let before = weather.traffic(500, Span::from_secs(2), u32::MAX);
    weather.world.run(Span::from_millis(100));
    weather.skies[0].set(Sky::Silent);
    let first = weather.traffic(500, Span::from_secs(1), u32::MAX);
    let later = weather.traffic(500, Span::from_secs(10), u32::MAX);
    weather.world.run(Span::from_secs(5));
    let two_legs = weather.outcomes(before);
    assert_eq!((percentile(&two_legs, 100), failed(&two_legs)), (20, 0));
    let first = weather.outcomes(first);
    println!("first second: median {} ms, p99 {} ms", percentile(&first, 50), percentile(&first, 99));
    assert_eq!(failed(&first), 0);
    assert!(percentile(&first, 99) - 20 <= 250);
    let later = weather.outcomes(later);
    assert_eq!((failed(&later), percentile(&later, 100)), (0, 20), "nothing is added after a second");
}

#[test]
fn with_all_upstreams_dead_stale_data_are_served_at_once_and_the_rest_fails_in_two_seconds() {
    let mut weather = Weather::new(4 << 20);
    // A hundred names that are asked again and again.
    let steady = weather.traffic(500, Span::from_secs(4), 100);
    weather.both(Sky::Silent);
    weather.world.run(Span::from_secs(6));
    let known = weather.traffic(500, Span::from_secs(5), 100);
    let unknown = weather.traffic(50, Span::from_secs(5), u32::MAX);
    let at_once = weather.traffic(500, Span::from_secs(1), 100);
    weather.world.run(Span::from_secs(3));
    assert_eq!(failed(&weather.outcomes(steady)), 0);
    let known = weather.outcomes(known);
    println!("expired data: median {} ms, slowest {} ms", percentile(&known, 50), percentile(&known, 100));
    assert_eq!(failed(&known), 0);
    assert!(percentile(&known, 100) <= 1_800 && percentile(&known, 80) == 0);
    let at_once = weather.outcomes(at_once);
    assert_eq!((failed(&at_once), percentile(&at_once, 100)), (0, 0));
    let unknown = weather.outcomes(unknown);
    println!("no data: median {} ms, slowest {} ms", percentile(&unknown, 50), percentile(&unknown, 100));
    assert_eq!(failed(&unknown), unknown.len());
    assert!(percentile(&unknown, 100) <= 2_000);
}

#[test]
fn icmp_errors_from_all_upstreams_fail_both_legs_sooner_than_timeouts() {
    let mut weather = Weather::new(0);
    weather.traffic(500, Span::from_secs(2), u32::MAX);
    weather.both(Sky::Refuses);
    let refused = weather.traffic(500, Span::from_secs(3), u32::MAX);
    weather.world.run(Span::from_secs(5));
    let outcomes = weather.outcomes(refused);
    println!("SERVFAIL after at most {} ms", percentile(&outcomes, 100));
    assert_eq!(failed(&outcomes), outcomes.len());
    assert!(percentile(&outcomes, 100) <= 1_000);
}

#[test]
fn the_return_of_the_upstreams_is_detected_within_a_second_and_causes_no_query_storm() {
    let mut weather = Weather::new(4 << 20);
    weather.traffic(500, Span::from_secs(3), u32::MAX);
    let per_second = |weather: &Weather, from: Instant| {
        let within = |asked: &&SentQuery| asked.at >= from && asked.at < from + Span::from_secs(1);
        weather.world.asked.iter().filter(within).count()
    };
    let steady = per_second(&weather, Instant(1_500_000_000));
    weather.both(Sky::Silent);
    weather.traffic(500, Span::from_secs(10), u32::MAX);
    weather.both(Sky::Clear);
    let back = weather.world.now;
    let first = weather.traffic(500, Span::from_secs(1), u32::MAX);
    let later = weather.traffic(500, Span::from_secs(3), u32::MAX);
    weather.world.run(Span::from_secs(5));
    let noticed = weather.asked[first]
        .iter()
        .map(|&(_, token)| weather.world.answer_to(token))
        .filter(|answer| answer.rcode() == Rcode::NOERROR)
        .map(|answer| answer.at - back)
        .min();
    println!("noticed after {noticed:?}");
    assert!(noticed.is_some_and(|span| span <= Span::from_secs(1)));
    let later = weather.outcomes(later);
    assert_eq!((failed(&later), percentile(&later, 100)), (0, 20));
    let storm = (0..5).map(|second| per_second(&weather, back + Span::from_secs(second))).max();
    println!("{steady} questions a second before, at most {storm:?} after");
    assert!(storm.is_some_and(|storm| storm <= 2 * steady), "{storm:?} {steady}");
}

#[test]
fn lost_packets_fail_no_more_queries_than_three_tries_leave() {
    for percent in [10, 30, 50] {
        let mut weather = Weather::new(0);
        weather.traffic(200, Span::from_secs(2), u32::MAX);
        weather.both(Sky::Loss(percent));
        let during = weather.traffic(200, Span::from_secs(20), u32::MAX);
        weather.world.run(Span::from_secs(5));
        let during = weather.outcomes(during);
        let failures = failed(&during) as f64 / during.len() as f64;
        // Both legs have three tries. A failed AAAA leg is no failure (RFC 6147 section 5.1.3), a failed A leg is.
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
    let mut weather = Weather::new(0);
    weather.both(Sky::Slow(Span::from_millis(500)));
    weather.traffic(100, Span::from_secs(10), u32::MAX);
    let before = weather.world.asked.len();
    let later = weather.traffic(100, Span::from_secs(10), u32::MAX);
    weather.world.run(Span::from_secs(5));
    let outcomes = weather.outcomes(later.clone());
    assert_eq!((failed(&outcomes), percentile(&outcomes, 100)), (0, 1_000));
    let asked = weather.world.asked[before..].iter().filter(|asked| asked.name() != ".").count();
    // Two for each, and the A legs of the last second before.
    assert!(asked <= 2 * later.len() + 60, "{asked} for {}", later.len());
}
