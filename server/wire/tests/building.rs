//! Output of the builder: compression, truncation by whole records and RRsets, and the OPT record at the end.

use sixfold_wire::{
    Builder, Class, EDE_LEN, Flags, Full, HEADER, Message, Name, OPT_LEN, Rcode, Record, Section, Type, ede,
};

const QUESTION: &[u8] = b"\x03www\x07example\0\0\x1c\0\x01";

/// A response of an upstream to `WWW.EXAMPLE A`: a CNAME, two addresses, a signature, an NS record and glue.
fn upstream() -> Vec<u8> {
    let mut bytes = b"\0\x07\x81\x80\0\x01\0\x04\0\x01\0\x01\x03WWW\x07EXAMPLE\0\0\x01\0\x01".to_vec();
    bytes.extend(b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x07\x04edge\xc0\x10");
    for last in [1, 2] {
        bytes.extend(b"\xc0\x29\0\x01\0\x01\0\0\x01\x2c\0\x04\xc0\0\x02");
        bytes.push(last);
    }
    bytes.extend(
        b"\xc0\x29\0\x2e\0\x01\0\0\x01\x2c\0\x17\0\x01\x0d\x02\0\0\x01\x2c\0\0\0\0\0\0\0\0\x12\x34\0sign",
    );
    bytes.extend(b"\x07example\0\0\x02\0\x01\0\0\x0e\x10\0\x05\x02ns\xc0\x10");
    bytes.extend(b"\x02ns\xc0\x10\0\x01\0\x01\0\0\x0e\x10\0\x04\xc0\0\x02\x35");
    bytes
}

fn builder(buf: &mut [u8], limit: usize) -> Builder<'_> {
    Builder::new(buf, limit, 0xbeef, Flags(0x8180), QUESTION).unwrap()
}

fn records<'a>(message: &Message<'a>, section: Section) -> Vec<Record<'a>> {
    message.records(section).collect()
}

