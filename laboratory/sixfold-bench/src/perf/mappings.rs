//! Explicit address mappings (RFC 7757) in memory: the time in which the lines of a file become a table, and that of a lookup.
//!
//! Each lookup is for a random address of the table, which depends on the result of the lookup before, so neither the cache nor the
//! processor's order of execution hides what a lookup waits for. The time has the choice of the address in it, some nanoseconds.

use pref64::mapping::{Mapping, MappingError, Mappings};
use splitmix::SplitMix64;
use std::fmt::Write as _;
use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

/// First half of the IPv6 addresses.
const NETWORK: u64 = 0x2001_0db8_0064_0000;

/// Times of a table.
pub struct Times {
    /// To parse the lines and build the table.
    reading: Duration,
    /// Of one lookup, from an IPv4 to an IPv6 address.
    to_v6: Duration,
    /// Of one lookup, from an IPv6 to an IPv4 address.
    to_v4: Duration,
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "read in {:.1} ms, IPv4 to IPv6 {} ns, IPv6 to IPv4 {} ns",
            self.reading.as_secs_f64() * 1e3,
            self.to_v6.as_nanos(),
            self.to_v4.as_nanos()
        )
    }
}

/// Measures a table of so many lines, each with one address, by so many lookups in each direction.
///
/// # Errors
///
/// A count is 0, or a line is no mapping.
pub fn measure(lines: u32, lookups: u32) -> Result<Times, String> {
    if lines == 0 || lookups == 0 {
        return Err("lines and lookups must be at least 1".to_owned());
    }
    let mut text = String::new();
    for number in 0..lines {
        _ = writeln!(text, "{} {}", Ipv4Addr::from(v4(number)), Ipv6Addr::from(v6(number)));
    }
    let start = Instant::now();
    let list = text.lines().map(str::parse).collect::<Result<Vec<Mapping>, MappingError>>();
    let list = list.map_err(|error| error.to_string())?;
    let table = Mappings::new(list).map_err(|pair| format!("lines {} and {}", pair.first, pair.second))?;
    let reading = start.elapsed();
    let to_v6 = time(lines, lookups, |number| table.to_v6(black_box(v4(number))).map(|found| found[15]));
    let to_v4 = time(lines, lookups, |number| table.to_v4(black_box(v6(number))).map(|found| found[3]));
    Ok(Times { reading, to_v6: to_v6?, to_v4: to_v4? })
}

/// The IPv4 address of a line. An odd factor gives each number another one (Fibonacci hashing).
fn v4(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9e37_79b1).to_be_bytes()
}

/// The IPv6 address of a line.
fn v6(number: u32) -> [u8; 16] {
    let half = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((u128::from(NETWORK) << 64) | u128::from(half)).to_be_bytes()
}

/// Time of one lookup. `find` returns an octet of what it finds for the address of a line.
fn time(lines: u32, lookups: u32, find: impl Fn(u32) -> Option<u8>) -> Result<Duration, String> {
    let (mut random, mut found) = (SplitMix64::new(1), 0);
    let start = Instant::now();
    for _ in 0..lookups {
        let number = (random.place(lines as usize) as u32 ^ u32::from(found)).min(lines - 1);
        found = find(number).ok_or("a mapped address was not found")?;
    }
    Ok(start.elapsed() / lookups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_found_in_both_directions() {
        let times = measure(1000, 5000).unwrap();
        assert!(times.reading > Duration::ZERO, "{times}");
        assert!(measure(0, 1).is_err() && measure(1, 0).is_err());
        let line = format!("{} {}", Ipv4Addr::from(v4(7)), Ipv6Addr::from(v6(7)));
        let table = Mappings::new(vec![line.parse().unwrap()]).unwrap();
        assert_eq!((table.to_v6(v4(7)), table.to_v4(v6(7))), (Some(v6(7)), Some(v4(7))));
    }
}
