//! Searches of zones under way: DS records and keys of a name, and the validations that wait for the end.
//!
//! ```text
//! DS and DNSKEY asked ──> DS validated ──> none: known as unsigned, or as no apex
//!                                     └──> keys that the DS records name ──> the DNSKEY RRset verified with them ──> all keys known
//! ```

use crate::base::slab::{Index, NONE, Record, Slab};
use crate::interface::ClientNetwork;
use crate::limits::SEARCH_OCTETS;
use dnssec::{Bogus, LowerName};
use wire::Type;

/// Octets of the RDATA of a DS record that are kept: one more than the longest digest takes (SHA-384, 48 octets), so that a longer record
/// still has a wrong length.
const DS_OCTETS: usize = 4 + 48 + 1;

/// One of the two questions of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Part {
    /// It was not asked.
    #[default]
    NotAsked,
    /// It is in flight, as this outbound query.
    Asked(Index),
    /// This outbound query is held, and refers to the parked reply.
    Replied(Index),
    /// The reply to this outbound query, which is held, is validated.
    Judged(Index),
    /// The reply was used.
    Used,
}

/// Search of a zone.
pub(crate) struct Search {
    /// Name of the zone, if there is one.
    pub name: LowerName,
    /// True if trust anchors vouch for its keys, so that its DS records do not matter.
    pub has_anchors: bool,
    /// True if what is known of the zone soon expires, so that nobody waits for the end of this search.
    pub is_refresh: bool,
    /// Customer whose query has begun the search; none of a query that nobody waits for.
    customer: Option<ClientNetwork>,
    /// DS records.
    pub ds: Part,
    /// Keys.
    pub keys: Part,
    /// RDATA of the DS records that were verified, each behind an octet with its length.
    ds_rdata: Vec<u8>,
    /// Longest time for which the DS records hold, in seconds.
    pub ds_secs: u32,
    /// Keys on trial: those that DS records or anchors vouch for.
    trial: Vec<u8>,
    /// Reason for which a reply was refused, so that its question is asked again.
    pub refused: Option<Bogus>,
    /// Validation of the reply that is used now; [`NONE`] if a reply is waited for.
    pub task: Index,
    /// First validation that waits for the end.
    pub waiting: Index,
}

impl Default for Search {
    fn default() -> Search {
        Search {
            name: LowerName::ROOT,
            has_anchors: false,
            is_refresh: false,
            customer: None,
            ds: Part::NotAsked,
            keys: Part::NotAsked,
            ds_rdata: Vec::new(),
            ds_secs: 0,
            trial: Vec::new(),
            refused: None,
            task: NONE,
            waiting: NONE,
        }
    }
}

impl Record for Search {
    #[cfg(debug_assertions)]
    fn poison(&mut self) {
        self.ds_rdata.clear();
        self.trial.clear();
        (self.task, self.waiting, self.ds_secs) = (NONE - 1, NONE - 1, u32::MAX);
        (self.ds, self.keys, self.refused) = (Part::Used, Part::Used, Some(Bogus::Malformed));
    }
}

impl Search {
    /// Keys on trial.
    pub fn trial(&self) -> &[u8] {
        &self.trial
    }

    /// RDATA of the DS records, none of them longer than [`DS_OCTETS`].
    pub fn ds(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let mut rest = &self.ds_rdata[..];
        core::iter::from_fn(move || {
            let (&length, after) = rest.split_first()?;
            let (rdata, after) = after.split_at_checked(usize::from(length))?;
            rest = after;
            Some(rdata)
        })
    }

    /// Octets that the search has kept.
    fn octets(&self) -> usize {
        self.ds_rdata.len() + self.trial.len()
    }

    /// The question of a type.
    pub fn part(&mut self, qtype: Type) -> &mut Part {
        if qtype == Type::DS { &mut self.ds } else { &mut self.keys }
    }
}

/// All searches under way.
pub(crate) struct Searches {
    slab: Slab<Search>,
    capacity: usize,
    /// Those in use.
    in_use: Vec<Index>,
}

impl Searches {
    /// Room for `capacity` searches.
    pub fn new(capacity: usize) -> Searches {
        Searches { slab: Slab::new(capacity), capacity, in_use: Vec::with_capacity(capacity) }
    }

    /// Number of searches.
    pub fn len(&self) -> usize {
        self.in_use.len()
    }

    /// Search of a name.
    pub fn find(&self, name: &LowerName) -> Option<Index> {
        self.in_use.iter().copied().find(|&index| self.slab[index].name == *name)
    }

