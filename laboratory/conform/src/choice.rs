//! Choices that an RFC leaves to a server. A case expects one of them, which is Sixfold's; a server that made the other
//! one does not fail the case, and the result has a remark.
//!
//! RFC 6147 section 5.3.1 has two ways to answer a PTR query for an address under a prefix: authoritatively, with any
//! data that the operator likes, or with a CNAME to the name under in-addr.arpa. The cases expect the CNAME.

use crate::case::{Case, Step};
use crate::expect::{self, Expect, Observation};
use crate::message::{Answer, Flag};
use domain::base::iana::{OptRcode, Rtype};

/// The remark if the server made the other choice than the one that the case expects; `None` if it made neither.
pub fn other_choice(case: &Case, step: &Step, observation: &Observation) -> Option<String> {
    if !case.rfc.contains("RFC 6147") || !case.rfc.contains("5.3.1") || !wants_alias(step) {
        return None;
    }
    let answer = Answer::read(observation.answer?).ok()?;
    let has = |rtype| answer.answer.iter().any(|it| it.rtype() == rtype && *it.owner() == step.query.name);
    let has_own_data = answer.rcode == OptRcode::NOERROR && has(Rtype::PTR) && !has(Rtype::CNAME);
    let denies = answer.flags.contains(&Flag::Aa)
        && answer.answer.is_empty()
        && matches!(answer.rcode, OptRcode::NOERROR | OptRcode::NXDOMAIN);
    // "Those queries should never be sent to the global DNS": data of the upstream are not the server's own.
    let name = step.query.name.fmt_with_dot().to_string().to_ascii_lowercase();
    let asked = observation.upstream.iter().any(|seen| seen.lower_case_name() == name);
    let is_proper = expect::judge(&[rest(step)], observation).answer.is_empty();
    ((has_own_data || denies) && !asked && is_proper)
        .then(|| "the other choice of RFC 6147 section 5.3.1: data of the server's own".to_owned())
}

/// True if the step asks for a name that the case expects to be an alias of a name under in-addr.arpa.
fn wants_alias(step: &Step) -> bool {
    let (name, rtype) = (&step.query.name, step.query.rtype);
    let is_reverse = name.fmt_with_dot().to_string().to_ascii_lowercase().ends_with(".ip6.arpa.");
    let mut patterns = step.expect.iter().flat_map(|expect| expect.answer.iter().flatten());
    let owners = || step.upstream.iter().flatten().filter_map(|rule| rule.owner());
    let has_target = owners()
        .any(|owner| owner.fmt_with_dot().to_string().to_ascii_lowercase().ends_with(".in-addr.arpa."));
    rtype == Rtype::PTR
        && is_reverse
        && (patterns.any(|pattern| pattern.is_for(name, Rtype::CNAME))
            || has_target && !owners().any(|owner| owner == name))
}

/// The part of the expectation that holds for both choices: the flags but for AA.
fn rest(step: &Step) -> Expect {
    let flags = step.expect.first().and_then(|expect| expect.flags.clone());
    Expect { flags, flags_free: vec![Flag::Aa], ..Expect::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Transport, UpstreamQuery};
    use crate::record;
    use crate::reply;
    use crate::script::ReplyContent;
    use crate::upstream::ReceivedQuery;
    use domain::base::iana::{Class, Rcode};
    use std::time::Duration;

    /// The remark about a server that answers `1.ip6.arpa. PTR` with these records, RCODE and flags, and asks `asked`.
    fn remark(rfc: &str, answers: &[&str], rcode: Rcode, flags: &[Flag], asked: &str) -> Option<String> {
        let case = Case::read(&format!(
            r#"{{"id": "p", "category": "c", "rfc": "{rfc}", "source": "", "level": "MUST", "config": {{}},
                "query": {{"name": "1.ip6.arpa.", "type": "PTR"}},
                "upstream": [{{"name": "1.in-addr.arpa.", "type": "PTR", "rcode": "SERVFAIL"}}],
                "expect": {{"rcode": "SERVFAIL", "flags": ["QR", "RD", "RA"]}}}}"#
        ))
        .unwrap();
        let sent =
            b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x011\x03ip6\x04arpa\x00\x00\x0c\x00\x01";
        let answers = answers.iter().map(|text| record::record(text).unwrap()).collect();
        let content = ReplyContent { answers, flags: flags.to_vec(), ..ReplyContent::new(rcode) };
        let answer = reply::proper(&UpstreamQuery::read(sent).unwrap(), &content, Transport::Udp);
        let seen = ReceivedQuery {
            name: asked.parse().unwrap(),
            rtype: Rtype::PTR,
            class: Class::IN,
            transport: Transport::Udp,
            subnet: None,
        };
        let step = &case.steps()[0];
        let observation = Observation {
            query: &step.query,
            sent,
            answer: Some(&answer),
            elapsed: Duration::ZERO,
            upstream: &[seen],
        };
        other_choice(&case, step, &observation)
    }

    #[test]
    fn data_of_the_server_s_own_are_the_other_choice_of_section_5_3_1() {
        let (rfc, target) = ("RFC 6147 5.3.1", "1.in-addr.arpa.");
        let own = ["1.ip6.arpa. 60 IN PTR any.example."];
        assert!(remark(rfc, &own, Rcode::NOERROR, &[], target).is_some());
        assert!(remark(rfc, &[], Rcode::NXDOMAIN, &[Flag::Aa], target).is_some());
        // A denial without authority, an alias, data that the upstream gave, another section.
        assert_eq!(remark(rfc, &[], Rcode::NXDOMAIN, &[], target), None);
        assert_eq!(
            remark(rfc, &["1.ip6.arpa. 60 IN CNAME 2.in-addr.arpa."], Rcode::NOERROR, &[], target),
            None
        );
        assert_eq!(remark(rfc, &own, Rcode::NOERROR, &[], "1.IP6.arpa."), None);
        assert_eq!(remark("RFC 6147 5.3.3", &own, Rcode::NOERROR, &[], target), None);
        // A truncated answer is no choice.
        assert_eq!(remark(rfc, &own, Rcode::NOERROR, &[Flag::Tc], target), None);
    }
}
