//! Texts that were changed at random: none of them ends the program, and what is read is what is written then.

use crate::support::{DAY, START, ZONE, dnskey, ds, key};
use dnssec::Algorithms;
use kit::Random;
use sixfold_anchors::name::to_text;
use sixfold_anchors::{AnchorFile, Key, Negative, Pending, Saved, SavedZone, State, Steady};

/// A text with a few changes: octets, pieces that are taken out, doubled, or come from a dictionary.
fn changed(text: &[u8], words: &[&str], random: &mut Random) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..=random.below(4) {
        let (from, length) = (random.place(text.len() + 1), random.place(12));
        let to = (from + length).min(text.len());
        match random.below(5) {
            0 => drop(text.drain(from..to)),
            1 => {
                let piece = text[from..to].to_vec();
                let at = random.place(text.len() + 1);
                text.splice(at..at, piece);
            }
            2 => drop(text.splice(from..from, random.pick(words).bytes())),
            3 => drop(text.splice(from..to, random.pick(words).bytes())),
            _ => text.iter_mut().skip(from).take(1).for_each(|octet| *octet = random.bits() as u8),
        }
    }
    text
}

#[test]
fn anchor_files_are_taken_or_explained() {
    let words = [
        " ",
        "\n",
        "(",
        ")",
        ";",
        "\\",
        "@",
        "$ORIGIN ",
        "$TTL 1\n",
        " IN ",
        " DS ",
        " DNSKEY ",
        "257",
        "\t",
        ".",
        "\\255",
        "TYPE43",
        "=",
        "\0",
        ";;state=1",
        "60000",
        "00",
        "\u{feff}",
    ];
    let seed = format!(
        "; a\n$ORIGIN b.\nexample. {}\n@ 60 IN {} ;;state=2\n ( {} )\nc DS ( 1 8 2\n {} )\n",
        dnskey(&key(1)),
        ds(&key(2), 2),
        ds(&key(2), 1),
        "0".repeat(64),
    );
    let mut random = Random::new(1);
    let (mut taken, mut explained) = (0, 0);
    for _ in 0..20_000 {
        let text = changed(seed.as_bytes(), &words, &mut random);
        match AnchorFile::parse(&text, Algorithms::ALL) {
            Ok(file) => {
                let zone = |zone: &[u8]| to_text(zone);
                let lines =
                    file.anchors.iter().map(|anchor| format!("{} IN {}\n", zone(&anchor.zone), anchor.data));
                let again = AnchorFile::parse(lines.collect::<String>().as_bytes(), Algorithms::ALL).unwrap();
                assert_eq!(again.anchors, file.anchors);
                taken += 1;
            }
            Err(error) => {
                let lines = text.iter().filter(|octet| **octet == b'\n').count() + 1;
                assert!(error.line.is_none_or(|line| (1..=lines).contains(&line)), "{error}");
                assert!(!error.to_string().contains(|c: char| c.is_control()), "{error}");
                explained += 1;
            }
        }
    }
    assert!(taken > 100 && explained > 1000, "{taken} {explained}");
}

/// CRC-32 as RFC 1952 section 8 has it, with its table.
fn crc(octets: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256u32)
        .map(|n| (0..8).fold(n, |c, _| if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 }))
        .collect();
    !octets.iter().fold(u32::MAX, |c, &octet| table[((c ^ u32::from(octet)) & 0xff) as usize] ^ (c >> 8))
}

/// The text with right checksums, so that changes are seen by the readers behind them.
fn checked(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in text.split(|octet| *octet == b'\n').filter(|line| !line.is_empty()) {
        let end = line.windows(7).rposition(|window| window == b" check=").unwrap_or(line.len());
        out.extend_from_slice(&line[..end]);
        out.extend_from_slice(format!(" check={:08x}\n", crc(&line[..end])).as_bytes());
    }
    out
}

#[test]
fn states_are_taken_or_explained() {
    let pending = Pending { need: 30 * DAY, expiration: START + DAY, has_gap: true, by: vec![1, 2] };
    let waiting = Key {
        id: 1,
        rdata: key(3).into(),
        state: State::AddPend,
        since: START,
        held: 5,
        pending: Some(pending),
    };
    let revoked =
        Key { id: 2, rdata: key(4).into(), state: State::Revoked, pending: None, ..waiting.clone() };
    let zone = SavedZone {
        zone: ZONE.into(),
        configured: vec![ds(&key(1), 2)],
        keys: vec![waiting, revoked],
        newest: Some((1, 2)),
        clock: Some(Steady { boot: 7, seconds: 77 }),
        next_id: 3,
    };
    let seed = Saved::text(3, [zone].iter());
    let words = [
        " ",
        "\n",
        "=",
        ":",
        ",",
        "0",
        "18446744073709551616",
        "zone a. next=1",
        "state=valid",
        "\\000",
        "key ",
        "end lines=5",
        "T",
    ];
    let mut random = Random::new(2);
    let (mut taken, mut explained) = (0, 0);
    for _ in 0..20_000 {
        let text = checked(&changed(seed.as_bytes(), &words, &mut random));
        Saved::revoked(&text);
        match Saved::parse(&text) {
            Ok(saved) => {
                let again = Saved::text(saved.serial, saved.zones.iter());
                assert_eq!(Saved::parse(again.as_bytes()), Ok(saved));
                taken += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                explained += 1;
            }
        }
    }
    assert!(taken > 100 && explained > 1000, "{taken} {explained}");
}

#[test]
fn negative_anchors_are_taken_or_explained() {
    let words = [" ", ".", "\\", "until", "T", "Z", "+01:00", "9999999", "\u{fc}", "-"];
    let mut random = Random::new(3);
    for _ in 0..20_000 {
        let text = changed(b"broken.example until 2027-01-31T00:00:00Z", &words, &mut random);
        if let Ok(negative) = Negative::parse(&String::from_utf8_lossy(&text)) {
            assert_eq!(Negative::parse(&negative.to_string()), Ok(negative));
        }
    }
}
