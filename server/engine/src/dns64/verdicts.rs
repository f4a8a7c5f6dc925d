//! Verdicts about the addresses in real AAAA records, for rules with `real-aaaa = "verify"`.
//!
//! A server that announces an IPv6 address and does not answer at it is lost for clients without IPv4, although its IPv4 address may live
//! behind the NAT64. So somebody outside of the engine tries the addresses, and tells it the verdicts; the engine notes which addresses it
//! has met, and never waits for a verdict. `verify.rs` has the use that a reply makes of them.
//!
//! Addresses are judged, not names: many names share an address, which is tried once for all of them. An answer keeps its living addresses.
//!
//! Only global unicast addresses (2000::/3, RFC 4291 section 2.4) are ever tried. A zone may have any address, and must not make this server
//! knock at loopback, at link-local or at private addresses.

use crate::base::time::{Instant, Span};
use core::net::Ipv6Addr;
use std::collections::BTreeMap;

/// Time from one trial of an address to the next one, if it is asked for.
pub const TRIED_AGAIN: Span = Span::from_secs(60);

/// Time for which an address that lived counts as tried. Names that are asked seldom have older verdicts.
const LIVES: Span = Span::from_secs(600);

/// Addresses that wait for [`Engine::take_untried`](crate::Engine::take_untried). With the names, of at most 255 octets, these are 1.2 MiB;
/// at five calls a second a worker notes 20,000 addresses in a second, ten times as many as are tried.
const NOTED: usize = 4_096;

/// Outcome of the latest trial of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// True if it answered.
    pub lives: bool,
    /// End of the trial.
    pub at: Instant,
}

/// The verdicts at one time. Workers share them, and they never change.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    /// Sorted by address.
    sorted: Box<[(Ipv6Addr, Verdict)]>,
}

impl Verdicts {
    /// The table of these verdicts, one for each address.
    pub fn new(verdicts: impl IntoIterator<Item = (Ipv6Addr, Verdict)>) -> Verdicts {
        let mut sorted: Vec<_> = verdicts.into_iter().collect();
        sorted.sort_unstable_by_key(|&(address, _)| address);
        Verdicts { sorted: sorted.into() }
    }

    /// The verdict about an address; none if it was not tried.
    pub fn of(&self, address: Ipv6Addr) -> Option<Verdict> {
        let place = self.sorted.binary_search_by_key(&address, |&(address, _)| address).ok()?;
        Some(self.sorted[place].1)
    }
}

/// Fate of the address in a real AAAA record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is given, as it lives.
    Lives,
    /// It is given, as it is of a kind that is never tried.
    Exempt,
    /// It is given for a short time: nothing is known of it, or nothing recent.
    Untried,
    /// It is not given.
    Dead,
}

/// Fate of an address now.
pub fn fate(address: Ipv6Addr, verdicts: Option<&Verdicts>, now: Instant) -> Fate {
    if address.segments()[0] >> 13 != 1 {
        return Fate::Exempt;
    }
    match verdicts.and_then(|verdicts| verdicts.of(address)) {
        Some(Verdict { lives: false, .. }) => Fate::Dead,
        Some(Verdict { at, .. }) if now - at < LIVES => Fate::Lives,
        Some(_) | None => Fate::Untried,
    }
}

/// Addresses that are to be tried.
#[derive(Debug, Default)]
pub struct Untried {
    /// Each with a name that has it, in wire form.
    pub addresses: BTreeMap<Ipv6Addr, Box<[u8]>>,
    /// Number of those for which there was no room.
    pub dropped: u64,
}

impl Untried {
    /// Notes an address with a name that has it, in wire form.
    #[cold]
    pub(crate) fn note(&mut self, address: Ipv6Addr, name: &[u8]) {
        if self.addresses.len() < NOTED {
            self.addresses.entry(address).or_insert_with(|| name.into());
        } else if !self.addresses.contains_key(&address) {
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    #[test]
    fn a_table_finds_each_of_its_addresses_and_no_other() {
        let of = |number: u16| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number);
        let verdict =
            |number: u16| Verdict { lives: !number.is_multiple_of(3), at: Instant(u64::from(number)) };
        let table = Verdicts::new((0..500).rev().map(|number| (of(2 * number), verdict(number))));
        for number in 0..500 {
            assert_eq!(table.of(of(2 * number)), Some(verdict(number)));
            assert_eq!(table.of(of(2 * number + 1)), None);
        }
        assert_eq!(Verdicts::default().of(of(0)), None);
    }

    #[test]
    fn only_global_unicast_addresses_are_ever_tried() {
        // RFC 4291 sections 2.4 and 2.5, RFC 4193, RFC 6052: no address outside of 2000::/3 is a server on the Internet.
        let exempt = [
            "::1",
            "::",
            "::ffff:192.0.2.1",
            "64:ff9b::192.0.2.1",
            "1fff::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "ff02::1",
            "4000::1",
        ];
        for text in exempt {
            assert_eq!(fate(address(text), None, Instant(0)), Fate::Exempt, "{text}");
        }
        for text in ["2000::1", "2001:db8::1", "2a00::1", "3fff:ffff::1"] {
            assert_eq!(fate(address(text), None, Instant(0)), Fate::Untried, "{text}");
        }
    }

    #[test]
    fn a_dead_address_stays_dead_and_a_living_one_counts_for_ten_minutes() {
        let (dead, living) = (address("2001:db8::1"), address("2001:db8::2"));
        let at = Instant(5_000_000_000);
        let verdict = |lives| Verdict { lives, at };
        let table = Verdicts::new([(dead, verdict(false)), (living, verdict(true))]);
        let fates =
            |after| [dead, living].map(|address| fate(address, Some(&table), at + Span::from_secs(after)));
        assert_eq!(fates(0), [Fate::Dead, Fate::Lives]);
        assert_eq!(fates(599), [Fate::Dead, Fate::Lives]);
        assert_eq!(fates(600), [Fate::Dead, Fate::Untried]);
        assert_eq!(fates(1_000_000), [Fate::Dead, Fate::Untried]);
    }

    #[test]
    fn the_notes_are_bounded_and_have_each_address_once() {
        let mut notes = Untried::default();
        for number in 0..2 * NOTED as u32 {
            let address = Ipv6Addr::from(0x2001_0db8 << 96 | u128::from(number / 2));
            notes.note(address, b"\x01a\0");
        }
        assert_eq!((notes.addresses.len(), notes.dropped), (NOTED, 0));
        notes.note(address("2001:db8:1::1"), b"\0");
        assert_eq!((notes.addresses.len(), notes.dropped), (NOTED, 1));
    }
}
