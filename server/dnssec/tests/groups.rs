//! RRsets of messages with their signatures.

use crate::text::{line, message_of, reply};
use sixfold_dnssec::{GroupError, Groups, limits};
use wire::{Message, Section, Type};

const RRSIG: &str = "20300101000000 20200101000000 1 example. AAAA";

/// Text of RRsets: section, owner, type, records, TTL, signatures.
fn told(groups: &Groups<'_>) -> Vec<String> {
    let text = |set: sixfold_dnssec::Rrset<'_>| {
        let mut owner = [0; 255];
        let length = set.owner().write(&mut owner);
        let count = (set.records().count(), set.len());
        assert_eq!(count.0, count.1);
        let section = set.section();
        let owner = owner[..length].escape_ascii();
        format!(
            "{section:?} {owner} {} {} {} {}",
            set.rtype(),
            set.len(),
            set.ttl(),
            set.signatures().count()
        )
    };
    groups.iter().map(text).collect()
}

#[test]
fn records_of_one_owner_and_type_in_a_section_are_one_rrset_wherever_they_stand() {
    let answer = format!(
        "A.example. 300 IN A 192.0.2.1\na.example. 300 IN RRSIG AAAA 13 2 300 {RRSIG}\n\
         a.example. 200 IN AAAA 2001:db8::1\na.EXAMPLE. 100 IN A 192.0.2.2\n\
         a.example. 300 IN RRSIG A 13 2 300 {RRSIG}\na.example. 300 IN RRSIG A 8 2 300 {RRSIG}\n\
         b.example. 300 IN RRSIG A 13 2 300 {RRSIG}"
    );
    let authority = format!("a.example. 50 IN A 192.0.2.3\na.example. 300 IN RRSIG A 13 2 300 {RRSIG}");
    let octets = reply(("a.example.", 1), 0, &answer, &authority);
    let groups = Groups::of(&Message::parse(&octets).unwrap()).unwrap();
    let expected = [
        r"Answer \x01A\x07example\x00 A 2 100 2",
        r"Answer \x01a\x07example\x00 AAAA 1 200 1",
        r"Authority \x01a\x07example\x00 A 1 50 1",
    ];
    assert_eq!(told(&groups), expected);
    let found = groups.find(Section::Answer, b"\x01A\x07EXAMPLE\0", Type::AAAA).unwrap();
    assert_eq!((found.place(), found.only_record().unwrap().rdata()[0]), (1, 0x20));
    assert!(groups.find(Section::Authority, b"\x01a\x07example\0", Type::AAAA).is_none());
    assert!(groups.get(0).unwrap().only_record().is_none() && groups.get(3).is_none());
}

#[test]
fn a_compressed_owner_and_a_written_one_are_the_same_owner() {
    let mut pointed = line("x. 300 IN A 192.0.2.2");
    pointed.owner = vec![0xc0, 12];
    let records = [line("a.example. 300 IN A 192.0.2.1").octets(), pointed.octets()];
    let octets = message_of(("A.example.", 1), 0, [&records, &[]]);
    let groups = Groups::of(&Message::parse(&octets).unwrap()).unwrap();
    assert_eq!(told(&groups), [r"Answer \x01a\x07example\x00 A 2 300 0"]);
}

#[test]
fn a_malformed_signature_is_no_signature() {
    let mut broken = line(&format!("a.example. 300 IN RRSIG A 13 2 300 {RRSIG}"));
    broken.rdata.truncate(20);
    let records = [line("a.example. 300 IN A 192.0.2.1").octets(), broken.octets()];
    let octets = message_of(("a.example.", 1), 0, [&records, &[]]);
    let groups = Groups::of(&Message::parse(&octets).unwrap()).unwrap();
    assert_eq!(told(&groups), [r"Answer \x01a\x07example\x00 A 1 300 0"]);
}

// CVE-2026-123599 (hickory-dns): records of another class counted as data of class IN.
#[test]
fn a_class_other_than_in_is_refused_in_question_and_records() {
    let in_chaos = |class: u16| {
        let mut record = line("a.example. 300 IN TXT x");
        record.class = class;
        record.octets()
    };
    for (class, expected) in [(1, None), (3, Some(GroupError::Class)), (254, Some(GroupError::Class))] {
        for sections in [[&[in_chaos(class)][..], &[]], [&[], &[in_chaos(class)]]] {
            let mut octets = message_of(("a.example.", 16), 0, sections);
            assert_eq!(Groups::of(&Message::parse(&octets).unwrap()).err(), expected, "{class}");
            let end = 12 + 11 + 4;
            octets[end - 1] = 3;
            assert_eq!(Groups::of(&Message::parse(&octets).unwrap()).err(), Some(GroupError::Class));
        }
    }
}

// The ANY query with many RRsets of Unbound's fix of 27 May 2026.
#[test]
fn a_message_with_more_rrsets_or_records_than_the_limits_is_refused() {
    let records = |count: usize, owners: usize| {
        let one = |number: usize| {
            let owner = format!("n{}.example.", number % owners);
            line(&format!("{owner} 300 IN A 10.0.{}.{}", number >> 8, number & 255)).octets()
        };
        (0..count).map(one).collect::<Vec<_>>()
    };
    for (count, owners, expected) in [
        (limits::RRSETS, limits::RRSETS, None),
        (limits::RRSETS + 1, limits::RRSETS + 1, Some(GroupError::Rrsets)),
        (limits::RECORDS, 1, None),
        (limits::RECORDS + 1, 1, Some(GroupError::Records)),
    ] {
        let records = records(count, owners);
        let (first, second) = records.split_at(count / 2);
        for sections in [[&records[..], &[]], [first, second]] {
            let octets = message_of(("a.example.", 255), 0, sections);
            let message = Message::parse(&octets).unwrap();
            let error = Groups::of(&message).err();
            // Two halves of one owner are two RRsets.
            assert_eq!(error, expected, "{count} {owners}");
        }
    }
}
