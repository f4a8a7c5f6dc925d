//! Every kind of answer, parsed by both `wire` and `domain`.

use domain::base::Message as Oracle;
use domain::rdata::AllRecordData;
use sixfold_authority::{Kind, Zone, limits};
use wire::{Class, Flags, Message, Opcode, Rcode, Section, Type, header};

const SOA: &str = "dns64perf.test. 3600 IN SOA 127-0-0-1.dns64perf.test. hostmaster.dns64perf.test. 1 7200 3600 1209600 3600";

fn zone() -> Zone {
    Zone::new("dns64perf.test").unwrap()
}

/// A query under construction.
#[derive(Clone)]
struct Query {
    name: String,
    qtype: Type,
    class: Class,
    flags: Flags,
    /// UDP size, version, DO.
    edns: Option<(u16, u8, bool)>,
}

fn query(name: &str, qtype: Type) -> Query {
    Query { name: name.into(), qtype, class: Class::IN, flags: Flags::RD, edns: None }
}

impl Query {
    fn edns(mut self, size: u16) -> Query {
        self.edns = Some((size, 0, false));
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let query =
            kit::Query::new(&self.name, self.qtype.0).id(0xbeef).flags(self.flags.0).class(self.class.0);
        let with_opt =
            |query: kit::Query, (size, version, dnssec_ok)| query.opt(size, version, dnssec_ok, &[]);
        self.edns.into_iter().fold(query, with_opt).octets()
    }
}

/// An answer as both parsers read it.
#[derive(Debug)]
struct Reply {
    kind: Kind,
    rcode: Rcode,
    flags: Flags,
    octets: usize,
    /// Answer, authority and additional records as text, without OPT.
    records: [Vec<String>; 3],
    /// UDP size, version, DO.
    edns: Option<(u16, u8, bool)>,
}

/// Sends a query over a transport of `size` octets.
fn ask_over(zone: &Zone, query: &Query, size: usize) -> Reply {
    let question = query.bytes();
    // Filled with a pattern, so that an octet that was not written shows.
    let mut out = vec![0xa5; limits::STREAM];
    let answer = zone.respond(&question, size, &mut out).expect("no answer");
    let bytes = &out[..answer.length];

    let message = Message::parse(bytes).expect("wire refuses the answer");
    assert_eq!(message.end(), bytes.len());
    assert_eq!(message.id(), 0xbeef);
    assert!(message.is_response());
    assert_eq!(message.question(), Message::parse(&question).unwrap().question(), "the question is echoed");
    assert_eq!(message.opt().is_some(), query.edns.is_some(), "OPT if and only if asked");
    let copied = Flags::RD.with(Flags::CD).0;
    assert_eq!(message.flags().0 & copied, query.flags.0 & copied);
    assert!(!message.flags().contains(Flags::RA) && !message.flags().contains(Flags::AD));

    let oracle = Oracle::from_octets(bytes).unwrap();
    let (_, answers, authority, additional) = oracle.sections().unwrap();
    let records = [answers, authority, additional].map(|section| {
        let records =
            section.limit_to::<AllRecordData<_, _>>().map(|record| record.expect("domain refuses a record"));
        let records = records.filter(|record| record.rtype() != domain::base::Rtype::OPT);
        let text = |r: domain::base::Record<domain::base::ParsedName<&[u8]>, AllRecordData<_, _>>| {
            format!("{}. {} {} {} {}", r.owner(), r.ttl().as_secs(), r.class(), r.rtype(), r.data())
        };
        records.map(text).collect::<Vec<_>>()
    });
    for (section, records) in [Section::Answer, Section::Authority].into_iter().zip(&records) {
        assert_eq!(message.count(section), records.len());
    }
    let opt = oracle.opt();
    assert_eq!(oracle.opt_rcode().to_int(), message.rcode().0);
    Reply {
        kind: answer.kind,
        rcode: message.rcode(),
        flags: message.flags(),
        octets: bytes.len(),
        records,
        edns: opt.map(|opt| (opt.udp_payload_size(), opt.version(), opt.dnssec_ok())),
    }
}

