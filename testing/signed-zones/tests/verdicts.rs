//! Every fault in zones of every kind of denial, and every question, judged by `dnssec` as the table says.

use crate::resolver::{ORDERS, Order, Resolver, Verified};
use signed_zones::faults::{self, Fault};
use signed_zones::published;
use signed_zones::{Forest, KINDS, Kind, Owed, QUESTIONS, Store, World};

/// Differences between the table and the validator, each a line.
fn differences(
    store: &Store,
    verified: &Verified,
    world: &World,
    (kind, fault): (Kind, &Fault),
    order: Order,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut shared = Resolver::new(world, verified, order);
    // The address comes last: by then the zone is known, which is what makes a signature of the zone above a wrong one.
    for question in (1..QUESTIONS.len()).chain([0]) {
        let (name, rtype) = world.question(question);
        let Some(owed) = fault.owed(kind, question) else { continue };
        let (given, status, work) = shared.resolve(&name, rtype);
        if given != owed {
            found.push(line(store, kind, fault, question, (owed, given), &format!("{status:?} {work:?}")));
        }
    }
    found
}

fn line(
    store: &Store,
    kind: Kind,
    fault: &Fault,
    question: usize,
    (owed, given): (Owed, Owed),
    why: &str,
) -> String {
    format!(
        "seed {}, {kind:?}, {:?}: {} ({}), asked for {}: owed {owed:?}, given {given:?} by {why}",
        store.seed(),
        fault.plant,
        fault.what,
        fault.source,
        QUESTIONS[question].what,
    )
}

/// Plays all faults of some kinds of denial and a seed, and returns the number of verdicts.
fn play(seed: u64, kinds: &[Kind]) -> usize {
    let (store, verified) = (Store::new(seed), Verified::default());
    let (mut found, mut verdicts) = (Vec::new(), 0);
    for &kind in kinds {
        let all = faults::all();
        for fault in all.iter().filter(|fault| fault.kinds.contains(&kind)) {
            verdicts += (0..QUESTIONS.len()).filter(|&question| fault.owed(kind, question).is_some()).count();
            let world = World::new(&store, kind, fault);
            found.extend(differences(&store, &verified, &world, (kind, fault), Order::AsMade));
        }
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
    verdicts
}

#[test]
fn a_zone_with_a_fault_is_judged_as_the_rfcs_say() {
    let mut verdicts = 0;
    for (seed, kind) in (0..).zip(KINDS) {
        verdicts += play(seed, &[kind]);
    }
    assert!(verdicts > 10_000, "{verdicts}");
}

#[test]
fn zones_under_one_root_are_judged_as_the_rfcs_say() {
    let (store, verified, all) = (Store::new(2), Verified::default(), faults::all());
    let planted: Vec<(Kind, Fault, u32)> = all
        .iter()
        .filter(|fault| !signed_zones::world::is_of_root_anchor(fault.plant))
        .step_by(7)
        .map(|fault| (fault.kinds[0], *fault, 1_800_000_000))
        .collect();
    let forest = Forest::new(&store, &planted);
    let mut found = vec![];
    for (world, (kind, fault, _)) in forest.worlds().iter().zip(&planted) {
        found.extend(differences(&store, &verified, world, (*kind, fault), Order::AsMade));
    }
    assert!(found.is_empty() && planted.len() > 50, "{}", found.join("\n"));
}

// RFC 2181 section 5: the order of records in an RRset means nothing.
#[test]
fn published_faults_are_refused_in_zones_of_every_kind_and_in_every_order_of_records() {
    let (mut found, mut verdicts) = (vec![], 0);
    for (seed, kind) in (10..).zip(KINDS) {
        let (store, verified) = (Store::new(seed), Verified::default());
        let all = faults::all();
        let is_shown = |fault: &&Fault| fault.kinds.contains(&kind) && published::shows(fault.plant);
        for (fault, order) in all.iter().filter(is_shown).flat_map(|fault| ORDERS.map(|order| (fault, order)))
        {
            let world = World::new(&store, kind, fault);
            found.extend(differences(&store, &verified, &world, (kind, fault), order));
            verdicts += 1;
        }
    }
    assert!(found.is_empty() && verdicts > 300, "{verdicts} zones, {}:\n{}", found.len(), found.join("\n"));
}

#[test]
#[ignore = "long: zones of a hundred seeds with every fault"]
fn zones_of_many_seeds_are_judged_as_the_rfcs_say() {
    let verdicts: usize = (100..200).map(|seed| play(seed, &KINDS)).sum();
    println!("{verdicts} verdicts");
    assert!(verdicts > 1_000_000, "{verdicts}");
}
