//! Tests of each kind of trigger and action, and of records that are neither.

use super::*;

fn record(owner: &str, rtype: Type, rdata: &[u8]) -> LocalRecord {
    LocalRecord { owner: kit::name(owner).into(), rtype, ttl: 60, rdata: rdata.into() }
}

fn builder() -> RpzZoneBuilder {
    RpzZoneBuilder::begin(record("policy.test", Type::SOA, b"\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"))
        .unwrap()
}

/// Returns the rule that one CNAME record makes.
fn alias(owner: &str, target: &str) -> Result<PolicyRule, RpzRecordError> {
    let mut builder = builder();
    builder.add(record(&format!("{owner}.policy.test"), Type::CNAME, &kit::name(target)))?;
    Ok(builder.finish().entries.remove(0))
}

#[test]
fn names_and_networks_are_triggers() {
    let name = |text: &str| Trigger::Name(kit::name(text).into());
    let v4 = |text: &str, length| Network::v4(text.parse().unwrap(), length);
    let v6 = |text: &str, length| Network::new(text.parse().unwrap(), length);
    for (owner, trigger) in [
        ("a.example", name("a.example")),
        ("*.a.example", Trigger::Below(kit::name("a.example").into())),
        ("*", Trigger::Below(kit::name("").into())),
        ("a.*.example", name("a.*.example")),
        ("24.0.2.0.192.rpz-ip", Trigger::Address(v4("192.0.2.0", 24))),
        ("0.0.0.0.0.rpz-client-ip", Trigger::Client(v4("0.0.0.0", 0))),
        ("32.zz.db8.2001.rpz-ip", Trigger::Address(v6("2001:db8::", 32))),
        ("128.1.zz.rpz-ip", Trigger::Address(v6("::1", 128))),
        ("128.8.7.0.0.5.0.db8.2001.rpz-ip", Trigger::Address(v6("2001:db8:0:5:0:0:7:8", 128))),
        ("128.8.7.zz.5.0.db8.2001.rpz-ip", Trigger::Address(v6("2001:db8:0:5:0:0:7:8", 128))),
        ("0.zz.rpz-client-ip", Trigger::Client(v6("::", 0))),
        ("127.zz.3333.4444.0.8777.8888.rpz-ip", Trigger::Address(v6("8888:8777:0:4444:3333::", 127))),
        ("x.rpz-ip.example", name("x.rpz-ip.example")),
    ] {
        assert_eq!(alias(owner, "").map(|entry| entry.trigger), Ok(trigger), "{owner}");
    }
}

#[test]
fn owners_that_cannot_be_triggers_are_refused() {
    for (owner, error) in [
        ("ns.example.rpz-nsdname", RpzRecordError::Delegation),
        ("24.0.2.0.192.rpz-nsip", RpzRecordError::Delegation),
        ("x.rpz-other", RpzRecordError::UnknownTrigger),
        ("rpz-ip", RpzRecordError::Network),
        ("24.rpz-ip", RpzRecordError::Network),
        ("33.0.2.0.192.rpz-ip", RpzRecordError::Network),
        ("24.0.2.0.256.rpz-ip", RpzRecordError::Network),
        ("24.0.2.0.rpz-ip", RpzRecordError::Network),
        ("+4.0.2.0.192.rpz-ip", RpzRecordError::Network),
        ("129.zz.db8.2001.rpz-ip", RpzRecordError::Network),
        ("128.zz.1.zz.rpz-ip", RpzRecordError::Network),
        ("128.1.2.3.4.zz.5.6.7.8.rpz-ip", RpzRecordError::Network),
        ("128.1.2.3.4.5.6.7.rpz-ip", RpzRecordError::Network),
        ("128.1.2.3.4.5.6.7.8.9.rpz-ip", RpzRecordError::Network),
        ("128.12345.zz.rpz-ip", RpzRecordError::Network),
        ("128.g.zz.rpz-ip", RpzRecordError::Network),
        ("24.1.2.0.192.rpz-ip", RpzRecordError::HostBits),
        ("32.zz.1.db8.2001.rpz-ip", RpzRecordError::HostBits),
    ] {
        assert_eq!(alias(owner, "").map(|entry| entry.trigger), Err(error), "{owner}");
    }
}

