//! Start with a state file: of the same anchors, of others, and damaged.

use crate::support::{CrashDisk, DAY, Sha, ZONE, anchor, at, dnskey, ds, key, seen, with_flags};
use dnssec::Algorithms;
use sixfold_anchors::{Loaded, Observed, Start, State, StateFile, TrustAnchor, TrustPoints};
use std::path::Path;

/// Key 1 was configured and is revoked, key 2 was accepted, key 3 waits.
fn learned(configured: &TrustAnchor) -> StateFile<CrashDisk> {
    let mut file = StateFile::new(Path::new("/root.key"), CrashDisk::default());
    let mut points = start(std::slice::from_ref(configured), Loaded::None).points;
    let point = points.get(ZONE).unwrap();
    let mut observe = |day: u64, set: &[(u32, u16, bool)]| {
        let rdata: Vec<_> =
            set.iter().map(|&(number, flags, signs)| (with_flags(number, flags), signs)).collect();
        let set: Vec<Observed<'_>> =
            rdata.iter().map(|(rdata, signs)| seen(rdata, at(day * DAY), *signs)).collect();
        point.observe(at(day * DAY), &set, Algorithms::CURRENT, &Sha);
    };
    observe(0, &[(1, 257, true), (2, 257, false)]);
    observe(30, &[(1, 257, true), (2, 257, true)]);
    observe(31, &[(1, 385, true), (2, 257, true), (3, 257, false)]);
    points.save(&mut file).unwrap();
    file
}

fn start(configured: &[TrustAnchor], loaded: Loaded) -> Start {
    TrustPoints::start(configured, loaded, at(32 * DAY), &Sha)
}

fn states(start: &Start) -> Vec<(u32, State)> {
    let keys = start.points.iter().flat_map(|point| point.keys());
    keys.map(|key| (u32::from_be_bytes(key.rdata[4..8].try_into().unwrap()), key.state)).collect()
}

#[test]
fn what_was_learned_counts_under_the_same_anchors_and_under_more() {
    for own in [anchor(dnskey(&key(1))), anchor(ds(&key(1), 2))] {
        let loaded = learned(&own).load().unwrap();
        let same = start(std::slice::from_ref(&own), loaded.clone());
        let expected = [(1, State::Revoked), (2, State::Valid), (3, State::AddPend)];
        assert_eq!((states(&same), same.warnings.len()), (expected.to_vec(), 0));
        assert_eq!(same.points.anchors(), [anchor(dnskey(&key(2)))]);
        // One more, which was waiting; and the revoked one is no longer configured.
        let more = start(&[anchor(dnskey(&key(3)))], loaded);
        let expected = [(1, State::Revoked), (2, State::Valid), (3, State::Valid)];
        assert_eq!((states(&more), more.warnings.len()), (expected.to_vec(), 0));
    }
}

// An operator who takes an anchor away does not trust those for which it vouched.
#[test]
fn other_anchors_begin_anew_and_revoked_keys_stay_revoked() {
    let configured = [anchor(dnskey(&key(1))), anchor(dnskey(&key(5)))];
    let mut file = learned(&configured[0]);
    let second = start(&configured, file.load().unwrap());
    assert!(second.warnings.is_empty());
    second.points.save(&mut file).unwrap();
    let third = start(&[anchor(dnskey(&key(6))), anchor(ds(&key(1), 2))], file.load().unwrap());
    assert_eq!(states(&third), [(1, State::Revoked), (6, State::Valid)]);
    assert_eq!(third.points.anchors(), [anchor(dnskey(&key(6)))]);
    assert_eq!(
        third.warnings,
        [
            "an anchor of example. is no longer configured from which the keys in the state file were learned; the \
          zone begins anew with the configured anchors, and revoked keys stay revoked"
        ]
    );
}

#[test]
fn a_damaged_file_leaves_the_configured_anchors_without_those_that_were_revoked() {
    let configured = [anchor(dnskey(&key(1))), anchor(dnskey(&key(4)))];
    let mut file = learned(&configured[0]);
    let text = file.files().files.get_mut(Path::new("/root.key")).unwrap();
    text.truncate(text.len() - 2);
    let start = start(&configured, file.load().unwrap());
    assert_eq!(states(&start), [(1, State::Revoked), (4, State::Valid)]);
    assert_eq!(start.points.anchors(), [anchor(dnskey(&key(4)))]);
    assert!(start.warnings[0].contains("line 8: the line is damaged"), "{:?}", start.warnings);
}

#[test]
fn each_zone_has_its_own_keys() {
    let other = TrustAnchor { zone: b"\x05other\0".as_slice().into(), data: dnskey(&key(1)) };
    let own = anchor(dnskey(&key(1)));
    let start = start(&[other.clone(), own.clone()], learned(&own).load().unwrap());
    assert_eq!(
        start.points.iter().map(|point| point.zone().to_vec()).collect::<Vec<_>>(),
        [&other.zone[..], ZONE]
    );
    assert_eq!(start.points.anchors(), [other, anchor(dnskey(&key(2)))]);
}
