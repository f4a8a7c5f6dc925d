//! Zones from master files: their answers, parsed by `domain`, and the errors in master files.

use domain::base::Message as Oracle;
use domain::rdata::AllRecordData;
use sixfold_authority::{PolledServer, Records, Server};
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::time::Duration;
use wire::{Flags, Rcode, Type, header};

const ZONE: &str = r#"
$ORIGIN example.test.
$TTL 300
@       IN SOA ns1 hostmaster ( 2026 7200 3600 1209600 60 )
        NS  ns1
        NS  ns.elsewhere.test.
        MX  10 mail
ns1     A   192.0.2.1
        AAAA 2001:db8::1
mail    600 IN A 192.0.2.25
two     A   192.0.2.2
two     60 A 192.0.2.3
two     A   192.0.2.2
Mixed   TXT "Some text" "more"
alias   CNAME two
alias2  CNAME Alias
dangling CNAME nothing
away    CNAME www.elsewhere.test.
loop1   CNAME loop2
loop2   CNAME loop1
a.b.c   A   192.0.2.4
*.wild  A   192.0.2.5
*.wild  TXT "wild"
x.wild  AAAA 2001:db8::5
toalias.wild2 A 192.0.2.6
*.wild2 CNAME two
child   NS  ns.child
        NS  ns1
        DS  1 8 2 E2D3C916F6DEEAC73294E8268FB5885044A833FC5459588F4A9184CFC41A5766
ns.child A  192.0.2.53
ns.child AAAA 2001:db8::53
tochild CNAME www.child
$ORIGIN deep.example.test.
$GENERATE 1-3 host-$ 120 IN A 192.0.2.${100}
$GENERATE 0-4/2 ${0,3} CNAME host-1
big     TXT ( "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
              "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
              "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
              "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
              "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789" )
"#;

const SOA: &str =
    "example.test. 60 IN SOA ns1.example.test. hostmaster.example.test. 2026 7200 3600 1209600 60";

fn question(name: &str, qtype: Type, size: Option<u16>) -> Vec<u8> {
    let query = kit::Query::new(name, qtype.0).id(0xbeef).flags(0);
    size.into_iter().fold(query, |query, size| query.edns(size, &[])).octets()
}

/// A server that the test polls, and its client.
struct Fixture {
    polled: PolledServer,
    client: UdpSocket,
}

/// RCODE, AA, TC, and the records of the three sections.
#[derive(Debug, PartialEq)]
struct Reply {
    rcode: Rcode,
    flags: Flags,
    sections: [Vec<String>; 3],
    octets: usize,
}

impl Fixture {
    fn new(zone: &str) -> Fixture {
        let records = Records::parse(zone.as_bytes()).unwrap();
        let settings = sixfold_authority::Settings::new(records);
        let polled = PolledServer::new(&["127.0.0.1:0".parse().unwrap()], &settings).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(polled.addresses()[0]).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Fixture { polled, client }
    }

    fn ask_with(&mut self, name: &str, qtype: Type, size: Option<u16>) -> Reply {
        self.client.send(&question(name, qtype, size)).unwrap();
        while self.polled.poll() == 0 {}
        let mut buffer = [0; 4096];
        let length = self.client.recv(&mut buffer).unwrap();
        read(&buffer[..length])
    }

    fn ask(&mut self, name: &str, qtype: Type) -> Reply {
        let reply = self.ask_with(name, qtype, Some(1232));
        assert!(!reply.flags.contains(Flags::TC), "{reply:?}");
        reply
    }
}