fn ask(zone: &Zone, query: &Query) -> Reply {
    ask_over(zone, query, limits::UDP_SIZE)
}

/// Asserts the kind of an answer: RCODE, AA, and the records of answer and authority.
fn expect(reply: &Reply, kind: Kind, rcode: Rcode, answers: &[&str], authority: &[&str]) {
    assert_eq!((reply.kind, reply.rcode), (kind, rcode), "{reply:?}");
    let authoritative = matches!(rcode, Rcode::NOERROR | Rcode::NXDOMAIN);
    assert_eq!(reply.flags.contains(Flags::AA), authoritative, "{reply:?}");
    assert_eq!(reply.flags.contains(Flags::TC), kind == Kind::Truncated, "{reply:?}");
    assert_eq!(reply.records[0], answers);
    assert_eq!(reply.records[1], authority);
    assert!(reply.records[2].is_empty());
}

#[test]
fn the_a_record_of_a_name_is_the_address_that_it_says() {
    for (name, address) in [
        ("198-51-100-7.dns64perf.test", "198.51.100.7"),
        ("198-051-100-007.dns64perf.test", "198.51.100.7"),
        ("0-0-0-0.dns64perf.test", "0.0.0.0"),
        ("255-255-255-255.DNS64perf.tesT", "255.255.255.255"),
    ] {
        let reply = ask(&zone().ttl(42), &query(name, Type::A));
        expect(&reply, Kind::Address4, Rcode::NOERROR, &[&format!("{name}. 42 IN A {address}")], &[]);
    }
}

#[test]
fn a_name_without_aaaa_is_answered_empty_with_the_soa() {
    for qtype in [Type::AAAA, Type::MX, Type::TXT, Type::SOA, Type::NS, Type::PTR, Type(65_280)] {
        let reply = ask(&zone(), &query("10-1-2-3.dns64perf.test", qtype));
        expect(&reply, Kind::NoData, Rcode::NOERROR, &[], &[SOA]);
    }
}

#[test]
fn the_soa_in_a_negative_answer_bounds_its_life_by_the_ttl_of_the_zone() {
    let mut out = [0; 512];
    let question = query("10-1-2-3.dns64perf.test", Type::AAAA).bytes();
    let length = zone().ttl(77).answer(&question, 512, &mut out).unwrap();
    let message = Message::parse(&out[..length]).unwrap();
    let soa = message.records(Section::Authority).next().unwrap();
    assert_eq!((soa.ttl, soa.soa_minimum()), (77, Some(77)));
    assert!(soa.owner.eq_wire(zone().name()));
}

#[test]
fn a_name_that_has_aaaa_carries_its_address_in_the_last_32_bits() {
    let reply = ask(&zone().aaaa_share(1.0), &query("192-0-2-33.dns64perf.test", Type::AAAA));
    let record = "192-0-2-33.dns64perf.test. 3600 IN AAAA 2001:db8::c000:221";
    expect(&reply, Kind::Address6, Rcode::NOERROR, &[record], &[]);
}

#[test]
fn the_share_decides_by_the_address_and_not_by_its_spelling() {
    let zone = zone().aaaa_share(0.5).seed(3);
    let mut kinds = [0; 2];
    for octet in 0..=255u8 {
        let having = zone.has_aaaa([10, 0, 0, octet]);
        kinds[usize::from(having)] += 1;
        let kind = if having { Kind::Address6 } else { Kind::NoData };
        for name in [format!("10-0-0-{octet}"), format!("010-000-00-{octet:03}")] {
            assert_eq!(ask(&zone, &query(&format!("{name}.dns64perf.test"), Type::AAAA)).kind, kind);
            assert_eq!(ask(&zone, &query(&format!("{name}.dns64perf.test"), Type::A)).kind, Kind::Address4);
        }
    }
    assert!(kinds.iter().all(|count| *count > 64), "{kinds:?}");
}

