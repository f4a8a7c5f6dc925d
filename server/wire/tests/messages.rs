//! Parsing of messages: for every rule of the walk, one message that keeps it and one that breaks it.

use sixfold_wire::{Class, Flags, Malformed, Message, Opcode, Rcode, Record, Section, Type};

const ANSWER: usize = 0;
const ADDITIONAL: usize = 2;

/// A response to `www.example AAAA IN`, with the records of these sections as octets.
fn message(records: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = b"\x12\x34\x81\x80\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x1c\0\x01".to_vec();
    for (section, record) in records {
        bytes[7 + 2 * section] += 1;
        bytes.extend_from_slice(record);
    }
    bytes
}

/// A record in class IN, owned by the question's name.
fn record(rtype: Type, rdata: &[u8]) -> Vec<u8> {
    record_in(Class::IN, rtype, rdata)
}

fn record_in(class: Class, rtype: Type, rdata: &[u8]) -> Vec<u8> {
    let mut record = b"\xc0\x0c".to_vec();
    record.extend(rtype.0.to_be_bytes());
    record.extend(class.0.to_be_bytes());
    record.extend(300u32.to_be_bytes());
    record.extend((rdata.len() as u16).to_be_bytes());
    record.extend(rdata);
    record
}

fn judge(records: &[(usize, &[u8])]) -> Result<(), Malformed> {
    Message::parse(&message(records)).map(|_| ())
}

fn judge_answer(rtype: Type, rdata: &[u8]) -> Result<(), Malformed> {
    judge(&[(ANSWER, &record(rtype, rdata))])
}

fn first<'a>(message: &Message<'a>) -> Record<'a> {
    message.records(Section::Answer).next().expect("the answer has a record")
}

#[test]
fn header_and_question_are_read_as_sent() {
    let mut bytes = message(&[]);
    bytes[13] = b'W';
    let message = Message::parse(&bytes).unwrap();
    assert_eq!((message.id(), message.flags()), (0x1234, Flags(0x8180)));
    assert_eq!((message.opcode(), message.rcode()), (Opcode::QUERY, Rcode::NOERROR));
    assert!(message.is_response());
    assert_eq!(message.qname(), b"\x03Www\x07example\0");
    assert_eq!((message.qtype(), message.qclass()), (Type::AAAA, Class::IN));
    assert_eq!(message.question(), &bytes[12..]);
    assert_eq!((message.end(), message.opt_start()), (bytes.len(), None));
    assert!(message.opt().is_none());
}

#[test]
fn records_are_read_with_their_places() {
    let a = record(Type::A, &[192, 0, 2, 1]);
    let aaaa = record(Type::AAAA, &[0x20; 16]);
    let ns = record(Type::NS, b"\x02ns\xc0\x10");
    let bytes = message(&[(0, &a), (0, &aaaa), (1, &ns), (2, &a)]);
    let message = Message::parse(&bytes).unwrap();
    let answers: Vec<Record<'_>> = message.records(Section::Answer).collect();
    assert_eq!((answers.len(), message.count(Section::Answer)), (2, 2));
    assert_eq!((answers[0].address4(), answers[0].address6()), (Some([192, 0, 2, 1]), None));
    assert_eq!((answers[1].address4(), answers[1].address6()), (None, Some([0x20; 16])));
    assert_eq!((answers[0].ttl, answers[0].class, answers[0].rtype), (300, Class::IN, Type::A));
    assert_eq!(answers[0].start(), message.section_start(Section::Answer));
    assert_eq!(&bytes[answers[0].ttl_start()..][..4], [0, 0, 1, 44]);
    assert_eq!(&bytes[answers[0].rdata_start()..answers[0].end()], [192, 0, 2, 1]);
    assert_eq!(answers[0].end(), answers[1].start());
    let ns = message.records(Section::Authority).next().unwrap();
    assert!(ns.target().unwrap().eq_wire(b"\x02ns\x07example\0"));
    assert_eq!(ns.start(), message.section_start(Section::Authority));
    assert_eq!(ns.end(), message.section_start(Section::Additional));
    assert_eq!(ns.owner.to_string(), "www.example.");
}

#[test]
fn only_the_four_types_of_one_name_have_a_target() {
    for (rtype, rdata, target) in [
        (Type::CNAME, &b"\xc0\x10"[..], true),
        (Type::DNAME, b"\xc0\x10", true),
        (Type::NS, b"\xc0\x10", true),
        (Type::PTR, b"\xc0\x10", true),
        (Type::MX, b"\0\x05\xc0\x10", false),
        (Type::TXT, b"\xc0\x10", false),
    ] {
        let bytes = message(&[(ANSWER, &record(rtype, rdata))]);
        let message = Message::parse(&bytes).unwrap();
        assert_eq!(first(&message).target().is_some(), target, "{rtype}");
    }
}

