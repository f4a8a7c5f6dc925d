//! Buckets that the entries of one name take in the index (`index.rs`), a fixed set for each name.
//!
//! The A and AAAA replies and the synthesis of them share a bucket, because one resolution reads and writes all three: one bucket for
//! each combination of CD, AD and DO. All other types are spread over [`OTHERS`] buckets. A client chooses type and flags freely, so
//! with one bucket for a whole name 17 small queries would evict the addresses of that name, and a name in real use (five
//! combinations of flags, four types) would evict itself all the time.
//!
//! The set is fixed, so that an operator's flush and lookup of a name need not search the whole cache. The number of the bucket comes
//! from the keyed hash of the entry: nobody can choose 17 types that meet in one bucket.

use crate::limits::NAME_BUCKETS;
use wire::Type;

/// Combinations of CD, AD and DO, each with a bucket for addresses.
const ADDRESSES: usize = 8;
/// Buckets for all other types.
const OTHERS: usize = NAME_BUCKETS - ADDRESSES;
const _: () = assert!(OTHERS.is_power_of_two());

/// 2^32 divided by the golden ratio. The multiples of this number are spread evenly over the 2^32 lower halves of hashes.
const STEP: u32 = 0x9e37_79b9;

/// Lower half of the hash of an entry, which chooses its bucket. `name`: hash of its name; `key`: hash of its whole key;
/// `query_flags`: CD, AD, DO, as in the key.
#[inline]
pub fn lower_half(name: u64, key: u64, qtype: Type, query_flags: u8) -> u64 {
    let number = match qtype {
        Type::A | Type::AAAA => usize::from(query_flags >> 1) % ADDRESSES,
        _ => ADDRESSES + key as usize % OTHERS,
    };
    numbered(name, number)
}

/// Lower halves of the hashes of all entries that a name may have.
pub fn of_name(name: u64) -> impl Iterator<Item = u64> {
    (0..NAME_BUCKETS).map(move |number| numbered(name, number))
}

#[inline]
fn numbered(name: u64, number: usize) -> u64 {
    u64::from((name as u32).wrapping_add((number as u32).wrapping_mul(STEP)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name_hash::HashKey;
    use crate::cache::index::Index;

    const KEY: HashKey = HashKey([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345]);

    #[test]
    fn addresses_with_the_same_flags_share_a_bucket_and_no_other_type_shares_it() {
        let name = KEY.hash(b"\x03www\x04bank\x04test\x00");
        let half = |qtype: Type, flags| {
            let key = KEY.hash_number(u128::from(qtype.0) << 64 | u128::from(flags) << 96 | u128::from(name));
            lower_half(name, key, qtype, flags)
        };
        for flags in [0, 2, 4, 6, 8, 10, 12, 14] {
            assert_eq!(half(Type::A, flags), half(Type::AAAA, flags));
            for other in [0, 2, 4, 6, 8, 10, 12, 14] {
                assert_eq!(half(Type::A, flags) == half(Type::A, other), flags == other);
                assert!((2..28).all(|qtype| half(Type(qtype), other) != half(Type::A, flags)));
            }
        }
        assert_eq!(half(Type::A, 0), name & 0xffff_ffff);
    }

    #[test]
    fn every_type_lies_in_a_bucket_of_its_name_and_no_bucket_has_many() {
        let name = KEY.hash(b"\x03www\x04bank\x04test\x00");
        // The smallest index in which no two buckets of a name coincide.
        let index = Index::new(1024 * 128);
        let mut buckets: Vec<usize> = of_name(name).map(|half| index.bucket_of(half)).collect();
        buckets.sort_unstable();
        assert!(buckets.windows(2).all(|pair| pair[0] != pair[1]), "{buckets:?}");
        let mut entries = vec![0; buckets.len()];
        for number in 0..512u16 {
            let (qtype, flags) = (Type(40 + number / 8), (number % 8) as u8 * 2);
            let key = KEY.hash_number(u128::from(number) << 64 | u128::from(name));
            let bucket = index.bucket_of(lower_half(name, key, qtype, flags));
            entries[buckets.binary_search(&bucket).expect("a bucket of the name")] += 1;
        }
        // 64 types with all combinations of flags, two for each bucket: 16 in one of them has a probability below 10^-7.
        assert!(entries.iter().all(|&count| count < 16), "{entries:?}");
    }
}
