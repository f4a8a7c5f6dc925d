//! A range of ports, as `upstream.avoid-ports` and the system's list of reserved ports have it.

use super::report::{Fault, quoted};
use std::fmt;
use std::ops::RangeInclusive;

/// A range of ports; both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    /// The lowest port.
    pub first: u16,
    /// The highest port.
    pub last: u16,
}

impl PortRange {
    /// One port.
    pub fn single(port: u16) -> PortRange {
        PortRange { first: port, last: port }
    }

    /// The ports of the range.
    pub fn ports(self) -> RangeInclusive<u16> {
        self.first..=self.last
    }

    /// Parses a range like `2000-2999`, or one port. None: the text is neither, or the range ends before it begins.
    pub fn parse(text: &str) -> Option<PortRange> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let range = PortRange { first: number(first)?, last: number(last)? };
        (range.first <= range.last).then_some(range)
    }

    /// Parses a range of ports of a configuration.
    ///
    /// # Errors
    ///
    /// The text is no range of ports from 1 to 65535, or is one port, which is a number in a configuration.
    pub fn configured(text: &str) -> Result<PortRange, Fault> {
        let help = "write a range like \"2000-2999\", or one port as a number without quotation marks, from 1 to 65535";
        match PortRange::parse(text).filter(|range| range.first > 0) {
            Some(range) if text.contains('-') => Ok(range),
            Some(range) => {
                let help = format!("write {} without quotation marks", range.first);
                Err(Fault::new(format!("{} is one port, not a range", quoted(text)), help))
            }
            None => Err(Fault::new(format!("{} is not a range of ports", quoted(text)), help)),
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

/// A number of a port: only digits; the parser of Rust would accept a plus sign.
fn number(digits: &str) -> Option<u16> {
    digits.bytes().all(|octet| octet.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}
