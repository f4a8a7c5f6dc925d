//! The state file: crashes in every operation, and files that cannot be used.

use crate::support::{CrashDisk, START, ZONE, dnskey, key};
use kit::Folder;
use kit::Random;
use sixfold_anchors::{Disk, Key, Loaded, RevokedKey, Saved, SavedZone, State, StateFile};
use std::path::Path;

const PATH: &str = "/state/root.key";

/// A state that is known by the number of its key.
fn zones(number: u32) -> [SavedZone; 1] {
    let key =
        Key { id: 1, rdata: key(number).into(), state: State::Revoked, since: START, held: 0, pending: None };
    let zone = SavedZone {
        configured: vec![dnskey(&crate::support::key(1))],
        keys: vec![key],
        next_id: 2,
        ..SavedZone::new(ZONE)
    };
    [zone]
}

fn state(serial: u64, number: u32) -> Loaded {
    Loaded::State(Saved { serial, zones: zones(number).into() })
}

fn file(disk: CrashDisk) -> StateFile<CrashDisk> {
    StateFile::new(Path::new(PATH), disk)
}

#[test]
fn a_state_is_there_after_it_was_saved() {
    let mut first = file(CrashDisk::default());
    assert_eq!(first.load(), Ok(Loaded::None));
    first.save(zones(1).iter()).unwrap();
    first.save(zones(2).iter()).unwrap();
    let disk = first.files().clone();
    assert_eq!(disk.files.keys().collect::<Vec<_>>(), [Path::new(PATH)]);
    let mut second = file(disk);
    assert_eq!(second.load(), Ok(state(2, 2)));
    second.save(zones(3).iter()).unwrap();
    assert_eq!(second.load(), Ok(state(3, 3)));
}

#[test]
fn a_crash_in_any_operation_leaves_the_old_state_or_the_new_one() {
    let mut random = Random::new(5011);
    let mut seen = std::collections::BTreeMap::new();
    for run in 0..3000u32 {
        let mut disk = CrashDisk::default();
        let mut saving = file(disk.clone());
        saving.save(zones(1).iter()).unwrap();
        disk = saving.files().clone();
        // Two crashes, one behind the other: what the first one left must survive the second.
        let (mut serial, mut number) = (1, 1);
        for crash in 0..2 {
            disk.crash = Some((random.below(4), random.bits()));
            let mut saving = file(disk);
            let before = saving.load();
            let was_off = saving.files().is_crashed;
            let next = 10 * run + crash + 2;
            let result = saving.save(zones(next).iter());
            disk = saving.files().clone();
            disk.restart();
            let found = file(disk.clone()).load().unwrap();
            assert!(before == Ok(state(serial, number)), "{run}");
            if result.is_ok() {
                assert_eq!(found, state(serial + 1, next), "{run}");
            }
            match found == state(serial, number) {
                true => *seen.entry("old").or_insert(0) += 1,
                false => {
                    assert!(!was_off);
                    assert_eq!(found, state(serial + 1, next), "{run}");
                    (serial, number) = (serial + 1, next);
                    *seen.entry("new").or_insert(0) += 1;
                }
            }
        }
    }
    assert!(seen["old"] > 500 && seen["new"] > 500, "{seen:?}");
}

#[test]
fn a_crash_while_the_first_state_is_written_is_no_damage() {
    let mut random = Random::new(1);
    for _ in 0..500 {
        let mut saving = file(CrashDisk { crash: Some((0, random.bits())), ..CrashDisk::default() });
        assert!(saving.save(zones(1).iter()).is_err());
        saving.files().restart();
        let found = saving.load().unwrap();
        assert!(found == Loaded::None || found == state(1, 1), "{found:?}");
    }
}

#[test]
fn a_damaged_file_is_told_and_what_it_says_of_revoked_keys_counts() {
    let mut saving = file(CrashDisk::default());
    saving.save(zones(7).iter()).unwrap();
    let text = saving.files().files.get_mut(Path::new(PATH)).unwrap();
    let end = text.windows(4).position(|window| window == b"\nend").unwrap();
    text.truncate(end);
    let Ok(Loaded::Damaged { message, revoked }) = saving.load() else { panic!() };
    assert_eq!(revoked, [RevokedKey { zone: ZONE.into(), rdata: key(7).into() }]);
    assert_eq!(
        message,
        "the state of the trust anchors cannot be used: /state/root.key: the last line is missing; the \
         configured anchors are used, and 1 revoked keys that the file still tells: nothing is to be done if these \
         anchors are current, else update them"
    );
    saving.files().files.insert(PATH.into(), vec![b' '; sixfold_anchors::limits::FILE + 1]);
    assert!(
        matches!(saving.load(), Ok(Loaded::Damaged { message, .. }) if message.contains("the file is too long"))
    );
}

#[test]
fn the_disk_of_the_system_keeps_a_state() {
    let folder = Folder::new();
    let path = folder.file("root.key");
    let mut saving = StateFile::new(&path, Disk);
    assert_eq!(saving.load(), Ok(Loaded::None));
    saving.save(zones(1).iter()).unwrap();
    saving.save(zones(2).iter()).unwrap();
    assert_eq!(StateFile::new(&path, Disk).load(), Ok(state(2, 2)));
    assert_eq!(std::fs::read_dir(&*folder).unwrap().count(), 1);
    // A file that cannot be read is no missing one.
    let error = StateFile::new(&folder, Disk).load().unwrap_err();
    assert!(
        error.starts_with("cannot read the trust anchors: ") && error.contains("; make the file readable"),
        "{error}"
    );
    let error =
        StateFile::new(&folder.file("none/root.key"), Disk).save(zones(1).iter()).unwrap_err().to_string();
    assert!(error.contains("none/root.key.new: No such file or directory"), "{error}");
    assert!(error.ends_with("make its folder writable for the server, with room for a file"), "{error}");
}
