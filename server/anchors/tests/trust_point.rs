//! RFC 5011, rule by rule, in virtual time.

use crate::support::{DAY, HOUR, START, Sha, ZONE, at, dnskey, ds, key, seen, with_flags};
use dnssec::{Algorithms, Dnskey, KeyError};
use sixfold_anchors::limits::KEYS;
use sixfold_anchors::{Data, EventKind, Moment, Observed, Outcome, Signed, State, Steady, TrustPoint};
use std::time::Duration;

/// A key of a set: its number, its flags, and if it signs.
type Member = (u32, u16, bool);

fn observe(point: &mut TrustPoint, now: Moment, set: &[Member]) -> Outcome {
    let rdata: Vec<(Vec<u8>, bool)> =
        set.iter().map(|&(number, flags, signs)| (with_flags(number, flags), signs)).collect();
    let set: Vec<Observed<'_>> = rdata.iter().map(|(rdata, signs)| seen(rdata, now, *signs)).collect();
    point.observe(now, &set, Algorithms::CURRENT, &Sha)
}

fn kinds(outcome: &Outcome) -> Vec<EventKind> {
    outcome.events.iter().map(|event| event.kind).collect()
}

/// A zone whose key 1 is configured.
fn point() -> TrustPoint {
    TrustPoint::new(ZONE, vec![dnskey(&key(1))], None, at(0), &Sha).unwrap()
}

fn states(point: &TrustPoint) -> Vec<State> {
    point.keys().iter().map(|key| key.state).collect()
}

fn trusts(point: &TrustPoint, number: u32) -> bool {
    point.anchors().iter().any(|anchor| anchor.data == dnskey(&key(number)))
}

const BOTH: [Member; 2] = [(1, 257, true), (2, 257, false)];

// RFC 5011 section 2.2.
#[test]
fn a_new_key_counts_after_30_days_of_being_seen_and_not_earlier() {
    let mut point = point();
    assert_eq!(kinds(&observe(&mut point, at(0), &BOTH)), [EventKind::Pending]);
    for day in 1..30 {
        assert_eq!(kinds(&observe(&mut point, at(day * DAY), &BOTH)), [], "{day}");
        assert!(!trusts(&point, 2));
    }
    assert_eq!(kinds(&observe(&mut point, at(30 * DAY - 1), &BOTH)), []);
    assert!(!trusts(&point, 2));
    // Without another set nothing is accepted, however long it takes.
    assert!(point.failed(at(31 * DAY)).events.is_empty());
    assert!(!trusts(&point, 2));
    let outcome = observe(&mut point, at(32 * DAY), &BOTH);
    assert_eq!(kinds(&outcome), [EventKind::Accepted]);
    assert!(outcome.is_validated && outcome.save && trusts(&point, 2) && trusts(&point, 1));
    // It vouches alone now.
    assert!(observe(&mut point, at(33 * DAY), &[(2, 257, true)]).is_validated);
}

// RFC 5011 section 2.4.1: or the original TTL, whichever is greater.
#[test]
fn a_longer_ttl_makes_the_hold_down_longer() {
    let mut point = point();
    let (one, two) = (key(1), key(2));
    let mut observe = |now: Moment| {
        let signed = Signed { original_ttl: 40 * DAY as u32, ..seen(&one, now, true).signed.unwrap() };
        let set = [Observed { rdata: &one, signed: Some(signed) }, Observed { rdata: &two, signed: None }];
        kinds(&point.observe(now, &set, Algorithms::CURRENT, &Sha))
    };
    assert_eq!(observe(at(0)), [EventKind::Pending]);
    assert_eq!(observe(at(40 * DAY - 1)), []);
    assert_eq!(observe(at(40 * DAY)), [EventKind::Accepted]);
}