    /// Search that waits for an outbound query.
    pub fn find_asked(&self, outbound: Index) -> Option<(Index, Type)> {
        self.in_use.iter().copied().find_map(|index| {
            let Search { ds, keys, .. } = &self.slab[index];
            match Part::Asked(outbound) {
                asked if *ds == asked => Some((index, Type::DS)),
                asked if *keys == asked => Some((index, Type::DNSKEY)),
                _ => None,
            }
        })
    }

    /// Begins the search of a name. None: there is no room.
    ///
    /// Of the room a customer may use as much as it leaves free (dynamic thresholds; Choudhury and Hahne, 1998): one that asks for names
    /// below ever new zones whose servers are silent gets half, two such customers a third each, and all others find room.
    pub fn begin(&mut self, of: &LowerName, anchored: bool, by: Option<ClientNetwork>) -> Option<Index> {
        if by.is_some() && self.of_customer(by) >= self.capacity - self.in_use.len() {
            return None;
        }
        let index = self.slab.take()?;
        let Search {
            name,
            has_anchors,
            is_refresh,
            customer,
            ds,
            keys,
            ds_rdata,
            ds_secs,
            trial,
            refused,
            task,
            waiting,
        } = &mut self.slab[index];
        (*name, *has_anchors, *is_refresh, *customer) = (*of, anchored, false, by);
        (*ds, *keys) = (if anchored { Part::Used } else { Part::NotAsked }, Part::NotAsked);
        (*ds_rdata, *trial) = (Vec::new(), Vec::new());
        (*ds_secs, *refused, *task, *waiting) = (u32::MAX, None, NONE, NONE);
        self.in_use.push(index);
        Some(index)
    }

    /// Keeps the RDATA of DS records, which hold for some seconds. False: there is no room.
    pub fn keep_ds<'r>(
        &mut self,
        index: Index,
        records: impl Iterator<Item = &'r [u8]> + Clone,
        secs: u32,
    ) -> bool {
        let records = records.map(|rdata| &rdata[..rdata.len().min(DS_OCTETS)]);
        let octets = records.clone().map(|rdata| 1 + rdata.len()).sum();
        if !self.has_room(index, octets) {
            return false;
        }
        let search = &mut self.slab[index];
        search.ds_secs = secs;
        search.ds_rdata = Vec::with_capacity(octets);
        for rdata in records {
            search.ds_rdata.push(rdata.len() as u8);
            search.ds_rdata.extend(rdata);
        }
        true
    }

    /// Puts keys on trial. False: there is no room.
    pub fn put_on_trial(&mut self, index: Index, keys: &[u8]) -> bool {
        let has_room = self.has_room(index, keys.len());
        if has_room {
            self.slab[index].trial = keys.to_vec();
        }
        has_room
    }

    /// True if there is room for octets of a search: a customer may use as much as it leaves free, as with searches.
    fn has_room(&self, index: Index, octets: usize) -> bool {
        let of = |customer: Option<Option<ClientNetwork>>| -> usize {
            let searches = self.in_use.iter().map(|&index| &self.slab[index]);
            let counted = searches.filter(|search| customer.is_none_or(|of| search.customer == of));
            counted.map(Search::octets).sum()
        };
        let customer = self.slab[index].customer;
        let free = SEARCH_OCTETS.checked_sub(of(None) + octets);
        free.is_some_and(|free| customer.is_none() || of(Some(customer)) + octets <= free)
    }

    fn of_customer(&self, customer: Option<ClientNetwork>) -> usize {
        self.in_use.iter().filter(|&&index| self.slab[index].customer == customer).count()
    }

    /// Number of refreshes.
    pub fn refreshes(&self) -> usize {
        self.in_use.iter().filter(|&&index| self.slab[index].is_refresh).count()
    }

    /// Ends a search.
    pub fn end(&mut self, index: Index) {
        self.in_use.retain(|&other| other != index);
        let Search { ds_rdata, trial, .. } = &mut self.slab[index];
        (*ds_rdata, *trial) = (Vec::new(), Vec::new());
        self.slab.give(index);
    }
}

impl core::ops::Index<Index> for Searches {
    type Output = Search;
    fn index(&self, index: Index) -> &Search {
        &self.slab[index]
    }
}