#[test]
fn a_name_has_as_many_addresses_as_asked_for() {
    let zone = zone().addresses(3).aaaa_share(1.0);
    let name = "255-255-255-254.dns64perf.test";
    let a = ["255.255.255.254", "255.255.255.255", "0.0.0.0"].map(|a| format!("{name}. 3600 IN A {a}"));
    assert_eq!(ask(&zone, &query(name, Type::A)).records[0], a);
    let aaaa = ["ffff:fffe", "ffff:ffff", ""].map(|a| format!("{name}. 3600 IN AAAA 2001:db8::{a}"));
    assert_eq!(ask(&zone, &query(name, Type::AAAA)).records[0], aaaa);
}

#[test]
fn the_apex_has_an_soa_and_an_ns_record_and_nothing_else() {
    let ns = "dns64perf.test. 3600 IN NS 127-0-0-1.dns64perf.test.";
    for (qtype, kind, record) in
        [(Type::SOA, Kind::Soa, SOA), (Type::ANY, Kind::Soa, SOA), (Type::NS, Kind::Ns, ns)]
    {
        expect(&ask(&zone(), &query("dns64perf.test", qtype)), kind, Rcode::NOERROR, &[record], &[]);
    }
    for qtype in [Type::A, Type::AAAA, Type::DNSKEY] {
        expect(&ask(&zone(), &query("dns64perf.test", qtype)), Kind::NoData, Rcode::NOERROR, &[], &[SOA]);
    }
}

#[test]
fn the_name_server_of_the_zone_has_an_address() {
    let reply = ask(&zone(), &query("127-0-0-1.dns64perf.test", Type::A));
    expect(&reply, Kind::Address4, Rcode::NOERROR, &["127-0-0-1.dns64perf.test. 3600 IN A 127.0.0.1"], &[]);
}

#[test]
fn other_names_below_the_zone_do_not_exist() {
    for first in ["www", "1-2-3", "1-2-3-256", "1-2-3-4-5", "a.1-2-3-4", "1-2-3-4.1-2-3-4", "x.y.z"] {
        for qtype in [Type::A, Type::AAAA, Type::SOA] {
            let reply = ask(&zone(), &query(&format!("{first}.dns64perf.test"), qtype));
            expect(&reply, Kind::NameError, Rcode::NXDOMAIN, &[], &[SOA]);
        }
    }
}

#[test]
fn names_outside_other_classes_and_transfers_are_refused() {
    for name in ["", "test", "1-2-3-4.test", "1-2-3-4.dns64perf.test.example", "xdns64perf.test"] {
        expect(&ask(&zone(), &query(name, Type::A)), Kind::Refused, Rcode::REFUSED, &[], &[]);
    }
    for class in [Class::CH, Class::ANY, Class(0)] {
        let query = Query { class, ..query("1-2-3-4.dns64perf.test", Type::A) };
        expect(&ask(&zone(), &query), Kind::Refused, Rcode::REFUSED, &[], &[]);
    }
    for qtype in [Type::AXFR, Type::IXFR] {
        let reply = ask_over(&zone(), &query("dns64perf.test", qtype), limits::STREAM);
        expect(&reply, Kind::Refused, Rcode::REFUSED, &[], &[]);
    }
}

#[test]
fn a_question_for_any_type_gets_one_rrset() {
    let reply = ask(&zone().aaaa_share(1.0), &query("1-2-3-4.dns64perf.test", Type::ANY));
    expect(&reply, Kind::Address4, Rcode::NOERROR, &["1-2-3-4.dns64perf.test. 3600 IN A 1.2.3.4"], &[]);
}

#[test]
fn edns_is_answered_with_our_size_and_the_do_bit_of_the_question() {
    for dnssec_ok in [false, true] {
        let query = Query { edns: Some((1232, 0, dnssec_ok)), ..query("1-2-3-4.dns64perf.test", Type::AAAA) };
        for size in [1400, limits::UDP_SIZE, limits::STREAM] {
            assert_eq!(ask_over(&zone(), &query, size).edns, Some((4096, 0, dnssec_ok)));
        }
    }
}