// RFC 5011 section 2.2: a validated set without the new key begins the hold-down anew.
#[test]
fn a_key_that_is_withdrawn_waits_from_the_beginning_when_it_comes_back() {
    let mut point = point();
    observe(&mut point, at(0), &BOTH);
    // A set that no trusted key signed says nothing.
    assert_eq!(kinds(&observe(&mut point, at(20 * DAY), &[(1, 257, false), (3, 256, true)])), []);
    assert_eq!(kinds(&observe(&mut point, at(25 * DAY), &[(1, 257, true)])), [EventKind::Withdrawn]);
    assert_eq!(kinds(&observe(&mut point, at(26 * DAY), &BOTH)), [EventKind::Pending]);
    assert_eq!(kinds(&observe(&mut point, at(55 * DAY), &BOTH)), []);
    assert_eq!(kinds(&observe(&mut point, at(56 * DAY), &BOTH)), [EventKind::Accepted]);
}

// RFC 5011 section 2.1.
#[test]
fn a_key_is_revoked_at_once_and_for_ever_by_its_own_signature() {
    let mut point = point();
    observe(&mut point, at(0), &BOTH);
    observe(&mut point, at(30 * DAY), &BOTH);
    // The bit alone is no revocation, but the key is not there either.
    let outcome = observe(&mut point, at(31 * DAY), &[(1, 385, false), (2, 257, true)]);
    assert_eq!(kinds(&outcome), [EventKind::Missing]);
    assert!(trusts(&point, 1));
    let outcome = observe(&mut point, at(31 * DAY), &[(1, 385, true), (2, 257, true)]);
    assert_eq!(kinds(&outcome), [EventKind::Revoked]);
    assert!(outcome.is_validated && !trusts(&point, 1) && trusts(&point, 2));
    // It comes back without the bit, and signs: in vain.
    for day in 32..200 {
        observe(&mut point, at(day * DAY), &[(1, 257, true), (2, 257, true)]);
        assert!(!trusts(&point, 1));
    }
    assert!(!observe(&mut point, at(200 * DAY), &[(1, 257, true), (3, 257, true)]).is_validated);
    assert_eq!(states(&point), [State::Removed, State::Valid]);
}

#[test]
fn a_revoked_key_vouches_for_nothing_not_in_the_set_that_revokes_it_either() {
    let mut point = point();
    let outcome = observe(&mut point, at(0), &[(1, 385, true), (2, 257, true)]);
    assert_eq!(kinds(&outcome), [EventKind::Revoked, EventKind::Lost]);
    assert!(!outcome.is_validated && outcome.save && !point.has_trust());
    assert_eq!(states(&point), [State::Revoked]);
}

// All anchors lost is bogus, and not insecure: an anchor is there, by which no key can be used.
#[test]
fn a_zone_whose_last_key_is_revoked_keeps_an_anchor_by_which_nothing_is_secure() {
    let mut point = point();
    observe(&mut point, at(0), &[(1, 385, true)]);
    let anchors = point.anchors();
    let [Data::Dnskey(rdata)] = [&anchors[0].data] else { panic!("{anchors:?}") };
    assert_eq!(anchors.len(), 1);
    assert_eq!(Dnskey::parse(rdata).unwrap().check(Algorithms::CURRENT), Err(KeyError::Revoked));
    let list = [anchors[0].borrowed()];
    let all = dnssec::Anchors { positive: &list, negative: &[] };
    let closest = all.closest(b"\x01a\x07example\0", dnssec::Timestamp(START as u32));
    assert_eq!(closest, dnssec::anchors::ClosestAnchor::Positive(1));
}

// RFC 5011 section 2.2: a thief who adds his key with a stolen one is stopped by the revocation of that one.
#[test]
fn the_hold_down_ends_if_all_keys_that_vouched_are_revoked() {
    let configured = vec![dnskey(&key(1)), dnskey(&key(2)), dnskey(&key(4))];
    let mut point = TrustPoint::new(ZONE, configured, None, at(0), &Sha).unwrap();
    let add = [(1, 257, true), (2, 257, true), (4, 257, false), (3, 257, true)];
    assert_eq!(kinds(&observe(&mut point, at(0), &add)), [EventKind::Pending]);
    let one = [(1, 385, true), (2, 257, true), (4, 257, true), (3, 257, true)];
    assert_eq!(kinds(&observe(&mut point, at(DAY), &one)), [EventKind::Revoked]);
    let two = [(2, 385, true), (4, 257, true), (3, 257, true)];
    // Key 4 vouches for it now, for another 30 days.
    let expected = [EventKind::Revoked, EventKind::Unvouched, EventKind::Pending];
    assert_eq!(kinds(&observe(&mut point, at(2 * DAY), &two)), expected);
    let set = [(4, 257, true), (3, 257, true)];
    assert_eq!(kinds(&observe(&mut point, at(31 * DAY), &set)), [EventKind::Removed]);
    let events = kinds(&observe(&mut point, at(32 * DAY), &set));
    assert_eq!(events, [EventKind::Removed, EventKind::Accepted]);
}

