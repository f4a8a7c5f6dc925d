//! What was asked upstream and what came of it: the timeline of everything that the engine can know, for each question.

use crate::truth::{Bits, NameId, SECOND, Said};
use std::collections::HashMap;
use std::rc::Rc;

/// A question as it is asked upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Name.
    pub name: NameId,
    /// Type.
    pub rtype: u16,
    /// Bits.
    pub bits: Bits,
}

/// A reply that arrived, undamaged and over the right way.
#[derive(Clone, Debug)]
pub struct Heard {
    /// When.
    pub at: u64,
    /// What it says.
    pub said: Rc<Said>,
    /// For how long it may be kept, nanoseconds; none: not at all.
    pub life: Option<u64>,
    /// TTLs are brought into this range, seconds, when it is kept.
    pub range: Option<(u32, u32)>,
    /// It was asked under other settings, perhaps of other upstreams, and is perhaps not kept.
    pub is_raw: bool,
    /// It was believed for sure, and what was heard before is old news.
    pub is_news: bool,
}

/// What is known of one question.
#[derive(Debug, Default)]
pub struct Track {
    /// What was heard, in order.
    pub heard: Vec<Heard>,
    /// When something last went wrong with it; none: never.
    pub trouble: Option<u64>,
    /// The question that was asked last: its letters, and when.
    pub asked: Option<(Vec<u8>, u64)>,
    /// When anything came for it last.
    pub touched: u64,
}

/// Replies of one question that are remembered. More are only heard where nothing is kept, or of names with tiny TTLs, and
/// then the oldest are long over.
const MAX_HEARD: usize = 768;
/// Of these, the latest: somebody may wait for them.
const RECENT_HEARD: usize = 96;

/// Everything that is known.
#[derive(Debug, Default)]
pub struct Timeline {
    tracks: HashMap<Key, Track>,
    /// When something last went wrong that concerns everything.
    pub trouble: Option<u64>,
    /// When anything last went wrong.
    pub any_trouble: Option<u64>,
    /// When something last came that no question was to hear.
    pub noise: u64,
    /// When the cache was emptied.
    pub flushed: u64,
}

impl Timeline {
    /// What is known of a question.
    pub fn get(&self, key: Key) -> Option<&Track> {
        self.tracks.get(&key)
    }

    /// The same, to add to it.
    pub fn track_mut(&mut self, key: Key) -> &mut Track {
        self.tracks.entry(key).or_default()
    }

    /// A reply arrives.
    pub fn record_reply(&mut self, key: Key, heard: Heard) {
        let track = self.track_mut(key);
        if track.heard.len() == MAX_HEARD {
            // What is kept is of use longest.
            let fleeting = |heard: &Heard| heard.life.is_none();
            let place = track.heard[..MAX_HEARD - RECENT_HEARD].iter().position(fleeting).unwrap_or(0);
            track.heard.remove(place);
        }
        track.touched = heard.at;
        track.heard.push(heard);
    }

    /// Something goes wrong with a question.
    pub fn record_trouble(&mut self, key: Option<Key>, now: u64) {
        self.any_trouble = Some(now);
        match key {
            Some(key) => self.track_mut(key).trouble = Some(now),
            None => self.trouble = Some(now),
        }
    }

    /// Whether a question may have failed for a client that waits since `since`.
    pub fn may_have_failed(&self, key: Key, since: u64) -> bool {
        let late = |at: Option<u64>| at.is_some_and(|at| at + 8 * SECOND >= since);
        late(self.trouble) || self.get(key).is_some_and(|track| late(track.trouble))
    }

    /// Whether upstreams may have seemed to fail for such a client.
    pub fn was_troubled(&self, since: u64) -> bool {
        self.any_trouble.is_some_and(|at| at + 45 * SECOND >= since)
    }
}
