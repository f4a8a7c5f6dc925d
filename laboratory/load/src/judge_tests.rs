//! Valid and invalid replies.

use super::*;
use crate::names::Template;
use std::net::Ipv6Addr;

const ADDRESS: [u8; 4] = [10, 1, 2, 3];

fn expectation() -> Expectation {
    let prefix = ("64:ff9b::".parse().unwrap(), 96);
    Expectation { ttl: (1, 3600), ..Expectation::synthesized("dns64perf.test", prefix) }
}

#[test]
fn by_the_rule_of_dns64perf_any_answer_record_is_valid() {
    let rule = Expectation { validity: Validity::Answered, ..expectation() };
    let wrong = aaaa(POINTER, "2001:db8::1");
    let mut truncated = message(std::slice::from_ref(&wrong));
    truncated[2] |= TC;
    for valid in
        [message(&[aaaa(POINTER, "64:ff9b::a01:203")]), message(&[wrong.clone(), wrong.clone()]), truncated]
    {
        assert_eq!(judged(&rule, &valid), Ok(()));
    }
    assert_eq!(judged(&expectation(), &message(std::slice::from_ref(&wrong))), Err(Reason::Prefix));
    assert_eq!(judged(&rule, &message(&[])), Err(Reason::NoRecords));
    let mut failed = message(std::slice::from_ref(&wrong));
    failed[3] |= 2;
    assert_eq!(judged(&rule, &failed), Err(Reason::ServFail));
    let mut query = message(&[wrong]);
    query[2] &= 0x7f;
    assert_eq!(judged(&rule, &query), Err(Reason::NotAResponse));
}

/// A reply's head with a number of answer records.
fn head(records: u8) -> Vec<u8> {
    let template = Template::new("dns64perf.test", false).unwrap();
    let mut message = vec![0; template.length()];
    template.prepare(&mut message);
    Template::patch(&mut message, 77, ADDRESS);
    (message[2], message[3], message[7]) = (0x81, 0x80, records);
    message
}

fn end() -> usize {
    head(0).len()
}

fn aaaa(owner: &[u8], address: &str) -> Vec<u8> {
    let mut record = owner.to_vec();
    record.extend([0, 28, 0, 1, 0, 0, 0, 60, 0, 16]);
    record.extend(address.parse::<Ipv6Addr>().unwrap().octets());
    record
}

/// `from` CNAME `to`, as labels before the query name (empty: the query name itself).
fn cname(from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut record = [from, &[0xc0, 12]].concat();
    record.extend([0, 5, 0, 1, 0, 0, 0, 60, 0, to.len() as u8 + 2]);
    record.extend([to, &[0xc0, 12]].concat());
    record
}

fn message(records: &[Vec<u8>]) -> Vec<u8> {
    [head(records.len() as u8), records.concat()].concat()
}

fn judged(expect: &Expectation, message: &[u8]) -> Result<(), Reason> {
    Judge::new(expect).unwrap().judge(message, end(), ADDRESS)
}

const POINTER: &[u8] = &[0xc0, 12];
const WRITTEN_OUT: &[u8] = b"\x0f010-001-002-003\x09DNS64perf\x04test\x00";