#[test]
fn a_key_that_is_revoked_in_its_hold_down_never_counts() {
    let mut point = point();
    observe(&mut point, at(0), &BOTH);
    assert_eq!(kinds(&observe(&mut point, at(DAY), &[(1, 257, true), (2, 385, true)])), [EventKind::Revoked]);
    for day in 2..100 {
        observe(&mut point, at(day * DAY), &BOTH);
        assert!(!trusts(&point, 2));
    }
}

// RFC 5011 section 4.2: a missing key stays trusted, however long.
#[test]
fn a_trusted_key_that_is_missing_stays_trusted() {
    let mut point = point();
    observe(&mut point, at(0), &BOTH);
    observe(&mut point, at(30 * DAY), &BOTH);
    assert_eq!(kinds(&observe(&mut point, at(31 * DAY), &[(2, 257, true)])), [EventKind::Missing]);
    for year in 1..20 {
        assert_eq!(kinds(&observe(&mut point, at(365 * DAY * year), &[(2, 257, true)])), []);
    }
    let events = kinds(&observe(&mut point, at(8000 * DAY), &[(1, 257, true)]));
    assert_eq!(events, [EventKind::Present, EventKind::Missing]);
}

// A jump by the wall clock accepts no key; BIND and Unbound compare its times.
#[test]
fn jumps_of_the_wall_clock_neither_shorten_nor_lengthen_the_hold_down() {
    let mut point = point();
    let moment =
        |steady: u64, jump: i64| Moment { wall: at(steady).wall.saturating_add_signed(jump), ..at(steady) };
    observe(&mut point, at(0), &BOTH);
    for (steady, jump) in
        [(HOUR, 40), (2 * HOUR, 400), (3 * HOUR, 4000), (DAY, -400), (2 * DAY, 800), (29 * DAY, 0)]
    {
        observe(&mut point, moment(steady, jump * DAY as i64), &BOTH);
        assert!(!trusts(&point, 2), "{steady} {jump}");
    }
    observe(&mut point, moment(30 * DAY, -5 * DAY as i64), &BOTH);
    // A signature that is older than one that was seen: the wall clock is wrong, and nothing is learned by it.
    assert!(!trusts(&point, 2));
    assert_eq!(kinds(&observe(&mut point, at(30 * DAY).ahead(4000), &BOTH)), [EventKind::Accepted]);
}

trait Ahead {
    /// The same second, with a wall clock so many days ahead.
    fn ahead(self, days: u64) -> Self;
    /// The same second, after a restart of the machine now.
    fn rebooted(self, boot: u128) -> Self;
}

impl Ahead for Moment {
    fn ahead(self, days: u64) -> Moment {
        Moment { wall: self.wall + days * DAY, ..self }
    }

    fn rebooted(self, boot: u128) -> Moment {
        Moment { steady: Steady { boot, seconds: 10 }, ..self }
    }
}

#[test]
fn after_a_restart_of_the_machine_signatures_measure_the_time() {
    let mut point = point();
    // Signed until day 20.
    observe(&mut point, at(0), &BOTH);
    observe(&mut point, at(5 * DAY), &BOTH);
    for (day, boot) in [(31, 2), (40, 3), (49, 4)] {
        assert_eq!(kinds(&observe(&mut point, at(day * DAY).rebooted(boot), &BOTH)), [], "{day}");
    }
    // The inception of this set lies 30 days behind the expiration of the first.
    assert_eq!(kinds(&observe(&mut point, at(50 * DAY).rebooted(5), &BOTH)), [EventKind::Accepted]);
}

