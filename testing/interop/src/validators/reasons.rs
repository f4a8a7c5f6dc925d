//! Known differences between validators, each with the section of an RFC that allows or decides it. `docs/validators.md` has the sentences.

use super::{Difference, Given};
use conform::differential::quirk::Server;
use signed_zones::Kind;
use signed_zones::faults::{AnchorTwist, DsTwist, KeyTwist, Place, Plant, ProofTwist, ReplyTwist, Twist};

/// Reason of differences.
#[derive(Debug)]
pub struct Reason {
    /// Number in `docs/validators.md`.
    pub number: u8,
    /// Section of an RFC.
    pub source: &'static str,
    /// True for the differences that it explains.
    fits: fn(&Difference) -> bool,
}

const fn reason(number: u8, source: &'static str, fits: fn(&Difference) -> bool) -> Reason {
    Reason { number, source, fits }
}

/// All reasons, in the order of their numbers.
pub const REASONS: &[Reason] = &[
    reason(1, "RFC 9276 section 3.2, RFC 4035 section 5.3.3", has_other_limits),
    reason(2, "RFC 9905 section 2, RFC 4035 section 5.2, RFC 4509 section 3", has_other_algorithms),
    reason(3, "RFC 4035 section 3.2.3", needs_no_soa),
    reason(4, "RFC 4035 section 5.3.1", takes_other_signers),
    reason(5, "RFC 4035 section 5.3.1, RFC 4034 section 3.1.3", takes_other_labels),
    reason(6, "RFC 6672 section 5.3.1, RFC 4035 section 3.2.3", leaves_records_out),
    reason(
        7,
        "RFC 4034 sections 2.1.1 and 2.1.2, RFC 5011 section 2.1, RFC 4035 section 5.2",
        takes_other_keys,
    ),
    reason(8, "RFC 4034 section 2.1 and appendix A.1.1", refuses_all_keys),
    reason(9, "RFC 5155 sections 3, 8.1 and 8.2", takes_other_parameters),
    reason(10, "RFC 4035 section 5.4", takes_other_proofs),
    reason(11, "RFC 5155 section 9.2", differs_below_opt_out),
    reason(12, "RFC 4035 sections 4.4 and 5.2", takes_another_way),
];

/// First reason that explains a difference.
pub fn reason_of(difference: &Difference) -> Option<&'static Reason> {
    REASONS.iter().find(|reason| (reason.fits)(difference))
}

fn is_refused(given: &Given) -> bool {
    given.rcode == Some(2)
}

/// True if the validator answers what Sixfold refuses.
fn is_lenient(it: &Difference) -> bool {
    is_refused(&it.ours) && !is_refused(&it.theirs)
}

/// True if the validator refuses what Sixfold answers.
fn is_strict(it: &Difference) -> bool {
    !is_refused(&it.ours) && is_refused(&it.theirs)
}

fn has_other_limits(it: &Difference) -> bool {
    match it.fault.plant {
        Plant::Proof(ProofTwist::Iterations(_) | ProofTwist::LongSalt) => true,
        Plant::Proof(ProofTwist::Many) | Plant::Keys(KeyTwist::Rsa(_) | KeyTwist::KeyTrap) => is_lenient(it),
        // One failure ends it.
        Plant::Keys(KeyTwist::Collision) | Plant::Signature(_, Twist::WrongAndGood) => {
            it.server == Server::Bind && is_strict(it)
        }
        _ => false,
    }
}

fn has_other_algorithms(it: &Difference) -> bool {
    match it.fault.plant {
        Plant::Ds(DsTwist::OnlyAlgorithm(_)) => is_strict(it),
        Plant::Ds(DsTwist::Sha1OfStranger) => it.server == Server::Unbound && is_lenient(it),
        _ => false,
    }
}

fn needs_no_soa(it: &Difference) -> bool {
    let is_about_soa =
        matches!(it.fault.plant, Plant::Signature(Place::Soa, _) | Plant::Reply(ReplyTwist::OtherSoa));
    is_about_soa && is_lenient(it)
}

