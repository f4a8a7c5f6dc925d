//! Zones under one root, so that a validator that has one set of trust anchors judges many of them.

use super::{PARENT, ROOT, World};
use crate::faults::{AnchorTwist, Fault, Plant};
use crate::keys::Store;
use crate::name::is_at_or_below;
use crate::record::Reply;
use crate::verdict::Kind;
use crate::world::Anchor;

/// Worlds of one seed, each below a top-level name of its own, whose roots are one: it delegates all of them, and its proofs deny none.
pub struct Forest {
    worlds: Vec<World>,
}

impl Forest {
    /// Worlds with these faults, each at a time of its own, in seconds since 1970 modulo 2^32. Signatures of the root are those of the
    /// first.
    ///
    /// # Panics
    ///
    /// If there is none, or if one has a fault of the root's trust anchor and another has not: they cannot share anchors.
    pub fn new(store: &Store, planted: &[(Kind, Fault, u32)]) -> Forest {
        let of_root = |fault: &Fault| is_of_root_anchor(fault.plant).then_some(fault.plant);
        let first = of_root(&planted.first().expect("a world").1);
        assert!(
            planted.iter().all(|(_, fault, _)| of_root(fault) == first),
            "worlds without anchors in common"
        );
        let mut worlds: Vec<World> = Vec::with_capacity(planted.len());
        for (number, (kind, fault, now)) in planted.iter().enumerate() {
            worlds.push(World::numbered(store, *kind, fault, *now, &number.to_string()));
        }
        let mut root = worlds[0].zones[ROOT].clone();
        for world in &worlds[1..] {
            let apex = &world.zones[PARENT].apex;
            for set in world.zones[ROOT].sets().filter(|set| is_at_or_below(&set.owner, apex)) {
                set.data.iter().for_each(|rdata| root.add(&set.owner, set.rtype, rdata.clone()));
            }
        }
        worlds.iter_mut().for_each(|world| world.zones[ROOT] = root.clone());
        Forest { worlds }
    }

    /// The worlds, in the order of their faults.
    pub fn worlds(&self) -> &[World] {
        &self.worlds
    }

    /// Trust anchors of all worlds, each once.
    pub fn anchors(&self) -> Vec<Anchor> {
        let mut anchors: Vec<Anchor> = Vec::new();
        for anchor in self.worlds.iter().flat_map(World::anchors) {
            if !anchors.contains(anchor) {
                anchors.push(anchor.clone());
            }
        }
        anchors
    }

    /// Reply to a question: that of the world below whose top-level name it is.
    pub fn reply(&self, name: &[u8], rtype: u16) -> Reply {
        let is_its = |world: &&World| is_at_or_below(name, &world.zones[PARENT].apex);
        self.worlds.iter().find(is_its).unwrap_or(&self.worlds[0]).reply(name, rtype)
    }
}

/// True for faults that all worlds of a forest must have: those of the root's trust anchor.
pub fn is_of_root_anchor(plant: Plant) -> bool {
    use AnchorTwist::{Digest, Dnskey, None, OtherOwner};
    matches!(plant, Plant::Anchor(Digest | Dnskey | None | OtherOwner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults;
    use crate::record::rtype;

    #[test]
    fn the_root_of_a_forest_delegates_all_of_its_worlds_and_has_one_set_of_keys() {
        let planted = |place: usize| (Kind::Nsec, faults::all()[place], 1_800_000_000);
        let forest = Forest::new(&Store::new(3), &[0, 1, 2].map(planted));
        let keys = forest.reply(b"\0", rtype::DNSKEY);
        assert_eq!((keys.rcode, forest.anchors().len()), (0, 1));
        for world in forest.worlds() {
            let tld = &world.zones[PARENT].apex;
            assert_eq!(forest.reply(tld, rtype::DS), forest.worlds()[1].reply(tld, rtype::DS));
            assert!(forest.reply(tld, rtype::DS).answer.iter().any(|record| record.rtype == rtype::DS));
            assert_eq!(world.reply(b"\0", rtype::DNSKEY), keys);
        }
    }

    #[test]
    #[should_panic(expected = "worlds without anchors in common")]
    fn a_fault_of_the_roots_anchor_is_shared_by_a_forest() {
        let of = |plant| *faults::all().iter().find(|fault| fault.plant == plant).unwrap();
        let planted = [Plant::None, Plant::Anchor(AnchorTwist::Digest)];
        Forest::new(&Store::new(3), &planted.map(|plant| (Kind::Nsec, of(plant), 1_800_000_000)));
    }
}
