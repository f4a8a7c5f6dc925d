//! Names: as text (configuration), in wire form, and compressed in a message that this project writes. They are compared with
//! plain functions that are written only for correctness, and with the names of `domain`.

use crate::input::InputReader;
use domain::base::name::{Name as DomainName, ToLabelIter};
use sixfold::config::Name as TextName;
use std::str::FromStr;
use wire::{Builder, Class, Flags, Message, Name, Section, Type};

/// Octets of the longest name.
const LONGEST: usize = 255;

/// Largest number of names in one message.
const NAMES: usize = 24;

/// Tests one input. Its first octet chooses the test.
pub fn run(input: &[u8]) {
    let Some((&kind, rest)) = input.split_first() else { return };
    match kind % 3 {
        0 => text(rest),
        1 => pair(rest),
        _ => compressed(rest),
    }
}

/// The labels of the name at the start of `octets`, and its length; `None` if there is no name.
fn labels(octets: &[u8]) -> Option<(Vec<Vec<u8>>, usize)> {
    let (mut labels, mut at) = (Vec::new(), 0);
    loop {
        let length = usize::from(*octets.get(at)?);
        let label = octets.get(at + 1..at + 1 + length)?;
        at += 1 + length;
        if length > 63 || at > LONGEST {
            return None;
        }
        if length == 0 {
            return Some((labels, at));
        }
        labels.push(label.to_ascii_lowercase());
    }
}

/// A name as text: an accepted one can be shown and read again, and `domain` reads the same name.
fn text(octets: &[u8]) {
    let Ok(text) = std::str::from_utf8(octets) else { return };
    let parsed = TextName::parse(text);
    let theirs = DomainName::<Vec<u8>>::from_str(text);
    let Ok(name) = parsed else { return };
    let wire = name.wire();
    assert_eq!(labels(wire).map(|(_, length)| length), Some(wire.len()), "{text:?}");
    assert_eq!(wire, wire.to_ascii_lowercase());
    if let Ok(theirs) = theirs {
        assert!(theirs.as_slice().eq_ignore_ascii_case(wire), "{text:?}: {theirs}");
    }
    let shown = name.to_string();
    assert_eq!(TextName::parse(&shown).as_ref(), Ok(&name), "{text:?} is shown as {shown:?}");
    let read = Name::from_wire(wire).expect("a name");
    let shown = read.to_string();
    assert_eq!(TextName::parse(&shown), Ok(name), "{text:?} is shown as {shown:?}");
}

/// Two octet strings that may begin with names.
fn pair(octets: &[u8]) {
    let mut reader = InputReader::new(octets);
    let (a, b) = (reader.length_prefixed(), reader.rest());
    let (ours, theirs) = (labels(a), labels(b));
    assert_eq!(wire::name_len(a), ours.as_ref().map(|(_, length)| *length), "{a:02x?}");
    assert_eq!(wire::eq_ignore_case(a, b), a.eq_ignore_ascii_case(b), "{a:02x?} {b:02x?}");
    let mut folded = a.to_vec();
    wire::fold(&mut folded);
    assert_eq!(folded, a.to_ascii_lowercase());
    let whole = Name::from_wire(a);
    assert_eq!(whole.is_some(), ours.as_ref().is_some_and(|(_, length)| *length == a.len()));
    let (Some(name), Some((our_labels, _))) = (whole, &ours) else { return };
    let read: Vec<Vec<u8>> = name.labels().map(<[u8]>::to_ascii_lowercase).collect();
    assert_eq!(&read, our_labels);
    assert_eq!(name.is_root(), our_labels.is_empty());
    let mut room = [0xa5; LONGEST];
    let length = name.write(&mut room);
    assert_eq!(&room[..length], a);
    let domain = DomainName::from_octets(a.to_vec()).expect("domain takes the same names");
    assert_eq!(domain.iter_labels().count(), our_labels.len() + 1);
    let Some((their_labels, their_length)) = theirs else { return };
    let b = &b[..their_length];
    let other = Name::from_wire(b).expect("a name");
    let is_below = our_labels.ends_with(&their_labels);
    assert_eq!(wire::is_at_or_below(a, b), is_below, "{a:02x?} {b:02x?}");
    assert_eq!(name.is_at_or_below(&other), is_below, "{a:02x?} {b:02x?}");
    assert_eq!(name.eq_ignore_case(&other), *our_labels == their_labels);
    assert_eq!(name.eq_wire(b), *our_labels == their_labels);
    assert_eq!(domain.ends_with(&DomainName::from_octets(b.to_vec()).expect("a name")), is_below);
}

/// A sequence of names, as owners and targets of records: compressed when written, and equal when read.
fn compressed(mut octets: &[u8]) {
    let mut names: Vec<&[u8]> = Vec::new();
    while let Some(length) = wire::name_len(octets).filter(|_| names.len() < NAMES) {
        let (name, rest) = octets.split_at(length);
        names.push(name);
        octets = rest;
    }
    let Some((question, names)) = names.split_first() else { return };
    // First an uncompressed message, the source of records with targets.
    let mut plain = vec![0, 7, 0x80, 0, 0, 1];
    plain.extend([(names.len() / 2) as u16, 0, 0].into_iter().flat_map(u16::to_be_bytes));
    plain.extend_from_slice(question);
    plain.extend([0, 1, 0, 1]);
    for pair in names.chunks_exact(2) {
        plain.extend_from_slice(pair[0]);
        plain.extend([0, 2, 0, 1, 0, 0, 0, 9]);
        plain.extend((pair[1].len() as u16).to_be_bytes());
        plain.extend_from_slice(pair[1]);
    }
    let source = Message::parse(&plain).expect("well-formed");
    let mut buf = vec![0xa5; 65_535];
    let mut builder =
        Builder::new(&mut buf, 65_535, 7, Flags(0x8000), source.question()).expect("there is room");
    for record in source.records(Section::Answer) {
        builder.copy(Section::Answer, &record).expect("there is room");
    }
    for name in names {
        let owner = Name::from_wire(name).expect("a name");
        let mark = builder.mark();
        for _ in 0..2 {
            builder
                .record(Section::Authority, owner, Type::A, Class::IN, 9, &[192, 0, 2, 1])
                .expect("there is room");
            builder.rollback(mark);
        }
        builder.aaaa(Section::Authority, owner, 9, [0x20; 16]).expect("there is room");
    }
    let length = builder.finish();
    let written = &buf[..length];
    let read = Message::parse(written).unwrap_or_else(|why| panic!("{why:?}: {written:02x?}"));
    // No name takes more octets than uncompressed, except the root if the question is for the root: it becomes a pointer.
    let in_full = plain.len() + names.iter().map(|name| name.len() + 10 + 16).sum::<usize>();
    assert!(length <= in_full + 2 * names.len(), "{written:02x?}");
    let answers = read.records(Section::Answer);
    assert_eq!(answers.clone().count(), names.len() / 2);
    for (record, pair) in answers.zip(names.chunks_exact(2)) {
        let target = record.target().expect("an NS record has a target");
        assert!(record.owner.eq_wire(pair[0]) && target.eq_wire(pair[1]), "{written:02x?}");
    }
    for (record, name) in read.records(Section::Authority).zip(names) {
        assert!(record.owner.eq_wire(name), "{written:02x?}");
        assert_eq!(record.address6(), Some([0x20; 16]));
    }
}