#[test]
fn time_before_a_restart_of_the_machine_counts_on_behind_it() {
    let mut point = point();
    observe(&mut point, at(0), &BOTH);
    observe(&mut point, at(20 * DAY), &BOTH);
    let booted = |days: u64| Moment {
        wall: at(days * DAY).wall,
        steady: Steady { boot: 2, seconds: (days - 21) * DAY },
    };
    // A day passed unmeasured.
    assert_eq!(kinds(&observe(&mut point, booted(21), &BOTH)), []);
    assert_eq!(kinds(&observe(&mut point, booted(30), &BOTH)), []);
    assert_eq!(kinds(&observe(&mut point, booted(31), &BOTH)), [EventKind::Accepted]);
}

#[test]
fn a_steady_clock_that_goes_back_counts_nothing_twice() {
    let mut point = point();
    observe(&mut point, at(0), &BOTH);
    for day in [20, 0, 20, 0, 20, 29] {
        let now = Moment { wall: at(20 * DAY).wall, ..at(day * DAY) };
        assert_eq!(kinds(&observe(&mut point, now, &BOTH)), [], "{day}");
    }
}

#[test]
fn an_older_set_changes_nothing_but_what_it_revokes() {
    let mut point = point();
    let (one, two, revoked) = (key(1), key(2), with_flags(1, 385));
    let old = seen(&one, at(0), true);
    observe(&mut point, at(0), &[(1, 257, true)]);
    assert_eq!(kinds(&observe(&mut point, at(DAY), &BOTH)), [EventKind::Pending]);
    // Somebody replays the set of yesterday, whose signature is still valid: the hold-down goes on.
    let outcome = point.observe(at(2 * DAY), &[old], Algorithms::CURRENT, &Sha);
    assert_eq!((kinds(&outcome), outcome.is_validated), (vec![], false));
    let other = key(7);
    let with_new = [old, Observed { rdata: &other, signed: None }];
    assert_eq!(kinds(&point.observe(at(2 * DAY), &with_new, Algorithms::CURRENT, &Sha)), []);
    assert_eq!(kinds(&observe(&mut point, at(31 * DAY), &BOTH)), [EventKind::Accepted]);
    let old_revocation = [
        Observed { rdata: &revoked, signed: seen(&one, at(20 * DAY), true).signed },
        Observed { rdata: &two, signed: seen(&two, at(20 * DAY), true).signed },
    ];
    let outcome = point.observe(at(32 * DAY), &old_revocation, Algorithms::CURRENT, &Sha);
    assert_eq!(kinds(&outcome), [EventKind::Revoked]);
}

#[test]
fn a_set_with_a_date_in_the_future_does_not_lock_the_zone_longer_than_it_is_valid() {
    let mut point = point();
    // A wrong clock here, and a signer with the same one.
    observe(&mut point, at(0).ahead(300), &[(1, 257, true)]);
    assert_eq!(kinds(&observe(&mut point, at(DAY), &BOTH)), []);
    assert_eq!(kinds(&observe(&mut point, at(319 * DAY), &BOTH)), [EventKind::Pending]);
    assert_eq!(kinds(&observe(&mut point, at(349 * DAY), &BOTH)), [EventKind::Accepted]);
}

// RFC 5011 section 2.3.
#[test]
fn the_next_question_comes_when_the_rfc_says() {
    let one = key(1);
    for (ttl, validity, expected, retry) in [
        (2 * DAY, 20 * DAY, DAY, 2 * DAY / 10),
        (60 * DAY, 90 * DAY, 15 * DAY, DAY),
        (60 * DAY, 10 * DAY, 5 * DAY, DAY),
        (60 * DAY, 5 * DAY, 5 * DAY / 2, DAY / 2),
        (600, 20 * DAY, HOUR, HOUR),
        (2 * DAY, 600, HOUR, HOUR),
    ] {
        let mut point = point();
        let signed = Signed {
            inception: (START - DAY) as u32,
            expiration: (START + validity) as u32,
            original_ttl: ttl as u32,
        };
        assert_eq!(point.failed(at(0)).next, Duration::from_secs(HOUR));
        let set = [Observed { rdata: &one, signed: Some(signed) }];
        let next = point.observe(at(0), &set, Algorithms::CURRENT, &Sha).next;
        assert_eq!(next, Duration::from_secs(expected), "{ttl} {validity}");
        assert_eq!(point.failed(at(0)).next, Duration::from_secs(retry), "{ttl} {validity}");
        let unsigned = [Observed { rdata: &one, signed: None }];
        let next = point.observe(at(0), &unsigned, Algorithms::CURRENT, &Sha).next;
        assert_eq!(next, Duration::from_secs(retry), "{ttl} {validity}");
    }
}

