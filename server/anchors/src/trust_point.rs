//! Keys of one zone, followed by RFC 5011: a state machine. The caller asks for the zone's DNSKEY RRset, verifies its signatures by the
//! keys in it, and tells what it saw; which keys are trusted, and when to ask again, follows.
//!
//! A hold-down is as good as its clock. Unbound and BIND compare times of the wall clock, so one jump forward by 30 days accepts a key that
//! was seen an hour ago. Here the wall clock decides nothing:
//!
//! - Time counts by a clock that cannot jump ([`Steady`]), while the machine runs, also while the server does not.
//! - Behind a restart of the machine, the zone's signatures can take its place. A signature does not appear before its inception, and the
//!   set in which the key was seen first was signed until `expiration`. An inception 30 days after that proves that they have passed.
//! - A set that is older than one that was seen before, by its inception, is a replay or comes from a server that lags. It still revokes
//!   keys, and changes nothing else. RFC 5011 would have it begin a hold-down anew, for as long as somebody replays it.
//!
//! So a key may be accepted later than by the wall clock, and never earlier. A revocation needs a signature by the revoked key and nothing
//! else (section 2.1), and no key comes back from it. A zone all of whose keys are revoked stays bogus: by section 5 it would be as if it had
//! never had an anchor, so insecure without another one above it, which is what somebody wants who has all its keys.
//!
//! A revoked key counts as removed 30 days after its revocation, and not after it was last seen (section 4.1, RemTime): both states are for
//! the operator to see, and neither is trusted (section 2.4.2).

use crate::anchor::{Data, TrustAnchor, with_revoke};
use crate::key::{Key, Moment, Pending, State, Steady};
use crate::limits::{DAY, HOLD_DOWN, HOUR, KEYS};
use crate::saved::SavedZone;
use dnssec::limits::KEY_RECORDS;
use dnssec::{Algorithms, DigestType, Digests, Dnskey, Ds, LowerName};
use std::time::Duration;

/// Valid signature over a DNSKEY RRset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signed {
    /// First second in which the signature is valid, modulo 2^32.
    pub inception: u32,
    /// Last second in which it is valid, modulo 2^32.
    pub expiration: u32,
    /// TTL of the RRset in its zone, in seconds.
    pub original_ttl: u32,
}

/// DNSKEY record that was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed<'a> {
    /// RDATA.
    pub rdata: &'a [u8],
    /// A signature over the whole RRset by this key, if one was verified and the wall clock lies within its times. A revoked key counts
    /// here as any other: that is what proves the revocation.
    pub signed: Option<Signed>,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// A configured DS record has found its key.
    Found,
    /// A new key was seen, and its hold-down begins.
    Pending,
    /// A key in its hold-down is not in a newer set: its hold-down ends without success.
    Withdrawn,
    /// All keys that vouched for a key in its hold-down are revoked: it ends without success.
    Unvouched,
    /// The hold-down of a key is over: it is trusted.
    Accepted,
    /// A trusted key is not in the set. It stays trusted.
    Missing,
    /// A missing key is there again.
    Present,
    /// A key is revoked.
    Revoked,
    /// A key was revoked 30 days ago.
    Removed,
    /// A new key was seen for which there is no place.
    Full,
    /// The last trusted key was revoked: the zone is bogus until its anchors are configured anew.
    Lost,
}

/// Change to be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Event.
    pub kind: EventKind,
    /// Key tag.
    pub key_tag: u16,
}

/// Consequences of an observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Changes, in their order.
    pub events: Vec<Event>,
    /// Time until the keys are to be asked for again.
    pub next: Duration,
    /// True if a trusted key signed the set, and no newer one is known.
    pub is_validated: bool,
    /// True if the state should be saved: something has changed that a restart must not forget, or a hold-down has come further.
    pub save: bool,
}