#[test]
fn the_soa_minimum_and_the_covered_type_are_found() {
    let mut soa = b"\xc0\x10\x01h\xc0\x10".to_vec();
    soa.extend([0; 16]);
    soa.extend(900u32.to_be_bytes());
    let mut rrsig = vec![0, 28];
    rrsig.extend([0; 16]);
    rrsig.extend(b"\0sig");
    let bytes = message(&[(0, &record(Type::SOA, &soa)), (0, &record(Type::RRSIG, &rrsig))]);
    let message = Message::parse(&bytes).unwrap();
    let records: Vec<Record<'_>> = message.records(Section::Answer).collect();
    assert_eq!((records[0].soa_minimum(), records[0].covered()), (Some(900), None));
    assert_eq!((records[1].soa_minimum(), records[1].covered()), (None, Some(Type::AAAA)));
}

#[test]
fn a_ttl_with_the_highest_bit_counts_as_zero() {
    let mut bytes = message(&[(ANSWER, &record(Type::A, &[0; 4]))]);
    let ttl = first(&Message::parse(&bytes).unwrap()).ttl_start();
    bytes[ttl] = 0x80;
    assert_eq!(first(&Message::parse(&bytes).unwrap()).ttl, 0);
    bytes[ttl] = 0x7f;
    assert_eq!(first(&Message::parse(&bytes).unwrap()).ttl, 0x7f00_012c);
}

#[test]
fn fewer_octets_than_a_header_are_short() {
    let whole = message(&[]);
    for length in 0..12 {
        assert_eq!(Message::parse(&whole[..length]).unwrap_err(), Malformed::Short);
    }
}

#[test]
fn there_is_exactly_one_question() {
    for count in [0, 2, 255] {
        let mut bytes = message(&[]);
        bytes[5] = count;
        assert_eq!(Message::parse(&bytes).unwrap_err(), Malformed::QuestionCount);
    }
    let mut bytes = message(&[]);
    bytes[4] = 1;
    assert_eq!(Message::parse(&bytes).unwrap_err(), Malformed::QuestionCount);
}

#[test]
fn every_cut_is_noticed() {
    let whole = message(&[
        (ANSWER, &record(Type::CNAME, b"\x01a\xc0\x10")),
        (ADDITIONAL, b"\0\0\x29\x04\xd0\0\0\0\0\0\x04\0\x0a\0\0"),
    ]);
    assert!(Message::parse(&whole).is_ok());
    for length in 12..whole.len() {
        assert!(Message::parse(&whole[..length]).is_err(), "cut at {length}");
    }
    assert_eq!(Message::parse(&whole[..20]).unwrap_err(), Malformed::Name);
    assert_eq!(Message::parse(&whole[..28]).unwrap_err(), Malformed::Question);
    assert_eq!(Message::parse(&whole[..40]).unwrap_err(), Malformed::Record);
}

#[test]
fn octets_after_the_last_record_are_tolerated() {
    let mut bytes = message(&[(ANSWER, &record(Type::A, &[0; 4]))]);
    let end = bytes.len();
    bytes.extend([0xc0; 7]);
    assert_eq!(Message::parse(&bytes).unwrap().end(), end);
}

#[test]
fn a_question_name_may_not_be_compressed() {
    let bytes = b"\0\0\0\0\0\x01\0\0\0\0\0\0\xc0\x02\0\x01\0\x01";
    assert_eq!(Message::parse(bytes).unwrap_err(), Malformed::Name);
}

#[test]
fn pointers_lead_backwards_and_not_into_the_header() {
    // The answer begins at 29; RDATA of a CNAME at 41.
    for (target, good) in
        [(12, true), (16, true), (24, true), (11, false), (4, false), (41, false), (42, false)]
    {
        let rdata = [0xc0, target];
        assert_eq!(
            judge_answer(Type::CNAME, &rdata),
            if good { Ok(()) } else { Err(Malformed::Name) },
            "{target}"
        );
    }
    // After a label, too, the pointer must not lead to that label.
    assert_eq!(judge_answer(Type::CNAME, b"\x01a\xc0\x29"), Err(Malformed::Name));
    // A pointer to a pointer to a name is a name.
    assert_eq!(judge_answer(Type::CNAME, b"\xc0\x1d"), Ok(()));
}

#[test]
fn label_types_other_than_length_and_pointer_are_refused() {
    for octet in [0x40, 0x41, 0x80, 0xbf] {
        assert_eq!(judge_answer(Type::NS, &[octet, 0]), Err(Malformed::Name), "{octet:#x}");
    }
}

