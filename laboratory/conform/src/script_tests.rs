//! Choice of the rule that answers, and replies derived when no rule matches.

use super::*;
use crate::message::UpstreamQueryEdns;
use domain::base::iana::Opcode;

fn asked(name: &str, rtype: Rtype) -> UpstreamQuery {
    UpstreamQuery {
        id: 1,
        opcode: Opcode::QUERY,
        flags: vec![Flag::Rd],
        name: name.parse().unwrap(),
        rtype,
        class: Class::IN,
        edns: None,
    }
}

fn script(rules: &str) -> Script {
    Script::new(serde_json::from_str(rules).unwrap())
}

fn answers(script: &mut Script, asked: &UpstreamQuery) -> Vec<String> {
    let content = script.reply(asked, Transport::Udp).unwrap();
    content.answers.iter().map(record::line).collect()
}

#[test]
fn the_first_rule_that_matches_answers_without_regard_to_case() {
    let mut script = script(
        r#"[{"name": "a.example.", "type": "AAAA", "rcode": "REFUSED"},
            {"name": "A.example.", "type": "A", "answers": ["a.example. 1 IN A 192.0.2.1"]},
            {"name": "a.example.", "type": "A", "answers": ["a.example. 1 IN A 192.0.2.2"]}]"#,
    );
    assert_eq!(answers(&mut script, &asked("a.EXAMPLE.", Rtype::A)), ["a.example. 1 IN A 192.0.2.1"]);
    let refused = script.reply(&asked("a.example.", Rtype::AAAA), Transport::Udp).unwrap();
    assert_eq!(refused.rcode, Rcode::REFUSED);
}

#[test]
fn rules_for_any_name_come_after_those_with_a_name() {
    let mut script = script(
        r#"[{"name": "*", "type": "*", "rcode": "TIMEOUT"},
            {"name": "a.", "type": "*", "answers": ["a. 1 IN A 192.0.2.1"]}]"#,
    );
    assert_eq!(answers(&mut script, &asked("a.", Rtype::A)).len(), 1);
    assert!(script.reply(&asked("b.", Rtype::A), Transport::Tcp).is_none());
}

#[test]
fn a_rule_is_used_so_many_times_and_then_the_next_takes_over() {
    let mut script = script(
        r#"[{"name": "a.", "type": "A", "times": 2, "rcode": "TIMEOUT"},
            {"name": "a.", "type": "A", "answers": ["a. 1 IN A 192.0.2.1"]}]"#,
    );
    let asked = asked("a.", Rtype::A);
    assert!(script.reply(&asked, Transport::Udp).is_none());
    assert!(script.reply(&asked, Transport::Udp).is_none());
    assert_eq!(answers(&mut script, &asked).len(), 1);
}

#[test]
fn transport_class_and_flags_choose_the_rule() {
    let mut script = script(
        r#"[{"name": "a.", "type": "A", "transport": "tcp", "rcode": "NOTIMP"},
            {"name": "a.", "type": "A", "class": "CH", "rcode": "REFUSED"},
            {"name": "a.", "type": "A", "match": {"do": true}, "rcode": "SERVFAIL"},
            {"name": "a.", "type": "A", "match": {"cd": false}, "rcode": "FORMERR"}]"#,
    );
    let plain = asked("a.", Rtype::A);
    assert_eq!(script.reply(&plain, Transport::Tcp).unwrap().rcode, Rcode::NOTIMP);
    assert_eq!(script.reply(&plain, Transport::Udp).unwrap().rcode, Rcode::FORMERR);
    let chaos = UpstreamQuery { class: Class::CH, ..plain.clone() };
    assert_eq!(script.reply(&chaos, Transport::Udp).unwrap().rcode, Rcode::REFUSED);
    let edns = Some(UpstreamQueryEdns { udp_size: 1232, dnssec_ok: true, subnet: None });
    let secure = UpstreamQuery { edns, ..plain };
    assert_eq!(script.reply(&secure, Transport::Udp).unwrap().rcode, Rcode::SERVFAIL);
}

#[test]
fn records_of_any_rule_answer_questions_that_no_rule_matches() {
    let mut script = script(
        r#"[{"name": "alias.", "type": "AAAA", "answers": ["alias. 9 IN CNAME www."]},
            {"name": "alias.", "type": "MX", "answers": ["alias. 9 IN CNAME www."],
             "additional": ["www. 5 IN A 192.0.2.1", "www. 5 IN A 192.0.2.2"]}]"#,
    );
    assert_eq!(answers(&mut script, &asked("alias.", Rtype::A)), ["alias. 9 IN CNAME www."]);
    assert_eq!(answers(&mut script, &asked("www.", Rtype::A)).len(), 2);
}

#[test]
fn a_name_that_exists_has_no_data_and_any_other_is_nxdomain() {
    let mut script = script(
        r#"[{"name": "a.b.example.", "type": "AAAA", "answers": ["a.b.example. 9 IN CNAME target."]},
            {"name": "gone.example.", "type": "AAAA", "rcode": "NXDOMAIN"}]"#,
    );
    let mut rcode = |name: &str| script.reply(&asked(name, Rtype::MX), Transport::Udp).unwrap().rcode;
    for name in ["b.example.", "example.", "target.", "."] {
        assert_eq!(rcode(name), Rcode::NOERROR, "{name}");
    }
    for name in ["c.example.", "gone.example.", "x.target."] {
        assert_eq!(rcode(name), Rcode::NXDOMAIN, "{name}");
    }
}

#[test]
fn negative_answers_carry_a_soa_that_covers_the_name() {
    let mut script = script(
        r#"[{"name": "a.example.", "type": "AAAA", "authority": ["example. 60 IN SOA n. h. 6 1 1 1 60"]},
            {"name": "a.example.", "type": "MX", "authority": ["example. 15 IN SOA n. h. 15 1 1 1 15"]}]"#,
    );
    let mut soa = |name: &str, rtype| {
        record::line(&script.reply(&asked(name, rtype), Transport::Udp).unwrap().authority[0])
    };
    assert!(soa("b.example.", Rtype::MX).contains(" 15 1 1 1 15"));
    assert!(soa("b.example.", Rtype::A).contains(" 6 1 1 1 60"));
    assert_eq!(soa("elsewhere.", Rtype::A), ROOT_SOA);
}

#[test]
fn a_rule_with_an_unknown_field_is_refused() {
    assert!(serde_json::from_str::<Rule>(r#"{"name": "a.", "type": "A", "answer": []}"#).is_err());
    assert!(serde_json::from_str::<Rule>(r#"{"name": "a.", "type": "A", "rcode": "OOPS"}"#).is_err());
}