/// Times of the signatures by which a set was validated, in seconds since 1970.
#[derive(Clone, Copy)]
struct Window {
    inception: u64,
    /// Latest expiration.
    expiration: u64,
    /// Seconds until the earliest expiration.
    left: u64,
    original_ttl: u64,
}

/// A record of the observed set.
struct Seen<'a> {
    /// RDATA without the REVOKE bit.
    rdata: Box<[u8]>,
    key: Dnskey<'a>,
    signed: Option<Signed>,
}

/// Keys of a zone.
#[derive(Clone, Debug)]
pub struct TrustPoint {
    /// What a restart must not forget.
    zone: SavedZone,
    name: LowerName,
    /// Key of each configured anchor, as far as it is known.
    bound: Vec<Option<u32>>,
    /// TTL and seconds until the expiration, of the last validated set.
    timing: Option<(u64, u64)>,
}

impl TrustPoint {
    /// Begins with configured anchors, and goes on with what was saved. `None` if the zone is no name, or no anchor counts.
    ///
    /// The saved keys count only if all anchors from which they were learned are still configured, but for those that were revoked since.
    /// An anchor that was taken away must not live on in keys for which it vouched. Revoked keys stay revoked, whatever is configured.
    pub fn new(
        zone: &[u8],
        configured: Vec<Data>,
        saved: Option<SavedZone>,
        now: Moment,
        digests: &impl Digests,
    ) -> Option<TrustPoint> {
        let name = LowerName::from_wire(zone)?;
        let configured = usable(configured);
        if configured.is_empty() {
            return None;
        }
        let mut zone = saved.unwrap_or_else(|| SavedZone::new(name.as_wire()));
        if !is_continued(&zone, &configured, &name, digests) {
            zone.keys.retain(|key| key.state.is_revoked());
        }
        zone.configured = configured;
        let bound = vec![None; zone.configured.len()];
        let mut point = TrustPoint { zone, name, bound, timing: None };
        for place in 0..point.zone.configured.len() {
            point.bind_at_start(place, now, digests);
        }
        Some(point)
    }

    /// True if saved keys count under these anchors; see [`TrustPoint::new`].
    pub fn continues(saved: &SavedZone, configured: &[Data], digests: &impl Digests) -> bool {
        let configured = &usable(configured.to_vec());
        LowerName::from_wire(&saved.zone).is_some_and(|name| is_continued(saved, configured, &name, digests))
    }

    /// Zone: a wire name in lower case.
    pub fn zone(&self) -> &[u8] {
        &self.zone.zone
    }

    /// Keys that are known.
    pub fn keys(&self) -> &[Key] {
        &self.zone.keys
    }

    /// What a restart must not forget.
    pub fn saved(&self) -> &SavedZone {
        &self.zone
    }

    /// Anchors by which the zone's keys are to be judged. There is always one: if all are revoked, it is a revoked key, by which nothing
    /// becomes secure.
    pub fn anchors(&self) -> Vec<TrustAnchor> {
        let of = |data| TrustAnchor { zone: self.zone.zone.clone(), data };
        let trusted = self.zone.keys.iter().filter(|key| key.state.is_trusted());
        let mut anchors: Vec<TrustAnchor> = trusted.map(|key| of(Data::Dnskey(key.rdata.clone()))).collect();
        anchors.extend(self.unbound().map(|(_, data)| of(data.clone())));
        if anchors.is_empty() {
            let revoked = self.zone.keys.iter().filter(|key| key.state.is_revoked());
            anchors.extend(revoked.map(|key| of(Data::Dnskey(with_revoke(&key.rdata, true)))));
        }
        anchors
    }

    /// True if a key with this tag is trusted, as sentinels ask (RFC 8509).
    pub fn trusts(&self, key_tag: u16) -> bool {
        let configured = self.unbound().filter_map(|(_, data)| data.key()).map(|(tag, _)| tag);
        self.trusted().map(Key::key_tag).chain(configured).any(|tag| tag == key_tag)
    }