impl core::ops::IndexMut<Index> for Searches {
    fn index_mut(&mut self, index: Index) -> &mut Search {
        &mut self.slab[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnssec::DigestType;

    #[test]
    fn a_search_is_found_by_its_name_and_by_its_questions_until_it_ends() {
        let mut searches = Searches::new(2);
        let name = |octets| LowerName::from_wire(octets).unwrap();
        let (a, b) = (name(b"\x01a\0"), name(b"\x01b\0"));
        let first = searches.begin(&a, false, None).unwrap();
        let second = searches.begin(&b, true, None).unwrap();
        assert_eq!(searches.begin(&name(b"\x01c\0"), false, None), None);
        searches[first].ds = Part::Asked(7);
        *searches[second].part(Type::DNSKEY) = Part::Asked(8);
        assert_eq!((searches.find(&a), searches.find(&b)), (Some(first), Some(second)));
        assert_eq!(searches.find_asked(7), Some((first, Type::DS)));
        assert_eq!(searches.find_asked(8), Some((second, Type::DNSKEY)));
        searches.end(first);
        assert_eq!((searches.find(&a), searches.find_asked(7)), (None, None));
        let third = searches.begin(&a, false, None).unwrap();
        assert_eq!((searches[third].ds, searches[third].keys), (Part::NotAsked, Part::NotAsked));
    }

    #[test]
    fn a_customer_whose_searches_never_end_leaves_room_for_others() {
        let mut searches = Searches::new(12);
        let customer = |last: u16| Some(ClientNetwork::of([0x2001, 0xdb8, last, 0, 0, 0, 0, 1].into(), 0));
        let begun = |searches: &mut Searches, of: u16, count: u8| {
            let names = (0..count).map(|number| LowerName::from_wire(&[1, number, 0]).unwrap());
            names.filter(|name| searches.begin(name, false, customer(of)).is_some()).count()
        };
        // One customer gets half; with a second one, each may use as much as is free.
        assert_eq!(begun(&mut searches, 1, 100), 6);
        assert_eq!(begun(&mut searches, 2, 100), 3);
        assert_eq!(begun(&mut searches, 3, 1), 1);
        // A search without a customer, as a refresh is, takes what is left.
        assert!(searches.begin(&LowerName::ROOT, true, None).is_some());
        let first = searches.find(&LowerName::from_wire(&[1, 0, 0]).unwrap()).unwrap();
        searches.end(first);
        assert_eq!(begun(&mut searches, 4, 1), 1);
    }

    #[test]
    fn ds_records_are_kept_one_by_one_and_none_longer_than_one_with_a_wrong_length() {
        let mut searches = Searches::new(1);
        let search = searches.begin(&LowerName::ROOT, false, None).unwrap();
        let long = [7; 60];
        assert!(searches.keep_ds(search, [&b"abc"[..], b"", &long].into_iter(), 60));
        assert_eq!(searches[search].ds().collect::<Vec<_>>(), [&b"abc"[..], b"", &long[..53]]);
        // RFC 6605 section 2: SHA-384 has 48 octets, and no digest that is known has more.
        let digests = [DigestType::SHA1, DigestType::SHA256, DigestType::SHA384];
        assert_eq!(digests.map(|digest| digest.length()), [Some(20), Some(32), Some(48)]);
        assert!(searches.keep_ds(search, [].into_iter(), 60));
        assert_eq!(searches[search].ds().count(), 0);
    }

    #[test]
    fn the_octets_of_all_searches_are_bounded_and_a_customer_leaves_others_as_much_as_it_has() {
        let mut searches = Searches::new(4096);
        let customer = |last: u16| Some(ClientNetwork::of([0x2001, 0xdb8, last, 0, 0, 0, 0, 1].into(), 0));
        let keys = [7; 8000];
        let mut tried = |of: Option<ClientNetwork>, first: u8| {
            let names = (0..100).map(|number| LowerName::from_wire(&[2, first, number, 0]).unwrap());
            let begun: Vec<Index> = names.filter_map(|name| searches.begin(&name, false, of)).collect();
            assert_eq!(begun.len(), 100);
            let tried = begun.iter().filter(|&&search| searches.put_on_trial(search, &keys)).count();
            assert!(
                searches.in_use.iter().map(|&index| searches[index].octets()).sum::<usize>() <= SEARCH_OCTETS
            );
            tried
        };
        // 262,144 octets are 32 times 8,000: half of them, a third of those, and so on; a refresh takes what is left.
        assert_eq!([tried(customer(1), 1), tried(customer(2), 2), tried(customer(3), 3)], [16, 8, 4]);
        assert_eq!((tried(None, 4), tried(None, 5)), (4, 0));
        for search in searches.in_use.clone() {
            searches.end(search);
        }
        let search = searches.begin(&LowerName::ROOT, false, customer(1)).unwrap();
        assert!(searches.put_on_trial(search, &keys));
    }
}