fn read(bytes: &[u8]) -> Reply {
    wire::Message::parse(bytes).expect("wire refuses the answer");
    let oracle = Oracle::from_octets(bytes).unwrap();
    let (_, answer, authority, additional) = oracle.sections().unwrap();
    let sections = [answer, authority, additional].map(|section| {
        let mut all = Vec::new();
        for record in section {
            let record = record.unwrap();
            if record.rtype() == domain::base::iana::Rtype::OPT {
                continue;
            }
            let record = record.into_record::<AllRecordData<_, _>>().unwrap().unwrap();
            let mut text = String::new();
            write!(text, "{}. {} {} ", record.owner(), record.ttl().as_secs(), record.class()).unwrap();
            write!(text, "{} {}", record.rtype(), record.data()).unwrap();
            all.push(text);
        }
        all
    });
    let flags = header::flags(bytes);
    Reply { rcode: flags.rcode(), flags, sections, octets: bytes.len() }
}

#[track_caller]
fn expect(reply: &Reply, rcode: Rcode, aa: bool, sections: [&[&str]; 3]) {
    assert_eq!((reply.rcode, reply.flags.contains(Flags::AA)), (rcode, aa), "{reply:?}");
    let trim = |text: &String| text.replace("..", ".").replace(". ", " ").trim_end_matches('.').to_owned();
    for (records, expected) in reply.sections.iter().zip(sections) {
        let expected: Vec<_> = expected.iter().map(|text| trim(&text.to_string())).collect();
        assert_eq!(records.iter().map(trim).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn records_are_answered_by_name_and_type_whatever_the_case() {
    let mut fixture = Fixture::new(ZONE);
    let two = ["two.example.test. 60 IN A 192.0.2.2", "two.example.test. 60 IN A 192.0.2.3"];
    expect(&fixture.ask("two.example.test", Type::A), Rcode::NOERROR, true, [&two, &[], &[]]);
    expect(
        &fixture.ask("mail.example.test", Type::A),
        Rcode::NOERROR,
        true,
        [&["mail.example.test. 600 IN A 192.0.2.25"], &[], &[]],
    );
    expect(
        &fixture.ask("MIXED.Example.TEST", Type::TXT),
        Rcode::NOERROR,
        true,
        [&["MIXED.Example.TEST. 300 IN TXT \"Some text\" \"more\""], &[], &[]],
    );
    let mx = fixture.ask("example.test", Type::MX);
    expect(&mx, Rcode::NOERROR, true, [&["example.test. 300 IN MX 10 mail.example.test."], &[], &[]]);
    let any = fixture.ask("ns1.example.test", Type::ANY);
    expect(&any, Rcode::NOERROR, true, [&["ns1.example.test. 300 IN A 192.0.2.1"], &[], &[]]);
}

#[test]
fn the_apex_has_its_soa_and_name_servers() {
    let mut fixture = Fixture::new(ZONE);
    let soa = SOA.replace(" 60 IN", " 300 IN");
    expect(&fixture.ask("example.test", Type::SOA), Rcode::NOERROR, true, [&[&soa], &[], &[]]);
    let ns = ["example.test. 300 IN NS ns1.example.test.", "example.test. 300 IN NS ns.elsewhere.test."];
    expect(&fixture.ask("example.test", Type::NS), Rcode::NOERROR, true, [&ns, &[], &[]]);
    expect(&fixture.ask("example.test", Type::A), Rcode::NOERROR, true, [&[], &[SOA], &[]]);
}

#[test]
fn a_missing_name_or_type_is_denied_with_the_soa() {
    let mut fixture = Fixture::new(ZONE);
    for (name, qtype, rcode) in [
        ("two.example.test", Type::AAAA, Rcode::NOERROR),
        ("nothing.example.test", Type::A, Rcode::NXDOMAIN),
        ("x.two.example.test", Type::A, Rcode::NXDOMAIN),
        // Empty non-terminals exist, without records.
        ("b.c.example.test", Type::A, Rcode::NOERROR),
        ("c.example.test", Type::ANY, Rcode::NOERROR),
        ("x.c.example.test", Type::A, Rcode::NXDOMAIN),
        ("deep.example.test", Type::A, Rcode::NOERROR),
    ] {
        expect(&fixture.ask(name, qtype), rcode, true, [&[], &[SOA], &[]]);
    }
    for name in ["test", "", "elsewhere.test", "anexample.test"] {
        expect(&fixture.ask(name, Type::A), Rcode::REFUSED, false, [&[], &[], &[]]);
    }
}

#[test]
fn aliases_are_followed_within_the_zone() {
    let mut fixture = Fixture::new(ZONE);
    let chain = [
        "alias2.example.test. 300 IN CNAME Alias.example.test.",
        "Alias.example.test. 300 IN CNAME two.example.test.",
        "two.example.test. 60 IN A 192.0.2.2",
        "two.example.test. 60 IN A 192.0.2.3",
    ];
    expect(&fixture.ask("alias2.example.test", Type::A), Rcode::NOERROR, true, [&chain, &[], &[]]);
    expect(&fixture.ask("alias2.example.test", Type::AAAA), Rcode::NOERROR, true, [&chain[..2], &[SOA], &[]]);
    for qtype in [Type::CNAME, Type::ANY] {
        expect(&fixture.ask("alias2.example.test", qtype), Rcode::NOERROR, true, [&chain[..1], &[], &[]]);
    }
    let dangling = ["dangling.example.test. 300 IN CNAME nothing.example.test."];
    expect(&fixture.ask("dangling.example.test", Type::A), Rcode::NXDOMAIN, true, [&dangling, &[SOA], &[]]);
    let away = ["away.example.test. 300 IN CNAME www.elsewhere.test."];
    expect(&fixture.ask("away.example.test", Type::A), Rcode::NOERROR, true, [&away, &[], &[]]);
    let reply = fixture.ask("loop1.example.test", Type::A);
    assert_eq!((reply.rcode, reply.sections[0].len()), (Rcode::NOERROR, 16));
}

#[test]
fn wildcards_stand_for_names_that_do_not_exist() {
    let mut fixture = Fixture::new(ZONE);
    for name in ["y.wild.example.test", "y.z.wild.example.test"] {
        let record = format!("{name}. 300 IN A 192.0.2.5");
        expect(&fixture.ask(name, Type::A), Rcode::NOERROR, true, [&[&record], &[], &[]]);
        expect(&fixture.ask(name, Type::AAAA), Rcode::NOERROR, true, [&[], &[SOA], &[]]);
    }
    // RFC 4592 section 2.2.1: a wildcard does not apply to a name that exists, nor below it.
    expect(&fixture.ask("x.wild.example.test", Type::A), Rcode::NOERROR, true, [&[], &[SOA], &[]]);
    expect(&fixture.ask("y.x.wild.example.test", Type::A), Rcode::NXDOMAIN, true, [&[], &[SOA], &[]]);
    let chain = [
        "q.wild2.example.test. 300 IN CNAME two.example.test.",
        "two.example.test. 60 IN A 192.0.2.2",
        "two.example.test. 60 IN A 192.0.2.3",
    ];
    expect(&fixture.ask("q.wild2.example.test", Type::A), Rcode::NOERROR, true, [&chain, &[], &[]]);
    let star = ["*.wild.example.test. 300 IN A 192.0.2.5"];
    expect(&fixture.ask("*.wild.example.test", Type::A), Rcode::NOERROR, true, [&star, &[], &[]]);
}

#[test]
fn a_zone_below_is_referred_to_with_its_glue() {
    let mut fixture = Fixture::new(ZONE);
    let servers = [
        "child.example.test. 300 IN NS ns.child.example.test.",
        "child.example.test. 300 IN NS ns1.example.test.",
    ];
    let glue = [
        "ns.child.example.test. 300 IN A 192.0.2.53",
        "ns.child.example.test. 300 IN AAAA 2001:db8::53",
        "ns1.example.test. 300 IN A 192.0.2.1",
        "ns1.example.test. 300 IN AAAA 2001:db8::1",
    ];
    for (name, qtype) in [
        ("child.example.test", Type::A),
        ("child.example.test", Type::NS),
        ("www.child.example.test", Type::AAAA),
        ("a.b.ns.child.example.test", Type::A),
        ("ns.child.example.test", Type::A),
    ] {
        expect(&fixture.ask(name, qtype), Rcode::NOERROR, false, [&[], &servers, &glue]);
    }
    // The DS record belongs to the parent zone.
    let ds = fixture.ask("child.example.test", Type::DS);
    assert_eq!((ds.flags.contains(Flags::AA), ds.sections[0].len()), (true, 1), "{ds:?}");
    let alias = ["tochild.example.test. 300 IN CNAME www.child.example.test."];
    expect(&fixture.ask("tochild.example.test", Type::A), Rcode::NOERROR, true, [&alias, &servers, &glue]);
    // Glue that does not fit makes the referral truncated.
    let many = "t. 5 IN SOA a.t. b.t. 1 2 3 4 5\n$GENERATE 1-15 child.t. NS ns$.child.t.\n\
                $GENERATE 1-15 ns$.child.t. A 192.0.2.$\n";
    let mut fixture = Fixture::new(many);
    assert!(fixture.ask_with("www.child.t", Type::A, None).flags.contains(Flags::TC));
    let whole = fixture.ask("www.child.t", Type::A);
    assert_eq!((whole.sections[1].len(), whole.sections[2].len()), (15, 15));
}

#[test]
fn an_answer_beyond_the_clients_size_is_truncated_over_udp_and_whole_over_tcp() {
    let mut fixture = Fixture::new(ZONE);
    let reply = fixture.ask_with("big.deep.example.test", Type::TXT, None);
    assert!(reply.flags.contains(Flags::TC) && reply.sections[0].is_empty(), "{reply:?}");
    assert_eq!(fixture.ask("big.deep.example.test", Type::TXT).sections[0].len(), 1);

    let records = Records::parse(ZONE.as_bytes()).unwrap();
    let server = Server::start(&["[::1]:0".parse().unwrap()], records, 1).unwrap();
    let mut stream = std::net::TcpStream::connect(server.addresses()[0]).unwrap();
    let question = question("big.deep.example.test", Type::TXT, None);
    stream.write_all(&kit::message::framed(&question)).unwrap();
    assert!(read(&kit::message::read_frame(&mut stream).unwrap()).octets > 512);
}

#[test]
fn generated_names_are_as_if_they_had_been_written() {
    let mut fixture = Fixture::new(ZONE);
    for number in 1..=3 {
        let name = format!("host-{number}.deep.example.test");
        let record = format!("{name}. 120 IN A 192.0.2.{}", 100 + number);
        expect(&fixture.ask(&name, Type::A), Rcode::NOERROR, true, [&[&record], &[], &[]]);
    }
    for name in ["000", "002", "004"] {
        assert_eq!(fixture.ask(&format!("{name}.deep.example.test"), Type::A).sections[0].len(), 2);
    }
    assert_eq!(fixture.ask("001.deep.example.test", Type::A).rcode, Rcode::NXDOMAIN);
    assert_eq!(fixture.ask("host-4.deep.example.test", Type::A).rcode, Rcode::NXDOMAIN);
}

#[test]
fn a_zone_may_be_written_in_other_ways() {
    let head = "t. 5 IN SOA a.t. b.t. 1 2 3 4 5\n";
    let records = |text: &str| Records::parse(format!("{head}{text}").as_bytes()).unwrap();
    // No line end, comments, white space, Windows line ends.
    assert_eq!(records("x.t. A 192.0.2.1").records(), 2);
    assert_eq!(records("; nothing\n\n   \n\t; x\n").records(), 1);
    assert_eq!(
        records("x.t.\t60\tIN\tA\t192.0.2.1 ; address\r\n\ty.t. A 1.2.3.4\r\n".split("\ty").next().unwrap())
            .records(),
        2
    );
    let generic = records("x.t. TYPE65280 \\# 3 010203\n");
    assert_eq!((generic.names(), generic.name()), (2, &b"\x01t\x00"[..]));
}

#[test]
fn errors_name_the_file_the_line_and_the_remedy() {
    let head = "$ORIGIN t.\n@ 5 IN SOA a b ( 1\n 2 3 4 5 ) ; end\n";
    for (text, line, word) in [
        ("x A 192.0.2\n", 4, "TYPE DATA"),
        ("x A 192.0.2.1\n\ny A 1.2.3.4\n\n\nz AAAA oops\n", 9, "TYPE DATA"),
        ("x A 192.0.2.1\nx A 192.0.2.1 trailing\n", 5, "TYPE DATA"),
        ("x A 192.0.2.1\n$TTL 1y\n", 5, "seconds"),
        ("x A\n", 4, "TYPE DATA"),
        ("x 2147483647 A 192.0.2.1\ny 2147483648 A 192.0.2.1\n", 5, "at most 2147483647"),
        ("$TTL 4294967295\nx A 192.0.2.1\n", 5, "at most 2147483647"),
        ("x 4294967296 A 192.0.2.1\n", 4, "TYPE DATA"),
        ("x NOSUCHTYPE a\n", 4, "TYPE DATA"),
        ("; comment\nx.other. A 192.0.2.1\n", 5, "x.other is not in the zone"),
        ("x A 192.0.2.1\nx CNAME y\n", 5, "leave one of them out"),
        ("x CNAME y\nx CNAME z\n", 5, "leave one of them out"),
        ("x CNAME y\nx TXT z\n", 5, "leave one of them out"),
        ("@ SOA a b 1 2 3 4 5\n", 4, "one SOA"),
        ("x DNAME y\n", 4, "DNAME is not supported"),
        ("$INCLUDE other.zone\n", 4, "$INCLUDE is not supported"),
        ("$GENERATE 1-2 a$ A\n", 4, "START-STOP"),
        ("$GENERATE 1-300 a$ A 1.2.3.$\n", 4, "this $GENERATE"),
        ("x A 1.2.3.4\n$GENERATE 1-2 a$.other. A 1.2.3.4\n", 5, "not in the zone"),
        ("x TXT \"abc\ny A 1.2.3.4\n", 4, "close its parenthesis or quote"),
    ] {
        let error = Records::parse(format!("{head}{text}").as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("text:{line}: ")), "{text:?}: {error}");
        assert!(error.contains(word), "{text:?}: {error}");
    }
    let first = Records::parse(&b"x.t. 5 IN A 1.2.3.4\n"[..]).unwrap_err().to_string();
    assert!(first.starts_with("text:1: ") && first.contains("SOA"), "{first}");
    let empty = Records::parse(&b"; nothing\n"[..]).unwrap_err().to_string();
    assert!(empty.contains("begin with the SOA"), "{empty}");
    let missing = Records::load(&PathBuf::from("/nowhere/zone")).unwrap_err().to_string();
    assert!(missing.starts_with("/nowhere/zone: cannot be read"), "{missing}");
}

/// The lines of the errors in a zone file.
fn faults(text: &str) -> Vec<String> {
    let error = Records::parse(text.as_bytes()).unwrap_err().to_string();
    error.lines().map(str::to_owned).collect()
}

#[test]
fn all_faults_of_a_zone_are_told_and_what_follows_from_one_is_not() {
    let said = faults(
        "$ORIGIN t.\n@ 5 IN SOA a b 1 2 3 4 5\nx A 192.0.2\n AAAA ::1\ny A 1.2.3.4\n A 1.2.3\n TXT b\nz.other. A 1.2.3.4\n\
         $TTL 1y\n$ORIGIN u.t.\nw AAAA 1\n$GENERATE 1-300 a$ A 1.2.3.$\n$INCLUDE other\n$TTL 9\nv A 1.2.3.4\nv CNAME y\n\
         u DNAME y\nt ( TXT x\n",
    );
    let lines: Vec<_> = said.iter().map(|line| line.split(": ").next().unwrap()).collect();
    let expected = [3, 6, 8, 9, 11, 12, 13, 16, 17, 18].map(|line| format!("text:{line}"));
    assert_eq!(lines, expected, "{said:#?}");
    assert!(said[2].contains("z.other is not in the zone") && said[6].contains("$INCLUDE"), "{said:#?}");
}

#[test]
fn after_a_fault_origin_and_ttls_are_as_before() {
    for head in ["$TTL 60\n", ""] {
        let said = faults(&format!(
            "{head}t. 5 SOA a. b. 1 2 3 4 5\n$ORIGIN u.t.\nx A 1\ny A 1.2.3.4\ny CNAME x.t.\n"
        ));
        assert_eq!(said.len(), 2, "{said:#?}");
        assert!(said[1].contains("y.u.t has a CNAME record and another one"), "{said:#?}");
    }
}

#[test]
fn a_zone_without_origin_is_told_to_have_one() {
    let said = faults("@ 3600 IN SOA ns root 1 2 3 4 5\nx A 1.2.3.4\n");
    assert_eq!(said.len(), 1, "{said:#?}");
    assert!(
        said[0].starts_with("text:1: ")
            && said[0].contains("add \"$ORIGIN zone.\", with the name of the zone, as first line")
    );
    assert!(said[0].contains("absolute names"));
    // A relative name in the data has the same remedy.
    assert!(faults("t. 5 SOA ns.t. root 1 2 3 4 5\n")[0].contains("$ORIGIN zone."));
}

/// Without `$ORIGIN` the zone is the origin; a byte order mark is skipped, a carriage return alone ends a line, and times have units.
#[test]
fn a_zone_as_people_write_it_is_read() {
    let text = "\u{feff}example.test. 1h IN SOA ns.test. root.test. 1 1h 15m 30d 2h\rwww 1W2D A 192.0.2.1\r";
    let spelled = "example.test. 3600 IN SOA ns.test. root.test. 1 3600 900 2592000 7200\n\
                   www.example.test. 777600 A 192.0.2.1\n";
    for text in [text, spelled] {
        Records::parse(text.as_bytes()).unwrap();
    }
}

/// RFC 3597 section 5. The data of the URI record are those of RFC 7553 section 4.5: priority, weight, target.
#[test]
fn data_without_a_text_form_are_read_in_the_generic_form_and_the_fault_shows_it() {
    let head = "t. 5 SOA a. b. 1 2 3 4 5\n$ORIGIN t.\n";
    let generic = [
        "x 60 IN TYPE65280 \\# 4 0a000001",
        "x CLASS1 60 TYPE256 \\# ( 8 0001 0002 ; one, two\n  66747070 )",
        "x 60 A \\# 4 c0000201",
        "x 60 TYPE16 \\# 2 0178",
        "x 60 TYPE65281 \\# 0",
    ];
    let mut fixture = Fixture::new(&format!("{head}{}\n", generic.join("\n")));
    for (rtype, answer) in [
        (65_280, "TYPE65280 \\# 4 0a000001"),
        (256, "URI \\# 8 0001000266747070"),
        (1, "A 192.0.2.1"),
        (16, "TXT \"x\""),
        (65_281, "TYPE65281 \\# 0"),
    ] {
        let reply = fixture.ask("x.t", Type(rtype));
        // `domain` writes the octets apart.
        let bare = |text: &str| text.to_ascii_lowercase().replace(' ', "");
        let shown: Vec<_> = reply.sections[0].iter().map(|record| bare(record)).collect();
        assert_eq!(shown, [bare(&format!("x.t. 60 IN {answer}"))], "{rtype}");
    }
    // Numbers of the registry of types (RFC 6895).
    for (line, form) in [
        ("x URI 1 1 \"y\"", "URI have no text form here: write `TYPE256 \\# LENGTH HEXADECIMAL`"),
        ("x 60 IN LOC 1 2", "LOC have no text form here: write `TYPE29 \\# "),
        ("x A 192.0.2.1\n  IN 60 spf \"v=spf1\"", "SPF have no text form here: write `TYPE99 \\# "),
        ("x TYPE65280 10.0.0.1", "TYPE65280 have no text form here: write `TYPE65280 \\# "),
        ("$GENERATE 1-2 x$ KX 1 y", "KX have no text form here: write `TYPE36 \\# "),
    ] {
        let said = faults(&format!("{head}{line}\n"));
        assert!(said.len() == 1 && said[0].contains(form), "{line}: {said:#?}");
    }
}

#[test]
fn the_number_of_faults_is_bounded() {
    let said = faults(&format!("t. 5 SOA a. b. 1 2 3 4 5\n{}", "x.t. A 1\n".repeat(100_000)));
    assert_eq!(said.len(), 21);
    assert_eq!(said[20], "text: these are the first 20 faults; there may be more");
    assert!(said[19].starts_with("text:21: "));
}

#[test]
fn changed_octets_of_a_zone_give_faults_with_lines_and_no_harm() {
    let good = "$ORIGIN t.\n$TTL 60\n@ IN SOA ns root 1 2 3 4 ( 5 ) ; end\n NS ns\nns A 192.0.2.1\n AAAA ::1\n* TXT \"a;b\" c\\032d\n\
                $GENERATE 1-9 h$ A 192.0.2.$\nsub NS ns.sub\nns.sub 9 IN A 192.0.2.2\nx CNAME ns\n";
    let (mut random, mut refused) = (kit::Random::new(1), 0);
    let mut draw = |below: usize| random.place(below);
    for _ in 0..2_000 {
        let mut text = good.as_bytes().to_vec();
        for _ in 0..=draw(6) {
            let at = draw(text.len());
            text[at] = b"\n\"();$ \\.@1ax\xff\t"[draw(15)];
        }
        if let Err(error) = Records::parse(&text[..]) {
            refused += 1;
            let said = error.to_string();
            assert!(said.lines().count() <= 21 && said.starts_with("text"), "{said}");
        }
    }
    assert!(refused > 1_000, "{refused}");
}

#[test]
fn a_class_that_is_not_in_is_an_error() {
    let error = Records::parse(&b"t. 5 CH SOA a.t. b.t. 1 2 3 4 5\n"[..]).unwrap_err().to_string();
    assert!(error.starts_with("text:1: "), "{error}");
}

#[test]
fn many_names_in_both_forms_are_the_same_zone() {
    let head = "$ORIGIN dns64perf.test.\n@ 3600 IN SOA ns root 1 2 3 4 5\n";
    let mut one_by_one = head.to_owned();
    let mut generated = head.to_owned();
    for c in 0..256 {
        for d in 0..256 {
            writeln!(one_by_one, "010-000-{c:03}-{d:03} 60 IN A 10.0.{c}.{d}").unwrap();
        }
        writeln!(generated, "$GENERATE 0-255 010-000-{c:03}-${{0,3}} 60 IN A 10.0.{c}.$").unwrap();
    }
    for text in [one_by_one, generated] {
        let mut fixture = Fixture::new(&text);
        for number in (0..65_536u32).step_by(97) {
            let name = format!("010-000-{:03}-{:03}.dns64perf.test", number >> 8, number & 255);
            let record = format!("{name}. 60 IN A 10.0.{}.{}", number >> 8, number & 255);
            expect(&fixture.ask(&name, Type::A), Rcode::NOERROR, true, [&[&record], &[], &[]]);
        }
        assert_eq!(fixture.ask("010-001-000-000.dns64perf.test", Type::A).rcode, Rcode::NXDOMAIN);
    }
}