#[test]
fn targets_are_actions() {
    for (target, action) in [
        ("", Ok(Action::NxDomain)),
        ("*", Ok(Action::NoData)),
        ("RPZ-Passthru", Ok(Action::Passthru)),
        ("rpz-drop", Ok(Action::Drop)),
        ("rpz-tcp-only", Ok(Action::TcpOnly)),
        ("a.example", Ok(Action::Passthru)),
        ("*.garden.example", Ok(Action::Suffix(kit::name("garden.example").into()))),
        ("rpz-other", Err(RpzRecordError::UnknownAction)),
        ("rpz-drop.policy.test", Err(RpzRecordError::MissingDot)),
    ] {
        assert_eq!(alias("a.example", target).map(|entry| entry.action), action, "{target}");
    }
    let action = alias("a.example", "rpz-drop.example").unwrap().action;
    assert!(matches!(action, Action::Data(records) if records.len() == 1));
}

#[test]
fn data_of_one_name_are_joined_and_an_action_stands_alone() {
    let mut builder = builder();
    for (owner, rtype, rdata, outcome) in [
        ("a.policy.test", Type::A, &[192, 0, 2, 1][..], Ok(())),
        ("b.policy.test", Type::CNAME, b"\0", Ok(())),
        ("a.policy.test", Type::A, &[192, 0, 2, 2], Ok(())),
        ("a.policy.test", Type::A, &[192, 0, 2, 2], Ok(())),
        ("a.policy.test", Type::CNAME, b"\0", Err(RpzRecordError::Mixed)),
        ("a.policy.test", Type::CNAME, b"\x01x\0", Err(RpzRecordError::Mixed)),
        ("b.policy.test", Type::CNAME, b"\0", Ok(())),
        ("b.policy.test", Type::CNAME, b"\x01*\0", Err(RpzRecordError::Mixed)),
        ("b.policy.test", Type::TXT, b"\x01x", Err(RpzRecordError::Mixed)),
        ("a.policy.test", Type::TXT, &[0; 59_990], Err(RpzRecordError::Long)),
        ("a.policy.test", Type::NS, b"\x01x\0", Err(RpzRecordError::Type)),
        ("a.policy.test", Type::OPT, b"", Err(RpzRecordError::Type)),
        ("a.policy.tests", Type::A, &[192, 0, 2, 1], Err(RpzRecordError::Outside)),
        // Records of the zone itself, and its DNSSEC records.
        ("policy.test", Type::NS, b"\x01x\0", Ok(())),
        ("policy.test", Type::TXT, b"\x01x", Ok(())),
        ("a.policy.test", Type(46), b"", Ok(())),
    ] {
        assert_eq!(builder.add(record(owner, rtype, rdata)), outcome, "{owner} {rtype}");
    }
    let entries = builder.finish().entries;
    assert_eq!(entries.len(), 2);
    let data = |action: &Action| match action {
        Action::Data(records) => records.len(),
        _ => 0,
    };
    assert_eq!((data(&entries[0].action), &entries[1].action), (2, &Action::NxDomain));
    let other = RpzZoneBuilder::begin(record("policy.test", Type::NS, b"\0")).err();
    assert_eq!(other, Some(RpzRecordError::NoSoa));
}

/// Draft section 3.3: before `rpz-passthru.`, a CNAME to the trigger itself meant the same.
#[test]
fn the_old_form_of_passthru_works_for_names_and_for_addresses() {
    for (owner, target) in [
        ("a.example", "a.example"),
        ("32.1.4.168.192.rpz-ip", "32.1.4.168.192"),
        ("32.1.4.168.192.rpz-client-ip", "32.1.4.168.192"),
    ] {
        assert_eq!(alias(owner, target).unwrap().action, Action::Passthru, "{owner}");
    }
    assert!(matches!(alias("32.1.4.168.192.rpz-ip", "32.2.4.168.192").unwrap().action, Action::Data(_)));
}

/// Draft section 3.6: top-level domains that begin with `rpz-` are reserved.
#[test]
fn an_action_that_is_not_known_is_no_data() {
    for target in ["rpz-later", "www.rpz-later"] {
        assert_eq!(alias("a.example", target), Err(RpzRecordError::UnknownAction), "{target}");
    }
    assert!(matches!(alias("a.example", "rpz-later.example").unwrap().action, Action::Data(_)));
}
