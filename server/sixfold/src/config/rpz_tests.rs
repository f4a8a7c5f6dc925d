//! Zones as people and programs write them, and the errors of invalid zones.

use super::*;
use engine::rpz::{Action, Trigger};
use engine::settings::Network;
use std::net::Ipv4Addr;

const SOA: &str = "@ SOA localhost. root.localhost. 1 3600 600 86400 60\n";

fn read(text: &str) -> Result<PolicyZone, Vec<String>> {
    read_with(text, BadRecords::Refuse).map(|read| read.zone)
}

fn read_with(text: &str, bad_records: BadRecords) -> Result<ReadZone, Vec<String>> {
    let shown =
        |faults: Vec<Fault>| faults.iter().map(|fault| format!("{} / {}", fault.what, fault.help)).collect();
    zone(Path::new("p.rpz"), text.as_bytes(), bad_records).map_err(shown)
}

#[test]
fn a_zone_is_read_with_its_origin_times_and_groups() {
    let zone = read(
        "; a comment with a \" and a (\n$TTL 300\n$ORIGIN policy.test.\n@ IN SOA localhost. root.localhost. (\n 1 ; serial\n 3600\n \
         600 86400 60 )\n\tIN NS localhost.\nBad.example CNAME .\n*.bad.example 60 IN CNAME *.\n\
         24.0.2.0.192.rpz-ip CNAME rpz-drop.\n$ORIGIN example.policy.test.\nnas A 192.0.2.1\n    A 192.0.2.2\n \
         TXT \"a ; ( b\"\nfull.policy.test. CNAME rpz-tcp-only.",
    )
    .unwrap();
    assert_eq!(&zone.soa.owner[..], b"\x06policy\x04test\0");
    let trigger = |number: usize| &zone.entries[number].trigger;
    let bad: Box<[u8]> = b"\x03bad\x07example\0"[..].into();
    assert_eq!((trigger(0), &zone.entries[0].action), (&Trigger::Name(bad.clone()), &Action::NxDomain));
    assert_eq!((trigger(1), &zone.entries[1].action), (&Trigger::Below(bad), &Action::NoData));
    assert_eq!((zone.entries[0].ttl, zone.entries[1].ttl), (300, 60));
    let network = Network::v4(Ipv4Addr::new(192, 0, 2, 0), 24);
    assert_eq!((trigger(2), &zone.entries[2].action), (&Trigger::Address(network), &Action::Drop));
    assert_eq!(trigger(3), &Trigger::Name(b"\x03nas\x07example\0"[..].into()));
    let Action::Data(records) = &zone.entries[3].action else { panic!("{:?}", zone.entries[3]) };
    let data: Vec<_> = records.iter().map(|record| &record.rdata[..]).collect();
    assert_eq!(data, [&[192, 0, 2, 1][..], &[192, 0, 2, 2], b"\x07a ; ( b"]);
    assert_eq!(trigger(4), &Trigger::Name(b"\x04full\0"[..].into()));
    assert_eq!(zone.entries.len(), 5);
}

#[test]
fn a_zone_that_is_handed_out_without_its_name_is_read() {
    let zone = read(&format!("$TTL 60\n{SOA} NS localhost.\nads.example CNAME .\n")).unwrap();
    assert_eq!(zone.entries[0].trigger, Trigger::Name(b"\x03ads\x07example\0"[..].into()));
}

#[test]
fn a_transfer_as_dig_shows_it_is_read() {
    let soa = "policy.test. 60 IN SOA localhost. root.localhost. 1 3600 600 86400 60\n";
    let zone = read(&format!("{soa}bad.example.policy.test. 60 IN CNAME .\n{soa}")).unwrap();
    assert_eq!(zone.entries.len(), 1);
}

