//! TOTD's table of duplicates: messages with a source and an ID that were seen less than a minute ago are ignored.
//!
//! The table is meant for clients that repeat a query. TOTD looks up every message, also the upstream's replies. An entry lies at
//! the sum of the octets of its source address plus its ID, modulo 1,000, and is overwritten by any other message with that
//! sum. So the upstream's last 1,000 sequential IDs are in the table. If the counter goes back by fewer than 1,000 IDs, the
//! replies to the IDs that follow are ignored for the lifetime of the entries.

use super::limits::DUPLICATES;
use core::time::Duration;

/// Source of a message, as the table sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Address and port, different for different sources.
    pub identity: u64,
    /// Sum of the octets of address and port.
    pub octets: u32,
}

impl Source {
    /// The source of an IPv4 address and a port.
    pub fn new(address: [u8; 4], port: u16) -> Source {
        let octets = address.into_iter().chain(port.to_be_bytes()).map(u32::from).sum();
        Source { identity: u64::from(u32::from_be_bytes(address)) << 16 | u64::from(port), octets }
    }
}

/// An entry; without a message yet, its lifetime has ended.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    source: Source,
    id: u16,
    ends: Duration,
}

/// The table.
#[derive(Clone, Debug)]
pub struct Duplicates {
    entries: Vec<Entry>,
    lifetime: Duration,
}

impl Duplicates {
    /// An empty table whose entries live for `lifetime`; 0: nothing is ever a duplicate.
    pub fn new(lifetime: Duration) -> Duplicates {
        Duplicates { entries: vec![Entry::default(); DUPLICATES], lifetime }
    }

    /// True if a message with this source and ID was seen within the lifetime. If not, it is entered. A duplicate does not
    /// prolong the lifetime of its entry.
    pub fn is_duplicate(&mut self, now: Duration, source: Source, id: u16) -> bool {
        let entry = &mut self.entries[(source.octets as usize + usize::from(id)) % DUPLICATES];
        if entry.source == source && entry.id == id && now < entry.ends {
            return true;
        }
        *entry = Entry { source, id, ends: now + self.lifetime };
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn an_id_of_a_source_is_a_duplicate_for_its_lifetime_and_no_longer() {
        let mut table = Duplicates::new(MINUTE);
        let (one, other) = (Source::new([127, 0, 0, 1], 53), Source::new([127, 0, 0, 2], 53));
        assert!(!table.is_duplicate(Duration::ZERO, one, 7));
        assert!(table.is_duplicate(MINUTE - Duration::from_nanos(1), one, 7));
        assert!(!table.is_duplicate(MINUTE, one, 7), "a duplicate does not prolong the lifetime");
        assert!(!table.is_duplicate(MINUTE, other, 7));
        assert!(!table.is_duplicate(MINUTE, one, 8));
    }

    #[test]
    fn the_last_1000_sequential_ids_are_remembered() {
        let mut table = Duplicates::new(MINUTE);
        let source = Source::new([10, 0, 0, 1], 53);
        let remembered = |distance: u16| {
            let mut table = table.clone();
            for id in 1..=5000u16 {
                assert!(!table.is_duplicate(Duration::ZERO, source, id));
            }
            table.is_duplicate(Duration::ZERO, source, 5000 - distance)
        };
        assert!(remembered(0) && remembered(999));
        assert!(!remembered(1000) && !remembered(4000));
        assert!(!table.is_duplicate(Duration::ZERO, source, 1));
    }

    #[test]
    fn a_lifetime_of_0_finds_no_duplicate() {
        let mut table = Duplicates::new(Duration::ZERO);
        let source = Source::default();
        assert!(!table.is_duplicate(MINUTE, source, 7));
        assert!(!table.is_duplicate(MINUTE, source, 7));
    }
}
