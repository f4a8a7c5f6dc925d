//! Files of anchors, as people and programs write them.

use crate::support::{Sha, ZONE, dnskey, ds, key, with_flags};
use data_encoding::BASE64;
use dnssec::{Algorithms, AnchorData, Dnskey, Ds, LowerName};
use sixfold_anchors::{AnchorFile, Data, TrustAnchor, anchor, limits};

/// The keys of the root as IANA's root-anchors.xml has them (element PublicKey), in the file of Debian's package dns-root-data.
const ROOT_KEY: &str = include_str!("root.key");

/// The digests of the same file of IANA (element Digest).
const ROOT_DS: &str = ". IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D
. IN DS 38696 8 2 683D2D0ACB8C9B712A1948B27F741219298D0A450D612C483AF444A4C0FB2B16
";

fn parse(text: &str) -> AnchorFile {
    AnchorFile::parse(text.as_bytes(), Algorithms::CURRENT).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn error(text: &str) -> String {
    AnchorFile::parse(text.as_bytes(), Algorithms::CURRENT).expect_err(text).to_string()
}

/// Data of a DNSKEY record as text.
fn text(rdata: &[u8]) -> String {
    Data::Dnskey(rdata.into()).to_string()
}

#[test]
fn the_built_in_anchors_are_the_digests_of_iana_and_those_of_its_keys() {
    assert_eq!(parse(ROOT_DS).anchors, anchor::root());
    let keys = parse(ROOT_KEY).anchors;
    assert_eq!(keys.len(), 2);
    for key in &keys {
        let Data::Dnskey(rdata) = &key.data else { panic!("{key:?}") };
        let key = Dnskey::parse(rdata).unwrap();
        let matches = |anchor: &dnssec::Anchor<'_>| match anchor.data {
            AnchorData::Ds(rdata) => {
                dnssec::keys::ds_matches(&Ds::parse(rdata).unwrap(), &LowerName::ROOT, &key, &Sha)
            }
            AnchorData::Dnskey(_) => false,
        };
        assert!([20326, 38696].contains(&key.key_tag()));
        assert_eq!(dnssec::anchors::ROOT.iter().filter(|anchor| matches(anchor)).count(), 1);
    }
}

#[test]
fn records_are_read_as_programs_write_them() {
    let one = text(&key(1));
    let base64 = BASE64.encode(&key(1)[4..]);
    let (begin, end) = base64.split_at(10);
    let expected = [TrustAnchor { zone: ZONE.into(), data: dnskey(&key(1)) }];
    for file in [
        format!("example. {one}"),
        format!("example. IN {one}\n"),
        format!("EXAMPLE 3600 IN {one} ; comment\r\n"),
        format!("example. IN 1h {one}\n"),
        format!("example.\tclass1 172800\ttype48 257 3 15 {base64}\n"),
        format!(
            "\u{feff}; of dnssec-keygen\n; Created: 20260101\n\nexample. IN DNSKEY 257 3 15 {begin} {end}\n"
        ),
        format!("example. DNSKEY ( 257 3 ; flags\n 15\n {begin}\n\t{end} ) ; all\n; end"),
        format!("$ORIGIN example.\n$TTL 1d\n@ {one}\n"),
        format!("$origin example.\n@ {one}\n  IN {one}\n"),
        format!("example. DNSKEY 257 3 ED25519 {base64}\n"),
        // As Unbound keeps a file that it follows.
        format!(
            "; autotrust trust anchor file\n;;id: example. 1\n\
             example.\t60\tIN\t{one} ;{{id = 1 (ksk)}} ;;state=2 [  VALID  ] ;;count=0\n"
        ),
        format!("example. {one} ;;state=3 [ MISSING ] ;;count=0\n"),
    ] {
        assert_eq!(parse(&file).anchors, expected, "{file}");
        assert!(parse(&file).skipped.is_empty());
    }
}

#[test]
fn ds_records_of_several_zones_are_read() {
    let Data::Ds(rdata) = ds(&key(1), 2) else { unreachable!() };
    let record = ds(&key(1), 2).to_string().to_lowercase();
    let (begin, end) = record.split_at(record.len() - 7);
    let file = parse(&format!("example. {record}\n$ORIGIN island.\na.b {begin} {end}\nc. {}", text(&key(2))));
    let zones: Vec<_> = file.anchors.iter().map(|anchor| (&*anchor.zone, &anchor.data)).collect();
    let own = Data::Ds(rdata);
    let expected =
        [(&b"\x01a\x01b\x06island\0"[..], &own), (b"\x01c\0", &dnskey(&key(2))), (b"\x07example\0", &own)];
    assert_eq!(zones, expected);
}

// A key in Unbound's hold-down is one that Unbound does not trust.
#[test]
fn records_that_cannot_be_used_are_skipped_with_a_reason() {
    let good = format!("example. {}\n", text(&key(9)));
    for (record, expected) in [
        (
            format!("{} ;;state=1 [ ADDPEND ] ;;count=3", text(&key(1))),
            "Unbound does not trust the key, its state is 1",
        ),
        (
            format!("{} ;{{id}} ;;state=4 [ REVOKED ]", text(&key(1))),
            "Unbound does not trust the key, its state is 4",
        ),
        (text(&with_flags(1, 385)), "the key is revoked"),
        ("DNSKEY 257 3 16 AAAA".to_owned(), "the algorithm is not supported"),
        ("DS 1 8 3 00".to_owned(), "the digest type 3 is not supported"),
        (format!("DS 1 RSASHA1 2 {}", "0".repeat(64)), "the algorithm 5 is not supported"),
    ] {
        let line = format!("example. {record}\n");
        let file = parse(&format!("\n{line}{good}"));
        assert_eq!(file.anchors.len(), 1, "{line}");
        assert_eq!(file.skipped.len(), 1, "{line}");
        assert_eq!(file.skipped[0].line, 2);
        assert!(file.skipped[0].why.starts_with("the anchor "), "{}", file.skipped[0].why);
        assert!(
            file.skipped[0].why.ends_with(&format!(" of example. is not used: {expected}")),
            "{:?}",
            file.skipped
        );
        // Nothing else can be used: an error.
        let message = error(&line);
        assert!(message.starts_with("line 1: the anchor "), "{message}");
        assert!(
            message.contains(expected) && message.contains("; write the DS or DNSKEY records"),
            "{message}"
        );
    }
}