#[test]
fn a_line_that_is_wrong_is_told_with_its_place_and_a_remedy() {
    for (line, place, what) in [
        (
            "ns.example.rpz-nsdname CNAME .",
            "p.rpz:3:1: `ns.example.rpz-nsdname`",
            "a forwarder sees no delegations",
        ),
        (
            "24.0.2.0.192.rpz-nsip CNAME .",
            "p.rpz:3:1: `24.0.2.0.192.rpz-nsip`",
            "a forwarder sees no delegations",
        ),
        ("x.rpz-asn CNAME .", "p.rpz:3:1: `x.rpz-asn`", "this trigger is not known"),
        ("33.0.2.0.192.rpz-ip CNAME .", "p.rpz:3:1: `33.0.2.0.192.rpz-ip`", "this is not a network"),
        ("24.1.2.0.192.rpz-ip CNAME .", "p.rpz:3:1: `24.1.2.0.192.rpz-ip`", "bits are set beyond"),
        ("a.example CNAME rpz-block.", "p.rpz:3:17: `rpz-block.`", "this action is not known"),
        ("a.example CNAME rpz-drop ; no dot", "p.rpz:3:17: `rpz-drop`", "end it with a dot"),
        ("a.example. CNAME .", "p.rpz:3:1: `a.example.`", "this name is not in the zone"),
        ("a.example NS ns.example.", "p.rpz:3:1: `a.example`", "cannot take the place of an answer"),
        ("a.example DNAME b.example.", "p.rpz:3:1: `a.example`", "cannot take the place of an answer"),
        ("ok.example CNAME *.", "p.rpz:4:1: `ok.example`", "the same trigger has another action"),
        ("a.example CNAME", "p.rpz:3:", "in `a.example CNAME`"),
        ("a.example A 192.0.2", "p.rpz:3:", "in `a.example A 192.0.2`"),
        ("a.example A \\# 3 010203", "p.rpz:3:1: `a.example`", "do not fit its type"),
        ("a..example CNAME .", "p.rpz:3:", "a label is empty"),
        ("a.example CH CNAME .", "p.rpz:3:", "different class"),
        ("$INCLUDE other.rpz", "p.rpz:3:1: `$INCLUDE`", "put the records themselves"),
        ("a.example CNAME ( .", "p.rpz:3:1: `a.example`", "a parenthesis that is not closed"),
        ("a.example TXT ( x", "p.rpz:3:1: `a.example`", "a parenthesis that is not closed"),
        ("\u{fc}.example CNAME .", "p.rpz:3:", "in "),
    ] {
        let text = format!("$ORIGIN policy.test.\n{SOA}{line}\nok.example CNAME .\n");
        let faults = read(&text).expect_err(line);
        assert!(faults.iter().any(|fault| fault.contains(place)), "{line}: {faults:?}");
        assert!(faults.iter().any(|fault| fault.contains(what)), "{line}: {faults:?}");
    }
}

/// The names of the rules of a zone, whose bad records are left out, and the lines of these.
fn rules_of(text: &str) -> (Vec<String>, Vec<usize>) {
    let read = read_with(text, BadRecords::Skip).unwrap();
    let rules = read.zone.entries.iter().map(|entry| match &entry.trigger {
        Trigger::Name(name) => format!("{} {}", Name::from_wire(name), entry.ttl),
        other => format!("{other:?}"),
    });
    let warnings = read.skipped.warnings(Path::new("p.rpz"));
    let line =
        |text: &String| text.strip_prefix("p.rpz:").unwrap().split(':').next().unwrap().parse().unwrap();
    (rules.collect(), warnings.iter().map(line).collect())
}

#[test]
fn a_bad_record_takes_neither_origin_nor_ttl_nor_owner_from_the_others() {
    let begin = format!("$TTL 1h\n$ORIGIN rpz.test.\n{SOA}");
    for (lines, rules, bad) in [
        // After data that are wrong, the owner holds; after an owner that is wrong, no owner.
        ("a A 192.0.2\n A 192.0.2.1\nb A 192.0.2.2\n", &["a. 3600", "b. 3600"][..], &[4][..]),
        ("a A 192.0.2.1\nb..c A 192.0.2.2\n A 192.0.2.3\nd CNAME .\n", &["a. 3600", "d. 3600"], &[5, 6]),
        ("a A 192.0.2.1\n\u{fc} A 192.0.2.2\n A 192.0.2.3\nd CNAME .\n", &["a. 3600", "d. 3600"], &[5, 6]),
        // An origin that cannot be read leaves relative names without one.
        ("$ORIGIN a..b\na CNAME .\n$ORIGIN x.rpz.test.\nb CNAME .\n", &["b.x. 3600"], &[4, 5]),
        (
            "$TTL x\na CNAME .\n$INCLUDE b\n$GENERATE 1-2 a$ CNAME .\nc CNAME .\n",
            &["a. 3600", "c. 3600"],
            &[4, 6, 7],
        ),
        // A parenthesis that is never closed costs its line.
        ("a TXT ( x\nb CNAME .\nc 1d CNAME .\n", &["b. 3600", "c. 86400"], &[4]),
        ("a CNAME . )\nb CNAME .\n", &["b. 3600"], &[4]),
        ("b CH CNAME .\nc URI 1 1 \"x\"\nd CNAME .\n", &["d. 3600"], &[4, 5]),
    ] {
        assert_eq!(
            rules_of(&format!("{begin}{lines}")),
            (rules.iter().map(ToString::to_string).collect(), bad.to_vec()),
            "{lines}"
        );
    }
}

