//! The text of the state, whole and damaged.

use crate::support::{DAY, START, ZONE, dnskey, ds, key};
use sixfold_anchors::{Key, Pending, RevokedKey, Saved, SavedZone, State, Steady};

fn known(id: u32, number: u32, state: State) -> Key {
    Key { id, rdata: key(number).into(), state, since: START, held: 5, pending: None }
}

fn zones() -> Vec<SavedZone> {
    let pending = Pending { need: 30 * DAY, expiration: START + DAY, has_gap: true, by: vec![1, 2] };
    let zone = SavedZone {
        zone: ZONE.into(),
        configured: vec![ds(&key(1), 2), dnskey(&key(2))],
        keys: vec![
            known(1, 1, State::Revoked),
            known(2, 2, State::Missing),
            Key { pending: Some(pending), ..known(4, 3, State::AddPend) },
            known(7, 4, State::Removed),
            Key { since: u64::MAX, held: u64::MAX, ..known(8, 5, State::Valid) },
        ],
        newest: Some((START, START + 20 * DAY)),
        clock: Some(Steady { boot: u128::MAX - 1, seconds: 77 }),
        next_id: 9,
    };
    vec![zone, SavedZone { configured: vec![dnskey(&key(6))], ..SavedZone::new(b"\x03a.b\0") }]
}

fn text() -> String {
    Saved::text(17, zones().iter())
}

#[test]
fn the_state_comes_back_from_its_text() {
    assert_eq!(Saved::parse(text().as_bytes()), Ok(Saved { serial: 17, zones: zones() }));
    let empty = Saved::text(0, [].iter());
    assert_eq!(Saved::parse(empty.as_bytes()), Ok(Saved::default()));
}

#[test]
fn the_text_tells_a_reader_what_the_keys_are() {
    let text = text();
    let tag = dnssec::Dnskey::parse(&key(2)).unwrap().key_tag();
    let line = format!(
        "\nkey example. id=2 tag={tag} state=missing since=2026-11-29T00:00:00Z held=5 DNSKEY 257 3 15 AAAA"
    );
    assert!(text.contains(&line), "{text}");
    assert!(text.contains("\nanchor example. DS "), "{text}");
    assert!(
        text.contains(&format!("\nzone example. next=9 newest={START}:{} clock=f", START + 20 * DAY)),
        "{text}"
    );
}

#[test]
fn a_text_that_ends_anywhere_before_its_end_is_none() {
    let text = text();
    // The last octet is the line feed.
    for length in 0..text.len() - 1 {
        assert!(Saved::parse(&text.as_bytes()[..length]).is_err(), "{length}");
    }
    for zeros in 1..text.len() {
        let mut torn = text.clone().into_bytes();
        torn[zeros..].fill(0);
        assert!(zeros == text.len() - 1 || Saved::parse(&torn).is_err(), "{zeros}");
    }
}

#[test]
fn a_text_with_an_octet_changed_is_none_or_means_the_same() {
    let text = text();
    for place in 0..text.len() {
        for bit in [1, 0x10, 0x80] {
            let mut damaged = text.clone().into_bytes();
            damaged[place] ^= bit;
            if let Ok(saved) = Saved::parse(&damaged) {
                assert_eq!(saved.zones, zones(), "{place}");
            }
        }
    }
}

#[test]
fn lines_that_are_lost_moved_or_doubled_are_noticed() {
    let text = text();
    let lines: Vec<&str> = text.lines().collect();
    for place in 1..lines.len() {
        let mut without = lines.clone();
        without.remove(place);
        assert!(Saved::parse(without.join("\n").as_bytes()).is_err(), "{place}");
        let mut doubled = lines.clone();
        doubled.insert(place, lines[place]);
        assert!(Saved::parse(doubled.join("\n").as_bytes()).is_err(), "{place}");
    }
}

// Nobody but the server has the checksums, so such a text comes from a fault of the server, or from somebody who may write it.
#[test]
fn a_key_that_is_there_twice_and_a_number_without_a_next_one_are_refused() {
    let error =
        |zone: SavedZone| Saved::parse(Saved::text(1, [zone].iter()).as_bytes()).map_err(|error| error.what);
    let keys = vec![known(1, 1, State::Valid), known(2, 1, State::Revoked)];
    let twice = SavedZone { keys, next_id: 3, ..SavedZone::new(ZONE) };
    assert_eq!(error(twice), Err("the key is there twice"));
    let last = |next_id| SavedZone { next_id, ..SavedZone::new(ZONE) };
    assert!(error(last(u32::MAX / 2)).is_ok());
    assert_eq!(error(last(u32::MAX / 2 + 1)), Err("a number of a key is larger than any zone reaches"));
}

#[test]
fn a_damaged_text_still_tells_which_keys_were_revoked() {
    let text = text();
    let expected = [1, 4].map(|number| RevokedKey { zone: ZONE.into(), rdata: key(number).into() });
    assert_eq!(Saved::revoked(text.as_bytes()), expected);
    // Without everything but the lines of keys, one of which is damaged.
    let damaged = text.lines().filter(|line| line.starts_with("key ")).collect::<Vec<_>>().join("\n");
    assert_eq!(
        Saved::revoked(damaged.replacen("state=removed", "state=remoued", 1).as_bytes()),
        expected[..1]
    );
    assert_eq!(Saved::revoked(b"\xff\nkey\nkey a check=00000000"), []);
}

#[test]
fn an_error_says_the_line() {
    let text = text();
    let error = |text: String| Saved::parse(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(error(String::new()), "the last line is missing");
    assert_eq!(error(text.replace("serial=17", "serial=18")), "line 2: the line is damaged or was changed");
    assert_eq!(error("nonsense\n".to_owned()), "line 1: the line is damaged or was changed");
    assert_eq!(
        error(format!("{text}\n{}", text.lines().nth(1).unwrap())),
        format!("line {}: lines follow the end", text.lines().count() + 2)
    );
}