#[test]
fn a_question_comes_when_the_hold_down_ends_and_not_up_to_15_days_later() {
    let mut point = point();
    let (one, two) = (key(1), key(2));
    let mut observe = |now: Moment| {
        let signed = Signed {
            inception: now.wall as u32,
            expiration: (now.wall + 90 * DAY) as u32,
            original_ttl: 28 * DAY as u32,
        };
        let set = [Observed { rdata: &one, signed: Some(signed) }, Observed { rdata: &two, signed: None }];
        point.observe(now, &set, Algorithms::CURRENT, &Sha).next
    };
    assert_eq!(observe(at(0)), Duration::from_secs(14 * DAY));
    assert_eq!(observe(at(14 * DAY)), Duration::from_secs(14 * DAY));
    assert_eq!(observe(at(28 * DAY)), Duration::from_secs(2 * DAY));
    assert_eq!(observe(at(30 * DAY)), Duration::from_secs(14 * DAY));
}

#[test]
fn questions_of_a_year_are_as_many_as_the_interval_allows() {
    let (mut point, mut now, mut count) = (point(), 0, 0);
    while now < 365 * DAY {
        let next = observe(&mut point, at(now), &[(1, 257, true)]).next;
        (now, count) = (now + next.as_secs(), count + 1);
    }
    assert_eq!(count, 365);
}

#[test]
fn a_configured_ds_finds_its_key() {
    let mut point = TrustPoint::new(ZONE, vec![ds(&key(1), 2)], None, at(0), &Sha).unwrap();
    let tag = Dnskey::parse(&key(1)).unwrap().key_tag();
    assert!(point.has_trust() && point.trusts(tag) && point.anchors().len() == 1);
    // Only if the set is signed by it.
    assert!(!observe(&mut point, at(0), &[(1, 257, false), (2, 257, true)]).is_validated);
    let outcome = observe(&mut point, at(0), &[(1, 257, true), (2, 257, true), (3, 256, true)]);
    assert_eq!(kinds(&outcome), [EventKind::Found, EventKind::Pending]);
    assert_eq!(point.anchors().iter().map(|anchor| &anchor.data).collect::<Vec<_>>(), [&dnskey(&key(1))]);
    assert!(point.trusts(tag) && !point.trusts(Dnskey::parse(&key(2)).unwrap().key_tag()));
}

#[test]
fn an_anchor_of_a_key_that_was_revoked_before_the_first_start_is_no_anchor() {
    for data in [ds(&key(1), 2), dnskey(&key(1))] {
        let mut point = TrustPoint::new(ZONE, vec![data], None, at(0), &Sha).unwrap();
        let outcome = observe(&mut point, at(0), &[(1, 385, true)]);
        assert_eq!(kinds(&outcome), [EventKind::Revoked, EventKind::Lost]);
        assert!(!observe(&mut point, at(DAY), &[(1, 257, true)]).is_validated);
    }
}

// RFC 4509 section 3.
#[test]
fn a_ds_with_sha_1_counts_only_where_no_other_digest_is() {
    let mut weak = TrustPoint::new(ZONE, vec![ds(&key(1), 1)], None, at(0), &Sha).unwrap();
    assert!(observe(&mut weak, at(0), &[(1, 257, true)]).is_validated);
    let mut both = TrustPoint::new(ZONE, vec![ds(&key(1), 1), ds(&key(2), 2)], None, at(0), &Sha).unwrap();
    assert!(!observe(&mut both, at(0), &[(1, 257, true)]).is_validated);
    assert!(observe(&mut both, at(0), &[(2, 257, true)]).is_validated);
}

