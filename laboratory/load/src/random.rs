//! Pseudo-random numbers that depend only on a seed and a number, so that a load is repeatable.

/// The number at this place of SplitMix64's stream of seed 0, without those before it.
#[inline]
pub fn mix(value: u64) -> u64 {
    splitmix::mix(value.wrapping_mul(splitmix::GAMMA))
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
