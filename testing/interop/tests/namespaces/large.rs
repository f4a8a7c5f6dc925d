//! Answers that do not fit into a UDP message, on either side.

use sixfold_interop::{
    Answer, Authority, Capture, Configuration, Kdig, Lab, Program, Sixfold, address, zones,
};

/// Over UDP the answer is truncated, with TC set and otherwise correct. Over TCP, which the client then uses, it is
/// complete.
fn is_whole_over_tcp_only(kdig: &Kdig<'_>, name: &str, kind: &str, expected: &[String]) {
    let cut = kdig.clone().with("+ignore").ask(name, kind);
    assert!(cut.has("tc") && cut.transport == "UDP" && cut.status == "NOERROR", "{}", cut.text);
    assert!(cut.data(kind).iter().all(|data| expected.iter().any(|full| full == data)), "{}", cut.text);
    let whole = kdig.ask(name, kind);
    assert!(!whole.has("tc") && whole.transport == "TCP", "{}", whole.text);
    holds(&whole, kind, expected);
}

fn holds(answer: &Answer, kind: &str, expected: &[String]) {
    let mut expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(answer.data(kind), expected, "{}", answer.text);
}

fn large_answers_pass(program: Program) {
    let Some(lab) = Lab::new(&[program.file(), "curl", "dumpcap", "tshark"]) else { return };
    let _authority = Authority::of_lab(program, &lab);
    let configuration = Configuration::forwarding_to(&[address::FIRST]).dns64("max-records = 200\n");
    let sixfold = Sixfold::start(&lab, &configuration);
    let capture = Capture::start(&lab, &lab.gateway);
    let many: Vec<String> = zones::addresses(zones::MANY).collect();
    let some: Vec<String> = zones::addresses(zones::SOME).collect();
    let embedded = |list: &[String]| list.iter().map(|ipv4| Lab::embedded(ipv4)).collect::<Vec<_>>();
    let strings: Vec<String> = (0..zones::STRINGS).map(|number| format!("\"{number:0200}\"")).collect();

    let (plain, edns) = (lab.kdig().with("+noedns"), lab.kdig().with("+bufsize=4096"));
    for kdig in [&plain, &edns] {
        is_whole_over_tcp_only(kdig, "many.lab.test", "A", &many);
        is_whole_over_tcp_only(kdig, "many.lab.test", "AAAA", &embedded(&many));
        is_whole_over_tcp_only(kdig, "large.lab.test", "TXT", &strings);
    }
    // None of these answers would have been complete if Sixfold had not asked its upstream over TCP.
    // The A records and the strings; the second client is answered from the cache, and so is the A lookup.
    assert!(sixfold.metric("sixfold_upstream_tcp_total{reason=\"truncation\"}") >= 2.0);

    // Synthesis makes it larger than 512 octets: truncated only for a client without EDNS.
    is_whole_over_tcp_only(&plain, "some.lab.test", "AAAA", &embedded(&some));
    let answer = edns.ask("some.lab.test", "AAAA");
    assert_eq!(answer.transport, "UDP", "{}", answer.text);
    holds(&answer, "AAAA", &embedded(&some));
    assert_eq!(capture.finish(&lab).malformed(), "");
}

#[test]
fn large_answers_of_nsd_pass_over_tcp() {
    large_answers_pass(Program::Nsd);
}

#[test]
fn large_answers_of_knot_dns_pass_over_tcp() {
    large_answers_pass(Program::Knot);
}

#[test]
fn large_answers_of_bind_pass_over_tcp() {
    large_answers_pass(Program::Bind);
}
