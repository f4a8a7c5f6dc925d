//! Octets that leave the upstream.

use super::*;
use crate::message::{Answer, UpstreamQueryEdns};
use crate::record;
use domain::base::iana::Opcode;

fn asked(edns: Option<UpstreamQueryEdns>) -> UpstreamQuery {
    UpstreamQuery {
        id: 0x1234,
        opcode: Opcode::QUERY,
        flags: vec![Flag::Rd, Flag::Cd],
        name: "wWw.eXample.".parse().unwrap(),
        rtype: Rtype::A,
        class: Class::IN,
        edns,
    }
}

fn edns(dnssec_ok: bool) -> Option<UpstreamQueryEdns> {
    Some(UpstreamQueryEdns { udp_size: 600, dnssec_ok, subnet: None })
}

/// `count` addresses of 16 octets each, as the owner is compressed.
fn content(count: u8) -> ReplyContent {
    let text = |number| format!("www.example. 300 IN A 192.0.2.{number}");
    let answers = (0..count).map(|number| record::record(&text(number)).unwrap()).collect();
    ReplyContent { answers, ..ReplyContent::new(Rcode::NOERROR) }
}

#[test]
fn the_question_comes_back_letter_by_letter_with_the_flags_of_a_resolver() {
    let answer = Answer::read(&proper(&asked(None), &content(2), Transport::Udp)).unwrap();
    assert_eq!(answer.id, 0x1234);
    assert_eq!(answer.question, b"\x03wWw\x07eXample\x00\x00\x01\x00\x01");
    assert_eq!(answer.flags, [Flag::Qr, Flag::Rd, Flag::Ra, Flag::Cd]);
    assert_eq!((answer.answer.len(), answer.opt_records), (2, 0));
}

#[test]
fn records_keep_their_order_and_are_not_merged() {
    let texts = ["b. 2 IN A 192.0.2.2", "a. 1 IN A 192.0.2.1", "b. 2 IN A 192.0.2.2"];
    let answers = texts.iter().map(|text| record::record(text).unwrap()).collect();
    let content = ReplyContent { answers, ..ReplyContent::new(Rcode::NOERROR) };
    let answer = Answer::read(&proper(&asked(None), &content, Transport::Udp)).unwrap();
    assert_eq!(answer.answer.iter().map(record::line).collect::<Vec<_>>(), texts);
}

#[test]
fn ad_goes_only_to_those_who_understand_it() {
    let content = ReplyContent { flags: vec![Flag::Ad], ..content(1) };
    let has_ad = |asked: &UpstreamQuery| {
        Answer::read(&proper(asked, &content, Transport::Udp)).unwrap().flags.contains(&Flag::Ad)
    };
    assert!(!has_ad(&asked(None)));
    assert!(!has_ad(&asked(edns(false))));
    assert!(has_ad(&asked(edns(true))));
    assert!(has_ad(&UpstreamQuery { flags: vec![Flag::Ad], ..asked(None) }));
}

#[test]
fn extended_errors_need_an_opt_record() {
    let content = ReplyContent { ede: vec![6, 22], ..ReplyContent::new(Rcode::SERVFAIL) };
    let errors = |asked: &UpstreamQuery| {
        Answer::read(&proper(asked, &content, Transport::Udp)).unwrap().extended_errors
    };
    assert_eq!(errors(&asked(edns(false))), [6, 22]);
    assert_eq!(errors(&asked(None)), [0; 0]);
}

#[test]
fn a_reply_over_udp_that_is_too_large_goes_out_with_tc_and_without_records() {
    // 12 + 17 octets, and 16 for each record: 30 of them are 509 octets, 31 are 525, 36 with OPT are 616.
    let reply =
        |edns, count, transport| Answer::read(&proper(&asked(edns), &content(count), transport)).unwrap();
    assert_eq!(reply(None, 30, Transport::Udp).answer.len(), 30);
    let cut = reply(None, 31, Transport::Udp);
    assert!(cut.answer.is_empty() && cut.flags.contains(&Flag::Tc));
    assert_eq!(reply(edns(false), 31, Transport::Udp).answer.len(), 31);
    let cut = reply(edns(false), 36, Transport::Udp);
    assert!(cut.answer.is_empty() && cut.flags.contains(&Flag::Tc) && cut.opt_records == 1);
    assert_eq!(reply(None, 100, Transport::Tcp).answer.len(), 100);
}

#[test]
fn no_broken_reply_can_be_read_as_an_answer() {
    use Malformed::{
        CountLies, Cut, Empty, Garbage, NoQuestion, PointerLoop, Rdlength3, RdlengthOverrun, ShortHeader,
    };
    for kind in [Empty, ShortHeader, Garbage, Rdlength3, RdlengthOverrun, CountLies, PointerLoop, Cut] {
        for edns in [None, edns(true)] {
            let content = ReplyContent { malformed: Some(kind), ..content(1) };
            let octets = proper(&asked(edns), &content, Transport::Udp);
            assert!(Answer::read(&octets).is_err(), "{kind:?}");
        }
    }
    let content = ReplyContent { malformed: Some(NoQuestion), ..content(1) };
    let octets = proper(&asked(None), &content, Transport::Udp);
    assert_eq!(octets, [0x12, 0x34, 0x81, 0x90, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_forged_reply_is_wrong_in_one_thing() {
    let forge = |kind| {
        let answers = vec![record::record("www.example. 300 IN A 203.0.113.66").unwrap()];
        Answer::read(&forged(&asked(None), &Forgery { kind, answers })).unwrap()
    };
    let right = forge(ForgeryKind::SourcePort);
    assert_eq!((right.id, right.flags.contains(&Flag::Qr)), (0x1234, true));
    assert_eq!(right.question, b"\x03wWw\x07eXample\x00\x00\x01\x00\x01");
    assert_ne!(forge(ForgeryKind::Id).id, right.id);
    assert_eq!(forge(ForgeryKind::Question).question, b"\x03xWw\x07eXample\x00\x00\x01\x00\x01");
    assert_eq!(forge(ForgeryKind::QuestionType).question, b"\x03wWw\x07eXample\x00\x00\x1c\x00\x01");
    assert!(!forge(ForgeryKind::NotAResponse).flags.contains(&Flag::Qr));
}