fn takes_other_signers(it: &Difference) -> bool {
    match it.fault.plant {
        Plant::Signature(_, Twist::SignedByParent) => is_lenient(it),
        Plant::Signature(_, Twist::SignerChild) => it.server == Server::KnotResolver && is_lenient(it),
        _ => false,
    }
}

fn takes_other_labels(it: &Difference) -> bool {
    let is_about_labels = matches!(
        it.fault.plant,
        Plant::Signature(_, Twist::LabelsMore | Twist::LabelsFewer | Twist::LabelsNone)
    );
    is_about_labels && is_lenient(it)
}

fn leaves_records_out(it: &Difference) -> bool {
    match it.fault.plant {
        Plant::Reply(ReplyTwist::AliasOfDname | ReplyTwist::Unrelated) => is_lenient(it),
        Plant::Reply(ReplyTwist::NameServers) => it.server == Server::KnotResolver && !is_refused(&it.theirs),
        _ => false,
    }
}

fn takes_other_keys(it: &Difference) -> bool {
    match it.fault.plant {
        Plant::Keys(KeyTwist::EntryNoZoneKey | KeyTwist::EntryProtocol) => {
            it.server == Server::Bind && is_lenient(it)
        }
        Plant::Keys(KeyTwist::EntryRevoked) => it.server == Server::Unbound && is_lenient(it),
        Plant::Keys(KeyTwist::DataRevoked) => it.server == Server::KnotResolver && is_lenient(it),
        // The key of the DS record is the one that signs the data.
        Plant::Signature(Place::Keys, _) => it.server == Server::PowerDns && is_lenient(it),
        _ => false,
    }
}

fn refuses_all_keys(it: &Difference) -> bool {
    let is_malformed = matches!(it.fault.plant, Plant::Keys(KeyTwist::Malformed | KeyTwist::UnknownBeside));
    is_malformed && it.server == Server::Bind && is_strict(it)
}

fn takes_other_parameters(it: &Difference) -> bool {
    use ProofTwist::{BothKinds, Flags, MixedSalt, OwnerOfChild, UnknownHash};
    let is_about_parameters =
        matches!(it.fault.plant, Plant::Proof(Flags | UnknownHash | MixedSalt | OwnerOfChild | BothKinds));
    is_about_parameters && is_lenient(it)
}

fn takes_other_proofs(it: &Difference) -> bool {
    use ProofTwist::{
        AliasBit, NextOutside, OfParent, TypeBit, WildcardMade, WithoutNextCloser, WithoutWildcard,
    };
    let is_about_proofs = matches!(
        it.fault.plant,
        Plant::Proof(
            AliasBit | NextOutside | OfParent | TypeBit | WildcardMade | WithoutNextCloser | WithoutWildcard
        ) | Plant::Reply(ReplyTwist::Rcode | ReplyTwist::RcodeOfData)
    );
    is_about_proofs && is_lenient(it)
}

fn differs_below_opt_out(it: &Difference) -> bool {
    let is_by_wildcard = [4, 5, 10].contains(&it.question);
    let is_about_it =
        matches!(it.fault.plant, Plant::Signature(Place::Wildcard, _) | Plant::Proof(ProofTwist::TypeBit));
    let is_about_rcode = matches!(it.fault.plant, Plant::Reply(ReplyTwist::Rcode | ReplyTwist::RcodeOfData))
        && !is_lenient(it);
    it.kind == Kind::OptOut && (is_by_wildcard && is_about_it || is_about_rcode)
}

fn takes_another_way(it: &Difference) -> bool {
    match (it.server, it.fault.plant) {
        // It asks for the DS records of the names between the zone and the name, and refuses the answer with their proofs.
        (Server::KnotResolver, Plant::Proof(_) | Plant::Signature(..) | Plant::Reply(_)) => {
            is_strict(it) && [4, 5, 9, 10].contains(&it.question)
        }
        // Its built-in anchor of the root stays.
        (Server::PowerDns, Plant::Anchor(AnchorTwist::OtherOwner)) => is_strict(it),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_section_of_the_page() {
        let page = include_str!("../../../../docs/validators.md");
        assert!(REASONS.len() <= 12);
        for Reason { number, source, .. } in REASONS {
            assert!(page.contains(&format!("\n## {number}. ")) && source.starts_with("RFC "), "{number}");
        }
    }
}