#[test]
fn a_zone_without_an_anchor_that_counts_is_none() {
    assert!(TrustPoint::new(ZONE, vec![], None, at(0), &Sha).is_none());
    assert!(TrustPoint::new(ZONE, vec![dnskey(&with_flags(1, 385))], None, at(0), &Sha).is_none());
    assert!(TrustPoint::new(b"\x07exam", vec![dnskey(&key(1))], None, at(0), &Sha).is_none());
}

// RFC 5011 section 2.1: the REVOKE bit changes the key tag, here by 128 without a carry.
#[test]
fn the_key_tag_of_a_revoked_key_is_that_of_its_record() {
    let mut point = point();
    let before = point.keys()[0].key_tag();
    observe(&mut point, at(0), &[(1, 385, true)]);
    assert_eq!(point.keys()[0].key_tag(), before + 128);
    assert_eq!(before, Dnskey::parse(&key(1)).unwrap().key_tag());
}

#[test]
fn only_keys_that_are_entry_points_and_can_be_used_are_candidates() {
    let mut point = point();
    let one = key(1);
    let others = [
        with_flags(2, 256),
        with_flags(3, 1),
        [&[1, 1, 2, 15][..], &[3; 32]].concat(),
        [&[1, 1, 3, 15][..], &[4; 31]].concat(),
        [&[1, 1, 3, 16][..], &[5; 57]].concat(),
        with_flags(6, 385),
        vec![1, 1],
    ];
    for day in [0, 31, 62] {
        let now = at(day * DAY);
        let mut set = vec![seen(&one, now, true)];
        set.extend(others.iter().map(|rdata| seen(rdata, now, true)));
        assert_eq!(kinds(&point.observe(now, &set, Algorithms::CURRENT, &Sha)), []);
    }
    assert_eq!(states(&point), [State::Valid]);
}

// RFC 5011 section 2.4.3 has at least five.
#[test]
fn many_keys_are_followed_and_what_is_too_many_is_told() {
    let mut point = point();
    let set: Vec<Member> = (1..=KEYS as u32 + 2).map(|number| (number, 257, number == 1)).collect();
    let outcome = observe(&mut point, at(0), &set);
    let count = |wanted: EventKind| outcome.events.iter().filter(|event| event.kind == wanted).count();
    assert_eq!((count(EventKind::Pending), count(EventKind::Full)), (KEYS - 1, 2));
    observe(&mut point, at(30 * DAY), &set[..KEYS]);
    assert_eq!(states(&point), vec![State::Valid; KEYS]);
    // Keys that were removed long ago make room, but for those that are configured.
    let revoked: Vec<Member> = (1..=3).map(|number| (number, 385, true)).chain([(4, 257, true)]).collect();
    observe(&mut point, at(31 * DAY), &revoked);
    observe(&mut point, at(62 * DAY), &[(4, 257, true)]);
    let new: Vec<Member> = vec![(4, 257, true), (101, 257, false), (102, 257, false), (103, 257, false)];
    let events = kinds(&observe(&mut point, at(63 * DAY), &new));
    assert_eq!(events, [EventKind::Pending, EventKind::Pending, EventKind::Full]);
    assert!(point.keys().iter().any(|known| *known.rdata == *key(1) && known.state == State::Removed));
}

#[test]
fn a_set_with_more_records_than_a_validator_reads_is_no_set() {
    let mut point = point();
    let set: Vec<Member> = (1..=65).map(|number| (number, 257, true)).collect();
    let outcome = observe(&mut point, at(0), &set);
    assert!(!outcome.is_validated && outcome.events.is_empty());
}

// BIND's and Unbound's times of 2038 and 2106: serial arithmetic.
#[test]
fn times_of_signatures_go_past_2106() {
    let late = (1 << 32) - 10 * DAY - START;
    let mut point = point();
    observe(&mut point, at(late), &BOTH);
    assert_eq!(kinds(&observe(&mut point, at(late + 15 * DAY), &BOTH)), []);
    assert_eq!(kinds(&observe(&mut point, at(late + 30 * DAY), &BOTH)), [EventKind::Accepted]);
}
