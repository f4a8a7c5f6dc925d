//! Numbers modulo 2^32 that are compared by their distance: sequence numbers (RFC 9293 section 3.4) and connection counts
//! (RFC 1644 section 3.1).

/// A number modulo 2^32. `a.is_after(b)` holds if `a` lies less than 2^31 ahead of `b`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Serial(pub u32);

impl Serial {
    /// The number `count` further on.
    pub fn plus(self, count: u32) -> Serial {
        Serial(self.0.wrapping_add(count))
    }

    /// The signed distance from `other` to this number.
    pub fn minus(self, other: Serial) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    /// True if this number lies after `other`.
    pub fn is_after(self, other: Serial) -> bool {
        self.minus(other) > 0
    }

    /// True if this number is `other` or lies after it.
    pub fn is_at_or_after(self, other: Serial) -> bool {
        self.minus(other) >= 0
    }

    /// The later one of two numbers.
    pub fn max(self, other: Serial) -> Serial {
        if self.is_after(other) { self } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_across_the_wrap_around() {
        let (before, after) = (Serial(u32::MAX), Serial(1));
        assert_eq!((before.plus(2), after.minus(before)), (after, 2));
        assert!(after.is_after(before) && !before.is_after(after));
        assert!(before.is_at_or_after(before) && !before.is_after(before));
        // Half of all numbers lie after any number: no order holds over the whole circle.
        assert!(Serial(0x7fff_ffff).is_after(Serial(0)) && !Serial(0x8000_0000).is_after(Serial(0)));
        assert_eq!(before.max(after), after);
    }
}