#[test]
fn another_version_of_edns_is_answered_with_badvers() {
    let query = Query { edns: Some((1232, 1, false)), ..query("1-2-3-4.dns64perf.test", Type::A) };
    let reply = ask(&zone(), &query);
    expect(&reply, Kind::BadVersion, Rcode::BADVERS, &[], &[]);
    assert_eq!(reply.edns.map(|(_, version, _)| version), Some(0));
}

#[test]
fn rd_and_cd_are_copied_and_nothing_else_of_the_flags() {
    for flags in [Flags(0), Flags::RD, Flags::CD, Flags(0x07bf)] {
        // The checks in `ask_over` cover this.
        let reply = ask(&zone(), &Query { flags, ..query("1-2-3-4.dns64perf.test", Type::A) });
        assert_eq!(reply.kind, Kind::Address4);
    }
}

#[test]
fn other_opcodes_are_not_implemented() {
    for opcode in (1..16).map(Opcode) {
        let query = Query {
            flags: Flags::RD.with_opcode(opcode),
            ..query("1-2-3-4.dns64perf.test", Type::SOA).edns(1232)
        };
        let reply = ask(&zone(), &query);
        expect(&reply, Kind::NotImplemented, Rcode::NOTIMP, &[], &[]);
        assert_eq!(reply.flags.opcode(), opcode);
    }
}

#[test]
fn an_unparsable_query_gets_a_header_with_formerr_or_notimp() {
    let mut out = [0xa5; 512];
    let good = query("1-2-3-4.dns64perf.test", Type::A).edns(1232).bytes();
    let mut two_questions = good[..good.len() - wire::OPT_LEN].to_vec();
    two_questions.extend_from_slice(&two_questions.clone()[header::HEADER..]);
    header::set_qdcount(&mut two_questions, 2);
    let mut without = good[..header::HEADER].to_vec();
    header::set_qdcount(&mut without, 0);
    header::set_arcount(&mut without, 0);
    let cuts = (header::HEADER..good.len()).map(|length| good[..length].to_vec());
    for mut bytes in cuts.chain([two_questions, without]) {
        for (opcode, kind, rcode) in [
            (Opcode::QUERY, Kind::FormatError, Rcode::FORMERR),
            (Opcode::UPDATE, Kind::NotImplemented, Rcode::NOTIMP),
        ] {
            header::set_flags(&mut bytes, Flags::RD.with_opcode(opcode));
            let answer = zone().respond(&bytes, limits::UDP_SIZE, &mut out).unwrap();
            assert_eq!((answer.length, answer.kind), (header::HEADER, kind));
            let flags = Flags::QR.with(Flags::RD).with_opcode(opcode).with_rcode(rcode);
            assert_eq!(header::flags(&out), flags);
            assert_eq!((header::id(&out), &out[4..12]), (0xbeef, &[0; 8][..]));
        }
    }
}

#[test]
fn responses_and_scraps_are_never_answered() {
    let mut out = [0; 512];
    let mut bytes = query("1-2-3-4.dns64perf.test", Type::A).bytes();
    for length in 0..header::HEADER {
        assert_eq!(zone().answer(&bytes[..length], 512, &mut out), None);
    }
    header::set_flags(&mut bytes, Flags::QR);
    assert_eq!(zone().answer(&bytes, 512, &mut out), None);
    assert_eq!(zone().answer(&bytes[..header::HEADER], 512, &mut out), None);
}