/// Builds with `write` into 512 octets and returns the message.
fn built(write: impl FnOnce(&mut Builder<'_>)) -> Vec<u8> {
    let mut buf = [0xaa; 512];
    let mut builder = builder(&mut buf, 512);
    write(&mut builder);
    let length = builder.len();
    assert_eq!(builder.finish(), length);
    buf[..length].to_vec()
}

#[test]
fn an_empty_answer_is_a_header_and_the_question() {
    let bytes = built(|builder| builder.set_flags(Flags(0x8183)));
    assert_eq!(bytes, [b"\xbe\xef\x81\x83\0\x01\0\0\0\0\0\0", QUESTION].concat());
    assert_eq!(Message::parse(&bytes).unwrap().rcode(), Rcode::NXDOMAIN);
}

#[test]
fn a_chain_is_copied_and_its_addresses_replaced() {
    let source = upstream();
    let source = Message::parse(&source).unwrap();
    let bytes = built(|builder| {
        let answers = records(&source, Section::Answer);
        builder.copy(Section::Answer, &answers[0]).unwrap();
        for record in &answers[1..3] {
            builder.aaaa(Section::Answer, record.owner, 42, [0x64; 16]).unwrap();
        }
    });
    // The letter case of the question wins over that of the source. Every owner is a pointer, and so is the end of
    // the CNAME's target.
    let mut expected = [b"\xbe\xef\x81\x80\0\x01\0\x03\0\0\0\0", QUESTION].concat();
    expected.extend(b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x07\x04edge\xc0\x10");
    for _ in 0..2 {
        expected.extend(b"\xc0\x29\0\x1c\0\x01\0\0\0\x2a\0\x10");
        expected.extend([0x64; 16]);
    }
    assert_eq!(bytes, expected);
}

#[test]
fn a_copied_message_says_the_same() {
    let source = upstream();
    let source = Message::parse(&source).unwrap();
    let sections = [Section::Answer, Section::Authority, Section::Additional];
    let bytes = built(|builder| {
        for section in sections {
            source.records(section).for_each(|record| builder.copy_ttl(section, &record, 77).unwrap());
        }
    });
    assert!(bytes.len() < source.end(), "nothing is written longer than it came");
    let copy = Message::parse(&bytes).unwrap();
    for section in sections {
        let (ours, theirs) = (records(&copy, section), records(&source, section));
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!(ours.owner.eq_ignore_case(&theirs.owner));
            assert_eq!((ours.rtype, ours.class, ours.ttl), (theirs.rtype, theirs.class, 77));
            match (ours.target(), theirs.target()) {
                (Some(ours), Some(theirs)) => assert!(ours.eq_ignore_case(&theirs)),
                _ => assert_eq!(ours.rdata(), theirs.rdata()),
            }
        }
    }
}

#[test]
fn names_in_newer_types_are_written_in_full() {
    let mut source = b"\0\0\x80\0\0\x01\0\x01\0\0\0\0\x03www\x07example\0\0\x21\0\x01".to_vec();
    source.extend(b"\xc0\x0c\0\x21\0\x01\0\0\0\x05\0\x08\0\x01\0\x02\0\x50\xc0\x10");
    let bytes = built(|builder| {
        let record = records(&Message::parse(&source).unwrap(), Section::Answer)[0];
        builder.copy(Section::Answer, &record).unwrap();
    });
    let copy = Message::parse(&bytes).unwrap();
    assert_eq!(records(&copy, Section::Answer)[0].rdata(), b"\0\x01\0\x02\0\x50\x07example\0");
}

#[test]
fn a_record_can_be_made_from_its_parts() {
    let owner = Name::from_wire(b"\x04Www2\x07Example\0").unwrap();
    let bytes = built(|builder| {
        builder.record(Section::Answer, owner, Type::TXT, Class::CH, 9, b"\x02hi").unwrap();
        builder.aaaa(Section::Answer, Name::from_wire(&QUESTION[..13]).unwrap(), 1, [1; 16]).unwrap();
        builder.aaaa(Section::Answer, Name::from_wire(&[0]).unwrap(), 1, [1; 16]).unwrap();
    });
    assert_eq!(&bytes[29..29 + 19], b"\x04Www2\xc0\x10\0\x10\0\x03\0\0\0\x09\0\x03\x02h");
    let copy = Message::parse(&bytes).unwrap();
    let owners: Vec<String> =
        records(&copy, Section::Answer).iter().map(|record| record.owner.to_string()).collect();
    assert_eq!(owners, ["Www2.example.", "www.example.", "."]);
}

#[test]
fn a_record_that_does_not_fit_leaves_nothing_behind() {
    let source = upstream();
    let source = Message::parse(&source).unwrap();
    for limit in HEADER + QUESTION.len()..200 {
        let mut buf = [0; 512];
        let mut builder = builder(&mut buf, limit);
        let mut fitted = 0;
        for record in source.records(Section::Answer) {
            let before = builder.len();
            match builder.copy(Section::Answer, &record) {
                Ok(()) => fitted += 1,
                Err(Full) => assert_eq!(builder.len(), before),
            }
        }
        let length = builder.finish();
        assert!(length <= limit);
        assert!(buf[limit..].iter().all(|&octet| octet == 0), "nothing is written behind the limit");
        let message = Message::parse(&buf[..length]).unwrap();
        assert_eq!((message.count(Section::Answer), message.end()), (fitted, length));
    }
}

#[test]
fn a_limit_below_the_question_is_refused() {
    let mut buf = [0; 64];
    for limit in 0..HEADER + QUESTION.len() {
        assert!(Builder::new(&mut buf, limit, 0, Flags(0), QUESTION).is_none());
    }
    assert!(Builder::new(&mut buf[..20], 512, 0, Flags(0), QUESTION).is_none());
    assert!(Builder::new(&mut buf, 512, 0, Flags(0), &QUESTION[..16]).is_none());
    assert!(Builder::new(&mut buf, 512, 0, Flags(0), b"").is_none());
}

#[test]
fn an_rrset_is_taken_back_with_its_names() {
    let source = upstream();
    let source = Message::parse(&source).unwrap();
    let answers = records(&source, Section::Answer);
    let glue = records(&source, Section::Additional)[0];
    let with_detour = built(|builder| {
        let mark = builder.mark();
        for record in &answers {
            builder.copy(Section::Answer, record).unwrap();
        }
        builder.rollback(mark);
        // Names equal to removed ones must be written again, not pointed at.
        builder.copy(Section::Answer, &answers[1]).unwrap();
        builder.copy(Section::Additional, &glue).unwrap();
    });
    let straight = built(|builder| {
        builder.copy(Section::Answer, &answers[1]).unwrap();
        builder.copy(Section::Additional, &glue).unwrap();
    });
    assert_eq!(with_detour, straight);
}

#[test]
fn a_removed_name_is_no_suffix_of_later_names() {
    let name = |wire: &'static [u8]| Name::from_wire(wire).unwrap();
    let bytes = built(|builder| {
        let mark = builder.mark();
        builder.aaaa(Section::Answer, name(b"\x04edge\x07example\0"), 1, [1; 16]).unwrap();
        builder.rollback(mark);
        // An equal label at an equal position, but another suffix behind it.
        builder.aaaa(Section::Answer, name(b"\x04edge\x05other\0"), 1, [1; 16]).unwrap();
        builder.aaaa(Section::Answer, name(b"\x01a\x04edge\x07example\0"), 1, [1; 16]).unwrap();
    });
    let message = Message::parse(&bytes).unwrap();
    let owners: Vec<String> =
        records(&message, Section::Answer).iter().map(|record| record.owner.to_string()).collect();
    assert_eq!(owners, ["edge.other.", "a.edge.example."]);
}

#[test]
fn reserved_room_is_kept_for_the_opt_record() {
    let room = HEADER + QUESTION.len() + 28 + OPT_LEN + EDE_LEN;
    for (limit, fits) in [(room, true), (room - 1, false)] {
        let mut buf = [0; 512];
        let mut builder = builder(&mut buf, limit);
        builder.reserve(OPT_LEN + EDE_LEN);
        let owner = Name::from_wire(&QUESTION[..13]).unwrap();
        assert_eq!(builder.aaaa(Section::Answer, owner, 1, [0; 16]).is_ok(), fits);
        builder.opt(1232, 1, 0, true, Some(ede::SYNTHESIZED)).unwrap();
        let length = builder.finish();
        let message = Message::parse(&buf[..length]).unwrap();
        let opt = message.opt().unwrap();
        assert_eq!((opt.udp_size(), opt.dnssec_ok(), message.rcode()), (1232, true, Rcode::BADVERS));
        assert_eq!(opt.ede().map(|(code, _)| code).collect::<Vec<_>>(), [ede::SYNTHESIZED]);
        assert_eq!(message.opt_start().unwrap() + OPT_LEN + EDE_LEN, length);
    }
    let mut buf = [0; 40];
    let mut builder = builder(&mut buf, HEADER + QUESTION.len() + OPT_LEN - 1);
    assert_eq!(builder.opt(512, 0, 0, false, None), Err(Full));
    assert_eq!(builder.finish(), HEADER + QUESTION.len());
}

#[test]
fn an_option_is_added_to_the_opt_record_if_there_is_one_and_room() {
    let room = HEADER + QUESTION.len() + OPT_LEN + EDE_LEN + 4 + 3;
    for (limit, fits) in [(room, true), (room - 1, false)] {
        let mut buf = [0; 512];
        let mut builder = builder(&mut buf, limit);
        assert_eq!(builder.option(8, &[1, 2, 3]), Err(Full), "no OPT record");
        builder.opt(1232, 0, 0, true, Some(ede::SYNTHESIZED)).unwrap();
        assert_eq!(builder.option(8, &[1, 2, 3]).is_ok(), fits);
        let length = builder.finish();
        let message = Message::parse(&buf[..length]).unwrap();
        let options: Vec<_> = message.opt().unwrap().options().collect();
        let expected: &[(u16, &[u8])] = &[(15, &[0, 29]), (8, &[1, 2, 3])];
        assert_eq!(options, expected[..if fits { 2 } else { 1 }]);
    }
    let mut buf = [0; 512];
    let mut builder = builder(&mut buf, 512);
    let mark = builder.mark();
    builder.opt(1232, 0, 0, true, None).unwrap();
    builder.rollback(mark);
    assert_eq!(builder.option(8, &[]), Err(Full), "it was taken back");
}

#[test]
fn no_pointer_leads_beyond_its_reach() {
    let mut buf = vec![0; 65_535];
    let mut builder = Builder::new(&mut buf, 65_535, 0, Flags(0x8000), QUESTION).unwrap();
    let mut written = 0;
    // Each owner has a label of its own, then one label that all share except the question.
    let owner = |number: u32| format!("\x06{number:06}\x04tail\0").into_bytes();
    while builder
        .record(
            Section::Answer,
            Name::from_wire(&owner(written / 2)).unwrap(),
            Type::NULL,
            Class::IN,
            0,
            &[0; 50],
        )
        .is_ok()
    {
        written += 1;
    }
    let length = builder.finish();
    assert!(length > 65_400);
    let message = Message::parse(&buf[..length]).unwrap();
    for (number, record) in (0..).zip(message.records(Section::Answer)) {
        assert!(record.owner.eq_wire(&owner(number / 2)), "{number}");
    }
    assert_eq!(message.count(Section::Answer), written as usize);
}

#[test]
fn names_beyond_the_reach_of_pointers_are_written_in_full() {
    let mut buf = vec![0; 65_535];
    let mut builder = Builder::new(&mut buf, 65_535, 0, Flags(0x8000), QUESTION).unwrap();
    let owners: [&[u8]; 4] = [b"\0", b"\x01x\x04tail\0", b"\x01y\x04tail\0", b"\x01x\x04tail\0"];
    for (owner, octets) in owners.iter().zip([16_400, 4, 4, 4]) {
        let owner = Name::from_wire(owner).unwrap();
        builder.record(Section::Answer, owner, Type::NULL, Class::IN, 0, &vec![0; octets]).unwrap();
    }
    let length = builder.finish();
    let message = Message::parse(&buf[..length]).unwrap();
    for (owner, record) in owners.iter().zip(message.records(Section::Answer)) {
        assert!(record.owner.eq_wire(owner), "{}", record.owner);
    }
}

#[test]
fn a_hint_from_another_message_is_not_believed() {
    // Two messages of equal layout with different names at equal positions.
    let one = upstream();
    let mut other = one.clone();
    other[41..46].copy_from_slice(b"\x04core");
    let (one, other) = (Message::parse(&one).unwrap(), Message::parse(&other).unwrap());
    let bytes = built(|builder| {
        for message in [one, other] {
            builder.copy(Section::Answer, &records(&message, Section::Answer)[1]).unwrap();
        }
    });
    let message = Message::parse(&bytes).unwrap();
    let owners: Vec<String> =
        records(&message, Section::Answer).iter().map(|record| record.owner.to_string()).collect();
    assert_eq!(owners, ["edge.example.", "core.example."]);
}