/// Unbound's rpz_reload.tdir: RFC 1035 section 5.1 leaves the first origin to whoever loads the file.
#[test]
fn without_an_origin_names_are_below_the_zone_that_the_soa_record_names() {
    let soa = |owner: &str| SOA.replace('@', owner);
    let names = |text: String| rules_of(&text).0;
    assert_eq!(
        names(soa("rpz.test. 1d") + "a.example CNAME .\nb.example.rpz.test. CNAME .\n"),
        ["a.example. 86400", "b.example. 86400"]
    );
    assert_eq!(names(soa("rpz.test") + "a.example.rpz.test CNAME .\n"), ["a.example. 3600"]);
    assert_eq!(
        names("$ORIGIN .\n".to_owned() + &soa("rpz.test.") + "a.example.rpz.test CNAME .\n"),
        ["a.example. 3600"]
    );
}

#[test]
fn thousands_of_bad_records_are_told_in_a_few_lines() {
    let many = format!("{SOA}{}", "x.rpz-nsip CNAME .\n".repeat(1_000));
    let open = format!("{SOA}{}", "a TXT (\n".repeat(1_000));
    let controls: String = (0..1_000).map(|number| format!("$X{number} x\n")).collect();
    for (text, count, most) in [
        (many, 1_000, 1),
        (open, limits::RPZ_OPEN, 1),
        (SOA.to_owned() + &controls, 1_000, limits::RPZ_REASONS + 1),
    ] {
        let skipped = read_with(&text, BadRecords::Skip).unwrap().skipped;
        let warnings = skipped.warnings(Path::new("p.rpz"));
        assert_eq!((skipped.count(), warnings.len()), (count, most), "{warnings:?}");
        assert!(warnings.iter().all(|warning| warning.len() < 500), "{warnings:?}");
    }
}

#[test]
fn lines_are_counted_over_groups_quotes_and_comments() {
    let text =
        format!("$TTL 60\n; (\n{SOA}\na TXT (\n \"x (\"\n y )\n\nb.rpz-nsip CNAME .\nc.rpz-nsip CNAME .\n");
    let faults = read(&text).unwrap_err();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].starts_with("p.rpz:9:1: `b.rpz-nsip`"), "{faults:?}");
    assert!(faults[1].starts_with("p.rpz:10:1: `c.rpz-nsip`"), "{faults:?}");
}

#[test]
fn a_file_of_another_kind_is_told_in_a_few_lines() {
    for text in ["", "; nothing\n", "127.0.0.1 localhost\n", "a.example CNAME .\n"] {
        assert_eq!(read(text).unwrap_err().len(), 1, "{text}");
    }
    let many = format!("{SOA}{}", "x.rpz-nsip CNAME .\n".repeat(1000));
    assert_eq!(read(&many).unwrap_err().len(), limits::RPZ_FAULTS);
}

#[test]
fn a_hundred_thousand_names_and_networks_are_read() {
    let mut text = format!("$TTL 60\n{SOA}");
    for number in 0..100_000u32 {
        let [_, a, b, c] = number.to_be_bytes();
        text += &format!("n{number}.example CNAME .\n32.{c}.{b}.{a}.10.rpz-ip CNAME *.\n");
    }
    let policy = ResponsePolicy::build(vec![read(&text).unwrap()]).unwrap();
    assert!(!policy.is_empty());
}
