//! Faults of validators that were published in 2026, and the rows of the [table](crate::faults) that show each of them. Those that no zone
//! can show have a test elsewhere: `docs/published-faults.md` names it.

use crate::faults::{AnchorTwist, KeyTwist, Place, Plant, ProofTwist, ReplyTwist, Twist};

/// Published fault.
#[derive(Debug)]
pub struct Published {
    /// Number in `docs/published-faults.md`.
    pub number: u8,
    /// What the validator does.
    pub what: &'static str,
    /// Rows of the table that show it.
    pub plants: &'static [Plant],
}

const fn published(number: u8, what: &'static str, plants: &'static [Plant]) -> Published {
    Published { number, what, plants }
}

const fn proof(twist: ProofTwist) -> Plant {
    Plant::Proof(twist)
}

/// Published faults that zones show.
#[rustfmt::skip]
pub const PUBLISHED: &[Published] = &[
    published(1, "takes a signature of a wildcard above the zone", &[
        Plant::Signature(Place::Address, Twist::LabelsNone),
        Plant::Signature(Place::Proof, Twist::LabelsNone),
        Plant::Signature(Place::Wildcard, Twist::LabelsNone),
    ]),
    published(2, "takes an NSEC record whose next name is outside of the zone", &[proof(ProofTwist::NextOutside)]),
    published(3, "takes NSEC3 records below a child", &[proof(ProofTwist::OwnerOfChild)]),
    published(4, "takes a proof of a zone above the signed one", &[proof(ProofTwist::OfParent)]),
    published(5, "takes a record that a wildcard made as proof of an unsigned delegation", &[proof(ProofTwist::WildcardMade)]),
    published(6, "hashes without a limit of iterations", &[proof(ProofTwist::Iterations(501)), proof(ProofTwist::LongSalt)]),
    published(7, "takes any number of proof records", &[proof(ProofTwist::Many)]),
    published(9, "verifies with a revoked key", &[Plant::Keys(KeyTwist::EntryRevoked), Plant::Keys(KeyTwist::DataRevoked)]),
    published(10, "does not compare an alias with the DNAME record", &[Plant::Reply(ReplyTwist::AliasOfDname)]),
    published(11, "takes an alias by wildcard without a proof", &[proof(ProofTwist::WithoutNextCloser)]),
    published(12, "takes a denial of DS records without the NS bit", &[proof(ProofTwist::NoNsBit)]),
    published(13, "takes an anchor of another name", &[Plant::Anchor(AnchorTwist::OtherOwner)]),
    published(14, "trusts all keys once it trusts one", &[Plant::Keys(KeyTwist::SignedByStranger), Plant::Keys(KeyTwist::SignedByDataKey)]),
    published(15, "takes NXDOMAIN for an empty non-terminal", &[Plant::Reply(ReplyTwist::Rcode)]),
    published(16, "takes the record of the parent at the cut", &[proof(ProofTwist::ParentSide)]),
    published(17, "takes a proof without a signature beside a signed RRset, or both kinds of proofs", &[proof(ProofTwist::UnsignedBeside), proof(ProofTwist::BothKinds)]),
    published(18, "takes any valid RRset as the answer", &[Plant::Reply(ReplyTwist::Unrelated)]),
    published(19, "takes the proof of another name with an answer by wildcard", &[proof(ProofTwist::OtherProof)]),
    published(20, "takes records of another class", &[Plant::Reply(ReplyTwist::Class)]),
    published(21, "looks for an SOA record above the name without an end", &[Plant::Reply(ReplyTwist::OtherSoa)]),
    published(24, "takes a denial at the apex of an island, or that of its insecure parent", &[Plant::Anchor(AnchorTwist::Island), proof(ProofTwist::SoaBit)]),
    published(25, "fails on a malformed key", &[Plant::Keys(KeyTwist::Malformed)]),
    published(26, "is slow with RSA keys of an odd shape", &[
        Plant::Keys(KeyTwist::RsaExponentLong), Plant::Keys(KeyTwist::RsaModulusLong),
        Plant::Keys(KeyTwist::RsaModulusEven), Plant::Keys(KeyTwist::RsaModulusZero),
    ]),
    published(29, "loses count of many signatures or keys", &[Plant::Keys(KeyTwist::KeyTrap)]),
    published(30, "takes a chain that cannot be fetched as a failure of the lookup", &[Plant::Reply(ReplyTwist::DsFails), Plant::Reply(ReplyTwist::KeysFail)]),
];

/// True if a row of the table shows a published fault.
pub fn shows(plant: Plant) -> bool {
    PUBLISHED.iter().any(|published| published.plants.contains(&plant))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults;

    #[test]
    fn every_published_fault_has_a_row_in_the_table() {
        let all = faults::all();
        for Published { number, plants, .. } in PUBLISHED {
            let has_row = |plant: &Plant| all.iter().any(|fault| fault.plant == *plant);
            assert!(!plants.is_empty() && plants.iter().all(has_row), "{number}");
        }
    }

    #[test]
    fn every_published_fault_has_a_row_on_the_page() {
        let page = include_str!("../../../docs/published-faults.md");
        for Published { number, what, .. } in PUBLISHED {
            assert!(page.contains(&format!("\n| {number}: {what} |")), "{number}");
        }
    }
}
