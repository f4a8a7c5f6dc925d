//! Zones that cost much to validate, judged by `dnssec`: what each attack costs it, counted.

use crate::resolver::{Order, Resolver, Verified, Work};
use dnssec::{Bogus, Insecure, Status};
use signed_zones::attacks::{Attack, Attacked, Sizes, signed_name, unsigned_name, wrong_name};
use signed_zones::rtype;

/// Keys of one tag take 64 attempts each; 20 are more than a zone may have, and more DS records than are read are not needed.
const SIZES: Sizes = Sizes { keys: 20, ds: 20, ..Sizes::FULL };

#[test]
fn honest_names_are_secure_or_insecure_and_a_wrong_signature_is_refused() {
    let (world, verified) = (Attacked::new(Sizes::SMALL, 1_800_000_000), Verified::default());
    let mut resolver = Resolver::new(&world, &verified, Order::AsMade);
    let mut status = |name: &[u8], rtype| resolver.resolve(name, rtype).1;
    for rtype in [rtype::A, rtype::AAAA] {
        assert_eq!(status(&signed_name(1), rtype), Status::Secure);
        assert!(matches!(status(&unsigned_name(1), rtype), Status::Insecure(_)));
    }
    assert!(matches!(status(&wrong_name(), rtype::A), Status::Bogus(_)));
    // The root denies names of the top level.
    assert_eq!(status(b"\x05other\0", rtype::A), Status::Secure);
}

#[test]
fn an_attack_costs_no_more_than_the_limits_say_and_honest_zones_pass() {
    let (world, verified) = (Attacked::new(SIZES, 1_800_000_000), Verified::default());
    for attack in Attack::ALL {
        let mut resolver = Resolver::new(&world, &verified, Order::AsMade);
        // The first name finds the zone; each later one costs what it costs again and again.
        resolver.resolve(&attack.name(1), rtype::AAAA);
        let (_, status, Work { verifications, questions, blocks }) =
            resolver.resolve(&attack.name(2), rtype::AAAA);
        let cost = (u32::from(verifications), u32::from(questions), blocks);
        match attack {
            Attack::Hammer | Attack::Aliases | Attack::Cuts => {
                assert_eq!(status, Status::Secure, "{attack:?}")
            }
            Attack::Iterations => assert!(
                matches!(status, Status::Insecure(Insecure::Iterations) | Status::Bogus(Bogus::Iterations)),
                "{status:?}"
            ),
            _ => assert!(matches!(status, Status::Bogus(_)), "{attack:?}: {status:?}"),
        }
        // Verifications, questions, and blocks of SHA-1.
        let most = match attack {
            // A zone with more keys than any has is refused once, and so is one whose keys cannot be used.
            Attack::KeyTrap | Attack::LockCram => (0, 0, 0),
            // Two failures; the key with the long exponent is none.
            Attack::SmallKeyTrap | Attack::SigJam | Attack::Exponent => (2, 0, 0),
            // The DS records are signed.
            Attack::HashTrap => (1, 1, 0),
            // Work is refused before it is done: the hashes, and the RRsets of the message.
            Attack::Nsec3 => (3, 0, 0),
            Attack::Proofs => (0, 0, 0),
            Attack::Iterations => (2, 1, 0),
            Attack::Hammer => (2, 0, 0),
            // Seven aliases and the denial with its SOA; seven zones that may not be known.
            Attack::Aliases => (9, 0, 0),
            // Six cuts with DS records and keys, and the denial with its SOA.
            Attack::Cuts => (14, 6, 0),
        };
        assert!(cost.0 <= most.0 && cost.1 <= most.1 && cost.2 <= most.2, "{attack:?}: {cost:?} {status:?}");
    }
}