#[test]
fn an_expanded_name_has_at_most_255_octets() {
    // The question's name has 13 octets, so at most 242 octets of labels can precede it.
    let labels = |last: usize| {
        let mut name = [[63; 64]; 3].concat();
        name.extend(std::iter::once(last as u8).chain(vec![b'x'; last]));
        name.extend(b"\xc0\x0c");
        name
    };
    assert_eq!(judge_answer(Type::CNAME, &labels(49)), Ok(()));
    assert_eq!(judge_answer(Type::CNAME, &labels(50)), Err(Malformed::Name));
    let plain = |last: usize| [&labels(last)[..193 + last], &[0]].concat();
    assert_eq!(judge_answer(Type::CNAME, &plain(61)), Ok(()));
    assert_eq!(judge_answer(Type::CNAME, &plain(62)), Err(Malformed::Name));
}

#[test]
fn a_name_takes_at_most_127_pointers() {
    // A TXT record holds a chain of pointers, the first to the question; a CNAME points at its end.
    for (links, good) in [(126, true), (127, false)] {
        let start = message(&[]).len() + 12;
        let mut chain = vec![0xc0, 0x0c];
        for link in 1..links {
            chain.extend((0xc000 | (start + 2 * (link - 1)) as u16).to_be_bytes());
        }
        let last = (0xc000 | (start + 2 * (links - 1)) as u16).to_be_bytes();
        let verdict = judge(&[(ANSWER, &record(Type::NULL, &chain)), (ANSWER, &record(Type::CNAME, &last))]);
        assert_eq!(verdict, if good { Ok(()) } else { Err(Malformed::Name) }, "{links}");
    }
}

#[test]
fn addresses_have_their_length_in_class_in() {
    for (rtype, length) in [(Type::A, 4), (Type::AAAA, 16)] {
        assert_eq!(judge_answer(rtype, &vec![1; length]), Ok(()));
        for wrong in [0, length - 1, length + 1] {
            assert_eq!(judge_answer(rtype, &vec![1; wrong]), Err(Malformed::Rdata));
            let chaos = record_in(Class::CH, rtype, &vec![1; wrong]);
            assert_eq!(judge(&[(ANSWER, &chaos)]), Ok(()));
        }
    }
}

#[test]
fn rdata_with_names_is_filled_exactly() {
    let one = b"\xc0\x0c".to_vec();
    let two = [&one[..], &one[..]].concat();
    let after = |octets: usize, names: &[u8]| -> Vec<u8> { [&vec![0; octets][..], names].concat() };
    for (rtype, rdata) in [
        (Type::NS, one.clone()),
        (Type::MD, one.clone()),
        (Type::MF, one.clone()),
        (Type::CNAME, one.clone()),
        (Type::SOA, [&two[..], &[0; 20][..]].concat()),
        (Type::MB, one.clone()),
        (Type::MG, one.clone()),
        (Type::MR, one.clone()),
        (Type::PTR, one.clone()),
        (Type::MINFO, two.clone()),
        (Type::MX, after(2, &one)),
        (Type::RP, two.clone()),
        (Type::AFSDB, after(2, &one)),
        (Type::RT, after(2, &one)),
        (Type::PX, after(2, &two)),
        (Type::KX, after(2, &one)),
        (Type::SRV, after(6, &one)),
        (Type::DNAME, one.clone()),
        (Type::NAPTR, [&b"\0\0\0\0\x01u\0\x03abc"[..], &one[..]].concat()),
    ] {
        assert_eq!(judge_answer(rtype, &rdata), Ok(()), "{rtype}");
        let longer = [&rdata[..], &[0][..]].concat();
        assert_eq!(judge_answer(rtype, &longer), Err(Malformed::Rdata), "{rtype}");
        // Without its last octet, the end of the message or the following octets cut the last name.
        assert!(judge_answer(rtype, &rdata[..rdata.len() - 1]).is_err(), "{rtype}");
        assert!(judge_answer(rtype, &[]).is_err(), "{rtype}");
    }
    for (rtype, before) in [(Type::SIG, 18), (Type::NXT, 0)] {
        assert_eq!(judge_answer(rtype, &after(before, b"\xc0\x0canything")), Ok(()), "{rtype}");
    }
}

#[test]
fn a_name_may_not_run_out_of_its_rdata() {
    // RDATA of one octet; the name would continue in the next record.
    let cut = record(Type::CNAME, b"\x03");
    let next = record(Type::A, &[0; 4]);
    assert!(judge(&[(ANSWER, &cut), (ANSWER, &next)]).is_err());
}

