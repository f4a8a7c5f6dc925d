//! Searches of zones under way: DS records and keys of a name, and the validations that wait for the end.
//!
//! ```text
//! DS and DNSKEY asked ──> DS validated ──> none: known as unsigned, or as no apex
//!                                     └──> keys that the DS records name ──> the DNSKEY RRset verified with them ──> all keys known
//! ```

use crate::base::slab::{Index, NONE, Record, Slab};
use crate::interface::ClientNetwork;
use dnssec::{Bogus, LowerName};
use wire::Type;

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
    /// RDATA of the DS records that were verified, each behind two octets with its length.
    pub ds_rdata: Vec<u8>,
    /// Longest time for which the DS records hold, in seconds.
    pub ds_secs: u32,
    /// Keys on trial: those that DS records or anchors vouch for.
    pub trial: Vec<u8>,
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
    /// RDATA of the DS records.
    pub fn ds(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let mut rest = &self.ds_rdata[..];
        core::iter::from_fn(move || {
            let (&length, after) = rest.split_first_chunk::<2>()?;
            let (rdata, after) = after.split_at_checked(usize::from(u16::from_be_bytes(length)))?;
            rest = after;
            Some(rdata)
        })
    }

    /// Keeps the RDATA of DS records.
    pub fn keep_ds<'r>(&mut self, records: impl Iterator<Item = &'r [u8]>, secs: u32) {
        self.ds_secs = secs;
        self.ds_rdata.clear();
        for rdata in records {
            self.ds_rdata.extend((rdata.len() as u16).to_be_bytes());
            self.ds_rdata.extend(rdata);
        }
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
        Searches { slab: Slab::new(capacity), capacity, in_use: Vec::new() }
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
        ds_rdata.clear();
        trial.clear();
        (*ds_secs, *refused, *task, *waiting) = (u32::MAX, None, NONE, NONE);
        self.in_use.push(index);
        Some(index)
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
    fn ds_records_are_kept_one_by_one() {
        let mut search = Search::default();
        search.keep_ds([&b"abc"[..], b"", b"d"].into_iter(), 60);
        assert_eq!(search.ds().collect::<Vec<_>>(), [&b"abc"[..], b"", b"d"]);
        search.keep_ds([].into_iter(), 60);
        assert_eq!(search.ds().count(), 0);
    }
}