#[test]
fn an_answer_is_truncated_exactly_when_it_exceeds_what_the_client_takes() {
    let name = "10-1-2-3.dns64perf.test";
    for addresses in 1..=145 {
        let zone = zone().addresses(addresses).aaaa_share(1.0);
        for (qtype, octets, kind) in [(Type::A, 16, Kind::Address4), (Type::AAAA, 28, Kind::Address6)] {
            // 25 octets of name and 4 of type and class behind the header.
            let plain = 12 + 29 + usize::from(addresses) * octets;
            let with_opt = plain + wire::OPT_LEN;
            let sizes = [0, 511, 512, 513, 1232, with_opt - 1, with_opt, with_opt + 1, 4096, 65_535];
            for size in sizes.map(|size| size as u16).map(Some).into_iter().chain([None]) {
                let query = Query { edns: size.map(|size| (size, 0, false)), ..query(name, qtype) };
                let needed = if size.is_some() { with_opt } else { plain };
                let reply = ask(&zone, &query);
                let fits = needed <= usize::from(size.unwrap_or(512)).clamp(512, limits::UDP_SIZE);
                assert_eq!(reply.flags.contains(Flags::TC), !fits, "{addresses} {qtype:?} {size:?}");
                if fits {
                    assert_eq!((reply.kind, reply.octets), (kind, needed));
                    assert_eq!(reply.records[0].len(), usize::from(addresses));
                } else {
                    // RFC 2181 section 9: a truncated RRset must not be used, so none of it is sent.
                    expect(&reply, Kind::Truncated, Rcode::NOERROR, &[], &[]);
                }
                assert_eq!(ask_over(&zone, &query, limits::STREAM).octets, needed, "never over a stream");
            }
        }
    }
}

#[test]
fn the_largest_answer_of_the_longest_name_fits_a_stream() {
    let label = "a".repeat(63);
    let name = format!("{label}.{label}.{label}.{}", "b".repeat(42));
    let zone = Zone::new(&name).unwrap().addresses(u16::MAX).aaaa_share(1.0).ttl(u32::MAX);
    let query = query(&format!("255-255-255-255.{name}"), Type::AAAA).edns(512);
    let reply = ask_over(&zone, &query, limits::STREAM);
    assert_eq!((reply.kind, reply.octets), (Kind::Address6, 12 + 256 + 2000 * 28 + 11));
    assert_eq!(reply.records[0].len(), 2000);
    assert!(reply.records[0][1999].contains(". 2147483647 IN AAAA 2001:db8::"), "{}", reply.records[0][1999]);
    expect(&ask(&zone, &query), Kind::Truncated, Rcode::NOERROR, &[], &[]);
    let negative = ask(&zone, &Query { qtype: Type::TXT, ..query.clone() });
    assert_eq!((negative.kind, negative.octets), (Kind::NoData, 12 + 256 + 57 + 11));

    // 64 CNAME records, of which those from 10 on have two digits.
    let zone = zone.cname_depth(u8::MAX);
    let reply = ask_over(&zone, &query, limits::STREAM);
    assert_eq!(reply.octets, 12 + 256 + 9 * 16 + 55 * 17 + 2000 * 28 + 11);
    assert!(reply.records[0][2063].starts_with("64.255-255-255-255.aaa"), "{}", reply.records[0][2063]);
    let last = Query { name: format!("64.{}", query.name), ..query };
    assert_eq!(ask_over(&zone, &last, limits::STREAM).octets, 12 + 259 + 2000 * 28 + 11);
}