#[test]
fn updates_have_records_without_rdata() {
    for class in [Class::ANY, Class::NONE] {
        let bytes = message(&[(ANSWER, &record_in(class, Type::CNAME, &[]))]);
        assert!(first(&Message::parse(&bytes).unwrap()).target().is_none());
    }
}

#[test]
fn one_opt_record_stands_among_the_additional_ones() {
    let opt = b"\0\0\x29\x04\xd0\x01\0\x80\0\0\0";
    let bytes = message(&[(ADDITIONAL, &record(Type::A, &[0; 4])), (ADDITIONAL, opt)]);
    let good = Message::parse(&bytes).unwrap();
    let found = good.opt().unwrap();
    assert_eq!((found.udp_size(), found.dnssec_ok(), found.version()), (1232, true, 0));
    assert_eq!((good.rcode(), good.count(Section::Additional)), (Rcode::BADVERS, 2));
    assert_eq!(good.opt_start(), Some(good.end() - 11));
    assert_eq!(good.records(Section::Additional).last().unwrap().rtype, Type::OPT);

    assert_eq!(judge(&[(ADDITIONAL, opt), (ADDITIONAL, opt)]), Err(Malformed::Opt));
    assert_eq!(judge(&[(ANSWER, opt)]), Err(Malformed::Opt));
    assert_eq!(judge(&[(1, opt)]), Err(Malformed::Opt));
    assert_eq!(judge(&[(ADDITIONAL, &record(Type::OPT, &[]))]), Err(Malformed::Opt));
}

#[test]
fn options_fill_the_opt_record() {
    let opt = |options: &[u8]| {
        let mut opt = b"\0\0\x29\x04\xd0\0\0\0\0\0".to_vec();
        opt.push(options.len() as u8);
        opt.extend(options);
        judge(&[(ADDITIONAL, &opt)])
    };
    assert_eq!((opt(&[0, 3, 0, 0]), opt(&[0, 3, 0, 1, 7, 0, 9, 0, 0])), (Ok(()), Ok(())));
    for bad in [&[0][..], &[0, 3, 0], &[0, 3, 0, 1], &[0, 3, 0, 0, 0]] {
        assert_eq!(opt(bad), Err(Malformed::Opt), "{bad:?}");
    }
}

#[test]
fn rdata_is_read_in_pieces_and_its_names_are_expanded() {
    let name = |name: sixfold_wire::Name<'_>| {
        let mut wire = [0; 255];
        let length = name.write(&mut wire);
        wire[..length].to_vec()
    };
    let www = b"\x03www\x07example\0".to_vec();
    let mail = [b"\x04mail", &www[4..]].concat();
    for (rtype, rdata, expected) in [
        (Type::MX, &b"\0\x0a\x04mail\xc0\x10"[..], vec![b"\0\x0a".to_vec(), mail.clone()]),
        (Type::NS, b"\xc0\x0c", vec![www.clone()]),
        (
            Type::SOA,
            b"\xc0\x0c\x04mail\xc0\x1012345678901234567890",
            vec![www.clone(), mail, b"12345678901234567890".to_vec()],
        ),
        (Type::NAPTR, b"\0\x01\0\x02\x01s\0\0\xc0\x0c", vec![b"\0\x01\0\x02\x01s\0\0".to_vec(), www.clone()]),
        (
            Type::SIG,
            b"123456789012345678\xc0\x0csignature",
            vec![b"123456789012345678".to_vec(), www.clone(), b"signature".to_vec()],
        ),
        // Names of these types are never compressed, so they are octets.
        (Type::NSEC, b"\x01a\0\0\x01\x40", vec![b"\x01a\0\0\x01\x40".to_vec()]),
        (Type::A, b"\xc0\0\x02\x01", vec![b"\xc0\0\x02\x01".to_vec()]),
        (Type::NULL, b"", vec![]),
    ] {
        let bytes = message(&[(ANSWER, &record(rtype, rdata))]);
        let parsed = Message::parse(&bytes).unwrap();
        let record = parsed.records(Section::Answer).next().unwrap();
        let parts = record.rdata_parts().map(|part| match part {
            sixfold_wire::RdataPart::Octets(octets) => octets.to_vec(),
            sixfold_wire::RdataPart::Name(found) => name(found),
        });
        assert_eq!(parts.collect::<Vec<_>>(), expected, "{rtype}");
        let again = parsed.record_at(record.start()).unwrap();
        assert_eq!((again.rtype, again.rdata(), again.end()), (rtype, rdata, record.end()));
        assert!(parsed.record_at(bytes.len()).is_none());
    }
}