#[test]
fn an_error_says_the_line_what_is_wrong_and_what_to_do() {
    let one = text(&key(1));
    let cut = &one[..one.len() - 3];
    for (file, expected) in [
        (
            "",
            "the file has no DS or DNSKEY record; write the DS or DNSKEY records of the zones that are to be trusted",
        ),
        ("; only comments\n\n", "the file has no DS or DNSKEY record; "),
        (
            "\n\nexample. A 192.0.2.1\n",
            "line 3: a record of type A is no trust anchor; leave DS and DNSKEY records only",
        ),
        ("example. 60 IN RRSIG DNSKEY\n", "line 1: a record of type RRSIG is no trust anchor; "),
        ("example. CH DS 1 8 2 00\n", "line 1: anchors are of class IN; write IN, or no class"),
        (" IN DS 1 8 2 00\n", "line 1: the record has no owner, and none stands before it; "),
        ("example.\n", "line 1: the line is no record; write one like "),
        ("example. DS 1 8 2\n", "line 1: the digest is missing; copy the whole record, as "),
        ("example. DS 1 8\n", "line 1: the DS record has fewer than four fields; "),
        (
            "example. DS 1 8 2 00\n",
            "line 1: the digest has 1 octets, and type 2 has 32; copy the whole record, as ",
        ),
        ("example. DS 1 8 2 0x00\n", "line 1: the digest is not hexadecimal, or an odd number of digits; "),
        ("example. DS 65536 8 2 00\n", "line 1: the key tag 65536 is no number from 0 to 65535; "),
        ("example. DS 1 RSA 2 00\n", "line 1: the algorithm RSA is no number from 0 to 255; "),
        ("example. DS 1 8 +2 00\n", "line 1: the digest type +2 is no number from 0 to 255; "),
        ("example. DNSKEY 257 3 15\n", "line 1: the public key is missing; "),
        ("example. DNSKEY 257 3\n", "line 1: the DNSKEY record has fewer than four fields; "),
        (
            "example. DNSKEY 257 3 15 AAAA\n",
            "line 1: no validator takes this DNSKEY: the public key does not have the form of its algorithm; ",
        ),
        (
            "example. DNSKEY 257 2 15 AAAA\n",
            "line 1: no validator takes this DNSKEY: the protocol is not 3; ",
        ),
        (
            "example. DNSKEY 1 3 15 AAAA\n",
            "line 1: no validator takes this DNSKEY: the key is not one of a zone; ",
        ),
        ("a..b DS 1 8 2 00\n", "line 1: a..b is no name of a zone; the name has an empty label; "),
        (
            "$INCLUDE keys\n",
            "line 1: the directive $INCLUDE is not known here; write the records themselves; ",
        ),
        ("$ORIGIN\n", "line 1: $ORIGIN takes one name; write a line like "),
        (
            "example. DS ( 1 8 2 00\n\n",
            "line 1: a parenthesis is not closed; close it at the end of the record",
        ),
        ("example. DS 1 ) 8 2 00\n", "line 1: a parenthesis is closed that was not opened; take it away"),
        (
            "<?xml version=\"1.0\"?>\n<TrustAnchor>",
            "line 1: this is XML, as IANA publishes the root's anchors; write a DS record of each KeyDigest: ",
        ),
        (
            "trust-anchors {\n . initial-key 257 3 8 \"AwEAA\";\n};",
            "line 1: this is a configuration of BIND; write a record for each key, as ",
        ),
        ("// of BIND\n", "line 1: this is a configuration of BIND; "),
        ("managed-keys{\n", "line 1: this is a configuration of BIND; "),
    ] {
        let message = error(file);
        assert!(message.starts_with(expected), "{file:?}: {message}");
    }
    let message = error(&format!("; a\nexample. ( {}\n {})", &cut[..20], &cut[20..]));
    assert_eq!(
        message,
        "line 2: the public key is not base64, or cut off; copy the whole record, as \". IN DNSKEY 257 3 8 AwEAA...\""
    );
}

#[test]
fn files_that_are_too_large_are_refused_and_long_lines_are_not() {
    let long = format!("example. {} ; {}\n", text(&key(1)), "x".repeat(100_000));
    assert_eq!(parse(&long).anchors.len(), 1);
    assert!(
        error(&" ".repeat(limits::FILE + 1))
            .starts_with("the file has 1048577 octets, and at most 1048576 are read; ")
    );
    let many: String = (0..=limits::ANCHORS).map(|n| format!("z{n}. {}\n", text(&key(1)))).collect();
    assert_eq!(error(&many), "257 anchors are more than 256; leave some out");
}

#[test]
fn what_is_written_is_read_again() {
    let anchors = [ds(&key(1), 2), dnskey(&key(2))].map(|data| TrustAnchor { zone: ZONE.into(), data });
    let file: String = anchors.iter().map(|anchor| format!("example. {}\n", anchor.data)).collect();
    assert_eq!(parse(&file).anchors, anchors);
}
