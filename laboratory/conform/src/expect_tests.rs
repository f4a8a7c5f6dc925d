//! Differences that the comparison finds, and answers that it accepts.

use super::*;
use crate::message::UpstreamQuery;
use crate::reply;
use crate::script::ReplyContent;
use domain::base::iana::{Class, Rcode};

/// A successful step: a query for `a. AAAA` and an answer with two addresses.
struct Played {
    query: Query,
    sent: Vec<u8>,
    answer: Vec<u8>,
    upstream: Vec<ReceivedQuery>,
}

const FIRST: &str = "a. 300 IN AAAA 2001:db8::1";
const SECOND: &str = "a. 300 IN AAAA 2001:db8::2";

impl Played {
    fn new() -> Played {
        Played::with(ReplyContent::new(Rcode::NOERROR))
    }

    fn with(content: ReplyContent) -> Played {
        let query: Query = serde_json::from_str(r#"{"name": "a.", "type": "AAAA"}"#).unwrap();
        let sent = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x1c\x00\x01".to_vec();
        let answers = [FIRST, SECOND].map(|text| record::record(text).unwrap()).to_vec();
        let content = ReplyContent { answers, ..content };
        let answer = reply::proper(&UpstreamQuery::read(&sent).unwrap(), &content, Transport::Udp);
        let upstream = ["AAAA", "A"].map(|rtype| seen("A.", rtype)).to_vec();
        Played { query, sent, answer, upstream }
    }

    fn judge(&self, expect: &str) -> Vec<String> {
        self.judge_answer(expect, Some(&self.answer))
    }

    fn judge_answer(&self, expect: &str, answer: Option<&[u8]>) -> Vec<String> {
        let alternatives = Expect::alternatives(&serde_json::from_str(expect).unwrap()).unwrap();
        let Played { query, sent, upstream, .. } = self;
        let observation = Observation { query, sent, answer, elapsed: Duration::from_millis(80), upstream };
        judge(&alternatives, &observation).all()
    }

    fn holds(&self, expect: &str) -> bool {
        self.judge(expect).is_empty()
    }
}

fn seen(name: &str, rtype: &str) -> ReceivedQuery {
    let (name, rtype) = (name.parse().unwrap(), rtype.parse().unwrap());
    ReceivedQuery { name, rtype, class: Class::IN, transport: Transport::Udp, subnet: None }
}

#[test]
fn an_empty_expectation_holds_for_any_proper_answer() {
    assert_eq!(Played::new().judge("{}"), [""; 0]);
}

#[test]
fn the_response_code_may_be_one_of_a_list() {
    let played = Played::new();
    assert!(played.holds(r#"{"rcode": "NOERROR"}"#));
    assert!(played.holds(r#"{"rcode": ["SERVFAIL", "NOERROR"]}"#));
    assert_eq!(
        played.judge(r#"{"rcode": ["SERVFAIL", "BADVERS"]}"#),
        ["RCODE: NOERROR, expected SERVFAIL or BADVERS"]
    );
}

#[test]
fn exactly_the_flags_are_set_except_for_free_ones() {
    let played = Played::new();
    assert!(played.holds(r#"{"flags": ["RA", "RD", "QR"]}"#));
    assert_eq!(played.judge(r#"{"flags": ["QR", "RA", "AD"]}"#), ["flags: QR RD RA, expected QR RA AD"]);
    assert!(played.holds(r#"{"flags": ["QR", "RA", "AD"], "flags_free": ["AD", "RD"]}"#));
}

#[test]
fn the_answer_section_is_compared_by_records_count_and_addresses() {
    let played = Played::new();
    assert!(played.holds(&format!(r#"{{"answer": ["{SECOND}", "{FIRST}"], "answer_count": 2}}"#)));
    assert!(!played.holds(&format!(r#"{{"answer": ["{SECOND}", "{FIRST}"], "ordered": true}}"#)));
    assert!(!played.holds(&format!(r#"{{"answer": ["{FIRST}"]}}"#)));
    assert!(played.holds(&format!(r#"{{"answer_has": ["{FIRST}"]}}"#)));
    assert!(!played.holds(r#"{"answer": []}"#));
    assert!(!played.holds(r#"{"answer_count": 1}"#));
    assert_eq!(played.judge(r#"{"answer_excludes": ["2001:db8::2/127"]}"#).len(), 1);
    assert!(played.holds(r#"{"answer_excludes": ["64:ff9b::/96", "0.0.0.0/0"]}"#));
    assert_eq!(played.judge(r#"{"no_types": ["AAAA"]}"#).len(), 2);
}

#[test]
fn authority_and_additional_are_compared_without_order() {
    let [one, two] = ["b. 5 IN NS c.", "c. 5 IN A 192.0.2.1"];
    let authority = [one, two].map(|text| record::record(text).unwrap()).to_vec();
    let played = Played::with(ReplyContent { authority, ..ReplyContent::new(Rcode::NOERROR) });
    assert!(played.holds(&format!(r#"{{"authority": ["{two}", "{one}"], "additional": []}}"#)));
    assert!(!played.holds(&format!(r#"{{"authority": ["{two}"]}}"#)));
    assert!(!played.holds(&format!(r#"{{"additional": ["{two}"]}}"#)));
}

#[test]
fn one_alternative_is_enough_and_is_laid_over_the_rest() {
    let played = Played::new();
    assert!(played.holds(r#"{"rcode": "NOERROR", "any_of": [{"rcode": "REFUSED"}, {"answer_count": 2}]}"#));
    let differences = played.judge(r#"{"any_of": [{"rcode": "REFUSED"}, {"answer_count": 1}]}"#);
    assert_eq!(
        differences,
        ["alternative 1: RCODE: NOERROR, expected REFUSED", "alternative 2: answer: 2 records, expected 1",]
    );
}

#[test]
fn the_queries_of_the_upstream_are_a_set_without_regard_to_case_and_repetition() {
    let mut played = Played::new();
    played.upstream.push(seen("a.", "A"));
    assert!(played.holds(r#"{"upstream_queries": ["A", "AAAA"]}"#));
    assert!(played.holds(r#"{"upstream_some": ["a. A"], "upstream_never": ["MX", "b. A"]}"#));
    assert_eq!(
        played.judge(r#"{"upstream_queries": ["AAAA"]}"#),
        ["the upstream saw a. A, a. AAAA, expected a. AAAA"]
    );
    assert!(!played.holds(r#"{"upstream_never": ["A"]}"#));
    assert!(!played.holds(r#"{"upstream_some": ["B. PTR"]}"#));
}

#[test]
fn transport_and_client_subnet_are_those_of_every_question_for_the_name() {
    let mut played = Played::new();
    assert!(played.holds(r#"{"upstream_transport": "udp", "upstream_ecs": null}"#));
    assert!(!played.holds(r#"{"upstream_ecs": "203.0.113.0/24"}"#));
    played.upstream[1].transport = Transport::Tcp;
    assert_eq!(played.judge(r#"{"upstream_transport": "tcp"}"#), ["AAAA was asked over udp, expected tcp"]);
    let other = ReceivedQuery { transport: Transport::Tcp, ..seen("other.", "A") };
    let played = Played { upstream: vec![other], ..Played::new() };
    assert!(played.holds(r#"{"upstream_transport": "udp"}"#));
}

#[test]
fn silence_is_a_fault_unless_it_may_be() {
    let played = Played::new();
    assert_eq!(played.judge_answer("{}", None), ["no answer in 80 ms"]);
    assert!(played.judge_answer(r#"{"silence": true}"#, None).is_empty());
    assert!(played.judge_answer(r#"{"silence_ok": true}"#, None).is_empty());
    assert!(!played.holds(r#"{"silence": true}"#));
}

#[test]
fn an_answer_to_raw_octets_needs_only_a_header() {
    let mut played = Played::new();
    played.query.raw = Some(vec![0x12, 0x34]);
    let header = b"\x12\x34\x81\x01";
    assert!(played.judge_answer(r#"{"silence_ok": true}"#, Some(header)).is_empty());
    assert!(played.judge_answer(r#"{"rcode": "FORMERR"}"#, Some(header)).is_empty());
    assert!(!played.judge_answer(r#"{"rcode": "REFUSED"}"#, Some(header)).is_empty());
    assert!(!played.judge_answer(r#"{"rcode": "REFUSED"}"#, Some(b"")).is_empty());
}

#[test]
fn a_late_answer_is_a_fault() {
    let played = Played::new();
    assert!(played.holds(r#"{"within_ms": 100}"#));
    assert_eq!(played.judge(r#"{"within_ms": 50}"#), ["the answer came after 80 ms, expected within 50 ms"]);
}

#[test]
fn improper_answers_fail_whatever_is_expected() {
    let fault = |change: &dyn Fn(&mut Played)| {
        let mut played = Played::new();
        change(&mut played);
        let differences = played.judge("{}");
        assert_eq!(differences.len(), 1, "{differences:?}");
        differences.into_iter().next().unwrap()
    };
    assert!(fault(&|played| played.answer[0] ^= 1).contains("ID"));
    assert!(fault(&|played| played.answer[2] &= 0x7f).contains("QR"));
    assert!(fault(&|played| played.answer[13] = b'A').contains("question"));
    assert!(fault(&|played| played.answer.truncate(40)).contains("cannot be read"));
    assert!(
        fault(&|played| played.query.edns = serde_json::from_str(r#"{"udp": 4096}"#).unwrap())
            .contains("OPT")
    );
}

#[test]
fn an_answer_larger_than_the_client_takes_is_a_fault_over_udp_only() {
    let mut played = Played::new();
    let more =
        (0..30).map(|number| record::record(&format!("a. 1 IN AAAA 2001:db8::{number}")).unwrap()).collect();
    let content = ReplyContent { answers: more, ..ReplyContent::new(Rcode::NOERROR) };
    played.answer = reply::proper(&UpstreamQuery::read(&played.sent).unwrap(), &content, Transport::Tcp);
    assert!(played.judge("{}")[0].ends_with("octets over UDP, the client takes 512"));
    played.query.transport = Transport::Tcp;
    assert!(played.holds("{}"));
}

#[test]
fn unknown_fields_and_empty_alternatives_are_mistakes() {
    let read = |text: &str| Expect::alternatives(&serde_json::from_str(text).unwrap());
    assert!(read(r#"{"rcod": "NOERROR"}"#).is_err());
    assert!(read(r#"{"any_of": []}"#).is_err());
    assert!(read(r#"{"rcode": "NOSUCH"}"#).is_err());
}

#[test]
fn the_do_bit_of_an_answer_without_an_opt_record_is_absent() {
    let played = Played::new();
    assert_eq!(played.judge(r#"{"edns_do": true}"#), ["DO: absent, expected set"]);
    assert_eq!(played.judge(r#"{"edns_do": false}"#), ["DO: absent, expected clear"]);
}
