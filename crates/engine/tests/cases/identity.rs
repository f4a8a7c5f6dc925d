//! Message IDs, ports and links: nothing comes twice while it may still be answered, and nothing can be foreseen.

use crate::world::{Reply, World, ask, deliver, settings};
use engine::limits::{LINK_LIFE_SECS, LINK_QUESTIONS};
use engine::{Span, Transport};
use std::collections::{HashMap, HashSet};
use wire::Type;

/// Pearson's chi-square of counts that should be equal.
fn chi_square(counts: &[u64]) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum()
}

/// What chi-square exceeds once in a million times with so many degrees of freedom (Wilson and Hilferty).
fn bound(freedom: f64) -> f64 {
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + 4.75 * part.sqrt()).powi(3)
}

fn tally(bins: usize, values: impl Iterator<Item = usize>) -> Vec<u64> {
    let mut counts = vec![0; bins];
    values.for_each(|value| counts[value] += 1);
    counts
}

/// The correlation of each value with the next.
fn serial_correlation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let covariance: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    covariance / variance
}

/// The wrap-around bug of TOTD: IDs drawn anew beside IDs still in flight, so that replies went to the wrong questions
/// after some ten thousand of them, and the server seemed to stop.
#[test]
fn more_than_a_hundred_thousand_questions_with_loss_never_use_an_id_twice_on_a_link() {
    const QUESTIONS: u32 = (1 << 17) + 5000;
    let mut world = World::sized(settings(), 8192, 21);
    world.upstreams(|asked, chance| {
        if chance.percent(30) {
            return vec![];
        }
        let reply = Reply::answer(&[&format!("{} 60 IN A 198.51.100.7", asked.name())]);
        vec![deliver(asked, Span(1_000_000 + chance.below(40_000_000)), &reply)]
    });
    let mut tokens = vec![];
    for number in 0..QUESTIONS {
        let question = ask(&format!("n{number}.example."), Type::A).network(number % 997);
        tokens.push(world.ask(&question.id(number as u16).port(1 + (number >> 16) as u16)));
        world.run(Span(25_000));
    }
    world.run(Span::from_secs(10));
    assert!(world.asked.len() > QUESTIONS as usize * 13 / 10);
    assert_eq!((world.engine.pending(), world.engine.flights()), (0, 0));
    assert!(world.engine.open_links() <= 2, "{} links leaked", world.engine.open_links());

    let (mut used, mut carried) = (HashSet::new(), HashMap::new());
    let opened: HashMap<_, _> = world.wires.history.iter().copied().collect();
    assert_eq!(opened.len(), world.wires.history.len(), "a link number came twice");
    for asked in world.asked.iter().filter(|asked| asked.transport == Transport::Udp) {
        assert!(
            used.insert((asked.link, wire::header::id(&asked.bytes))),
            "an ID came twice on {:?}",
            asked.link
        );
        *carried.entry(asked.link).or_insert(0) += 1;
        let age = asked.at - opened[&asked.link].at;
        assert!(age < Span::from_secs(LINK_LIFE_SECS), "{:?} lived for {age:?}", asked.link);
    }
    assert_eq!(carried.values().max(), Some(&LINK_QUESTIONS));

    // 30 % loss and three tries: one in 37 fails; none is lost, none gets another's answer.
    let mut failed = 0;
    for (number, token) in tokens.iter().enumerate() {
        let answer = world.answer_to(*token);
        assert_eq!(answer.id(), number as u16);
        let records = answer.records(wire::Section::Answer);
        match answer.rcode() {
            wire::Rcode::NOERROR => assert_eq!(records, [format!("n{number}.example. 60 IN A 198.51.100.7")]),
            _ => failed += 1,
        }
    }
    assert!((failed as f64 / f64::from(QUESTIONS) - 0.027).abs() < 0.005, "{failed} failed");

    let ids: Vec<u16> = world.asked.iter().map(|asked| wire::header::id(&asked.bytes)).collect();
    for (what, counts) in [
        ("high octets", tally(256, ids.iter().map(|id| usize::from(id >> 8)))),
        ("low octets", tally(256, ids.iter().map(|id| usize::from(id & 255)))),
        (
            "differences",
            tally(256, ids.windows(2).map(|pair| usize::from(pair[1].wrapping_sub(pair[0]) >> 8))),
        ),
    ] {
        assert!(chi_square(&counts) < bound(255.0), "{what} of IDs: {}", chi_square(&counts));
    }
    let correlation = serial_correlation(&ids.iter().map(|&id| f64::from(id)).collect::<Vec<_>>());
    assert!(correlation.abs() < 5.0 / (ids.len() as f64).sqrt(), "{correlation}");
}

#[test]
fn ports_come_from_the_whole_range_and_every_question_after_some_seconds_has_a_new_one() {
    let mut world = World::sized(settings(), 64, 22);
    world.upstreams(|asked, _| vec![deliver(asked, Span::from_millis(1), &Reply::default())]);
    for number in 0..20_000u32 {
        world.ask(&ask("www.example.", Type::A).id(number as u16).port((number >> 16) as u16));
        world.run(Span::from_secs(LINK_LIFE_SECS));
    }
    let ports: Vec<u16> = world.asked.iter().map(|asked| asked.port).collect();
    assert_eq!((ports.len(), world.wires.history.len()), (20_000, 20_000));
    assert!(ports.iter().all(|&port| port >= 1024));
    // 63 bins of 1,024 ports.
    let counts = tally(63, ports.iter().map(|port| usize::from(port / 1024 - 1)));
    assert!(chi_square(&counts) < bound(62.0), "{}: {counts:?}", chi_square(&counts));
    assert!(*ports.iter().min().unwrap() < 1100 && *ports.iter().max().unwrap() > 65_450);
    let correlation = serial_correlation(&ports.iter().map(|&port| f64::from(port)).collect::<Vec<_>>());
    assert!(correlation.abs() < 5.0 / (ports.len() as f64).sqrt(), "{correlation}");
    assert_eq!(world.engine.open_links(), 1);
}

#[test]
fn a_tcp_link_carries_many_questions_with_an_id_each() {
    let mut settings = settings();
    settings.upstream.transport = Transport::Tcp;
    let mut world = World::sized(settings, 64, 23);
    world.upstreams(|asked, _| vec![deliver(asked, Span(1000), &Reply::default())]);
    let mut used = HashSet::new();
    for number in 0..70_000u32 {
        world.ask(&ask("www.example.", Type::A).id(number as u16).port((number >> 16) as u16));
        world.run(Span(2000));
        let asked = world.asked.pop().unwrap();
        assert!(used.insert((asked.link, wire::header::id(&asked.bytes))));
        world.answers.clear();
    }
    assert_eq!(world.wires.history.len(), 3, "70,000 questions over links of 32,768");
    assert_eq!(world.engine.open_links(), 1);
}
