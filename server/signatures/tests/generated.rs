//! Signatures of `signed-zones`, whose RSA is its own and whose elliptic curves are the same library's.

use dnssec::Algorithm;
use signed_zones::keys::{ALGORITHMS, Fields, Key, signed_labels};
use signed_zones::{Rrset, Store, rtype};
use sixfold_signatures::Signed;

/// Key of an algorithm, an RRset, and the RDATA of its RRSIG record with the octets that are signed.
fn signed(algorithm: u8, number: u8, bits: usize) -> (Key, Vec<u8>, Vec<u8>) {
    let key = Key::new(Store::new(41).pair(number, algorithm, bits), false);
    let owner = kit::message::name("www.example");
    let set = Rrset {
        owner: owner.clone(),
        rtype: rtype::A,
        ttl: 300,
        data: [vec![192, 0, 2, 1], vec![192, 0, 2, 2]].into(),
    };
    let fields = Fields {
        covered: rtype::A,
        algorithm,
        labels: signed_labels(&owner) as u8,
        ttl: 300,
        expiration: 2_000,
        inception: 1_000,
        tag: key.tag(),
        signer: kit::message::name("example"),
    };
    let rdata = fields.sign(&set, &key);
    let signature = rdata[fields.head().len()..].to_vec();
    (key, signature, fields.signed_data(&set))
}

#[test]
fn every_algorithm_that_signs_zones_is_verified_with_its_own_key_alone() {
    for algorithm in ALGORITHMS {
        for bits in [1024, 2048] {
            let (key, signature, data) = signed(algorithm, 1, bits);
            let (other, ..) = signed(algorithm, 2, bits);
            let form = Signed {
                algorithm: Algorithm(algorithm),
                key: key.pair.public(),
                signature: &signature,
                data: &data,
            };
            assert!(form.is_valid(), "{algorithm}, {bits}");
            assert!(!Signed { key: other.pair.public(), ..form }.is_valid(), "{algorithm}, {bits}");
        }
    }
}

// RFC 5702 section 3: another digest is another signature.
#[test]
fn a_signature_of_rsa_is_valid_under_its_own_digest_alone() {
    let (key, signature, data) = signed(8, 1, 1024);
    let valid: Vec<u8> = [5, 7, 8, 10]
        .into_iter()
        .filter(|&number| {
            let algorithm = Algorithm(number);
            Signed { algorithm, key: key.pair.public(), signature: &signature, data: &data }.is_valid()
        })
        .collect();
    assert_eq!(valid, [8]);
}

#[test]
fn the_order_of_threads_does_not_matter() {
    let (key, signature, data) = signed(13, 1, 0);
    let outcomes: Vec<bool> = std::thread::scope(|scope| {
        let (key, signature, data) = (key.pair.public(), &signature, &data);
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                scope.spawn(move || {
                    let data = if thread % 2 == 0 { &data[..] } else { &data[1..] };
                    Signed { algorithm: Algorithm(13), key, signature, data }.is_valid()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread that ends")).collect()
    });
    assert_eq!(outcomes, [true, false, true, false]);
}
