//! Zones of a run, in groups that have a root and trust anchors in common.

use signed_zones::faults::{AnchorTwist, Fault, Place, Plant, Twist};
use signed_zones::world::is_of_root_anchor;
use signed_zones::{KINDS, Kind, faults};

/// Zones of a group: servers are started anew for each.
const GROUP: usize = 64;

/// Seconds by which the time of some zones is ahead of the clock.
const AHEAD: u32 = 3600;

/// Zones under one root.
#[derive(Clone, Debug)]
pub struct Group {
    /// Seed of keys and names.
    pub seed: u64,
    /// Kind of denial and fault of each zone.
    pub planted: Vec<(Kind, Fault)>,
}

/// True for faults that all servers can be shown. A time in the past is no negative anchor of any of them, and not every server can do
/// without an anchor, or takes one that is a DNSKEY record.
pub fn is_playable(plant: Plant) -> bool {
    use AnchorTwist::{Dnskey, NegativeEnded, None};
    !matches!(plant, Plant::Anchor(Dnskey | NegativeEnded | None))
}

/// Time of a zone. Servers have the clock of the system: a signature that is not valid yet, and one that is still valid, stay so for an hour.
pub fn time_of(plant: Plant, now: u32) -> u32 {
    match plant {
        Plant::Signature(_, Twist::NotYetValid | Twist::LastSecond) => now + AHEAD,
        _ => now,
    }
}

/// Every fault with every kind of denial that can have it, again and again, up to this number of zones.
pub fn groups(zones: usize) -> Vec<Group> {
    let all = faults::all();
    let pairs: Vec<(Kind, Fault)> = KINDS
        .into_iter()
        .flat_map(|kind| {
            all.iter().filter(move |fault| fault.kinds.contains(&kind)).map(move |fault| (kind, *fault))
        })
        .filter(|(_, fault)| is_playable(fault.plant))
        .collect();
    // Neighbours of the table come into different groups.
    let stride = (pairs.len() / 7..).find(|&stride| greatest_divisor(stride, pairs.len()) == 1).unwrap_or(1);
    let drawn = (0..zones).map(|number| pairs[number * stride % pairs.len()]);
    let (apart, together): (Vec<_>, Vec<_>) = drawn.partition(|(_, fault)| is_of_root_anchor(fault.plant));
    let mut lists: Vec<Vec<(Kind, Fault)>> = together.chunks(GROUP).map(<[_]>::to_vec).collect();
    for twist in [AnchorTwist::Digest, AnchorTwist::OtherOwner] {
        let has_it = |pair: &&(Kind, Fault)| pair.1.plant == Plant::Anchor(twist);
        let list: Vec<_> = apart.iter().filter(has_it).copied().collect();
        lists.extend(list.chunks(GROUP).map(<[_]>::to_vec));
    }
    (0..).zip(lists).map(|(seed, planted)| Group { seed, planted }).collect()
}

fn greatest_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

/// Words for a place of a fault.
pub fn place(plant: Plant) -> &'static str {
    match plant {
        Plant::Signature(place, _) => match place {
            Place::Address => "address: ",
            Place::Proof => "proof: ",
            Place::Soa => "SOA: ",
            Place::Alias => "alias: ",
            Place::Wildcard => "wildcard: ",
            Place::Redirection => "DNAME: ",
            Place::Keys => "keys: ",
            Place::Delegation => "DS: ",
            Place::ParentKeys => "keys of the parent: ",
        },
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_thousand_zones_have_every_fault_that_can_be_shown() {
        let groups = groups(2000);
        let planted: Vec<_> = groups.iter().flat_map(|group| &group.planted).collect();
        assert_eq!(planted.len(), 2000);
        for kind in KINDS {
            for fault in faults::all().iter().filter(|it| it.kinds.contains(&kind) && is_playable(it.plant)) {
                let is_there = planted.iter().any(|pair| pair.0 == kind && pair.1.plant == fault.plant);
                assert!(is_there, "{kind:?} {:?}", fault.plant);
            }
        }
    }
}
