//! The counter that gives every connection its connection count (RFC 1644 section 3.1; FreeBSD's `tcp_ccgen`).

use crate::serial::Serial;

/// Generator of connection counts: one for all connections of a host. 0 means "undefined" in the caches, so it is skipped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountGenerator(Serial);

impl CountGenerator {
    /// A generator whose first count is the one after `last`.
    pub fn new(last: u32) -> CountGenerator {
        CountGenerator(Serial(last))
    }

    /// The count of the next connection.
    pub fn next(&mut self) -> Serial {
        self.0 = self.0.plus(1);
        if self.0 == Serial(0) {
            self.0 = Serial(1);
        }
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_skip_zero() {
        let mut counts = CountGenerator::new(u32::MAX - 1);
        assert_eq!([counts.next(), counts.next(), counts.next()], [Serial(u32::MAX), Serial(1), Serial(2)]);
    }
}