    /// True if some key is trusted, or would be.
    pub fn has_trust(&self) -> bool {
        self.zone.keys.iter().any(|key| key.state.is_trusted()) || self.unbound().next().is_some()
    }

    /// The question for the keys had no answer that could be used.
    pub fn failed(&mut self, now: Moment) -> Outcome {
        let mut events = Vec::new();
        self.advance(now, &mut events);
        self.outcome(events, false, false)
    }

    /// The DNSKEY RRset of the zone was observed. `supported` are the algorithms of keys that can be used.
    pub fn observe(
        &mut self,
        now: Moment,
        set: &[Observed<'_>],
        supported: Algorithms,
        digests: &impl Digests,
    ) -> Outcome {
        // A validator uses no set of more records (KeyTrap).
        if set.len() > KEY_RECORDS {
            return self.failed(now);
        }
        let mut events = Vec::new();
        self.advance(now, &mut events);
        let had_trust = self.has_trust();
        let seen: Vec<Seen<'_>> = set.iter().filter_map(Seen::of).collect();
        self.revoke(&seen, now, digests, &mut events);
        let window = self.window(&seen, now, digests);
        let fresh = window.filter(|window| self.is_fresh(window, now));
        let mut is_newer = false;
        if let Some(window) = fresh {
            is_newer = self.zone.newest != Some((window.inception, window.expiration));
            self.zone.newest = Some((window.inception, window.expiration));
            self.timing = Some((window.original_ttl, window.left));
            self.find(&seen, now, digests, &mut events);
            self.compare(&seen, &window, now, &mut events);
            self.add(&seen, &window, now, supported, &mut events);
        }
        if had_trust && !self.has_trust() {
            let key_tag = events.last().map_or(0, |event| event.key_tag);
            events.push(Event { kind: EventKind::Lost, key_tag });
        }
        self.outcome(events, fresh.is_some(), is_newer)
    }

    fn outcome(&self, events: Vec<Event>, is_validated: bool, is_newer: bool) -> Outcome {
        let is_counting = |key: &Key| matches!(key.state, State::AddPend | State::Revoked);
        let save = is_newer || !events.is_empty() || self.zone.keys.iter().any(is_counting);
        Outcome { events, next: self.next(is_validated), is_validated, save }
    }

    /// Time until the next question (RFC 5011 section 2.3). The end of a hold-down comes earlier than an interval of 15 days would have it.
    fn next(&self, is_validated: bool) -> Duration {
        let (ttl, left) = self.timing.unwrap_or((0, 0));
        let seconds = if is_validated {
            let left_of = |key: &Key| Some(key.pending.as_ref()?.need.saturating_sub(key.held));
            let hold_down = self.zone.keys.iter().filter_map(left_of).min().unwrap_or(u64::MAX);
            (15 * DAY).min(ttl / 2).min(left / 2).min(hold_down)
        } else {
            DAY.min(ttl / 10).min(left / 10)
        };
        Duration::from_secs(seconds.max(HOUR))
    }

    /// Lets the time pass that the steady clock has counted since the last call.
    fn advance(&mut self, now: Moment, events: &mut Vec<Event>) {
        let last = self.zone.clock.unwrap_or(now.steady);
        let is_same_boot = last.boot == now.steady.boot;
        let elapsed = if is_same_boot { now.steady.seconds.saturating_sub(last.seconds) } else { 0 };
        // A clock that went back, against its definition, must not count the same seconds twice.
        let seconds = if is_same_boot { now.steady.seconds.max(last.seconds) } else { now.steady.seconds };
        self.zone.clock = Some(Steady { boot: now.steady.boot, seconds });
        for key in &mut self.zone.keys {
            key.held = key.held.saturating_add(elapsed);
            if let Some(pending) = &mut key.pending {
                pending.has_gap |= !is_same_boot;
            }
            if key.state == State::Revoked && key.held >= HOLD_DOWN {
                key.enter(State::Removed, now);
                events.push(key.event(EventKind::Removed));
            }
        }
    }

    /// Revokes keys that say so themselves, and drops those for which only such keys vouched.
    fn revoke(&mut self, seen: &[Seen<'_>], now: Moment, digests: &impl Digests, events: &mut Vec<Event>) {
        for seen in seen.iter().filter(|seen| seen.key.is_revoked() && seen.signed.is_some()) {
            self.bind(&seen.rdata, State::Valid, now, digests);
            for key in self.zone.keys.iter_mut().filter(|key| key.is_pair_of(&seen.rdata)) {
                if !key.state.is_revoked() {
                    key.enter(State::Revoked, now);
                    events.push(key.event(EventKind::Revoked));
                }
            }
        }
        let trusted: Vec<u32> = self.trusted().map(|key| key.id).collect();
        self.zone.keys.retain(|key| {
            let is_vouched =
                key.pending.as_ref().is_none_or(|pending| pending.by.iter().any(|id| trusted.contains(id)));
            if !is_vouched {
                events.push(key.event(EventKind::Unvouched));
            }
            is_vouched
        });
    }

    /// Times of the signatures by trusted keys; `None` if there is none.
    fn window(&self, seen: &[Seen<'_>], now: Moment, digests: &impl Digests) -> Option<Window> {
        let is_trusted = |seen: &&Seen<'_>| {
            !seen.key.is_revoked()
                && match self.zone.keys.iter().find(|key| key.is_pair_of(&seen.rdata)) {
                    Some(key) => key.state.is_trusted() && key.rdata == seen.rdata,
                    None => self.matching(&seen.rdata, digests).next().is_some(),
                }
        };
        let mut window: Option<Window> = None;
        for signed in seen.iter().filter(is_trusted).filter_map(|seen| seen.signed) {
            let (inception, expiration) =
                (near(now.wall, signed.inception), near(now.wall, signed.expiration));
            let (left, original_ttl) = (expiration.saturating_sub(now.wall), u64::from(signed.original_ttl));
            let window = window.get_or_insert(Window { inception, expiration, left, original_ttl });
            window.inception = window.inception.max(inception);
            window.expiration = window.expiration.max(expiration);
            window.left = window.left.min(left);
            window.original_ttl = window.original_ttl.min(original_ttl);
        }
        window
    }

    /// True unless a set is known that is newer, and whose signatures are still valid.
    fn is_fresh(&self, window: &Window, now: Moment) -> bool {
        self.zone
            .newest
            .is_none_or(|(inception, expiration)| window.inception >= inception || now.wall > expiration)
    }

    /// Finds the keys that configured DS records name.
    fn find(&mut self, seen: &[Seen<'_>], now: Moment, digests: &impl Digests, events: &mut Vec<Event>) {
        for seen in seen.iter().filter(|seen| !seen.key.is_revoked()) {
            if self.bind(&seen.rdata, State::Valid, now, digests) {
                events.extend(self.zone.keys.last().map(|key| key.event(EventKind::Found)));
            }
        }
    }

    /// Compares the keys that are known with those of the set (RFC 5011 section 4.1).
    fn compare(&mut self, seen: &[Seen<'_>], window: &Window, now: Moment, events: &mut Vec<Event>) {
        self.zone.keys.retain_mut(|key| {
            let is_there = seen.iter().any(|seen| !seen.key.is_revoked() && seen.rdata == key.rdata);
            let (state, event) = match (key.state, is_there) {
                (State::AddPend, false) => {
                    events.push(key.event(EventKind::Withdrawn));
                    return false;
                }
                (State::AddPend, true) if key.is_held(window) => (State::Valid, EventKind::Accepted),
                (State::Valid, false) => (State::Missing, EventKind::Missing),
                (State::Missing, true) => (State::Valid, EventKind::Present),
                _ => return true,
            };
            key.enter(state, now);
            events.push(key.event(event));
            true
        });
    }

    /// Begins the hold-down of new keys.
    fn add(
        &mut self,
        seen: &[Seen<'_>],
        window: &Window,
        now: Moment,
        supported: Algorithms,
        events: &mut Vec<Event>,
    ) {
        // Those that signed, and were trusted before this set. A key that was accepted by it is trusted from the next one on, but it is
        // among the trusted ones here; it vouches as well as the others.
        let signs = |key: &&Key| {
            seen.iter().any(|seen| seen.signed.is_some() && !seen.key.is_revoked() && seen.rdata == key.rdata)
        };
        let by: Vec<u32> = self.trusted().filter(signs).map(|key| key.id).collect();
        for seen in seen {
            // Without the bit SEP a key is none that RFC 5011 speaks of.
            let is_candidate = seen.key.is_entry_point() && seen.key.check(supported).is_ok();
            if !is_candidate || self.zone.keys.iter().any(|key| key.is_pair_of(&seen.rdata)) {
                continue;
            }
            if !self.make_room() {
                events.push(Event { kind: EventKind::Full, key_tag: seen.key.key_tag() });
                continue;
            }
            let need = HOLD_DOWN.max(window.original_ttl);
            let pending = Pending { need, expiration: window.expiration, has_gap: false, by: by.clone() };
            let key = self.push(seen.rdata.clone(), State::AddPend, now);
            key.pending = Some(pending);
            events.push(key.event(EventKind::Pending));
        }
    }

    /// Makes room for a key, by forgetting the one that was removed first. Those that are configured stay: they would be trusted again.
    fn make_room(&mut self) -> bool {
        if self.zone.keys.len() < KEYS {
            return true;
        }
        let bound = &self.bound;
        let is_spare = |key: &Key| key.state == State::Removed && !bound.contains(&Some(key.id));
        let spare = self.zone.keys.iter().position(is_spare);
        spare.map(|place| self.zone.keys.remove(place)).is_some()
    }

    fn push(&mut self, rdata: Box<[u8]>, state: State, now: Moment) -> &mut Key {
        let id = self.zone.next_id;
        self.zone.next_id += 1;
        self.zone.keys.push(Key { id, rdata, state, since: now.wall, held: 0, pending: None });
        self.zone.keys.last_mut().expect("a key was pushed")
    }

    fn trusted(&self) -> impl Iterator<Item = &Key> {
        self.zone.keys.iter().filter(|key| key.state.is_trusted())
    }

    /// Configured anchors whose key is not known, with their places.
    fn unbound(&self) -> impl Iterator<Item = (usize, &Data)> {
        let all = self.zone.configured.iter().enumerate();
        all.filter(|(place, _)| self.bound[*place].is_none())
    }

    /// Those that name a key.
    fn matching(&self, rdata: &[u8], digests: &impl Digests) -> impl Iterator<Item = usize> {
        self.unbound()
            .filter(move |(_, data)| names(data, &self.name, rdata, digests))
            .map(|(place, _)| place)
    }

    /// Binds the anchors that name a key to it. True if the key was not known.
    fn bind(&mut self, rdata: &[u8], state: State, now: Moment, digests: &impl Digests) -> bool {
        let places: Vec<usize> = self.matching(rdata, digests).collect();
        if places.is_empty() {
            return false;
        }
        let known = self.zone.keys.iter().find(|key| key.is_pair_of(rdata)).map(|key| key.id);
        let id = known.unwrap_or_else(|| self.push(rdata.into(), state, now).id);
        for place in places {
            self.bound[place] = Some(id);
        }
        known.is_none()
    }

    /// Binds an anchor at the start. A DNSKEY is its own key; what a DS record names may have been saved. A key that was waiting is trusted
    /// if it is configured now.
    fn bind_at_start(&mut self, place: usize, now: Moment, digests: &impl Digests) {
        let data = self.zone.configured[place].clone();
        let saved =
            self.zone.keys.iter().find(|key| names(&data, &self.name, &key.rdata, digests)).map(|key| key.id);
        let own = match &data {
            Data::Dnskey(rdata) => {
                let rdata = with_revoke(rdata, false);
                let pair = self.zone.keys.iter().find(|key| key.is_pair_of(&rdata)).map(|key| key.id);
                Some(pair.unwrap_or_else(|| self.push(rdata, State::Valid, now).id))
            }
            Data::Ds(_) => None,
        };
        self.bound[place] = saved.or(own);
        let bound = self.bound[place];
        let waiting = |key: &&mut Key| Some(key.id) == bound && key.state == State::AddPend;
        if let Some(key) = self.zone.keys.iter_mut().find(waiting) {
            key.enter(State::Valid, now);
        }
    }
}

impl<'a> Seen<'a> {
    fn of(observed: &Observed<'a>) -> Option<Seen<'a>> {
        let key = Dnskey::parse(observed.rdata).ok()?;
        Some(Seen { rdata: with_revoke(observed.rdata, false), key, signed: observed.signed })
    }
}

impl Key {
    fn enter(&mut self, state: State, now: Moment) {
        (self.state, self.since, self.held, self.pending) = (state, now.wall, 0, None);
    }

    fn event(&self, kind: EventKind) -> Event {
        Event { kind, key_tag: self.key_tag() }
    }

    /// True if the hold-down is over: by the steady clock, or, if that was started anew, by the zone's signatures.
    fn is_held(&self, window: &Window) -> bool {
        self.pending.as_ref().is_some_and(|pending| {
            self.held >= pending.need
                || pending.has_gap && window.inception >= pending.expiration.saturating_add(pending.need)
        })
    }
}

/// Configured anchors that count: no revoked keys, and DS records with SHA-1 only if none of them has another digest (RFC 4509 section 3).
fn usable(configured: Vec<Data>) -> Vec<Data> {
    let digest = |data: &Data| match data {
        Data::Ds(rdata) => Ds::parse(rdata).ok().map(|ds| ds.digest_type),
        Data::Dnskey(_) => None,
    };
    let has_better = configured.iter().filter_map(digest).any(|digest| digest != DigestType::SHA1);
    let is_revoked = |data: &Data| match data {
        Data::Dnskey(rdata) => Dnskey::parse(rdata).is_ok_and(|key| key.is_revoked()),
        Data::Ds(_) => false,
    };
    let counts = |data: &Data| !is_revoked(data) && (!has_better || digest(data) != Some(DigestType::SHA1));
    configured.into_iter().filter(counts).collect()
}

fn is_continued(saved: &SavedZone, configured: &[Data], name: &LowerName, digests: &impl Digests) -> bool {
    saved.configured.iter().all(|data| {
        let is_revoked = |key: &Key| key.state.is_revoked() && names(data, name, &key.rdata, digests);
        configured.contains(data) || saved.keys.iter().any(is_revoked)
    })
}

/// True if an anchor names the key with this RDATA, which is without the REVOKE bit.
fn names(data: &Data, zone: &LowerName, rdata: &[u8], digests: &impl Digests) -> bool {
    match data {
        Data::Dnskey(own) => *with_revoke(own, false) == *rdata,
        Data::Ds(own) => match (Ds::parse(own), Dnskey::parse(rdata)) {
            (Ok(ds), Ok(key)) => dnssec::keys::ds_matches(&ds, zone, &key, digests),
            _ => false,
        },
    }
}

/// Time modulo 2^32 as one since 1970: the one that is closest to now (RFC 4034 section 3.1.5).
fn near(now: u64, time: u32) -> u64 {
    let distance = i64::from(time.wrapping_sub(now as u32) as i32);
    now.saturating_add_signed(distance)
}
