//! The timeline of each upstream question: its replies and troubles. The engine can know nothing else.

use crate::ground_truth::{Bits, NameId, SECOND, Said};
use std::collections::HashMap;
use std::rc::Rc;

/// A question as it is sent to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Name.
    pub name: NameId,
    /// Type.
    pub rtype: u16,
    /// Flags and DO.
    pub bits: Bits,
}

/// A reply that arrived undamaged and over the right link.
#[derive(Clone, Debug)]
pub struct Heard {
    /// Time of arrival.
    pub at: u64,
    /// Content.
    pub said: Rc<Said>,
    /// Time for which it may be cached, nanoseconds; none: it is not cached.
    pub life: Option<u64>,
    /// Smallest and largest TTL of its cached copy, seconds.
    pub range: Option<(u32, u32)>,
    /// The query was sent under other settings, perhaps to other upstreams, and the reply is perhaps not cached.
    pub is_raw: bool,
    /// The engine has certainly accepted the reply, so it replaces all earlier ones.
    pub is_news: bool,
}

/// The timeline of one question.
#[derive(Debug, Default)]
pub struct Track {
    /// Replies in order of arrival.
    pub heard: Vec<Heard>,
    /// Time of the last trouble with this question; none: there was none.
    pub trouble: Option<u64>,
    /// The last query: its question section in its letter case, and its time.
    pub asked: Option<(Vec<u8>, u64)>,
    /// Message IDs of the queries in that letter case.
    pub ids: Vec<u16>,
    /// Time of the last arrival for this question.
    pub touched: u64,
}

/// Largest number of replies that are remembered for one question. More arrive only if there is no cache or the TTL is tiny,
/// and then the oldest have long expired.
const MAX_HEARD: usize = 768;
/// The latest of these are never dropped: a client may be waiting for them.
const RECENT_HEARD: usize = 96;

/// The timelines of all questions.
#[derive(Debug, Default)]
pub struct Timeline {
    tracks: HashMap<Key, Track>,
    /// Time of the last trouble that concerns all questions.
    pub trouble: Option<u64>,
    /// Time of the last trouble of any question.
    pub any_trouble: Option<u64>,
    /// Time of the last message that fits no query.
    pub noise: u64,
    /// Time of the last cache flush.
    pub flushed: u64,
    /// Jumps of the clock: the times before and after, nanoseconds.
    pub jumps: Vec<(u64, u64)>,
}

impl Timeline {
    /// The timeline of a question.
    pub fn get(&self, key: Key) -> Option<&Track> {
        self.tracks.get(&key)
    }

    /// The timeline of a question, to be changed.
    pub fn track_mut(&mut self, key: Key) -> &mut Track {
        self.tracks.entry(key).or_default()
    }

    /// Adds a reply.
    pub fn record_reply(&mut self, key: Key, heard: Heard) {
        let track = self.track_mut(key);
        if track.heard.len() == MAX_HEARD {
            // Replies that cannot be cached are dropped first.
            let fleeting = |heard: &Heard| heard.life.is_none();
            let place = track.heard[..MAX_HEARD - RECENT_HEARD].iter().position(fleeting).unwrap_or(0);
            track.heard.remove(place);
        }
        track.touched = heard.at;
        track.heard.push(heard);
    }

    /// Records a trouble with a question, or with all questions.
    pub fn record_trouble(&mut self, key: Option<Key>, now: u64) {
        self.any_trouble = Some(now);
        match key {
            Some(key) => self.track_mut(key).trouble = Some(now),
            None => self.trouble = Some(now),
        }
    }

    /// Time of the end of the work that was under way at `at`: the clock may have jumped within 8 s, while a client waited.
    pub fn after_jumps(&self, at: u64) -> u64 {
        let jumped = |at: u64, &(before, after): &(u64, u64)| {
            if at <= before && before <= at + 8 * SECOND { at + (after - before) } else { at }
        };
        self.jumps.iter().fold(at, jumped)
    }

    /// True if a question may have failed for a client that has waited since `since`.
    pub fn may_have_failed(&self, key: Key, since: u64) -> bool {
        let late = |at: Option<u64>| at.is_some_and(|at| at + 8 * SECOND >= since);
        late(self.trouble) || self.get(key).is_some_and(|track| late(track.trouble))
    }

    /// True if upstreams may have seemed to fail for a client that has waited since `since`.
    pub fn was_troubled(&self, since: u64) -> bool {
        self.any_trouble.is_some_and(|at| at + 45 * SECOND >= since)
    }
}
