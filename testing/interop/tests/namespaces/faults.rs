//! Answers to clients while all upstreams are silent, refuse or are killed, and after they recover, whatever the
//! machine's speed.

use sixfold_interop::{Answer, Authority, Configuration, Lab, Program, Sixfold, address, wait_until, zones};

/// Names that are asked before the faults turns: `h0` and so on. Other names are asked only after it.
const KNOWN: u32 = 20;

const BOTH: [&str; 2] = [address::FIRST, address::SECOND];

/// Asks for the AAAA (even numbers) or A (odd numbers) of hosts.
fn ask(lab: &Lab, numbers: std::ops::Range<u32>) -> Vec<Answer> {
    let names: Vec<(String, &str)> =
        numbers.map(|number| (format!("h{}.lab.test", number % zones::HOSTS), kind(number))).collect();
    let questions: Vec<_> = names.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
    let answers = lab.kdig().with("+edns").ask_all(&questions);
    assert_eq!(answers.len(), questions.len(), "some questions have no answer: {answers:#?}");
    answers
}

fn kind(number: u32) -> &'static str {
    if number.is_multiple_of(2) { "AAAA" } else { "A" }
}

/// True for stale data: its TTL is 30 s (RFC 8767 section 4), and all other data have one of a second. An extended
/// error says that the data are stale or synthesized.
fn is_stale(answer: &Answer) -> bool {
    let has_ede = answer.text.contains("EDE: 3 ") || answer.text.contains("EDE: 29 ");
    answer.status == "NOERROR" && has_ede && answer.answer.iter().all(|record| record.ttl == 30)
}

/// Rules of a packet filter for the queries to both upstreams.
fn filter(verdict: &str) -> String {
    let [first, second] = BOTH;
    format!(
        "table ip faults {{\n chain input {{ type filter hook input priority 0; ip daddr {{ {first}, {second} }} \
         udp dport 53 {verdict}; }}\n}}"
    )
}

fn all_fail_and_come_back(verdict: &str) {
    let Some(lab) = Lab::new(&["knotd", "curl", "nft"]) else { return };
    let places = [("first", address::FIRST), ("second", address::SECOND)];
    let _servers = places.map(|(name, address)| {
        let place = lab.scratch.directory(name);
        let zones = zones::plain(&place);
        Authority::start(Program::Knot, &lab.world, &place, address, &zones)
    });
    // The cached data expire soon.
    let mut configuration = Configuration::forwarding_to(&BOTH);
    configuration.cache = "max-ttl = \"1s\"\nmax-negative-ttl = \"1s\"\n";
    let sixfold = Sixfold::start(&lab, &configuration);
    for answer in ask(&lab, 0..KNOWN) {
        assert_eq!(answer.status, "NOERROR", "{}", answer.text);
    }
    let ran = lab.world.filter(&filter(verdict));
    assert!(ran.success, "nft: {}", ran.stderr);

    // Names that are not cached fail with an extended error, until all workers know that all upstreams are dead.
    let mut next = KNOWN;
    let noticed = wait_until(|| {
        for answer in ask(&lab, next..next + 8) {
            assert_eq!(answer.status, "SERVFAIL", "{}", answer.text);
            assert!(answer.text.contains("EDE: 2"), "22 or 23: {}", answer.text);
        }
        next += 8;
        !sixfold.is_ready()
    });
    assert!(noticed, "{}", sixfold.log());

    // Cached names are answered with stale data.
    let stale = wait_until(|| ask(&lab, 0..KNOWN).iter().all(is_stale));
    assert!(stale, "{:#?}", ask(&lab, 0..KNOWN));
    for (number, answer) in ask(&lab, 0..KNOWN).iter().enumerate() {
        let (kind, ipv4) = (kind(number as u32), zones::host_address(number as u32));
        let address = if kind == "A" { ipv4 } else { Lab::embedded(&ipv4) };
        assert_eq!(answer.data(kind), [address], "{}", answer.text);
        assert_eq!(answer.text.contains("EDE: 3 "), kind == "A", "{}", answer.text);
    }
    assert!(sixfold.metric("sixfold_cache_hits_total{kind=\"stale\"}") >= f64::from(2 * KNOWN));

    let ran = lab.world.filter("delete table ip faults");
    assert!(ran.success, "nft: {}", ran.stderr);
    for server in BOTH {
        sixfold.expect_metric(&format!("sixfold_upstream_up{{upstream=\"{server}:53\"}}"), 1.0);
    }
    assert!(wait_until(|| sixfold.is_ready()), "{}", sixfold.log());
    // Soon every query is answered, and none with stale data.
    let fresh = wait_until(|| {
        next += 8;
        let answers = [ask(&lab, 0..KNOWN), ask(&lab, next..next + 8)].concat();
        answers.iter().all(|answer| answer.status == "NOERROR" && !is_stale(answer))
    });
    assert!(fresh, "{:#?}", ask(&lab, 0..KNOWN));
}

#[test]
fn expired_data_are_given_while_all_upstreams_are_silent_and_the_rest_fails_with_a_reason() {
    all_fail_and_come_back("drop");
}

#[test]
fn expired_data_are_given_while_all_upstreams_refuse_and_the_rest_fails_with_a_reason() {
    all_fail_and_come_back("reject with icmp type port-unreachable");
}