#[test]
fn a_right_reply_is_valid_in_every_layout() {
    for owner in [POINTER, WRITTEN_OUT, b"\x0f010-001-002-003\xc0\x1c"] {
        assert_eq!(judged(&expectation(), &message(&[aaaa(owner, "64:ff9b::a01:203")])), Ok(()));
    }
    // With an OPT record after it, and with an authority record too.
    let mut with_opt = message(&[aaaa(POINTER, "64:ff9b::a01:203")]);
    with_opt[11] = 1;
    with_opt.extend([0, 0, 41, 16, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(judged(&expectation(), &with_opt), Ok(()));
    with_opt[9] = 1;
    with_opt.extend([0, 0, 2, 0, 1, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!(judged(&expectation(), &with_opt), Ok(()));
}

#[test]
fn flags_that_describe_the_server_may_be_anything() {
    // AA, RA, AD, CD.
    for (high, low) in [(0x85, 0x80), (0x81, 0x00), (0x81, 0xa0), (0x81, 0x90)] {
        let mut reply = message(&[aaaa(POINTER, "64:ff9b::a01:203")]);
        (reply[2], reply[3]) = (high, low);
        assert_eq!(judged(&expectation(), &reply), Ok(()));
    }
}

#[test]
fn each_flaw_has_its_reason() {
    let good = message(&[aaaa(POINTER, "64:ff9b::a01:203")]);
    let with = |at: usize, value: u8| {
        let mut message = good.clone();
        message[at] = value;
        judged(&expectation(), &message)
    };
    let record = end();
    for (at, value, reason) in [
        (2, 0x01, Reason::NotAResponse),
        (2, 0xa1, Reason::Opcode),
        (2, 0x83, Reason::Truncated),
        (2, 0x80, Reason::Flags),
        (3, 0xc0, Reason::Flags),
        (3, 0x81, Reason::FormErr),
        (3, 0x82, Reason::ServFail),
        (3, 0x83, Reason::NxDomain),
        (3, 0x84, Reason::NotImp),
        (3, 0x85, Reason::Refused),
        (3, 0x86, Reason::Rcode),
        (7, 0, Reason::NoRecords),
        (7, 2, Reason::ExtraRecord),
        (6, 1, Reason::ExtraRecord),
        (9, 1, Reason::Malformed),
        (11, 1, Reason::Malformed),
        (record + 1, 28, Reason::Owner),
        (record, 0x80, Reason::Malformed),
        (record + 3, 1, Reason::Type),
        (record + 5, 3, Reason::Class),
        (record + 6, 1, Reason::Ttl),
        (record + 9, 0, Reason::Ttl),
        (record + 11, 4, Reason::Length),
        (record + 11, 17, Reason::Malformed),
        (record + 12, 0x20, Reason::Prefix),
        (record + 23, 1, Reason::Prefix),
        (record + 27, 4, Reason::Address),
    ] {
        assert_eq!(with(at, value), Err(reason), "octet {at} = {value:#x}");
    }
    let mut longer = good.clone();
    longer.push(0);
    assert_eq!(judged(&expectation(), &longer), Err(Reason::Malformed));
    for length in record..good.len() {
        assert_eq!(judged(&expectation(), &good[..length]), Err(Reason::Malformed));
    }
    assert_eq!(judged(&expectation(), &good[..record - 1]), Err(Reason::Header));
}

#[test]
fn several_addresses_and_prefixes_must_all_be_there_once_in_any_order() {
    let mut expect = Expectation { addresses: 2, ..expectation() };
    expect.prefixes.push(("2001:db8:64::".parse().unwrap(), 48));
    let all = ["64:ff9b::a01:203", "64:ff9b::a01:204", "2001:db8:64:a01:2:300::", "2001:db8:64:a01:2:400::"];
    let records: Vec<_> = all.iter().map(|address| aaaa(POINTER, address)).collect();
    for turn in 0..4 {
        let mut turned = records.clone();
        turned.rotate_left(turn);
        assert_eq!(judged(&expect, &message(&turned)), Ok(()));
        turned[1] = turned[0].clone();
        assert_eq!(judged(&expect, &message(&turned)), Err(Reason::Repeated));
        turned[1] = aaaa(POINTER, "64:ff9b::a01:205");
        assert_eq!(judged(&expect, &message(&turned)), Err(Reason::Address));
        assert_eq!(judged(&expect, &message(&turned[1..])), Err(Reason::MissingRecord));
    }
}

#[test]
fn a_chain_must_lead_to_the_addresses() {
    let expect = Expectation { cname_depth: 2, ..expectation() };
    let (first, second) = (cname(b"", b"\x011"), cname(b"\x011", b"\x012"));
    let last = aaaa(b"\x012\xc0\x0c", "64:ff9b::a01:203");
    let judged = |records: &[&Vec<u8>]| {
        judged(&expect, &message(&records.iter().map(|record| (*record).clone()).collect::<Vec<_>>()))
    };
    assert_eq!(judged(&[&first, &second, &last]), Ok(()));
    assert_eq!(judged(&[&second, &first, &last]), Ok(()));
    assert_eq!(judged(&[&first, &first, &last]), Err(Reason::Chain));
    assert_eq!(judged(&[&first, &cname(b"\x011", b"\x013"), &last]), Err(Reason::Chain));
    assert_eq!(judged(&[&first, &second, &aaaa(POINTER, "64:ff9b::a01:203")]), Err(Reason::Owner));
    assert_eq!(judged(&[&first, &cname(b"\x012", b"\x013"), &last]), Err(Reason::Chain));
    assert_eq!(judged(&[&first, &second]), Err(Reason::MissingRecord));
    assert_eq!(judged(&[&first, &second, &aaaa(b"\x0202\xc0\x0c", "64:ff9b::a01:203")]), Err(Reason::Owner));
}

#[test]
fn a_name_with_aaaa_records_must_have_those() {
    let expect = Expectation { aaaa_share: 1.0, ..expectation() };
    let (real, made) = (aaaa(POINTER, "2001:db8::a01:203"), aaaa(POINTER, "64:ff9b::a01:203"));
    assert_eq!(judged(&expect, &message(std::slice::from_ref(&real))), Ok(()));
    assert_eq!(judged(&expect, &message(std::slice::from_ref(&made))), Err(Reason::Prefix));
    assert_eq!(judged(&expectation(), &message(std::slice::from_ref(&real))), Err(Reason::Prefix));
}

#[test]
fn without_prefixes_a_name_has_what_the_zone_has() {
    let none = Expectation { prefixes: Vec::new(), ..expectation() };
    let mut no_data = message(&[]);
    assert_eq!(judged(&none, &no_data), Ok(()));
    no_data[7] = 1;
    assert_eq!(judged(&none, &no_data), Err(Reason::ExtraRecord));
    let all = Expectation { aaaa_share: 1.0, ..none };
    assert_eq!(judged(&all, &message(&[aaaa(POINTER, "2001:db8::a01:203")])), Ok(()));
}

#[test]
fn the_share_of_names_with_aaaa_is_the_authoritys() {
    for (share, seed) in [(0.0, 1), (0.3, 7), (0.5, u64::MAX), (1.0, 3)] {
        let judge = Judge::new(&Expectation { aaaa_share: share, aaaa_seed: seed, ..expectation() }).unwrap();
        let zone = authority::Zone::new("dns64perf.test").unwrap().aaaa_share(share).seed(seed);
        for number in (0..=u32::MAX).step_by(65_521) {
            let address = number.to_be_bytes();
            assert_eq!(judge.has_aaaa(address), zone.has_aaaa(address), "{share} {seed} {address:?}");
        }
    }
}

#[test]
fn the_comparison_in_place_agrees_with_the_check_of_records() {
    let judge = Judge::new(&expectation()).unwrap();
    let good = message(&[aaaa(POINTER, "64:ff9b::a01:203")]);
    let (mut valid, mut invalid) = (0, 0);
    for seed in 0..100_000u64 {
        let mut octets = good.clone();
        let changes = crate::random::mix(seed) % 3;
        for step in 0..changes {
            let draw = crate::random::mix(seed * 4 + step + 1);
            // After the question and the counts, which are checked before.
            let at = end() + draw as usize % (octets.len() - end());
            octets[at] = (draw >> 32) as u8 % 17;
        }
        let judged = judge.judge(&octets, end(), ADDRESS);
        assert_eq!(judged, judge.check_records(&octets, end(), ADDRESS, &judge.prefixes, 1), "{octets:02x?}");
        *if judged.is_ok() { &mut valid } else { &mut invalid } += 1;
    }
    assert!(valid > 30_000 && invalid > 30_000, "{valid} {invalid}");
}

#[test]
fn octets_of_any_kind_are_judged_without_harm() {
    let judge = Judge::new(&Expectation { cname_depth: 1, addresses: 3, ..expectation() }).unwrap();
    for seed in 0..50_000u64 {
        let mut octets = message(&[cname(b"", b"\x011"), aaaa(b"\x011\xc0\x0c", "64:ff9b::a01:203")]);
        octets[7] = 4;
        for step in 0..4 {
            let draw = crate::random::mix(seed * 4 + step);
            let at = 12 + draw as usize % (octets.len() - 12);
            octets[at] = (draw >> 32) as u8;
        }
        // Two of four records: never valid.
        assert!(judge.judge(&octets, end(), ADDRESS).is_err());
    }
}