#[test]
fn a_name_at_a_depth_is_an_alias_whose_whole_chain_is_in_one_answer() {
    let zone = zone().cname_depth(3).aaaa_share(1.0).addresses(2);
    let name = "10-1-2-3.dns64perf.test";
    let chain = [
        "10-1-2-3.dns64perf.test. 3600 IN CNAME 1.10-1-2-3.dns64perf.test.",
        "1.10-1-2-3.dns64perf.test. 3600 IN CNAME 2.10-1-2-3.dns64perf.test.",
        "2.10-1-2-3.dns64perf.test. 3600 IN CNAME 3.10-1-2-3.dns64perf.test.",
    ];
    let addresses =
        [3, 4].map(|last| format!("3.10-1-2-3.dns64perf.test. 3600 IN AAAA 2001:db8::a01:20{last}"));
    let a = [3, 4].map(|last| format!("3.10-1-2-3.dns64perf.test. 3600 IN A 10.1.2.{last}"));
    for (position, asked) in ["", "1.", "2.", "3."].into_iter().enumerate() {
        let asked = format!("{asked}{name}");
        for (qtype, kind, end) in [(Type::AAAA, Kind::Address6, &addresses), (Type::A, Kind::Address4, &a)] {
            let expected: Vec<_> =
                chain[position..].iter().map(|text| text.to_string()).chain(end.iter().cloned()).collect();
            let reply = ask(&zone, &query(&asked, qtype));
            assert_eq!((reply.kind, &reply.records[0]), (kind, &expected));
        }
        expect(
            &ask(&zone, &query(&asked, Type::TXT)),
            Kind::NoData,
            Rcode::NOERROR,
            &chain[position..],
            &[SOA],
        );
        // A query for a CNAME record is not followed; the last name has no CNAME record.
        for qtype in [Type::CNAME, Type::ANY] {
            let reply = ask(&zone, &query(&asked, qtype));
            match chain.get(position) {
                Some(record) => expect(&reply, Kind::Alias, Rcode::NOERROR, &[record], &[]),
                None if qtype == Type::CNAME => expect(&reply, Kind::NoData, Rcode::NOERROR, &[], &[SOA]),
                None => assert_eq!(reply.records[0], a),
            }
        }
    }
    for asked in ["4.10-1-2-3", "0.10-1-2-3", "1.1.10-1-2-3", "1.x", "1"] {
        let reply = ask(&zone, &query(&format!("{asked}.dns64perf.test"), Type::A));
        expect(&reply, Kind::NameError, Rcode::NXDOMAIN, &[], &[SOA]);
    }
}

#[test]
fn a_chain_with_its_negative_end_is_truncated_as_one() {
    let zone = zone().cname_depth(64);
    let query = query("10-1-2-3.dns64perf.test", Type::AAAA);
    expect(&ask(&zone, &query), Kind::Truncated, Rcode::NOERROR, &[], &[]);
    let whole = ask_over(&zone, &query, limits::STREAM);
    assert_eq!((whole.kind, whole.records[0].len(), whole.records[1].len()), (Kind::NoData, 64, 1));
}

#[test]
fn a_buffer_that_is_too_small_truncates_or_gives_nothing_but_never_panics() {
    let question = query("10-1-2-3.dns64perf.test", Type::A).edns(4096).bytes();
    let zone = zone().addresses(20);
    let least = 12 + 29 + wire::OPT_LEN;
    for length in 0..600 {
        let answer = zone.respond(&question, limits::UDP_SIZE, &mut vec![0; length]);
        let expected = match length {
            _ if length >= least + 20 * 16 => Some(Kind::Address4),
            _ if length >= least => Some(Kind::Truncated),
            _ => None,
        };
        assert_eq!(answer.map(|answer| answer.kind), expected, "{length}");
        let sized = zone.respond(&question, length, &mut [0; 600]);
        assert_eq!(sized.map(|answer| answer.kind), expected, "{length}");
    }
}

#[test]
fn damaged_queries_are_answered_with_readable_messages_or_not_at_all() {
    let zone = zone().aaaa_share(0.5).addresses(3);
    let good = query("10-1-2-3.dns64perf.test", Type::AAAA).edns(1232).bytes();
    let mut out = [0; 512];
    for at in 0..good.len() {
        for value in 0..=255 {
            let mut bytes = good.clone();
            bytes[at] = value;
            let Some(answer) = zone.respond(&bytes, limits::UDP_SIZE, &mut out) else { continue };
            let reply = &out[..answer.length];
            assert!(answer.length == header::HEADER || Message::parse(reply).is_ok(), "{at} {value}");
            assert_eq!(header::id(reply), header::id(&bytes));
        }
    }
}
