//! Pseudo-random numbers that depend only on a seed and a number, so that a load is repeatable.

/// The finalizer of SplitMix64: every bit of the input flips every bit of the result with probability 1/2.
#[inline]
pub fn mix(value: u64) -> u64 {
    let mut hash = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

/// Converts a share of 0 to 1 to a threshold for 32 bits; 2^32 means all.
pub fn threshold(share: f64) -> u64 {
    // The conversion saturates, so values outside 0 to 1 count as 0 or 1, and NaN as 0.
    ((share * 4_294_967_296.0) as u64).min(1 << 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_draws_is_below_its_bound() {
        for (share, low, high) in [(0.0, 0, 0), (0.25, 15_800, 16_970), (1.0, 65_536, 65_536)] {
            let hits = (0..65_536).filter(|number| mix(*number) >> 32 < threshold(share)).count();
            // Five standard deviations of a binomial distribution to each side.
            assert!((low..=high).contains(&hits), "{share}: {hits}");
        }
        assert_eq!((threshold(7.0), threshold(-7.0), threshold(f64::NAN)), (1 << 32, 0, 0));
    }
}
